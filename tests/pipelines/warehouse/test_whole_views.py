"""Each view of `bi` is compared row by row and column by column with plain Python over a world of pairs that differ."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from orderbridge.pipelines.reconcile.orders.totals import reconcile_customer_orders
from orderbridge.pipelines.reconcile.reconcile import Reconciling
from orderbridge.pipelines.warehouse.bi.views import VIEWS
from orderbridge.pipelines.warehouse.ops import RECONCILED_READS
from orderbridge.sources.settings import ReconcileSettings
from orderbridge.transforms.values.dates import DateContext
from tests.pipelines.same_rows import check_same_rows, constant_columns
from tests.pipelines.warehouse.view_truth import TRUTH, customer_orders
from tests.pipelines.warehouse.world import AS_OF, RECONCILED_UP_TO, World

WORLDS = {
    "times": World.of(1),
    "midnights": World.of(2, has_times=False),
    "whole reads": World.of(3, is_read=True),
}
SINGLE = {"as_of", "freshness"}
"""Views of one row."""


@pytest.fixture(scope="module", params=WORLDS)
def told(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[World, duckdb.DuckDBPyConnection]]:
    world = WORLDS[request.param]
    with duckdb.connect(str(tmp_path_factory.mktemp("views") / "build.duckdb")) as build:
        build.execute("SET TimeZone = 'UTC'")
        settings = ReconcileSettings(timezone="America/Lima")
        Reconciling(settings=settings).build_tables(build, "run", AS_OF)
        for table, rows in world.tables.items():
            names = ", ".join(f'"{name}"' for name in rows[0])
            marks = ", ".join("?" * len(rows[0]))
            sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"
            build.executemany(sql, [[*row.values()] for row in rows])
        build.execute("DELETE FROM ops.control_totals WHERE entity = ?", [RECONCILED_READS])
        for number in (RECONCILED_UP_TO, RECONCILED_UP_TO - 7):
            insert = "INSERT INTO ops.control_totals (entity, value) VALUES (?, ?)"
            build.execute(insert, [RECONCILED_READS, number])
        yield world, build


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_the_rows_that_plain_python_finds(
    told: tuple[World, duckdb.DuckDBPyConnection], name: str
) -> None:
    world, build = told
    found = build.sql(f"FROM bi.{name}")
    columns = found.columns
    rows = [dict(zip(columns, row, strict=True)) for row in found.fetchall()]
    expected = TRUTH[name](world)
    assert {*columns} == {*expected[0]}
    check_same_rows(rows, expected, columns)


@pytest.mark.parametrize("reasons", [{}, {"ordered_at": "no date"}, {"total": "no total"}])
def test_what_customers_ordered_is_what_plain_python_counts(
    told: tuple[World, duckdb.DuckDBPyConnection], reasons: dict[str, str]
) -> None:
    world, build = told
    build.begin()
    reconcile_customer_orders(build, DateContext(AS_OF, timezone="America/Lima"), reasons)
    found = build.sql("FROM reconciled.customer_orders")
    columns = found.columns
    rows = [dict(zip(columns, row, strict=True)) for row in found.fetchall()]
    build.rollback()
    expected = customer_orders(world, reasons.get("ordered_at"), reasons.get("total"))
    assert {*columns} == {*expected[0]}
    check_same_rows(rows, expected, columns)


@pytest.mark.parametrize("name", sorted({*VIEWS} - SINGLE))
def test_no_column_of_the_world_is_constant(name: str) -> None:
    rows = [row for world in WORLDS.values() for row in TRUTH[name](world)]
    assert len(rows) > 3
    assert constant_columns(rows) == set()
