"""Each table that a pull writes is compared row by row and column by column with plain Python over the pages."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.pipelines.pull.pull_truth import TRUTH
from tests.pipelines.pull.pull_world import Row, nights, play
from tests.pipelines.pull.read_truth import Pulls

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


def comparable(value: Any) -> Any:
    """JSON text is what it says, numbers are by their value, times are instants."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        value = json.loads(value)
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True)
    if isinstance(value, float | Decimal | int) and not isinstance(value, bool):
        return Decimal(str(value)).normalize() + 0
    if isinstance(value, datetime):
        return value.timestamp()
    return value.isoformat() if isinstance(value, date) else value


def counted(names: Sequence[str], rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(comparable(row.get(name)) for name in names) for row in rows)


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
    """What is the same in all rows tells no maximum from a minimum, and no condition from none."""
    upto = [pulls[:number] for number in range(1, len(pulls) + 1)]
    rows = [row for one in upto for row in TRUTH[name](one)]
    columns = {column for row in rows for column in row}
    constant = {one for one in columns if len({comparable(row.get(one)) for row in rows}) < 2}
    assert constant == CONSTANT.get(name, set())


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
    columns = sorted(
        {column for row in (*rows, *wanted) for column in row} - NOT_COMPARED.get(name, set())
    )
    if counted(columns, rows) == counted(columns, wanted):
        return
    by_column = {
        one: (
            counted([one], rows) - counted([one], wanted),
            counted([one], wanted) - counted([one], rows),
        )
        for one in columns
        if counted([one], rows) != counted([one], wanted)
    }
    assert by_column == {}, len(pulls)
    pytest.fail(f"pull {len(pulls)}: each column has these values, in other rows")
