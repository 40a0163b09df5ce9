"""Reconciling: tables that mean what they say, published with the raw ones they come from or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.reconcile import entities
from orderbridge.pipelines.reconcile import reconcile as reconciling
from orderbridge.pipelines.reconcile.entities import STEPS
from orderbridge.pipelines.reconcile.odd_values import odd_values
from orderbridge.pipelines.reconcile.reconcile import ReconcileResult, Reconciling, reconcile
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers.accepted import (
    Acceptance,
    Accepted,
    accepted_file,
    read_acceptances,
    write_acceptances,
)
from orderbridge.pipelines.warehouse.answers.questions import LINES
from orderbridge.pipelines.warehouse.lock import run_lock
from orderbridge.pipelines.warehouse.raw.field_kinds import declared_file
from orderbridge.pipelines.warehouse.raw.recent_rows import RecentRows
from orderbridge.sources.contract import LISTS
from orderbridge.sources.decode.schema_inference import NodeBudget
from orderbridge.sources.errors import BridgeError, LockedError, UsageError
from orderbridge.transforms.orders.amount_unit import UNIT
from orderbridge.transforms.orders.customer_evidence import NOTATION
from orderbridge.transforms.orders.fields import FIELD_QUESTIONS
from orderbridge.transforms.orders.line_fields import LINE_QUESTIONS
from orderbridge.transforms.orders.statuses import STATUSES
from orderbridge.transforms.promotions import promotions
from orderbridge.transforms.value_questions import LOGIN_MODE, TIMEZONE
from tests.pipelines.bridge import Bridge, bridge, pulled
from tests.transforms.rows import values


@pytest.fixture(autouse=True)
def own_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test accepts is its own."""
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Bridge]:
    with pulled(tmp_path) as copied:
        yield copied


def update(made: Bridge, *sql: str) -> None:
    """Changes the published warehouse, as a pull might."""
    with duckdb.connect(made.path) as warehouse:
        for one in sql:
            warehouse.execute(one)


ERROR = "severity = 'error' AND NOT is_accepted"


def details(made: Bridge, where: str = "severity = 'error'") -> list[str]:
    return [
        detail
        for (detail,) in made.rows(
            f"SELECT detail FROM reconciled.exceptions WHERE {where} ORDER BY ALL"
        )
    ]


def accept(rule: str, subject: str = "") -> None:
    """As `orderbridge accept` does it."""
    path = accepted_file()
    entry = Acceptance(rule, "ana", datetime.now(UTC), "as agreed", subject)
    write_acceptances(path, [*read_acceptances(path), entry])


def test_the_tables_have_every_row_and_mean_what_the_platform_says(reconciled: Bridge) -> None:
    reported: ReconcileResult = reconciled.result
    for table in LISTS.keys() & reported.rows.keys():
        rows = reconciled.one(f"SELECT count(*) FROM raw.{table}")
        assert (
            rows
            == reported.rows[table]
            == reconciled.one(f"SELECT count(*) FROM reconciled.{table}")
        )
    lines = reconciled.one("SELECT count(*) FROM raw.orders__lines")
    assert (
        lines
        == reported.rows["order_lines"]
        == reconciled.one("SELECT count(*) FROM reconciled.order_lines")
        > 0
    )
    assert reported.rows["customer_orders"] == 40
    counted = "SELECT sum(order_count + cancelled_count) FROM reconciled.customer_orders"
    pending = "SELECT count(*) FROM reconciled.orders WHERE status_class = 'open'"
    assert reconciled.one(counted) == 30 - reconciled.one(pending)
    totals = {entity for (entity,) in reconciled.rows("SELECT entity FROM ops.control_totals")}
    assert totals >= {f"reconciled.{table}" for table in (*STEPS, "promotion_history")}
    runs = reconciled.rows("SELECT command, exit_code FROM ops.runs ORDER BY started_at")
    assert runs == [("pull", 0), ("reconcile", 0)]
    assert reconciled.left() == ["warehouse.duckdb"]
    seen = set(reconciled.rows("SELECT what, value FROM ops.observations"))
    assert seen >= {
        ("date_format", "customers: iso_offset"),
        ("order_fields", "customer_id: customer__id"),
    }
    assert "30 of 30" in reported.proposed["customer_id"]
    orders = {str(row["id"]): row for row in reconciled.platform.state.records("orders")}
    for key, customer, total in reconciled.rows(
        "SELECT order_id, customer_id, total FROM reconciled.orders"
    ):
        assert customer == str(orders[key]["customer"]["id"])
        assert float(total) == pytest.approx(float(orders[key]["total"]))


