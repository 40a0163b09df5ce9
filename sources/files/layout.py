"""Detects the layout of a table: preamble, header, footnotes, and the column names.

In: the records at the beginning of a file, and its last lines. Out: `Layout`. Nothing that could be data is left out
without evidence. Where a second reading would lose rows or columns silently, `Unclear` names both, and the options that
choose one.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Final

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.dialect import (
    DELIMITER,
    DELIMITERS,
    Record,
    is_blank,
    lines_of,
    looks_like_names,
    width_of,
)
from orderbridge.sources.files.model import DELIMITER_NAMES, MAX_COLUMNS, ReadOptions, Unclear
from orderbridge.sources.files.row_shape import (
    RowShape,
    column_kinds,
    column_types,
    is_data,
    is_rule,
    is_totals,
    is_units,
    type_of,
    unmarked,
)
from orderbridge.sources.words import number

MAX_TITLES: Final = 20
_VALUES: Final = ("number", "date", "address")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_NUMBERED: Final = re.compile(
    r"(field|fld|column|col|campo|columna|coluna|colonna|colonne|champ|feld|spalte)[ _]?(\d+)",
    re.IGNORECASE,
)
MAX_ACRONYM: Final = 4
MAX_BROKEN: Final = 2
"""Of more lines with misplaced quotes above the header, they may be those of another table."""
_WORD_AND_DIGIT: Final = re.compile(r"[^\W\d_]+\d")
_MAY_BE_NAME: Final = re.compile(r"[1-9]\d{0,3}|[^\W\d_]+\d")
"""A number or code that may be a name: 2024, Q1."""
ROWS_COMPARED: Final = 200
TYPED_ROWS: Final = 8
"""Later ones may be those of another table."""


@dataclass(frozen=True)
class Layout:
    """The rows of a table, and the position of its header.

    Attributes:
        shape: the cells that a row must have; with the types of the columns if the header was detected.
        data_line: the first line after the header.
    """

    shape: RowShape
    header_lines: tuple[int, ...]
    data_line: int
    preamble: tuple[int, ...]
    renamed: tuple[str, ...]

    def found(self) -> dict[str, Any]:
        """The attributes of a `DetectedFormat` that are the same for texts and sheets."""
        names = {
            "columns": self.shape.columns,
            "renamed": self.renamed,
            "dropped_columns": self.shape.surplus,
        }
        return names | {"header_lines": self.header_lines, "preamble": self.preamble}


def detect_layout(
    records: list[Record], options: ReadOptions, *, skipped: tuple[int, ...] = ()
) -> Layout:
    """The layout of a table, from the records at its beginning.

    Args:
        records: in order, with blank lines.
        options: header_row, and which rows are rejected.
        skipped: non-blank lines before the first record.

    Raises:
        UsageError: there is no header at the given line, or no line looks like one.
    """
    filled = [record for record in records if record.filled]
    if not filled:
        raise UsageError(
            "no table found: every line is blank or broken", "Check how the file was exported."
        )
    rows = [record.cells or [] for record in filled]
    line, width = options.header_row, _trimmed(rows, width_of(filled))
    if line is None:
        at = _header(filled, rows)
        line = 0 if check_header(records, filled[at], width) else filled[at].line
    if line == 0:
        at = next(at for at, cells in enumerate(rows) if len(cells) >= width)
        names, surplus = [""] * width, len(rows[at]) - width
    else:
        at = next((at for at, record in enumerate(filled) if record.line == line), -1)
        if at < 0:
            raise UsageError(
                f"no header begins on line {line}",
                "Look at the lines of the file in a text editor.",
            )
        names, surplus = _names(rows[at], rows[at + 1 :])
        if options.header_row is None:
            _check_widths(line, len(names), surplus, rows[at], rows[at + 1 :])
    columns, renamed = _numbered(names)
    shape = RowShape(
        columns,
        options.short_rows == "fill",
        surplus,
        header=line,
        keeps_totals=options.totals == "keep",
        titles=_titles(filled[:at], len(columns), surplus) if line else (),
    )
    if options.header_row is None:
        shape = _typed(shape, filled[at + bool(line) :], records)
    preamble = skipped + tuple(record.line for record in filled[:at])
    data_line = filled[at].last + 1 if line else filled[at].line
    return Layout(shape, (line,) if line else (), data_line, preamble, renamed)


def _titles(above: list[Record], width: int, surplus: int) -> tuple[tuple[str, ...], ...]:
    """The cells of lines that have as many as a row of several."""
    lines = [record.cells or [] for record in above] if width > 1 else []
    return tuple(tuple(cells[:width]) for cells in lines if len(cells) == width + surplus)


def _names(header: list[str], rows: list[list[str]]) -> tuple[list[str], int]:
    """The names in a line, and the number of empty cells that the rows have beyond them."""
    width = len(header)
    same = [cells for cells in rows if len(cells) == width]
    kept = max(
        _trimmed([header], width), _trimmed(same, width, 0.5)
    )  # of a few rows, no column without a name
    return list(map(column_name, header[:kept])), _surplus(rows, kept, width - kept)


def _is_one_name(name: str) -> bool:
    """Whether a name cannot be two that lost the delimiter between them: no capital but the first, or a short one."""
    first, *others = name.split() or [""]
    is_short = first.isupper() and len(first) <= MAX_ACRONYM
    is_word = first[:1].isupper() and first[1:].islower()
    return (is_short or is_word) and all(word.islower() or word.isdecimal() for word in others)


def _check_widths(
    line: int, names: int, surplus: int, header: list[str], rows: list[list[str]]
) -> None:
    """Raises UsageError if most rows, or the empty cells at their end, show that the header may be another line.

    A delimiter may end the rows, not the header, if none of its names may be two.
    """
    width = len(header)
    misfits = sum(
        len(cells) > names + surplus
        or any(cells[names:])
        or (names > 1 and not any(cells[1:]) and bool(DELIMITER.search(cells[0])))
        for cells in rows
    )
    is_ended = names == width > 2 and all(map(_is_one_name, header))
    if 2 * misfits > len(rows) > 2 or (names + surplus > width and not is_ended):
        size = Counter(map(len, rows)).most_common(1)[0][0]
        raise Unclear(
            f"line {line}, the header, has {number(names, 'name')}, but most rows have {number(size, 'cell')}",
            f"Fix line {line}: a name or a delimiter is missing, or it is not the header.",
            {"the names are right": {"header_row": line}},
        )


def _typed(shape: RowShape, rows: list[Record], records: list[Record]) -> RowShape:
    """The shape with the types of its columns, from the rows up to a blank line or to the names of another table."""
    width, names = len(shape.columns), {name.casefold() for name in shape.columns}
    blank = {
        record.line for record in records if record.cells is not None and is_blank(record.cells, 2)
    }  # not broken
    has_second = shape.header > 0 and _has_second_names(rows, width)
    second_names = rows[0].line if has_second else 0
    usual: list[list[str]] = []
    ended = False
    for row in rows[has_second:ROWS_COMPARED]:
        cells = row.cells or []
        ended = ended or (len(usual) > 1 and row.line - 1 in blank)
        is_odd = len(cells) < width or is_rule(cells) or is_totals(cells)
        repeated = names.intersection(map(str.casefold, cells))
        if is_odd or (width > 1 and (sum(map(bool, cells)) < 2 or len(repeated) > 1)):
            continue
        if ended or looks_like_names(cells[:width]):
            break
        usual.append(cells)
    kinds = column_kinds(usual, width)
    steady = (
        at
        for at, found in enumerate(kinds)
        if len(usual) > 1 and 10 * found["text"] <= found.total() > 0
    )
    return shape._replace(
        types=column_types(kinds), steady=tuple(steady), second_names=second_names
    )


def _has_second_names(rows: list[Record], width: int) -> bool:
    """Whether the first row has no data in any of the columns with numbers, dates or codes, and a text in one.

    It fills all columns; or it has no code and nothing but words, where names go on: `Code;Name;Date` above `;;am`.
    """
    first, *others = [row.cells or [] for row in rows[: TYPED_ROWS + 1]] or [[]]
    whole = [cells for cells in others if len(cells) >= width]
    if len(whole) < 2 or len(first) < width:
        return False
    kinds = column_kinds(whole, width)
    types = column_types(kinds)
    steady = [at for at, found in enumerate(kinds) if 10 * found["text"] <= found.total() > 0]
    has_words_only = not any(is_data(type_of(cell)) for cell in first[:width])
    goes_on = 0 in steady and not first[0] and has_words_only
    if not all(first[:width]) and not goes_on:
        return False
    own = {at: type_of(first[at]) for at in steady}
    has_other = any(kind == "text" or types[at] in _VALUES for at, kind in own.items() if kind)
    return len(steady) > 1 and has_other and all(not kinds[at][kind] for at, kind in own.items())


def _surplus(rows: list[list[str]], width: int, in_header: int) -> int:
    """The number of empty cells beyond the columns that nearly all rows have, or the header and most rows; else 0."""
    sizes = Counter(len(cells) for cells in rows if len(cells) >= width and not any(cells[width:]))
    size, count = sizes.most_common(1)[0] if sizes else (width + in_header, 0)
    return size - width if 10 * count >= 9 * sizes.total() or size - width == in_header else 0


def _trimmed(rows: list[list[str]], width: int, share: float = 0.0) -> int:
    """The width without columns at the end that at most this share of the rows fills: a delimiter ends each line."""
    full = [cells for cells in rows if len(cells) == width]
    while width > 1 and sum(bool(cells[width - 1]) for cells in full) <= share * len(full):
        width -= 1
    return width


def _header(filled: list[Record], rows: list[list[str]]) -> int:
    """The index of the header."""
    raw = width_of(filled)
    width = _trimmed(rows, raw)
    few: list[Record] = []
    for at, cells in enumerate(rows):
        # a delimiter may end the line of names alone
        is_ended = len(cells) > raw and all(cells[:width]) and not any(cells[width:])
        is_wide = width <= len(cells) <= raw or is_ended
        if not is_wide or is_rule(cells) or is_units(cells):
            continue
        names = cells[:width]
        count = sum(map(bool, names))
        if (count < width or has_labels(filled[at].filled, width)) and _is_title(filled, at, width):
            continue
        if count == width and _is_full_title(filled, at, width):
            continue
        if width > 1 and (count < 2 or count < width / 2):
            if _has_row_names(filled, at, width):
                return at
            few.append(filled[at])
            continue
        is_next = bool(few) and few[-1].last + 1 == filled[at].line
        if is_next and _is_like(names, _types(rows[at + 1 :], width)):
            raise _few_names(few[-1], filled[at])
        # the last line cannot be a header if the line above has names: it would have no rows
        above = rows[at - 1] if at == len(rows) - 1 > 0 else []
        has_names = len(above) > 1 and all(above) and not re.search(r"\d", "".join(above))
        return at - 1 if has_names and not looks_like_names(names) else at
    raise Unclear(
        "no line looks like column names",
        "Give the line that has them: --header-row N.",
        _names_on(0),
    )


def _has_row_names(filled: list[Record], at: int, width: int) -> bool:
    """Whether the first line has a name for all columns but the first, whose rows have names, as R writes them."""
    first, *others = (filled[at].cells or [])[:width]
    later = [row.cells or [] for row in filled[at + 1 :]]
    is_named = (
        not first and len(others) == width - 1 and all(type_of(cell) == "text" for cell in others)
    )
    return is_named and at == 0 and bool(later) and all(cells and cells[0] for cells in later)


def _few_names(few: Record, row: Record) -> Unclear:
    """The error of a line with names for a few columns above what is a row."""
    names = number(len(few.filled), "cell")
    return Unclear(
        f"line {few.line} has {names} with text, and line {row.line} looks like a row, not like column names",
        f"Complete the names in line {few.line}, or remove it if it is a title.",
        _names_on(few.line),
    )


def _is_title(filled: list[Record], at: int, width: int) -> bool:
    """Whether a line with fewer cells than the table is above the line of names: a title, or the date of a report.

    Raises:
        Unclear: it is right above a line of names, so that it may be a header that lacks some.
    """
    cells = filled[at].filled
    if has_labels(cells, width):
        return True
    later = [row.cells or [] for row in filled[at + 1 : at + 1 + MAX_TITLES]]
    count = next(
        (
            n
            for n, row in enumerate(later, 2)
            if len(row) >= width and looks_like_names(row[:width])
        ),
        None,
    )
    if not cells or count is None:
        return False
    line, names = filled[at].line, filled[at + count - 1].line
    is_stated = len(cells) <= max(2, width // 2) and any(type_of(cell) in _VALUES for cell in cells)
    is_apart = names - line >= count
    if is_stated or 2 * len(cells) < width + is_apart:
        return True
    if len(cells) < 2:
        return False
    below = [row.cells or [] for row in filled[at + count :]]
    is_above = all(len(row.filled) < width for row in filled[at + 1 : at + count - 1])
    if is_above and _names_above_data(filled[at + count - 1].cells or [], below, width) > 1:
        return True  # names of groups of columns, or a title of several cells
    if _has_row_names(filled, at, width):
        return False
    raise Unclear(
        f"line {line} has {number(len(cells), 'cell')} with text, line {names} a name for each column",
        "",
        _names_on(line, names),
    )


def _names_above_data(names: Sequence[str], rows: Sequence[list[str]], width: int) -> int:
    """The number of columns with a text in a line and numbers, dates or codes in the rows below it."""
    pairs = zip(names, _types(rows, width), strict=False)
    return sum(type_of(name) == "text" and is_data(kind) for name, kind in pairs)


def _types(rows: Sequence[list[str]], width: int) -> tuple[str, ...]:
    """The types of the columns in the first rows."""
    whole = [cells for cells in rows if len(cells) >= width][:TYPED_ROWS]
    return column_types(column_kinds(whole, width))


def _is_full_title(filled: list[Record], at: int, width: int) -> bool:
    """Whether a line as wide as the table, with a date or a number, is a title above a line of pure names.

    Raises:
        Unclear: the rows do not prove that the names are names.
    """
    cells = (filled[at].cells or [])[:width]
    values = [cell.strip() for cell in cells if type_of(cell) in _VALUES]
    later = filled[at + 1 : at + 1 + MAX_TITLES] if values else []
    names = next((n for n, row in enumerate(later, 1) if _is_line_of_names(row, width)), 0)
    below = [row.cells or [] for row in filled[at + names + 1 :]]
    types = _types(below, width)
    if not names or _is_like(filled[at + names].cells or [], types):
        return False
    may_be_names = all(map(_YEAR.fullmatch, values)) or _is_series(cells)
    if not may_be_names and any(
        _is_like(row.cells or [], types) for row in filled[at : at + names]
    ):
        return False
    is_proven = _names_above_data(filled[at + names].cells or [], below, width) > 0
    if may_be_names != is_proven:
        return is_proven
    line, other = filled[at].line, filled[at + names].line
    raise Unclear(
        f"line {line} has dates or numbers, line {other} a name for each column",
        "",
        _names_on(line, other),
    )


def _is_line_of_names(record: Record, width: int) -> bool:
    """Whether a line has another text in each column, and no date, number, year or address."""
    cells = [cell.strip() for cell in (record.cells or [])[:width]]
    are_texts = all(type_of(cell) == "text" or _WORD_AND_DIGIT.fullmatch(cell) for cell in cells)
    return len(set(cells)) == width and are_texts


def _is_series(cells: Sequence[str]) -> bool:
    """Whether a line has names, then dates up to its end: columns of days, not labels with a date each."""
    own = list(map(type_of, cells))
    return own.count("date") > 1 and set(own[own.index("date") :]) == {"date"}


def _is_like(cells: Sequence[str], types: Sequence[str]) -> bool:
    """Whether a line has data of the same types as the rows, in as many columns as it has others."""
    alike = different = 0
    for cell, kind in zip(cells, types, strict=False):
        own = type_of(cell)
        alike += own == kind and is_data(own)
        different += bool(own) and own != kind and (is_data(own) or is_data(kind))
    return alike > 0 and alike >= different


def _names_on(*lines: int) -> dict[str, dict[str, int]]:
    """The choice between lines that may have the names; 0 for none."""
    return {
        f"line {line} has the names" if line else "there are no names": {"header_row": line}
        for line in lines
    }


def column_name(text: str) -> str:
    """A name as it is compared: spaces single, accents composed, which is how they are typed; `="Name"` is `Name`."""
    return unicodedata.normalize("NFC", " ".join(unmarked(text.strip()).split()))


def _numbered(names: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names, empty and repeated ones numbered without taking another name; and those that were."""
    if len(names) > MAX_COLUMNS:
        raise UsageError(
            f"the header has {len(names)} columns; the limit is {MAX_COLUMNS}",
            "Try another --delimiter.",
        )
    taken, seen = set(names), Counter[str]()
    columns, renamed = [], []
    for position, name in enumerate(names, 1):
        seen[name] += 1
        column, count = name, seen[name] if name else position
        if not name or count > 1:
            while (column := f"{name or 'column'}_{count}") in taken:
                count += 1
            taken.add(column)
            renamed.append(column)
        columns.append(column)
    return tuple(columns), tuple(renamed)


