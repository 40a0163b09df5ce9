"""Pages as one newline-delimited text, parsed by `pyarrow.json` with a declared type.

In: pages and the type of a row. Out: all rows as one struct array, with the page and position of each. A text that the
parser would read in another way than row by row is refused: documents that are not one per page, rows that are null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from sources.decode.rows import Page

_BLOCK_MIN: Final = 1 << 20


class ColumnarFallback(Exception):
    """A columnar check failed; the rows have to be looked at."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """All rows of some pages; `place` holds `_page` and `_position`."""

    rows: pa.StructArray
    place: list[pa.Array]


class NdjsonBatch:
    """Pages as one text, a line each, in memory once for all that reads it whole."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = pages
        self.data = b"".join([part for page in pages for part in (b'{"rows":', page.rows, b"}\n")])

    def as_value(self, kind: pa.DataType) -> pa.Array:
        """The one value of an array of that kind, `large_string` or `large_binary`; not copied, and not looked at."""
        offsets = pa.py_buffer(np.array([0, len(self.data)], np.int64))
        return pa.Array.from_buffers(kind, 1, [None, offsets, pa.py_buffer(self.data)])

    def is_clean(self) -> bool:
        """Whether all bytes are UTF-8, and no NUL is written in it.

        The parser checks neither the fields that it skips nor those that it keeps.
        """
        if b"\\" in self.data and b"\\u0000" in self.data:  # one byte is found far faster than six
            return False
        try:
            self.as_value(pa.large_string()).validate(full=True)
        except pa.ArrowInvalid:
            return False
        return True


def parse(text: NdjsonBatch, row: pa.StructType, unexpected: Literal["error", "ignore", "infer"]) -> Parsed:
    """Parses pages at once.

    Raises:
        Refused: not one document per page, or a row that is null.
        pyarrow.ArrowInvalid: a value is not of the declared type, a name comes twice, the text is no JSON, or the
            parser made arrays that contradict themselves (pyarrow 26 does so of an undeclared list of nulls).
    """
    pages = text.pages
    broken = any(b"\n" in page.rows or b"\r" in page.rows for page in pages)
    table = pj.read_json(
        pa.BufferReader(text.data),
        read_options=pj.ReadOptions(block_size=max(_BLOCK_MIN, 16 + max(len(page.rows) for page in pages))),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema([("rows", pa.list_(row))]),
            newlines_in_values=broken,
            unexpected_field_behavior=unexpected,
        ),
    )
    if table.num_columns != 1 or table.num_rows != len(pages):
        raise ColumnarFallback
    table.validate()
    lists = table.column(0).combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks)
    parsed = lists.flatten()
    if lists.null_count or parsed.null_count:
        raise ColumnarFallback
    lengths = np.diff(lists.offsets.to_numpy())
    starts = np.cumsum(lengths) - lengths
    position = np.arange(1, len(parsed) + 1) - np.repeat(starts, lengths)
    number = np.repeat(np.array([page.number for page in pages]), lengths)
    return Parsed(parsed, [pa.array(number, pa.int32()), pa.array(position, pa.int32())])
