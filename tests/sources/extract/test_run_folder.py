"""Folders of walks in a pipeline's working folder: removed with their run, taken over after a kill."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sources.extract.spool import RunFolder


def killed(parent: Path, name: str, text: str = "page") -> Path:
    """The folder of a run that was killed: its lock ended with it."""
    folder = RunFolder(parent, name)
    folder.spool.mkdir()
    (folder.spool / "sweep-1.pages").write_text(text)
    (folder.path / "rows.parquet").write_text("rows")
    folder.leave()
    return folder.path


def names(parent: Path) -> list[str]:
    return sorted(path.name.rpartition("-")[0] for path in parent.iterdir())


def test_a_folder_is_removed_with_its_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "new", "orders")
    (folder.path / "rows.parquet").write_text("rows")
    assert names(tmp_path / "new") == ["orders"]
    assert folder.path.stat().st_mode & 0o077 == 0
    del folder
    assert names(tmp_path / "new") == []


def test_the_next_run_of_a_list_takes_over_the_pages_of_a_killed_one_and_removes_its_rows(tmp_path: Path) -> None:
    left = killed(tmp_path, "orders")
    other = killed(tmp_path, "customers")
    folder = RunFolder(tmp_path, "orders")
    assert (folder.spool / "sweep-1.pages").read_text() == "page"
    assert not left.exists()
    assert not (folder.path / "rows.parquet").exists()
    assert other.exists(), "its own list may go on with them"


def test_what_is_out_of_date_is_removed_by_the_run_of_any_list(tmp_path: Path) -> None:
    left = killed(tmp_path, "customers")
    for path in (left, *left.rglob("*")):
        os.utime(path, (0, 0))
    folder = RunFolder(tmp_path, "orders")
    assert not left.exists()
    assert not folder.spool.exists()


def test_the_folder_of_a_run_that_goes_on_is_left_alone(tmp_path: Path) -> None:
    running = RunFolder(tmp_path, "orders")
    running.spool.mkdir()
    later = RunFolder(tmp_path, "orders")
    assert running.spool.exists()
    assert not later.spool.exists()


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_lists_that_are_read_at_the_same_time_come_and_go_beside_each_other(tmp_path: Path) -> None:
    def come_and_go(name: str) -> int:
        return sum(bool(RunFolder(tmp_path, name)) for _ in range(50))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(come_and_go, "abcd")) == [50] * 4
    finally:
        sys.setswitchinterval(interval)
