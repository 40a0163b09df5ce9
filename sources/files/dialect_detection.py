"""Detects the dialect of a text from a bounded sample.

In: a text. Out: `Dialect`. Each combination is tried on the sample; the best one has the most cells in rows of equal
width, preferring a first row that looks like column names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.dialect import DELIMITERS, Dialect, lines_of
from orderbridge.sources.files.model import ReadOptions
from orderbridge.sources.files.padding import without_padding
from orderbridge.sources.files.records import (
    MAX_TITLES,
    Record,
    is_blank,
    looks_like_names,
    records_of,
    width_of,
)
from orderbridge.sources.files.separators import find_separator, has_padding

DATEV: Final = re.compile(r'"?(?:EXTF|DTVF)"?;\d+;')
"""The first line of files for DATEV: about the file, whatever the table below it has."""
SEP: Final = re.compile(r'"?sep=(.)"?[ ,;\t|]*[\r\n]*$', re.IGNORECASE)
MIN_SCORE: Final = 0.2
"""Of a dialect that shows that a `sep=` line is wrong."""
_DIGIT: Final = re.compile(r"\d")
_LINE_END: Final = re.compile(r"[\r\n]")


class Detection(NamedTuple):
    """A dialect of a sample, its score from 0 to 1, and the records that it gives."""

    dialect: Dialect
    score: float
    records: list[Record]


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
    body = from_line(sample, max(hints + 1, options.header_row or 1))
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


def from_line(text: str, line: int) -> str:
    """A text from a line on."""
    lines = lines_of(text)
    for _ in range(line - 1):
        lines.readline()
    return lines.read()


def check_options(options: ReadOptions) -> None:
    """Raises UsageError if the delimiter, quote or escape in the options is invalid."""
    delimiter, quote, escape = options.delimiter, options.quote, options.escape
    for name, value, others, example in (
        ("delimiter", delimiter, "", '--delimiter ";" or --delimiter tab'),
        ("quote", quote or None, delimiter or "", "--quote single"),
        ("escape", escape or None, f"{delimiter or ''}{quote or ''}", "--escape backslash"),
    ):
        if value is not None and (len(value) != 1 or value in f"\r\n\0 {others}"):
            raise UsageError(
                f"the {name} must be one character, not a space or another mark",
                f"Example: {example}",
            )


def best_dialect(
    text: str, delimiters: Sequence[str], options: ReadOptions, *, cut_off: bool
) -> Detection:
    """The best of some delimiters."""
    best = Detection(Dialect(delimiters[0], options.quote or "", options.escape or ""), -1.0, [])
    for delimiter in delimiters:
        for dialect in _dialects(text, delimiter, options):
            records = records_of(text, dialect, cut_off=cut_off)
            score = _score(records, dialect)
            if score > best.score * 1.001:  # on a tie, the earlier one
                best = Detection(dialect, score, records)
    return best


def _dialects(text: str, delimiter: str, options: ReadOptions) -> Iterator[Dialect]:
    """The dialects that a text with a delimiter may have."""
    is_given = options.delimiter is not None
    separator = find_separator(text, delimiter, is_given=is_given)
    is_padded = not is_given and not separator and has_padding(text, delimiter)
    plain = Dialect(delimiter, "", options.escape or "", is_padded, separator)
    if separator:
        text = "".join(without_padding(lines_of(text), Dialect(delimiter, separator=separator)))
    quotes = _quotes(text, delimiter) if options.quote is None else [options.quote]
    for quote in quotes:
        if quote == delimiter:
            continue
        yield replace(plain, quote=quote)
        has_escapes = quote != "" and f"\\{quote}" in text and delimiter != "\\"
        if options.escape is None and has_escapes:
            yield replace(plain, quote=quote, escape="\\")


def _quotes(text: str, delimiter: str) -> list[str]:
    """The quotes that a text may have, the most probable one first; "" for none."""
    doubles = _count_quoted(text, delimiter, '"')
    singles = _count_quoted(text, delimiter, "'")
    lines = sum(bool(line.strip()) for line in lines_of(text))
    # one cell such as 'Classic' does not make a quote
    if singles > doubles and 2 * singles >= lines:
        return ["'", '"']
    has_none = '"' in text and not doubles
    return ['"', ""] if has_none else ['"']


def _count_quoted(text: str, delimiter: str, quote: str) -> int:
    """The number of cells that begin and end with the quote; those of several lines must have doubled ones."""
    if quote not in text:
        return 0
    edge = re.escape(delimiter)
    mark = re.escape(quote)
    cells = re.findall(
        rf"(?:^|{edge}|[\r\n]){mark}((?:[^{mark}]|{mark}{mark})*+){mark}(?={edge}|[\r\n]|$)", text
    )
    return sum(quote in cell or not _LINE_END.search(cell) for cell in cells)


def _score(records: list[Record], dialect: Dialect) -> float:
    """0 to 1: the share of lines in rows of equal width, lower for few cells and for cells with other delimiters."""
    filled = [record for record in records if record.cells is None or not is_blank(record.cells, 2)]
    width = width_of(records)
    rows = [record for record in filled if record.cells is not None and len(record.cells) == width]
    if not rows or _is_prose(rows, filled, dialect):
        return 0.0
    share = _count_lines(rows) / _count_lines(filled)
    if width == 1:
        return 0.02 * share
    header_factor = 1.0 if looks_like_names(rows[0].cells or []) else 0.5
    return share**2 * (1 - 1 / width) * (1 - _share_with_mark(rows, dialect)) * header_factor


def _count_lines(records: list[Record]) -> int:
    return sum(record.last - record.line + 1 for record in records)


def _share_with_mark(rows: list[Record], dialect: Dialect) -> float:
    """The share of cells that have another delimiter."""
    other_mark = re.compile("[" + ";\t|".replace(dialect.delimiter, "") + "]")
    cells = [cell for record in rows for cell in record.cells or ()]
    return sum(map(bool, map(other_mark.search, cells))) / len(cells)


def _is_prose(rows: list[Record], filled: list[Record], dialect: Dialect) -> bool:
    """Whether the rows of the greatest width are only the last lines of one column: `García, Luis` has no two cells."""
    count = len(rows)
    if count == len(filled) or rows[0] is not filled[-count]:
        return False
    cells = [cell for record in rows for cell in record.cells or ()]
    if count == 1 and len(filled) > MAX_TITLES + 1 and not looks_like_names(cells):
        return True
    is_adjacent = filled[-count - 1].last + 1 == rows[0].line
    is_list = dialect.is_padded and is_adjacent and 2 * count < len(filled)
    return is_list and len(cells) == 2 * count and not any(map(_DIGIT.search, cells))
