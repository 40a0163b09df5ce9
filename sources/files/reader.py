"""Opens a text file as a table: encoding, dialect and layout are detected from a bounded sample.

In: a path and `ReadOptions`. Out: a `TextTable`, which streams the rows.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from orderbridge.sources.files.dialect import Dialect, lines_of
from orderbridge.sources.files.dialect_detection import choose_dialect, from_line
from orderbridge.sources.files.encoding import Text, read_text
from orderbridge.sources.files.escapes import has_proven_nulls
from orderbridge.sources.files.file_end import last_line_state, text_footnotes
from orderbridge.sources.files.file_kinds import InputFile
from orderbridge.sources.files.layout import Layout, detect_layout
from orderbridge.sources.files.layout_checks import check_single_column
from orderbridge.sources.files.model import DetectedFormat, ReadOptions
from orderbridge.sources.files.records import Record, records_of, width_of
from orderbridge.sources.files.text_table import TextTable


def open_text(source: InputFile, options: ReadOptions) -> TextTable:
    """Opens a text file.

    Raises:
        UsageError: the file is not text, or contains no table.
    """
    text = read_text(source, options.encoding)
    cut_off = len(text.head) < text.chars
    dialect, hints = choose_dialect(text.head, options, cut_off=cut_off)
    dialect = _with_nulls(dialect, text, options)
    records = head_records(text.head, dialect, options.header_row, hints, cut_off=cut_off)
    if options.delimiter is None and width_of(records) == 1:
        check_single_column(text.head)
    layout = detect_layout(records, options, skipped=(1,) if hints else ())
    shape = layout.shape
    width = len(shape.columns) + shape.surplus
    cut, notes = text_footnotes(text.tail, dialect, width)
    end = "whole"
    if text.ends_openly and not cut:
        others = [record.cells or [] for record in records if record.last < text.lines]
        end = last_line_state(text.tail, dialect, others, width)
    if end == "cut off" and options.checks_rows:
        shape = shape._replace(cut_line=text.lines)
    detected = replace(
        _described(text, dialect, layout),
        footnotes=tuple(text.lines - back + 1 for back in notes),
        may_be_cut_off=end == "unknown",
    )
    body = replace(text, chars=text.chars - cut)
    is_quote_given = options.quote is not None
    return TextTable(body, dialect, layout.data_line, shape, detected, quote_given=is_quote_given)


def _with_nulls(dialect: Dialect, text: Text, options: ReadOptions) -> Dialect:
    r"""The dialect, with `\N` as an empty cell if the whole text proves it."""
    has_escapes = dialect.escape == "\\" or "\\N" in text.head
    may_have = has_escapes and options.escape in (None, "\\")
    if may_have and has_proven_nulls(text.blocks(), dialect):
        return replace(dialect, escape="\\", has_nulls=True)
    return dialect


def _described(text: Text, dialect: Dialect, layout: Layout) -> DetectedFormat:
    """The format but for the end of the file."""
    return DetectedFormat(
        kind="text",
        **layout.found(),
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


def head_records(
    sample: str, dialect: Dialect, header_row: int | None, hints: int, *, cut_off: bool
) -> list[Record]:
    """The records of a sample after the lines about the file.

    Where a stray quote above a header whose line is given hides it, each line above is a record of one cell.
    """
    records = _numbered(records_of(from_line(sample, hints + 1), dialect, cut_off=cut_off), hints)
    line = header_row or 0
    if line <= hints + 1 or not _hides(records, line):
        return records
    above = islice(lines_of(sample), hints, line - 1)
    titles = [
        Record(number, number, [text.strip()] if text.strip() else [])
        for number, text in enumerate(above, hints + 1)
    ]
    below = records_of(from_line(sample, line), dialect, cut_off=cut_off)
    return titles + _numbered(below, line - 1)


def _hides(records: list[Record], line: int) -> bool:
    """Whether a line is within a broken record, or after the last one."""
    is_within = any(
        record.cells is None and record.line < line <= record.last for record in records
    )
    return is_within or (bool(records) and records[-1].last < line)


def _numbered(records: list[Record], before: int) -> list[Record]:
    """Records that begin after some lines."""
    if not before:
        return records
    return [
        record._replace(line=record.line + before, last=record.last + before) for record in records
    ]
