from __future__ import annotations

import copy
import gzip
import json
import logging
import pickle
import socket
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from unittest import mock

import httpx
import pytest

from sources.contract import Family
from sources.errors import (
    AccessError,
    BridgeError,
    ContractBroken,
    HttpError,
    HttpRejected,
    Stopped,
    Unreachable,
    UsageError,
)
from sources.extract.v1_pages import V1Cursor
from sources.http.client import Client
from sources.http.exchange import Caps, Timeouts
from sources.http.failures import MESSAGE_MAX, BrokenBody, platform_message
from sources.http.retries import RetryPolicy
from sources.settings import PublicV1Settings, Secret
from tests.soak.transport import requested_url
from tests.sources.http.backoff import without_backoff
from tests.sources.rawserver import Script, drip, reset, serving

KEY = "acme_test_PLANTED-0123456789"
PASSWORD = "pl4nted-passw0rd"
BODY = json.dumps({"password": PASSWORD}).encode()
PAGE = b'{"data": [1, 2, 3]}'
OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 19\r\n\r\n" + PAGE


@pytest.fixture(autouse=True)
def _at_once() -> Iterator[None]:
    with without_backoff():
        yield


def parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError as error:
        raise BrokenBody(type(error).__name__) from None


def client(handler: Callable[[httpx.Request], httpx.Response], family: Family = "legacy", **more: Any) -> Client:
    return Client(family, "https://shop.example", KEY, transport=httpx.MockTransport(handler), **more)


