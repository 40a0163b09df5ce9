"""Fields beside the contract: the JSON text that `_extra` holds, values as they came.

In: pages and the names to look for. Out: one text per row, or per object in an array of the rows, and how often each
name was given. The reader steps over all other fields and writes each object again in one pass; nothing is built per
field but a view of its bytes.
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
from sources.decode.rows import Page

_LINES: Final = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class ExtraFields:
    """`_extra` of each object, null where it has nothing; and how many objects give each name."""

    texts: pa.Array
    counts: Counter[str]


def read_beside(pages: Sequence[Page], names: frozenset[str], array: str | None = None) -> ExtraFields:
    """The texts of the fields of these names.

    Args:
        pages: the pages, all rows objects.
        names: the fields wanted, of the rows or of the objects in `array`.
        array: the field of the rows whose objects are meant; None for the rows.

    Raises:
        Refused: a name that only the row path can write.
        msgspec.MsgspecError: a row, or an item of the array, is no object.
        RecursionError: nested too deeply.
    """
    wanted = tuple(sorted(names))
    decoder = _decoder(wanted, array)
    items = list(chain.from_iterable(decoder.decode(page.rows) for page in pages))
    if array is not None:
        items = list(chain.from_iterable(row.items or () for row in items))
    counts: Counter[str] = Counter()
    for n, name in enumerate(wanted):
        values = list(map(attrgetter(f"f{n}"), items))
        counts[name] = len(values) - values.count(UNSET)
    if any(b"\n" in page.rows for page in pages):  # a value may hold a line's end: written one by one
        texts = pa.array([msgspec.json.encode(item).decode() for item in items], pa.string())
    else:
        data = _LINES.encode_lines(items)
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
        if len(ends) != len(items) or len(data) >= 2**31:
            raise ColumnarFallback
        texts = _lines(data, ends)
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
