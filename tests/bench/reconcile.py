"""The match with the ERP compared with others on the same frames.

For each amount of rows, so many customers of the platform and lines of the ERP are made, seeded: some on one side only,
some that differ. Each contender joins and compares them in a process of its own:

    ours      pipelines.reconcile.match in one bucket: four keys, normalised comparison, findings
    pandas    one merge on the code, columns compared as they stand

pandas does less: one key, no normalisation, no findings. All must come to the same counts of matched rows, of rows on
one side only, and of differing rows by field, or the run fails. `work` begins with the frames in memory: for pandas it
is the join and the comparison, for ours also the tables that a run writes into its build. Wall, CPU and peak memory are
of the whole process, imports and reading included.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather

from orderbridge.transforms.erp.tables import PLATFORM_CUSTOMERS, PLATFORM_DOCUMENTS
from orderbridge.transforms.frames import TEXT, from_arrow, typed
from tests.bench.measure import Cost, Failed, Series, called, measured_rounds
from tests.transforms.erp.matching import match

CODE = "erp_code"
FIELDS = (
    "login_code",
    "email",
    "first_name",
    "last_name",
    "phone",
    "price_list_id",
    "document_number",
)
KNOWN = """
    SELECT n, printf('%08d', n) AS erp_code, printf('L%08d', n) AS login_code,
        'customer.' || n || '@mail.example.com' AS email, 'María ' || n % 977 AS first_name,
        'Núñez ' || n % 9973 || ' García' AS last_name, printf('+51 9%08d', n) AS phone,
        (n % 12 + 1)::VARCHAR AS price_list_id, printf('20%09d', n * 7) AS document_number
    FROM range($1) AS numbers (n)"""
CHANGED = {
    # of one pair at most one: two keys that differ would make it ambiguous, for ours only
    **{"login_code": ("key", 0, 10), "email": ("key", 10, 25), "document_number": ("key", 25, 65)},
    **{
        name: (name, 0, 15 + 5 * n)
        for n, name in enumerate(("first_name", "last_name", "phone", "price_list_id"), 1)
    },
}
"""How many of a thousand rows differ in a field, drawn by which hash."""
Counts = dict[str, int]


def _is_in(salt: str, begin: int, end: int) -> str:
    """Whether a row is among some of a thousand."""
    return f"hash(n || '{salt}') % 1000 BETWEEN {begin} AND {end - 1}"


def make(rows: str, folder: str) -> None:
    """Both sides as files: 2 % of the customers are not in the ERP, 2 % of its lines are new, and each field differs
    in 1 to 4 % of the others."""
    changed = [
        f"{name} || CASE WHEN {_is_in(*some)} THEN '9' ELSE '' END AS {name}"
        for name, some in CHANGED.items()
    ]
    fresh = [
        f"'N' || {name} AS {name}" for name in (CODE, "login_code", "email", "document_number")
    ]
    lines = f"""
        SELECT * REPLACE ({", ".join(changed)}) FROM known WHERE NOT {_is_in("left", 0, 20)}
        UNION ALL SELECT * REPLACE ({", ".join(fresh)}) FROM known WHERE {_is_in("fresh", 0, 20)}"""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE known AS {KNOWN}", [int(rows)])
        for name, side in (
            ("known", "known ORDER BY n"),
            ("lines", f"({lines}) ORDER BY hash(erp_code)"),
        ):
            table = (
                connection.sql(f"SELECT * EXCLUDE n FROM {side}").to_arrow_table().combine_chunks()
            )
            table = table.cast(pa.schema([(column, TEXT) for column in table.column_names]))
            # each column in one chunk, as in a run
            feather.write_feather(table, Path(folder) / name, "uncompressed", chunksize=len(table))


def _sides(folder: Path) -> tuple[pa.Table, pa.Table]:
    return tuple(feather.read_table(folder / name, memory_map=False) for name in ("lines", "known"))


def _ours(folder: Path) -> Callable[[], Counts]:
    lines, known = _sides(folder)
    lines = lines.append_column("_line", pa.array(np.arange(2, len(lines) + 2)))
    ids = known[CODE]
    nothing = {
        name: pa.nulls(len(known), kind)
        for name, kind in (PLATFORM_CUSTOMERS | PLATFORM_DOCUMENTS).items()
    }
    rows = {**nothing, **{name: known[name] for name in known.column_names}, "customer_id": ids}
    is_default = pa.repeat(True, len(ids))
    papers = {
        **nothing,
        "customer_id": ids,
        "number": known["document_number"],
        "is_default": is_default,
    }
    erp = from_arrow(lines)
    customers = typed(
        from_arrow(pa.table({name: rows[name] for name in PLATFORM_CUSTOMERS})), PLATFORM_CUSTOMERS
    )
    documents = typed(
        from_arrow(pa.table({name: papers[name] for name in PLATFORM_DOCUMENTS})),
        PLATFORM_DOCUMENTS,
    )

    def work() -> Counts:
        found = match(erp, customers, documents)
        status, fields = (
            found.customers["status"].value_counts(),
            found.differences["field"].value_counts(),
        )
        statuses = ("matched", "only_in_erp", "only_in_platform")
        return {
            **{name: int(status[name]) for name in statuses},
            **{name: int(fields[name]) for name in FIELDS},
        }

    return work


def _pandas(folder: Path) -> Callable[[], Counts]:
    lines, known = (from_arrow(side) for side in _sides(folder))

    def work() -> Counts:
        both = lines.merge(
            known, on=CODE, how="outer", suffixes=("", "_known"), indicator=True, validate="1:1"
        )
        where = both["_merge"].value_counts()
        pairs = both[both["_merge"] == "both"]
        differing = {name: pairs[pairs[name] != pairs[f"{name}_known"]] for name in FIELDS}
        return {
            "matched": int(where["both"]),
            "only_in_erp": int(where["left_only"]),
            "only_in_platform": int(where["right_only"]),
            **{name: len(rows) for name, rows in differing.items()},
        }

    return work


CONTENDERS: dict[str, Callable[[Path], Callable[[], Counts]]] = {"ours": _ours, "pandas": _pandas}


def timed(name: str, folder: str) -> tuple[float, Counts]:
    """Seconds of the work alone, and what it came to."""
    work = CONTENDERS[name](Path(folder))
    begun = time.perf_counter()
    counts = work()
    return time.perf_counter() - begun, counts


def measured(rows: int, rounds: int) -> list[Series]:
    """All contenders. Raises Failed where one fails, or comes to other counts."""
    with tempfile.TemporaryDirectory(prefix="orderbridge-bench-") as temporary:
        folder = Path(temporary)
        called("reconcile.make", rows, folder, folder=folder)
        found: dict[str, Counts] = {}

        def one(name: str) -> Cost:
            cost, (work_s, found[name]) = called("reconcile.timed", name, folder, folder=folder)
            if found[name] != found["ours"]:
                raise Failed(f"{name}: {found[name]}, ours: {found['ours']}")
            return replace(cost, work_s=work_s)

        return measured_rounds("match", rows, rounds, one, {"ours": "pandas", "pandas": ""})