def answers(
    *given: httpx.Response | Exception,
) -> tuple[list[httpx.Request], Callable[[httpx.Request], httpx.Response]]:
    """The requests received, and a handler with these responses in turn, the last one from then on."""
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        answer = given[min(len(seen), len(given)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(
            answer.status_code,
            headers=answer.headers,
            stream=httpx.ByteStream(b"".join(answer.stream)),  # type: ignore[arg-type]
        )

    return seen, handler


def with_headers(*headers: str, body: bytes = b"", status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", "Connection: close", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


# --- requests ------------------------------------------------------------------------------------------------------


def test_a_legacy_request() -> None:
    seen, handler = answers(httpx.Response(200, content=PAGE))
    with client(handler) as one:
        opened, answer = one.get("/customers", {"page": 2, "term": "a b&c"}, check=parsed)
    assert opened == {"data": [1, 2, 3]}
    assert (answer.status, answer.body, answer.attempts, answer.throttled) == (200, PAGE, 1, False)
    (request,) = seen
    assert str(requested_url(request)) == "https://shop.example/customers?page=2&term=a%20b%26c"
    assert request.headers["api-key"] == KEY
    assert "authorization" not in request.headers
    assert request.headers["accept-encoding"] == "gzip"


def test_a_public_v1_request() -> None:
    seen, handler = answers(httpx.Response(200, content=PAGE))
    client(handler, "public_v1").get("/whoami", check=parsed)
    assert str(requested_url(seen[0])) == "https://shop.example/public/v1/whoami"
    assert seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert "api-key" not in seen[0].headers


def test_cookies_are_not_kept() -> None:
    seen, handler = answers(httpx.Response(200, content=PAGE, headers={"Set-Cookie": "a=b"}))
    one = client(handler)
    for _ in range(2):
        one.get("/customers", check=parsed)
    assert "cookie" not in seen[1].headers


@pytest.mark.parametrize("path", ["", "customers", "/a?b=c", "/a#b", "/a/../b", "/a//b", "/a b", "/./a"])
def test_paths_outside_of_the_base_are_an_error(path: str) -> None:
    with pytest.raises(ValueError, match="a path consists of letters"):
        client(answers(httpx.Response(200))[1]).get(path, check=len)


@pytest.mark.parametrize(
    "url",
    [
        "http://shop.example",
        "ftp://shop.example",
        "shop.example",
        "https://u:p@shop.example",
        "https://a?x=1",
        "https://[",
    ],
)
def test_invalid_addresses_are_an_error_that_does_not_show_them(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Client("legacy", url, KEY)
    assert url not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "http://localhost", "http://[::1]:8", "https://shop.example/base/"]
)
def test_valid_addresses(url: str) -> None:
    Client("legacy", url, KEY).close()


@pytest.mark.parametrize("key", ["", "a b", "a\r\nb", "ключ"])
def test_keys_that_no_header_can_carry_are_an_error(key: str) -> None:
    with pytest.raises(UsageError) as caught:
        Client("legacy", "https://shop.example", key)
    assert not key or key not in str(caught.value)


# --- retries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first",
    [pytest.param(httpx.Response(status), id=str(status)) for status in (408, 429, 500, 502, 503, 504, 599)]
    + [
        pytest.param(httpx.ConnectError("x"), id="connect"),
        pytest.param(httpx.ReadTimeout("x"), id="timeout"),
        pytest.param(httpx.RemoteProtocolError("x"), id="protocol"),
        pytest.param(httpx.Response(200, content=b'{"data": ['), id="cut JSON"),
        pytest.param(httpx.Response(200, content=b"<html>maintenance</html>"), id="HTML"),
        pytest.param(httpx.Response(200, content=b""), id="empty"),
    ],
)
def test_reads_are_repeated(first: httpx.Response | Exception) -> None:
    seen, handler = answers(first, httpx.Response(200, content=PAGE))
    opened, answer = client(handler).get("/customers", check=parsed)
    assert opened["data"] == [1, 2, 3]
    assert (answer.attempts, len(seen)) == (2, 2)
    assert answer.throttled is (isinstance(first, httpx.Response) and first.status_code == 429)


def test_reads_end_after_eight_attempts() -> None:
    seen, handler = answers(httpx.Response(503))
    with pytest.raises(Unreachable, match="after 8 attempts") as caught:
        client(handler).get("/customers", check=parsed)
    assert (len(seen), caught.value.status, caught.value.exit_code) == (8, 503, 4)


def test_a_body_that_stays_broken() -> None:
    with pytest.raises(Unreachable, match="JSONDecodeError"):
        client(answers(httpx.Response(200, content=b"<html>"))[1]).get("/customers", check=parsed)


def test_an_error_with_status_200_is_requested_again_and_named_in_the_end() -> None:
    error = httpx.Response(200, json={"error": {"code": "BUSY", "message": "no", "requestId": "r1"}})
    seen, handler = answers(error, error, httpx.Response(200, json={"data": [], "hasMore": False}))
    page, _ = client(handler, "public_v1").get("/orders", check=V1Cursor(10).parse)
    assert (page.count, len(seen)) == (0, 3)
    with pytest.raises(Unreachable, match=r"an error in place of the rows.*BUSY") as caught:
        client(answers(error)[1], "public_v1").get("/orders", check=V1Cursor(10).parse)
    assert (caught.value.status, caught.value.request_id) == (200, "r1")


def test_a_part_of_a_list_is_not_the_list() -> None:
    with pytest.raises(ContractBroken, match="206"):
        client(answers(httpx.Response(206, content=PAGE))[1]).get("/customers", check=parsed)


def test_a_long_retry_after_ends_the_read_and_is_reported() -> None:
    seen, handler = answers(httpx.Response(429, headers={"Retry-After": "3600"}))
    with pytest.raises(Unreachable, match="3600 s"):
        client(handler).get("/customers", check=parsed)
    assert len(seen) == 1


def test_exceptions_of_check_pass_through() -> None:
    def check(body: bytes) -> None:
        raise ContractBroken("`data` is absent")

    seen, handler = answers(httpx.Response(200, content=PAGE))
    with pytest.raises(ContractBroken, match="absent"):
        client(handler).get("/customers", check=check)
    assert len(seen) == 1


def v1_error(status: int, code: object, request_id: object = "req-1") -> httpx.Response:
    return httpx.Response(status, json={"error": {"code": code, "message": PASSWORD, "requestId": request_id}})


def legacy_error(status: int, code: object) -> httpx.Response:
    return httpx.Response(status, json={"errors": [{"message": PASSWORD, "code": code}]})


def refused(answer: httpx.Response, family: Family = "legacy") -> HttpError:
    seen, handler = answers(answer)
    with pytest.raises(HttpError) as caught:
        client(handler, family).get("/orders", {"startingAfter": "b2Zmc2V0"}, check=parsed)
    assert len(seen) == 1
    assert "b2Zmc2V0" not in str(caught.value)
    assert PASSWORD not in str(caught.value)
    return caught.value


def test_401_has_a_hint_for_each_code() -> None:
    hints = set()
    for code in ("UNAUTHENTICATED", "INVALID_API_KEY", "KEY_EXPIRED", "OTHER"):
        error = refused(v1_error(401, code), "public_v1")
        assert isinstance(error, AccessError)
        assert (error.code, error.request_id, error.status, error.exit_code) == (code, "req-1", 401, 3)
        hints.add(error.hint)
    hints.add(refused(httpx.Response(401)).hint)
    assert "sources.legacy.api_key" in refused(legacy_error(401, "KEY_EXPIRED")).hint
    assert len(hints) == 5


def test_403_is_about_access() -> None:
    assert isinstance(refused(httpx.Response(403, content=b"forbidden")), AccessError)
    assert isinstance(refused(v1_error(403, "X"), "public_v1"), AccessError)


@pytest.mark.parametrize(
    ("answer", "family", "code"),
    [
        pytest.param(v1_error(400, "BAD_CURSOR"), "public_v1", "BAD_CURSOR", id="v1"),
        pytest.param(legacy_error(400, 1042), "legacy", "1042", id="legacy integer"),
        pytest.param(legacy_error(422, "TAKEN"), "legacy", "TAKEN", id="legacy text"),
        pytest.param(legacy_error(422, True), "legacy", "", id="boolean"),
        pytest.param(legacy_error(422, "two words"), "legacy", "", id="words"),
        pytest.param(legacy_error(422, "x" * 65), "legacy", "", id="long"),
        pytest.param(legacy_error(422, f"key:{KEY.upper()}"), "legacy", "", id="the key"),
        pytest.param(legacy_error(422, KEY[-5:]), "legacy", KEY[-5:], id="digits as in the key"),
        pytest.param(httpx.Response(404, content=b"<html>"), "legacy", "", id="HTML"),
        pytest.param(httpx.Response(404, content=b"[" * 100_000), "legacy", "", id="deep"),
        pytest.param(httpx.Response(404, json={"errors": []}), "legacy", "", id="no errors"),
        pytest.param(httpx.Response(404, json={"errors": {"code": 1}}), "legacy", "", id="another form"),
        pytest.param(legacy_error(404, 7), "public_v1", "", id="the other family's form"),
        pytest.param(v1_error(404, "A", "\x1b[31m"), "public_v1", "A", id="odd requestId"),
    ],
)
def test_codes_of_rejections(answer: httpx.Response, family: Family, code: str) -> None:
    error = refused(answer, family)
    assert isinstance(error, HttpRejected)
    assert (error.code, error.path, error.verb, error.family) == (code, "/orders", "GET", family)
    assert "\x1b" not in str(error)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_an_error_and_nothing_reaches_the_other_host(status: int) -> None:
    with serving(OK) as other:
        target = f"Location: {other.url}/x?api-key={KEY}"
        with (
            serving(with_headers(target, status=f"{status} Moved")) as server,
            Client("legacy", server.url, KEY) as one,
        ):
            with pytest.raises(HttpRejected, match=r"redirected to 127\.0\.0\.1 ") as caught:
                one.get("/customers", check=parsed)
            outcome = one.send("POST", "/customers", BODY)
        assert KEY not in str(caught.value)
        assert "/x" not in str(caught.value)
        assert (outcome.state, outcome.status) == ("in_doubt", status)
        assert other.seen == []


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("//[x", "an unreadable address"),
        ("https://\x1b[31m.test/", "an unreadable address"),
        ("https://a_planted_host.test/", "an unreadable address"),
        ("https://PLANTED-0123456789.test/", "an unreadable address"),
        ("/login", "the same host"),
    ],
)
def test_a_redirect_is_an_error_that_names_the_host_if_it_is_one_and_not_the_key(location: str, words: str) -> None:
    _, handler = answers(httpx.Response(302, headers=[(b"Location", location.encode())]))
    with pytest.raises(HttpRejected) as caught:
        Client("legacy", "https://shop.test", "Planted-0123456789", transport=httpx.MockTransport(handler)).get(
            "/orders", check=parsed
        )
    assert f"redirected to {words} " in str(caught.value)


