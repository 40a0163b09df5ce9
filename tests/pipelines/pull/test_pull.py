"""Pulls of a sandbox: what is published, what is kept, what is marked, and when nothing is."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from contextlib import AbstractContextManager
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest

from orderbridge.pipelines.cli.pull import ending, print_pull
from orderbridge.pipelines.pull import publishing, walking
from orderbridge.pipelines.pull.check import check
from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.warehouse.raw import merge
from orderbridge.sources.contract import records_of
from orderbridge.sources.errors import AccessError, ContractBroken, CoverageError, UsageError
from orderbridge.sources.extract.result import ListResult
from orderbridge.sources.extract.walk import walk
from tests.pipelines.bridge import SMALL, Bridge, bridge
from tests.pipelines.pull.truth import RESOURCES, comparable, expected, found, ids, same
from tests.sources.rawserver import without_backoff

KIND = "SELECT data_type FROM duckdb_columns() WHERE schema_name = 'raw' AND table_name = 'orders' AND column_name = $1"
MISSING = "SELECT _missing_since FROM raw.{} WHERE id = $1"


def totals(made: Bridge, run_id: str, entity: str) -> dict[str, int]:
    sql = "SELECT measure, value FROM ops.control_totals WHERE run_id = $1 AND entity = $2"
    return dict(made.rows(sql, run_id, entity))


def remove(made: Bridge, name: str, count: int) -> None:
    for key in made.platform.state.ids(name)[:count]:
        made.platform.state.remove(name, key)


@pytest.mark.parametrize(
    "config", [{"readings": {"adjustment_types": "mixed"}}, dict.fromkeys(SMALL, 0)]
)
def test_a_first_pull_publishes_what_the_platform_holds(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    with bridge(tmp_path, **config) as made:
        result = made.pull()
        assert (result.exit_code, made.left()) == (0, ["warehouse.duckdb"])
        assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
        content = made.path.read_bytes()
        assert not [
            key
            for key in (made.platform.legacy_key, made.platform.v1_key)
            if key.encode() in content
        ]
        assert dict(made.rows("SELECT resource, verdict FROM ops.coverage")) == dict.fromkeys(
            RESOURCES, "complete"
        )
        for name in RESOURCES:
            have, want = found(made.path, name), expected(made.platform.state, name)
            assert comparable(have) == comparable(want), name
            counts, number = (
                totals(made, result.run_id, name),
                len(made.platform.state.records(name)),
            )
            assert (counts["read"], counts["loaded"], counts["new"]) == (number,) * 3
            assert counts["held_back"] == counts["duplicates"] == counts["quarantined"] == 0


def test_a_second_pull_reports_first_and_last_seen_and_what_is_missing(fresh: Bridge) -> None:
    first, state = fresh.pull("customers"), fresh.platform.state
    gone, changed, *_ = state.ids("customers")
    back = state.records("customers")[0]
    state.remove("customers", gone)
    state.change("customers", changed, {"lastName": "Ñandú", "documents": []})
    added = str(
        state.add("customers", {"firstName": "Zoë", "documents": [{"number": "007"}]})["id"]
    )
    before = fresh.path.read_bytes()
    with fresh.path.open("rb") as reader:
        second = fresh.pull("customers")
        assert reader.read() == before, "what is open is replaced, and never written to"
    counts = second.changes["customers"]
    assert (second.exit_code, counts.new, counts.changed, counts.newly_missing) == (0, 1, 1, 1)
    assert same(fresh.path, state, "customers")
    sql = """SELECT _run_id, _first_seen_at < _last_seen_at, _missing_since > _last_seen_at FROM raw.customers
        WHERE id = $1"""
    runs = (first.run_id, second.run_id, second.run_id)
    assert [fresh.rows(sql, key)[0] for key in (gone, changed, added)] == [
        (runs[0], False, True), (runs[1], True, None), (runs[2], False, None),
    ]  # fmt: skip
    # The documents of who is missing stay, marked; those that a customer no longer has go.
    documents = "SELECT count(*) FROM raw.customers__documents WHERE customer_id = $1"
    assert (fresh.one(documents, changed), fresh.one(documents, gone)) == (
        0,
        len(back.get("documents") or []),
    )
    first_seen = "SELECT _first_seen_at, _missing_since IS NULL FROM raw.customers WHERE id = $1"
    ((at, _),) = fresh.rows(first_seen, gone)
    state.add("customers", back, 0)
    fresh.pull("customers")
    assert (fresh.rows(first_seen, gone), fresh.left()) == ([(at, True)], ["warehouse.duckdb"])


@pytest.mark.parametrize(
    "end", ["pass", "connection.execute('CREATE TABLE notes (note TEXT)'); os._exit(0)"]
)
def test_a_reader_during_a_pull_costs_it_nothing_unless_it_writes(
    published: Bridge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, end: str
) -> None:
    """DuckDB numbers rows in its log: on the new file it deleted another record."""
    code = f"import duckdb, os, sys; connection = duckdb.connect({str(published.path)!r}); print(flush=True)\n"
    programs, merge_table = list[subprocess.Popen[bytes]](), merge.merge_table
    run_id = published.one("SELECT arg_max(run_id, rowid) FROM ops.runs")

    def opened(*arguments: Any) -> ListResult:
        started = [sys.executable, "-c", f"{code}sys.stdin.read(); {end}"]
        programs.append(subprocess.Popen(started, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert programs[0].stdout is not None
        programs[0].stdout.readline()
        return walk(*arguments)

    def merged(*arguments: Any) -> None:
        if end != "pass":
            programs[0].communicate()
        merge_table(*arguments)

    monkeypatch.setattr(walking, "walk", opened)
    monkeypatch.setattr(merge, "merge_table", merged)
    if end == "pass":
        assert published.code("orders") == 0
        programs[0].communicate()
        assert (
            "open for writing in another program: what that program writes from now on is lost"
            in caplog.text
        )
        return
    with pytest.raises(UsageError, match=r"\.wal exists"):
        published.pull("orders")
    with duckdb.connect(str(published.path)) as connection:
        assert connection.execute("FROM notes").fetchall() == []
    assert published.one("SELECT arg_max(run_id, rowid) FROM ops.runs") == run_id


def test_a_total_that_counts_deleted_rows_is_known_to_the_next_pull(tmp_path: Path) -> None:
    with bridge(tmp_path, readings={"legacy_total": "with_deleted"}) as made:
        state, verdicts = made.platform.state, list[str]()
        gone = state.ids("promotions")[0]
        for _ in range(4):
            verdicts.append(made.pull("promotions").lists[0].verdict)
            if len(verdicts) == 2:
                state.remove("promotions", gone)
            if len(verdicts) == 3:
                state.removed["promotions"] += 1  # that was never listed
        assert verdicts == ["unproven", "complete", "complete", "unproven"]
        assert made.rows("SELECT id FROM raw.promotions WHERE _missing_since IS NOT NULL") == [
            (gone,)
        ]
        seen = made.rows("SELECT value FROM ops.observations WHERE what = 'promotions_total_gap'")
        assert sorted(seen) == [("3",), ("4",), ("5",)]
        evidence = [
            text for (text,) in made.rows("SELECT evidence FROM ops.coverage ORDER BY rowid")
        ]
        assert ["as earlier reads confirmed" in text for text in evidence] == [
            False,
            True,
            True,
            False,
        ]


def test_a_list_that_shrank_is_held_back_and_alone_or_if_required_ends_the_run(
    published: Bridge,
) -> None:
    before, state, listed = (
        published.path.read_bytes(),
        published.platform.state,
        ids(published.path, "customers"),
    )
    remove(published, "orders", 30)
    remove(published, "customers", 21)
    for key in state.ids("promotions"):
        state.change("promotions", key, {"isActive": "quizás"})
    for lists, asked, words in (
        (["orders"], {}, "^orders: the list is empty, and 30 records are known"),
        (["promotions"], {}, "all 9 rows were quarantined, and 9 records are known"),
        (
            ["customers", "price_lists"],
            {"sweeps": 1, "require_complete": True},
            "customers is unproven",
        ),
        (["price_lists", "orders"], {"require_complete": True}, "held back: orders"),
    ):
        with pytest.raises(CoverageError, match=words):
            published.pull(*lists, **asked)
        assert published.path.read_bytes() == before
        assert published.left() == ["warehouse.duckdb", "warehouse.duckdb.failed.json"]
    second = published.pull()
    assert (second.exit_code, second.published, ids(published.path, "customers")) == (
        7,
        True,
        listed,
    )
    verdict = "SELECT verdict FROM ops.coverage WHERE resource = 'customers' AND run_id = $1"
    assert published.one(verdict, second.run_id) == "unproven"
    counts = totals(published, second.run_id, "customers")
    assert (counts["loaded"], counts["held_back"]) == (0, 19)
    assert published.code("promotions", "orders", "customers", accept_shrink=True) == 5
    assert published.one("SELECT count(*) FROM raw.promotions WHERE _missing_since IS NULL") == 9
    assert same(published.path, state, "customers")
    assert "warehouse.duckdb.failed.json" not in published.left()


def test_a_column_keeps_its_type_and_an_odd_value_stays_in_its_row(fresh: Bridge) -> None:
    state = fresh.platform.state
    first, second = state.ids("orders")[:2]
    state.change("orders", first, {"later": None})
    assert fresh.code("orders") == 0
    assert (fresh.one(KIND, "total"), fresh.one(KIND, "number")) == ("DECIMAL(38,9)", "BIGINT")
    changed = {
        "total": "about 12",
        "number": 1.5,
        "lines": {},
        "currency": 604,
        "brandNew": [{"x": 1}],
        "later": "x",
    }
    state.change("orders", first, changed)
    lines = fresh.one("SELECT count(*) FROM raw.orders__lines WHERE order_id <> $1", first)
    assert fresh.code("orders") == 0
    assert (fresh.one(KIND, "total"), fresh.one(KIND, "number")) == (
        "DECIMAL(38,9)",
        "DECIMAL(38,9)",
    )
    odd = fresh.rows("SELECT _extra, currency FROM raw.orders WHERE id = $1", first)
    assert odd == [('{"total":"about 12"}', "604")]
    assert fresh.one("SELECT x FROM raw.orders__brand_new WHERE order_id = $1", first) == 1
    assert fresh.one("SELECT count(*) FROM raw.orders__lines") == lines
    state.change("orders", first, {"number": 2})
    for order in state.ids("orders"):
        state.change("orders", order, {"lines": []})
    state.remove("orders", second)
    assert fresh.code("orders") == 0
    assert fresh.one(KIND, "number") == "DECIMAL(38,9)", "a column never becomes narrow again"
    assert fresh.one("SELECT count(*) FROM raw.orders__lines WHERE _missing_since IS NULL") == 0
    kinds = "SELECT kind, previous_kind FROM ops.field_kinds WHERE path = $1"
    assert fresh.rows(kinds, '["number"]') == [("decimal", "bigint")]
    assert fresh.rows(kinds, '["later"]') == [("text", None)], "its first values are no other kind"
    seen = fresh.rows("SELECT id, _first_seen_at, _missing_since FROM raw.orders ORDER BY 1")
    fresh.pull("orders", refresh=("promotions",))
    assert fresh.rows(kinds, '["number"]') == [("decimal", "bigint")], "another list is refreshed"
    read = fresh.pull(refresh=("orders",), tail=True)
    assert [(walked.resource, walked.verdict) for walked in read.lists] == [("orders", "complete")]
    assert fresh.one(KIND, "number") == "BIGINT", (
        "a refreshed list is read as if for the first time"
    )
    assert fresh.rows(kinds, '["number"]') == [("bigint", None)]
    assert (
        fresh.rows("SELECT id, _first_seen_at, _missing_since FROM raw.orders ORDER BY 1") == seen
    )


AS_VERSION_0_3_LEFT_IT = """
    ALTER TABLE raw.orders ALTER total TYPE VARCHAR
        USING rtrim(rtrim(coalesce(_extra->>'total', total::VARCHAR), '0'), '.');
    ALTER TABLE raw.orders__lines ALTER price TYPE VARCHAR
        USING rtrim(rtrim(coalesce(_extra->>'price', price::VARCHAR), '0'), '.');
    UPDATE raw.orders SET _extra = NULL;
    UPDATE raw.orders__lines SET _extra = NULL;
    UPDATE ops.field_kinds SET kind = 'text' WHERE path IN ('["total"]', '["lines","price"]');
    ALTER TABLE ops.field_kinds DROP objects;
    ALTER TABLE ops.field_kinds DROP arrays"""


def test_numbers_that_version_0_3_made_text_become_decimals_without_losing_a_digit(
    fresh: Bridge,
) -> None:
    state = fresh.platform.state
    orders = state.ids("orders")
    for n, order in enumerate(orders, 1):
        amount = {"total": n / 1.21, "written": f"{n / 1.21}"}
        state.change("orders", order, {**amount, "lines": [{"price": n / 7, "n": n}]})
    assert fresh.code("orders") == 0
    assert fresh.one(KIND, "total") == "DECIMAL(38,9)", "a JSON number stays a number"
    with duckdb.connect(str(fresh.path)) as old:
        old.execute(AS_VERSION_0_3_LEFT_IT)
    state.change("orders", orders[0], {"total": None})
    state.remove("orders", orders[-1])
    for _ in range(2):  # nothing is left to do for the second run
        assert fresh.code("orders") == 0
        totals = fresh.rows("SELECT written, total, _extra->>'total' FROM raw.orders")
        assert len(totals) == len(orders)
        for written, total, exact in totals:
            if written != f"{1 / 1.21}":
                assert total == Decimal(written).quantize(Decimal("1e-9"))
                assert (exact or f"{total.normalize():f}") == written
        prices = fresh.rows("SELECT n / 7, price, _extra->>'price' FROM raw.orders__lines")
        assert len(prices) == len(orders)
        for written, price, exact in prices:
            assert (exact or f"{price.normalize():f}") == repr(written).removesuffix(".0")
        assert fresh.one(KIND, "written") == "VARCHAR", "a JSON text stays a text"
        assert fresh.rows("FROM ops.field_kinds WHERE objects IS NULL OR previous_kind <> ''") == []


def test_memory_is_bounded_while_rows_go_through_and_not_after(
    fresh: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What DuckDB reports is no proof: 1.5 reports the default after RESET, and enforces the limit that was set."""
    fits, merge_list = [], merge.merge_list
    monkeypatch.setitem(publishing.MERGE_SETTINGS, "memory_limit", "40MB")

    def note(connection: duckdb.DuckDBPyConnection, *_: object) -> int:
        with connection.cursor() as cursor:
            try:
                cursor.execute("SELECT len(list(n)) FROM range(8_000_000) AS numbers (n)")
            except duckdb.OutOfMemoryException:
                fits.append(False)
            else:
                fits.append(True)
        return 0

    monkeypatch.setattr(merge, "merge_list", lambda *given: (note(*given), merge_list(*given)))
    pull(PullOptions(("price_lists",)), step=note)
    assert fits == [False, True]


