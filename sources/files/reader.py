"""A table in a file of text: opened from a bounded sample, then streamed.

In: a path and what was told. Out: rows as they come, or Arrow tables. A block of text that holds neither quotes,
escapes, NULs nor blank lines goes through Arrow's parser; any other, and any that Arrow refuses, is read row by row, so
that both ways give the same cells.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import compute
from pyarrow import csv as arrow_csv

from sources.errors import UsageError
from sources.files.dialect import Dialect, find_dialect, is_blank, lines_of, reader, records_of, width_of
from sources.files.encoding import MAX_LINE, MIB, Text, read_text
from sources.files.layout import find_footnotes, find_layout
from sources.files.model import (
    BATCH_ROWS,
    LINE_COLUMN,
    DetectedFormat,
    ReadOptions,
    RejectedRow,
    Row,
    Shape,
    SourceTable,
    take,
    to_arrow,
)
from sources.files.quotes import cells_with_quotes, is_unclosed, swallows

SAMPLE: Final = 256 * 1024
_SWALLOWS: Final = (
    "a quoted cell runs to line {}, and holds what look like lines of the table: mend the quotes; if they are right, "
    "tell which quote the file has"
)
_UNCLOSED: Final = "a cell begins with a quote that is not closed: mend it; if it belongs to the cell, tell quote none"


def open_text(path: Path, told: ReadOptions) -> TextTable:
    """Opens a file of text.

    Raises:
        UsageError: it is no text, or holds no table.
    """
    text = read_text(path, told.encoding)
    sample, cut_off = _sample(text)
    dialect, hints = find_dialect(sample, told, cut_off=cut_off)
    records = [record for record in records_of(sample, dialect, cut_off=cut_off) if record.line > hints]
    layout = find_layout(records, told, skipped=(1,) if hints else ())
    raw = max(width_of([r for r in records if r.line >= layout.data_line]), len(layout.columns))
    cut, from_end = find_footnotes(text.tail, dialect, raw)
    if text.lines - max(from_end, default=0) + 1 < layout.data_line:
        cut, from_end = 0, []
    found = DetectedFormat(
        kind="text",
        columns=layout.columns,
        header_lines=layout.header_lines,
        preamble=layout.preamble,
        footnotes=tuple(text.lines - back + 1 for back in from_end),
        renamed=layout.renamed,
        dropped_columns=layout.dropped,
        lines=text.lines,
        encoding=text.encoding,
        has_bom=text.has_bom,
        delimiter=dialect.delimiter,
        quote=dialect.quote,
        escape=dialect.escape,
        line_ends=text.line_ends,
    )
    shape = Shape(layout.columns, told.short_rows == "fill")
    told_quote = told.quote is not None
    return TextTable(replace(text, chars=text.chars - cut), dialect, shape, found, layout.data_line, told_quote)


def _sample(text: Text) -> tuple[str, bool]:
    """Whole lines from the beginning, and whether there is more behind them."""
    parts: list[str] = []
    size = 0
    blocks = text.blocks()
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size >= SAMPLE:
            break
    sample = "".join(parts)
    if size > 2 * SAMPLE:
        end = sample.rfind("\n", 0, SAMPLE) + 1
        sample = sample[:end] if end else sample
    return sample, len(sample) < text.chars


class TextTable(SourceTable):
    """A table in a file of text."""

    def __init__(
        self, text: Text, dialect: Dialect, shape: Shape, found: DetectedFormat, data_line: int, told_quote: bool
    ) -> None:
        self.found = found
        self._text, self._dialect, self._shape, self._data_line = text, dialect, shape, data_line
        self._careful = [mark for mark in (dialect.quote, dialect.escape, "\0") if mark]
        self._quoted = None if dialect.quote or told_quote else cells_with_quotes(dialect.delimiter)
        self._widths = () if told_quote else (len(found.columns), len(found.columns) + found.dropped_columns)

    def rows(self) -> Iterator[Row | RejectedRow]:
        """See `SourceTable`."""
        return self._read(chain.from_iterable(map(lines_of, self._blocks())), self._data_line - 1)

    def batches(
        self, size: int = BATCH_ROWS, refuse: Callable[[RejectedRow], object] | None = None
    ) -> Iterator[pa.Table]:
        """See `SourceTable`."""
        self.refuse_line_column()
        held: list[pa.Table] = []
        count = 0
        for part in self._parts(refuse):
            held.append(part)
            count += part.num_rows
            if count >= size:
                whole = pa.concat_tables(held)
                full = count // size * size
                for at in range(0, full, size):
                    yield whole.slice(at, size).combine_chunks()
                held, count = [whole.slice(full)], count - full
        if count:
            yield pa.concat_tables(held).combine_chunks()

    def _blocks(self) -> Iterator[str]:
        """The text from the first line after the header on."""
        skip = self._data_line - 1
        for block in self._text.blocks():
            if not skip:
                yield block
                continue
            lines = lines_of(block)
            while skip and lines.readline():
                skip -= 1
            if rest := lines.read():
                yield rest

    def _parts(self, refuse: Callable[[RejectedRow], object] | None) -> Iterator[pa.Table]:
        """Arrow tables of about a block each."""
        blocks = self._blocks()
        line = self._data_line
        for block in blocks:
            count = _count_lines(block)
            is_careful = any(mark in block for mark in self._careful) or (self._quoted and self._quoted.search(block))
            fast = None if is_careful else self._arrow(block, line, count)
            if fast is not None:
                yield fast
                line += count
                continue
            feed = _Feed(block, count, blocks)
            rows: list[Row] = []
            for row in self._read(feed.lines(), line - 1, feed):
                if isinstance(row, Row):
                    rows.append(row)
                else:
                    take(row, refuse)
            if rows:
                yield to_arrow(rows, self.columns)
            line += feed.count

    def _arrow(self, block: str, line: int, count: int) -> pa.Table | None:
        """A block without quotes through Arrow; None where a line in it is blank or has another width."""
        if len(self._dialect.delimiter) != 1 or self._dialect.delimiter == " " or not self._dialect.delimiter.isascii():
            return None
        if block[0] == "\ufeff":  # Arrow takes it for a byte order mark, and it is in a cell
            return None
        names = [*self.columns, *(f"\0{at}" for at in range(self.found.dropped_columns))]  # no name of a file's
        try:
            table = arrow_csv.read_csv(
                io.BytesIO(block.encode()),
                arrow_csv.ReadOptions(column_names=names, use_threads=False, block_size=4 * len(block) + 64),
                arrow_csv.ParseOptions(
                    delimiter=self._dialect.delimiter, quote_char=False, ignore_empty_lines=len(names) > 1
                ),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    strings_can_be_null=False,
                    quoted_strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != count or (len(names) == 1 and ("\n\n" in block or "\r\r" in block or "\n\r" in block)):
            return None
        if len(names) == 1 and block[0] in "\r\n":
            return None
        for name in names[len(self.columns) :]:
            if compute.any(compute.not_equal(table[name], "")).as_py():
                return None
        numbers = pa.array(range(line, line + count), pa.int64())
        return table.select(list(self.columns)).append_column(LINE_COLUMN, numbers)

    def _read(self, lines: Iterable[str], before: int, feed: _Feed | None = None) -> Iterator[Row | RejectedRow]:
        """Rows from lines; `before` is how many lines come before them. With a feed, to the end of its block."""
        records = reader(lines, self._dialect)
        width = len(self.columns)
        fit, nul = self._shape.fit, self._text.nuls > 0
        last = before
        while True:
            line = last + 1
            try:
                for cells in records:
                    last = before + records.line_num
                    if last > line and self._widths and swallows(cells, self._widths, self._dialect.delimiter):
                        yield RejectedRow(line, last, "quoting", _SWALLOWS.format(last))
                    elif self._quoted and any(map(is_unclosed, cells)):
                        yield RejectedRow(line, last, "quoting", _UNCLOSED, tuple(cells))
                    elif len(cells) == width and not nul and (width > 1 or cells):
                        yield Row(line, tuple(cells))
                    elif not is_blank(cells, width):
                        yield fit(line, last, cells, nul=nul)
                    line = last + 1
                    if feed is not None and records.line_num >= feed.count:
                        return
            except csv.Error as error:
                last = before + records.line_num
                yield self._broken(line, last, error)
                if feed is not None and records.line_num >= feed.count:
                    return
                continue
            return

    def _broken(self, line: int, last: int, error: csv.Error) -> RejectedRow:
        """What csv's few words mean for the record that begins on a line; some leave nothing to go on with."""
        words = str(error)
        if "end of data" in words:
            raise UsageError(
                f"a quote opened on line {line} is never closed",
                "Mend that line; or say how the file quotes: --quote none, --escape backslash.",
            ) from None
        if "field limit" in words:
            what = "a quote opened on line {} is not closed" if last > line else "a cell on line {} does not end"
            raise UsageError(
                f"{what.format(line)} within {MAX_LINE // MIB} million characters",
                "Mend that line; or say how the file quotes: --quote none, --escape backslash.",
            ) from None
        until = f"; it ends on line {last}, and what lies between is refused with it" if last > line else ""
        return RejectedRow(line, last, "quoting", f"something follows a closing quote{until}")


class _Feed:
    """Lines of a block, and of those after it for as long as a reader asks; `count` is how many were offered."""

    def __init__(self, block: str, count: int, more: Iterator[str]) -> None:
        self.count = count
        self._block, self._more = block, more

    def lines(self) -> Iterator[str]:
        yield from lines_of(self._block)
        for block in self._more:
            self.count += _count_lines(block)
            yield from lines_of(block)


def _count_lines(block: str) -> int:
    ends = block.count("\n") + block.count("\r") - block.count("\r\n")
    return ends + (block[-1] not in "\r\n")
