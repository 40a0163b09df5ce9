"""A sandbox as the interface says, shared by the tests of a module that only read."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from orderbridge.sandbox import Sandbox, SandboxConfig, serve
from tests.sandbox.talk import client_of


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with serve(SandboxConfig()) as served:
        yield served


@pytest.fixture
def client(sandbox: Sandbox) -> Iterator[httpx.Client]:
    with client_of(sandbox) as connected:
        yield connected
