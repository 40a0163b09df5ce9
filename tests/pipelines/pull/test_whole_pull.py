"""Each table that a pull writes is compared row by row and column by column with plain Python over the pages."""

from __future__ import annotations

import re

import pytest

from tests.pipelines.pull.pull_truth import TRUTH
from tests.pipelines.pull.pull_world import Row, nights, play
from tests.pipelines.pull.read_truth import Pulls
from tests.pipelines.same_rows import check_same_rows, constant_columns

NOT_COMPARED = {
    "ops.coverage": {"evidence"},
    "ops.runs": {"version", "answers_hash"},
    "ops.column_values": {"is_decimal"},
    "ops.field_kinds": {"most"},
}
"""Words; and what is not of the platform."""
CONSTANT = {
    "ops.order_cursor": {"order_key"},
    "ops.field_kinds": {"resource"},
    "raw.orders__lines": {"_extra"},
}


@pytest.fixture(scope="module")
def pulls(tmp_path_factory: pytest.TempPathFactory) -> Pulls:
    return tuple(play(tmp_path_factory.mktemp("pulls"), [*nights(1)]))


@pytest.mark.parametrize("name", TRUTH)
def test_a_table_has_the_rows_that_plain_python_finds(pulls: Pulls, name: str) -> None:
    for number in range(1, len(pulls) + 1):
        compare(name, pulls[:number])


def adjusted(name: str, rows: list[Row], wanted: list[Row]) -> list[Row]:
    """An estimated number of different values is right if it is nearly so; lists of columns have no sequence."""
    if name == "ops.recent_rows":
        return [
            {**one, **{of: " ".join(sorted(one[of].split())) for of in ("lost", "gained")}}
            for one in rows
        ]
    if name == "ops.field_kinds":
        known = {one["path"]: one for one in wanted}
        return [_counted(one, known.get(one["path"])) for one in rows]
    if name != "ops.column_values":
        return rows
    names = ("run_id", "table_name", "column_name")
    exact = {tuple(one[of] for of in names): one["distinct"] for one in wanted}
    made = []
    for one in rows:
        number = exact.get(tuple(one[of] for of in names), 0)
        is_near = abs(one["distinct"] - number) <= max(3, number // 4)
        jump = one["jump"]
        if jump and re.fullmatch(r"\d+ different values, \d+ before", jump):
            jump = "far fewer different values"
        made.append({**one, "jump": jump, "distinct": number if is_near else one["distinct"]})
    return made


@pytest.mark.parametrize("name", TRUTH)
def test_no_column_of_a_table_is_constant(pulls: Pulls, name: str) -> None:
    upto = [pulls[:number] for number in range(1, len(pulls) + 1)]
    rows = [row for one in upto for row in TRUTH[name](one)]
    assert constant_columns(rows) == CONSTANT.get(name, set())


def _counted(row: Row, wanted: Row | None) -> Row:
    if wanted is None:
        return row
    near = {
        name: wanted[name]
        for name in ("values_seen", "objects", "arrays")
        if 0 < wanted[name] <= row[name] <= wanted["most"]
    }
    return {**row, **near}


def compare(name: str, pulls: Pulls) -> None:
    wanted = TRUTH[name](pulls)
    rows = adjusted(name, pulls[-1].tables[name], wanted)
    columns = {column for row in (*rows, *wanted) for column in row}
    check_same_rows(rows, wanted, columns - NOT_COMPARED.get(name, set()), f"pull {len(pulls)}")
