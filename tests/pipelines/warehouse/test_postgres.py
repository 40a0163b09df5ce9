"""The copy in a real Postgres: other tools' tables stay, organizations are apart, a reader sees one version."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.pull.check import check
from pipelines.reconcile.reconcile import reconcile
from pipelines.warehouse import failure as failures
from pipelines.warehouse.descriptions import table_description
from pipelines.warehouse.destination import _Dataset, copy_to_destination, create_views
from pipelines.warehouse.destination_changes import CopyNotes
from pipelines.warehouse.views import VIEWS
from sources.errors import ExitCode, PlatformError, UsageError
from sources.settings import warehouse_path, warehouse_settings
from tests.pipelines.bridge import Bridge, bridge, command, pulled
from tests.postgres import PASSWORD, connect, server

RUNS = "SELECT count(*) FROM orderbridge_ops.runs"
CUSTOMERS = "SELECT count(*) FROM orderbridge_raw.customers"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with server() as port:
        yield port


class Database:
    """A database of its own for each test."""

    def __init__(self, port: int, name: str, template: str = "template1") -> None:
        self.port, self.name = port, name
        self.run("postgres", f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        self.url = f"postgresql://loader:{PASSWORD}@127.0.0.1:{port}/{name}"

    def become_destination(self) -> None:
        os.environ |= {"WAREHOUSE__DESTINATION": "postgres", "DESTINATION__POSTGRES__CREDENTIALS": self.url}

    def run(self, database: str, sql: str) -> list[tuple[Any, ...]]:
        connection = connect(self.port, database)
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return list(cursor.fetchall()) if cursor.description else []
        finally:
            connection.close()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.run(self.name, sql)


@pytest.fixture
def database(port: int, request: pytest.FixtureRequest) -> Database:
    """An empty database that is the destination of what is published from now on."""
    made = Database(port, f"test_{abs(hash(request.node.name))}")
    made.become_destination()
    return made


class Copies:
    """A database for each sandbox, with the copy of a first pull: the template of the tests' own."""

    def __init__(self, port: int) -> None:
        self.port = port

    def template(self) -> str:
        return "copy_" + os.environ["SOURCES__LEGACY__BASE_URL"].rpartition(":")[2]

    def make(self) -> None:
        Database(self.port, self.template()).become_destination()
        assert copy()


@pytest.fixture(scope="module")
def copies(port: int) -> Copies:
    return Copies(port)


@pytest.fixture
def copied(tmp_path: Path, copies: Copies, request: pytest.FixtureRequest) -> Iterator[tuple[Bridge, Database]]:
    """A warehouse after a first pull and a database with its copy, both copied from the first test that needs them."""
    with pulled(tmp_path, copies.make) as made:
        database = Database(copies.port, f"test_{abs(hash(request.node.name))}", copies.template())
        database.become_destination()
        assert database.rows(RUNS) == made.rows("SELECT count(*) FROM ops.runs") == [(1,)]
        yield made, database


def copy() -> bool:
    """What the end of a run does."""
    return copy_to_destination(warehouse_path(), warehouse_settings())


def tables(database: Database, schema: str) -> set[str]:
    sql = f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{schema}'"
    return {name for (name,) in database.rows(sql)}


