"""A list that was not read whole is no evidence of absence: nothing is said not to be listed that may be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from pipelines.cli.reconcile import match_lines
from pipelines.pull.model import PullOptions
from pipelines.pull.pull import pull
from pipelines.reconcile.erp_files import ErpFiles
from pipelines.reconcile.reconcile import ReconcileResult, Reconciling, reconcile
from pipelines.reporting.status import read_status
from pipelines.warehouse import ops
from pipelines.warehouse.ops import last_reads
from pipelines.warehouse.views import statements
from sources.errors import CoverageError
from tests.pipelines.bridge import Bridge, bridge

ABSENCES = ("price_list_not_listed", "source_not_listed", "chain_orphaned", "customer_unknown")
Reconcile = Callable[[Bridge, ErpFiles], ReconcileResult]


def one_after_the_other(made: Bridge, files: ErpFiles) -> ReconcileResult:
    made.pull()
    return reconcile(files)


def in_one_build(made: Bridge, files: ErpFiles) -> ReconcileResult:
    after = Reconciling(files)
    pull(PullOptions(command="run"), step=after)
    assert after.result is not None
    return after.result


def absences(made: Bridge) -> list[tuple[str, str]]:
    """What is said not to be there."""
    return made.rows(f"SELECT rule, entity_id FROM reconciled.exceptions WHERE rule IN {ABSENCES} ORDER BY ALL")


def rules(made: Bridge) -> set[str]:
    return {rule for (rule,) in made.rows("SELECT DISTINCT rule FROM reconciled.exceptions")}


def unproven(made: Bridge) -> dict[tuple[str, str], str]:
    """What is said not to be known."""
    sql = "SELECT entity, rule, detail FROM reconciled.exceptions WHERE rule LIKE '%unproven' AND severity = 'warning'"
    return {(entity, rule): detail for entity, rule, detail in made.rows(sql)}


@pytest.mark.parametrize("reconciled", [one_after_the_other, in_one_build])
def test_of_a_refused_row_nothing_is_said_that_its_absence_would_mean(
    fresh: Bridge, tmp_path: Path, reconciled: Reconcile
) -> None:
    state = fresh.platform.state
    base, derived, further, *_ = state.ids("price_lists")
    buyer, refused, *_ = state.ids("customers")
    erp_code = state.records("customers")[1]["erpCode"]
    order = state.ids("orders")[0]
    state.change("price_lists", base, {"adjustmentValue": "mucho", "sourcePriceListId": None})
    state.change("price_lists", derived, {"sourcePriceListId": base})
    state.change("price_lists", further, {"sourcePriceListId": derived})
    state.change("customers", buyer, {"priceListId": int(base)})
    state.change("customers", refused, {"birthdate": ["mañana"]})
    customer = state.records("orders")[0]["customer"]
    state.change("orders", order, {"customer": {**customer, "id": int(refused)}})
    export = tmp_path / "erp.csv"
    export.write_text(f"erpCode;Razón social\n{erp_code};Uno\nnobody;Dos\n", "utf-8")

    given = reconciled(fresh, ErpFiles(customers=export))
    assert absences(fresh) == []
    said = unproven(fresh)
    assert " price lists: price_lists: unproven, quarantined rows: 1" in said["price_lists", "sources_unproven"]
    assert "customers: price_lists: unproven, quarantined rows: 1" in said["customers", "price_lists_unproven"]
    assert "orders: customers: unproven, quarantined rows: 1" in said["orders", "customers_unproven"]
    only_in_erp = "2 lines only in the ERP: customers: unproven, quarantined rows: 1"
    assert said["erp_customers", "customers_unproven"] == only_in_erp
    assert said["customers", "unproven"] == "customers: unproven, quarantined rows: 1; rows of earlier walks: 0"
    assert given.match is not None
    assert any("may still be on the platform" in line for line in match_lines(given.match))
    status = "SELECT price_list_status FROM reconciled.customers WHERE customer_id = $1"
    assert fresh.one(status, buyer) == "unknown"
    chains = dict(fresh.rows("SELECT price_list_id, chain_status FROM reconciled.price_lists"))
    assert (chains[derived], chains[further]) == ("unknown", "unknown")
    assert fresh.one("SELECT customer_status FROM reconciled.orders WHERE order_id = $1", order) == "unknown"

    state.remove("price_lists", base)
    state.change("customers", refused, {"birthdate": None})
    given = reconciled(fresh, ErpFiles(customers=export))
    assert unproven(fresh) == {}
    assert {("source_not_listed", derived), ("chain_orphaned", further), ("price_list_not_listed", buyer)} <= set(
        absences(fresh)
    )
    assert fresh.one(status, buyer) == "not_listed"
    assert given.match is not None
    assert [count for name, _, count in given.match.statuses if name == "only_in_erp"] == [1]
    assert not any("may still be on the platform" in line for line in match_lines(given.match))


def test_rows_of_an_earlier_walk_that_were_not_seen_again_are_counted(published: Bridge) -> None:
    state = published.platform.state
    state.change("promotions", state.ids("promotions")[0], {"isActive": "quizás"})
    published.pull("promotions")
    reconcile()
    assert unproven(published) == {
        ("promotions", "unproven"): "promotions: unproven, quarantined rows: 1; rows of earlier walks: 1"
    }


def test_a_row_that_several_sweeps_refused_counts_once(tmp_path: Path) -> None:
    with bridge(tmp_path, customers=120, readings={"legacy_limit": "ignored"}) as made:
        state = made.platform.state
        state.change("customers", state.ids("customers")[0], {"birthdate": ["mañana"]})
        (walked,) = made.pull("customers").lists
        assert sum(sweep.quarantined for sweep in walked.sweeps) > 1
        assert made.one("SELECT quarantined FROM ops.coverage") == 1
        reconcile()
        assert unproven(made)["customers", "unproven"].startswith("customers: unproven, quarantined rows: 1;")


def test_one_sweep_alone_proves_no_absence(fresh: Bridge) -> None:
    state = fresh.platform.state
    order, customer = state.ids("orders")[0], state.records("orders")[0]["customer"]
    state.change("orders", order, {"customer": {**customer, "id": 999_999}})
    fresh.pull("customers", "orders", sweeps=1)
    reconcile()
    assert ("customer_unknown", order) not in absences(fresh)
    assert unproven(fresh)["orders", "customers_unproven"].endswith(" of 1 orders: customers: unproven")
    fresh.pull("customers", "orders")
    reconcile()
    assert ("customer_unknown", order) in absences(fresh)


def test_what_a_later_run_read_may_name_what_is_newer_than_the_other_list(published: Bridge) -> None:
    state = published.platform.state
    new = state.add("price_lists", {"name": "Nueva", "adjustmentType": "NONE", "adjustmentValue": 0})["id"]
    buyer = state.ids("customers")[0]
    state.change("customers", buyer, {"priceListId": int(new)})
    published.pull("customers")
    with duckdb.connect(str(published.path)) as connection:
        connection.execute(
            "UPDATE ops.coverage SET ended_at = ended_at - INTERVAL 61 MINUTE WHERE resource = 'price_lists'"
        )
    reconcile()
    assert ("price_list_not_listed", buyer) not in absences(published)
    assert unproven(published)["customers", "price_lists_unproven"].endswith(" UTC, before customers")
    published.pull("price_lists")
    reconcile()
    assert ("customers", "price_lists_unproven") not in unproven(published)
    assert (
        published.one("SELECT price_list_status FROM reconciled.customers WHERE customer_id = $1", buyer) == "matched"
    )


@pytest.mark.parametrize(("minutes", "is_claimed"), [(59, True), (61, False)])
def test_a_list_read_long_before_another_one_ended_proves_nothing_in_one_run_either(
    fresh: Bridge, minutes: int, is_claimed: bool
) -> None:
    buyer = fresh.platform.state.ids("customers")[0]
    fresh.platform.state.change("customers", buyer, {"priceListId": 999})
    fresh.pull("customers", "price_lists")
    with duckdb.connect(str(fresh.path)) as connection:
        connection.execute(
            f"UPDATE ops.coverage SET ended_at = ended_at - INTERVAL {minutes} MINUTE WHERE resource = 'price_lists'"
        )
    reconcile()
    assert (("price_list_not_listed", buyer) in absences(fresh)) == is_claimed
    assert (("customers", "price_lists_unproven") in unproven(fresh)) != is_claimed


def test_what_was_proven_shortly_before_stays_with_the_time_of_the_proof(fresh: Bridge) -> None:
    state = fresh.platform.state
    buyers = state.ids("customers")[:3]
    for buyer in buyers:
        state.change("customers", buyer, {"priceListId": 999})
    fresh.pull("customers", "price_lists")
    reconcile()
    before = absences(fresh)
    assert {("price_list_not_listed", buyer) for buyer in buyers} <= set(before)
    assert not [rule for rule in rules(fresh) if rule.endswith("_read_before")]
    fresh.pull("customers", "promotions")
    reconcile()
    assert absences(fresh) == before
    detail = fresh.one("SELECT detail FROM reconciled.exceptions WHERE rule = 'price_lists_read_before'")
    read_at = fresh.one("SELECT ended_at FROM ops.last_read WHERE resource = 'price_lists'")
    assert detail.startswith(f"price_lists proven complete at {read_at:%Y-%m-%d %H:%M:%S} UTC, customers read ")
    assert detail.endswith(" s later: what was added in between is reported as absent")
    fresh.pull("customers", "price_lists")
    reconcile()
    assert absences(fresh) == before
    assert not [rule for rule in rules(fresh) if rule.endswith("_read_before")]


def test_a_proof_by_a_clock_that_was_ahead_does_not_hold_for_what_is_read_after_it_was_set_back(
    published: Bridge,
) -> None:
    buyer = published.platform.state.ids("customers")[0]
    published.platform.state.change("customers", buyer, {"priceListId": 999})
    with duckdb.connect(str(published.path)) as connection:
        connection.execute("UPDATE ops.coverage SET ended_at = ended_at + INTERVAL 1 DAY")
    published.pull("customers")
    reconcile()
    assert ("price_list_not_listed", buyer) not in absences(published)
    assert unproven(published)["customers", "price_lists_unproven"].endswith(" UTC, before customers")
    published.pull("price_lists")
    reconcile()
    assert ("price_list_not_listed", buyer) in absences(published)


def test_a_list_that_was_held_back_proves_no_absence_from_lists_of_the_same_run(published: Bridge) -> None:
    state = published.platform.state
    for gone in state.ids("price_lists")[:4]:
        state.remove("price_lists", gone)
    buyer = state.ids("customers")[0]
    state.change("customers", buyer, {"priceListId": 999})
    assert published.pull("customers", "price_lists").held_back.keys() == {"price_lists"}
    reconcile()
    assert ("price_list_not_listed", buyer) not in absences(published)
    assert (
        published.one("SELECT price_list_status FROM reconciled.customers WHERE customer_id = $1", buyer) == "unknown"
    )
    published.pull("customers", "price_lists", accept_shrink=True)
    reconcile()
    assert ("price_list_not_listed", buyer) in absences(published)


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (9, "all 9 rows were quarantined, and 9 records are known"),
        (6, r"6 of 9 known records are not in the list any more \(more than half\), with 6 rows quarantined"),
    ],
)
def test_a_list_whose_rows_were_refused_is_not_said_to_have_lost_them(fresh: Bridge, refused: int, reason: str) -> None:
    state = fresh.platform.state
    fresh.pull("promotions")
    for key in state.ids("promotions")[:refused]:
        state.change("promotions", key, {"isActive": "quizás"})
    with pytest.raises(CoverageError, match=reason) as caught:
        fresh.pull("promotions")
    assert "ops.quarantine" in (caught.value.hint or "")
    assert fresh.pull("promotions", accept_shrink=True).exit_code == 5
    assert fresh.one("SELECT count(*) FROM raw.promotions WHERE _missing_since IS NULL") == 9


def test_a_list_that_was_never_read_proves_nothing(fresh: Bridge) -> None:
    state = fresh.platform.state
    state.change("customers", state.ids("customers")[0], {"priceListId": 1})
    fresh.pull("customers")
    reconcile()
    assert absences(fresh) == []
    assert unproven(fresh)["customers", "price_lists_unproven"].endswith("customers: price_lists: never read")
    statuses = {name for (name,) in fresh.rows("SELECT DISTINCT price_list_status FROM reconciled.customers")}
    assert statuses <= {"default", "unknown"}


def test_a_warehouse_of_version_0_1_is_read_and_gets_the_column_that_it_lacks(published: Bridge) -> None:
    state = published.platform.state
    for number in state.ids("price_lists"):
        state.remove("price_lists", number)
    assert published.pull().held_back.keys() == {"price_lists"}
    with duckdb.connect(str(published.path)) as connection:
        before = last_reads(connection)
        connection.execute("DROP VIEW ops.last_read; ALTER TABLE ops.coverage DROP COLUMN published")
        assert last_reads(connection) == before
    assert not read_status().schema_changes
    first, second = published.rows("SELECT run_id FROM ops.runs ORDER BY started_at")
    assert {name: read.run_id for name, read in before.items()} == {
        "customers": second[0],
        "orders": second[0],
        "promotions": second[0],
        "price_lists": first[0],
    }
    reconcile()
    sql = "SELECT run_id, published FROM ops.coverage WHERE resource = $1 ORDER BY run_id"
    assert dict(published.rows(sql, "price_lists")) == {first[0]: True, second[0]: False}
    assert dict(published.rows(sql, "orders")) == {first[0]: True, second[0]: True}
    with duckdb.connect(str(published.path), read_only=True) as connection:
        assert last_reads(connection) == before
        assert before["customers"].legacy_host == published.platform.url.removeprefix("http://")


def test_nothing_was_read_into_a_file_without_ops_tables() -> None:
    with duckdb.connect() as connection:
        assert last_reads(connection) == {}


def test_a_read_by_a_clock_that_was_wrong_is_not_the_last_one_for_ever() -> None:
    """The last read is the one recorded last: what is known of absent records must not depend on a bad clock."""
    with duckdb.connect() as connection:
        ops.create_missing(connection)
        reads = [
            ("2040", "complete", "2040-01-01 00:00:00Z"),
            ("2026a", "unproven", "2026-01-01 00:00:00Z"),
            ("2041", "tail", "2041-01-01 00:00:00Z"),
            ("t", "tail", "2026-01-02 00:00:00Z"),
        ]
        for number, (run_id, verdict, ended_at) in enumerate(reads):
            connection.execute(
                "INSERT INTO ops.coverage BY NAME SELECT $1 AS run_id, 'orders' AS resource, $2 AS verdict,"
                " $3::TIMESTAMPTZ AS started_at, $3::TIMESTAMPTZ AS ended_at, true AS published, $4 AS read_number",
                [run_id, verdict, ended_at, number],
            )
        read = last_reads(connection)["orders"]
        assert (read.run_id, read.verdict, read.tail_run_id) == ("2026a", "unproven", "t")
        (view,) = (sql.partition(" AS\n")[2] for sql in statements() if "VIEW bi.lists" in sql)
        sql = f"SELECT run_id, tail_read_at FROM ({view}) WHERE resource = 'orders'"
        assert connection.execute(sql).fetchall() == [("2026a", read.tail_ended_at)]
