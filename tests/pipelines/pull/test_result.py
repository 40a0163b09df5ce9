"""What a pull ends with and keeps, without a platform: its exit code, its spools, the file of quarantined rows."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from pipelines.pull import walking
from pipelines.pull.model import PullResult
from pipelines.pull.publishing import quarantine_file, staged_quarantine
from pipelines.pull.targets import Targets
from pipelines.pull.walking import ListWalks
from pipelines.warehouse.build import Build
from sources.decode.rows import InvalidRow, quarantine
from sources.errors import AccessError, ContractBroken, ExitCode, Unreachable
from sources.extract.result import ListResult, no_progress
from sources.extract.spool import SpoolFolder
from sources.settings import LegacySettings, Secret

ROW = quarantine((2, 7), b'{"id":"\xff"}', InvalidRow("row: not UTF-8"), None)


def test_a_list_that_was_held_back_is_7_whatever_was_quarantined() -> None:
    lists = [ListResult("customers", quarantined=[ROW]), ListResult("promotions")]
    result = PullResult("run", Path(), lists, published=True)
    assert result.exit_code == ExitCode.REJECTED
    result.step_code = ExitCode.FINDINGS
    assert result.exit_code == ExitCode.FINDINGS
    result.held_back["promotions"] = "promotions: the list is empty, and 9 records are known"
    assert result.exit_code == ExitCode.COVERAGE
    result.lists.append(ListResult("orders", error=ContractBroken("broken")))
    assert result.exit_code == ExitCode.PLATFORM
    result.lists.append(ListResult("customers", error=AccessError("no")))
    assert result.exit_code == ExitCode.ACCESS, "a key that is refused, after a list that failed for another reason"
    assert PullResult("run", Path(), [], step_code=ExitCode.REJECTED).exit_code == ExitCode.REJECTED


SETTINGS = LegacySettings(
    base_url="https://one.example", api_key=Secret("key-one"), environment="sandbox", page_limit=100
)


@pytest.mark.parametrize(
    ("changed", "is_resumed"),
    [
        ({}, True),
        ({"base_url": "https://two.example"}, False),
        ({"api_key": Secret("key-two")}, False),
        ({"environment": "production"}, False),
        ({"page_limit": 50}, False),
    ],
    ids=["the same", "host", "key", "environment", "page size"],
)
def test_a_spool_of_another_source_is_not_resumed(tmp_path: Path, changed: dict[str, Any], is_resumed: bool) -> None:
    found: list[bool] = []

    def walk(name: str, client: object, folder: Path, spools: SpoolFolder, *_: object) -> ListResult:
        pages = spools.folder / "sweep-1.pages"
        found.append(pages.exists())
        pages.write_bytes(b"pages of the first walk")
        spools.finish()
        return ListResult(name)

    def walked(settings: LegacySettings, refreshed: list[str]) -> bool:
        build = Build(tmp_path / "w.duckdb")
        walks = ListWalks(Targets(settings), build, 1, no_progress, threading.Event(), refreshed=refreshed)
        with mock.patch.object(walking, "walk", walk):
            walks.run(["customers"], mock.Mock())
        return found.pop()

    assert walked(SETTINGS, []) is False
    assert walked(replace(SETTINGS, **changed), []) is is_resumed
    assert walked(replace(SETTINGS, **changed), ["customers"]) is False, "a list that is refreshed"
    (tmp_path / "w.duckdb").touch()
    os.utime(tmp_path / "w.duckdb", (time.time() + 1,) * 2)
    assert walked(replace(SETTINGS, **changed), []) is False, "pages of before the last publication"


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
def test_rows_stay_until_their_list_is_read_whole_and_that_is_published(
    warehouse: Path, read: ListResult, left: list[str]
) -> None:
    before = quarantine_file(warehouse).read_bytes()
    with pytest.raises(ZeroDivisionError), staged_quarantine(warehouse, "run 2", [read]):
        raise ZeroDivisionError
    assert quarantine_file(warehouse).read_bytes() == before
    with staged_quarantine(warehouse, "run 2", [read]):
        assert lists_in(warehouse) == ["orders"]
        staged = [b'"run 2"' in path.read_bytes() for path in warehouse.parent.iterdir()]
        assert any(staged) == bool(read.quarantined), "written before the build is published"
    assert lists_in(warehouse) == left
    assert {path.name for path in warehouse.parent.iterdir()} <= {quarantine_file(warehouse).name}
