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

from sandbox.config import LEGACY_KEY, V1_KEY, SandboxConfig
from sandbox.server import serve


def run(config: SandboxConfig, on_ready: Callable[[dict[str, str]], None] | None = None) -> None:
    """Serves until SIGINT or SIGTERM, then returns. Must run in the main thread.

    `on_ready` gets the settings that are printed next, once the address is known.

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
            values = settings(sandbox.url, config.login_mode)
            if on_ready is not None:
                on_ready(values)
            sys.stdout.write(f"ready {sandbox.url}\n")
            sys.stdout.writelines(f"{key.replace('.', '__').upper()}={value}\n" for key, value in values.items())
            sys.stdout.flush()
            stopped.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def settings(url: str, login_mode: str = "email") -> dict[str, str]:
    """The settings of a project that uses a sandbox at this address, by key."""
    return {
        "sources.legacy.base_url": url,
        "sources.legacy.api_key": LEGACY_KEY,
        "sources.legacy.environment": "sandbox",
        "sources.legacy.login_mode": login_mode,
        "sources.public_v1.base_url": url,
        "sources.public_v1.api_key": V1_KEY,
    }
