"""Blocks of CSV text that Arrow parses, at many times the speed of the exact reader and with the same cells.

In: whole lines of a text and its format. Out: a table, or None for a block that must be read exactly: with quotes
anywhere but around whole cells, cells of several lines, NULs, blank lines, rows of another width, or rows that may be
rejected. A property test (test_arrow_blocks.py) holds both readers equal.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from sources.files.dialect import Dialect
from sources.files.model import LINE_COLUMN
from sources.files.row_shape import BYTE_ORDER_MARK, RULE_STARTS, RowShape, totals_reason

_RULE_STARTS: Final = tuple(map(str.encode, RULE_STARTS))
_TOTAL_WORDS: Final = (b"total", b"sum", b"gesamt", "ſ".encode())
"""Parts of the words of a line of totals in lower case; ſ equals s regardless of case."""


class ArrowBlocks:
    """Parses the blocks of a file.

    Args:
        dialect: of the file.
        shape: of its rows.
        quote_given: whether the quote was given, so that no other one is looked for.
    """

    def __init__(self, dialect: Dialect, shape: RowShape, *, quote_given: bool) -> None:
        self._shape = shape
        self._delimiter = dialect.delimiter
        self._quote = dialect.quote.encode()
        slow_marks = {"\0", BYTE_ORDER_MARK, dialect.escape, "" if quote_given else '"'}
        self._slow_marks = [mark.encode() for mark in slow_marks if mark]
        self._is_single = len(shape.columns) + shape.surplus == 1
        if self._quote in self._slow_marks and not self._is_single:
            self._slow_marks.remove(self._quote)
        is_plain = len(dialect.delimiter) == 1 and dialect.delimiter.isascii() and dialect.delimiter != " "
        self._is_readable = is_plain and not dialect.is_padded and dialect.quote.isascii()
        self._names = [*shape.columns, *(f"\0{at}" for at in range(shape.surplus))]  # a name that no file has
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
        width = len(self._shape.columns)
        if table.num_rows != count or any(pc.any(pc.not_equal(column, "")).as_py() for column in table.columns[width:]):
            return None
        table = table.select(list(self._shape.columns))
        if pc.any(pc.equal(table.column(0), self._shape.columns[0])).as_py():  # perhaps a repeated header
            return None
        if width > 1 and self._has_empty_rows(table):
            return None
        if any(mark in data for mark in _RULE_STARTS) and any(
            pc.any(pc.match_substring_regex(column, "^(--|==|__)")).as_py() for column in table.columns
        ):
            return None
        if width > 1 and self._has_totals(table, data.lower()):
            return None
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

    @staticmethod
    def _has_empty_rows(table: pa.Table) -> bool:
        """Whether all cells of a row are empty."""
        empty = pc.equal(table.column(0), "")
        if not pc.any(empty).as_py():
            return False
        return bool(pc.any(reduce(pc.and_, (pc.equal(column, "") for column in table.columns), empty)).as_py())

    def _has_totals(self, table: pa.Table, lower: bytes) -> bool:
        """Whether a row is a line of totals."""
        if not any(word in lower for word in _TOTAL_WORDS):
            return False
        blank = sum(np.asarray(pc.equal(pc.utf8_trim_whitespace(column), "")).astype(np.int64) for column in table)
        is_named = pc.match_substring_regex(table.column(0), "(?i)total|^$")
        rows = table.take(np.flatnonzero((2 * blank >= table.num_columns) | np.asarray(is_named)))
        return any(map(totals_reason, zip(*rows.to_pydict().values(), strict=True)))
