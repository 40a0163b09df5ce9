"""Each fault, seen from a socket or a plain client."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import Any

import httpx
import pytest

from orderbridge.sandbox.app import PLANTED_PASSWORD
from orderbridge.sandbox.config import LEGACY_KEY, V1_KEY
from orderbridge.sandbox.faults import FaultPlan
from orderbridge.sandbox.messages import Call
from orderbridge.sources.contract import LISTS
from tests.sandbox.talk import CUSTOMER, V1, raw, shown, talking

LIST, ORDERS, TAKEN = "/promotions?limit=60", f"{V1}/orders", "/customers?limit=20"
LEGACY_ERROR, V1_ERROR = r".*\n\{\"errors\":\[\{\"message", r".*\n\{\"error\":\{\"code"
SEEN: dict[str, dict[str, str]] = {
    "rate_429": {LIST: r"429(?!.*retry-after)" + LEGACY_ERROR, ORDERS: "429" + V1_ERROR},
    "rate_429_retry_after": {LIST: r"429.*\nretry-after: [01]\n"},
    "error_500": {LIST: "500" + LEGACY_ERROR, ORDERS: "500" + V1_ERROR},
    "error_502": {LIST: "502"}, "error_503": {LIST: "503"}, "error_504": {LIST: "504"},
    "error_with_password": {LIST: f"[45]00.*{LEGACY_KEY}.*{PLANTED_PASSWORD}", ORDERS: f"[45]00.*{V1_KEY}"},
    "truncated_json": {LIST: r"200.*\n\n\{(?!.*\}\}$)"}, "gzip_truncated": {LIST: r"200.*encoding: gzip(?!.*\}\}$)"},
    "redirect": {LIST: r"302.*\nlocation: http://localhost:1/"},
    "html_200": {LIST: "200.*<!doctype html>"}, "error_200": {LIST: "200" + LEGACY_ERROR},
    "null_cursor": {ORDERS: '.*"hasMore":true,"nextCursor":null'},
    "cursor_at_end": {"/public/v1/orders?limit=100": '.*"hasMore":false,"nextCursor":"[0-9a-f]{24}"'},
    "more_unannounced": {ORDERS: '.*"hasMore":false,"nextCursor":"[^"]+"'},
    "empty_array": {"/promotions?limit=60&page=99": r"200.*\n\n\[\]$"},
    "capped_limit": {LIST: '.*"pages":2,', f"{ORDERS}?limit=100": '.*"ord_000050050"(?!.*"ord_000050051")'},
    "moved_total": {LIST: '.*"total":(57|58|59|61|62|63),'}, "huge_total": {LIST: f'.*"total":{2**63},'},
    "extra_fields": {LIST: r'.*\[\{"id":301,[^}]*"loyaltyTier":"gold","origin":\{.*,"score":3.5\}\}\],"pagination"'},
    "echoed_key": {LIST: f'400.*"code":"{V1_KEY}"', ORDERS: f'400.*"code":"{LEGACY_KEY}"'},
    "ignored_query": {"/customers?limit=7&page=2": r'.*\[\{"id":1001,'},
    "picky_limit": {"/customers?limit=12": "400", f"{ORDERS}?limit=12": "400", TAKEN: "200"},
    "varied_repeat": {"/promotions?limit=50&page=3": r'.*\[\{"id":351,.*"id":360,[^}]*"seen":\d+\}\]'},
    "data_twice": {"/customers": r'.*\{"data":\[\],"data":\[', f"{V1}/prices/lists": r'.*"priceLists":\[\],"priceL'},
    "deep_nesting": {LIST: r'.*"pagination":.*"meta":\[{1500}\]'}, "deep_row": {LIST: r'.*"tree":\[{1500}\]'},
    "half_surrogate": {LIST: r".*\\ud83d"}, "not_a_number": {LIST: ".*:NaN"},
    "control_character": {LIST: ".*two\nlines"},
    "keyed_object": {LIST: r'.*"prices":\{"0":1.5\}\},.*"prices":\{"1":1.5\}\},'},
}  # fmt: skip
"""By fault, what the answer to a request begins with: its status, its headers, its body."""


def test_a_fault_is_seen_as_described_and_logged_until_it_is_taken_away() -> None:
    with talking(orders=100) as (sandbox, client):
        for fault, looks in SEEN.items():
            for path, expected in looks.items():
                sandbox.set_faults({fault: 1})
                seen = shown(client.get(path))
                assert re.match(expected, seen, re.S), (fault, path, seen[:500])
                assert sandbox.state.log[-1].fault == fault
                sandbox.set_faults({})
                assert not re.match(expected, shown(client.get(path)), re.S) or path == TAKEN, (
                    fault,
                    path,
                )


@pytest.mark.parametrize(
    ("fault", "is_reset", "comes", "comes_whole", "applied"),
    [
        ("reset_before", 1, 0, 0, 0),
        ("reset_amid", 1, 1, 0, 1),
        ("reset_after", 1, 1, 1, 1),
        ("drip", 0, 1, 1, 1),
    ],
)
def test_a_connection_breaks_before_amid_or_after_a_body(
    fault: str, is_reset: int, comes: int, comes_whole: int, applied: int
) -> None:
    with talking(faults={fault: 1}, drip_s=0.0002) as (sandbox, client):
        taken, was_reset = raw(sandbox, LIST)
        head, _, body = taken.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        with suppress(httpx.TransportError):
            client.post("/customers", json=CUSTOMER)
        is_whole = bool(body) and len(body) == int(length)
        writes = len(sandbox.state.customer_inputs)
        assert (was_reset, bool(body), is_whole, writes) == (is_reset, comes, comes_whole, applied)


def test_a_key_expires_and_stays_expired() -> None:
    with talking(faults={"expired_key": 0.2}) as (_, client):
        statuses = [client.get(f"{V1}/whoami").status_code for _ in range(30)]
        assert client.get(LIST).status_code == 200, "the other family has its own"
    assert (statuses[0], statuses) == (200, sorted(statuses))


def test_a_cursor_expires_once_is_repeated_or_leads_to_the_beginning() -> None:
    with talking(orders=100) as (sandbox, client):
        first = client.get(ORDERS).json()

        def second(fault: str) -> httpx.Response:
            sandbox.set_faults({fault: 1})
            return client.get(ORDERS, params={"startingAfter": first["nextCursor"]})

        assert [second("expired_cursor").status_code for _ in range(2)] == [400, 200]
        for fault, are_same in (
            ("repeated_cursor", (False, True, True)),
            ("restarting_cursor", (True, False, True)),
        ):
            page = second(fault).json()
            seen = (
                first["data"] == page["data"],
                first["nextCursor"] == page["nextCursor"],
                page["hasMore"],
            )
            assert seen == are_same, fault


def test_the_truth_knows_of_each_record_that_drifts() -> None:
    with talking(faults={"page_drift": 1}) as (sandbox, client):
        state, paths = (
            sandbox.state,
            {"price_lists": f"{V1}/prices/lists", "orders": ORDERS, "customers": "/customers"},
        )
        for resource, path in paths.items():
            for _ in range(30):
                assert client.get(path).status_code == 200
            changes = [change for change in state.truth if change.resource == resource]
            added = [change.id for change in changes if change.what == "added"]
            assert (len(changes), len(added)) == (30, len(set(added)))
            assert 0 < len(added) < 30
            assert state.always(resource) <= set(state.ids(resource)) < state.ever(resource)


def test_rows_come_twice_reordered_or_with_another_type_and_keep_their_ids() -> None:
    with talking() as (sandbox, client):
        true = sandbox.state.records("customers")

        def page(fault: str, number: int) -> list[dict[str, Any]]:
            sandbox.set_faults({fault: 1})
            rows: list[dict[str, Any]] = client.get(
                "/customers", params={"limit": 325, "page": number}
            ).json()["data"]
            return rows

        doubled = page("duplicate_records", 1) + page("duplicate_records", 2)
        assert ({row["id"] for row in doubled}, len(doubled)) == ({row["id"] for row in true}, 652)
        ((row, kept),) = [
            (row, kept)
            for row, kept in zip(page("type_drift", 1), true, strict=False)
            if row != kept
        ]
        assert [
            type(row[name]) is type(kept[name]) for name in kept if row[name] != kept[name]
        ] == [False]
        third, fourth = page("shuffled_repeat", 3), page("shuffled_repeat", 4)
        assert third != fourth
        assert all(
            sorted(row["id"] for row in rows) == [row["id"] for row in true[325:]]
            for rows in (third, fourth)
        )


@pytest.mark.parametrize(
    ("fault", "answers", "at_once"),
    [
        ("lost_answer", [0, 0], [1, 1]),
        ("applied_5xx", [5, 5], [1, 1]),
        ("late_apply", [0, 0], [0, 0]),
    ],
)
def test_a_write_without_a_good_answer_is_applied_once(
    fault: str, answers: list[int], at_once: list[int]
) -> None:
    with talking(faults={fault: 1}, late_s=0.2) as (sandbox, client):

        def applied() -> list[int]:
            variants = sandbox.state.variants
            return [
                len(sandbox.state.customer_inputs),
                int(variants[1, 1].applied) if variants else 0,
            ]

        seen = []
        for verb, path, body in (
            ("POST", "/customers", CUSTOMER),
            ("PATCH", "/products/1/variants/1", {"sku": "1"}),
        ):
            try:
                seen.append(client.request(verb, path, json=body).status_code // 100)
            except (httpx.RemoteProtocolError, httpx.ReadError):
                seen.append(0)
        assert (seen, applied()) == (answers, at_once)
        deadline = time.monotonic() + 60
        while applied() != [1, 1] and time.monotonic() < deadline:
            time.sleep(0.02)
        assert applied() == [1, 1]


def test_draws_follow_the_seed() -> None:
    call, rates = (
        Call(LISTS["customers"], "/customers", "", {}),
        {"error_500": 0.3, "page_drift": 0.4},
    )
    draws = [
        [plan.draw(call).names for _ in range(50)]
        for plan in (FaultPlan(rates, seed) for seed in (1, 1, 2))
    ]
    assert draws[0] == draws[1] != draws[2]
