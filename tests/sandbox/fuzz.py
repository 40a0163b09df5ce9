"""Generated requests to every operation of a sandbox: well formed, malformed, torn, noise."""

from __future__ import annotations

import json
import random
import string
from typing import Any

import httpx

from sources.contract import OPERATIONS, PUBLIC_V1_PREFIX
from tests.sandbox.talk import talking


def fuzz(seed: int, requests: int) -> list[str]:
    """Requests that were answered with a 5xx, or with JSON that is none."""
    chance = random.Random(seed)
    problems: list[str] = []
    with talking() as (_, client):
        for number in range(requests):
            request = generated(chance, client)
            answer = client.send(request)
            where = f"request {number}: {request.method} {str(request.url)[:200]} {request.content[:200]!r}"
            if answer.status_code >= 500:
                problems.append(f"{where}: status {answer.status_code}")
            if answer.content and "json" in answer.headers.get("content-type", ""):
                try:
                    json.loads(answer.content, parse_constant=_not_json)
                except ValueError as error:
                    problems.append(f"{where}: {error}")
    return problems


def _not_json(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


NUMBERS = ("0", "1", "-1", "1.5", "1e3", "1e20000000", "9" * 30, "9" * 5000, "-0", "٣", "", "null", "NaN", " 7")
VERBS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS")
NAMES = ["email", "password", "name", "price", "stock", "location", "documents", "images", "id", "isDefault", "order"]
TEXTS = ("", "a", "ñ\u0301", "\u202e", "\x00", "=1+1", "\ud800", "x" * 3000, "é", "%", "'")


def generated(chance: random.Random, client: httpx.Client) -> httpx.Request:
    """A request to an operation, its parameters and body well formed or not."""
    operation = chance.choice(OPERATIONS)
    path = (PUBLIC_V1_PREFIX if operation.family == "public_v1" else "") + operation.path
    for field in operation.params:
        path = path.replace(f"{{{field.name}}}", chance.choice(("1", "77", *(n for n in NUMBERS if n)))[:200])
    query = {name: chance.choice((*NUMBERS, "20", "2", "100")) for name in operation.query if chance.random() < 0.6}
    body = b""
    if operation.verb != "GET":
        body = chance.choice((valid_json, torn_json, noise))(chance)
    verb = operation.verb if chance.random() < 0.9 else chance.choice(VERBS)
    kind = "application/json" if chance.random() < 0.9 else chance.choice(("text/plain", "application/xml", ""))
    return client.build_request(verb, path, params=query, content=body, headers={"content-type": kind})


def valid_json(chance: random.Random) -> bytes:
    return json.dumps({chance.choice(NAMES): value(chance, 3) for _ in range(chance.randrange(6))}).encode()


def value(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(7 if depth else 5)
    if kind == 0:
        return chance.choice((None, True, False))
    if kind == 1:
        return chance.choice((0, -1, 10**25, 2**63, 1.5, 1e308))
    if kind < 5:
        return chance.choice(TEXTS)
    if kind == 5:
        return [value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {chance.choice(("name", "url", "line", "x")): value(chance, depth - 1) for _ in range(chance.randrange(4))}


def torn_json(chance: random.Random) -> bytes:
    text = valid_json(chance)
    return text[: chance.randrange(len(text) + 1)]


def noise(chance: random.Random) -> bytes:
    signs = (string.digits + '{}[]",:eE.-\\u').encode()
    return bytes(chance.choice(signs) for _ in range(chance.randrange(60)))
