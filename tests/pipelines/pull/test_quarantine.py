"""The file of quarantined rows: replaced with the build, and about every list until that list is read whole again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.pull.publishing import quarantine_file, staged_quarantine
from sources.decode.rows import InvalidRow, quarantine
from sources.errors import Unreachable
from sources.extract.result import ListResult

ROW = quarantine((2, 7), b'{"id":"\xff"}', InvalidRow("row: not UTF-8"), None)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A warehouse with a quarantined order."""
    path = tmp_path / "w.duckdb"
    with staged_quarantine(path, "run 1", [ListResult("orders", "unproven", quarantined=[ROW])]):
        pass
    return path


def lists_in(warehouse: Path) -> list[str]:
    file = quarantine_file(warehouse)
    return [json.loads(line)["resource"] for line in file.read_bytes().splitlines()] if file.exists() else []


@pytest.mark.parametrize(
    ("read", "left"),
    [
        pytest.param(ListResult("orders", "complete"), [], id="whole"),
        pytest.param(ListResult("orders", "tail"), ["orders"], id="tail"),
        pytest.param(ListResult("orders", "incomplete", error=Unreachable("away")), ["orders"], id="failed"),
        pytest.param(ListResult("customers", "complete"), ["orders"], id="another-list"),
        pytest.param(ListResult("customers", quarantined=[ROW]), ["orders", "customers"], id="more-rows"),
        pytest.param(ListResult("orders", quarantined=[ROW, ROW]), ["orders", "orders"], id="other-rows"),
    ],
)
def test_rows_stay_until_their_list_is_read_whole(warehouse: Path, read: ListResult, left: list[str]) -> None:
    with staged_quarantine(warehouse, "run 2", [read]):
        assert lists_in(warehouse) == ["orders"]
    assert lists_in(warehouse) == left
    assert {path.name for path in warehouse.parent.iterdir()} <= {quarantine_file(warehouse).name}


def test_rows_are_written_before_the_build_is_published_and_stay_staged_if_it_is_not(warehouse: Path) -> None:
    before = quarantine_file(warehouse).read_bytes()

    def fail_to_publish() -> None:
        with staged_quarantine(warehouse, "run 2", [ListResult("customers", quarantined=[ROW])]):
            assert any(b'"run 2"' in path.read_bytes() for path in warehouse.parent.iterdir())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_to_publish()
    assert quarantine_file(warehouse).read_bytes() == before