def test_one_family_needs_its_own_settings_alone(fresh: Bridge) -> None:
    """A family without any setting is left out, but not one that the warehouse has data of: its settings are lost."""

    def without(*families: str) -> AbstractContextManager[object]:
        hidden = tuple(f"SOURCES__{family}" for family in families)
        rest = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        return mock.patch.dict(os.environ, rest, clear=True)

    with without("PUBLIC_V1"):
        first = fresh.pull()
        checked = {result.what: result for result in check(threading.Event())}
        assert fresh.code(require_complete=True) == 7
    left = tuple(record.name for record in records_of("public_v1"))
    assert (first.exit_code, first.left_out, len(first.lists)) == (
        0,
        left,
        len(RESOURCES) - len(left),
    )
    assert ending(first)[0] == f"not read, as their API has no settings: {', '.join(left)}"
    assert checked["settings of the v1 API"].message == f"not set: {', '.join(left)} are not read"
    assert {result.exit_code for result in checked.values()} == {0}
    with without("LEGACY"):
        assert fresh.code(*left) == 0
    for lost in (["LEGACY"], ["PUBLIC_V1"], ["LEGACY", "PUBLIC_V1"]):
        with without(*lost), pytest.raises(UsageError, match=f"SOURCES__{lost[0]}__BASE_URL"):
            fresh.pull()
    fresh.path.unlink()
    for lost, name in (
        (["PUBLIC_V1__API_KEY"], "PUBLIC_V1__API_KEY"),
        (["LEGACY", "PUBLIC_V1"], "LEGACY__BASE_URL"),
    ):
        with without(*lost), pytest.raises(UsageError, match=f"SOURCES__{name}"):
            fresh.pull()


