"""Checks of a layout that was detected, not given: is there a second reading?

In: the records at the beginning of a file, and which of them was taken for the header. Out: nothing, or `Unclear`, with
the options that choose a reading where following one cannot shift names or rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from orderbridge.sources.files.cell_types import VALUES, column_kinds, is_data, type_of
from orderbridge.sources.files.column_names import column_name, is_one_name
from orderbridge.sources.files.dialect import DELIMITER, DELIMITERS, lines_of
from orderbridge.sources.files.header import choice_of_lines
from orderbridge.sources.files.header_evidence import (
    YEAR,
    are_proven_names,
    first_types,
    has_labels,
    has_numbered_names,
    is_like,
    is_series,
)
from orderbridge.sources.files.model import DELIMITER_NAMES, Unclear
from orderbridge.sources.files.records import Record, looks_like_names
from orderbridge.sources.words import number

ROWS_COMPARED: Final = 200
MAX_BROKEN: Final = 2
"""Of more lines with misplaced quotes above the header, they may be those of another table."""
_SPACED: Final = re.compile(r"\S(?: {2,})\S")
_OTHER_MARKS: Final = re.compile(r"[^,;|\t][,;|\t]+$")
MAX_NUMBERED: Final = 20
_LINE_NUMBER: Final = re.compile(r"\s*0*(\d+)[: \t]")
_LINE_MARK: Final = re.compile("(?:[+>]|\x1b\\[|ï»¿)")
"""What a program that compares, quotes, prints or converts a text puts before its lines."""
_MAY_BE_NAME: Final = re.compile(r"[1-9]\d{0,3}|[^\W\d_]+\d")
"""A number or code that may be a name: 2024, Q1."""


def check_header(records: Sequence[Record], header: Record, width: int, *, is_known: bool) -> bool:
    """All checks of a header; returns whether it is certainly a row.

    `is_known`: it has the columns that such files have, so that no other line is it, and it is no row.

    Raises:
        Unclear: there is a second reading.
    """
    at = next(index for index, record in enumerate(records) if record.line == header.line)
    before = records[:at]
    below = records[at + 1 :]
    after = (record.cells for record in below if record.cells)
    rows = [cells for cells in after if len(cells) >= width][:ROWS_COMPARED]
    types = first_types(rows, width)
    is_first = not any(record.filled or record.cells is None for record in before)
    _check_quotes(header, types, rows, width, is_first=is_first)
    _check_earlier_table(before, header, width, types)
    _check_extra_name(header, rows)
    _check_table_beside(header, rows)
    if is_known:
        return False
    _check_marks(header, rows)
    if not any(record.filled for record in below):
        _check_rows_follow(before, header, width)
    _check_lines_above(before, header, width, types)
    _check_line_below(below, header, types)
    _check_words_repeat(header, rows, width, is_first=is_first)
    if _is_row(header, types, rows, is_first=is_first):
        return True
    _check_value_name(header, types)
    return False


def check_single_column(sample: str) -> None:
    """Raises if a file that would be read as one column has a delimiter in most lines, as where lines are quoted."""
    lines = [line for line in lines_of(sample) if line.strip()]
    for mark in DELIMITERS if len(lines) > 2 else ():
        counts = [line.count(mark) for line in lines]
        if 2 * sum(map(bool, counts)) > len(lines):
            raise _unequal_cells(lines, mark, min(counts), max(counts))
    spaced = sum(_SPACED.search(line) is not None for line in lines)
    if 2 * spaced > len(lines) > 2:
        raise Unclear(
            "most lines have several spaces in a row, as between columns of a fixed width, and no delimiter",
            "Export the table as CSV, with a delimiter.",
            {"there is one column": {"delimiter": "\t"}},
        )


def _unequal_cells(lines: Sequence[str], mark: str, fewest: int, most: int) -> Unclear:
    """The error of lines with a delimiter, but not as cells of equal number."""
    name = DELIMITER_NAMES[mark]
    another = "|" if mark == "\t" else "\t"
    quoted = sum(line[0] == '"' == line.rstrip()[-1] for line in lines)
    choices: dict[str, dict[str, str | int]] = {}
    if 2 * quoted <= len(lines):
        choices[f"a {name} separates the cells"] = {"delimiter": mark}
    choices["there is one column"] = {"delimiter": another}
    return Unclear(
        f"most lines contain a {name}, but not as cells of equal number: {fewest} to {most} a line",
        "Export the file again, without quotes around whole lines.",
        choices,
    )


def check_widths(
    line: int, names: int, surplus: int, header: list[str], rows: list[list[str]]
) -> None:
    """Raises Unclear if most rows, or the empty cells at their end, show that the header may be another line.

    A delimiter may end the rows, not the header, if none of its names may be two.
    """
    width = len(header)
    misfits = sum(_is_misfit(cells, names, surplus) for cells in rows)
    is_ended = names == width > 2 and all(map(is_one_name, header))
    is_short = names + surplus > width and not is_ended
    if 2 * misfits > len(rows) > 2 or is_short:
        size = Counter(map(len, rows)).most_common(1)[0][0]
        raise Unclear(
            f"line {line}, the header, has {number(names, 'name')}, but most rows have {number(size, 'cell')}",
            f"Fix line {line}: a name or a delimiter is missing, or it is not the header.",
            {"the names are right": {"header_row": line}},
        )


def _is_misfit(cells: list[str], names: int, surplus: int) -> bool:
    """Whether a row has cells beyond the names, or all of its cells in the first one."""
    if len(cells) > names + surplus or any(cells[names:]):
        return True
    return names > 1 and not any(cells[1:]) and DELIMITER.search(cells[0]) is not None


def _check_quotes(
    header: Record,
    types: Sequence[str],
    rows: Sequence[list[str]],
    width: int,
    *,
    is_first: bool,
) -> None:
    """A quote in a name may have joined two."""
    cells = header.cells or []
    if is_like(cells, types) or not any('"' in column_name(name) for name in cells):
        return
    is_proposed = is_first and any(row[width - 1] for row in rows)
    raise Unclear(
        f"line {header.line}, the header, has a quote that does not enclose a whole name",
        "Fix the quotes in that line.",
        choice_of_lines(header.line) if is_proposed else {},
    )


def _check_marks(header: Record, rows: Sequence[list[str]]) -> None:
    """Something stands before each line or after it that is no part of the table: a mark, a number, delimiters."""
    names = header.cells or [""]
    numbers = [_LINE_NUMBER.match(cells[0]) for cells in (names, *rows[:MAX_NUMBERED])]
    counted = [int(found[1]) for found in numbers if found]
    has_all_numbers = len(counted) == len(numbers) > 2
    are_numbered = has_all_numbers and counted[-1] - counted[0] == len(counted) - 1
    if are_numbered or _LINE_MARK.match(names[0]) or _OTHER_MARKS.search(names[-1]):
        raise Unclear(
            f"line {header.line}, the header, begins or ends with what is no name, such as a number or mark of each "
            "line, or delimiters of another kind",
            "Export the table again, or remove it from each line.",
            {},
        )


def _check_rows_follow(above: Sequence[Record], header: Record, width: int) -> None:
    """A header on the last line, below lines of one cell, may be a row of one column."""
    is_single = any(len(record.filled) == 1 for record in above)
    is_usual = width > 2 and looks_like_names((header.cells or [])[:width])
    if is_single and not is_usual:
        raise Unclear(
            f"only line {header.line} has {number(width, 'cell')}, and no rows follow it",
            "",
            {
                "there is one column": {"delimiter": "\t"},
                f"line {header.line} has the names": {"header_row": header.line},
            },
        )


def _check_earlier_table(
    records: Sequence[Record], header: Record, width: int, types: Sequence[str]
) -> None:
    """Lines before the header may be a table: several of equal width, or with as many delimiters inside of quotes."""
    for block in _blocks_of_rows(records, width):
        size = max(len(row.filled) for row in block)
        if len(block) < (2 if size > 2 else 5):
            continue
        first = block[0].line
        last = block[-1].last
        second = header.line
        if is_like(header.cells or [], types):
            raise Unclear(
                f"lines {first} to {last} have {size} cells, and line {second}, which is a row, has {width}",
                "Fix the lines with too few or too many cells.",
                choice_of_lines(first),
            )
        raise Unclear(
            f"two tables: lines {first} to {last} have {size} cells, and another one begins on line {second}",
            "Move each to a file of its own, or choose one.",
            {f"it is that of line {line}": {"header_row": line} for line in (first, second)},
        )


def _blocks_of_rows(records: Sequence[Record], width: int) -> Iterator[list[Record]]:
    """Adjacent records of several cells, not of labels, with equal numbers of them."""

    def width_of_row(record: Record) -> int:
        is_row = len(record.filled) > 1 and not has_labels(record.filled, width)
        return len(record.cells or ()) if is_row else 0

    for size, block in groupby(records, width_of_row):
        if size:
            yield list(block)


def _check_lines_above(
    above: Sequence[Record], header: Record, width: int, types: Sequence[str]
) -> None:
    """A broken line, or one of another width, right above the header may be it; so may a line quoted as a whole.

    Not above names that the rows prove: texts only, above each column with numbers, dates or codes.
    """
    names = (header.cells or [])[:width]
    broken = sum(record.cells is None for record in above)
    if broken <= MAX_BROKEN and are_proven_names(names, types):
        return
    for record in above:
        is_next = record.last + 1 == header.line
        if record.cells is None and (is_next or broken > MAX_BROKEN):
            raise _other_header(record, header, "misplaced quotes")
        if _may_be_header(record, header, width) and not _is_metadata(record, names):
            cells = number(len(record.cells or ()), "cell")
            raise _other_header(record, header, f"{cells} where the rows have {width}")


def _other_header(record: Record, header: Record, fault: str) -> Unclear:
    """The error of a line above the header that may be it."""
    return Unclear(
        f"line {record.line} looks like the header, but has {fault}; otherwise line {header.line} is the header",
        f"Fix line {record.line}, or remove it if it is a title.",
        {},
    )


def _may_be_header(record: Record, header: Record, width: int) -> bool:
    """Whether a line is a header that is quoted as a whole; or right above it, with other cells for at least half."""
    filled = record.filled
    if len(filled) == 1:
        counts = (filled[0].count(mark) - filled[0].count(f"{mark} ") for mark in DELIMITERS)
        return max(counts) >= width - 1 > 0
    is_next = record.last + 1 == header.line
    is_other = len(record.cells or ()) != len(header.cells or ())
    return is_next and is_other and len(filled) > 1 and 2 * len(filled) >= width


def _is_metadata(record: Record, names: Sequence[str]) -> bool:
    """Whether a line has labels, or a date or number above names without digits."""
    if has_labels(record.filled, len(names)):
        return True
    has_value = any(type_of(cell) in VALUES for cell in record.filled)
    return has_value and looks_like_names(list(names))


def _check_line_below(below: Sequence[Record], header: Record, types: Sequence[str]) -> None:
    """A line with dates or numbers may be a title whose header is missing or damaged.

    So it is where a date stands above texts, or where a line of another width, or a broken one, is next.
    """
    own = list(map(type_of, header.cells or ()))
    is_damaged = bool(below) and _is_damaged(below[0], header)
    is_above_texts = ("date", "text") in zip(own, types, strict=False)
    is_above_texts = is_above_texts and not is_series(header.cells or [])
    if not is_above_texts and not (is_damaged and _has_other_than_years(header)):
        return
    line = below[0].line if below else header.line
    fault = f", and line {line} other cells or quotes" if is_damaged else " above texts"
    raise Unclear(
        f"line {header.line} has dates or numbers{fault}: it may be a title above a header that is damaged",
        f"Fix line {line}, or add a line of names.",
        {},
    )


def _is_damaged(record: Record, header: Record) -> bool:
    """Whether a line is broken, or has texts only, and as many cells as the header has not."""
    if record.cells is None:
        return True
    texts = [type_of(cell) == "text" for cell in record.filled]
    return len(texts) > 1 and all(texts) and len(record.cells) != len(header.cells or ())


def _has_other_than_years(header: Record) -> bool:
    """Whether a line has dates or numbers that are no years."""
    values = [name.strip() for name in header.cells or () if type_of(name) in VALUES]
    return not all(map(YEAR.fullmatch, values))


def _check_extra_name(header: Record, rows: Sequence[list[str]]) -> None:
    """A name that is missing above cells, and one too many at the end: a delimiter too many shifts the names."""
    names = [name.strip() for name in header.cells or ()]
    same = [row for row in rows if len(row) == len(names)]
    if len(names) < 3 or len(same) < 2 or not names[-1] or any(row[-1] for row in same):
        return
    for column in range(1, len(names) - 1):
        if not names[column] and all(row[column] for row in same):
            raise Unclear(
                f"line {header.line}, the header, has no name for column {column + 1}, which has cells, and one for "
                "the last column, which has none",
                f"Fix line {header.line}: it has a delimiter too many, or a name too few.",
                {"the names are right": {"header_row": header.line}},
            )


def _check_table_beside(header: Record, rows: Sequence[list[str]]) -> None:
    """After an empty column without a name, further names and rows without cells before it may be another table."""
    names = [name.strip() for name in header.cells or ()]
    same = [row for row in rows if len(row) == len(names)]
    for column in range(1, len(names) - 1):
        filled = sum(bool(row[column]) for row in same)
        is_gap = not names[column] and 10 * filled <= len(same) and any(names[:column])
        if is_gap and any(_begins_at(row, column) for row in same):
            raise Unclear(
                f"two tables side by side: columns 1 to {column}, and those from column {column + 2} on",
                "Move each to a file of its own.",
                {"it is one table": {"header_row": header.line}},
            )


def _begins_at(row: Sequence[str], column: int) -> bool:
    """Whether all cells of a row are from a column on."""
    return not any(row[:column]) and any(row[column:])


def _check_words_repeat(
    header: Record, rows: Sequence[list[str]], width: int, *, is_first: bool
) -> None:
    """A line of words above rows of words may be a row, if one of its words is a cell below it too."""
    names = header.cells or []
    if len(names) < 2 or any(map(_is_half_data, column_kinds(rows, width))):
        return
    others = [cells for cells in rows if 2 * _count_same(cells, names) <= len(names)]
    if any(_count_same(cells, names) for cells in others):
        raise Unclear(
            f"line {header.line} may be a row, not column names: a row has the same text in one of the columns",
            "",
            choice_of_lines(*([header.line, 0] if is_first else [header.line])),
        )


def _check_value_name(header: Record, types: Sequence[str]) -> None:
    """A number or date as in the column below it, beside names, has taken the place of a name."""
    names = [name.strip() for name in header.cells or ()]
    own = list(map(type_of, names))
    alike = [
        name
        for name, kind, usual in zip(names, own, types, strict=False)
        if kind in VALUES and kind == usual and not _MAY_BE_NAME.fullmatch(name)
    ]
    if len(alike) == 1 and 2 * own.count("text") > len(own) > 2:
        raise Unclear(
            f"line {header.line}, the header, has a number, date or address in place of a name",
            f"Write the name of the column in line {header.line}.",
            {"the names are right": {"header_row": header.line}},
        )


def _is_half_data(found: Counter[str]) -> bool:
    """Whether at least half of the cells of a column are numbers, dates, addresses or codes."""
    return found.total() > 0 and 2 * found["text"] <= found.total()


def _count_same(cells: Sequence[str], names: Sequence[str]) -> int:
    """The number of cells that are the name of their column."""
    return sum(cell == name != "" for cell, name in zip(cells, names, strict=False))


def _is_row(
    header: Record, types: Sequence[str], rows: Sequence[list[str]], *, is_first: bool
) -> bool:
    """Whether the line of a header is a row: its cells are of the same types as those below, e.g. codes or dates."""
    names = header.cells or []
    pairs = list(zip(names, types, strict=False))
    has_types = any(types)
    alike = [name for name, kind in pairs if _is_alike(name, kind, has_types=has_types)]
    different = sum(_is_name_of(name, kind, has_types=has_types) for name, kind in pairs)
    if len(alike) <= different or has_numbered_names(names, rows):
        return False
    may_be_names = all(map(_MAY_BE_NAME.fullmatch, alike))
    if is_first and not different and has_types and not may_be_names:
        return True
    lines = [header.line] * may_be_names + [0] * is_first
    raise Unclear(
        f"line {header.line} looks like a row, not like column names: it has numbers, dates or codes",
        "" if is_first else "Fix the line of names above it, or add one there.",
        choice_of_lines(*lines),
    )


def _is_alike(name: str, kind: str, *, has_types: bool) -> bool:
    """Whether the cell of a header is data as the cells below it; without rows, data that is no name."""
    own = type_of(name)
    is_same = own == kind if has_types else not _MAY_BE_NAME.fullmatch(name)
    return is_same and is_data(own)


def _is_name_of(name: str, kind: str, *, has_types: bool) -> bool:
    """Whether the cell of a header is a text above data, or above no rows."""
    own = type_of(name)
    return bool(own) and not is_data(own) and (is_data(kind) or not has_types)
