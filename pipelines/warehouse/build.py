"""The warehouse file: opened by readers, built in a folder of its own by a run, and replaced as a whole.

A run works in `.build-NAME/` next to the file: the spools of its walks, and `run/` with everything that ends with the
run, including the build. A build starts as a copy of the published file and is renamed over it once it is complete and
on disk. Readers never open the file that is being built (a polling reader makes a load fail).
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import duckdb

from orderbridge.pipelines.warehouse.lock import run_lock
from orderbridge.pipelines.warehouse.machine_errors import machine_error
from orderbridge.pipelines.warehouse.sql import sql_text, table_names
from orderbridge.sources import __version__
from orderbridge.sources.command_line import run_again
from orderbridge.sources.disk import (
    PRIVATE_FILE,
    copy_access,
    disk_errors,
    exclude_from_git,
    file_version,
    move_file,
    private_folder,
    usable_path,
)
from orderbridge.sources.errors import BridgeError, UsageError
from orderbridge.sources.settings import own_path, warehouse_path

log = logging.getLogger("orderbridge.pull")
SCHEMAS: Final = ("raw", "reconciled", "ops")
STORAGE_VERSION: Final = "v1.2.0"
"""The format of the published file: the oldest that DuckDB 2 writes, so that clients from DuckDB 1.2 on open it."""
_NO_EXTENSIONS: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_READ_CONFIG: Final[dict[str, Any]] = {"enable_external_access": "false", **_NO_EXTENSIONS}
_BUILD_CONFIG: Final[dict[str, Any]] = {
    "storage_compatibility_version": STORAGE_VERSION,
    **_NO_EXTENSIONS,
}
_UNUSABLE_CHARACTERS: Final = "'%?\\"
"""A path with one of these cannot be used: in SQL and URLs of dlt they have another meaning."""
_UNTOUCHED: Final = "The published warehouse is untouched."
_OVERRIDDEN: Final = f"""
    WITH functions AS (SELECT schema_name, function_name, internal FROM system.main.duckdb_functions())
    SELECT DISTINCT schema_name, function_name FROM functions
    SEMI JOIN (FROM functions WHERE internal) AS own USING (function_name)
    WHERE NOT internal AND schema_name IN {("main", *SCHEMAS)} ORDER BY ALL"""
"""Functions in a file that have the name of DuckDB's. No function is called by its short name."""
_FOREIGN_TEXTS: Final = ("not a valid duckdb", "version", "extension")
"""What DuckDB says of a file that is none, or of another version; one that begins like SQLite's needs an extension."""
_CHECKED: Final[set[tuple[object, ...]]] = set()
"""Files that this process has checked for names of ours. It takes 15 ms, and some commands open one ten times."""
_UNUSABLE_NAMES: Final = (*SCHEMAS, "bi", "temp", "system", "memory", "main")


def _disk_hints() -> tuple[str, str]:
    """What to do about a full disk, and about a folder that cannot be written."""
    again = f"then {run_again()}"
    return (
        f"{_UNTOUCHED} Free space or make the folder writable, {again}",
        f"{_UNTOUCHED} Make its folder writable, or name a file in one that exists in WAREHOUSE__PATH, {again}",
    )


def open_warehouse(path: str | Path | None = None) -> duckdb.DuckDBPyConnection:
    """Opens the published warehouse for reading; a run at the same time is not disturbed.

    Queries cannot reach other files or the network, and no extension is installed or loaded: a view in a file of
    unknown origin could otherwise read this user's files.

    Args:
        path: of the file; None: the setting `warehouse.path`.

    Raises:
        UsageError: the file does not exist, is damaged, is not a DuckDB file of this version or an earlier one from
            0.2 on, or has views or functions in the place of ours; or others can write to its folder.
    """
    file = own_path(Path(path), is_published=True) if path is not None else warehouse_path()
    if not file.is_file():
        hint = "Run `orderbridge run` first. Another project is named by orderbridge --project DIR."
        raise UsageError(f"there is no warehouse at {file}", hint)
    connection = connect(file, read_only=True)
    try:
        connection.execute("SET TimeZone = 'UTC'")
        if (version := (str(file), *file_version(file))) not in _CHECKED:
            _check_names(connection, file)
            _CHECKED.add(version)
        _check_version(connection, file)
    except duckdb.Error as error:
        connection.close()
        if (found := machine_error(error, str(file))) is None:
            raise
        raise found from None
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def kept_open() -> Iterator[None]:
    """Keeps the published warehouse open while the block runs, if there is one.

    Its readers in the block then share one instance of DuckDB, whose start costs more than most of their queries, and
    see one version.
    """
    with ExitStack() as stack:
        with suppress(UsageError):  # whoever opens it later reports why it cannot be opened
            stack.enter_context(open_warehouse())
        yield


