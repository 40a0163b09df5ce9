"""What a copy sends: the rows of keys whose content changed, compared with the notes of the last copy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from orderbridge.pipelines.warehouse.destination.changes import CopyNotes, TableChanges

TIMES = ["2026-01-01 03:00:00.123456+00", "2026-01-02 03:00:00+00"]


@pytest.fixture
def warehouse() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA raw; CREATE SCHEMA ops; SET TimeZone = 'UTC'")
        connection.execute(
            "CREATE TABLE raw.orders AS SELECT 'o-' || i AS id, i AS total, 'r1' AS _run_id, "
            f"TIMESTAMPTZ '{TIMES[0]}' AS _last_seen_at FROM range(6) t(i)"
        )
        connection.execute(
            "CREATE TABLE raw.orders__lines AS SELECT id AS order_id, p AS position, 'x' AS sku, "
            "_run_id, _last_seen_at FROM raw.orders, range(2) t(p)"
        )
        yield connection


def copied(
    warehouse: duckdb.DuckDBPyConnection, folder: Path, table: str, held: str | None
) -> tuple[TableChanges, str]:
    """What a copy sends of a table where the destination holds the copy `held`, and the id of the new one."""
    notes = CopyNotes(folder / "warehouse.duckdb", folder / "work")
    changes = notes.changes(warehouse, "raw", table, held)
    notes.keep()
    return changes, notes.copy_id


def sent(changes: TableChanges) -> Any:
    """The keys that are sent, those without rows with a minus; "all" where all rows are."""
    if changes.changed is None:
        return "all"
    return sorted(
        ("-" if gone else "") + key
        for key, gone in zip(*changes.changed.to_pydict().values(), strict=True)
    )


SEEN = f"SET _run_id = 'r2', _last_seen_at = '{TIMES[1]}'"


@pytest.mark.parametrize(
    ("table", "change", "expected", "moves"),
    [
        ("orders", "SELECT 1", [], []),
        ("orders", f"UPDATE raw.orders {SEEN}", [], [["r1", TIMES[0], "r2", TIMES[1]]]),
        ("orders", f"UPDATE raw.orders {SEEN} WHERE id <> 'o-5'", ["o-5"], [["r1", TIMES[0], "r2", TIMES[1]]]),
        ("orders", f"UPDATE raw.orders {SEEN} WHERE id = 'o-5'", ["o-5"], []),
        ("orders", f"UPDATE raw.orders {SEEN}, total = 99 WHERE id > 'o-1'", ["o-2", "o-3", "o-4", "o-5"], []),
        ("orders", "UPDATE raw.orders SET total = NULL WHERE id = 'o-5'", ["o-5"], []),
        ("orders", "DELETE FROM raw.orders WHERE id = 'o-5'", ["-o-5"], []),
        ("orders", f"INSERT INTO raw.orders VALUES ('o-9', 9, 'r2', '{TIMES[1]}')", ["o-9"], []),
        ("orders", "ALTER TABLE raw.orders ALTER total TYPE DECIMAL(38, 9)", "all", []),
        ("orders__lines", f"UPDATE raw.orders__lines {SEEN}", [], [["r1", TIMES[0], "r2", TIMES[1]]]),
        ("orders__lines", "DELETE FROM raw.orders__lines WHERE order_id = 'o-5' AND position = 1", ["o-5"], []),
        ("orders__lines", "DELETE FROM raw.orders__lines WHERE order_id = 'o-5'", ["-o-5"], []),
        ("orders__lines", f"UPDATE raw.orders__lines {SEEN} WHERE order_id = 'o-5' AND position = 0", ["o-5"], []),
        ("orders__lines", "UPDATE raw.orders__lines SET order_id = NULL WHERE position = 0", "all", []),
    ],
)  # fmt: skip
def test_rows_of_changed_keys_are_sent_and_stamps_move(
    tmp_path: Path,
    warehouse: duckdb.DuckDBPyConnection,
    table: str,
    change: str,
    expected: Any,
    moves: list[list[str]],
) -> None:
    _, missed = copied(warehouse, tmp_path, table, None)
    changes, held = copied(warehouse, tmp_path, table, "of others")
    assert sent(changes) == "all"
    again = CopyNotes(tmp_path / "warehouse.duckdb", tmp_path / "work")
    assert sent(again.changes(warehouse, "raw", table, missed)) == "all"
    warehouse.execute(change)
    changes, _ = copied(warehouse, tmp_path, table, held)
    assert (sent(changes), changes.moves or []) == (expected, moves)
    if expected != "all":
        rows = changes.rows(warehouse).fetchall()
        present = warehouse.execute(f"FROM raw.{table}").fetchall()
        assert sorted(row[:-1] for row in rows if not row[-1]) == sorted(
            row for row in present if row[0] in expected
        )
        assert [f"-{row[0]}" for row in rows if row[-1]] == [
            key for key in expected if key.startswith("-")
        ]


def test_a_stamp_that_differs_within_a_key_is_content(
    tmp_path: Path, warehouse: duckdb.DuckDBPyConnection
) -> None:
    held = None
    for expected in ("all", ["o-5"], ["o-5"]):
        changes, held = copied(warehouse, tmp_path, "orders__lines", held)
        assert sent(changes) == expected
        warehouse.execute(
            "UPDATE raw.orders__lines SET _run_id = _run_id || '+' WHERE order_id = 'o-5' AND position = 0"
        )
