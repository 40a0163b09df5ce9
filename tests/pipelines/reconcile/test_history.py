"""The history of customers: what the walks proved, whatever walks there were, and the same however often it is made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from orderbridge.pipelines.reconcile.history import HISTORIES, record_history
from orderbridge.pipelines.warehouse.raw import merge

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(pull: int) -> datetime:
    return START + timedelta(days=pull)


class Warehouse:
    """Raw customers as pulls leave them, and the history that reconciling makes of them."""

    def __init__(self, path: Path) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.connection = duckdb.connect(path)
        self.run = self.connection.execute
        self.digits: Callable[[str], str] = str
        self.run("SET TimeZone = 'UTC'; CREATE SCHEMA reconciled")
        merge.create_missing(self.connection)
        texts = ("customer_id", "erp_code", "login_code", "first_name", "last_name", "email", "phone", "phone_digits",
                 "created_at_text", "price_list_id", "price_list_name", "_run_id", "_extra")  # fmt: skip
        columns = ", ".join(f"{name} VARCHAR" for name in texts)
        self.run(
            f"CREATE TABLE reconciled.customers ({columns}, birthdate DATE, is_missing BOOLEAN, "
            "_first_seen_at TIMESTAMPTZ, _last_seen_at TIMESTAMPTZ, _missing_since TIMESTAMPTZ)"
        )

    def pull(self, number: int, listed: dict[str, str], proven: bool = True) -> None:
        """What `merge.merge` makes of a walk that came: seen rows are new, the others missing if it is proven."""
        for key, name in listed.items():
            self.rows[key] = {"id": key, "name": name, "seen": at(number), "missing": None}
        for row in self.rows.values():
            if proven and row["id"] not in listed and row["missing"] is None:
                row["missing"] = at(number)

    def reconcile(self) -> None:
        self.run(
            "CREATE OR REPLACE TABLE reconciled.customers AS FROM reconciled.customers LIMIT 0"
        )
        self.run("DELETE FROM raw.customers__documents")
        for row in self.rows.values():
            self.run(
                "INSERT INTO reconciled.customers (customer_id, first_name, phone_digits, _last_seen_at, "
                "_missing_since) VALUES ($id, $name, $digits, $seen, $missing)",
                {**row, "digits": self.digits(row["name"])},
            )
            sql = "INSERT INTO raw.customers__documents (customer_id, position, number) VALUES ($1, 0, $2)"
            self.run(sql, [row["id"], row["name"][-1:]])
        record_history(self.connection, HISTORIES[0])

    def versions(self) -> list[tuple[Any, ...]]:
        return self.run(
            "SELECT customer_id, version, valid_from, valid_to, is_current, ended_by, first_name, documents "
            "FROM reconciled.customer_history ORDER BY ALL"
        ).fetchall()

    def periods(self) -> list[tuple[Any, ...]]:
        """Name, from and to as numbers of pulls, and what ended it."""
        days = [[one and (one - START).days for one in row[2:4]] for row in self.versions()]
        return [
            (row[6], *of_row, row[5]) for row, of_row in zip(self.versions(), days, strict=True)
        ]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Warehouse]:
    fresh = Warehouse(tmp_path / "history.duckdb")
    yield fresh
    fresh.connection.close()


ANA, EVA = {"1": "Ana"}, {"1": "Eva"}


@pytest.mark.parametrize(
    ("nights", "expected"),
    [
        ([[(0, ANA)], [(1, {})], [(2, ANA), (3, {})]], [("Ana", 0, 1, "missing"), ("Ana", 2, 3, "missing")]),
        ([[(0, ANA)], [(1, EVA)], [(2, EVA), (3, ANA)], [(4, {}), (5, ANA)], [(6, ANA)]],
         [("Ana", 0, 1, "changed"), ("Eva", 1, 3, "changed"), ("Ana", 3, None, None)]),
        ([[(0, ANA | {"2": "Eva"})], [(1, {"2": "Eva"}, False)]], [("Ana", 0, None, None), ("Eva", 0, None, None)]),
        ([[(5, ANA)], [(3, EVA)], [(1, {})], [(4, EVA)], [(2, {})], [(6, EVA), (4, {})]],
         [("Ana", 5, 5, "changed"), *[("Eva", 5, 5, "missing")] * 2, ("Eva", 6, 6, "missing")]),
    ],
    ids=["back and missing again between two reconciles", "a gap that no reconcile saw",
         "a walk that proves nothing ends nothing", "a clock that went back: none ends before it begins"],
)  # fmt: skip
def test_versions_begin_and_end_as_walks_prove(
    made: Warehouse, nights: list[list[Any]], expected: list[Any]
) -> None:
    for night in nights:
        for pull in night:
            made.pull(*pull)
        made.reconcile()
    assert made.periods() == expected
    for _ in range(2):
        made.reconcile()
        assert made.periods() == expected, (
            "the same however often it is made, and of records without a row"
        )
        made.rows.clear()


class PlainVersions:
    """The versions of each customer as plain Python keeps them, of the rows that pulls leave."""

    def __init__(self) -> None:
        self.of: dict[str, list[dict[str, Any]]] = {}

    def reconcile(self, rows: Iterable[dict[str, Any]]) -> None:
        for row in rows:
            versions = self.of.setdefault(row["id"], [])
            last = versions[-1] if versions else None
            if last is None:
                self._begin(versions, row, row["seen"])
            elif last["to"] is None:
                self._go_on(versions, last, row)
            elif row["missing"] is None or row["seen"] > last["to"]:
                self._begin(versions, row, max(row["seen"], last["to"]))

    def _go_on(
        self, versions: list[dict[str, Any]], last: dict[str, Any], row: dict[str, Any]
    ) -> None:
        if last["name"] != row["name"]:
            last |= {"to": max(row["seen"], last["from"]), "by": "changed"}
            self._begin(versions, row, last["to"])
        elif row["missing"] is not None:
            last |= {"to": max(row["missing"], last["from"]), "by": "missing"}

    def _begin(self, versions: list[dict[str, Any]], row: dict[str, Any], begins: datetime) -> None:
        version = {"name": row["name"], "from": begins, "to": None, "by": None}
        if row["missing"] is not None:
            version |= {"to": max(row["missing"], begins), "by": "missing"}
        versions.append(version)

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(
            (key, number, one["from"], one["to"], one["to"] is None, one["by"], one["name"])
            for key, versions in self.of.items()
            for number, one in enumerate(versions, 1)
        )


@pytest.mark.parametrize("seed", range(2))
def test_versions_of_several_customers_are_as_plain_python_keeps_them(
    made: Warehouse, seed: int
) -> None:
    """Names come back, records go and return, walks prove nothing now and then, and clocks are set back."""
    draw = Random(seed)
    plain = PlainVersions()
    made.pull(0, {"6": "Ana"})
    made.pull(1, {})  # gone before it was first reconciled
    day = 1
    for _ in range(12):
        for _ in range(draw.choice((0, 1, 1, 3))):
            day += draw.choice((1, 1, 2, 5, -3))
            keys = draw.sample("12345", draw.randrange(6))
            listed = {key: draw.choice(("Ana", "Ana", "Eva", "Luz")) for key in keys}
            made.pull(day, listed, proven=draw.random() < 0.8)
        made.reconcile()
        plain.reconcile(made.rows.values())
        assert [row[:7] for row in made.versions()] == plain.rows()
    assert len(plain.rows()) > 10
    made.rows.clear()
    made.reconcile()
    assert [row[:7] for row in made.versions()] == plain.rows(), "of records without a row"


def test_a_changed_field_makes_a_version_and_a_derived_or_new_column_none(
    made: Warehouse,
) -> None:
    made.pull(0, ANA)
    made.reconcile()
    made.digits = lambda name: f"00{name}"
    made.reconcile()
    made.run("ALTER TABLE reconciled.customers ADD COLUMN segment VARCHAR DEFAULT 'x'")
    record_history(made.connection, HISTORIES[0])
    assert made.run("SELECT phone_digits, segment FROM reconciled.customer_history").fetchall() == [
        ("00Ana", "x")
    ]
    assert made.periods() == [("Ana", 0, None, None)]
    fields = ("erp_code", "login_code", "first_name", "last_name", "email", "phone", "birthdate", "created_at_text",
              "price_list_id")  # fmt: skip
    for number, field in enumerate(fields, 1):
        made.run(
            f"UPDATE reconciled.customers SET {field} = '2000-01-01', _last_seen_at = $1",
            [at(number)],
        )
        assert record_history(made.connection, HISTORIES[0]) == (number + 1, 1), field


def test_documents_make_a_version_whatever_their_order(made: Warehouse) -> None:
    def numbers() -> list[list[str]]:
        record_history(made.connection, HISTORIES[0])
        return [[one["number"] for one in json.loads(row[7])] for row in made.versions()]

    made.pull(0, ANA)
    made.reconcile()
    made.run(
        "INSERT INTO raw.customers__documents (customer_id, position, number) VALUES ('1', 1, '0')"
    )
    made.run("UPDATE reconciled.customers SET _last_seen_at = $1", [at(1)])
    assert numbers() == [["a"], ["0", "a"]]
    fields = {"number", "fiscal_name", "fiscal_address", "email", "is_default", "for_taxes"}
    assert json.loads(made.versions()[0][7])[0].keys() == fields
    made.run("""
        CREATE TEMP TABLE reversed AS SELECT * REPLACE (1 - position AS position) FROM raw.customers__documents
            ORDER BY rowid DESC;
        DELETE FROM raw.customers__documents; INSERT INTO raw.customers__documents FROM reversed""")
    assert numbers() == [["a"], ["0", "a"]]
    made.run("DELETE FROM raw.customers__documents")
    assert numbers()[-1] == []
