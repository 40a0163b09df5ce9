"""A warehouse that was pulled and compared with an ERP file, and a copy of it for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from orderbridge.pipelines.reconcile.erp.files import ErpFiles
from orderbridge.pipelines.reconcile.reconcile import reconcile
from tests.pipelines.bridge import bridge
from tests.pipelines.reporting.page import write_erp_file


@pytest.fixture(scope="session")
def reconciled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    before = dict(os.environ)
    with bridge(tmp_path_factory.mktemp("report")) as made:
        made.pull()
        write_erp_file(made)
        reconcile(ErpFiles(made.folder / "clientes.csv"))
        yield made.path
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def warehouse(reconciled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = tmp_path / "warehouse.duckdb"
    shutil.copyfile(reconciled, copy)
    monkeypatch.setenv("WAREHOUSE__PATH", str(copy))
    return copy
