"""The command `orderbridge sandbox`: serves until SIGINT or SIGTERM.

In: a configuration. Out: on stdout, first `ready URL`, then the settings to use as environment variables.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

from sandbox.config import SandboxConfig
from sandbox.server import Sandbox, serve


def run(config: SandboxConfig, on_ready: Callable[[list[str]], None] | None = None) -> None:
    """Serves until SIGINT or SIGTERM, then returns. Must run in the main thread.

    Args:
        config: what to serve.
        on_ready: called with the lines to print once the address is known.

    Raises:
        SandboxConfigError: the files of records cannot be served.
        OSError: the port is taken.
    """
    stopped = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopped.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with serve(config) as sandbox:
            gc.freeze()  # the garbage collector must not scan a million rows each time
            if on_ready is not None:
                on_ready(lines(sandbox))
            sys.stdout.write("\n".join(lines(sandbox)) + "\n")
            sys.stdout.flush()
            stopped.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def lines(sandbox: Sandbox) -> list[str]:
    """The lines that the command prints: the address, then the settings."""
    return [
        f"ready {sandbox.url}",
        f"SOURCES__LEGACY__BASE_URL={sandbox.url}",
        f"SOURCES__LEGACY__API_KEY={sandbox.legacy_key}",
        "SOURCES__LEGACY__ENVIRONMENT=sandbox",
        f"SOURCES__LEGACY__LOGIN_MODE={sandbox.state.config.login_mode}",
        f"SOURCES__PUBLIC_V1__BASE_URL={sandbox.url}",
        f"SOURCES__PUBLIC_V1__API_KEY={sandbox.v1_key}",
    ]
