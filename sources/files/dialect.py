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
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.encoding import MAX_LINE
from orderbridge.sources.files.model import ReadOptions

if TYPE_CHECKING:
    from _csv import Reader

DELIMITERS: Final = (";", ",", "\t", "|")
DELIMITER: Final = re.compile(f"[{''.join(DELIMITERS)}]")
DATEV: Final = re.compile(r'"?(?:EXTF|DTVF)"?;\d+;')
"""The first line of files for DATEV: about the file, whatever the table below it has."""
SEP: Final = re.compile(r'"?sep=(.)"?[ ,;\t|]*[\r\n]*$', re.IGNORECASE)
MAX_TITLES: Final = 2
"""Below more lines of one cell, a last one with a delimiter is a row of one column, unless it has names."""
_DIGIT: Final = re.compile(r"\d")
_LINE_END: Final = re.compile(r"[\r\n]")
_QUOTED: Final = re.compile(r'"(?:[^"\r\n]|"")*+"')
_LETTER_ESCAPE: Final = re.compile(r"\\[^\W_]")
_SPACE: Final = r"[ \t]"
_RUN: Final = re.compile(r"[ \t]{2,}")
_SPACES: Final = re.compile(" {2,}")


@dataclass(frozen=True)
class Dialect:
    r"""How cells are delimited. `quote` and `escape` are "" for none; `is_padded`: spaces follow the delimiter.

    Attributes:
        separator: the delimiter with what stands beside it and is no data: a space on both sides for any white
            space, or a second delimiter on one; "" for the delimiter alone.
        has_nulls: whether `\N` is an empty cell.
    """

    delimiter: str
    quote: str = '"'
    escape: str = ""
    is_padded: bool = False
    separator: str = ""
    has_nulls: bool = False


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
    if dialect.separator:
        lines = without_padding(lines, dialect)
    if dialect.has_nulls:
        null = null_pattern(dialect.delimiter)
        lines = (null.sub("", line) for line in lines)
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


def without_padding(lines: Iterable[str], dialect: Dialect) -> Iterator[str]:
    """Lines with the delimiter alone between cells, and no white space outside of the quotes of a cell."""
    padding = _Padding(dialect)
    is_open = False
    for line in lines:
        text, is_open = padding.remove(line, is_open=is_open)
        yield text


class _Padding:
    """What stands beside the delimiters and quotes of a dialect and is no data."""

    def __init__(self, dialect: Dialect) -> None:
        self.delimiter, self.quote = dialect.delimiter, dialect.quote
        before, _, after = dialect.separator.partition(dialect.delimiter)
        self.spaces = " \t".replace(dialect.delimiter, "")
        self.before = self.spaces if before.isspace() else ""
        self.second_before = before.strip()
        self.second_after = after.strip()
        mark = re.escape(dialect.quote or "\0")
        escaped = r"\\.|" if dialect.escape else ""
        self._quoted = re.compile(f"(?:{mark}{mark}|{escaped}[^{mark}])*+", re.DOTALL)
        self._spaces = re.compile(f"[{self.spaces}]*+")
        self._end = re.compile(
            f"[{self.spaces}]*+(?={re.escape(self.second_before)}{re.escape(self.delimiter)}|[\r\n]|\\Z)"
        )

    def remove(self, line: str, *, is_open: bool) -> tuple[str, bool]:
        """A line without padding, and whether a quoted cell goes on in the next one; `is_open`: it begins in one."""
        parts: list[str] = []
        at = 0
        while True:
            text, at, is_open = self._quoted_part(line, at, is_open=is_open)
            parts.append(text)
            end = -1 if is_open else line.find(self.delimiter, at)
            if end < 0:
                last = line[at:].rstrip("\r\n")
                parts += [last.rstrip(self.before), line[at + len(last) :]]
                return "".join(parts), is_open
            cell = line[at:end].removesuffix(self.second_before).rstrip(self.before)
            parts += [cell, self.delimiter]
            at = end + len(self.delimiter)
            if self.second_after and line.startswith(self.second_after, at):
                at += len(self.second_after)
            if self.before:
                at = self._end_of(self._spaces, line, at)

    def _quoted_part(self, line: str, at: int, *, is_open: bool) -> tuple[str, int, bool]:
        """The quoted part of a cell, where it ends in the line, and whether it goes on in the next line."""
        if not is_open:
            begin = self._end_of(self._spaces, line, at)
            if not self.quote or not line.startswith(self.quote, begin):
                return "", at, False
            at = begin + 1
        end = self._end_of(self._quoted, line, at)
        text = ("" if is_open else self.quote) + line[at:end]
        if end == len(line):
            return text, end, True
        padding = self._end.match(line, end + 1)
        return text + self.quote, padding.end() if padding else end + 1, False

    @staticmethod
    def _end_of(pattern: re.Pattern[str], line: str, at: int) -> int:
        match = pattern.match(line, at)
        return match.end() if match else at


