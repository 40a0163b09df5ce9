"""A desk that serves, and a client that behaves as the browser which was given its address."""

from __future__ import annotations

import html
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from orderbridge.pipelines.desk.server import DeskOptions, serve

ADDRESS = re.compile(r'href="([^"]+)"')


class Browser:
    """Requests to a desk, with the form's token of its pages."""

    def __init__(
        self, folder: Path, port: int, lines: list[str], thread: threading.Thread | None
    ) -> None:
        self.folder = folder
        self.lines = lines
        self.thread = thread
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False
        )
        self.base = ""
        self.form_token = ""

    @property
    def opener(self) -> Path:
        """The file that leads to the address."""
        return next((self.folder / "desk").glob("open-*.html"))

    @property
    def address(self) -> str:
        """The address that works once."""
        found = ADDRESS.search(self.opener.read_text())
        assert found is not None
        return found[1]

    def enter(self) -> httpx.Response:
        """Opens the address, as the file does, and goes on to the first page."""
        response = self.client.get(self.address)
        found = ADDRESS.search(response.text)
        assert found is not None, response.text
        self.base = found[1].rstrip("/")
        self.form_token = self.token_of(self.get("/import"))
        return response

    def get(self, path: str, **more: Any) -> httpx.Response:
        """A page, by its path below that of all pages."""
        return self.client.get(f"{self.base}{path}", **more)

    def post(
        self, path: str, *, files: Any = None, headers: Any = None, **data: str
    ) -> httpx.Response:
        """Sends a form."""
        fields = {"form_token": self.form_token, **data}
        own = {"Origin": "null", "Sec-Fetch-Site": "same-origin"} | (headers or {})
        return self.client.post(f"{self.base}{path}", data=fields, files=files, headers=own)

    @staticmethod
    def token_of(response: httpx.Response) -> str:
        """The form's token on a page."""
        found = re.search(r'name="form_token" value="([^"]+)"', response.text)
        assert found is not None, response.text
        return found[1]


@contextmanager
def serving(folder: Path, **options: Any) -> Iterator[Browser]:
    """A desk of the project in a folder, in a thread; nobody has opened it."""
    stop = threading.Event()
    lines: list[str] = []
    chosen = DeskOptions(opens_browser=False, **options)
    thread = threading.Thread(target=serve, args=(chosen, stop, lines.append), daemon=True)
    thread.start()
    deadline = time.monotonic() + 120
    while not lines and time.monotonic() < deadline:
        time.sleep(0.01)
    port = int(next((folder / "desk").glob("open-*.html")).stem.rpartition("-")[2])
    browser = Browser(folder, port, lines, thread)
    try:
        yield browser
    finally:
        stop.set()
        thread.join(30)
        browser.client.close()


def drop(
    browser: Browser, content: bytes, name: str = "clientes.csv", kind: str = "customers"
) -> str:
    """Drops a file on the page; returns the path of its import."""
    response = browser.post("/import", files={"file": (name, content)}, kind=kind)
    assert response.status_code == 303, response.text
    return response.headers["location"].removeprefix(browser.base)


def seen_at_its_end(browser: Browser, path: str) -> str:
    """The page of an import, once its command has ended."""
    deadline = time.monotonic() + 600
    while "data-refresh" in browser.get(f"{path}/progress").text:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return browser.get(path).text


def columns_of(page: str) -> dict[str, str]:
    """The chosen field of each list on a page of columns, by the name of its form's field."""
    chosen: dict[str, str] = {}
    for name, options in re.findall(r'<select name="(column:[^"]+)".*?>(.*?)</select>', page, re.S):
        found = re.search(r'<option value="([^"]*)" selected', options)
        chosen[html.unescape(name)] = found[1] if found else ""
    return chosen


def hidden(page: str, name: str) -> str:
    """The value of a hidden field."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None, page
    return html.unescape(found[1])
