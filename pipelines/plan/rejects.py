"""`rejects.csv`: the rows that are rejected, as they are in the file, each with its line and the reason.

In: the input's table and the problems by line. Out: a CSV in the file's own encoding, dialect and column order (of a
workbook: UTF-8 with commas), with the columns `line`, `field`, `code` and `words` added. Corrected, it can be planned
as it is: these columns are ignored. Without a header they would have no names and are left out; `lines.csv` has the
reasons in the same order. Cells that the mapping fills from lines above are filled, since those lines may be missing
here. Passwords are left empty, because a plan contains none. A row has as many cells as in the file. A cell that a
spreadsheet would run as a formula has an apostrophe before it, which is removed when it is planned.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.imports import Inputs
from orderbridge.pipelines.imports.lines import FillDown
from orderbridge.pipelines.imports.open import (
    REJECT_COLUMNS,
    count_reject_columns,
    open_input_table,
)
from orderbridge.pipelines.mapping import Mapping as ColumnMapping
from orderbridge.pipelines.mapping.field_paths import resolve
from orderbridge.pipelines.plan.model import REJECTS_FILE
from orderbridge.sources.disk import create_private, write_private
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import DetectedFormat, RejectedRow, Row, SourceTable
from orderbridge.sources.files.formulas import CsvFile, escape, neutralize
from orderbridge.sources.files.model import LINE_COLUMN
from orderbridge.sources.settings import project_file
from orderbridge.sources.words import listed

CODES_FILE: Final = ".codes.json"
REFILL_NOTE: Final = "the password must be filled in again"
_LINE_ENDS: Final = {"CRLF": "\r\n", "LF": "\n", "CR": "\r"}


class _Code(NamedTuple):
    """A text of a rejected row that begins with zeros, without which a spreadsheet may save it."""

    line: int
    column: str
    zeros: int
    sha256: str


@dataclass(frozen=True, slots=True)
class RejectsWriter:
    """Writes the reject file of a plan.

    Attributes:
        mapping: of the input: the columns that it names belong to it, cells of passwords are left empty, and the
            reject file is read with its options.
        problems: field, code and words by line, for `write`; the lines of `rows`.
    """

    table: SourceTable
    mapping: ColumnMapping
    problems: Mapping[int, tuple[str, str, str]]
    _codes: list[_Code] = field(default_factory=list, init=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the input, without those of a reject file."""
        return self._columns(self.table.format)

    def write(self, folder: Path) -> None:
        """Writes the file into a plan folder; without rejected rows it has a header only."""
        path = folder / REJECTS_FILE
        # a few rows may not show their delimiter; then a `sep=` line may, or else it is not needed
        for has_hint in (False, True, False):
            self._write(path, has_hint=has_hint)
            has_given_header = self.mapping.read_options.header_row is not None
            if not self.problems or has_given_header or self._reads_back(path):
                break
        if self._codes:
            write_private(folder / CODES_FILE, msgspec.json.encode(self._codes))

    def _write(self, path: Path, *, has_hint: bool) -> None:
        source = self.table.format
        end = _LINE_ENDS[source.line_ends[0]] if source.line_ends else "\r\n"
        lines_above = max(self.mapping.read_options.header_row or 1, 1) - 1 - has_hint
        path.unlink(missing_ok=True)
        with (
            create_private(path) as raw,
            io.TextIOWrapper(raw, encoding=source.encoding or "utf-8", newline="") as out,
        ):
            if source.kind == "workbook" or source.has_bom:
                out.write("\ufeff")
            if has_hint:
                out.write(f"sep={source.delimiter or ','}{end}")
            out.write(end * lines_above)
            self._write_rows(CsvFile(out, end))

    def _write_rows(self, out: CsvFile) -> None:
        """Writes the header, if the input has one, and the rows; keeps the codes that a spreadsheet would change."""
        source = self.table.format
        columns = self.columns
        writer = csv.writer(out, **_dialect(source))
        has_header = bool(source.header_lines)
        if has_header:
            writer.writerow([*map(escape, columns), *REJECT_COLUMNS])
        self._codes.clear()
        texts = set(_text_columns(self.mapping))
        for line, cells, note in self.rows():
            if len(cells) == len(columns):
                self._codes.extend(_codes(line, columns, cells, texts))
            if not has_header:
                writer.writerow([_indented(cell) for cell in cells])
                continue
            field, code, words = self.problems[line]
            added = (str(line), field, code, words + note)
            notes = [_encodable(neutralize(text), source) for text in added]
            writer.writerow([*map(escape, cells), *notes])

    def rows(self) -> Iterator[tuple[int, list[str], str]]:
        """The rows with problems in the order of the file: line, cells without a password, note of what is missing."""
        width = len(self.columns)
        for row in self._rejected_rows():
            if row.line in self.problems:  # a line of totals is broken, too, and may be skipped
                yield row.line, *self._cells(row, width)

    def _rejected_rows(self) -> Iterator[Row | RejectedRow]:
        if not self.problems:
            return
        lines = pa.array(list(self.problems), pa.int64())
        broken: list[RejectedRow] = []
        mapping = self.mapping
        fill = FillDown(mapping) if mapping.fill_down and not self.table.is_excerpt else None
        for lines_read in self.table.batches(on_reject=broken.append):
            batch = lines_read
            if fill is not None:
                filled, is_torn = fill.add(batch, broken)
                batch = pa.concat_tables(
                    [filled.filter(pa.array(~is_torn)), batch.filter(pa.array(is_torn))]
                )
            part = batch.filter(pc.is_in(batch[LINE_COLUMN], value_set=lines))
            cells = zip(*(part[name].to_pylist() for name in self.table.columns), strict=True)
            rows: list[Row | RejectedRow] = list(map(Row, part[LINE_COLUMN].to_pylist(), cells))
            yield from sorted([*rows, *broken], key=lambda row: row.line)
            broken.clear()
        yield from broken

    def _columns(self, source: DetectedFormat) -> tuple[str, ...]:
        """The columns of the input; if it is a reject file itself, without those that were added."""
        added = count_reject_columns(source.columns, self.mapping)
        return source.columns[: len(source.columns) - added]

    def _cells(self, row: Row | RejectedRow, width: int) -> tuple[list[str], str]:
        """The cells to write, without a password, and a note if something was left out."""
        columns = self.table.format.columns
        password = self.mapping.password_column
        secret = columns.index(password) if password in columns else None
        if isinstance(row, RejectedRow) and (secret is not None or not row.cells):
            # its cells may be in other columns than their own, one of them a password; or they are unknown
            return [""] * width, f"; its cells are not repeated: see line {row.line} of the file"
        cells = list(row.cells[:width]) if isinstance(row, Row) else list(row.cells)
        if secret is None or not cells[secret]:
            return cells, ""
        cells[secret] = ""
        return cells, f"; {REFILL_NOTE}"

    def _reads_back(self, path: Path) -> bool:
        """Whether the written file is read as what was written."""
        try:
            written = open_input_table(path, self.mapping.read_options, self.mapping)
        except UsageError:
            return False
        columns = (
            self._columns(written.format) if self.table.format.header_lines else written.columns
        )
        if columns != self.columns or written.format.delimiter != (
            self.table.format.delimiter or ","
        ):
            return False
        return self.table.format.encoding is None or _is_same_codec(
            written.format.encoding, self.table.format.encoding
        )


