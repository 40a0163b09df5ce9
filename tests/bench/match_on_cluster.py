"""Measures customers and their match with the ERP on a Dask cluster: `make bench-cluster BENCH='--rows 10000000'`.

So many customers, documents and lines of the ERP are made: 2 % of either side are on that side only, and each field of
a line differs in 1 to 4 %. From the raw tables `reconciled.customers` is made and matched with the lines

    one       in parts by one process, under the limit
    cluster   in the same parts by two workers, each under the same limit

and counted. The limit is of the address space of a process. Both must come to the same rows. Peaks are of resident
memory, from the kernel.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import LocalCluster

from pipelines.reconcile.cluster import Cluster
from pipelines.reconcile.customers import reconcile_customers
from pipelines.reconcile.match import match_lines
from pipelines.reconcile.parts import Findings, Mapper, Parts
from tests.bench.measure import run
from transforms.customers import LISTED_PRICE_LISTS, RAW_CUSTOMERS
from transforms.dates import DateContext
from transforms.frames import DATE, TEXT, TIMESTAMP, frame, from_arrow

_FIELDS = {
    "erp_code": "printf('%08d', n)",
    "login_code": "printf('L%08d', n)",
    "email": "'customer.' || n || '@mail.example.com'",
    "first_name": "'María ' || n % 977",
    "last_name": "'Núñez ' || n % 9973 || ' García'",
    "phone": "printf('+51 9%08d', n)",
    "price_list_id": "(n % 12 + 1)::VARCHAR",
    "document_number": "printf('20%09d', n * 7)",
}
_KEYS = ("login_code", "email", "document_number")
_MODULE = "tests.bench.match_on_cluster"
_ROW = "{:8} {:>12} {:>8} {:>6} {:>8}  {}"
_DATES = DateContext(datetime(2026, 3, 1, tzinfo=UTC))
_TABLES = (
    """SELECT status, matched_by, count(*), sum(difference_count)::BIGINT, sum(hash(COLUMNS(*)::VARCHAR))::VARCHAR
    FROM reconciled.erp_customers GROUP BY ALL ORDER BY ALL""",
    "SELECT count(*), sum(hash(COLUMNS(*)::VARCHAR))::VARCHAR FROM reconciled.customers",
)


def make(rows: int, folder: Path) -> None:
    """The build with customers and documents, and `lines.parquet`."""
    with duckdb.connect(str(folder / "build.duckdb")) as build:
        build.execute("SET memory_limit = '1GB'; CREATE SCHEMA raw; CREATE SCHEMA reconciled")
        created_at = "strftime(TIMESTAMP '2020-01-01' + to_seconds(n), '%Y-%m-%dT%H:%M:%SZ')"
        fields = {**_FIELDS, "id": _FIELDS["erp_code"], "created_at": created_at}
        columns = [f"{fields.get(name, f'NULL::{_sql_type(kind)}')} AS {name}" for name, kind in RAW_CUSTOMERS.items()]
        build.execute(f"CREATE TABLE raw.customers AS SELECT {', '.join(columns)} FROM range({rows}) r(n)")
        build.execute(
            f"""CREATE TABLE raw.customers__documents AS SELECT {_FIELDS["erp_code"]} AS customer_id,
                0::BIGINT AS position, {_FIELDS["document_number"]} AS number, 'Fiscal ' || n AS fiscal_name,
                NULL::VARCHAR AS fiscal_address, NULL::VARCHAR AS email, true AS is_default, true AS for_taxes
                FROM range({rows}) r(n)"""
        )
        # of the keys only one differs: two would make a pair ambiguous
        changed = [f"hash(n, '{name}') % 1000 < {10 + 5 * place}" for place, name in enumerate(_FIELDS)]
        values = [
            f"""CASE WHEN is_new THEN 'N' ELSE '' END || {form}
                || CASE WHEN NOT is_new AND {where} AND {f"n % 3 = {_KEYS.index(name)}" if name in _KEYS else "true"}
                THEN '9' ELSE '' END AS {name}"""
            if name in ("erp_code", *_KEYS)
            else f"{form} || CASE WHEN {where} THEN '9' ELSE '' END AS {name}"
            for (name, form), where in zip(_FIELDS.items(), ["false", *changed[1:]], strict=True)
        ]
        build.execute(
            f"""COPY (SELECT row_number() OVER () + 1 AS _line, {", ".join(values)}
                FROM (SELECT n, hash(n) % 50 = 0 AS is_new FROM range({rows}) r(n) WHERE hash(n, 'there') % 50 > 0))
                TO '{folder}/lines.parquet' (FORMAT parquet)"""
        )


def _sql_type(kind: pa.DataType) -> str:
    return {TEXT: "VARCHAR", DATE: "DATE", TIMESTAMP: "TIMESTAMPTZ"}[kind]


def in_parts(build: duckdb.DuckDBPyConnection, lines: pd.DataFrame, map_tasks: Mapper) -> Iterator[None]:
    """Makes the customers, then matches them."""
    tables = Parts(build, Findings(build), map_tasks)
    reconcile_customers(tables, frame(LISTED_PRICE_LISTS), _DATES)
    yield
    match_lines(build, lines, None, map_tasks)
    yield


def measured(name: str, folder: Path, limit: int) -> dict[str, Any]:
    """What a contender takes, with this process as the one that reconciles."""
    with ExitStack() as stack:
        build = stack.enter_context(duckdb.connect(str(folder / "build.duckdb")))
        build.execute("SET memory_limit = '1GB'; SET TimeZone = 'UTC'")
        shutil.rmtree(folder / "match", ignore_errors=True)
        map_tasks: Mapper = map
        if name == "one":
            if limit:
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        else:
            workers = stack.enter_context(
                LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=0)
            )
            there = Cluster(workers.scheduler_address)
            client = stack.enter_context(there.connected())
            if limit:
                client.run(resource.setrlimit, resource.RLIMIT_AS, (limit, limit))
            map_tasks = stack.enter_context(there.mapper(folder))
        steps = in_parts(build, from_arrow(pq.read_table(folder / "lines.parquet")), map_tasks)
        times = [time.perf_counter() for _ in chain([None], steps)]
        customers_s, match_s = (end - begin for begin, end in pairwise(times))
        rows = [build.execute(sql).fetchall() for sql in _TABLES]
        workers_mb = list(client.run(_peak_mb).values()) if name == "cluster" else []
    peaks = {"peak_mb": _peak_mb(), "workers_mb": workers_mb}
    return {"customers_s": customers_s, "match_s": match_s, **peaks, "rows": rows}


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> int:
    """Measures and reports. 1 where the cluster failed, or came to other rows."""
    parser = argparse.ArgumentParser(
        "make bench-cluster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000_000, help="of each side")
    parser.add_argument("--limit-gb", type=float, default=4, help="of the address space of each process; 0: none")
    parser.add_argument("--folder", type=Path, help="where the files are made and kept (default: a temporary one)")
    parser.add_argument("--one", metavar="CONTENDER", help=argparse.SUPPRESS)
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    limit = int(given.limit_gb * 2**30)
    if given.make:
        make(given.rows, given.folder)
        return 0
    if given.one:
        print(json.dumps(measured(given.one, given.folder, limit)))
        return 0
    with tempfile.TemporaryDirectory(prefix="orderbridge-bench-") as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        options = ("--folder", str(folder), "--rows", str(given.rows), "--limit-gb", str(given.limit_gb))
        if not (folder / "lines.parquet").exists():
            run(_MODULE, "--make", *options, folder=folder, settings={})
        results: dict[str, dict[str, Any]] = {}
        table = [_ROW.format("", "customers s", "match s", "CPU s", "peak MB", "of each worker MB")]
        for name in ("one", "cluster"):
            # a process that exceeds its limit may end in any way
            cost, output = run(_MODULE, "--one", name, *options, folder=folder, settings={}, codes=range(-64, 256))
            *_, last = output.splitlines() or [""]
            if not last.startswith("{"):
                reason = next((line for line in reversed(output.splitlines()) if "Error" in line), last)[:80]
                table.append(_ROW.format(name, "failed", "", f"{cost.cpu_s:.0f}", f"{cost.peak_mb:,.0f}", reason))
                continue
            results[name] = found = json.loads(last)
            times = (f"{found[step]:.1f}" for step in ("customers_s", "match_s"))
            peaks = ", ".join(f"{peak:,}" for peak in found["workers_mb"])
            table.append(_ROW.format(name, *times, f"{cost.cpu_s:.0f}", f"{found['peak_mb']:,}", peaks))
    limits = f"{given.limit_gb:g} GB of address space for `one` and for each worker" if limit else "no limit"
    print(f"{given.rows:,} customers, documents and lines; {limits}", *table, sep="\n")
    if "cluster" not in results or ("one" in results and results["one"]["rows"] != results["cluster"]["rows"]):
        print("FAILED: the cluster did not come to the same rows", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
