"""The client: requests, retries, responses, errors, writes, and secrets that do not leave."""

from __future__ import annotations

import gzip
import json
import logging
import pickle
import socket
import threading
import time
import traceback
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat
from typing import Any
from unittest import mock

import httpx
import pytest

from orderbridge.sources.contract import PUBLIC_V1_AUTH_CODES, Family
from orderbridge.sources.errors import (
    AccessError,
    BridgeError,
    ContractBroken,
    HttpError,
    HttpRejected,
    PlatformError,
    RateLimited,
    Stopped,
    Unreachable,
)
from orderbridge.sources.extract.v1_pages import V1Cursor
from orderbridge.sources.http.client import Client
from orderbridge.sources.http.exchange import Caps
from orderbridge.sources.http.failures import MESSAGE_MAX, BrokenBody, platform_message
from orderbridge.sources.http.retries import ONCE, RetryPolicy
from orderbridge.sources.settings import HttpSettings, PublicV1Settings, Secret
from tests.soak.transport import requested_url
from tests.sources.rawserver import Script, drip, reset, sending, serving

KEY = "acme_test_PLANTED-0123456789"
PASSWORD = "pl4nted-passw0rd"
BODY = json.dumps({"password": PASSWORD}).encode()
PAGE = b'{"data": [1, 2, 3]}'
OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 19\r\n\r\n" + PAGE
SLEEP = Client._sleep
DRIP = drip(b"HTTP/1.1 200 OK\r\nX: ", b"x")


def parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError as error:
        raise BrokenBody(type(error).__name__) from None


def client(
    handler: Callable[[httpx.Request], httpx.Response], family: Family = "legacy", **more: Any
) -> Client:
    return Client(
        family, "https://shop.example", KEY, transport=httpx.MockTransport(handler), **more
    )


Answers = tuple[list[httpx.Request], Callable[[httpx.Request], httpx.Response]]


def answers(*given: httpx.Response | Exception) -> Answers:
    """The requests received, and a handler with these responses in turn, the last one from then on."""
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        answer = given[min(len(seen), len(given)) - 1]
        if isinstance(answer, Exception):
            raise answer
        stream = httpx.ByteStream(b"".join(answer.stream))  # type: ignore[arg-type]
        return httpx.Response(answer.status_code, headers=answer.headers, stream=stream)

    return seen, handler


