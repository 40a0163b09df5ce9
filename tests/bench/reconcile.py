"""The match with the ERP compared with others on the same frames.

For each amount of rows, so many customers of the platform and lines of the ERP are made, seeded: some on one side only,
some that differ. Each contender joins and compares them in a process of its own:

    ours      pipelines.reconcile.match in one bucket: four keys, normalised comparison, findings
    pandas    one merge on the code, columns compared as they stand

pandas does less: one key, no normalisation, no findings. All must come to the same counts of matched rows, of rows on
one side only, and of differing rows by field, or the run fails. `work` is the join and the comparison alone, with the
frames in memory; wall, CPU and peak memory are of the whole process, imports and reading included.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather

from tests.bench.measure import Cost, Failed, Series, measured_rounds, run
from tests.transforms.erp.matching import match
from transforms.erp.tables import PLATFORM_CUSTOMERS, PLATFORM_DOCUMENTS
from transforms.frames import TEXT, from_arrow, typed

CODE = "erp_code"
FIELDS = ("login_code", "email", "first_name", "last_name", "phone", "price_list_id", "document_number")
Counts = dict[str, int]


def make(rows: int, folder: Path) -> None:
    """Both sides as files: 2 % of the customers are not in the ERP, 2 % of its lines are new, and each field differs
    in 1 to 4 % of the others."""
    chance = np.random.default_rng(rows)

    def texts(form: Callable[[int], str]) -> pd.Series[str]:
        return pd.Series([form(n) for n in range(rows)], dtype="string[pyarrow]")

    known = pd.DataFrame(
        {
            CODE: texts(lambda n: f"{n:08d}"),
            "login_code": texts(lambda n: f"L{n:08d}"),
            "email": texts(lambda n: f"customer.{n}@mail.example.com"),
            "first_name": texts(lambda n: f"María {n % 977}"),
            "last_name": texts(lambda n: f"Núñez {n % 9973} García"),
            "phone": texts(lambda n: f"+51 9{n:08d}"),
            "price_list_id": texts(lambda n: str(n % 12 + 1)),
            "document_number": texts(lambda n: f"20{n * 7:09d}"),
        }
    )
    lines = known[chance.random(rows) >= 0.02].copy()
    is_key_changed = np.zeros(len(lines), np.bool_)  # two keys that differ would make a pair ambiguous, for ours only
    for place, name in enumerate(FIELDS):
        where = chance.random(len(lines)) < 0.01 + 0.005 * place
        if name in ("login_code", "email", "document_number"):
            where &= ~is_key_changed
            is_key_changed |= where
        lines.loc[where, name] = lines.loc[where, name] + "9"
    fresh = known.sample(frac=0.02, random_state=1)
    fresh = fresh.assign(**{name: "N" + fresh[name] for name in (CODE, "login_code", "email", "document_number")})
    lines = pd.concat([lines, fresh]).sample(frac=1, random_state=2, ignore_index=True)
    schema = pa.schema([(name, TEXT) for name in known])  # each column in one chunk, as in a run
    for name, side in (("known", known), ("lines", lines)):
        table = pa.Table.from_pandas(side, schema, preserve_index=False)
        feather.write_feather(table, folder / name, "uncompressed", chunksize=rows)


def _sides(folder: Path) -> list[pa.Table]:
    return [feather.read_table(folder / name, memory_map=False) for name in ("lines", "known")]


def _ours(folder: Path) -> Callable[[], Counts]:
    lines, known = _sides(folder)
    lines = lines.append_column("_line", pa.array(np.arange(2, len(lines) + 2)))
    ids = known[CODE]
    nothing = {name: pa.nulls(len(known), kind) for name, kind in (PLATFORM_CUSTOMERS | PLATFORM_DOCUMENTS).items()}
    rows = {**nothing, **{name: known[name] for name in known.column_names}, "customer_id": ids}
    is_default = pa.repeat(True, len(ids))
    papers = {**nothing, "customer_id": ids, "number": known["document_number"], "is_default": is_default}
    erp = from_arrow(lines)
    customers = typed(from_arrow(pa.table({name: rows[name] for name in PLATFORM_CUSTOMERS})), PLATFORM_CUSTOMERS)
    documents = typed(from_arrow(pa.table({name: papers[name] for name in PLATFORM_DOCUMENTS})), PLATFORM_DOCUMENTS)

    def work() -> Counts:
        found = match(erp, customers, documents)
        status, fields = found.customers["status"].value_counts(), found.differences["field"].value_counts()
        statuses = ("matched", "only_in_erp", "only_in_platform")
        return {**{name: int(status[name]) for name in statuses}, **{name: int(fields[name]) for name in FIELDS}}

    return work


def _pandas(folder: Path) -> Callable[[], Counts]:
    lines, known = (from_arrow(side) for side in _sides(folder))

    def work() -> Counts:
        both = lines.merge(known, on=CODE, how="outer", suffixes=("", "_known"), indicator=True, validate="1:1")
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


def measured(rows: int, rounds: int) -> list[Series]:
    """All contenders. Raises Failed where one fails, or comes to other counts."""
    with tempfile.TemporaryDirectory(prefix="orderbridge-bench-") as temporary:
        folder = Path(temporary)
        run("tests.bench.reconcile", "--make", str(rows), str(folder), folder=folder, settings={})
        counts: dict[str, Counts] = {}

        def one(name: str) -> Cost:
            cost, said = run("tests.bench.reconcile", "--one", name, str(folder), folder=folder, settings={})
            reported = json.loads(said.splitlines()[-1])
            counts[name] = reported["counts"]
            if counts[name] != counts["ours"]:
                raise Failed(f"{name}: {counts[name]}, ours: {counts['ours']}")
            return replace(cost, work_s=reported["work_s"])

        contenders = {name: partial(one, name) for name in CONTENDERS}
        return measured_rounds("match", rows, rounds, contenders, {"ours": "pandas"})


if __name__ == "__main__":
    if sys.argv[1] == "--make":
        make(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        work = CONTENDERS[sys.argv[2]](Path(sys.argv[3]))
        begun = time.perf_counter()
        counts = work()
        print(json.dumps({"work_s": time.perf_counter() - begun, "counts": counts}))
