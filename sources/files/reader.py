"""Opens a text file as a table and streams its rows; encoding, dialect and layout are detected from a bounded sample.

In: a path and `ReadOptions`. Out: a `TextTable`: rows, or Arrow tables. Blocks that Arrow reads exactly are parsed by
it, at many times the speed; the others row by row. Both give the same cells (test_text.py).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from orderbridge.sources.files.dialect import (
    DATEV,
    DELIMITERS,
    SEP,
    Dialect,
    Record,
    best_dialect,
    check_options,
    has_letter_escapes,
    has_proven_nulls,
    has_second_mark,
    is_blank,
    lines_of,
    reader,
    records_of,
    width_of,
    without_padding,
)
from orderbridge.sources.files.encoding import MAX_LINE, MIB, Text, read_text
from orderbridge.sources.files.file_kinds import InputFile
from orderbridge.sources.files.layout import check_single_column, detect_layout, text_footnotes
from orderbridge.sources.files.model import (
    LINE_COLUMN,
    DetectedFormat,
    Part,
    ReadOptions,
    RejectedRow,
    Row,
    SourceTable,
    UnreadableRest,
    rows_of,
)
from orderbridge.sources.files.row_shape import (
    BYTE_ORDER_MARK,
    RowShape,
    has_stray_quotes,
    swallows,
    unusual_rows,
)

MIN_SCORE: Final = 0.2
"""Of a dialect that shows that a `sep=` line is wrong."""
_SWALLOWS: Final = (
    "a quoted cell runs to line {} and contains what look like rows of the table; fix the quotes, or if they are "
    "right, confirm them with --quote double"
)
_UNCLOSED: Final = (
    "a cell begins with a quote that does not enclose the whole cell; fix the quotes, or if they belong to the cell: "
    "--quote none"
)
_STRAY_QUOTE: Final = (
    "a quote inside a cell seems to open a quoted text; put the whole cell in quotes and double the "
    "quotes within it, or if they are right, confirm them with --quote double"
)
_ESCAPED: Final = (
    "a backslash before a letter or digit is not part of the text, and its meaning is not proven, such as \\N for no "
    "value, \\t for a tab; export the file without escapes, or if the backslashes are part of the text: --escape none"
)
_SECOND_MARK: Final = (
    "a cell begins or ends with the mark that stands beside each delimiter: there is one too many"
)
_TORN: Final = "line {} has only a part of a row, which a line break may have cut off from this one; join the lines"
_QUOTE_HINT: Final = (
    "Fix that line, or describe the quotes of the file: --quote none or --escape backslash"
)


_CONTROLS: Final = re.compile(rb"\xc2[\x80-\x84\x86-\x9f]")
"""`CONTROLS` in UTF-8, where they are found ten times as fast."""
MAX_NAMES: Final = 200
"""Of more columns a block has few rows, and what Arrow costs for each column takes longer than the rows."""


def open_text(source: InputFile, options: ReadOptions) -> TextTable:
    """Opens a text file.

    Raises:
        UsageError: the file is not text, or contains no table.
    """
    text = read_text(source, options.encoding)
    cut_off = len(text.head) < text.chars
    dialect, hints = choose_dialect(text.head, options, cut_off=cut_off)
    has_escapes = dialect.escape == "\\" or "\\N" in text.head
    if has_escapes and options.escape in (None, "\\") and has_proven_nulls(text.blocks(), dialect):
        dialect = replace(dialect, escape="\\", has_nulls=True)
    records = head_records(text.head, dialect, options.header_row, hints, cut_off=cut_off)
    if options.delimiter is None and width_of(records) == 1:
        check_single_column(text.head)
    layout = detect_layout(records, options, skipped=(1,) if hints else ())
    shape = layout.shape
    cut, from_end = text_footnotes(text.tail, dialect, len(shape.columns) + shape.surplus)
    detected = DetectedFormat(
        kind="text",
        **layout.found(),
        footnotes=tuple(text.lines - back + 1 for back in from_end),
        lines=text.lines,
        encoding=text.encoding,
        is_encoding_assumed=text.is_assumed,
        has_signs=text.has_signs,
        has_bom=text.begin > 0,
        delimiter=dialect.delimiter,
        quote=dialect.quote,
        escape=dialect.escape,
        is_padded=dialect.is_padded or bool(dialect.separator),
        line_ends=text.line_ends,
    )
    text = replace(text, chars=text.chars - cut)
    return TextTable(
        text, dialect, layout.data_line, shape, detected, quote_given=options.quote is not None
    )


def choose_dialect(sample: str, options: ReadOptions, *, cut_off: bool) -> tuple[Dialect, int]:
    """The most probable dialect of a sample, and the number of lines at its start about the file, without a record.

    If the line of the header is given, what is above it does not count.

    Raises:
        UsageError: there are two possible readings, or the delimiter, quote or escape in the options is invalid.
    """
    check_options(options)
    first = next(lines_of(sample), "")
    hint = SEP.fullmatch(first)
    hints = int(hint is not None or DATEV.match(first) is not None)
    body = _from_line(sample, max(hints + 1, options.header_row or 1))
    best = best_dialect(
        body,
        DELIMITERS if options.delimiter is None else [options.delimiter],
        options,
        cut_off=cut_off,
    )
    if hint and options.delimiter is None:
        hinted = best_dialect(body, [hint[1]], options, cut_off=cut_off)
        best = best if best.score > max(MIN_SCORE, 2 * hinted.score) else hinted
    return best.dialect, hints


def head_records(
    sample: str, dialect: Dialect, header_row: int | None, hints: int, *, cut_off: bool
) -> list[Record]:
    """The records of a sample after the lines about the file.

    Where a stray quote above a header whose line is given hides it, each line above is a record of one cell.
    """
    records = _numbered(records_of(_from_line(sample, hints + 1), dialect, cut_off=cut_off), hints)
    line = header_row or 0
    hides = any(
        record.cells is None and record.line < line <= record.last for record in records
    ) or (records and records[-1].last < line)
    if line <= hints + 1 or not hides:
        return records
    above = islice(lines_of(sample), hints, line - 1)
    titles = [
        Record(number, number, [text.strip()] if text.strip() else [])
        for number, text in enumerate(above, hints + 1)
    ]
    below = records_of(_from_line(sample, line), dialect, cut_off=cut_off)
    return titles + _numbered(below, line - 1)


def _from_line(text: str, line: int) -> str:
    """A text from a line on."""
    lines = lines_of(text)
    for _ in range(line - 1):
        lines.readline()
    return lines.read()


def _numbered(records: list[Record], before: int) -> list[Record]:
    """Records that begin after some lines."""
    if not before:
        return records
    return [
        record._replace(line=record.line + before, last=record.last + before) for record in records
    ]


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
        blocks = self._blocks()
        arrow = ArrowBlocks(self.dialect, self.shape, self.quote_given)
        line, is_ended = self.data_line, False
        for block in blocks:
            feed = _Feed(block, blocks, is_ended=is_ended)
            table = None if is_ended else arrow.read(block, line, feed.count)
            if table is None:
                yield from self._read(feed, line)
            else:
                yield table
            line, is_ended = line + feed.count, feed.is_ended

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
        records = reader(feed, self.dialect)
        mark, width = self.dialect.delimiter, len(self.columns)
        checks_unclosed = self.dialect.quote != '"' and not self.quote_given
        checks_quotes = self.dialect.quote in ('"', "") and not self.quote_given
        before = last = line - 1
        while last - before < feed.count:
            line = last + 1
            try:
                cells = next(records)
            except csv.Error as error:
                last = before + records.line_num
                feed.take()
                yield self._broken(line, last, error)
                continue
            last = before + records.line_num
            raw = feed.take()
            if self.dialect.separator:
                raw = tuple(without_padding(raw, self.dialect))
            # the cells of these are not as they were in the file
            if self.dialect.escape and has_letter_escapes("".join(raw), self.dialect):
                yield RejectedRow(line, last, "quoting", _ESCAPED)
            elif (
                last > line
                and not self.quote_given
                and swallows(cells, (width, width + self.shape.surplus), mark)
            ):
                yield RejectedRow(line, last, "quoting", _SWALLOWS.format(last))
            elif (
                checks_quotes
                and (last > line or '"' in raw[0])
                and has_stray_quotes("".join(raw), mark, is_padded=self.dialect.is_padded)
            ):
                yield RejectedRow(line, last, "quoting", _STRAY_QUOTE, tuple(cells))
            elif checks_unclosed and any(
                cell != '"' and cell.startswith('"') for cell in cells
            ):  # inches, ditto
                yield RejectedRow(line, last, "quoting", _UNCLOSED, tuple(cells))
            elif has_second_mark(cells, self.dialect):
                yield RejectedRow(line, last, "too_long", _SECOND_MARK)
            elif is_blank(cells, width):
                feed.is_ended = True
            else:
                row = self.shape.fit(line, last, cells, marks=True, is_ended=feed.is_ended)
                feed.is_ended = feed.is_ended and isinstance(row, RejectedRow)
                yield row

    def _broken(self, line: int, last: int, error: csv.Error) -> RejectedRow:
        """An error of csv as a rejected row; raises UsageError if reading cannot continue."""
        words = str(error)
        if "end of data" in words:
            raise UnreadableRest(
                f"a quote opened on line {line} is never closed", _QUOTE_HINT
            ) from None
        if "field limit" in words:
            what = (
                "a quote opened on line {} is not closed"
                if last > line
                else "a cell on line {} does not end"
            )
            message = f"{what.format(line)} within {MAX_LINE // MIB} million characters"
            raise UnreadableRest(message, _QUOTE_HINT) from None
        until = f"; lines {line} to {last} are rejected" if last > line else ""
        return RejectedRow(
            line,
            last,
            "quoting",
            f"text after a closing quote{until}; double quotes within the cell",
        )


class _Feed:
    """Passes on the lines of a block, then of the next blocks while a reader asks for more.

    Attributes:
        count: the number of lines of the blocks that were begun.
        is_ended: whether the last lines are blank, or a title after a blank one.
    """

    def __init__(self, block: str, more: Iterator[str], *, is_ended: bool) -> None:
        self.count, self.is_ended = _count_lines(block), is_ended
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


def _count_lines(block: str) -> int:
    """The number of lines of a block, including a last one without a line end."""
    ends = block.count("\n") + block.count("\r") - block.count("\r\n")
    return ends + (block[-1] not in "\r\n")


def _with_edges(part: Part) -> Iterator[Part]:
    """A row; of a table, the first and the last row apart, as tables."""
    if isinstance(part, pa.Table):
        last = max(part.num_rows - 1, 1)
        yield from filter(len, (part.slice(0, 1), part.slice(1, last - 1), part.slice(last)))
    else:
        yield part


@dataclass(frozen=True)
class ArrowBlocks:
    """Parses the blocks of a file; a quote that was given is not searched for others."""

    dialect: Dialect
    shape: RowShape
    quote_given: bool

    def read(self, block: str, line: int, count: int) -> pa.Table | None:
        """A block of `count` whole lines as text columns and `_line`; None if it takes the exact reader."""
        delimiter, quote, width = (
            self.dialect.delimiter,
            self.dialect.quote,
            len(self.shape.columns),
        )
        is_padded = self.dialect.is_padded or self.dialect.separator
        is_plain = delimiter.isascii() and quote.isascii() and not is_padded
        if not is_plain or width + self.shape.surplus > MAX_NAMES:
            return None
        marks = {"\0", BYTE_ORDER_MARK, self.dialect.escape, "" if self.quote_given else '"'} - {
            "",
            quote,
        }
        if any(mark in block for mark in marks):
            return None
        data = block.encode()
        if _CONTROLS.search(data) or (
            quote and quote in block and not self._has_regular_quotes(data)
        ):
            return None
        names = [
            *self.shape.columns,
            *(f"\0{at}" for at in range(self.shape.surplus)),
        ]  # that no file has
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(data),
                arrow_csv.ReadOptions(
                    column_names=names, use_threads=False, block_size=len(data) + 64
                ),
                arrow_csv.ParseOptions(delimiter=delimiter, quote_char=quote or False),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != count:
            return None
        marks_of_rows = unusual_rows(table.columns, self.shape)
        if line <= self.shape.second_names < line + count:
            marks_of_rows[self.shape.second_names - line] = True
        unusual = np.flatnonzero(marks_of_rows)
        rows = zip(
            *(column.take(unusual).to_pylist() for column in table.columns if unusual.size),
            strict=True,
        )
        for number, cells in zip((unusual + line).tolist(), map(list, rows), strict=True):
            if not any(cells) or isinstance(
                self.shape.fit(number, number, cells, marks=False), RejectedRow
            ):
                return None
        return table.select(range(width)).append_column(
            LINE_COLUMN, pa.array(np.arange(line, line + count))
        )

    def _has_regular_quotes(self, data: bytes) -> bool:
        """Whether quotes only enclose whole cells of one line, and are doubled within.

        Then every other quote, from the first on, opens a cell or is the second of a doubled pair; the rest close a
        cell or are the first of a pair.
        """
        codes, quote = np.frombuffer(data, np.uint8), self.dialect.quote.encode()
        places = np.flatnonzero(codes == quote[0])
        if len(places) % 2:
            return False
        opens, closes = places[::2], places[1::2]
        edges = np.zeros(256, np.bool_)
        edges[list(b"\r\n" + self.dialect.delimiter.encode() + quote)] = True
        before, after = opens[opens > 0] - 1, closes[closes + 1 < len(codes)] + 1
        if not (edges[codes[before]].all() and edges[codes[after]].all()):
            return False
        ends = np.flatnonzero((codes == 10) | (codes == 13))
        return bool((np.searchsorted(ends, opens) == np.searchsorted(ends, closes)).all())
