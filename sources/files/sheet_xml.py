"""What the XML of a workbook states and its reader (calamine) does not: extent, errors, formats, hidden rows.

In: the zip archive of an .xlsx. Out: `SheetScan` per sheet, from one pass over its XML. The pass also protects
calamine, which allocates a rectangle for all cells and aborts the process if that is too large: a few bytes of XML can
place a cell in the last row and column.
"""

from __future__ import annotations

import posixpath
import zipfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias
from xml.etree import ElementTree
from xml.parsers.expat import ParserCreate

import numpy as np
import numpy.typing as npt

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.model import MAX_COLUMNS
from orderbridge.sources.files.sheet_cells import BUILTIN, NumberFormat, number_format

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
"""Bytes; longer than a tag or a text may be."""
_DIGITS: Final = "0123456789"
_CONTROLS: Final = bytes(byte if byte >= 32 or byte in b"\t\n\r" else 32 for byte in range(256))
_ERROR: Final = "an error value such as #N/A"
_NOT_COMPUTED: Final = "a formula without a result; open the file in a spreadsheet and save it"

_Ints: TypeAlias = npt.NDArray[np.int32]


@dataclass
class SheetScan:
    """The extent and the unusual cells of a sheet. Rows are 1-based, columns 0-based.

    Attributes:
        cells: the number of cells with content.
        holds_table: whether two rows have two cells or more; those of a cover or of notes do not.
        without_value: by row, what cells have instead of a value, by column.
        hidden: rows that are hidden, e.g. by a filter.
        formats: per column with number formats other than digits: by row, the number of the cell's format in
            `known_formats`; 0 for none.
        known_formats: the formats of the workbook, from number 1 on.
    """

    cells: int
    holds_table: bool
    without_value: dict[int, dict[int, str]]
    hidden: set[int]
    formats: dict[int, _Ints] = field(default_factory=dict)
    known_formats: Sequence[NumberFormat] = ()


class _CellReader:
    """Reads the cells with content in the consecutive parts of a sheet's XML.

    A row or cell without a position follows the last one.

    Attributes:
        rows, columns: the positions of the cells, 1-based; 0 for a column that is none.
        kinds: the index in `known` of each cell's style and type.
        uncomputed: rows and columns of formulas without a value.
        hidden: rows that are hidden.
    """

    def __init__(self) -> None:
        self.rows, self.columns, self.kinds = array("i"), array("i"), array("i")
        self.known: dict[tuple[str, str], int] = {}
        self.uncomputed: list[tuple[int, int]] = []
        self.hidden: set[int] = set()
        # what matters is ASCII, and invalid UTF-8 is no error here
        self._parser = ParserCreate("iso-8859-1")
        self._parser.specified_attributes = True
        # an end would be reported for each cell and each value
        self._parser.StartElementHandler = self._start
        self._row = self._column = 0
        self._digits = ""  # of the row
        self._cell: tuple[str, str] | None = (
            None  # style and type of a cell that has no content so far
        )
        self._formula = (
            ""  # the type of a cell with a formula, "n" by default; "" once it has a value
        )

    def read(self, xml: bytes) -> None:
        """Reads the next part; an empty one ends the sheet.

        Raises:
            xml.parsers.expat.ExpatError: it is not XML, or ends before its last tag.
        """
        # only the end makes newer versions read all
        self._parser.Parse(xml.translate(_CONTROLS), not xml)
        if not xml:
            self._end_formula()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2] if ":" in name else name
        if self._formula and name in ("c", "row"):
            self._end_formula()
        if name == "c":
            reference = attributes.get("r", "")
            letters = reference.rstrip(_DIGITS)
            if letters:
                self._column = _column_number(letters)
                if (digits := reference[len(letters) :]) != self._digits:
                    self._row = int(digits[:8] or self._row)
                    self._digits = digits
            else:
                self._column += 1
            self._cell = attributes.get("s", ""), attributes.get("t", "")
        elif name == "row":
            digits = attributes.get("r", "")[:8]
            self._row = int(digits) if digits.isdecimal() else self._row + 1
            self._column = 0
            self._digits = digits
            self._cell = None
            if attributes.get("hidden") in ("1", "true"):
                self.hidden.add(self._row)
        elif self._cell is not None:
            if name == "f":
                self._formula = self._cell[1] or "n"
            self.rows.append(self._row)
            self.columns.append(self._column)
            self.kinds.append(self.known.setdefault(self._cell, len(self.known)))
            self._cell = None
        if self._formula and name == "v":
            # only of formulas: it would be called for every value
            self._parser.CharacterDataHandler = self._text
            self._formula = "" if self._formula == "str" else self._formula

    def _text(self, text: str) -> None:
        self._formula = "" if text.strip() else self._formula

    def _end_formula(self) -> None:
        if self._formula:
            self.uncomputed.append((self._row, self._column))
        self._formula = ""
        self._parser.CharacterDataHandler = None