def check_header(records: Sequence[Record], header: Record, width: int) -> bool:
    """All checks of a header that was detected, not given; returns whether it is certainly a row.

    Raises:
        Unclear: there is a second reading.
    """
    at = next(index for index, record in enumerate(records) if record.line == header.line)
    after = (record.cells for record in records[at + 1 :] if record.cells)
    rows = [cells for cells in after if len(cells) >= width][:ROWS_COMPARED]
    above = [record for record in records[:at] if record.filled or record.cells is None]
    types = column_types(column_kinds(rows[:TYPED_ROWS], width))
    has_quotes = any('"' in column_name(name) for name in header.cells or ())
    if has_quotes and not _is_like(header.cells or [], types):
        problem = f"line {header.line}, the header, has a quote that does not enclose a whole name"
        is_proposed = not above and any(row[width - 1] for row in rows)
        choices = _names_on(header.line) if is_proposed else {}
        raise Unclear(problem, "Fix the quotes in that line.", choices)
    if not any(record.filled for record in records[at + 1 :]):
        _check_rows_follow(records[:at], header, width)
    _check_earlier_table(records[:at], header, width, types)
    _check_lines_above(records[:at], header, width, rows)
    _check_line_below(records[at + 1 :], header, types)
    _check_extra_name(header, rows)
    _check_table_beside(header, rows)
    return _is_row(header, types, rows, is_first=not above)


