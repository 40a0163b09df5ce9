"""Reconciling: tables that mean what they say, published with the raw ones they come from or not at all."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.pull.model import PullOptions
from pipelines.pull.pull import pull
from pipelines.reconcile import entities
from pipelines.reconcile import reconcile as reconciling
from pipelines.reconcile.entities import STEPS
from pipelines.reconcile.reconcile import ReconcileResult, Reconciling, reconcile
from pipelines.warehouse.accepted import Acceptance, accepted_file, read_acceptances, write_acceptances
from pipelines.warehouse.lock import run_lock
from sources.contract import LISTS
from sources.errors import BridgeError, LockedError, UsageError
from tests.pipelines.bridge import Bridge, bridge, command, pulled, start
from transforms.promotions import promotions

COLUMNS = {
    "customers": {
        "customer_id", "full_name", "email_normalized", "phone_digits", "created_at", "price_list_id",
        "price_list_name", "price_list_status", "document_count", "default_document_number", "default_fiscal_name",
        "tax_document_number", "is_missing",
    },
    "promotions": {"promotion_id", "starts_at", "expires_at", "remaining_uses", "status"},
    "price_lists": {"price_list_id", "root_price_list_id", "depth", "chain_status", "customer_count"},
    "orders": {"order_id", "customer_id", "customer_status", "ordered_at", "total"},
    "exceptions": {"entity", "entity_id", "rule", "severity", "detail"},
}  # fmt: skip


@pytest.fixture(autouse=True)
def own_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test accepts is its own."""
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Bridge]:
    with pulled(tmp_path) as copied:
        yield copied


def test_the_tables_have_the_columns_of_the_design_and_every_row(made: Bridge) -> None:
    reported = reconcile()
    for table, columns in COLUMNS.items():
        have = {name: kind for name, kind, *_ in made.rows(f"DESCRIBE reconciled.{table}")}
        assert set(have) >= columns
        if table != "exceptions":
            assert {"_run_id", "_first_seen_at", "_last_seen_at", "_missing_since"} <= set(have)
            rows = made.one(f"SELECT count(*) FROM raw.{table}")
            assert rows == reported.rows[table] == made.one(f"SELECT count(*) FROM reconciled.{table}")
    assert made.rows("SELECT command, exit_code FROM ops.runs ORDER BY started_at") == [("pull", 0), ("reconcile", 0)]
    assert made.left() == ["warehouse.duckdb"]


def test_what_it_makes_means_what_the_platform_says(reconciled: Bridge) -> None:
    customers = {str(row["id"]): row for row in reconciled.platform.state.records("customers")}
    lists = {str(row["id"]) for row in reconciled.platform.state.records("price_lists")}
    for key, email, at, status, count in reconciled.rows(
        "SELECT customer_id, email_normalized, created_at, price_list_status, document_count FROM reconciled.customers"
    ):
        said = customers[key]
        assert email == (said["email"].strip().casefold() if said.get("email") else None)
        assert at == (datetime.fromisoformat(said["createdAt"]).astimezone(UTC) if said.get("createdAt") else None)
        given = said.get("priceListId")
        assert status == ("default" if given is None else "matched" if str(given) in lists else "not_listed")
        assert count == len(said.get("documents") or [])
    orders = {str(row["id"]): row for row in reconciled.platform.state.records("orders")}
    for key, customer, total in reconciled.rows("SELECT order_id, customer_id, total FROM reconciled.orders"):
        assert customer == str(orders[key]["customer"]["id"])
        assert float(total) == pytest.approx(float(orders[key]["total"]))


def test_exceptions_hold_no_personal_data(made: Bridge) -> None:
    state = made.platform.state
    first, second, *_ = state.ids("customers")
    for key in (first, second):
        state.change("customers", key, {"email": "una.persona@example.com", "lastName": "Secreto-Núñez"})
    made.pull("customers")
    reconcile()
    rules = {rule for (rule,) in made.rows("SELECT rule FROM reconciled.exceptions WHERE entity = 'customers'")}
    assert any("email" in rule for rule in rules)
    reported = json.dumps(made.rows("FROM reconciled.exceptions"), ensure_ascii=False, default=str)
    assert "persona" not in reported
    assert "Núñez" not in reported


