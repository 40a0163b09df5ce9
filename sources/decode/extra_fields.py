"""Fields of rows that have no column: the text of `_extra`, read from the bytes of a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import compress
from operator import attrgetter
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, UnsetType

from orderbridge.sources.decode.ndjson import ColumnarFallback, text_array
from orderbridge.sources.decode.rows import (
    DEPTH_MAX,
    SECRETS,
    Page,
    is_secret,
    mask_secrets,
)

_BRACKETS: Final = r"[\[{]"
_ALL: Final[Mapping[str, pa.Array]] = {}
_encoder: Final = msgspec.json.Encoder()


def read_extra_fields(
    pages: Sequence[Page],
    names: frozenset[str],
    array: str = "",
    selected: Mapping[str, pa.Array] = _ALL,
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
        ColumnarFallback: a name that only the row-by-row path handles, or it may be nested too deeply.
        msgspec.MsgspecError: a row, or an item of the array, is not an object.
        RecursionError: too many levels.
    """
    attributes = {name: f"f{n}" for n, name in enumerate(sorted(names))}
    decoder = _decoder(tuple(attributes), array)
    masks = [(attributes[name], pc.invert(mask).to_pylist()) for name, mask in selected.items()]
    counts: Counter[str] = Counter()
    texts: list[bytes] = []
    # the objects of one page at a time: they need far more memory than their texts
    for page in pages:
        items = decoder.decode(page.rows)
        if array:
            items = [item for row in items for item in row.items or ()]
        for attribute, is_left in masks:
            for item in compress(items, is_left[len(texts) :]):
                setattr(item, attribute, UNSET)
        for name, attribute in attributes.items():
            values = list(map(attrgetter(attribute), items))
            counts[name] += len(items) - values.count(UNSET)
        texts += map(_encoder.encode, items)
    extra = text_array(texts)
    brackets = pc.count_substring_regex(extra, _BRACKETS)
    if pc.any(pc.greater(brackets, DEPTH_MAX)).as_py():
        raise ColumnarFallback
    nested = extra.filter(pc.greater(brackets, 1))
    if any(map(is_secret, names)) or pc.any(pc.match_substring_regex(nested, SECRETS)).as_py():
        extra = text_array(list(map(mask_secrets, texts)))
    return pc.if_else(pc.equal(extra, "{}"), pa.scalar(None, pa.string()), extra), +counts


@lru_cache(maxsize=64)
def _decoder(names: tuple[str, ...], array: str) -> msgspec.json.Decoder[Any]:
    """Reads these fields alone, as f0, f1 …, each as it is written: a third faster than all fields of a row."""
    members = [(f"f{n}", msgspec.Raw | UnsetType, UNSET) for n in range(len(names))]
    given = {f"f{n}": name for n, name in enumerate(names)}
    try:
        item = msgspec.defstruct("Item", members, rename=given, gc=False)
    except ValueError:  # a quote or a control character in a name
        raise ColumnarFallback from None
    rows: Any = list[item] | None  # type: ignore[valid-type]
    row = item
    if array:
        row = msgspec.defstruct("Row", [("items", rows, None)], rename={"items": array})
    return msgspec.json.Decoder(list[row])  # type: ignore[valid-type]
