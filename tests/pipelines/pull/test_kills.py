"""Pulls that are cut off: whatever the moment, a reader finds the first version or the second, whole."""

from __future__ import annotations

import shutil
import signal
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pytest

from pipelines.cli.main import _stopped
from pipelines.cli.process import KEPT, STOP
from pipelines.pull.publishing import Publication
from pipelines.warehouse import merge
from pipelines.warehouse.build import Build
from pipelines.warehouse.failure import failure_file, was_published
from pipelines.warehouse.failure import read as read_failure
from sources.errors import Stopped
from tests.pipelines.bridge import Bridge, bridge, start, wait_for
from tests.pipelines.pull.truth import RESOURCES, same
from tests.pipelines.pull.versions import MARKED, change_all, version_sql


def kill_after(made: Bridge, seconds: float) -> bool:
    """Starts a pull and kills it so long after it began to work. Whether it came to its end before."""
    lock = made.folder / f".{made.path.name}.lock"

    def works() -> bool:
        """Whether the run holds the lock, or has ended already."""
        try:
            return lock.read_text().startswith(f"process {process.pid} ")
        except OSError:
            return process.poll() is not None

    with start("pull", env=made.environment(), cwd=made.folder) as process:
        wait_for(works)
        time.sleep(seconds)
        process.kill()
        process.communicate(timeout=300)
        return process.returncode == 0


def test_a_killed_pull_leaves_the_first_version_or_the_second(fresh: Bridge, tmp_path: Path) -> None:
    sql = version_sql(fresh)
    fresh.pull()
    first = fresh.rows(sql)
    kept = shutil.copyfile(fresh.path, tmp_path / "first.duckdb")
    change_all(fresh)
    began = time.monotonic()
    fresh.pull()
    lasts, second = time.monotonic() - began, fresh.rows(sql)
    marks = [n for n in range(3 * len(MARKED)) if n % 3]
    assert all(first[0][n] != second[0][n] for n in marks), "each list reports the versions apart"
    shutil.copyfile(kept, fresh.folder / "back").replace(fresh.path)
    with fresh.path.open("rb") as reader:
        ended = kill_after(fresh, lasts * 0.6)
        seen = fresh.rows(sql)
        assert seen in ((first, second) if not ended else (second,))
        assert fresh.code() == 0
        assert reader.read() == kept.read_bytes(), "what is open is replaced, and never written to"
    # A kill after the rename leaves the second version: the next pull adds a run, and changes nothing.
    runs = 3 if seen == second else 2
    assert fresh.rows(sql) == [(*second[0][:-3], runs, runs, runs)]
    assert all(same(fresh.path, fresh.platform.state, name) for name in RESOURCES)
    assert fresh.left() == [fresh.path.name]


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
        assert err.strip() == "stopped; nothing was published, and pages already fetched are kept for the next run"
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
def test_a_walk_that_a_run_that_was_cut_off_has_not_published_is_not_requested_again(
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
    assert all(sweep.resumed_pages == sweep.pages for walked in done.lists for sweep in walked.sweeps)
    assert {entry.path.rpartition("/")[2] for entry in list(log)[requested:]} == {"whoami"}
    times = fresh.rows("SELECT started_at, ended_at FROM ops.coverage")
    assert all(started_at < ended_at < cut_off_at for started_at, ended_at in times)
    assert not same(fresh.path, fresh.platform.state, "customers")
    assert fresh.left() == [fresh.path.name]


def test_a_signal_after_a_pull_has_published_does_not_deny_it(
    published: Bridge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = published.path.stat().st_ino

    def interrupted(*arguments: object) -> None:
        if published.path.stat().st_ino != before:
            raise KeyboardInterrupt

    monkeypatch.setattr("sources.disk.sync", interrupted)
    monkeypatch.setattr(STOP, "note", KEPT)
    with pytest.raises(KeyboardInterrupt) as caught:
        published.pull("price_lists")
    assert _stopped(caught.value) == 130
    assert capsys.readouterr().err == "stopped; the warehouse was published before\n"
    assert not any(failure_file(published.path, is_destination=copy).exists() for copy in (True, False))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("Query interrupted")], ids=["signal", "duckdb"])
def test_a_copy_that_a_signal_cut_off_leaves_a_note_until_one_succeeds(
    published: Bridge, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setenv("WAREHOUSE__DESTINATION", "duckdb")
    copy = mock.Mock(side_effect=[error, None])
    monkeypatch.setattr("pipelines.warehouse.run.copy_to_destination", copy)
    with pytest.raises(KeyboardInterrupt) as caught:
        published.pull("price_lists")
    assert was_published(caught.value)
    note = read_failure(published.path, is_destination=True)
    assert note is not None
    assert (note["exit_code"], note["published"], "interrupted" in note["message"]) == (130, True, True)
    published.pull("price_lists")
    assert read_failure(published.path, is_destination=True) is None
