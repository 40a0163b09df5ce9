"""The exit code of a pull, and whose spools it resumes: without a platform."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from pipelines.pull import walking
from pipelines.pull.model import PullResult
from pipelines.pull.targets import Targets
from pipelines.pull.walking import ListWalks
from pipelines.warehouse.build import Build
from sources.decode.rows import QuarantinedRow
from sources.errors import ContractBroken, ExitCode
from sources.extract.result import ListResult, no_progress
from sources.extract.spool import SpoolFolder
from sources.settings import LegacySettings, Secret


def quarantined() -> ListResult:
    return ListResult("customers", quarantined=[QuarantinedRow(1, 1, "row: not JSON", "hash", b"x", None)])


def test_a_list_that_was_held_back_is_7_whatever_was_quarantined() -> None:
    result = PullResult("run", Path(), [quarantined(), ListResult("promotions")], published=True)
    assert result.exit_code == ExitCode.REJECTED
    result.held_back["promotions"] = "promotions: the list is empty, and 9 records are known"
    assert result.exit_code == ExitCode.COVERAGE
    result.held_back["customers"] = "customers: 9 of 10 known records are not in the list any more"
    assert result.exit_code == ExitCode.COVERAGE
    result.lists.append(ListResult("orders", error=ContractBroken("broken")))
    assert result.exit_code == ExitCode.PLATFORM


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
def test_a_spool_of_another_source_is_not_resumed(tmp_path: Path, changed: dict[str, object], is_resumed: bool) -> None:
    found: list[bool] = []

    def walk(name: str, client: object, folder: Path, spools: SpoolFolder, *_: object) -> ListResult:
        pages = spools.folder / "sweep-1.pages"
        found.append(pages.exists())
        pages.write_bytes(b"pages of the first walk")
        return ListResult(name)

    build = Build(tmp_path / "w.duckdb")
    for settings in (SETTINGS, replace(SETTINGS, **changed)):  # type: ignore[arg-type] # of their fields
        with mock.patch.object(walking, "walk", walk):
            ListWalks(Targets(settings), build, 1, no_progress, threading.Event()).run(["customers"], mock.Mock())
    assert found == [False, is_resumed]
    with mock.patch.object(walking, "walk", walk):
        walks = ListWalks(Targets(settings), build, 1, no_progress, threading.Event(), refreshed=["customers"])
        walks.run(["customers"], mock.Mock())
    assert found.pop() is False, "a list that is refreshed"


def test_a_pull_does_not_import_pandas() -> None:
    """It takes half a second and 40 MB, and is needed by reconcile and plan only."""
    code = "import sys, pipelines.pull.pull, pipelines.cli.pull; print('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
