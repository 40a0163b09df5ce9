"""What a person reads when the platform fails in part: hints, waits, and never a key."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import pytest

from pipelines.pull.check import check
from sources.errors import Unreachable
from sources.http.transport import check_reachable
from tests.pipelines.bridge import Bridge, bridge, command


class Front(BaseHTTPRequestHandler):
    """Stands before the sandbox: /customers echoes the v1 key in an error code, /promotions asks once to wait."""

    target: str
    echo: str
    throttled: bool

    def do_GET(self) -> None:
        if self.path.startswith("/customers"):
            return self.answer(404, json.dumps({"errors": [{"message": "gone", "code": self.echo}]}).encode())
        if self.path.startswith("/promotions") and not type(self).throttled:
            type(self).throttled = True
            return self.answer(429, b"{}", **{"Retry-After": "1"})
        upstream = HTTPConnection(self.target)
        headers = {name: value for name, value in self.headers.items() if name.lower() in ("api-key", "authorization")}
        upstream.request("GET", self.path, headers=headers)
        answer = upstream.getresponse()
        self.answer(answer.status, answer.read())
        return upstream.close()

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def front(made: Bridge) -> Iterator[str]:
    """The address of a server before the bridge's sandbox."""
    environment = made.environment()
    facts = {
        "target": urlsplit(environment["SOURCES__LEGACY__BASE_URL"]).netloc,
        "echo": environment["SOURCES__PUBLIC_V1__API_KEY"],
        "throttled": False,
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Front", (Front,), facts))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.mark.parametrize("style", ["plain", "json"])
def test_and_10_a_list_that_fails_beside_others_has_its_hint_and_no_key(tmp_path: Path, style: str) -> None:
    with bridge(tmp_path) as made, front(made) as url:
        environment = made.environment(SOURCES__LEGACY__BASE_URL=url)
        key = environment["SOURCES__PUBLIC_V1__API_KEY"]
        done = command("pull", "--log", style, env=environment, cwd=made.folder)
    assert done.code == 4
    assert key not in done.said
    with duckdb.connect(str(made.path), read_only=True) as warehouse:
        evidence = warehouse.execute("SELECT evidence FROM ops.coverage WHERE resource = 'customers'").fetchall()
    assert "status 404" in str(evidence)
    assert key not in str(evidence)
    wait = "legacy: the platform asks to wait 1 s (status 429); waiting"
    if style == "json":
        result = json.loads(done.out)
        hints = {facts["resource"]: facts["hint"] for facts in result["lists"]}
        assert "Check sources.legacy.base_url" in hints.pop("customers")
        assert set(hints.values()) == {""}
        assert wait in [json.loads(line)["message"] for line in done.err.splitlines()]
        assert result["settings"].endswith(".dlt")
        assert result["destination"] == ""
    else:
        lines = done.out.splitlines()
        failed = next(number for number, line in enumerate(lines) if line.startswith("customers is incomplete"))
        assert lines[failed + 1].startswith("  Check sources.legacy.base_url")
        assert wait in done.err.splitlines()
        assert lines[-1].startswith("settings from ")
        assert lines[-1].endswith(".dlt and the environment")


def test_check_lists_the_settings_that_are_set_with_their_origin(tmp_path: Path) -> None:
    with bridge(tmp_path) as made:
        done = command("check", env=made.environment(SOURCES__HTTP__TIMEOUT_S="60"), cwd=made.folder)
        key = made.environment()["SOURCES__PUBLIC_V1__API_KEY"]
    assert done.code == 0
    assert "sources.http.timeout_s = 60 (SOURCES__HTTP__TIMEOUT_S)" in done.out
    assert "sources.legacy.page_limit = 20 (SOURCES__LEGACY__PAGE_LIMIT)" in done.out
    assert "sources.public_v1.api_key = *** (SOURCES__PUBLIC_V1__API_KEY)" in done.out
    assert "read_timeout_s" not in done.out
    assert key not in done.said


@pytest.mark.parametrize("arguments", [["status"], ["--project", "x" * 300, "status"]], ids=["warehouse", "project"])
def test_a_path_that_the_system_rejects_is_named_and_no_bug(tmp_path: Path, arguments: list[str]) -> None:
    environment = {**os.environ, "WAREHOUSE__PATH": "x" * 300}
    done = command(*arguments, env=environment, cwd=tmp_path)
    assert done.code == 2, done.said
    assert re.search("x{300} cannot be used: File name too long", done.err), done.err


def test_settings_of_another_user_end_every_command_with_2(tmp_path: Path) -> None:
    (tmp_path / ".dlt").mkdir()
    (tmp_path / ".dlt").chmod(0o777)
    with bridge(tmp_path / "work") as made:
        environment = made.environment()
        environment.pop("DLT_PROJECT_DIR", None)
        for arguments in (["check"], ["pull"], ["status"]):
            done = command(*arguments, env=environment, cwd=tmp_path)
            assert done.code == 2, done.said
            assert "can be written by other users" in done.err


def test_check_names_an_unknown_host_and_the_reason_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with bridge(tmp_path) as made:
        refused = command(
            "check", env=made.environment(SOURCES__LEGACY__BASE_URL="http://127.0.0.1:1"), cwd=made.folder
        )
        for family in ("LEGACY", "PUBLIC_V1"):
            monkeypatch.setenv(f"SOURCES__{family}__BASE_URL", "https://no-such-host.invalid")
        started_at = time.monotonic()
        results = {result.what: result for result in check(threading.Event())}
        assert time.monotonic() - started_at < 20
    for family in ("the legacy family", "public v1"):
        result = results[f"host of {family}"]
        assert result.exit_code == 4
        reasons = "the host name does not resolve|timed out"
        assert re.search(rf"cannot connect to no-such-host\.invalid: ({reasons})", result.message)
    assert not [what for what in results if what.startswith("first page")]
    assert refused.code == 4
    assert "wrong host of the legacy family: legacy: cannot connect to 127.0.0.1:1: connection refused" in refused.out
    assert "ok    first page of orders" in refused.out


@pytest.mark.parametrize("waits", [True, False], ids=["a resolver that hangs", "a host that is unknown"])
def test_a_resolver_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, waits: bool) -> None:
    def resolve(*_: object) -> None:
        time.sleep(60 if waits else 0)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    started_at = time.monotonic()
    with pytest.raises(Unreachable, match=r"cannot connect to a\.example") as caught:
        check_reachable("legacy", "https://a.example", 0.3)
    assert caught.value.reason == ("timeout" if waits else "dns")
    assert time.monotonic() - started_at < 50
