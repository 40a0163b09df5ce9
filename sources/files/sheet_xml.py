"""What the XML of a workbook states and its reader (calamine) does not: extent, errors, formats, hidden rows.

In: the zip archive of an .xlsx. Out: `SheetScan` per sheet, from one pass over its XML with bounded memory. The pass
also protects the reader, which allocates a rectangle for all cells and aborts the process if that is too large: a few
bytes of XML can place a cell in the last row and column.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from sources.errors import UsageError
from sources.files.cell_tags import SheetPart, UnusualForm, XmlParser, read_usual_xml
from sources.files.model import MAX_COLUMNS
from sources.files.number_formats import BUILTIN, NumberFormat, number_format

MAX_UNPACKED_BYTES: Final = 1 << 30
MAX_PART_BYTES: Final = 16 << 20
"""Of the parts that are read as a whole: workbook, relationships, styles."""
MAX_ROWS: Final = 1_048_576
MAX_CELLS: Final = 40_000_000
"""Of the rectangle around all cells: about 1 GB."""
SPARSE: Final = 1_000_000
"""Cells of a rectangle that may be almost empty; a larger one must hold a cell in every hundred."""
RESAVE: Final = "Open it in a spreadsheet and save it again as .xlsx or CSV."
_CHUNK: Final = 1 << 18
_ERROR: Final = "an error value such as #N/A"
_NOT_COMPUTED: Final = "a formula without a result; open the file in a spreadsheet and save it"


@dataclass
class SheetScan:
    """The extent and the unusual cells of a sheet. Rows are 1-based, columns 0-based.

    Attributes:
        rows, columns: the number of the last row and column with content.
        cells: the number of cells with content.
        row_sizes: the number of cells by row, until two rows have two cells.
        errors: columns with an error value, by row.
        formulas: columns with a formula that was never computed, by row.
        hidden: rows that are hidden, e.g. by a filter.
        formats: per column with number formats other than digits: by row, the number of the cell's format in
            `known_formats`; 0 for none.
        known_formats: the formats of the workbook, from number 1 on.
    """

    rows: int = 0
    columns: int = 0
    cells: int = 0
    row_sizes: Counter[int] = field(default_factory=Counter)
    errors: dict[int, set[int]] = field(default_factory=dict)
    formulas: dict[int, set[int]] = field(default_factory=dict)
    hidden: set[int] = field(default_factory=set)
    formats: dict[int, npt.NDArray[np.int32]] = field(default_factory=dict)
    known_formats: Sequence[NumberFormat] = ()

    @property
    def holds_table(self) -> bool:
        """Whether the sheet has two rows with two cells or more; a cover or notes do not."""
        return len(list(islice((size for size in self.row_sizes.values() if size > 1), 2))) == 2

    def cells_without_value(self, left: int) -> dict[int, dict[int, str]]:
        """By row, what cells have instead of a value, by position in a table whose first column is `left`."""
        cells: dict[int, dict[int, str]] = {}
        for found, words in ((self.formulas, _NOT_COMPUTED), (self.errors, _ERROR)):
            for row, columns in found.items():
                cells.setdefault(row, {}).update(dict.fromkeys((column - left for column in columns), words))
        return cells

    def extend(self, part: SheetPart) -> None:
        """Adds what the next part of the sheet holds, without the formats."""
        if part.rows.size:
            self.rows, self.columns = max(self.rows, int(part.rows.max())), max(self.columns, int(part.columns.max()))
            self.cells += part.rows.size
            if not self.holds_table:
                self.row_sizes.update(part.rows.tolist())
        is_error = np.array([tag.get("t") == "e" for tag in part.attributes], np.bool_)[part.indices]
        errors = zip(part.rows[is_error].tolist(), part.columns[is_error].tolist(), strict=True)
        for found, cells in ((self.errors, errors), (self.formulas, part.uncomputed)):
            for row, column in cells:
                found.setdefault(row, set()).add(column - 1)
        self.hidden.update(row for row in part.hidden if row <= MAX_ROWS)

    def set_formats(self, cells_with_format: npt.NDArray[np.int32]) -> None:
        """Sets number formats once all cells have been added: rows, columns and numbers of the formats."""
        rows, columns, numbers = cells_with_format
        order = np.argsort(columns, kind="stable")
        begins = np.flatnonzero(np.diff(columns[order], prepend=0))
        for cells in np.split(order, begins[1:]) if order.size else ():
            by_row = np.zeros(self.rows + 1, np.int32)
            by_row[rows[cells]] = numbers[cells]
            self.formats[int(columns[cells[0]]) - 1] = by_row


class WorkbookXml:
    """The parts of an .xlsx archive.

    Raises:
        UsageError: the archive is damaged or unpacks to too much.
    """

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self._archive, self._name = archive, name
        unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > MAX_UNPACKED_BYTES:
            raise UsageError(
                f"{name} unpacks to {unpacked >> 20} MiB; the limit is {MAX_UNPACKED_BYTES >> 20}",
                "Save the sheet as CSV.",
            )
        self._sheets = self._sheet_parts()
        self._known_formats: dict[NumberFormat, int] = {}
        self._formats = self._number_formats()
        for entry in archive.infolist():  # the sizes in the directory may be false: reading to the end compares them
            is_read = entry.filename.startswith("xl/") and entry.filename.endswith((".xml", ".rels"))
            if is_read and entry.filename not in self._sheets.values():  # `scan` reads sheets to the end
                with archive.open(entry) as part:
                    while part.read(_CHUNK):
                        pass

    def scan(self, sheet: str) -> SheetScan:
        """One pass over the XML of a sheet.

        Raises:
            UsageError: cells are beyond the limits of a spreadsheet, or far apart.
        """
        try:
            return self._scan(sheet, read_usual_xml)
        except UnusualForm:
            return self._scan(sheet, XmlParser().read)

    def _scan(self, sheet: str, read: Callable[[bytes], SheetPart]) -> SheetScan:
        result = SheetScan(known_formats=tuple(self._known_formats))
        formatted: list[npt.NDArray[np.int32]] = []
        for xml in self._chunks(sheet):
            part = read(xml)
            result.extend(part)
            if 0 in part.rows or 0 in part.columns or result.rows > MAX_ROWS or result.columns > MAX_COLUMNS:
                raise UsageError(f"sheet {sheet!r} of {self._name} has a cell outside of the limits of a sheet", RESAVE)
            if self._formats:
                numbers = np.array([self._formats.get(tag.get("s", ""), 0) for tag in part.attributes], np.int64)
                numbers = numbers[part.indices]
                cells = np.flatnonzero(numbers)
                formatted.append(np.stack([part.rows[cells], part.columns[cells], numbers[cells]]).astype(np.int32))
        rectangle = result.rows * result.columns
        if rectangle > MAX_CELLS or (rectangle > SPARSE and rectangle > 100 * result.cells):
            raise UsageError(
                f"sheet {sheet!r} of {self._name} has {result.cells:,} cells, but they reach to row {result.rows:,} "
                f"and column {result.columns:,}",
                "Delete the rows and columns outside the table, or save the sheet as CSV.",
            )
        if formatted:
            result.set_formats(np.concatenate(formatted, axis=1))
        return result

    def _chunks(self, sheet: str) -> Iterator[bytes]:
        """The XML of a sheet in parts that end before a tag, the last of them empty."""
        if sheet not in self._sheets:
            raise UsageError(f"{self._name} is damaged: sheet {sheet!r} is missing", RESAVE)
        with self._archive.open(self._sheets[sheet]) as file:
            buffer = file.read(_CHUNK)
            if b"\0" in buffer[:4] or buffer[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise UsageError(f"{self._name} is not encoded as UTF-8", RESAVE)
            while chunk := file.read(_CHUNK):
                end = buffer.rfind(b"<c ")  # a formula and its value are in the same part
                end = end if end > 0 else buffer.rfind(b"<")
                if end < 1:
                    raise UsageError(f"{self._name} is damaged: a tag or text of sheet {sheet!r} does not end", RESAVE)
                yield buffer[:end]
                buffer = buffer[end:] + chunk
            yield buffer
            yield b""

    def _sheet_parts(self) -> dict[str, str]:
        """The archive member of each sheet."""
        links = {
            tag.get("Id"): tag.get("Target", "")
            for tag in self._parsed("xl/_rels/workbook.xml.rels").iterfind(".//{*}Relationship")
        }
        parts: dict[str, str] = {}
        for tag in self._parsed("xl/workbook.xml").iterfind(".//{*}sheet"):
            link = next((value for name, value in tag.items() if name.endswith("/relationships}id")), "")
            if links.get(link):
                part = posixpath.normpath(posixpath.join("/xl", links[link])).lstrip("/")
                parts.setdefault(tag.get("name", ""), part)
        return parts

    def _number_formats(self) -> dict[str, int]:
        """The formats other than digits, as numbers from 1 on, by the style that cells refer to."""
        if "xl/styles.xml" not in self._archive.namelist():
            return {}
        styles = self._parsed("xl/styles.xml")
        own = {tag.get("numFmtId"): tag.get("formatCode", "") for tag in styles.iterfind("{*}numFmts/{*}numFmt")}
        formats = {}
        for style, tag in enumerate(styles.iterfind("{*}cellXfs/{*}xf")):
            identifier = tag.get("numFmtId")
            known = number_format(own.get(identifier, BUILTIN.get(identifier, "General")))
            if known.kind != "digits":
                formats[str(style)] = self._known_formats.setdefault(known, len(self._known_formats) + 1)
        return formats

    def _parsed(self, part: str) -> ElementTree.Element:
        if self._archive.getinfo(part).file_size > MAX_PART_BYTES:
            raise UsageError(f"{self._name} is damaged: {part} is larger than {MAX_PART_BYTES >> 20} MiB", RESAVE)
        parser = ElementTree.XMLParser(encoding="utf-8")  # noqa: S314 # expat limits what entities expand to
        return ElementTree.fromstring(self._archive.read(part), parser)  # noqa: S314
