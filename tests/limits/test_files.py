"""The limits by which files are understood: titles, footnotes, broken and numbered lines, regular rows."""

from __future__ import annotations

from collections import Counter

from orderbridge.sources.files import file_end, header, layout_checks, records, row_pattern
from orderbridge.sources.files.dialect import Dialect
from orderbridge.sources.files.model import Unclear
from orderbridge.sources.files.records import Record
from tests.limits.border import ABOVE, FROM, UP_TO, limit, refused_unless

SEMICOLONS = Dialect(";")


@limit(file_end, "MAX_FOOTNOTES", UP_TO, of=2)
def test_so_many_lines_at_the_end_are_looked_at(n: int, holds: bool) -> None:
    """The notes, the blank line before them, and a row."""
    notes = "".join(f"nota {'x' * number}\n" for number in range(n - 2))
    _, found = file_end.text_footnotes(f"A1;1;2\n\nA2;1;2\n\n{notes}", SEMICOLONS, 3)
    assert len(found) == (n - 2 if holds else 0)


@limit(file_end, "MIN_ALIKE", FROM)
def test_so_many_rows_prove_that_the_last_one_is_cut_off(n: int, holds: bool) -> None:
    alike = [["A", "1.50"]] * n
    for rows in (alike, [["A", "x"], *alike]):
        state = file_end.last_line_state("A;1.50\nB;1.", SEMICOLONS, rows, 2)
        assert state == ("cut off" if holds else "unknown")


@limit(header, "MAX_TITLES", UP_TO)
def test_names_are_looked_for_so_far_below_a_line(n: int, holds: bool) -> None:
    titles = [Record(line, line, ["Lista"]) for line in range(n)]
    names = Record(n, n, ["Código", "Nombre", "Ciudad"])
    assert header._next_names([*titles, names], 0, 3) == (n if holds else None)
    assert header._next_pure_names([*titles, names], 0, 3) == (n if holds else None)


@limit(layout_checks, "MAX_BROKEN", UP_TO)
def test_so_many_broken_lines_may_stand_above_proven_names(n: int, holds: bool) -> None:
    above = [Record(line, line, None) for line in range(1, n + 1)]
    names = Record(n + 1, n + 1, ["Código", "Precio"])
    with refused_unless(holds, Unclear, "misplaced quotes"):
        layout_checks._check_lines_above(above, names, 2, ["number", "number"])


@limit(layout_checks, "MAX_NUMBERED", FROM)
def test_numbers_before_so_many_lines_are_no_part_of_the_table(n: int, holds: bool) -> None:
    numbered = [[f"{line} A{line}", "x"] for line in range(2, n + 2)]
    with refused_unless(not holds, Unclear, "number or mark"):
        layout_checks._check_marks(Record(1, 1, ["1 Código", "Nombre"]), [*numbered, ["B", "x"]])


@limit(records, "MAX_TITLES", ABOVE)
def test_a_wider_first_line_is_above_so_many_equal_ones(n: int, holds: bool) -> None:
    lines = [Record(1, 1, ["x"] * 9), *[Record(2, 2, ["x"] * 2)] * (n - 1)]
    assert records.width_of(lines) == (2 if holds else 9)


@limit(row_pattern, "MIN_REGULAR", FROM)
def test_so_many_rows_that_begin_alike_show_which_columns_are_filled(n: int, holds: bool) -> None:
    assert bool(row_pattern.pattern_of([["A1", "Perno", "1,50"]] * n, 3).filled) is holds


@limit(row_pattern, "MIN_USUAL", FROM)
def test_of_so_many_rows_one_may_have_another_type(n: int, holds: bool) -> None:
    found = Counter(number=n - 1, text=1)
    assert row_pattern._usual_type(found, n) == ("number" if holds else "")
