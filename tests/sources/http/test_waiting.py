"""Reads in simulated time: outages, limits, answers of somebody in between, and what is logged about waits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from orderbridge.sources.contract import Family
from orderbridge.sources.errors import (
    AccessError,
    HttpError,
    HttpRejected,
    RateLimited,
    Unreachable,
)
from orderbridge.sources.extract.legacy_pages import LegacyPages
from orderbridge.sources.http.client import Client
from orderbridge.sources.http.waiting import GAP_MAX_S, WAITS, ReadPace
from tests.sources.clock import SimulatedClock

PAGE = b'{"data": [{"id": 1}]}'
HTML = b"<!doctype html><title>Just a moment</title>"
CLOSED = httpx.RemoteProtocolError("closed")
REFUSED = httpx.ConnectError("refused")


@pytest.fixture
def clock() -> Iterator[SimulatedClock]:
    clock = SimulatedClock()
    with clock.running():
        yield clock


def reading(
    answer: Callable[[httpx.Request], httpx.Response | Exception], family: Family = "legacy"
) -> Client:
    def handler(request: httpx.Request) -> httpx.Response:
        given = answer(request)
        if isinstance(given, Exception):
            raise given
        stream = httpx.ByteStream(b"".join(given.stream))  # type: ignore[arg-type]
        return httpx.Response(given.status_code, headers=given.headers, stream=stream)

    transport = httpx.MockTransport(handler)
    return Client(family, "https://shop.example", "acme_test_0123456789", transport=transport)


def read(client: Client, path: str = "/customers", **more: Any) -> bytes:
    return client.get(
        path, {"limit": 100}, check=lambda body: LegacyPages(9).parse(body).rows, **more
    )[0]


def page() -> httpx.Response:
    return httpx.Response(200, content=PAGE)


def disturbed(
    clock: SimulatedClock, disturbance: httpx.Response | Exception, from_s: float, until_s: float
) -> Client:
    """A client of a platform that works, except for some time."""

    def answer(request: httpx.Request) -> httpx.Response | Exception:
        return disturbance if from_s <= clock.now < until_s else page()

    return reading(answer)


WAITED_FOR: dict[str, httpx.Response | Exception] = {
    "503": httpx.Response(503),
    "429": httpx.Response(429),
    "closed connections": CLOSED,
    "refused connections": REFUSED,
    "a challenge page": httpx.Response(403, content=HTML),
    "a bare 401": httpx.Response(401),
    "409": httpx.Response(409),
    "425": httpx.Response(425),
    "a web page": httpx.Response(200, content=HTML),
}


@pytest.mark.parametrize("minutes", [1, 9])
@pytest.mark.parametrize("name", WAITED_FOR)
def test_what_passes_within_minutes_is_waited_for_after_a_page(
    clock: SimulatedClock, name: str, minutes: int
) -> None:
    with disturbed(clock, WAITED_FOR[name], 1.0, 1.0 + 60.0 * minutes) as client:
        assert read(client)
        clock.now = 1.0
        assert read(client)
    assert clock.now >= 60.0 * minutes


@pytest.mark.parametrize("name", WAITED_FOR)
def test_what_lasts_longer_ends_a_read_after_ten_minutes(clock: SimulatedClock, name: str) -> None:
    with disturbed(clock, WAITED_FOR[name], 1.0, 9e9) as client:
        assert read(client)
        clock.now = 1.0
        with pytest.raises(Unreachable) as caught:
            read(client)
    assert 540.0 < clock.now <= 602.0
    assert "api_key, " not in caught.value.hint
    assert isinstance(caught.value, RateLimited) == (name == "429")


@pytest.mark.parametrize(
    ("failure", "seconds"), [(REFUSED, 120.0), (CLOSED, 120.0), (httpx.Response(503), 600.0)]
)
def test_a_host_that_never_answers_is_given_up_earlier(
    clock: SimulatedClock, failure: httpx.Response | Exception, seconds: float
) -> None:
    with disturbed(clock, failure, 0.0, 9e9) as client, pytest.raises(Unreachable):
        read(client)
    assert seconds - 31.0 < clock.now <= seconds


V1_REFUSAL = {"error": {"code": "MISSING_SCOPE", "message": "no"}}
FINAL: list[tuple[str, httpx.Response, type[HttpError]]] = [
    ("before any page", httpx.Response(403, content=HTML), AccessError),
    ("before any page", httpx.Response(401), AccessError),
    ("before any page", httpx.Response(409), HttpRejected),
    ("of the list", httpx.Response(403, json=V1_REFUSAL), AccessError),
    ("of the list", httpx.Response(401, json={"error": {"code": "KEY_EXPIRED"}}), AccessError),
    ("of another list", httpx.Response(403, json={"message": "Forbidden"}), AccessError),
    ("of another list", httpx.Response(403), AccessError),
]


@pytest.mark.parametrize(("page_was_read", "answer", "kind"), FINAL)
def test_a_refusal_of_the_api_itself_is_final(
    clock: SimulatedClock, page_was_read: str, answer: httpx.Response, kind: type[HttpError]
) -> None:
    seen: list[httpx.Request] = []

    def answers(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return page() if len(seen) == 1 and page_was_read != "before any page" else answer

    with reading(answers, "public_v1") as client:
        if page_was_read != "before any page":
            read(client, "/orders")
        before = len(seen)
        with pytest.raises(kind):
            read(client, "/prices/lists" if page_was_read == "of another list" else "/orders")
    assert len(seen) == before + 1
    assert clock.now == 0.0


def test_a_challenge_page_for_another_list_is_tried_again(clock: SimulatedClock) -> None:
    given = [page(), httpx.Response(403, content=HTML), page()]
    with reading(lambda request: given.pop(0), "public_v1") as client:
        assert read(client, "/orders")
        assert read(client, "/prices/lists")


def test_a_retry_after_as_a_time_is_waited_for(clock: SimulatedClock) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if clock.now >= 60.0:
            return page()
        epoch = str(int(clock.time.timestamp() - clock.now + 60.0))
        return httpx.Response(429, headers={"Retry-After": epoch})

    with reading(answer) as client:
        assert read(client)
    assert len(clock.waits) == 1
    assert 60.0 <= clock.now <= 61.0


class Limited:
    """A platform that answers so many requests in each minute, and refuses further ones."""

    def __init__(self, clock: SimulatedClock, per_minute: int) -> None:
        self.clock, self.per_minute = clock, per_minute
        self.minute, self.count, self.refusals = 0, 0, 0

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.clock.now += 0.01
        minute = int(self.clock.now // 60.0)
        self.count = self.count + 1 if minute == self.minute else 1
        self.minute = minute
        is_refused = self.count > self.per_minute
        self.refusals += is_refused
        return httpx.Response(429) if is_refused else page()


@pytest.mark.parametrize("per_minute", [30, 60, 600])
def test_a_limit_without_retry_after_sets_the_pace_of_the_run(
    clock: SimulatedClock, per_minute: int
) -> None:
    platform = Limited(clock, per_minute)
    with reading(platform.answer) as client:
        for _ in range(10 * per_minute):
            assert read(client)
        assert client.is_throttled
    assert clock.now < 60.0 * 15
    assert platform.refusals < 80


def test_a_pace_is_that_of_the_answers_and_recovers(clock: SimulatedClock) -> None:
    pace = ReadPace()
    for _ in range(10):
        assert pace.turn_s() == 0.0
        pace.answered(clock.now)
    pace.refused(4.0)
    pace.answered(0.0)  # to a request that was under way: it does not end the wait
    assert pace.turn_s() == 4.0
    clock.now = 11.0
    pace.answered(clock.now)
    assert pace.turn_s() == 0.0
    assert pace.turn_s() == pytest.approx(1.0)  # 11 answers in 11 s
    for _ in range(1_000):
        pace.answered(clock.now)
    clock.now = 100.0
    assert pace.turn_s() == 0.0
    assert pace.turn_s() < 0.01
    pace.refused(0.0)
    clock.now = 10_000.0
    pace.answered(clock.now)
    pace.turn_s()
    assert pace.turn_s() <= GAP_MAX_S


def test_a_wait_is_logged_once_with_its_reason_and_its_end(
    clock: SimulatedClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, WAITS)
    with disturbed(clock, httpx.Response(503), 1.0, 91.0) as client:
        read(client)
        clock.now = 1.0
        read(client)
    records = [record for record in caplog.records if record.name == WAITS]
    first, *more, last = [record.getMessage() for record in records]
    assert first.startswith("legacy: the platform failed (status 503): waiting, next attempt in ")
    assert len(more) <= 1
    assert last.startswith("legacy: answers again after ")
    facts = vars(records[0])["facts"]
    assert (facts["family"], facts["status"], facts["budget_s"]) == ("legacy", 503, 600.0)
    assert facts["wait_s"] > 0


def test_a_short_wait_is_not_logged(
    clock: SimulatedClock, caplog: pytest.LogCaptureFixture
) -> None:
    given = [httpx.Response(503), httpx.Response(503), page()]
    with reading(lambda request: given.pop(0)) as client:
        read(client)
    assert [record for record in caplog.records if record.name == WAITS] == []


def test_a_platform_that_fails_at_large_pages_has_a_hint_about_the_page_limit(
    clock: SimulatedClock,
) -> None:
    with disturbed(clock, httpx.Response(500), 0.0, 9e9) as client:
        with pytest.raises(Unreachable) as caught:
            read(client)
        assert caught.value.hint.endswith("orderbridge init sources.legacy.page_limit=50")
        with pytest.raises(Unreachable) as caught:
            client.get("/whoami", check=bytes)
    assert "page_limit" not in caught.value.hint


@pytest.mark.parametrize(
    "warning",
    [
        b"<br />\n<b>Warning</b>:  Undefined variable $x in <b>/var/www/a.php</b> on line <b>3</b><br />\n",
        b"\nDeprecated: Optional parameter in /var/www/a.php on line 3\n",
    ],
)
def test_a_warning_before_a_body_is_not_blamed_on_the_address(
    clock: SimulatedClock, warning: bytes
) -> None:
    answer = httpx.Response(200, content=warning + PAGE)
    with disturbed(clock, answer, 0.0, 9e9) as client, pytest.raises(Unreachable) as caught:
        read(client)
    assert "begins with a warning or an error of a program (PHP)" in str(caught.value)
    assert "base_url" not in caught.value.hint
    assert "var/www" not in str(caught.value)


def test_a_probe_that_fails_costs_half_a_minute_and_an_outage_is_waited_for(
    clock: SimulatedClock,
) -> None:
    with disturbed(clock, httpx.Response(500), 1.0, 9e9) as client:
        read(client)
        clock.now = 1.0
        with pytest.raises(Unreachable):
            read(client, is_probe=True)
        assert clock.now <= 31.0
    with disturbed(clock, httpx.Response(503), 31.0, 200.0) as client:
        clock.now = 0.0
        read(client)
        clock.now = 31.0
        assert read(client, is_probe=True)
