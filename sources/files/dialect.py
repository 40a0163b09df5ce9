"""The dialect of a text: delimiter, quote and escape, from a bounded sample; and records in it.

In: lines of text, their ends kept. Out: `Dialect`, and records (lists of cells) read strictly: a quote out of place is
an error and not a guess. Each combination is tried on the sample; the one with most cells in rows of one width wins,
where the first of these rows reads like names.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Protocol

from sources.errors import UsageError
from sources.files.encoding import MAX_LINE
from sources.files.model import MAX_COLUMNS, ReadOptions

DELIMITERS: Final = (";", ",", "\t", "|")
SPACE_RUNS: Final = ("  ", " ")
NAMES: Final = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe", "  ": "runs of two spaces", " ": "spaces"}
_SEP: Final = re.compile(r'"?sep=(.)"?[ ,;\t|]*[\r\n]*$', re.IGNORECASE)
_DIGIT: Final = re.compile(r"\d")
_RUNS: Final = re.compile(r" {2,}")


@dataclass(frozen=True)
class Dialect:
    """How cells stand in a line. `quote` and `escape` are "" where there is none."""

    delimiter: str
    quote: str = '"'
    escape: str = ""


@dataclass(frozen=True)
class Record:
    """What stands between two ends of records; `cells` is empty for a blank line, None where quoting is broken."""

    line: int
    last: int
    cells: list[str] | None


class Reader(Protocol):
    """What csv.reader gives."""

    @property
    def line_num(self) -> int: ...  # noqa: D102 # as in csv

    def __iter__(self) -> Iterator[list[str]]: ...
    def __next__(self) -> list[str]: ...


class _Runs:
    """Cells between runs of two or more spaces, for which csv has no delimiter. Nothing is quoted there."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.line_num = 0
        self._lines = iter(lines)

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        line = next(self._lines).strip(" \r\n")
        self.line_num += 1
        return _RUNS.split(line) if line else []


def reader(lines: Iterable[str], dialect: Dialect) -> Reader:
    """A strict reader of records; its `line_num` counts lines."""
    if dialect.delimiter == "  ":
        return _Runs(lines)
    csv.field_size_limit(MAX_LINE)  # of the process, so it is said again each time
    return csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quotechar=dialect.quote or None,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
        escapechar=dialect.escape or None,
        doublequote=True,  # beside a backslash too: an empty cell in quotes looks like a doubled one
        skipinitialspace=dialect.delimiter == " ",
        strict=True,
    )


def lines_of(text: str) -> io.StringIO:
    """Lines with their ends: LF, CRLF or CR, and nothing else that Unicode calls a line end."""
    return io.StringIO(text, newline="")


def is_blank(cells: list[str], width: int) -> bool:
    """A line with nothing, or nothing but spaces where that is not the one cell."""
    return not cells or (len(cells) == 1 and width > 1 and not cells[0].strip(" \t"))


def records_of(text: str, dialect: Dialect, *, cut_off: bool) -> list[Record]:
    """The records of a sample.

    Args:
        text: whole lines.
        dialect: how to read them.
        cut_off: the sample is not the whole file, so that its last record may be half of one and is left out.
    """
    found: list[Record] = []
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
        found.append(Record(last + 1, rows.line_num, cells))
        last = rows.line_num
    return found


def width_of(records: list[Record]) -> int:
    """The width with most cells in it; where every record has one cell, 1."""
    counts = Counter(len(record.cells) for record in records if record.cells)
    return max(counts, key=lambda width: (counts[width] * (width - 1), width), default=1)


def looks_like_names(cells: list[str]) -> bool:
    """Whether a row could be a header: all cells filled, none with a digit, no two alike."""
    return all(cells) and len(set(cells)) == len(cells) and not any(map(_DIGIT.search, cells))


