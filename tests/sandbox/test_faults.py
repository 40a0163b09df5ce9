"""Each fault, seen from a socket or a plain client."""

from __future__ import annotations

import gzip
import json
import socket
import time
from typing import Any

import httpx
import pytest

from sandbox import SandboxConfig, SandboxConfigError, serve
from sandbox.app import PLANTED_PASSWORD
from sandbox.faults import FAULTS, NAMES, FaultPlan
from sandbox.messages import Call
from sources.contract import LISTS
from tests.sandbox import test_hostile
from tests.sandbox.talk import CUSTOMER, V1, client_of, cursors, pages, raw, talking

LIST = "/promotions?limit=60"


@pytest.mark.parametrize(
    ("name", "status"),
    [("rate_429", 429), ("error_500", 500), ("error_502", 502), ("error_503", 503), ("error_504", 504)],
)
def test_statuses(name: str, status: int) -> None:
    with talking(faults={name: 1}) as (sandbox, client):
        answers = [client.get(LIST), client.get(f"{V1}/orders"), client.post("/customers", json=CUSTOMER)]
        assert [answer.status_code for answer in answers] == [status] * 3
        assert all("retry-after" not in answer.headers for answer in answers)
        assert [set(answer.json()) for answer in answers] == [{"errors"}, {"error"}, {"errors"}]
        assert sandbox.state.customer_inputs == []
        assert {(entry.status, entry.fault) for entry in sandbox.state.log} == {(status, name)}


def test_retry_after() -> None:
    with talking(faults={"rate_429_retry_after": 1}) as (_, client):
        answers = [client.get(LIST) for _ in range(20)]
        assert {answer.status_code for answer in answers} == {429}
        assert {answer.headers["retry-after"] for answer in answers} == {"0", "1"}


def test_error_with_password() -> None:
    with talking(faults={"error_with_password": 1}) as (sandbox, client):
        answers = [client.post("/customers", json=CUSTOMER) for _ in range(20)]
        assert {answer.status_code for answer in answers} == {400, 500}
        for answer in answers:
            assert PLANTED_PASSWORD in answer.text
            assert CUSTOMER["password"] in answer.text
            assert sandbox.legacy_key in answer.text
        assert sandbox.v1_key in client.get(f"{V1}/orders").text


def test_redirect() -> None:
    with talking(faults={"redirect": 1}) as (_, client):
        answer = client.get(LIST)
        assert answer.status_code == 302
        assert answer.headers["location"].startswith("http://localhost:1/")


def test_reset_before() -> None:
    with serve(SandboxConfig(faults={"reset_before": 1})) as sandbox:
        assert raw(sandbox, LIST) == (b"", True)


def test_reset_amid() -> None:
    with serve(SandboxConfig(faults={"reset_amid": 1})) as sandbox:
        taken, was_reset = raw(sandbox, LIST)
        head, _, body = taken.partition(b"\r\n\r\n")
        assert was_reset
        assert 0 < len(body) < length_in(head)
        with client_of(sandbox) as client, pytest.raises(httpx.ReadError):
            client.get(LIST)


def test_reset_after() -> None:
    with serve(SandboxConfig(faults={"reset_after": 1})) as sandbox:
        taken, was_reset = raw(sandbox, LIST)
        head, _, body = taken.partition(b"\r\n\r\n")
        assert was_reset
        assert len(body) == length_in(head)
        assert json.loads(body)["data"] == sandbox.state.records("promotions")


def length_in(head: bytes) -> int:
    return int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])


def test_truncated_json() -> None:
    with talking(faults={"truncated_json": 1}) as (_, client):
        answer = client.get(LIST)
        assert answer.status_code == 200
        assert len(answer.content) == int(answer.headers["content-length"])
        with pytest.raises(json.JSONDecodeError):
            answer.json()


def test_html() -> None:
    with talking(faults={"html_200": 1}) as (_, client):
        answer = client.get(LIST)
        assert answer.status_code == 200
        assert answer.text.startswith("<!doctype html>")


def test_error_200() -> None:
    with talking(faults={"error_200": 1}) as (_, client):
        answer = client.get(LIST)
        assert (answer.status_code, answer.json().keys()) == (200, {"errors"})
        assert client.post("/customers", json=CUSTOMER).status_code == 201


def test_stall() -> None:
    with talking(faults={"stall": 1}, customers=1) as (sandbox, client):
        with pytest.raises(httpx.ReadTimeout):
            client.get(LIST, timeout=0.1)
        with pytest.raises(httpx.ReadTimeout):
            client.post("/customers", json=CUSTOMER, timeout=0.1)
        assert sandbox.state.customer_inputs == [], "whoever left was not served"


def test_a_stall_ends() -> None:
    with talking(faults={"stall": 1}, stall_s=0.05) as (_, client):
        assert client.get(LIST).status_code == 200


