"""A Postgres server for a module of tests, from Debian's package `postgresql` (or any `initdb` in /usr/local/bin)."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "geheim-4711"
NOBODY = 65534


def _binaries() -> Path | None:
    found = [
        *Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        *Path("/usr/local/bin").glob("initdb"),
    ]
    return found[-1].parent if found else None


def is_available() -> bool:
    """Whether a server can be started here."""
    has_driver = importlib.util.find_spec("psycopg2") is not None
    can_start = os.geteuid() != 0 or shutil.which("setpriv") is not None
    return has_driver and can_start and _binaries() is not None


def _as_nobody(*arguments: str) -> list[str]:
    if os.geteuid() != 0:
        return list(arguments)
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *arguments]


@contextmanager
def server() -> Iterator[int]:
    """The port of a server whose superuser is `loader`. Skips the test where none can be started."""
    psycopg2 = pytest.importorskip("psycopg2", reason="psycopg2 is not installed")
    binaries = _binaries()
    if binaries is None or (os.geteuid() == 0 and shutil.which("setpriv") is None):
        pytest.skip("no Postgres that can be started here (Debian: postgresql, util-linux)")
    folder = Path("/tmp") / f"orderbridge-postgres-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    (folder / "password").write_text(PASSWORD)
    if os.geteuid() == 0:
        for path in (folder, folder / "password"):
            os.chown(path, NOBODY, NOBODY)
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    data = ("-D", str(folder / "data"))
    initdb = (
        str(binaries / "initdb"),
        *data,
        "-U",
        "loader",
        "-A",
        "scram-sha-256",
        f"--pwfile={folder}/password",
    )
    subprocess.run(_as_nobody(*initdb), check=True, env=env, cwd="/tmp", capture_output=True)
    serve = (str(binaries / "postgres"), *data, "-p", str(port), "-k", str(folder), "-F")
    line = _as_nobody(*serve, "-c", "listen_addresses=127.0.0.1")
    process = subprocess.Popen(line, env=env, cwd="/tmp", stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            try:
                connect(port).close()
                break
            except psycopg2.OperationalError:
                time.sleep(0.1)
        yield port
    finally:
        process.send_signal(signal.SIGINT)  # ends the connections that dlt leaves open
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def connect(port: int, database: str = "postgres") -> Any:
    """A connection in which each statement is a transaction."""
    psycopg2 = pytest.importorskip("psycopg2", reason="psycopg2 is not installed")
    connection = psycopg2.connect(
        host="127.0.0.1", port=port, user="loader", password=PASSWORD, dbname=database
    )
    connection.autocommit = True
    return connection
