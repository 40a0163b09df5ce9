"""A table in a sheet of an .xlsx file, read by calamine: cells as text, as a CSV export would have them.

In: a path and `ReadOptions`. Out: rows. Numbers have the 15 digits that a spreadsheet keeps (no `.0`, no exponent if
digits suffice) and the leading zeros of their format, dates are ISO 8601; a row with an error value is rejected, and so
is a date or boolean where a text belongs, because what was typed is lost. The sheet is held in memory, so its size is
capped; text files have no such limit.
"""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Iterator, Mapping
from copy import copy
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Final

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, PasswordError, SheetTypeEnum
from python_calamine import SheetVisibleEnum as Visible

from sources.errors import UsageError
from sources.files.dialect import Record
from sources.files.layout import MAX_FOOTNOTES, detect_layout, is_footnote
from sources.files.model import CellRules, DetectedFormat, ReadOptions, RejectedRow, Row, SourceTable
from sources.files.number_formats import NumberFormat
from sources.files.row_shape import RowShape
from sources.files.sheet_xml import RESAVE, SheetScan, WorkbookXml

HEAD_ROWS: Final = 2_000
DIGITS: Final = 15
"""The digits that a spreadsheet keeps of a number; further ones are lost."""
_RETYPE: Final = "format the column as Text and enter the value again"
Cell = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta
_DEFAULT: Final = CellRules()
_PLAIN: Final = frozenset({str, int, float})


def open_workbook(path: Path, options: ReadOptions) -> SheetTable:
    """Opens a sheet: the one in the options, otherwise the only visible one with a table.

    Raises:
        UsageError: no such sheet, several with a table, a password, a damaged or oversized file, or no table.
    """
    try:
        # given a file object, calamine also goes by the content, not by the name
        with path.open("rb") as file, zipfile.ZipFile(path) as archive:
            xml = WorkbookXml(archive, path.name)
            with CalamineWorkbook.from_filelike(file) as workbook:
                name, scan = _choose_sheet(workbook, xml, options.sheet)
                sheet = workbook.get_sheet_by_name(name)
                return _table(sheet, scan, tuple(workbook.sheet_names), options)
    except PasswordError:
        raise UsageError(f"{path.name} has a password", "Remove the password in the spreadsheet and save it.") from None
    except (CalamineError, zipfile.BadZipFile, KeyError, OSError, EOFError, RuntimeError, NotImplementedError):
        raise UsageError(f"{path.name} is a damaged workbook", RESAVE) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # what Rust code raises for a bug; it derives from BaseException
            raise
        raise UsageError(f"{path.name} is a damaged workbook", RESAVE) from None


def _choose_sheet(workbook: CalamineWorkbook, xml: WorkbookXml, choice: str | None) -> tuple[str, SheetScan]:
    names = workbook.sheet_names
    if choice is not None:
        if choice not in names and choice.isdecimal() and 1 <= int(choice) <= len(names):
            choice = names[int(choice) - 1]
        if choice not in names:
            raise UsageError(f"the workbook has no sheet {choice!r}", f"Its sheets: {', '.join(names)}.")
        return choice, xml.scan(choice)
    visible = [
        about.name
        for about in workbook.sheets_metadata
        if about.typ == SheetTypeEnum.WorkSheet and about.visible == Visible.Visible
    ]
    scans = {name: xml.scan(name) for name in visible}
    tables = [name for name, scan in scans.items() if scan.holds_table] or [
        name for name, scan in scans.items() if scan.rows
    ][:1]
    if not tables:
        raise UsageError("the workbook has no visible sheet with cells", "Choose a sheet: --sheet NAME")
    if len(tables) > 1:
        raise UsageError(
            f"{len(tables)} sheets hold a table: {', '.join(tables)}",
            f'Choose one: --sheet "{tables[0]}" (in a mapping, under [file]: sheet = "{tables[0]}").',
        )
    return tables[0], scans[tables[0]]


