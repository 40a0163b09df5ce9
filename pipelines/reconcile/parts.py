"""Tables of any length, worked on in parts of bounded size.

In: the tables of a build, and pure functions of a part (frame in, `Part` out). Out: Parquet files next to the build,
with a row for each row of the source, in its order, which DuckDB then joins to the source by position: columns that no
rule reads never enter a frame. Findings go to a file of their own. Parts are mapped over by `map`, or by a cluster.

Files, and not temporary tables: where a transaction has inserted over 122,880 rows into a table of its own, DuckDB
2.0.0 drops all of them at the next small insert (seen with two threads and rows from Arrow or Parquet).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from orderbridge.pipelines.warehouse.sql import columns_of, sql_name, sql_text
from orderbridge.sources.contract import LISTS
from orderbridge.transforms.findings import (
    FINDINGS,
    VALUES,
    Part,
    UniqueValues,
    shared_value_findings,
)
from orderbridge.transforms.frames import Schema, from_arrow, to_arrow
from orderbridge.transforms.orders.columns import money

PART_ROWS: Final = 100_000
"""So many rows take about 100 MB in frames."""
Mapper = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""`map`, or that of a cluster: results in the order of the arguments, few of which are read ahead."""


BLANK_ID: Final = (
    r"(id IS NULL OR (id < '!' OR id > '~') AND regexp_full_match(id, '[\pZ\t-\r\x1c-\x1f\x85]*'))"
)
"""Of a row of a list (SQL), as versions before 0.3 loaded it: of whitespace alone."""


class RowFile:
    """A Parquet file of rows that are added part by part."""

    def __init__(self, folder: Path, schema: Schema) -> None:
        self._schema = schema
        # DuckDB keeps what it knows of a file by its name
        self._path = folder / f"{uuid4().hex}.parquet"
        self._writer = pq.ParquetWriter(
            self._path, pa.schema(list(schema.items())), compression="lz4"
        )

    def add(self, rows: pd.DataFrame) -> None:
        """Adds the columns of the schema."""
        self._writer.write_table(to_arrow(rows, self._schema), max(len(rows), 1))

    def written(self) -> str:
        """Completes the file. Returns how DuckDB reads it, in the order of the rows."""
        self._writer.close()
        return f"read_parquet({sql_text(self._path)})"


