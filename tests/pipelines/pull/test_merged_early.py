"""Long lists are merged while others are still walked."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.pull import publishing, walking
from pipelines.pull.model import PullOptions
from pipelines.pull.pull import pull
from pipelines.warehouse import merge
from pipelines.warehouse.build import Build
from pipelines.warehouse.load import load
from sources.errors import Stopped, UsageError
from sources.extract import walk as walks
from sources.extract.page_files import PageFiles
from sources.extract.result import ListResult
from tests.pipelines.bridge import Bridge
from tests.pipelines.pull.truth import RESOURCES, same


@pytest.fixture(autouse=True)
def _customers_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "MERGED_EARLY_ROWS", 35)


def hold_orders(monkeypatch: pytest.MonkeyPatch, until: threading.Event) -> None:
    """Lets the walk of the orders begin at a certain point."""
    walk = walks.walk

    def held(resource: str, *arguments: Any) -> ListResult:
        assert resource != "orders" or until.wait(10)
        return walk(resource, *arguments)

    monkeypatch.setattr(walking, "walk", held)


def test_a_long_list_is_merged_before_the_last_walk_begins(fresh: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[list[str]] = []
    customers_are_merged = threading.Event()
    merge_list = merge.merge_list

    def loaded(lists: Sequence[ListResult], folder: Path) -> None:
        loads.append([walked.resource for walked in lists])
        load(lists, folder)

    def merged(build: duckdb.DuckDBPyConnection, walked: ListResult, run_id: str) -> None:
        merge_list(build, walked, run_id)
        if walked.resource == "customers":
            customers_are_merged.set()

    monkeypatch.setattr(publishing, "load", loaded)
    monkeypatch.setattr(merge, "merge_list", merged)
    hold_orders(monkeypatch, customers_are_merged)
    first = fresh.pull()
    assert first.exit_code == 0
    assert len(loads) == 2, "short lists are loaded together"
    assert loads[-1][-1] == "orders"
    assert all(same(fresh.path, fresh.platform.state, name) for name in RESOURCES)
    changed, removed, *_ = fresh.platform.state.ids("customers")
    fresh.platform.state.change("customers", changed, {"firstName": "Otra"})
    fresh.platform.state.remove("customers", removed)
    counts = fresh.pull().changes["customers"]
    assert (counts.new, counts.changed, counts.newly_missing) == (0, 1, 1)
    sql = "SELECT count(*) FROM raw.customers c JOIN ops.last_read r ON r.resource = 'customers' WHERE {}"
    assert fresh.one(sql.format("_last_seen_at = r.ended_at")) == counts.known - 1
    assert fresh.one(sql.format("_missing_since = r.ended_at")) == 1


def test_a_pull_that_is_stopped_while_it_waits_for_whoami_loads_nothing(
    published: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, loads = threading.Event(), list[object]()
    monkeypatch.setattr(walking, "_result", lambda *_: stop.set())
    monkeypatch.setattr(publishing, "load", lambda *arguments: loads.append(arguments))
    with pytest.raises(Stopped):
        pull(PullOptions(resources=("customers",)), stop=stop)
    assert loads == []


def test_a_disk_that_is_full_while_others_are_walked_ends_the_pull(
    published: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = published.path.read_bytes()

    def failing(lists: Sequence[ListResult], folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    class Stop(threading.Event):
        def set(self) -> None:
            super().set()
            time.sleep(0.05)  # others end before the thread that failed

    monkeypatch.setattr(publishing, "load", failing)
    stop = Stop()
    hold_orders(monkeypatch, stop)
    with pytest.raises(UsageError, match="No space left"):
        pull(PullOptions(), stop=stop)
    assert stop.is_set()
    assert published.path.read_bytes() == before


def test_a_signal_while_a_list_is_loaded_leaves_no_thread_and_the_next_pull_publishes(
    published: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_loading, ended, before = threading.Event(), list[str](), published.path.read_bytes()
    signals = [KeyboardInterrupt()]

    def slow(lists: Sequence[ListResult], folder: Path) -> None:
        is_loading.set()
        time.sleep(0.3)
        load(lists, folder)
        ended.append("load")

    def interrupted(*arguments: Any, **options: Any) -> Any:
        if is_loading.is_set() and signals:
            raise signals.pop()
        return wait(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "load", slow)
        patch.setattr(walking, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            published.pull()
    assert ended == ["load"]
    assert published.path.read_bytes() == before
    assert not Build(published.path).run_folder.exists()
    assert published.pull("price_lists").exit_code == 0


def test_a_pull_that_failed_and_still_decodes_does_not_write_into_the_next(
    fresh: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_held, next_decodes, has_ended = threading.Event(), threading.Event(), threading.Event()
    decode_batch, walk = PageFiles._decode_batch, walks.walk

    def decode(self: PageFiles, batch: Any) -> None:
        if is_held.is_set():
            next_decodes.set()
            decode_batch(self, batch)
            assert has_ended.wait(10)
            return
        is_held.set()
        assert next_decodes.wait(10)
        try:
            decode_batch(self, batch)
        finally:
            has_ended.set()

    def stopped(resource: str, *arguments: Any) -> ListResult:
        if resource == "customers":
            return walk(resource, *arguments)
        assert is_held.wait(10)
        raise Stopped("stopped")

    monkeypatch.setattr(walking, "END_WAIT_S", 0.01)
    monkeypatch.setattr(walking, "walk", stopped)
    monkeypatch.setattr(PageFiles, "_decode_batch", decode)
    with pytest.raises(Stopped):
        fresh.pull("customers", "promotions")
    assert fresh.pull("customers").exit_code == 0
    assert same(fresh.path, fresh.platform.state, "customers")
