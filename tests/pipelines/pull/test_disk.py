"""Disks that fill, folders that cannot be written, files of others: reported in words, and nothing is harmed."""

from __future__ import annotations

import os
import resource
import shutil
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import duckdb
import pytest

from sources.errors import UsageError
from tests.pipelines.bridge import SMALL, Bridge, bridge, command
from tests.pipelines.pull.truth import RESOURCES, same


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse that was pulled once; the sandbox of a test has the same records."""
    folder, before = tmp_path_factory.mktemp("kept"), dict(os.environ)
    with bridge(folder) as made:
        made.pull()
    os.environ.clear()
    os.environ.update(before)
    return made.path


@pytest.fixture
def made(tmp_path: Path, kept: Path) -> Iterator[Bridge]:
    with bridge(tmp_path) as fresh:
        shutil.copy(kept, fresh.path)
        with duckdb.connect(str(fresh.path)) as warehouse:
            host = fresh.platform.url.removeprefix("http://")
            warehouse.execute("UPDATE ops.warehouse SET legacy_host = $1, public_v1_host = $1", [host])
        yield fresh


def files_up_to(bytes_: int) -> Callable[[], None]:
    """For the child: no file grows beyond that, as if the disk were full. Root is bound by it, too."""

    return partial(resource.setrlimit, resource.RLIMIT_FSIZE, (bytes_, bytes_))  # Python ignores SIGXFSZ


def refused(made: Bridge, path: Path, match: str, hint: str) -> None:
    """A pull into `path` is refused before it asks the platform anything, and what is there stays as it was."""
    os.environ["WAREHOUSE__PATH"] = str(path)
    asked, lay = made.platform.state.requests, made.left()
    with pytest.raises(UsageError, match=match) as error:
        made.pull()
    assert hint in error.value.hint
    assert made.platform.state.requests == asked
    assert set(made.left()) <= {*lay, f"{path.name}.failed.json"}


@pytest.mark.parametrize("share", [0.005, 0.05, 0.95], ids=["spool", "tables", "copy"])
def test_a_disk_that_fills_leaves_the_old_file(made: Bridge, share: float) -> None:
    before = made.path.read_bytes()
    made.platform.state.add("customers", {"firstName": "Nueva"})
    limit = files_up_to(int(len(before) * share))
    done = command("pull", env=made.environment(), cwd=made.folder, preexec_fn=limit)
    assert done.code == 2
    assert f"{made.folder}: " in done.err
    assert "Free space" in done.err
    assert "The published warehouse is untouched" in done.err
    assert "Traceback" not in done.said
    assert made.path.read_bytes() == before
    # Pages that were fetched may stay to go on from; nothing else does.
    build_folder = f".build-{made.path.name}"
    assert set(made.left()) <= {made.path.name, f"{made.path.name}.failed.json", build_folder}
    assert {path.name for path in (made.folder / build_folder).glob("*")} <= {"spool", ".gitignore"}
    assert not list((made.folder.parent / "tmp").iterdir())
    assert made.code() == 0
    assert made.left() == [made.path.name]
    assert all(same(made.path, made.platform.state, name) for name in RESOURCES)


def test_a_first_pull_on_a_disk_that_fills_leaves_no_warehouse(tmp_path: Path) -> None:
    with bridge(tmp_path) as made:
        done = command("pull", env=made.environment(), cwd=made.folder, preexec_fn=files_up_to(1_000_000))
        assert done.code == 2
        assert "Free space" in done.err
        assert made.left() == [f"{made.path.name}.failed.json"]
        assert made.code() == 0
        assert made.left() == [made.path.name]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_reported(made: Bridge) -> None:
    before = made.path.read_bytes()
    made.folder.chmod(0o500)
    try:
        refused(made, made.path, "Permission denied", "writable")
    finally:
        made.folder.chmod(0o700)
    assert made.path.read_bytes() == before
    assert made.code() == 0


def test_a_path_below_a_file_is_reported(made: Bridge) -> None:
    file = made.folder / "file"
    file.write_text("mine")
    refused(made, file / "warehouse.duckdb", str(file), "writable")
    refused(made, file / "deeper" / "warehouse.duckdb", str(file), "writable")
    assert file.read_text() == "mine"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no folder that takes no files")
def test_a_folder_that_takes_no_files_is_reported(made: Bridge) -> None:
    refused(made, Path("/proc/warehouse.duckdb"), "/proc: ", "writable")
    done = command("check", env=made.environment(WAREHOUSE__PATH="/proc/warehouse.duckdb"), cwd=made.folder)
    assert done.code == 2
    assert "wrong warehouse: /proc: " in done.out


@pytest.mark.parametrize(
    "content", [b"", b"x", b"no database\n" * 2000, b"PK\x03\x04" * 5000, b"SQLite format 3\0" * 999]
)
def test_a_file_that_is_no_database_is_left_alone(made: Bridge, content: bytes) -> None:
    path = made.folder / "notes.txt"
    path.write_bytes(content)
    refused(made, path, "is not a DuckDB file", "WAREHOUSE__PATH")
    assert path.read_bytes() == content


def test_a_file_that_was_cut_short_is_left_alone(made: Bridge) -> None:
    cut = made.path.read_bytes()[:5000]
    made.path.write_bytes(cut)
    refused(made, made.path, "is not a DuckDB file", "Move it away")
    assert made.path.read_bytes() == cut
    made.path.rename(made.folder / "moved")
    assert made.code() == 0


def test_a_write_ahead_log_next_to_the_file_is_left_alone(made: Bridge) -> None:
    before, wal = made.path.read_bytes(), made.path.with_name(f"{made.path.name}.wal")
    wal.write_bytes(b"what another program wrote")
    refused(made, made.path, f"{wal.name} exists: another program writes to the warehouse", "CHECKPOINT")
    assert made.path.read_bytes() == before
    assert wal.read_bytes() == b"what another program wrote"
    wal.unlink()
    assert made.code() == 0
    assert made.left() == [made.path.name]


def test_a_file_that_another_program_writes_to_is_reported(made: Bridge) -> None:
    with duckdb.connect(str(made.path)) as writer:
        writer.execute("CREATE TABLE mine AS SELECT 1")
        asked = made.platform.state.requests
        done = command("pull", env=made.environment(), cwd=made.folder)
        assert done.code == 2
        assert "another program" in done.err
        assert made.platform.state.requests == asked
    assert made.code("promotions") == 0


@pytest.mark.parametrize("name", ["raw.duckdb", "RAW.db", "ops.duckdb", "reconciled", "main.duckdb", "temp.x"])
def test_a_name_that_is_a_schemas_is_refused(made: Bridge, name: str) -> None:
    refused(made, made.folder / name, f"cannot be named {name}", "such as warehouse.duckdb")
    assert not (made.folder / name).exists()


def test_a_folder_in_place_of_the_file_is_refused(made: Bridge) -> None:
    folder = made.folder / "folder.duckdb"
    folder.mkdir()
    (folder / "mine").touch()
    refused(made, folder, "is a folder", "Name a file in it")
    assert [path.name for path in folder.iterdir()] == ["mine"]


def test_what_is_no_file_at_all_is_refused(made: Bridge) -> None:
    pipe = made.folder / "pipe.duckdb"
    os.mkfifo(pipe)
    refused(made, pipe, "is not a file", "WAREHOUSE__PATH")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", [".build-warehouse.duckdb", ".warehouse.duckdb.lock"])
def test_something_else_in_place_of_what_a_run_makes_is_reported(made: Bridge, name: str) -> None:
    before, place = made.path.read_bytes(), made.folder / name
    if name.endswith(".lock"):
        place.mkdir()
    else:
        place.write_text("mine")
    refused(made, made.path, "directory|File exists", "run again")
    assert place.exists()
    assert made.path.read_bytes() == before


def test_folders_that_there_are_not_are_made(made: Bridge) -> None:
    os.environ["WAREHOUSE__PATH"] = str(made.folder / "año" / "dos palabras, (x)" / "warehouse.duckdb")
    assert made.code("promotions") == 0
    made.path = Path(os.environ["WAREHOUSE__PATH"])
    assert made.left() == [made.path.name]
    assert made.one("SELECT count(*) FROM raw.promotions") == SMALL["promotions"]


@pytest.mark.parametrize("size", [0, 40_000, 60_000, 3_000_000, 3_500_000])
def test_a_first_pull_on_a_full_disk_is_reported_as_such(tmp_path: Path, size: int) -> None:
    with bridge(tmp_path) as made:
        done = command("pull", env=made.environment(), cwd=made.folder, preexec_fn=files_up_to(size))
        assert done.code == 2, done.err
        assert "Free space" in done.err
        assert not any(name.startswith(".build") for name in made.left())


@pytest.mark.parametrize("name", ["it's", "100%", "what?", "back\\slash"])
def test_a_path_that_dlt_cannot_bear_is_refused(made: Bridge, name: str) -> None:
    refused(
        made,
        made.folder / name / "warehouse.duckdb",
        "the path of the warehouse must not contain",
        "Name another folder",
    )


@pytest.mark.parametrize(
    ("name", "words"), [("x" * 240, "File name too long"), ("\udcff", "not UTF-8")], ids=["length", "bytes"]
)
def test_a_name_that_cannot_be_used_is_refused(made: Bridge, name: str, words: str) -> None:
    refused(made, made.folder / f"{name}.duckdb", words, "ame")


def test_a_link_to_the_warehouse_stays_a_link(made: Bridge, tmp_path: Path) -> None:
    link = tmp_path / "link.duckdb"
    link.symlink_to(made.path)
    os.environ["WAREHOUSE__PATH"] = str(link)
    assert made.code("promotions") == 0
    assert link.is_symlink()
    assert made.one("SELECT count(*) FROM ops.runs") == 2
