"""What the tests of the pipelines share: settings for a sandbox, pulls in this process, commands in another."""

from __future__ import annotations

import gc
import io
import json
import logging
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partialmethod
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest

import tests.fast_dlt  # makes dlt faster
import tests.fast_duckdb  # noqa: F401 # makes DuckDB faster
from orderbridge.pipelines.cli.main import main
from orderbridge.pipelines.cli.process import STOP, Stop, prepare_environment
from orderbridge.pipelines.pull import publishing
from orderbridge.pipelines.pull.model import PullOptions, PullResult
from orderbridge.pipelines.pull.pull import pull
from orderbridge.sandbox import Sandbox, SandboxConfig, serve
from orderbridge.sources import command_line
from orderbridge.sources.contract import RECORDS
from orderbridge.sources.errors import BridgeError
from orderbridge.sources.extract import spool
from orderbridge.sources.settings import load_dlt

mock.patch.object(
    spool, "DIGEST_COST", 2
).start()  # of a guess at a key: 40 ms of each pull otherwise
# `tests.fast_duckdb` has one thread; to start another in each pull is a tenth of its CPU
mock.patch.dict(publishing.MERGE_SETTINGS, threads=1).start()
SMALL: dict[str, Any] = {
    "customers": 40,
    "orders": 30,
    "promotions": 9,
    "price_lists": 6,
    "others": 5,
}
LISTED = {name: int(SMALL.get(name, SMALL["others"])) for name in RECORDS}
"""The number of rows of each list of a small sandbox."""


def settings(platform: Sandbox, warehouse: Path, *, page_limit: int = 20) -> dict[str, str]:
    """The environment of a pull of both families."""
    return {
        "SOURCES__LEGACY__BASE_URL": platform.url,
        "SOURCES__LEGACY__API_KEY": platform.legacy_key,
        "SOURCES__LEGACY__ENVIRONMENT": "sandbox",
        "SOURCES__LEGACY__PAGE_LIMIT": str(page_limit),
        "SOURCES__PUBLIC_V1__BASE_URL": platform.url,
        "SOURCES__PUBLIC_V1__API_KEY": platform.v1_key,
        "SOURCES__PUBLIC_V1__PAGE_LIMIT": str(page_limit),
        "WAREHOUSE__PATH": str(warehouse),
    }


_READERS = threading.Lock()


@cache
def _reader() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