def check_single_column(sample: str) -> None:
    """Raises if a file that would be read as one column has a delimiter in most lines, as where lines are quoted."""
    lines = [line for line in lines_of(sample) if line.strip()]
    for mark in DELIMITERS if len(lines) > 2 else ():
        counts = [line.count(mark) for line in lines]
        if 2 * sum(map(bool, counts)) > len(lines):
            name, another = DELIMITER_NAMES[mark], "|" if mark == "\t" else "\t"
            quoted = sum(line[0] == '"' == line.rstrip()[-1] for line in lines)
            separates = {f"a {name} separates the cells": {"delimiter": mark}}
            raise Unclear(
                f"most lines contain a {name}, but not as cells of equal number: {min(counts)} to {max(counts)} a line",
                "Export the file again, without quotes around whole lines.",
                ({} if 2 * quoted > len(lines) else separates)
                | {"there is one column": {"delimiter": another}},
            )


def has_labels(filled: Sequence[str], width: int) -> bool:
    """Whether a line above a table of this width has labels (`Date:`) with a value each, not names that end so."""
    labels = sum(cell.endswith(":") for cell in filled)
    return labels > 0 and (len(filled) < width or labels < len(filled) <= 2 * labels)


def _check_lines_above(
    above: Sequence[Record], header: Record, width: int, rows: Sequence[list[str]]
) -> None:
    """A broken line, or one of another width, right above the header may be it; so may a line quoted as a whole.

    Not above names that the rows prove: texts only, above each column with numbers, dates or codes.
    """
    names = (header.cells or [])[:width]
    broken = [record for record in above if record.cells is None]
    if len(broken) <= MAX_BROKEN and _are_proven_names(names, _types(rows, width)):
        return
    for record in above:
        filled, is_next = record.filled, record.last + 1 == header.line
        is_quoted = len(filled) == 1 and any(
            filled[0].count(mark) - filled[0].count(f"{mark} ") >= width - 1 > 0
            for mark in DELIMITERS
        )
        is_other = (
            is_next
            and len(filled) > 1
            and 2 * len(filled) >= width
            and len(record.cells or ()) != len(header.cells or ())
        )
        is_metadata = has_labels(filled, width) or (
            looks_like_names(names) and any(type_of(cell) in _VALUES for cell in filled)
        )
        is_broken = record.cells is None and (is_next or len(broken) > MAX_BROKEN)
        if is_broken or ((is_quoted or is_other) and not is_metadata):
            fault = f"{number(len(record.cells or ()), 'cell')} where the rows have {width}"
            raise Unclear(
                f"line {record.line} looks like the header, but has {'misplaced quotes' if is_broken else fault}; "
                f"otherwise line {header.line} is the header",
                f"Fix line {record.line}, or remove it if it is a title.",
                {},
            )


