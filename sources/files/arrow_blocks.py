"""Blocks of CSV text that Arrow parses, at many times the speed of the exact reader and with the same cells.

In: whole lines of a text and its format. Out: a table, or None for a block that must be read exactly: with quotes
anywhere but around whole cells, cells of several lines, NULs, blank lines, rows of another width, or rows that may be
rejected. A property test (test_arrow_blocks.py) holds both readers equal.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import csv

from sources.files.dialect import Dialect
from sources.files.model import LINE_COLUMN, RejectedRow
from sources.files.row_shape import BYTE_ORDER_MARK, RowShape, unusual_rows
from sources.files.text import CONTROLS

MAX_NAMES: Final = 200
"""Of more columns a block has few rows, and what Arrow costs for each column takes longer than the rows."""


class ArrowBlocks:
    """Parses the blocks of a file.

    Args:
        dialect: of the file.
        shape: of its rows.
        quote_given: whether the quote was given, so that no other one is looked for.
        has_controls: whether a block may have control characters.
    """

    def __init__(self, dialect: Dialect, shape: RowShape, *, quote_given: bool, has_controls: bool = False) -> None:
        self._shape, self._has_controls = shape, has_controls
        self._delimiter = dialect.delimiter
        self._quote = dialect.quote.encode()
        slow_marks = {"\0", BYTE_ORDER_MARK, dialect.escape, "" if quote_given else '"'}
        self._slow_marks = [mark.encode() for mark in slow_marks if mark]
        self._is_single = len(shape.columns) + shape.surplus == 1
        if self._quote in self._slow_marks and not self._is_single:
            self._slow_marks.remove(self._quote)
        is_plain = len(dialect.delimiter) == 1 and dialect.delimiter.isascii() and dialect.delimiter != " "
        self._names = [*shape.columns, *(f"\0{at}" for at in range(shape.surplus))]  # a name that no file has
        is_narrow = len(self._names) <= MAX_NAMES
        self._is_readable = is_plain and is_narrow and not dialect.is_padded and dialect.quote.isascii()
        self._parse = csv.ParseOptions(
            delimiter=dialect.delimiter if is_plain else ",",
            quote_char=dialect.quote if dialect.quote.isascii() and dialect.quote else False,
            ignore_empty_lines=not self._is_single,
        )
        self._convert = csv.ConvertOptions(
            column_types=dict.fromkeys(self._names, pa.string()),
            strings_can_be_null=False,
            quoted_strings_can_be_null=False,
        )

    def read(self, block: str, line: int, count: int) -> pa.Table | None:
        """A block as text columns and `_line`; None if it takes the exact reader.

        Args:
            block: whole lines.
            line: the number of the first one.
            count: the number of lines.
        """
        if not self._is_readable:
            return None
        if self._has_controls and CONTROLS.search(block):
            return None
        data = block.encode()
        if any(mark in data for mark in self._slow_marks):
            return None
        if self._quote and self._quote in data and (self._is_single or not self._has_regular_quotes(data)):
            return None
        if self._is_single and (data[:1] in b"\r\n" or any(end in data for end in (b"\n\n", b"\r\r", b"\n\r"))):
            return None
        options = csv.ReadOptions(column_names=self._names, use_threads=False, block_size=len(data) + 64)
        try:
            table = csv.read_csv(pa.BufferReader(data), options, self._parse, self._convert)
        except pa.ArrowInvalid:
            return None
        if table.num_rows != count:
            return None
        unusual = np.flatnonzero(unusual_rows(table.columns, self._shape))
        if unusual.size:
            for cells in zip(*(column.take(unusual).to_pylist() for column in table.columns), strict=True):
                if not any(cells) or isinstance(self._shape.fit(line, line, list(cells), marks=False), RejectedRow):
                    return None
        table = table.select(list(self._shape.columns))
        return table.append_column(LINE_COLUMN, pa.array(np.arange(line, line + count)))

    def _has_regular_quotes(self, data: bytes) -> bool:
        """Whether quotes only enclose whole cells of one line, and are doubled within.

        Then every other quote, from the first on, opens a cell or is the second of a doubled pair; the rest close a
        cell or are the first of a pair.
        """
        codes = np.frombuffer(data, np.uint8)
        places = np.flatnonzero(codes == self._quote[0])
        if len(places) % 2:
            return False
        opens, closes = places[::2], places[1::2]
        edges = np.zeros(256, np.bool_)
        edges[list(b"\r\n" + self._delimiter.encode() + self._quote)] = True
        before, after = opens[opens > 0] - 1, closes[closes + 1 < len(codes)] + 1
        if not (edges[codes[before]].all() and edges[codes[after]].all()):
            return False
        ends = np.flatnonzero((codes == 10) | (codes == 13))
        return bool((np.searchsorted(ends, opens) == np.searchsorted(ends, closes)).all())
