"""Which rows fit a table: their width, their types, their quotes, and lines that are no rows (totals, rules, titles).

In: the cells of a line. Out: a row, or why it is rejected; or an error where another table begins.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.sources.files.encoding import CONTROLS
from orderbridge.sources.files.model import RejectCode, RejectedRow, Row, UnreadableRest
from orderbridge.sources.words import number

_NUMBER: Final = re.compile(r"[+-]?[€$£]? ?\d[\d.,' ]*(?:[%€$£]| [A-Z]{3})?")
_DATE: Final = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T]\d.*)?")
_DIGITS: Final = re.compile(r"\d+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_CODE: Final = re.compile(r"\S*\d\S*")
_TOTALS: Final = re.compile(
    r"\W*(?:(?:grand|gran) )?(?:sub-?|sous-|zwischen)?"
    r"(?:total(?:es|s)?|suma|sum|gesamt(?:summe)?|insgesamt|summe|totale|somm[ae]|soma)\b[^\d\W]*"
    r"(?: (?:general|records|registros|rows|filas|final))?\W*|\W*sub-?total\b.*",
    re.IGNORECASE,
)
_TOTALS_OF: Final = re.compile(
    r"\W*(?:(?:grand|gran) )?(?:sub-?|sous-|zwischen|gesamt)?"
    r"(?:total(?:es|e)?|suma|(?:ins)?gesamt|summe|somm[ae]|soma)\b.+",
    re.IGNORECASE,
)
_NO_NAME: Final = re.compile("total|gesamt|zwischensumme", re.IGNORECASE)
"""A word of totals that is no name either, as Suma and Somme are."""
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
_AMOUNT: Final = re.compile(r"[-+]?[€$£]? ?[\d.,' \xa0]*\d[\d.,' \xa0]*[€$£%]?")
_RULE: Final = re.compile(r"[-=_+]{2,}")
_UNIT: Final = re.compile(
    r"[(\[]?(?:[€$£%]|eur|usd|gbp|[km]?g|t|lbs?|oz|[cm]?l|[cmk]?m[²³23]?|in|ft|h|min|days?|días?|tage?|jours?|giorni"
    r"|(?:u|ud|uds|pcs?|pz|un|st|stk|ea)\.?|stück|pièces?|unità|units?|unidad(?:es)?|°c|k?wh?)(?:/(?:s|h|min|m[²³23]?|l|kg))?"
    r"[)\]]?",
    re.IGNORECASE,
)
_UNUSUAL: Final = "(?i)total|sum|gesamt|som[am]|^(--|==|__)"
"""What the first cell of totals and rules contains."""
_UNUSUAL_LATER: Final = _UNUSUAL + r"|^\W*\pL{0,8}[²³23]?(/\pL{1,3}[²³23]?)?\W*$"
"""The same where the first column is empty, or a unit."""
_DATA: Final = "[0-9@/]|^$"
"""In every cell that is no text, and in an empty one."""
_REPEATED: Final = 0.75
"""The share of the names in a row that is no row."""
BYTE_ORDER_MARK: Final = "\ufeff"
_KEPT_AS_TEXT: Final = re.compile('="(.*)"')


def column_kinds(rows: Sequence[list[str]], width: int) -> list[Counter[str]]:
    """How often each type occurs in each column."""
    return [
        Counter(filter(None, (type_of(cells[column]) for cells in rows))) for column in range(width)
    ]


def column_types(kinds: Sequence[Counter[str]]) -> tuple[str, ...]:
    """The type of most cells in each column; "" if no type prevails."""
    usual = (found.most_common(1)[0] if found else ("", 1) for found in kinds)
    return tuple(
        kind if count > 0.6 * found.total() else ""
        for (kind, count), found in zip(usual, kinds, strict=True)
    )


def type_of(cell: str) -> str:
    """number, date, address, text, the pattern of a code such as `a9`, or "" for an empty cell."""
    cell = cell.strip()
    if not cell:
        return ""
    if _NUMBER.fullmatch(cell):
        return "number"
    if _DATE.fullmatch(cell):
        return "date"
    if "@" in cell or "://" in cell:
        return "address"
    if _CODE.fullmatch(cell):
        return _LETTERS.sub("a", _DIGITS.sub("9", cell))
    return "text"


def unmarked(cell: str) -> str:
    """A cell without the formula that keeps it a text in a spreadsheet: `="A1"` is `A1`."""
    kept = _KEPT_AS_TEXT.fullmatch(cell) if cell.startswith('="') else None
    return kept[1] if kept else cell


def is_data(kind: str) -> bool:
    """Whether a type is that of data, not of names."""
    return kind not in ("", "text")


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
        second_names: the line of further names right after the header; 0 for none.
        cut_line: the last line, if it is cut off; 0 for none.
        titles: the cells of lines above the header that are as wide as a row, such as titles of a page.
    """

    columns: tuple[str, ...]
    fill: bool
    surplus: int = 0
    added: int = 0
    types: tuple[str, ...] = ()
    steady: tuple[int, ...] = ()
    header: int = 0
    keeps_totals: bool = False
    second_names: int = 0
    cut_line: int = 0
    titles: tuple[tuple[str, ...], ...] = ()

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
            self._rule_problem(cells)
            or self._width_problem(cells)
            or self._problem(line, cells, share, marks=marks)
        )
        return (
            Row(line, tuple(cells))
            if problem is None
            else RejectedRow(line, last, *problem, tuple(cells))
        )

    def _rule_problem(self, cells: list[str]) -> tuple[RejectCode, str] | None:
        """Whether a record of any width draws a line."""
        return ("rule", "contains only dashes; remove the line") if is_rule(cells) else None

    def _width_problem(self, cells: list[str]) -> tuple[RejectCode, str] | None:
        """Why a record has the wrong number of cells; otherwise it gets one for each column."""
        width, count = len(self.columns), len(cells)
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

    def _problem(
        self, line: int, cells: list[str], share: float, *, marks: bool
    ) -> tuple[RejectCode, str] | None:
        """Why a record with a cell for each column is no row."""
        if marks and cells[0].startswith(BYTE_ORDER_MARK):
            reason = "begins with a byte order mark, as where two files were joined; remove it, and a repeated header"
            return "byte_order_mark", reason
        if line == self.cut_line:
            return "torn", _CUT_OFF
        if line == self.second_names:
            return "repeated_header", _SECOND_NAMES
        has_codes = bool(self.types) and is_data(self.types[0])
        has_totals = is_totals(cells, has_codes=has_codes)
        if has_totals and not self.keeps_totals:
            return "totals", _TOTALS_REASON
        if self.titles and tuple(cells) in self.titles:
            return "repeated_header", "repeats a line above the header; remove the line"
        if is_units(cells):
            return "rule", "contains only units of columns; remove the line"
        has_first = bool(cells[0]) or self.columns[0] == "column_1"
        if has_first and share >= _REPEATED:
            if share == 1 or line == self.header + 1:
                return "repeated_header", "repeats the header; remove the line"
            raise self._another_table(line, "names of columns, not all of them as in the header")
        is_text = bool(self.types) and is_data(self.types[0]) and type_of(cells[0]) == "text"
        if len(cells) > 2 and not has_totals and not any(cells[1:]) and is_text:
            return (
                "rule",
                "has a title or heading only, no code, and no other cell; remove the line",
            )
        for name, cell in zip(self.columns, cells, strict=True) if marks else ():
            if "\0" in cell:
                return "nul", f"NUL character in {name!r}"
            if not cell.isascii() and CONTROLS.search(cell):
                return (
                    "control",
                    f"control character in {name!r}, as of a text in cp1252 that was taken for ISO-8859-1",
                )
        return None

    def tears(self, fragment: RejectedRow, row: Row) -> bool:
        """Whether a rejected row is so short that it may be a part of the row next to it, of its last or first cell.

        Not if the later of the two begins with a key; but any number may be the rest of a text.
        """
        count = len(fragment.cells) - self.added
        is_long = count > max(1 + self.surplus, (len(self.columns) - self.added) // 2)
        if fragment.code != "too_short" or is_long or is_totals(fragment.cells):
            return False
        key = self.types[0] if self.types else ""
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
        if (
            len(texts) < (2 if is_ended else len(self.columns))
            or 0 not in texts
            or any(type_of(cells[at]) != "text" for at in texts)
        ):
            return False
        data = (
            [at for at, kind in enumerate(self.types) if is_data(kind)] if is_ended else self.steady
        )
        return len({cells[at] for at in texts}) == len(texts) and len(
            texts.intersection(data)
        ) > int(not is_ended)


def unusual_rows(columns: Sequence[pa.ChunkedArray], shape: RowShape) -> npt.NDArray[np.bool_]:
    """Marks the rows that `RowShape.fit` has to check, by their cells in and outside the table.

    Marked are blank rows, rows that may be totals, a rule, a title or a header, and rows with cells outside the table.
    """
    words = {
        word for name in shape.columns for word in (name, name.upper(), name.lower(), name.title())
    }
    words |= {next(filter(None, title)) for title in shape.titles}
    names = pc.utf8_trim_whitespace(columns[0])
    unusual = np.asarray(
        pc.or_(pc.is_in(columns[0], pa.array(words)), pc.match_substring_regex(names, _UNUSUAL))
    )
    is_blank = pc.equal(names, "")
    if pc.any(is_blank).as_py():
        others = [pc.utf8_trim_whitespace(column.filter(is_blank)) for column in columns]
        names = pc.coalesce(*(pc.if_else(pc.equal(cells, ""), None, cells) for cells in others))
        is_unusual = pc.or_(
            pc.match_substring_regex(names, _UNUSUAL_LATER), pc.is_in(names, pa.array(words))
        )
        unusual[np.asarray(is_blank)] = np.asarray(pc.fill_null(is_unusual, True))
    # a column with data, in which another table has a name
    typed = next(
        iter(shape.steady), next((at for at, kind in enumerate(shape.types) if is_data(kind)), None)
    )
    if typed is not None:
        unusual |= ~np.asarray(
            pc.match_substring_regex(columns[typed], _DATA if shape.header else "[0-9@]")
        )
    if len(shape.columns) > 2 and shape.types:
        is_single = pc.equal(columns[1], "")
        for column in columns[2 : len(shape.columns)]:
            is_single = (
                pc.and_(is_single, pc.equal(column, "")) if pc.any(is_single).as_py() else is_single
            )
        unusual |= np.asarray(is_single)
    for column in columns[len(shape.columns) :]:
        unusual |= np.asarray(pc.not_equal(column, ""))
    return unusual


def is_totals(cells: Sequence[str], *, has_codes: bool = False) -> bool:
    """Whether a line has totals: a word such as Total, and amounts or empty cells next to it.

    A name such as Suma may be one of a product, unless the first column has codes and the word is in it.
    """
    name, *others = [cell.strip() for cell in cells if cell.strip()] or [""]
    is_total = _TOTALS.fullmatch(name) is not None
    is_total_of = not is_total and _TOTALS_OF.fullmatch(name) is not None
    if not (is_total or is_total_of) or not all(map(_AMOUNT.fullmatch, others)):  # a name or a code
        return False
    is_first = cells[0].strip() == name
    if has_codes and is_first and (is_total or others):
        return True
    is_sparse = len(cells) > 2 and 2 * (len(cells) - len(others) - 1) >= len(cells)
    is_dense = bool(others) and is_first and _NO_NAME.search(name) is not None
    if is_total:
        return is_sparse or is_dense
    return (is_dense and ":" in name) or (is_sparse and bool(others))


def is_units(cells: Sequence[str]) -> bool:
    """Whether a row has units of columns only, such as kg and EUR, and none in the first one."""
    return not cells[0] and any(cells) and all(_UNIT.fullmatch(cell) for cell in cells if cell)


def is_rule(cells: Sequence[str]) -> bool:
    """Whether a row draws a line: its cells have dashes only; some may be empty."""
    return any(cells) and all(_RULE.fullmatch(cell) for cell in cells if cell)
