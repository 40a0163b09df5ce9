"""What the XML of a workbook states and its reader (calamine) does not: extent, error cells, number formats.

In: the zip archive of an .xlsx. Out: `SheetScan` per sheet, from one pass over its XML with bounded memory. The pass
also protects the reader, which allocates a rectangle for all cells and aborts the process if that is too large: a few
bytes of XML can place a cell in the last row and column.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from typing import Final

import numpy as np
import numpy.typing as npt

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
_CHUNK: Final = 1 << 18
_TAG: Final = re.compile(rb"""<(?:[^\s<>/:]+:)?(row|c)(?=[\s/>])((?:"[^"]*"|'[^']*'|[^"'<>])*)>""")
_POSITION: Final = re.compile(rb"\sr\s*=\s*[\"']([A-Z]*)([0-9]*)[\"']")
_ERROR: Final = re.compile(rb"<c r=\"([A-Z]+)([0-9]+)\"[^<]*?\st\s*=\s*[\"']e[\"'][^<>]*(?<!/)>")
_STYLE: Final = rb"<c r=\"([A-Z]+)([0-9]+)\"[^<]*?\ss\s*=\s*[\"'](%s)[\"'][^<>]*(?<!/)>"
_ATTRIBUTE: Final = re.compile(r"([\w:]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
Ints = npt.NDArray[np.int64]


@dataclass
class SheetScan:
    """The extent and the unusual cells of a sheet. Rows are 1-based, columns 0-based.

    Attributes:
        rows, columns: the number of the last row and column with content.
        cells: the number of cells with content.
        row_sizes: the number of cells by row, until two rows have two cells.
        errors: columns with an error value, by row.
        formats: number formats other than digits, by column and row.
    """

    rows: int = 0
    columns: int = 0
    cells: int = 0
    row_sizes: Counter[int] = field(default_factory=Counter)
    errors: dict[int, set[int]] = field(default_factory=dict)
    formats: dict[int, dict[int, NumberFormat]] = field(default_factory=dict)

    @property
    def holds_table(self) -> bool:
        """Whether the sheet has two rows with two cells or more; a cover or notes do not."""
        return sum(size > 1 for size in self.row_sizes.values()) > 1

    def extend(self, rows: Ints, columns: Ints) -> None:
        """Adds cells with content."""
        if rows.size:
            self.rows, self.columns = max(self.rows, int(rows.max())), max(self.columns, int(columns.max()))
            self.cells += rows.size
            if not self.holds_table:
                self.row_sizes.update(rows.tolist())


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
        result = SheetScan()
        implied = _ImpliedPositions()
        before = b""  # since the last row that is known to `implied`
        styles = re.compile(_STYLE % b"|".join(self._formats))
        for chunk in self._chunks(sheet):
            xml = chunk
            has_prefixes = b":" in xml and (b":c" in xml or b":row" in xml)
            positions = None if has_prefixes or b"'" in xml else _cell_positions(xml)
            if positions is not None:
                before = xml[max(xml.rfind(b"<row"), 0) :]
            else:
                implied.fill(before)
                xml, before = implied.fill(xml), b""
                positions = _cell_positions(xml)
            if positions is not None:
                result.extend(*positions)
            if positions is None or 0 in positions or result.rows > MAX_ROWS or result.columns > MAX_COLUMNS:
                raise UsageError(f"sheet {sheet!r} of {self._name} has a cell outside of the limits of a sheet", RESAVE)
            if b'"e"' in xml or (b"'" in xml and b"'e'" in xml):
                for letters, digits in _ERROR.findall(xml):
                    result.errors.setdefault(int(digits), set()).add(column_number(letters) - 1)
            for letters, digits, style in styles.findall(xml) if self._formats else ():
                result.formats.setdefault(column_number(letters) - 1, {})[int(digits)] = self._formats[style]
        rectangle = result.rows * result.columns
        if rectangle > MAX_CELLS or (rectangle > SPARSE and rectangle > 100 * result.cells):
            raise UsageError(
                f"sheet {sheet!r} of {self._name} has {result.cells:,} cells, but they reach to row {result.rows:,} "
                f"and column {result.columns:,}",
                "Delete the rows and columns outside the table, or save the sheet as CSV.",
            )
        return result

    def _chunks(self, sheet: str) -> Iterator[bytes]:
        """The XML of a sheet in parts that end before a tag."""
        if sheet not in self._sheets:
            raise UsageError(f"{self._name} is damaged: sheet {sheet!r} is missing", RESAVE)
        with self._archive.open(self._sheets[sheet]) as file:
            buffer = file.read(_CHUNK)
            if b"\0" in buffer[:4] or buffer[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise UsageError(f"{self._name} is not encoded as UTF-8", RESAVE)
            while chunk := file.read(_CHUNK):
                end = buffer.rfind(b"<")
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

    def _number_formats(self) -> dict[bytes, NumberFormat]:
        """The formats other than digits, by the style number that cells refer to."""
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
                formats[str(style).encode()] = known
        return formats

    def _read(self, part: str) -> str:
        if self._archive.getinfo(part).file_size > MAX_PART_BYTES:
            raise UsageError(f"{self._name} is damaged: {part} is larger than {MAX_PART_BYTES >> 20} MiB", RESAVE)
        return re.sub("<!--.*?-->", "", self._archive.read(part).decode("utf-8", "replace"), flags=re.DOTALL)


class _ImpliedPositions:
    """Gives each cell of a sheet its position as the first attribute: `<c r="A1" …>`, as most programs write it.

    A row or cell without a position follows the last one. Cells without content are left out.
    """

    def __init__(self) -> None:
        self._row = self._column = 0

    def fill(self, xml: bytes) -> bytes:
        """The XML that follows what was passed before."""
        return _TAG.sub(self._rewrite, xml)

    def _rewrite(self, tag: re.Match[bytes]) -> bytes:
        kind, attributes = tag.groups()
        position = _POSITION.search(attributes)
        letters, digits = position.groups() if position else (b"", b"")
        if kind == b"row":
            self._row, self._column = int(digits) if digits else self._row + 1, 0
            return b"<row>"
        if letters:
            self._row, self._column = int(digits or self._row), column_number(letters)
        else:
            self._column += 1
            letters = _column_letters(self._column)
        return b"" if attributes.endswith(b"/") else b'<c r="%s%d"%s>' % (letters, self._row, attributes)


def _cell_positions(xml: bytes) -> Ints | None:
    """The positions of the cells with content: an array of shape (2, cells), rows and columns, 1-based.

    None if the tag of a cell has another form than `<c r="A1" …>`.
    """
    codes = np.frombuffer(xml + bytes(32), np.uint8)
    begins, ends = codes[:-2] == ord("<"), codes[1:-1] == ord("c")
    cells = np.flatnonzero(begins & ends)
    cells = cells[codes[cells + 2] < ord("A")]  # the end of the name
    closed = np.flatnonzero((codes[:-1] == ord("/")) & (codes[1:] == ord(">")))
    if closed.size:
        tags, quotes = np.flatnonzero(begins), np.flatnonzero(codes == ord('"'))
        owners = tags[np.searchsorted(tags, closed) - 1]
        is_outside = (np.searchsorted(quotes, closed) - np.searchsorted(quotes, owners)) % 2 == 0
        cells = np.setdiff1d(cells, owners[is_outside], assume_unique=True)
    places = cells + 2
    for char in b' r="':
        if (codes[places] != char).any():
            return None
        places += 1
    numbers = []
    for first, base, length in ((ord("A"), 26, 3), (ord("0"), 10, 7)):
        number = np.zeros_like(places)
        for _ in range(length):
            digits = codes[places] - np.uint8(first)
            is_digit = digits < base
            if not is_digit.any():
                break
            number = np.where(is_digit, number * base + digits + (base == 26), number)
            places += is_digit
        numbers.append(number)
    return None if (codes[places] != ord('"')).any() else np.stack(numbers[::-1])


@cache
def column_number(letters: bytes) -> int:
    """The 1-based number of a column: A is 1."""
    number = 0
    for letter in letters[:8]:
        number = number * 26 + letter - 64
    return number


def _column_letters(number: int) -> bytes:
    letters = b""
    while number:
        number, letter = divmod(number - 1, 26)
        letters = bytes([65 + letter]) + letters
    return letters


def _tags(xml: str, name: str) -> Iterator[dict[str, str]]:
    """The attributes of each tag of a name."""
    for tag in re.finditer(rf"""<(?:\w+:)?{name}(?=[\s/>])((?:"[^"]*"|'[^']*'|[^"'<>])*)>""", xml):
        yield {match[1]: unescape(match[2] or match[3] or "") for match in _ATTRIBUTE.finditer(tag[1])}
