"""Each fault, seen from a socket or a plain client."""

from __future__ import annotations

import gzip
import json
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
import pytest

from sandbox import Sandbox, SandboxConfig, SandboxConfigError, serve
from sandbox.app import PLANTED_PASSWORD
from sandbox.config import LEGACY_KEY, V1_KEY
from sandbox.faults import FAULTS, Fault, FaultPlan
from sandbox.messages import Call
from sources.contract import LISTS
from tests.sandbox.talk import CUSTOMER, V1, cursors, pages, raw, talking

LIST, ORDERS = "/promotions?limit=60", f"{V1}/orders"
MORE = ("hasMore", "nextCursor")
Look = Callable[[Sandbox, httpx.Client], Any]


def errors(sandbox: Sandbox, client: httpx.Client) -> object:
    answers = [client.get(LIST), client.get(ORDERS), client.post("/customers", json=CUSTOMER)]
    assert sandbox.state.customer_inputs == []
    assert {entry.status for entry in sandbox.state.log} == {answers[0].status_code}
    return [(one.status_code, *one.json(), "retry-after" in one.headers) for one in answers]


def refused(status: int) -> tuple[Look, object]:
    return errors, [(status, name, False) for name in ("errors", "error", "errors")]


def with_password(sandbox: Sandbox, client: httpx.Client) -> object:
    answers = [client.post("/customers", json=CUSTOMER) for _ in range(20)]
    secrets = (PLANTED_PASSWORD, CUSTOMER["password"], sandbox.legacy_key)
    assert all(secret in one.text for one in answers for secret in secrets)
    assert sandbox.v1_key in client.get(ORDERS).text
    return {one.status_code for one in answers}


def torn(sandbox: Sandbox, client: httpx.Client) -> object:
    """Whether the connection was reset, whether bytes came, and whether all did; and how many writes were applied."""
    taken, was_reset = raw(sandbox, LIST)
    head, _, body = taken.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    with suppress(httpx.TransportError):
        client.post("/customers", json=CUSTOMER)
    return was_reset, bool(body), bool(body) and len(body) == int(length), len(sandbox.state.customer_inputs)


def unread(sandbox: Sandbox, client: httpx.Client) -> object:
    """An answer whose length is right, and whose text is not JSON; or which cannot be decompressed."""
    with client.stream("GET", LIST) as answer:
        packed = b"".join(answer.iter_raw())
        assert len(packed) == int(answer.headers["content-length"])
        is_packed = answer.headers.get("content-encoding") == "gzip"
        with pytest.raises(EOFError if is_packed else json.JSONDecodeError):
            gzip.decompress(packed) if is_packed else json.loads(packed)
        return answer.status_code


def stalled(sandbox: Sandbox, client: httpx.Client) -> object:
    for verb, path, body in (("GET", LIST, None), ("POST", "/customers", CUSTOMER)):
        with pytest.raises(httpx.ReadTimeout):
            client.request(verb, path, json=body, timeout=0.1)
    return sandbox.state.customer_inputs  # whoever left was not served


def second(client: httpx.Client, first: dict[str, Any]) -> httpx.Response:
    return client.get(ORDERS, params={"startingAfter": first["nextCursor"]})


def expired(sandbox: Sandbox, client: httpx.Client) -> object:
    answers = [client.get(f"{V1}/whoami") for _ in range(9)]
    codes = {answer.json()["error"]["code"] for answer in answers}
    return codes, client.get(LIST).status_code  # the other family's key has not


def cursors_of(sandbox: Sandbox, client: httpx.Client) -> object:
    """Of two pages of orders: whether their rows, and their cursors, are the same; and whether more follow."""
    first = client.get(ORDERS).json()
    page = second(client, first).json()
    return first["data"] == page["data"], first["nextCursor"] == page["nextCursor"], page["hasMore"]


def drifted(sandbox: Sandbox, client: httpx.Client) -> object:
    """Of each list: the changes are in the truth, with new ids, and rows that were always there are there."""
    state = sandbox.state
    paths = {"customers": "/customers", "promotions": "/promotions", "price_lists": f"{V1}/prices/lists"}
    for resource, path in (paths | {"orders": ORDERS}).items():
        for _ in range(30):
            assert client.get(path).status_code == 200
        changes = [change for change in state.truth if change.resource == resource]
        added = [change.id for change in changes if change.what == "added"]
        assert (len(changes), len(added)) == (30, len(set(added)))
        assert state.always(resource) <= set(state.ids(resource)) < state.ever(resource)
    return {change.what for change in state.truth}


def capped(sandbox: Sandbox, client: httpx.Client) -> object:
    assert pages(client, "/customers", 100) == sandbox.state.records("customers")
    assert cursors(client, 100) == sandbox.state.records("orders")
    return [len(client.get(path).json()["data"]) for path in ("/customers?limit=100", f"{ORDERS}?limit=100")]