def text_of(cell: Cell, number_format: NumberFormat | None = None) -> str:
    """A cell's value as text."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, int | float):
        text = _number(cell)
        is_padded = number_format is not None and number_format.kind == "padded" and text.isdecimal()
        return number_format.shown(text) if number_format is not None and is_padded else text
    if isinstance(cell, dt.timedelta):
        minutes, seconds = divmod(cell.total_seconds(), 60)
        return f"{int(minutes // 60)}:{int(minutes % 60):02}:{format(Decimal(repr(seconds)).normalize(), 'f'):0>2}"
    return cell.isoformat()


@lru_cache(1 << 16)
def _number(cell: float) -> str:
    """A number with 15 digits; a longer one gets an exponent, which is rejected both as a code and as a number."""
    if abs(cell) < 10**DIGITS and cell == (whole := int(cell)):
        return str(whole)
    short = format(cell, f".{DIGITS}g")
    if "e+" in short:
        return format(cell, ".16E")  # different numbers keep different texts
    return format(Decimal(short), "f") if "e" in short and abs(cell) > 1e-7 else short


def _table(sheet: CalamineSheet, scan: SheetScan, sheets: tuple[str, ...], options: ReadOptions) -> SheetTable:
    head: list[Record] = []
    tail: list[tuple[int, list[Cell]]] = []
    lines = 0
    for line, cells in enumerate(sheet.iter_rows(), 1):
        lines = line
        if line <= HEAD_ROWS:
            texts = [text_of(cell) for cell in cells]
            head.append(Record(line, line, texts if any(texts) else []))
        tail.append((line, cells))
        if len(tail) > 4 * MAX_FOOTNOTES:
            del tail[: 2 * MAX_FOOTNOTES]
    layout = detect_layout(head, options)
    width = len(layout.columns)
    last = [(line, [text_of(cell) for cell in cells]) for line, cells in tail if line >= layout.data_line]
    notes = _footnotes(last, width, scan.errors)
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
    return SheetTable(
        sheet, scan, RowShape(layout.columns, fill=True, surplus=layout.dropped), detected, layout.data_line
    )


def _footnotes(tail: list[tuple[int, list[str]]], width: int, errors: Mapping[int, object]) -> tuple[int, ...]:
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
        self, sheet: CalamineSheet, scan: SheetScan, shape: RowShape, detected: DetectedFormat, data_line: int
    ) -> None:
        self.format = detected
        self._sheet, self._scan, self._shape, self._data_line = sheet, scan, shape, data_line
        self._left = sheet.start[1] if sheet.start else 0
        self._rules: dict[int, CellRules] = {}
        self._rules = self._texts_by_default()

    def with_cell_rules(self, rules: Mapping[str, CellRules]) -> SheetTable:
        """See `SourceTable`."""
        table = copy(self)
        table._rules = {self.columns.index(name): rule for name, rule in rules.items()}
        return table

    def rows(self) -> Iterator[Row | RejectedRow]:
        """See `SourceTable`."""
        end = self.format.footnotes[0] if self.format.footnotes else self.format.lines + 1
        for line, cells in enumerate(self._sheet.iter_rows(), 1):
            if not self._data_line <= line < end:
                continue
            texts, reason = self._texts(line, cells)
            errors = sorted(column - self._left for column in self._scan.errors.get(line, ()))
            if errors:
                reason = f"{self._name(errors[0])} has an error value such as #N/A"
                yield RejectedRow(line, line, "cell_error", reason, tuple(texts))
            elif reason:
                yield RejectedRow(line, line, "cell_type", reason, tuple(texts))
            elif any(texts):
                yield self._shape.fit(line, line, texts, marks=False)

    def _texts(self, line: int, cells: list[Cell]) -> tuple[list[str], str]:
        """The cells of a row as text, and why the first one that has no certain text is rejected."""
        formats = self._scan.formats.get(line)
        texts, reason = [], ""
        for column, cell in enumerate(cells):
            if isinstance(cell, str):
                texts.append(cell)
                continue
            number_format = formats.get(column + self._left) if formats else None
            rule = self._rules.get(column, _DEFAULT)
            if isinstance(cell, bool):
                text = rule.true if cell else rule.false
            elif isinstance(cell, float):
                text = _number(cell) if number_format is None else text_of(cell, number_format)
                text = text if rule.decimal == "." else text.replace(".", rule.decimal)
            else:
                text = text_of(cell, number_format)
            texts.append(text)
            if not reason and (rule.is_text or number_format is not None):
                why = _lost(cell, number_format, rule)
                reason = f"{self._name(column)} is {why}; {_RETYPE}" if why else ""
        return texts, reason

    def _name(self, column: int) -> str:
        return repr(self.columns[column]) if 0 <= column < len(self.columns) else "a cell outside the table"

    def _texts_by_default(self) -> dict[int, CellRules]:
        """Columns of texts and numbers in which some cells are dates or booleans: the spreadsheet converted a code."""
        if all(_PLAIN.issuperset(map(type, cells)) for cells in self._sheet.iter_rows()):
            return {}
        width = len(self.columns)
        typed, others = [0] * width, [0] * width
        for line, cells in enumerate(self._sheet.iter_rows(), 1):
            if line < self._data_line:
                continue
            for column, cell in enumerate(cells[:width]):
                if isinstance(cell, bool | dt.date | dt.time | dt.timedelta):
                    typed[column] += 1
                elif cell != "":
                    others[column] += 1
        return {column: CellRules(is_text=True) for column in range(width) if 0 < typed[column] < others[column]}


def _lost(cell: Cell, number_format: NumberFormat | None, rule: CellRules) -> str:
    """What makes the text of a cell uncertain, in words; empty if it is certain."""
    if not isinstance(cell, str) and number_format is not None and number_format.kind == "percent":
        return "a percentage in the sheet, so 5% may mean 5 or 0.05"
    if not rule.is_text:
        return ""
    if isinstance(cell, bool):
        return "a logical value (TRUE or FALSE) in the sheet"
    if isinstance(cell, dt.date | dt.time | dt.timedelta):
        return "a date or time in the sheet, so the text that was typed is lost"
    if number_format is None or isinstance(cell, str):
        return ""
    if number_format.kind == "other" or not _number(cell).isdecimal():
        return "a number that the sheet shows in another form"
    return ""