def with_headers(*headers: str, body: bytes = b"", status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", "Connection: close", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_each_family_has_its_prefix_and_its_header_for_the_key() -> None:
    seen, handler = answers(httpx.Response(200, content=PAGE, headers={"Set-Cookie": "a=b"}))
    with client(handler) as one:
        one.get("/customers", {"page": 2, "term": "a b&c"}, check=parsed)
        opened, answer = one.get("/customers", check=parsed)
    assert opened == {"data": [1, 2, 3]}
    assert (answer.status, answer.body, answer.attempts, one.is_throttled) == (200, PAGE, 1, False)
    client(handler, "public_v1").get("/whoami", check=parsed)
    host = "https://shop.example"
    paths = ["/customers?page=2&term=a%20b%26c", "/customers", "/public/v1/whoami"]
    assert [str(requested_url(request)) for request in seen] == [host + path for path in paths]
    headers = [
        [request.headers.get(name) for name in ("api-key", "authorization", "cookie")]
        for request in seen
    ]
    assert headers == [[KEY, None, None], [KEY, None, None], [None, f"Bearer {KEY}", None]]


def test_a_path_that_leads_elsewhere_is_an_error() -> None:
    for path in ("", "customers", "/a?b=c", "/a/../b", "/a//b", "/./a"):
        with pytest.raises(ValueError, match="a path consists of letters"):
            client(answers(httpx.Response(200))[1]).get(path, check=len)


def test_a_page_that_repeats_the_key_is_kept_without_it() -> None:
    page = httpx.Response(200, json={"data": [{"id": 1, "next": f"/customers?key={KEY}"}]})
    checked, response = client(answers(page)[1]).get("/customers", check=bytes)
    assert KEY.encode() not in checked + response.body


def test_an_error_with_status_200_is_requested_again_and_named_in_the_end() -> None:
    error = httpx.Response(
        200, json={"error": {"code": "BUSY", "message": "no", "requestId": "r1"}}
    )
    seen, handler = answers(error, error, httpx.Response(200, json={"data": [], "hasMore": False}))
    page, _ = client(handler, "public_v1").get("/orders", check=V1Cursor(10).parse)
    assert (page.count, len(seen)) == (0, 3)
    with pytest.raises(Unreachable, match=r"an error in place of the rows.*BUSY") as caught:
        client(answers(error)[1], "public_v1").get("/orders", check=V1Cursor(10).parse)
    assert (caught.value.status, caught.value.request_id) == (200, "r1")


def test_a_longer_retry_after_than_is_waited_for_ends_the_read_at_once() -> None:
    for status in (429, 503):
        seen, handler = answers(httpx.Response(status, headers={"Retry-After": "3600"}))
        with pytest.raises(
            RateLimited, match=r"asks to wait 60 min\. After that, run the same command again"
        ):
            client(handler).get("/customers", check=parsed)
        assert len(seen) == 1


def test_the_budget_of_a_read_limits_its_last_attempt_too() -> None:
    lefts: list[float] = []

    def handler(request: httpx.Request) -> httpx.Response:
        lefts.append(request.extensions["deadline"] - time.monotonic())
        return httpx.Response(503, stream=httpx.ByteStream(b""))

    with client(
        handler, retry=RetryPolicy(budget_s=5.0), http=HttpSettings(timeout_s=120.0)
    ) as one:
        with pytest.raises(Unreachable):
            one.get("/customers", check=bytes)
        one.send("POST", "/customers", b"{}")
    first, *reads, write = lefts
    assert len(reads) > 2
    assert max(reads) <= 5.0
    assert min(first, write) > 100.0


def v1_error(status: int, code: object, request_id: object = "req-1") -> httpx.Response:
    return httpx.Response(
        status, json={"error": {"code": code, "message": PASSWORD, "requestId": request_id}}
    )


def legacy_error(status: int, code: object) -> httpx.Response:
    return httpx.Response(status, json={"errors": [{"message": PASSWORD, "code": code}]})


def refused(answer: httpx.Response, family: Family = "legacy", **more: Any) -> HttpError:
    seen, handler = answers(answer)
    with pytest.raises(HttpError) as caught:
        client(handler, family, **more).get("/orders", {"startingAfter": "b2Zmc2V0"}, check=parsed)
    assert len(seen) == 1
    assert "b2Zmc2V0" not in str(caught.value)
    assert PASSWORD not in str(caught.value)
    return caught.value


def test_401_has_a_hint_for_each_code_and_403_is_about_access() -> None:
    hints = {
        refused(v1_error(401, code), "public_v1").hint for code in (*PUBLIC_V1_AUTH_CODES, "OTHER")
    }
    assert len(hints) == 4
    error = refused(v1_error(401, "KEY_EXPIRED"), "public_v1")
    assert isinstance(error, AccessError)
    assert (error.code, error.request_id, error.status, error.exit_code) == (
        "KEY_EXPIRED",
        "req-1",
        401,
        3,
    )
    by_command = {hint for hint in hints if hint.endswith("init sources.public_v1.api_key")}
    (other,) = hints - by_command
    assert "Look for a proxy" in other
    assert refused(legacy_error(401, "X")).hint.endswith("orderbridge init sources.legacy.api_key")
    assert isinstance(refused(httpx.Response(403, content=b"forbidden")), AccessError)
    assert "scope" in refused(v1_error(403, "X"), "public_v1").hint


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(404, content=b"not here"),
        httpx.Response(302, headers={"Location": "https://www.example.com/"}),
        httpx.Response(200, content=b"<!doctype html><title>Shop</title>"),
    ],
)
def test_what_a_mistyped_host_answers_has_the_command_that_changes_it(
    answer: httpx.Response,
) -> None:
    one = client(answers(answer)[1], retry=ONCE)
    with pytest.raises(PlatformError) as caught:
        one.get("/customers", check=parsed)
    assert caught.value.hint.endswith("To change it: orderbridge init sources.legacy.base_url")


