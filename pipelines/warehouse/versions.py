"""The earlier versions of a warehouse that are kept, and what differs between two versions.

In: the published file and the files of earlier runs beside it. Out: hard links, which take the space of a version only
once it is replaced; and the differences by table: keys that were added, that are gone, and whose values changed.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import duckdb

from orderbridge.pipelines.warehouse.bi.descriptions import primary_keys
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.sql import sql_name, sql_text
from orderbridge.sources.disk import PRIVATE_FILE, exclude_from_git, private_folder
from orderbridge.sources.errors import UsageError

Columns = dict[str, str]
"""Types by name."""
log = logging.getLogger("orderbridge")
_COMPARED_SCHEMAS: Final = ("raw", "reconciled")
_EXAMPLES_MAX: Final = 20
"""Keys of each kind that a difference names."""
_LAST_RUN: Final = "SELECT run_id, ended_at FROM ops.runs ORDER BY rowid DESC LIMIT 1"
_COLUMNS: Final = """
    SELECT schema_name || '.' || table_name, column_name, data_type FROM duckdb_columns()
    WHERE database_name = $1 AND list_contains($2, schema_name) ORDER BY ALL"""


@dataclass(frozen=True, slots=True)
class Version:
    """A published file.

    Attributes:
        run_id: of the run that published it.
        ended_at: when that run ended; None in a file that does not say so.
    """

    path: Path
    run_id: str
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class TableDiff:
    """What differs between two versions of a table with a key.

    Attributes:
        table: with its schema.
        added: number of keys that only the later version has.
        gone: number of keys that only the earlier one has.
        changed: number of keys that both have, with other values.
        columns: how many of these have another value, by column, the most first.
        examples: the first keys of each kind, by `added`, `gone` and `changed`.
        is_new: the earlier version has no such table.
        is_dropped: the later version has none.
    """

    table: str
    added: int = 0
    gone: int = 0
    changed: int = 0
    columns: dict[str, int] | None = None
    examples: dict[str, list[str]] | None = None
    is_new: bool = False
    is_dropped: bool = False

    @property
    def is_difference(self) -> bool:
        """Whether anything differs."""
        return bool(self.added or self.gone or self.changed or self.is_new or self.is_dropped)


def keep_version(path: Path, count: int) -> None:
    """Keeps the published file beside it before a run replaces it, and removes versions beyond the newest ones.

    A version that cannot be kept is a warning: it must not stop the new one.

    Args:
        path: of the warehouse.
        count: how many earlier versions stay.
    """
    if not path.is_file():
        return
    folder = _folder(path)
    try:
        private_folder(folder)
        exclude_from_git(folder)
        kept = folder / f"{_version(path).run_id}.duckdb"
        if not kept.exists():
            _link(path, kept)
        for old in sorted(folder.glob("*.duckdb"))[:-count]:
            old.unlink()
    except (OSError, UsageError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        log.warning("the earlier version of %s is not kept in %s: %s", path.name, folder, reason)


def _link(path: Path, kept: Path) -> None:
    with suppress(OSError):  # not every file system has hard links
        os.link(path, kept)
        return
    partial = kept.with_suffix(".partial")
    shutil.copyfile(path, partial)
    partial.chmod(PRIVATE_FILE)
    partial.replace(kept)


def kept_versions(path: Path) -> list[Version]:
    """The versions of a warehouse, the oldest first and the published one last; damaged ones are left out.

    Raises:
        UsageError: the published one cannot be read.
    """
    published = _version(path)
    kept: list[Version] = []
    for file in sorted(_folder(path).glob("*.duckdb")):
        try:
            kept.append(_version(file))
        except UsageError as error:
            log.warning("a kept version is left out: %s", error.message)
    return [*(one for one in kept if one.run_id != published.run_id), published]


def _folder(path: Path) -> Path:
    return path.parent / f"{path.stem}-versions"


def _version(path: Path) -> Version:
    """Raises UsageError, see `open_warehouse`."""
    with open_warehouse(path) as warehouse:
        row = warehouse.execute(_LAST_RUN).fetchone()
    return Version(path, path.stem, None) if row is None else Version(path, *row)


def find_version(versions: list[Version], run: str) -> Version:
    """The version of a run, by its id or the beginning of it. Raises UsageError."""
    found = [version for version in versions if version.run_id.startswith(run)]
    if len(found) != 1:
        known = ", ".join(version.run_id for version in versions)
        what = "no version" if not found else "several versions"
        raise UsageError(f"{what} of run {run}", f"These are kept: {known}")
    return found[0]


def compare_versions(before: Version, after: Version) -> list[TableDiff]:
    """What differs, by table of `raw` and `reconciled` that has a key; tables without a difference are left out.

    Columns of bookkeeping, such as `_last_seen_at`, are not compared.

    Raises:
        UsageError: one of the files cannot be read.
    """
    with _both(before.path, after.path) as connection:
        earlier, later = (_tables(connection, name) for name in ("earlier", "later"))
        found = [
            _compare(connection, table, earlier.get(table), later.get(table))
            for table in sorted(earlier.keys() | later.keys())
        ]
    return [one for one in found if one.is_difference]


@contextmanager
def _both(before: Path, after: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        for name, path in (("earlier", before), ("later", after)):
            open_warehouse(path).close()  # raises where it is not one of ours
            connection.execute(f"ATTACH {sql_text(path)} AS {name} (READ_ONLY)")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def _tables(connection: duckdb.DuckDBPyConnection, catalog: str) -> dict[str, Columns]:
    """The columns of each table that has a key, without those of bookkeeping."""
    tables: dict[str, Columns] = {}
    for table, column, kind in connection.execute(
        _COLUMNS, [catalog, list(_COMPARED_SCHEMAS)]
    ).fetchall():
        if primary_keys(*table.split(".")) and not column.startswith("_"):
            tables.setdefault(table, {})[column] = kind
    return tables


def _compare(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    earlier: Columns | None,
    later: Columns | None,
) -> TableDiff:
    if earlier is None or later is None:
        return TableDiff(table, is_new=earlier is None, is_dropped=later is None)
    (key,) = primary_keys(*table.split("."))
    compared = [name for name in later if name in earlier and name != key]
    differs = [_differs(name, is_same_kind=earlier[name] == later[name]) for name in compared]
    is_in_both = "a._key IS NOT NULL AND b._key IS NOT NULL"
    conditions = {
        "added": "a._key IS NULL",
        "gone": "b._key IS NULL",
        "changed": f"{is_in_both} AND ({' OR '.join(differs) or 'false'})",
    }
    counts = [f"count_if({condition})" for condition in conditions.values()]
    examples = [
        f"min(coalesce(b._key, a._key), {_EXAMPLES_MAX}) FILTER ({condition})"
        for condition in conditions.values()
    ]
    changes = [f"count_if({is_in_both} AND {condition})" for condition in differs]
    before = _keyed_rows("earlier", table, key)
    after = _keyed_rows("later", table, key)
    (row,) = connection.execute(
        f"SELECT [{', '.join(counts)}], [{', '.join(examples)}], [{', '.join(changes)}]::BIGINT[]"
        f" FROM {before} a FULL JOIN {after} b ON a._key = b._key"
    ).fetchall()
    (added, gone, changed), keys, changes_of_columns = row
    by_column = dict(zip(compared, changes_of_columns, strict=True))
    return TableDiff(
        table,
        added,
        gone,
        changed,
        columns=_most_first(by_column),
        examples={kind: ids or [] for kind, ids in zip(conditions, keys, strict=True)},
    )


def _most_first(counts: dict[str, int]) -> dict[str, int]:
    """The counts above 0, the largest first."""
    found = {name: count for name, count in counts.items() if count}
    return dict(sorted(found.items(), key=lambda change: -change[1]))


def _keyed_rows(catalog: str, table: str, key: str) -> str:
    """The rows of a table with their key as text, in SQL."""
    name = sql_name(*table.split("."))
    return f"(SELECT {sql_name(key)}::VARCHAR AS _key, * FROM {catalog}.{name})"


def _differs(column: str, *, is_same_kind: bool) -> str:
    """Whether a column has another value; of a column whose type has changed, as text."""
    name = sql_name(column)
    kind = "" if is_same_kind else "::VARCHAR"
    return f"(a.{name}{kind} IS DISTINCT FROM b.{name}{kind})"
