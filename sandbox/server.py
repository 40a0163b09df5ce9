"""The server: uvicorn in a thread, on loopback, with a protocol that gives faults access to the transport.

In: a configuration. Out: a running sandbox with its address, keys and state; for `orderbridge sandbox`, one that prints
`ready URL` and the settings to use as environment variables, and serves until SIGINT or SIGTERM.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from orderbridge.sandbox.app import Platform
from orderbridge.sandbox.config import (
    LEGACY_KEY,
    V1_EXPIRED_KEY,
    V1_KEY,
    V1_LIVE_KEY,
    V1_NO_SCOPE_KEY,
    SandboxConfig,
    check_faults,
    settings,
)
from orderbridge.sandbox.wire import EXTENSION

HOST: Final = "127.0.0.1"
_START_S: Final = 30.0


class Sandbox:
    """A running sandbox.

    Attributes:
        url: base URL of the legacy family; that of public v1 is `/public/v1` below it.
        legacy_key, v1_key: keys to use.
        v1_expired_key, v1_no_scope_key, v1_live_key: known keys: expired, without scopes, of the other environment.
        state: its data and their history.
    """

    legacy_key: str = LEGACY_KEY
    v1_key: str = V1_KEY
    v1_expired_key: str = V1_EXPIRED_KEY
    v1_no_scope_key: str = V1_NO_SCOPE_KEY
    v1_live_key: str = V1_LIVE_KEY

    def __init__(self, config: SandboxConfig) -> None:
        self._platform = Platform(config)
        self.state = self._platform.state
        self._listener = socket.create_server((HOST, config.port), backlog=2048)
        self._server = _Server(
            uvicorn.Config(
                self._platform.app(),
                http=_Protocol,
                lifespan="off",
                ws="none",
                log_config=None,
                log_level="critical",  # connections broken on purpose are not errors
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_keep_alive=75,
            )
        )
        # Bad requests are expected and not logged; an exception in the sandbox goes to stderr.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        logging.getLogger("uvicorn.error").addFilter(_is_unexpected)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._listener],), name="sandbox", daemon=True
        )
        self.url = f"http://{HOST}:{self._listener.getsockname()[1]}"

    def set_faults(self, rates: Mapping[str, float]) -> None:
        """Replaces the faults and their rates while it serves. Raises SandboxConfigError."""
        check_faults(rates)
        self._platform.plan.rates = dict(rates)

    def start(self) -> None:
        """Starts serving; returns once requests are accepted."""
        self._thread.start()
        if not self._server.serving.wait(_START_S):
            raise RuntimeError("the sandbox did not start")

    def stop(self) -> None:
        """Stops at once and cancels requests in progress; does nothing if it is stopped."""
        self._server.end()
        self._thread.join()
        self._listener.close()


@contextmanager
def serve(config: SandboxConfig | None = None) -> Iterator[Sandbox]:
    """Serves while the block runs.

    Raises:
        SandboxConfigError: the files of records cannot be served.
        OSError: the port is taken.
    """
    sandbox = Sandbox(config or SandboxConfig())
    sandbox.start()
    try:
        yield sandbox
    finally:
        sandbox.stop()


def run(config: SandboxConfig, on_ready: Callable[[dict[str, str]], None] | None = None) -> None:
    """Serves until SIGINT or SIGTERM, then returns. Must run in the main thread.

    `on_ready` gets the settings that are printed next, once the address is known.

    Raises:
        SandboxConfigError: the files of records cannot be served.
        OSError: the port is taken.
    """
    # A handler could run while its thread holds the lock that it needs, or just before that thread waits for good.
    # The threads of the server inherit the mask, so that these signals wait until they are asked for.
    stops = (signal.SIGINT, signal.SIGTERM)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    try:
        with serve(config) as sandbox:
            gc.freeze()  # the garbage collector must not scan a million rows each time
            values = settings(sandbox.url, config.login_mode)
            if on_ready is not None:
                on_ready(values)
            sys.stdout.write(f"ready {sandbox.url}\n")
            sys.stdout.writelines(
                f"{key.replace('.', '__').upper()}={value}\n" for key, value in values.items()
            )
            sys.stdout.flush()
            signal.sigwait(stops)
    finally:
        while signal.sigpending() & {*stops}:
            signal.sigwait(stops)  # a second Ctrl-C
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_unexpected(record: logging.LogRecord) -> bool:
    """False for uvicorn's message about faults that close the connection without a response."""
    return not record.getMessage().startswith("ASGI callable returned without")


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol, with the transport in each request's scope."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {EXTENSION: self.transport}  # type: ignore[dict-item] # ASGI allows what uvicorn does not declare


class _Server(uvicorn.Server):
    """uvicorn's server, stopped at once by an event: it must not wait for responses that a fault stalls."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serving = threading.Event()
        self._end: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def end(self) -> None:
        """Stops the server, from any thread."""
        if self._loop is not None and self._end is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end.set)

    async def main_loop(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        self.serving.set()
        await self._end.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        # Handlers that wait for a client to disconnect end in the next iteration of the loop; the others are cancelled.
        await asyncio.sleep(0.001)
        tasks = list(self.server_state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