# --- the wire ------------------------------------------------------------------------------------------------------

CUT_BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + PAGE
CUT_CHUNK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n13\r\n" + PAGE + b"\r\n"


def gzipped(body: bytes, encoding: str = "gzip") -> bytes:
    return with_headers(f"Content-Encoding: {encoding}", body=body)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(reset, id="reset before an answer"),
        pytest.param(b"", id="closed before an answer"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Le", id="closed in the headers"),
        pytest.param(CUT_BODY, id="shorter than announced"),
        pytest.param(CUT_CHUNK, id="no last chunk"),
        pytest.param(b"what is this\r\n\r\n", id="no HTTP"),
        pytest.param(gzipped(gzip.compress(PAGE)[:-8]), id="gzip without its end"),
        pytest.param(gzipped(gzip.compress(PAGE)[:12]), id="gzip cut"),
        pytest.param(gzipped(gzip.compress(PAGE)[:-8] + b"\0" * 8), id="gzip with a wrong sum"),
        pytest.param(gzipped(gzip.compress(PAGE) + b"junk"), id="gzip and more"),
        pytest.param(gzipped(PAGE), id="no gzip at all"),
        pytest.param(drip(b"HTTP/1.1 200 OK\r\nX: ", b"x"), id="headers drip"),
        pytest.param(drip(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b" "), id="body drips"),
        pytest.param(drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), id="interim answers drip"),
    ],
)
def test_broken_responses_are_requested_again(first: Script) -> None:
    with serving(first, OK) as server, Client("legacy", server.url, KEY, timeouts=Timeouts(9, 9, 1)) as one:
        began = time.monotonic()
        opened, answer = one.get("/customers", check=parsed)
        assert opened["data"] == [1, 2, 3]
        assert answer.attempts == 2
        assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(gzipped(gzip.compress(PAGE)), id="gzip"),
        pytest.param(gzipped(gzip.compress(PAGE[:5]) + gzip.compress(PAGE[5:])), id="gzip in two members"),
        pytest.param(gzipped(zlib.compress(PAGE), "deflate"), id="deflate"),
        pytest.param(gzipped(zlib.compress(PAGE, wbits=-15), "Deflate"), id="raw deflate"),
        pytest.param(gzipped(PAGE, "identity"), id="identity"),
        pytest.param(CUT_CHUNK + b"0\r\n\r\n", id="chunks"),
    ],
)
def test_supported_encodings(whole: bytes) -> None:
    with serving(whole) as server, Client("legacy", server.url, KEY) as one:
        assert one.get("/customers", check=parsed)[1].body == PAGE


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(gzipped(gzip.compress(b"0" * 3_000_000)), "decoded", id="bomb"),
        pytest.param(gzipped(gzip.compress(gzip.compress(PAGE)), "gzip, gzip"), "more than once", id="stacked"),
        pytest.param(
            gzipped(gzip.compress(gzip.compress(PAGE)), "gzip\r\nContent-Encoding: gzip"),
            "more than once",
            id="two fields",
        ),
        pytest.param(gzipped(gzip.compress(b"") * 200), "too many parts", id="members"),
        pytest.param(gzipped(PAGE, "br"), "not asked for", id="unknown"),
        pytest.param(with_headers(body=b" " * 30_000), "larger than 20000", id="large"),
    ],
)
def test_unacceptable_bodies_are_not_requested_again(answer: bytes, words: str) -> None:
    with (
        serving(answer) as server,
        Client("legacy", server.url, KEY, caps=Caps(20_000, 1_000_000)) as one,
    ):
        with pytest.raises(ContractBroken, match=words):
            one.get("/customers", check=parsed)
        assert len(server.seen) == 1


