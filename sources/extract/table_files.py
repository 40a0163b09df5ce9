"""Parquet files of tables that arrive in batches: each batch is a row group, so that it can be read alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TableFile = tuple[Path, int]
"""A Parquet file and its rows."""


class TableFiles:
    """Parquet files that are being written.

    Args:
        folder: for the files.
        label: part of their names.
        version: of the inferred types that the tables have.
    """

    def __init__(self, folder: Path, label: str, version: int) -> None:
        self.version = version
        self._folder = folder
        self._label = label
        self._groups = 0
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._paths: dict[str, Path] = {}

    def add(self, tables: Mapping[str, pa.Table]) -> int:
        """Writes the tables of one batch; returns the number of their row group."""
        for name, table in tables.items():
            if name not in self._writers:
                self._writers[name] = self._writer(name, table)
            self._writers[name].write_table(table, row_group_size=max(table.num_rows, 1))
        self._groups += 1
        return self._groups - 1

    def _writer(self, name: str, table: pa.Table) -> pq.ParquetWriter:
        # By number: the name of a table may be longer than that of a file.
        path = self._folder / f"{len(self._paths)}-{self._label}.parquet"
        self._paths[name] = path
        # A dictionary of the first column, whose values are nearly unique, would be larger than they are.
        return pq.ParquetWriter(
            path,
            table.schema,
            compression="lz4",
            write_statistics=False,
            use_dictionary=table.column_names[1:],
        )

    def close(self) -> dict[str, TableFile]:
        """Closes the files and returns them by table."""
        for writer in self._writers.values():
            writer.close()
        return {name: (path, pq.read_metadata(path).num_rows) for name, path in self._paths.items()}

    def read(self, group: int) -> dict[str, pa.Table]:
        """The tables of one batch, once the files are closed."""
        tables = {}
        for name, path in self._paths.items():
            with pq.ParquetFile(path) as file:
                tables[name] = file.read_row_group(group)
        return tables


def read_batches(files: Iterable[TableFile]) -> Iterator[pa.Table]:
    """The rows of a table, one batch of pages at a time: memory does not grow with the list."""
    for path, _ in files:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group)
