from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import httpcore
import httpx
import pytest

from orderbridge.sources.errors import Unreachable, UsageError
from orderbridge.sources.http import transport
from orderbridge.sources.http.client import Client
from orderbridge.sources.http.retries import RetryPolicy
from orderbridge.sources.http.webhook import post_json
from orderbridge.sources.settings import HttpSettings, Secret
from tests.sources.rawserver import RawServer, asked, serving

CERTIFICATE = Path(__file__).with_name("localhost.pem")
PAGE = b'{"data": [1, 2, 3]}'
KEPT = b"HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n" + PAGE
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED = HEAD + b"13\r\n" + PAGE + b"\r\n0\r\n\r\n"
BODY = b'{"firstName": "Zo\xc3\xab"}'


@pytest.fixture
def tls(monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server with a self-signed certificate for localhost; the environment trusts it and names a proxy, in vain."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


def legacy(server: RawServer | str, retry: RetryPolicy | None = None, **http: Any) -> Client:
    url = server if isinstance(server, str) else server.url
    return Client("legacy", url, "a-planted-key", retry=retry, http=HttpSettings(**http))


def body(client: Client) -> bytes:
    return client.get("/customers", check=bytes)[0]


def keeping(*answers: bytes) -> Callable[[socket.socket], None]:
    """One connection that sends these responses, one for each request, and then only listens."""

    def script(connection: socket.socket) -> None:
        for answer in answers:
            connection.sendall(answer)
            if not asked(connection):
                return
        connection.recv(1)

    return script


def test_a_connection_serves_one_request_after_the_other_until_it_was_idle_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(keeping(*[KEPT, CHUNKED] * 3)) as server, legacy(server) as one:
        assert [body(one) for _ in range(6)] == [PAGE] * 6
        assert len(server.seen) == 1
    monkeypatch.setattr(transport, "KEEPALIVE_S", 0.0)
    with serving(keeping(KEPT, KEPT)) as server, legacy(server) as one:
        assert body(one) == body(one) == PAGE
        assert len(server.seen) == 2


@pytest.mark.parametrize(
    "after", [b"", b"HTTP/1.1 408 Request Timeout\r\n\r\n"], ids=["closed", "closed with words"]
)
def test_a_write_never_uses_a_connection_that_ended(after: bytes) -> None:
    ended = threading.Event()

    def script(connection: socket.socket) -> None:
        connection.sendall(KEPT)
        time.sleep(0.05)  # beyond the answer, so that nothing of this was read with it
        connection.sendall(after)
        connection.shutdown(socket.SHUT_WR)
        ended.set()
        connection.recv(1)

    with serving(script, KEPT) as server, legacy(server) as one:
        body(one)
        assert ended.wait(5)
        assert one.send("POST", "/customers", BODY).state == "answered"
        assert len(server.seen) == 2


@pytest.mark.parametrize(
    "answer",
    [
        KEPT + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        CHUNKED + b"HTTP/1.1 200 OK\r\nX: ",
        CHUNKED + b"HTTP/1.1 200 OK\r\n\r\n",
        KEPT.replace(b"\r\n", b"\r\nConnection: close\r\n", 1),
        KEPT.replace(b"1.1", b"1.0"),
    ],
)
def test_a_connection_is_not_reused_after(answer: bytes) -> None:
    with serving(keeping(answer, KEPT)) as server, legacy(server) as one:
        assert body(one) == PAGE
        assert one.send("POST", "/customers", BODY).state == "answered"
        assert len(server.seen) == 2


def test_a_connection_closes_before_the_end_of_a_body_and_with_its_transport() -> None:
    with serving(keeping(KEPT[:-5])) as server:
        one = transport.Transport(server.url)
        request = httpx.Request("GET", server.url, extensions={"deadline": time.monotonic() + 5})
        for _ in range(2):
            one.handle_request(request).close()
        assert len(server.seen) == 2
        one.close()
        with pytest.raises(httpx.ConnectError, match="closed"):
            one.handle_request(request)


def test_a_response_that_was_there_before_its_request_is_not_taken_for_one() -> None:
    evil = HEAD + b"4\r\nevil\r\n0\r\n\r\n"
    with serving(keeping(CHUNKED + evil), KEPT) as server, legacy(server) as one:
        assert body(one) == PAGE
        outcome = one.send("POST", "/customers", BODY)
        assert (outcome.state, outcome.status) == ("in_doubt", None)
        assert body(one) == PAGE


def test_the_deadline_ends_a_write_to_a_host_that_does_not_answer() -> None:
    with serving(keeping()) as server, legacy(server, timeout_s=0.4) as one:
        began = time.monotonic()
        outcome = one.send("POST", "/customers", b"x")
        assert time.monotonic() - began < 8
    assert outcome.state == "in_doubt"
    assert "no complete response within 0.4 s" in str(outcome.error)


def test_a_write_that_breaks_off_within_its_first_bytes_is_in_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "httpcore._backends.sync.SyncStream.write",
        mock.Mock(side_effect=httpcore.WriteError("reset")),
    )
    with serving(keeping()) as server, legacy(server) as one:
        assert one.send("POST", "/customers", BODY).state == "in_doubt"


