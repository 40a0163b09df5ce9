"""`rejects.csv`: the rows that cannot go, as they stand in the file, each with its line and the reason.

In: the input's table and the problems by line. Out: a CSV in the file's own encoding, dialect and column order, with
`line`, `field`, `code` and `words` after them. Corrected, it goes through as it is: the mapping passes over those four.
The column of the passwords is left empty, since no password may lie in a plan: it must be filled in again.

A row that had too few or too many cells is written with as many as it had: not mended, it is refused again; mended, the
four stand in their columns. A workbook's rows come as UTF-8 with commas. Where the file has no header, the four have no
names to go by, and are left out; `lines.csv` has them in the same order.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.imports.open import REJECT_COLUMNS, count_reject_columns
from pipelines.mapping import Mapping as Mapped
from pipelines.plan.model import REJECTS_FILE
from sources.disk import create_private
from sources.errors import UsageError
from sources.files import DetectedFormat, ReadOptions, RejectedRow, Row, SourceTable, open_table
from sources.files.dialect import SPACE_RUNS
from sources.files.model import LINE_COLUMN

AGAIN: Final = "the password must be filled in again"
_LINE_ENDS: Final = {"CRLF": "\r\n", "LF": "\n", "CR": "\r"}


def write_rejects(
    folder: Path,
    table: SourceTable,
    told: ReadOptions,
    problems: Mapping[int, tuple[str, str, str]],
    password_column: str | None,
    mapping: Mapped | None = None,
) -> None:
    """Writes the file, where there is a row to write.

    Args:
        folder: of the plan.
        table: the input.
        told: how the input was told to be read: the file is read the same way.
        problems: field, code and words by line.
        password_column: of the input; its cells are left empty.
        mapping: of the input: columns that it names are the input's own.
    """
    columns = _columns(table.format, mapping)
    path = folder / REJECTS_FILE
    for hint in (False, True, False):  # a few rows may not show their delimiter; then a `sep=` line may
        _write(path, table, columns, told, problems, password_column, hint=hint)
        if not problems or _reads_back(path, table.format, columns, told, mapping) or told.header_row is not None:
            return


def _write(
    path: Path,
    table: SourceTable,
    columns: tuple[str, ...],
    told: ReadOptions,
    problems: Mapping[int, tuple[str, str, str]],
    password_column: str | None,
    *,
    hint: bool,
) -> None:
    found = table.format
    encoding = found.encoding or "utf-8"
    delimiter = _delimiter(found)
    end = _LINE_ENDS[found.line_ends[0]] if found.line_ends else "\r\n"
    secret = found.columns.index(password_column) if password_column in found.columns else None
    named = bool(found.header_lines)
    path.unlink(missing_ok=True)
    with create_private(path) as raw, io.TextIOWrapper(raw, encoding=encoding, newline="") as out:
        if found.kind == "workbook" or found.has_bom:
            out.write("\ufeff")
        if hint:
            out.write(f"sep={delimiter}{end}")
        out.write(end * (max(told.header_row or 1, 1) - 1 - hint))
        quote = found.quote if found.kind == "text" else '"'
        write = csv.writer(
            out,
            delimiter=delimiter,
            quotechar=quote or None,
            quoting=csv.QUOTE_NONE if not quote else csv.QUOTE_ALL if found.escape else csv.QUOTE_MINIMAL,
            escapechar=found.escape or None,
            doublequote=not found.escape,
            lineterminator=end,
        )
        for cells in _header(columns, told.header_rows or 1) if named else ():
            write.writerow(cells)
        for row in _rejected(table, pa.array(list(problems), pa.int64())) if problems else ():
            why = problems[row.line]
            cells, words = _kept(row, len(columns), secret, why[2])
            ours = (str(row.line), *why[:2], words) if named else ()
            write.writerow([*cells, *(_sayable(text, encoding, delimiter, quote or "") for text in ours)])


def _rejected(table: SourceTable, lines: pa.Array) -> Iterator[Row | RejectedRow]:
    """The rows of these lines, in the file's order."""
    refused: list[RejectedRow] = []
    for batch in table.batches(on_reject=refused.append):
        part = batch.filter(pc.is_in(batch[LINE_COLUMN], value_set=lines))
        cells = zip(*(part[name].to_pylist() for name in table.columns), strict=True)
        rows: list[Row | RejectedRow] = list(map(Row, part[LINE_COLUMN].to_pylist(), cells))
        yield from sorted([*rows, *refused], key=lambda row: row.line)
        refused.clear()
    yield from refused


def _columns(found: DetectedFormat, mapping: Mapped | None) -> tuple[str, ...]:
    """The file's own: where it is a reject file itself, without the four, which are told anew."""
    return found.columns[: len(found.columns) - count_reject_columns(found.columns, mapping)]


def _delimiter(found: DetectedFormat) -> str:
    """The file's own. Runs of spaces cannot hold an empty cell, so that tabs take their place."""
    if found.delimiter is None:
        return ","
    return "\t" if found.delimiter in SPACE_RUNS else found.delimiter


def _kept(row: Row | RejectedRow, width: int, secret: int | None, words: str) -> tuple[list[str], str]:
    """The cells to write, without a password, and the words, which say so."""
    if isinstance(row, RejectedRow) and (secret is not None or not row.cells):
        # its cells may stand in columns that are not theirs, and one of them be a password; or they are unknown
        return [""] * width, f"{words}; its cells are not repeated: see line {row.line} of the file"
    cells = list(row.cells[:width]) if isinstance(row, Row) else list(row.cells)
    if secret is None or not cells[secret]:
        return cells, words
    cells[secret] = ""
    return cells, f"{words}; {AGAIN}"


def _header(columns: tuple[str, ...], rows: int) -> list[list[str]]:
    """The names over so many rows. None may be blank; a name that stands in a lower row has nothing above it."""
    names = [*columns, *REJECT_COLUMNS]
    header = [["" if at < rows - 1 else name for at, name in enumerate(names)]]
    for below in range(1, rows):
        only = rows - 1 - below
        header.append([name if at == only else "" for at, name in enumerate(names)])
    return header


def _sayable(text: str, encoding: str, delimiter: str, quote: str) -> str:
    """Words of ours as the file can hold them."""
    if not quote:
        text = text.replace(delimiter, " ")
    return text.encode(encoding, "replace").decode(encoding)


def _reads_back(
    path: Path, found: DetectedFormat, columns: tuple[str, ...], told: ReadOptions, mapping: Mapped | None
) -> bool:
    """Whether the intake finds in the written file what is in it."""
    try:
        again = open_table(path, told)
    except UsageError:
        return False
    own = _columns(again.format, mapping) if found.header_lines else again.columns
    if own != columns or again.format.delimiter != _delimiter(found):
        return False
    return found.encoding is None or _same_codec(again.format.encoding, found.encoding)


def _same_codec(one: str | None, other: str) -> bool:
    """Text in ASCII alone is the same in most encodings."""
    return one is not None and (codecs.lookup(one) == codecs.lookup(other) or {one, other} == {"utf-8", "cp1252"})
