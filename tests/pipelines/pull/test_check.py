"""`check`: files that others can read, names that are no settings, and what GET /whoami reports of a key."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from pipelines.ledger.store import Ledger
from pipelines.pull.check import check, permission_warnings, worst_exit_code
from pipelines.pull.targets import Whoami, read_whoami
from sandbox.public_v1 import KEYS, Key
from sources.contract import RECORDS
from sources.http.failures import BrokenBody
from tests.pipelines.bridge import bridge

PRIVATE = (
    ".dlt/secrets.toml", ".dlt/secrets.toml.bak", "w.duckdb", "w.duckdb.failed.json", "w.duckdb.quarantine.jsonl",
    ".build-w.duckdb", "ledger.sqlite", ".ledger.sqlite.walk", "plan-1",
)  # fmt: skip


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


def test_check_names_private_files_that_others_can_read_and_its_fixes_work(project: Path) -> None:
    assert list(permission_warnings(project)) == []
    (project / "w.duckdb").chmod(0o640)
    assert list(permission_warnings(project)) == [], "a group may read the warehouse, and nothing else"
    for name in PRIVATE:
        path = project / name
        for mode in (0o755, 0o750) if path.is_dir() else (0o644, 0o660):
            path.chmod(mode)
            (warning,) = permission_warnings(project)
            assert warning.startswith(f"{path} can be ")
        subprocess.run(["sh", "-c", warning.partition("Run: ")[2]], check=True)
        assert list(permission_warnings(project)) == []


def test_check_reports_an_unknown_name_of_each_section_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))
    names = ["WAREHOUSE__DESTINATIONS", "RECONCILE__TIMEZON", "SOURCES__HTTP__TIMEOUTS_S", "NOTIFY__WEBHOOK"]
    for name in names:
        monkeypatch.setenv(name, "1")
    results = list(check(threading.Event()))
    assert [sum(f"`{name}`" in result.message for result in results) for name in names] == [1, 1, 1, 1]
    wrong = [result.what for result in results if result.exit_code]
    assert wrong[:4] == [f"settings of {section}" for section in ("warehouse", "reconcile", "http", "notify")]
    assert worst_exit_code(results) == 2


@pytest.mark.parametrize(
    ("payload", "whoami"),
    [
        ({"organizationId": 7, "environment": "test"}, Whoami("sandbox", "environment", "7")),
        ({"org": {"name": "Shop", "id": "o-1"}, "env": "LIVE"}, Whoami("production", "env", "o-1")),
        ({"company": {"name": "Shop"}}, Whoami(organization="Shop")),
        ({"tenant_id": True, "apiKey": {"environment": "sandbox"}}, Whoami("sandbox", "apikey.environment")),
        ({"environment": "staging", "scopes": "a:read, b:read"}, Whoami(scopes=("a:read", "b:read"))),
        ({"key": {"permissions": [{"name": "a"}, "b"]}}, Whoami(scopes=("a", "b"))),
        ({"scopes": [], "permissions": [7], "scope": ["c"]}, Whoami(scopes=("c",))),
        ({"a": {"b": {"c": {"d": {"e": {"f": {"env": "live"}}}}}}}, Whoami()),
    ],
)
def test_whoami_is_read_whatever_its_names(payload: dict[str, Any], whoami: Whoami) -> None:
    client = mock.Mock(get=lambda _, check: (check(json.dumps(payload).encode()), None))
    assert read_whoami(client) == whoami
    for body in (b"[]", b"{", b"[" * 100_000):
        with pytest.raises(BrokenBody):
            read_whoami(mock.Mock(get=lambda _, check, body=body: (check(body), None)))


@pytest.mark.parametrize(
    ("key", "exit_code", "words"),
    [
        (None, 0, "environment sandbox, scopes "),
        (Key(scopes=("orders:read",)), 3, "missing: prices:read"),
        (Key("LIVE"), 2, "this key is for production, its prefix is for sandbox"),
    ],
)
def test_check_names_what_whoami_reports_of_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: Key | None, exit_code: int, words: str
) -> None:
    with bridge(tmp_path):
        if key is not None:
            monkeypatch.setitem(KEYS, os.environ["SOURCES__PUBLIC_V1__API_KEY"], key)
        monkeypatch.delenv("SOURCES__LEGACY__LOGIN_MODE", raising=False)
        results = list(check(threading.Event()))
    assert sum(result.message == "login_mode: not set; customers cannot be imported" for result in results) == 1
    assert worst_exit_code(results) == exit_code
    (found,) = (result for result in results if "(whoami)" in result.what)
    assert words in found.message
    assert found.exit_code == exit_code
    assert sum(result.what.startswith("first page of ") for result in results) == len(RECORDS)
    assert sum(result.what.startswith("host of ") for result in results) == 2
