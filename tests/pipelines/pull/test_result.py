"""What a pull ends with and keeps, without a platform: its exit code, its spools, the file of quarantined rows."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest

from orderbridge.pipelines.pull import walking
from orderbridge.pipelines.pull.check import check, permission_warnings, worst_exit_code
from orderbridge.pipelines.pull.model import PullOptions, PullResult
from orderbridge.pipelines.pull.publishing import check_coverage, quarantine_file, staged_quarantine
from orderbridge.pipelines.pull.targets import Targets, Whoami, read_targets, read_whoami
from orderbridge.pipelines.pull.walking import ListWalks
from orderbridge.pipelines.warehouse.build import Build
from orderbridge.pipelines.warehouse.destination.copy import tls_warnings
from orderbridge.sandbox.public_v1 import KEYS, Key
from orderbridge.sources.contract import RECORDS
from orderbridge.sources.decode.rows import InvalidRow, quarantine
from orderbridge.sources.errors import (
    AccessError,
    ContractBroken,
    ExitCode,
    Unreachable,
    UsageError,
)
from orderbridge.sources.extract.result import ListResult, no_progress
from orderbridge.sources.extract.spool import SpoolFolder
from orderbridge.sources.extract.v1_pages import CursorPosition
from orderbridge.sources.http.failures import BrokenBody
from orderbridge.sources.settings import LegacySettings, PublicV1Settings, Secret, WarehouseSettings
from tests.pipelines.bridge import bridge

SECRET = "geheim-4711"
SETTINGS = WarehouseSettings(path=Path("/nowhere"), destination="postgres")

ROW = quarantine((2, 7), b'{"id":"\xff"}', InvalidRow("row: not UTF-8"), None)


def test_a_list_that_was_held_back_is_7_whatever_was_quarantined() -> None:
    lists = [ListResult("customers", quarantined=[ROW]), ListResult("promotions")]
    result = PullResult("run", Path(), lists, published=True)
    assert result.exit_code == ExitCode.REJECTED
    result.step_code = ExitCode.FINDINGS
    assert result.exit_code == ExitCode.FINDINGS
    result.held_back["promotions"] = "promotions: the list is empty, and 9 records are known"
    assert result.exit_code == ExitCode.COVERAGE
    result.lists.append(ListResult("orders", error=ContractBroken("broken")))
    assert result.exit_code == ExitCode.PLATFORM
    result.lists.append(ListResult("customers", error=AccessError("no")))
    assert result.exit_code == ExitCode.ACCESS, (
        "a key that is refused, after a list that failed for another reason"
    )
    assert PullResult("run", Path(), [], step_code=ExitCode.REJECTED).exit_code == ExitCode.REJECTED
    errors = (
        ContractBroken("of the host"),
        AccessError("of the key"),
        ContractBroken("of the host"),
    )
    result.lists = [ListResult("orders", error=error) for error in errors]
    with pytest.raises(AccessError, match="of the key"):
        check_coverage(result, PullOptions())


def test_a_spool_of_another_source_is_not_resumed(tmp_path: Path) -> None:
    found = list[bool]()

    def walk(
        name: str, client: object, folder: Path, spools: SpoolFolder, *_: object
    ) -> ListResult:
        pages = spools.folder / "sweep-1.pages"
        found.append(pages.exists())
        pages.write_bytes(b"pages of the first walk")
        spools.finish()
        return ListResult(name)

    def is_resumed(path: Path, settings: LegacySettings, *refreshed: str) -> bool:
        walks = ListWalks(
            Targets(settings),
            Build(path),
            1,
            no_progress,
            threading.Event(),
            refreshed=list(refreshed),
        )
        with mock.patch.object(walking, "walk", walk):
            walks.run(["customers"], mock.Mock())
        return found.pop()

    settings = LegacySettings(
        base_url="https://one.example",
        api_key=Secret("key-one"),
        environment="sandbox",
        page_limit=100,
    )
    for number, changed in enumerate((
        {}, {"base_url": "https://two.example"}, {"api_key": Secret("key-two")}, {"environment": "production"},
        {"page_limit": 50},
    )):  # fmt: skip
        path, other = tmp_path / f"{number}.duckdb", replace(settings, **changed)  # type: ignore[arg-type] # of any type
        assert not is_resumed(path, settings)
        assert is_resumed(path, other) is (not changed), changed
    assert not is_resumed(path, other, "customers"), "a list that is refreshed"
    path.touch()
    os.utime(path, (time.time() + 1,) * 2)
    assert not is_resumed(path, other), "pages of before the last publication"
    v1 = PublicV1Settings(
        base_url="http://127.0.0.1:9", api_key=Secret("brand_test_key"), page_limit=9
    )
    tails = ListWalks(
        Targets(public_v1=v1), Build(tmp_path / "tail.duckdb"), 1, no_progress, threading.Event()
    )
    with mock.patch.object(walking, "walk", walk):
        for _ in range(2):
            tails._read("orders", mock.Mock(), CursorPosition("cursor", 9, 9, "digest"))
    assert found == [False, False], "a tail that was stopped may have started elsewhere"


@pytest.mark.parametrize(
    ("read", "left"),
    [
        (ListResult("orders", "complete"), []),
        (ListResult("orders", "tail"), ["orders"]),
        (ListResult("orders", "incomplete", error=Unreachable("away")), ["orders"]),
        (ListResult("customers", quarantined=[ROW]), ["orders", "customers"]),
        (ListResult("orders", quarantined=[ROW, ROW]), ["orders", "orders"]),
    ],
)
def test_rows_stay_until_their_list_is_read_whole_and_that_is_published(
    tmp_path: Path, read: ListResult, left: list[str]
) -> None:
    path, file = tmp_path / "w.duckdb", quarantine_file(tmp_path / "w.duckdb")
    with staged_quarantine(path, "run 1", [ListResult("orders", "unproven", quarantined=[ROW])]):
        pass
    before = file.read_bytes()
    with pytest.raises(ZeroDivisionError), staged_quarantine(path, "run 2", [read]):
        raise ZeroDivisionError
    with staged_quarantine(path, "run 2", [read]):
        assert file.read_bytes() == before
        staged = [b'"run 2"' in one.read_bytes() for one in tmp_path.iterdir()]
        assert any(staged) == bool(read.quarantined), "written before the build is published"
    assert [
        json.loads(line)["resource"] for line in (file.read_bytes() if left else b"").splitlines()
    ] == left
    assert list(tmp_path.iterdir()) == [file] * bool(left)


def test_check_names_private_files_that_others_can_read_and_its_fixes_work(tmp_path: Path) -> None:
    os.environ |= {"DLT_PROJECT_DIR": str(tmp_path), "WAREHOUSE__PATH": str(tmp_path / "w.duckdb")}
    folders = [tmp_path / name for name in (".dlt", ".build-w.duckdb", "plan-it's")]
    for folder in folders:
        folder.mkdir(mode=0o700)
    names = (
        ".dlt/secrets.toml",
        ".dlt/secrets.toml.bak",
        "w.duckdb",
        "w.duckdb.quarantine.jsonl",
        "ledger.sqlite",
    )
    files = [tmp_path / name for name in names]
    for file in files:
        file.touch(mode=0o600)
    files[2].chmod(0o640)
    assert list(permission_warnings(tmp_path)) == [], (
        "a group may read the warehouse, and nothing else"
    )
    for path in (*folders[1:], *files):
        for mode in (0o755, 0o750) if path.is_dir() else (0o644, 0o660):
            path.chmod(mode)
            (warning,) = permission_warnings(tmp_path)
            assert warning.startswith(f"{path} can be ")
        subprocess.run(["sh", "-c", warning.partition("Run: ")[2]], check=True)
        assert list(permission_warnings(tmp_path)) == []


def test_check_reports_unknown_names_of_sections_once_and_a_disk_without_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [
        "WAREHOUSE__DESTINATIONS",
        "RECONCILE__TIMEZON",
        "SOURCES__HTTP__TIMEOUTS_S",
        "NOTIFY__WEBHOOK",
    ]
    os.environ |= {"DLT_PROJECT_DIR": str(tmp_path), "WAREHOUSE__PATH": str(tmp_path / "w.duckdb")}
    os.environ |= dict.fromkeys(names, "1")
    results = list(check(threading.Event()))
    assert [sum(f"`{name}`" in result.message for result in results) for name in names] == [
        1,
        1,
        1,
        1,
    ]
    wrong = [result.what for result in results if result.exit_code]
    assert wrong[:4] == [
        f"settings of {section}" for section in ("warehouse", "reconcile", "http", "notify")
    ]
    assert worst_exit_code(results) == 2
    del os.environ[names[0]]
    duckdb.connect(str(tmp_path / "w.duckdb")).close()
    for free, is_warned in ((1e9, False), (2e3, True)):
        monkeypatch.setattr("shutil.disk_usage", lambda _, free=free: mock.Mock(free=free))
        warnings = [one.message for one in check(threading.Event()) if one.is_warning]
        assert (
            any("MB are free next to the warehouse of" in words for words in warnings) is is_warned
        )


def test_legacy_lists_need_no_v1_settings_and_ask_no_key_of_another_environment(
    tmp_path: Path,
) -> None:
    os.environ["DLT_PROJECT_DIR"] = str(tmp_path)
    for family, key in (("LEGACY", "key"), ("PUBLIC_V1", "brand_live_key")):
        os.environ |= {
            f"SOURCES__{family}__BASE_URL": "https://shop.example",
            f"SOURCES__{family}__API_KEY": key,
        }
    for name, value, is_asked in (
        ("LEGACY__ENVIRONMENT", "sandbox", False), ("LEGACY__ENVIRONMENT", "production", True),
        ("PUBLIC_V1__API_KEY", "", False), ("PUBLIC_V1__BASE_URL", "ftp://x", False),
    ):  # fmt: skip
        os.environ[f"SOURCES__{name}"] = value
        assert (read_targets(["customers"]).whoami is not None) is is_asked
    with pytest.raises(UsageError, match="unknown list: coupons"):
        read_targets(["customers", "coupons"])


@pytest.mark.parametrize(
    ("payload", "whoami"),
    [
        ({"organizationId": 7, "environment": "test"}, Whoami("sandbox", "environment", "7")),
        ({"org": {"name": "Shop", "id": "o-1"}, "env": "LIVE"}, Whoami("production", "env", "o-1")),
        (
            {"tenant_id": True, "apiKey": {"environment": "sandbox"}},
            Whoami("sandbox", "apikey.environment"),
        ),
        (
            {"environment": "staging", "scopes": "a:read, b:read"},
            Whoami(scopes=("a:read", "b:read")),
        ),
        (
            {"company": {"name": "S"}, "key": {"permissions": [{"name": "a"}, "b"]}},
            Whoami("", "", "S", ("a", "b")),
        ),
        ({"scopes": [7], "a": {"b": {"c": {"d": {"e": {"f": {"env": "live"}}}}}}}, Whoami()),
    ],
)
def test_whoami_is_read_whatever_its_names(payload: dict[str, Any], whoami: Whoami) -> None:
    def answering(body: bytes) -> mock.Mock:
        return mock.Mock(get=lambda _, check: (check(body), None), mask=bytes)

    assert read_whoami(answering(json.dumps(payload).encode())) == whoami
    for body in (b"[]", b"{", b"[" * 100_000):
        with pytest.raises(BrokenBody):
            read_whoami(answering(body))


def test_check_names_what_whoami_reports_of_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCES__LEGACY__LOGIN_MODE", raising=False)
    with bridge(tmp_path) as made:
        for key, exit_code, words in (
            (None, 0, "environment sandbox, scopes "),
            (Key(scopes=("orders:read",)), 3, "missing: prices:read"),
            (Key("LIVE"), 2, "this key is for production, its prefix is for sandbox"),
        ):
            if key is not None:
                monkeypatch.setitem(KEYS, made.platform.v1_key, key)
            results = list(check(threading.Event()))
            unset = "login_mode: not set; customers cannot be imported. Next: "
            assert [result.message.startswith(unset) for result in results].count(True) == 1
            (found,) = (result for result in results if "(whoami)" in result.what)
            assert (found.exit_code, worst_exit_code(results), words in found.message) == (
                exit_code,
                exit_code,
                True,
            )
            kinds = Counter(result.what.partition(" of ")[0] for result in results)
            assert (kinds["first page"], kinds["host"]) == (len(RECORDS), 2)


def test_check_asks_each_list_once_where_the_platform_fails(tmp_path: Path) -> None:
    with bridge(tmp_path, faults={"error_503": 1.0}) as made:
        results = list(check(threading.Event()))
        failed = [result.what for result in results if result.exit_code == 4]
        assert len(failed) == len(RECORDS) + 1, "each list, and whoami"
        assert made.platform.state.requests == len(failed) + 2, "and each host"


def test_check_warns_of_a_copy_that_may_go_to_another_host_without_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg2", reason="psycopg2 is not installed")
    monkeypatch.delenv("PGSSLMODE", raising=False)
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))

    def warned(address: str, **environment: str) -> bool:
        monkeypatch.setenv(
            "DESTINATION__POSTGRES__CREDENTIALS", f"postgresql://me:{SECRET}@{address}"
        )
        with mock.patch.dict(os.environ, environment):
            settings = replace(SETTINGS, path=tmp_path / "w.duckdb")
            words = "".join(tls_warnings(settings))
        assert SECRET not in words
        return "db.example" in words and "sslmode=verify-full" in words

    assert warned("db.example:5432/shop")
    assert warned("db.example/shop?sslmode=prefer")
    assert warned("db.example/shop?sslmode=disable", PGSSLMODE="verify-full")
    assert not warned("db.example/shop?sslmode=verify-full")
    assert not warned("db.example/shop?sslmode=require")
    assert not warned("db.example/shop", PGSSLMODE="require")
    for here in ("127.0.0.1:5432/shop", "localhost/shop", "localhost/shop?host=/run/postgresql"):
        assert not warned(here)