def test_exceptions_hold_no_personal_data_and_two_records_with_one_id_are_one(made: Bridge) -> None:
    state = made.platform.state
    first, second, gone, *_ = state.ids("customers")
    for key in (first, second):
        state.change(
            "customers", key, {"email": "una.persona@example.com", "lastName": "Secreto-Núñez"}
        )
    state.remove("customers", gone)
    record = state.records("orders")[3]
    state.add("orders", {**record, "name": "a second record"})
    pulled = made.pull("customers", "orders")
    assert (pulled.exit_code, [walked.verdict for walked in pulled.lists]) == (5, ["complete"] * 2)
    reconcile()
    assert made.one("SELECT count(*) FROM reconciled.exceptions WHERE rule LIKE '%email%'") > 0
    reported = json.dumps(made.rows("FROM reconciled.exceptions"), ensure_ascii=False, default=str)
    assert not [text for text in ("persona", "Núñez") if text in reported]
    assert made.rows("SELECT customer_id FROM reconciled.customers WHERE is_missing") == [(gone,)]
    assert made.rows("SELECT resource, duplicate_id FROM ops.quarantine") == [
        ("orders", str(record["id"]))
    ]
    assert made.one("SELECT count(*) FROM reconciled.orders") == 30
    found = made.rows(
        "SELECT entity, entity_id, severity FROM reconciled.exceptions WHERE rule = 'id_duplicate'"
    )
    assert found == [("orders", str(record["id"]), "error")]


ASSUMPTIONS = "SELECT question, assumption FROM ops.questions WHERE assumption IS NOT NULL"


def assumed(question: str, value: str) -> str:
    """Makes a value the assumption of earlier runs."""
    return f"UPDATE ops.questions SET assumption = '{value}' WHERE question = '{question}'"


def test_a_new_column_does_not_change_customers_overnight(reconciled: Bridge) -> None:
    first: ReconcileResult = reconciled.result
    used = {field: column for field, column in first.order_fields.items() if column}
    columns = {
        **{FIELD_QUESTIONS[field]: column for field, column in used.items()},
        LINES: "orders__lines",
    }
    columns |= {NOTATION: "ids", UNIT: "units", TIMEZONE: "UTC"}
    of_lines = {"product": "sku", "product_name": "name", "quantity": "quantity"}
    of_lines["unit_price"] = "unit_price"
    columns |= {LINE_QUESTIONS[field]: column for field, column in of_lines.items()}
    assumptions = dict(reconciled.rows(ASSUMPTIONS))
    assert "DELIVERED=sale" in assumptions.pop(STATUSES)
    assert assumptions == columns
    asked = "SELECT question, state FROM reconciled.meanings WHERE state <> 'proven' ORDER BY 1"
    assert reconciled.rows(asked) == [
        (STATUSES, "assumed"),
        (TIMEZONE, "assumed"),
        (LOGIN_MODE, "open"),
    ]
    update(
        reconciled,
        "ALTER TABLE raw.orders ADD COLUMN client_id BIGINT",
        "UPDATE raw.orders SET client_id = (SELECT min(id::BIGINT) FROM raw.customers)",
    )
    again = reconcile()
    statuses = "SELECT DISTINCT customer_status FROM reconciled.orders"
    assert again.order_fields == first.order_fields
    assert reconciled.rows(statuses) == [("matched",)]
    update(reconciled, assumed(NOTATION, "codes"))
    reconcile()
    (kept,) = details(reconciled, "rule = 'field_changed' AND detail LIKE '%read as%'")
    assert kept.startswith(
        "customer_id: customer__id is read as codes, but 30 of 30 are ids of customers, 0 are"
    )
    assert reconciled.rows(statuses) == [(None,)]


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
def test_what_an_empty_column_held_is_null_with_the_reason_beside_it(
    reconciled: Bridge, lost: str
) -> None:
    reason, figures = LOST[lost]
    update(reconciled, f'UPDATE raw.orders SET "{lost}" = NULL')
    assert reconcile().exit_code == 9
    (values,) = reconciled.rows(figures)
    assert set(values) == {None}
    for table in ("orders", "customers WHERE coalesce(order_count, 1) > 0"):
        assert reconciled.rows(f"SELECT DISTINCT unknown_because FROM bi.{table}") == [(reason,)]