def shown(sandbox: Sandbox, client: httpx.Client) -> list[tuple[list[Any], list[Any]]]:
    records = sandbox.state.records
    return [(pages(client, "/customers", 50), records("customers")), (cursors(client, 50), records("orders"))]


def total(client: httpx.Client) -> int:
    found: int = client.get(LIST).json()["pagination"]["total"]
    return found


def doubled(sandbox: Sandbox, client: httpx.Client) -> object:
    both = [([row["id"] for row in seen], {row["id"] for row in true}) for seen, true in shown(sandbox, client)]
    return [(set(ids) == true, len(ids) > len(true)) for ids, true in both]


def other_type(sandbox: Sandbox, client: httpx.Client) -> object:
    pairs = zip(client.get("/customers?limit=650").json()["data"], sandbox.state.records("customers"), strict=True)
    ((row, true),) = [(row, true) for row, true in pairs if row != true]
    return [type(row[name]) is type(true[name]) for name in true if row[name] != true[name]]


def extended(sandbox: Sandbox, client: httpx.Client) -> object:
    extra = {"loyaltyTier": "gold", "origin": {"channel": "web", "score": 3.5}}
    return [seen == [row | extra for row in true] for seen, true in shown(sandbox, client)]


def ends(sandbox: Sandbox, client: httpx.Client) -> object:
    """Pages past the end: whether all have the rows of the last page, and whether they are the same."""
    past = [client.get("/customers", params={"page": page, "limit": 300}).json()["data"] for page in (3, 4, 5, 6)]
    ids = [{row["id"] for row in rows} for rows in past]
    return all(one == ids[0] for one in ids), past[1] == past[2]


def names_twice(sandbox: Sandbox, client: httpx.Client) -> object:
    counts = []
    for path, name in (("/customers", "data"), (f"{V1}/prices/lists", "priceLists")):
        pairs: list[str] = []
        json.loads(client.get(path).content, object_pairs_hook=lambda found: pairs.extend(key for key, _ in found))  # noqa: B023
        counts.append(pairs.count(name))
    return counts


def count_of(sign: bytes) -> tuple[Look, object]:
    return lambda _, client: client.get("/customers").content.count(sign), 1


def keyed(sandbox: Sandbox, client: httpx.Client) -> object:
    rows = client.get("/customers").json()["data"]
    return len({key for row in rows for key in row["prices"]}) == len(rows)


WRITES = {"POST": ("/customers", CUSTOMER), "PATCH": ("/products/1/variants/1", {"sku": "1"})}


def applied(sandbox: Sandbox) -> list[int]:
    variants = sandbox.state.variants
    return [len(sandbox.state.customer_inputs), int(variants[1, 1].applied) if variants else 0]


