"""The copy in Postgres: what changed is sent, tables stay with what others built on them, one run at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from orderbridge.pipelines.warehouse.bi.views import VIEWS
from orderbridge.pipelines.warehouse.destination import postgres
from orderbridge.pipelines.warehouse.destination.changes import CopyNotes
from orderbridge.pipelines.warehouse.destination.copy import (
    connect_destination,
    copy_to_destination,
    create_views,
)
from orderbridge.pipelines.warehouse.destination.database import Database
from orderbridge.sources.errors import ExitCode, PlatformError, UsageError
from tests.pipelines.bridge import Bridge
from tests.pipelines.warehouse.destinations import Postgres, Shop
from tests.postgres import PASSWORD, connect

pytestmark = pytest.mark.parametrize("destination", ["postgres"], indirect=True)


def test_nights_of_changes_are_merged_and_the_copy_equals_the_warehouse(
    shop: Shop, destination: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, sent = Database.load, dict[str, Any]()

    def counting(self: Database, warehouse: Any, tables: Any) -> None:
        load(self, warehouse, tables)
        sent.update(
            {
                one.name: "all" if one.changed is None else len(one.changed)
                for one in tables.values()
            }
        )

    def night(sql: str) -> list[Any]:
        shop.change(sql)
        shop.copy()
        assert destination.contents() == shop.contents()
        return [sent[name] for name in ("customers", "orders", "orders__lines")]

    monkeypatch.setattr(Database, "load", counting)
    assert night("SELECT 1") == ["all"] * 3
    destination.rows("CREATE VIEW public.totals AS SELECT id, total FROM orderbridge_raw.orders")
    seen = "SET _run_id = 'r2', _last_seen_at = '2026-01-02 03:00:00Z'"
    moved = night(
        "; ".join(f"UPDATE raw.{name} {seen}" for name in ("customers", "orders", "orders__lines"))
    )
    assert moved == [0, 0, 0], "stamps move in one statement"
    changed = """UPDATE raw.orders SET total = NULL WHERE id = 'o0';
        DELETE FROM raw.orders__lines WHERE order_id = 'o1';
        UPDATE raw.customers SET first_name = 'Ñ' WHERE id = 'c2'; DELETE FROM raw.customers WHERE id = 'c3';
        INSERT INTO raw.customers BY NAME SELECT 'c9' AS id, 'r3' AS _run_id, now() AS _last_seen_at"""
    assert night(changed) == [3, 1, 1]
    destination.rows("ALTER TABLE orderbridge_raw.customers ALTER id TYPE text")
    more = "UPDATE raw.customers SET email = 'x' WHERE id = 'c0'; ALTER TABLE raw.orders ADD COLUMN channel VARCHAR"
    assert night(f"{more} DEFAULT 'web'") == ["all"] * 3, "a table is not as it was left"
    destination.rows("DELETE FROM orderbridge_raw.customers WHERE id = 'c9'")
    assert night("UPDATE raw.customers SET email = 'y' WHERE id = 'c0'")[0] == "all"
    assert destination.keys("customers") == ["id"]
    assert destination.rows("SELECT count(*) FROM public.totals") == [(6,)]
    shop.change("DELETE FROM raw.customers WHERE id = 'c1'")
    with (
        mock.patch.object(CopyNotes, "keep", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        shop.copy()
    assert night("SELECT 1")[0] == "all", "a copy that the notes do not know"


def test_what_others_made_stays_and_what_is_in_the_way_is_refused(
    shop: Shop, destination: Postgres
) -> None:
    destination.rows("CREATE SCHEMA raw; CREATE TABLE raw.orders AS SELECT 'theirs' AS mine")
    shop.copy()
    reader = f"reader_{destination.database}"
    destination.rows(
        f"CREATE ROLE {reader}; GRANT SELECT ON orderbridge_raw.customers TO {reader};"
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA orderbridge_raw GRANT SELECT ON TABLES TO {reader};"
        "CREATE VIEW public.names AS SELECT id, first_name FROM orderbridge_raw.customers;"
        "DROP TABLE orderbridge_raw.orders; CREATE TABLE orderbridge_raw.notes AS SELECT 1 AS mine"
    )
    shop.change(
        """UPDATE raw.customers SET first_name = 'Nueva' WHERE id = 'c1'; ALTER TABLE raw.customers ADD phone TEXT;
        DROP TABLE raw.promotions"""
    )
    shop.copy()
    assert destination.rows("SELECT id FROM public.names WHERE first_name = 'Nueva'") == [("c1",)]
    for table in ("customers", "orders"):
        granted = f"SELECT has_table_privilege('{reader}', 'orderbridge_raw.{table}', 'SELECT')"
        assert destination.rows(granted) == [(True,)]
        assert destination.keys(table) == ["id"]
    assert destination.rows("SELECT * FROM orderbridge_raw.notes, raw.orders") == [(1, "theirs")]
    destination.rows("DELETE FROM orderbridge_raw._orderbridge WHERE table_name = 'orders'")
    with pytest.raises(UsageError, match=r"orderbridge_raw\.orders was not created by orderbridge"):
        shop.copy()


def test_a_copy_that_fails_leaves_that_before_and_a_transaction_keeps_its_version(
    shop: Shop, destination: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, rows, refused = Database.load, Database.rows, list[ExitCode]()
    another = Shop(tmp_path / "another", destination.settings)

    def lossy(self: Database, warehouse: Any, changes: Any) -> Iterator[Any]:
        is_lost = changes.quoted != '"ops"."runs"'
        for batch in rows(self, warehouse, changes):
            yield batch.slice(length=0) if is_lost else batch

    def interrupted(self: Database, *arguments: Any) -> None:
        load(self, *arguments)
        with pytest.raises(
            PlatformError, match=r"another run is copying to the datasets orderbridge_\*"
        ) as error:
            another.copy()
        refused.append(error.value.exit_code)

    shop.copy()
    before = destination.contents()
    destination.rows("CREATE VIEW public.numbers AS SELECT number FROM orderbridge_raw.orders")
    shop.change(
        "ALTER TABLE raw.orders ALTER number TYPE DECIMAL(38, 9); UPDATE raw.orders SET number = number + 0.5"
    )
    with monkeypatch.context() as patch:
        patch.setattr(Database, "rows", lossy)
        with pytest.raises(PlatformError, match='"orders": 0 of 6 rows are in staging'):
            shop.copy()
    with pytest.raises(
        PlatformError, match=r"need its tables: view numbers depends on column number"
    ):
        shop.copy()
    assert destination.contents() == before
    destination.rows("DROP VIEW public.numbers")
    shop.change("DELETE FROM raw.customers WHERE id = 'c1'; DROP TABLE raw.promotions")
    with (
        closing(connect(destination.port, destination.database)) as connection,
        connection.cursor() as cursor,
    ):
        connection.autocommit = False
        connection.set_session(isolation_level="REPEATABLE READ")
        cursor.execute("SELECT 1")
        monkeypatch.setattr(Database, "load", interrupted)
        shop.copy()
        cursor.execute("SELECT count(*) FROM orderbridge_raw.customers")
        assert cursor.fetchone() == (5,)
    assert refused == [ExitCode.PLATFORM]
    assert destination.contents() == shop.contents()


def test_a_copy_does_not_wait_for_ever_for_a_transaction_that_uses_its_tables(
    shop: Shop, destination: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "LOCK_LIMIT", "200ms")
    shop.copy()
    before = destination.contents()
    shop.change("ALTER TABLE raw.orders ADD COLUMN channel VARCHAR DEFAULT 'web'")
    with (
        closing(connect(destination.port, destination.database)) as connection,
        connection.cursor() as cursor,
    ):
        connection.autocommit = False
        cursor.execute("SELECT count(*) FROM orderbridge_raw.orders")
        with pytest.raises(PlatformError, match="lock timeout") as error:
            shop.copy()
    assert "End the transaction" in error.value.hint
    assert destination.contents() == before
    shop.copy()
    assert destination.contents() == shop.contents()


def test_what_check_and_a_copy_say_of_an_unusable_database_has_no_secret(
    shop: Shop, destination: Postgres
) -> None:
    role, url, wrong = destination.database, destination.url, "wrong-4712"
    destination.rows(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    for changed, words in (
        (f"{url}?sslmode=require", "server does not support SSL"),
        (url.replace(PASSWORD, wrong), "password authentication failed for user"),
        (url.replace("loader:", f"{role}:"), f"permission denied for database {role}\n  Grant it"),
    ):
        destination.configure(CREDENTIALS=changed)
        for use in (shop.copy, lambda: connect_destination(shop.settings)):
            with pytest.raises(PlatformError, match=words) as error:
                use()
            assert not [secret for secret in (wrong, PASSWORD) if secret in str(error.value)]
    destination.rows(f"GRANT CREATE ON DATABASE {role} TO {role}")
    assert connect_destination(shop.settings) == "postgres, datasets orderbridge_*: 0 of 3 exist"
    assert not destination.rows(
        "SELECT 1 FROM information_schema.schemata WHERE schema_name LIKE 'orderbridge%'"
    )


def test_views_over_a_copy_are_made_and_earlier_ones_replaced(
    reconciled: Bridge, destination: Postgres
) -> None:
    settings = replace(destination.settings, path=reconciled.path)
    with pytest.raises(PlatformError, match="orderbridge_reconciled") as error:
        create_views(settings)
    assert error.value.hint.startswith("The database refused a statement"), "no wrong credentials"
    copy_to_destination(reconciled.path, settings)
    destination.rows("CREATE SCHEMA IF NOT EXISTS orderbridge_bi")
    destination.rows("CREATE VIEW orderbridge_bi.orders AS SELECT 1 AS order_id")
    assert create_views(settings) == f"{len(VIEWS)} views in orderbridge_bi"
    for name in VIEWS:
        counted = f"SELECT count(*) FROM {{}}bi.{name}"
        assert destination.rows(counted.format("orderbridge_")) == reconciled.rows(
            counted.format("")
        ), name


def test_names_that_are_too_long_for_postgres_are_shortened_and_each_keeps_its_own(
    shop: Shop, destination: Postgres
) -> None:
    long = "x" * 79
    shop.change(
        f"""ALTER TABLE raw.orders ADD {long}a VARCHAR DEFAULT 'a';
        ALTER TABLE raw.orders ADD {long}b VARCHAR DEFAULT 'b';
        COMMENT ON COLUMN raw.orders.{long}a IS 'of the platform';
        CREATE TABLE raw.orders__{long}a AS SELECT id AS order_id, 'a' AS {long} FROM raw.orders;
        CREATE TABLE raw.orders__{long}b AS SELECT id AS order_id, 'b' AS {long} FROM raw.orders"""
    )

    def copied() -> dict[str, Any]:
        return {
            table: [sorted(row.values()) for row in rows]
            for table, rows in destination.contents().items()
        }

    for night in ("the first", "without a change", "with one"):
        shop.copy()
        ((kept, comment),) = destination.rows(
            """SELECT attname, col_description(attrelid, attnum) FROM pg_attribute
            WHERE attrelid = 'orderbridge_raw.orders'::regclass AND attname LIKE 'xx%'
            AND col_description(attrelid, attnum) IS NOT NULL"""
        )
        assert destination.rows(f"SELECT DISTINCT {kept} FROM orderbridge_raw.orders") == [("a",)]
        assert comment == f"of the platform ({long}a in the warehouse)"
        assert sorted(copied().values(), key=str) == sorted(
            ([sorted(row.values()) for row in rows] for rows in shop.contents().values()), key=str
        ), night
        shop.change("UPDATE raw.orders SET number = number + 1 WHERE id = 'o1'")
