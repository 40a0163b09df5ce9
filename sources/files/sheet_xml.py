"""What the XML of a workbook states and its reader (calamine) does not: extent, errors, formats, hidden rows.

In: the zip archive of an .xlsx. Out: `SheetScan` per sheet, from one pass over its XML with bounded memory. The pass
also protects the reader, which allocates a rectangle for all cells and aborts the process if that is too large: a few
bytes of XML can place a cell in the last row and column.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt

from sources.errors import UsageError
from sources.files.cell_tags import (
    ATTRIBUTE,
    CellTags,
    ImpliedPositions,
    add_row_states,
    cell_tags,
    may_have_prefixes,
    may_have_value_e,
    other_attributes,
    uncomputed_formulas,
)
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
_DECLARATION: Final = len(b"\xef\xbb\xbf<?")
"""Bytes at the beginning of a sheet that may be the beginning of its XML declaration."""


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
        merged: the rows of each group of merged cells.
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
    merged: set[range] = field(default_factory=set)
    formats: dict[int, npt.NDArray[np.int32]] = field(default_factory=dict)
    known_formats: Sequence[NumberFormat] = ()

    @property
    def holds_table(self) -> bool:
        """Whether the sheet has two rows with two cells or more; a cover or notes do not."""
        return len(list(islice((size for size in self.row_sizes.values() if size > 1), 2))) == 2

    def extend(self, tags: CellTags) -> None:
        """Adds cells with content."""
        if tags.rows.size:
            self.rows, self.columns = max(self.rows, int(tags.rows.max())), max(self.columns, int(tags.columns.max()))
            self.cells += tags.rows.size
            if not self.holds_table:
                self.row_sizes.update(tags.rows.tolist())

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
        result = SheetScan(known_formats=tuple(self._known_formats))
        implied = ImpliedPositions()
        is_plain = True  # neither comments nor instructions so far: in them, tags would be counted
        before = b""  # since the last row that is known to `implied`
        formatted: list[npt.NDArray[np.int32]] = []
        for number, chunk in enumerate(self._chunks(sheet)):
            xml = chunk
            is_plain = is_plain and b"<!" not in xml and xml.find(b"<?", 0 if number else _DECLARATION) < 0
            tags = None if may_have_prefixes(xml) else cell_tags(xml)
            if tags is not None:
                before = xml[max(xml.rfind(b"<row"), 0) :]
            else:
                if not is_plain:
                    raise UsageError(
                        f"sheet {sheet!r} of {self._name} has comments and cells without a position", RESAVE
                    )
                implied.fill(before)
                xml, before = implied.fill(xml), b""
                tags = cell_tags(xml)
            if tags is not None:
                result.extend(tags)
            is_inside = tags is not None and 0 not in tags.rows and 0 not in tags.columns
            if tags is None or not is_inside or result.rows > MAX_ROWS or result.columns > MAX_COLUMNS:
                raise UsageError(f"sheet {sheet!r} of {self._name} has a cell outside of the limits of a sheet", RESAVE)
            add_row_states(chunk, result.hidden, result.merged)
            for row, column in uncomputed_formulas(xml):
                result.formulas.setdefault(row, set()).add(column - 1)
            if tags.rows.size and (self._formats or may_have_value_e(xml)):
                formatted.append(self._unusual_cells(xml, tags, result))
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

    def _unusual_cells(self, xml: bytes, tags: CellTags, scan: SheetScan) -> npt.NDArray[np.int32]:
        """Adds cells with errors to `scan`; returns rows, columns and numbers of those with a number format."""
        attributes, indices = other_attributes(xml, tags)
        is_error = np.array([tag.get("t") == "e" for tag in attributes])[indices]
        for cell in np.flatnonzero(is_error).tolist():
            scan.errors.setdefault(int(tags.rows[cell]), set()).add(int(tags.columns[cell]) - 1)
        numbers = np.array([self._formats.get(tag.get("s", ""), 0) for tag in attributes])[indices]
        cells = np.flatnonzero(numbers)
        return np.stack([tags.rows[cells], tags.columns[cells], numbers[cells]]).astype(np.int32)

    def _chunks(self, sheet: str) -> Iterator[bytes]:
        """The XML of a sheet in parts that end before a tag."""
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

    def _sheet_parts(self) -> dict[str, str]:
        """The archive member of each sheet."""
        links = {
            tag.get("Id"): tag.get("Target", "")
            for tag in _tags(self._read("xl/_rels/workbook.xml.rels"), "Relationship")
        }
        parts: dict[str, str] = {}
        for tag in _tags(self._read("xl/workbook.xml"), "sheet"):
            link = next((value for name, value in tag.items() if name.endswith(":id")), "")
            if links.get(link):
                part = posixpath.normpath(posixpath.join("/xl", links[link])).lstrip("/")
                parts.setdefault(tag.get("name", ""), part)
        return parts

    def _number_formats(self) -> dict[str, int]:
        """The formats other than digits, as numbers from 1 on, by the style that cells refer to."""
        if "xl/styles.xml" not in self._archive.namelist():
            return {}
        text = self._read("xl/styles.xml")
        own = re.search(r"<(?:\w+:)?numFmts\b.*?</(?:\w+:)?numFmts>", text, re.DOTALL)  # `dxfs` have others
        codes = BUILTIN | {
            int(tag["numFmtId"]): tag.get("formatCode", "")
            for tag in _tags(own[0] if own else "", "numFmt")
            if tag.get("numFmtId", "").isdecimal()
        }
        styles = re.search(r"<(?:\w+:)?cellXfs\b.*?</(?:\w+:)?cellXfs>", text, re.DOTALL)
        formats = {}
        for style, tag in enumerate(_tags(styles[0], "xf") if styles else ()):
            identifier = tag.get("numFmtId", "0")
            known = number_format(codes.get(int(identifier), "General")) if identifier.isdecimal() else None
            if known is not None and known.kind != "digits":
                formats[str(style)] = self._known_formats.setdefault(known, len(self._known_formats) + 1)
        return formats

    def _read(self, part: str) -> str:
        if self._archive.getinfo(part).file_size > MAX_PART_BYTES:
            raise UsageError(f"{self._name} is damaged: {part} is larger than {MAX_PART_BYTES >> 20} MiB", RESAVE)
        return re.sub("<!--.*?-->", "", self._archive.read(part).decode("utf-8", "replace"), flags=re.DOTALL)


def _tags(xml: str, name: str) -> Iterator[dict[str, str]]:
    """The attributes of each tag of a name."""
    for tag in re.finditer(rf"""<(?:\w+:)?{name}(?=[\s/>])((?:"[^"]*"|'[^']*'|[^"'<>])*)>""", xml):
        yield {match[1]: unescape(match[2] or match[3] or "") for match in ATTRIBUTE.finditer(tag[1])}
