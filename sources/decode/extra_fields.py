"""`_extra`: the JSON text of fields that have no column, values as they were written.

In: pages and field names. Out: one text per row, or per object in an array of the rows, and how often each name occurs.
The reader steps over all other fields and encodes each object again in one pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import compress
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, Raw, UnsetType

from sources.decode.ndjson import ColumnarFallback
from sources.decode.rows import DEPTH_MAX, Page

_BRACKETS: Final = r"[\[{]"
_ALL: Final[Mapping[str, pa.Array]] = {}
_encoder: Final = msgspec.json.Encoder()


def read_extra_fields(
    pages: Sequence[Page], names: frozenset[str], array: str = "", selected: Mapping[str, pa.Array] = _ALL
) -> tuple[pa.Array, Counter[str]]:
    """Reads the fields with these names in the rows, or in the objects of one of their arrays.

    Args:
        pages: the rows.
        names: of the fields.
        array: the field with the objects; empty for the rows.
        selected: of fields that not all objects are to have in `_extra`: which ones are.

    Returns:
        `_extra` of each object, null if it has no such field; and how many objects have each field.

    Raises:
        ColumnarFallback: a name or a value that only the row-by-row path handles.
        msgspec.MsgspecError: a row, or an item of the array, is not an object.
        RecursionError: too many levels.
    """
    attributes = {name: f"f{n}" for n, name in enumerate(sorted(names))}
    decoder = _decoder(tuple(attributes), array)
    has_line_ends = any(b"\n" in page.rows for page in pages)
    counts: Counter[str] = Counter()
    parts: list[bytes] = []
    total = 0
    for page in pages:  # the objects of one page at a time: they need far more memory than their texts
        items = decoder.decode(page.rows)
        if array:
            items = [item for row in items for item in row.items or ()]
        for name, is_selected in selected.items():
            for item in compress(items, pc.invert(is_selected.slice(total, len(items))).to_pylist()):
                setattr(item, attributes[name], UNSET)
        for name, attribute in attributes.items():
            counts[name] += len(items) - list(map(attrgetter(attribute), items)).count(UNSET)
        parts += map(_encoder.encode, items) if has_line_ends else [_encoder.encode_lines(items)]
        total += len(items)
    if has_line_ends:  # a value may hold one
        texts = pa.array([text.decode() for text in parts], pa.string())
    else:
        data = b"".join(parts)
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
        if len(ends) != total or len(data) >= 2**31:
            raise ColumnarFallback
        texts = _lines(data, ends)
    if pc.any(pc.greater(pc.count_substring_regex(texts, _BRACKETS), DEPTH_MAX)).as_py():
        raise ColumnarFallback  # it may be nested too deeply
    return pc.if_else(pc.equal(texts, "{}"), pa.scalar(None, pa.string()), texts), +counts


def _lines(data: bytes, ends: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
    """Lines as an array, without their ends."""
    offsets = np.concatenate(([0], ends + 1)).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pc.utf8_slice_codeunits(pa.Array.from_buffers(pa.string(), len(ends), buffers), 0, -1)


@lru_cache(maxsize=64)
def _decoder(names: tuple[str, ...], array: str) -> msgspec.json.Decoder[Any]:
    members = [(f"f{n}", Raw | UnsetType, UNSET) for n in range(len(names))]
    try:
        item = msgspec.defstruct("Item", members, rename={f"f{n}": name for n, name in enumerate(names)}, gc=False)
    except ValueError:  # a quote or a control character in a name
        raise ColumnarFallback from None
    if array:
        rows = list[item] | None  # type: ignore[valid-type]
        item = msgspec.defstruct("Row", [("items", rows, None)], rename={"items": array})
    return msgspec.json.Decoder(list[item])  # type: ignore[valid-type]