def test_a_dripping_response_ends_within_the_budget() -> None:
    script = drip(b"HTTP/1.1 200 OK\r\nX: ", b"x")
    policy = RetryPolicy(attempts=3, budget_s=0.5)
    with (
        serving(script) as server,
        Client("legacy", server.url, KEY, timeouts=Timeouts(1, 1, 0.2), retry=policy) as one,
    ):
        began = time.monotonic()
        with pytest.raises(Unreachable, match="no complete response"):
            one.get("/customers", check=parsed)
        assert time.monotonic() - began < 20


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(OK) as proxy, serving(OK) as server:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "")
        with Client("legacy", server.url, KEY) as one:
            one.get("/customers", check=parsed)
        assert (len(proxy.seen), len(server.seen)) == (0, 1)
        with Client("legacy", server.url, KEY, proxy=proxy.url) as one:
            one.get("/customers", check=parsed)
        assert (len(proxy.seen), len(server.seen)) == (1, 1)


# --- stopping ------------------------------------------------------------------------------------------------------


def test_stop_ends_a_wait() -> None:
    stop = threading.Event()
    one = client(answers(httpx.Response(503, headers={"Retry-After": "200"}))[1], stop=stop)
    threading.Timer(0.1, stop.set).start()
    with pytest.raises(Stopped):
        one._sleep(100)
    with pytest.raises(Stopped):
        one.get("/customers", check=parsed)
    with pytest.raises(Stopped):
        one.send("POST", "/customers", BODY)


def test_closing_wakes_a_read_under_way() -> None:
    quiet = threading.Event()

    def script(connection: socket.socket) -> None:
        quiet.wait(60)

    with serving(script) as server, ThreadPoolExecutor(1) as pool:
        one = Client("legacy", server.url, KEY)
        future = pool.submit(one.get, "/customers", check=parsed)
        while not server.seen:
            time.sleep(0.01)
        began = time.monotonic()
        one.close()
        with pytest.raises(Stopped):
            future.result(20)
        assert time.monotonic() - began < 20
        quiet.set()


