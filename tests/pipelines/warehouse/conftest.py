"""Destinations of copies: a Postgres server for each worker, where a test needs one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.pipelines.warehouse.destinations import (
    Destination,
    DuckdbFile,
    DuckLake,
    ParquetFiles,
    Postgres,
    Shop,
    begin,
)
from tests.postgres import server


@pytest.fixture(scope="session")
def postgres_port() -> Iterator[Callable[[], int]]:
    """The port of a server that the first test that asks for it starts."""
    with ExitStack() as stack:
        ports: list[int] = []

        def port() -> int:
            if not ports:
                ports.append(stack.enter_context(server()))
            return ports[0]

        yield port


@pytest.fixture(params=["duckdb", "filesystem", "postgres", "ducklake"])
def destination(request: pytest.FixtureRequest, tmp_path: Path, postgres_port: Callable[[], int]) -> Destination:
    """An empty destination of each kind."""
    made: Destination
    if request.param == "postgres":
        made = Postgres(tmp_path, "postgres", postgres_port())
    else:
        kinds: dict[str, type[Destination]] = {
            "duckdb": DuckdbFile,
            "filesystem": ParquetFiles,
            "ducklake": DuckLake,
        }
        made = kinds[request.param](tmp_path, request.param)
    begin(made, tmp_path)
    return made


@pytest.fixture
def shop(tmp_path: Path, destination: Destination) -> Shop:
    """A small published warehouse whose copies go there."""
    return Shop(tmp_path / "shop", destination.settings)
