"""What the XML of a workbook says that its reader (calamine) does not: extent, error cells, number formats.

In: the zip archive of an .xlsx. Out: `SheetScan` per sheet, from one pass over its XML with bounded memory. The pass
also protects the reader, which allocates a rectangle for all cells and aborts the process if that is too large: a few
bytes of XML can place a cell in the last row and column.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final
from xml.sax.saxutils import unescape

from sources.errors import UsageError
from sources.files.number_formats import BUILTIN, NumberFormat, number_format

MAX_UNPACKED_BYTES: Final = 1 << 30
MAX_PART_BYTES: Final = 16 << 20
"""Of the parts that are read as a whole: workbook, relationships, styles."""
MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384
MAX_CELLS: Final = 40_000_000
"""Of the rectangle around all cells: about 1 GB."""
SPARSE: Final = 1_000_000
"""Cells of a rectangle that may be almost empty; a larger one must hold a cell in every hundred."""
RESAVE: Final = "Open it in a spreadsheet and save it again as .xlsx or CSV."
_CHUNK: Final = 1 << 20
_LONGEST_TAG: Final = 4096
_TAG: Final = re.compile(rb'<(?:\w+:)?(row|c)(?:\s+r="([A-Z]*)([0-9]*)"|(?=[\s/>]))([^<>]*)>')
"""A row or cell: its kind, position (letters and digits) and further attributes."""
_POSITION: Final = re.compile(rb"\sr\s*=\s*[\"']([A-Z]*)([0-9]*)[\"']")
_STYLE: Final = re.compile(rb"\ss\s*=\s*[\"']([0-9]{1,6})[\"']")
_IS_ERROR: Final = re.compile(rb"\st\s*=\s*[\"']e[\"']")
_ATTRIBUTE: Final = re.compile(r"([\w:]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


@dataclass
class SheetScan:
    """The extent and the unusual cells of a sheet. Rows are 1-based, columns 0-based.

    Attributes:
        rows, columns: the last ones with a cell.
        filled_rows: rows with at least two cells, counted up to two.
        errors: columns with an error value, by row.
        formats: number formats other than digits, by row and column.
    """

    rows: int = 0
    columns: int = 0
    filled_rows: int = 0
    errors: dict[int, set[int]] = field(default_factory=dict)
    formats: dict[int, dict[int, NumberFormat]] = field(default_factory=dict)

    @property
    def holds_table(self) -> bool:
        """Whether the sheet has two rows with two cells or more; a cover or notes do not."""
        return self.filled_rows >= 2


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
        for entry in archive.infolist():  # the sizes in the directory may be false: reading to the end compares them
            if entry.filename.startswith("xl/") and entry.filename.endswith((".xml", ".rels")):
                with archive.open(entry) as part:
                    while part.read(_CHUNK):
                        pass
        self._formats = self._number_formats()

    def scan(self, sheet: str) -> SheetScan:
        """One pass over the XML of a sheet.

        Raises:
            UsageError: cells are beyond the limits of a spreadsheet, or far apart.
        """
        result = SheetScan()
        cells = row = column = in_row = 0
        for kind, letters, digits, rest in self._tags_of(sheet):
            style, is_error, is_empty, position = _attributes(rest)
            if position is not None:
                letters, digits = position  # noqa: PLW2901 # the position is not the first attribute
            if kind == b"row":
                row = int(digits) if digits else row + 1
                column = in_row = 0
                continue
            if letters:
                column = column_number(letters)
                row = int(digits or row)
            else:
                column += 1
            if is_empty:  # a formatted cell without content
                continue
            cells += 1
            in_row += 1
            if in_row == 2 and result.filled_rows < 2:
                result.filled_rows += 1
            if row > result.rows or column > result.columns or row < 1:
                result.rows, result.columns = max(result.rows, row), max(result.columns, column)
                self._check_extent(sheet, result, row)
            if is_error:
                result.errors.setdefault(row, set()).add(column - 1)
            elif style and (known := self._formats.get(style)):
                result.formats.setdefault(row, {})[column - 1] = known
        rectangle = result.rows * result.columns
        if rectangle > MAX_CELLS or (rectangle > SPARSE and rectangle > 100 * cells):
            raise UsageError(
                f"sheet {sheet!r} of {self._name} has {cells:,} cells, but they reach to row {result.rows:,} and "
                f"column {result.columns:,}",
                "Delete the rows and columns outside the table, or save the sheet as CSV.",
            )
        return result

    def _check_extent(self, sheet: str, result: SheetScan, row: int) -> None:
        if not 1 <= row <= MAX_ROWS or result.columns > MAX_COLUMNS:
            raise UsageError(f"sheet {sheet!r} of {self._name} has a cell outside of the limits of a sheet", RESAVE)

    def _tags_of(self, sheet: str) -> Iterator[tuple[bytes, ...]]:
        """The tags of rows and cells in their order: the groups of `_TAG`."""
        with self._archive.open(self._part(sheet)) as file:
            buffer = file.read(_CHUNK)
            if b"\0" in buffer[:4] or buffer[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise UsageError(f"{self._name} is not encoded as UTF-8", RESAVE)
            while True:
                chunk = file.read(_CHUNK)
                end = buffer.rfind(b"<", -_LONGEST_TAG) if chunk else len(buffer)  # a tag may go on in the next chunk
                yield from _TAG.findall(buffer, 0, end if end >= 0 else len(buffer))
                if not chunk:
                    return
                buffer = (buffer[end:] if end >= 0 else b"") + chunk

    def _part(self, sheet: str) -> str:
        """The archive member of a sheet."""
        links = {
            tag.get("Id"): tag.get("Target", "")
            for tag in _tags(self._read("xl/_rels/workbook.xml.rels"), "Relationship")
        }
        for tag in _tags(self._read("xl/workbook.xml"), "sheet"):
            if tag.get("name") == sheet:
                link = next((value for name, value in tag.items() if name.endswith(":id")), "")
                if links.get(link):
                    return posixpath.normpath(posixpath.join("/xl", links[link])).lstrip("/")
        raise UsageError(f"{self._name} is damaged: sheet {sheet!r} is missing", RESAVE)

    def _number_formats(self) -> dict[bytes, NumberFormat]:
        """The formats other than digits, by the style number that cells refer to."""
        if "xl/styles.xml" not in self._archive.namelist():
            return {}
        text = self._read("xl/styles.xml")
        codes = BUILTIN | {
            int(tag["numFmtId"]): tag.get("formatCode", "")
            for tag in _tags(text, "numFmt")
            if tag.get("numFmtId", "").isdecimal()
        }
        styles = re.search(r"<(?:\w+:)?cellXfs\b.*?</(?:\w+:)?cellXfs>", text, re.DOTALL)
        formats = {}
        for style, tag in enumerate(_tags(styles[0], "xf") if styles else ()):
            identifier = tag.get("numFmtId", "0")
            known = number_format(codes.get(int(identifier), "General")) if identifier.isdecimal() else None
            if known is not None and known.kind != "digits":
                formats[str(style).encode()] = known
        return formats

    def _read(self, part: str) -> str:
        if self._archive.getinfo(part).file_size > MAX_PART_BYTES:
            raise UsageError(f"{self._name} is damaged: {part} is larger than {MAX_PART_BYTES >> 20} MiB", RESAVE)
        return self._archive.read(part).decode("utf-8", "replace")


@cache
def column_number(letters: bytes) -> int:
    """The 1-based number of a column: A is 1."""
    number = 0
    for letter in letters[:8]:
        number = number * 26 + letter - 64
    return number


@lru_cache(1024)
def _attributes(text: bytes) -> tuple[bytes, bool, bool, tuple[bytes, bytes] | None]:
    """The style of a cell, whether it is an error, whether it has no content, and its position if it is in the text."""
    style, position = _STYLE.search(text), _POSITION.search(text)
    return (
        style[1] if style else b"",
        _IS_ERROR.search(text) is not None,
        text.endswith(b"/"),
        (position[1], position[2]) if position else None,
    )


def _tags(xml: str, name: str) -> Iterator[dict[str, str]]:
    """The attributes of each tag of a name."""
    for tag in re.finditer(rf"<(?:\w+:)?{name}\s([^<>]*)>", xml):
        yield {
            match[1]: unescape(match[2] or match[3] or "", {"&quot;": '"', "&apos;": "'"})
            for match in _ATTRIBUTE.finditer(tag[1])
        }
