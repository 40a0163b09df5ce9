"""The history of customers: what the walks proved, whatever walks there were, and the same however often it is made."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import uuid4

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.reconcile.history import HISTORIES, record_history
from pipelines.warehouse import merge

START = datetime(2026, 1, 1, tzinfo=UTC)
Version = tuple[str, int, datetime, datetime | None, bool, str | None, str, str]


def at(pull: int) -> datetime:
    return START + timedelta(days=pull)


@dataclass
class Warehouse:
    """Raw customers as pulls leave them, and the history that reconciling makes of them."""

    connection: duckdb.DuckDBPyConnection
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    def pull(self, number: int, listed: dict[str, str], proven: bool) -> None:
        """What `merge.merge` makes of a walk that came: seen rows are new, the others missing if it is proven."""
        for key, name in listed.items():
            self.rows[key] = {"id": key, "name": name, "seen": at(number), "missing": None}
        if proven:
            for key, row in self.rows.items():
                if key not in listed and row["missing"] is None:
                    row["missing"] = at(number)

    def reconcile(self) -> None:
        """The tables that the history is made of, as reconciling makes them."""
        run = self.connection.execute
        run("CREATE OR REPLACE TABLE reconciled.customers AS FROM reconciled.customers LIMIT 0")
        run("DELETE FROM raw.customers__documents")
        for row in self.rows.values():
            run(
                "INSERT INTO reconciled.customers (customer_id, first_name, phone_digits, _last_seen_at, "
                "_missing_since) VALUES ($id, $name, $digits, $seen, $missing)",
                {**row, "digits": self.digits(row["name"])},
            )
            run(
                "INSERT INTO raw.customers__documents (customer_id, position, number) VALUES ($id, 0, $number)",
                {"id": row["id"], "number": row["name"][-1:]},
            )
        record_history(self.connection, HISTORIES[0])

    digits: Callable[[str], str] = str

    def versions(self) -> list[Version]:
        return self.connection.execute(
            "SELECT customer_id, version, valid_from, valid_to, is_current, ended_by, first_name, documents "
            "FROM reconciled.customer_history ORDER BY ALL"
        ).fetchall()


@cache
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="orderbridge-history-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def warehouse() -> Warehouse:
    connection = duckdb.connect(f"{_folder()}/{uuid4().hex}.duckdb")
    connection.execute("SET TimeZone = 'UTC'; CREATE SCHEMA reconciled")
    merge.create_missing(connection)
    texts = ("customer_id", "erp_code", "login_code", "first_name", "last_name", "email", "phone", "phone_digits",
             "created_at_text", "price_list_id", "price_list_name", "_run_id", "_extra")  # fmt: skip
    columns = ", ".join(f"{name} VARCHAR" for name in texts)
    connection.execute(
        f"CREATE TABLE reconciled.customers ({columns}, birthdate DATE, is_missing BOOLEAN, "
        "_first_seen_at TIMESTAMPTZ, _last_seen_at TIMESTAMPTZ, _missing_since TIMESTAMPTZ)"
    )
    return Warehouse(connection)


@pytest.fixture
def made() -> Iterator[Warehouse]:
    fresh = warehouse()
    yield fresh
    fresh.connection.close()


def periods(made: Warehouse) -> list[tuple[Any, ...]]:
    """Name, from and to as numbers of pulls, and what ended it."""

    def day(instant: datetime | None) -> int | None:
        return None if instant is None else (instant - START).days

    return [(name, day(begin), day(end), by) for _, _, begin, end, _, by, name, _ in made.versions()]


def test_a_change_ends_a_version_and_begins_another(made: Warehouse) -> None:
    for number, name in enumerate(["Ana", "Ana", "Anna"]):
        made.pull(number, {"1": name}, proven=True)
        made.reconcile()
    assert periods(made) == [("Ana", 0, 2, "changed"), ("Anna", 2, None, None)]


def test_a_customer_that_goes_missing_and_returns_has_a_gap(made: Warehouse) -> None:
    for number, listed in enumerate([{"1": "Ana"}, {}, {}, {"1": "Ana"}]):
        made.pull(number, listed, proven=True)
        made.reconcile()
    assert periods(made) == [("Ana", 0, 1, "missing"), ("Ana", 3, None, None)]


def test_a_return_and_a_loss_between_two_reconciles_are_a_version(made: Warehouse) -> None:
    for number, listed in enumerate([{"1": "Ana"}, {}, {"1": "Ana"}, {}]):
        made.pull(number, listed, proven=True)
        if number != 2:
            made.reconcile()
    assert periods(made) == [("Ana", 0, 1, "missing"), ("Ana", 2, 3, "missing")]


def test_a_walk_that_proves_nothing_ends_no_version(made: Warehouse) -> None:
    made.pull(0, {"1": "Ana", "2": "Eva"}, proven=True)
    made.reconcile()
    made.pull(1, {"2": "Eve"}, proven=False)
    made.reconcile()
    assert periods(made) == [("Ana", 0, None, None), ("Eva", 0, 1, "changed"), ("Eve", 1, None, None)]


def test_what_changed_and_then_went_missing_unseen_is_both(made: Warehouse) -> None:
    made.pull(0, {"1": "Ana"}, proven=True)
    made.reconcile()
    made.pull(1, {"1": "Eva"}, proven=True)
    made.pull(2, {}, proven=True)
    made.reconcile()
    assert periods(made) == [("Ana", 0, 1, "changed"), ("Eva", 1, 2, "missing")]


def test_no_version_ends_before_it_begins_where_a_clock_went_back(made: Warehouse) -> None:
    for number, listed in ((5, {"1": "Ana"}), (3, {"1": "Eva"}), (1, {}), (4, {"1": "Eva"}), (2, {})):
        made.pull(number, listed, proven=True)
        made.reconcile()
    made.reconcile()
    expected = [("Ana", 5, 5, "changed"), ("Eva", 5, 5, "missing"), ("Eva", 5, 5, "missing")]
    assert periods(made) == expected
    for number, listed in ((6, {"1": "Eva"}), (4, {})):
        made.pull(number, listed, proven=True)
    for _ in range(2):
        made.reconcile()
        assert periods(made) == [*expected, ("Eva", 6, 6, "missing")]


def test_a_record_without_a_row_keeps_its_versions(made: Warehouse) -> None:
    made.pull(0, {"1": "Ana", "2": "Eva"}, proven=True)
    made.reconcile()
    before = made.versions()
    made.rows.clear()
    made.reconcile()
    assert made.versions() == before


def test_a_document_makes_a_version_and_our_own_way_to_write_a_phone_makes_none(made: Warehouse) -> None:
    made.pull(0, {"1": "Ana"}, proven=True)
    made.reconcile()
    made.digits = lambda name: f"00{name}"
    made.reconcile()
    assert periods(made) == [("Ana", 0, None, None)]
    digits = made.connection.execute("SELECT phone_digits FROM reconciled.customer_history").fetchall()
    assert digits == [("00Ana",)]
    made.pull(1, {"1": "Ana"}, proven=True)
    made.connection.execute("UPDATE raw.customers__documents SET number = 'other'")
    made.connection.execute("UPDATE reconciled.customers SET _last_seen_at = $1", [at(1)])
    record_history(made.connection, HISTORIES[0])
    assert [(row[2], row[7]) for row in made.versions()] == [
        (at(0), document("a")),
        (at(1), document("other")),
    ]


def document(number: str) -> str:
    rest = '"fiscal_name":null,"fiscal_address":null,"email":null,"is_default":null,"for_taxes":null'
    return f'[{{"number":"{number}",{rest}}}]'


def test_the_order_of_documents_makes_no_version(made: Warehouse) -> None:
    made.pull(0, {"1": "Ana"}, proven=True)
    made.reconcile()
    made.connection.execute("INSERT INTO raw.customers__documents (customer_id, position, number) VALUES ('1', 1, 'b')")
    record_history(made.connection, HISTORIES[0])
    before = made.versions()
    made.connection.execute("""
        CREATE TEMP TABLE reversed AS SELECT * REPLACE (1 - position AS position) FROM raw.customers__documents
            ORDER BY rowid DESC;
        DELETE FROM raw.customers__documents; INSERT INTO raw.customers__documents FROM reversed""")
    record_history(made.connection, HISTORIES[0])
    assert made.versions() == before
    made.connection.execute("DELETE FROM raw.customers__documents")
    record_history(made.connection, HISTORIES[0])
    assert made.versions()[-1][7] == "[]"


def test_a_column_that_is_new_is_added_to_the_history_that_is_there(made: Warehouse) -> None:
    made.pull(0, {"1": "Ana"}, proven=True)
    made.reconcile()
    made.connection.execute("ALTER TABLE reconciled.customers ADD COLUMN segment VARCHAR DEFAULT 'x'")
    record_history(made.connection, HISTORIES[0])
    assert made.connection.execute("SELECT segment FROM reconciled.customer_history").fetchall() == [("x",)]
    assert periods(made) == [("Ana", 0, None, None)]


def test_promotions_and_price_lists_have_a_history_and_a_use_of_a_promotion_makes_no_version(made: Warehouse) -> None:
    run = made.connection.execute
    seen = "_last_seen_at TIMESTAMPTZ, _missing_since TIMESTAMPTZ"
    run(f"""CREATE TABLE reconciled.promotions (promotion_id VARCHAR, name VARCHAR, status VARCHAR, is_active BOOLEAN,
        usage_limit BIGINT, use_count BIGINT, start_date VARCHAR, expiration_date VARCHAR, {seen});
        CREATE TABLE reconciled.price_lists (price_list_id VARCHAR, name VARCHAR, source_price_list_id VARCHAR,
        adjustment_type VARCHAR, adjustment_value DECIMAL(38, 9), depth BIGINT, {seen})""")
    run("INSERT INTO reconciled.promotions VALUES ('p', 'Sale', 'running', true, 9, 0, 'a', 'b', $1, NULL)", [at(0)])
    run("INSERT INTO reconciled.price_lists VALUES ('l', 'Retail', NULL, 'PERCENT', 5, 0, $1, NULL)", [at(0)])
    of_promotions, of_lists = HISTORIES[1:]
    assert [record_history(made.connection, history) for history in (of_promotions, of_lists)] == [(1, 1), (1, 1)]
    run("UPDATE reconciled.promotions SET use_count = 1, status = 'exhausted', _last_seen_at = $1", [at(1)])
    run("UPDATE reconciled.price_lists SET depth = 2, _last_seen_at = $1", [at(1)])
    assert [record_history(made.connection, history) for history in (of_promotions, of_lists)] == [(1, 1), (1, 1)]
    run("UPDATE reconciled.promotions SET expiration_date = 'c', _last_seen_at = $1", [at(2)])
    run("UPDATE reconciled.price_lists SET adjustment_value = 6, _last_seen_at = $1", [at(2)])
    assert [record_history(made.connection, history) for history in (of_promotions, of_lists)] == [(2, 1), (2, 1)]
    sql = "SELECT version, valid_from, valid_to, is_current, ended_by, {} FROM reconciled.{} ORDER BY version"
    assert run(sql.format("use_count, expiration_date", "promotion_history")).fetchall() == [
        (1, at(0), at(2), False, "changed", 1, "b"),
        (2, at(2), None, True, None, 1, "c"),
    ]
    assert run(sql.format("adjustment_value::INTEGER", "price_list_history")).fetchall() == [
        (1, at(0), at(2), False, "changed", 5),
        (2, at(2), None, True, None, 6),
    ]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("123"), st.sampled_from(["Ana", "Eva"])),
            st.sampled_from(["proven", "unproven", "held back"]),
            st.booleans(),
        ),
        min_size=1,
        max_size=7,
    )
)
def test_it_is_what_a_plain_model_keeps(pulls: list[tuple[dict[str, str], str, bool]]) -> None:
    """Any sequence of walks, reconciled after each or not; a walk that is held back leaves everything as it was."""
    made, model = warehouse(), Model()
    for number, (listed, verdict, is_reconciled) in enumerate(pulls):
        if verdict != "held back":
            made.pull(number, listed, proven=verdict == "proven")
            model.pull(number, listed, proven=verdict == "proven")
        if is_reconciled or number == len(pulls) - 1:
            made.reconcile()
            model.reconcile()
            first = made.versions()
            assert [row[:7] for row in first] == sorted(model.rows(), key=lambda row: row[:2])
            made.reconcile()
            assert made.versions() == first
    made.connection.close()


class Model:
    """What is known of each customer between two reconciles, and the versions that this makes."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[str, datetime, datetime | None]] = {}
        self.versions: dict[str, list[list[Any]]] = {}

    def pull(self, number: int, listed: dict[str, str], proven: bool) -> None:
        for key, (name, seen, missing) in self.known.items():
            if key not in listed and proven and missing is None:
                self.known[key] = (name, seen, at(number))
        self.known |= {key: (name, at(number), None) for key, name in listed.items()}

    def reconcile(self) -> None:
        for key, (name, seen, missing) in self.known.items():
            versions = self.versions.setdefault(key, [])
            if versions and versions[-1][2] is None and versions[-1][0] != name:
                versions[-1][2:] = [seen, "changed"]
            is_open = bool(versions) and versions[-1][2] is None
            if not is_open and (not versions or versions[-1][3] == "changed" or seen > versions[-1][2]):
                versions.append([name, seen, None, None])
            if missing is not None and versions[-1][2] is None:
                versions[-1][2:] = [missing, "missing"]

    def rows(self) -> list[tuple[Any, ...]]:
        return [
            (key, number, begin, end, end is None, by, name)
            for key, versions in self.versions.items()
            for number, (name, begin, end, by) in enumerate(versions, 1)
        ]
