"""Fields that version 0.3.0 took for objects and that are lists: what stored orders have of them moves, all of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from orderbridge.pipelines.reconcile.odd_values import odd_values
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers.accepted import Accepted
from orderbridge.pipelines.warehouse.raw import merge, recovered_lists
from orderbridge.pipelines.warehouse.raw.column_values import gone_values, record_column_values
from orderbridge.pipelines.warehouse.raw.field_kinds import kept_kinds, record_kinds
from orderbridge.pipelines.warehouse.raw.load import CATALOG, LOADED
from orderbridge.pipelines.warehouse.raw.recent_rows import RECENT, RecentRows
from orderbridge.pipelines.warehouse.raw.recent_values import RecentPlaces
from orderbridge.pipelines.warehouse.raw.schema_changes import field_names
from orderbridge.pipelines.warehouse.sql import columns_of
from orderbridge.sources.contract import ORDER
from orderbridge.sources.decode.column_kinds import KeptKind, KeptKinds
from orderbridge.sources.decode.rows import Page
from orderbridge.sources.decode.undocumented import InferredSchema
from orderbridge.sources.extract.result import ListResult, Verdict
from orderbridge.transforms.chance import Share
from orderbridge.transforms.findings import combine_findings

BEGIN = datetime(2026, 3, 2, 4, tzinfo=UTC)
BOOKKEEPING = ("_run_id", "_first_seen_at", "_last_seen_at", "_missing_since")


class Warehouse:
    """Raw tables in memory that reads are merged into; the rows of a read are given as JSON."""

    def __init__(self) -> None:
        self.build = duckdb.connect()
        self.build.execute("SET TimeZone = 'UTC'")
        self.build.execute(f"ATTACH ':memory:' AS {CATALOG}; CREATE SCHEMA {LOADED}")
        merge.create_missing(self.build)
        ops.create_missing(self.build)
        self.reads = 0

    def read(
        self,
        rows: Sequence[str],
        verdict: Verdict = "complete",
        kinds: KeptKinds | None = None,
    ) -> None:
        """Merges a read, with the kinds that earlier reads kept, or these."""
        self.reads += 1
        kept = kept_kinds(self.build, "orders") if kinds is None else kinds
        schema = InferredSchema(ORDER, field_names(self.build, "orders"), kept)
        decoded = schema.decode([Page(1, f"[{','.join(rows)}]".encode())])
        assert not decoded.quarantined
        result = ListResult("orders", verdict, distinct=len(rows), kinds=schema.kinds())
        result.observations.update(schema.observations())
        result.ended_at = BEGIN + timedelta(days=self.reads)
        for name, table in decoded.tables.items():
            self.build.register("decoded", table.drop_columns(["_page", "_position"]))
            self.build.execute(f'CREATE OR REPLACE TABLE {LOADED}."{name}" AS FROM decoded')
            self.build.unregister("decoded")
            result.files[name] = [(Path(name), len(table))]
        result.items = Counter({name: len(table) for name, table in decoded.tables.items()})
        run_id = f"run {self.reads}"
        merge.merge_list(self.build, result, run_id)
        ops.record_observations(self.build, run_id, result.ended_at, result.observations)
        record_kinds(self.build, run_id, result.ended_at, result)
        record_column_values(self.build, run_id, result.ended_at, [result])

    def read_as_version_0_3(self, rows: Sequence[str], objects: Sequence[str]) -> None:
        """Merges a first read in which these fields, by their path, are objects; plain ones were not counted."""
        self.read(rows, kinds={path: KeptKind("object") for path in objects})
        self.build.execute("ALTER TABLE ops.field_kinds DROP COLUMN objects")
        self.build.execute("ALTER TABLE ops.field_kinds DROP COLUMN arrays")
        self.build.execute("UPDATE ops.field_kinds SET values_seen = 100")
        ops.create_missing(self.build)

    def contents(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of all tables without nulls and bookkeeping, sorted; `_extra` is parsed."""
        found = {}
        for table in self.tables():
            cursor = self.build.execute(f'SELECT * EXCLUDE {BOOKKEEPING} FROM raw."{table}"')
            names = [column[0] for column in cursor.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            found[table] = sorted((_without_nulls(row) for row in rows), key=str)
        return {table: rows for table, rows in found.items() if rows}

    def tables(self) -> list[str]:
        sql = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'raw' ORDER BY ALL"
        names = [name for (name,) in self.build.execute(sql).fetchall()]
        return [name for name in names if name.startswith("orders")]

    def findings(self) -> list[tuple[str, str]]:
        at = BEGIN + timedelta(days=self.reads)
        accepted = Accepted([], BEGIN)
        rows = RecentRows(self.build, "orders", f"run {self.reads}", at)
        found = combine_findings(odd_values(rows, accepted))
        gone = gone_values(self.build, "orders", accepted)
        return [
            *zip(found["rule"], found["detail"], strict=True),
            *(("values_gone", f"{place}: {words}") for place, words in gone),
        ]


def _without_nulls(row: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: value for name, value in row.items() if value is not None}
    if "_extra" in values:
        values["_extra"] = json.loads(values["_extra"], parse_float=str)
    return dict(sorted(values.items()))


@pytest.fixture
def warehouse() -> Iterator[Warehouse]:
    made = Warehouse()
    yield made
    made.build.close()


def orders(field: str, values: Sequence[str], first: int = 0) -> list[str]:
    return [f'{{"id":{first + n},"n":{n},{field % value}}}' for n, value in enumerate(values)]


ITEM = '{"sku":"A","price":1.25,"gift":true,"count":3,"note":"007"}'
EXACT = '{"sku":"B","price":0.1000000000000000055}'
ODD = '{"sku":"C","price":"many","count":{"of":2},"tags":["x","y"],"meta":{"a":[1,{"b":1.50}]}}'
TAXED = '{"sku":"D","taxes":[{"rate":7},{"rate":21.5}],"parts":[{"w":1}]}'
LIST = f"[{ITEM},{TAXED}]"
ALL = [*[f"[{ITEM}]"] * 30, LIST, f"[{EXACT}]", f"[{ODD}]", f"[{TAXED}]", "[]", "{}", "null", '"x"']
NEW = ['[{"sku":"N","parts":[{"w":4}]}]'] * 24
CASES: dict[str, tuple[str, list[str], list[str]]] = {
    "of orders": ('"items":%s', ['["items"]'], ALL),
    "in an object": ('"cart":{"items":%s,"weight":5}', ['["cart","items"]'], ALL),
    "in the lines": (
        '"lines":[{"sku":"L"},{"sku":"M","items":%s},null,{"items":[{"sku":"Z"}]}]',
        ['["lines","items"]'],
        ALL,
    ),
    "with an object in it that is a list as well": (
        '"items":%s',
        ['["items"]', '["items","parts"]'],
        [*ALL, '[{"sku":"E","parts":[{"w":2},{"w":3}]}]'],
    ),
}


@pytest.mark.parametrize("verdict", ["complete", "tail"])
@pytest.mark.parametrize("case", CASES)
def test_stored_orders_have_their_lists_as_if_they_were_read_again(
    warehouse: Warehouse, case: str, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovered_lists, "ROWS_PER_BATCH", 7)
    field, objects, values = CASES[case]
    stored, new = orders(field, values), orders(field, NEW, first=1000)
    warehouse.read_as_version_0_3(stored, objects)
    before = set(warehouse.tables())
    warehouse.read(new, verdict)
    at_once = Warehouse()
    tables = {path: KeptKind("table") for path in objects}
    at_once.read([*stored, *new], kinds=tables)
    assert warehouse.contents() == at_once.contents()
    assert before < set(warehouse.tables())
    at_once.build.close()


def test_columns_of_what_was_held_as_an_object_stay_and_it_is_no_alarm(
    warehouse: Warehouse,
) -> None:
    rows = orders('"items":%s', [*[f"[{ITEM}]"] * 96, *[LIST] * 4])
    warehouse.read_as_version_0_3(rows, ['["items"]'])
    columns = columns_of(warehouse.build, "raw.orders")
    warehouse.read(rows[10:])
    assert set(columns_of(warehouse.build, "raw.orders")) == set(columns)
    sql = "SELECT count(items__sku), count(_extra), count(*) FROM raw.orders"
    assert warehouse.build.execute(sql).fetchall() == [(0, 0, 100)]
    assert len(warehouse.contents()["orders__items"]) == 104
    found = [("list_recovered", "orders: items: object is table now")]
    assert warehouse.findings() == found
    warehouse.read(rows[10:])
    assert warehouse.findings() == found, "until a person accepts it"
    assert len(warehouse.contents()["orders__items"]) == 104


def test_columns_of_what_was_held_as_an_object_are_not_judged_in_new_orders(
    warehouse: Warehouse,
) -> None:
    warehouse.read_as_version_0_3(orders('"items":%s', ALL), ['["items"]'])
    warehouse.read([*orders('"items":%s', NEW), '{"id":"new"}'])
    warehouse.build.execute(
        f"CREATE TEMP TABLE {RECENT} AS SELECT 1 AS batch, 'new' AS id, '' AS lost"
    )
    counts = {
        count.place: count.share for count in RecentPlaces(warehouse.build, "orders").filled("new")
    }
    del counts["orders: n"]
    lists = ("orders: items", "orders__items: parts", "orders__items: taxes")
    assert counts == dict.fromkeys(lists, Share(0, 1)), "no column of an item"


def test_rows_of_recovered_lists_have_the_times_of_their_orders(warehouse: Warehouse) -> None:
    warehouse.read_as_version_0_3(orders('"items":%s', ALL), ['["items"]'])
    warehouse.read(orders('"items":%s', NEW, first=20))
    sql = """
        SELECT count(*), count(o._missing_since) FROM raw.orders__items i JOIN raw.orders o ON o.id = i.order_id
        WHERE (i._run_id, i._first_seen_at, i._last_seen_at) = (o._run_id, o._first_seen_at, o._last_seen_at)
            AND i._missing_since IS NOT DISTINCT FROM o._missing_since"""
    assert warehouse.build.execute(sql).fetchall() == [(44, 20)]


def test_a_field_that_is_an_object_in_some_orders_and_an_array_in_others_is_named(
    warehouse: Warehouse,
) -> None:
    warehouse.read(orders('"pay":%s', [*['[{"by":1}]'] * 12, *['{"by":2}'] * 9]))
    assert warehouse.findings() == [
        ("form_mixed", "orders: pay: 57.1% arrays, 42.9% objects; held as a child table")
    ]
