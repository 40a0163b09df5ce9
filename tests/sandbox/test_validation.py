"""Limits of inputs, bodies, paths and queries: one example of each, taken and refused."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.sandbox.talk import CUSTOMER, V1, WAREHOUSE

WRITES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "customer": ("POST", "/customers", CUSTOMER),
    "subcategory": ("POST", "/categories/1/subcategories", {}),
    "variant": ("PATCH", "/products/1/variants/1", {}),
    "warehouse": ("POST", "/logistics/warehouses", WAREHOUSE),
}
CODES = {"customer": str, "subcategory": int, "variant": int, "warehouse": str}
INPUTS: list[tuple[str, str, list[Any], list[Any]]] = [
    ("customer", "firstName", [1, None, ""], ["á"]),
    ("customer", "priceListId", ["1.5", True, None], [2.5, 3]),
    ("customer", "documents", ["[]", {}, [], [1], [{"isDefault": 1}]], [[{"isDefault": True}, {}]]),
    ("customer", "notification", ["{}", [], {"send": 1}], [{}, {"send": True}]),
    ("subcategory", "order", ["1", 1.5, True], [3]),
    ("variant", "priceIsTaxExempt", ["true", 1], [False]),
    ("variant", "salesUnitFactor", [1.005], [1.1, 1.25, 3]),
    ("variant", "jumpFactor", [0, 2**63], [1]),
    ("variant", "images", [[{}] * 6], [[{}] * 5]),
    ("warehouse", "location", [{"coordinates": [-77, "x"]}], [{"coordinates": [-77, 1]}]),
]
"""A field of a write with values that are refused, and with values that are taken."""


def send(client: httpx.Client, write: str, change: dict[str, Any]) -> httpx.Response:
    verb, path, body = WRITES[write]
    return client.request(verb, path, json={**body, **change})


def assert_refused(answer: httpx.Response, write: str) -> str:
    """In the form of its family's errors. Returns the messages."""
    assert answer.status_code == 400, answer.text
    errors = answer.json()["errors"]
    assert errors
    assert all(
        error.keys() == {"message", "code"} and type(error["code"]) is CODES[write]
        for error in errors
    )
    return " ".join(error["message"] for error in errors)


@pytest.mark.parametrize(("write", "field", "refused", "taken"), INPUTS)
def test_input_is_taken_or_refused_by_each_limit(
    client: httpx.Client, write: str, field: str, refused: list[Any], taken: list[Any]
) -> None:
    for value in refused:
        assert field in assert_refused(send(client, write, {field: value}), write), value
    for value in taken:
        assert send(client, write, {field: value}).is_success, value


@pytest.mark.parametrize("write", WRITES)
def test_what_is_required_is_there_in_a_json_object(client: httpx.Client, write: str) -> None:
    verb, path, body = WRITES[write]
    for name in body:
        less = {other: value for other, value in body.items() if other != name}
        assert f"{name} is required" in assert_refused(client.request(verb, path, json=less), write)
    kind = {"Content-Type": "application/json"}
    for content, headers in (
        (b"{}", {}),
        *((content, kind) for content in (b"", b"{", b"[]", b"\xff")),
    ):
        assert_refused(client.request(verb, path, content=content, headers=headers), write)


HONOURED = {
    f"{V1}/orders": 20,
    f"{V1}/orders?limit=1": 1,
    f"{V1}/orders?limit=100": 100,
    "/customers?limit=7.0": 7,
}
REFUSED = [
    *(
        (f"{V1}/orders", "limit", number)
        for number in ("0", "101", "x", "", "1.5", "٣", "9" * 5000)
    ),
    *(("/customers", "limit", number) for number in ("0", "x", "nan", "1e20000000")),
    ("/customers", "page", "1.5"),
]


def test_numbers_of_queries_and_paths_are_honoured_or_refused_at_once(client: httpx.Client) -> None:
    assert {path: len(client.get(path).json()["data"]) for path in HONOURED} == HONOURED
    for path, name, number in REFUSED:
        answer = client.get(path, params={name: number})
        error = "errors" if path == "/customers" else "error"
        assert (answer.status_code, [*answer.json()]) == (400, [error]), (path, name, number)
    for path in ("/products/x/variants/1", "/products/1/variants/1.5"):
        assert_refused(client.patch(path, json={}), "variant")


def test_a_cursor_is_bound_to_its_query_and_none_can_be_made_up(client: httpx.Client) -> None:
    cursor = client.get(f"{V1}/orders", params={"status": "PENDING"}).json()["nextCursor"]
    forged = ("B" if cursor[0] != "B" else "C") + cursor[1:]
    same = {"startingAfter": cursor, "status": "PENDING"}
    for params in (
        {"startingAfter": cursor},
        {**same, "limit": "5"},
        *(
            {**same, "startingAfter": other}
            for other in ("", "ord_000050010", forged, f"{cursor}AAAA", "é")
        ),
    ):
        assert client.get(f"{V1}/orders", params=params).status_code == 400, params
    assert client.get(f"{V1}/orders", params=same).status_code == 200
