"""Quotes that are out of place, and yet leave cells that a strict reader takes.

In: cells as they were read. Out: whether a quote among them opened where none should, so that other lines lie in one
cell, or a cell has a quote that nothing closes. Neither is known for certain, so a person who tells the quote of the
file is believed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

WIDE: Final = 6
"""Columns from which on a line within a cell is one of the table's by their number alone: no prose has so many."""
_LINE_END: Final = re.compile(r"\r\n|\n|\r")


def swallows(cells: Sequence[str], widths: Sequence[int], delimiter: str) -> bool:
    """Whether lines of the table lie within a cell: two stray quotes make one of all that stands between them.

    Taken as the lines of the file that they are, with quotes that mean nothing, they have as many cells as the table.
    Lines of an address, a description or of HTML have that by chance: the fewer columns, the more easily. So in a
    narrow table the first and the last line of the record must have it too, since they are lines of the table in their
    own right; up to three columns, all of the lines. A delimiter with a blank behind it is prose, and none.

    Args:
        cells: of a record that runs over several lines.
        widths: of the table, with and without the empty cells at the end of its lines.
        delimiter: of the file.
    """
    width = max(widths)
    first, *inner, last = (size in widths for size in _sizes(cells, delimiter))
    if width < 2 or (width == 2 and not inner):
        return False
    if width >= WIDE and any(inner):
        return True
    return first and last and (not inner or (any(inner) if width > 3 else all(inner)))


def is_unclosed(cell: str) -> bool:
    """Whether a cell begins with a quote that nothing closes. One at its end may mean inches, as may a pair."""
    return cell.startswith('"') and not cell.endswith('"') and cell.count('"') % 2 == 1


def cells_with_quotes(delimiter: str) -> re.Pattern[str]:
    """What finds a cell that begins with a quote in a text. The quote stands first, for speed."""
    return re.compile(rf'"(?<![^{re.escape(delimiter)}\r\n]")')


def _sizes(cells: Sequence[str], delimiter: str) -> list[int]:
    """How many cells each line of a record has, were quotes ordinary signs; blank ones are none, and 0 is prose."""
    text = delimiter.join(cell if _LINE_END.search(cell) else "" for cell in cells)
    first, *inner, last = _LINE_END.split(text)
    lines = [first, *(line for line in inner if line.strip()), last]
    return [0 if f"{delimiter} " in line else line.count(delimiter) + 1 for line in lines]
