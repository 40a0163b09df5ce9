"""The limits of the warehouse: what is held back, what jumped, what is judged, how old a proof may be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from orderbridge.pipelines.reconcile import odd_values
from orderbridge.pipelines.reconcile.orders import recent_amounts
from orderbridge.pipelines.warehouse import failure, ops
from orderbridge.pipelines.warehouse.accepted_changes import AcceptedFall
from orderbridge.pipelines.warehouse.ops import last_reads
from orderbridge.pipelines.warehouse.raw import (
    column_values,
    coverage,
    merge,
    recent_rows,
    recent_values,
    schema_changes,
    shrinking,
)
from orderbridge.pipelines.warehouse.raw.held_lists import HeldList
from orderbridge.pipelines.warehouse.raw.merge import MergeCounts
from orderbridge.pipelines.warehouse.raw.schema_changes import enumeration
from orderbridge.pipelines.warehouse.raw.shrinking import shrink_reason
from orderbridge.sources.extract.result import ListResult
from orderbridge.transforms.chance import Share
from tests.limits.border import ABOVE, BELOW, FROM, UP_TO, limit
from tests.pipelines.warehouse.test_column_values import Nights, Pulse
from tests.pipelines.warehouse.test_recent_rows import Shop

DAY_S = 24 * 60 * 60


# what is held back


def held(missing: int, known: int) -> bool:
    walked = ListResult("customers", "complete", distinct=1)
    return bool(shrink_reason(walked, MergeCounts(1, 0, missing, known, 0)))


@limit(shrinking, "SHRINK_ROWS", ABOVE)
def test_so_many_rows_may_be_gone_of_a_short_list(n: int, holds: bool) -> None:
    assert held(n, 3 * n) is holds
    accepted = AcceptedFall("customers", 90, 30, "r1", "ana", datetime(2026, 3, 2, tzinfo=UTC))
    later = HeldList(
        "customers", known=90, absent=60 + n, reason="", examples="", compared_with="r1"
    )
    assert accepted.covers(later) is not holds


@limit(shrinking, "SHRINK_SHARE", ABOVE, of=1000)
def test_so_large_a_share_may_be_gone_of_a_long_list(n: int, holds: bool) -> None:
    assert held(n, 1000) is holds


@pytest.mark.parametrize(("missing", "holds"), [(499, False), (500, False), (501, True)])
def test_half_of_a_list_that_is_not_proven_complete_may_be_gone(missing: int, holds: bool) -> None:
    walked = ListResult("customers", "unproven", distinct=1)
    assert bool(shrink_reason(walked, MergeCounts(1, 0, missing, 1000, 0))) is holds


# how old a proof may be


@limit(coverage, "PROOF_AGE", UP_TO)
def test_a_list_proves_absence_for_so_long(n: int, holds: bool) -> None:
    begin = datetime(2026, 3, 2, 4, tzinfo=UTC)
    for run in ("r1", "r2"):
        with duckdb.connect() as build:
            build.execute("SET TimeZone = 'UTC'")
            merge.create_missing(build)
            ops.create_missing(build)
            for one, name, after in (("r1", "customers", 0), (run, "orders", n)):
                at = begin + timedelta(seconds=after)
                began = at - timedelta(seconds=47)
                walked = ListResult(name, "complete", started_at=began, ended_at=at)
                ops.record_coverage(build, one, walked, published=True)
            reads = last_reads(build)
            gap = coverage.coverage_gap(build, reads, "customers", "orders")
            assert (gap == "") is holds
            found = coverage.list_findings(build, reads, "orders")
            rules = {rule for one in found for rule in one["rule"]}
            assert ("customers_read_before" in rules) is (holds and run == "r2")


# values that are gone, and values that jumped


@limit(column_values, "HAD_MIN", FROM)
def test_a_column_that_had_so_many_values_is_missed(n: int, holds: bool) -> None:
    nights = Nights()
    nights.read(n)
    assert bool(nights.read(0)) is holds


@limit(column_values, "JUMP_MIN", FROM)
def test_so_many_values_fewer_are_a_jump(n: int, holds: bool) -> None:
    nights = Nights()
    nights.read(n + 1)
    assert bool(nights.read(1)) is holds


def jump(before: Pulse, now: Pulse) -> bool:
    """Whether the values of a column jumped from one night to the next."""
    with duckdb.connect() as build:
        ops.create_missing(build)
        for day, pulse in enumerate((before, now), 1):
            at = datetime(2026, 5, day, tzinfo=UTC)
            place = {"resource": "r", "table_name": "t", "column_name": "c", "run_id": f"r{day}"}
            ops.insert(build, "column_values", recorded_at=at, **place, **pulse._asdict())
        values = {"run": "r2", "since": datetime(2026, 4, 1, tzinfo=UTC)}
        build.execute(column_values._RECORD_JUMPS, values)
        sql = "SELECT jump IS NOT NULL FROM ops.column_values WHERE run_id = 'r2'"
        ((jumped,),) = build.execute(sql).fetchall()
        return bool(jumped)


@limit(column_values, "JUMP_MIN", FROM)
def test_so_many_values_are_compared(n: int, holds: bool) -> None:
    different = Pulse(100, 0, None, n, None, None)
    assert jump(different, different._replace(distinct=1)) is holds
    few = Pulse(n, 0, 0, 1, "1", "9")
    assert jump(few, few._replace(minimum="100", maximum="900")) is holds
    many = Pulse(200, 0, 0, 1, "1", "9")
    assert jump(many, Pulse(n, 0, 0, 1, "100", "900")) is holds
    zeros = Pulse(100, 0, 100 - n, 2, None, None)
    assert jump(zeros, zeros._replace(zeros=100)) is holds


@limit(column_values, "JUMP_FACTOR", BELOW, of=20)
def test_less_than_so_small_a_part_is_a_jump(n: int, holds: bool) -> None:
    """Half of 80 is the constant times 20."""
    nights = Nights()
    nights.read(80)
    assert bool(nights.read(n)) is holds
    different = Pulse(100, 0, None, 80, None, None)
    assert jump(different, different._replace(distinct=n)) is holds
    others = Pulse(100, 0, 20, 2, None, None)
    assert jump(others, others._replace(zeros=100 - n)) is holds


@limit(column_values, "SCALE_FACTOR", FROM)
def test_numbers_that_are_all_so_many_times_as_large_are_a_jump(n: int, holds: bool) -> None:
    small = Pulse(100, 0, 0, 50, "2", "9")
    large = small._replace(minimum=str(2 * n), maximum=str(9 * n))
    assert jump(small, large) is holds
    assert jump(large, small) is holds
    for name in ("minimum", "maximum"):
        one = large._replace(**{name: getattr(small, name)})
        assert not jump(small, one), "both ends have to move"
        assert not jump(one, small)


@limit(column_values, "COMPARED_WITHIN", UP_TO)
def test_a_read_is_compared_with_those_of_a_month(n: int, holds: bool) -> None:
    """Half is gone since the first read, and less than half since the second."""
    nights = Nights()
    nights.read(90)
    first = nights.at
    nights.read(60)
    nights.at = first + timedelta(seconds=n)
    assert bool(nights.read(44, days=0)) is holds


@limit(recent_values, "FILLED_LATER_MIN", BELOW, of=100)
def test_a_field_that_changed_rows_get_is_filled_later(n: int, holds: bool) -> None:
    """New orders without it are news only where too few changed ones have got it."""
    shop = Shop(300)
    for number, order in enumerate(shop.orders[:100]):
        order["delivered"] = None if number < n else "x"
    shop.night()
    for number, order in enumerate(shop.orders[:100]):
        order["total"] = 6
        if number < n:
            order["delivered"] = "x"
    shop.night()
    shop.add(30, delivered=None)
    assert bool(shop.night()) is holds


@limit(recent_values, "OF_LINES_MIN", FROM, of=20)
def test_what_nearly_all_lines_have_is_missed_in_new_orders(n: int, holds: bool) -> None:
    shop = Shop(300)
    shop.night()
    for _ in range(3):
        new = shop.add(20)
        shop.lines |= {str(one["id"]): ["sku" if at < n else None] for at, one in enumerate(new)}
        assert shop.night() == []
    shop.build.execute("DELETE FROM ops.recent_shares WHERE batch = 0")
    shop.lines |= {str(one["id"]): [None] for one in shop.add(60)}
    assert bool(shop.night()) is holds


@limit(recent_rows, "BATCH_ROWS_MIN", FROM)
def test_so_many_new_rows_are_a_batch_of_their_own(n: int, holds: bool) -> None:
    shop = Shop(300)
    shop.night()
    shop.add(n)
    assert shop.night() == []
    shop.add(40, total=None)
    (found,) = shop.night()
    assert ("0 of 40 new rows" in found) is holds


@limit(recent_rows, "BATCHES_KEPT", UP_TO, to=3)
def test_so_many_earlier_batches_are_kept(n: int, holds: bool) -> None:
    shop = Shop(300)
    for _ in range(7):
        shop.night()
        shop.add(20)
    shop.night()
    sql = "SELECT DISTINCT batch FROM ops.recent_shares WHERE kind = 'new'"
    batches = {batch for (batch,) in shop.build.execute(sql).fetchall()}
    assert (max(batches) - n in batches) is holds


@limit(recent_rows, "MASS_SHARE", UP_TO, of=40)
def test_so_large_a_part_of_a_list_is_judged_by_itself(n: int, holds: bool) -> None:
    shop = Shop(40 - n)
    shop.night()
    shop.add(n)
    shop.night()
    assert bool(shop.build.execute("FROM ops.recent_rows").fetchall()) is holds


@pytest.mark.parametrize(("hits", "holds"), [(96, False), (95, True), (94, True)])
def test_a_share_of_fitting_values_that_fell_by_a_twentieth_is_a_change(
    hits: int, holds: bool
) -> None:
    assert odd_values._is_changed(Share(hits, 100), Share(100, 100)) is holds


@limit(recent_amounts, "FALL_MIN", FROM, of=100)
def test_a_share_of_readable_amounts_that_fell_so_far_is_a_loss(n: int, holds: bool) -> None:
    assert recent_amounts._is_large(Share(100 - n, 100), Share(100, 100)) is holds


# what is kept and shown


@limit(schema_changes, "ENUMERATION_MAX", UP_TO)
def test_a_column_of_so_many_values_is_an_enumeration(n: int, holds: bool) -> None:
    values = [(None,), *((number,) for number in range(n))]
    assert len(enumeration("orders.status", values)) == (n if holds else 0)


@limit(failure, "_PAST_KEPT", UP_TO)
def test_so_many_failed_runs_are_kept(tmp_path: Path, n: int, holds: bool) -> None:
    path = tmp_path / "warehouse.duckdb"
    facts = {"command": "run", "failed_at": "2026-03-02T04:00:00+00:00", "exit_code": 4}
    for number in range(1, 31):
        failure._remember(path, {**facts, "message": str(number)})
    kept = [one["message"] for one in failure.past_failures(path)]
    assert kept[0] == "30"
    assert (str(31 - n) in kept) is holds
