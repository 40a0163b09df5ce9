"""The tags of cells in a part of a sheet's XML, as arrays: positions and attributes of many cells at once.

In: XML that begins and ends between tags. Out: `CellTags`. Tags of cells without a position, or in another form than
`<c r="A1" …>`, are brought to that form first, by `ImpliedPositions`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ATTRIBUTE: Final = re.compile(r"([\w:.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_TAG: Final = re.compile(rb"""<(?:[^\s<>/:]+:)?(row|c)(?=[\s/>])((?:"[^"<]*"|'[^'<]*'|[^"'<>])*)>""")
_POSITION: Final = re.compile(rb"\sr\s*=\s*[\"']([A-Z]*)([0-9]*)[\"']")
_ATTRIBUTES: Final = re.compile(rb"""(?:"[^"]*"|'[^']*'|[^"'<>])*""")
_FORMULA: Final = re.compile(
    rb"""<c r="([A-Z]+)([0-9]+)"([^<>]*)>\s*<(?:\w+:)?f\b[^<>]*(?:/>|>[^<]*</(?:\w+:)?f>)\s*"""
    rb"""(<(?:\w+:)?v\s*(?:/>|></(?:\w+:)?v>)\s*)?</(?:\w+:)?c>"""
)
"""A formula without a value."""
_HIDDEN: Final = re.compile(rb"""<(?:\w+:)?row\b[^<>]*\shidden=["'](?:1|true)["'][^<>]*>""")
_MERGED: Final = re.compile(rb"""<(?:\w+:)?mergeCell\s+ref=["'][A-Z]+([0-9]{1,7}):[A-Z]+([0-9]{1,7})["']""")
_MAX_STATES: Final = 1 << 20
_Ints = npt.NDArray[np.int64]


class CellTags(NamedTuple):
    """Cells with content.

    Attributes:
        rows, columns: their positions, 1-based.
        begins, ends: where the attributes after the position are in the XML. If a value contains ">", `ends` is there.
    """

    rows: _Ints
    columns: _Ints
    begins: _Ints
    ends: _Ints


def may_have_prefixes(xml: bytes) -> bool:
    """Whether tags of cells or rows may have a prefix: `<x:c …>`."""
    codes = np.frombuffer(xml + bytes(2), np.uint8)  # arrays take a third of the time of `in`
    names = np.flatnonzero(codes == ord(":")) + 1
    is_row = (codes[names] == ord("r")) & (codes[names + 1] == ord("o"))
    return bool((is_row | (codes[names] == ord("c"))).any())


def cell_tags(xml: bytes) -> CellTags | None:
    """The tags of cells; None if one has another form than `<c r="A1" …>`."""
    codes = np.frombuffer(xml + bytes(32), np.uint8)
    places = np.flatnonzero((codes[:-1] == ord("<")) & (codes[1:] == ord("c")))
    places = places[codes[places + 2] < ord("A")] + 2  # the end of the name
    stops = np.append(np.flatnonzero(codes == ord(">")), len(xml))
    ends = stops[np.searchsorted(stops, places)]
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
    if (codes[places] != ord('"')).any():
        return None
    tags = CellTags(numbers[1], numbers[0], places + 1, ends)
    closed = np.flatnonzero(codes[ends - 1] == ord("/"))
    if closed.size:
        texts, _ = _distinct(xml, tags.begins[closed], ends[closed])
        if not all(map(_ATTRIBUTES.fullmatch, texts)):  # "/>" within a value
            return None
        tags = CellTags(*(np.delete(array, closed) for array in tags))
    return tags


def other_attributes(xml: bytes, tags: CellTags) -> tuple[list[dict[str, str]], _Ints]:
    """The attributes of cells after the position: the distinct ones, and the index of each cell's among them."""
    distinct, indices = _distinct(xml, tags.begins, tags.ends)
    for index, text in enumerate(distinct[:]):
        if not _ATTRIBUTES.fullmatch(text):  # a value contains ">"
            for cell in np.flatnonzero(indices == index).tolist():
                whole = _ATTRIBUTES.match(xml, tags.begins[cell])
                indices[cell] = len(distinct)
                distinct.append(whole[0] if whole else b"")
    return [_values(text.decode("utf-8", "replace")) for text in distinct], indices


def _distinct(xml: bytes, begins: _Ints, ends: _Ints) -> tuple[list[bytes], _Ints]:
    """The distinct parts of the XML, and the index of each among them."""
    bounds = np.stack([begins, ends], axis=1).astype(np.int32)
    slices = pa.Array.from_buffers(pa.binary(), bounds.size - 1, [None, pa.py_buffer(bounds), pa.py_buffer(xml)])
    texts = slices.take(pa.array(np.arange(0, bounds.size, 2))).dictionary_encode()
    return texts.dictionary.to_pylist(), np.asarray(texts.indices).astype(np.int64)


def _values(attributes: str) -> dict[str, str]:
    return {match[1]: match[2] or match[3] or "" for match in ATTRIBUTE.finditer(attributes)}


def may_have_value_e(xml: bytes) -> bool:
    """Whether an attribute may be `e`, the type of a cell with an error."""
    codes = np.frombuffer(xml, np.uint8)
    quotes = codes == ord('"')
    return bool((quotes[:-2] & (codes[1:-1] == ord("e")) & quotes[2:]).any()) or (b"'" in xml and b"'e'" in xml)


def uncomputed_formulas(xml: bytes) -> list[tuple[int, int]]:
    """The positions of cells whose formula was never computed. The computed empty text has the type `str`."""
    if b"<f" not in xml and b":f" not in xml:
        return []
    return [
        (int(match[2]), _column_number(match[1]))
        for match in _FORMULA.finditer(xml)
        if match[4] is None or _values(match[3].decode("utf-8", "replace")).get("t") != "str"
    ]


def add_row_states(xml: bytes, hidden: set[int], merged: set[range]) -> None:
    """Adds the numbers of hidden rows, and the rows of merged cells; not without bound, a file may hold any number."""
    if b"hidden=" in xml and len(hidden) < _MAX_STATES:
        positions = (_POSITION.search(tag[0]) for tag in _HIDDEN.finditer(xml))
        hidden.update(int(position[2]) for position in positions if position and 0 < len(position[2]) < 8)
    if b"mergeCell " in xml and len(merged) < _MAX_STATES:
        merged.update(range(int(match[1]), int(match[2]) + 1) for match in _MERGED.finditer(xml))


class ImpliedPositions:
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
            self._row, self._column = int(digits[:10]) if digits else self._row + 1, 0
            return b"<row>"
        if letters:
            self._row, self._column = int(digits[:10] or self._row), _column_number(letters)
        else:
            self._column += 1
            letters = column_letters(self._column)
        return (
            b""
            if attributes.endswith(b"/")
            else b'<c r="%s%d"%s>' % (letters, self._row, attributes.replace(b">", b""))
        )


@cache
def _column_number(letters: bytes) -> int:
    """The 1-based number of a column: A is 1."""
    number = 0
    for letter in letters[:8]:
        number = number * 26 + letter - 64
    return number


def column_letters(number: int) -> bytes:
    """The letters of a column by its 1-based number."""
    letters = b""
    while number:
        number, letter = divmod(number - 1, 26)
        letters = bytes([65 + letter]) + letters
    return letters
