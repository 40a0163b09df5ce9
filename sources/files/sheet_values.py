"""Columns of a sheet straight from its XML, with the same cells as calamine gives, in a third of its time.

In: parts of the XML in which `cell_tags` has found the cells. Out: `SheetColumn`s, or None for a sheet that calamine
must read: with rich text, times, durations, or XML that few programs write. Property tests hold both equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final
from xml.sax.saxutils import unescape

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sources.files.number_formats import DateKind, NumberFormat
from sources.files.sheet_cells import DIGITS, CellKind, SheetColumn, formatted, number_texts
from sources.files.sheet_tags import CellTags, NotPlain, check_cells, slices, values_in

_ATTRIBUTES: Final = re.compile(r'(?: \w+="[^"<>&]*")*>\s*')
_ATTRIBUTE: Final = re.compile(r'(\w+)="([^"]*)"')
_STYLE: Final = re.compile("0|[1-9][0-9]*")
_POSITION: Final = re.compile("[A-Z]+[0-9]+")
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


class PlainCells:
    """Collects the cells of a sheet, as long as they are plain: then calamine finds the same."""

    def __init__(self) -> None:
        self.is_plain = True
        self._is_begun = self._is_ended = False
        self._attributes: list[pa.Array] = []
        self._texts: list[pa.Array] = []
        self._numbers: list[tuple[npt.NDArray[Any], ...]] = []

    def add(self, xml: bytes, found: CellTags) -> None:
        """Adds the cells of a part of the XML."""
        size = found.cells.size
        begin = 0 if self._is_begun else xml.find(b"<sheetData>")
        end = 0 if self._is_ended else xml.find(b"</sheetData>") % (len(xml) + 1)  # the length if it is not there
        has_other = b"<!" in xml or xml.find(b"<?", 0 if self._is_begun else 4) >= 0  # than `<?xml` at the start
        self._is_begun, self._is_ended = begin >= 0, end < len(xml)
        cells = found.tags[found.cells]
        is_inside = not size or (self._is_begun and bool(cells[0] >= begin and cells[-1] < end))
        self.is_plain = self.is_plain and is_inside and not has_other
        if not self.is_plain or not size:
            return
        try:
            values = values_in(xml, found.codes, found.tags, found.cells)
            check_cells(found, values)
        except NotPlain:
            self.is_plain = False
            return
        bounds = (found.attributes, found.tags[found.cells + 1], values.begins, values.ends)
        parts = slices(xml, np.stack(bounds, axis=1))
        self._attributes.append(parts.take(pa.array(np.arange(size) * 4)))
        self._texts.append(parts.take(pa.array(np.arange(size) * 4 + 2)))
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
        if not self.is_plain or not self._is_ended or not self._texts:
            return None
        try:
            return self._sheet_columns(strings, dates, formats)
        except (NotPlain, pa.ArrowException, UnicodeDecodeError):
            return None

    def _sheet_columns(
        self, strings: bytes, dates: Mapping[str, DateKind], formats: Mapping[int, Mapping[int, NumberFormat]]
    ) -> tuple[int, list[SheetColumn]]:
        rows, columns, is_spaced, is_text = map(np.concatenate, zip(*self._numbers, strict=True))
        attributes = pa.concat_arrays(self._attributes).dictionary_encode()
        types = [_cell_type(text.decode(), dates) for text in attributes.dictionary.to_pylist()]
        codes = np.array(list(map(_TYPES.index, types)), np.int8)[attributes.indices]
        if (is_text != (codes == _TYPES.index("inlineStr"))).any() or (np.diff(rows) < 0).any():
            raise NotPlain
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
            if (np.diff(rows[cells]) < 1).any():  # a cell twice
                raise NotPlain
            places = np.full(lines, len(codes))
            places[rows[cells] - 1] = cells
            shown = sorted((row - 1, shape) for row, shape in formats.get(column, {}).items() if row <= lines)
            taken, of_cells = texts.take(pa.array(places)), kinds[places]
            result.append(formatted(taken, of_cells, shown) if shown else SheetColumn(taken, of_cells))
        return left - 1, result


def _cell_type(attributes: str, dates: Mapping[str, DateKind]) -> str:
    """The type of a cell with these attributes: one of `_TYPES`."""
    if not _ATTRIBUTES.fullmatch(attributes):
        raise NotPlain
    given: dict[str, str] = dict(_ATTRIBUTE.findall(attributes))
    kind, style = given.get("t", "n"), given.get("s")
    if kind == "n" and style is not None:
        kind = dates.get(style, kind)
    is_canonical = (style is None or _STYLE.fullmatch(style)) and _POSITION.fullmatch(given.get("r", "A1"))
    if kind not in _TYPES or not is_canonical:
        raise NotPlain
    return kind


def _converted(kind: str, texts: pa.Array, is_spaced: npt.NDArray[np.bool_], strings: bytes) -> pa.Array:
    """The texts of the cells of one type."""
    if kind == "s":
        if pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():  # 0x1 is a number to Arrow
            raise NotPlain
        return _shared(strings).take(texts.cast(pa.int32()))
    if kind in ("str", "inlineStr"):
        return _unescaped(texts, is_spaced)
    if kind == "e":
        return pa.repeat("", len(texts))
    if kind == "b":
        if not pc.all(pc.is_in(texts, pa.array(["0", "1"]))).as_py():
            raise NotPlain
        return pc.if_else(pc.equal(texts, "1"), "TRUE", "FALSE")
    if kind == "date":
        return _dates(np.asarray(texts.cast(pa.float64())))
    is_short = pc.less_equal(pc.binary_length(texts), DIGITS)
    others = ~np.asarray(pc.and_(is_short, pc.match_substring_regex(texts, _CANONICAL)))
    numbers = np.asarray(texts.filter(pa.array(others)).cast(pa.float64()))
    if not np.isfinite(numbers).all():
        raise NotPlain
    return pc.replace_with_mask(texts, others, number_texts(numbers)) if others.any() else texts


def _shared(xml: bytes) -> pa.Array:
    """The shared strings, all of the form `<si><t>…</t></si>`."""
    codes = np.frombuffer(xml + bytes(32), np.uint8)
    tags = np.flatnonzero(codes == ord("<"))
    begin = 2 if xml.startswith((b"<?xml", b"\xef\xbb\xbf<?xml")) else 1
    owners = np.arange(begin, len(tags) - 1, 4)
    if not owners.size or len(tags) != begin + 4 * len(owners) + 1:
        raise NotPlain
    values = values_in(xml, codes, tags, owners)
    forms = {b"<sst ": tags[[begin - 1]], b"<si>": tags[owners], b"</si>": tags[owners + 3], b"</sst>": tags[[-1]]}
    if not values.is_text.all() or not all(
        (codes[places + at] == char).all() for form, places in forms.items() for at, char in enumerate(form)
    ):
        raise NotPlain
    texts = slices(xml, np.stack((values.begins, values.ends), axis=1)).take(pa.array(np.arange(len(owners)) * 2))
    return _unescaped(texts.cast(_TEXT), values.is_spaced)


def _unescaped(texts: pa.Array, is_spaced: npt.NDArray[np.bool_]) -> pa.Array:
    is_trimmed = pc.and_(pc.match_substring_regex(texts, r"^\s|\s$"), pa.array(~is_spaced))
    if pc.any(is_trimmed).as_py() or pc.any(pc.match_substring_regex(texts, _ENCODED)).as_py():
        raise NotPlain
    has_entity = pc.match_substring(texts, "&")
    if not pc.any(has_entity).as_py():
        return texts
    escaped = texts.filter(has_entity).to_pylist()
    if any(map(_OTHER_ENTITY.search, escaped)):
        raise NotPlain
    return pc.replace_with_mask(
        texts, has_entity, pa.array([unescape(text, {"&quot;": '"', "&apos;": "'"}) for text in escaped], _TEXT)
    )


def _dates(serials: npt.NDArray[np.float64]) -> pa.Array:
    """Days, and days with a time in whole seconds."""
    if not ((serials >= _FIRST_DAY) & (serials < _LAST_DAY + 1)).all():
        raise NotPlain
    days = pa.array((serials - _UNIX_DAY).astype(np.int32)).cast(pa.date32()).cast(_TEXT)
    is_day = serials == np.trunc(serials)
    if is_day.all():
        return days
    exact = (serials[~is_day] - _UNIX_DAY) * _DAY_MS
    milliseconds = np.rint(exact).astype(np.int64)
    is_rounded = np.abs(exact - milliseconds) > 0.25  # calamine, which is less exact, may round to the next one
    if is_rounded.any() or (milliseconds % 1000).any() or (milliseconds % _DAY_MS == 0).any():
        raise NotPlain
    times = pc.strftime(pa.array(milliseconds // 1000, pa.timestamp("s")), format="%Y-%m-%dT%H:%M:%S")
    return pc.replace_with_mask(days, ~is_day, times)
