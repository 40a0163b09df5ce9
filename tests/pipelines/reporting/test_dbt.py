"""`export dbt` in a dbt project, that of the page: dbt reads, tests and dates its sources.

dbt is looked for in `.venv-dbt`, which `make dbt` sets up; without it, these tests are skipped.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import yaml

from orderbridge.pipelines.reporting.dbt_sources import write_dbt_sources
from tests.pipelines.import_file.test_transcript import pattern
from tests.pipelines.reporting.page import change
from tests.pipelines.test_on_top import FILE, PAGE

DBT = Path(__file__).parents[3] / ".venv-dbt/bin"
SHOWN = re.compile(r"^<!-- dbt -->\n```console\n\$ (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(warehouse: Path, tmp_path: Path) -> Path:
    """The folder of the warehouse, and in it the dbt project of the page."""
    if not (DBT / "dbt").exists():
        pytest.skip("dbt is not installed: make dbt")
    (tmp_path / "shop/models").mkdir(parents=True)
    for name, text in FILE.findall(PAGE):
        if name.startswith("shop/"):
            (tmp_path / name).write_text(text, "utf-8")
    write_dbt_sources(tmp_path / "shop/models/sources.yml")
    return tmp_path


def run(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{DBT}:{os.environ['PATH']}", "HOME": str(folder)}
    return subprocess.run(
        line, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def results(folder: Path, file: str) -> Counter[tuple[str, str]]:
    """How many nodes of each kind ended how."""
    done = json.loads((folder / "shop/target" / file).read_text("utf-8"))
    return Counter((one["unique_id"].split(".")[0], one["status"]) for one in done["results"])


def test_dbt_builds_over_the_sources_and_tests_their_keys_and_ages(folder: Path) -> None:
    ((line, shown),) = SHOWN.findall(PAGE)
    done = run(folder, line)
    assert done.returncode == 0, done.stdout
    assert re.fullmatch(pattern(shown), done.stdout), done.stdout
    sources = yaml.safe_load((folder / "shop/models/sources.yml").read_text("utf-8"))["sources"]
    columns = [column for one in sources for table in one["tables"] for column in table["columns"]]
    tests = sum(len(column.get("data_tests", [])) for column in columns)
    assert tests
    assert results(folder, "run_results.json") == {("model", "success"): 1, ("test", "pass"): tests}
    assert results(folder, "sources.json") == {("source", "pass"): 4}


def test_dbt_finds_a_key_twice_and_a_list_that_is_old(folder: Path, warehouse: Path) -> None:
    change(
        warehouse,
        """INSERT INTO reconciled.price_lists SELECT * FROM reconciled.price_lists LIMIT 1;
            UPDATE raw.orders SET _last_seen_at = _last_seen_at - INTERVAL 2 DAY""",
    )
    done = run(folder, "cd shop && dbt test")
    assert done.returncode == 1
    assert "FAIL 1 source_unique_reconciled_price_lists_price_list_id" in done.stdout
    run(folder, "cd shop && dbt source freshness")
    assert results(folder, "sources.json") == {("source", "pass"): 3, ("source", "warn"): 1}
