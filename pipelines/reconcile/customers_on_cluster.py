"""The customers' transform on a cluster: raw tables out to Parquet in hash buckets, the result into the build.

In: a build with the raw tables. Out: `reconciled.customers` and its findings, the same as `customers` makes here. A
bucket has customers with all of their documents. Three things are about all customers together: how createdAt is
written is found here, from that column alone; values that customers share are found in buckets by value; and findings
are combined here.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.reconcile.buckets import Mapper, hash_texts, new_folder, read_bucket, write_buckets, write_groups
from pipelines.reconcile.cluster import Cluster
from pipelines.warehouse.sql import sql_text
from transforms.customers import CUSTOMERS, RAW_CUSTOMERS, customers_part, summarize_unlisted
from transforms.dates import DateColumn, DateContext, date_findings, read_dates
from transforms.documents import RAW_DOCUMENTS
from transforms.findings import UniqueValues, combine_findings, shared_value_findings
from transforms.frames import array, constant, frame, from_arrow, to_arrow, typed
from transforms.keys import one_row_per_id

ROWS_PER_BUCKET: Final = 400_000
"""Customers and documents together."""
_INPUTS: Final = {
    "raw_customers": ("raw.customers", "id", RAW_CUSTOMERS),
    "documents": ("raw.customers__documents", "customer_id", RAW_DOCUMENTS),
}
"""The inputs: table, column whose hash is the bucket, and columns."""


@dataclass(frozen=True, slots=True)
class CustomersJob:
    """A run of the transform.

    Attributes:
        folder: of all files.
        buckets: number of buckets.
        price_lists, context, coverage_gap: see `transforms.customers.customers`.
    """

    folder: Path
    buckets: int
    price_lists: pd.DataFrame
    context: DateContext
    coverage_gap: str

    def file(self, name: str, bucket: int) -> Path:
        """A file of a bucket."""
        return self.folder / f"{name}-{bucket}.parquet"

    def read(self, name: str, bucket: int) -> pd.DataFrame:
        """The rows of an input in a bucket."""
        *_, schema = _INPUTS[name]
        folder = self.folder / name / f"bucket={bucket}"
        if not folder.exists():
            return frame(schema)
        return from_arrow(pa.concat_tables(pq.read_table(path, partitioning=None) for path in folder.iterdir()))


def customers_on_cluster(
    build: duckdb.DuckDBPyConnection,
    price_lists: pd.DataFrame,
    context: DateContext,
    coverage_gap: str,
    cluster: Cluster,
) -> tuple[pd.DataFrame, DateColumn]:
    """Makes `reconciled.customers` in a build, open for writing, whose folder the workers of the cluster see.

    The other arguments are those of `transforms.customers.customers`.

    Returns:
        The findings; how createdAt was read.

    Raises:
        UsageError: see `Cluster.mapper`.
    """
    folder = new_folder(build, "customers")
    tables = [table for table, *_ in _INPUTS.values()]
    rows = sum(build.table(table).aggregate("count(*)").fetchall()[0][0] for table in tables)
    job = CustomersJob(folder, rows // ROWS_PER_BUCKET + 1, price_lists, context, coverage_gap)
    for name, (table, key, schema) in _INPUTS.items():
        build.execute(
            f"""COPY (SELECT {", ".join(schema)}, hash({key}) % {job.buckets} AS bucket FROM {table})
                TO {sql_text(folder / name)} (FORMAT parquet, PARTITION_BY (bucket))"""
        )
    with cluster.mapper(folder) as map_tasks:
        findings, dates = reconcile_files(job, map_tasks)
    build.execute(
        f"CREATE OR REPLACE TABLE reconciled.customers AS SELECT {', '.join(CUSTOMERS)} "
        f"FROM read_parquet({sql_text(folder / 'customers-*.parquet')}) ORDER BY customer_id"
    )
    shutil.rmtree(folder)
    return findings, dates


def reconcile_files(job: CustomersJob, map_tasks: Mapper) -> tuple[pd.DataFrame, DateColumn]:
    """Reconciles the input files and writes `customers-*.parquet`. Returns the findings, and how createdAt was read."""
    numbers = range(job.buckets)
    findings = list(map_tasks(partial(write_customer_rows, job), numbers))
    texts = [from_arrow(pq.read_table(job.file("rows", number), columns=["id", "created_at"])) for number in numbers]
    rows = pd.concat(texts, ignore_index=True)
    dates = read_dates(rows["created_at"], job.context.order, job.context.timezone)
    findings += date_findings("customers", "created_at", "createdAt", dates, rows["id"])
    ends = accumulate(map(len, texts), initial=0)
    for number, (begin, end) in zip(numbers, pairwise(ends), strict=True):
        write_groups(job.file("created_at", number), [pa.table({"created_at": array(dates.at[begin:end])})])
    unlisted = []
    for of_bucket, unlisted_there in map_tasks(partial(reconcile_bucket, job), numbers):
        findings.append(of_bucket)
        unlisted.append(unlisted_there)
    findings.append(summarize_unlisted(combine_findings(unlisted), job.coverage_gap))
    findings += map_tasks(partial(find_shared_values, job), numbers)
    return combine_findings(findings), dates


def write_customer_rows(job: CustomersJob, bucket: int) -> pd.DataFrame:
    """Task: writes the customers of a bucket, one for each id. Returns findings about the others."""
    rows, findings = one_row_per_id(typed(job.read("raw_customers", bucket), RAW_CUSTOMERS), "customers")
    write_groups(job.file("rows", bucket), [to_arrow(rows, RAW_CUSTOMERS)])
    return combine_findings(findings)


def reconcile_bucket(job: CustomersJob, bucket: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Task: writes the reconciled customers of a bucket, and their values that must be unique, by bucket of the value.

    Returns:
        The findings about single customers, and about price lists that are not listed.
    """
    rows, created_at = (from_arrow(pq.read_table(job.file(name, bucket))) for name in ("rows", "created_at"))
    documents = job.read("documents", bucket)
    part = customers_part(
        rows, created_at["created_at"], documents, job.price_lists, job.context.as_of, job.coverage_gap
    )
    write_groups(job.file("customers", bucket), [to_arrow(part.table, CUSTOMERS)])
    values = pd.concat(
        [
            pd.DataFrame({"rule": constant(rule, unique.ids.index), "id": unique.ids, "value": unique.values})[
                (unique.where & unique.values.notna()).fillna(False)
            ]
            for rule, unique in part.unique_values.items()
        ]
    )
    numbers = (hash_texts(array(values["value"])) % job.buckets).astype(np.int64)
    write_buckets(job.file("values", bucket), values, numbers, job.buckets)
    return part.findings, part.unlisted


def find_shared_values(job: CustomersJob, bucket: int) -> pd.DataFrame:
    """Task: the findings about values of a bucket that several customers have."""
    values = read_bucket((job.file("values", number) for number in range(job.buckets)), bucket).sort_values("id")
    return combine_findings(
        [
            shared_value_findings(
                "customers", str(rule), UniqueValues(of_rule["id"], of_rule["value"], of_rule["value"].notna())
            )
            for rule, of_rule in values.groupby("rule")
        ]
    )
