r"""Backslashes: `\N` for no value, and escapes whose meaning is not proven.

In: a text and its dialect. Out: whether its backslashes mean what a reader of the dialect takes them for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from orderbridge.sources.files.dialect import Dialect

_LETTER_ESCAPE: Final = re.compile(r"\\[^\W_]")


@cache
def null_pattern(delimiter: str) -> re.Pattern[str]:
    r"""`\N` alone in a cell without quotes."""
    mark = re.escape(delimiter)
    return re.compile(rf"(?:^|(?<=[{mark}\r\n]))\\N(?=[{mark}\r\n]|\Z)")


def has_letter_escapes(text: str, dialect: Dialect) -> bool:
    r"""Whether a backslash stands before a letter or digit, other than in a cell `\N` that is an empty one."""
    if "\\" not in text:
        return False
    if dialect.has_nulls:
        text = null_pattern(dialect.delimiter).sub("", text)
    return _LETTER_ESCAPE.search(text.replace("\\\\", "")) is not None


def has_proven_nulls(blocks: Iterable[str], dialect: Dialect) -> bool:
    r"""Whether a text has `\N` in cells of its own, and each other backslash is an escape of MySQL or PostgreSQL."""
    null = null_pattern(dialect.delimiter)
    escapes = re.compile(rf"\\[\\'\"0bnrtZ\r\n{re.escape(dialect.delimiter)}]")
    is_found = False
    for block in blocks:
        if "\\" in block:
            rest, count = null.subn("", block)
            is_found = is_found or count > 0
            if "\\" in escapes.sub("", rest):
                return False
    return is_found