def test_the_copy_has_its_own_datasets_keys_and_comments_and_leaves_others_alone(
    published: Bridge, database: Database
) -> None:
    for schema, table in (("raw", "orders"), ("ops", "runs")):
        database.rows(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.{table} AS SELECT 'theirs' AS mine")
    assert published.code("customers") == 0
    assert copy()
    for schema, table in (("raw", "orders"), ("ops", "runs")):
        assert database.rows(f"SELECT * FROM {schema}.{table}") == [("theirs",)]
    assert database.rows(CUSTOMERS) == [(40,)]
    assert database.rows(RUNS) == [(2,)]
    schemas = {name for (name,) in database.rows("SELECT schema_name FROM information_schema.schemata")}
    assert {name for name in schemas if name.startswith("orderbridge")} == {"orderbridge_raw", "orderbridge_ops"}
    keys = """SELECT table_schema || '.' || table_name FROM information_schema.table_constraints
        WHERE constraint_type = 'PRIMARY KEY' AND table_schema LIKE 'orderbridge%'"""
    assert {"orderbridge_raw.customers", "orderbridge_raw.orders", "orderbridge_ops.runs"} <= {
        name for (name,) in database.rows(keys)
    }
    comment = "SELECT col_description('orderbridge_raw.customers'::regclass, attnum) FROM pg_attribute"
    where = "WHERE attrelid = 'orderbridge_raw.customers'::regclass AND attname = '_missing_since'"
    assert database.rows(f"{comment} {where}") == [("first complete read without the record; null where it is listed",)]
    described = database.rows("SELECT obj_description('orderbridge_ops.runs'::regclass)")
    assert described == [(table_description("ops", "runs"),)]


def test_tables_of_others_in_a_dataset_of_the_same_name_are_refused(published: Bridge, database: Database) -> None:
    database.rows("CREATE SCHEMA orderbridge_raw; CREATE TABLE orderbridge_raw.orders AS SELECT 1 AS mine")
    with pytest.raises(UsageError, match="orderbridge_raw holds tables that orderbridge did not create"):
        published.pull("price_lists")
    assert database.rows("SELECT * FROM orderbridge_raw.orders") == [(1,)]
    assert tables(database, "orderbridge_ops") == set()
    os.environ["WAREHOUSE__DESTINATION_DATASET"] = "shop"
    assert copy()
    assert database.rows("SELECT count(*) FROM shop_raw.orders") == [(30,)]


def test_a_table_added_by_others_stays_and_one_in_the_way_is_refused(
    copied: tuple[Bridge, Database],
) -> None:
    made, database = copied
    assert database.rows("SELECT count(*) FROM orderbridge_raw._orderbridge WHERE table_name = 'notes'") == [(0,)]
    database.rows("CREATE TABLE orderbridge_raw.notes AS SELECT 1 AS mine")
    assert made.code("customers") == 0
    assert database.rows("SELECT * FROM orderbridge_raw.notes") == [(1,)]
    database.rows("DELETE FROM orderbridge_raw._orderbridge WHERE table_name = 'orders'")
    with pytest.raises(UsageError, match=r"orderbridge_raw\.orders was not created by orderbridge"):
        made.pull("customers")


def test_two_organizations_lie_next_to_each_other(tmp_path: Path, database: Database) -> None:
    for name in ("one", "two"):
        os.environ["WAREHOUSE__DESTINATION_DATASET"] = name
        with bridge(tmp_path / name, customers=20 if name == "one" else 25) as made:
            assert made.code("customers", "price_lists") == 0
            with duckdb.connect(str(made.path), read_only=True) as warehouse:
                assert warehouse.execute("SELECT count(*) FROM raw.customers").fetchall() == database.rows(
                    f"SELECT count(*) FROM {name}_raw.customers"
                )
    with bridge(tmp_path / "third") as third, pytest.raises(UsageError, match="another source's data"):
        third.pull("price_lists")
    assert database.rows("SELECT count(*) FROM one_raw.customers") == [(20,)]


def test_a_reader_sees_one_version(copied: tuple[Bridge, Database]) -> None:
    made, database = copied
    assert database.rows(CUSTOMERS) == [(40,)]
    state, stop = made.platform.state, threading.Event()
    versions: set[tuple[Any, ...]] = set()
    failed: list[BaseException] = []

    def poll() -> None:
        connection = connect(database.port, database.name)
        try:
            while not stop.wait(0.002):
                with connection.cursor() as cursor:
                    cursor.execute(
                        "SELECT (SELECT count(*) FROM orderbridge_raw.customers), "
                        "(SELECT count(*) FROM orderbridge_raw.promotions), "
                        "(SELECT count(*) FROM orderbridge_ops.runs)"
                    )
                    versions.add(cursor.fetchone())
        except BaseException as error:
            failed.append(error)
        finally:
            connection.close()

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        for _ in range(2):
            state.add("customers", {"erpCode": f"N{len(state.ids('customers'))}"})
            state.add("promotions", {"name": "Nueva"})
            made.pull("customers", "promotions")
    finally:
        stop.set()
        reader.join()
    assert not failed
    assert versions <= {(40, 9, 1), (41, 10, 2), (42, 11, 3)}


def test_grants_and_views_of_others_on_a_copied_table_stay(copied: tuple[Bridge, Database]) -> None:
    made, database = copied
    assert database.rows(CUSTOMERS) == [(40,)]
    reader = f"reader_{database.name}"
    database.rows(
        f"CREATE ROLE {reader}; GRANT SELECT ON orderbridge_raw.customers TO {reader};"
        "CREATE VIEW public.names AS SELECT id, first_name, _missing_since FROM orderbridge_raw.customers"
    )
    made.platform.state.add("customers", {"firstName": "Nueva"})
    assert made.code("customers") == 0
    assert database.rows("SELECT count(*) FROM public.names") == [(41,)]
    assert database.rows("SELECT count(*) FROM public.names WHERE first_name = 'Nueva'") == [(1,)]
    assert database.rows(f"SELECT has_table_privilege('{reader}', 'orderbridge_raw.customers', 'SELECT')") == [(True,)]
    keys = """SELECT count(*) FROM information_schema.table_constraints
        WHERE constraint_type = 'PRIMARY KEY' AND table_schema = 'orderbridge_raw' AND table_name = 'customers'"""
    assert database.rows(keys) == [(1,)]


def test_a_view_over_a_copy_that_an_earlier_version_made_is_replaced(copied: tuple[Bridge, Database]) -> None:
    made, database = copied
    reconcile()
    database.rows(
        """CREATE SCHEMA orderbridge_bi; CREATE VIEW orderbridge_bi.lists AS
            SELECT resource, verdict, "distinct" AS rows, quarantined, ended_at AS read_at, run_id
            FROM orderbridge_ops.coverage WHERE published;
        CREATE VIEW orderbridge_bi.orders AS SELECT 1 AS order_id"""
    )
    with pytest.raises(PlatformError, match="other_reconciled"):
        create_views(replace(warehouse_settings(), destination_dataset="other"))
    assert create_views(warehouse_settings()) == f"{len(VIEWS)} views in orderbridge_bi"
    assert database.rows("SELECT count(*) FROM orderbridge_bi.lists WHERE verdict = 'complete'") == [(4,)]
    for name in VIEWS:
        counted = f"SELECT count(*) FROM {{}}bi.{name}"
        assert database.rows(counted.format("orderbridge_")) == made.rows(counted.format("")), name


def test_a_transaction_that_began_before_a_copy_keeps_its_version(copied: tuple[Bridge, Database]) -> None:
    made, database = copied
    assert database.rows(CUSTOMERS) == [(40,)]
    connection = connect(database.port, database.name)
    try:
        connection.autocommit = False
        connection.set_session(isolation_level="REPEATABLE READ")
        with connection.cursor() as cursor:
            cursor.execute(RUNS)
            assert cursor.fetchone() == (1,)
            connection.commit()
            cursor.execute("SELECT 1")
            made.platform.state.add("customers", {"firstName": "Nueva"})
            assert made.code("customers") == 0
            cursor.execute(CUSTOMERS)
            assert cursor.fetchone() == (40,)
    finally:
        connection.close()
    assert database.rows(CUSTOMERS) == [(41,)]


def test_columns_of_orders_may_come_go_and_change_their_type(copied: tuple[Bridge, Database]) -> None:
    made, database = copied

    def types() -> dict[str, str]:
        sql = """SELECT column_name, data_type FROM information_schema.columns
            WHERE table_schema = 'orderbridge_raw' AND table_name = 'orders'"""
        return {str(name): str(kind) for name, kind in database.rows(sql)}

    before, state = types(), made.platform.state
    assert before["number"] == "bigint"
    assert "channel" not in before
    numbers = {str(order["id"]): order["number"] for order in state.records("orders")}
    database.rows("CREATE VIEW public.numbers AS SELECT number FROM orderbridge_raw.orders")
    for order, number in numbers.items():
        state.change("orders", order, {"number": number + 0.5, "channel": "web"})
    with pytest.raises(PlatformError, match=r"need its tables: view numbers depends on column number") as error:
        made.pull("orders")
    assert "Drop the object, run again" in (error.value.hint or "")
    assert database.rows("SELECT count(*) FROM public.numbers WHERE number % 1 = 0") == [(30,)]
    database.rows("DROP VIEW public.numbers")
    assert made.code("orders") == 0
    assert types() == before | {"number": "numeric", "channel": "character varying"}
    database.rows("CREATE VIEW public.numbers AS SELECT number, channel FROM orderbridge_raw.orders")
    for order, number in numbers.items():
        state.change("orders", order, {"number": number})
    assert made.code("orders") == 0, "a column never becomes narrow again"
    assert database.rows("SELECT count(*) FROM public.numbers WHERE number % 1 = 0") == [(30,)]


def contents(rows: Callable[[str], list[tuple[Any, ...]]], prefix: str, columns: dict[str, str]) -> Any:
    """The rows of each table, those of times in UTC."""
    return {
        table: Counter(tuple(map(str, row)) for row in rows(f"SELECT {names} FROM {prefix}{table}"))
        for table, names in columns.items()
    }


def assert_is_copy(made: Bridge, database: Database) -> None:
    sql = """SELECT schema_name || '.' || table_name, string_agg(CASE data_type WHEN 'TIMESTAMP WITH TIME ZONE'
            THEN format('(extract(epoch FROM "{}") * 1000000)::bigint', column_name) ELSE '"' || column_name || '"' END,
            ', ')
        FROM duckdb_columns() JOIN duckdb_tables() USING (schema_name, table_name)
        WHERE schema_name IN ('raw', 'reconciled', 'ops') GROUP BY 1"""
    columns = dict(made.rows(sql))
    assert contents(database.rows, "orderbridge_", columns) == contents(made.rows, "", columns)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """How many keys of each table the last copy sent; "all" where it sent all rows."""
    load, counted = _Dataset.load, dict[str, Any]()

    def counting(self: _Dataset, *arguments: Any) -> None:
        load(self, *arguments)
        for table, changes in self.changes.items():
            counted[f"{self.schema}.{table}"] = "all" if changes.changed is None else len(changes.changed)

    monkeypatch.setattr(_Dataset, "load", counting)
    return counted


def test_nights_of_changes_are_merged_and_the_copy_equals_the_warehouse(
    tmp_path: Path, database: Database, sent: dict[str, Any]
) -> None:
    def change(name: str, n: int, values: dict[str, Any]) -> None:
        made.platform.state.change(name, str(made.platform.state.ids(name)[n]), values)

    def night(*lists: str) -> None:
        assert made.code(*lists) == 0
        assert_is_copy(made, database)

    with bridge(tmp_path, customers=60, orders=60) as made:
        assert made.code() == 0
        reconcile()
        database.rows("CREATE VIEW public.totals AS SELECT id, total FROM orderbridge_raw.orders")
        night()
        assert {table: sent[table] for table in ("raw.customers", "raw.orders", "raw.orders__lines")} == {
            "raw.customers": 0, "raw.orders": 0, "raw.orders__lines": 0,
        }  # fmt: skip
        change("orders", 0, {"status": "CHANGED"})
        change("orders", 1, {"lines": []})
        change("customers", 2, {"lastName": "Ñandú", "documents": []})
        made.platform.state.remove("customers", str(made.platform.state.ids("customers")[5]))
        made.platform.state.add("customers", {"firstName": "Nueva"})
        night()
        assert (sent["raw.orders"], sent["raw.orders__lines"], sent["raw.customers"]) == (1, 1, 3)
        reconcile()
        assert_is_copy(made, database)
        change("orders", 0, {"number": 10.5, "channel": "web"})
        night("orders")
        for sql in (
            "DELETE FROM orderbridge_raw.customers WHERE first_name = 'Nueva'",
            "ALTER TABLE orderbridge_raw.customers ALTER email TYPE varchar(200)",
            "DROP TABLE orderbridge_raw.customers",
        ):
            database.rows(sql)
            change("customers", 3, {"lastName": sql[:5]})
            night("customers")
        assert database.rows("SELECT count(*) FROM public.totals") == [(60,)]


def test_a_copy_that_the_notes_do_not_know_is_followed_by_one_of_all_rows(
    tmp_path: Path, database: Database, sent: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: CopyNotes) -> None:
        raise KeyboardInterrupt

    with bridge(tmp_path, customers=5, orders=5) as made:
        assert made.code("customers") == 0
        made.platform.state.add("customers", {"firstName": "Nueva"})
        with monkeypatch.context() as patch:
            patch.setattr(CopyNotes, "keep", killed)
            with pytest.raises(KeyboardInterrupt):
                made.pull("customers")
        assert copy()
        assert sent["raw.customers"] == "all"
        assert copy()
        assert sent["raw.customers"] == 0
        assert_is_copy(made, database)


def test_a_copy_that_fails_says_why_without_secrets_and_is_a_state_of_its_own(
    published: Bridge, database: Database
) -> None:
    os.environ["DESTINATION__POSTGRES__CREDENTIALS"] = database.url.replace(PASSWORD, "wrong-4712")
    with pytest.raises(PlatformError, match="password authentication failed for user") as error:
        published.pull("customers")
    assert error.value.exit_code == ExitCode.PLATFORM
    assert "wrong-4712" not in str(error.value)
    assert published.one("SELECT count(*) FROM raw.customers") == 40
    assert failures.read(published.path) is None
    done = command("status", "--json", env=published.environment(), cwd=published.folder)
    assert '"destination_failure": {' in done.out
    assert "wrong-4712" not in done.out
    text = command("status", env=published.environment(), cwd=published.folder).out
    assert "the warehouse was published, but its copy to the destination failed" in text
    del os.environ["WAREHOUSE__DESTINATION"]
    assert published.code("customers") == 0
    assert failures.read(published.path, is_destination=True) is not None
    database.become_destination()
    assert published.code("customers") == 0
    assert failures.read(published.path, is_destination=True) is None


def test_check_connects_to_the_destination(fresh: Bridge, database: Database) -> None:
    def result() -> tuple[ExitCode, str]:
        (one,) = [one for one in check(threading.Event()) if one.what == "destination"]
        return one.exit_code, one.message

    ready = ExitCode.DONE, "postgres, datasets orderbridge_*: 0 of 3 exist"
    assert result() == ready
    name = database.name
    database.rows(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
    os.environ["DESTINATION__POSTGRES__CREDENTIALS"] = database.url.replace("loader:", f"{name}:")
    code, message = result()
    assert (code, f"permission denied for database {name}" in message) == (ExitCode.PLATFORM, True)
    database.rows(f"GRANT CREATE ON DATABASE {name} TO {name}")
    assert result() == ready
    assert not database.rows("SELECT 1 FROM information_schema.schemata WHERE schema_name LIKE 'orderbridge%'")
    os.environ["DESTINATION__POSTGRES__CREDENTIALS"] = database.url.replace(f":{database.port}/", ":1/")
    code, message = result()
    assert code == ExitCode.PLATFORM
    assert "Connection refused" in message
    assert PASSWORD not in message


def test_a_new_table_has_the_default_privileges_of_its_schema(copied: tuple[Bridge, Database]) -> None:
    _, database = copied
    reader = f"reader_{database.name}"
    database.rows(
        f"CREATE ROLE {reader}; ALTER DEFAULT PRIVILEGES IN SCHEMA orderbridge_raw GRANT SELECT ON TABLES TO {reader};"
        "DROP TABLE orderbridge_raw.customers"
    )
    assert copy()
    assert database.rows(CUSTOMERS) == [(40,)]
    assert database.rows(f"SELECT has_table_privilege('{reader}', 'orderbridge_raw.customers', 'SELECT')") == [(True,)]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "DESTINATION__POSTGRES__CREDENTIALS__PASSWORD"),
        ({"DESTINATION__POSTGRES__CREDENTIALS": f"postgresql://loader:{PASSWORD}"}, "postgresql://***@"),
    ],
)
def test_credentials_that_are_not_whole_stop_a_run_before_its_first_request(
    fresh: Bridge, settings: dict[str, str], reason: str
) -> None:
    parts = {"HOST": "127.0.0.1", "USERNAME": "loader", "DATABASE": "shop"}
    os.environ |= {f"DESTINATION__POSTGRES__CREDENTIALS__{name}": value for name, value in parts.items()}
    os.environ |= {"WAREHOUSE__DESTINATION": "postgres", **settings}
    with pytest.raises(UsageError, match="dlt cannot use 'postgres'") as error:
        fresh.pull("price_lists")
    assert reason in str(error.value)
    assert PASSWORD not in str(error.value)
    assert not fresh.platform.state.log