def _check_names(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Raises UsageError for a file that has something of its own in the place of ours, as a stranger's may."""
    if shadows := ", ".join(_shadows(connection)):
        raise UsageError(
            f"{file} has views or functions with names that orderbridge uses: {shadows}",
            f"Those of your own are safe in a schema of your own. Rename or drop them, then {run_again()}",
        )


def _check_version(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Raises UsageError for a file of version 0.1, and for one whose last run was of a newer version than this one.

    Patch versions read each other's files.
    """
    tables = set(table_names(connection, "ops"))
    if not tables >= {"runs", "coverage"}:
        return
    if "warehouse" not in tables:
        raise UsageError(
            f"{file} was written by orderbridge 0.1", "Run 0.2 with it once: docs/upgrade.md."
        )
    last = "SELECT arg_max_null(version, rowid) FROM ops.runs"  # a fifth of the time of ORDER BY and LIMIT
    ((written_by,),) = connection.execute(last).fetchall()
    if written_by and _minor_version(written_by) > _minor_version(__version__) > ():
        raise UsageError(
            f"{file} was written by a newer orderbridge ({written_by}); this one is {__version__}",
            "Install that version or a newer one. In its checkout: git pull && make setup",
        )


def _minor_version(version: str) -> tuple[int, ...]:
    """Major and minor number of a version; empty where it has none, as in a checkout that is not installed."""
    numbers = re.match(r"([0-9]+)\.([0-9]+)", version)
    return tuple(map(int, numbers.groups())) if numbers else ()


def connect(file: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """A connection to a DuckDB file. Raises UsageError where it is not one, or another program has it open."""
    config = _READ_CONFIG if read_only else _BUILD_CONFIG
    try:
        return duckdb.connect(str(file), read_only=read_only, config=config)
    except duckdb.Error as error:
        raise _unusable(file, error) from None


def _unusable(file: Path, error: duckdb.Error) -> UsageError:
    """Why DuckDB does not open a file."""
    text = str(error).lower().replace(str(file).lower(), "")
    if isinstance(error, duckdb.IOException) and "conflicting lock" in text:
        hint = f"Close it there, then {run_again()}"
        return UsageError(f"{file} is open for writing in another program", hint)
    is_foreign = any(part in text for part in _FOREIGN_TEXTS)
    if not is_foreign and (found := machine_error(error, str(file))) is not None:
        return found
    hint = "Move it away, or name another file in WAREHOUSE__PATH. It was not touched."
    return UsageError(f"{file} is not a DuckDB file that this version can read", hint)


def _shadows(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """What a stranger's file has in the place of ours: views with the name of a table, functions with that of DuckDB's.

    The catalog is asked by its full name: a function in the file may have the short one.
    """
    views = connection.execute(
        "SELECT schema_name, view_name FROM system.main.duckdb_views()"
    ).fetchall()
    views = [view for view in views if view[0] in SCHEMAS and view != ("ops", "last_read")]
    if views:
        # its import takes twice the time of these queries, and a warehouse of ours has no other view
        from orderbridge.pipelines.warehouse.bi.descriptions import table_description

        views = [view for view in views if table_description(*view)]
    found = {"view": views, "function": connection.execute(_OVERRIDDEN).fetchall()}
    return [f"{kind} {schema}.{name}" for kind, names in found.items() for schema, name in names]


def lock_file(path: Path) -> Path:
    """The lock of the runs on a warehouse."""
    return path.with_name(f".{path.name}.lock")


class Build:
    """The next version of a warehouse, in its own folder.

    Attributes:
        path: the published file.
        folder: `.build-NAME/`, kept between runs only where a walk can be resumed.
        spools: `folder`/spool: one folder per list.
        run_folder: `folder`/run: everything that ends with the run.
        file: the file that is being built.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path.parent / f".build-{path.name}"
        self.spools = self.folder / "spool"
        self.run_folder = self.folder / "run"
        self.file = self.run_folder / "build.duckdb"
        self.is_published = False
        self._copied: tuple[int, ...] = ()

    def locked(self, command: str) -> AbstractContextManager[None]:
        """Excludes other runs on this warehouse. Raises LockedError, UsageError."""
        return run_lock(lock_file(self.path), command, *_disk_hints())

    def check(self) -> None:
        """Checks, before anything is fetched, that a build can be published here. Raises UsageError."""
        if self.path.stem.lower() in _UNUSABLE_NAMES:
            raise UsageError(
                f"a warehouse cannot be named {self.path.name}: `{self.path.stem}` is a schema in it",
                "Name another file in WAREHOUSE__PATH, such as warehouse.duckdb.",
            )
        unusable = sorted(set(_UNUSABLE_CHARACTERS) & set(str(usable_path(self.path))))
        if unusable:
            raise UsageError(
                f"the path of the warehouse must not contain {' '.join(unusable)}: {self.path}",
                "Name another folder or file in WAREHOUSE__PATH.",
            )
        if self.path.exists() and not self.path.is_file():
            raise UsageError(f"{self.path} is not a file", "Name a file in WAREHOUSE__PATH.")
        self._check_wal()

    @contextmanager
    def published(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Opens the published file for reading. Raises UsageError, also where it is damaged."""
        with warehouse_errors(self.path.parent), open_warehouse(self.path) as connection:
            yield connection

    def _check_wal(self) -> None:
        if _wal(self.path).exists():
            raise UsageError(
                f"{_wal(self.path).name} exists: another program writes to the warehouse, or was interrupted",
                f"Open the file once in DuckDB for writing, run CHECKPOINT, close it, then {run_again()}",
            )

    def start(self) -> None:
        """Removes what a killed run left, and creates the folders; `check` was called before the lock was taken.

        Raises:
            UsageError: the folder cannot be used, or another program writes to the published file.
        """
        self._check_wal()
        with warehouse_errors(self.path.parent):
            self._make_folders()

    def _make_folders(self) -> None:
        private_folder(self.folder)
        exclude_from_git(self.folder)
        shutil.rmtree(self.run_folder, ignore_errors=True)
        self.run_folder.mkdir(mode=0o700)

    @contextmanager
    def copying(self) -> Iterator[Path]:
        """A folder for what a copy writes meanwhile. What a killed one leaves is removed by the next run."""
        with disk_errors(self.path.parent, *_disk_hints()):
            self._make_folders()
        try:
            yield self.run_folder
        finally:
            self.clear()

    def open(self) -> duckdb.DuckDBPyConnection:
        """Opens the build for writing: a copy of the published file, or a new one.

        Queries reach the published file and files in `run_folder` only: the copy may hold views of unknown origin.
        """
        self._copied = file_version(self.path) if self.path.exists() else ()
        if self._copied:
            shutil.copyfile(self.path, self.file)
        connection = connect(self.file, read_only=False)
        _check_version(connection, self.path)
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"SET temp_directory = {sql_text(self.run_folder / 'spill')}")
        connection.execute(f"SET allowed_directories = [{sql_text(self.run_folder)}]")
        # for `_warn_of_writer`
        connection.execute("SET allowed_paths = $1", [[str(self.path), str(_wal(self.path))]])
        connection.execute("SET enable_external_access = false")
        return connection

    def publish(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Closes the build and renames it over the published file, which keeps its owner, group and mode.

        Raises:
            UsageError: the disk is full, or the folder cannot be written; or another program has written to the
                published file since the build was opened: that would be lost, and DuckDB would apply the log of that
                program to the new file. The published file is unchanged.
        """
        with warehouse_errors(self.path.parent):
            connection.execute("CHECKPOINT")
            if self._copied:
                _warn_of_writer(connection, self.path)
            connection.close()
            if _wal(self.file).exists():
                raise BridgeError("the build kept a write-ahead log after its checkpoint")
            if self.path.exists():
                copy_access(self.path, self.file)
            else:
                self.file.chmod(PRIVATE_FILE)
            self._check_wal()
            if file_version(self.path) != self._copied:
                raise UsageError(
                    f"another program wrote to {self.path.name} during this run: nothing was published",
                    f"Close it there, then {run_again()}",
                )
            try:
                move_file(self.file, self.path)
            finally:
                self.is_published = not self.file.exists()
        if not self._copied or (str(self.path), *self._copied) in _CHECKED:
            _CHECKED.add((str(self.path), *file_version(self.path)))  # what was added is ours

    def clear(self, resumable: Collection[str] | None = None) -> None:
        """Removes the files of this run, and the spools of lists that are not resumable; None: all are."""
        shutil.rmtree(self.run_folder, ignore_errors=True)
        is_empty = True
        for folder in self.spools.glob("*"):
            if resumable is None or folder.name in resumable:
                is_empty = False
            else:
                shutil.rmtree(folder, ignore_errors=True)
        if is_empty:
            shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def warehouse_errors(folder: Path) -> Iterator[None]:
    """Turns disk errors of the system and of DuckDB into UsageError, without DuckDB's texts: they can hold values."""
    with disk_errors(folder, *_disk_hints()):
        try:
            yield
        except duckdb.Error as error:
            found = machine_error(error)
            if found is None:
                raise
            raise UsageError(f"{folder}: {found.message}", f"{_UNTOUCHED} {found.hint}") from None


def _warn_of_writer(build: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Warns where another program has a DuckDB file open for writing, although it has written nothing so far."""
    try:
        build.execute(f"ATTACH {sql_text(file)} AS published (READ_ONLY)")
        build.execute("DETACH published")
    except duckdb.Error as error:
        if "lock" in str(error).lower():
            words = "%s is open for writing in another program: what that program writes from now on is lost"
            log.warning(f"{words}. Close it there, and open it again", file.name)


def _wal(file: Path) -> Path:
    return file.with_name(file.name + ".wal")
