"""Clients of the sandbox's tests: a plain httpx client with both keys, and a bare socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import httpx

from orderbridge.sandbox import Sandbox, SandboxConfig, serve

V1 = "/public/v1"
CUSTOMER = {"password": "secret-1", "email": "ana@example.com"}
WAREHOUSE = {
    "name": "Central",
    "isDefault": True,
    "location": {"line": "Av. Brasil 1", "coordinates": [-12.1, -77]},
}


@contextmanager
def client_of(sandbox: Sandbox) -> Iterator[httpx.Client]:
    headers = {"api-key": sandbox.legacy_key, "Authorization": f"Bearer {sandbox.v1_key}"}
    with httpx.Client(
        base_url=sandbox.url, headers=headers, timeout=10, verify=False
    ) as client:  # no TLS
        yield client


@contextmanager
def talking(**config: Any) -> Iterator[tuple[Sandbox, httpx.Client]]:
    with serve(SandboxConfig(**config)) as sandbox, client_of(sandbox) as client:
        yield sandbox, client


def raw(sandbox: Sandbox, path: str, verb: str = "GET") -> tuple[bytes, bool]:
    """All bytes of an answer on a connection of its own, and whether it ended in a reset."""
    host, _, port = sandbox.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        keys = f"api-key: {sandbox.legacy_key}\r\nAuthorization: Bearer {sandbox.v1_key}"
        head = f"{verb} {path} HTTP/1.1\r\nHost: sandbox\r\n{keys}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode())
        taken = b""
        while True:
            try:
                part = connection.recv(65536)
            except ConnectionResetError:
                return taken, True
            if not part:
                return taken, False
            taken += part


def shown(answer: httpx.Response) -> str:
    """Status, headers and body of an answer, for a regular expression."""
    headers = "".join(f"{name}: {value}\n" for name, value in answer.headers.items())
    return f"{answer.status_code}\n{headers}\n{answer.text}"


def pages(client: httpx.Client, path: str, limit: int) -> list[dict[str, Any]]:
    """A legacy list to its empty page."""
    rows: list[dict[str, Any]] = []
    for number in count(1):
        body = client.get(path, params={"page": number, "limit": limit}).raise_for_status().json()
        if not body["data"]:
            break
        rows += body["data"]
    return rows
