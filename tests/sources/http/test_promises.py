"""Redirects, budgets and addresses: requests that must not be made, or must end in time."""

from __future__ import annotations

import socket
import time
from typing import Any

import httpx
import pytest

from sources.errors import HttpRejected, Unreachable, UsageError
from sources.http.client import Client
from sources.http.exchange import Timeouts
from sources.http.retries import RetryPolicy
from sources.urls import checked_base_url
from tests.soak.transport import requested_url
from tests.sources.http.backoff import without_backoff
from tests.sources.rawserver import serving

HOST = "https://shop.example"


def client(handler: Any, **more: Any) -> Client:
    return Client("legacy", HOST, "key-of-a-shop", transport=httpx.MockTransport(handler), **more)


def answer(status: int, body: bytes = b"", **headers: str) -> httpx.Response:
    return httpx.Response(status, headers=headers, stream=httpx.ByteStream(body))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("location", ["/moved", "moved", f"{HOST}/moved"])
def test_a_redirect_within_the_same_host_is_not_followed(status: int, location: str) -> None:
    paths: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        paths.append(requested_url(request).path)
        if paths[-1] == "/moved":
            return answer(200, b'{"data": []}')
        return answer(status, Location=location)

    with client(handler) as one:
        with pytest.raises(HttpRejected, match="redirected to"):
            one.get("/customers", check=bytes)
        assert one.send("POST", "/customers", b"{}").state == "in_doubt"
    assert paths == ["/customers", "/customers"]


def test_the_budget_of_a_read_limits_its_last_attempt_too() -> None:
    lefts: list[float] = []

    def handler(request: httpx.Request) -> httpx.Response:
        lefts.append(request.extensions["deadline"] - time.monotonic())
        return answer(503)

    policy = RetryPolicy(attempts=3, budget_s=5.0)
    with without_backoff(), client(handler, retry=policy, timeouts=Timeouts(total_s=120.0)) as one:
        with pytest.raises(Unreachable):
            one.get("/customers", check=bytes)
        one.send("POST", "/customers", b"{}")
    *reads, write = lefts
    assert len(reads) == 3
    assert max(reads) <= 5.0
    assert write > 100.0


def test_the_deadline_of_a_request_ends_the_wait_for_a_silent_host() -> None:
    def silent(connection: socket.socket) -> None:
        while connection.recv(65_536):
            pass

    timeouts = Timeouts(connect_s=9.0, read_s=9.0, total_s=0.3)
    with serving(silent) as server, Client("legacy", server.url, "key-of-a-shop", timeouts=timeouts) as one:
        outcome = one.send("POST", "/customers", b"{}")
    assert outcome.state == "in_doubt"
    assert "no complete response within 0.3 s" in str(outcome.error)
    assert 0.2 < outcome.elapsed_s < 6.0


@pytest.mark.parametrize(
    "host", ["10.0.0.7", "172.16.0.7:8080", "192.168.1.7", "169.254.1.7", "[fd00::7]", "[fe80::7]", "0.0.0.0", "nas"]
)
def test_http_is_for_loopback_only(host: str) -> None:
    with pytest.raises(UsageError, match="is http: the key would travel unencrypted"):
        checked_base_url("sources.legacy.base_url", f"http://{host}")
    assert checked_base_url("sources.legacy.base_url", f"https://{host}") == f"https://{host}"
