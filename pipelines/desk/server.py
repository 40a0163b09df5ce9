"""The server of the desk, on 127.0.0.1 alone, until ctrl-C, an idle hour, or a second use of its address.

In: options. Out: a browser that has the pages. It gets their address through a file that only this user can read: the
command line of a browser can be read by everybody on this machine.
"""

from __future__ import annotations

import html
import logging
import socket
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvicorn
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp

from orderbridge.pipelines.desk.folder import desk_folder, is_busy
from orderbridge.pipelines.desk.guard import HOSTS, UPLOAD_BYTES_MAX, Guard, with_headers
from orderbridge.pipelines.desk.pages import Pages
from orderbridge.pipelines.desk.routes import Desk
from orderbridge.pipelines.desk.session import Session
from orderbridge.pipelines.desk.texts import Language, Texts
from orderbridge.sources.disk import disk_errors, write_private
from orderbridge.sources.errors import UsageError

HOST: Final = "127.0.0.1"
IDLE_S: Final = 3600.0
_POLL_S: Final = 0.5
_START_S: Final = 30.0
_OPENER: Final = """\
<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}"><title>orderbridge</title>
<p><a href="{address}">orderbridge desk</a>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskOptions:
    """Options of `orderbridge desk`.

    Attributes:
        port: to listen on; 0: any free one.
        opens_browser: whether a browser is opened.
        language: of the pages.
        shows_address: whether the address may be printed: on a terminal, which nobody else reads.
    """

    port: int = 0
    opens_browser: bool = True
    language: Language = "en"
    shows_address: bool = False


def serve(options: DeskOptions, stop: threading.Event, say: Callable[[str], None]) -> None:
    """Serves the desk until it has to end. `say` prints a line.

    Raises:
        UsageError: the port is taken, or the project's folder cannot be used.
    """
    folder = desk_folder(makes_it=True)
    with _listener(options.port) as listener:
        session = Session(listener.getsockname()[1])
        opener = folder / f"open-{session.port}.html"
        pages = Pages(Texts(options.language))
        pages.globals |= {"base": session.base, "form_token": session.form_token}
        guarded = Guard(Desk(pages).app(), session=session, pages=pages, bytes_max=UPLOAD_BYTES_MAX)
        hosted = TrustedHostMiddleware(guarded, allowed_hosts=HOSTS, www_redirect=False)
        with _serving(with_headers(hosted), listener), _opener(opener, session.address):
            for line in _greeting(options, session, opener, pages.texts):
                say(line)
            say(pages.texts(_wait(session, stop)))


def _greeting(options: DeskOptions, session: Session, opener: Path, texts: Texts) -> list[str]:
    """What is printed at the start. The address is printed on a terminal only, and works once."""
    if options.opens_browser and webbrowser.open(opener.absolute().as_uri()):
        return [texts("serve.opened"), texts("serve.not_opened", file=opener)]
    if options.shows_address:
        return [texts("serve.address", address=session.address)]
    return [texts("serve.file", file=opener)]


def _wait(session: Session, stop: threading.Event) -> str:
    """Waits until the desk has to end, and returns why, by code. It never ends while a command of its own runs."""
    while not stop.wait(_POLL_S):
        if session.has_ended.is_set():
            return "serve.used_twice"
        if session.clock() - session.touched_at > IDLE_S and not is_busy():
            return "serve.idle"
    return "serve.ended"


def _listener(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise UsageError(
            f"the desk cannot listen on port {port}: {error.strerror}",
            "Stop the program that uses it, or leave out --port.",
        ) from None


@contextmanager
def _opener(path: Path, address: str) -> Iterator[None]:
    """A file, of mode 0600, that leads a browser to the address."""
    hint = "Free space or make the folder writable, then start the desk again."
    with disk_errors(path, hint):
        write_private(path, _OPENER.format(address=html.escape(address)).encode())
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _serving(app: ASGIApp, listener: socket.socket) -> Iterator[None]:
    """Serves while the block runs."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=1,
        )
    )
    thread = threading.Thread(target=server.run, args=([listener],), name="desk", daemon=True)
    thread.start()
    deadline = time.monotonic() + _START_S
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()
