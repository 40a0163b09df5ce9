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

from sources.rows import Page

_BLOCK_MIN: Final = 1 << 20


class Refused(Exception):
    """A columnar check failed; the rows have to be looked at."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """All rows of some pages; `place` holds `_page` and `_position`."""

    rows: pa.StructArray
    place: list[pa.Array]


def valid_utf8(pages: Sequence[Page]) -> bool:
    """Whether all bytes are UTF-8. The parser checks neither the fields that it skips nor those that it keeps."""
    data = b"".join(page.rows for page in pages)
    offsets = pa.py_buffer(np.array([0, len(data)], np.int64))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(data)]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def parse_pages(pages: Sequence[Page], row: pa.StructType, unexpected: Literal["error", "ignore", "infer"]) -> Parsed:
    """Parses pages at once.

    Raises:
        Refused: not one document per page, or a row that is null.
        pyarrow.ArrowInvalid: a value is not of the declared type, a name comes twice, the text is no JSON, or the
            parser made arrays that contradict themselves (pyarrow 26 does so of an undeclared list of nulls).
    """
    data = b"".join([part for page in pages for part in (b'{"rows":', page.rows, b"}\n")])
    broken = any(b"\n" in page.rows or b"\r" in page.rows for page in pages)
    table = pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(block_size=max(_BLOCK_MIN, 16 + max(len(page.rows) for page in pages))),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema([("rows", pa.list_(row))]),
            newlines_in_values=broken,
            unexpected_field_behavior=unexpected,
        ),
    )
    if table.num_columns != 1 or table.num_rows != len(pages):
        raise Refused
    table.validate()
    lists = table.column(0).combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks)
    parsed = lists.flatten()
    if lists.null_count or parsed.null_count:
        raise Refused
    lengths = np.diff(lists.offsets.to_numpy())
    starts = np.cumsum(lengths) - lengths
    position = np.arange(1, len(parsed) + 1) - np.repeat(starts, lengths)
    number = np.repeat(np.array([page.number for page in pages]), lengths)
    return Parsed(parsed, [pa.array(number, pa.int32()), pa.array(position, pa.int32())])
