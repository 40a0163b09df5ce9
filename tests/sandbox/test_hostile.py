"""Answers that no platform should give, and requests that no client should send: each by name, then generated."""

from __future__ import annotations

import json
import time

import pytest

from sandbox.config import LEGACY_KEY, V1_KEY
from tests.sandbox.fuzz import fuzz
from tests.sandbox.talk import CUSTOMER, V1, WAREHOUSE, talking


def test_echoed_key() -> None:
    with talking(faults={"echoed_key": 1}) as (_, client):
        assert client.get("/customers").json()["errors"][0]["code"] == V1_KEY
        assert client.get(f"{V1}/orders").json()["error"]["code"] == LEGACY_KEY


def test_ignored_query() -> None:
    with talking(faults={"ignored_query": 1}) as (_, client):
        pages = [client.get("/customers", params={"page": page, "limit": 7}).json() for page in (1, 2)]
        assert pages[0] == pages[1]
        assert len(pages[0]["data"]) == 20


def test_picky_limit() -> None:
    with talking(faults={"picky_limit": 1}) as (_, client):
        for path in ("/customers", "/promotions", f"{V1}/orders"):
            assert [client.get(path, params={"limit": limit}).status_code for limit in (20, 12)] == [200, 400], path


@pytest.mark.parametrize("name", ["varied_repeat", "shuffled_repeat"])
def test_varied_repeat_and_shuffled_repeat(name: str) -> None:
    with talking(faults={name: 1}, customers=10) as (_, client):
        past = [client.get("/customers", params={"page": page, "limit": 4}).json()["data"] for page in (3, 4, 5, 6)]
        assert all({row["id"] for row in rows} == {row["id"] for row in past[0]} for rows in past)
        assert past[1] != past[2]


def test_restarting_cursor() -> None:
    with talking(faults={"restarting_cursor": 1}) as (_, client):
        first = client.get(f"{V1}/orders").json()
        second = client.get(f"{V1}/orders", params={"startingAfter": first["nextCursor"]}).json()
        assert first["data"] == second["data"]
        assert second["hasMore"]
        assert first["nextCursor"] != second["nextCursor"]


def test_cursor_at_end() -> None:
    with talking(faults={"cursor_at_end": 1}, orders=3) as (_, client):
        body = client.get(f"{V1}/orders").json()
        assert body["hasMore"] is False
        assert body["nextCursor"]


def test_data_twice() -> None:
    with talking(faults={"data_twice": 1}) as (_, client):
        for path, name in (("/customers", "data"), (f"{V1}/prices/lists", "priceLists")):
            pairs: list[str] = []
            json.loads(client.get(path).content, object_pairs_hook=lambda found: pairs.extend(key for key, _ in found))  # noqa: B023
            assert pairs.count(name) == 2


@pytest.mark.parametrize("name", ["deep_nesting", "deep_row"])
def test_deep_nesting_and_deep_row(name: str) -> None:
    with talking(faults={name: 1}) as (_, client):
        assert client.get("/customers").content.count(b"[" * 1500) == 1


def test_huge_total() -> None:
    with talking(faults={"huge_total": 1}) as (_, client):
        assert client.get("/promotions").json()["pagination"]["total"] == 2**63


@pytest.mark.parametrize(
    ("name", "sign"),
    [("half_surrogate", rb"\ud83d"), ("not_a_number", b":NaN"), ("control_character", b"two\nlines")],
)
def test_half_surrogate_not_a_number_and_control_character(name: str, sign: bytes) -> None:
    with talking(faults={name: 1}) as (_, client):
        assert client.get("/customers").content.count(sign) == 1


def test_keyed_object() -> None:
    with talking(faults={"keyed_object": 1}) as (_, client):
        rows = client.get("/customers").json()["data"]
        assert len({key for row in rows for key in row["prices"]}) == len(rows)


def test_a_body_does_not_choose_its_id() -> None:
    with talking() as (sandbox, client):
        known = sandbox.state.ids("customers")
        made = client.post("/customers", json={**CUSTOMER, "id": int(known[0])}).json()
        assert str(made["id"]) not in known
        assert client.post("/categories/7/subcategories", json={"name": "a", "id": 99}).json()["id"] == 1
        assert client.post("/logistics/warehouses", json={**WAREHOUSE, "id": 99}).json()["id"] == 1


@pytest.mark.parametrize("path", ["/customers", f"{V1}/orders"])
def test_a_verb_that_no_operation_has(path: str) -> None:
    with talking() as (_, client):
        answer = client.request("DELETE", path)
        assert answer.status_code == 405
        assert answer.headers["allow"] == ("GET" if path.startswith(V1) else "GET, POST")
        assert set(answer.json()) == ({"error"} if path.startswith(V1) else {"errors"})


@pytest.mark.parametrize("limit", ["1e20000000", "9" * 5000, "1E+400", "-1e9999999"])
def test_a_number_beyond_all_bounds_is_refused_at_once(limit: str) -> None:
    with talking() as (_, client):
        started = time.monotonic()
        assert client.get("/customers", params={"limit": limit}).status_code == 400
        assert client.get("/customers", params={"page": limit}).status_code == 400
        assert client.get(f"{V1}/orders", params={"limit": limit}).status_code == 400
        assert time.monotonic() - started < 50


@pytest.mark.parametrize(
    "body",
    [
        b'{"price": %s}' % (b"9" * 5000),
        b'{"price": 1e400}',
        b'{"price": 1e9999999999999999999}',
        b'{"price": NaN}',
        b'{"sku": "\\ud800"}',
        b'{"attributes": ' + b"[" * 3000 + b"]" * 3000 + b"}",
        b"\xff\xfe",
    ],
)
def test_a_body_that_cannot_be_stored_is_refused(body: bytes) -> None:
    with talking() as (sandbox, client):
        answer = client.patch("/products/1/variants/2", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 400
        assert answer.json()["errors"]
        assert sandbox.state.variants == {}


def test_fields_of_a_customer_that_no_create_takes_are_not_stored() -> None:
    given = {"password": "x", "email": "a@example.com", "birthdate": 5, "createdAt": [], "id": "x", "nickname": "Ana"}
    with talking(customers=0) as (sandbox, client):
        assert client.post("/customers", json=given).status_code == 201
        (record,) = sandbox.state.records("customers")
    assert record.keys() == {"id", "email", "nickname", "createdAt", "priceListId", "documents"}
    assert isinstance(record["id"], int)
    assert isinstance(record["createdAt"], str)


def test_no_generated_request_breaks_the_sandbox() -> None:
    assert fuzz(seed=20260721, requests=3000) == []
