"""Misplaced quotes that a strict CSV reader accepts.

In: the cells of a record. Out: whether a stray quote made other lines part of one cell, or a quote is never closed.
Both are heuristics, so they are switched off if the options state the quote of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final

WIDE: Final = 6
"""From this number of columns on, a line inside a cell with as many delimiters is a row of the table, not prose."""
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_SPACED: Final = re.compile(r'[ \xa0]+"[^\s"]')
_OPENS_INSIDE: Final = re.compile(r'.+"[^\s"][^"]*$')
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*"?')


def swallows(cells: Sequence[str], widths: Sequence[int], delimiter: str) -> bool:
    """Whether a multi-line record contains rows of the table: two stray quotes join everything between them.

    Each line of the record is counted as if quotes had no meaning; a row of the table has as many cells as the table.
    Lines of an address, of prose or HTML can match by chance, more easily with few columns. So in a narrow table the
    first and the last line must match too, unless several lines between them all match, and up to three columns every
    line. A delimiter followed by a space is prose; one followed by a quote is not, and one such line is enough.

    Args:
        cells: the cells of a multi-line record.
        widths: the widths of the table, with and without empty cells at the end of its lines.
        delimiter: the delimiter of the file.
    """
    width = max(widths)
    lines = _lines(cells, delimiter)
    first, *inner, last = (_size(line, delimiter) in widths for line in lines)
    if width < 2 or (width == 2 and not inner):
        return False
    if (width >= WIDE and any(inner)) or (width > 3 and len(inner) > 1 and all(inner)):
        return True
    quoted = [is_row for is_row, line in zip(inner, lines[1:-1], strict=True) if f'{delimiter}"' in line]
    if width > 3 and first and any(quoted):
        return True
    return first and last and (not inner or (any(inner) if width > 3 else all(inner)))


def begins_with_quote(cell: str) -> bool:
    """Whether a cell that is read without quotes begins with one; a single one may be inches or a ditto mark."""
    return cell.startswith('"') and cell != '"'


def _lines(cells: Sequence[str], delimiter: str) -> list[str]:
    """The lines of a record, without blank ones between the first and the last; cells of one line are left empty."""
    text = delimiter.join(cell if _LINE_END.search(cell) else "" for cell in cells)
    first, *inner, last = _LINE_END.split(text)
    return [first, *(line for line in inner if line.strip()), last]


def _size(line: str, delimiter: str) -> int:
    """The number of cells of a line if quotes had no meaning; 0 for prose: spaces follow delimiters, quotes do not."""
    spaced = line.count(f"{delimiter} ")
    return 0 if spaced and f'{delimiter}"' not in line else line.count(delimiter) - spaced + 1


def has_stray_quotes(
    line: str, peek: Callable[[], str], width: int, delimiter: str, *, is_padded: bool = False
) -> bool:
    """Whether a quote opens inside an unquoted cell, and is closed at the end of a later cell or on the next line.

    Also true for a cell with spaces before an opening quote, where spaces do not follow the other delimiters.

    `14"Screw M14, steel",14.50` has the right number of cells only by chance: the comma between the quotes was meant as
    text. Inches (`5" tube`, `3" x 4"`) have no text right after the quote, or no partner in another cell.

    Args:
        line: the lines of a record.
        peek: returns the line after the record; it continues the cell if it has too few cells and no quote opens
            in it.
        width: the number of cells of a row.
        delimiter: the delimiter of the file.
        is_padded: whether spaces follow the delimiters.
    """
    if _inner_quote(delimiter).search(line) is None:
        return False
    is_open = False
    for text in _unquoted_cells(line.rstrip("\r\n"), delimiter, is_padded=is_padded):
        cell = text.replace('""', '"')
        if _SPACED.match(cell):
            return True
        if cell.count('"') % 2 == 0:
            continue
        if is_open and cell.rstrip().endswith('"'):
            return True
        is_open = is_open or _OPENS_INSIDE.match(cell) is not None
    following = peek().rstrip("\r\n") if is_open else ""
    return bool(following.strip()) and following.count(delimiter) < width - 1


@cache
def _inner_quote(delimiter: str) -> re.Pattern[str]:
    """A quote, or a doubled one, between text; without one, no quote opens inside a cell."""
    mark = re.escape(delimiter)
    return re.compile(rf'[^"{mark}\r\n]""?[^\s"{mark}]')


def _unquoted_cells(line: str, delimiter: str, *, is_padded: bool) -> Iterator[str]:
    """The cells of a line that do not begin with a quote."""
    at = 0
    while at <= len(line):
        while is_padded and line.startswith(" ", at):
            at += 1
        if line.startswith('"', at):
            match = _QUOTED.match(line, at)
            at = match.end() if match else len(line)
            end = line.find(delimiter, at)
        else:
            end = line.find(delimiter, at)
            yield line[at : end if end >= 0 else len(line)]
        if end < 0:
            return
        at = end + len(delimiter)
