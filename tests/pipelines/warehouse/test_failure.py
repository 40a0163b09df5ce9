"""What the morning after is reported of a run that failed."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from pipelines.warehouse.build import open_warehouse
from pipelines.warehouse.destination_errors import destination_errors
from pipelines.warehouse.failure import clear_failure, describe_error, failure_file, read, record_failure
from sources.errors import UsageError
from sources.settings import warehouse_settings

AT = datetime(2026, 1, 2, tzinfo=UTC)
SECRET = "Ana Núñez"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "warehouse.duckdb"
    made.touch()
    return made


def fails(path: Path, command: str = "pull", run_id: str = "R1", error: Exception | None = None) -> None:
    error = error or UsageError("the mapping is not there", "Name one.")
    with pytest.raises(type(error)), record_failure(path, command, AT, run_id):
        raise error


def test_the_note_has_what_failed_and_what_to_do(path: Path) -> None:
    fails(path)
    reported = read(path)
    assert reported is not None
    assert {name: reported[name] for name in ("command", "run_id", "exit_code", "message", "hint", "published")} == {
        "command": "pull",
        "run_id": "R1",
        "exit_code": 2,
        "message": "the mapping is not there",
        "hint": "Name one.",
        "published": False,
    }
    assert stat.S_IMODE(failure_file(path).stat().st_mode) == 0o600


def test_a_view_over_other_files_is_an_error_of_the_warehouse_that_shows_none(tmp_path: Path) -> None:
    warehouse, secret = tmp_path / "w.duckdb", tmp_path / "secret.txt"
    secret.write_text(SECRET)
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("CREATE SCHEMA raw; CREATE MACRO raw.spy(f) AS TABLE FROM read_text(f)")
        connection.execute(f"CREATE VIEW raw.orders AS FROM read_text('{secret}')")
    for query in ("FROM raw.orders", f"FROM raw.spy('{secret}')"):
        with open_warehouse(warehouse) as connection, pytest.raises(duckdb.PermissionException) as caught:
            connection.execute(query)
        code, message, hint = describe_error(caught.value)
        assert (code, "reads other files" in message) == (2, True)
        assert SECRET not in message + hint


def test_a_run_that_did_not_begin_leaves_a_note_next_to_a_warehouse_only(path: Path) -> None:
    fails(path, run_id="")
    assert read(path) is not None
    fails(path.with_name("other.duckdb"), run_id="")
    assert read(path.with_name("other.duckdb")) is None


@pytest.mark.parametrize(
    ("failed", "succeeds", "stays"),
    [
        ("pull", "pull", False),
        ("run", "pull", False),
        ("reconcile", "pull", True),
        ("pull", "run", False),
        ("reconcile", "run", False),
        ("reconcile", "reconcile", False),
        ("pull", "reconcile", True),
        ("run", "reconcile", True),
    ],
)
def test_a_success_removes_the_note_that_it_makes_good(path: Path, failed: str, succeeds: str, stays: bool) -> None:
    fails(path, failed)
    clear_failure(path, succeeds)
    assert (read(path) is not None) is stays


@pytest.mark.parametrize("content", [b'{"exit_', b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b"\xff\xfe"])
def test_a_note_that_cannot_be_read_is_a_failure_until_a_run_succeeds(path: Path, content: bytes) -> None:
    failure_file(path).write_bytes(content)
    assert "cut off" in (read(path) or {})["message"]
    clear_failure(path, "pull")
    assert read(path) is None


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ValueError(SECRET), 1, "internal error in orderbridge: ValueError"),
        (PermissionError(13, "Permission denied", "/srv/a.csv"), 2, "/srv/a.csv cannot be used: Permission denied"),
        (MemoryError(), 2, "out of memory"),
        (RuntimeError("Query of something else"), 1, "internal error in orderbridge: RuntimeError"),
    ],
)
def test_an_error_is_described_without_values_of_rows(path: Path, error: Exception, code: int, words: str) -> None:
    fails(path, error=error)
    note = json.loads(failure_file(path).read_text("utf-8"))
    assert (note["exit_code"], note["message"]) == (code, words)


def test_a_link_in_place_of_the_note_is_not_followed(path: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    failure_file(path).symlink_to(victim)
    fails(path)
    assert victim.read_text() == "theirs"
    assert not failure_file(path).is_symlink()


def test_ctrl_c_while_duckdb_runs_a_query_is_a_keyboard_interrupt_and_no_failure(path: Path) -> None:
    """DuckDB raises this instead of the exception of the signal."""
    with pytest.raises(KeyboardInterrupt), record_failure(path, "pull", AT):
        raise RuntimeError("Query interrupted")
    assert read(path) is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("Query interrupted")])
def test_ctrl_c_during_the_copy_to_the_destination_is_no_failure(path: Path, error: BaseException) -> None:
    note = record_failure(path, "pull", AT, "R1", is_destination=True)
    with pytest.raises(KeyboardInterrupt), note, destination_errors(warehouse_settings()):
        raise error
    assert read(path, is_destination=True) is None
