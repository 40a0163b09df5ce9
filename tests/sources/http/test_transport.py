from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from sources.errors import Stopped, Unreachable, UsageError
from sources.http import transport
from sources.http.client import Client
from sources.http.exchange import Timeouts
from sources.http.failures import BrokenBody
from sources.http.retries import RetryPolicy
from sources.http.webhook import post_json
from sources.settings import HttpSettings, LegacySettings, Secret
from tests.sources.http.backoff import without_backoff
from tests.sources.rawserver import RawServer, asked, serving

CERTIFICATE = Path(__file__).with_name("localhost.pem")
PAGE = b'{"data": [1, 2, 3]}'
KEPT = b"HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n" + PAGE
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BODY = b'{"firstName": "Zo\xc3\xab"}'


@pytest.fixture(autouse=True)
def _at_once() -> Iterator[None]:
    with without_backoff():
        yield


@pytest.fixture
def tls() -> ssl.SSLContext:
    """A server with a self-signed certificate for localhost."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


@pytest.fixture
def _trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment trusts that certificate and names a proxy; neither has an effect."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")


def legacy(server: RawServer, **options: Any) -> Client:
    return Client("legacy", server.url, "a-planted-key", **options)


def request_to(server: RawServer, x: str = "") -> httpx.Request:
    """A request with five seconds to its deadline."""
    extensions = {"deadline": time.monotonic() + 5}
    return httpx.Request("GET", server.url, headers={"Host": "localhost", "X": x}, extensions=extensions)


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


def in_pieces(*pieces: bytes) -> Callable[[socket.socket], None]:
    def script(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.002)

    return script


# --- connections ---------------------------------------------------------------------------------------------------


def test_a_connection_serves_one_request_after_the_other() -> None:
    with serving(keeping(*[KEPT] * 20)) as server, legacy(server) as one:
        assert [body(one) for _ in range(20)] == [PAGE] * 20
        assert len(server.seen) == 1


def test_a_connection_that_was_idle_too_long_is_not_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "KEEPALIVE_S", 0.0)
    with serving(keeping(KEPT, KEPT)) as server, legacy(server) as one:
        assert body(one) == body(one)
        assert len(server.seen) == 2


@pytest.mark.parametrize("after", [b"", b"HTTP/1.1 408 Request Timeout\r\n\r\n"], ids=["closed", "closed with words"])
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
        pytest.param(KEPT + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", id="a response without a request"),
        pytest.param(KEPT + b"junk", id="junk"),
        pytest.param(KEPT.replace(b"\r\n", b"\r\nConnection: close\r\n", 1), id="connection: close"),
        pytest.param(KEPT.replace(b"1.1", b"1.0"), id="HTTP/1.0"),
    ],
)
def test_a_connection_is_not_reused_after(answer: bytes) -> None:
    with serving(keeping(answer, KEPT)) as server, legacy(server) as one:
        assert body(one) == body(one) == PAGE
        assert len(server.seen) == 2


def test_a_body_that_is_not_read_to_its_end_closes_the_connection() -> None:
    with serving(keeping(KEPT[:-5])) as server:
        one = transport.Transport(server.url)
        for _ in range(2):
            one.handle_request(request_to(server)).close()
        assert len(server.seen) == 2
        one.close()


# --- answers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(
            [CHUNKED, b"5;ext=1\r\n", PAGE[:5], b"\r\ne\r\n" + PAGE[5:], b"\r\n0\r\nX: y\r\n\r\n"], id="chunks"
        ),
        pytest.param([bytes([byte]) for byte in CHUNKED + b"13\r\n" + PAGE + b"\r\n0\r\n\r\n"], id="byte by byte"),
        pytest.param([CHUNKED + b"13\r\n" + PAGE + b"\r\n0\r\nContent-Encoding: br\r\n\r\n"], id="a trailer"),
        pytest.param([b"HTTP/1.1 200 OK\r\n\r\n", PAGE[:7], PAGE[7:]], id="up to the end of the connection"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n", KEPT], id="interim"),
    ],
)
def test_valid_responses(pieces: list[bytes]) -> None:
    with serving(in_pieces(*pieces)) as server, legacy(server, retry=RetryPolicy(attempts=1)) as one:
        assert body(one) == PAGE


def flood(head: bytes, piece: bytes) -> Callable[[socket.socket], None]:
    def script(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece * 1000)

    return script


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(flood(b"HTTP/1.1 200 OK\r\n", b"X-Many: of them\r\n"), id="headers without end"),
        pytest.param(flood(b"HTTP/1.1 200 OK\r\nX: ", b"xxxxxxxx"), id="a header without end"),
        pytest.param(flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), id="interim answers without end"),
        pytest.param(flood(CHUNKED + b"1\r\n[\r\n0\r\n", b"X-Many: of them\r\n"), id="trailers without end"),
        pytest.param(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n", id="another protocol"
        ),
        pytest.param(KEPT.replace(b"HTTP/1.1", b"HTTP/2.0"), id="another version"),
        pytest.param(KEPT.replace(b"\r\n", b"\r\nTransfer-Encoding: chunked\r\n", 1), id="two lengths"),
        pytest.param(KEPT.replace(b"19", b"-1"), id="a negative length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: br\r\n\r\n" + PAGE, id="an unknown transfer encoding"),
    ],
)
def test_invalid_responses(script: Any) -> None:
    once, patient = RetryPolicy(attempts=1), Timeouts(20, 20, 60)
    with serving(script) as server, legacy(server, retry=once, timeouts=patient) as one:
        began = time.monotonic()
        with pytest.raises(Unreachable, match="the connection broke off"):
            body(one)
        assert time.monotonic() - began < 20


def test_the_deadline_of_a_request_ends_a_wait_that_may_last_longer() -> None:
    with serving(keeping()) as server, legacy(server, timeouts=Timeouts(5, 5, 0.2)) as one:
        outcome = one.send("POST", "/customers", BODY)
        assert outcome.state == "in_doubt"
        assert outcome.elapsed_s < 5


def test_a_header_with_a_line_end_is_not_sent() -> None:
    with serving(KEPT) as server:
        one = transport.Transport(server.url)
        with pytest.raises(httpx.LocalProtocolError):
            one.handle_request(request_to(server, x="a\r\nY: b"))
        assert server.seen == []
        one.close()


# --- TLS and proxies -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_trusted")
def test_a_trusted_certificate(tls: ssl.SSLContext) -> None:
    with serving(keeping(KEPT, KEPT), tls=tls) as server, legacy(server, ca_file=CERTIFICATE) as one:
        assert body(one) == PAGE
        outcome = one.send("POST", "/customers", BODY)
        assert (outcome.state, outcome.status) == ("answered", 200)
        assert len(server.seen) == 1


@pytest.mark.usefixtures("_trusted")
def test_a_certificate_that_does_not_verify_is_reported_and_nothing_is_sent(tls: ssl.SSLContext) -> None:
    with serving(KEPT, tls=tls) as server, legacy(server) as one:
        with pytest.raises(Unreachable, match="its certificate does not verify"):
            body(one)
        assert one.send("POST", "/customers", BODY).state == "not_sent"
        assert server.seen == []


def test_an_address_in_capitals_is_like_any_other(tls: ssl.SSLContext) -> None:
    def script(connection: socket.socket) -> None:
        connection.sendall(KEPT)
        asked(connection)

    with serving(script, tls=tls) as server:
        with Client("legacy", server.url.replace("https:", "HTTPS:"), "key", ca_file=CERTIFICATE) as one:
            assert body(one) == PAGE
            outcome = one.send("POST", "/customers", BODY)
        assert outcome.state == "in_doubt"


def test_the_hint_for_a_certificate_names_the_setting_that_helps(tls: ssl.SSLContext) -> None:
    with serving(KEPT, tls=tls) as server:
        with legacy(server) as one, pytest.raises(Unreachable, match="its certificate does not verify") as caught:
            body(one)
        assert caught.value.reason == "certificate"
        assert "sources.http.ca_file" in caught.value.hint
        http = HttpSettings(ca_file=CERTIFICATE)
        settings = LegacySettings(base_url=server.url, api_key=Secret("key"), environment="sandbox")
        with Client.from_settings(settings, http=http) as one:
            assert body(one) == PAGE


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_a_ca_file_that_cannot_be_used_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=r"sources\.http\.ca_file: .*ca\.pem cannot be used"):
        Client("legacy", "https://shop.example", "key", ca_file=file)


def test_a_write_to_a_slow_host_ends_at_the_deadline() -> None:
    def script(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        for _ in range(300):
            connection.recv(1)
            if is_over.wait(0.02):
                return

    is_over = threading.Event()
    with serving(script) as server, legacy(server, timeouts=Timeouts(1, 1, 0.5)) as one:
        outcome = one.send("POST", "/customers", b"x" * 30_000_000)
        is_over.set()
        assert outcome.state == "in_doubt"
        assert outcome.elapsed_s < 5


def test_a_connection_is_not_reused_after_a_chunked_body_with_more_behind_it() -> None:
    chunked = CHUNKED + b"13\r\n" + PAGE + b"\r\n0\r\n\r\n"
    with serving(keeping(chunked, chunked + b"HTTP/1.1 200 OK\r\nX: ", KEPT)) as server, legacy(server) as one:
        assert [body(one) for _ in range(3)] == [PAGE] * 3
        assert len(server.seen) == 2


def test_a_response_that_was_there_before_its_request_is_not_taken_for_one() -> None:
    chunked = CHUNKED + b"13\r\n" + PAGE + b"\r\n0\r\n\r\n"
    evil = CHUNKED + b"4\r\nevil\r\n0\r\n\r\n"
    with serving(keeping(chunked + evil), KEPT) as server, legacy(server) as one:
        assert body(one) == PAGE
        outcome = one.send("POST", "/customers", BODY)
        assert (outcome.state, outcome.status) == ("in_doubt", None)
        assert body(one) == PAGE


@pytest.mark.usefixtures("_trusted")
def test_a_certificate_of_another_host_does_not_verify(tls: ssl.SSLContext) -> None:
    with serving(KEPT, tls=tls) as server:
        url = server.url.replace("localhost", "127.0.0.1")
        with (
            Client("legacy", url, "key", ca_file=CERTIFICATE) as one,
            pytest.raises(Unreachable, match="its certificate does not verify"),
        ):
            body(one)
        assert server.seen == []


def test_a_handshake_that_never_ends_is_bounded_by_the_connect_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        with Client("legacy", url, "key", timeouts=Timeouts(0.2, 5, 5)) as one:
            outcome = one.send("POST", "/customers", BODY)
            assert outcome.state == "not_sent"
            assert outcome.elapsed_s < 5


def test_closing_ends_a_handshake_under_way() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        one = Client("legacy", f"https://127.0.0.1:{listener.getsockname()[1]}", "key")
        future = pool.submit(body, one)
        connection, _ = listener.accept()
        with connection:
            connection.recv(1)
            began = time.monotonic()
            one.close()
            with pytest.raises(Stopped):
                future.result(20)
            assert time.monotonic() - began < 8  # the handshake alone would wait 10


def tunnel(to: str, seen: list[bytes], status: bytes = b"200 Go on") -> Callable[[socket.socket], None]:
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
        if not status.startswith(b"200"):
            return
        with socket.create_connection(("127.0.0.1", port)) as beyond:
            back = threading.Thread(target=pump, args=(beyond, connection))
            back.start()
            pump(connection, beyond)
            back.join(5)

    return script


@pytest.mark.usefixtures("_trusted")
def test_a_proxy_sees_neither_key_nor_body(tls: ssl.SSLContext) -> None:
    seen: list[bytes] = []
    with serving(keeping(KEPT, KEPT), tls=tls) as server, serving(tunnel(server.url, seen)) as proxy:
        with legacy(server, ca_file=CERTIFICATE, proxy=proxy.url.replace("://", "://us%40er:pass@")) as one:
            assert body(one) == body(one) == PAGE
        (asked_for,) = proxy.seen
        target = server.url.removeprefix("https://").encode()
        assert asked_for.startswith(b"CONNECT " + target + b" HTTP/1.1\r\n")
        assert b"Proxy-Authorization: Basic dXNAZXI6cGFzcw==\r\n" in asked_for
        assert b"a-planted-key" not in asked_for + b"".join(seen)
        assert b"a-planted-key" in server.seen[0]
        assert b"Proxy-Authorization" not in server.seen[0]


def test_a_webhook_uses_the_proxy_and_the_certificates_of_the_settings(tls: ssl.SSLContext) -> None:
    seen: list[bytes] = []
    with serving(KEPT, tls=tls) as server, serving(tunnel(server.url, seen)) as proxy:
        settings = HttpSettings(ca_file=CERTIFICATE, proxy=Secret(proxy.url))
        assert post_json(Secret(f"{server.url}/token"), {"text": "done"}, settings) == ""
        assert proxy.seen[0].startswith(b"CONNECT ")
        assert b"POST /token HTTP/1.1\r\n" in server.seen[0]


@pytest.mark.usefixtures("_trusted")
def test_a_write_that_the_proxy_rejects_was_not_sent(tls: ssl.SSLContext) -> None:
    with serving(KEPT, tls=tls) as server, serving(tunnel(server.url, [], b"407 Who are you")) as proxy:
        with legacy(server, ca_file=CERTIFICATE, proxy=proxy.url) as one:
            assert one.send("POST", "/customers", BODY).state == "not_sent"
        assert server.seen == []


@pytest.mark.parametrize(
    "script", [b"", b"HTTP/1.1 200", b"what is this\r\n\r\n", keeping()], ids=["closes", "cut", "no HTTP", "silent"]
)
def test_a_write_that_a_broken_proxy_never_passed_on_was_not_sent(script: Any) -> None:
    with serving(script) as proxy:
        timeouts = Timeouts(0.5, 0.5, 2)
        with Client("legacy", "https://shop.example", "key", proxy=proxy.url, timeouts=timeouts) as one:
            assert one.send("POST", "/customers", BODY).state == "not_sent"
        assert b"key" not in b"".join(proxy.seen)


@pytest.mark.usefixtures("_trusted")
@pytest.mark.parametrize("address", ["socks5://127.0.0.1:1", "https://127.0.0.1:1", "http://", "http://a:pass@b:x"])
def test_a_proxy_of_another_kind_is_an_error(address: str) -> None:
    with pytest.raises(UsageError, match=r"sources\.http\.proxy is not (the|an) address") as caught:
        Client("legacy", "https://shop.example", "key", proxy=address)
    assert "pass" not in str(caught.value).removesuffix(caught.value.hint)


def test_a_body_that_check_rejects_leaves_the_connection_in_use() -> None:
    def check(given: bytes) -> bytes:
        if len(given) < len(PAGE):
            raise BrokenBody("short")
        return given

    short = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    with serving(keeping(short, KEPT)) as server, legacy(server) as one:
        assert one.get("/customers", check=check)[1].attempts == 2
        assert len(server.seen) == 1


def test_the_head_and_the_body_of_a_write_travel_together() -> None:
    """Two packets would cost a second call of the system here, and wake the server twice."""
    packets: list[bytes] = []

    def script(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")  # the server has read this request
        packets.append(connection.recv(65536))
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        connection.recv(1)

    with serving(script) as server, legacy(server) as client:
        for path in ("/products/1/variants/1", "/products/1/variants/2"):
            assert client.send("PATCH", path, BODY).status == 204
    (first,) = server.seen
    for packet, variant in ((first, b"1"), (packets[0], b"2")):
        assert packet.startswith(b"PATCH /products/1/variants/" + variant)
        assert packet.endswith(b"\r\n\r\n" + BODY)