def test_what_a_connection_raises_is_a_stop_or_a_doubt_only_once_the_client_is_closed() -> None:
    clients: list[Client] = []

    def broken(request: httpx.Request) -> httpx.Response:
        for one in clients:
            one.close()
        raise RuntimeError("as no library documents")

    with pytest.raises(RuntimeError):
        client(broken).get("/customers", check=parsed)
    clients.append(client(broken))
    assert clients[0].send("POST", "/customers", BODY).state == "in_doubt"
    clients[:] = [client(broken)]
    with pytest.raises(Stopped):
        clients[0].get("/customers", check=parsed)


def test_a_client_serves_several_threads() -> None:
    seen, handler = answers(httpx.Response(200, content=PAGE))
    with client(handler) as one, ThreadPoolExecutor(8) as pool:
        assert all(answer.attempts == 1 for _, answer in pool.map(lambda _: one.get("/a", check=parsed), range(200)))
    assert len(seen) == 200


# --- writes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "state", "code"),
    [
        pytest.param(httpx.Response(201, content=b'{"id": 7}'), "answered", None, id="created"),
        pytest.param(httpx.Response(204), "answered", None, id="no content"),
        pytest.param(legacy_error(400, 12), "answered", "12", id="400"),
        pytest.param(legacy_error(409, "TAKEN"), "answered", "TAKEN", id="409"),
        pytest.param(legacy_error(409, PASSWORD), "answered", "", id="an echoed password"),
        pytest.param(httpx.Response(409, json={"errors": [{"code": 7}]}), "answered", "7", id="a code alone"),
        pytest.param(httpx.Response(409, json={"errors": [{"message": "no"}]}), "answered", "", id="a message alone"),
        pytest.param(httpx.Response(401), "answered", "", id="401"),
        pytest.param(httpx.Response(403, content=b"no"), "answered", "", id="403"),
        pytest.param(httpx.Response(429, headers={"Retry-After": "9"}), "answered", "", id="429"),
        pytest.param(httpx.Response(404, content=b"<html>"), "in_doubt", "", id="a stranger's 404"),
        pytest.param(legacy_error(408, 1), "in_doubt", "1", id="408"),
        pytest.param(legacy_error(500, 1), "in_doubt", "1", id="500"),
        pytest.param(httpx.Response(302), "in_doubt", "", id="302"),
        pytest.param(httpx.ReadTimeout("x"), "in_doubt", "", id="timeout"),
        pytest.param(httpx.RemoteProtocolError("x"), "in_doubt", "", id="protocol"),
        pytest.param(httpx.ConnectError("x"), "not_sent", "", id="connect"),
        pytest.param(httpx.ConnectTimeout("x"), "not_sent", "", id="connect timeout"),
    ],
)
def test_outcomes_of_writes(answer: httpx.Response | Exception, state: str, code: str | None) -> None:
    seen, handler = answers(answer)
    outcome = client(handler).send("POST", "/customers", BODY)
    assert len(seen) == 1
    assert seen[0].content == BODY
    assert seen[0].headers["content-type"] == "application/json"
    assert outcome.state == state
    assert (outcome.error.code if outcome.error else None) == code
    assert PASSWORD not in repr(outcome) + str(outcome.error)
    if isinstance(answer, httpx.Response):
        assert outcome.status == answer.status_code
        assert outcome.retry_after_s == (9.0 if answer.status_code == 429 else None)


def test_a_write_to_a_closed_port_was_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with Client("legacy", url, KEY) as one:
        assert one.send("POST", "/customers", BODY).state == "not_sent"


def test_a_write_out_of_time_before_its_first_byte_was_not_sent() -> None:
    with serving(OK) as server, Client("legacy", server.url, KEY, timeouts=Timeouts(1, 1, 0.0)) as one:
        assert one.send("POST", "/customers", BODY).state == "not_sent"
        assert server.seen == []


@pytest.mark.parametrize("script", [reset, b"", b"HTTP/1.1 201 Cre"], ids=["reset", "closed", "half a line"])
def test_a_write_whose_response_was_lost_is_in_doubt(script: Script) -> None:
    with serving(script) as server, Client("legacy", server.url, KEY) as one:
        outcome = one.send("POST", "/customers", BODY)
        assert (outcome.state, outcome.status) == ("in_doubt", None)
        assert len(server.seen) == 1