def test_what_another_field_or_table_is_read_for_is_an_error_until_it_is_accepted(
    reconciled: Bridge,
) -> None:
    lines = reconciled.result.rows["order_lines"]
    items = (
        "CREATE TABLE raw.orders__items AS SELECT * REPLACE (0 AS position) FROM raw.orders__lines"
    )
    customer = FIELD_QUESTIONS["customer_id"]
    update(
        reconciled,
        f"{items} QUALIFY row_number() OVER (PARTITION BY order_id) = 1",
        assumed(customer, "gone"),
    )
    for _ in range(2):  # an alarm does not fall silent by itself
        result = reconcile()
        assert (result.exit_code, result.order_fields["customer_id"]) == (9, "customer__id")
        assert result.rows["order_lines"] == lines
        of_customer, of_lines = details(reconciled)
        assert of_customer.startswith("customer_id: gone is gone, customer__id is used;")
        assert (
            of_lines == "lines: orders__lines is used; orders__items has 30 rows; "
            "to answer: orderbridge questions reconcile.order_lines"
        )
    update(reconciled, assumed(LINES, "orders__items"))
    accept("orders.field_changed", "customer_id")
    assert reconcile().rows["order_lines"] == 30
    assert [detail.partition(":")[0] for detail in details(reconciled, ERROR)] == ["lines"]
    accept("orders.field_changed", "lines")
    assert reconcile().rows["order_lines"] == lines
    kept = dict(reconciled.rows(ASSUMPTIONS))
    assert (kept[customer], kept[LINES]) == ("customer__id", "orders__lines")


def test_a_share_that_fell_is_compared_with_the_last_accepted_one(reconciled: Bridge) -> None:
    def night(guests: int) -> int:
        guest = "UPDATE raw.orders SET customer__id = 999999, customer__erp_code = NULL"
        update(reconciled, f"{guest} WHERE rowid < {guests}")
        return reconcile().exit_code

    assert [night(12), night(12)] == [9, 9]
    accept("orders.matched_share_fell")
    assert [night(12), night(25)] == [0, 9]


def test_accepted_findings_are_counted_and_not_listed(reconciled: Bridge) -> None:
    first, second = (
        key for (key,) in reconciled.rows("SELECT id FROM raw.customers ORDER BY id LIMIT 2")
    )
    update(
        reconciled, f"UPDATE raw.customers SET erp_code = 'A-1' WHERE id IN ('{first}', '{second}')"
    )
    accept("customers.erp_code_duplicate", first)
    result = reconcile()
    assert (result.exit_code, result.accepted) == (9, 1), "the other one is not accepted"
    errors = [finding for finding in result.findings if finding[2] == "error"]
    assert replace(result, fail_on="warning", findings=errors).exit_code == 9
    assert replace(result, fail_on="never").exit_code == 0
    accept("customers.erp_code_duplicate", second)
    result = reconcile()
    assert (result.exit_code, result.accepted, replace(result, fail_on="warning").exit_code) == (
        0,
        2,
        9,
    )
    assert "erp_code_duplicate" not in {rule for _, rule, *_ in result.findings}
    assert reconciled.one("SELECT accepted FROM bi.findings WHERE rule = 'erp_code_duplicate'") == 2


def test_lines_that_the_platform_renames_are_still_the_lines(reconciled: Bridge) -> None:
    state = reconciled.platform.state
    gone, *others = state.records("orders")
    state.remove("orders", gone["id"])
    for order in others:
        state.remove("orders", order["id"])
        state.add("orders", {"details": order.pop("lines"), **order})
    reconciled.pull("orders")
    assert (
        reconcile().rows["order_lines"]
        == sum(len(order["details"]) for order in state.records("orders"))
        > 0
    )
    assert reconciled.one("SELECT count(*) FROM raw.orders__lines") == len(gone["lines"])


