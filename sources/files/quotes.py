"""Misplaced quotes that a strict CSV reader accepts.

In: the cells of a record. Out: whether a stray quote made other lines part of one cell, or a quote is never closed.
Both are heuristics, so they are switched off if the options state the quote of the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

WIDE: Final = 6
"""From this number of columns on, a line inside a cell with as many delimiters is a row of the table, not prose."""
_LINE_END: Final = re.compile(r"\r\n|\n|\r")


def swallows(cells: Sequence[str], widths: Sequence[int], delimiter: str) -> bool:
    """Whether a multi-line record contains rows of the table: two stray quotes join everything between them.

    Each line of the record is counted as if quotes had no meaning; a row of the table has as many cells as the table.
    Lines of an address, of prose or HTML can match by chance, more easily with few columns. So in a narrow table the
    first and the last line must match too, and up to three columns every line. A delimiter followed by a space is
    prose.

    Args:
        cells: the cells of a multi-line record.
        widths: the widths of the table, with and without empty cells at the end of its lines.
        delimiter: the delimiter of the file.
    """
    width = max(widths)
    first, *inner, last = (size in widths for size in _sizes(cells, delimiter))
    if width < 2 or (width == 2 and not inner):
        return False
    if width >= WIDE and any(inner):
        return True
    return first and last and (not inner or (any(inner) if width > 3 else all(inner)))


def is_unclosed(cell: str) -> bool:
    """Whether a cell begins with a quote that is never closed. A final quote or a pair may be inches."""
    return cell.startswith('"') and not cell.endswith('"') and cell.count('"') % 2 == 1


def cells_with_quotes(delimiter: str) -> re.Pattern[str]:
    """A pattern that finds cells beginning with a quote. The quote comes first in it, for speed."""
    return re.compile(rf'"(?<![^{re.escape(delimiter)}\r\n]")')


def _sizes(cells: Sequence[str], delimiter: str) -> list[int]:
    """The number of cells of each line of a record if quotes had no meaning; 0 for prose, blank lines left out."""
    text = delimiter.join(cell if _LINE_END.search(cell) else "" for cell in cells)
    first, *inner, last = _LINE_END.split(text)
    lines = [first, *(line for line in inner if line.strip()), last]
    return [0 if f"{delimiter} " in line else line.count(delimiter) + 1 for line in lines]
