"""However the process was started, and whatever becomes of its output, its exit code says what was done."""

from __future__ import annotations

import os
import pty
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from unittest import mock

import click
import duckdb
import pytest
from click.testing import CliRunner

from orderbridge.pipelines.cli import main as cli
from orderbridge.pipelines.cli.process import STOP, Stop
from orderbridge.pipelines.warehouse.build import warehouse_errors
from orderbridge.sources.errors import Stopped, UsageError
from tests.pipelines.bridge import Bridge, command, start, within_memory
from tests.pipelines.push.plans import customer, place

CHECKOUT = Path(__file__).parents[3]
STREAMS = ("stdin", "stdout", "stderr")


def close(*numbers: int) -> None:
    """Closed by the parent process: Python has no stream then."""
    for number in numbers:
        os.close(number)
        setattr(sys, STREAMS[number], None)


def fill(*numbers: int) -> None:
    """A disk without room takes the streams."""
    for number in numbers:
        os.dup2(os.open("/dev/full", os.O_WRONLY), number)


def ascii_output() -> None:
    sys.stdout = open(1, "w", encoding="ascii", closefd=False)  # noqa: SIM115 # for the process


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full")
def test_output_that_finds_no_room_ends_a_command_with_2(shop: Bridge) -> None:
    lost = "orderbridge: stdout could not be written: No space left on device\n"
    for line, full, err in (
        ("status", (1,), lost),
        ("pull nothing", (2,), ""),
        ("status", (1, 2), ""),
    ):
        done = command(
            *line.split(), env=shop.environment(), cwd=shop.folder, preexec_fn=partial(fill, *full)
        )
        assert (done.code, done.err) == (2, err)


def test_characters_that_the_output_cannot_hold_are_escaped(shop: Bridge, tmp_path: Path) -> None:
    (tmp_path / "año.csv").write_text("código;año\nÑ;1\n", encoding="utf-8")
    done = command(
        "preview", "año.csv", env=shop.environment(), cwd=tmp_path, preexec_fn=ascii_output
    )
    assert (done.code, "c\\xf3digo" in done.out) == (0, True)


def test_a_command_writes_no_core_file_with_keys_and_starts_no_threads_of_numpy() -> None:
    with mock.patch("resource.setrlimit") as limit, mock.patch.dict(os.environ, {}, clear=True):
        CliRunner().invoke(cli.orderbridge, ["template", "customers"])
        assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    limit.assert_called_once_with(resource.RLIMIT_CORE, (0, 0))


def slow() -> None:
    """A command that is in a query of DuckDB when the signal comes."""
    STOP.listen()
    duckdb.execute("SET threads = 1")  # a second thread would be waited for to its end
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    duckdb.execute("SELECT sum(hash(range)) FROM range(1000000000000)").fetchall()


def add_slow() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under `nohup`
    cli.orderbridge.commands = {"slow": click.Command("slow", callback=slow)}


def test_a_signal_while_the_database_is_at_work_is_no_bug(tmp_path: Path, shop: Bridge) -> None:
    with start("slow", env=shop.environment(), cwd=tmp_path, preexec_fn=add_slow) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)  # it is in the query
        process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=300)[1] == "stopped\n"
    assert process.returncode == 143


def test_a_warehouse_that_cannot_take_the_push_log_hides_nothing_of_the_outcome(
    tmp_path: Path,
) -> None:
    with place(tmp_path, faults={"lost_answer": 1.0}) as at:
        plan = at.plan([customer(1)])
        at.folder.joinpath("warehouse.duckdb").write_bytes(b"no database")
        done = command("push", str(plan), "--yes", env=at.environment(), cwd=at.folder)
        wrong = {**at.environment(), "SOURCES__LEGACY__API_KEY": "wrong"}
        failed = command("push", str(plan), "--yes", env=wrong, cwd=at.folder)
    assert (failed.code, "ops.push_log was not updated" in failed.err) == (2, True), failed.err
    assert done.code == 6
    assert "ops.push_log was not updated; the next pull does it" in done.err
    assert "outcome unknown" in done.out


def test_a_signal_that_comes_while_its_thread_begins_to_wait_for_it_ends_the_wait() -> None:
    stop = Stop()
    waiting = threading.Thread(target=stop.event.wait, args=(60,), daemon=True)
    interrupted = mock.patch.object(
        stop.event._cond, "wait", side_effect=lambda _: stop._stop(signal.SIGTERM, None)
    )
    with stop.gently(), interrupted:
        waiting.start()
        waiting.join(10)
    assert (waiting.is_alive(), stop.event.is_set()) == (False, True)


