"""Pulls of a sandbox: what is published, what is kept, what is marked, and when nothing is."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.pull import walking
from pipelines.pull.model import PullOptions
from pipelines.pull.pull import pull
from pipelines.reconcile.reconcile import reconcile
from pipelines.warehouse import merge
from pipelines.warehouse.load import load
from sandbox import SandboxConfigError
from sources.contract import LISTS
from sources.errors import AccessError, BridgeError, CoverageError, Unreachable, UsageError
from sources.extract.result import ListResult
from sources.extract.walk import walk
from sources.http.client import Client
from tests.pipelines.bridge import Bridge, bridge
from tests.pipelines.pull.truth import BOOKKEEPING, RESOURCES, comparable, expected, found, ids, same

CUSTOMER = [
    "id", "first_name", "last_name", "phone", "email", "login_code", "created_at", "price_list_id", "erp_code",
    "birthdate",
]  # fmt: skip
DOCUMENT = ["customer_id", "position", "number", "fiscal_name", "fiscal_address", "email", "is_default", "for_taxes"]
PROMOTION = ["id", "name", "use_count", "usage_limit", "is_active", "start_date", "expiration_date"]
PRICE_LIST = ["id", "name", "source_price_list_id", "adjustment_type", "adjustment_value"]
COVERAGE = [
    "resource", "verdict", "sweeps", "pages", "rows", "distinct", "duplicates", "quarantined", "total_reported",
    "ended_by", "evidence",
]  # fmt: skip


@pytest.fixture(scope="module")
def pulled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    """A sandbox pulled once, for the tests that only look."""
    before = dict(os.environ)
    with bridge(tmp_path_factory.mktemp("pulled"), readings={"adjustment_types": "mixed"}) as made:
        assert made.code() == 0
        yield made
    os.environ.clear()
    os.environ.update(before)


def columns(made: Bridge, table: str) -> dict[str, str]:
    return {name: kind for name, kind, *_ in made.rows(f"DESCRIBE {table}")}


# --- the tables ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ("customers", CUSTOMER),
        ("customers__documents", DOCUMENT),
        ("promotions", PROMOTION),
        ("price_lists", PRICE_LIST),
        ("orders", ["id"]),
        ("orders__lines", ["order_id", "position"]),
    ],
)
def test_the_raw_tables_have_every_column(pulled: Bridge, table: str, wanted: list[str]) -> None:
    have = columns(pulled, f'raw."{table}"')
    assert list(have)[: len(wanted)] == wanted
    assert set(have) >= {"_extra", *BOOKKEEPING}
    if not table.startswith("orders"):
        assert set(have) == {*wanted, "_extra", *BOOKKEEPING}
    assert all(have[name] == "VARCHAR" for name in wanted if name in ("id", "price_list_id", "customer_id", "erp_code"))


def test_dates_and_decimals_have_their_types(pulled: Bridge) -> None:
    assert columns(pulled, "raw.customers")["birthdate"] == "DATE"
    assert columns(pulled, "raw.price_lists")["adjustment_value"] == "DECIMAL(38,9)"
    assert columns(pulled, "raw.customers")["created_at"] == "VARCHAR"


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ("runs", ["run_id", "command", "started_at", "ended_at", "exit_code"]),
        ("coverage", COVERAGE),
        ("quarantine", ["resource", "page", "position", "reason", "row_hash"]),
        ("control_totals", ["run_id", "entity", "measure", "value"]),
        ("observations", ["what", "value", "first_run_id", "last_run_id"]),
        ("push_log", ["plan_id", "state"]),
    ],
)
def test_the_ops_tables_have_every_column(pulled: Bridge, table: str, wanted: list[str]) -> None:
    assert set(columns(pulled, f"ops.{table}")) >= set(wanted)


@pytest.mark.parametrize("resource", RESOURCES)
def test_rows_are_the_platforms_field_by_field(pulled: Bridge, resource: str) -> None:
    have, want = found(pulled.path, resource), expected(pulled.platform.state, resource)
    assert want[resource]
    for table in {**have, **want}:
        assert comparable({table: have.get(table, [])}) == comparable({table: want.get(table, [])})


def test_accents_and_canonical_ids_are_kept(pulled: Bridge) -> None:
    names = {row["last_name"] for row in found(pulled.path, "customers")["customers"]}
    assert any("ñ" in name or "é" in name for name in names)
    assert all("." not in key for key in ids(pulled.path, "customers"))
    assert {"PERCENTAGE", "markup"} <= {kind for (kind,) in pulled.rows("SELECT adjustment_type FROM raw.price_lists")}


def test_order_lines_and_their_taxes_are_child_tables(pulled: Bridge) -> None:
    lines = sum(len(order["lines"]) for order in pulled.platform.state.records("orders"))
    assert pulled.one("SELECT count(*) FROM raw.orders__lines") == lines
    assert pulled.one("SELECT count(*) FROM raw.orders__lines__taxes") == lines
    assert pulled.one("SELECT count(*) FROM raw.orders__lines l ANTI JOIN raw.orders o ON o.id = l.order_id") == 0


def test_nothing_is_left_behind_and_the_file_is_its_owners(pulled: Bridge) -> None:
    assert pulled.left() == ["warehouse.duckdb"]
    assert stat.S_IMODE(pulled.path.stat().st_mode) == 0o600


def test_every_list_is_complete_and_its_totals_balance(pulled: Bridge) -> None:
    verdicts = dict(pulled.rows("SELECT resource, verdict FROM ops.coverage"))
    assert verdicts == dict.fromkeys(RESOURCES, "complete")
    for resource in RESOURCES:
        reported = dict(pulled.rows("SELECT measure, value FROM ops.control_totals WHERE entity = $1", resource))
        assert (
            reported["read"]
            == reported["loaded"] + reported["held_back"] + reported["duplicates"] + reported["quarantined"]
        )
        assert reported["loaded"] == reported["new"] == len(pulled.platform.state.records(resource))
        assert pulled.one(f"SELECT count(*) FROM raw.{resource}") == reported["loaded"]


def test_no_key_is_in_the_file(pulled: Bridge) -> None:
    data = pulled.path.read_bytes()
    assert pulled.platform.legacy_key.encode() not in data
    assert pulled.platform.v1_key.encode() not in data


def test_fields_outside_the_contract_are_kept_as_json(tmp_path: Path) -> None:
    with bridge(tmp_path, faults={"extra_fields": 1.0}) as made:
        assert made.code() == 0
        extra = {text for (text,) in made.rows("SELECT _extra FROM raw.customers")}
        assert {json.dumps(json.loads(text), sort_keys=True) for text in extra} == {
            json.dumps({"loyaltyTier": "gold", "origin": {"channel": "web", "score": 3.5}}, sort_keys=True)
        }
        reported = dict(made.rows("SELECT what, value FROM ops.observations WHERE what LIKE 'promotions:%'"))
        assert reported
        assert set(reported.values()) <= {"loyaltyTier", "origin"}
        # An order has no contract: what comes is its own.
        assert made.one("SELECT DISTINCT origin__score FROM raw.orders") == 3.5


# --- a second pull -------------------------------------------------------------------------------------------------


def test_a_second_pull_reports_first_and_last_seen_and_what_is_missing(fresh: Bridge) -> None:
    first, state = fresh.pull("customers"), fresh.platform.state
    gone, changed, *_ = state.ids("customers")
    back = state.records("customers")[0]
    state.remove("customers", gone)
    state.change("customers", changed, {"lastName": "Ñandú", "documents": []})
    added = state.add("customers", {"firstName": "Zoë", "documents": [{"number": "007"}]})
    second = fresh.pull("customers")
    assert (second.exit_code, second.changes["customers"].new, second.changes["customers"].newly_missing) == (0, 1, 1)
    assert second.changes["customers"].changed == 1
    assert same(fresh.path, state, "customers")
    seen = {
        key: (run, was, now, missing)
        for key, run, was, now, missing in fresh.rows(
            "SELECT id, _run_id, _first_seen_at, _last_seen_at, _missing_since FROM raw.customers"
        )
    }
    run, was, now, missing = seen[gone]
    assert (run, was == now, missing is not None) == (first.run_id, True, True)
    assert missing > now
    run, was, now, missing = seen[changed]
    assert (run, was < now, missing) == (second.run_id, True, None)
    run, was, now, missing = seen[str(added["id"])]
    assert (run, was == now, missing) == (second.run_id, True, None)
    # The documents of who is missing stay, marked; those that a customer no longer has go.
    documents = "SELECT count(*) FROM raw.customers__documents WHERE customer_id = $1"
    assert fresh.one(documents, changed) == 0
    assert fresh.one(documents, gone) == len(back.get("documents") or [])

    state.add("customers", back, 0)
    fresh.pull("customers")
    assert fresh.rows("SELECT _first_seen_at, _missing_since FROM raw.customers WHERE id = $1", gone) == [
        (seen[gone][1], None)
    ]
    assert fresh.left() == ["warehouse.duckdb"]


def test_a_row_missing_once_keeps_its_date(published: Bridge) -> None:
    gone = published.platform.state.ids("orders")[0]
    published.platform.state.remove("orders", gone)
    sql = "SELECT _missing_since FROM raw.orders WHERE id = $1"
    first = published.pull("orders")
    since = published.one(sql, gone)
    assert since is not None
    second = published.pull("orders")
    assert second.changes["orders"].newly_missing == 0
    assert published.one(sql, gone) == since
    # an order is absent only if a second reading does not find it either
    assert (len(first.lists[0].sweeps), len(second.lists[0].sweeps)) == (2, 1)


def test_a_program_that_opens_the_warehouse_for_writing_during_a_pull_does_not_cost_the_orders(
    published: Bridge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program = (
        f"import duckdb, sys; connection = duckdb.connect({str(published.path)!r}); print(flush=True); sys.stdin.read()"
    )
    with ExitStack() as programs:

        def opened(*arguments: Any) -> ListResult:
            started = [sys.executable, "-c", program]
            other = programs.enter_context(subprocess.Popen(started, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            assert other.stdout is not None
            other.stdout.readline()
            return walk(*arguments)

        monkeypatch.setattr(walking, "walk", opened)
        assert published.pull("orders").exit_code == 0
    assert "open for writing in another program: what that program writes from now on is lost" in caplog.text


@pytest.mark.parametrize(("is_closed", "words"), [(True, "another program wrote to"), (False, r"\.wal exists")])
def test_what_another_program_writes_during_a_pull_is_neither_lost_nor_applied_to_the_new_file(
    published: Bridge, monkeypatch: pytest.MonkeyPatch, is_closed: bool, words: str
) -> None:
    """DuckDB numbers rows in its log: on the new file it deleted another record."""
    merge_table = merge.merge_table

    def written(*arguments: Any) -> None:
        sql = "CREATE TABLE IF NOT EXISTS notes AS SELECT 'kept' AS note"
        ends = "connection.close()" if is_closed else "os._exit(0)"
        program = (
            f"import duckdb, os; connection = duckdb.connect({str(published.path)!r}); connection.execute({sql!r})"
        )
        subprocess.run([sys.executable, "-c", f"{program}; {ends}"], check=True)
        merge_table(*arguments)

    run_id = published.one("SELECT max(run_id) FROM ops.runs")
    monkeypatch.setattr(merge, "merge_table", written)
    with pytest.raises(UsageError, match=words):
        published.pull("price_lists")
    with duckdb.connect(str(published.path)) as connection:
        assert connection.execute("SELECT note FROM notes").fetchall() == [("kept",)]
    assert published.one("SELECT max(run_id) FROM ops.runs") == run_id


def test_a_walk_that_proves_nothing_marks_nothing(published: Bridge) -> None:
    state = published.platform.state
    gone = state.ids("customers")[0]
    state.remove("customers", gone)
    added = state.add("customers", {"firstName": "Nueva"})
    second = published.pull("customers", sweeps=1)
    assert (second.exit_code, second.lists[0].verdict) == (0, "unproven")
    assert published.one("SELECT _missing_since FROM raw.customers WHERE id = $1", gone) is None
    assert ids(published.path, "customers") == {*state.ids("customers"), gone}
    assert str(added["id"]) in ids(published.path, "customers")


def test_a_total_that_counts_deleted_rows_is_known_to_the_next_pull(tmp_path: Path) -> None:
    with bridge(tmp_path, readings={"legacy_total": "with_deleted"}) as made:

        def verdict() -> str:
            (walked,) = made.pull("promotions").lists
            return walked.verdict

        state = made.platform.state
        assert [verdict(), verdict()] == ["unproven", "complete"]
        gone = state.ids("promotions")[0]
        state.remove("promotions", gone)
        assert verdict() == "complete"
        assert made.rows("SELECT id FROM raw.promotions WHERE _missing_since IS NOT NULL") == [(gone,)]
        state.removed["promotions"] += 1  # that was never listed
        assert [verdict(), verdict()] == ["unproven", "complete"]
        assert sorted(made.rows("SELECT value FROM ops.observations WHERE what = 'promotions_total_gap'")) == [
            ("3",), ("4",), ("5",)
        ]  # fmt: skip
        assert "as earlier reads confirmed" in made.one("SELECT evidence FROM ops.coverage ORDER BY rowid DESC LIMIT 1")


def test_one_sweep_is_unproven_and_cursors_are_complete(fresh: Bridge) -> None:
    verdicts = {walked.resource: walked.verdict for walked in fresh.pull(sweeps=1).lists}
    assert verdicts == {
        "customers": "unproven", "promotions": "unproven", "price_lists": "complete", "orders": "complete"
    }  # fmt: skip


def test_observations_tell_the_first_and_the_last_run(fresh: Bridge) -> None:
    first, second = (fresh.pull("customers", "promotions") for _ in range(2))
    rows = fresh.rows(
        "SELECT what, value, first_run_id, last_run_id, first_seen_at < last_seen_at FROM ops.observations"
    )
    assert {("customers_end", "empty page"), ("promotions_data", "array")} <= {row[:2] for row in rows}
    assert {row[2:] for row in rows} == {(first.run_id, second.run_id, True)}
    assert fresh.rows("SELECT run_id, exit_code FROM ops.runs ORDER BY started_at") == [
        (first.run_id, 0),
        (second.run_id, 0),
    ]


def test_order_fields_that_change_type_between_runs_lose_nothing(published: Bridge) -> None:
    state = published.platform.state
    first, second, third, *_ = state.ids("orders")
    state.change("orders", first, {"number": "A-7", "currency": 604, "brandNew": [{"x": 1}]})
    state.remove("orders", second)
    state.change("orders", third, {"total": 7})
    assert published.code("orders") == 0
    assert published.one("SELECT _extra FROM raw.orders WHERE id = $1", first) == '{"number":"A-7"}'
    assert published.one("SELECT number FROM raw.orders WHERE id = $1", third) == state.records("orders")[1]["number"]
    assert published.one("SELECT currency FROM raw.orders WHERE id = $1", first) == "604"
    assert published.one("SELECT x FROM raw.orders__brand_new WHERE order_id = $1", first) == 1


# --- guards --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("removed", "held"),
    [pytest.param(40, True, id="empty"), (21, True), (6, True), (5, False)],
)
def test_a_list_that_shrank_is_held_back(published: Bridge, removed: int, held: bool) -> None:
    state = published.platform.state
    for key in state.ids("customers")[:removed]:
        state.remove("customers", key)
    before = ids(published.path, "customers")
    second = published.pull()
    assert second.exit_code == (7 if held else 0)
    assert second.published
    if held:
        assert ids(published.path, "customers") == before
        assert published.one(
            "SELECT verdict FROM ops.coverage WHERE resource = 'customers' AND run_id = $1", second.run_id
        ) == ("unproven")
        totals = dict(
            published.rows(
                "SELECT measure, value FROM ops.control_totals WHERE run_id = $1 AND entity = 'customers'",
                second.run_id,
            )
        )
        assert (totals["loaded"], totals["held_back"]) == (0, 40 - removed)
        assert published.code("customers", accept_shrink=True) == 0
    assert same(published.path, state, "customers")


@pytest.mark.parametrize("sweeps", [1, 6], ids=["unproven", "complete"])
def test_a_list_as_long_as_before_with_other_records_is_held_back(fresh: Bridge, sweeps: int) -> None:
    state = fresh.platform.state
    for key in state.ids("price_lists")[4:]:
        state.remove("price_lists", key)
    for key in state.ids("customers")[20:]:
        state.remove("customers", key)
    fresh.pull()
    before = {name: ids(fresh.path, name) for name in ("price_lists", "customers")}
    for name, record in (("price_lists", {"name": "X", "adjustmentType": "NONE"}), ("customers", {"erpCode": "X"})):
        for key in state.ids(name)[1:]:
            state.remove(name, key)
            state.add(name, record)
    second = fresh.pull(sweeps=sweeps)
    assert second.exit_code == 7
    assert second.held_back["customers"] == "19 of 20 known records are not in the list any more (more than half)"
    assert second.held_back["price_lists"].startswith("3 of 4 known records ")
    assert {name: ids(fresh.path, name) for name in before} == before


def test_two_percent_of_a_long_list_may_go(tmp_path: Path) -> None:
    with bridge(tmp_path, customers=500, page_limit=100) as made:
        made.pull("customers")
        for key in made.platform.state.ids("customers")[:10]:
            made.platform.state.remove("customers", key)
        assert made.code("customers") == 0
        for key in made.platform.state.ids("customers")[:11]:
            made.platform.state.remove("customers", key)
        with pytest.raises(CoverageError, match="11 of 490"):
            made.pull("customers")


def test_a_lone_list_that_shrank_publishes_nothing(published: Bridge) -> None:
    before = published.path.read_bytes()
    for key in published.platform.state.ids("orders"):
        published.platform.state.remove("orders", key)
    with pytest.raises(CoverageError, match=r"^orders: the list is empty, and 30 records are known"):
        published.pull("orders")
    assert published.path.read_bytes() == before
    assert published.left() == ["warehouse.duckdb", "warehouse.duckdb.failed.json"]
    assert published.code("orders", accept_shrink=True) == 0
    assert published.left() == ["warehouse.duckdb"]


def test_a_column_keeps_its_type_and_an_odd_value_stays_in_its_row(fresh: Bridge) -> None:
    state = fresh.platform.state
    first, second = state.ids("orders")[:2]
    kind = """SELECT data_type FROM duckdb_columns()
        WHERE schema_name = 'raw' AND table_name = 'orders' AND column_name = $1"""
    assert fresh.code("orders") == 0
    assert (fresh.one(kind, "total"), fresh.one(kind, "number")) == ("DECIMAL(38,9)", "BIGINT")
    state.change("orders", first, {"total": "about 12", "number": 1.5, "lines": {}})
    lines = fresh.one("SELECT count(*) FROM raw.orders__lines WHERE order_id <> $1", first)
    assert fresh.code("orders") == 0
    assert (fresh.one(kind, "total"), fresh.one(kind, "number")) == ("DECIMAL(38,9)", "DECIMAL(38,9)")
    assert fresh.one("SELECT _extra FROM raw.orders WHERE id = $1", first) == '{"total":"about 12"}'
    assert fresh.one("SELECT count(*) FROM raw.orders__lines") == lines
    state.change("orders", first, {"number": 2})
    for order in state.ids("orders"):
        state.change("orders", order, {"lines": []})
    state.remove("orders", second)
    assert fresh.code("orders") == 0
    assert fresh.one(kind, "number") == "DECIMAL(38,9)", "a column never becomes narrow again"
    assert fresh.one("SELECT count(*) FROM raw.orders__lines WHERE _missing_since IS NULL") == 0
    assert fresh.rows("SELECT kind, previous_kind FROM ops.field_kinds WHERE path = $1", '["number"]') == [
        ("decimal", "bigint")
    ]


def test_a_refreshed_list_is_read_as_if_for_the_first_time(fresh: Bridge) -> None:
    state = fresh.platform.state
    first, gone = state.ids("orders")[:2]
    kind = "SELECT data_type FROM duckdb_columns() WHERE table_name = 'orders' AND column_name = 'number'"
    state.change("orders", first, {"number": 1.5})
    assert fresh.code() == 0
    state.change("orders", first, {"number": 2})
    state.remove("orders", gone)
    assert fresh.code() == 0
    seen = fresh.rows("SELECT id, _first_seen_at, _missing_since FROM raw.orders ORDER BY 1")
    assert fresh.one(kind) == "DECIMAL(38,9)"
    read = fresh.pull(refresh=("orders",), tail=True)
    assert [(walked.resource, walked.verdict) for walked in read.lists] == [("orders", "complete")]
    assert fresh.one(kind) == "BIGINT"
    assert fresh.one("SELECT kind FROM ops.field_kinds WHERE path = $1 AND previous_kind IS NULL", '["number"]')
    assert fresh.rows("SELECT id, _first_seen_at, _missing_since FROM raw.orders ORDER BY 1") == seen
    assert {walked.resource for walked in fresh.pull("promotions", refresh=("customers",)).lists} == {
        "promotions", "customers"
    }  # fmt: skip


def test_a_refreshed_list_takes_no_page_of_a_stopped_walk(fresh: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    read, cursors = Client.get, list[object]()

    def get(self: Client, path: str, params: Any = None, **options: Any) -> Any:
        if path == "/orders":
            cursors.append(params.get("startingAfter"))
            if len(cursors) == 2:
                raise Unreachable("the platform is down", "")
        return read(self, path, params, **options)

    monkeypatch.setattr(Client, "get", get)
    with pytest.raises(Unreachable):
        fresh.pull("orders")
    assert fresh.pull(refresh=("orders",)).published
    assert cursors.count(None) == 2


def test_odd_values_of_orders_are_findings_by_field(fresh: Bridge) -> None:
    state = fresh.platform.state
    assert fresh.code() == 0
    first, *others = state.ids("orders")
    state.change("orders", first, {"total": "about 12", "number": 1.5})
    for order in others[:9]:
        state.change("orders", order, {"currency": {"code": "PEN"}, "una persona@example.com": 1})
    assert fresh.code() == 0
    reconcile()
    rules = "('odd_value', 'form_changed', 'type_widened')"
    sql = f"SELECT rule, severity, detail FROM reconciled.exceptions WHERE rule IN {rules} ORDER BY ALL"
    assert fresh.rows(sql) == [
        ("form_changed", "error", "orders: currency: 9 values in 30 rows"),
        ("odd_value", "warning", "orders: total: 1 values in 30 rows"),
        ("type_widened", "warning", "orders: number: bigint is decimal now"),
    ]


def test_memory_is_bounded_while_rows_go_through_and_not_after(fresh: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    def limit(connection: duckdb.DuckDBPyConnection) -> object:
        return connection.execute("SELECT current_setting('memory_limit')").fetchone()

    merging, merged, after = [], [], []

    def bounded(connection: duckdb.DuckDBPyConnection, walked: ListResult, table: str, run_id: str) -> None:
        merging.append(limit(connection))
        merged.append(table)
        plain(connection, walked, table, run_id)

    plain = merge.merge_table
    monkeypatch.setattr(merge, "merge_table", bounded)
    pull(PullOptions(), step=lambda connection, run_id, at: after.append(limit(connection)) or 0)  # type: ignore[func-returns-value]
    with duckdb.connect() as another:
        assert after == [limit(another)]
    assert set(merging).isdisjoint(after)
    assert sorted(merged) == [
        name for (name,) in fresh.rows("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'raw' ORDER BY 1")
    ]


def test_lists_are_loaded_together(fresh: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[list[str]] = []

    def counted(lists: list[ListResult], folder: Path) -> None:
        loads.append([walked.resource for walked in lists])
        load(lists, folder)

    monkeypatch.setattr("pipelines.pull.publishing.load", counted)
    assert fresh.code() == 0
    assert loads == [list(LISTS)]
    assert all(same(fresh.path, fresh.platform.state, name) for name in RESOURCES)


def test_a_load_that_fails_ends_the_pull(fresh: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(lists: list[ListResult], folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pipelines.pull.publishing.load", failing)
    with pytest.raises(UsageError):
        fresh.pull()
    assert not fresh.path.exists()


def test_required_completeness_publishes_nothing_short_of_it(published: Bridge) -> None:
    before = published.path.read_bytes()
    published.platform.state.add("customers", {"firstName": "Nueva"})
    with pytest.raises(CoverageError, match="customers is unproven"):
        published.pull("customers", "orders", sweeps=1, require_complete=True)
    assert published.path.read_bytes() == before
    assert published.code("customers", require_complete=True) == 0
    assert same(published.path, published.platform.state, "customers")


def test_required_completeness_covers_what_is_held_back(published: Bridge) -> None:
    before = published.path.read_bytes()
    for key in published.platform.state.ids("customers")[:30]:
        published.platform.state.remove("customers", key)
    assert published.code(require_complete=True) == 7
    assert published.path.read_bytes() == before


@pytest.mark.parametrize("family", ["LEGACY", "PUBLIC_V1"])
def test_one_family_needs_its_own_settings_alone(fresh: Bridge, family: str) -> None:
    other = "PUBLIC_V1" if family == "LEGACY" else "LEGACY"
    for name in list(os.environ):
        if name.startswith(f"SOURCES__{other}__"):
            del os.environ[name]
    names = [name for name, op in LISTS.items() if op.family == family.lower()]
    assert fresh.code(*names) == 0
    assert all(same(fresh.path, fresh.platform.state, name) for name in names)
    with pytest.raises(UsageError, match=f"SOURCES__{other}__BASE_URL"):
        fresh.pull()


def test_a_list_pulled_alone_leaves_the_others_as_they_were(published: Bridge) -> None:
    first = published.rows("SELECT run_id FROM ops.runs")
    published.pull("promotions")
    assert published.rows("SELECT DISTINCT _run_id FROM raw.customers") == first
    assert all(same(published.path, published.platform.state, name) for name in RESOURCES)


# --- lists that fail -----------------------------------------------------------------------------------------------


def test_a_403_ends_that_list_alone(fresh: Bridge) -> None:
    os.environ["SOURCES__PUBLIC_V1__API_KEY"] = fresh.platform.v1_no_scope_key
    done = fresh.pull()
    assert (done.exit_code, done.published) == (3, True)
    verdicts = {walked.resource: walked.verdict for walked in done.lists}
    assert verdicts.pop("price_lists") == "incomplete"
    assert set(verdicts.values()) == {"complete"}
    assert all(same(fresh.path, fresh.platform.state, name) for name in verdicts)
    assert fresh.one("SELECT count(*) FROM raw.price_lists") == 0
    assert fresh.rows("SELECT value FROM ops.observations WHERE what = 'missing_scope'") == [
        ("status 403, code MISSING_SCOPE",)
    ]


def test_a_broken_contract_keeps_the_old_table_of_that_list(published: Bridge) -> None:
    state = published.platform.state
    old = ids(published.path, "orders")
    state.add("orders", {"number": 1})
    state.add("customers", {"firstName": "Nueva"})
    published.platform.set_faults({"null_cursor": 1.0})
    second = published.pull()
    assert (second.exit_code, second.published) == (4, True)
    assert ids(published.path, "orders") == old
    assert same(published.path, state, "customers")
    reported = published.rows(
        "SELECT verdict, ended_by, evidence FROM ops.coverage WHERE resource = 'orders' AND run_id = $1", second.run_id
    )
    assert reported[0][:2] == ("incomplete", "error")
    assert "`hasMore` is true without a cursor" in reported[0][2]


def test_where_every_list_fails_the_old_file_stays(published: Bridge) -> None:
    before = published.path.read_bytes()
    os.environ["SOURCES__PUBLIC_V1__API_KEY"] = "brand_test_unknown"
    os.environ["SOURCES__LEGACY__API_KEY"] = "unknown"
    with pytest.raises(AccessError):
        published.pull()
    assert published.path.read_bytes() == before
    note = published.folder / "warehouse.duckdb.failed.json"
    assert json.loads(note.read_text())["exit_code"] == 3
    assert stat.S_IMODE(note.stat().st_mode) == 0o600


def test_a_first_pull_that_fails_leaves_no_warehouse(fresh: Bridge) -> None:
    os.environ["SOURCES__LEGACY__API_KEY"] = "unknown"
    with pytest.raises(BridgeError):
        fresh.pull("customers")
    assert not fresh.path.exists()


# --- rows that are refused -----------------------------------------------------------------------------------------


def test_refused_rows_go_to_a_private_file_with_their_reasons_in_ops(fresh: Bridge) -> None:
    state = fresh.platform.state
    state.change("customers", state.ids("customers")[3], {"birthdate": 19991231, "firstName": "Sección-Privada"})
    state.change("price_lists", state.ids("price_lists")[0], {"adjustmentValue": "mucho"})
    done = fresh.pull()
    assert (done.exit_code, done.published) == (5, True)
    rows = fresh.rows("SELECT resource, page, position, reason, length(row_hash) FROM ops.quarantine ORDER BY 1")
    assert [(name, page, position, size) for name, page, position, _, size in rows] == [
        ("customers", 1, 4, 64),
        ("price_lists", 1, 1, 64),
    ]
    assert "birthdate" in rows[0][3]
    assert "adjustmentValue" in rows[1][3]
    assert "Privada" not in rows[0][3]
    assert b"Privada" not in fresh.path.read_bytes()
    kept = fresh.folder / "warehouse.duckdb.quarantine.jsonl"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in kept.read_text("utf-8").splitlines()]
    assert [json.loads(line["row"]) for line in lines] == [
        state.records("customers")[3],
        state.records("price_lists")[0],
    ]
    assert fresh.left() == ["warehouse.duckdb", kept.name]
    for resource in RESOURCES:
        reported = dict(fresh.rows("SELECT measure, value FROM ops.control_totals WHERE entity = $1", resource))
        assert reported["read"] == reported["loaded"] + reported["duplicates"] + reported["quarantined"]
    assert len(ids(fresh.path, "customers")) == 39

    state.change("price_lists", state.ids("price_lists")[0], {"adjustmentValue": "1.5"})
    assert fresh.code("price_lists") == 0, "a run that reads other lists keeps the rows of this one"
    assert [json.loads(line) for line in kept.read_text("utf-8").splitlines()] == lines[:1]
    state.change("customers", state.ids("customers")[3], {"birthdate": "1999-12-31"})
    assert fresh.code("customers") == 0
    assert fresh.left() == ["warehouse.duckdb"]
    assert same(fresh.path, state, "customers")


def test_a_refused_row_marks_nothing_missing(published: Bridge) -> None:
    state = published.platform.state
    bad = state.ids("customers")[3]
    state.change("customers", bad, {"birthdate": 7})
    assert published.code("customers") == 5
    assert published.one("SELECT _missing_since FROM raw.customers WHERE id = $1", bad) is None


# --- records of one's own ------------------------------------------------------------------------------------------


def test_records_of_ones_own_come_through_byte_for_byte(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    customers = [
        {"id": 1, "firstName": "NULL", "lastName": "Ñuñez 'quoted' \"twice\"", "erpCode": "007", "phone": "+34600"},
        {"id": 2.0, "firstName": " 1E5 ", "email": "NA", "documents": [{"number": "00", "isDefault": None}, {}]},
        {"id": 9007199254740993, "firstName": "", "lastName": "line\nbreak\ttab 🙂", "documents": None},
    ]
    (folder / "customers.json").write_text(json.dumps(customers, ensure_ascii=False), "utf-8")
    with bridge(tmp_path, records=folder) as made:
        assert made.code() == 0
        have = comparable(found(made.path, "customers"))
        assert have == comparable(expected(made.platform.state, "customers"))
        assert ids(made.path, "customers") == {"1", "2", "9007199254740993"}
        assert made.rows("SELECT first_name, erp_code FROM raw.customers WHERE id = '1'") == [("NULL", "007")]
        assert made.one("SELECT count(*) FROM raw.customers__documents WHERE customer_id = '2'") == 2


def test_empty_lists_are_tables_without_rows(tmp_path: Path) -> None:
    with bridge(tmp_path, customers=0, orders=0, promotions=0, price_lists=0) as made:
        assert made.code() == 0
        assert all(made.one(f"SELECT count(*) FROM raw.{name}") == 0 for name in RESOURCES)
        assert set(dict(made.rows("SELECT resource, verdict FROM ops.coverage")).values()) == {"complete"}


def test_a_list_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown list: coupons"):
        pull(PullOptions(("coupons",)))


def test_a_sandbox_that_cannot_be_is_no_test(tmp_path: Path) -> None:
    with pytest.raises(SandboxConfigError), bridge(tmp_path, faults={"no_such_fault": 1.0}):
        pass
