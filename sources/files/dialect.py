"""Detects the dialect of a text (delimiter, quote, escape) from a bounded sample, and reads records in it.

In: lines of text with their line ends. Out: `Dialect`, and records (lists of cells). Reading is strict: a misplaced
quote is an error. Detection tries each combination on the sample and takes the one with the most cells in rows of equal
width, preferring a first row that looks like column names.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.encoding import MAX_LINE
from orderbridge.sources.files.model import ReadOptions

if TYPE_CHECKING:
    from _csv import Reader

DELIMITERS: Final = (";", ",", "\t", "|")
DELIMITER: Final = re.compile(f"[{''.join(DELIMITERS)}]")
SEP: Final = re.compile(r'"?sep=(.)"?[ ,;\t|]*[\r\n]*$', re.IGNORECASE)
_DIGIT: Final = re.compile(r"\d")
_LINE_END: Final = re.compile(r"[\r\n]")


@dataclass(frozen=True)
class Dialect:
    """How cells are delimited. `quote` and `escape` are "" for none; `is_padded`: spaces follow the delimiter."""

    delimiter: str
    quote: str = '"'
    escape: str = ""
    is_padded: bool = False


class Record(NamedTuple):
    """A record of the file; `cells` is empty for a blank line, None if its quoting is broken."""

    line: int
    last: int
    cells: list[str] | None

    @property
    def filled(self) -> list[str]:
        """The cells with text, without the spaces around it."""
        return [cell.strip() for cell in self.cells or () if cell.strip()]


class Detection(NamedTuple):
    """A dialect of a sample, its score from 0 to 1, and the records that it gives."""

    dialect: Dialect
    score: float
    records: list[Record]


def reader(lines: Iterable[str], dialect: Dialect) -> Reader:
    """A strict reader of records; its `line_num` counts lines."""
    csv.field_size_limit(MAX_LINE)  # process-wide, so it is set each time
    return csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quotechar=dialect.quote or None,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
        escapechar=dialect.escape or None,
        doublequote=True,  # with a backslash too: an empty quoted cell looks like a doubled quote
        skipinitialspace=dialect.is_padded,
        strict=True,
    )


def lines_of(text: str) -> io.StringIO:
    """Lines with their ends: LF, CRLF or CR; other line separators of Unicode are text."""
    return io.StringIO(text, newline="")


def is_blank(cells: list[str], width: int) -> bool:
    """Whether a line is empty, or in a table of several columns only spaces or delimiters."""
    return not cells or (
        width > 1 and (not any(cells) or (len(cells) == 1 and not cells[0].strip(" \t")))
    )


def records_of(text: str, dialect: Dialect, *, cut_off: bool) -> list[Record]:
    """The records of whole lines; where they are not the whole file, without an incomplete last one."""
    records: list[Record] = []
    rows = reader(lines_of(text), dialect)
    last = 0
    while True:
        try:
            cells: list[str] | None = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            cells = None
            if cut_off and "end of data" in str(error):
                break
        records.append(Record(last + 1, rows.line_num, cells))
        last = rows.line_num
    return records


def width_of(records: list[Record]) -> int:
    """The most frequent width, weighted by cells; 1 if every record has one cell."""
    counts = Counter(len(record.cells) for record in records if record.cells and any(record.cells))
    return max(counts, key=lambda width: (counts[width] * (width - 1), width), default=1)


def looks_like_names(cells: list[str]) -> bool:
    """Whether a row could be a header: no empty cell, no digits, no duplicates."""
    return all(cells) and len(set(cells)) == len(cells) and not any(map(_DIGIT.search, cells))


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
    for dialect in (
        dialect for delimiter in delimiters for dialect in _dialects(text, delimiter, options)
    ):
        records = records_of(text, dialect, cut_off=cut_off)
        score = _score(records, dialect)
        if score > best.score * 1.001:  # on a tie, the earlier one
            best = Detection(dialect, score, records)
    return best


def _dialects(text: str, delimiter: str, options: ReadOptions) -> Iterator[Dialect]:
    is_padded = options.delimiter is None and _is_padded(text, delimiter)
    wrapped = {quote: _wrapped(text, delimiter, quote) for quote in ('"', "'")}
    # one cell such as 'Classic' does not make a quote
    is_usual = wrapped["'"] > wrapped['"'] and 2 * wrapped["'"] >= sum(
        bool(line.strip()) for line in lines_of(text)
    )
    quotes = ("'", '"') if is_usual else ('"',)
    for quote in (options.quote,) if options.quote is not None else quotes:
        if quote == delimiter:
            continue
        plain = Dialect(delimiter, quote, options.escape or "", is_padded)
        yield plain
        if options.escape is None and quote and f"\\{quote}" in text and delimiter != "\\":
            yield replace(plain, escape="\\")
    if options.quote is None and '"' in text and not wrapped['"'] and not is_usual:
        yield Dialect(delimiter, "", options.escape or "", is_padded)


def _is_padded(text: str, delimiter: str) -> bool:
    """Whether a space follows every delimiter in most of the lines with a delimiter."""
    lines = [line.rstrip("\r\n") for line in lines_of(text) if delimiter in line]
    padded = sum(
        line.count(delimiter) == line.count(f"{delimiter} ") + line.endswith(delimiter)
        for line in lines
    )
    return padded > len(lines) / 2


def _wrapped(text: str, delimiter: str, quote: str) -> int:
    """The number of cells that begin and end with the quote; those of several lines must have doubled ones."""
    if quote not in text:
        return 0
    edge, mark = re.escape(delimiter), re.escape(quote)
    cells = re.findall(
        rf"(?:^|{edge}|[\r\n]){mark}((?:[^{mark}]|{mark}{mark})*+){mark}(?={edge}|[\r\n]|$)", text
    )
    return sum(quote in cell or not _LINE_END.search(cell) for cell in cells)


def _score(records: list[Record], dialect: Dialect) -> float:
    """0 to 1: the share of lines in rows of equal width, lower for few cells and for cells with other delimiters."""
    filled = [record for record in records if record.cells is None or not is_blank(record.cells, 2)]
    if not filled:
        return 0.0
    width = width_of(records)
    rows = [record for record in filled if record.cells is not None and len(record.cells) == width]
    if not rows:
        return 0.0
    share = sum(r.last - r.line + 1 for r in rows) / sum(r.last - r.line + 1 for r in filled)
    if width == 1:
        return 0.02 * share
    other_mark = re.compile("[" + ";\t|".replace(dialect.delimiter, "") + "]")
    cells = [cell for record in rows for cell in record.cells or ()]
    with_mark = sum(map(bool, map(other_mark.search, cells))) / len(cells)
    header_factor = 1.0 if looks_like_names(rows[0].cells or []) else 0.5
    return share**2 * (1 - 1 / width) * (1 - with_mark) * header_factor
