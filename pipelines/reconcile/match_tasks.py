"""The match with the ERP in buckets: tasks that read and write Parquet, here or on the workers of a cluster.

In: a Parquet file each of lines, customers and documents. Out: Parquet files of `erp_customers` and `erp_differences`,
one for each bucket; findings and counts are returned. A task holds one piece of a file or one bucket in memory. What
has to be known of the match as a whole is narrow: which homes a key connects, and the codes that have no match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.reconcile.buckets import Mapper, hash_texts, read_bucket, write_buckets, write_groups
from transforms.erp.columns import ERP_CUSTOMERS, PLATFORM_CUSTOMERS, PLATFORM_DOCUMENTS
from transforms.erp.components import buckets, components, connected_homes, key_hashes, links, row_homes
from transforms.erp.findings import UnmatchedCodes, unmatched_code_findings
from transforms.erp.match import match_part
from transforms.erp.match_keys import MATCH_KEYS
from transforms.erp.tables import DIFFERENCES
from transforms.findings import combine_findings
from transforms.frames import BIGINT, TEXT, Schema, from_arrow, to_arrow

ROWS_PER_GROUP: Final = 100_000
"""Of the row groups of input files."""
GROUPS_PER_PIECE: Final = 4
ROWS_PER_BUCKET: Final = 400_000
"""Lines, customers and documents together. A worker takes about a kilobyte for each row of a piece or bucket."""
OWNER_KEYS: Final = {f"owner_{key}": TEXT for key in MATCH_KEYS if key in PLATFORM_CUSTOMERS}
"""Columns of documents: the keys of their customer, whose bucket they share."""


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
        country: see `transforms.erp.match.match`.
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


@dataclass(frozen=True, slots=True)
class BucketResult:
    """What is returned of a bucket: see `transforms.erp.match.PartialMatch`. Its tables are in files."""

    findings: pd.DataFrame
    repeated: int
    unmatched: UnmatchedCodes


def match_files(job: MatchJob, missing_codes: pd.Series[str], over: Mapper = map) -> tuple[pd.DataFrame, int]:
    """Matches the input files and writes the tables: the columns of `ERP_CUSTOMERS`; of `ERP_DIFFERENCES`, and `line`.

    Args:
        job: the files.
        missing_codes: ERP codes of customers that went missing.
        over: maps the tasks over pieces or buckets.

    Returns:
        The findings, and the number of repeated lines.
    """
    pieces, numbers = job.pieces(), range(job.buckets)
    list(over(partial(write_links, job), pieces))
    pairs = over(partial(find_connected_homes, job, pieces), numbers)
    roots = components(pd.concat(list(pairs), ignore_index=True))
    write_groups(job.file("roots"), [pa.Table.from_pandas(roots, preserve_index=False)])
    list(over(partial(write_rows, job), pieces))
    results: list[BucketResult] = list(over(partial(match_bucket, job, pieces), numbers))
    unmatched = UnmatchedCodes(*map(pd.concat, zip(*(result.unmatched for result in results), strict=True)))
    findings = [*(result.findings for result in results), *unmatched_code_findings(unmatched, missing_codes)]
    return combine_findings(findings), sum(result.repeated for result in results)


def write_links(job: MatchJob, piece: Piece) -> None:
    """Task: writes the homes of a piece, and its links by the bucket of their values."""
    rows, columns = _read(job, piece), job.key_columns
    hashes = key_hashes(rows, columns[piece.side], hash_texts)
    if piece.side == "lines":
        homes = row_homes(rows, hashes.values(), job.fields, hash_texts)
    else:
        owner = "owner_" if piece.side == "documents" else ""
        keys = key_hashes(rows, {key: owner + name for key, name in columns["customers"].items()}, hash_texts)
        homes = row_homes(rows, keys.values(), ["customer_id"], hash_texts)
    write_groups(job.file("homes", piece.name), [pa.table({"home": homes})])
    found = links(hashes.values(), homes)
    values = (found["value"] % job.buckets).to_numpy(np.int64)
    write_buckets(job.file("links", piece.name), found, values, job.buckets)


def find_connected_homes(job: MatchJob, pieces: Sequence[Piece], bucket: int) -> pd.DataFrame:
    """Task: the pairs of homes that values of a bucket connect."""
    return connected_homes(_read_bucket(job, "links", pieces, bucket))


def write_rows(job: MatchJob, piece: Piece) -> None:
    """Task: writes the rows of a piece, by bucket."""
    homes = pq.read_table(job.file("homes", piece.name))["home"].to_numpy()
    roots = pq.read_table(job.file("roots")).to_pandas()
    numbers = buckets(homes, roots, job.buckets)
    write_buckets(job.file("rows", piece.name), _read(job, piece), numbers, job.buckets)


def match_bucket(job: MatchJob, pieces: Sequence[Piece], bucket: int) -> BucketResult:
    """Task: matches the rows of a bucket, and writes its tables."""
    lines, customers, documents = (
        _read_bucket(job, "rows", [piece for piece in pieces if piece.side == side], bucket) for side in job.schemas
    )
    part = match_part(lines, customers, documents, job.country, hash_texts)
    write_groups(job.file("erp_customers-", bucket), [to_arrow(part.customers, ERP_CUSTOMERS)])
    write_groups(job.file("erp_differences-", bucket), [to_arrow(part.differences, DIFFERENCES)])
    return BucketResult(part.findings, part.repeated, part.unmatched)


def _read(job: MatchJob, piece: Piece) -> pd.DataFrame:
    with pq.ParquetFile(job.file(piece.side)) as file:
        return from_arrow(file.read_row_groups(range(piece.first, piece.end)))


def _read_bucket(job: MatchJob, stage: str, pieces: Sequence[Piece], bucket: int) -> pd.DataFrame:
    """What tasks wrote of a bucket of these pieces."""
    return read_bucket((job.file(stage, piece.name) for piece in pieces), bucket)
