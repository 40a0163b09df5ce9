"""Opens a text file as a table: encoding, dialect and layout are detected from a bounded sample.

In: a path and `ReadOptions`. Out: a `TextTable`, or an error that names what is unclear.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from sources.files.ambiguity import (
    check_decimal_commas,
    check_hint,
    check_names_with_commas,
    check_other_marks,
    check_single_column,
    check_spaces,
)
from sources.files.dialect import DELIMITERS, SPACE_RUNS, Dialect, best_dialect, detect_dialect, records_of, width_of
from sources.files.encoding import read_text
from sources.files.layout import detect_footnotes, detect_layout
from sources.files.model import DetectedFormat, ReadOptions
from sources.files.reader import TextBody, TextTable
from sources.files.row_shape import RowShape
from sources.files.text import Text

SAMPLE: Final = 256 * 1024
MIN_SCORE: Final = 0.2
"""Of a dialect that is certain enough without looking at spaces."""


def open_text(path: Path, options: ReadOptions) -> TextTable:
    """Opens a text file.

    Raises:
        UsageError: the file is not text, or contains no table.
    """
    text = read_text(path, options.encoding)
    sample, cut_off = _sample(text)
    dialect, hints = choose_dialect(sample, options, cut_off=cut_off)
    records = [record for record in records_of(sample, dialect, cut_off=cut_off) if record.line > hints]
    layout = detect_layout(records, options, skipped=(1,) if hints else (), delimited=True)
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
        is_encoding_assumed=text.is_assumed,
        has_bom=text.has_bom,
        delimiter=dialect.delimiter,
        quote=dialect.quote,
        escape=dialect.escape,
        is_padded=dialect.is_padded,
        line_ends=text.line_ends,
    )
    body = TextBody(replace(text, chars=text.chars - cut), dialect, layout.data_line, options.quote is not None)
    return TextTable(body, RowShape(layout.columns, options.short_rows == "fill", layout.dropped), detected)


def choose_dialect(sample: str, options: ReadOptions, *, cut_off: bool) -> tuple[Dialect, int]:
    """The dialect of a sample, and the number of `sep=` lines at its start.

    Raises:
        UsageError: there are two possible readings.
    """
    detection = detect_dialect(sample, options, cut_off=cut_off)
    dialect, body = detection.dialect, detection.body
    if options.delimiter is not None:
        return dialect, detection.hint_lines
    if detection.hint_lines:
        other, score = best_dialect(body, DELIMITERS, options, cut_off=cut_off)
        if score > max(MIN_SCORE, 2 * detection.score) or width_of(records_of(body, dialect, cut_off=cut_off)) == 1:
            check_hint(body, dialect, other)
        return dialect, detection.hint_lines
    records = records_of(body, dialect, cut_off=cut_off)
    if dialect.delimiter == ",":
        if dialect.is_padded:
            check_names_with_commas(records)
        spaces, _ = best_dialect(body, SPACE_RUNS[1:], options, cut_off=cut_off)
        check_decimal_commas(body, records_of(body, spaces, cut_off=cut_off))
    if detection.score < MIN_SCORE:
        runs, score = best_dialect(body, SPACE_RUNS[:1], options, cut_off=cut_off)
        if score > max(detection.score, MIN_SCORE):
            return runs, 0
        if width_of(records) == 1:
            check_single_column(body, dialect)
            check_other_marks(body)
            spaces, _ = best_dialect(body, SPACE_RUNS[1:], options, cut_off=cut_off)
            if check_spaces(records_of(body, spaces, cut_off=cut_off)):
                return spaces, 0
    return dialect, 0


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