@contextmanager
def reading(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that reads a DuckDB file, in UTC, from one instance: a start costs 25 ms, attaching 3."""
    with _READERS:
        instance = _reader()
        file = str(path).replace("'", "''")
        instance.execute(f"ATTACH '{file}' AS \"{path.stem}\" (READ_ONLY)")
        try:
            with instance.cursor() as connection:
                connection.execute(f'USE "{path.stem}"')
                connection.execute("SET TimeZone = 'UTC'")
                yield connection
        finally:
            instance.execute(f'DETACH "{path.stem}"')


@dataclass
class Bridge:
    """A sandbox, and a warehouse that it is pulled into."""

    platform: Sandbox
    path: Path
    page_limit: int = 20
    result: Any = None
    """Of what `pulled` did after the first pull."""

    @property
    def folder(self) -> Path:
        return self.path.parent

    def pull(self, *resources: str, **wanted: Any) -> PullResult:
        """A pull in this process; raises what it raises."""
        return pull(PullOptions(tuple(resources), **wanted))

    def code(self, *resources: str, **wanted: Any) -> int:
        """The exit code of a pull."""
        try:
            return self.pull(*resources, **wanted).exit_code
        except BridgeError as error:
            return error.exit_code

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """The rows of a query, from the published file."""
        with reading(self.path) as connection:
            return connection.execute(sql, parameters).fetchall()

    def one(self, sql: str, *parameters: object) -> Any:
        """The one value of the one row."""
        ((value,),) = self.rows(sql, *parameters)
        return value

    def dicts(self, sql: str) -> list[dict[str, Any]]:
        with reading(self.path) as connection:
            cursor = connection.execute(sql)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def left(self) -> list[str]:
        """Names of the files in the folder of the warehouse, hidden ones too.

        But for `.dlt`, where dlt keeps an id, and what `status` remembers of failed runs.
        """
        kept = {".dlt", f"{self.path.name}.earlier.failed.json"}
        return sorted({path.name for path in self.folder.iterdir()} - kept)

    def command(self, *arguments: str, **more: str) -> Done:
        """A command in the warehouse's folder, with the settings of the sandbox and more."""
        return command(*arguments, env=self.environment(**more), cwd=self.folder)

    def environment(self, **more: str) -> dict[str, str]:
        """For a command in another process: nothing of this process's environment except the path of programs."""
        home = self.folder.parent / "home"
        home.mkdir(exist_ok=True)
        (self.folder.parent / "tmp").mkdir(exist_ok=True)
        return {
            **settings(self.platform, self.path, page_limit=self.page_limit),
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(home),
            "TMPDIR": str(self.folder.parent / "tmp"),
            "PYTHONWARNINGS": "error",
            "PYTHONUTF8": "1",
            "PYTHONDONTWRITEBYTECODE": "1",  # under a limit of file size, a truncated .pyc would break the next run
            **more,
        }


@contextmanager
def bridge(folder: Path, *, page_limit: int = 20, **config: Any) -> Iterator[Bridge]:
    """A small sandbox, this process's settings for it, and an empty folder for the warehouse."""
    with serve(SandboxConfig(**{**SMALL, **config})) as platform:
        home = folder / "warehouse"
        home.mkdir(parents=True, exist_ok=True)
        os.environ.update(settings(platform, home / "warehouse.duckdb", page_limit=page_limit))
        os.environ.setdefault("DLT_PROJECT_DIR", str(folder))
        prepare_environment()
        yield Bridge(platform, home / "warehouse.duckdb", page_limit)


_PULLED: dict[str, tuple[int, bytes, Any]] = {}
"""By configuration: the port of its sandbox, which the warehouse names, the file, and the result of `then`."""


@contextmanager
def pulled(
    folder: Path,
    then: Callable[[], object] | None = None,
    before: Callable[[Bridge], object] | None = None,
    **config: Any,
) -> Iterator[Bridge]:
    """A bridge whose warehouse is as a first pull publishes it: pulled once in this process, copied from then on."""
    key = repr((then, before, sorted(config.items())))
    port, file, result = _PULLED.get(key, (0, b"", None))
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:  # another program listens there
        port, file = 0, b""
    with bridge(folder, port=port, **config) as made:
        if before is not None:
            before(made)
        if file:
            made.path.write_bytes(file)
            made.path.chmod(0o600)
        else:
            assert made.code() == 0
            if then is not None:
                result = then()
            _PULLED[key] = int(made.platform.url.rpartition(":")[2]), made.path.read_bytes(), result
        made.result = result
        yield made


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return self.out + self.err


class Started:
    """A command that was started: what of `subprocess.Popen[str]` the tests use."""

    def __init__(self, *arguments: Any) -> None:
        """Forks it from a process that has imported the program, which saves a second of CPU."""
        self.command = ["orderbridge", *arguments[0]]
        pipes = [FORKS.Pipe(duplex=False) for _ in range(2)]
        self._process = fork(*arguments, *(write for _, write in pipes))
        self.stdout, self.stderr = (
            os.fdopen(os.dup(read.fileno()), encoding="utf-8") for read, _ in pipes
        )
        for read, _ in pipes:
            read.close()
        self.pid = self._process.pid or 0

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *error: object) -> None:
        """Waits for its end; a test that failed inside the block cannot have brought that about, so it is killed."""
        if error[0] is not None:
            self.kill()
        self.stdout.close()
        self.stderr.close()
        try:
            self.wait(300)
        finally:
            self.kill()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.command, timeout)
        return self._process.exitcode

    def communicate(self, timeout: float = 60) -> tuple[str, str]:
        """Reads both streams to their ends, and waits for the process to end, which is killed after this time."""
        watch = threading.Timer(timeout, self.kill)
        watch.daemon = True
        watch.start()
        with ThreadPoolExecutor(1) as reader:
            err = reader.submit(self.stderr.read)
            out = self.stdout.read()
        watch.cancel()
        self.wait(timeout)
        return out, err.result()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    kill = partialmethod(send_signal, signal.SIGKILL)


FORKS = multiprocessing.get_context("forkserver")
"""Starts processes that have imported the program."""
FORKS.set_forkserver_preload(
    [
        "dlt.destinations.impl.duckdb.duck",
        "dlt.load",
        "dlt.normalize",
        "orderbridge.sources.resources",
        "orderbridge.pipelines.import_file.run",
        "orderbridge.pipelines.plan.make",
        "orderbridge.pipelines.push.run",
        "orderbridge.pipelines.reconcile.reconcile",
        "orderbridge.pipelines.reporting.status",
        "tests.pipelines.bridge",
        "dlt._workspace._plugins",
        "dlt.sources.helpers.requests",
        "fsspec.implementations.chained",
        "fsspec.implementations.local",
        "orderbridge.pipelines.pull.check",
        "orderbridge.pipelines.reconcile.entities",
        "orderbridge.pipelines.reporting.report",
        "orderbridge.pipelines.cli.answer",
        "orderbridge.pipelines.cli.import_file",
        "pyarrow.acero",
        "pyarrow.dataset",
        "rich._emoji_codes",
    ]
)