def test_what_was_seen_of_the_gaps_is_reported(reconciled: Bridge) -> None:
    reported: ReconcileResult = reconciled.result
    seen = set(reconciled.rows("SELECT what, value FROM ops.observations"))
    assert ("date_format", "customers: iso_offset") in seen
    assert ("order_fields", "customer_id: customer__id") in seen
    assert "30 of 30" in reported.proposed["customer_id"]


def test_a_new_column_does_not_change_the_customers_of_the_orders_overnight(reconciled: Bridge) -> None:
    first: ReconcileResult = reconciled.result
    statuses = "SELECT customer_status, count(*) FROM reconciled.orders GROUP BY ALL ORDER BY 1"
    before = reconciled.rows(statuses)
    assert dict(before)["matched"] == 30
    used = {field: column for field, column in first.order_fields.items() if column}
    assert dict(reconciled.rows("SELECT field, column_name FROM ops.order_fields")) == used | {
        "lines": "orders__lines",
        "total_unit": "whole",
    }
    assert reconciled.rows("SELECT DISTINCT notation FROM ops.order_fields WHERE field <> 'lines'") == [("ids",)]
    customers = reconciled.platform.state.ids("customers")
    for number, key in enumerate(reconciled.platform.state.ids("orders")):
        reconciled.platform.state.change("orders", key, {"clientId": int(customers[number % 7])})
    reconciled.pull("orders")
    again = reconcile()
    assert again.order_fields == first.order_fields
    assert reconciled.rows(statuses) == before
    assert reconciled.rows("SELECT DISTINCT run_id FROM ops.order_fields") == [(again.run_id,)]


