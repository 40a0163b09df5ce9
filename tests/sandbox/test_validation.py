"""Every limit of every input and query, taken from the contract."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from sandbox import Sandbox
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
    "date": ["31/01/2026", 20260131, None],
    "object": ["{}", [], None],
    "array": ["[]", {}, None],
}
WRONG_ITEMS: dict[str, dict[str, Any]] = {
    "create_customer": {"documents": [1]},
    "create_warehouse": {"location": {"coordinates": [-77, "x"]}},
}
RIGHT: dict[FieldType, Any] = {
    "text": "á", "integer": 3, "number": 2.5, "boolean": False, "date": "2026-01-31", "object": {}, "array": [],
}  # fmt: skip
CODE_TYPES = {"integer": int, "string": str, "": str}


def wrong(field: Field) -> list[Any]:
    values = [*WRONG[field.type]]
    held = [{inner.name: WRONG[inner.type][0]} for inner in field.fields]
    values += held if field.type == "object" else [[one] for one in held]
    values += [""] if field.min_length else []
    values += [[]] if field.min_items else []
    values += [[{}] * (field.max_items + 1)] if field.max_items is not None else []
    values += [field.minimum - 1] if field.minimum is not None else []
    values += [1.005] if field.max_decimals is not None else []
    return [*values, 2**63] if field.int64 else values


def right(field: Field) -> list[Any]:
    value = {inner.name: RIGHT[inner.type] for inner in field.fields} or RIGHT[field.type]
    values = [[value] * (field.max_items or 2) if field.type == "array" and field.fields else value]
    values += [1.1, 1.25, 3] if field.max_decimals is not None else []
    return [*values, field.minimum] if field.minimum is not None else values


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


@pytest.mark.parametrize("operation", WRITES, ids=lambda operation: operation.name)
def test_input_is_taken_or_refused_by_each_limit_of_each_field(client: httpx.Client, operation: Operation) -> None:
    assert operation.input
    for field in operation.input.fields:
        for value in wrong(field):
            messages = assert_refused(send(client, operation, {field.name: value}), operation)
            assert any(field.name in message for message in messages), (field.name, value)
        for value in right(field):
            answer = send(client, operation, {field.name: value})
            is_unknown = answer.status_code == 404 and operation.params  # no such record
            assert answer.is_success or is_unknown, (field.name, value, answer.text)
        if field.name in (items := WRONG_ITEMS.get(operation.name, {})):
            assert_refused(send(client, operation, items), operation)
        if operation in BODIES and (field.required or field.name == "email"):
            path, base = WRITES[operation]
            body = {name: value for name, value in base.items() if name != field.name}
            assert_refused(client.request(operation.verb, path, json=body), operation)


@pytest.mark.parametrize("operation", WRITES, ids=lambda operation: operation.name)
def test_bodies_that_are_no_json_objects(client: httpx.Client, operation: Operation) -> None:
    path, _ = WRITES[operation]
    kind = {"Content-Type": "application/json"}
    for content, headers in ((b"{}", {}), *((content, kind) for content in (b"", b"{", b"[]", b"null", b"\xff"))):
        assert_refused(client.request(operation.verb, path, content=content, headers=headers), operation)


def test_ids_in_the_path_are_integers(client: httpx.Client) -> None:
    for operation, (_, body) in WRITES.items():
        for name in (field.name for field in operation.params if field.json in ("integer", "number")):
            for wrong in ("x", "1.5"):
                path = re.sub(r"\{\w+\}", "1", operation.path.replace(f"{{{name}}}", wrong))
                assert_refused(client.request(operation.verb, path, json=body), operation)


HONOURED = {f"{V1}/orders": 20, f"{V1}/orders?limit=1": 1, f"{V1}/orders?limit=100": 100, "/customers?limit=7.0": 7}
REFUSED = [
    *((f"{V1}/orders", "limit", number) for number in ("0", "101", "x", "", "1.5", "٣", "9" * 5000)),
    *(("/customers", "limit", number) for number in ("0", "x", "nan", "1e20000000")),
    ("/customers", "page", "1.5"),
]


def test_limits_are_honoured_or_refused_at_once(client: httpx.Client) -> None:
    assert {path: len(client.get(path).json()["data"]) for path in HONOURED} == HONOURED
    for path, name, number in REFUSED:
        answer = client.get(path, params={name: number})
        error = "errors" if path == "/customers" else "error"
        assert (answer.status_code, [*answer.json()]) == (400, [error]), (path, name, number)


def test_a_cursor_is_bound_to_its_query_and_none_can_be_made_up(client: httpx.Client) -> None:
    cursor = client.get(f"{V1}/orders", params={"status": "PENDING"}).json()["nextCursor"]
    forged = ("B" if cursor[0] != "B" else "C") + cursor[1:]
    same = {"startingAfter": cursor, "status": "PENDING"}
    for params in (
        {"startingAfter": cursor},
        {**same, "limit": "5"},
        *({**same, "startingAfter": other} for other in ("", "ord_000050010", forged, f"{cursor}AAAA", "é")),
    ):
        assert client.get(f"{V1}/orders", params=params).status_code == 400, params
    assert client.get(f"{V1}/orders", params=same).status_code == 200


@pytest.mark.parametrize(
    "body", [b'{"price": 1e400}', b'{"price": NaN}', b'{"sku": "\\ud800"}', b'{"attributes": ' + b"[" * 3000]
)
def test_a_body_that_cannot_be_stored_is_refused(sandbox: Sandbox, client: httpx.Client, body: bytes) -> None:
    answer = client.patch("/products/1/variants/77", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, [*answer.json()]) == (400, ["errors"])
    assert (1, 77) not in sandbox.state.variants


@pytest.mark.parametrize("path", ["/customers", f"{V1}/orders"])
def test_a_verb_that_no_operation_has(client: httpx.Client, path: str) -> None:
    answer = client.request("DELETE", path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == ("GET" if path.startswith(V1) else "GET, POST")
    assert set(answer.json()) == ({"error"} if path.startswith(V1) else {"errors"})
