"""Parquet files, one per table: each batch of pages becomes a row group of each of them.

Few files, since each one costs dlt a job; row groups, so that a batch can be copied or replaced by itself.
"""

from __future__ import annotations

from collections import Counter
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
        self._folder, self._label = folder, label
        self._groups = 0
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._paths: dict[str, Path] = {}
        self._rows: Counter[str] = Counter()

    def add(self, tables: Mapping[str, pa.Table]) -> int:
        """Writes the tables of one batch; returns the number of their row group."""
        for name, table in tables.items():
            if name not in self._writers:
                # By number: the name of a table may be longer than that of a file.
                self._paths[name] = self._folder / f"{len(self._paths)}-{self._label}.parquet"
                # A dictionary of the first column, whose values are nearly unique, would be larger than they are.
                self._writers[name] = pq.ParquetWriter(
                    self._paths[name],
                    table.schema,
                    compression="lz4",
                    write_statistics=False,
                    use_dictionary=table.column_names[1:],
                )
            self._writers[name].write_table(table, row_group_size=max(table.num_rows, 1))
            self._rows[name] += table.num_rows
        self._groups += 1
        return self._groups - 1

    def close(self) -> dict[str, TableFile]:
        """Closes the files and returns them by table."""
        for writer in self._writers.values():
            writer.close()
        return {name: (self._paths[name], self._rows[name]) for name in self._writers}

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
