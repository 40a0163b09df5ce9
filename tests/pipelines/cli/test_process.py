"""However the process was started, and whatever becomes of its output, its exit code says what was done."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb
import pytest

from pipelines.warehouse.build import warehouse_errors
from sources.errors import UsageError
from tests.pipelines.bridge import Bridge, Done, command, pulled, start
from tests.pipelines.push.plans import customer, place

CHECKOUT = Path(__file__).parents[3]
SLOW_QUERY = """
import click
from pipelines.cli import main as cli
from pipelines.cli.process import STOP

@click.command()
def slow():
    import duckdb
    STOP.listen()
    duckdb.sql("SET threads = 1")  # a second thread would be waited for to its end
    print("ready", flush=True)
    duckdb.sql("SELECT sum(hash(range)) FROM range(1000000000000)").fetchall()

cli.orderbridge.add_command(slow)
cli.main()
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    with pulled(tmp_path_factory.mktemp("process")) as one:
        yield one


def shell(made: Bridge, line: str, **more: str) -> Done:
    """Runs a line in a shell; `CMD` is replaced by the command."""
    env = made.environment(PYTHONPATH=str(CHECKOUT), **more)
    line = line.replace("CMD", f'"{sys.executable}" -m pipelines.cli')
    done = subprocess.run(
        ["/bin/sh", "-c", line], env=env, cwd=made.folder, capture_output=True, text=True, timeout=300
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("command", "closed"),
    [
        ("pull promotions", "<&- >&- 2>&-"),
        ("status", ">&-"),
        ("status", "2>&-"),
    ],
)
def test_a_closed_descriptor_is_no_matter(made: Bridge, command: str, closed: str) -> None:
    done = shell(made, f"CMD {command} {closed}")
    assert (done.code, done.err if ">&- " not in closed else "") == (0, "")
    assert made.one("SELECT count(*) FROM raw.promotions") == 9


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_command_writes_no_core_file_with_keys_in_it(made: Bridge) -> None:
    resource = pytest.importorskip("resource")
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == 0:
        pytest.skip("core files are forbidden here already")

    allow = partial(resource.setrlimit, resource.RLIMIT_CORE, (hard, hard))
    with start("sandbox", env=made.environment(), cwd=made.folder, preexec_fn=allow) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ")
        limits = Path(f"/proc/{process.pid}/limits").read_text()
        process.send_signal(signal.SIGABRT)
        process.communicate(timeout=300)
    assert re.search(r"Max core file size +0 +0 ", limits)
    assert not list(made.folder.glob("core*"))


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full")
@pytest.mark.parametrize(("command", "code"), [("reconcile", 0), ("template customers", 2)])
def test_words_that_find_no_room_change_nothing_of_what_was_done(made: Bridge, command: str, code: int) -> None:
    done = shell(made, f"CMD {command} > /dev/full")
    assert done.code == code
    assert "written: No space left on device" in done.err
    assert "internal error" not in done.err


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full")
@pytest.mark.parametrize(("command", "code"), [("pull nothing 2>", 2), ("status 2>/dev/full >", 0)])
def test_errors_that_find_no_room_do_not_change_the_exit_code(made: Bridge, command: str, code: int) -> None:
    assert shell(made, f"CMD {command} /dev/full").code == code


def test_signs_that_the_output_cannot_hold_are_escaped(made: Bridge) -> None:
    (made.folder / "año.csv").write_text("código;año\nÑ;1\n", encoding="utf-8")
    done = shell(made, "CMD preview año.csv", PYTHONIOENCODING="ascii")
    assert done.code == 0
    assert "c\\xf3digo" in done.out
    (made.folder / "año.csv").unlink()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_the_database_is_at_work_is_no_bug(
    tmp_path: Path, made: Bridge, number: signal.Signals, code: int
) -> None:
    env = made.environment(PYTHONPATH=str(CHECKOUT))
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_QUERY, "slow"],
        env=env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)  # it is in the query
        process.send_signal(number)
        try:
            _, err = process.communicate(timeout=300)
        finally:
            process.kill()
    assert (process.returncode, err) == (code, "stopped\n")


def test_ctrl_c_while_modules_are_imported_prints_no_traceback() -> None:
    """Importing the commands takes 0.2 s, in which a person may see a wrong argument and stop."""
    script = """
import importlib.abc, os, signal, sys
class Interrupted(importlib.abc.MetaPathFinder):
    def find_spec(self, name, *_):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupted())
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores Ctrl-C
from pipelines.cli.__main__ import main
main()"""
    done = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (130, "stopped\n")


def test_a_warehouse_that_cannot_take_the_log_of_a_push_hides_nothing_of_its_outcome(tmp_path: Path) -> None:
    with place(tmp_path, faults={"lost_answer": 1.0}) as at:
        plan = at.plan([customer(1)])
        at.folder.joinpath("warehouse.duckdb").write_bytes(b"no database")
        done = command("push", str(plan), "--yes", env=at.environment(), cwd=at.folder)
    assert done.code == 6
    assert "ops.push_log was not updated; the next pull does it" in done.err
    assert "in doubt" in done.out


@pytest.mark.parametrize("error", ["MemoryError", 'RuntimeError("can\'t start new thread")'], ids=["bytes", "threads"])
def test_want_of_memory_is_no_bug(tmp_path: Path, error: str) -> None:
    script = f"from pipelines.cli import main as cli\ndef f(): raise {error}\ncli._invoke = f\ncli.main()"
    done = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "orderbridge: out of memory")
    with pytest.raises(UsageError, match="DuckDB ran out of memory"), warehouse_errors(tmp_path):
        raise duckdb.OutOfMemoryException("a value of a row")


def test_a_current_folder_that_was_removed_is_named_and_no_bug(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = (
        "import os, sys\nfrom pipelines.cli.main import main\nos.rmdir(os.getcwd())\nsys.argv[1:] = ['status']\nmain()"
    )
    environment = {"PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run([sys.executable, "-c", script], cwd=gone, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "orderbridge: the current folder: No such file or directory",
    )