def test_a_201_settles_a_write_although_its_body_is_cut_off() -> None:
    cut = b"HTTP/1.1 201 Created\r\nContent-Length: 99\r\n\r\n{"
    with serving(cut) as server, Client("legacy", server.url, KEY) as one:
        outcome = one.send("POST", "/customers", BODY)
        assert (outcome.state, outcome.status, outcome.body) == ("answered", 201, b"")


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(b"HTTP/1.1 %d OK\r\nContent-Length: 99\r\n\r\n{", id="cut"),
        pytest.param(b"HTTP/1.1 %d OK\r\nContent-Length: 9\r\n\r\n", id="announced and empty"),
        pytest.param(b"HTTP/1.1 %d OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", id="no last chunk"),
        pytest.param(b"HTTP/1.1 %d OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", id="empty gzip"),
        pytest.param(
            b"HTTP/1.1 %d OK\r\nContent-Encoding: gzip\r\nContent-Length: 12\r\n\r\n"
            + gzip.compress(PAGE, mtime=0)[:12],
            id="gzip cut",
        ),
        pytest.param(b"HTTP/1.1 %d OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}", id="unknown encoding"),
    ],
)
def test_a_200_with_a_broken_body_is_in_doubt_and_a_201_is_not(script: bytes) -> None:
    for status, state in ((200, "in_doubt"), (202, "in_doubt"), (201, "answered")):
        with serving(script % status) as server, Client("legacy", server.url, KEY) as one:
            outcome = one.send("PATCH", "/customers", BODY)
        assert (outcome.state, outcome.status, outcome.body, outcome.is_broken) == (state, status, b"", True)
        assert (outcome.error is None) == (state == "answered")
        if outcome.error is not None:
            assert outcome.error.status == status
            assert outcome.error.hint


def test_the_outcome_of_a_write_has_body_and_content_type() -> None:
    seen, handler = answers(
        httpx.Response(200, content=b"{}", headers={"Content-Type": "Application/JSON; charset=utf-8"}),
        httpx.Response(200, headers={"Content-Type": "text/html"}),
        httpx.Response(204),
    )
    with client(handler) as one:
        outcomes = [one.send("POST", "/customers", BODY) for _ in range(3)]
    assert len(seen) == 3
    assert [(o.state, o.body, o.content_type, o.is_broken) for o in outcomes] == [
        ("answered", b"{}", "application/json", False),
        ("answered", b"", "text/html", False),
        ("answered", b"", "", False),
    ]


# --- reasons and hints ---------------------------------------------------------------------------------------------


def failure_of(one: Client) -> HttpError:
    with one, pytest.raises(Unreachable) as caught:
        one.get("/customers", check=parsed)
    return caught.value


def test_a_name_that_does_not_resolve_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups = []

    def getaddrinfo(host: str, *_: object, **__: object) -> None:
        lookups.append(host)
        raise socket.gaierror(socket.EAI_NONAME, f"Name or service not known: {KEY}")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    one = Client("public_v1", "https://no-such-host.example", KEY)
    error = failure_of(one)
    assert (error.reason, error.host, error.status) == ("dns", "no-such-host.example", None)
    assert "cannot connect to no-such-host.example: the host name does not resolve" in str(error)
    assert KEY not in str(error)
    assert "base_url" in error.hint
    assert len(lookups) == 2
    with Client("public_v1", "https://no-such-host.example", KEY) as two:
        assert two.send("POST", "/customers", BODY).state == "not_sent"


def test_name_servers_that_do_not_answer_are_asked_as_often_as_a_host_that_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lookups = mock.Mock(side_effect=socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"))
    monkeypatch.setattr(socket, "getaddrinfo", lookups)
    error = failure_of(Client("public_v1", "https://a.example", KEY, retry=RetryPolicy(attempts=5, base_s=0.01)))
    assert error.reason == "dns"
    assert lookups.call_count == 5
    with Client("public_v1", "https://a.example", KEY) as two:
        assert two.send("POST", "/customers", BODY).state == "not_sent"


def test_a_refused_connection_names_host_and_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = failure_of(Client("legacy", f"http://127.0.0.1:{port}", KEY, retry=RetryPolicy(attempts=2)))
    assert (error.reason, error.host) == ("refused", f"127.0.0.1:{port}")
    assert f"cannot connect to 127.0.0.1:{port}: connection refused, after 2 attempts" in str(error)


def test_a_connection_that_times_out_names_host_and_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        error = failure_of(Client("legacy", url, KEY, timeouts=Timeouts(0.1, 1, 1), retry=RetryPolicy(attempts=1)))
    assert error.reason == "timeout"
    assert "timed out" in str(error)


def test_an_address_of_several_is_tried_until_one_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(OK) as server:
        port = int(server.url.rsplit(":", 1)[1])
        addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in ("127.9.9.9", "127.0.0.1")]
        resolve = socket.getaddrinfo
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda host, *a, **k: addresses if host == "localhost" else resolve(host, *a, **k)
        )
        with Client("legacy", f"http://localhost:{port}", KEY) as one:
            assert one.get("/customers", check=parsed)[1].attempts == 1


