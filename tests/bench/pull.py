"""A pull compared with others on the same work: so many customers with documents, and as many orders with lines.

A sandbox serves them, and each contender pulls both lists from it in a process of its own:

    requests   all pages fetched over bare sockets, in the order that the protocol forces; nothing is parsed
    floor      the least that has to be done: bare sockets, pyarrow, Arrow into DuckDB
    pull       orderbridge pull customers orders --sweeps 1
    certified  orderbridge pull customers orders: swept until two sweeps agree
    tuned      dlt's rest_api source with every setting that makes it faster; one round

Then the files are compared, table by table: a contender whose rows are not those of the floor, or not as many as the
sandbox has, fails the run.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

from sandbox.config import SandboxConfig
from sandbox.records import generators
from sources.extract.result import WINDOW
from tests.bench.measure import Cost, Failed, Series, asked, measured_rounds, run, sandbox

REFERENCES = {"pull": "floor", "certified": "pull", "tuned": "floor", "floor": "requests"}
TUNED_ROWS_MAX = 200_000
PAGE = 100


def measured(rows: int, rounds: int, latency_ms: int = 0) -> list[Series]:
    """All contenders on one work. Raises Failed where one fails or has other rows."""
    with tempfile.TemporaryDirectory(prefix="orderbridge-bench-") as temporary:
        base = Path(temporary)
        known = asked("tests.bench.pull", str(rows), folder=base)
        with sandbox(rows, latency_ms, base) as settings:
            names = ["requests", "floor", "pull", "certified", *(["tuned"] if rows <= TUNED_ROWS_MAX else [])]
            tables: dict[str, Any] = {}
            contenders = {name: partial(_one, name, base, settings, rows, known, tables) for name in names}
            task = f"pull, {latency_ms} ms" if latency_ms else "pull"
            references = REFERENCES | ({"pull": "requests"} if latency_ms else {})
            return measured_rounds(task, rows, rounds, contenders, references, {"tuned"})


def _one(
    name: str, base: Path, settings: Mapping[str, str], rows: int, known: Mapping[str, Any], floor: dict[str, Any]
) -> Cost:
    folder = base / name
    folder.mkdir()
    file = folder / f"{name}.duckdb"
    commands = {
        "requests": ("tests.bench.fetch", str(known["window"])),
        "floor": ("tests.bench.floor", str(file)),
        "pull": ("pipelines.cli", "pull", "customers", "orders", "--sweeps", "1"),
        "certified": ("pipelines.cli", "pull", "customers", "orders"),
        "tuned": ("tests.bench.tuned", str(file)),
    }
    cost, said = run(*commands[name], folder=folder, settings={**settings, "WAREHOUSE__PATH": str(file)})
    if name == "requests":
        if said.strip() != (pages := f"{2 * ceil(rows / PAGE)} pages"):
            raise Failed(f"requests: {said.strip()} came, there are {pages}")
    else:
        found = asked("tests.bench.check", name, str(file), folder=folder)
        floor.update(found if name == "floor" else {})
        if wrong := _differences(name, found, floor, known["counts"]):
            raise Failed("\n".join(wrong))
    shutil.rmtree(folder)
    return cost


def _differences(name: str, found: Mapping[str, Any], floor: Mapping[str, Any], counts: Mapping[str, int]) -> list[str]:
    """What is wrong with a contender's tables."""
    wrong = []
    for table, (rows, checksum) in found.items():
        if rows != counts[table]:
            wrong.append(f"{name}: {table} has {rows} rows, the sandbox has {counts[table]}")
        elif checksum != floor[table][1]:
            wrong.append(f"{name}: {table} has other values than the floor's")
    return wrong


def _print_known(rows: int) -> None:
    """Counts children where the records are made, and how many pages a pull has in flight: in a process of its own."""
    generate = generators(SandboxConfig(customers=rows, orders=rows))
    documents = sum(record.count(b'"isDefault":') for record in map(generate["customers"], range(rows)))
    lines = sum(record.count(b'"unitPrice":') for record in map(generate["orders"], range(rows)))
    counts = {"customers": rows, "customers__documents": documents, "orders": rows, "orders__lines": lines}
    print(json.dumps({"window": WINDOW, "counts": counts}))


if __name__ == "__main__":
    _print_known(int(sys.argv[1]))