def test_settings_name_fields_and_a_wrong_one_leaves_the_file(
    made: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = made.path.read_bytes()
    for name, value, match in (
        ("ORDER_TOTAL", "no_such", "no_such"), ("ORDER_LINES", "no_such", "not a child table of raw.orders"),
        ("ORDER_TOTALS", "total", "ORDER_TOTAL"), ("DATE_ORDER", "dmy", "day_first, month_first"),
        ("COUNTRY", "UK", "United Kingdom is GB"),
    ):  # fmt: skip
        with monkeypatch.context() as patched:
            patched.setenv(f"RECONCILE__{name}", value)
            with pytest.raises(UsageError, match=match):
                reconcile()
        assert made.path.read_bytes() == before
        assert made.left() == ["warehouse.duckdb", "warehouse.duckdb.failed.json"]
    update(made, "UPDATE raw.customers SET created_at = '03/04/2026'")
    wanted = {
        "ORDER_CUSTOMER_ID": "customer__erp_code",
        "ORDER_CUSTOMER_NOTATION": "ids",
        "ORDER_TOTAL": "number",
    }
    for name, value in (wanted | {"DATE_ORDER": "month_first"}).items():
        monkeypatch.setenv(f"RECONCILE__{name}", value)
    reported = reconcile()
    assert reported.order_fields["customer_id"] == "customer__erp_code"
    assert "customer_id" not in reported.proposed
    answered = "SELECT DISTINCT value FROM reconciled.meanings WHERE state = 'answered' ORDER BY 1"
    values = ["customer__erp_code", "ids", "month_first", "number"]
    assert made.rows(answered) == [(value,) for value in values]
    assert made.one("SELECT bool_and(number = total) FROM reconciled.orders")
    assert made.rows("SELECT DISTINCT created_at::DATE::VARCHAR FROM reconciled.customers") == [
        ("2026-03-04",)
    ]


@pytest.mark.parametrize("total", ["sum_of_lines", "sum_of_payments"])
def test_a_total_that_is_a_sum_of_nothing_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: str
) -> None:
    monkeypatch.setenv("RECONCILE__ORDER_TOTAL", total)
    with bridge(tmp_path, orders=1) as platform:
        platform.platform.state.add("orders", {"id": "o1", "createdAt": "2026-01-01T10:00:00Z"})
        for identifier in platform.platform.state.ids("orders"):
            if identifier != "o1":
                platform.platform.state.remove("orders", identifier)
        platform.pull()
        reconcile()
        assert platform.rows("SELECT order_id, total FROM reconciled.orders") == [("o1", None)]


