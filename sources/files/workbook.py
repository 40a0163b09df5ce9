"""A table in a sheet of an .xlsx file, read by calamine: cells as text, as a CSV export would have them.

In: a path and `ReadOptions`. Out: rows. Numbers have the 15 digits that a spreadsheet keeps (no `.0`, no exponent if
digits suffice), dates are ISO 8601; a row with an error value is rejected. The sheet is held in memory, so its size is
capped; text files have no such limit.
"""

from __future__ import annotations

import datetime as dt
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Final

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, PasswordError, SheetTypeEnum
from python_calamine import SheetVisibleEnum as Visible

from sources.errors import UsageError
from sources.files.dialect import Record
from sources.files.layout import MAX_FOOTNOTES, detect_layout, is_footnote
from sources.files.model import DetectedFormat, ReadOptions, RejectedRow, Row, RowShape, SourceTable

MAX_UNPACKED_BYTES: Final = 1 << 30
HEAD_ROWS: Final = 2_000
DIGITS: Final = 15
"""The digits that a spreadsheet keeps of a number; further ones are lost."""
_ERROR: Final = re.compile(rb"<(?:\w+:)?c\s[^>]*?\bt=[\"']e[\"'][^>]*>")
_REF: Final = re.compile(rb"\br=[\"']([A-Z]{1,3})([0-9]{1,7})[\"']")
Cell = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta


def is_workbook(path: Path) -> bool:
    """Whether a file is an .xlsx, by its content."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"PK\x03\x04":
                return False
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def open_workbook(path: Path, options: ReadOptions) -> SheetTable:
    """Opens a sheet: the one in the options, otherwise the first visible one with cells.

    Raises:
        UsageError: no such sheet, a password, a damaged or oversized file, or no table in it.
    """
    try:
        # given a file object, calamine also goes by the content, not by the name
        with path.open("rb") as file, zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
            if unpacked > MAX_UNPACKED_BYTES:
                raise UsageError(
                    f"{path.name} unpacks to {unpacked >> 20} MiB; the limit is {MAX_UNPACKED_BYTES >> 20}",
                    "Save the sheet as CSV.",
                )
            with CalamineWorkbook.from_filelike(file) as workbook:
                sheet = _choose_sheet(workbook, options.sheet)
                errors = _errors(archive, sheet.name)
                return _table(sheet, tuple(workbook.sheet_names), errors, options)
    except PasswordError:
        raise UsageError(f"{path.name} has a password", "Remove the password in the spreadsheet and save it.") from None
    except (CalamineError, zipfile.BadZipFile, KeyError, OSError, EOFError, RuntimeError):
        raise UsageError(
            f"{path.name} is a damaged workbook", "Open it in a spreadsheet and save it again as .xlsx or CSV."
        ) from None


def _choose_sheet(workbook: CalamineWorkbook, choice: str | None) -> CalamineSheet:
    names = workbook.sheet_names
    if choice is not None:
        if choice in names:
            return workbook.get_sheet_by_name(choice)
        if choice.isdecimal() and 1 <= int(choice) <= len(names):
            return workbook.get_sheet_by_index(int(choice) - 1)
        raise UsageError(f"the workbook has no sheet {choice!r}", f"Its sheets: {', '.join(names)}.")
    for about in workbook.sheets_metadata:
        if about.typ == SheetTypeEnum.WorkSheet and about.visible == Visible.Visible:
            sheet = workbook.get_sheet_by_name(about.name)
            if sheet.end is not None:
                return sheet
    raise UsageError("the workbook has no visible sheet with cells", "Choose a sheet: --sheet NAME")


def _errors(archive: zipfile.ZipFile, sheet: str) -> dict[int, set[int]]:
    """Cells with an error value, by 1-based row and 0-based column; calamine returns them as empty."""
    found: dict[int, set[int]] = {}
    with archive.open(_part(archive, sheet)) as file:
        held = b""
        while chunk := file.read(1 << 20):
            held += chunk
            for match in _ERROR.finditer(held):
                ref = _REF.search(match[0])
                if ref:
                    found.setdefault(int(ref[2]), set()).add(_column(ref[1]))
            held = held[-4096:]  # a cell's tag may lie across two chunks
    return found


def _part(archive: zipfile.ZipFile, sheet: str) -> str:
    """The archive member of a sheet."""
    from xml.sax.saxutils import unescape

    book = archive.read("xl/workbook.xml").decode("utf-8", "replace")
    links = archive.read("xl/_rels/workbook.xml.rels").decode("utf-8", "replace")
    for tag in re.findall(r"<(?:\w+:)?sheet\s[^>]*>", book):
        name, link = _attribute(tag, "name"), _attribute(tag, r"\w+:id")
        if unescape(name, {"&quot;": '"', "&apos;": "'"}) == sheet:
            for target in re.findall(r"<(?:\w+:)?Relationship\s[^>]*>", links):
                if _attribute(target, "Id") == link:
                    return posixpath.normpath(posixpath.join("/xl", _attribute(target, "Target"))).lstrip("/")
    raise UsageError("the workbook is damaged: a sheet is missing", "Open it in a spreadsheet and save it again.")


def _attribute(tag: str, name: str) -> str:
    match = re.search(rf"\s{name}\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", tag)
    return (match[1] or match[2] or "") if match else ""


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number - 1


@dataclass(frozen=True)
class _Cells:
    """A sheet's cells as text, from row 1 on and from the first used column on.

    `signs` are decimal signs other than a point, by column.
    """

    sheet: CalamineSheet
    signs: Mapping[int, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        for line, cells in enumerate(self.sheet.iter_rows(), 1):
            texts = [text_of(cell) for cell in cells]
            for at, sign in self.signs.items():
                if at < len(cells) and isinstance(cells[at], float):
                    texts[at] = texts[at].replace(".", sign)
            yield line, texts


def text_of(cell: Cell) -> str:
    """A cell's value as text."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, int | float):
        return _number(cell)
    if isinstance(cell, dt.timedelta):
        minutes, seconds = divmod(cell.total_seconds(), 60)
        return f"{int(minutes // 60)}:{int(minutes % 60):02}:{format(Decimal(repr(seconds)).normalize(), 'f'):0>2}"
    return cell.isoformat()