def test_the_notation_of_customers_is_pinned_until_the_setting_changes_it(
    reconciled: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    with duckdb.connect(reconciled.path) as warehouse:
        warehouse.execute("UPDATE ops.order_fields SET notation = 'codes'")
    reconcile()
    (kept,) = reconciled.rows("SELECT detail FROM reconciled.exceptions WHERE rule = 'field_changed'")
    assert kept[0].startswith("customer_id: customer__id is read as codes, but 30 of 30 are ids of customers, 0 are")
    assert reconciled.rows("SELECT DISTINCT customer_status FROM reconciled.orders") == [(None,)]
    monkeypatch.setenv("RECONCILE__ORDER_CUSTOMER_NOTATION", "ids")
    reconcile()
    assert reconciled.rows("SELECT DISTINCT customer_status FROM reconciled.orders") == [("matched",)]
    sql = "SELECT DISTINCT notation FROM ops.order_fields WHERE field <> 'lines'"
    assert reconciled.rows(sql) == [("ids",)]


LOST = {
    "customer__id": (
        "customer_id: customer__id: 0% of 30 orders are of a known customer, 100% before",
        "SELECT DISTINCT customer_status, order_count, is_active_365_days FROM bi.orders, bi.customers",
    ),
    "created_at": (
        "ordered_at: created_at has a value in 0 of 30 orders",
        "SELECT DISTINCT last_ordered_at, is_active_365_days FROM bi.customers WHERE order_count > 0",
    ),
    "total": (
        "total: total has a value in 0 of 30 orders",
        "SELECT DISTINCT c.revenue, d.revenue FROM bi.customers c, bi.revenue_by_day d WHERE order_count * orders > 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("lost", LOST)
def test_what_an_empty_column_held_is_null_with_the_reason_beside_it(reconciled: Bridge, lost: str) -> None:
    reason, figures = LOST[lost]
    with duckdb.connect(reconciled.path) as warehouse:
        warehouse.execute(f'UPDATE raw.orders SET "{lost}" = NULL')
    assert reconcile().exit_code == 9
    (values,) = reconciled.rows(figures)
    assert set(values) == {None}
    of_customers = "SELECT DISTINCT unknown_because FROM bi.customers WHERE coalesce(order_count, 1) > 0"
    for sql in ("SELECT DISTINCT unknown_because FROM bi.orders", of_customers):
        assert reconciled.rows(sql) == [(reason,)]


def test_a_pinned_column_that_is_gone_is_an_error_finding(reconciled: Bridge) -> None:
    with duckdb.connect(reconciled.path) as warehouse:
        warehouse.execute("UPDATE ops.order_fields SET column_name = 'gone' WHERE field = 'customer_id'")
    reported = reconcile()
    assert reported.order_fields["customer_id"] == "customer__id"
    details = reconciled.rows("SELECT severity, detail FROM reconciled.exceptions WHERE rule = 'field_changed'")
    assert [(severity, detail.split(";")[0]) for severity, detail in details] == [
        ("error", "customer_id: gone is gone, customer__id is used")
    ]
    assert reconcile().exit_code == 9, "an alarm does not fall silent by itself"
    accept("orders.field_changed", "customer_id")
    assert reconcile().exit_code == 0
    assert reconciled.one("SELECT column_name FROM ops.order_fields WHERE field = 'customer_id'") == "customer__id"


def accept(rule: str, subject: str = "") -> None:
    """As `orderbridge accept` does it."""
    path = accepted_file()
    entry = Acceptance(rule, "ana", datetime.now(UTC), "as agreed", subject)
    write_acceptances(path, [*read_acceptances(path), entry])


def test_a_share_that_fell_is_compared_with_the_last_accepted_one(reconciled: Bridge) -> None:
    state = reconciled.platform.state
    keys = state.ids("orders")

    def night(guests: int) -> int:
        for key in keys[:guests]:
            state.change("orders", key, {"customer": {"id": 999_999}})
        reconciled.pull("orders")
        return reconcile().exit_code

    assert [night(12), night(12)] == [9, 9]
    accept("orders.matched_share_fell")
    assert night(12) == 0
    assert [night(25), night(25)] == [9, 9]


def test_a_field_of_another_form_is_an_error_until_it_is_accepted(reconciled: Bridge) -> None:
    state = reconciled.platform.state

    def night() -> int:
        for key in state.ids("orders"):
            state.change("orders", key, {"currency": {"code": "PEN"}})
        reconciled.pull("orders")
        return reconcile().exit_code

    assert [night(), night()] == [9, 9]
    accept("orders.form_changed", "orders: total")
    assert night() == 9
    accept("orders.form_changed", "orders: currency")
    assert night() == 9, "the column of currencies has another name now"
    details = reconciled.rows("SELECT detail FROM reconciled.exceptions WHERE severity = 'error'")
    assert details == [("currency: currency is kept, currency__code fits better now; set reconcile.order_currency",)]
    assert reconciled.one("SELECT count(*) FROM raw.orders WHERE currency__code = 'PEN'") == 30
    accept("orders.field_changed", "currency")
    assert [night(), night()] == [0, 0]


def test_values_that_are_gone_are_an_error_every_night_until_accepted(reconciled: Bridge) -> None:
    state = reconciled.platform.state
    places = {
        "customers": [
            "customers: phone: 33 values before, none in 40 rows now",
            "customers__documents: 39 rows before, none now",
        ],
        "orders": ["orders: lines: 96 rows before, none now", "orders: note: 30 values before, none in 30 rows now"],
    }

    def night(**changed: dict[str, Any]) -> list[str]:
        for resource, fields in changed.items():
            for key in state.ids(resource):
                state.change(resource, key, fields)
        reconciled.pull()
        reconcile()
        found = reconciled.rows("SELECT detail FROM reconciled.exceptions WHERE rule = 'values_gone' ORDER BY ALL")
        return [detail for (detail,) in found]

    assert night(orders={"note": "x"}) == []
    gone = night(orders={"lines": [], "note": ""}, customers={"documents": [], "phone": None})
    assert gone == night() == [*places["customers"], *places["orders"]]
    for resource, details in places.items():
        for detail in details:
            accept(f"{resource}.values_gone", detail.rpartition(":")[0])
    assert night() == []


def test_accepted_findings_are_counted_and_not_listed(reconciled: Bridge) -> None:
    first, second, *_ = reconciled.platform.state.ids("customers")
    for key in (first, second):
        reconciled.platform.state.change("customers", key, {"erpCode": "A-1"})
    reconciled.pull("customers")
    result = reconcile()
    assert (result.exit_code, replace(result, fail_on="never").exit_code) == (9, 0)
    accept("customers.erp_code_duplicate", first)
    result = reconcile()
    assert (result.exit_code, result.accepted) == (9, 1), "the other one is not accepted"
    accept("customers.erp_code_duplicate", second)
    result = reconcile()
    assert (result.exit_code, result.accepted, replace(result, fail_on="warning").exit_code) == (0, 2, 9)
    assert "erp_code_duplicate" not in {rule for _, rule, *_ in result.findings}
    sql = "SELECT accepted FROM bi.findings WHERE rule = 'erp_code_duplicate'"
    assert reconciled.one(sql) == 2


def test_lines_in_a_second_table_are_an_error_and_cost_none_of_the_first(reconciled: Bridge) -> None:
    lines = reconciled.one("SELECT count(*) FROM reconciled.order_lines")
    first, *_ = reconciled.platform.state.ids("orders")
    reconciled.platform.state.change("orders", first, {"items": [{"sku": "A"}, {"sku": "B"}]})
    for _ in range(2):
        reconciled.pull("orders")
        assert reconcile().exit_code == 9
        assert reconciled.one("SELECT count(*) FROM reconciled.order_lines") == lines
        (detail,) = reconciled.rows("SELECT detail FROM reconciled.exceptions WHERE severity = 'error'")
        assert detail == ("lines: orders__lines is used; orders__items has 2 rows; set reconcile.order_lines",)


def test_lines_of_orders_and_orders_of_customers_are_tables(reconciled: Bridge) -> None:
    reported: ReconcileResult = reconciled.result
    lines = reconciled.one("SELECT count(*) FROM raw.orders__lines")
    assert lines == reported.rows["order_lines"] == reconciled.one("SELECT count(*) FROM reconciled.order_lines") > 0
    assert reported.rows["customer_orders"] == reconciled.one("SELECT count(*) FROM reconciled.customers") == 40
    assert reconciled.one("SELECT sum(order_count + cancelled_count) FROM reconciled.customer_orders") == 30
    totals = {entity for (entity,) in reconciled.rows("SELECT entity FROM ops.control_totals")}
    assert {"reconciled.order_lines", "reconciled.customer_orders"} <= totals


def test_orders_that_are_no_longer_listed_do_not_decide_which_column_is_chosen(reconciled: Bridge) -> None:
    with duckdb.connect(reconciled.path) as warehouse:
        warehouse.execute("UPDATE raw.orders SET total = NULL, _missing_since = now() WHERE number % 2 = 0")
        warehouse.execute("DELETE FROM ops.order_fields")
    assert reconcile().order_fields["total"] == "total"
    assert reconciled.one("SELECT count(total) FROM reconciled.orders") == 15


def test_lines_that_the_platform_renames_are_still_the_lines(reconciled: Bridge) -> None:
    state = reconciled.platform.state
    gone, *others = state.records("orders")
    state.remove("orders", gone["id"])
    for order in others:
        state.remove("orders", order["id"])
        state.add("orders", {"details": order.pop("lines"), **order})
    reconciled.pull("orders")
    assert reconcile().rows["order_lines"] == sum(len(order["details"]) for order in state.records("orders")) > 0
    assert reconciled.one("SELECT count(*) FROM raw.orders__lines") == len(gone["lines"])


def test_promotions_and_price_lists_have_a_history(reconciled: Bridge) -> None:
    key = reconciled.platform.state.ids("promotions")[0]
    reconciled.platform.state.change("promotions", key, {"name": "Another name"})
    reconciled.pull("promotions")
    reported = reconcile()
    assert reported.rows["promotion_history"] == 10
    assert reported.rows["price_list_history"] == 6
    versions = "SELECT version, ended_by FROM reconciled.promotion_history WHERE promotion_id = $1 ORDER BY 1"
    assert reconciled.rows(versions, key) == [(1, "changed"), (2, None)]


def test_the_settings_name_the_fields_of_an_order(made: Bridge) -> None:
    os.environ["RECONCILE__ORDER_CUSTOMER_ID"] = "customer__erp_code"
    os.environ["RECONCILE__ORDER_TOTAL"] = "number"
    reported = reconcile()
    assert reported.order_fields["customer_id"] == "customer__erp_code"
    assert "customer_id" not in reported.proposed
    number, total = made.rows("SELECT number, total FROM reconciled.orders LIMIT 1")[0]
    assert int(number) == int(total)


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("RECONCILE__ORDER_TOTAL", "no_such", "no_such"),
        ("RECONCILE__ORDER_TOTALS", "total", "ORDER_TOTAL"),
        ("RECONCILE__DATE_ORDER", "dmy", "day_first, month_first"),
        ("RECONCILE__COUNTRY", "UK", "United Kingdom is GB"),
    ],
)
def test_a_setting_that_cannot_be_leaves_the_old_file(made: Bridge, name: str, value: str, match: str) -> None:
    before = made.path.read_bytes()
    os.environ[name] = value
    with pytest.raises(UsageError, match=match):
        reconcile()
    assert made.path.read_bytes() == before
    assert made.left() == ["warehouse.duckdb", "warehouse.duckdb.failed.json"]


def test_a_row_that_would_be_lost_fails_the_run(made: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    def lossy(raw: Any, *rest: Any) -> Any:
        return promotions(raw.iloc[1:], *rest)

    monkeypatch.setattr(entities, "promotions", lossy)
    before = made.path.read_bytes()
    with pytest.raises(BridgeError, match="promotions: 9 raw rows, 8 reconciled"):
        reconcile()
    assert made.path.read_bytes() == before


@pytest.mark.parametrize(("limit_mb", "doublings", "tries"), [(12, 0, 1), (8, 4, 2)])
def test_where_memory_ends_the_tables_are_made_with_more(
    made: Bridge,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    limit_mb: int,
    doublings: int,
    tries: int,
) -> None:
    reconcile()
    expected = tables_of(made)
    monkeypatch.setattr(reconciling, "MEMORY_MB", limit_mb)
    monkeypatch.setattr(reconciling, "_DOUBLINGS", doublings)
    with caplog.at_level("INFO", "orderbridge.steps"):
        reconcile()
    again = [message for message in caplog.messages if "again" in message]
    limits = [f"(memory_limit = '{limit_mb * 2**n}MB')" for n in range(tries)]
    assert again == [f"reconciling again: DuckDB needs more memory {limit}" for limit in limits]
    assert tables_of(made) == expected


def tables_of(made: Bridge) -> dict[str, list[Any]]:
    """The rows of the reconciled tables."""
    names = made.rows("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'reconciled'")
    return {name: made.rows(f"FROM reconciled.{name} ORDER BY ALL") for (name,) in names if name != "as_of"}


def test_without_a_warehouse_it_says_what_to_do(tmp_path: Path) -> None:
    with bridge(tmp_path), pytest.raises(UsageError, match="there is no warehouse"):
        reconcile()


def test_another_run_keeps_it_out(made: Bridge) -> None:
    with run_lock(made.folder / ".warehouse.duckdb.lock", "pull", ""), pytest.raises(LockedError):
        reconcile()


def test_a_run_publishes_raw_and_reconciled_at_once(tmp_path: Path) -> None:
    with bridge(tmp_path) as made:
        reconciling = Reconciling()
        done = pull(PullOptions(command="run"), step=reconciling)
        assert done.exit_code == 0
        assert made.rows("SELECT DISTINCT _run_id FROM reconciled.customers") == [(done.run_id,)]
        assert made.rows("SELECT command FROM ops.runs") == [("run",)]
        assert reconciling.result is not None
        assert reconciling.result.rows["customers"] == 40


def test_a_run_whose_reconciling_fails_publishes_neither(made: Bridge) -> None:
    before = made.path.read_bytes()
    made.platform.state.add("customers", {"firstName": "Nueva"})
    os.environ["RECONCILE__ORDER_TOTAL"] = "no_such"
    with pytest.raises(UsageError):
        pull(PullOptions(command="run"), step=Reconciling())
    assert made.path.read_bytes() == before


def test_killed_at_any_moment_the_file_is_one_version_or_the_other(made: Bridge) -> None:
    env = made.environment()
    began = time.monotonic()
    assert command("reconcile", env=env, cwd=made.folder).code == 0
    whole_s = time.monotonic() - began
    for part in (0.6, 0.9):
        with start("reconcile", env=env, cwd=made.folder) as process:
            time.sleep(whole_s * part)
            process.send_signal(signal.SIGKILL)
        assert made.one("SELECT count(*) FROM reconciled.customers") == made.one("SELECT count(*) FROM raw.customers")
        assert made.one("SELECT count(*) FROM reconciled.orders") == made.one("SELECT count(*) FROM raw.orders")
    assert command("reconcile", env=env, cwd=made.folder).code == 0
    assert made.left() == ["warehouse.duckdb"]


def test_the_command_prints_what_an_analyst_asks_first(made: Bridge) -> None:
    done = command("reconcile", env=made.environment(), cwd=made.folder)
    assert done.code == 0
    assert "reconciled: 40 customers, 9 promotions, 6 price lists, 30 orders" in done.out
    assert " findings" in done.out
    assert "exceptions" not in done.out
    reported = json.loads(command("reconcile", "--log", "json", env=made.environment(), cwd=made.folder).out)
    assert reported["rows"]["customers"] == 40
    assert {finding["severity"] for finding in reported["findings"]} <= {"error", "warning", "info"}


def test_every_list_of_the_contract_has_a_reconciled_table() -> None:
    assert STEPS.keys() >= LISTS.keys()


def test_lists_that_were_never_pulled_are_empty_tables(tmp_path: Path) -> None:
    with bridge(tmp_path) as made:
        made.pull("customers")
        reported = reconcile()
        assert {table: reported.rows[table] for table in LISTS} == {
            "customers": 40, "promotions": 0, "price_lists": 0, "orders": 0
        }  # fmt: skip
        assert reported.order_fields == dict.fromkeys(
            ("customer_id", "ordered_at", "total", "order_status", "currency")
        )
        assert made.rows("SELECT DISTINCT order_count FROM reconciled.customer_orders") == [(None,)]
    with bridge(tmp_path / "other") as made:
        made.pull("price_lists")
        reconcile()
        assert made.rows("SELECT DISTINCT customer_count FROM reconciled.price_lists") == [(None,)]


@pytest.mark.parametrize("shape", ["nested", "flat", "wide"])
def test_orders_of_every_shape_are_reconciled(tmp_path: Path, shape: str) -> None:
    with bridge(tmp_path, readings={"order_shape": shape}) as made:
        made.pull("customers", "orders")
        assert reconcile().rows["orders"] == 30


@pytest.mark.parametrize(("reported", "form"), [("day_first", "day_first"), ("month_first", "ambiguous")])
def test_the_order_of_dates_that_is_reported_is_held_against_the_columns(
    tmp_path: Path, reported: str, form: str
) -> None:
    with bridge(tmp_path, readings={"date_format": "day_first"}) as made:
        made.pull("customers")
        os.environ["RECONCILE__DATE_ORDER"] = reported
        reconcile()
        seen = {value for (value,) in made.rows("SELECT value FROM ops.observations WHERE what = 'date_format'")}
        assert f"customers: {form}" in seen


def test_what_went_missing_stays_and_says_so(made: Bridge) -> None:
    gone = made.platform.state.ids("customers")[0]
    made.platform.state.remove("customers", gone)
    made.pull("customers")
    reconcile()
    assert made.rows("SELECT customer_id FROM reconciled.customers WHERE is_missing") == [(gone,)]


@pytest.mark.parametrize("resource", ["customers", "orders", "price_lists"])
def test_two_records_with_one_id_are_a_finding(tmp_path: Path, resource: str) -> None:
    """Of either family, whether paged by number, by a cursor, or not at all."""
    with bridge(tmp_path) as made:
        state = made.platform.state
        key = state.ids(resource)[3]
        record = state.records(resource)[3]
        state.remove(resource, key)
        state.add(resource, record, 3)
        state.add(resource, {**record, "name": "a second record", "firstName": "a second record"})
        assert made.code(resource) == 5
        reconcile()
        (coverage,) = made.dicts(f"""
            SELECT verdict, sweeps, rows, "distinct", duplicates, quarantined FROM ops.coverage
            WHERE resource = '{resource}'""")
        count = len(state.ids(resource))
        assert coverage == {
            "verdict": "complete", "sweeps": 2, "rows": count, "distinct": count - 1, "duplicates": 0, "quarantined": 1,
        }  # fmt: skip
        assert made.rows("SELECT resource, duplicate_id FROM ops.quarantine") == [(resource, key)]
        assert made.one(f"SELECT count(*) FROM reconciled.{resource}") == count - 1
        (finding,) = made.dicts("FROM reconciled.exceptions WHERE rule = 'id_duplicate'")
        assert (finding["entity"], finding["entity_id"], finding["severity"]) == (resource, key, "error")
        assert "position" in finding["detail"]
        assert made.one("SELECT count(*) FROM reconciled.exceptions WHERE rule = 'unproven'") == 0
        state.remove(resource, key)  # one of the two
        assert made.code(resource) == 0
        reconcile()
        assert made.one("SELECT count(*) FROM reconciled.exceptions WHERE rule = 'id_duplicate'") == 0
