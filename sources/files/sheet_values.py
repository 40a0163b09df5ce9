"""Columns of a sheet straight from its XML, with the same cells as calamine gives, in a third of its time.

In: parts of the XML in which `cell_tags` has found the cells. Out: `SheetColumn`s, or None for a sheet that calamine
must read: with rich text, times, durations, or XML that few programs write. A property test (test_sheet_values.py)
holds both equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import unescape

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sources.files.number_formats import DateKind, NumberFormat
from sources.files.sheet_cells import DIGITS, CellKind, SheetColumn, formatted, number_texts

Ints = npt.NDArray[np.int64]
_ATTRIBUTES: Final = re.compile(r'(?: \w+="[^"<>&]*")*>\s*')
_ATTRIBUTE: Final = re.compile(r'(\w+)="([^"]*)"')
_SPACED: Final = b'<t xml:space="preserve">'
SHARED_STRINGS: Final = "xl/sharedStrings.xml"
MAX_STRINGS_BYTES: Final = 64 << 20
"""Of the shared strings, whose tags are found all at once."""
_OTHER_ENTITY: Final = re.compile("&(?!(?:amp|lt|gt|quot|apos);)")
_ENCODED: Final = "\r|_x[0-9A-Fa-f]{4}_"
_CANONICAL: Final = r"^-?(?:[1-9][0-9]*(?:\.[0-9]*[1-9])?|0\.0{0,3}(?:[1-9][0-9]*)?[1-9])$|^0$"
"""A number that is its own text, if it is short."""
_FIRST_DAY, _LAST_DAY = 61, 2_958_465
"""Serial numbers of 1 March 1900, after a day that only spreadsheets know, and of the last day of 9999."""
_UNIX_DAY: Final = 25_569
_DAY_MS: Final = 86_400_000
_KINDS: Final = {"n": CellKind.NUMBER, "date": CellKind.DATE, "b": CellKind.LOGICAL}
_TYPES: Final = ("s", "str", "inlineStr", "e", *_KINDS)
_TEXT: Final = pa.string()


class _NotPlain(Exception):
    """The sheet must be read by calamine."""


class CellTags(NamedTuple):
    """Where the cells with content are in a part of the XML.

    Attributes:
        codes: the bytes of the XML, and more.
        tags: where each tag begins.
        cells: by cell, the position of its tag in `tags`.
        attributes: where the attributes after `r="A1"` begin.
        rows, columns: of each cell, 1-based.
    """

    codes: npt.NDArray[np.uint8]
    tags: Ints
    cells: Ints
    attributes: Ints
    rows: Ints
    columns: Ints


def cell_tags(xml: bytes) -> CellTags | None:
    """The cells with content; None if the tag of a cell has another form than `<c r="A1" …>`."""
    codes = np.frombuffer(xml + bytes(32), np.uint8)
    tags = np.flatnonzero(codes[:-32] == ord("<"))
    cells = np.flatnonzero((codes[tags + 1] == ord("c")) & (codes[tags + 2] < ord("A")))  # the end of the name
    closed = np.flatnonzero((codes[:-1] == ord("/")) & (codes[1:] == ord(">")))
    if closed.size:
        quotes = np.flatnonzero(codes == ord('"'))
        owners = np.searchsorted(tags, closed) - 1
        is_outside = (np.searchsorted(quotes, closed) - np.searchsorted(quotes, tags[owners])) % 2 == 0
        cells = np.setdiff1d(cells, owners[is_outside], assume_unique=True)
    places = tags[cells] + 2
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
    return CellTags(codes, tags, cells, places + 1, numbers[1], numbers[0])


class PlainCells:
    """Collects the cells of a sheet."""

    def __init__(self) -> None:
        self._is_plain = True
        self._attributes: list[pa.Array] = []
        self._texts: list[pa.Array] = []
        self._numbers: list[tuple[npt.NDArray[Any], ...]] = []

    def add(self, xml: bytes, found: CellTags) -> None:
        """Adds the cells of a part of the XML."""
        if not self._is_plain or not found.cells.size:
            return
        try:
            values = _values(xml, found.codes, found.tags, found.cells)
        except _NotPlain:
            self._is_plain = False
            return
        bounds = (found.attributes, found.tags[found.cells + 1], values.begins, values.ends)
        slices = _slices(xml, np.stack(bounds, axis=1))
        count = len(found.cells)
        self._attributes.append(slices.take(pa.array(np.arange(count) * 4)))
        self._texts.append(slices.take(pa.array(np.arange(count) * 4 + 2)))
        rows, columns = found.rows.astype(np.int32), found.columns.astype(np.int16)
        self._numbers.append((rows, columns, values.is_spaced, values.is_text))

    def sheet_columns(
        self, strings: bytes, dates: Mapping[str, DateKind], formats: Mapping[int, Mapping[int, NumberFormat]]
    ) -> tuple[int, list[SheetColumn]] | None:
        """The 0-based number of the first column, and the columns from there on; None if calamine must read the sheet.

        Args:
            strings: the XML of the shared strings; empty if there is none.
            dates: of a style whose numbers may be dates or times.
            formats: number formats other than digits, by column and row.
        """
        if not self._is_plain or not self._texts:
            return None
        try:
            return self._sheet_columns(strings, dates, formats)
        except (_NotPlain, pa.ArrowInvalid, pa.ArrowIndexError):
            return None

    def _sheet_columns(
        self, strings: bytes, dates: Mapping[str, DateKind], formats: Mapping[int, Mapping[int, NumberFormat]]
    ) -> tuple[int, list[SheetColumn]]:
        rows, columns, is_spaced, is_text = map(np.concatenate, zip(*self._numbers, strict=True))
        attributes = pa.concat_arrays(self._attributes).dictionary_encode()
        types = [_cell_type(text.decode(), dates) for text in attributes.dictionary.to_pylist()]
        codes = np.array(list(map(_TYPES.index, types)), np.int8)[attributes.indices]
        if (is_text != (codes == _TYPES.index("inlineStr"))).any():
            raise _NotPlain
        texts = pa.concat_arrays(self._texts).cast(_TEXT)
        converted = pa.repeat("", len(texts))
        for code, name in enumerate(_TYPES):
            is_type = codes == code
            if is_type.any():
                own = _converted(name, texts.filter(pa.array(is_type)), is_spaced[is_type], strings)
                converted = own if is_type.all() else pc.replace_with_mask(converted, is_type, own)
        kinds = np.append(np.array([_KINDS.get(name, CellKind.TEXT) for name in _TYPES], np.int8)[codes], np.int8(0))
        texts = pa.concat_arrays([converted, pa.array([""])])  # the last one is that of an empty cell
        order, lines = np.argsort(columns, kind="stable"), int(rows.max())
        result = []
        left, right = int(columns.min()), int(columns.max())
        bounds = np.searchsorted(columns[order], np.arange(left, right + 2))
        for column, (begin, end) in enumerate(pairwise(bounds.tolist()), left - 1):
            cells = order[begin:end]
            if (np.diff(rows[cells]) < 1).any():  # out of order, or twice
                raise _NotPlain
            places = np.full(lines, len(codes))
            places[rows[cells] - 1] = cells
            shown = sorted((row - 1, shape) for row, shape in formats.get(column, {}).items() if row <= lines)
            taken, of_cells = texts.take(pa.array(places)), kinds[places]
            result.append(formatted(taken, of_cells, shown) if shown else SheetColumn(taken, of_cells))
        return left - 1, result


class _Values(NamedTuple):
    """Where the value of each cell begins and ends, whether its spaces are kept, and whether it is in a tag `t`."""

    begins: Ints
    ends: Ints
    is_spaced: npt.NDArray[np.bool_]
    is_text: npt.NDArray[np.bool_]


def _values(xml: bytes, codes: npt.NDArray[np.uint8], tags: Ints, owners: Ints) -> _Values:
    """The text in the only tag `v` or `t` after each of the owners, which are positions in `tags`."""
    first, second = codes[tags + 1], codes[tags + 2]
    is_text = second == ord("t")
    ends = np.flatnonzero((first == ord("/")) & (is_text | (second == ord("v"))) & (codes[tags + 3] == ord(">")))
    is_regular = len(ends) == len(owners) and (ends > owners).all() and (ends[:-1] < owners[1:]).all()
    if not is_regular or (first == ord("!")).any():  # a comment or CDATA
        raise _NotPlain
    begins, is_text = tags[ends - 1], is_text[ends]
    is_spaced = second[ends - 1] == ord(" ")
    is_other = (second[ends - 1] != ord(">")) & ~is_spaced
    if (first[ends - 1] != second[ends]).any() or is_other.any():
        raise _NotPlain
    if is_spaced.any() and is_spaced.sum() != xml.count(_SPACED):
        raise _NotPlain
    return _Values(begins + np.where(is_spaced, len(_SPACED), 3), tags[ends], is_spaced, is_text)


def _slices(data: bytes, bounds: Ints) -> pa.Array:
    """The bytes between each offset and the next one, without a copy."""
    offsets = bounds.astype(np.int32).ravel()
    return pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _cell_type(attributes: str, dates: Mapping[str, DateKind]) -> str:
    """The type of a cell with these attributes: one of `_TYPES`."""
    if not _ATTRIBUTES.fullmatch(attributes):
        raise _NotPlain
    given: dict[str, str] = dict(_ATTRIBUTE.findall(attributes))
    kind = given.get("t", "n")
    if kind == "n" and (date := dates.get(given.get("s", "0"))):
        kind = date
    if kind not in _TYPES:
        raise _NotPlain
    return kind


def _converted(kind: str, texts: pa.Array, is_spaced: npt.NDArray[np.bool_], strings: bytes) -> pa.Array:
    """The texts of the cells of one type."""
    if kind == "s":
        return _shared(strings).take(texts.cast(pa.int32()))
    if kind in ("str", "inlineStr"):
        return _unescaped(texts, is_spaced)
    if kind == "e":
        return pa.repeat("", len(texts))
    if kind == "b":
        if not pc.all(pc.is_in(texts, pa.array(["0", "1"]))).as_py():
            raise _NotPlain
        return pc.if_else(pc.equal(texts, "1"), "TRUE", "FALSE")
    if kind == "date":
        return _dates(np.asarray(texts.cast(pa.float64())))
    is_short = pc.less_equal(pc.binary_length(texts), DIGITS)
    others = ~np.asarray(pc.and_(is_short, pc.match_substring_regex(texts, _CANONICAL)))
    numbers = np.asarray(texts.filter(pa.array(others)).cast(pa.float64()))
    if not np.isfinite(numbers).all():
        raise _NotPlain
    return pc.replace_with_mask(texts, others, number_texts(numbers)) if others.any() else texts


def _shared(xml: bytes) -> pa.Array:
    codes = np.frombuffer(xml + bytes(32), np.uint8)
    tags = np.flatnonzero(codes == ord("<"))
    owners = np.flatnonzero((codes[tags + 1] == ord("s")) & (codes[tags + 2] == ord("i")))
    if not owners.size:
        raise _NotPlain
    values = _values(xml, codes, tags, owners)
    texts = _slices(xml, np.stack((values.begins, values.ends), axis=1)).take(pa.array(np.arange(len(owners)) * 2))
    return _unescaped(texts.cast(_TEXT), values.is_spaced)


def _unescaped(texts: pa.Array, is_spaced: npt.NDArray[np.bool_]) -> pa.Array:
    is_trimmed = pc.and_(pc.match_substring_regex(texts, r"^\s|\s$"), pa.array(~is_spaced))
    if pc.any(is_trimmed).as_py() or pc.any(pc.match_substring_regex(texts, _ENCODED)).as_py():
        raise _NotPlain
    has_entity = pc.match_substring(texts, "&")
    if not pc.any(has_entity).as_py():
        return texts
    escaped = texts.filter(has_entity).to_pylist()
    if any(map(_OTHER_ENTITY.search, escaped)):
        raise _NotPlain
    return pc.replace_with_mask(
        texts, has_entity, pa.array([unescape(text, {"&quot;": '"', "&apos;": "'"}) for text in escaped], _TEXT)
    )


def _dates(serials: npt.NDArray[np.float64]) -> pa.Array:
    """Days, and days with a time in whole seconds."""
    if not ((serials >= _FIRST_DAY) & (serials < _LAST_DAY + 1)).all():
        raise _NotPlain
    days = pa.array((serials - _UNIX_DAY).astype(np.int32)).cast(pa.date32()).cast(_TEXT)
    is_day = serials == np.trunc(serials)
    if is_day.all():
        return days
    milliseconds = np.floor((serials[~is_day] - _UNIX_DAY) * _DAY_MS + 0.5).astype(np.int64)
    if (milliseconds % 1000).any() or (milliseconds % _DAY_MS == 0).any():
        raise _NotPlain
    times = pc.strftime(pa.array(milliseconds // 1000, pa.timestamp("s")), format="%Y-%m-%dT%H:%M:%S")
    return pc.replace_with_mask(days, ~is_day, times)