def find_dialect(sample: str, told: ReadOptions, *, cut_off: bool) -> tuple[Dialect, int]:
    """The dialect of a sample, and how many lines at its head are a `sep=` line (0 or 1).

    Raises:
        UsageError: what was told is no delimiter, quote or escape.
    """
    _check(told)
    first = next(lines_of(sample), "")
    hint = _SEP.fullmatch(first)
    body = sample[len(first) :] if hint else sample
    delimiter = told.delimiter or (hint.group(1) if hint else None)
    choices = DELIMITERS if delimiter is None else (delimiter,)
    best, score = _best(body, choices, told, cut_off=cut_off)
    if delimiter is None and score < 0.2:
        spaced, by_spaces = _best(body, SPACE_RUNS, told, cut_off=cut_off)
        if by_spaces > max(score, 0.2):
            best = spaced
    return best, int(hint is not None)


def _check(told: ReadOptions) -> None:
    if told.delimiter is not None and (
        (len(told.delimiter) != 1 and told.delimiter != "  ") or told.delimiter in "\r\n\0"
    ):
        raise UsageError("the delimiter is one character", 'Examples: --delimiter ";", --delimiter tab.')
    if told.quote and (len(told.quote) != 1 or told.quote in "\r\n\0 " or told.quote == told.delimiter):
        raise UsageError("the quote is one character, and not the delimiter", 'Example: --quote "\'".')
    if told.escape and (len(told.escape) != 1 or told.escape in f"\r\n\0 {told.delimiter or ''}{told.quote or ''}"):
        raise UsageError("the escape is one character, and neither delimiter nor quote", "Example: --escape backslash.")


def _best(text: str, delimiters: tuple[str, ...], told: ReadOptions, *, cut_off: bool) -> tuple[Dialect, float]:
    best = Dialect(delimiters[0], told.quote if told.quote is not None else '"', told.escape or "")
    top = -1.0
    for delimiter in delimiters:
        for dialect in _dialects(text, delimiter, told):
            score = _score(records_of(text, dialect, cut_off=cut_off), dialect)
            if score > top * 1.001:  # the earlier one where there is nothing between them
                best, top = dialect, score
    return best, top


def _dialects(text: str, delimiter: str, told: ReadOptions) -> Iterator[Dialect]:
    if delimiter == "  ":
        yield Dialect(delimiter, "", "")
        return
    wrapped = {quote: _wrapped(text, delimiter, quote) for quote in ('"', "'")}
    quotes = ('"', "'") if wrapped['"'] >= wrapped["'"] else ("'", '"')
    for quote in (told.quote,) if told.quote is not None else quotes:
        if quote == delimiter or (quote == "'" and not wrapped["'"] and told.quote is None):
            continue
        plain = Dialect(delimiter, quote, told.escape or "")
        yield plain
        if told.escape is None and quote and f"\\{quote}" in text and delimiter != "\\":
            yield replace(plain, escape="\\")
    if told.quote is None and not wrapped['"'] and not wrapped["'"]:
        yield Dialect(delimiter, "", told.escape or "")


def _wrapped(text: str, delimiter: str, quote: str) -> int:
    """How many cells look quoted: the quote at their beginning and at their end."""
    edge, mark = re.escape(delimiter), re.escape(quote)
    return len(re.findall(rf"(?:^|{edge}|[\r\n]){mark}(?:[^{mark}\r\n]|{mark}{mark})*{mark}(?={edge}|[\r\n]|$)", text))


def _score(records: list[Record], dialect: Dialect) -> float:
    """From 0 to 1: the share of lines in rows of one width, less for few cells and for cells with other delimiters."""
    filled = [record for record in records if record.cells is None or not is_blank(record.cells, 2)]
    if not filled:
        return 0.0
    width = width_of(records)
    if width > MAX_COLUMNS:
        return 0.0
    rows = [record for record in filled if record.cells is not None and len(record.cells) == width]
    broken = sum(record.cells is None for record in filled)
    share = sum(r.last - r.line + 1 for r in rows) / sum(r.last - r.line + 1 for r in filled)
    share *= 1 - broken / len(filled)
    if width == 1:
        return 0.02 * share
    if len(rows) == 1 and len(filled) > 1:
        share *= 0.5
    stronger = [mark for mark in (";", "\t", "|") if mark != dialect.delimiter]
    cells = [cell for record in rows for cell in record.cells or ()]
    strange = sum(any(mark in cell for mark in stronger) for cell in cells) / len(cells)
    named = 1.0 if looks_like_names(rows[0].cells or []) else 0.5
    return share**2 * (1 - 1 / width) * (1 - strange) ** 3 * named
