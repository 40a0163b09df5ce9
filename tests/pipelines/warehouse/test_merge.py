"""Lists that are merged at the same time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import duckdb
import pytest

from pipelines.warehouse import merge
from sources.extract.result import ListResult

AT = datetime(2026, 1, 1, tzinfo=UTC)


def lists(rows: int) -> list[ListResult]:
    results = [ListResult("customers"), ListResult("orders")]
    for result in results:
        result.distinct = rows
    return results


def run_until_interrupted(build: duckdb.DuckDBPyConnection, ended: list[type[BaseException]]) -> None:
    """A query that would take hours; notes how it ended."""
    try:
        build.execute("SELECT count(*) FROM range(1_000_000_000) a, range(1_000) b WHERE a.range * b.range = 7")
    except duckdb.Error as error:
        ended.append(type(error))
        raise


def test_issue_16_1_lists_are_merged_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=5)
    monkeypatch.setattr(merge, "merge", lambda *_: both.wait())
    with duckdb.connect() as build:
        merge.merge_all(build, lists(500_000), "run", AT)


def test_long_lists_are_merged_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    merging = threading.Lock()
    merged = []

    def alone(_: duckdb.DuckDBPyConnection, walked: ListResult, *__: object) -> None:
        assert merging.acquire(blocking=False)
        time.sleep(0.02)
        merging.release()
        merged.append(walked.resource)

    monkeypatch.setattr(merge, "merge", alone)
    with duckdb.connect() as build:
        merge.merge_all(build, lists(500_001), "run", AT)
        merge.merge_all(build, [], "run", AT)
    assert merged == ["customers", "orders"]


def test_a_merge_that_fails_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[type[BaseException]] = []
    is_running = threading.Event()

    def fails(build: duckdb.DuckDBPyConnection, walked: ListResult, *_: object) -> None:
        if walked.resource == "customers":
            assert is_running.wait(5)
            raise duckdb.IOException("the disk is full")
        is_running.set()
        run_until_interrupted(build, ended)

    monkeypatch.setattr(merge, "merge", fails)
    with duckdb.connect() as build, pytest.raises(duckdb.IOException, match="the disk is full"):
        merge.merge_all(build, lists(1), "run", AT)
    assert ended == [duckdb.InterruptException]


def test_a_signal_while_the_first_merge_begins_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[type[BaseException]] = []
    is_running = threading.Event()

    class Interrupted(ThreadPoolExecutor):
        def submit(self, *arguments: Any, **_: Any) -> Any:
            super().submit(*arguments)
            assert is_running.wait(5)
            self._threads.clear()  # type: ignore[attr-defined] # interrupted before the pool knows its thread
            raise KeyboardInterrupt

    def runs(build: duckdb.DuckDBPyConnection, *_: object) -> None:
        is_running.set()
        run_until_interrupted(build, ended)

    monkeypatch.setattr(merge, "ThreadPoolExecutor", Interrupted)
    monkeypatch.setattr(merge, "merge", runs)
    with duckdb.connect() as build, pytest.raises(KeyboardInterrupt):
        merge.merge_all(build, lists(1), "run", AT)
    assert ended == [duckdb.InterruptException]


def test_after_a_merge_that_fails_none_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    merged = []

    def fails(_: duckdb.DuckDBPyConnection, walked: ListResult, *__: object) -> None:
        merged.append(walked.resource)
        time.sleep(0.02)
        raise duckdb.IOException("the disk is full")

    monkeypatch.setattr(merge, "merge", fails)
    with duckdb.connect() as build, pytest.raises(duckdb.IOException, match="the disk is full"):
        merge.merge_all(build, [*lists(500_001), ListResult("promotions")], "run", AT)
    assert merged[0] == "customers"
    assert "promotions" not in merged


def test_lists_that_run_out_of_memory_together_are_merged_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    merged: list[tuple[str, bool]] = []

    def runs_out(_: duckdb.DuckDBPyConnection, walked: ListResult, *__: object) -> None:
        is_alone = threading.current_thread() is threading.main_thread()
        merged.append((walked.resource, is_alone))
        if walked.resource == "customers" and not is_alone:
            raise duckdb.OutOfMemoryException("no memory")

    monkeypatch.setattr(merge, "merge", runs_out)
    with duckdb.connect() as build:
        merge.merge_all(build, lists(1), "run", AT)
        assert sorted(merged) == [("customers", False), ("customers", True), ("orders", False)]
        with pytest.raises(duckdb.OutOfMemoryException):
            merge.merge_all(build, lists(500_001), "run", AT)
