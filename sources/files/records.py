"""The records of a text in a dialect, read strictly: a misplaced quote is an error.

In: lines of text with their line ends. Out: records, which are lists of cells.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from orderbridge.sources.files.dialect import Dialect, lines_of
from orderbridge.sources.files.encoding import MAX_LINE
from orderbridge.sources.files.escapes import null_pattern
from orderbridge.sources.files.padding import without_padding

if TYPE_CHECKING:
    from _csv import Reader

MAX_TITLES: Final = 2
"""Below more lines of one cell, a last one with a delimiter is a row of one column, unless it has names."""
_DIGIT: Final = re.compile(r"\d")


class Record(NamedTuple):
    """A record of the file; `cells` is empty for a blank line, None if its quoting is broken."""

    line: int
    last: int
    cells: list[str] | None

    @property
    def filled(self) -> list[str]:
        """The cells with text, without the spaces around it."""
        return [cell.strip() for cell in self.cells or () if cell.strip()]


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


def is_blank(cells: list[str], width: int) -> bool:
    """Whether a line is empty, or in a table of several columns only spaces or delimiters."""
    return not cells or (
        width > 1 and (not any(cells) or (len(cells) == 1 and not cells[0].strip()))
    )


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
