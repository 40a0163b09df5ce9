"""Pulls that are cut off: whatever the moment, a reader finds the first version or the second, whole."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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

SIZES = {"customers": 80, "orders": 60, "promotions": 12, "price_lists": 6}
HOLDER = """
import sys, duckdb
with duckdb.connect(sys.argv[1], read_only=True) as connection:
    print("open", flush=True)
    for sql in sys.stdin:
        print(connection.execute(sql).fetchall(), flush=True)
"""


@contextmanager
def holder(path: Path) -> Iterator[Callable[[str], str]]:
    """A reader in another process, which keeps the version that it opened. (One process opens a file once.)"""
    arguments = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, answered = process.stdin, process.stdout

        def says(sql: str) -> str:
            asked.write(sql + "\n")
            asked.flush()
            return answered.readline().strip()

        assert answered.readline() == "open\n"
        yield says
        asked.close()


def kill_after(made: Bridge, seconds: float) -> bool:
    """Starts a pull and kills it so long after it began to work. Whether it came to its end before."""
    lock = made.folder / f".{made.path.name}.lock"

    def works() -> bool:
        """Whether the run holds the lock, or has ended already."""
        try:
            return bool(json.loads(lock.read_text())["pid"] == process.pid)
        except (OSError, ValueError):
            return process.poll() is not None

    with start("pull", env=made.environment(), cwd=made.folder) as process:
        wait_for(works)
        time.sleep(seconds)
        process.kill()
        process.communicate(timeout=300)
        return process.returncode == 0


def test_a_killed_pull_leaves_the_first_version_or_the_second(tmp_path: Path) -> None:
    with bridge(tmp_path, **SIZES) as made:
        sql = version_sql(made)
        made.pull()
        first = made.rows(sql)
        kept = shutil.copyfile(made.path, tmp_path / "first.duckdb")
        change_all(made)
        began = time.monotonic()
        made.pull()
        lasts = time.monotonic() - began
        second = made.rows(sql)
        marks = [n for n in range(3 * len(MARKED)) if n % 3]
        assert all(first[0][n] != second[0][n] for n in marks), "each list reports the versions apart"
        shutil.copyfile(kept, made.folder / "back").replace(made.path)
        with holder(made.path) as says, made.path.open("rb") as handle:
            ended = kill_after(made, lasts * 0.6)
            found = made.rows(sql)
            assert found in ((first, second) if not ended else (second,))
            assert made.code() == 0
            assert says(sql) == str(first)
            handle.seek(0)
            assert handle.read() == kept.read_bytes(), "what is open is replaced, and never written to"
            # A kill after the rename leaves the second version: the next pull adds a run, and changes nothing.
            runs = 3 if found == second else 2
            assert made.rows(sql) == [(*second[0][:-3], runs, runs, runs)]
            assert all(same(made.path, made.platform.state, name) for name in RESOURCES)
            assert made.left() == [made.path.name]


def test_a_signal_ends_a_pull_at_once_and_the_next_goes_on(tmp_path: Path) -> None:
    with bridge(tmp_path, page_limit=5, latency_ms=20, **SIZES) as made:
        made.pull()
        before = made.path.read_bytes()
        change_all(made)
        platform, log = made.platform, made.platform.state.log
        asked = len(log)
        with start("pull", env=made.environment(), cwd=made.folder) as process:
            wait_for(lambda: len(log) > asked + 12)
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
        assert made.path.read_bytes() == before
        platform.set_faults({})
        done = made.pull()
        assert done.exit_code == 0
        assert sum(walked.sweeps[0].resumed_pages for walked in done.lists) > 0
        assert all(same(made.path, platform.state, name) for name in RESOURCES)
        assert made.left() == [made.path.name]


def test_a_signal_while_a_pull_is_published_keeps_the_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with bridge(tmp_path, **SIZES) as made:
        with monkeypatch.context() as patch:
            patch.setattr(Publication, "publish", mock.Mock(side_effect=Stopped("")))
            with pytest.raises(Stopped) as caught:
                made.pull()
        assert not was_published(caught.value)
        done = made.pull()
        assert all(sweep.resumed_pages == sweep.pages for walked in done.lists for sweep in walked.sweeps)
        assert made.left() == [made.path.name]


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
        published.pull()
    assert _stopped(caught.value) == 130
    assert capsys.readouterr().err == "stopped; the warehouse was published before\n"
    assert not failure_file(published.path, is_destination=True).exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("Query interrupted")], ids=["signal", "duckdb"])
def test_a_copy_that_a_signal_cut_off_leaves_a_note_until_one_succeeds(
    published: Bridge, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def interrupted(*arguments: object) -> None:
        raise error

    monkeypatch.setenv("WAREHOUSE__DESTINATION", "duckdb")
    monkeypatch.setattr("pipelines.warehouse.run.copy_to_destination", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        published.pull("price_lists")
    assert was_published(caught.value)
    note = read_failure(published.path, is_destination=True)
    assert note is not None
    assert (note["exit_code"], note["published"]) == (130, True)
    assert "interrupted" in note["message"]
    monkeypatch.setattr("pipelines.warehouse.run.copy_to_destination", lambda *_: True)
    published.pull("price_lists")
    assert read_failure(published.path, is_destination=True) is None


class Killed(BaseException):
    """Ends a pull at once; what a killed process would leave is left."""


def test_a_walk_that_a_killed_run_has_not_published_is_not_requested_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bridge(tmp_path, **SIZES) as made:
        made.pull()
        change_all(made)
        with monkeypatch.context() as patch:
            patch.setattr(Build, "clear", lambda self, resumable=None: None)
            patch.setattr(merge, "merge_table", mock.Mock(side_effect=Killed))
            with suppress(Killed):
                made.pull()
        killed_at, log = datetime.now(UTC), made.platform.state.log
        requested = len(log)
        change_all(made)
        done = made.pull()
        assert done.exit_code == 0
        assert {walked.verdict for walked in done.lists} == {"complete"}
        assert {entry.path.rpartition("/")[2] for entry in list(log)[requested:]} == {"whoami"}
        times = made.rows("SELECT started_at, ended_at FROM ops.coverage ORDER BY run_id DESC LIMIT 4")
        assert all(started_at < ended_at < killed_at for started_at, ended_at in times)
        assert not same(made.path, made.platform.state, "customers")
        assert made.left() == [made.path.name]