@pytest.mark.parametrize(("table", "key"), [("raw.customers", "id"), ("ops.observations", "value")])
def test_a_table_whose_key_column_changed_its_type_has_its_primary_key_again(
    copied: tuple[Bridge, Database], table: str, key: str
) -> None:
    made, database = copied
    sql = f"""SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_index i
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
        WHERE i.indrelid = 'orderbridge_{table}'::regclass AND i.indisprimary ORDER BY 1"""
    keys = database.rows(sql)
    assert key in dict(keys)
    database.rows(f"ALTER TABLE orderbridge_{table} ALTER COLUMN {key} TYPE text")
    assert copy()
    assert database.rows(sql) == keys
    assert database.rows(f"SELECT count(*) FROM orderbridge_{table}") == made.rows(f"SELECT count(*) FROM {table}")


def test_a_second_run_is_refused_while_one_is_copying_to_the_same_datasets(
    copied: tuple[Bridge, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, database = copied
    assert database.rows(CUSTOMERS) == [(40,)]
    load, refused = _Dataset.load, []

    def interrupted(self: _Dataset, *arguments: Any) -> None:
        load(self, *arguments)
        with monkeypatch.context() as patch:
            patch.setattr(_Dataset, "load", load)
            with pytest.raises(PlatformError, match=r"another run is copying to the datasets orderbridge_\*") as error:
                copy_to_destination(made.path, warehouse_settings())
            refused.append(error.value.exit_code)

    with monkeypatch.context() as patch:
        patch.setattr(_Dataset, "load", interrupted)
        assert copy_to_destination(made.path, warehouse_settings())
    assert refused == [ExitCode.PLATFORM] * 2
    assert database.rows(CUSTOMERS) == [(40,)]
    assert copy_to_destination(made.path, warehouse_settings())


def test_a_staged_table_that_lacks_rows_replaces_nothing(
    copied: tuple[Bridge, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, database = copied
    assert database.rows("SELECT count(*) FROM orderbridge_raw.promotions") == [(9,)]
    load = _Dataset.load

    def lossy(self: _Dataset, *arguments: Any) -> None:
        load(self, *arguments)
        if self.schema == "raw":
            database.rows("DELETE FROM orderbridge_raw_orderbridge_staging.promotions WHERE id IS NOT NULL")

    with monkeypatch.context() as patch:
        patch.setattr(_Dataset, "load", lossy)
        with pytest.raises(PlatformError, match=r"orderbridge_raw\.promotions: 0 of 9 rows are in staging"):
            copy_to_destination(made.path, warehouse_settings())
    assert database.rows("SELECT count(*) FROM orderbridge_raw.promotions") == [(9,)]
