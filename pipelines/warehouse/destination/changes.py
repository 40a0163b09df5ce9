"""Which rows of a table changed since its last copy: only these are sent.

In: the published warehouse, and the notes of the last copy in a hidden folder next to it: for each table, a hash of the
rows of each key, in a file named after the copy, the table and its columns. Out: the rows to send, and the notes of
this copy. Where the destination holds another copy (it missed one, or another machine made it), all rows are sent.

`_run_id` and `_last_seen_at` change in each row that a run reads. They are no content: at the destination they move
from run to run in one statement, and a row that does not move as most rows of its run is sent.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from orderbridge.pipelines.warehouse.bi.descriptions import primary_keys
from orderbridge.pipelines.warehouse.sql import sql_name
from orderbridge.sources.disk import exclude_from_git, private_folder

REMOVED: Final = "_orderbridge_removed"
"""The column that marks keys without rows."""
_STAMPS: Final = ("_run_id", "_last_seen_at")
_BETWEEN: Final = "\x1f"
"""Between the stamps of a row in one text."""
_NOTE: Final = """
    SELECT {key}, CASE WHEN min({stamps}) = max({stamps}) THEN max({stamps}) END AS _stamps,
        sum(hash({content})) + CASE WHEN _stamps IS NULL THEN sum(hash({stamps})) ELSE 0 END AS _sum,
        (_sum % 9223372036854775807)::BIGINT AS _hash
    FROM {table} GROUP BY {key}"""
"""Stamps that differ within a key are content. The hash is signed: DuckDB 1.5 has Arrow compare signed numbers."""
_MOVES: Final = """
    SELECT o._stamps AS before, n._stamps AS after FROM current n JOIN noted o USING ({key})
    WHERE n._hash = o._hash AND n._stamps <> '' AND o._stamps <> ''
    GROUP BY before, after QUALIFY row_number() OVER (PARTITION BY before ORDER BY count(*) DESC, after) = 1"""
_CHANGED: Final = f"""
    SELECT {{key}}, n._hash IS NULL AS {REMOVED}
    FROM current n FULL JOIN noted o USING ({{key}}) LEFT JOIN moves m ON m.before = o._stamps
    WHERE n._hash IS DISTINCT FROM o._hash OR n._stamps IS DISTINCT FROM coalesce(m.after, o._stamps)"""
_ROWS: Final = f"""
    SELECT *, false AS {REMOVED} FROM {{table}} SEMI JOIN changed USING ({{key}})
    UNION ALL BY NAME SELECT * FROM changed WHERE {REMOVED}"""


@dataclass(frozen=True, slots=True)
class TableChanges:
    """What is to be sent of one table.

    Attributes:
        schema, name: of the table.
        key: the columns by which rows are replaced.
        changed: the keys whose rows are to be sent, and those without rows, which `REMOVED` marks; None: all rows are.
        stamps: the columns that move.
        moves: their values as text, before and after.
    """

    schema: str
    name: str
    key: tuple[str, ...] = ()
    changed: pa.Table | None = None
    stamps: tuple[str, ...] = ()
    moves: Sequence[Sequence[str]] = ()

    @property
    def quoted(self) -> str:
        """The quoted name of the table."""
        return sql_name(self.schema, self.name)

    @property
    def is_sent(self) -> bool:
        """Whether there are rows to send, or all are."""
        return self.changed is None or len(self.changed) > 0

    def rows(self, warehouse: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """The rows to send."""
        if self.changed is None:
            return warehouse.sql(f"FROM {self.quoted}")
        warehouse.register("changed", self.changed)
        return warehouse.sql(_ROWS.format(table=self.quoted, key=_names(self.key)))


class CopyNotes:
    """The notes of the last copy, and those of the one that is being made.

    Args:
        path: of the warehouse.
        folder: of the copy that is being made.

    Attributes:
        copy_id: of this copy.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.copy_id = uuid4().hex
        self._kept = path.with_name(f".{path.name}.copied")
        self._new = folder / "notes"
        private_folder(self._new)
        exclude_from_git(self._new)
        # what a copy of version 0.3 left that was killed
        shutil.rmtree(path.with_name(f".{path.name}.copying"), ignore_errors=True)

    def changes(
        self, warehouse: duckdb.DuckDBPyConnection, schema: str, table: str, copied: str | None
    ) -> TableChanges:
        """Compares a table with its note, and writes a new one.

        Args:
            warehouse: the published one.
            schema: of the table.
            table: its name.
            copied: the copy that the destination holds; None: it has none, or not this table.
        """
        name = sql_name(schema, table)
        described = warehouse.execute(f"DESCRIBE {name}").fetchall()
        columns = {column: kind for column, kind, *_ in described}
        stamps = tuple(column for column in _STAMPS if column in columns)
        key = primary_keys(schema, table) or _likely_key(columns)
        content = [column for column in columns if column not in (*key, *stamps)] or key
        # A note is of one table with these columns, in one copy.
        note = self._new / _note_name(self.copy_id, name, columns)
        last = self._kept / _note_name(copied, name, columns)
        sql = _NOTE.format(
            key=_names(key), content=_names(content), stamps=_text_of(stamps), table=name
        )
        with warehouse.cursor() as cursor:
            cursor.execute("SET TimeZone = 'UTC'")
            reader = cursor.sql(f"SELECT * EXCLUDE (_sum) FROM ({sql})").to_arrow_reader()
            with pq.ParquetWriter(note, reader.schema, compression="zstd") as writer:
                for batch in reader:
                    writer.write_batch(batch)
            if not last.exists():
                return TableChanges(schema, table)
            import pyarrow.dataset as ds  # which imports pandas: half a second of a pull without a copy

            cursor.register("current", ds.dataset(note))
            cursor.register("noted", ds.dataset(last))
            if _has_null(cursor, "current", key) or _has_null(cursor, "noted", key):
                return TableChanges(schema, table)
            moves = cursor.sql(_MOVES.format(key=_names(key))).to_arrow_table()
            cursor.register("moves", moves)
            changed = cursor.sql(_CHANGED.format(key=_names(key))).to_arrow_table()
        moved = [
            [*row["before"].split(_BETWEEN), *row["after"].split(_BETWEEN)]
            for row in moves.to_pylist()
            if row["before"] != row["after"]
        ]
        return TableChanges(schema, table, key, changed, stamps, moved)

    def keep(self) -> None:
        """Makes these the notes of the last copy."""
        self.forget()
        self._new.rename(self._kept)

    def forget(self) -> None:
        """Removes the notes of the last copy: all rows are sent."""
        shutil.rmtree(self._kept, ignore_errors=True)


def _names(columns: Iterable[str]) -> str:
    return ", ".join(map(sql_name, columns))


def _likely_key(columns: Mapping[str, str]) -> tuple[str, ...]:
    """The first column of ids, or else the first one, of a table whose key is not described."""
    ids = [column for column in columns if column.endswith("_id") and column not in _STAMPS]
    return (ids[0] if ids else next(iter(columns)),)


def _note_name(copy_id: str | None, table: str, columns: Mapping[str, str]) -> str:
    return sha256(json.dumps([copy_id, table, columns]).encode()).hexdigest()


def _text_of(stamps: Iterable[str]) -> str:
    """The stamps of a row as one text, in SQL."""
    texts = [f"{column}::VARCHAR" for column in stamps]
    return f"({' || chr(31) || '.join(texts)})" if texts else "('')"


def _has_null(cursor: duckdb.DuckDBPyConnection, view: str, key: Iterable[str]) -> bool:
    """Whether a row has no key: it cannot be found at the destination."""
    condition = " OR ".join(f"{column} IS NULL" for column in map(sql_name, key))
    return bool(cursor.execute(f"FROM {view} WHERE {condition} LIMIT 1").fetchall())
