"""Columns as JSON texts, and JSON objects of them, without a Python object per row.

In: text columns: strings, plain numbers (`transforms.values.numbers`), or JSON texts. Out: JSON texts, null where
no value is given. Equal values have equal texts, whichever function writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.sources.kinds import KINDS
from orderbridge.transforms.frames import TEXT

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode
PLAIN: Final = ("text", "date", "identifier")
"""Types of the fields of a body whose columns have the text itself until it is written as JSON."""
_SPECIAL: Final = r'[\x00-\x1f"\\]'


def json_text(value: Any) -> str:  # noqa: ANN401 # as deep as JSON goes
    """JSON of one value; a decimal as its digits, without insignificant zeros."""
    if isinstance(value, Decimal):
        return format(value.normalize(), "f") if value else "0"
    return _encode(value).decode()


def strings(texts: pa.Array) -> pa.Array:
    """JSON strings."""
    quoted = pc.binary_join_element_wise('"', texts, '"', "")
    is_special = pc.fill_null(pc.match_substring_regex(texts, _SPECIAL), False)
    if not pc.any(is_special).as_py():
        return quoted
    escaped = [_encode(text).decode() for text in texts.filter(is_special).to_pylist()]
    return pc.replace_with_mask(quoted, is_special, pa.array(escaped, TEXT))


def numbers(texts: pa.Array) -> pa.Array:
    """JSON numbers of plain ones, without trailing zeros after the point."""
    has_point = pc.match_substring(texts, ".")
    if not pc.any(has_point).as_py():
        return texts
    return pc.if_else(has_point, pc.ascii_rtrim(pc.ascii_rtrim(texts, "0"), "."), texts)


def as_json(kind: str, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Columns of inputs whose texts are JSON too."""
    plain = {field.name for field in KINDS[kind].record.fields if field.type in PLAIN}
    return {name: strings(texts) if name in plain else texts for name, texts in columns.items()}


def objects(fields: Mapping[str, pa.Array]) -> pa.Array:
    """JSON objects of the given fields; null where there is none."""
    return joined({f'"{name}":': texts for name, texts in fields.items()}.items(), "{", "}")


def arrays(items: list[pa.Array]) -> pa.Array:
    """JSON arrays of the given items; null where there is none."""
    return joined([("", texts) for texts in items], "[", "]")


def joined(parts: Any, begin: str, end: str) -> pa.Array:  # noqa: ANN401 # pairs, in order
    """The given parts, each after its prefix, with commas between; null where no part is given."""
    # Each part brings its comma: a join that skips nulls leaves out the rows in which all are (pyarrow 26).
    none = pa.scalar(None, TEXT)
    pairs = list(parts)
    given = [
        pc.coalesce(pc.binary_join_element_wise(f",{prefix}", texts, ""), "")
        for prefix, texts in pairs
        if texts.null_count < len(texts)
    ]
    if not given:
        return pa.nulls(len(pairs[0][1]), TEXT)
    inner = pc.binary_join_element_wise(*given, "")
    members = pc.if_else(pc.equal(inner, ""), none, pc.utf8_slice_codeunits(inner, 1))
    return pc.binary_join_element_wise(begin, members, end, "")


def bytes_of(texts: pa.Array) -> bytes:
    """All texts, one after the other; none may be null."""
    if not len(texts):
        return b""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return bytes(memoryview(data)[bounds[0] : bounds[-1]]) if data is not None else b""