def _number(cell: float) -> str:
    """A number with 15 digits; a longer one gets an exponent, which is rejected both as a code and as a number."""
    if abs(cell) < 10**DIGITS and cell == (whole := int(cell)):
        return str(whole)
    short = format(cell, f".{DIGITS}g")
    if "e+" in short:
        return format(cell, ".16E")  # different numbers keep different texts
    return format(Decimal(short), "f") if "e" in short and abs(cell) > 1e-7 else short


def _table(
    sheet: CalamineSheet, sheets: tuple[str, ...], errors: dict[int, set[int]], options: ReadOptions
) -> SheetTable:
    head: list[Record] = []
    tail: list[tuple[int, list[str]]] = []
    lines = 0
    for line, cells in _Cells(sheet):
        lines = line
        if line <= HEAD_ROWS:
            head.append(Record(line, line, cells if any(cells) else []))
        tail.append((line, cells))
        if len(tail) > 4 * MAX_FOOTNOTES:
            del tail[: 2 * MAX_FOOTNOTES]
    layout = detect_layout(head, options)
    width = len(layout.columns)
    notes = _footnotes([(line, cells) for line, cells in tail if line >= layout.data_line], width, errors)
    detected = DetectedFormat(
        kind="workbook",
        columns=layout.columns,
        header_lines=layout.header_lines,
        preamble=layout.preamble,
        footnotes=notes,
        renamed=layout.renamed,
        dropped_columns=layout.dropped,
        lines=lines,
        sheet=sheet.name,
        sheets=sheets,
    )
    return SheetTable(sheet, RowShape(layout.columns, fill=True), detected, layout.data_line, errors)


def _footnotes(tail: list[tuple[int, list[str]]], width: int, errors: dict[int, set[int]]) -> tuple[int, ...]:
    """Lines at the end with only a first cell, after a blank line or with a word such as "Total"."""
    notes: list[int] = []
    filled = [(line, cells) for line, cells in tail if any(cells) or line in errors]
    for at in range(len(filled) - 1, 0, -1):
        line, cells = filled[at]
        after_blank = filled[at - 1][0] < line - 1
        if line in errors or not cells[0] or any(cells[1:]) or width < 3:
            break
        if not after_blank and not is_footnote(cells[:1], width, after_blank=False, ended=False):
            break
        notes.append(line)
    return tuple(reversed(notes))


class SheetTable(SourceTable):
    """A table in a sheet. Blank rows are skipped; an empty cell is empty text."""

    def __init__(
        self,
        sheet: CalamineSheet,
        shape: RowShape,
        detected: DetectedFormat,
        data_line: int,
        errors: dict[int, set[int]],
    ) -> None:
        self.format = detected
        self._sheet, self._shape, self._data_line, self._errors = sheet, shape, data_line, errors
        self._signs: dict[int, str] = {}

    def with_decimals(self, signs: Mapping[str, str]) -> SheetTable:
        """See `SourceTable`."""
        table = copy(self)
        table._signs = {self.columns.index(name): sign for name, sign in signs.items()}
        return table

    def rows(self) -> Iterator[Row | RejectedRow]:
        """See `SourceTable`."""
        left = self._sheet.start[1] if self._sheet.start else 0
        end = self.format.footnotes[0] if self.format.footnotes else self.format.lines + 1
        for line, cells in _Cells(self._sheet, self._signs):
            if not self._data_line <= line < end:
                continue
            wrong = sorted(column - left for column in self._errors.get(line, ()))
            if wrong:
                at = wrong[0]
                name = repr(self.columns[at]) if 0 <= at < len(self.columns) else "a cell outside the table"
                yield RejectedRow(line, line, "cell_error", f"{name} has an error value such as #N/A", tuple(cells))
            elif any(cells):
                yield self._shape.fit(line, line, cells, nul=False)