def _check_line_below(below: Sequence[Record], header: Record, types: Sequence[str]) -> None:
    """A line with dates or numbers may be a title whose header is missing or damaged.

    So it is where a date stands above texts, or where a line of another width, or a broken one, is next.
    """
    own = map(type_of, header.cells or ())
    is_above_texts = ("date", "text") in zip(own, types, strict=False)
    is_above_texts = is_above_texts and not _is_series(header.cells or [])
    values = [name.strip() for name in header.cells or () if type_of(name) in _VALUES]
    next_one = below[0] if below else header
    texts = [type_of(cell) == "text" for cell in next_one.filled]
    is_other = (
        len(texts) > 1 and all(texts) and len(next_one.cells or ()) != len(header.cells or ())
    )
    is_damaged = next_one.cells is None or is_other
    if is_above_texts or (is_damaged and values and not all(map(_YEAR.fullmatch, values))):
        fault = (
            f", and line {next_one.line} other cells or quotes" if is_damaged else " above texts"
        )
        raise Unclear(
            f"line {header.line} has dates or numbers{fault}: it may be a title above a header that is damaged",
            f"Fix line {next_one.line}, or add a line of names.",
            {},
        )


def _check_extra_name(header: Record, rows: Sequence[list[str]]) -> None:
    """A name that is missing above cells, and one too many at the end: a delimiter too many shifts the names."""
    names = [name.strip() for name in header.cells or ()]
    rows = [row for row in rows if len(row) == len(names)]
    if len(names) < 3 or len(rows) < 2 or not names[-1] or any(row[-1] for row in rows):
        return
    for column in range(1, len(names) - 1):
        if not names[column] and all(row[column] for row in rows):
            raise Unclear(
                f"line {header.line}, the header, has no name for column {column + 1}, which has cells, and one for "
                "the last column, which has none",
                f"Fix line {header.line}: it has a delimiter too many, or a name too few.",
                {"the names are right": {"header_row": header.line}},
            )


