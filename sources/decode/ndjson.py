"""Pages as newline-delimited JSON, parsed by `pyarrow.json` with a declared type.

In: pages and the type of a row. Out: all rows as one struct array, with the page and position of each. Whatever the
parser would read differently from the row-by-row path raises, and the caller falls back to that path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from orderbridge.sources.decode.rows import Page

_BLOCK_MIN: Final = 1 << 20
T = TypeVar("T")


class ColumnarFallback(Exception):
    """A columnar check failed; the rows are read one by one."""


@dataclass(frozen=True, slots=True)
class ParsedRows:
    """All rows of some pages; `place` is `_page` and `_position`."""

    rows: pa.StructArray
    place: list[pa.Array]


class NdjsonBatch:
    """Pages as one text, a line each: in memory once for all that needs it whole."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = pages
        self.data = b"".join([part for page in pages for part in (b'{"rows":', page.rows, b"}\n")])

    def as_value(self, kind: pa.DataType) -> pa.Array:
        """An array of one value, `large_string` or `large_binary`; neither copied nor validated."""
        offsets = pa.py_buffer(np.array([0, len(self.data)], np.int64))
        return pa.Array.from_buffers(kind, 1, [None, offsets, pa.py_buffer(self.data)])

    def is_clean(self) -> bool:
        """Whether all bytes are UTF-8 and no NUL is written in them; the parser checks neither."""
        if b"\\" in self.data and b"\\u0000" in self.data:  # one byte is found far faster than six
            return False
        try:
            self.as_value(pa.large_string()).validate(full=True)
        except pa.ArrowInvalid:
            return False
        return True


def parse(
    text: NdjsonBatch, row: pa.StructType, unexpected: Literal["error", "ignore", "infer"]
) -> ParsedRows:
    """Parses pages at once.

    Raises:
        ColumnarFallback: not one array per page, or a row that is null.
        pyarrow.ArrowInvalid: not JSON, a value of another type, a repeated name, or arrays that contradict themselves
            (pyarrow 26 makes such arrays of an undeclared list of nulls, and of decimals with too many digits).
    """
    pages = text.pages
    has_line_ends = any(b"\n" in page.rows or b"\r" in page.rows for page in pages)
    table = pj.read_json(
        pa.BufferReader(text.data),
        read_options=pj.ReadOptions(
            block_size=max(_BLOCK_MIN, 16 + max(len(page.rows) for page in pages))
        ),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema([("rows", pa.list_(row))]),
            newlines_in_values=has_line_ends,
            unexpected_field_behavior=unexpected,
        ),
    )
    if table.num_columns != 1 or table.num_rows != len(pages) or table.column(0).null_count:
        raise ColumnarFallback
    table.validate()
    rows, parents = items_of(pa.concat_arrays(table.column(0).chunks))
    _check_decimals(rows)
    numbers = int32_array(np.array([page.number for page in pages]))
    return ParsedRows(rows, [numbers.take(parents), positions(parents)])


def attempted(pages: Sequence[Page], read: Callable[[NdjsonBatch], T]) -> T | None:
    """What the fast path reads of pages; None if a check fails."""
    if not pages or not (text := NdjsonBatch(pages)).is_clean():
        return None
    try:
        return read(text)
    except (
        ColumnarFallback,
        msgspec.MsgspecError,
        RecursionError,
        pa.ArrowInvalid,
        pa.ArrowNotImplementedError,
    ):
        return None


def _check_decimals(array: pa.Array) -> None:
    """Raises pyarrow.ArrowInvalid for a decimal with more digits than its type has."""
    if pa.types.is_struct(array.type):
        for n in range(array.type.num_fields):
            _check_decimals(array.field(n))
    elif pa.types.is_list(array.type):
        _check_decimals(array.values)
    elif pa.types.is_decimal(array.type):
        array.validate(full=True)


def items_of(arrays: pa.ListArray) -> tuple[pa.StructArray, pa.Array]:
    """The objects of all arrays, and the number of the row of each. Raises ColumnarFallback for one that is null."""
    items = arrays.flatten()
    if items.null_count:
        raise ColumnarFallback
    return items, pc.list_parent_indices(arrays)


def positions(parents: pa.Array) -> pa.Array:
    """The position of each item in its list, from 1; `parents` as Arrow's `list_parent_indices` gives them."""
    starts = np.flatnonzero(np.diff(np.from_dlpack(parents), prepend=-1))
    lengths = np.diff(starts, append=len(parents))
    return int32_array(np.arange(1, len(parents) + 1) - np.repeat(starts, lengths))


# `pa.array` and `pa.scalar` import pandas, which costs a pull a quarter of a second.


def int32_array(values: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
    """Numbers as an array of Arrow."""
    return pa.Array.from_buffers(
        pa.int32(), len(values), [None, pa.py_buffer(values.astype(np.int32))]
    )


@lru_cache(maxsize=16)
def text_scalar(text: str) -> pa.StringScalar:
    """A text for Arrow's functions."""
    return text_array([text.encode()])[0]


def text_array(texts: Sequence[bytes]) -> pa.StringArray:
    """Texts in UTF-8 as an array of Arrow."""
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(texts), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))]
    )


def has_blank(texts: pa.Array) -> bool:
    """Whether a text is empty or whitespace, as `str.isspace` has it."""
    return bool(
        pc.min(pc.binary_length(texts)).as_py() == 0 or pc.any(pc.utf8_is_space(texts)).as_py()
    )
