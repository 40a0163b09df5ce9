"""Destinations of copies: a Postgres server for each worker, where a test needs one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orderbridge.pipelines.cli.process import prepare_environment
from orderbridge.sources.settings import load_dlt
from tests.pipelines.warehouse.destinations import KINDS, Destination, Postgres, Shop
from tests.postgres import server


@pytest.fixture(scope="session")
def postgres_port() -> Iterator[int]:
    with server() as port:
        yield port


@pytest.fixture(params=KINDS)
def destination(request: pytest.FixtureRequest, tmp_path: Path) -> Destination:
    """An empty destination of each kind, and dlt with this project's settings alone."""
    made = KINDS[request.param](tmp_path, request.param)
    if isinstance(made, Postgres):
        made.port = request.getfixturevalue("postgres_port")
    os.environ["DLT_PROJECT_DIR"] = str(tmp_path)
    prepare_environment()
    load_dlt()
    made.start()
    return made


@pytest.fixture
def shop(tmp_path: Path, destination: Destination) -> Shop:
    """A small published warehouse whose copies go there."""
    return Shop(tmp_path / "shop", destination.settings)
