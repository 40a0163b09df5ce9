"""Measures the match with the ERP on a Dask cluster of two processes: `make bench-cluster BENCH='--rows 10000000'`.

So many customers, documents and lines of the ERP are made: 2 % of either side are on that side only, and each field of
a line differs in 1 to 4 %. They are matched

    one       by `transforms.erp.match.match` in one process, under the limit
    cluster   by `match_on_cluster` with two workers, each under the same limit of its address space

and counted. `one` is expected to exceed the limit; without a limit (`--limit-gb 0`) both must come to the same rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from pipelines.reconcile.buckets import hash_texts
from pipelines.reconcile.cluster import Cluster
from pipelines.reconcile.match_on_cluster import match_on_cluster
from pipelines.warehouse.tables import replace
from tests.bench.measure import Failed, run
from transforms.erp.columns import PLATFORM_CUSTOMERS, PLATFORM_DOCUMENTS
from transforms.erp.match import match
from transforms.frames import from_arrow

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
_TABLES = """
    SELECT status, matched_by, count(*), sum(difference_count)::BIGINT, sum(hash(COLUMNS(*)::VARCHAR))::VARCHAR
    FROM reconciled.erp_customers GROUP BY ALL ORDER BY ALL"""


def make(rows: int, folder: Path) -> None:
    """The build with customers and documents, and `lines.parquet`."""
    with duckdb.connect(str(folder / "build.duckdb")) as build:
        build.execute("SET memory_limit = '1GB'; CREATE SCHEMA raw; CREATE SCHEMA reconciled")
        fields = {**_FIELDS, "customer_id": _FIELDS["erp_code"], "_missing_since": "NULL::TIMESTAMPTZ"}
        columns = ", ".join(f"{fields.get(name, 'NULL::VARCHAR')} AS {name}" for name in PLATFORM_CUSTOMERS)
        build.execute(
            f"CREATE TABLE reconciled.customers AS SELECT {columns}, false AS is_missing FROM range({rows}) r(n)"
        )
        build.execute(
            f"""CREATE TABLE raw.customers__documents AS SELECT {_FIELDS["erp_code"]} AS customer_id,
                0::BIGINT AS position, {_FIELDS["document_number"]} AS number,
                NULL::VARCHAR AS fiscal_name, NULL::VARCHAR AS fiscal_address,
                NULL::VARCHAR AS email, true AS is_default FROM range({rows}) r(n)"""
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


def one(folder: Path) -> None:
    """Matches in this process."""
    with duckdb.connect(str(folder / "build.duckdb")) as build:
        customers = from_arrow(
            build.sql(f"SELECT {', '.join(PLATFORM_CUSTOMERS)} FROM reconciled.customers").to_arrow_table()
        )
        sql = f"SELECT {', '.join(PLATFORM_DOCUMENTS)} FROM raw.customers__documents"
        documents = from_arrow(build.sql(sql).to_arrow_table())
        result = match(from_arrow(pq.read_table(folder / "lines.parquet")), customers, documents, hash_texts=hash_texts)
        replace(build, "erp_customers", result.customers)
        replace(build, "erp_differences", result.differences)


def cluster(folder: Path, limit: int) -> list[int]:
    """Matches on two workers; their peak memory in kilobytes."""
    from distributed import LocalCluster

    shutil.rmtree(folder / "match", ignore_errors=True)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as workers:
        there = Cluster(workers.scheduler_address)
        with there.connected() as client:
            if limit:
                client.run(resource.setrlimit, resource.RLIMIT_AS, (limit, limit))
            with duckdb.connect(str(folder / "build.duckdb")) as build:
                build.execute("SET memory_limit = '1GB'")
                match_on_cluster(build, from_arrow(pq.read_table(folder / "lines.parquet")), None, there)
            return [usage.ru_maxrss for usage in client.run(resource.getrusage, resource.RUSAGE_SELF).values()]


def measured(name: str, folder: Path, limit: int) -> dict[str, Any]:
    """What a contender takes, in this process."""
    begun, peaks = time.perf_counter(), [0]
    if name == "one":
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        one(folder)
    else:
        peaks = cluster(folder, limit)
    wall, own = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with duckdb.connect(str(folder / "build.duckdb"), read_only=True) as build:
        build.execute("SET memory_limit = '1GB'")
        rows = build.execute(_TABLES).fetchall()
    return {"wall_s": wall, "peak_mb": own // 1024, "workers_mb": [peak // 1024 for peak in peaks], "rows": rows}


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
            run("tests.bench.match_on_cluster", "--make", *options, folder=folder, settings={})
        results = {}
        for name in ("one", "cluster"):
            try:
                _, output = run("tests.bench.match_on_cluster", "--one", name, *options, folder=folder, settings={})
            except Failed as failed:
                print(f"{name}: failed: {str(failed).splitlines()[-1]}")
                continue
            results[name] = found = json.loads(output.splitlines()[-1])
            workers = f", workers {found['workers_mb']} MB" if name == "cluster" else ""
            print(f"{name}: {found['wall_s']:.1f} s, peak {found['peak_mb']:,} MB{workers}", flush=True)
    if "cluster" not in results or ("one" in results and results["one"]["rows"] != results["cluster"]["rows"]):
        print("FAILED: the cluster did not come to the same rows", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
