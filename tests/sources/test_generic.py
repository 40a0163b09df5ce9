"""Others read the sandbox as well: dlt's generic REST source, and the pipeline of the README."""

from __future__ import annotations

import os
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dlt
import pytest
from dlt.sources.rest_api import rest_api_source

from sandbox import Sandbox, SandboxConfig, serve
from sources.settings import prepare_dlt

README = Path(__file__).parents[2] / "README.md"
RESOURCES = ("customers", "promotions", "price_lists", "orders")


@pytest.fixture
def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    monkeypatch.chdir(tmp_path)
    prepare_dlt(tmp_path, tmp_path / "dlt")
    with serve(SandboxConfig(customers=230, orders=110, promotions=31, price_lists=5)) as made:
        yield made


def loaded(tmp_path: Path, *sources: Any) -> dlt.Pipeline:
    """A pipeline as anyone would write one, run."""
    target = dlt.destinations.duckdb(str(tmp_path / "shop.duckdb"))
    pipeline = dlt.pipeline("shop", pipelines_dir=str(tmp_path / "dlt"), destination=target, dataset_name="theirs")
    for source in sources:
        pipeline.run(source)
    return pipeline


def ids(pipeline: dlt.Pipeline, table: str) -> set[str]:
    with pipeline.sql_client() as client, client.execute_query(f"SELECT id FROM {table}") as cursor:
        return {str(row[0]) for row in cursor.fetchall()}


def test_dlts_generic_source_reads_both_families_to_the_end(tmp_path: Path, platform: Sandbox) -> None:
    def pages(name: str, **paginator: Any) -> Any:
        return {
            "name": name,
            "endpoint": {
                "path": name,
                "data_selector": "data",
                "params": {"limit": 50},
                "paginator": {"type": "page_number", "base_page": 1, **paginator},
            },
        }

    old = rest_api_source(
        {
            "client": {
                "base_url": platform.url,
                "auth": {"type": "api_key", "name": "api-key", "api_key": platform.legacy_key, "location": "header"},
            },
            "resources": [
                pages("customers", total_path=None, stop_after_empty_page=True),
                pages("promotions", total_path="pagination.pages"),
            ],
        },
        name="old",
    )
    new = rest_api_source(
        {
            "client": {
                "base_url": f"{platform.url}/public/v1/",
                "auth": {"type": "bearer", "token": platform.v1_key},
            },
            "resources": [
                {"name": "price_lists", "endpoint": {"path": "prices/lists", "data_selector": "priceLists"}},
                {
                    "name": "orders",
                    "endpoint": {
                        "path": "orders",
                        "data_selector": "data",
                        "params": {"limit": 50},
                        "paginator": {
                            "type": "cursor", "cursor_path": "nextCursor", "cursor_param": "startingAfter"
                        },
                    },
                },
            ],
        },
        name="new",
    )  # fmt: skip
    pipeline = loaded(tmp_path, old, new)
    for name in RESOURCES:
        assert ids(pipeline, name) == set(platform.state.ids(name))


def test_the_pipeline_of_the_readme_runs_as_it_stands(tmp_path: Path, platform: Sandbox) -> None:
    os.environ |= {
        "SOURCES__LEGACY__BASE_URL": platform.url,
        "SOURCES__LEGACY__API_KEY": platform.legacy_key,
        "SOURCES__PUBLIC_V1__BASE_URL": platform.url,
        "SOURCES__PUBLIC_V1__API_KEY": platform.v1_key,
    }
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    (script,) = (block for block in blocks if "dlt.pipeline(" in block)
    (tmp_path / "own.py").write_text(script, "utf-8")
    pipeline = runpy.run_path(str(tmp_path / "own.py"))["pipeline"]
    for name in ("customers", "promotions", "price_lists"):
        assert ids(pipeline, name) == set(platform.state.ids(name))
