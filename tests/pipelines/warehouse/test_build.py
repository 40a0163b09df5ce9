"""The published file and the folder of its build: which clients open it, what it can reach, what is never followed."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest
from dlt.common.configuration.providers.toml import ConfigTomlProvider, TomlProviderReadException

from orderbridge.pipelines.warehouse import build, lock, machine_errors
from orderbridge.pipelines.warehouse.build import Build, open_warehouse, warehouse_errors
from orderbridge.pipelines.warehouse.destination.errors import destination_errors
from orderbridge.pipelines.warehouse.failure import (
    clear_failure,
    describe_error,
    failure_file,
    is_interrupted,
    read,
    record_failure,
)
from orderbridge.pipelines.warehouse.lock import lock_holder, run_lock
from orderbridge.sources.contract import LISTS, RECORDS
from orderbridge.sources.disk import open_private
from orderbridge.sources.errors import BridgeError, LockedError, UsageError
from orderbridge.sources.settings import warehouse_settings
from tests.pipelines.bridge import Bridge, bridge, start, wait_for, within_memory

OLDER_CLIENT = "duckdb==1.2.2"
SECRET = "Ana Núñez"


@pytest.fixture(scope="session")
def older_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the modules of a client of DuckDB 1.2."""
    folder = tmp_path_factory.mktemp("older")
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
    ]
    done = subprocess.run(
        [*install, "--target", str(folder), OLDER_CLIENT], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"{OLDER_CLIENT} cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
    return folder


def built(path: Path, sql: str) -> None:
    build = Build(path)
    build.start()
    try:
        with build.open() as connection:
            connection.execute(sql)
            build.publish(connection)
    finally:
        build.clear()


def test_duckdb_1_2_opens_the_file_and_0_1_is_refused(
    published: Bridge, older_client: Path, tmp_path: Path
) -> None:
    tag = "SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name = current_database()"
    assert published.one(tag) == "v1.2.0+"
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "import duckdb; warehouse = duckdb.connect(sys.argv[1], read_only=True)\n"
        "print(duckdb.__version__, *warehouse.execute('SELECT count(*) FROM ops.last_read').fetchone())"
    )
    command = [sys.executable, "-I", "-c", script, str(published.path), str(older_client)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.split() == [OLDER_CLIENT.partition("==")[2], str(len(RECORDS))], done.stderr
    path = tmp_path / "w.duckdb"
    built(
        path,
        "CREATE SCHEMA ops; CREATE TABLE ops.runs (version VARCHAR); CREATE TABLE ops.coverage (run_id VARCHAR)",
    )
    with pytest.raises(UsageError, match=r"written by orderbridge 0\.1\n  Run 0\.2 with it once"):
        open_warehouse(path)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE ops.warehouse (organization VARCHAR)")
    open_warehouse(path).close()


def test_a_warehouse_that_a_newer_version_wrote_is_refused_and_stays_as_it_is(
    fresh: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh.pull("promotions")
    version = "SELECT version FROM ops.runs"
    for own, written_by, is_refused in (
        ("0.4.0", "0.4.9", False),
        ("0.10.2", "0.9.0", False),
        ("0", "0.4.0", False),
        ("0.9.3", "0.10.0", True),
        ("0.4.0", "1.0.0.dev1", True),
    ):
        monkeypatch.setattr(build, "__version__", own)
        with duckdb.connect(str(fresh.path)) as connection:
            connection.execute("UPDATE ops.runs SET version = ?", [written_by])
        for command in (("status",), ("reconcile",), ("pull", "promotions"), ("report",)):
            before = fresh.path.read_bytes()
            done = fresh.command(*command)
            if not is_refused:
                assert done.code == 0, done.said
                break
            words = f"was written by a newer orderbridge ({written_by}); this one is {own}"
            assert (done.code, words in done.err) == (2, True), done.said
            assert "In its checkout: git pull && make setup" in done.err
            assert fresh.path.read_bytes() == before
    assert fresh.one(version) == "1.0.0.dev1"


def test_foreign_files_and_open_logs_stay_out_and_the_mode_is_kept_but_for_all(
    tmp_path: Path,
) -> None:
    path = tmp_path / "w.duckdb"
    built(path, "CREATE TABLE t AS SELECT 1 AS a")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    built(path, "CREATE TABLE two AS SELECT 1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    before, build = path.read_bytes(), Build(path)
    build.start()
    connection = build.open()
    keeping = mock.Mock(wraps=connection)
    keeping.close.side_effect = build.file.with_name("build.duckdb.wal").touch
    with pytest.raises(BridgeError, match="kept a write-ahead log"):
        build.publish(keeping)
    connection.close()
    assert (path.read_bytes(), build.is_published) == (before, False)
    build.start()
    with build.open() as connection:
        os.utime(path, (1, 1))  # in place: its number and its size are as they were
        with pytest.raises(UsageError, match="another program wrote to"):
            build.publish(connection)
    assert (path.read_bytes(), build.is_published) == (before, False)
    build.start()
    copyfile = shutil.copyfile

    def copied(*files: Path) -> None:
        copyfile(*files)
        os.utime(path, (2, 2))

    with mock.patch("shutil.copyfile", copied):
        connection = build.open()  # it is written to while it is copied
    with connection, pytest.raises(UsageError, match="another program wrote to"):
        build.publish(connection)


def test_what_opens_a_warehouse_reaches_no_other_file(tmp_path: Path) -> None:
    path, secret, out = tmp_path / "warehouse.duckdb", tmp_path / "secret", tmp_path / "out.csv"
    secret.write_text(SECRET)
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE VIEW planted AS SELECT content FROM read_text('{secret}')")
    build = Build(path)
    build.start()
    assert (build.folder / ".gitignore").read_text() == "*\n"
    with duckdb.connect(str(build.run_folder / "load.duckdb")) as load:
        load.execute("CREATE TABLE one AS SELECT 1 AS number")
    with open_warehouse(path) as reader, build.open() as writer:
        for connection, sql in product((reader, writer), (
            "FROM planted", f"FROM read_text('{secret}')", f"COPY (SELECT 1) TO '{out}'", "INSTALL httpfs",
            f"ATTACH '{secret}' AS other", "SET enable_external_access = true",
        )):  # fmt: skip
            with pytest.raises(duckdb.Error):
                connection.execute(sql).fetchall()
        with pytest.raises(duckdb.PermissionException) as caught:
            reader.execute("FROM planted")
        code, message, hint = describe_error(caught.value)
        assert (code, "reads other files" in message, SECRET in message + hint) == (2, True, False)
        names = "'autoinstall_known_extensions', 'autoload_known_extensions'"
        values = reader.execute(
            f"SELECT value FROM duckdb_settings() WHERE name IN ({names})"
        ).fetchall()
        assert values == [("false",), ("false",)]
        with pytest.raises(duckdb.InvalidInputException, match="read-only"):
            reader.execute("CREATE TABLE mine AS SELECT 1")
        writer.execute(f"ATTACH '{build.run_folder / 'load.duckdb'}' AS load")
        assert writer.execute("FROM load.one").fetchall() == [(1,)]
        writer.execute("SET memory_limit = '30MB'; SET threads = 1")
        writer.execute(
            "CREATE TABLE spilled AS SELECT hash(range)::VARCHAR AS h FROM range(300000) ORDER BY h"
        )
    build.clear()
    assert not out.exists()


def test_an_error_of_duckdb_names_the_folder_or_file_and_no_value(tmp_path: Path) -> None:
    for error, words in (
        (
            duckdb.IOException("Could not write: no space left on device, 'Zoë'"),
            "no space left: the disk is full",
        ),
        (duckdb.IOException("Cannot open file 'Zoë': Permission denied"), "permission denied"),
        (duckdb.IOException("Could not write 'Zoë'"), "DuckDB could not read or write a file"),
        (duckdb.IOException("Corrupt database file, 'Zoë'"), "the warehouse is damaged"),
        (duckdb.OutOfMemoryException("'Zoë'"), "not enough memory"),
    ):
        with pytest.raises(UsageError, match=words) as caught, warehouse_errors(tmp_path):
            raise error
        assert "Zoë" not in str(caught.value)
        assert "The published warehouse is untouched." in caught.value.hint
    with pytest.raises(duckdb.BinderException), warehouse_errors(tmp_path):
        raise duckdb.BinderException("no such column")
    (tmp_path / "w.duckdb").touch()
    held = mock.patch.object(
        duckdb, "connect", side_effect=duckdb.IOException("Conflicting lock is held in PID 1")
    )
    with held, pytest.raises(UsageError, match="is open for writing in another program"):
        open_warehouse(tmp_path / "w.duckdb")


def test_views_and_functions_in_the_place_of_ours_are_named_whatever_opens_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "warehouse.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("""CREATE SCHEMA mine; CREATE MACRO mine.lower(x) AS x; CREATE MACRO half(x) AS x / 2;
            CREATE SCHEMA raw; CREATE VIEW raw.mine AS SELECT 1 AS a;
            CREATE SCHEMA ops; CREATE VIEW ops.last_read AS SELECT 1 AS a""")
    with open_warehouse(path):
        pass
    with duckdb.connect(str(path)) as connection:
        connection.execute("""CREATE MACRO read_parquet(file) AS TABLE SELECT 'planted';
            CREATE MACRO duckdb_functions() AS TABLE SELECT 'main', 'nothing', true WHERE false;
            CREATE VIEW raw.customers AS SELECT 1 AS id""")
    words = (
        r"uses: view raw\.customers, function main\.duckdb_functions, function main\.read_parquet$"
    )
    with pytest.raises(UsageError) as caught, open_warehouse(path):
        pass
    assert re.search(words, caught.value.message)


def test_duckdb_keeps_the_rows_of_a_table_made_and_added_to_in_one_transaction() -> None:
    """DuckDB 2.0.0 lost them without an error, and its `count(*)`, as our totals, still had them, from metadata."""
    rows = "SELECT range::VARCHAR AS id, 'x' AS detail FROM range({})"
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        connection.register("many", connection.sql(rows.format(130_000)).to_arrow_table())
        connection.begin()
        connection.execute(
            f"CREATE TABLE t AS FROM many LIMIT 0; INSERT INTO t FROM many; INSERT INTO t {rows.format(5)}"
        )
        connection.commit()
        assert connection.execute("SELECT count(DISTINCT id) FROM t").fetchone() == (130_000,)


HINT = "make the folder writable"


def test_a_second_pull_leaves_at_once_and_names_the_first_whose_lock_dies_with_it(
    tmp_path: Path,
) -> None:
    with bridge(tmp_path) as made:
        made.platform.set_faults({"stall": 1.0})
        with start("run", env=made.environment(), cwd=made.folder) as first:
            # whoami, and a first page of each
            wait_for(lambda: made.platform.state.requests == len(LISTS) + 1)
            lies = sorted(path.name for path in made.folder.rglob("*"))
            asked = made.platform.state.requests
            with pytest.raises(
                LockedError, match=rf"lock: process {first.pid} \(run, since 20"
            ) as error:
                made.pull()
            assert error.value.exit_code == 8
            assert error.value.hint.endswith(f": kill {first.pid}")
            assert (first.poll(), made.platform.state.requests) == (None, asked)
            assert sorted(path.name for path in made.folder.rglob("*")) == lies
            first.kill()
            first.communicate(timeout=300)
        assert (made.folder / f".{made.path.name}.lock").exists()
        made.platform.set_faults({})
        assert made.code() == 0
        assert made.left() == [made.path.name]


def test_the_kernels_lock_counts_and_not_what_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    for content, words in (
        (b"", "a process that is just starting"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (
            b"process 1 (pull, since 2020-01-01T00:00:00), longer than what the next one writes",
            r"process 1 \(pull, s",
        ),
    ):
        path.write_bytes(content)
        with path.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(LockedError, match=words), run_lock(path, "pull", HINT):
                pass
        with run_lock(path, "pull", HINT):
            assert re.fullmatch(
                rf"process {os.getpid()} \(pull, since 20[\dT:+-]+\)", path.read_text()
            )
        assert not path.exists()
    with pytest.raises(KeyboardInterrupt), run_lock(path, "pull", HINT):
        raise KeyboardInterrupt
    assert not path.exists()
    was_held = list[bool]()
    removal = mock.patch.object(
        Path, "unlink", lambda one, **_: was_held.append(lock_holder(one)[1])
    )
    with removal, run_lock(path, "pull", HINT):
        pass
    assert was_held == [True], "removed later, it may be the file of the next run"


def test_who_asks_for_the_holder_stops_no_run_and_nobody_else_that_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    path.write_text("process 1 (pull)")  # which was killed
    with path.open("rb") as asking:  # as `lock_holder` of another process
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert lock_holder(path) == ("process 1 (pull)", False)
        threading.Timer(0.1, partial(fcntl.flock, asking, fcntl.LOCK_UN)).start()
        with run_lock(path, "pull", HINT):
            assert lock_holder(path) == (path.read_text(), True)
    for left in ("", "process 1 (pull)"):  # one that begins has just made the file
        path.write_text(left)
        assert lock_holder(path) == (left, False)

    def ended(_: int) -> bool:
        path.unlink()
        return False

    monkeypatch.setattr(lock, "_is_held", ended)  # well, since the file was opened
    assert lock_holder(path) == ("", False)


def test_a_lock_on_a_file_that_was_removed_meanwhile_excludes_nobody(
    tmp_path: Path,
) -> None:
    path, opened = tmp_path / "lock", list[int]()

    def removed_at_first(one: Path) -> int:
        descriptor = open_private(one)
        if not opened:
            one.unlink()
        opened.append(descriptor)
        return descriptor

    with mock.patch.object(lock, "open_private", removed_at_first), run_lock(path, "pull", HINT):
        with pytest.raises(LockedError), run_lock(path, "pull", HINT):
            pass
        assert len(opened) == 3


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "warehouse.duckdb"
    made.touch()
    return made


def noted(
    path: Path,
    error: BaseException,
    command: str = "pull",
    run_id: str = "R1",
    *,
    is_destination: bool = False,
) -> dict[str, Any] | None:
    copying = destination_errors(warehouse_settings()) if is_destination else nullcontext()
    note = record_failure(
        path, command, datetime(2026, 1, 2, tzinfo=UTC), run_id, is_destination=is_destination
    )
    with pytest.raises(BaseException) as caught, note, copying:  # noqa: PT011 # its kind is compared
        raise error
    assert type(caught.value) is (KeyboardInterrupt if is_interrupted(error) else type(error))
    return read(path, is_destination=is_destination)


def test_the_note_has_what_failed_is_private_and_follows_no_link(
    path: Path, tmp_path: Path
) -> None:
    victim, file = tmp_path / "victim", failure_file(path)
    victim.write_text("theirs")
    file.symlink_to(victim)
    note = noted(path, UsageError("the mapping is not there", "Name one.")) or {}
    facts = {"command": "pull", "run_id": "R1", "exit_code": 2, "published": False}
    assert (
        note.items()
        >= {**facts, "message": "the mapping is not there", "hint": "Name one."}.items()
    )
    assert (stat.S_IMODE(file.lstat().st_mode), victim.read_text()) == (0o600, "theirs")
    # of a run that did not begin
    for place, is_noted in (
        (path, True),
        (path.with_name("other.duckdb"), False),
    ):
        assert (noted(place, UsageError("no"), run_id="") is not None) is is_noted
    for error, code, words in (
        (ValueError(SECRET), 1, "internal error in orderbridge: ValueError"),
        (
            PermissionError(13, "Permission denied", "/srv/a.csv"),
            2,
            "/srv/a.csv cannot be used: Permission denied",
        ),
        (MemoryError(), 2, "not enough memory"),
        (
            OSError(errno.EIO, os.strerror(errno.EIO)),
            2,
            "the disk cannot be used: Input/output error",
        ),
        (OSError(errno.EROFS, os.strerror(errno.EROFS)), 2, "Read-only file system"),
        (duckdb.IOException(f"checksum of {SECRET}"), 2, "the warehouse is damaged"),
        (duckdb.SerializationException(SECRET), 2, "the warehouse is damaged"),
        (
            duckdb.TransactionException(
                f'Failed to commit: Could not write file "{SECRET}": Input/output error'
            ),
            2,
            "the warehouse: DuckDB could not read or write a file",
        ),
        (duckdb.FatalException("fsync failed!"), 2, "DuckDB could not read or write a file"),
        (duckdb.TransactionException(f"Conflict on {SECRET}"), 1, "TransactionException"),
        (duckdb.OutOfMemoryException(SECRET), 2, "not enough memory"),
        (duckdb.BinderException(SECRET), 1, "internal error in orderbridge: BinderException"),
        (ConnectionResetError(104, "reset"), 1, "internal error in orderbridge"),
        (OSError(errno.EFBIG, "File too large"), 2, "no space left"),
        (KeyboardInterrupt(143), 143, "stopped by a signal (143)"),
        # DuckDB's of a signal
        (
            RuntimeError("Query interrupted"),
            130,
            "stopped by a signal (130)",
        ),
    ):
        note = noted(path, error) or {}
        assert (note["exit_code"], words in note["message"], SECRET in str(note)) == (
            code,
            True,
            False,
        )
        if code > 100:
            assert noted(path, error, is_destination=True) is None, (
                "a copy that is stopped has not failed"
            )


def test_a_success_removes_the_note_that_it_makes_good_and_one_that_cannot_be_read(
    path: Path,
) -> None:
    makes_good = {
        "pull": ("pull", "run"),
        "run": ("pull", "run"),
        "reconcile": ("reconcile", "run"),
    }
    for failed, succeeds in product(makes_good, repeat=2):
        noted(path, UsageError("no"), failed)
        clear_failure(path, succeeds)
        assert (read(path) is None) is (succeeds in makes_good[failed]), (failed, succeeds)
    for content in (b'{"exit_', b"[" * 100_000, b"\xff\xfe", b'{"message": 7}', b'{"hint": ["x"]}'):
        failure_file(path).write_bytes(content)
        assert "cut off" in (read(path) or {})["message"]
        clear_failure(path, "pull")
        assert read(path) is None


def test_a_whole_warehouse_is_not_called_another_file_where_memory_is_short(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    duckdb.connect(str(path)).close()
    for error, words in (
        (duckdb.OutOfMemoryException("Failed to allocate block"), "not enough memory"),
        (
            duckdb.IOException("Could not read from file: Cannot allocate memory"),
            "not enough memory",
        ),
        (duckdb.IOException("Corrupt database file: computed checksum 1"), f"{path} is damaged"),
        (duckdb.IOException("not a valid DuckDB database file!"), "is not a DuckDB file"),
    ):
        limited = mock.patch.object(
            machine_errors, "is_limit_reached", return_value="Could" in str(error)
        )
        failing = mock.patch.object(duckdb, "connect", side_effect=error)
        with failing, limited, pytest.raises(UsageError, match=words):
            open_warehouse(path)


@pytest.mark.parametrize(
    ("start", "words"), [(b"PK\3\4", "is damaged"), (b"SQLite format 3\0", "is not a DuckDB file")]
)
def test_a_warehouse_whose_first_bytes_are_damaged_is_not_called_open_or_a_view(
    tmp_path: Path, start: bytes, words: str
) -> None:
    path = tmp_path / "lock-version-extension.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1")
    path.write_bytes(start + path.read_bytes()[len(start) :])
    words = f"{path} {words}"
    with pytest.raises(UsageError, match=words):
        open_warehouse(path)
    with pytest.raises(UsageError, match=words):
        build.connect(path, read_only=False)


def test_what_libraries_raise_once_the_address_space_is_used_up_is_a_lack_of_memory() -> None:
    program = """
try:
    kept = []
    while True:
        kept.append(bytearray(10 << 20))
except MemoryError:
    kept.clear()
from orderbridge.pipelines.warehouse.failure import describe_error
print(describe_error(ImportError("failed to map segment from shared object")))
"""
    done = subprocess.run(
        within_memory(600, sys.executable, "-c", program),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "USAGE: 2>, 'not enough memory: this process may use 600 MB" in done.stdout
    assert describe_error(ImportError("no such module"))[0] == 1


def test_a_settings_file_that_the_disk_does_not_give_to_dlt_is_no_bug(tmp_path: Path) -> None:
    (tmp_path / "config.toml").touch()
    refused = OSError(errno.EIO, os.strerror(errno.EIO), "config.toml")
    failing = mock.patch.object(ConfigTomlProvider, "_read_toml_file", side_effect=refused)
    with failing, pytest.raises(TomlProviderReadException) as raised:
        ConfigTomlProvider(str(tmp_path))
    code, message, _ = describe_error(raised.value)
    assert (code, message) == (2, "config.toml cannot be used: Input/output error")
    refused.errno = errno.ENOENT
    assert describe_error(raised.value)[0] == 1, "dlt looks for files that are not there"


def test_a_damaged_warehouse_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            """CREATE SCHEMA ops; CREATE TABLE ops.coverage (a INT); CREATE TABLE ops.warehouse (a INT);
            CREATE TABLE ops.runs AS SELECT range AS n, sha256(range::VARCHAR) AS version FROM range(100000)"""
        )
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    path.write_bytes(content)
    with pytest.raises(UsageError, match=f"^{path} is damaged\n  Restore its last good copy"):
        open_warehouse(path)
