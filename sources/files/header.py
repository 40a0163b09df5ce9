"""Finds the line with the names of the columns.

In: the records at the beginning of a file. Out: which of them is the header. Titles above it, as wide as the table or
not, are passed over; where a title may be the header, or the other way round, `Unclear` names both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from orderbridge.sources.files.cell_types import VALUES, type_of
from orderbridge.sources.files.column_names import column_name, numbered_names
from orderbridge.sources.files.header_evidence import (
    YEAR,
    count_above_data,
    first_types,
    has_labels,
    has_row_names,
    is_like,
    is_line_of_names,
    is_series,
)
from orderbridge.sources.files.model import Unclear
from orderbridge.sources.files.records import Record, looks_like_names, width_of
from orderbridge.sources.files.row_words import is_rule, is_units
from orderbridge.sources.files.table_width import trimmed_width
from orderbridge.sources.words import number

MAX_TITLES: Final = 20
_DIGIT: Final = re.compile(r"\d")


def find_header(filled: list[Record], rows: list[list[str]]) -> int:
    """The index of the header.

    Args:
        filled: records with cells.
        rows: the cells of each.

    Raises:
        Unclear: no line looks like it, or two may be it.
    """
    raw = width_of(filled)
    width = trimmed_width(rows, raw)
    few: Record | None = None
    for at, cells in enumerate(rows):
        is_wide = width <= len(cells) <= raw or _is_ended(cells, width)
        if not is_wide or is_rule(cells) or is_units(cells) or _is_above(filled, at, width):
            continue
        names = cells[:width]
        if _are_few(names):
            if has_row_names(filled, at, width):
                return at
            few = filled[at]
            continue
        is_next = few is not None and few.last + 1 == filled[at].line
        if few is not None and is_next and is_like(names, first_types(rows[at + 1 :], width)):
            raise _few_names(few, filled[at])
        return at - 1 if _is_below_names(rows, at, width) else at
    problem = "no line looks like column names"
    raise Unclear(problem, "Give the line that has them: --header-row N.", choice_of_lines(0))


def find_known_header(
    filled: Sequence[Record], columns: Sequence[str], width: int
) -> Record | None:
    """The first line with all columns that such files have, of several; None if there is none."""
    wanted = set(columns)
    for record in filled[: MAX_TITLES + 1] if len(wanted) > 1 else ():
        cells = record.cells or []
        names, _ = numbered_names(list(map(column_name, cells)))
        if len(cells) >= width and wanted.issubset(names):
            return record
    return None


def choice_of_lines(*lines: int) -> dict[str, dict[str, int]]:
    """The choice between lines that may have the names; 0 for none."""
    return {
        f"line {line} has the names" if line else "there are no names": {"header_row": line}
        for line in lines
    }


def _is_ended(cells: Sequence[str], width: int) -> bool:
    """Whether a line has a name for each column and ends with delimiters, as it alone may."""
    return all(cells[:width]) and len(cells) > width and not any(cells[width:])


def _are_few(names: Sequence[str]) -> bool:
    """Whether a line of several columns has names for one of them, or for less than half."""
    count = sum(map(bool, names))
    return len(names) > 1 and (count < 2 or count < len(names) / 2)


def _few_names(few: Record, row: Record) -> Unclear:
    """The error of a line with names for a few columns above what is a row."""
    names = number(len(few.filled), "cell")
    return Unclear(
        f"line {few.line} has {names} with text, and line {row.line} looks like a row, not like column names",
        f"Complete the names in line {few.line}, or remove it if it is a title.",
        choice_of_lines(few.line),
    )


def _is_below_names(rows: list[list[str]], at: int, width: int) -> bool:
    """Whether the last line is a row of the line above, which has names; as a header it would have no rows."""
    if at == 0 or at < len(rows) - 1 or looks_like_names(rows[at][:width]):
        return False
    above = rows[at - 1]
    return len(above) > 1 and all(above) and not _DIGIT.search("".join(above))


def _is_above(filled: list[Record], at: int, width: int) -> bool:
    """Whether a line is above the line of names; raises Unclear if it may have the names."""
    is_full = all((filled[at].cells or [])[:width])
    may_be_title = not is_full or has_labels(filled[at].filled, width)
    if may_be_title and _is_title(filled, at, width):
        return True
    return is_full and _is_full_title(filled, at, width)


def _is_title(filled: list[Record], at: int, width: int) -> bool:
    """Whether a line with fewer cells than the table is above the line of names: a title, or the date of a report.

    Raises:
        Unclear: it is right above a line of names, so that it may be a header that lacks some.
    """
    cells = filled[at].filled
    if has_labels(cells, width):
        return True
    names_at = _next_names(filled, at, width)
    if not cells or names_at is None:
        return False
    line = filled[at].line
    names_line = filled[names_at].line
    has_value = any(type_of(cell) in VALUES for cell in cells)
    is_stated = has_value and len(cells) <= max(2, width // 2)
    is_apart = names_line - line > names_at - at
    if is_stated or 2 * len(cells) < width + is_apart:
        return True
    if len(cells) < 2:
        return False
    if _are_groups(filled, at, names_at, width):
        return True
    if has_row_names(filled, at, width):
        return False
    cells_and_names = f"{number(len(cells), 'cell')} with text, line {names_line} a name for each"
    raise Unclear(
        f"line {line} has {cells_and_names} column", "", choice_of_lines(line, names_line)
    )


def _next_names(filled: list[Record], at: int, width: int) -> int | None:
    """The index of the first line below a line that looks like names."""
    for later in range(at + 1, min(at + 1 + MAX_TITLES, len(filled))):
        cells = filled[later].cells or []
        if len(cells) >= width and looks_like_names(cells[:width]):
            return later
    return None


def _are_groups(filled: list[Record], at: int, names_at: int, width: int) -> bool:
    """Whether a line has names of groups of columns, or a title of several cells, above names that the rows prove."""
    if any(len(row.filled) >= width for row in filled[at + 1 : names_at]):
        return False
    below = [row.cells or [] for row in filled[names_at + 1 :]]
    return count_above_data(filled[names_at].cells or [], below, width) > 1


def _is_full_title(filled: list[Record], at: int, width: int) -> bool:
    """Whether a line as wide as the table has groups, or a date or number, above a line of pure names.

    Raises:
        Unclear: the rows do not prove that the names are names.
    """
    cells = (filled[at].cells or [])[:width]
    if _has_repeated_groups(filled, at, width):
        return True
    values = [cell.strip() for cell in cells if type_of(cell) in VALUES]
    names_at = _next_pure_names(filled, at, width) if values else None
    if names_at is None:
        return False
    names = filled[names_at].cells or []
    below = [row.cells or [] for row in filled[names_at + 1 :]]
    types = first_types(below, width)
    if is_like(names, types):
        return False
    may_be_names = all(map(YEAR.fullmatch, values)) or is_series(cells)
    if not may_be_names and any(is_like(row.cells or [], types) for row in filled[at:names_at]):
        return False
    is_proven = count_above_data(names, below, width) > 0
    if may_be_names != is_proven:
        return is_proven
    line = filled[at].line
    other = filled[names_at].line
    problem = f"line {line} has dates or numbers, line {other} a name for each column"
    raise Unclear(problem, "", choice_of_lines(line, other))


def _has_repeated_groups(filled: list[Record], at: int, width: int) -> bool:
    """Whether a line has a text for several columns each, right above names that the rows prove."""
    cells = [cell.strip() for cell in (filled[at].cells or [])[:width]]
    is_repeated = len(set(cells)) < width and all(type_of(cell) == "text" for cell in cells)
    names = filled[at + 1] if at + 1 < len(filled) else None
    if not is_repeated or names is None or not is_line_of_names(names, width):
        return False
    below = [row.cells or [] for row in filled[at + 2 :]]
    return count_above_data(names.cells or [], below, width) > 1


def _next_pure_names(filled: list[Record], at: int, width: int) -> int | None:
    """The index of the first line below a line that has a text for each column."""
    for later in range(at + 1, min(at + 1 + MAX_TITLES, len(filled))):
        if is_line_of_names(filled[later], width):
            return later
    return None