def test_a_host_that_does_not_speak_tls_has_a_reason() -> None:
    def greet(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.sendall(b"220 hello\r\n")
            connection.makefile("rb").read()  # a close before the client's would take the greeting along

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        greeting = pool.submit(greet, listener)
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        error = failure_of(Client("legacy", url, KEY, retry=RetryPolicy(attempts=1)))
        greeting.result()
    assert error.reason == "tls"


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        pytest.param(
            httpx.Response(200, html="<!doctype html><p>Log in"), "base_url: it may name a website", id="page"
        ),
        pytest.param(httpx.Response(200, content=b" <html>"), "base_url: it may name a website", id="page untyped"),
        pytest.param(httpx.Response(200, content=b'{"data": ['), "report the path and the time", id="cut JSON"),
        pytest.param(httpx.Response(400, content=b"{}"), "sources.legacy.page_limit", id="400"),
        pytest.param(httpx.Response(404), "Check sources.legacy.base_url", id="404"),
        pytest.param(httpx.Response(429), "Try again later", id="429"),
        pytest.param(httpx.Response(503), "Try again later", id="503"),
        pytest.param(httpx.Response(206, content=PAGE), "whoever runs a proxy", id="206"),
        pytest.param(httpx.Response(302), "Check sources.legacy.base_url", id="302"),
    ],
)
def test_every_failure_has_a_hint(answer: httpx.Response, hint: str) -> None:
    with client(answers(answer)[1], retry=RetryPolicy(attempts=1)) as one, pytest.raises(HttpError) as caught:
        one.get("/customers", check=parsed)
    assert hint in caught.value.hint


def test_a_wait_that_the_platform_asks_for_is_announced(caplog: pytest.LogCaptureFixture) -> None:
    _, handler = answers(
        httpx.Response(503), httpx.Response(429, headers={"Retry-After": "7"}), httpx.Response(200, content=PAGE)
    )
    with caplog.at_level(logging.WARNING, "orderbridge.client"), client(handler) as one:
        one.get("/customers", check=parsed)
    (record,) = caplog.records
    assert record.getMessage() == "legacy: the platform asks to wait 7 s (status 429); waiting"


# --- secrets -------------------------------------------------------------------------------------------------------

ECHO = json.dumps({"errors": [{"message": f"{KEY} {PASSWORD}", "code": KEY}]}).encode()


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(with_headers(body=ECHO, status="401 No"), id="401"),
        pytest.param(with_headers(body=ECHO, status=f"400 {KEY}"), id="400"),
        pytest.param(with_headers(body=ECHO, status="503 No"), id="503"),
        pytest.param(with_headers(body=KEY.encode()), id="broken body"),
        pytest.param(with_headers(f"Location: https://{KEY}.example/{KEY}", status="302 No"), id="redirect"),
        pytest.param(with_headers(f"Location: //[{KEY}", f"Set-Cookie: {KEY}", status="302 No"), id="bad redirect"),
        pytest.param(with_headers(f"Content-Encoding: {KEY}", body=PAGE), id="encoding"),
        pytest.param(f"HTTP/1.1 200 OK\r\n{KEY}\r\n\r\n".encode(), id="bad header"),
        pytest.param(f"{KEY}\r\n\r\n".encode(), id="bad status line"),
        pytest.param(reset, id="reset"),
    ],
)
def test_no_secret_leaves(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    texts = []
    with serving(script) as server, Client("legacy", server.url, KEY, retry=RetryPolicy(attempts=2)) as one:
        with pytest.raises(BridgeError) as caught:
            one.get("/customers", {"term": PASSWORD}, check=parsed)
        error = caught.value
        assert error.__cause__ is None
        assert error.__context__ is None
        texts += [str(error), repr(error), repr(vars(error)), "".join(traceback.format_exception(error))]
        outcome = one.send("POST", "/customers", BODY)
        texts += [repr(outcome), str(outcome.error), repr(vars(outcome.error)) if outcome.error else ""]
        texts += [repr(one), str(one), repr(vars(one))]
    assert len(texts) == 10
    assert any("attempt 1: " in record.message for record in caplog.records)
    for text in (*texts, caplog.text):
        assert KEY.casefold() not in text.casefold()
        assert PASSWORD not in text


@pytest.mark.parametrize("echo", ["legacy-key-0123456789", "LEGACY-KEY-0123456789", "x.legacy-key-0123456789"])
def test_a_key_of_the_other_family_is_in_no_error(echo: str) -> None:
    """Both families may share a host, which may echo whatever it was sent before."""
    answer = v1_error(404, echo, echo)
    with (
        client(answers(answer)[1], "public_v1", secrets=("legacy-key-0123456789",)) as one,
        pytest.raises(HttpRejected) as caught,
    ):
        one.get("/orders", check=parsed)
    assert (caught.value.code, caught.value.request_id) == ("", "")
    assert "legacy-key" not in str(caught.value).lower()


def test_a_client_of_settings_has_their_limits_and_all_their_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("SOURCES__LEGACY__API_KEY", "legacy-key-0123456789"),
        ("SOURCES__HTTP__TIMEOUT_S", "0.3"),
        ("SOURCES__HTTP__READ_TIMEOUT_S", "0.2"),
    ):
        monkeypatch.setenv(name, value)
    echo = with_headers(body=v1_error(404, "legacy-key-0123456789").content, status="404 No")
    with serving(echo, drip(b"HTTP/1.1 200 OK\r\nX: ", b"x")) as server:
        settings = PublicV1Settings(base_url=server.url, api_key=Secret(KEY))
        with Client.from_settings(settings) as one:
            with pytest.raises(HttpRejected) as caught:
                one.get("/orders", check=parsed)
            outcome = one.send("POST", "/orders", BODY)
    assert "legacy-key" not in str(caught.value)
    assert outcome.state == "in_doubt"
    assert 0.25 < outcome.elapsed_s < 20