def test_lists_that_fail_keep_old_tables_and_where_all_do_nothing_is_published(
    published: Bridge,
) -> None:
    state, before = published.platform.state, published.path.read_bytes()
    legacy, note = (
        os.environ["SOURCES__LEGACY__API_KEY"],
        published.folder / "warehouse.duckdb.failed.json",
    )
    for family, key in (("LEGACY", "unknown"), ("PUBLIC_V1", "brand_test_unknown")):
        os.environ[f"SOURCES__{family}__API_KEY"] = key
    with pytest.raises(AccessError):
        published.pull()
    assert published.path.read_bytes() == before
    assert (json.loads(note.read_text())["exit_code"], stat.S_IMODE(note.stat().st_mode)) == (
        3,
        0o600,
    )
    old = {name: found(published.path, name) for name in ("orders", "price_lists")}
    for name in ("orders", "customers"):
        state.add(name, {"firstName": "Nueva", "number": 1})
    os.environ["SOURCES__LEGACY__API_KEY"] = legacy
    os.environ["SOURCES__PUBLIC_V1__API_KEY"] = published.platform.v1_no_scope_key
    published.platform.set_faults({"null_cursor": 1.0})
    done = published.pull()
    assert (done.exit_code, done.published) == (3, True)
    assert {name: found(published.path, name) for name in old} == old
    assert all(same(published.path, state, name) for name in ("customers", "promotions"))
    sql = "SELECT resource, (verdict, ended_by), evidence FROM ops.coverage WHERE run_id = $1"
    lists = {name: rest for name, *rest in published.rows(sql, done.run_id)}
    assert [lists[name][0] for name in old] == [("incomplete", "error")] * 2
    assert "`hasMore` is true without a cursor" in lists["orders"][1]
    assert {lists[record.name][0][0] for record in records_of("legacy")} == {"complete"}
    scope = published.rows("SELECT value FROM ops.observations WHERE what = 'missing_scope'")
    assert scope == [("status 403, code MISSING_SCOPE",)]


