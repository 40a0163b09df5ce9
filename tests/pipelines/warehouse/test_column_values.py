"""A column's pulse: what counts as a jump, what it is compared with, and that it does not fall silent by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import duckdb

from orderbridge.pipelines.reconcile.odd_values import lost_values
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers import accepted
from orderbridge.pipelines.warehouse.answers.accepted import Acceptance, Accepted
from orderbridge.pipelines.warehouse.raw.column_values import _RECORD_JUMPS, record_column_values
from orderbridge.pipelines.warehouse.raw.recent_rows import RecentRows
from orderbridge.sources.extract.result import ListResult


class Pulse(NamedTuple):
    """What was counted of a column."""

    rows: int
    nulls: int
    zeros: int | None
    distinct: int
    minimum: str | None
    maximum: str | None


NUMBERS = Pulse(100, 0, 10, 80, "1.5", "90")
TEXTS = Pulse(100, 20, None, 80, None, None)
FEW = Pulse(24, 0, None, 3, None, None)
FLAGS = Pulse(100, 0, 40, 2, None, None)
DATES = Pulse(100, 0, None, 60, "2024-01-01", "2025-01-01")
TIMES = "the least and the largest number are 10 times those of before, or further from them"
TENTH = TIMES.replace("10 times", "a tenth of")
RANGE = "no value is between the first and the last of before"


def test_a_jump_is_far_from_chance() -> None:
    cases: list[tuple[Pulse, Pulse, str | None]] = [
        (TEXTS, TEXTS._replace(rows=1000, nulls=601), "40% of the rows have a value, 80% before"),
        (TEXTS, TEXTS._replace(rows=1000, nulls=600), None),
        (FEW, FEW._replace(nulls=20), "17% of the rows have a value, 100% before"), (FEW, FEW._replace(nulls=19), None),
        (TEXTS, TEXTS._replace(distinct=39), "39 different values, 80 before"),
        (TEXTS, TEXTS._replace(distinct=40), None), (TEXTS._replace(distinct=19), TEXTS._replace(distinct=1), None),
        (TEXTS, Pulse(30, 6, None, 24, None, None), None),
        (NUMBERS, NUMBERS._replace(zeros=56), "44% of the values are other than 0 or false, 90% before"),
        (NUMBERS, NUMBERS._replace(zeros=100, maximum="0", minimum="0"), None),
        (NUMBERS, NUMBERS._replace(minimum="150", maximum="9000"), TIMES),
        (NUMBERS, NUMBERS._replace(minimum="0.15", maximum="9"), TENTH),
        (NUMBERS, NUMBERS._replace(minimum="0.15", maximum="9.1"), None),
        (NUMBERS, NUMBERS._replace(minimum="1.5", maximum="90000"), None),
        (Pulse(19, 0, 0, 19, "1", "9"), Pulse(19, 0, 0, 19, "100", "900"), None),
        (FLAGS, FLAGS._replace(zeros=100, distinct=1), "0% of the values are other than 0 or false, 60% before"),
        (DATES, DATES._replace(minimum="1970-01-01", maximum="1970-01-01", distinct=50), RANGE),
        (DATES, DATES._replace(minimum="2025-01-01", maximum="2026-01-01"), None),
    ]  # fmt: skip
    with duckdb.connect() as build:
        ops.create_missing(build)
        for n, (before, now, _) in enumerate(cases):
            for day, pulse in enumerate((before, now), 1):
                place = {
                    "resource": "r",
                    "table_name": "t",
                    "column_name": f"c{n:02}",
                    "run_id": f"r{day}",
                }
                at = datetime(2026, 5, day, tzinfo=UTC)
                ops.insert(build, "column_values", recorded_at=at, **place, **pulse._asdict())
        build.execute(_RECORD_JUMPS, {"run": "r2", "since": datetime(2026, 4, 5, tzinfo=UTC)})
        sql = "SELECT jump FROM ops.column_values WHERE run_id = 'r2' ORDER BY column_name"
        assert [jump for (jump,) in build.execute(sql).fetchall()] == [words for *_, words in cases]


class Nights:
    """Whole reads of customers, one a night, with so many phones in 100 rows."""

    def __init__(self) -> None:
        self.build, self.at = duckdb.connect(), datetime(2026, 5, 1, tzinfo=UTC)
        self.build.execute("SET TimeZone = 'UTC'; CREATE SCHEMA raw")
        self.entries: list[Acceptance] = []
        ops.create_missing(self.build)

    def read(self, phones: int, days: float = 1, total: str = "n") -> list[str]:
        self.at += timedelta(days=days)
        self.build.execute(
            f"""CREATE OR REPLACE TABLE raw.customers AS SELECT '{self.at}' AS _run_id,
            n::VARCHAR AS id, n AS number, {total} AS total,
            if(n < {phones}, 'p' || n, ['', '[]', '{{}}'][1 + n % 3]) AS phone FROM range(100) rows(n)"""
        )
        walked = ListResult(
            "customers", verdict="complete", files={"customers": [(Path("customers"), 100)]}
        )
        with mock.patch.object(accepted, "read_acceptances", return_value=self.entries):
            record_column_values(self.build, str(self.at), self.at, [walked])
        return self.found()

    def found(self) -> list[str]:
        known = Accepted(self.entries, self.at + timedelta(hours=2))
        rows = RecentRows(self.build, "customers", str(self.at), self.at)
        found = [one.iloc[0] for one in lost_values(rows, known, None)]
        return [f"{one['rule']}, {one['severity']}: {one['detail']}" for one in found]

    def accept(self, rule: str = "values_jumped") -> None:
        at = self.at + timedelta(hours=1)
        self.entries.append(Acceptance(f"customers.{rule}", "ana", at, "right", "customers: phone"))


JUMP = ["values_jumped, warning: customers: phone: 10% of the rows have a value, 85% before"]


def test_a_jump_stays_until_the_values_are_back_or_a_person_accepts_it() -> None:
    nights = Nights()
    assert nights.read(90) == nights.read(85) == []
    assert nights.read(10) == nights.read(10) == nights.read(10, days=60) == JUMP
    assert nights.read(88) == [], "they are back"
    assert nights.read(10) != [], "the next loss is another one"
    nights.accept()
    assert nights.found() == nights.read(9) == nights.read(95) == [], (
        "compared with what was accepted"
    )
    assert nights.read(40) == [
        "values_jumped, warning: customers: phone: 40% of the rows have a value, 95% before"
    ]
    nights = Nights()
    assert nights.read(90) == []
    assert nights.read(10) != []
    nights.accept()
    assert nights.read(9) == [], "also within a month"
    for days, is_found in ((6, True), (31, False)):
        nights = Nights()
        slowly = [nights.read(phones, days=days) != [] for phones in (90, 80, 70, 60, 50, 44)]
        assert slowly == [*[False] * 5, is_found], "values that go slowly are a jump within a month"


def test_gone_values_are_an_error_and_an_accepted_loss_does_not_hide_the_next() -> None:
    nights, gone = (
        Nights(),
        ["values_gone, error: customers: phone: 90 values before, none in 100 rows now"],
    )
    assert nights.read(90) == []
    assert nights.read(0) == nights.read(0) == gone
    nights.accept("values_gone")
    assert nights.found() == nights.read(0) == nights.read(90) == []
    assert nights.read(0) == gone
    assert nights.read(90, total="0") == [
        "values_gone, error: customers: total: 99 values before, only 0 in 100 rows now"
    ]