def test_an_error_of_no_command_is_named_and_a_bug_reported_without_values(tmp_path: Path) -> None:
    bug = KeyError("planted")
    bug.__cause__ = TypeError("planted too")
    for error, code, words in (
        (MemoryError(), 2, ("orderbridge: not enough memory",)),
        (RuntimeError("can't start new thread"), 2, ("orderbridge: not enough memory",)),
        (bug, 1, ("internal error in orderbridge. Please report these lines", "builtins.KeyError\n  main.py:",
                  "builtins.TypeError")),
    ):  # fmt: skip
        with mock.patch.object(cli, "_invoke", side_effect=error):
            done = command(env={}, cwd=tmp_path)
        assert (done.code, done.err.startswith(words[0])) == (code, True)
        assert all(word in done.err for word in words)
        assert "planted" not in done.err
    stopped = mock.patch.object(cli, "_invoke", side_effect=Stopped("stopped"))
    with stopped, mock.patch.object(STOP, "signal", signal.SIGTERM):
        assert command(env={}, cwd=tmp_path).code == 143
    with pytest.raises(UsageError, match="not enough memory"), warehouse_errors(tmp_path):
        raise duckdb.OutOfMemoryException("a value of a row")
    with mock.patch.object(
        Path, "cwd", side_effect=[Path("/"), FileNotFoundError(2, "No such file or directory")]
    ):
        done = command("status", env={}, cwd=tmp_path)
    assert (done.code, done.err.splitlines()[0]) == (
        2,
        "orderbridge: the current folder: No such file or directory",
    )


def test_too_little_address_space_is_named_before_a_library_ends_the_process(
    tmp_path: Path,
) -> None:
    python = within_memory(300, sys.executable, "-m", "orderbridge.pipelines.cli", "status")
    done = subprocess.run(python, cwd=tmp_path, capture_output=True, text=True, check=False)
    words = (
        "orderbridge: not enough memory: this process may use 300 MB (ulimit -v), and needs 600 MB"
    )
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, words)


def test_a_limit_of_address_space_is_not_used_up_by_what_threads_and_arrow_reserve(
    tmp_path: Path,
) -> None:
    program = """
from orderbridge.pipelines.cli.process import _check_memory
_check_memory()
import re, threading
from pathlib import Path
import pyarrow
columns = [pyarrow.array([1])]
together = threading.Barrier(8)
def work():
    buffer = bytearray(5000)
    together.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(int(re.search(r"VmPeak:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) >> 10)
"""
    python = within_memory(1800, sys.executable, "-c", program)
    done = subprocess.run(python, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 600, "MB"


def test_settings_that_others_can_write_end_every_command_with_2(
    tmp_path: Path, nobody: dict[str, str]
) -> None:
    (tmp_path / ".dlt").mkdir()
    (tmp_path / ".dlt").chmod(0o777)
    for name in ("check", "pull"):
        done = command(name, env=nobody, cwd=tmp_path)
        assert (done.code, "can be written by other users" in done.err) == (2, True), done.said


def test_check_names_a_host_that_refuses_at_once_and_reads_the_other_family(shop: Bridge) -> None:
    refused = shop.command("check", SOURCES__LEGACY__BASE_URL="http://127.0.0.1:1")
    assert (refused.code, "attempts" in refused.out, "first page of customers" in refused.out) == (
        4,
        False,
        False,
    )
    for words in ("wrong host of the legacy API", "cannot connect to 127.0.0.1:1: connection refused",
                  "ok    first page of orders"):  # fmt: skip
        assert words in refused.out


def test_closed_descriptors_are_no_matter(shop: Bridge) -> None:
    done = command(
        "pull",
        "promotions",
        env=shop.environment(),
        cwd=shop.folder,
        preexec_fn=partial(close, 0, 1, 2),
    )
    assert (done.code, done.err) == (0, "")
    assert shop.one("SELECT count(*) FROM raw.promotions") == 9


def test_without_a_buffer_a_question_is_shown_before_it_is_asked(tmp_path: Path) -> None:
    """A container sets PYTHONUNBUFFERED."""
    (tmp_path / ".dlt").mkdir(mode=0o700)
    environment = {"PYTHONUNBUFFERED": "1", "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    terminal, end = pty.openpty()
    shown = b""
    process = subprocess.Popen(
        [sys.executable, "-m", "orderbridge.pipelines.cli", "answer", "reconcile.timezone"],
        cwd=tmp_path,
        env=environment | {"WAREHOUSE__PATH": str(tmp_path / "w.duckdb")},
        stdin=end,
        stdout=end,
        stderr=end,
    )
    try:
        while b"to answer: orderbridge" not in shown:
            assert select.select([terminal], [], [], 15)[0], f"it waits, and has shown {shown!r}"
            shown += os.read(terminal, 1000)
        os.write(terminal, b"UTC\n")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
        os.close(end)
    assert b"Which time zone do you work in?" in shown
