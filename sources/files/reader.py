"""Opens a text file as a table: encoding, dialect and layout are detected from a bounded sample.

In: a path and `ReadOptions`. Out: a `TextTable`, which streams the rows.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Final

from orderbridge.sources.files.dialect import (
    DATEV,
    DELIMITERS,
    SEP,
    Dialect,
    Record,
    best_dialect,
    check_options,
    has_proven_nulls,
    lines_of,
    records_of,
    width_of,
)
from orderbridge.sources.files.encoding import read_text
from orderbridge.sources.files.file_end import last_line_state, text_footnotes
from orderbridge.sources.files.file_kinds import InputFile
from orderbridge.sources.files.layout import detect_layout
from orderbridge.sources.files.layout_checks import check_single_column
from orderbridge.sources.files.model import DetectedFormat, ReadOptions
from orderbridge.sources.files.text_table import TextTable

MIN_SCORE: Final = 0.2
"""Of a dialect that shows that a `sep=` line is wrong."""


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
    width = len(shape.columns) + shape.surplus
    cut, from_end = text_footnotes(text.tail, dialect, width)
    end = "whole"
    if text.ends_openly and not cut:
        rows = [record.cells or [] for record in records if record.last < text.lines]
        end = last_line_state(text.tail, dialect, rows, width)
    if end == "cut off":
        shape = shape._replace(cut_line=text.lines)
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
        may_be_cut_off=end == "unknown",
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
