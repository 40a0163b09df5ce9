"""Pulls that do not come to their end: what was read is kept, what was published is not denied, nothing is half done.

Long lists are merged while others are still walked. That a reader finds one version whole is judged in tests/crashes.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import wait
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest

from orderbridge.pipelines.cli.main import _stopped
from orderbridge.pipelines.cli.process import KEPT, STOP
from orderbridge.pipelines.pull import publishing, walking
from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.publishing import Publication
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.reporting.status import read_status
from orderbridge.pipelines.warehouse.build import Build
from orderbridge.pipelines.warehouse.failure import failure_file, was_published
from orderbridge.pipelines.warehouse.failure import read as read_failure
from orderbridge.pipelines.warehouse.raw import merge
from orderbridge.pipelines.warehouse.raw.load import load
from orderbridge.sources.errors import PlatformError, RateLimited, Stopped, UsageError
from orderbridge.sources.extract import walk as walks
from orderbridge.sources.extract.page_files import PageFiles
from orderbridge.sources.extract.result import ListResult
from orderbridge.sources.extract.spool import Spool
from tests.pipelines.bridge import Bridge, bridge, start, wait_for
from tests.pipelines.pull.truth import RESOURCES, change_all, same


def test_a_signal_ends_a_pull_at_once_and_the_next_goes_on(tmp_path: Path) -> None:
    with bridge(tmp_path, page_limit=5, latency_ms=20, customers=80, orders=60) as made:
        platform, log = made.platform, made.platform.state.log
        with start("pull", env=made.environment(), cwd=made.folder) as process:
            wait_for(lambda: len(log) > 12)
            platform.set_faults({"stall": 1.0})
            wait_for(lambda: platform.state.requests > len(log))
            time.sleep(0.3)  # by now every thread waits for an answer that does not come
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)  # a second one does no more harm
            out, err = process.communicate(timeout=300)
            lasted = time.monotonic() - began
        assert (process.returncode, lasted < 20, out) == (130, True, "")
        assert (
            err.strip()
            == "stopped; nothing was published, and pages already fetched are kept for the next run"
        )
        assert not made.path.exists()
        assert "stopped by a signal (130)" in failure_file(made.path).read_text("utf-8")
        platform.set_faults({})
        done = made.pull()
        assert done.exit_code == 0
        assert sum(walked.sweeps[0].resumed_pages for walked in done.lists) > 0
        assert all(same(made.path, platform.state, name) for name in RESOURCES)
        assert made.left() == [made.path.name]


class Killed(BaseException):
    """Ends a pull at once; what a killed process would leave is left."""


@pytest.mark.parametrize("error", [Stopped(""), Killed()], ids=["stopped", "killed"])
def test_an_unpublished_walk_of_a_run_that_was_cut_off_is_not_requested_again(
    fresh: Bridge, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    with monkeypatch.context() as patch:
        if isinstance(error, Killed):
            patch.setattr(Build, "clear", lambda self, resumable=None: None)
            patch.setattr(merge, "merge_table", mock.Mock(side_effect=error))
        patch.setattr(Publication, "publish", mock.Mock(side_effect=error))
        with suppress(Killed, Stopped):
            fresh.pull()
        assert not was_published(error)
    cut_off_at, log = datetime.now(UTC), fresh.platform.state.log
    requested = len(log)
    change_all(fresh)
    done = fresh.pull()
    assert done.exit_code == 0
    assert {walked.verdict for walked in done.lists} == {"complete"}
    assert all(
        sweep.resumed_pages == sweep.pages for walked in done.lists for sweep in walked.sweeps
    )
    assert {entry.path.rpartition("/")[2] for entry in list(log)[requested:]} == {"whoami"}
    times = fresh.rows("SELECT started_at, ended_at FROM ops.coverage")
    assert all(started_at < ended_at < cut_off_at for started_at, ended_at in times)
    assert not same(fresh.path, fresh.platform.state, "customers")
    assert fresh.left() == [fresh.path.name]


def test_a_pull_that_a_limit_stopped_goes_on_the_next_night(
    fresh: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform, write = fresh.platform, Spool.write

    def limited(self: Spool, label: str, body: bytes) -> None:
        write(self, label, body)
        if len(platform.state.log) > 4:
            platform.set_faults({"rate_429": 1.0})

    with monkeypatch.context() as patch:
        patch.setattr(Spool, "write", limited)
        with pytest.raises(RateLimited):
            fresh.pull("customers")
    platform.set_faults({})
    night = 24 * 3600.0
    monkeypatch.setattr(
        "orderbridge.sources.extract.spool.time", mock.Mock(time=lambda: time.time() + night)
    )
    done = fresh.pull("customers")
    (walked,) = done.lists
    assert (done.exit_code, walked.verdict) == (0, "complete")
    assert walked.sweeps[0].resumed_pages > 0


def test_a_signal_after_a_pull_has_published_does_not_deny_it(
    published: Bridge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = published.path.stat().st_ino

    def interrupted(*arguments: object) -> None:
        if published.path.stat().st_ino != before:
            raise KeyboardInterrupt

    monkeypatch.setattr("orderbridge.sources.disk.sync", interrupted)
    monkeypatch.setattr(STOP, "note", KEPT)
    with pytest.raises(KeyboardInterrupt) as caught:
        published.pull("price_lists")
    assert _stopped(caught.value) == 130
    assert capsys.readouterr().err == "stopped; the warehouse was published before\n"
    assert not any(
        failure_file(published.path, is_destination=copy).exists() for copy in (True, False)
    )


def test_a_copy_that_fails_or_is_cut_off_leaves_a_note_until_one_succeeds(
    published: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = (KeyboardInterrupt(), PlatformError("interrupted by the server"))
    copy = mock.Mock(side_effect=[*errors, None])
    monkeypatch.setenv("WAREHOUSE__DESTINATION", "duckdb")
    monkeypatch.setattr("orderbridge.pipelines.warehouse.run.copy_to_destination", copy)
    for error, code in zip(errors, (130, 4), strict=True):
        with pytest.raises(type(error)) as caught:
            published.pull("price_lists")
        assert was_published(caught.value)
        note = read_failure(published.path, is_destination=True) or {}
        assert (note["exit_code"], note["published"], "interrupted" in note["message"]) == (
            code,
            True,
            True,
        )
    assert (published.one("SELECT count(*) FROM ops.runs"), read_failure(published.path)) == (
        3,
        None,
    )
    with monkeypatch.context() as without:
        without.delenv("WAREHOUSE__DESTINATION")
        published.pull("price_lists")
    assert read_failure(published.path, is_destination=True) == note
    published.pull("price_lists")
    assert read_failure(published.path, is_destination=True) is None
    status = read_status()
    assert [run["exit_code"] for run in status.runs] == [0, 0, 4, 0, 0]
    assert status.failed_runs == [], "it published"


@pytest.fixture
def patch(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Customers are so many that they are merged while other lists are walked."""
    monkeypatch.setattr(walking, "MERGED_EARLY_ROWS", 35)
    return monkeypatch