@pytest.mark.parametrize(
    ("answer", "family", "code"),
    [
        (v1_error(400, "BAD_CURSOR"), "public_v1", "BAD_CURSOR"),
        (legacy_error(400, 1042), "legacy", "1042"),
        (legacy_error(422, "x" * 65), "legacy", ""),
        (legacy_error(422, f"key:{KEY.upper()}"), "legacy", ""),
        (httpx.Response(404, content=b"[" * 100_000), "legacy", ""),
        (legacy_error(404, 7), "public_v1", ""),
        (v1_error(404, "A", "\x1b[31m"), "public_v1", "A"),
    ],
)
def test_a_rejection_has_the_code_of_its_familys_error_body(
    answer: httpx.Response, family: Family, code: str
) -> None:
    error = refused(answer, family)
    assert isinstance(error, HttpRejected)
    assert (error.code, error.path, error.verb, error.family) == (code, "/orders", "GET", family)
    assert "\x1b" not in str(error)


@pytest.mark.parametrize(
    ("status", "location", "words"),
    [
        (301, "https://other.test:99/moved?y", "other.test"),
        (302, "//[x", "an unreadable address"),
        (303, "https://\x1b[31m.test/", "an unreadable address"),
        (307, "https://x.PLANTED-0123456789.test/", "an unreadable address"),
        (308, "/moved", "the same host"),
    ],
)
def test_a_redirect_is_an_error_that_names_the_host_but_no_key_and_is_not_followed(
    status: int, location: str, words: str
) -> None:
    answer = httpx.Response(status, headers=[(b"Location", location.encode())])
    seen, handler = answers(answer, httpx.Response(200, content=PAGE))
    with pytest.raises(HttpRejected, match=f"redirected to {words} ") as caught:
        client(handler, secrets=("Planted-0123456789",)).get("/customers", check=parsed)
    assert "moved" not in str(caught.value)
    assert len(seen) == 1
    outcome = client(answers(answer)[1]).send("POST", "/a", BODY)
    assert (outcome.state, outcome.status) == ("in_doubt", status)


PACKED = gzip.compress(PAGE, mtime=0)


def gzipped(body: bytes, encoding: str = "gzip") -> bytes:
    return with_headers(f"Content-Encoding: {encoding}", body=body)


HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CUT_CHUNK = HEAD + b"13\r\n" + PAGE + b"\r\n"
MANY = repeat(b"X-Many: of them\r\n" * 1000)
BROKEN: dict[str, Script] = {
    "reset before an answer": reset,
    "closed before an answer": b"",
    "shorter than announced": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + PAGE,
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n",
    "gzip without its end": gzipped(PACKED[:-8]),
    "gzip with a wrong sum": gzipped(PACKED[:-8] + b"\0" * 8),
    "gzip and more": gzipped(PACKED + b"junk"),
    "gzip, zeros and more": gzipped(PACKED + b"\0" * 9 + b"junk"),
    "gzip without the end of its second member": gzipped(PACKED + gzip.compress(b" ")[:-8]),
    "headers without end": sending(chain([b"HTTP/1.1 200 OK\r\n"], MANY)),
    "trailers without end": sending(chain([HEAD, b"1\r\n[\r\n0\r\n"], MANY)),
    "headers drip": DRIP,
    "body drips": drip(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b" "),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_responses_are_requested_again(name: str) -> None:
    # until the deadline, which a slow machine may miss again
    drips = name.endswith(("drip", "drips"))
    http = HttpSettings(timeout_s=0.4 if drips else 20)
    with serving(BROKEN[name], OK) as server, Client("legacy", server.url, KEY, http=http) as one:
        opened, answer = one.get("/customers", check=parsed)
    assert opened["data"] == [1, 2, 3]
    assert answer.attempts == 2 or (drips and answer.attempts > 2)


WHOLE: dict[str, Script] = {
    "gzip of two members": gzipped(gzip.compress(PAGE[:5]) + gzip.compress(PAGE[5:])),
    "gzip with zeros up to the end of a block": gzipped(PACKED + b"\0" * 512),
    "a charset as encoding": gzipped(PAGE, "UTF-8"),
    "a charset beside the encoding": gzipped(PACKED, "utf8, gzip"),
    "raw deflate": gzipped(zlib.compress(PAGE, wbits=-15), "Deflate"),
    "byte by byte": sending([bytes([byte]) for byte in CUT_CHUNK + b"0\r\n\r\n"], 0.0005),
    "an encoding in the trailer": CUT_CHUNK + b"0\r\nContent-Encoding: br\r\n\r\n",
    "up to the end of the connection": sending(
        [b"HTTP/1.1 200 OK\r\n\r\n", PAGE[:7], PAGE[7:]], 0.002
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_body_is_read_in_every_encoding_and_transfer(name: str) -> None:
    with serving(WHOLE[name]) as server, Client("legacy", server.url, KEY, retry=ONCE) as one:
        assert one.get("/customers", check=parsed)[1].body == PAGE


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (gzipped(gzip.compress(b"0" * 3_000_000)), "decoded"),
        (gzipped(gzip.compress(PACKED), "gzip\r\nContent-Encoding: gzip"), "more than once"),
        (gzipped(gzip.compress(b"") * 200), "too many parts"),
        (gzipped(PAGE, "br"), "not asked for"),
        (with_headers(body=b" " * 30_000), "larger than 20000"),
        (with_headers(body=PAGE, status="206 Partial"), "206"),
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


def test_a_page_of_more_than_64_mib_is_read() -> None:
    body = b" " * (65 * 2**20) + PAGE
    for content, headers in ((body, {}), (gzip.compress(body, 1), {"Content-Encoding": "gzip"})):
        answer = httpx.Response(200, headers=headers, stream=httpx.ByteStream(content))
        with client(lambda request, answer=answer: answer) as one:  # type: ignore[misc]
            assert one.get("/customers", check=parsed)[0] == {"data": [1, 2, 3]}


def test_stop_ends_a_wait_and_every_later_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "_sleep", SLEEP)
    stop = threading.Event()
    one = client(answers(httpx.Response(503))[1], stop=stop)
    threading.Timer(0.1, stop.set).start()
    for call in (
        lambda: one._sleep(100),
        lambda: one.get("/customers", check=parsed),
        lambda: one.send("POST", "/customers", BODY),
    ):
        with pytest.raises(Stopped):
            call()


def test_closing_wakes_a_read_under_way() -> None:
    with serving(DRIP) as server, ThreadPoolExecutor(1) as pool:
        one = Client("legacy", server.url, KEY)
        future = pool.submit(one.get, "/customers", check=parsed)
        while not server.seen:
            time.sleep(0.01)
        one.close()
        with pytest.raises(Stopped):
            future.result(20)


def test_errors_of_a_connection_are_stops_or_doubts_only_once_the_client_is_closed() -> None:
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


@pytest.mark.parametrize(
    ("answer", "state", "code"),
    [
        (httpx.Response(201, content=b'{"id": 7}'), "answered", None),
        (httpx.Response(204), "answered", None),
        (legacy_error(409, "TAKEN"), "answered", "TAKEN"),
        (legacy_error(409, PASSWORD), "answered", ""),
        (httpx.Response(401), "answered", ""),
        (httpx.Response(429, headers={"Retry-After": "9"}), "answered", ""),
        (httpx.Response(404, content=b"<html>"), "in_doubt", ""),
        (legacy_error(408, 1), "in_doubt", "1"),
        (legacy_error(500, 1), "in_doubt", "1"),
        (httpx.ReadTimeout("x"), "in_doubt", ""),
        (httpx.ConnectError("x"), "not_sent", ""),
    ],
)
def test_outcomes_of_writes(
    answer: httpx.Response | Exception, state: str, code: str | None
) -> None:
    seen, handler = answers(answer)
    outcome = client(handler).send("POST", "/customers", BODY)
    (request,) = seen
    assert (request.content, request.headers["content-type"]) == (BODY, "application/json")
    assert (outcome.state, outcome.error.code if outcome.error else None) == (state, code)
    assert PASSWORD not in repr(outcome) + str(outcome.error)
    if isinstance(answer, httpx.Response):
        assert outcome.status == answer.status_code
        assert outcome.retry_after_s == (9.0 if answer.status_code == 429 else None)


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 99\r\n\r\n{",
        b"Content-Length: 9\r\n\r\n",
        b"Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n",
        b"Content-Encoding: gzip\r\nContent-Length: 12\r\n\r\n" + PACKED[:12],
    ],
)
def test_a_200_with_a_broken_body_is_in_doubt_and_a_201_is_not(rest: bytes) -> None:
    for status, state in ((200, "in_doubt"), (202, "in_doubt"), (201, "answered")):
        with (
            serving(b"HTTP/1.1 %d OK\r\n" % status + rest) as server,
            Client("legacy", server.url, KEY) as one,
        ):
            outcome = one.send("PATCH", "/customers", BODY)
        assert (outcome.state, outcome.status, outcome.body, outcome.is_broken) == (
            state,
            status,
            b"",
            True,
        )
        assert (outcome.error is None) == (state == "answered")


def test_the_outcome_of_a_write_has_body_content_type_and_the_words_of_an_error() -> None:
    found, failed = b'{"id":7,"notes":"x"}', b'{"success":false,"message":"no"}'
    json_type = {"Content-Type": "Application/JSON; charset=utf-8"}
    _, handler = answers(
        httpx.Response(200, content=found, headers=json_type), httpx.Response(200, content=failed)
    )
    with client(handler) as client_:
        outcomes = [client_.send("POST", "/customers", BODY) for _ in range(2)]
    assert [
        (one.state, one.body, one.content_type, one.is_broken, one.message) for one in outcomes
    ] == [
        ("answered", found, "application/json", False, ""),
        ("answered", failed, "", False, "no"),
    ]


@pytest.mark.parametrize(
    ("path", "status", "state"),
    [
        ("/logistics/warehouses", 422, "answered"), ("/logistics/warehouses", 404, "in_doubt"), ("/a", 422, "in_doubt"),
        ("/rates/7", 422, "answered"),
    ],
)  # fmt: skip
def test_a_write_whose_error_body_is_not_shown_is_rejected_by_any_message(
    path: str, status: int, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "orderbridge.sources.http.client._UNSHOWN_ERRORS",
        ["/logistics/warehouses", "/rates/{rateId}"],
    )
    with client(answers(httpx.Response(status, content=b'{"message":"name is taken"}'))[1]) as one:
        outcome = one.send("POST", path, BODY)
    assert (outcome.state, outcome.message) == (state, "name is taken")


def test_only_a_host_on_loopback_is_asked_whether_writes_settle_at_once() -> None:
    for host, asked in (("http://127.0.0.1", True), ("https://shop.example", False)):
        seen, handler = answers(
            httpx.Response(200, content=PAGE, headers={"X-Orderbridge-Settles": "at-once"})
        )
        assert (
            Client("legacy", host, KEY, transport=httpx.MockTransport(handler)).settles_at_once()
            is asked
        )
        assert len(seen) == asked


@pytest.mark.parametrize("number", [socket.EAI_NONAME, socket.EAI_AGAIN])
def test_a_name_that_does_not_resolve(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    lookups = mock.Mock(side_effect=socket.gaierror(number, f"Name or service not known: {KEY}"))
    monkeypatch.setattr(socket, "getaddrinfo", lookups)
    with Client("public_v1", "https://no-such-host.example", KEY) as one:
        with pytest.raises(
            Unreachable, match=r"cannot connect to no-such-host\.example: the host name"
        ) as caught:
            one.get("/orders", check=parsed)
        assert lookups.call_count > 2
        assert one.send("POST", "/customers", BODY).state == "not_sent"
    assert (caught.value.reason, KEY in str(caught.value), caught.value.status) == (
        "dns",
        False,
        None,
    )


def test_a_connection_that_is_refused_names_its_host() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
    with Client("legacy", f"http://{host}", KEY, retry=ONCE) as one:
        with pytest.raises(Unreachable, match=f"{host}: connection refused") as error:
            one.get("/customers", check=parsed)
        assert one.send("POST", "/customers", BODY).state == "not_sent"
    assert (error.value.reason, error.value.host) == ("refused", host)
    assert "orderbridge init sources.legacy.base_url" in str(error.value)


ECHO = json.dumps({"errors": [{"message": f"{KEY} {PASSWORD}", "code": KEY}]}).encode()


@pytest.mark.parametrize(
    "script",
    [
        with_headers(body=ECHO, status=f"400 {KEY}"),
        with_headers(body=KEY.encode()),
        with_headers(f"Location: https://{KEY}.example/{KEY}", status="302 No"),
        with_headers(f"Content-Encoding: {KEY}", body=PAGE),
        f"HTTP/1.1 200 OK\r\n{KEY}\r\n\r\n".encode(),
        reset,
    ],
)
def test_no_secret_leaves(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with (
        serving(script) as server,
        Client("legacy", server.url, KEY) as one,
    ):
        with pytest.raises(BridgeError) as caught:
            one.get("/customers", {"term": PASSWORD}, check=parsed)
        error = caught.value
        assert error.__cause__ is error.__context__ is None
        texts = [
            str(error),
            repr(error),
            repr(vars(error)),
            "".join(traceback.format_exception(error)),
        ]
        outcome = one.send("POST", "/customers", BODY)
        texts += [
            repr(outcome),
            str(outcome.error),
            repr(vars(outcome.error or one)),
            repr(one),
            repr(vars(one)),
        ]
        with pytest.raises(TypeError):
            pickle.dumps(one)
    assert any("attempt 1: " in record.message for record in caplog.records)
    for text in (*texts, caplog.text):
        assert KEY.casefold() not in text.casefold()
        assert PASSWORD not in text


@pytest.mark.parametrize(
    "echo", ["legacy-key-0123456789", "LEGACY-KEY-0123456789", "x.legacy-key-0123456789"]
)
def test_a_client_of_settings_has_their_limits_and_shows_no_key_of_the_other_family(
    monkeypatch: pytest.MonkeyPatch, echo: str
) -> None:
    """Both families may share a host, which may echo whatever it was sent before."""
    monkeypatch.setenv("SOURCES__LEGACY__API_KEY", "legacy-key-0123456789")
    monkeypatch.setenv("SOURCES__HTTP__TIMEOUT_S", "0.3")
    with serving(
        with_headers(body=v1_error(404, echo, echo).content, status="404 No"), DRIP
    ) as server:
        settings = PublicV1Settings(base_url=server.url, api_key=Secret(KEY))
        with Client.from_settings(settings) as one:
            with pytest.raises(HttpRejected) as caught:
                one.get("/orders", check=parsed)
            began = time.monotonic()
            outcome = one.send("POST", "/orders", BODY)
    assert (caught.value.code, caught.value.request_id) == ("", "")
    assert "legacy-key" not in str(caught.value).lower()
    assert outcome.state == "in_doubt"
    assert "no complete response within 0.3 s" in str(outcome.error)
    assert 0.25 < time.monotonic() - began < 20


MESSAGES = {
    '{"errors":{"email":["is taken"],"name":["is long"]}}': "email: is taken; name: is long",
    '{"error":"Bad Request","message":"no such variant","status":400}': "Bad Request; no such variant",
    '{"detail":[{"loc":["body","email"],"msg":"field required","type":"missing"}]}': "field required",
    "<html><style>p{}</style><h1>Bad &amp; gone</h1>\n<p>proxy</p></html>": "Bad & gone proxy",
    '{"message":"Zebra-9\\"x of ana@x.test and key KEY-1 are wrong"}': "*** of ana@x.test and key *** are wrong",
    "{\"message\":\"password=hunter2 is weak; {'pwd': 'x y'}; contraseña = abc\"}": (
        "password=*** is weak; {'pwd': ***}; contraseña = ***"
    ),
    '{"errors":[{"field":"password","message":"must have 8 characters"}]}': "password: must have 8 characters",
    '{"message":"no se/cret 0123, SE/CRET 0123, se%2Fcret%200123, se/cret%200123"}': "no ***, ***, ***, ***",
    f'{{"message":"{"x" * 5000}"}}': f"{'x' * (MESSAGE_MAX - 1)}…",
    '{"id":7,"name":"Ana"}': "",
}


@pytest.mark.parametrize("body", MESSAGES)
def test_the_platforms_words_are_read_in_any_shape_without_keys_and_passwords(body: str) -> None:
    sent = b'{"password":"Zebra-9\\"x","erpCode":"C1"}'
    with Client("legacy", "http://localhost:1", "key-1", secrets=("se/cret 0123",)) as one:
        assert platform_message(one.mask(body.encode(), sent)) == MESSAGES[body]
        sent = b'[{"password":"se/cret 0123"},{"password":"Zebra-9\\"x"}]'
        assert platform_message(one.mask(body.encode(), sent)) == MESSAGES[body]