def test_lost_rows_and_shared_ids_fail_and_blank_ids_are_found(
    made: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = made.path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(entities, "promotions", lambda raw, *rest: promotions(raw.iloc[1:], *rest))
        with pytest.raises(BridgeError, match="promotions: 9 raw rows, 8 reconciled"):
            reconcile()
    assert made.path.read_bytes() == before
    update(made, "INSERT INTO raw.promotions FROM raw.promotions LIMIT 1")
    with duckdb.connect(str(made.path)) as build:
        for name in LISTS:
            for blank in (None, "", "\u00a0 "):
                build.execute(
                    f"INSERT INTO raw.{name} SELECT * REPLACE ($1 AS id) FROM raw.{name} LIMIT 1",
                    [blank],
                )
    before = made.path.read_bytes()
    with pytest.raises(BridgeError, match="promotions: 1 ids are of several rows") as raised:
        reconcile()
    assert made.path.read_bytes() == before
    update(made, raised.value.hint.partition(": ")[2])
    reconcile()
    sql = "SELECT entity, count(*), count(entity_id) FROM reconciled.exceptions WHERE rule = 'id_missing' GROUP BY 1"
    assert sorted(made.rows(sql)) == [(name, 3, 0) for name in sorted(LISTS)], (
        "the hint removes no row without an id"
    )
    for name, key in (
        ("customers", "customer_id"),
        ("promotions", "promotion_id"),
        ("price_lists", "price_list_id"),
    ):
        assert (
            made.one(f"SELECT count(*) FROM reconciled.{name} WHERE trim({key}, ' \u00a0') = ''")
            == 0
        )
    assert made.one("SELECT count(*) FROM reconciled.promotions") == 9


def test_where_memory_ends_the_tables_are_made_with_more(
    reconciled: Bridge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = tables_of(reconciled)
    monkeypatch.setattr(reconciling, "MEMORY_MB", 4)
    monkeypatch.setattr(reconciling, "_DOUBLINGS", 1)
    caplog.set_level("INFO", "orderbridge.steps")
    reconcile()
    limits = [
        message.partition("memory_limit = ")[2] for message in caplog.messages if "again" in message
    ]
    assert limits == ["'4MB')", "'8MB')"]
    assert tables_of(reconciled) == expected


def tables_of(made: Bridge) -> dict[str, list[Any]]:
    """The rows of the reconciled tables."""
    names = made.rows("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'reconciled'")
    return {
        name: made.rows(f"FROM reconciled.{name} ORDER BY ALL")
        for (name,) in names
        if name != "as_of"
    }


def test_it_needs_a_warehouse_and_the_lock_and_unpulled_lists_are_unknown(
    fresh: Bridge,
) -> None:
    with pytest.raises(UsageError, match="there is no warehouse"):
        reconcile()
    fresh.pull("price_lists")
    with run_lock(fresh.folder / ".warehouse.duckdb.lock", "pull", ""), pytest.raises(LockedError):
        reconcile()
    reported = reconcile()
    assert {table: reported.rows[table] for table in LISTS} == dict.fromkeys(LISTS, 0) | {
        "price_lists": 6
    }
    fields = ("customer_id", "ordered_at", "total", "order_status", "currency")
    assert reported.order_fields == dict.fromkeys(fields)
    assert fresh.rows("SELECT DISTINCT customer_count FROM reconciled.price_lists") == [(None,)]
    fresh.pull("customers")
    reconcile()
    assert fresh.rows("SELECT DISTINCT order_count FROM reconciled.customer_orders") == [(None,)]


def test_a_run_publishes_raw_and_reconciled_at_once_or_neither(
    fresh: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconciling = Reconciling()
    done = pull(PullOptions(command="run"), step=reconciling)
    assert (done.exit_code, reconciling.result and reconciling.result.rows["customers"]) == (0, 40)
    assert fresh.rows("SELECT DISTINCT _run_id FROM reconciled.customers") == [(done.run_id,)]
    assert fresh.rows("SELECT command FROM ops.runs") == [("run",)]
    before = fresh.path.read_bytes()
    monkeypatch.setenv("RECONCILE__ORDER_TOTAL", "no_such")
    with pytest.raises(UsageError):
        pull(PullOptions(command="run"), step=Reconciling())
    assert fresh.path.read_bytes() == before


def test_five_odd_values_in_a_twentieth_of_rows_are_a_change_without_personal_keys() -> None:
    cases = [
        (4, 40, "total", "odd_value", "total"), (5, 40, "total", "form_changed", "total"),
        (5, 101, "taxes[3].tax rate", "odd_value", "taxes[].tax rate"),
        (1, 1, "ana@x.example", "odd_value", "(not shown)"), (1, 1, "51 999", "odd_value", "(not shown)"),
    ]  # fmt: skip
    with duckdb.connect() as build:
        ops.create_missing(build)
        build.execute(
            "CREATE SCHEMA raw; CREATE TABLE raw.orders (id VARCHAR, _extra VARCHAR, _missing_since TIMESTAMPTZ)"
        )
        at = datetime(2026, 5, 1, tzinfo=UTC)
        rows = RecentRows(build, "orders", "run", at)
        for odd, listed, field, rule, shown in cases:
            extras = [[json.dumps({field: "x"})]] * odd + [["{}"]] * (listed - odd)
            build.execute("DELETE FROM raw.orders")
            build.executemany("INSERT INTO raw.orders (_extra) VALUES ($1)", extras)
            found = values(pd.concat(odd_values(rows, Accepted([], at))), "rule", "detail")
            assert found == [(rule, f"orders: {shown}: {odd} values in {listed} rows")]


def test_amounts_in_floating_point_are_read_to_the_last_and_are_no_finding(fresh: Bridge) -> None:
    """As JavaScript and PHP write 10 / 1.21."""
    state = fresh.platform.state
    for n, order in enumerate(state.ids("orders"), 1):
        line = {"quantity": n, "unitPrice": 10 / 1.21}
        state.change("orders", order, {"total": n * 10 / 1.21, "lines": [line]})
    assert fresh.code() == 0
    assert reconcile().exit_code == 0
    orders = len(state.ids("orders"))
    assert fresh.one("SELECT count(total) FROM reconciled.orders") == orders
    revenue = fresh.one("SELECT sum(total)::DOUBLE FROM reconciled.orders")
    assert revenue == pytest.approx(10 / 1.21 * orders * (orders + 1) / 2)
    assert fresh.one("SELECT count(unit_price) FROM reconciled.order_lines") == orders
    assert fresh.one("SELECT count(revenue) FROM bi.orders WHERE NOT is_cancelled") > 0
    rules = "rule IN ('odd_value', 'form_changed', 'total_unreadable', 'amounts_unreadable')"
    assert details(fresh, rules) == []
    update(fresh, """UPDATE raw.orders SET total = NULL WHERE _extra LIKE '%"total"%'""")
    assert reconcile().exit_code == 9, "a value that is in no column is odd"


def test_more_fields_than_columns_are_in_extra_and_one_finding(
    fresh: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NodeBudget.__init__, "__defaults__", (100,))
    state = fresh.platform.state
    orders = len(state.ids("orders"))
    for order in state.ids("orders"):
        state.change("orders", order, {f"field{n}": n for n in range(150)})
    rules = "rule IN ('odd_value', 'form_changed', 'fields_beyond')"
    for _ in range(2):
        assert fresh.code() == 0
        assert reconcile().exit_code == 0
        assert fresh.rows("SELECT DISTINCT _extra->>'field149' FROM raw.orders") == [("149",)]
        beyond = fresh.one("SELECT max(len(json_keys(_extra))) FROM raw.orders")
        words = f"{beyond} more fields, in up to {orders} rows of a table"
        assert details(fresh, rules) == [words]
    places = "SELECT count(*) FROM ops.field_kinds WHERE resource = 'orders'"
    before = fresh.one(places)
    file = declared_file("orders")
    file.parent.mkdir(exist_ok=True)
    file.write_text('"field149" = "text"')
    file.chmod(0o600)
    assert fresh.code() == 0
    assert fresh.rows("SELECT DISTINCT field149 FROM raw.orders") == [("149",)]
    assert fresh.one(places) == before + 1, "and no other field became a column"


def test_amounts_of_new_orders_that_cannot_be_read_any_more_are_an_error(tmp_path: Path) -> None:
    with bridge(tmp_path, orders=200, customers=5) as shop:
        orders = shop.platform.state.ids("orders")

        def night(first: int, last: int, written: str, quantity: str = "2.5") -> int:
            """As the platform writes amounts as texts, with a point until then."""
            for n, order in enumerate(orders[first:last], first):
                total = written.format(n + 0.5)
                lines = [{"sku": "A", "quantity": quantity, "unitPrice": total}]
                shop.platform.state.change("orders", order, {"total": total, "lines": lines})
            assert shop.code("orders") == 0
            return reconcile().exit_code

        assert shop.code("customers") == 0
        assert night(0, 200, "{}") == 0
        assert night(0, 30, "{}0") == 0
        assert night(30, 60, "{} soles") == 9
        words = "0 of 30 changed rows with an amount there have one that can be read, 100% of"
        for place in ("orders: total", "orders__lines: unit_price"):
            (detail,) = details(shop, f"rule = 'amounts_lost' AND detail LIKE '{place}%'")
            assert detail.startswith(f"{place}: {words}")
        assert shop.one("SELECT count(*) FROM raw.orders WHERE total LIKE '%soles'") == 30
        assert reconcile().exit_code == 9, "until it is accepted"
        accept("orders.amounts_lost")
        assert night(60, 90, "{} soles") == 0
        assert night(90, 120, "{} soles", "2.5 kg") == 9, "a later loss is another one"
