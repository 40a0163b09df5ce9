"""What the morning after is reported of a run that failed."""

from __future__ import annotations

import stat
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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


def noted(path: Path, error: Exception, command: str = "pull", run_id: str = "R1") -> dict[str, Any] | None:
    with pytest.raises(type(error)), record_failure(path, command, AT, run_id):
        raise error
    return read(path)


def test_the_note_has_what_failed_is_private_and_follows_no_link(path: Path, tmp_path: Path) -> None:
    victim, file = tmp_path / "victim", failure_file(path)
    victim.write_text("theirs")
    file.symlink_to(victim)
    note = noted(path, UsageError("the mapping is not there", "Name one.")) or {}
    facts = {"command": "pull", "run_id": "R1", "exit_code": 2, "published": False}
    assert note.items() >= {**facts, "message": "the mapping is not there", "hint": "Name one."}.items()
    assert stat.S_IMODE(file.lstat().st_mode) == 0o600
    assert victim.read_text() == "theirs"


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
    note = noted(path, error) or {}
    assert (note["exit_code"], note["message"]) == (code, words)


def test_a_view_over_other_files_is_an_error_of_the_warehouse_that_shows_none(tmp_path: Path) -> None:
    warehouse, secret = tmp_path / "w.duckdb", tmp_path / "secret.txt"
    secret.write_text(SECRET)
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute(f"CREATE SCHEMA raw; CREATE VIEW raw.orders AS FROM read_text('{secret}')")
    with open_warehouse(warehouse) as connection, pytest.raises(duckdb.PermissionException) as caught:
        connection.execute("FROM raw.orders")
    code, message, hint = describe_error(caught.value)
    assert (code, "reads other files" in message, SECRET in message + hint) == (2, True, False)


def test_a_run_that_did_not_begin_leaves_a_note_next_to_a_warehouse_only(path: Path) -> None:
    for place, is_noted in ((path, True), (path.with_name("other.duckdb"), False)):
        assert (noted(place, UsageError("no"), run_id="") is not None) is is_noted


@pytest.mark.parametrize(
    ("failed", "succeeds", "stays"),
    [
        ("pull", "pull", False), ("run", "pull", False), ("reconcile", "pull", True), ("pull", "run", False),
        ("reconcile", "run", False), ("reconcile", "reconcile", False), ("pull", "reconcile", True),
        ("run", "reconcile", True),
    ],
)  # fmt: skip
def test_a_success_removes_the_note_that_it_makes_good(path: Path, failed: str, succeeds: str, stays: bool) -> None:
    noted(path, UsageError("no"), failed)
    clear_failure(path, succeeds)
    assert (read(path) is not None) is stays


@pytest.mark.parametrize("content", [b'{"exit_', b"[" * 100_000, b"9" * 5000, b"\xff\xfe"])
def test_a_note_that_cannot_be_read_is_a_failure_until_a_run_succeeds(path: Path, content: bytes) -> None:
    failure_file(path).write_bytes(content)
    assert "cut off" in (read(path) or {})["message"]
    clear_failure(path, "pull")
    assert read(path) is None


@pytest.mark.parametrize("is_destination", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("Query interrupted")])  # DuckDB's of a signal
def test_a_signal_is_no_failure(path: Path, error: BaseException, is_destination: bool) -> None:
    copying = destination_errors(warehouse_settings()) if is_destination else nullcontext()
    note = record_failure(path, "pull", AT, "R1", is_destination=is_destination)
    with pytest.raises(KeyboardInterrupt), note, copying:
        raise error
    assert read(path, is_destination=is_destination) is None
