"""Two runs on one warehouse: one works, the other leaves at once and says who works."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path

import pytest

from pipelines.warehouse.lock import run_lock
from sources.contract import LISTS
from sources.errors import LockedError
from tests.pipelines.bridge import bridge, start, wait_for

HINT = "make the folder writable"


def test_a_second_pull_leaves_at_once_and_names_the_first_whose_lock_dies_with_it(tmp_path: Path) -> None:
    with bridge(tmp_path) as made:
        made.platform.set_faults({"stall": 1.0})
        with start("run", env=made.environment(), cwd=made.folder) as first:
            wait_for(lambda: made.platform.state.requests == len(LISTS) + 1)  # whoami, and a first page of each
            lies = sorted(path.name for path in made.folder.rglob("*"))
            asked = made.platform.state.requests
            with pytest.raises(LockedError, match=rf"lock: process {first.pid} \(run, since 20") as error:
                made.pull()
            assert error.value.exit_code == 8
            assert (first.poll(), made.platform.state.requests) == (None, asked)
            assert sorted(path.name for path in made.folder.rglob("*")) == lies
            first.kill()
            first.communicate(timeout=300)
        assert (made.folder / f".{made.path.name}.lock").exists()
        made.platform.set_faults({})
        assert made.code() == 0
        assert made.left() == [made.path.name]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "a process that is just starting"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"process 1 (pull, since 2020-01-01T00:00:00)", r"process 1 \(pull, since 2020"),
    ],
)
def test_the_kernels_lock_counts_and_not_what_the_file_says(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "lock"
    path.write_bytes(content)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LockedError, match=words), run_lock(path, "pull", HINT):
            pass
    with run_lock(path, "pull", HINT):
        assert path.read_text().startswith(f"process {os.getpid()} (pull, since 20")
    assert not path.exists()
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
                        most[:] = max(most[0], held[0]), most[1] + 1
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
