"""A table in a text file: its format is detected from a bounded sample, then the rows are streamed.

In: a path and `ReadOptions`. Out: rows, or Arrow tables. A block of text without quotes, escapes, NULs and blank lines
is parsed by Arrow; other blocks, and those that Arrow cannot parse, are read row by row. Both give the same cells.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
from pyarrow import compute
from pyarrow import csv as arrow_csv

from sources.errors import UsageError
from sources.files.dialect import Dialect, detect_dialect, is_blank, lines_of, reader, records_of, width_of
from sources.files.encoding import read_text
from sources.files.layout import detect_footnotes, detect_layout
from sources.files.model import (
    BATCH_ROWS,
    LINE_COLUMN,
    DetectedFormat,
    OnReject,
    ReadOptions,
    RejectedRow,
    Row,
    RowShape,
    SourceTable,
    handle_reject,
    to_arrow,
)
from sources.files.quotes import cells_with_quotes, is_unclosed, swallows
from sources.files.text import MAX_LINE, MIB, Text

SAMPLE: Final = 256 * 1024
_SWALLOWS: Final = (
    "a quoted cell runs to line {} and contains what look like rows of the table; fix the quotes, or if they are "
    "right, confirm them with --quote double"
)
_UNCLOSED: Final = "a cell begins with a quote that is not closed; close it, or if it belongs to the cell: --quote none"
_QUOTE_HINT: Final = "Fix that line, or describe the quotes of the file: --quote none or --escape backslash"


def open_text(path: Path, options: ReadOptions) -> TextTable:
    """Opens a text file.

    Raises:
        UsageError: the file is not text, or contains no table.
    """
    text = read_text(path, options.encoding)
    sample, cut_off = _sample(text)
    dialect, hints = detect_dialect(sample, options, cut_off=cut_off)
    records = [record for record in records_of(sample, dialect, cut_off=cut_off) if record.line > hints]
    layout = detect_layout(records, options, skipped=(1,) if hints else ())
    raw = max(width_of([r for r in records if r.line >= layout.data_line]), len(layout.columns))
    cut, from_end = detect_footnotes(text.tail, dialect, raw)
    if text.lines - max(from_end, default=0) + 1 < layout.data_line:
        cut, from_end = 0, []
    detected = DetectedFormat(
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
    body = _Body(replace(text, chars=text.chars - cut), dialect, layout.data_line, options.quote is not None)
    return TextTable(body, RowShape(layout.columns, options.short_rows == "fill"), detected)


def _sample(text: Text) -> tuple[str, bool]:
    """Whole lines from the beginning, and whether more lines follow."""
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


class _Body(NamedTuple):
    """Where the rows are in a text, and how they are delimited; `quote_given`: by the options."""

    text: Text
    dialect: Dialect
    data_line: int
    quote_given: bool


class TextTable(SourceTable):
    """A table in a text file."""

    def __init__(self, body: _Body, shape: RowShape, detected: DetectedFormat) -> None:
        self.format = detected
        self._text, self._dialect, self._data_line, quote_given = body
        self._shape = shape
        dialect, width = body.dialect, len(detected.columns)
        self._slow_marks = [mark for mark in (dialect.quote, dialect.escape, "\0") if mark]
        self._quoted = None if dialect.quote or quote_given else cells_with_quotes(dialect.delimiter)
        self._widths = () if quote_given else (width, width + detected.dropped_columns)

    def rows(self) -> Iterator[Row | RejectedRow]:
        """See `SourceTable`."""
        return self._read(chain.from_iterable(map(lines_of, self._blocks())), self._data_line - 1)

    def batches(self, size: int = BATCH_ROWS, on_reject: OnReject | None = None) -> Iterator[pa.Table]:
        """See `SourceTable`."""
        self.check_line_column()
        parts: list[pa.Table] = []
        count = 0
        for part in self._parts(on_reject):
            parts.append(part)
            count += part.num_rows
            if count >= size:
                table = pa.concat_tables(parts)
                full = count // size * size
                for start in range(0, full, size):
                    yield table.slice(start, size).combine_chunks()
                parts, count = [table.slice(full)], count - full
        if count:
            yield pa.concat_tables(parts).combine_chunks()

    def _blocks(self) -> Iterator[str]:
        """The text after the header."""
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

    def _parts(self, on_reject: OnReject | None) -> Iterator[pa.Table]:
        """An Arrow table for about each block."""
        blocks = self._blocks()
        line = self._data_line
        for block in blocks:
            count = _count_lines(block)
            is_slow = any(mark in block for mark in self._slow_marks) or (self._quoted and self._quoted.search(block))
            fast = None if is_slow else self._arrow(block, line, count)
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
                    handle_reject(row, on_reject)
            if rows:
                yield to_arrow(rows, self.columns)
            line += feed.count

    def _arrow(self, block: str, line: int, count: int) -> pa.Table | None:
        """A block without quotes parsed by Arrow; None if a line in it is blank or has another width."""
        if len(self._dialect.delimiter) != 1 or self._dialect.delimiter == " " or not self._dialect.delimiter.isascii():
            return None
        if block[0] == "\ufeff":  # part of a cell; Arrow would remove it as a byte order mark
            return None
        names = [*self.columns, *(f"\0{at}" for at in range(self.format.dropped_columns))]  # no name of a file's
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
        """Rows from lines; `before` is the number of lines before them. With a feed, up to the end of its block."""
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
        """An error of csv as a rejected row; raises UsageError if reading cannot continue."""
        words = str(error)
        if "end of data" in words:
            raise UsageError(
                f"a quote opened on line {line} is never closed",
                _QUOTE_HINT,
            ) from None
        if "field limit" in words:
            what = "a quote opened on line {} is not closed" if last > line else "a cell on line {} does not end"
            raise UsageError(
                f"{what.format(line)} within {MAX_LINE // MIB} million characters",
                _QUOTE_HINT,
            ) from None
        until = f"; lines {line} to {last} are rejected" if last > line else ""
        return RejectedRow(line, last, "quoting", f"text after a closing quote{until}; double quotes within the cell")


class _Feed:
    """Lines of a block, then of the next blocks while a reader asks for more; `count` is the number offered."""

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