class Findings(RowFile):
    """The findings of a run (the columns of `FINDINGS`), in a file until all are known.

    Attributes:
        count: of all findings.
        errors: of those of severity `error`.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, FINDINGS)
        self.count = self.errors = 0

    def add(self, rows: pd.DataFrame) -> None:
        """Adds findings."""
        if len(rows):
            self.count += len(rows)
            self.errors += int((rows["severity"] == "error").sum())
            super().add(rows)


def folder_of(build: duckdb.DuckDBPyConnection) -> Path:
    """The folder of the file of a build, which ends with the run."""
    ((file,),) = build.execute(_FILE).fetchall()
    return Path(file).parent


_FILE: Final = "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"


@dataclass(frozen=True, slots=True)
class Parts:
    """Reads and writes the parts of tables of a build, which is open for writing.

    Attributes:
        build: with the tables.
        findings: what is found.
        map_tasks: maps a function over parts.
        blank: by list, how many of its raw rows have a `BLANK_ID`: see `blank_rows`.
    """

    build: duckdb.DuckDBPyConnection
    findings: Findings
    map_tasks: Mapper = map
    blank: dict[str, int] = field(default_factory=dict)

    def blank_rows(self, name: str) -> int:
        """How many rows of a raw table have a `BLANK_ID`; only lists are searched, each once."""
        if name in LISTS and name not in self.blank:
            ((self.blank[name],),) = self.build.execute(
                f"SELECT count(*) FROM raw.{name} WHERE {BLANK_ID}"
            ).fetchall()
        return self.blank.get(name, 0)

    def numbered(self, name: str) -> str:
        """A raw table whose rows DuckDB numbers without gaps, or a copy that has such numbers.

        A column of the name `rowid` hides them: it is `raw_rowid` in the copy. Rows with a `BLANK_ID` are left
        out.
        """
        table = f"raw.{name}"
        hiding = [column for column in columns_of(self.build, table) if column.lower() == "rowid"]
        blank = self.blank_rows(name)
        if not hiding and not blank:
            first, end, count = self._rows(table)
            if end - first == count:
                return table
        kept = f"{table} WHERE NOT {BLANK_ID}" if blank else table
        columns = "* RENAME (rowid AS raw_rowid)" if hiding else "*"
        self.build.execute(
            f"CREATE OR REPLACE TEMP TABLE {name}_numbered AS SELECT {columns} FROM {kept}"
        )
        return f"temp.{name}_numbered"

    def read(self, columns: Mapping[str, str]) -> Iterator[pd.DataFrame]:
        """The columns (SQL) of tables without gaps, side by side and in their order, in at least one part.

        Each table has a row for each one of the first.
        """
        bounds = {table: self._rows(table) for table in columns}
        *_, count = next(iter(bounds.values()))
        for done in range(0, max(count, 1), PART_ROWS):
            sides = (
                f"(SELECT {columns[table]} FROM {table} "
                f"WHERE rowid >= {first + done} AND rowid < {first + done + PART_ROWS})"
                for table, (first, *_) in bounds.items()
            )
            yield from_arrow(
                self.build.sql(f"FROM {' POSITIONAL JOIN '.join(sides)}").to_arrow_table()
            )

    def numbers(self, table: str, name: str, alias: str) -> str:
        """The amounts of a column of a table (SQL). Texts are read as all of them together prove their notation.

        Args:
            table: with its schema.
            name: of the column.
            alias: of the table in the query.
        """
        column = sql_name(name)
        value = f"{alias}.{column}"
        if columns_of(self.build, table)[name] != "VARCHAR":
            return f"try_cast({value} AS DECIMAL(38, 9))"
        texts = self.build.sql(f"SELECT DISTINCT {column} AS written FROM {table}")
        rows = from_arrow(texts.to_arrow_table())
        read = sql_name(f"amounts of {table}.{name}")
        with self.given("read_amounts", rows.assign(amount=money(rows["written"]))):
            self.build.execute(f"CREATE OR REPLACE TEMP TABLE {read} AS FROM read_amounts")
        return f"(SELECT r.amount FROM {read} r WHERE r.written = {value})"

    @contextmanager
    def given(self, name: str, rows: pd.DataFrame) -> Iterator[None]:
        """A frame as a view of the build."""
        self.build.register(name, pa.Table.from_pandas(rows, preserve_index=False))
        yield
        self.build.unregister(name)

    def fill(
        self, schema: Schema, task: Callable[[Any], Part], frames: Iterable[Any]
    ) -> tuple[str, Counter[str]]:
        """Writes what a task makes of frames as one file, and keeps its findings.

        Returns:
            How DuckDB reads the file; the counts of all parts.
        """
        counts: Counter[str] = Counter()
        file, values = (RowFile(folder_of(self.build), columns) for columns in (schema, VALUES))
        for part in self.map_tasks(task, frames):
            file.add(part.table)
            self.findings.add(part.findings)
            counts.update(part.counts)
            if part.values is not None:
                values.add(part.values)
        shared = from_arrow(
            self.build.sql(_SHARED.format(values=values.written())).to_arrow_table()
        )
        for rule, of_rule in shared.groupby("rule"):
            same = UniqueValues(of_rule["id"], of_rule["value"], of_rule["value"].notna())
            self.findings.add(shared_value_findings("customers", str(rule), same))
        return file.written(), counts

    def _rows(self, table: str) -> tuple[int, int, int]:
        """The number of the first row, the one after the last, and how many there are."""
        ((first, last, count),) = self.build.execute(
            f"SELECT min(rowid), max(rowid), count(*) FROM {table}"
        ).fetchall()
        return (first, last + 1, count) if count else (0, 0, 0)


_SHARED: Final = """
    FROM {values}
    WHERE hash(rule, value) IN (SELECT hash(rule, value) FROM {values} GROUP BY ALL HAVING count(*) > 1)
    ORDER BY rule, id"""
"""A value that only shares its hash with another one makes no finding: see `shared_value_findings`."""
