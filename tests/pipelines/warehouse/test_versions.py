"""Kept versions: the earlier files of a warehouse, and what differs between two, as plain Python sees it."""

from __future__ import annotations

import json
import os

import duckdb
import pytest

from orderbridge.sources.errors import ExitCode
from tests.pipelines.bridge import Bridge

KEEP = {"WAREHOUSE__KEEP": "2"}


def test_what_a_night_changed_is_told_by_key_and_column(published: Bridge) -> None:
    assert published.command("reconcile", **KEEP).code == ExitCode.DONE
    before = dict(published.rows("SELECT id, email FROM raw.customers"))
    gone, changed, *_ = sorted(before)
    with duckdb.connect(published.path) as warehouse:
        warehouse.execute("ALTER TABLE raw.customers ADD COLUMN key VARCHAR")
    assert published.command("reconcile", **KEEP).code == ExitCode.DONE
    with duckdb.connect(published.path) as warehouse:
        warehouse.execute("UPDATE raw.customers SET email = 'x@y.example' WHERE id = ?", [changed])
        warehouse.execute("DELETE FROM raw.customers WHERE id = ?", [gone])
        warehouse.execute("INSERT INTO raw.customers (id) VALUES ('new')")
    assert published.command("reconcile", **KEEP).code in (ExitCode.DONE, ExitCode.FINDINGS)
    # the first kept version is that of the pull: the file in which rows were changed by hand is the second one
    versions = sorted((published.folder / "warehouse-versions").glob("*.duckdb"))
    assert len(versions) == 2
    done = published.command("diff", versions[0].stem, "--json", **KEEP)
    assert done.code == ExitCode.DONE, done.said
    (table,) = [one for one in json.loads(done.out)["tables"] if one["table"] == "raw.customers"]
    assert (table["added"], table["gone"], table["changed"]) == (1, 1, 1)
    assert table["examples"] == {"added": ["new"], "gone": [gone], "changed": [changed]}
    assert table["columns"] == {"email": 1}
    text = published.command("diff", versions[0].stem, **KEEP).out
    assert "raw.customers: 1 added, 1 gone, 1 changed (email 1)" in text
    (published.folder / "warehouse-versions/damaged.duckdb").write_bytes(b"no database")
    done = published.command("diff", versions[0].stem, **KEEP)
    assert done.code == ExitCode.DONE
    assert "damaged.duckdb" in done.err


def test_as_many_versions_are_kept_as_are_asked_for_and_a_failed_run_drops_none(
    published: Bridge,
) -> None:
    for _ in range(4):
        published.command("reconcile", **KEEP)
    runs = [run for (run,) in published.rows("SELECT run_id FROM ops.runs ORDER BY rowid")]
    kept = sorted(path.stem for path in (published.folder / "warehouse-versions").glob("*.duckdb"))
    assert kept == runs[-3:-1]
    settings = {**KEEP, "SOURCES__LEGACY__BASE_URL": "http://127.0.0.1:1"}
    for _ in range(3):
        assert published.command("run", **settings).code != ExitCode.DONE
    assert "from the version of" in published.command("diff", **KEEP).out
    assert (published.folder / "warehouse-versions").stat().st_mode & 0o077 == 0


def test_without_a_kept_version_it_is_said_how_to_keep_some(published: Bridge) -> None:
    done = published.command("diff")
    assert done.code == ExitCode.USAGE
    assert "orderbridge init warehouse.keep=7" in done.said


@pytest.mark.parametrize("name", ["a file", "no links"])
def test_what_cannot_be_kept_is_a_warning_and_the_run_goes_on(
    published: Bridge, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = published.folder / "warehouse-versions"
    if name == "a file":
        folder.write_text("", "utf-8")
    else:
        monkeypatch.setattr(os, "link", _refuse)
    done = published.command("reconcile", **KEEP)
    assert done.code == ExitCode.DONE
    assert ("is not kept in" in done.said) == (name == "a file")
    assert name == "a file" or len(list(folder.glob("*.duckdb"))) == 1


def _refuse(*_: object) -> None:
    raise OSError(1, "Operation not permitted")