@lru_cache(1 << 15)
def _column_number(letters: str) -> int:
    """The number of a column: A is 1."""
    number = 0
    for letter in letters[:4].upper():
        number = number * 26 + ord(letter) - 64 if "A" <= letter <= "Z" else -(1 << 30)
    return max(number, 0)


class WorkbookXml:
    """The parts of an .xlsx archive.

    Raises:
        UsageError: the archive is damaged or unpacks to too much.
    """

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self._archive = archive
        self._name = name
        unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > MAX_UNPACKED_BYTES:
            raise UsageError(
                f"{name} unpacks to {unpacked >> 20} MiB; the limit is {MAX_UNPACKED_BYTES >> 20}",
                "Save the sheet as CSV.",
            )
        self._sheets = self._sheet_parts()
        self._known_formats: dict[NumberFormat, int] = {}
        self._formats = self._number_formats()
        # the sizes in the directory may be false: reading to the end compares them
        for entry in archive.infolist():
            is_read = entry.filename.startswith("xl/") and entry.filename.endswith(
                (".xml", ".rels")
            )
            # `scan` reads sheets to the end
            if is_read and entry.filename not in self._sheets.values():
                with archive.open(entry) as part:
                    while part.read(_CHUNK):
                        pass

    def scan(self, sheet: str) -> SheetScan:
        """One pass over the XML of a sheet.

        Raises:
            UsageError: cells are beyond the limits of a spreadsheet, or far apart.
        """
        cells = _CellReader()
        for xml in self._chunks(sheet):
            cells.read(xml)
            if len(cells.rows) > MAX_CELLS:
                break
        at_rows = np.frombuffer(cells.rows, np.int32)
        at_columns = np.frombuffer(cells.columns, np.int32)
        kinds = np.frombuffer(cells.kinds, np.int32)
        self._check_places(sheet, at_rows, at_columns)
        numbers = np.array([self._formats.get(style, 0) for style, _ in cells.known], np.int32)
        is_error = np.array([kind == "e" for _, kind in cells.known], np.bool_)[kinds]
        errors = zip(at_rows[is_error].tolist(), at_columns[is_error].tolist(), strict=True)
        return SheetScan(
            cells=len(at_rows),
            holds_table=int((np.bincount(at_rows) > 1).sum()) > 1,
            without_value=_words_by_row((cells.uncomputed, _NOT_COMPUTED), (errors, _ERROR)),
            hidden={row for row in cells.hidden if row <= MAX_ROWS},
            formats=_formats_by_column(at_rows, at_columns, numbers[kinds]),
            known_formats=tuple(self._known_formats),
        )

    def _check_places(self, sheet: str, at_rows: _Ints, at_columns: _Ints) -> None:
        """Raises UsageError if cells are beyond the limits of a spreadsheet, or far apart."""
        rows = int(at_rows.max(initial=0))
        columns = int(at_columns.max(initial=0))
        has_zero = 0 in at_rows or 0 in at_columns
        if has_zero or rows > MAX_ROWS or columns > MAX_COLUMNS:
            raise UsageError(
                f"sheet {sheet!r} of {self._name} has a cell outside of the limits of a sheet",
                RESAVE,
            )
        area = rows * columns
        if area > MAX_CELLS or area > max(SPARSE, 100 * len(at_rows)):
            raise UsageError(
                f"sheet {sheet!r} of {self._name} has {len(at_rows):,} cells, but they reach to row {rows:,} and "
                f"column {columns:,}",
                "Delete the rows and columns outside the table, or save the sheet as CSV.",
            )

    def _chunks(self, sheet: str) -> Iterator[bytes]:
        """The XML of a sheet in parts, the last of them empty."""
        if sheet not in self._sheets:
            raise UsageError(f"{self._name} is damaged: sheet {sheet!r} is missing", RESAVE)
        with self._archive.open(self._sheets[sheet]) as file:
            chunk = file.read(_CHUNK)
            if b"\0" in chunk[:4] or chunk[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise UsageError(f"{self._name} is not encoded as UTF-8", RESAVE)
            while chunk:
                yield chunk
                chunk = file.read(_CHUNK)
                if len(chunk) == _CHUNK and b">" not in chunk:
                    raise UsageError(
                        f"{self._name} is damaged: a tag or text of sheet {sheet!r} does not end",
                        RESAVE,
                    )
            yield b""

    def _sheet_parts(self) -> dict[str, str]:
        """The archive member of each sheet."""
        links = {
            tag.get("Id"): tag.get("Target", "")
            for tag in self._parsed("xl/_rels/workbook.xml.rels").iterfind(".//{*}Relationship")
        }
        parts: dict[str, str] = {}
        for tag in self._parsed("xl/workbook.xml").iterfind(".//{*}sheet"):
            link = next(
                (value for name, value in tag.items() if name.endswith("/relationships}id")), ""
            )
            if links.get(link):
                part = posixpath.normpath(posixpath.join("/xl", links[link])).lstrip("/")
                parts.setdefault(tag.get("name", ""), part)
        return parts

    def _number_formats(self) -> dict[str, int]:
        """The formats other than digits, as numbers from 1 on, by the style that cells refer to."""
        if "xl/styles.xml" not in self._archive.namelist():
            return {}
        styles = self._parsed("xl/styles.xml")
        own = {
            tag.get("numFmtId"): tag.get("formatCode", "")
            for tag in styles.iterfind("{*}numFmts/{*}numFmt")
        }
        formats = {}
        for style, tag in enumerate(styles.iterfind("{*}cellXfs/{*}xf")):
            identifier = tag.get("numFmtId")
            known = number_format(own.get(identifier, BUILTIN.get(identifier, "General")))
            if known.kind != "digits":
                formats[str(style)] = self._known_formats.setdefault(
                    known, len(self._known_formats) + 1
                )
        return formats

    def _parsed(self, part: str) -> ElementTree.Element:
        if self._archive.getinfo(part).file_size > MAX_PART_BYTES:
            raise UsageError(
                f"{self._name} is damaged: {part} is larger than {MAX_PART_BYTES >> 20} MiB", RESAVE
            )
        parser = ElementTree.XMLParser(encoding="utf-8")  # noqa: S314 # expat limits what entities expand to
        return ElementTree.fromstring(self._archive.read(part), parser)  # noqa: S314


def _words_by_row(
    *found: tuple[Iterable[tuple[int, int]], str],
) -> dict[int, dict[int, str]]:
    """By row and column, counted from 0, what stands in place of a value; of two, the later one."""
    words_of: dict[int, dict[int, str]] = {}
    for places, words in found:
        for row, column in places:
            words_of.setdefault(row, {})[column - 1] = words
    return words_of


def _formats_by_column(at_rows: _Ints, at_columns: _Ints, numbers: _Ints) -> dict[int, _Ints]:
    """By column, counted from 0, the number of the format in each row; 0 for digits."""
    rows = int(at_rows.max(initial=0))
    formats: dict[int, _Ints] = {}
    for column in np.unique(at_columns[numbers > 0]).tolist():
        is_here = at_columns == column
        by_row = np.zeros(rows + 1, np.int32)
        by_row[at_rows[is_here]] = numbers[is_here]
        formats[column - 1] = by_row
    return formats