def _are_proven_names(names: Sequence[str], types: Sequence[str]) -> bool:
    """Whether a line has no dates or numbers, and no cell of the type of the data below it."""
    data = [
        (type_of(name), kind) for name, kind in zip(names, types, strict=False) if is_data(kind)
    ]
    has_values = any(type_of(name) in _VALUES for name in names)
    return bool(data) and not has_values and all(own not in ("", kind) for own, kind in data)


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


def _has_numbered_names(names: Sequence[str], rows: Sequence[list[str]]) -> bool:
    """Whether a line has years in a row beside names (2022, 2023), or Field1, Field2, and none of them is a cell."""
    years = [int(name) for name in names if _YEAR.fullmatch(name)]
    words = [name for name in names if name.strip() and not _YEAR.fullmatch(name)]
    steps = {later - year for year, later in pairwise(years)}
    is_of_years = (
        (steps == {1} or steps == {-1})
        and bool(words)
        and all(type_of(word) == "text" for word in words)
    )
    numbered = [_NUMBERED.fullmatch(name.strip()) for name in names]
    found = [(match[1].casefold(), int(match[2])) for match in numbered if match]
    is_of_fields = len(found) == len(names) > 1 and len({word for word, _ in found}) == 1
    is_of_fields = is_of_fields and all(
        later == one + 1 for (_, one), (_, later) in pairwise(found)
    )
    is_repeated = any(
        name.strip() and name == cell
        for cells in rows
        for name, cell in zip(names, cells, strict=False)
    )
    return (is_of_years or is_of_fields) and not is_repeated


