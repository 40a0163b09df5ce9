"""`check` names every private file that other users can read, change or own, with the command that fixes it."""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
from pathlib import Path

import pytest

from pipelines.ledger.store import Ledger
from pipelines.pull.check import check
from pipelines.pull.private_files import permission_warnings

STRANGER = 54321
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
    "plan-1/operations.jsonl",
    "plan-1/passwords.csv",
    "plan-1/results",
    "plan-1/results/confirmed.csv",
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
def test_issue_14_14_check_names_a_private_file_that_others_can_read_and_its_fix_works(
    project: Path, name: str
) -> None:
    assert warnings(project) == []
    path = project / name
    path.chmod(0o755 if path.is_dir() else 0o644)
    (warning,) = warnings(project)
    assert warning.startswith(f"{path} can be read or changed by other users (mode 0")
    subprocess.run(["sh", "-c", warning.partition("Run: ")[2]], check=True)
    assert warnings(project) == []


def test_a_group_may_read_the_warehouse_and_nothing_else(project: Path) -> None:
    (project / "w.duckdb").chmod(0o640)
    assert warnings(project) == []
    (project / "w.duckdb").chmod(0o660)
    (project / "ledger.sqlite").chmod(0o640)
    assert [warning.partition(" can ")[0] for warning in warnings(project)] == [
        str(project / "w.duckdb"),
        str(project / "ledger.sqlite"),
    ]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="changing owners takes root")
@pytest.mark.parametrize("name", PRIVATE)
def test_issue_14_14_check_names_a_private_file_of_another_user(project: Path, name: str) -> None:
    os.chown(project / name, STRANGER, -1)
    (warning,) = warnings(project)
    fix = f"chown {os.geteuid()} {shlex.quote(str(project / name))}"
    assert warning == f"{project / name} belongs to another user (uid {STRANGER}). Run: {fix}"


@pytest.mark.parametrize("name", ["w.duckdb.failed.json", "plan-1/passwords.csv", ".build-w.duckdb"])
def test_issue_14_14_check_names_a_link_in_the_place_of_a_private_file(project: Path, name: str) -> None:
    path = project / name
    path.rmdir() if path.is_dir() else path.unlink()
    path.symlink_to("/etc/passwd")
    (warning,) = warnings(project)
    assert warning.startswith(f"{path} is a symbolic link")


def test_a_plan_in_another_folder_is_found_through_the_ledger(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    with Ledger.open(project / "ledger.sqlite") as ledger, ledger.transaction() as connection:
        connection.execute(
            "INSERT INTO plans (plan, plan_id, kind, host, environment, folder, operations_sha256, opened_at)"
            " VALUES (1, 'p', 'customers', 'h', 'sandbox', ?, 'x', 0)",
            [str(elsewhere)],
        )
        connection.execute(
            "INSERT INTO operations (plan, id, method, path, fields, state, updated_at)"
            " VALUES (1, 1, 'POST', '/customers', '', 'planned', 0)"
        )
    assert any(warning.startswith(f"{elsewhere} can be read") for warning in warnings(project))


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
