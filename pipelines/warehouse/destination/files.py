"""A copy of each published version as Parquet files: dlt's destination `filesystem` (a folder, S3, GCS, Azure).

In: the published warehouse, and dlt's settings of the bucket. Out, in the folder `<prefix>` of the bucket:
`<version>/<schema>/<table>.parquet`, and `current.json`, which names the version that counts and its tables. The
pointer is replaced last and at once: a reader who follows it sees the old or the new version, and the version before is
kept for readers who still have it open. In a folder of this machine, all of it is on disk before the pointer names it.
Descriptions and keys are in the metadata of each file's columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from orderbridge.pipelines.warehouse.bi.descriptions import column_comments, primary_keys
from orderbridge.pipelines.warehouse.source import stored_source
from orderbridge.sources.disk import move_file, sync
from orderbridge.sources.errors import PlatformError, UsageError
from orderbridge.sources.settings import DataSource

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem  # type: ignore[import-untyped] # it ships no types

POINTER: Final = "current.json"
_NEW_POINTER: Final = f"{POINTER}.new"
_VERSION: Final = re.compile(r"\d{8}T\d{12}Z")
_HINT: Final = "Name another prefix in WAREHOUSE__DESTINATION_DATASET."


@dataclass(frozen=True, slots=True)
class ParquetStore:
    """The folder of the copy.

    Attributes:
        files: the file system of the bucket.
        folder: the path of `<prefix>` in it.
        is_local: whether it is a folder of this machine.
    """

    files: AbstractFileSystem
    folder: str
    is_local: bool

    def current(self, source: DataSource | None) -> dict[str, Any] | None:
        """The content of the pointer; None if there is no copy yet.

        Args:
            source: whose data is to be copied; None: not compared.

        Raises:
            UsageError: the folder holds files of others, or another source's data; the pointer is damaged.
            FileNotFoundError: the bucket does not exist.
        """
        path = f"{self.folder}/{POINTER}"
        self.files.invalidate_cache()
        if not self.files.exists(path):
            self._check_is_own()
            return None
        content = self.files.cat_file(path)
        try:
            pointer: dict[str, Any] = json.loads(content)
            stored = DataSource(**pointer["source"])
            existing = stored_source(*astuple(stored))
            is_valid = bool(_VERSION.fullmatch(pointer["version"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            is_valid = False
        if not is_valid:
            raise UsageError(
                f"{path} is damaged, or another version of orderbridge wrote it: nothing was touched",
                "Restore it, or delete it if this folder is only for this copy: the next copy writes it again.",
            )
        differences = existing.differences(source) if source is not None else []
        if differences:
            raise UsageError(
                f"the folder {self.folder} holds another source's data: {'; '.join(differences)}",
                _HINT,
            )
        return pointer

    def _check_is_own(self) -> None:
        """Raises UsageError where a folder without a pointer holds other things than versions."""
        if not self.is_local:
            with suppress(PermissionError):  # a key may be allowed to list its own folder only
                self.files.ls(self.folder.lstrip("/").partition("/")[0])
        for name in self._names():
            if not _VERSION.fullmatch(name) and name != _NEW_POINTER:
                raise UsageError(
                    f"the folder {self.folder} holds files that orderbridge did not create: nothing was touched",
                    _HINT,
                )

    def copy(
        self,
        warehouse: duckdb.DuckDBPyConnection,
        tables: Iterable[tuple[str, str]],
        source: DataSource,
    ) -> None:
        """Writes a new version, points to it, and removes those older than the one before.

        Args:
            warehouse: the published one.
            tables: schema and name of each table.
            source: whose data it is.

        Raises:
            UsageError: as `current`.
            PlatformError: another run replaced the pointer since this copy began.
        """
        before = self.current(source)
        version = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z"
        comments = column_comments(warehouse)
        written = {
            f"{schema}.{table}": self._write(
                warehouse, version, schema, table, comments.get((schema, table), {})
            )
            for schema, table in tables
        }
        if self.current(source) != before:
            raise PlatformError(
                f"another run copied to the folder {self.folder} at the same time: its version stays the current one",
                "Give each project a prefix of its own in WAREHOUSE__DESTINATION_DATASET, or run again.",
            )
        self._point({"version": version, "source": asdict(source), "tables": written})
        # A newer one may be the work of another run. This one is the older one where a clock was set back.
        oldest = min(version, before["version"]) if before else ""
        for name in self._names():
            if _VERSION.fullmatch(name) and name < oldest:
                self.files.rm(f"{self.folder}/{name}", recursive=True)

    def _write(
        self,
        warehouse: duckdb.DuckDBPyConnection,
        version: str,
        schema: str,
        table: str,
        comments: Mapping[str, str],
    ) -> dict[str, Any]:
        path = f"{version}/{schema}/{table}.parquet"
        if self.is_local:  # in an object store it would create a missing bucket
            self.files.makedirs(f"{self.folder}/{version}/{schema}", exist_ok=True)
        cursor = warehouse.cursor()
        cursor.execute("SET TimeZone = 'UTC'")
        reader = cursor.sql(f'FROM {schema}."{table}"').to_arrow_reader()
        key = primary_keys(schema, table)
        columns = pa.schema(_described(column, comments, key) for column in reader.schema)
        rows = 0
        with (
            self.files.open(f"{self.folder}/{path}", "wb") as file,
            pq.ParquetWriter(file, columns, compression="zstd") as writer,
        ):
            for batch in reader:
                writer.write_table(pa.Table.from_batches([batch]).cast(columns))
                rows += len(batch)
        self._sync(path)
        return {"path": path, "rows": rows, "primary_key": list(key)}

    def _point(self, pointer: dict[str, Any]) -> None:
        text = json.dumps(pointer, indent=2).encode()
        if self.is_local:  # a rename is atomic there, and in an object store a put
            self.files.pipe_file(f"{self.folder}/{_NEW_POINTER}", text)
            move_file(Path(self.folder, _NEW_POINTER), Path(self.folder, POINTER))
        else:
            self.files.pipe_file(f"{self.folder}/{POINTER}", text)

    def _sync(self, path: str) -> None:
        """Flushes a file of the folder, and the folders that name it, to the disk; an object store does so itself."""
        if self.is_local:
            for entry in (Path(path), *Path(path).parents):  # the last is the folder itself
                sync(Path(self.folder, entry))
            sync(Path(self.folder).parent)

    def _names(self) -> list[str]:
        if not self.files.exists(self.folder):
            return []
        return [
            path.rstrip("/").rpartition("/")[2] for path in self.files.ls(self.folder, detail=False)
        ]


def _described(column: pa.Field, comments: Mapping[str, str], key: Sequence[str]) -> pa.Field:
    """A column with its description, and whether it is part of the key, in its metadata."""
    metadata = {}
    if column.name in comments:
        metadata["description"] = comments[column.name]
    if column.name in key:
        metadata["primary_key"] = "true"
    return column.with_metadata(metadata)