def _is_row(
    header: Record, types: Sequence[str], rows: Sequence[list[str]], *, is_first: bool
) -> bool:
    """Whether the line of a header is a row: its cells are of the same types as those below, e.g. codes or dates."""
    alike, different = [], 0
    for name, kind in zip(header.cells or (), types, strict=False):
        own = type_of(name)
        is_alike = own == kind if any(types) else not _MAY_BE_NAME.fullmatch(name)
        alike += [name] if is_alike and is_data(own) else []
        different += bool(own) and not is_data(own) and (is_data(kind) or not any(types))
    if len(alike) <= different or _has_numbered_names(header.cells or (), rows):
        return False
    if (
        is_first
        and not different
        and any(types)
        and any(not _MAY_BE_NAME.fullmatch(name) for name in alike)
    ):
        return True
    problem = f"line {header.line} looks like a row, not like column names: it has numbers, dates or codes"
    may_be_names = all(map(_MAY_BE_NAME.fullmatch, alike))
    lines = [header.line] * may_be_names + [0] * is_first
    fix = "" if is_first else "Fix the line of names above it, or add one there."
    raise Unclear(problem, fix, _names_on(*lines))


def _check_earlier_table(
    records: Sequence[Record], header: Record, width: int, types: Sequence[str]
) -> None:
    """Lines before the header may be a table: several of equal width, or with as many delimiters inside of quotes."""

    def width_of_row(record: Record) -> int:
        is_row = len(record.filled) > 1 and not has_labels(record.filled, width)
        return len(record.cells or ()) if is_row else 0

    for found, lines in groupby(records, width_of_row):
        block = list(lines)
        size = max(len(row.filled) for row in block)
        if found and len(block) >= (2 if size > 2 else 5):
            first, last, second = block[0].line, block[-1].last, header.line
            if _is_like(header.cells or [], types):
                raise Unclear(
                    f"lines {first} to {last} have {size} cells, and line {second}, which is a row, has {width}",
                    "Fix the lines with too few or too many cells.",
                    _names_on(first),
                )
            raise Unclear(
                f"two tables: lines {first} to {last} have {size} cells, and another one begins on line {second}",
                "Move each to a file of its own, or choose one.",
                {f"it is that of line {line}": {"header_row": line} for line in (first, second)},
            )


def _check_table_beside(header: Record, rows: Sequence[list[str]]) -> None:
    """After an empty column without a name, further names and rows without cells before it may be another table."""
    names = [name.strip() for name in header.cells or ()]
    rows = [row for row in rows if len(row) == len(names)]
    for column in range(1, len(names) - 1):
        is_empty = not names[column] and 10 * sum(bool(row[column]) for row in rows) <= len(rows)
        if (
            is_empty
            and any(names[:column])
            and any(not any(row[:column]) and any(row[column:]) for row in rows)
        ):
            raise Unclear(
                f"two tables side by side: columns 1 to {column}, and those from column {column + 2} on",
                "Move each to a file of its own.",
                {"it is one table": {"header_row": header.line}},
            )
