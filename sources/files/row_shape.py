"""Which rows fit a table: its width, and lines that are no rows (totals, rules of dashes, repeated headers).

In: the cells of a line. Out: a row, or why it is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sources.files.cell_types import is_data, type_of
from sources.files.model import RejectedRow, Row, UnreadableRest
from sources.files.text import CONTROLS
from sources.words import number

_TOTALS: Final = re.compile(
    r"\W*(?:(?:grand|gran) )?(?:sub-?|sous-|zwischen)?"
    r"(?:total(?:es|s)?|suma|sum|gesamt(?:summe)?|insgesamt|summe|totale|somme|soma)\b[^\d\W]*"
    r"(?: (?:general|records|registros|rows|filas|final))?\W*|\W*sub-?total\b.*",
    re.IGNORECASE,
)
_TOTALS_OF: Final = re.compile(r"\W*(?:total(?:es)?|suma|summe|totale|somme|soma)\b.+", re.IGNORECASE)
_TOTALS_REASON: Final = (
    'looks like a line of totals: remove it, or set in the mapping, under [rows]: totals = "skip" or "keep"'
)
_AMOUNT: Final = re.compile(r"[-+]?[€$£]? ?[\d.,' \xa0]*\d[\d.,' \xa0]*[€$£%]?")
_RULE: Final = re.compile(r"[-=_]{2,}")
_UNIT: Final = re.compile(
    r"[(\[]?(?:[€$£%]|eur|usd|gbp|[km]?g|t|lbs?|oz|[cm]?l|[cmk]?m[²³23]?|in|ft|h|min|days?|días?|tage?|jours?|giorni"
    r"|(?:u|ud|uds|pcs?|pz|un|st|stk|ea)\.?|stück|pièces?|unità|units?|unidad(?:es)?)[)\]]?",
    re.IGNORECASE,
)
_UNUSUAL: Final = "(?i)total|sum|gesamt|som[am]|^(--|==|__)"
"""What the first cell of totals and rules contains."""
_UNUSUAL_LATER: Final = _UNUSUAL + r"|^\W*\pL{0,8}[²³23]?\W*$"
"""The same where the first column is empty, or a unit."""
_DATA: Final = "[0-9@/]|^$"
"""In every cell that is no text, and in an empty one."""
DATA_CHAR: Final = re.compile(_DATA)
MAY_BE_TOTAL: Final = re.compile("(?i)total|sum|gesamt|som[am]")
_REPEATED: Final = 0.75
"""The share of the names in a row that is no row."""
RULE_STARTS: Final = ("--", "==", "__")
BYTE_ORDER_MARK: Final = "\ufeff"


def number_of_cells(cells: Sequence[str]) -> str:
    """The number of cells with its noun."""
    return number(len(cells), "cell")


class RowShape(NamedTuple):
    """The cells that a row must have: one per column.

    Attributes:
        columns: the column names.
        fill: whether fewer cells are allowed.
        surplus: the number of empty cells at the end that every row of the table may have.
        added: the number of columns at the end that were added to rows of another file, also to short ones.
        types: of the columns, by which another table is recognized; none if the header was given.
        steady: the columns with numbers, dates or codes in nine of ten of the first rows.
        header: the last line of the header; 0 without one, so that names may only come with another table.
    """

    columns: tuple[str, ...]
    fill: bool
    surplus: int = 0
    added: int = 0
    types: tuple[str, ...] = ()
    steady: tuple[int, ...] = ()
    header: int = 0
    keeps_totals: bool = False

    @property
    def typed(self) -> int | None:
        """A column with data, in which another table has a name."""
        return next(iter(self.steady), next((at for at, kind in enumerate(self.types) if is_data(kind)), None))

    def words(self) -> frozenset[str]:
        """With what a header or names of columns may begin."""
        return frozenset(word for name in self.columns for word in (name, name.upper(), name.lower(), name.title()))

    def fit(self, line: int, last: int, cells: list[str], *, marks: bool, is_ended: bool = False) -> Row | RejectedRow:
        """A record as a row, or the reason why it does not fit.

        `is_ended`: a blank line, or that and a title, may have ended the table before it.

        Surplus cells are cut off if they are empty and all rows have them: a surplus delimiter of a single row may be
        anywhere in it and have shifted its cells. In a short record any cell may be missing, not only the last
        ones, e.g. if a line was broken in two; so it is rejected unless `fill` is set.

        Raises:
            UnreadableRest: another table begins.
        """
        share = self._share_of_names(cells)
        if share < _REPEATED and self._has_names_for_data(cells, is_ended=is_ended or not self.header):
            raise self._another_table(line, "names where the rows have numbers, dates or codes")
        width = len(self.columns)
        count = len(cells)
        if count > width:
            if count != width + self.surplus or any(cells[width:]):
                reason = f"{number_of_cells(cells)}, but the header has {width}"
                reason += "" if any(cells[width:]) else "; there is a delimiter too many in the line"
                return RejectedRow(line, last, "too_long", reason, tuple(cells))
            del cells[width:]
        elif count < width:
            if not self.fill:
                reason = f"{number_of_cells(cells)}, but the header has {width}: no cell for {self.columns[count]!r}"
                return RejectedRow(line, last, "too_short", reason, tuple(cells))
            cells += [""] * (width - count)
        elif self.surplus:
            own, others = number_of_cells(cells), width + self.surplus
            reason = f"{own}, but the other lines have {others}; a delimiter is missing in the line"
            return RejectedRow(line, last, "too_short", reason, tuple(cells))
        if marks and cells[0].startswith(BYTE_ORDER_MARK):
            reason = "begins with a byte order mark, as where two files were joined; remove it, and a repeated header"
            return RejectedRow(line, last, "byte_order_mark", reason, tuple(cells))
        has_totals = is_totals(cells)
        if has_totals and not self.keeps_totals:
            return RejectedRow(line, last, "totals", _TOTALS_REASON, tuple(cells))
        if is_rule(cells):
            return RejectedRow(line, last, "rule", "contains only dashes; remove the line", tuple(cells))
        if not cells[0] and all(_UNIT.fullmatch(cell) for cell in cells if cell):
            return RejectedRow(line, last, "rule", "contains only units of columns; remove the line", tuple(cells))
        if cells[0] and share >= _REPEATED:
            if share == 1 or line == self.header + 1:
                return RejectedRow(line, last, "repeated_header", "repeats the header; remove the line", tuple(cells))
            raise self._another_table(line, "names of columns, not all of them as in the header")
        if width > 2 and not has_totals and not any(cells[1:]) and self._is_heading(cells[0]):
            reason = "has a title or heading only, no code, and no other cell; remove the line"
            return RejectedRow(line, last, "rule", reason, tuple(cells))
        if marks:
            for name, cell in zip(self.columns, cells, strict=True):
                if "\0" in cell:
                    return RejectedRow(line, last, "nul", f"NUL character in {name!r}", tuple(cells))
                if CONTROLS.search(cell):
                    reason = f"control character in {name!r}, as of a text in cp1252 that was taken for ISO-8859-1"
                    return RejectedRow(line, last, "control", reason, tuple(cells))
        return Row(line, tuple(cells))

    def is_fragment(self, row: RejectedRow) -> bool:
        """Whether a row is so short that it may be a part of a row next to it: of its last or of its first cell."""
        most = max(1 + self.surplus, (len(self.columns) - self.added) // 2)
        return row.code == "too_short" and len(row.cells) - self.added <= most

    def tears(self, fragment: RejectedRow, later: Row | RejectedRow) -> bool:
        """Whether a fragment may be a part of the row next to it: not if the later of the two begins with a key.

        Args:
            fragment: a row that is a fragment.
            later: the later one of the two rows.
        """
        key = self.types[0] if self.types else ""
        is_single = len(fragment.cells) - self.added <= 1 + self.surplus  # any number may be the rest of a text
        return not (is_data(key) and type_of(later.cells[0]) == key) or (is_single and key == "number")

    def _another_table(self, line: int, what: str) -> UnreadableRest:
        fix = "Move each table to a file of its own."
        choices = f"If line {line} has the names: --header-row {line}. If it is a row: --header-row {self.header}."
        return UnreadableRest(f"two tables: line {line} has {what}", f"{fix} {choices}", line)

    def _share_of_names(self, cells: Sequence[str]) -> float:
        """The share of the filled cells that are the name of their column, or less than 1 of a column; 0 if few are."""
        folded = [name.casefold() for name in self.columns]
        filled = [(cell.casefold(), name) for cell, name in zip(map(str.strip, cells), folded, strict=False) if cell]
        if len(filled) < min(2, len(folded)):
            return 0.0
        if all(cell == name for cell, name in filled):
            return 1.0
        return min(len({cell for cell, _ in filled} & {*folded}) / len(filled), 0.99)

    def _is_heading(self, cell: str) -> bool:
        """Whether the only cell of a row is a text, where the rows begin with a code."""
        return bool(self.types) and is_data(self.types[0]) and type_of(cell) == "text"

    def _has_names_for_data(self, cells: Sequence[str], *, is_ended: bool) -> bool:
        """Whether a row has texts only, also where the columns have data: two of them, or one if a table ended."""
        texts = {at for at, cell in enumerate(cells) if cell.strip()}
        if (
            len(texts) < (2 if is_ended else len(self.columns))
            or 0 not in texts
            or any(type_of(cells[at]) != "text" for at in texts)
        ):
            return False
        data = [at for at, kind in enumerate(self.types) if is_data(kind)] if is_ended else self.steady
        is_dense = is_ended and texts == {*range(len(texts))}
        return len({cells[at] for at in texts}) == len(texts) and len(texts.intersection(data)) > (0 if is_dense else 1)


def is_between_tables(row: Row | RejectedRow) -> bool:
    """Whether a row after a blank line leaves it open whether another table follows: a title, or totals."""
    return sum(map(bool, row.cells)) < 2 or (isinstance(row, RejectedRow) and row.code == "totals")


def unusual_rows(columns: Sequence[pa.ChunkedArray], shape: RowShape) -> npt.NDArray[np.bool_]:
    """Marks the rows that `RowShape.fit` has to check; the others have cells in all columns of the table only.

    Marked are blank rows, rows that may be totals, a rule or a repeated header, and rows with cells outside the table.

    Args:
        columns: the cells, also those outside the table.
        shape: of the rows.
    """
    names = pc.utf8_trim_whitespace(columns[0])
    unusual = np.asarray(
        pc.or_(pc.is_in(columns[0], pa.array([*shape.words()])), pc.match_substring_regex(names, _UNUSUAL))
    )
    is_blank = pc.equal(names, "")
    if pc.any(is_blank).as_py():
        others = [pc.utf8_trim_whitespace(column.filter(is_blank)) for column in columns]
        names = pc.coalesce(*(pc.if_else(pc.equal(cells, ""), None, cells) for cells in others))
        unusual[np.asarray(is_blank)] = np.asarray(pc.fill_null(pc.match_substring_regex(names, _UNUSUAL_LATER), True))
    if (typed := shape.typed) is not None:
        unusual |= ~np.asarray(pc.match_substring_regex(columns[typed], _DATA if shape.header else "[0-9@]"))
    if len(shape.columns) > 2 and shape.types:
        is_single = pc.equal(columns[1], "")
        for column in columns[2 : len(shape.columns)]:
            is_single = pc.and_(is_single, pc.equal(column, "")) if pc.any(is_single).as_py() else is_single
        unusual |= np.asarray(is_single)
    for column in columns[len(shape.columns) :]:
        unusual |= np.asarray(pc.not_equal(column, ""))
    return unusual


def is_totals(cells: Sequence[str]) -> bool:
    """Whether a line has totals: a word such as Total, and amounts or empty cells next to it."""
    name, *others = [cell.strip() for cell in cells if cell.strip()] or [""]
    is_total, is_total_of = _TOTALS.fullmatch(name), _TOTALS_OF.fullmatch(name)
    if not (is_total or is_total_of) or not all(map(_AMOUNT.fullmatch, others)):  # a name or a code
        return False
    is_sparse = len(cells) > 2 and 2 * (len(cells) - len(others) - 1) >= len(cells)
    is_dense = bool(others) and "total" in name.lower() and cells[0].strip() == name
    return bool((is_total and (is_sparse or is_dense)) or (is_sparse and others and is_total_of))


def is_rule(cells: Sequence[str]) -> bool:
    """Whether a row draws a line: its cells have dashes only; some may be empty."""
    return any(cells) and all(_RULE.fullmatch(cell) for cell in cells if cell)
