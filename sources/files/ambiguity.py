"""Files with two possible readings: each check raises an error that names both and the options that choose one.

In: the records at the beginning of a file and the header that was detected. Out: nothing, or a UsageError. Detection
only proceeds if one reading is left; taking the other one would lose rows or columns silently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sources.errors import UsageError
from sources.files.cell_types import column_types, is_data, type_of
from sources.files.dialect import DELIMITER, DELIMITERS, Dialect, Record, lines_of, looks_like_names, width_of
from sources.files.model import DELIMITER_NAMES, Unclear
from sources.files.quotes import begins_with_quote
from sources.files.row_shape import number_of_cells
from sources.files.several_tables import check_earlier_table, check_table_beside

_SELDOM: Final = "^~:¦"
_DECIMAL_COMMA: Final = re.compile(r"(?<=\d),(?=\d)")
_QUOTED_CELLS: Final = re.compile(rf'"(?:[^"]|"")*"{DELIMITER.pattern}"')
_MAY_BE_NAME: Final = re.compile(r"[1-9]\d{0,3}|[^\W\d_]+\d")
"""A number or code that may be a name: 2024, Q1."""
ROWS_COMPARED: Final = 200


def check_header(records: Sequence[Record], header: Record, width: int) -> bool:
    """All checks of a header that was detected, not given; returns whether it is certainly a row.

    Args:
        records: the records of the sample, with blank and broken ones.
        header: the first record of the header.
        width: the number of columns.

    Raises:
        UsageError: there is a second reading.
    """
    at = next(index for index, record in enumerate(records) if record.line == header.line)
    after = [record for record in records[at + 1 :] if record.cells is not None]
    rows = [record.cells for record in after if record.cells and len(record.cells) >= width][:ROWS_COMPARED]
    types = column_types(rows, width)
    _check_unclosed(header)
    _check_line_above(records[at - 1] if at else None, header, width)
    check_earlier_table(records[:at], header)
    check_table_beside(header, rows)
    return _is_row(header, types, is_first=header is records[0])


def check_single_column(sample: str, dialect: Dialect) -> None:
    """Raises if a file that would be read as one column has a delimiter in most of its lines."""
    lines = [line for line in lines_of(sample) if line.strip()]
    for mark in DELIMITERS:
        if mark == dialect.delimiter:
            continue
        counts = [line.count(mark) for line in lines]
        if len(lines) > 2 and sum(map(bool, counts)) > len(lines) / 2:
            name, another = DELIMITER_NAMES[mark], "tab" if mark != "\t" else "pipe"
            raise UsageError(
                f"most lines contain a {name}, but not the same number of them ({min(counts)} to {max(counts)})",
                f"If it separates the cells: --delimiter {name} (lines of another width are rejected). If the file has "
                f"a single column: --delimiter {another}.",
            )


def check_names_with_commas(records: Sequence[Record]) -> None:
    """Raises if `Name`, `Doe, Jane`, `Roe, Richard` may be one column of names or a title and two columns."""
    first, *rows = [record for record in records if record.cells]
    widths = {len(record.cells or ()) for record in rows}
    if len(first.cells or ()) == 1 and widths == {2} and rows[0].line == first.last + 1:
        raise UsageError(
            f"line {first.line} has no comma: it is the name of one column, or a title above two columns",
            "For one column: --delimiter tab. For two: --delimiter comma.",
        )


def check_hint(sample: str, hinted: Dialect, detected: Dialect) -> None:
    """Raises for a `sep=` line whose delimiter is less likely than another one, or separates no cells."""
    name, other = (DELIMITER_NAMES.get(dialect.delimiter, repr(dialect.delimiter)) for dialect in (hinted, detected))
    if hinted.delimiter != detected.delimiter:
        raise UsageError(
            f"line 1 states {name} as the delimiter, but {other} seems to separate the cells",
            f"Remove line 1, or choose: --delimiter {other} or --delimiter {name}.",
        )
    if any(mark in sample for mark in DELIMITERS):
        raise UsageError(
            f"line 1 states {name} as the delimiter, but each line has a single cell; the lines may be quoted twice",
            f"Export the file again, or if it has a single column: --delimiter {name}.",
        )


def check_other_marks(sample: str) -> None:
    """Raises if each line has the same number of a character that is seldom a delimiter."""
    lines = [line for line in lines_of(sample) if line.strip()]
    for mark in _SELDOM:
        counts = {line.count(mark) for line in lines}
        if len(lines) > 1 and len(counts) == 1 and 0 not in counts:
            raise UsageError(
                f"each line contains {counts.pop()} × {mark}, which may separate the cells",
                f'If it does: --delimiter "{mark}". If the file has a single column: --delimiter tab.',
            )


def check_decimal_commas(sample: str, records: Sequence[Record]) -> None:
    """Raises if each comma of a file is between digits and spaces also make rows of equal width.

    Args:
        sample: of a file in which commas delimit the cells.
        records: of the sample, delimited by spaces.
    """
    width = width_of(list(records))
    rows = [record for record in records if record.cells and len(record.cells) == width]
    is_decimal = sample.count(",") == len(_DECIMAL_COMMA.findall(sample))
    if width > 1 and is_decimal and 2 * len(rows) > sum(bool(record.cells) for record in records):
        raise UsageError(
            f"each comma is between digits: decimal commas in {width} columns separated by spaces, or commas separate "
            "the cells",
            "For columns separated by spaces: --delimiter spaces. For commas: --delimiter comma.",
        )


def check_spaces(records: Sequence[Record]) -> bool:
    """Whether spaces certainly delimit the cells: a column of numbers or dates has a name without digits.

    Raises:
        UsageError: the lines have the same number of words, which may be one text or several cells.
    """
    lines = [record.cells for record in records if record.cells]
    width = width_of(list(records))
    rows = [cells for cells in lines if len(cells) == width]
    if width < 2 or len(rows) <= len(lines) / 2:
        return False
    types = zip(rows[0], column_types(rows[1:], width), strict=True)
    is_contrast = any(is_data(kind) and not is_data(type_of(name)) for name, kind in types)
    if is_contrast and len(lines[0]) == width:
        return True
    if is_contrast or (len(rows) == len(lines) > 2):
        each = "each line has" if len(rows) == len(lines) else "most lines have"
        raise UsageError(
            f"{each} {width} words: one column of texts, or {width} columns separated by spaces",
            "For one column: --delimiter tab. For several: --delimiter spaces.",
        )
    return False


def _check_unclosed(header: Record) -> None:
    if any(begins_with_quote(cell.strip()) for cell in header.cells or ()):
        raise UsageError(
            f"line {header.line}, the header, has a quote that does not enclose a whole name",
            f"Fix the quotes in that line, or if they belong to the name: --header-row {header.line}.",
        )


def check_several_in_one(header: Record, rows: Sequence[list[str]]) -> None:
    """Raises if most cells of a column contain delimiters, as its name or between quotes: a line may be one cell."""
    for column, name in enumerate(header.cells or ()):
        cells = [cell for row in rows for cell in row[column : column + 1]]
        is_marked = len(DELIMITER.findall(name)) > 1
        if is_marked or name == "".join(header.cells or ()):  # the only name may be a title above the names
            marked = [cell for cell in cells if len(DELIMITER.findall(cell)) > 1]
            where = f"{f'its name on line {header.line} and ' if is_marked else ''}most cells below contain delimiters"
        else:
            marked = [cell for cell in cells if cell[:1] == '"' and _QUOTED_CELLS.match(cell)]
            where = f"most cells below line {header.line} contain quoted ones and delimiters"
        if 2 * len(marked) > len(rows):
            raise UsageError(
                f"column {column + 1} seems to hold several columns: {where}",
                "Remove the quotes around each line (in a spreadsheet: Data > Text to Columns), or if it is one "
                f"column: --header-row {header.line}.",
            )


def _check_line_above(above: Record | None, header: Record, width: int) -> None:
    """A broken line, or one of another width, right above the header may be the header itself."""
    if above is None or above.cells == [] or above.last + 1 != header.line:
        return
    fix, choice = f"Fix line {above.line}.", {f"line {header.line} has the names": {"header_row": header.line}}
    if above.cells is None:
        raise Unclear(
            f"line {above.line} has misplaced quotes; it may be the header, or the header is line {header.line}",
            fix,
            choice,
        )
    filled = [cell for cell in above.cells if cell.strip()]
    is_other_dialect = len(above.cells) == 1 and any(above.cells[0].count(mark) >= width - 1 > 0 for mark in DELIMITERS)
    if not is_other_dialect and (len(filled) < 2 or len(above.cells) == len(header.cells or ())):
        return
    is_metadata = any(type_of(cell) in ("number", "date", "address") for cell in filled) or filled[0].endswith(":")
    if is_metadata and looks_like_names((header.cells or [])[:width]):
        return
    raise Unclear(
        f"line {above.line} looks like the header, but has {number_of_cells(above.cells)} where the rows have {width}; "
        f"otherwise line {header.line} is the header",
        fix,
        choice | {f"line {above.line} has them": {"header_row": above.line}},
    )


def _is_row(header: Record, types: Sequence[str], *, is_first: bool) -> bool:
    """Whether the line of a header is a row: its cells are of the same types as those below, e.g. codes or dates."""
    alike, different = [], 0
    for name, kind in zip(header.cells or (), types, strict=False):
        own = type_of(name)
        alike += [name] if own == kind and is_data(own) else []
        different += bool(own) and not is_data(own) and is_data(kind)
    if len(alike) <= different:
        return False
    if is_first and not different and any(not _MAY_BE_NAME.fullmatch(name) for name in alike):
        return True
    raise Unclear(
        f"line {header.line} looks like a row, not like column names: it has numbers, dates or codes as those below",
        "",
        {
            f"line {header.line} has the names": {"header_row": header.line},
            "there are no names": {"header_row": 0},
        },
    )