@cache
def null_pattern(delimiter: str) -> re.Pattern[str]:
    r"""`\N` alone in a cell without quotes."""
    mark = re.escape(delimiter)
    return re.compile(rf"(?:^|(?<=[{mark}\r\n]))\\N(?=[{mark}\r\n]|\Z)")


def has_letter_escapes(text: str, dialect: Dialect) -> bool:
    r"""Whether a backslash stands before a letter or digit, other than in a cell `\N` that is an empty one."""
    if "\\" not in text:
        return False
    if dialect.has_nulls:
        text = null_pattern(dialect.delimiter).sub("", text)
    return _LETTER_ESCAPE.search(text.replace("\\\\", "")) is not None


def has_proven_nulls(blocks: Iterable[str], dialect: Dialect) -> bool:
    r"""Whether a text has `\N` in cells of its own, and each other backslash is an escape of MySQL or PostgreSQL."""
    null = null_pattern(dialect.delimiter)
    escapes = re.compile(rf"\\[\\'\"0bnrtZ\r\n{re.escape(dialect.delimiter)}]")
    is_found = False
    for block in blocks:
        if "\\" in block:
            rest, count = null.subn("", block)
            is_found = is_found or count > 0
            if "\\" in escapes.sub("", rest):
                return False
    return is_found


def has_second_mark(cells: Iterable[str], dialect: Dialect) -> bool:
    """Whether a cell begins or ends with the second delimiter of a dialect: there is one too many."""
    second = dialect.separator.replace(dialect.delimiter, "").strip()
    return bool(second) and any(cell.startswith(second) or cell.endswith(second) for cell in cells)