def hold_orders(patch: pytest.MonkeyPatch, until: threading.Event) -> None:
    """Lets the walk of the orders begin at a certain point."""
    walk = walks.walk

    def held(resource: str, *arguments: Any) -> ListResult:
        assert resource != "orders" or until.wait(10)
        return walk(resource, *arguments)

    patch.setattr(walking, "walk", held)


def test_a_long_list_is_merged_before_the_last_walk_begins(
    fresh: Bridge, patch: pytest.MonkeyPatch
) -> None:
    loads, customers_are_merged, merge_list = list[list[str]](), threading.Event(), merge.merge_list

    def loaded(lists: Sequence[ListResult], folder: Path) -> None:
        loads.append([walked.resource for walked in lists])
        load(lists, folder)

    def merged(build: duckdb.DuckDBPyConnection, walked: ListResult, run_id: str) -> None:
        merge_list(build, walked, run_id)
        if walked.resource == "customers":
            customers_are_merged.set()

    patch.setattr(publishing, "load", loaded)
    patch.setattr(merge, "merge_list", merged)
    hold_orders(patch, customers_are_merged)
    assert fresh.code() == 0
    assert (len(loads), loads[-1][-1]) == (2, "orders"), "short lists are loaded together"
    assert all(same(fresh.path, fresh.platform.state, name) for name in RESOURCES)


def test_a_disk_that_is_full_while_others_are_walked_ends_the_pull(
    published: Bridge, patch: pytest.MonkeyPatch
) -> None:
    class Stop(threading.Event):
        def set(self) -> None:
            super().set()
            time.sleep(0.05)  # others end before the thread that failed

    before, stop = published.path.read_bytes(), Stop()
    patch.setattr(
        publishing, "load", mock.Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    )
    hold_orders(patch, stop)
    with pytest.raises(UsageError, match="No space left"):
        pull(PullOptions(), stop=stop)
    assert stop.is_set()
    assert published.path.read_bytes() == before


def test_a_signal_during_a_load_leaves_no_thread_and_the_next_pull_publishes(
    published: Bridge, patch: pytest.MonkeyPatch
) -> None:
    is_loading, ended, before = threading.Event(), list[str](), published.path.read_bytes()

    def slow(lists: Sequence[ListResult], folder: Path) -> None:
        is_loading.set()
        time.sleep(0.3)
        load(lists, folder)
        ended.append("load")

    def interrupted(*arguments: Any, **options: Any) -> Any:
        if is_loading.is_set() and not ended:
            raise KeyboardInterrupt
        return wait(*arguments, **options)

    with patch.context() as cut_off:
        cut_off.setattr(publishing, "load", slow)
        cut_off.setattr(walking, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            published.pull()
    assert (ended, published.path.read_bytes()) == (["load"], before)
    assert not Build(published.path).run_folder.exists()
    assert published.pull("price_lists").exit_code == 0


def test_a_pull_that_failed_and_still_decodes_does_not_write_into_the_next(
    fresh: Bridge, patch: pytest.MonkeyPatch
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

    patch.setattr(walking, "END_WAIT_S", 0.01)
    patch.setattr(walking, "walk", stopped)
    patch.setattr(PageFiles, "_decode_batch", decode)
    with pytest.raises(Stopped):
        fresh.pull("customers", "promotions")
    assert fresh.pull("customers").exit_code == 0
    assert same(fresh.path, fresh.platform.state, "customers")