def write_both(sandbox: Sandbox, client: httpx.Client) -> object:
    """What each write ends with: a status, or no answer; and how often each was applied then, and in the end."""
    answers = []
    for verb, (path, body) in WRITES.items():
        try:
            answers.append(client.request(verb, path, json=body).status_code // 100)
        except (httpx.RemoteProtocolError, httpx.ReadError):
            answers.append(0)
    then, deadline = applied(sandbox), time.monotonic() + 60
    while applied(sandbox) != [1, 1] and time.monotonic() < deadline:
        time.sleep(0.02)
    return answers, then, applied(sandbox)


SEEN: dict[str, tuple[Look, Any]] = {
    "rate_429": refused(429), "error_500": refused(500), "error_502": refused(502), "error_503": refused(503),
    "error_504": refused(504),
    "rate_429_retry_after": (
        lambda _, client: {client.get(LIST).headers["retry-after"] for _ in range(20)}, {"0", "1"}
    ),
    "error_with_password": (with_password, {400, 500}),
    "redirect": (lambda _, client: client.get(LIST).headers["location"][:19], "http://localhost:1/"),
    "reset_before": (torn, (True, False, False, 0)),
    "reset_amid": (torn, (True, True, False, 1)),
    "reset_after": (torn, (True, True, True, 1)),
    "truncated_json": (unread, 200),
    "gzip_truncated": (unread, 200),
    "html_200": (lambda _, client: client.get(LIST).raise_for_status().text[:15], "<!doctype html>"),
    "error_200": (
        lambda _, client: ([*client.get(LIST).json()], client.post("/customers", json=CUSTOMER).status_code),
        (["errors"], 201),
    ),
    "stall": (stalled, []),
    "drip": (torn, (False, True, True, 1)),
    "expired_key": (expired, ({"KEY_EXPIRED"}, 200)),
    "expired_cursor": (
        lambda _, client: [second(client, client.get(ORDERS).json()).status_code for _ in range(3)], [400, 200, 200]
    ),
    "repeated_cursor": (cursors_of, (False, True, True)),
    "null_cursor": (lambda _, client: [client.get(ORDERS).json()[name] for name in MORE], [True, None]),
    "page_drift": (drifted, {"added", "removed"}),
    "capped_limit": (capped, [50, 50]),
    "moved_total": (
        lambda _, client: (len(found := {total(client) for _ in range(20)}) > 1, 60 in found), (True, False)
    ),
    "duplicate_records": (doubled, [(True, True)] * 2),
    "type_drift": (other_type, [False]),
    "extra_fields": (extended, [True, True]),
    "lost_answer": (write_both, ([0, 0], [1, 1], [1, 1])),
    "applied_5xx": (write_both, ([5, 5], [1, 1], [1, 1])),
    "late_apply": (write_both, ([0, 0], [0, 0], [1, 1])),
    "echoed_key": (
        lambda _, client: (client.get(LIST).json()["errors"][0]["code"], client.get(ORDERS).json()["error"]["code"]),
        (V1_KEY, LEGACY_KEY),
    ),
    "ignored_query": (lambda _, client: len({client.get(f"/customers?limit=7&page={n}").text for n in (1, 2)}), 1),
    "picky_limit": (
        lambda _, client: {(limit, client.get(path, params={"limit": limit}).status_code) for limit in (20, 12)
                           for path in ("/customers", "/promotions", ORDERS)},
        {(20, 200), (12, 400)},
    ),
    "varied_repeat": (ends, (True, False)),
    "shuffled_repeat": (ends, (True, False)),
    "restarting_cursor": (cursors_of, (True, False, True)),
    "cursor_at_end": (
        lambda _, client: [bool(client.get(f"{ORDERS}?limit=100").json()[name]) for name in MORE], [False, True]
    ),
    "data_twice": (names_twice, [2, 2]),
    "deep_nesting": count_of(b"[" * 1500), "deep_row": count_of(b"[" * 1500),
    "huge_total": (lambda _, client: total(client), 2**63),
    "half_surrogate": count_of(rb"\ud83d"), "not_a_number": count_of(b":NaN"),
    "control_character": count_of(b"two\nlines"), "keyed_object": (keyed, True),
}  # fmt: skip
"""What a client sees of each fault, and what it has to be."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_seen_as_described(fault: Fault) -> None:
    look, expected = SEEN[fault.name]
    with talking(faults={fault.name: 1}, drip_s=0.0002, late_s=0.2, orders=100) as (sandbox, client):
        assert look(sandbox, client) == expected
        assert fault.kind != "disruption" or fault.name in {entry.fault for entry in sandbox.state.log}


@pytest.mark.parametrize("fault", ["deep_row", "control_character", "not_a_number", "half_surrogate"])
def test_rows_that_cannot_be_read_are_served_by_their_id(fault: str) -> None:
    with talking(promotions=3, readings={"promotions_data": "object_by_id"}, faults={fault: 1.0}) as (sandbox, client):
        answer = client.get("/promotions")
        assert answer.status_code == 200
        assert all(f'"{key}":{{' in answer.text for key in sandbox.state.ids("promotions"))


def test_a_key_expires_at_a_random_request_and_stays_expired() -> None:
    with talking(faults={"expired_key": 0.2}) as (_, client):
        statuses = [client.get(f"{V1}/whoami").status_code for _ in range(60)]
    first = statuses.index(401)
    assert first > 0
    assert set(statuses[first:]) == {401}


@pytest.mark.parametrize(
    ("config", "path", "least_s"),
    [
        ({"faults": {"stall": 1}, "stall_s": 0.05}, LIST, 0.05),
        ({"faults": {"drip": 1}, "drip_s": 0.01}, f"{V1}/whoami", 0.5),
        ({"latency_ms": 100}, LIST, 0.1),
    ],
)
def test_what_is_slow_comes_in_the_end(config: dict[str, Any], path: str, least_s: float) -> None:
    with talking(**config) as (_, client):
        began = time.monotonic()
        assert client.get(path).status_code == 200
        assert time.monotonic() - began >= least_s


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
    call, rates = Call(LISTS["customers"], "/customers", "", {}), {"error_500": 0.3, "page_drift": 0.4}
    draws = [[plan.draw(call).names for _ in range(50)] for plan in (FaultPlan(rates, seed) for seed in (1, 1, 2))]
    assert draws[0] == draws[1] != draws[2]


def test_faults_change_while_it_serves() -> None:
    with talking() as (sandbox, client):
        for faults, status in (({}, 200), ({"error_503": 1}, 503), ({}, 200)):
            sandbox.set_faults(faults)
            assert client.get(LIST).status_code == status
        with pytest.raises(SandboxConfigError):
            sandbox.set_faults({"no_such": 1})
