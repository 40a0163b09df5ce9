"""Disks that fill, folders that cannot be written, files of others: reported in words, and nothing is harmed."""

from __future__ import annotations

import os
import resource
from functools import partial
from pathlib import Path

import duckdb
import pytest

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.pull import pull
from orderbridge.sources.errors import UsageError
from tests.pipelines.bridge import Bridge, command
from tests.pipelines.pull.truth import RESOURCES, same

MINE = b"mine"


def test_a_disk_that_fills_leaves_the_old_file_or_none(fresh: Bridge) -> None:
    def pulled_up_to(bytes_: int) -> None:
        """With no file beyond that size, which ends a write as a full disk does. Root is bound by it, too."""
        # Python ignores SIGXFSZ
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (bytes_, bytes_))
        done = command("pull", env=fresh.environment(), cwd=fresh.folder, preexec_fn=limit)
        assert done.code == 2, done.err
        assert f"{fresh.folder}: " in done.err
        assert "aise the limit" in done.err
        assert "Traceback" not in done.said
        # Pages that were fetched may stay to go on from; nothing else does.
        build_folder = f".build-{fresh.path.name}"
        assert set(fresh.left()) <= {
            fresh.path.name,
            f"{fresh.path.name}.failed.json",
            build_folder,
        }
        assert {path.name for path in (fresh.folder / build_folder).glob("*")} <= {
            "spool",
            ".gitignore",
        }
        assert not list((fresh.folder.parent / "tmp").iterdir())

    pulled_up_to(50_000)
    assert not fresh.path.exists()
    assert fresh.code() == 0
    before = fresh.path.read_bytes()
    fresh.platform.state.add("customers", {"firstName": "Nueva"})
    pulled_up_to(int(len(before) * 0.95))
    assert fresh.path.read_bytes() == before
    assert fresh.code() == 0
    assert fresh.left() == [fresh.path.name]
    assert all(same(fresh.path, fresh.platform.state, name) for name in RESOURCES)


def refused(path: Path, match: str, hint: str) -> None:
    """A run is refused before it asks the platform anything, and what is there stays as it was."""
    os.environ |= {
        "WAREHOUSE__PATH": str(path),
        "SOURCES__PUBLIC_V1__BASE_URL": "http://127.0.0.1:9",
    }
    os.environ["SOURCES__PUBLIC_V1__API_KEY"] = "brand_test_key"
    folder = path.parent if path.parent.is_dir() else path.parent.parent
    before = {one: one.is_file() and one.read_bytes() for one in folder.glob("*")}
    with pytest.raises(UsageError, match=match) as error:
        pull(PullOptions(("price_lists",)))
    assert hint in error.value.hint
    assert {one: one.is_file() and one.read_bytes() for one in before} == before
    notes = {path.with_name(f"{path.name}{kind}.failed.json") for kind in ("", ".earlier")}
    assert {*folder.glob("*")} <= {*before, *notes}


@pytest.mark.parametrize(
    ("name", "match", "hint"),
    [
        ("file/warehouse.duckdb", "file", "writable"),
        ("RAW.db", "cannot be named RAW", "such as warehouse.duckdb"),
        *(
            (f"{name}/w.duckdb", "must not contain", "another folder")
            for name in ("it's", "100%", "what?", "a\\b")
        ),
        (f"{'x' * 240}.duckdb", "File name too long", "ame"),
        ("\udcff.duckdb", "not UTF-8", "ame"),
        ("folder", "is a folder", "Name a file in it"),
        ("pipe", "is not a file", "WAREHOUSE__PATH"),
        ("empty", "is not a DuckDB file", "Move it away"),
        ("cut", "is damaged", "Restore its last good copy"),
        ("taken.duckdb", "File exists", "in one that exists in WAREHOUSE__PATH, then run"),
        ("locked.duckdb", "directory", "in one that exists in WAREHOUSE__PATH, then run"),
        ("logged", r"logged\.wal exists: another program writes to the warehouse", "CHECKPOINT"),
    ],
)
def test_a_path_that_cannot_be_a_warehouse_is_refused_and_left_alone(
    tmp_path: Path, name: str, match: str, hint: str
) -> None:
    with duckdb.connect(str(tmp_path / "logged")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1")
    cut = (tmp_path / "logged").read_bytes()[:5000]
    made = {"file": MINE, "empty": b"", "cut": cut, "logged.wal": MINE, ".build-taken.duckdb": MINE}
    for file, content in made.items():
        (tmp_path / file).write_bytes(content)
    for folder in ("folder", ".locked.duckdb.lock"):
        (tmp_path / folder).mkdir()
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / name, match, hint)


def test_an_absent_folder_is_refused_as_its_disk_may_be_absent_and_a_link_stays_one(
    fresh: Bridge, tmp_path: Path
) -> None:
    folder = fresh.folder / "año" / "dos palabras, (x)"
    refused(folder / "warehouse.duckdb", "No such file or directory", "in one that exists")
    with pytest.raises(UsageError, match="No such file or directory"):
        Ledger.open(folder / "ledger.sqlite")
    checked = fresh.command("check", LEDGER__PATH=str(folder / "ledger.sqlite"))
    assert (checked.code, "LEDGER__PATH to a file in a folder that exists" in checked.out) == (
        2,
        True,
    )
    assert not folder.parent.exists()
    folder.mkdir(parents=True)
    fresh.path, link = folder / "warehouse.duckdb", tmp_path / "link.duckdb"
    link.symlink_to(fresh.path)
    os.environ["WAREHOUSE__PATH"] = str(link)
    assert (fresh.code("promotions"), fresh.left(), link.is_symlink()) == (
        0,
        [fresh.path.name],
        True,
    )