def test_a_client_of_settings_takes_another_transport() -> None:
    seen, handler = answers(httpx.Response(200, content=PAGE))
    settings = PublicV1Settings(base_url="https://shop.example", api_key=Secret(KEY))
    with Client.from_settings(settings, transport=httpx.MockTransport(handler)) as one:
        assert one.get("/orders", check=parsed)[1].body == PAGE
    assert [str(requested_url(request)) for request in seen] == ["https://shop.example/public/v1/orders"]


def test_a_client_is_neither_pickled_nor_copied() -> None:
    with client(answers(httpx.Response(200))[1]) as one:
        for take in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError):
                take(one)


MESSAGES = {
    '{"errors":[{"message":"is taken","code":1},{"message":"name is long","code":2}]}': "is taken; name is long",
    '{"errors":[{"field":"email","message":"is taken"}]}': "email: is taken",
    '{"errors":{"email":["is taken"],"name":["is long"]}}': "email: is taken; name: is long",
    '{"errors":["no such category"]}': "no such category",
    '{"error":"Bad Request","message":"no such variant","status":400}': "Bad Request; no such variant",
    '{"error":{"code":"X","message":"no","requestId":"r"}}': "no",
    '{"detail":[{"loc":["body","email"],"msg":"field required","type":"missing"}]}': "field required",
    "<html><style>p{}</style><h1>Bad &amp; gone</h1>\n<p>proxy</p></html>": "Bad & gone proxy",
    "quota\x1b[31m used\x00 up": "quota [31m used up",
    '{"message":"Zebra-9\\"x of ana@x.test and key KEY-1 are wrong"}': "*** of ana@x.test and key *** are wrong",
    "{\"message\":\"password=hunter2 is weak; {'pwd': 'x y'}; contraseña = abc\"}": (
        "password=*** is weak; {'pwd': ***}; contraseña = ***"
    ),
    '{"errors":[{"field":"password","message":"must have 8 characters"}]}': "password: must have 8 characters",
    '{"id":7,"name":"Ana"}': "",
    "": "",
}


@pytest.mark.parametrize("body", MESSAGES)
def test_the_platforms_words_are_read_in_any_shape_without_keys_and_passwords(body: str) -> None:
    sent = b'{"password":"Zebra-9\\"x","erpCode":"C1"}'
    assert platform_message(body.encode(), ("key-1",), sent) == MESSAGES[body]


def test_the_platforms_words_are_capped() -> None:
    assert len(platform_message(b'{"message":"%b"}' % (b"x" * 5000), (), b"")) == MESSAGE_MAX


@pytest.mark.parametrize(("path", "state"), [("/logistics/warehouses", "answered"), ("/customers", "in_doubt")])
def test_a_write_whose_error_body_is_not_shown_is_rejected_by_any_with_a_message(path: str, state: str) -> None:
    with client(answers(httpx.Response(422, content=b'{"message":"name is taken"}'))[1]) as one:
        outcome = one.send("POST", path, BODY)
    assert (outcome.state, outcome.message) == (state, "name is taken")
