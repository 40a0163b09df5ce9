"""Fields of the platform that are named like columns of ours: they change neither what a table means nor its copies."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from orderbridge.pipelines.warehouse.destination import changes
from orderbridge.pipelines.warehouse.destination.copy import copy_to_destination
from orderbridge.pipelines.warehouse.raw import merge
from orderbridge.pipelines.warehouse.sql import columns_of
from orderbridge.sources import resources
from orderbridge.sources.contract import ORDER, RECORDS
from orderbridge.sources.decode.inferred_tables import RESERVED
from orderbridge.sources.decode.rows import Page
from orderbridge.sources.decode.undocumented import InferredSchema
from orderbridge.transforms.customers import CUSTOMERS
from orderbridge.transforms.orders.orders import ORDERS
from orderbridge.transforms.values.keys import BOOKKEEPING
from tests.pipelines.bridge import Bridge, bridge, reading
from tests.pipelines.warehouse.destinations import Destination, contents_of

SHOWN = {field.name for record in RECORDS.values() for field in record.fields}
"""Fields of the interface: they are the platform's."""
NAMES = sorted(
    {*RESERVED, *ORDERS, *CUSTOMERS, "id", "position", "_orderbridge", "_orderbridgeRemoved"}
    - (SHOWN - {"id"})
)
IN_RAW = {"_extra", *BOOKKEEPING}
COUNTS = {"customers": 8, "orders": 9, "promotions": 3, "price_lists": 3}


@dataclass(frozen=True)
class Nights:
    """A shop with such fields, and its warehouse after a first night and after one with changes."""

    shop: Bridge
    first: bytes
    second: bytes


def planted(value: Any, *but: str) -> dict[str, Any]:
    return {name: value for name in NAMES if name not in but}


def plant(record: dict[str, Any], value: Any) -> dict[str, Any]:
    """A record with a field of each name, in its objects too; its own fields stay. In items of lists they are true."""
    fields = planted(value)
    for name, inner in record.items():
        if isinstance(inner, dict):
            inner = plant(inner, value)
        elif isinstance(inner, list):
            inner = [plant(one, True) if isinstance(one, dict) else one for one in inner]
        fields[name] = inner
    return fields


def test_the_names_of_columns_that_copies_add_are_reserved() -> None:
    statements = (
        changes._NOTE,
        changes._CHANGED,
        changes._ROWS,
    )
    added = set(re.findall(r"AS (_\w+)", " ".join(statements)))
    assert {*added, changes.REMOVED, resources.REMOVED, *IN_RAW} <= RESERVED


def test_a_field_of_an_order_with_a_name_of_ours_has_a_column_of_its_own() -> None:
    order = {"id": "o1", **planted(7, "id"), "lines": [planted(8)] * 2}
    schema = InferredSchema(ORDER)
    decoded = schema.decode([Page(1, json.dumps([order] * 25).encode())])
    for name, table in decoded.tables.items():
        places = ("order_id", "position") if "__" in name else ("id",)
        number = 8 if "__" in name else 7
        columns = {column: set(table[column].to_pylist()) for column in table.column_names}
        assert RESERVED & columns.keys() == {"_extra", "_page", "_position"}
        assert not [column for column in places if number in columns[column]]
        fields = {column for column, values in columns.items() if values == {number}}
        assert len(fields) == len(planted(0, "id") if number == 7 else planted(0))


def test_a_reserved_column_of_an_earlier_version_is_renamed_with_its_history() -> None:
    with duckdb.connect() as build:
        merge.create_missing(build)
        build.execute(
            """CREATE SCHEMA ops; CREATE TABLE ops.column_values (table_name VARCHAR, column_name VARCHAR);
            INSERT INTO ops.column_values VALUES ('orders', '_hash'), ('other', '_hash');
            ALTER TABLE raw.orders ADD COLUMN _hash BIGINT; ALTER TABLE raw.orders ADD COLUMN _hash_2 BIGINT"""
        )
        merge.rename_reserved(build)
        columns = columns_of(build, "raw.orders")
        assert ("_hash" in columns, "_hash_2" in columns, "_hash_3" in columns) == (
            False,
            True,
            True,
        )
        history = build.execute("SELECT column_name FROM ops.column_values ORDER BY 1").fetchall()
        assert history == [("_hash",), ("_hash_3",)]


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nights]:
    before = dict(os.environ)
    with bridge(tmp_path_factory.mktemp("shop"), **COUNTS) as made:
        state = made.platform.state
        for resource in COUNTS:
            for record in state.records(resource):
                state.change(resource, record["id"], plant(record, "planted"))
        made.pull()
        first = made.path.read_bytes()
        state.remove("orders", state.ids("orders")[-1])
        state.change("orders", state.ids("orders")[0], {"total": 4711})
        done = made.command("run")
        assert done.code in (0, 9), made.dicts("FROM ops.quarantine")
        yield Nights(made, first, made.path.read_bytes())
    os.environ.clear()
    os.environ.update(before)


def test_fields_named_like_ours_change_no_table(nights: Nights) -> None:
    made = nights.shop
    runs = {run for (run,) in made.rows("SELECT run_id FROM ops.runs")}
    for resource, count in COUNTS.items():
        rows = made.dicts(f"FROM raw.{resource}")
        assert len(rows) == made.one(f"SELECT count(*) FROM reconciled.{resource}") == count
        assert {row["_run_id"] for row in rows} <= runs
        missing = sum(row["_missing_since"] is not None for row in rows)
        assert missing == (1 if resource == "orders" else 0)
    extra = json.loads(made.one("SELECT any_value(_extra) FROM raw.customers"))
    assert {name: extra[name] for name in RESERVED} == dict.fromkeys(RESERVED, "planted")


@pytest.mark.parametrize("destination", ["duckdb", "postgres"], indirect=True)
def test_fields_named_like_ours_change_no_copy(
    tmp_path: Path, destination: Destination, nights: Nights
) -> None:
    warehouse = tmp_path / "warehouse.duckdb"
    for night in (nights.first, nights.second):
        warehouse.write_bytes(night)
        copy_to_destination(warehouse, destination.settings)
    with reading(warehouse) as published:
        rows = contents_of(lambda sql: published.execute(sql).fetchall(), "")
    assert destination.contents() == rows
