"""Every limit of every input and query, taken from the contract."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
    "object": ["{}", [], None],
    "array": ["[]", {}, None],
}
WRONG_ITEMS: dict[str, dict[str, Any]] = {
    "create_customer": {"documents": [1]},
    "create_warehouse": {"location": {"coordinates": [-77, "x"]}},
}
RIGHT: dict[FieldType, Any] = {"text": "á", "integer": 3, "number": 2.5, "boolean": False, "object": {}, "array": []}
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


HUGE = ("9" * 5000, "1e20000000", "-1e9999999")
REFUSED = [
    *((f"{V1}/orders", "limit", number) for number in ("0", "101", "-1", "x", "", "1.5", "٣", "9" * 40, *HUGE)),
    *(("/customers", "limit", number) for number in ("0", "x", "-5", "nan", "inf", *HUGE)),
    *(("/customers", "page", number) for number in ("x", "1.5", *HUGE)),
]


HONOURED = {f"{V1}/orders": 20, f"{V1}/orders?limit=1": 1, f"{V1}/orders?limit=100": 100, "/customers?limit=7.0": 7}


def test_limits_are_honoured_or_refused_at_once(client: httpx.Client) -> None:
    assert {path: len(client.get(path).json()["data"]) for path in HONOURED} == HONOURED
    for path, name, number in REFUSED:
        answer = client.get(path, params={name: number})
        assert (answer.status_code, path == "/customers" or answer.json()["error"].keys()) == (
            400, path == "/customers" or {"code", "message", "requestId"},
        ), (path, name, number)  # fmt: skip


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


@pytest.mark.parametrize(
    "body",
    [b'{"price": %s}' % (b"9" * 5000), b'{"price": 1e400}', b'{"price": 1e9999999999999999999}', b'{"price": NaN}',
     b'{"sku": "\\ud800"}', b'{"attributes": ' + b"[" * 3000 + b"]" * 3000 + b"}", b"\xff\xfe"],
)  # fmt: skip
def test_a_body_that_cannot_be_stored_is_refused(sandbox: Sandbox, client: httpx.Client, body: bytes) -> None:
    answer = client.patch("/products/1/variants/77", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["errors"]
    assert (1, 77) not in sandbox.state.variants


@pytest.mark.parametrize("path", ["/customers", f"{V1}/orders"])
def test_a_verb_that_no_operation_has(client: httpx.Client, path: str) -> None:
    answer = client.request("DELETE", path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == ("GET" if path.startswith(V1) else "GET, POST")
    assert set(answer.json()) == ({"error"} if path.startswith(V1) else {"errors"})


NUMBERS = st.sampled_from(("0", "1", "-1", "1.5", "1e3", "1e20000000", "9" * 5000, "-0", "٣", "", "NaN", " 7", "20"))
TEXTS = st.sampled_from(("", "a", "ñ\u0301", "\u202e", "\x00", "\ud800", "x" * 3000, "%", "'"))
NAMES = ("email", "password", "name", "price", "stock", "location", "documents", "images", "id", "isDefault", "order")
JSON = st.recursive(
    st.none() | st.booleans() | st.sampled_from((0, -1, 10**25, 2**63, 1.5, 1e308)) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("name", "line", "x")), inner),
    max_leaves=8,
)


@given(
    operation=st.sampled_from(OPERATIONS),
    verb=st.none() | st.sampled_from(("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS")),
    numbers=st.lists(NUMBERS, min_size=8, max_size=8),
    body=st.dictionaries(st.sampled_from(NAMES), JSON) | st.binary(),
    kept=st.sampled_from((1.0, 0.5)),
    kind=st.sampled_from(("application/json", "text/plain", "")),
)
@settings(max_examples=settings().max_examples * 10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_generated_request_breaks_the_sandbox(
    client: httpx.Client, operation: Operation, verb: str | None, numbers: list[str], body: Any, kept: float, kind: str
) -> None:
    """Well formed, torn, noise: no answer is a 5xx, or claims to be JSON and is none."""
    path = (V1 if operation.family == "public_v1" else "") + re.sub(
        r"\{\w+\}", numbers[0][:200] or "77", operation.path
    )
    query = {name: number for name, number in zip(operation.query, numbers[1:], strict=False) if number != "NaN"}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.request(
        verb or operation.verb,
        (V1 if operation.family == "public_v1" else "") + path,
        params=query,
        content=content[: int(len(content) * kept)],
        headers={"content-type": kind},
    )
    assert answer.status_code < 500
    if answer.content and "json" in answer.headers.get("content-type", ""):
        json.loads(answer.content, parse_constant=pytest.fail)