def is_blank(cells: list[str], width: int) -> bool:
    """Whether a line is empty, or in a table of several columns only spaces or delimiters."""
    return not cells or (
        width > 1 and (not any(cells) or (len(cells) == 1 and not cells[0].strip()))
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
    """The most frequent width, weighted by cells; 1 if every record has one cell.

    A first line that is wider than all others, which are equal, is above the table.
    """
    widths = [len(record.cells) for record in records if record.cells and any(record.cells)]
    counts = Counter(widths)
    if len(counts) == 2 and counts[widths[0]] == 1 and widths[-1] > 1 and len(widths) > MAX_TITLES:
        return widths[-1]
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
    separator = _separator(text, delimiter, is_given=options.delimiter is not None)
    is_padded = options.delimiter is None and not separator and _is_padded(text, delimiter)
    if separator:
        text = "".join(without_padding(lines_of(text), Dialect(delimiter, separator=separator)))
    wrapped = {quote: _wrapped(text, delimiter, quote) for quote in ('"', "'")}
    # one cell such as 'Classic' does not make a quote
    is_usual = wrapped["'"] > wrapped['"'] and 2 * wrapped["'"] >= sum(
        bool(line.strip()) for line in lines_of(text)
    )
    quotes = ("'", '"') if is_usual else ('"',)
    for quote in (options.quote,) if options.quote is not None else quotes:
        if quote == delimiter:
            continue
        plain = Dialect(delimiter, quote, options.escape or "", is_padded, separator)
        yield plain
        if options.escape is None and quote and f"\\{quote}" in text and delimiter != "\\":
            yield replace(plain, escape="\\")
    if options.quote is None and '"' in text and not wrapped['"'] and not is_usual:
        yield Dialect(delimiter, "", options.escape or "", is_padded, separator)


def _separator(text: str, delimiter: str, *, is_given: bool) -> str:
    """What separates cells if it is more than the delimiter: tabs beside each one, spaces after quotes, or two marks.

    Where a comma stands beside each tab, the tab is the delimiter: commas may also be those of decimals.
    """
    seconds = ",;|" if delimiter == "\t" else "\t"
    besides = ['" ', '"\t', *(f"{delimiter}{second}" for second in seconds)]
    besides += [f"{second}{delimiter}" for second in seconds]
    if delimiter not in text or not any(beside in text for beside in besides):
        return ""
    run = _SPACES if delimiter == "\t" else _RUN
    lines = [_plain(line, run) for line in lines_of(text) if delimiter in line]

    def is_usual(before: str, after: str) -> bool:
        """Whether this stands beside each delimiter of most lines."""
        usual = 0
        for line in lines:
            at_edge = line.startswith(delimiter) if before else line.endswith(delimiter)
            both = line.count(f"{before}{delimiter}{after}") + at_edge
            usual += line.count(delimiter) == both
        return 2 * usual > len(lines)

    if delimiter == "\t":
        for other in "" if is_given else seconds:
            if is_usual(other, ""):
                return f"{other}\t"
            if is_usual("", other):
                return f"\t{other}"
    elif is_usual("\t", "") or is_usual("", "\t"):
        return f" {delimiter} "
    spaced = re.compile(rf'""{_SPACE}(?:{re.escape(delimiter)}|$)')
    usual_spaces = sum(map(bool, map(spaced.search, lines)))
    return f" {delimiter} " if 2 * usual_spaces > len(lines) else ""


def _plain(line: str, run: re.Pattern[str]) -> str:
    """A line with its quoted texts emptied, and each run of white space as one tab or space."""
    return run.sub(lambda found: "\t" if "\t" in found[0] else " ", _emptied(line))


def _emptied(line: str) -> str:
    """A line with its quoted texts emptied, without its end."""
    text = line.rstrip("\r\n")
    return _QUOTED.sub('""', text) if '"' in text else text


def _is_padded(text: str, delimiter: str) -> bool:
    """Whether a space follows every delimiter outside of quotes in most of the lines with a delimiter."""
    if f"{delimiter} " not in text:
        return False
    lines = [_emptied(line) for line in lines_of(text) if delimiter in line]
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


def _score(records: list[Record], dialect: Dialect) -> float:
    """0 to 1: the share of lines in rows of equal width, lower for few cells and for cells with other delimiters."""
    filled = [record for record in records if record.cells is None or not is_blank(record.cells, 2)]
    if not filled:
        return 0.0
    width = width_of(records)
    rows = [record for record in filled if record.cells is not None and len(record.cells) == width]
    if not rows or _is_prose(rows, filled, dialect):
        return 0.0
    share = sum(r.last - r.line + 1 for r in rows) / sum(r.last - r.line + 1 for r in filled)
    if width == 1:
        return 0.02 * share
    other_mark = re.compile("[" + ";\t|".replace(dialect.delimiter, "") + "]")
    cells = [cell for record in rows for cell in record.cells or ()]
    with_mark = sum(map(bool, map(other_mark.search, cells))) / len(cells)
    header_factor = 1.0 if looks_like_names(rows[0].cells or []) else 0.5
    return share**2 * (1 - 1 / width) * (1 - with_mark) * header_factor
