"""Libraries that take long to import are imported by the commands that need them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipelines.cli.main import orderbridge

CHECKOUT = Path(__file__).parents[3]
PROGRAM = """
import sys
from contextlib import suppress
from sources.errors import UsageError
from pipelines.cli.main import main
from pipelines.cli.process import prepare_environment
from sources.settings import http_settings, known_secrets, legacy_settings, warehouse_settings

def check(step, *modules):
    print(step, *[name for name in modules if name in sys.modules])

check("main", "dlt", "duckdb", "httpx", "pandas", "pyarrow", "pydantic", "matplotlib", "jinja2")
prepare_environment()
legacy_settings(), http_settings(), warehouse_settings(), known_secrets()
from pipelines.reporting.status import read_status
with suppress(UsageError):  # there is no warehouse
    read_status(None)
check("status", "dlt", "httpx", "pandas", "pydantic", "matplotlib", "jinja2")
from pipelines.cli import push
import pipelines.push.run
check("push", "dlt", "pandas", "pydantic", "matplotlib", "jinja2")
import duckdb, pipelines.pull.pull
from pipelines.pull.order_tail import _sequence
from pipelines.warehouse import merge
merge.create_missing(duckdb.connect())
duckdb.execute("COPY (SELECT 1000000 + i AS at FROM range(150000) t(i)) TO 'orders.parquet'")
assert _sequence("orders.parquet", "at") == "ascending"  # in several batches
check("pull", "dlt", "pandas")
from pipelines.cli import plan, preview, verify
import pipelines.plan.make, pipelines.push.verify
check("plan", "dlt", "matplotlib", "jinja2")
from pipelines.warehouse.load import import_loader
import_loader()  # in a thread, before `load_dlt`
from dlt.common.configuration.container import Container
from dlt.common.configuration.specs.pluggable_run_context import PluggableRunContext
assert PluggableRunContext not in Container()  # it would hold the settings of the user's home
"""


def test_commands_import_only_what_they_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """dlt alone takes almost a second, pandas half of one."""
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("SOURCES__LEGACY__BASE_URL", "https://a.example")
    monkeypatch.setenv("SOURCES__LEGACY__API_KEY", "a-planted-key")
    monkeypatch.setenv("SOURCES__LEGACY__ENVIRONMENT", "sandbox")
    monkeypatch.setenv("WAREHOUSE__PATH", str(tmp_path / "w.duckdb"))
    result = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (result.stdout, result.stderr) == ("main\nstatus\npush\npull\nplan\n", "")


def test_16_numpy_starts_no_threads_for_linear_algebra(monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost a command 0.1 CPU seconds before they sleep, where a core is free."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    assert CliRunner().invoke(orderbridge, ["template", "customers"]).exit_code == 0
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
