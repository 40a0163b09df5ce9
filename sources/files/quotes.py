"""Quotes and backslashes that may have shifted the cells of a record, or joined several rows into one.

In: a record as the file has it, and its cells as csv reads them. Out: why its cells are not certain, if they are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from orderbridge.sources.files.dialect import Dialect
from orderbridge.sources.files.escapes import has_letter_escapes
from orderbridge.sources.files.model import RejectedRow
from orderbridge.sources.files.padding import has_second_mark
from orderbridge.sources.files.row_shape import RowShape

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
_UNOPENED: Final = (
    "a cell ends with a quote that nothing opens; remove the quote, or put the whole cell in quotes, or if it belongs "
    "to the cell: --quote none"
)
_SECOND_MARK: Final = (
    "a cell begins or ends with the mark that stands beside each delimiter: there is one too many"
)
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_SPACED: Final = re.compile(r'[ \xa0]+"[^\s"]')
_OPENS_INSIDE: Final = re.compile(r'.+"[^\s"][^"]*$')
_INCHES: Final = re.compile(r'(?:.*(?:[^\w.,/]|[xX×]))?\d{1,2}(?:[.,/]\d{1,2})?\s?"', re.DOTALL)
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*"?')


@dataclass(frozen=True)
class QuoteCheck:
    """Checks the records of a table.

    Attributes:
        shape: that the rows must have.
        is_given: the quote was given as an option, so that it is believed.
    """

    dialect: Dialect
    shape: RowShape
    is_given: bool

    def rejected(self, line: int, last: int, text: str, cells: Sequence[str]) -> RejectedRow | None:
        """A record as rejected if its cells are not certain; `text` is the record as the file has it."""
        dialect = self.dialect
        # the cells of the first two are not as they were in the file
        if dialect.escape and has_letter_escapes(text, dialect):
            return RejectedRow(line, last, "quoting", _ESCAPED)
        if last > line and self._swallows(cells):
            return RejectedRow(line, last, "quoting", _SWALLOWS.format(last))
        if self._has_stray_quotes(text, is_long=last > line):
            return RejectedRow(line, last, "quoting", _STRAY_QUOTE, tuple(cells))
        is_whole = len(cells) >= len(self.shape.columns)
        if '"' in text and is_whole and self._has_unopened_quote(text):
            return RejectedRow(line, last, "quoting", _UNOPENED, tuple(cells))
        if self._has_unclosed_quote(cells):
            return RejectedRow(line, last, "quoting", _UNCLOSED, tuple(cells))
        if has_second_mark(cells, dialect):
            return RejectedRow(line, last, "too_long", _SECOND_MARK)
        return None

    def _swallows(self, cells: Sequence[str]) -> bool:
        width = len(self.shape.columns)
        widths = (width, width + self.shape.surplus)
        return not self.is_given and swallows(cells, widths, self.dialect.delimiter)

    def _has_stray_quotes(self, text: str, *, is_long: bool) -> bool:
        if self.is_given or self.dialect.quote not in ('"', "") or not (is_long or '"' in text):
            return False
        return has_stray_quotes(text, self.dialect.delimiter, is_padded=self.dialect.is_padded)

    def _has_unopened_quote(self, text: str) -> bool:
        """Whether an unquoted cell ends with its only quote, which is not that of inches."""
        dialect = self.dialect
        if self.is_given or not self.shape.has_all_checks:
            return False
        if dialect.quote != '"' or dialect.escape:
            return False
        cells = _unquoted_cells(text.rstrip("\r\n"), dialect.delimiter, is_padded=dialect.is_padded)
        return any(map(_is_unopened, cells))

    def _has_unclosed_quote(self, cells: Sequence[str]) -> bool:
        """Whether a cell begins with a double quote that is not the quote of the file, and is more than a ditto."""
        if self.is_given or self.dialect.quote == '"':
            return False
        return any(cell != '"' and cell.startswith('"') for cell in cells)


def _is_unopened(cell: str) -> bool:
    text = cell.strip()
    return text.endswith('"') and text.count('"') == 1 and not _INCHES.fullmatch(text)


def swallows(cells: Sequence[str], widths: Sequence[int], delimiter: str) -> bool:
    """Whether a multi-line record contains rows of the table: two stray quotes join everything between them.

    Each line of the record is counted as if quotes had no meaning. Lines of an address, of prose or HTML can match by
    chance, so that most of them must, and of two columns more than two, or the quotes were alone in their cells: ditto
    marks. `widths` are those with and without empty cells at the end.
    """
    text = delimiter.join(cell if _LINE_END.search(cell) else "" for cell in cells)
    lines = list(filter(None, _LINE_END.split(text)))
    full = sum(_size(line, delimiter) in widths for line in lines)
    is_ditto = any(cell.startswith(("\r", "\n")) and cell.endswith(delimiter) for cell in cells)
    most_by_chance = 2 if max(widths) == 2 and not is_ditto else 1
    return max(widths) > 1 and 2 * full > len(lines) > most_by_chance


def _size(line: str, delimiter: str) -> int:
    """The number of cells of a line if quotes had no meaning; 0 for prose: spaces follow delimiters, quotes do not."""
    spaced = line.count(f"{delimiter} ")
    is_prose = spaced > 0 and f'{delimiter}"' not in line
    return 0 if is_prose else line.count(delimiter) - spaced + 1


def has_stray_quotes(line: str, delimiter: str, *, is_padded: bool = False) -> bool:
    """Whether a quote opens inside an unquoted cell, and is closed at the end of a later cell.

    Also true for a cell with spaces before an opening quote, where spaces do not follow the other delimiters.
    `14"Screw M14, steel",14.50` has the right number of cells only by chance. Inches (`5" tube`, `3" x 4"`) have no
    text right after the quote, or no partner in another cell.
    """
    texts = list(_unquoted_cells(line.rstrip("\r\n"), delimiter, is_padded=is_padded))
    # a doubled quote is one quote of the text, or a closing one beside another
    readings = ([text.replace('""', one) for text in texts] for one in ('"', ""))
    return any(map(_opens_and_closes, readings))


def _opens_and_closes(cells: Sequence[str]) -> bool:
    """Whether one of some unquoted cells has an opening quote inside, and a later one ends with its closing quote."""
    is_open = False
    for cell in cells:
        if _SPACED.match(cell):
            return True
        if cell.count('"') % 2 == 0:
            continue
        if is_open and cell.rstrip().endswith('"'):
            return True
        is_open = is_open or _OPENS_INSIDE.match(cell) is not None
    return False


def _unquoted_cells(line: str, delimiter: str, *, is_padded: bool) -> Iterator[str]:
    """The cells of a line that do not begin with a quote."""
    at = 0
    while at <= len(line):
        while is_padded and line.startswith(" ", at):
            at += 1
        if line.startswith('"', at):
            match = _QUOTED.match(line, at)
            at = match.end() if match else len(line)
            end = line.find(delimiter, at)
        else:
            end = line.find(delimiter, at)
            yield line[at : end if end >= 0 else len(line)]
        if end < 0:
            return
        at = end + len(delimiter)