def _indented(text: str) -> str:
    """A cell that no spreadsheet runs, in a file without the columns that mark escaped cells: blanks are trimmed."""
    return text if neutralize(text) == text else f" {text}"


def _dialect(source: DetectedFormat) -> dict[str, Any]:
    """The dialect of the input, as `csv.writer` takes it."""
    quote = _quote(source)
    if not quote:
        quoting = csv.QUOTE_NONE
    elif source.escape:
        quoting = csv.QUOTE_ALL
    else:
        quoting = csv.QUOTE_MINIMAL
    return {
        "delimiter": source.delimiter or ",",
        "quotechar": quote or None,
        "quoting": quoting,
        "escapechar": source.escape or None,
        "doublequote": not source.escape,
    }


def _quote(source: DetectedFormat) -> str | None:
    return source.quote if source.kind == "text" else '"'


def _encodable(text: str, source: DetectedFormat) -> str:
    """Our text with what the file can represent."""
    if not _quote(source):
        text = text.replace(source.delimiter or ",", " ")
    encoding = source.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def _is_same_codec(one: str | None, other: str) -> bool:
    """Whether two encodings are the same; pure ASCII is detected as utf-8 although the input was cp1252."""
    return one is not None and (
        codecs.lookup(one) == codecs.lookup(other) or {one, other} == {"utf-8", "cp1252"}
    )


def _codes(
    line: int, columns: Sequence[str], cells: Sequence[str], texts: Set[str]
) -> Iterator[_Code]:
    """The texts of a row that begin with zeros: a code, a phone. Of each, only what shows that they were lost."""
    for name, cell in zip(columns, cells, strict=True):
        rest = cell.lstrip("0")
        if rest and rest != cell and name in texts:
            yield _Code(line, name, len(cell) - len(rest), _digest(cell))


def _text_columns(mapping: ColumnMapping) -> Iterator[str]:
    """The columns of a mapping that hold texts."""
    for name, column in mapping.columns.items():
        target = resolve(mapping.kind, column.field or "")
        if not isinstance(target, str) and target.value_kind == "text":
            yield name


def _digest(cell: str) -> str:
    return hashlib.sha256(cell.encode()).hexdigest()[:16]


def _kept_codes(file: Path) -> list[_Code]:
    """What the plan of a reject file kept of its codes; all plans of the project, where the file is beside none."""
    beside = file.parent / CODES_FILE
    paths = [beside] if beside.exists() else project_file("").glob(f"plan-*/{CODES_FILE}")
    codes: dict[_Code, None] = {}
    for path in paths:
        codes |= dict.fromkeys(msgspec.json.decode(path.read_bytes(), type=list[_Code]))
    return list(codes)


def check_codes(inputs: Inputs, file: Path) -> None:
    """Compares corrected rows with what the plan kept of the codes of the lines that it rejected.

    A file that was saved elsewhere is compared with what all plans of the project kept.

    Raises:
        UsageError: texts have lost their leading zeros, as in a CSV that a spreadsheet program has saved.
    """
    if not inputs.table.is_excerpt:
        return
    codes = _kept_codes(file)
    if not codes:
        return
    line_column = inputs.table.columns[-len(REJECT_COLUMNS)]
    names = [
        name
        for name in dict.fromkeys(code.column for code in codes)
        if name in inputs.table.columns
    ]
    corrected = {
        row[line_column]: row
        for batch in inputs.table.batches(on_reject=lambda row: None)
        for row in batch.select([*names, line_column]).to_pylist()
    }
    lost = []
    for line, name, zeros, digest in codes:
        after = corrected.get(str(line), {}).get(name, "")
        before = "0" * zeros + after
        if not after.startswith("0") and _digest(before) == digest:
            lost.append(f"line {line}: {name} was {before}")
    if lost:
        raise UsageError(
            f"{file.name}: codes have lost their leading zeros: {listed(lost)}",
            "A spreadsheet reads them as numbers. Restore them, or correct the result.xlsx of `orderbridge import`.",
        )
