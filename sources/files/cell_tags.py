"""The cells in a part of a sheet's XML, as arrays: positions, styles and types of many cells at once.

In: XML that begins and ends between tags. Out: `SheetPart`s. XML in the form that most programs write is searched with
arrays (`read_usual_xml`), in a fraction of the time that a parser takes. Any other is left to a parser (`XmlParser`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple
from xml.parsers.expat import ParserCreate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_PREFIXED: Final = re.compile(rb"<[^\s<>]+:(?:c|row)[\s/>]")
_ATTRIBUTES: Final = re.compile(rb'(?:\s+[\w:.-]+="[^"<>]*")*\s*/?')
_ATTRIBUTE: Final = re.compile(r'([\w:.-]+)="([^"]*)"')
_POSITION: Final = re.compile(r"([A-Z]*)([0-9]*)")
_FORMULA: Final = re.compile(
    rb"""<c r="([A-Z]+)([0-9]+)"([^<>]*)>\s*<(?:\w+:)?f\b[^<>]*(?:/>|>[^<]*</(?:\w+:)?f>)\s*"""
    rb"""(<(?:\w+:)?v\s*(?:/>|></(?:\w+:)?v>)\s*)?</c>"""
)
"""A formula without a value."""
_HIDDEN: Final = re.compile(rb"""<row\b(?=[^<>]*\shidden=["'](?:1|true)["'])[^<>]*\sr=["']([0-9]{1,7})["']""")
_CONTROLS: Final = bytes(byte if byte >= 32 or byte in b"\t\n\r" else 32 for byte in range(256))
_Ints = npt.NDArray[np.int64]
_Attributes = Mapping[str, str]


class UnusualForm(Exception):
    """XML that only a parser reads."""


class SheetPart(NamedTuple):
    """Cells with content, and hidden rows.

    Attributes:
        rows, columns: the positions of the cells, 1-based.
        attributes: those that cells have, distinct.
        indices: which of them each cell has.
        uncomputed: rows and columns of cells whose formula was never computed.
        hidden: the numbers of hidden rows.
    """

    rows: _Ints
    columns: _Ints
    attributes: Sequence[_Attributes]
    indices: _Ints
    uncomputed: list[tuple[int, int]]
    hidden: list[int]


def read_usual_xml(xml: bytes) -> SheetPart:
    """The cells of XML without comments or prefixes, in which each cell is written as `<c r="A1" …>`.

    Raises:
        UnusualForm: it has another form.
    """
    codes = np.frombuffer(xml + bytes(32), np.uint8)
    starts, after_colons = (np.flatnonzero(codes == mark) + 1 for mark in b"<:")
    initials = codes[starts]
    may_have_prefix = np.isin(codes[after_colons], list(b"cr")).any()
    if (initials == ord("!")).any() or (may_have_prefix and _PREFIXED.search(xml)):
        raise UnusualForm
    places = starts[initials == ord("c")] + 1
    places = places[codes[places] < ord("A")]  # the end of the name
    stops = np.append(np.flatnonzero(codes == ord(">")), len(xml))
    ends = stops[np.searchsorted(stops, places)]
    for char in b' r="':
        if (codes[places] != char).any():
            raise UnusualForm
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
    if (codes[places] != ord('"')).any():
        raise UnusualForm
    texts, indices = _distinct(xml, places + 1, ends)
    if not all(map(_ATTRIBUTES.fullmatch, texts)):  # a value contains ">", or is in other quotes
        raise UnusualForm
    is_empty = [text.endswith(b"/") for text in texts]
    if any(is_empty):
        is_filled = ~np.array(is_empty)[indices]
        numbers, indices = [number[is_filled] for number in numbers], indices[is_filled]
    attributes = [dict(_ATTRIBUTE.findall(text.decode("utf-8", "replace"))) for text in texts]
    uncomputed = _uncomputed(xml) if b"<f" in xml or b":f" in xml else []
    hidden = list(map(int, _HIDDEN.findall(xml))) if b"hidden=" in xml else []
    return SheetPart(numbers[1], numbers[0], attributes, indices, uncomputed, hidden)


def _distinct(xml: bytes, begins: _Ints, ends: _Ints) -> tuple[list[bytes], _Ints]:
    """The distinct parts of the XML, and the index of each among them."""
    if not begins.size:
        return [], begins
    bounds = np.stack([begins, ends], axis=1).astype(np.int32)
    slices = pa.Array.from_buffers(pa.binary(), bounds.size - 1, [None, pa.py_buffer(bounds), pa.py_buffer(xml)])
    texts = slices.take(pa.array(np.arange(0, bounds.size, 2))).dictionary_encode()
    return texts.dictionary.to_pylist(), np.asarray(texts.indices).astype(np.int64)


def _uncomputed(xml: bytes) -> list[tuple[int, int]]:
    """The computed empty text has the type `str`."""
    return [
        (int(match[2]), _column_number(match[1].decode()))
        for match in _FORMULA.finditer(xml)
        if match[4] is None or b't="str"' not in match[3]
    ]


class XmlParser:
    """Reads the consecutive parts of a sheet in any form, at several times the cost.

    A row or cell without a position follows the last one.
    """

    def __init__(self) -> None:
        self._parser = ParserCreate("iso-8859-1")  # what matters is ASCII, and invalid UTF-8 is no error here
        self._parser.specified_attributes = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._row = self._column = 0
        self._attributes: _Attributes = {}
        self._inside: list[str] = []  # the elements of the cell so far, and "text" for that of its value
        self._known: dict[tuple[str, str], int] = {}
        self._cells: list[tuple[int, int, int]] = []
        self._uncomputed: list[tuple[int, int]] = []
        self._hidden: list[int] = []

    def read(self, xml: bytes) -> SheetPart:
        """The cells that end in the next part; an empty one ends the sheet.

        Raises:
            xml.parsers.expat.ExpatError: it is not XML, or ends before its last tag.
        """
        self._cells, self._uncomputed, self._hidden = [], [], []
        self._parser.Parse(xml.translate(_CONTROLS), not xml)  # only the end makes newer versions read all
        rows, columns, indices = np.array(self._cells, np.int64).reshape(-1, 3).T
        attributes = [{"s": style, "t": kind} for style, kind in self._known]
        return SheetPart(rows, columns, attributes, indices, self._uncomputed, self._hidden)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name == "c":
            letters, digits = _position(attributes)
            if letters:
                self._row, self._column = int(digits or self._row), _column_number(letters)
            else:
                self._column += 1
            self._attributes, self._inside = attributes, []
        elif name == "row":
            digits = _position(attributes)[1]
            self._row, self._column = int(digits) if digits else self._row + 1, 0
            if attributes.get("hidden") in ("1", "true"):
                self._hidden.append(self._row)
        else:
            self._inside.append(name)
            # only of formulas: it would be called for every value
            self._parser.CharacterDataHandler = self._text if name == "v" and "f" in self._inside else None

    def _text(self, text: str) -> None:
        self._inside.append("text")

    def _end(self, name: str) -> None:
        if name.rpartition(":")[2] != "c" or not self._inside:
            return
        kind = self._attributes.get("t", "")
        key = self._attributes.get("s", ""), kind
        self._cells.append((self._row, self._column, self._known.setdefault(key, len(self._known))))
        if "f" in self._inside and "text" not in self._inside and ("v" not in self._inside or kind != "str"):
            self._uncomputed.append((self._row, self._column))


def _position(attributes: _Attributes) -> tuple[str, str]:
    """Letters and digits of a position, empty where absent; cut off far beyond the limits of a sheet."""
    match = _POSITION.fullmatch(attributes.get("r", ""))
    return (match[1][:8], match[2][:10]) if match else ("", "")


@cache
def _column_number(letters: str) -> int:
    """The 1-based number of a column: A is 1."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number