def test_drip() -> None:
    with serve(SandboxConfig(faults={"drip": 1}, drip_s=0.0002)) as sandbox:
        taken, was_reset = raw(sandbox, f"{V1}/whoami")
        head, _, body = taken.partition(b"\r\n\r\n")
        assert not was_reset
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert len(body) == length_in(head)
        assert json.loads(body)["environment"] == "SANDBOX"


def test_a_drip_is_slow() -> None:
    with talking(faults={"drip": 1}, drip_s=0.01) as (_, client):
        began = time.monotonic()
        assert client.get(f"{V1}/whoami").json()["environment"] == "SANDBOX"
        assert time.monotonic() - began > 0.5


@pytest.mark.parametrize("config", [{"faults": {"stall": 1}}, {"latency_ms": 60_000}, {"faults": {"drip": 1}}])
def test_stopping_is_quick_and_quiet(config: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    with serve(SandboxConfig(**config)) as sandbox:
        host, _, port = sandbox.url.removeprefix("http://").partition(":")
        connection = socket.create_connection((host, int(port)))
        connection.sendall(b"GET /promotions HTTP/1.1\r\nHost: sandbox\r\n\r\n")
        time.sleep(0.05)
    connection.close()
    assert time.monotonic() - began < 50
    assert capfd.readouterr() == ("", "")


def test_gzip_truncated() -> None:
    with talking(faults={"gzip_truncated": 1}) as (_, client), client.stream("GET", LIST) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        packed = b"".join(answer.iter_raw())
        assert len(packed) == int(answer.headers["content-length"])
        with pytest.raises(EOFError):
            gzip.decompress(packed)


def test_expired_key() -> None:
    with talking(faults={"expired_key": 0.2}) as (_, client):
        answers = [client.get(f"{V1}/whoami") for _ in range(60)]
        statuses = [answer.status_code for answer in answers]
        first = statuses.index(401)
        assert first > 0
        assert set(statuses[first:]) == {401}
        assert answers[-1].json()["error"]["code"] == "KEY_EXPIRED"
        assert client.get(LIST).status_code == 200, "the other family's key has not"


def test_expired_cursor() -> None:
    with talking(faults={"expired_cursor": 1}) as (_, client):
        cursor = client.get(f"{V1}/orders").json()["nextCursor"]
        statuses = [client.get(f"{V1}/orders", params={"startingAfter": cursor}).status_code for _ in range(3)]
        assert statuses == [400, 200, 200]


def test_repeated_cursor() -> None:
    with talking(faults={"repeated_cursor": 1}) as (_, client):
        cursor = client.get(f"{V1}/orders").json()["nextCursor"]
        body = client.get(f"{V1}/orders", params={"startingAfter": cursor}).json()
        assert (body["hasMore"], body["nextCursor"]) == (True, cursor)


def test_null_cursor() -> None:
    with talking(faults={"null_cursor": 1}) as (_, client):
        body = client.get(f"{V1}/orders").json()
        assert (body["hasMore"], body["nextCursor"]) == (True, None)


def test_page_drift() -> None:
    with talking(faults={"page_drift": 0.5}, customers=60) as (sandbox, client):
        shown = [str(row["id"]) for row in pages(client, "/customers", 2)]
        state = sandbox.state
        assert {"added", "removed"} == {change.what for change in state.truth}
        assert state.ever("customers") - state.always("customers")
        assert set(shown) <= state.ever("customers")
        assert state.always("customers") <= set(state.ids("customers"))


def test_drift_of_every_list_makes_new_ids() -> None:
    with talking(faults={"page_drift": 1}, customers=3, orders=3, promotions=3, price_lists=3) as (sandbox, client):
        paths = {"customers": "/customers", "promotions": "/promotions", "price_lists": f"{V1}/prices/lists"}
        for resource, path in (paths | {"orders": f"{V1}/orders"}).items():
            for _ in range(30):
                assert client.get(path).status_code == 200
            changes = [change for change in sandbox.state.truth if change.resource == resource]
            added = [change.id for change in changes if change.what == "added"]
            assert len(changes) == 30
            assert len(added) == len(set(added))


def test_capped_limit() -> None:
    with talking(faults={"capped_limit": 1}) as (sandbox, client):
        assert len(client.get("/customers?limit=100").json()["data"]) == 50
        assert len(client.get(f"{V1}/orders?limit=100").json()["data"]) == 50
        assert pages(client, "/customers", 100) == sandbox.state.records("customers")
        assert cursors(client, 100) == sandbox.state.records("orders")


def test_moved_total() -> None:
    with talking(faults={"moved_total": 1}) as (_, client):
        totals = [client.get(LIST).json()["pagination"]["total"] for _ in range(20)]
        assert len(set(totals)) > 1
        assert 60 not in totals


def test_duplicate_records() -> None:
    with talking(faults={"duplicate_records": 1}) as (sandbox, client):
        for shown, resource in ((pages(client, "/customers", 50), "customers"), (cursors(client, 50), "orders")):
            ids = [str(row["id"]) for row in shown]
            assert set(ids) == sandbox.state.ever(resource)
            assert len(ids) > len(set(ids))


def test_type_drift() -> None:
    with talking(faults={"type_drift": 1}) as (sandbox, client):
        truth = sandbox.state.records("customers")
        shown = client.get("/customers?limit=650").json()["data"]
        assert [row["id"] for row in shown] == [row["id"] for row in truth]
        drifted = [(seen, true) for seen, true in zip(shown, truth, strict=True) if seen != true]
        assert len(drifted) == 1
        seen, true = drifted[0]
        names = [name for name in true if seen[name] != true[name]]
        assert [type(seen[name]) is type(true[name]) for name in names] == [False]


def test_extra_fields() -> None:
    with talking(faults={"extra_fields": 1}) as (sandbox, client):
        for shown, resource in ((pages(client, "/customers", 50), "customers"), (cursors(client, 50), "orders")):
            extra = {"loyaltyTier": "gold", "origin": {"channel": "web", "score": 3.5}}
            assert shown == [row | extra for row in sandbox.state.records(resource)]


@pytest.mark.parametrize("verb", ["POST", "PATCH"])
def test_lost_answer(verb: str) -> None:
    with talking(faults={"lost_answer": 1}) as (sandbox, client):
        write(client, verb, httpx.RemoteProtocolError, httpx.ReadError)
        assert writes(sandbox.state, verb) == 1
        assert client.get(LIST).status_code == 200


def test_applied_5xx() -> None:
    with talking(faults={"applied_5xx": 1}) as (sandbox, client):
        assert client.post("/customers", json=CUSTOMER).status_code in (500, 502)
        assert client.patch("/products/1/variants/1", json={"sku": "1"}).status_code in (500, 502)
        assert writes(sandbox.state, "POST") == writes(sandbox.state, "PATCH") == 1


@pytest.mark.parametrize("verb", ["POST", "PATCH"])
def test_late_apply(verb: str) -> None:
    with talking(faults={"late_apply": 1}, late_s=0.2) as (sandbox, client):
        write(client, verb, httpx.RemoteProtocolError, httpx.ReadError)
        assert writes(sandbox.state, verb) == 0
        deadline = time.monotonic() + 60
        while not writes(sandbox.state, verb) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert writes(sandbox.state, verb) == 1


@pytest.mark.parametrize("name", ["reset_amid", "reset_after"])
def test_resets_of_an_answer_come_after_the_write(name: str) -> None:
    with talking(faults={name: 1}) as (sandbox, client):
        try:
            client.post("/customers", json=CUSTOMER)
        except httpx.TransportError:
            assert name == "reset_amid"
        assert writes(sandbox.state, "POST") == 1


def write(client: httpx.Client, verb: str, *errors: type[Exception]) -> None:
    path, body = ("/customers", CUSTOMER) if verb == "POST" else ("/products/1/variants/1", {"sku": "1"})
    with pytest.raises(errors):
        client.request(verb, path, json=body)


def writes(state: Any, verb: str) -> int:
    if verb == "POST":
        return len(state.customer_inputs)
    return int(state.variants[1, 1].applied) if state.variants else 0


def test_every_fault_has_help_and_a_test() -> None:
    assert all(NAMES.values())
    text = "".join(name for name in (*globals(), *vars(test_hostile)) if name.startswith("test_"))
    own = {"rate_429", "error_500", "error_502", "error_503", "error_504", "rate_429_retry_after"}
    renamed = {"html_200": "html"}
    assert [f.name for f in FAULTS if f.name not in own and renamed.get(f.name, f.name) not in text] == []


@pytest.mark.parametrize("rate", [0.3, 0.99])
def test_whoever_tries_a_third_time_gets_through(rate: float) -> None:
    with talking(faults={"error_503": rate, "reset_before": rate / 2, "truncated_json": rate}) as (sandbox, client):
        rows: list[Any] = []
        for page in range(1, 8):
            for attempt in range(3):
                try:
                    rows += client.get(f"/customers?limit=100&page={page}").raise_for_status().json()["data"]
                except (httpx.HTTPError, json.JSONDecodeError):
                    assert attempt < 2
                    continue
                break
        assert rows == sandbox.state.records("customers")


def test_draws_follow_the_seed() -> None:
    call = Call(LISTS["customers"], "/customers", "", {})
    rates = {"error_500": 0.3, "page_drift": 0.4}

    def draws(seed: int) -> list[str]:
        plan = FaultPlan(rates, seed)
        return [plan.draw(call).names for _ in range(50)]

    assert draws(1) == draws(1) != draws(2)


def test_faults_change_while_it_serves() -> None:
    with talking() as (sandbox, client):
        assert client.get(LIST).status_code == 200
        sandbox.set_faults({"error_503": 1})
        assert client.get(LIST).status_code == 503
        sandbox.set_faults({})
        assert client.get(LIST).status_code == 200
        with pytest.raises(SandboxConfigError):
            sandbox.set_faults({"no_such": 1})


def test_latency() -> None:
    with talking(latency_ms=100) as (_, client):
        began = time.monotonic()
        client.get(LIST)
        assert time.monotonic() - began >= 0.1