def fork(*arguments: Any) -> multiprocessing.process.BaseProcess:
    """Forks a command. See `_run`; its streams are closed here."""
    process = FORKS.Process(target=_run, args=arguments)
    process.start()
    for one in arguments:
        if isinstance(one, Connection):
            one.close()
    return process


def start(
    *arguments: str,
    env: Mapping[str, str],
    cwd: Path,
    preexec_fn: Callable[[], object] | None = None,
) -> Started:
    """Starts the command `orderbridge` in a process of its own."""
    return Started(arguments, dict(env), cwd, preexec_fn)


def command(
    *arguments: str, env: Mapping[str, str], cwd: Path, timeout: float = 600, **more: Any
) -> Done:
    """Runs the command to its end in this process; with a `preexec_fn`, or if it starts programs, in one of its own."""
    if more or "demo" in arguments[:1]:
        with start(*arguments, env=env, cwd=cwd, **more) as process:
            out, err = process.communicate(timeout)
            done = Done(process.wait(timeout), out, err)
    else:
        done = _here(arguments, env, cwd)
    if "json" in arguments or "--json" in arguments:
        assert all(
            {"at", "event", "message"} <= json.loads(line).keys() for line in done.said.splitlines()
        )
    return done


def _here(arguments: tuple[str, ...], env: Mapping[str, str], cwd: Path) -> Done:
    """The command in this process, in which all is as before afterwards."""
    names, logger, threshold = (
        ("stdin", "stdout", "stderr"),
        logging.getLogger("orderbridge"),
        gc.get_threshold(),
    )
    before, folder, mask, handlers = dict(os.environ), Path.cwd(), os.umask(0), logger.handlers
    os.umask(mask)
    signals = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    streams = [io.BytesIO() for _ in names]
    files = [io.TextIOWrapper(one, "utf-8", write_through=True) for one in streams]
    try:
        with ExitStack() as patches:
            for name, file in zip(names, files, strict=True):
                patches.enter_context(mock.patch.object(sys, name, file))
            patches.enter_context(mock.patch.object(sys, "argv", ["orderbridge", *arguments]))
            patches.enter_context(mock.patch.object(command_line, "_typed", []))
            patches.enter_context(mock.patch.object(command_line, "_commands", []))
            patches.enter_context(mock.patch.object(os, "_exit", sys.exit))
            patches.enter_context(mock.patch("resource.setrlimit"))
            os.environ.clear()
            os.environ.update(env)
            time.tzset()
            os.chdir(cwd)
            with pytest.raises(SystemExit) as ended:
                main()
            sys.stdout.flush()
            out, err = (one.getvalue().decode() for one in streams[1:])
    finally:
        vars(STOP).update(vars(Stop()))
        logger.handlers = handlers
        gc.set_threshold(*threshold)
        for number, handler in signals.items():
            signal.signal(number, handler)
        os.environ.clear()
        os.environ.update(before)
        time.tzset()
        os.chdir(folder)
        os.umask(mask)
        load_dlt()
    return Done(int(ended.value.code or 0), out, err)


def _run(
    arguments: tuple[str, ...],
    env: dict[str, str],
    cwd: Path,
    preexec_fn: Callable[[], object] | None,
    *streams: Connection,
) -> None:
    """The command in a forked process: with an environment, a folder and streams of its own."""
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(cwd)
    os.umask(0o022)
    for number, stream in enumerate(
        (os.open(os.devnull, os.O_RDONLY), *(stream.fileno() for stream in streams))
    ):
        os.dup2(stream, number)
    for one in streams:
        one.close()
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115 # for the process
        for number in range(3)
    )
    if preexec_fn is not None:
        preexec_fn()
    sys.argv = ["orderbridge", *arguments]
    warnings.resetwarnings()
    warnings.simplefilter("error")
    main()


def within_memory(megabytes: int, *command: str) -> list[str]:
    """A command that has no more address space than this."""
    return ["sh", "-c", 'ulimit -v "$0" && exec "$@"', str(megabytes << 10), *command]


def wait_for(what: Any, seconds: float = 120.0) -> None:
    """Waits until it is true."""
    until = time.monotonic() + seconds
    while not what():
        if time.monotonic() > until:
            raise TimeoutError(f"not true after {seconds:g} s")
        time.sleep(0.01)
