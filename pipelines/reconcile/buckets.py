"""Parquet files whose row groups are buckets: what the tasks of the match read and write.

In: frames, and the bucket of each row. Out: a file with a row group for each bucket; a bucket's rows from many files.
A file is written under another name and renamed, since a cluster may run a task twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, pairwise
from pathlib import Path
from uuid import uuid4

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from transforms.erp.match_keys import Hashes
from transforms.frames import Ints, from_arrow


def hash_texts(texts: pa.Array) -> Hashes:
    """The hash of each text, by DuckDB: a million take 0.02 s."""
    with duckdb.cursor() as connection:  # a database of its own would take as long as a million hashes
        connection.register("texts", pa.table({"text": texts}))
        hashes: Hashes = connection.sql("SELECT hash(text) AS hash FROM texts").fetchnumpy()["hash"]
    return hashes


def write_buckets(path: Path, rows: pd.DataFrame, numbers: Ints, count: int) -> None:
    """Writes rows with a row group for each of `count` buckets; `numbers` has the bucket of each row."""
    order = np.argsort(numbers, kind="stable")
    table = pa.Table.from_pandas(rows, preserve_index=False).take(order)
    ends = np.searchsorted(numbers[order], np.arange(count + 1))
    write_groups(path, (table.slice(begin, end - begin) for begin, end in pairwise(ends)))


def read_bucket(paths: Iterable[Path], bucket: int) -> pd.DataFrame:
    """The rows of a bucket in files of `write_buckets`."""
    tables = []
    for path in paths:
        with pq.ParquetFile(path) as file:
            tables.append(file.read_row_group(bucket))
    return from_arrow(pa.concat_tables(tables))


def write_groups(path: Path, groups: Iterable[pa.Table]) -> None:
    """Writes a file with these row groups, at least one."""
    groups = iter(groups)
    first = next(groups)
    temporary = path.with_suffix(f".{uuid4().hex}")
    with pq.ParquetWriter(temporary, first.schema, compression="lz4") as writer:
        for group in chain([first], groups):
            writer.write_table(group, max(len(group), 1))
    temporary.replace(path)
