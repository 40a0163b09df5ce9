"""How the cells of a text are delimited: delimiter, quote, escape, and what stands beside the delimiter."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Final

DELIMITERS: Final = (";", ",", "\t", "|")
DELIMITER: Final = re.compile(f"[{''.join(DELIMITERS)}]")


@dataclass(frozen=True)
class Dialect:
    r"""How cells are delimited. `quote` and `escape` are "" for none; `is_padded`: spaces follow the delimiter.

    Attributes:
        separator: the delimiter with what stands beside it and is no data: a space on both sides for any white
            space, or a second delimiter on one; "" for the delimiter alone.
        has_nulls: whether `\N` is an empty cell.
    """

    delimiter: str
    quote: str = '"'
    escape: str = ""
    is_padded: bool = False
    separator: str = ""
    has_nulls: bool = False


def lines_of(text: str) -> io.StringIO:
    """Lines with their ends: LF, CRLF or CR; other line separators of Unicode are text."""
    return io.StringIO(text, newline="")