def test_refused_rows_go_to_a_private_file_with_their_reasons_in_ops(fresh: Bridge) -> None:
    state = fresh.platform.state
    customer, price_list = state.ids("customers")[3], state.ids("price_lists")[0]
    state.change("customers", customer, {"birthdate": 19991231, "firstName": "Sección-Privada"})
    state.change("price_lists", price_list, {"adjustmentValue": "mucho"})
    done = fresh.pull()
    assert (done.exit_code, done.published) == (5, True)
    rows = fresh.rows(
        "SELECT resource, page, position, length(row_hash), reason FROM ops.quarantine ORDER BY 1"
    )
    assert [row[:4] for row in rows] == [("customers", 1, 4, 64), ("price_lists", 1, 1, 64)]
    assert ["birthdate" in rows[0][4], "adjustmentValue" in rows[1][4]] == [True, True]
    assert b"Privada" not in fresh.path.read_bytes()
    kept = fresh.folder / "warehouse.duckdb.quarantine.jsonl"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in kept.read_text("utf-8").splitlines()]
    refused = [state.records("customers")[3], state.records("price_lists")[0]]
    assert [json.loads(line["row"]) for line in lines] == refused
    assert fresh.left() == ["warehouse.duckdb", kept.name]
    for resource in RESOURCES:
        reported = totals(fresh, done.run_id, resource)
        assert (
            reported["read"]
            == reported["loaded"] + reported["duplicates"] + reported["quarantined"]
        )
    state.change("customers", customer, {"birthdate": "1999-12-31"})
    assert fresh.code("customers") == 0, "a run that reads other lists keeps the rows of this one"
    assert [json.loads(line) for line in kept.read_text("utf-8").splitlines()] == lines[1:]
    assert same(fresh.path, state, "customers")


