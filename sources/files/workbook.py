"""A table in a sheet of an .xlsx file, read by calamine: cells as text, as a CSV export would have them.

In: a path and `ReadOptions`. Out: rows. A row with an error value or a formula without a result is rejected, and so
is a date or boolean where a text belongs, because what was typed is lost. The sheet is held in memory, so its size is
capped; text files have no such limit.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import merge
from itertools import chain, islice
from typing import Final
from xml.etree.ElementTree import ParseError
from xml.parsers.expat import ExpatError

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, SheetTypeEnum
from python_calamine import SheetVisibleEnum as Visible

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.file_end import MAX_FOOTNOTES, footnotes
from orderbridge.sources.files.file_kinds import InputFile
from orderbridge.sources.files.layout import detect_layout
from orderbridge.sources.files.model import (
    LINE_COLUMN,
    CellRules,
    DetectedFormat,
    Part,
    ReadOptions,
    RejectCode,
    RejectedRow,
    Row,
    SourceTable,
    rows_of,
)
from orderbridge.sources.files.records import Record
from orderbridge.sources.files.row_shape import RowShape
from orderbridge.sources.files.sheet_cells import CellKind, SheetColumn, column_of
from orderbridge.sources.files.sheet_xml import RESAVE, SheetScan, WorkbookXml
from orderbridge.sources.files.unusual_rows import unusual_rows
from orderbridge.sources.texts import everywhere

HEAD_ROWS: Final = 2_000
_BLOCK_ROWS: Final = 4_096
_SLICE_ROWS: Final = 20
"""Slices of fewer rows take longer than the rows."""
_RETYPE: Final = "format the column as Text and enter the value again"
_LOST: Final = {
    CellKind.PERCENTAGE: "a percentage in the sheet, so 5% may mean 5 or 0.05",
    CellKind.LOGICAL: "a logical value (TRUE or FALSE) in the sheet",
    CellKind.DATE: "a date or time in the sheet, so the text that was typed is lost",
    CellKind.OTHER_FORM: "a number that the sheet shows in another form",
}
_NUMBERS: Final = (CellKind.NUMBER, CellKind.PERCENTAGE, CellKind.OTHER_FORM)
_DAMAGED: Final = (
    CalamineError, zipfile.BadZipFile, ParseError, ExpatError, KeyError, OSError, EOFError, RuntimeError,
)  # fmt: skip
"""What reading a damaged archive raises."""
_DEFAULT: Final = CellRules()
HASHES_SHEET: Final = "check"
"""A hidden sheet that each `result.xlsx` has."""


def corrections_sheet(names: Collection[str]) -> str | None:
    """The sheet of rejected rows among the sheets of a workbook; None if it is no `result.xlsx`.

    It is read whatever the options, which are those of the first file. A name in another language than English could be
    a person's own, and counts beside the hidden sheet only.
    """
    english, *others = everywhere("sheet.corrections")
    if english in names:
        return english
    found = [name for name in others if name in names and HASHES_SHEET in names]
    return found[0] if found else None


def open_workbook(source: InputFile, options: ReadOptions) -> SheetTable:
    """Opens a sheet: the one in the options, otherwise the only visible one with a table.

    Raises:
        UsageError: no such sheet, several with a table, a password, a damaged or oversized file, or no table.
    """
    try:
        # given a file object, calamine also goes by the content, not by the name
        with zipfile.ZipFile(source.file) as archive:
            xml = WorkbookXml(archive, source.name)
            source.file.seek(0)
            with CalamineWorkbook.from_filelike(source.file) as workbook:
                corrections = corrections_sheet(workbook.sheet_names)
                if options.sheet not in workbook.sheet_names and corrections is not None:
                    options = ReadOptions(sheet=corrections, totals=options.totals)
                name, scan = _choose_sheet(workbook, xml, options.sheet)
                return _table(
                    workbook.get_sheet_by_name(name), scan, tuple(workbook.sheet_names), options
                )
    except OverflowError:
        hint = "Format the column of that cell, which shows ####, as Number or Text, and save the file."
        raise UsageError(
            f"{source.name} has a number formatted as a duration that is too long for one", hint
        ) from None
    except BaseException as error:  # what Rust code raises for a bug derives from it
        if not isinstance(error, _DAMAGED) and type(error).__name__ != "PanicException":
            raise
        raise UsageError(f"{source.name} is a damaged workbook", RESAVE) from None


def _choose_sheet(
    workbook: CalamineWorkbook, xml: WorkbookXml, choice: str | None
) -> tuple[str, SheetScan]:
    """The sheet that was chosen, or the only visible one with a table, and what its XML says.

    Raises:
        UsageError: there is no such sheet, or several hold a table.
    """
    if choice is not None:
        name = _named_sheet(workbook.sheet_names, choice)
        return name, xml.scan(name)
    scans = {name: xml.scan(name) for name in _visible_sheets(workbook)}
    with_cells = [name for name, scan in scans.items() if scan.cells]
    tables = [name for name in with_cells if scans[name].holds_table] or with_cells[:1]
    if not tables:
        raise UsageError(
            "the workbook has no visible sheet with cells", "Choose a sheet: --sheet NAME"
        )
    if len(tables) > 1:
        raise UsageError(
            f"{len(tables)} sheets hold a table: {', '.join(tables)}",
            f'Choose one: --sheet "{tables[0]}" (in a mapping, under [file]: sheet = "{tables[0]}").',
        )
    return tables[0], scans[tables[0]]


def _named_sheet(names: Sequence[str], choice: str) -> str:
    """The name of a sheet that was chosen by its name or number."""
    if choice in names:
        return choice
    if choice.isdecimal() and 1 <= int(choice) <= len(names):
        return names[int(choice) - 1]
    raise UsageError(f"the workbook has no sheet {choice!r}", f"Its sheets: {', '.join(names)}.")


def _visible_sheets(workbook: CalamineWorkbook) -> list[str]:
    """The names of the sheets of cells that are not hidden."""
    return [
        about.name
        for about in workbook.sheets_metadata
        if about.typ == SheetTypeEnum.WorkSheet and about.visible == Visible.Visible
    ]


def _table(
    sheet: CalamineSheet, scan: SheetScan, sheets: tuple[str, ...], options: ReadOptions
) -> SheetTable:
    columns = _columns(sheet, scan)
    lines = len(columns[0].texts) if columns else 0
    head = [
        Record(line, line, cells if any(cells) else [])
        for line, cells in _cells(columns, 0, HEAD_ROWS)
    ]
    layout = detect_layout(head, options)
    width = len(layout.shape.columns)
    tail = _cells(columns, max(lines - 4 * MAX_FOOTNOTES, layout.data_line - 1), lines)
    left = sheet.start[1] if sheet.start else 0
    errors = {
        row: {column - left: words for column, words in found.items()}
        for row, found in scan.without_value.items()
    }
    notes = footnotes(
        [(line, None if line in errors else _trimmed(cells)) for line, cells in tail], width
    )
    first = layout.data_line - 1
    end = notes[0] - 1 if notes else lines
    detected = DetectedFormat(
        kind="workbook",
        **layout.found(),
        footnotes=notes,
        lines=lines,
        sheet=sheet.name,
        sheets=sheets,
        hidden_rows=sum(first < row <= end for row in scan.hidden),
        merged_cells=sum(
            top < end and bottom >= first
            for (top, _), (bottom, _) in sheet.merged_cell_ranges or ()
        ),
    )
    body = [
        SheetColumn(texts.slice(first, end - first), kinds[first:end]) for texts, kinds in columns
    ]
    return SheetTable(body, errors, layout.shape, detected, layout.data_line)


def _columns(sheet: CalamineSheet, scan: SheetScan) -> list[SheetColumn]:
    """The columns of a sheet, from its first one with a cell on."""
    left = sheet.start[1] if sheet.start else 0
    cells = chain.from_iterable(sheet.iter_rows())
    parts: list[list[SheetColumn]] = []
    line = 1
    # one list: the collector has no rows to look at
    while block := list(islice(cells, _BLOCK_ROWS * sheet.width)):
        columns = [block[at :: sheet.width] for at in range(sheet.width)]
        part = []
        for at, column in enumerate(columns, left):
            numbers = scan.formats.get(at)
            in_block = None if numbers is None else numbers[line : line + len(column)]
            part.append(column_of(column, in_block, scan.known_formats))
        parts.append(part)
        line += len(columns[0])
    return [
        SheetColumn(
            pa.chunked_array([p.texts for p in column]), np.concatenate([p.kinds for p in column])
        )
        for column in zip(*parts, strict=True)
    ]


def _cells(columns: Sequence[SheetColumn], start: int, end: int) -> list[tuple[int, list[str]]]:
    """The rows of a range of lines."""
    texts = [column.texts.slice(start, end - start).to_pylist() for column in columns]
    return list(enumerate(map(list, zip(*texts, strict=True)), start + 1))


def _trimmed(cells: list[str]) -> list[str]:
    """The cells; only the first one if the others are empty."""
    return cells if any(cells[1:]) else cells[:1]


@dataclass(eq=False)
class SheetTable(SourceTable):
    """A table in a sheet. Blank rows are skipped; an empty cell is empty text.

    Attributes:
        body: the cells from the first row of data to the last one, also those right of the table.
        errors: by line, the positions of cells without a value, with what they have instead.
        shape: of the rows.
        line: of the first row.
        rules: by position of the column, for those that are used; without them, all are.
    """

    body: Sequence[SheetColumn]
    errors: Mapping[int, Mapping[int, str]]
    shape: RowShape
    format: DetectedFormat
    line: int
    rules: Mapping[int, CellRules] | None = None
    sha256: str = ""

    def __post_init__(self) -> None:
        self._unused = (
            set() if self.rules is None else {*range(len(self.columns))} - self.rules.keys()
        )
        self._rules = self._rules_by_default() if self.rules is None else self.rules

    def with_cell_rules(self, rules: Mapping[str, CellRules]) -> SheetTable:
        """See `SourceTable`."""
        return replace(self, rules={self.columns.index(name): rule for name, rule in rules.items()})

    def parts(self) -> Iterator[Part]:
        """See `SourceTable`."""
        table, rejects = self._content
        if table.num_rows < _SLICE_ROWS * len(rejects):
            rows: tuple[Iterable[Row | RejectedRow], ...] = (rows_of(table), rejects)
            yield from merge(*rows, key=lambda row: row.line)
            return
        ends = np.searchsorted(table.columns[-1].to_numpy(), [row.line for row in rejects])
        start = 0
        for row, end in zip(rejects, ends.tolist(), strict=True):
            if end > start:
                yield table.slice(start, end - start)
            yield row
            start = end
        yield table.slice(start)

    @cached_property
    def _content(self) -> tuple[pa.Table, list[RejectedRow]]:
        """The rows as a table with `_line`, and those that are rejected."""
        texts = [self._texts(at) for at in range(len(self.body))]
        size = len(texts[0]) if texts else 0
        lines = np.arange(self.line, self.line + size)
        reasons = self._reasons(size)
        unusual = unusual_rows(texts, self.shape)
        unusual[list(reasons)] = True
        table = pa.table(
            [*texts[: len(self.columns)], pa.array(lines)], [*self.columns, LINE_COLUMN]
        )
        if not unusual.any():
            return table, []
        rejects = []
        unusual[1:] |= unusual[:-1]  # the row after a blank one or a title may begin another table
        places = np.flatnonzero(unusual)
        cells = zip(*(column.take(places).to_pylist() for column in texts), strict=True)
        ended = -1
        for place, row in zip(places.tolist(), map(list, cells), strict=True):
            line = self.line + place
            if place in reasons:
                # empty, they would pass when the rejects are planned
                for at in self.errors.get(line, ()):
                    if 0 <= at < len(row):
                        row[at] = "#N/A"
                rejects.append(RejectedRow(line, line, *reasons[place], tuple(row)))
                continue
            fitted = (
                self.shape.fit(line, line, row, marks=False, is_ended=place == ended)
                if any(row)
                else None
            )
            if isinstance(fitted, RejectedRow):
                rejects.append(fitted)
            if fitted is None or (place == ended and isinstance(fitted, RejectedRow)):
                ended = place + 1
            unusual[place] = not isinstance(fitted, Row)
        return table.filter(pa.array(~unusual)), rejects

    def _texts(self, at: int) -> pa.ChunkedArray:
        """A column in the notation of its rule."""
        texts, kinds = self.body[at]
        rule = self._rules.get(at, _DEFAULT)
        if (lost := self._lost(at)).any():  # as a text it would pass when the rejects are planned
            texts = pc.if_else(lost, pc.binary_join_element_wise("#N/A (", texts, ")", ""), texts)
        if rule.decimal != ".":
            texts = pc.if_else(
                np.isin(kinds, _NUMBERS), pc.replace_substring(texts, ".", rule.decimal), texts
            )
        if (rule.true, rule.false) != (_DEFAULT.true, _DEFAULT.false):
            words = pc.if_else(pc.equal(texts, _DEFAULT.true), rule.true, rule.false)
            texts = pc.if_else(kinds == CellKind.LOGICAL, words, texts)
        return texts

    def _lost(self, at: int) -> npt.NDArray[np.bool_]:
        """The cells of a column for which something else was typed than what the sheet holds."""
        kinds = _LOST if self._rules.get(at, _DEFAULT).is_text else (CellKind.PERCENTAGE,)
        return np.isin(self.body[at].kinds, () if at in self._unused else list(kinds))

    def _reasons(self, size: int) -> dict[int, tuple[RejectCode, str]]:
        """By position of the row: code and reason of each row with an error value or an uncertain text."""
        reasons: dict[int, tuple[RejectCode, str]] = {}
        for line, cells in self.errors.items():
            if 0 <= line - self.line < size and (used := cells.keys() - self._unused):
                at = min(used)
                reasons[line - self.line] = ("cell_error", f"{self._name(at)} has {cells[at]}")
        for at, (_, kinds) in enumerate(self.body):
            for place in np.flatnonzero(self._lost(at)).tolist():
                words = _LOST[CellKind(kinds[place])]
                reasons.setdefault(place, ("cell_type", f"{self._name(at)} is {words}; {_RETYPE}"))
        return reasons

    def _name(self, column: int) -> str:
        return (
            repr(self.columns[column])
            if 0 <= column < len(self.columns)
            else "a cell outside the table"
        )

    def _rules_by_default(self) -> dict[int, CellRules]:
        """Columns of texts and numbers in which some cells are dates or booleans: the spreadsheet converted a code."""
        rules = {}
        for at, (texts, kinds) in enumerate(self.body[: len(self.columns)]):
            typed = int(np.isin(kinds, (CellKind.LOGICAL, CellKind.DATE)).sum())
            if typed and typed < pc.sum(pc.not_equal(texts, "")).as_py() - typed:
                rules[at] = CellRules(is_text=True)
        return rules
