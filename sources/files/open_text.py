"""Opens a text file as a table: encoding, dialect and layout are detected from a bounded sample.

In: a path and `ReadOptions`. Out: a `TextTable`, or an error that names what is unclear.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from sources.files.ambiguity import check_single_column
from sources.files.dialect import (
    DELIMITERS,
    SEP,
    Detection,
    best_dialect,
    check_options,
    lines_of,
    width_of,
)
from sources.files.encoding import read_text
from sources.files.layout import detect_layout, text_footnotes
from sources.files.model import DetectedFormat, ReadOptions
from sources.files.reader import TextBody, TextTable
from sources.files.text import Text

SAMPLE: Final = 256 * 1024
MIN_SCORE: Final = 0.2
"""Of a dialect that shows that a `sep=` line is wrong."""


def open_text(path: Path, options: ReadOptions) -> TextTable:
    """Opens a text file.

    Raises:
        UsageError: the file is not text, or contains no table.
    """
    text = read_text(path, options.encoding)
    sample, cut_off = _sample(text)
    (dialect, _, records), hints = choose_dialect(sample, options, cut_off=cut_off)
    if hints:
        records = [replace(record, line=record.line + hints, last=record.last + hints) for record in records]
    layout = detect_layout(records, options, skipped=(1,) if hints else (), delimited=True)
    if options.delimiter is None and len(layout.columns) == 1:
        check_single_column(sample)
    raw = max(width_of([r for r in records if r.line >= layout.data_line]), len(layout.columns))
    cut, from_end = text_footnotes(text.tail, dialect, raw)
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
        is_encoding_assumed=text.is_assumed,
        has_bom=text.has_bom,
        delimiter=dialect.delimiter,
        quote=dialect.quote,
        escape=dialect.escape,
        is_padded=dialect.is_padded,
        line_ends=text.line_ends,
    )
    body = TextBody(replace(text, chars=text.chars - cut), dialect, layout.data_line, options.quote is not None)
    return TextTable(body, layout.row_shape(options, fill=options.short_rows == "fill"), detected)


def choose_dialect(sample: str, options: ReadOptions, *, cut_off: bool) -> tuple[Detection, int]:
    """The most probable dialect of a sample, and the number of `sep=` lines at its start, which have no record.

    Raises:
        UsageError: there are two possible readings, or the delimiter, quote or escape in the options is invalid.
    """
    check_options(options)
    first = next(lines_of(sample), "")
    hint = SEP.fullmatch(first)
    body = sample[len(first) :] if hint else sample
    best = best_dialect(
        body, DELIMITERS if options.delimiter is None else [options.delimiter], options, cut_off=cut_off
    )
    if hint and options.delimiter is None:
        hinted = best_dialect(body, [hint[1]], options, cut_off=cut_off)
        best = best if best.score > max(MIN_SCORE, 2 * hinted.score) else hinted
    return best, int(hint is not None)


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
