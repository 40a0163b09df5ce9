"""The fast way through a text file: blocks whose records Arrow splits as the reader of single rows would.

In: a block of lines. Out: its rows as an Arrow table, and what is left of the block: a record that goes on in the next
one. Where anything in a block is unusual (a stray quote, a blank line, a row that may not fit), nothing: the reader of
single rows is the truth, and reads it (text_table.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv as arrow_csv

from orderbridge.sources.files.dialect import Dialect
from orderbridge.sources.files.encoding import UTF8_CONTROLS
from orderbridge.sources.files.model import LINE_COLUMN, RejectedRow, UnreadableRest
from orderbridge.sources.files.quotes import QuoteCheck
from orderbridge.sources.files.row_shape import BYTE_ORDER_MARK, RowShape
from orderbridge.sources.files.unusual_rows import unusual_rows

_Places = npt.NDArray[np.int64]

MAX_NAMES: Final = 200
"""Of more columns a block has few rows, and what Arrow costs for each column takes longer than the rows."""
_RETURN, _FEED = b"\r\n"


class ArrowBlock(NamedTuple):
    """The rows of a block, the number of its lines, and the text of a last record that goes on in the next block."""

    rows: pa.Table
    lines: int
    rest: str


class _Records(NamedTuple):
    """The records of a part of a text.

    Attributes:
        data: the part, which ends with the last record.
        starts: where each record begins, and where the last one ends.
        lines: the number of lines before each record, and the number of all.
    """

    data: bytes
    starts: _Places
    lines: _Places

    @property
    def has_long(self) -> bool:
        """Whether a record has more than one line."""
        return int(self.lines[-1]) >= len(self.lines)


@dataclass(frozen=True)
class ArrowBlocks:
    """Parses the blocks of a file; a quote that was given is not searched for others."""

    dialect: Dialect
    shape: RowShape
    quote_given: bool

    def read(self, block: str, line: int) -> ArrowBlock | None:
        """A block as text columns and `_line`; None if it takes the reader of single rows.

        Args:
            block: whole lines, of which the first one begins a record.
            line: the number of the first line.
        """
        if not self._is_plain() or any(mark in block for mark in self._marks()):
            return None
        data = block.encode()
        records = None if UTF8_CONTROLS.search(data) else self._records(data)
        table = self._parsed(records) if records is not None else None
        if records is None or table is None:
            return None
        lines = records.lines + line
        if not self._are_rows(table, records, lines):
            return None
        rows = table.select(range(len(self.shape.columns)))
        return ArrowBlock(
            rows.append_column(LINE_COLUMN, pa.array(lines[:-1])),
            int(records.lines[-1]),
            data[len(records.data) :].decode(),
        )

    def _is_plain(self) -> bool:
        """Whether Arrow knows the dialect, and is faster."""
        dialect = self.dialect
        is_ascii = dialect.delimiter.isascii() and dialect.quote.isascii()
        is_padded = dialect.is_padded or bool(dialect.separator)
        is_narrow = len(self.shape.columns) + self.shape.surplus <= MAX_NAMES
        return is_ascii and not is_padded and is_narrow

    def _marks(self) -> set[str]:
        """What a block must not have."""
        stray = "" if self.quote_given else '"'
        return {"\0", BYTE_ORDER_MARK, self.dialect.escape, stray} - {"", self.dialect.quote}

    def _records(self, data: bytes) -> _Records | None:
        """The whole records of a block; None if quotes do more than enclose whole cells, doubled within."""
        codes = np.frombuffer(data, np.uint8)
        ends = _line_ends(codes)
        quotes = self._quotes(codes)
        is_outside = np.searchsorted(quotes, ends) % 2 == 0
        record_ends = np.flatnonzero(is_outside)
        starts = np.concatenate(([0], ends[record_ends] + 1))
        lines = np.concatenate(([0], record_ends + 1))
        if len(quotes) % 2:
            quotes = quotes[: np.searchsorted(quotes, starts[-1])]
        elif starts[-1] < len(data):  # the last line of a file may not end
            starts = np.append(starts, len(data))
            lines = np.append(lines, len(ends) + 1)
        whole = int(starts[-1])
        if not whole or not self._are_regular(codes[:whole], quotes):
            return None
        return _Records(data[:whole], starts, lines)

    def _quotes(self, codes: npt.NDArray[np.uint8]) -> _Places:
        """Where the quotes of a block are."""
        quote = self.dialect.quote.encode()
        return np.flatnonzero(codes == quote[0]) if quote else np.empty(0, np.int64)

    def _are_regular(self, codes: npt.NDArray[np.uint8], quotes: _Places) -> bool:
        """Whether quotes, an even number of them, only enclose whole cells, and are doubled within.

        Then every other quote, from the first on, opens a cell or is the second of a doubled pair; the rest close a
        cell or are the first of a pair.
        """
        if not len(quotes):
            return True
        edges = np.zeros(256, np.bool_)
        edges[list(f"\r\n{self.dialect.delimiter}{self.dialect.quote}".encode())] = True
        opens = quotes[::2]
        closes = quotes[1::2]
        before = opens[opens > 0] - 1
        after = closes[closes + 1 < len(codes)] + 1
        return bool(edges[codes[before]].all() and edges[codes[after]].all())

    def _parsed(self, records: _Records) -> pa.Table | None:
        """The cells of records, also empty ones beyond the columns; None if any record is blank or of another width."""
        extra = (f"\0{at}" for at in range(self.shape.surplus))  # that no file has
        names = [*self.shape.columns, *extra]
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(records.data),
                arrow_csv.ReadOptions(
                    column_names=names, use_threads=False, block_size=len(records.data) + 64
                ),
                arrow_csv.ParseOptions(
                    delimiter=self.dialect.delimiter,
                    quote_char=self.dialect.quote or False,
                    newlines_in_values=records.has_long,  # twice as slow
                ),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid:
            return None
        return table if table.num_rows == len(records.starts) - 1 else None

    def _are_rows(self, table: pa.Table, records: _Records, lines: _Places) -> bool:
        """Whether all records are rows: those of several lines, and unusual ones, are checked one by one."""
        is_long = np.diff(lines) > 1
        is_named = np.isin(lines[:-1], (self.shape.second_names, self.shape.cut_line))
        unusual = np.flatnonzero(unusual_rows(table.columns, self.shape) | is_long | is_named)
        if not unusual.size:
            return True
        check = QuoteCheck(self.dialect, self.shape, self.quote_given)
        columns = (column.take(unusual).to_pylist() for column in table.columns)
        for at, *cells in zip(unusual.tolist(), *columns, strict=True):
            line = int(lines[at])
            last = int(lines[at + 1]) - 1
            text = records.data[records.starts[at] : records.starts[at + 1]].decode()
            if not any(cells) or (is_long[at] and check.rejected(line, last, text, cells)):
                return False
            try:
                row = self.shape.fit(line, last, cells, marks=False)
            except UnreadableRest:  # after the rows before it
                return False
            if isinstance(row, RejectedRow):
                return False
        return True


def _line_ends(codes: npt.NDArray[np.uint8]) -> _Places:
    """Where lines end: at a line feed, or a carriage return without one."""
    is_end = codes == _FEED
    returns = np.flatnonzero(codes == _RETURN)
    if len(returns):
        followed = np.append(is_end, False)[returns + 1]
        is_end[returns[~followed]] = True
    return np.flatnonzero(is_end)
