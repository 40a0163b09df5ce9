"""The match with the ERP: tables and lines out to Parquet, matched in buckets, the result into the build.

In: a build with the reconciled customers, and the ERP's lines. Out: its tables of the match. DuckDB writes and reads
the Parquet files. A task holds one piece of a file or one bucket in memory, here or on a cluster; a small match is one
bucket. What has to be known of the match as a whole is narrow: hashes of keys with the homes that they connect, and
the codes that have no match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from pipelines.reconcile.buckets import hash_texts, read_bucket, write_buckets, write_groups
from pipelines.reconcile.parts import Mapper, folder_of
from pipelines.warehouse.sql import sql_text
from sources.disk import PRIVATE_FOLDER
from transforms.erp.components import buckets, components, row_homes
from transforms.erp.findings import missing_customer_findings
from transforms.erp.match import REVIEWED, match_part, reviewed_lines
from transforms.erp.match_keys import MATCH_KEYS, Hashes, hash_keys, key_values
from transforms.erp.tables import (
    DIFFERENCES,
    ERP_CUSTOMERS,
    ERP_DIFFERENCES,
    ERP_FIELDS,
    ERP_PAIRS,
    PLATFORM_CUSTOMERS,
    PLATFORM_DOCUMENTS,
)
from transforms.findings import combine_findings
from transforms.frames import BIGINT, TEXT, Ints, Schema, array, from_arrow, to_arrow

ROWS_PER_GROUP: Final = 100_000
"""Of the row groups of input files."""
GROUPS_PER_PIECE: Final = 4
ROWS_PER_BUCKET: Final = 400_000
"""Lines, customers and documents together. A worker takes about a kilobyte for each row of a piece or bucket."""
OWNER_KEYS: Final = {f"owner_{key}": TEXT for key in MATCH_KEYS if key in PLATFORM_CUSTOMERS}
"""Columns of documents: the keys of their customer, whose bucket they share."""


_CUSTOMERS: Final = f"SELECT {', '.join(PLATFORM_CUSTOMERS)} FROM reconciled.customers WHERE NOT is_missing"
_DOCUMENTS: Final = f"""
    SELECT {", ".join(f"d.{name}" for name in PLATFORM_DOCUMENTS)},
        {", ".join(f"c.{name.removeprefix('owner_')} AS {name}" for name in OWNER_KEYS)}
    FROM raw.customers__documents d JOIN reconciled.customers c USING (customer_id) WHERE NOT c.is_missing"""
_MISSING_CODES: Final = "SELECT erp_code FROM reconciled.customers WHERE is_missing"
_ORDERS: Final = {
    "erp_customers": (ERP_CUSTOMERS, "line NULLS LAST, customer_id"),
    "erp_pairs": (ERP_PAIRS, "line, customer_id"),
    "erp_differences": (ERP_DIFFERENCES, f"line, list_position({list(ERP_FIELDS)}, field)"),
}


@dataclass(frozen=True, slots=True)
class Piece:
    """Row groups of an input file, from `first` to before `end`; `side` is `lines`, `customers` or `documents`."""

    side: str
    first: int
    end: int

    @property
    def name(self) -> str:
        """Of its files."""
        return f"-{self.side}-{self.first}"


@dataclass(frozen=True, slots=True)
class MatchJob:
    """A match of files.

    Attributes:
        folder: of all files; before the match it has one of each side: `lines.parquet` …
        fields: the fields of the lines.
        country: see `transforms.erp.match.match_part`.
        buckets: number of buckets.
    """

    folder: Path
    fields: tuple[str, ...]
    country: str | None
    buckets: int

    @property
    def schemas(self) -> dict[str, Schema]:
        """The columns of the input files."""
        return {
            "lines": {"_line": BIGINT, **dict.fromkeys(self.fields, TEXT)},
            "customers": PLATFORM_CUSTOMERS,
            "documents": {**PLATFORM_DOCUMENTS, **OWNER_KEYS},
        }

    @property
    def key_columns(self) -> dict[str, dict[str, str]]:
        """The columns of each side with a key that the lines have, by key."""
        keys = {key: key for key in MATCH_KEYS if key in self.fields}
        return {
            "lines": keys,
            "customers": {key: key for key in keys if key in PLATFORM_CUSTOMERS},
            "documents": {key: "number" for key in keys if key not in PLATFORM_CUSTOMERS},
        }

    def file(self, name: str, part: object = "") -> Path:
        """A file of the folder, or a part of it."""
        return self.folder / f"{name}{part}.parquet"

    def pieces(self) -> list[Piece]:
        """The pieces of all input files, at least one of each."""
        counts = {side: pq.read_metadata(self.file(side)).num_row_groups for side in self.schemas}
        return [
            Piece(side, first, min(first + GROUPS_PER_PIECE, count))
            for side, count in counts.items()
            for first in range(0, max(count, 1), GROUPS_PER_PIECE)
        ]


def match_lines(
    build: duckdb.DuckDBPyConnection,
    lines: pd.DataFrame,
    country: str | None,
    map_tasks: Mapper = map,
    reviews: pd.DataFrame | None = None,
) -> tuple[pd.DataFrame, int]:
    """Makes `reconciled.erp_customers`, `.erp_pairs` and `.erp_differences` from the lines of the ERP's file.

    Args:
        build: open for writing, with the reconciled customers and raw documents.
        lines: see `transforms.erp.match.match_part`.
        country: see there.
        map_tasks: maps tasks.
        reviews: the columns of `transforms.erp.match.REVIEWS`.

    Returns:
        The findings, and the number of repeated lines.
    """
    folder = folder_of(build) / "match"
    folder.mkdir(PRIVATE_FOLDER)
    rows = len(lines)
    for side, sql in (("customers", _CUSTOMERS), ("documents", _DOCUMENTS)):
        target = f"{sql_text(folder / f'{side}.parquet')} (FORMAT parquet, ROW_GROUP_SIZE {ROWS_PER_GROUP})"
        ((count,),) = build.execute(f"COPY ({sql}) TO {target}").fetchall()
        rows += count
    job = MatchJob(folder, tuple(name for name in ERP_FIELDS if name in lines), country, rows // ROWS_PER_BUCKET + 1)
    pq.write_table(to_arrow(lines, job.schemas["lines"]), job.file("lines"), ROWS_PER_GROUP)
    pq.write_table(to_arrow(reviewed_lines(lines, reviews), REVIEWED), job.file("reviewed"))
    missing_codes = from_arrow(build.sql(_MISSING_CODES).to_arrow_table())["erp_code"]
    result = match_files(job, missing_codes, map_tasks)
    for table, (columns, order) in _ORDERS.items():
        build.execute(
            f"CREATE OR REPLACE TABLE reconciled.{table} AS SELECT {', '.join(columns)} "
            f"FROM read_parquet({sql_text(folder / f'{table}-*.parquet')}) ORDER BY {order}"
        )
    return result


def match_files(job: MatchJob, missing_codes: pd.Series[str], map_tasks: Mapper) -> tuple[pd.DataFrame, int]:
    """Matches the input files and writes the tables: the columns of `ERP_CUSTOMERS`; of `ERP_DIFFERENCES`, and `line`.

    `missing_codes` are ERP codes of customers that went missing; `map_tasks` maps the tasks over pieces or buckets.

    Returns:
        The findings, and the number of repeated lines.
    """
    pieces, numbers = job.pieces(), range(job.buckets)
    if job.buckets > 1:
        hashes, homes, of_rows = zip(*map_tasks(partial(read_homes, job), pieces), strict=True)
        roots = components(np.concatenate(hashes), np.concatenate(homes))
        of_pieces = [buckets(one, roots, job.buckets) for one in of_rows]
        list(map_tasks(partial(write_match_rows, job), zip(pieces, of_pieces, strict=True)))
    findings, repeated, codes = zip(*map_tasks(partial(match_bucket, job, pieces), numbers), strict=True)
    return combine_findings([*findings, missing_customer_findings(pd.concat(codes), missing_codes)]), sum(repeated)


def read_homes(job: MatchJob, piece: Piece) -> tuple[Hashes, Hashes, Hashes]:
    """Task: the hashes of all keys of a piece, the home of the row that has each, and the home of each row."""
    rows, columns = _read(job, piece), job.key_columns
    hashes = hash_keys(key_values(rows, columns[piece.side]), hash_texts)
    if piece.side == "lines":
        homes = row_homes(rows, hashes.values(), job.fields, hash_texts)
    else:
        owner = "owner_" if piece.side == "documents" else ""
        keys = key_values(rows, {key: owner + name for key, name in columns["customers"].items()})
        homes = row_homes(rows, hash_keys(keys, hash_texts).values(), ["customer_id"], hash_texts)
    if piece.side != "documents":  # an accepted pair may have no key in common any more
        reviewed = from_arrow(pq.read_table(job.file("reviewed")))
        name = "_line" if piece.side == "lines" else "customer_id"
        accepted = reviewed[reviewed["is_accepted"] & reviewed[name].isin(rows[name])].reset_index(drop=True)
        at = pd.Index(rows[name]).get_indexer(accepted[name])
        hashes["reviewed"] = pd.Series(hash_texts(array(accepted["customer_id"])), at)
    keys_of_rows = pd.concat([pd.Series([], dtype=np.uint64), *hashes.values()])
    return keys_of_rows.to_numpy(np.uint64), homes[keys_of_rows.index.to_numpy(np.int64)], homes


def write_match_rows(job: MatchJob, task: tuple[Piece, Ints]) -> None:
    """Task: writes the rows of a piece, by bucket."""
    piece, numbers = task
    write_buckets(job.file("rows", piece.name), _read(job, piece), numbers, job.buckets)


def match_bucket(job: MatchJob, pieces: Sequence[Piece], bucket: int) -> tuple[pd.DataFrame, int, pd.Series[str]]:
    """Task: matches the rows of a bucket, and writes its tables. The rest is returned: see `PartialMatch`."""
    lines, customers, documents = (_read_side(job, pieces, side, bucket) for side in job.schemas)
    reviewed = from_arrow(pq.read_table(job.file("reviewed")))
    part = match_part(lines, customers, documents, hash_texts, job.country, reviewed)
    write_groups(job.file("erp_customers-", bucket), [to_arrow(part.customers, ERP_CUSTOMERS)])
    write_groups(job.file("erp_pairs-", bucket), [to_arrow(part.pairs, ERP_PAIRS)])
    write_groups(job.file("erp_differences-", bucket), [to_arrow(part.differences, DIFFERENCES)])
    return part.findings, part.repeated, part.unmatched


def _read(job: MatchJob, piece: Piece) -> pd.DataFrame:
    with pq.ParquetFile(job.file(piece.side)) as file:
        return from_arrow(file.read_row_groups(range(piece.first, piece.end)))


def _read_side(job: MatchJob, pieces: Sequence[Piece], side: str, bucket: int) -> pd.DataFrame:
    """The rows of a side in a bucket."""
    if job.buckets == 1:
        return from_arrow(pq.read_table(job.file(side)))
    return read_bucket((job.file("rows", piece.name) for piece in pieces if piece.side == side), bucket)
