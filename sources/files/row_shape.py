"""Which rows fit a table: their width, their types, their quotes, and lines that are no rows (totals, rules, titles).

In: the cells of a line. Out: a row, or why it is rejected; or an error where another table begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from orderbridge.sources.files.cell_types import is_data, type_of, unmarked
from orderbridge.sources.files.encoding import CONTROLS
from orderbridge.sources.files.model import RejectCode, RejectedRow, Row, UnreadableRest
from orderbridge.sources.files.row_pattern import RowPattern
from orderbridge.sources.files.row_words import has_word_of_totals, is_rule, is_totals, is_units
from orderbridge.sources.words import number

_Problem: TypeAlias = tuple[RejectCode, str] | None
"""Why a record is no row; None if it is one."""

_TOTALS_REASON: Final = (
    "looks like a line of totals: remove it, or set in the mapping, under [rows]: "
    'totals = "skip" or "keep"'
)
_SECOND_NAMES: Final = (
    "has no number, date or code in any column that has them, as a second line of names; remove it"
)
_CUT_OFF: Final = (
    "the last line of the file has no line end, and its last cell is not like those of the other rows: the file seems "
    "to be cut off; export it again"
)
_ORDER_MARK: Final = "begins with a byte order mark, as where two files were joined; remove it, and a repeated header"
_HEADING: Final = (
    "has a title, heading or label only, and lacks cells that all other rows have; remove the line"
)
_SHIFTED: Final = (
    "numbers, dates or codes stand in other columns than in the other rows, as where cells were moved or a delimiter "
    "is missing; correct the line"
)
_CONTROL: Final = "control character in {}, as of a text in cp1252 that was taken for ISO-8859-1"
_REPEATED: Final = 0.75
"""The share of the names in a row that is no row."""
BYTE_ORDER_MARK: Final = "\ufeff"


class RowShape(NamedTuple):
    """The cells that a row must have: one per column.

    Attributes:
        columns: the column names.
        fill: whether fewer cells are allowed.
        surplus: the number of empty cells at the end that every row of the table may have.
        added: the number of columns at the end that were added to rows of another file, also to short ones.
        pattern: of the rows, by which another table is recognized; empty if the header was given.
        keeps_headings: see `ReadOptions`.
        header: the last line of the header; 0 without one, so that names may only come with another table.
        second_names: the line of further names right after the header; 0 for none.
        cut_line: the last line, if it is cut off; 0 for none.
        titles: the cells of lines above the header that are as wide as a row, such as titles of a page.
        has_all_checks: see `ReadOptions.checks_rows`.
    """

    columns: tuple[str, ...]
    fill: bool
    surplus: int = 0
    added: int = 0
    pattern: RowPattern = RowPattern()
    header: int = 0
    keeps_totals: bool = False
    keeps_headings: bool = False
    second_names: int = 0
    cut_line: int = 0
    titles: tuple[tuple[str, ...], ...] = ()
    has_all_checks: bool = True

    def with_earlier_checks(self) -> RowShape:
        """The shape by which version 0.3 checked lines: it knew of the rows only the types of their columns."""
        return self._replace(
            pattern=RowPattern(self.pattern.types, self.pattern.steady),
            titles=(),
            has_all_checks=False,
        )

    def fit(
        self, line: int, last: int, cells: list[str], *, marks: bool, is_ended: bool = False
    ) -> Row | RejectedRow:
        """A record as a row, or the reason why it does not fit.

        `is_ended`: a blank line, or that and a title, may have ended the table before it.

        Surplus cells are cut off if they are empty and all rows have them: a surplus delimiter of a single row may be
        anywhere in it and have shifted its cells. In a short record any cell may be missing, not only the last
        ones, e.g. if a line was broken in two; so it is rejected unless `fill` is set.

        Raises:
            UnreadableRest: another table begins.
        """
        share = self._share_of_names(cells)
        may_be_names = share < _REPEATED and line != self.second_names
        if may_be_names and self._has_names_for_data(cells, is_ended=is_ended or not self.header):
            raise self._another_table(line, "names where the rows have numbers, dates or codes")
        problem = (
            _rule_problem(cells)
            or self._width_problem(cells)
            or (_order_mark_problem(cells) if marks else None)
            or self._line_problem(line)
            or self._words_problem(cells)
            or self._names_problem(line, cells, share)
            or self._pattern_problem(cells)
            or (self._sign_problem(cells) if marks else None)
        )
        if problem is not None:
            return RejectedRow(line, last, *problem, tuple(cells))
        return Row(line, tuple(cells))

    def _width_problem(self, cells: list[str]) -> _Problem:
        """Why a record has the wrong number of cells; otherwise it gets one for each column."""
        width = len(self.columns)
        count = len(cells)
        numbers = f"{number(len(cells), 'cell')}, but the header has {width}"
        if count > width and any(cells[width:]):
            return "too_long", numbers
        if count > width and count != width + self.surplus:
            return "too_long", f"{numbers}; there is a delimiter too many in the line"
        if count < width and not self.fill:
            return "too_short", f"{numbers}: no cell for {self.columns[count]!r}"
        if count == width and self.surplus:
            others = (
                f"{number(len(cells), 'cell')}, but the other lines have {width + self.surplus}"
            )
            return "too_short", f"{others}; a delimiter is missing in the line"
        cells[width:] = []
        cells += [""] * (width - count)
        return None

    def _line_problem(self, line: int) -> _Problem:
        """Whether the line was found to be no row when the file was opened."""
        if line == self.cut_line:
            return "torn", _CUT_OFF
        if line == self.second_names and self.has_all_checks:
            return "repeated_header", _SECOND_NAMES
        return None

    def _words_problem(self, cells: list[str]) -> _Problem:
        """Whether a record has totals, a title that stands above the header too, or units."""
        if not self.keeps_totals and self._has_totals(cells):
            return "totals", _TOTALS_REASON
        if self.titles and tuple(cells) in self.titles:
            return "repeated_header", "repeats a line above the header; remove the line"
        if is_units(cells):
            return "rule", "contains only units of columns; remove the line"
        return None

    def _has_totals(self, cells: Sequence[str]) -> bool:
        pattern = self.pattern
        if not self.has_all_checks:
            return is_totals(cells)
        if is_totals(cells, has_codes=pattern.has_codes):
            return True
        if not pattern.begins_otherwise(cells):
            return False
        return pattern.has_amounts_alone(cells) or has_word_of_totals(cells)

    def _names_problem(self, line: int, cells: list[str], share: float) -> _Problem:
        """Whether a record repeats the header; raises UnreadableRest for names that are not all the same."""
        has_first = bool(cells[0]) or self.columns[0] == "column_1"
        if not has_first or share < _REPEATED:
            return None
        if share == 1 or line == self.header + 1:
            return "repeated_header", "repeats the header; remove the line"
        raise self._another_table(line, "names of columns, not all of them as in the header")

    def _pattern_problem(self, cells: list[str]) -> _Problem:
        """Whether a record has a heading or a label, or cells that are shifted."""
        is_heading = not self.keeps_headings and self.pattern.is_heading(cells, self.columns)
        if is_heading and not self._has_totals(cells):
            return "rule", _HEADING
        if self.pattern.is_shifted(cells):
            return "shifted", _SHIFTED
        return None

    def _sign_problem(self, cells: list[str]) -> _Problem:
        """Whether a cell has a sign that no text has."""
        for name, cell in zip(self.columns, cells, strict=True):
            if "\0" in cell:
                return "nul", f"NUL character in {name!r}"
            if not cell.isascii() and CONTROLS.search(cell):
                return "control", _CONTROL.format(repr(name))
        return None

    def tears(self, fragment: RejectedRow, row: Row) -> bool:
        """Whether a rejected row is so short that it may be a part of the row next to it, of its last or first cell.

        Not if the later of the two begins with a key; but any number may be the rest of a text.
        """
        count = len(fragment.cells) - self.added
        is_long = count > max(1 + self.surplus, (len(self.columns) - self.added) // 2)
        if fragment.code != "too_short" or is_long or is_totals(fragment.cells):
            return False
        key = self.pattern.types[0] if self.pattern.types else ""
        later = fragment if fragment.line > row.line else row
        has_key = is_data(key) and type_of(later.cells[0]) == key
        return not has_key or (count <= 1 + self.surplus and key == "number")

    def _another_table(self, line: int, what: str) -> UnreadableRest:
        fix = "Move each table to a file of its own."
        choices = f"If line {line} has the names: --header-row {line}. If it is a row: --header-row {self.header}."
        return UnreadableRest(f"two tables: line {line} has {what}", f"{fix} {choices}")

    def _share_of_names(self, cells: Sequence[str]) -> float:
        """The share of the filled cells that are the name of their column, or less than 1 of a column; 0 if few are."""
        folded = [name.casefold() for name in self.columns]
        filled = [
            (unmarked(cell).casefold(), name)
            for cell, name in zip(map(str.strip, cells), folded, strict=False)
            if cell
        ]
        if len(filled) < min(2, len(folded)):
            return 0.0
        if all(cell == name for cell, name in filled):
            return 1.0
        return min(len({cell for cell, _ in filled} & {*folded}) / len(filled), 0.99)

    def _has_names_for_data(self, cells: Sequence[str], *, is_ended: bool) -> bool:
        """Whether a row has texts only, also where the columns have data: two of them, or one if a table ended."""
        texts = {at for at, cell in enumerate(cells) if cell.strip()}
        is_filled = len(texts) >= (2 if is_ended else len(self.columns)) and 0 in texts
        if not is_filled or any(type_of(cells[at]) != "text" for at in texts):
            return False
        are_different = len({cells[at] for at in texts}) == len(texts)
        data = self.pattern.data_columns if is_ended else self.pattern.steady
        return are_different and len(texts.intersection(data)) > int(not is_ended)


def _rule_problem(cells: list[str]) -> _Problem:
    """Whether a record of any width draws a line."""
    return ("rule", "contains only dashes; remove the line") if is_rule(cells) else None


def _order_mark_problem(cells: list[str]) -> _Problem:
    """Whether a record begins with a byte order mark."""
    return ("byte_order_mark", _ORDER_MARK) if cells[0].startswith(BYTE_ORDER_MARK) else None
