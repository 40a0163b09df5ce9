"""Streams the rows of a text file: blocks that Arrow reads exactly at many times the speed, the others row by row.

In: a text, its dialect, and the shape of its rows. Out: rows, rejected rows, and Arrow tables of rows. Both ways give
the same cells (test_both_ways.py).
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import pyarrow as pa

from orderbridge.sources.files.arrow_blocks import ArrowBlocks
from orderbridge.sources.files.dialect import Dialect, lines_of
from orderbridge.sources.files.encoding import MAX_LINE, MIB, Text, count_line_ends
from orderbridge.sources.files.model import (
    DetectedFormat,
    Part,
    RejectedRow,
    Row,
    SourceTable,
    UnreadableRest,
    rows_of,
)
from orderbridge.sources.files.padding import without_padding
from orderbridge.sources.files.quotes import QuoteCheck
from orderbridge.sources.files.records import is_blank, reader
from orderbridge.sources.files.row_shape import RowShape

PIECE_CHARS: Final = 1 << 14
"""Size of the parts of a block that has an unusual line."""
_TORN: Final = "line {} has only a part of a row, which a line break may have cut off from this one; join the lines"
_QUOTE_HINT: Final = (
    "Fix that line, or describe the quotes of the file: --quote none or --escape backslash"
)


@dataclass(eq=False)
class TextTable(SourceTable):
    """A table in a text file, from a line on; a quote that was given is not searched for others."""

    text: Text
    dialect: Dialect
    data_line: int
    shape: RowShape
    format: DetectedFormat
    quote_given: bool
    sha256: str = ""

    def parts(self) -> Iterator[Part]:
        """See `SourceTable`. The rows before and after a fragment are rejected: it may be cut off from either."""
        before: Part | None = None
        try:
            for part in chain.from_iterable(map(_with_edges, self._parts())):
                checked = self._torn(part, before)
                if before is not None:
                    yield self._torn(before, part)
                before = checked
        except UnreadableRest:
            if before is not None:
                yield before
            raise
        if before is not None:
            yield before

    def with_added_columns(self, added: int) -> TextTable:
        """See `SourceTable`."""
        return replace(self, shape=self.shape._replace(added=added))

    def _blocks(self) -> Iterator[str]:
        """The text after the header."""
        skip = self.data_line - 1
        for block in self.text.blocks():
            lines = lines_of(block)
            while skip and lines.readline():
                skip -= 1
            if rest := lines.read():
                yield rest

    def _parts(self) -> Iterator[Part]:
        """The rows, as a table if Arrow reads their block."""
        blocks = _BlockQueue(self._blocks())
        arrow = ArrowBlocks(self.dialect, self.shape, self.quote_given)
        line = self.data_line
        rest = ""
        is_ended = False
        while block := rest + next(blocks, ""):
            found = None if is_ended else arrow.read(block, line)
            if found is not None:
                yield found.rows
                line += found.lines
                rest = found.rest
                continue
            pieces = _pieces(block) if len(block) > 2 * PIECE_CHARS else [block]
            if len(pieces) > 1:
                blocks.put_back(pieces)
                rest = ""
                continue
            feed = _Feed(block, blocks, is_ended=is_ended)
            yield from self._read(feed, line)
            line += feed.count
            rest = ""
            is_ended = feed.is_ended

    def _torn(self, part: Part, other: Part | None) -> Part:
        """A row as rejected if what is next to it may be the rest of it."""
        if isinstance(part, RejectedRow) or not isinstance(other, RejectedRow):
            return part
        row = next(rows_of(part)) if isinstance(part, pa.Table) else part
        if self.shape.tears(other, row):
            return RejectedRow(row.line, row.line, "torn", _TORN.format(other.line), row.cells)
        return part

    def _read(self, feed: _Feed, line: int) -> Iterator[Row | RejectedRow]:
        """Rows up to the end of a block; `line` is the number of the first line."""
        width = len(self.columns)
        check = QuoteCheck(self.dialect, self.shape, self.quote_given)
        records = reader(feed, self.dialect)
        before = last = line - 1
        while last - before < feed.count:
            line = last + 1
            try:
                cells = next(records)
            except csv.Error as error:
                last = before + records.line_num
                feed.take()
                yield _broken(line, last, error)
                continue
            last = before + records.line_num
            rejected = check.rejected(line, last, self._own_text(feed.take()), cells)
            if rejected is not None:
                yield rejected
            elif is_blank(cells, width):
                feed.is_ended = True
            else:
                row = self.shape.fit(line, last, cells, marks=True, is_ended=feed.is_ended)
                feed.is_ended = feed.is_ended and isinstance(row, RejectedRow)
                yield row

    def _own_text(self, lines: tuple[str, ...]) -> str:
        """The lines of a record as one text, with the delimiter alone between cells."""
        return "".join(without_padding(lines, self.dialect) if self.dialect.separator else lines)


def _broken(line: int, last: int, error: csv.Error) -> RejectedRow:
    """An error of csv as a rejected row; raises UnreadableRest if reading cannot continue."""
    words = str(error)
    is_long = last > line
    if "end of data" in words:
        raise UnreadableRest(
            f"a quote opened on line {line} is never closed", _QUOTE_HINT
        ) from None
    if "field limit" in words:
        what = (
            f"a quote opened on line {line} is not closed"
            if is_long
            else f"a cell on line {line} does not end"
        )
        message = f"{what} within {MAX_LINE // MIB} million characters"
        raise UnreadableRest(message, _QUOTE_HINT) from None
    until = f"; lines {line} to {last} are rejected" if is_long else ""
    reason = f"text after a closing quote{until}; double quotes within the cell"
    return RejectedRow(line, last, "quoting", reason)


class _BlockQueue(Iterator[str]):
    """Blocks of text, to which the pieces of one can be put back."""

    def __init__(self, blocks: Iterator[str]) -> None:
        self._blocks = blocks
        self._pieces: deque[str] = deque()

    def __next__(self) -> str:
        """The next piece, else the next block."""
        return self._pieces.popleft() if self._pieces else next(self._blocks)

    def put_back(self, pieces: Sequence[str]) -> None:
        """Puts pieces before what is next."""
        self._pieces.extendleft(reversed(pieces))


class _Feed:
    """Passes on the lines of a block, then of the next blocks while a reader asks for more.

    Attributes:
        count: the number of lines of the blocks that were begun.
        is_ended: whether the last lines are blank, or a title after a blank one.
    """

    def __init__(self, block: str, more: Iterator[str], *, is_ended: bool) -> None:
        self.count = _count_lines(block)
        self.is_ended = is_ended
        self._lines = chain.from_iterable(map(lines_of, chain([block], self._further(more))))
        self._taken: list[str] = []

    def _further(self, blocks: Iterator[str]) -> Iterator[str]:
        for block in blocks:
            self.count += _count_lines(block)
            yield block

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._taken.append(line)
        return line

    def take(self) -> tuple[str, ...]:
        """The lines since the last call: those of the current record."""
        lines = tuple(self._taken)
        self._taken.clear()
        return lines


def _pieces(block: str) -> list[str]:
    """A block in parts of whole lines: the unusual line of one does not slow down the others."""
    lines = lines_of(block)
    pieces: list[str] = []
    while piece := lines.read(PIECE_CHARS):
        pieces.append(piece + lines.readline())
    return pieces


def _count_lines(block: str) -> int:
    """The number of lines of a block, including a last one without a line end."""
    ends = count_line_ends(block)
    return ends.feeds + ends.returns - ends.pairs + (block[-1] not in "\r\n")


def _with_edges(part: Part) -> Iterator[Part]:
    """A row; of a table, the first and the last row apart, as tables."""
    if isinstance(part, pa.Table):
        last = max(part.num_rows - 1, 1)
        yield from filter(len, (part.slice(0, 1), part.slice(1, last - 1), part.slice(last)))
    else:
        yield part
