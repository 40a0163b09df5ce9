"""What the raw tables must hold, from the platform's own records: written apart from the code that is tested.

In: records as JSON gives them. Out: rows by table, by the letter of docs/orders.md; and the same from a warehouse.
"""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from orderbridge.sandbox.state import State
from orderbridge.sources.contract import RECORDS, Field
from orderbridge.sources.decode.table_schema import parent_key
from tests.pipelines.bridge import Bridge, reading

Row = dict[str, Any]
BOOKKEEPING = ("_run_id", "_first_seen_at", "_last_seen_at", "_missing_since")
COLUMNS = {
    "customers": "id firstName lastName phone email loginCode createdAt priceListId erpCode birthdate",
    "customers__documents": "number fiscalName fiscalAddress email isDefault forTaxes",
    "promotions": "id name useCount usageLimit isActive startDate expirationDate",
    "price_lists": "id name sourcePriceListId adjustmentType adjustmentValue",
}
RESOURCES = tuple(RECORDS)
MARKED = {
    "customers": "lastName",
    "promotions": "name",
    "price_lists": "name",
    "orders": "currency",
}
"""A field of each list that the second version of the platform's records changes."""


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _value(name: str, value: Any, kind: str = "") -> Any:
    """`kind` is the contract's type of a field that is not in `COLUMNS`."""
    if value is None:
        return None
    if name in ("id", "priceListId", "sourcePriceListId") or kind == "identifier":
        return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)
    if name == "birthdate" or kind == "date":
        return date.fromisoformat(value)
    return Decimal(value) if name == "adjustmentValue" or kind == "decimal_text" else value


def _row(table: str, record: Row, fields: tuple[Field, ...]) -> Row:
    opened = {field.name for field in fields if field.type == "array" and field.fields}
    kinds: dict[str, str] = {field.name: field.type for field in fields if field.name not in opened}
    if table in COLUMNS:
        kinds = dict.fromkeys(COLUMNS[table].split(), "")
    extra = {name: value for name, value in record.items() if name not in kinds.keys() | opened}
    row = {snake(name): _value(name, record.get(name), kind) for name, kind in kinds.items()}
    return {**row, "_extra": extra or None}


def expected(state: State, resource: str, only: set[str] | None = None) -> dict[str, list[Row]]:
    """The rows of a list's tables as they must be; `only` these ids."""
    records = [r for r in state.records(resource) if only is None or str(r["id"]) in only]
    if not RECORDS[resource].fields:
        opened: dict[str, list[Row]] = {}
        opened["orders"] = [
            _opened(opened, "orders", record, {}, str(record["id"]), []) for record in records
        ]
        return opened
    fields = RECORDS[resource].fields
    tables: dict[str, list[Row]] = {resource: [_row(resource, r, fields) for r in records]}
    for array in (field for field in fields if field.type == "array" and field.fields):
        table = f"{resource}__{snake(array.name)}"
        tables[table] = [
            {
                parent_key(RECORDS[resource]): _value("id", r["id"]),
                "position": n,
                **_row(table, inner, array.fields),
            }
            for r in records
            for n, inner in enumerate(r.get(array.name) or [], 1)
        ]
    return tables


def _opened(
    tables: dict[str, list[Row]],
    table: str,
    item: Row,
    places: Row,
    order: str,
    above: list[tuple[str, int]],
) -> Row:
    """An object's row: objects in it flattened, arrays of objects in child tables, other arrays as JSON text."""
    row: Row = {**places, "_extra": None}

    def open_(prefix: str, member: Row) -> None:
        for name, value in member.items():
            column = f"{prefix}{snake(name)}"
            if isinstance(value, dict) and value:
                open_(f"{column}__", value)
            elif isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
                child = f"{table}__{column}"
                tables.setdefault(child, [])
                for n, inner in enumerate(value, 1):
                    here = {
                        "order_id": order,
                        **{f"{at}_position": k for at, k in above},
                        "position": n,
                    }
                    tables[child].append(
                        _opened(tables, child, inner, here, order, [*above, (column, n)])
                    )
            elif column == "position" and "position" in places:
                row["position_2"] = value
            elif column == "id" and table == "orders" and not prefix:
                row["id"] = str(value)
            else:
                row[column] = value

    open_("", item)
    return row


def found(path: Path, resource: str) -> dict[str, list[Row]]:
    """The rows of a list's tables as they are, without bookkeeping and those that are missing."""
    with reading(path) as connection:
        sql = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'raw'"
        names = [
            name
            for (name,) in connection.execute(sql).fetchall()
            if name.split("__")[0] == resource
        ]
        tables = {}
        for name in names:
            columns = f"* EXCLUDE ({', '.join(BOOKKEEPING)})"
            rows = connection.sql(
                f'SELECT {columns} FROM raw."{name}" WHERE _missing_since IS NULL'
            )
            tables[name] = [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]
    return tables


def _plain(value: Any) -> Any:
    """A value to compare by: JSON text and what it says are one, 3 and 3.0 too."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        return json.dumps(json.loads(value), sort_keys=True)
    if isinstance(value, (list, dict)):
        return json.dumps(value, sort_keys=True)
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return Decimal(repr(value) if isinstance(value, float) else value).normalize() + 0
    return value


def comparable(tables: dict[str, list[Row]]) -> dict[str, list[list[tuple[str, str]]]]:
    """Tables to compare: nulls are as good as absent, the order of rows is nobody's promise, empty tables are none."""
    return {
        name: sorted(
            sorted((k, repr(_plain(v))) for k, v in row.items() if v is not None) for row in rows
        )
        for name, rows in tables.items()
        if rows
    }


def same(path: Path, state: State, resource: str) -> bool:
    """Whether the published tables hold what the platform holds."""
    return comparable(found(path, resource)) == comparable(expected(state, resource))


def ids(path: Path, resource: str) -> set[str]:
    return {row["id"] for row in found(path, resource)[resource]}


def version_sql(made: Bridge) -> str:
    """One row that reports which version the file holds, with a share of every table in it."""
    parts = []
    for name, field in MARKED.items():
        first = made.platform.state.ids(name)[0]
        parts.append(f"(SELECT count(*) FROM raw.{name})")
        parts.append(f"(SELECT {snake(field)}::VARCHAR FROM raw.{name} WHERE id = '{first}')")
        parts.append(f"(SELECT count(*) FROM raw.{name} WHERE _missing_since IS NOT NULL)")
    parts += [
        f"(SELECT count(*) FROM {table})"
        for table in ("raw.customers__documents", "raw.orders__lines")
    ]
    parts += [
        f"(SELECT count(DISTINCT run_id) FROM ops.{table})"
        for table in ("runs", "coverage", "control_totals")
    ]
    return f"SELECT {', '.join(parts)}"


def change_all(made: Bridge) -> None:
    """The records of the second version."""
    state = made.platform.state
    for name, field in MARKED.items():
        marker, *_, gone = state.ids(name)
        state.change(name, marker, {field: "Segunda"})
        state.remove(name, gone)
    state.add("customers", {"firstName": "Zoë", "documents": [{"number": "1"}, {"number": "2"}]})
