"""`_extra`: the JSON text of fields that have no column, values as they were written.

In: pages and field names. Out: one text per row, or per object in an array of the rows, and how often each name occurs.
The reader steps over all other fields and encodes each object again in one pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
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
_encoder: Final = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class ExtraFields:
    """`_extra` of each object, null if it has no such field; and how many objects have each field."""

    texts: pa.Array
    counts: Counter[str]


def read_extra_fields(pages: Sequence[Page], names: frozenset[str], array: str | None = None) -> ExtraFields:
    """Reads the fields with these names in the rows, or in the objects of one of their arrays.

    Raises:
        ColumnarFallback: a name or a value that only the row-by-row path handles.
        msgspec.MsgspecError: a row, or an item of the array, is not an object.
        RecursionError: too many levels.
    """
    ordered = tuple(sorted(names))
    decoder = _decoder(ordered, array)
    items = list(chain.from_iterable(decoder.decode(page.rows) for page in pages))
    if array is not None:
        items = list(chain.from_iterable(row.items or () for row in items))
    counts: Counter[str] = Counter()
    for n, name in enumerate(ordered):
        values = list(map(attrgetter(f"f{n}"), items))
        counts[name] = len(values) - values.count(UNSET)
    if any(b"\n" in page.rows for page in pages):  # a value may hold a line end: encoded one by one
        texts = pa.array([msgspec.json.encode(item).decode() for item in items], pa.string())
    else:
        data = _encoder.encode_lines(items)
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
        if len(ends) != len(items) or len(data) >= 2**31:
            raise ColumnarFallback
        texts = _lines(data, ends)
    if pc.any(pc.greater(pc.count_substring_regex(texts, _BRACKETS), DEPTH_MAX)).as_py():
        raise ColumnarFallback  # it may be nested too deeply
    return ExtraFields(pc.if_else(pc.equal(texts, "{}"), pa.scalar(None, pa.string()), texts), +counts)


def _lines(data: bytes, ends: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
    """Lines as an array, without their ends."""
    offsets = np.concatenate(([0], ends + 1)).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pc.utf8_slice_codeunits(pa.Array.from_buffers(pa.string(), len(ends), buffers), 0, -1)


@lru_cache(maxsize=64)
def _decoder(names: tuple[str, ...], array: str | None) -> msgspec.json.Decoder[Any]:
    members = [(f"f{n}", Raw | UnsetType, UNSET) for n in range(len(names))]
    try:
        item = msgspec.defstruct("Item", members, rename={f"f{n}": name for n, name in enumerate(names)}, gc=False)
    except ValueError:  # a quote or a control character in a name
        raise ColumnarFallback from None
    if array is not None:
        rows = list[item] | None  # type: ignore[valid-type]
        item = msgspec.defstruct("Row", [("items", rows, None)], rename={"items": array})
    return msgspec.json.Decoder(list[item])  # type: ignore[valid-type]
