"""Where the cells of a sheet and their values are in its XML, found with numpy: no cell becomes a Python object.

In: XML. Out: positions in it. `NotPlain` is raised for any other tags than those that most programs write.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
_SPACED: Final = b'<t xml:space="preserve">'


class NotPlain(Exception):
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
        ends = np.flatnonzero(codes == ord(">"))
        is_outside &= np.searchsorted(ends, closed) == np.searchsorted(ends, tags[owners])  # of the tag, not in a text
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


class Values(NamedTuple):
    """Where the value of each cell begins and ends, whether its spaces are kept, and whether it is in a tag `t`.

    `end_tags` are positions in the tags, of those that end the values.
    """

    end_tags: Ints
    begins: Ints
    ends: Ints
    is_spaced: npt.NDArray[np.bool_]
    is_text: npt.NDArray[np.bool_]


def values_in(xml: bytes, codes: npt.NDArray[np.uint8], tags: Ints, owners: Ints) -> Values:
    """The text in the only tag `v` or `t` after each of the owners, which are positions in `tags`."""
    first, second = codes[tags + 1], codes[tags + 2]
    is_text = second == ord("t")
    ends = np.flatnonzero((first == ord("/")) & (is_text | (second == ord("v"))) & (codes[tags + 3] == ord(">")))
    if len(ends) != len(owners) or (ends < owners + 2).any() or (ends[:-1] > owners[1:]).any():
        raise NotPlain
    begins, is_text = tags[ends - 1], is_text[ends]
    is_spaced = second[ends - 1] == ord(" ")
    is_other = (second[ends - 1] != ord(">")) & ~is_spaced
    if (first[ends - 1] != second[ends]).any() or is_other.any():
        raise NotPlain
    if is_spaced.any() and is_spaced.sum() != xml.count(_SPACED):
        raise NotPlain
    return Values(ends, begins + np.where(is_spaced, len(_SPACED), 3), tags[ends], is_spaced, is_text)


def check_cells(found: CellTags, values: Values) -> None:
    """Raises NotPlain for a cell with other tags than its formula and value, or its inline text."""
    codes, last = found.codes, len(found.tags) - 1

    def is_tag(positions: Ints, form: bytes) -> npt.NDArray[np.bool_]:
        places = found.tags[np.minimum(positions, last)]
        matches = [codes[places + at] == char for at, char in enumerate(form)]
        return np.asarray(np.logical_and.reduce(matches), np.bool_)

    inner, ends = found.cells + 1, values.end_tags
    size = ends - inner
    has_formula = is_tag(inner, b"<f>") | is_tag(inner, b"<f ")
    is_formula = has_formula & ((size == 2) | (is_tag(inner + 1, b"</f>") & (size == 3)))
    is_value = ((size == 1) | is_formula) & is_tag(ends + 1, b"</c>")
    is_inline = (size == 2) & is_tag(inner, b"<is>") & is_tag(ends + 1, b"</is>") & is_tag(ends + 2, b"</c>")
    if not np.where(values.is_text, is_inline, is_value).all():
        raise NotPlain


def slices(data: bytes, bounds: Ints) -> pa.Array:
    """The bytes between each offset and the next one, without a copy."""
    offsets = bounds.astype(np.int32).ravel()
    return pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
