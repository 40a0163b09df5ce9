"""Two runs on one warehouse: one works, the other leaves at once and says who works."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipelines.warehouse.lock import run_lock
from sources.contract import LISTS
from sources.errors import LockedError
from tests.pipelines.bridge import Bridge, Started, bridge, command, start, wait_for

HINT = "make the folder writable"


def lock_file(made: Bridge) -> Path:
    return made.folder / f".{made.path.name}.lock"


@contextmanager
def stalled_pull(made: Bridge) -> Iterator[Started]:
    """A pull in another process that waits for its first answers; killed at the end."""
    made.platform.set_faults({"stall": 1.0})
    with start("run", env=made.environment(), cwd=made.folder) as process:
        try:
            wait_for(lambda: made.platform.state.requests > 0)
            yield process
        finally:
            process.kill()
            process.communicate(timeout=300)


def test_a_second_pull_leaves_at_once_and_names_the_first(tmp_path: Path) -> None:
    with bridge(tmp_path) as made:
        with stalled_pull(made) as first:
            wait_for(lambda: made.platform.state.requests == len(LISTS) + 1)  # whoami, and a first page of each
            lies = sorted(path.name for path in made.folder.rglob("*"))
            asked = made.platform.state.requests
            second = command("pull", env=made.environment(), cwd=made.folder)
            assert second.code == 8
            assert second.out == ""
            assert f"another run holds the lock: process {first.pid} (run, since 20" in second.err
            assert "Traceback" not in second.err
            began = time.monotonic()
            with pytest.raises(LockedError, match=f"process {first.pid} "):
                made.pull()
            assert time.monotonic() - began < 100  # it does not wait for the first to end
            # The first is not disturbed: nothing of its own is touched, nothing asked, nothing noted as failed.
            assert first.poll() is None
            assert made.platform.state.requests == asked
            assert sorted(path.name for path in made.folder.rglob("*")) == lies
            assert json.loads(lock_file(made).read_text())["pid"] == first.pid
        # That process is dead now, and what it left blocks nobody.
        assert lock_file(made).exists()
        made.platform.set_faults({})
        assert made.code() == 0
        assert made.left() == [made.path.name]


def test_of_two_pulls_at_once_one_publishes(tmp_path: Path) -> None:
    with bridge(tmp_path, latency_ms=200) as made:
        both = [start("pull", env=made.environment(), cwd=made.folder) for _ in range(2)]
        said = {process.pid: process.communicate(timeout=300) for process in both}
        codes = {process.pid: process.returncode for process in both}
        assert sorted(codes.values()) == [0, 8], said
        winner, loser = sorted(codes, key=lambda pid: codes[pid])
        assert f"process {winner}" in said[loser][1]
        assert made.one("SELECT count(*) FROM ops.runs") == 1
        assert made.left() == [made.path.name]
        assert made.code() == 0


def test_a_lock_of_a_process_that_died_blocks_nobody(tmp_path: Path) -> None:
    with bridge(tmp_path) as made:
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        lock_file(made).write_text(json.dumps({"pid": dead.pid, "command": "pull", "since": "2020-01-01T00:00:00"}))
        assert made.code("promotions") == 0
        # Nor does one of a process that lives, and holds nothing.
        lock_file(made).write_text(json.dumps({"pid": os.getpid(), "command": "pull", "since": "2020-01-01T00:00:00"}))
        assert made.code("promotions") == 0
        assert made.left() == [made.path.name]


@pytest.mark.parametrize("reported", [b"", b"{", b"[]", b"{}", b"\xff\xfe"])
def test_a_lock_with_unreadable_content_is_a_lock(tmp_path: Path, reported: bytes) -> None:
    path = tmp_path / "lock"
    path.write_bytes(reported)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LockedError, match="a process that is just starting"), run_lock(path, "pull", HINT):
            pass
    assert path.exists()
    with run_lock(path, "pull", HINT):
        assert json.loads(path.read_text())["pid"] == os.getpid()
    assert not path.exists()


def test_the_lock_goes_whatever_ends_the_block(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with pytest.raises(KeyboardInterrupt), run_lock(path, "pull", HINT):
        raise KeyboardInterrupt
    assert not path.exists()


def test_many_at_once_hold_it_one_at_a_time(tmp_path: Path) -> None:
    path, inside, held, most = tmp_path / "lock", threading.Lock(), [0], [0, 0]

    def work() -> None:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            try:
                with run_lock(path, "pull", HINT):
                    with inside:
                        held[0] += 1
                        most[0] = max(most[0], held[0])
                        most[1] += 1
                    time.sleep(0)
                    with inside:
                        held[0] -= 1
            except LockedError:
                continue

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1
    assert most[1] > 10