def test_a_trusted_certificate(tls: ssl.SSLContext) -> None:
    with serving(keeping(KEPT), tls=tls) as server, legacy(server, ca_file=CERTIFICATE) as one:
        assert body(one) == PAGE


@pytest.mark.parametrize("ca_file", [None, CERTIFICATE], ids=["not trusted", "of another host"])
def test_a_certificate_that_does_not_verify_is_reported_and_nothing_is_sent(
    tls: ssl.SSLContext, ca_file: Path | None
) -> None:
    with serving(KEPT, tls=tls) as server:
        with legacy(
            server.url.replace("localhost", "127.0.0.1") if ca_file else server, ca_file=ca_file
        ) as one:
            with pytest.raises(Unreachable, match="its certificate does not verify") as caught:
                body(one)
            assert one.send("POST", "/customers", BODY).state == "not_sent"
        assert (caught.value.reason, "sources.http.ca_file" in caught.value.hint) == (
            "certificate",
            True,
        )
        assert server.seen == []


def test_a_ca_file_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.ca.pem").touch()
    (tmp_path / "no.ca.pem").write_bytes(b"no certificate")
    for name in ("none.ca.pem", "empty.ca.pem", "no.ca.pem"):
        with pytest.raises(UsageError, match=r"sources\.http\.ca_file: .*ca\.pem cannot be used"):
            legacy("https://shop.example", ca_file=tmp_path / name)


def test_a_handshake_that_never_ends_is_bounded_by_the_connect_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("orderbridge.sources.http.client.CONNECT_S", 0.2)
    listener = socket.create_server(("127.0.0.1", 0))
    with listener, legacy(f"https://127.0.0.1:{listener.getsockname()[1]}") as one:
        began = time.monotonic()
        assert one.send("POST", "/customers", BODY).state == "not_sent"
        assert time.monotonic() - began < 8


def tunnel(
    to: str, seen: list[bytes], status: bytes = b"200 Go on"
) -> Callable[[socket.socket], None]:
    """A proxy: responds to CONNECT, then relays both ways."""
    port = int(to.rsplit(":", 1)[1])

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while part := source.recv(65536):
                seen.append(part)
                sink.sendall(part)
            sink.shutdown(socket.SHUT_WR)

    def script(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 " + status + b"\r\n\r\n")
        if status.startswith(b"200"):
            with socket.create_connection(("127.0.0.1", port)) as beyond:
                back = threading.Thread(target=pump, args=(beyond, connection))
                back.start()
                pump(connection, beyond)
                back.join(5)

    return script


def test_a_proxy_sees_neither_key_nor_body(tls: ssl.SSLContext) -> None:
    seen: list[bytes] = []
    with (
        serving(keeping(KEPT, KEPT), tls=tls) as server,
        serving(tunnel(server.url, seen)) as proxy,
    ):
        address = Secret(proxy.url.replace("://", "://us%40er:pass@"))
        with legacy(server, ca_file=CERTIFICATE, proxy=address) as one:
            assert body(one) == body(one) == PAGE
        (asked_for,) = proxy.seen
        target = server.url.removeprefix("https://").encode()
        assert asked_for.startswith(b"CONNECT " + target + b" HTTP/1.1\r\n")
        assert b"Proxy-Authorization: Basic dXNAZXI6cGFzcw==\r\n" in asked_for
        assert b"a-planted-key" not in asked_for + b"".join(seen)
        assert b"a-planted-key" in server.seen[0]
        assert b"Proxy-Authorization" not in server.seen[0]


def test_a_webhook_uses_the_proxy_and_the_certificates_of_the_settings(tls: ssl.SSLContext) -> None:
    with (
        serving(KEPT, KEPT.replace(b"200", b"404"), tls=tls) as server,
        serving(tunnel(server.url, [])) as proxy,
    ):
        settings = HttpSettings(ca_file=CERTIFICATE, proxy=Secret(proxy.url))
        assert post_json(Secret(f"{server.url}/token"), {"text": "done"}, settings) == ""
        assert proxy.seen[0].startswith(b"CONNECT ")
        assert b"POST /token HTTP/1.1\r\n" in server.seen[0]
        refused = post_json(Secret(f"{server.url}/token"), {"text": "done"}, settings)
        assert refused == f"{server.url.removeprefix('https://')} answered with status 404"


@pytest.mark.parametrize(
    "script",
    [b"HTTP/1.1 407 Who are you\r\n\r\n", b"", b"HTTP/1.1 200", b"what is this\r\n\r\n", keeping()],
    ids=["rejects", "closes", "cut", "no HTTP", "silent"],
)
def test_a_write_that_a_proxy_never_passed_on_was_not_sent(script: Any) -> None:
    with serving(script) as proxy:
        with legacy(
            "https://shop.example", proxy=Secret(proxy.url), timeout_s=1.0, read_timeout_s=0.5
        ) as one:
            outcome = one.send("POST", "/customers", BODY)
        assert outcome.state == "not_sent"
        assert outcome.error is not None
        assert (outcome.error.reason == "proxy") is (isinstance(script, bytes) and b"407" in script)
        assert b"key" not in b"".join(proxy.seen)
