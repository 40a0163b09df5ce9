"""Every limit of every input and query, taken from the contract."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from sources.contract import OPERATIONS, Field, FieldType, Operation, operation_named
from tests.sandbox.talk import CUSTOMER, V1, WAREHOUSE

BODIES: dict[Operation, dict[str, Any]] = {
    operation_named("create_customer"): CUSTOMER,
    operation_named("create_warehouse"): WAREHOUSE,
}
"""What is required, of the operations that require anything."""
WRITES = {op: (re.sub(r"\{\w+\}", "1", op.path), BODIES.get(op, {})) for op in OPERATIONS if op.input}
WRONG: dict[FieldType, list[Any]] = {
    "text": [1, True, None, ["a"]],
    "integer": ["1", 1.5, True, None],
    "number": ["1.5", True, None],
    "boolean": ["true", 1, None],
    "object": ["{}", [], None],
    "array": ["[]", {}, None],
}
RIGHT: dict[FieldType, Any] = {"text": "á", "integer": 3, "number": 2.5, "boolean": False, "object": {}, "array": []}
CODE_TYPES = {"integer": int, "string": str, "": str}


def fields() -> Iterator[tuple[Operation, Field]]:
    for operation in WRITES:
        assert operation.input
        for field in operation.input.fields:
            yield operation, field


def wrong() -> Iterator[Any]:
    for operation, field in fields():
        for value in WRONG[field.type]:
            yield pytest.param(operation, {field.name: value}, id=f"{operation.name}-{field.name}-{value!r}")
        for inner in field.fields:
            value = WRONG[inner.type][0]
            held: Any = {inner.name: value} if field.type == "object" else [{inner.name: value}]
            yield pytest.param(operation, {field.name: held}, id=f"{operation.name}-{field.name}.{inner.name}")
        if field.min_length:
            yield pytest.param(operation, {field.name: ""}, id=f"{operation.name}-{field.name}-empty")
        if field.min_items:
            yield pytest.param(operation, {field.name: []}, id=f"{operation.name}-{field.name}-no-items")
        if field.max_items is not None:
            items: list[Any] = [{}] * (field.max_items + 1)
            yield pytest.param(operation, {field.name: items}, id=f"{operation.name}-{field.name}-too-many")
        if field.minimum is not None:
            yield pytest.param(operation, {field.name: field.minimum - 1}, id=f"{operation.name}-{field.name}-minimum")
        if field.max_decimals is not None:
            yield pytest.param(operation, {field.name: 1.005}, id=f"{operation.name}-{field.name}-decimals")
        if field.int64:
            yield pytest.param(operation, {field.name: 2**63}, id=f"{operation.name}-{field.name}-int64")


def right() -> Iterator[Any]:
    for operation, field in fields():
        value = RIGHT[field.type]
        if field.type == "array" and field.fields:
            value = [{inner.name: RIGHT[inner.type] for inner in field.fields}] * (field.max_items or 2)
        if field.type == "object":
            value = {inner.name: RIGHT[inner.type] for inner in field.fields}
        yield pytest.param(operation, {field.name: value}, id=f"{operation.name}-{field.name}")
        if field.minimum is not None:
            yield pytest.param(operation, {field.name: field.minimum}, id=f"{operation.name}-{field.name}-minimum")


def send(client: httpx.Client, operation: Operation, body: dict[str, Any]) -> httpx.Response:
    path, base = WRITES[operation]
    return client.request(operation.verb, path, json={**base, **body})


def assert_refused(answer: httpx.Response, operation: Operation) -> list[str]:
    assert answer.status_code == 400, answer.text
    errors = answer.json()["errors"]
    assert errors
    for error in errors:
        assert error.keys() == {"message", "code"}
        assert type(error["code"]) is CODE_TYPES[operation.error_code]
    return [error["message"] for error in errors]


@pytest.mark.parametrize(("operation", "body"), list(wrong()))
def test_wrong_input_is_refused(client: httpx.Client, operation: Operation, body: dict[str, Any]) -> None:
    messages = assert_refused(send(client, operation, body), operation)
    assert any(next(iter(body)) in message for message in messages)


@pytest.mark.parametrize(("operation", "body"), list(right()))
def test_right_input_is_taken(client: httpx.Client, operation: Operation, body: dict[str, Any]) -> None:
    answer = send(client, operation, body)
    assert answer.is_success or (answer.status_code == 404 and operation.params), answer.text  # of no such record


@pytest.mark.parametrize(
    ("operation", "field"),
    [
        pytest.param(operation, field.name, id=f"{operation.name}-{field.name}")
        for operation, field in fields()
        if field.required or field.name in ("email",)
        if operation in BODIES
    ],
)
def test_required_fields(client: httpx.Client, operation: Operation, field: str) -> None:
    path, base = WRITES[operation]
    body = {name: value for name, value in base.items() if name != field}
    assert_refused(client.request(operation.verb, path, json=body), operation)


@pytest.mark.parametrize("operation", WRITES, ids=lambda operation: operation.name)
def test_bodies_that_are_no_json_objects(client: httpx.Client, operation: Operation) -> None:
    path, _ = WRITES[operation]
    kind = {"Content-Type": "application/json"}
    for content in (b"", b"{", b"[]", b"null", b"\xff"):
        assert_refused(client.request(operation.verb, path, content=content, headers=kind), operation)
    assert_refused(client.request(operation.verb, path, content=b"{}"), operation)


@pytest.mark.parametrize("wrong", ["x", "1.5"])
def test_ids_in_the_path_are_integers(client: httpx.Client, wrong: str) -> None:
    for operation, (_, body) in WRITES.items():
        for name in (field.name for field in operation.params if field.json == "integer"):
            path = re.sub(r"\{\w+\}", "1", operation.path.replace(f"{{{name}}}", wrong))
            assert_refused(client.request(operation.verb, path, json=body), operation)


@pytest.mark.parametrize("value", [1.1, 1.25, 3])
def test_sales_unit_factor_with_few_decimals(client: httpx.Client, value: float) -> None:
    assert send(client, operation_named("update_variant"), {"salesUnitFactor": value}).is_success


@pytest.mark.parametrize("limit", ["0", "101", "-1", "x", "", "1.5", "٣", "9" * 40])
def test_limits_of_orders(client: httpx.Client, limit: str) -> None:
    answer = client.get(f"{V1}/orders", params={"limit": limit})
    assert answer.status_code == 400
    assert answer.json()["error"].keys() == {"code", "message", "requestId"}


@pytest.mark.parametrize("limit", [1, 100])
def test_bounds_of_the_limit_of_orders(client: httpx.Client, limit: int) -> None:
    assert len(client.get(f"{V1}/orders", params={"limit": limit}).json()["data"]) == limit


def test_default_limit_of_orders(client: httpx.Client) -> None:
    assert len(client.get(f"{V1}/orders").json()["data"]) == 20


def test_cursors_that_are_none(client: httpx.Client) -> None:
    own = client.get(f"{V1}/orders").json()["nextCursor"]
    forged = ("B" if own[0] != "B" else "C") + own[1:]
    for cursor in ("", "x", "ord_000050010", forged, own + "AAAA", "é"):
        assert client.get(f"{V1}/orders", params={"startingAfter": cursor}).status_code == 400, cursor


def test_a_cursor_is_bound_to_its_query(client: httpx.Client) -> None:
    cursor = client.get(f"{V1}/orders", params={"status": "PENDING"}).json()["nextCursor"]
    assert client.get(f"{V1}/orders", params={"startingAfter": cursor}).status_code == 400
    same = {"startingAfter": cursor, "status": "PENDING"}
    assert client.get(f"{V1}/orders", params={**same, "limit": 5}).status_code == 400
    assert client.get(f"{V1}/orders", params=same).status_code == 200


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "page=x", "limit=-5", "limit=nan", "limit=inf", "page=1.5"])
def test_legacy_queries(client: httpx.Client, query: str) -> None:
    assert client.get(f"/customers?{query}").status_code == 400


def test_a_legacy_limit_is_a_number(client: httpx.Client) -> None:
    assert len(client.get("/customers?limit=7.0").json()["data"]) == 7