def test_readings_are_observed_and_orders_are_read_once_a_setting_names_their_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readings = {
        "promotions_data": "object_by_id", "customers_end": "status_404", "legacy_first_page": "zero",
        "order_key": "uuid",
    }  # fmt: skip
    with without_backoff(), bridge(tmp_path, readings=readings) as made:
        refused = made.pull()
        assert (
            refused.exit_code,
            {walked.resource for walked in refused.lists if walked.quarantined},
        ) == (
            5,
            {"orders"},
        )
        print_pull(refused, "plain")
        assert "orderbridge questions sources.public_v1.order_key" in capsys.readouterr().out
        ended_by, evidence = made.rows(
            "SELECT ended_by, evidence FROM ops.coverage WHERE resource = 'customers'"
        )[0]
        assert "assumed" in f"{ended_by} {evidence}"
        os.environ["SOURCES__PUBLIC_V1__ORDER_KEY"] = "uuid"
        assert made.code("orders") == 0
        assert ids(made.path, "orders") == set(made.platform.state.ids("orders"))
        assert set(made.rows("SELECT what, value FROM ops.observations")) >= {
            ("promotions_data", "object_by_id"), ("customers_end", "assumed: status 404"),
            ("legacy_first_page", "customers: 0"), ("adjustment_types", "NONE"), ("order_key", "uuid"),
        }  # fmt: skip


def test_errors_of_two_apis_without_hints_leave_no_empty_lines() -> None:
    legacy = ContractBroken("broken", family="legacy", verb="GET", path="/customers")
    other = ContractBroken("odd", "Ask.", family="public_v1", verb="GET", path="/prices/lists")
    assert publishing._worst([legacy, other]).hint == "public_v1 GET /prices/lists: odd: Ask."
    silent = ContractBroken("broken", family="legacy", verb="GET", path="/customers")
    first = ContractBroken("odd", family="public_v1", verb="GET", path="/prices/lists")
    assert publishing._worst([first, silent]).hint == "legacy GET /customers: broken"
