"""`check` names every private file that other users can read, with the command that fixes it."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from pipelines.ledger.store import Ledger
from pipelines.pull.check import check, permission_warnings

PRIVATE = (
    ".dlt/secrets.toml",
    ".dlt/secrets.toml.bak",
    "w.duckdb",
    "w.duckdb.failed.json",
    "w.duckdb.quarantine.jsonl",
    ".build-w.duckdb",
    "ledger.sqlite",
    ".ledger.sqlite.walk",
    "plan-1",
)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "it's a project"
    for folder in (".dlt", ".build-w.duckdb", ".ledger.sqlite.walk", "plan-1/results"):
        (root / folder).mkdir(parents=True)
    for name in (*PRIVATE, "plan-1/plan.json"):
        if name != "ledger.sqlite" and not (root / name).is_dir():
            (root / name).touch()
    monkeypatch.chdir(root)
    monkeypatch.setenv("DLT_PROJECT_DIR", str(root))
    monkeypatch.setenv("WAREHOUSE__PATH", str(root / "w.duckdb"))
    monkeypatch.delenv("LEDGER__PATH", raising=False)
    Ledger.open(root / "ledger.sqlite").close()
    for path in root.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return root


def warnings(root: Path) -> list[str]:
    return list(permission_warnings(root))


@pytest.mark.parametrize("name", PRIVATE)
def test_check_names_a_private_file_that_others_can_read_and_its_fix_works(project: Path, name: str) -> None:
    assert warnings(project) == []
    path = project / name
    path.chmod(0o755 if path.is_dir() else 0o644)
    (warning,) = warnings(project)
    assert warning.startswith(f"{path} can be read by other users (mode 0")
    subprocess.run(["sh", "-c", warning.partition("Run: ")[2]], check=True)
    assert warnings(project) == []


def test_a_group_may_read_the_warehouse_and_nothing_else(project: Path) -> None:
    (project / "w.duckdb").chmod(0o640)
    assert warnings(project) == []
    (project / "w.duckdb").chmod(0o660)
    (project / "ledger.sqlite").chmod(0o640)
    assert [warning.partition(" can ")[0] for warning in warnings(project)] == [
        str(project / "ledger.sqlite"),
        str(project / "w.duckdb"),
    ]


def test_check_warns_of_a_variable_that_only_looks_like_a_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))
    monkeypatch.setenv("LEDGER_PATH", "/elsewhere/ledger.sqlite")
    warning = next(result for result in check(threading.Event()) if result.is_warning)
    assert warning.message == "`LEDGER_PATH` is not a setting and is not read. Did you mean `LEDGER__PATH`?"


def test_check_reports_an_unknown_name_of_each_section_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))
    names = ["WAREHOUSE__DESTINATIONS", "RECONCILE__TIMEZON", "SOURCES__HTTP__TIMEOUTS_S", "NOTIFY__WEBHOOK"]
    for name in names:
        monkeypatch.setenv(name, "1")
    results = list(check(threading.Event()))
    assert [sum(f"`{name}`" in result.message for result in results) for name in names] == [1, 1, 1, 1]
    wrong = [result.what for result in results if result.exit_code]
    assert wrong[:4] == [f"settings of {section}" for section in ("warehouse", "reconcile", "http", "notify")]
