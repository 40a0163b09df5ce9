"""Two runs on one warehouse: one works, the other leaves at once and says who works."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from pathlib import Path

import pytest

from pipelines.warehouse.lock import run_lock
from sources.contract import LISTS
from sources.errors import LockedError
from tests.pipelines.bridge import Bridge, bridge, start, wait_for

HINT = "make the folder writable"


def lock_file(made: Bridge) -> Path:
    return made.folder / f".{made.path.name}.lock"


def test_a_second_pull_leaves_at_once_and_names_the_first(tmp_path: Path) -> None:
    with bridge(tmp_path) as made:
        made.platform.set_faults({"stall": 1.0})
        with start("run", env=made.environment(), cwd=made.folder) as first:
            wait_for(lambda: made.platform.state.requests == len(LISTS) + 1)  # whoami, and a first page of each
            lies = sorted(path.name for path in made.folder.rglob("*"))
            asked = made.platform.state.requests
            with pytest.raises(LockedError, match=rf"lock: process {first.pid} \(run, since 20") as error:
                made.pull()
            assert error.value.exit_code == 8
            # The first is not disturbed: nothing of its own is touched, nothing asked, nothing noted as failed.
            assert first.poll() is None
            assert made.platform.state.requests == asked
            assert sorted(path.name for path in made.folder.rglob("*")) == lies
            first.kill()
            first.communicate(timeout=300)
        assert lock_file(made).exists(), "of a process that is dead: it blocks nobody"
        made.platform.set_faults({})
        assert made.code() == 0
        assert made.left() == [made.path.name]


def test_a_lock_of_a_process_that_lives_and_holds_nothing_blocks_nobody(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text(json.dumps({"pid": os.getpid(), "command": "pull", "since": "2020-01-01T00:00:00"}))
    with run_lock(path, "pull", HINT):
        assert json.loads(path.read_text())["since"] > "2026"
    assert not path.exists()


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
