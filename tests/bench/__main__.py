"""Speed and memory of all that is large, as one table: `make bench`.

    make bench                              everything; `--write` puts the table into docs/performance.md
    make bench BENCH=--quick                small sizes, one round
    make bench BENCH='--tasks pull --rows 50000 --rounds 5 --latency-ms 20'

Each contender runs in a process of its own, after a small run that compiles what is imported. Results are compared: a
contender that comes to other rows or counts fails the run.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from statistics import median

from tests.bench.measure import ROOT, Failed, Series

PAGE = ROOT / "docs" / "performance.md"
MARKS = ("<!-- bench:begin -->", "<!-- bench:end -->")
TASKS: dict[str, tuple[str, list[int], int, int]] = {
    "pull": ("pull.measured", [200_000, 1_000_000], 10_000, 300),
    "preview": ("plan.previewed", [500_000], 20_000, 1_000),
    "plan": ("plan.measured", [300_000], 20_000, 1_000),
    "push": ("push.measured", [10_000], 500, 50),
    "match": ("reconcile.measured", [1_000_000], 20_000, 1_000),
}
"""Functions of this package, imported when they are needed: a child's peak begins with that of this process; then rows:
all, those of a quick run, and those of a first one that compiles what is imported."""
LONG_ROWS = 1_000_000
"""A pull of so many rows is made once."""
VERSIONS = ("duckdb", "pyarrow", "pandas", "dlt", "httpx", "msgspec")


def table(found: Sequence[Series], rounds: int) -> str:
    """The table in Markdown, with the machine and the versions."""
    by_name = {(series.task, series.rows, series.name): series for series in found}
    lines = [
        "| task | rows | contender | seconds | CPU s | peak MB | ratio | CPU ratio |",
        f"|---|--:|---{'|--:' * 5}|",
    ]
    for series in found:
        costs, ratios = series.costs, (" ", " ")
        if reference := by_name.get((series.task, series.rows, series.reference)):
            pairs = list(zip(costs, reference.costs, strict=False))
            seconds = median(a.compared_s / b.compared_s for a, b in pairs)
            ratios = (
                f" {seconds:.2f}× {reference.name} ",
                f" {median(a.cpu_s / b.cpu_s for a, b in pairs):.2f}× ",
            )
        seconds, cpu = (
            median(one)
            for one in zip(*((cost.compared_s, cost.cpu_s) for cost in costs), strict=True)
        )
        peak = max(cost.peak_mb for cost in costs)
        cells = f"{series.task} | {series.rows:,} | {series.name} | {seconds:.2f} | {cpu:.2f} | {peak:,.0f} "
        lines.append(f"| {cells}|{'|'.join(ratios)}|")
    return "\n".join([*lines, "", machine(rounds)])


def machine(rounds: int) -> str:
    model = (
        re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        if sys.platform == "linux"
        else None
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    versions = ", ".join(f"{name} {version(name)}" for name in VERSIONS)
    return (
        f"{datetime.now(UTC):%Y-%m-%d}: {model[1] if model else platform.processor()}, {os.cpu_count()} cores, "
        f"{memory:.0f} GB, {platform.system()}. Python {platform.python_version()}, {versions}. Medians of {rounds} "
        "round(s), the largest peak. Rows: of each list or side. Seconds: of the process; for the match, "
        "without reading the two sides."
    )


def main() -> int:
    """Measures and reports. 1 where a contender failed or came to another result."""
    parser = argparse.ArgumentParser(
        "make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--rows", type=int, nargs="+", help="instead of the sizes of each task")
    parser.add_argument("--rounds", type=int, default=3, help="medians are reported (default: 3)")
    parser.add_argument(
        "--latency-ms", type=int, default=0, help="of the platform before each answer of a pull"
    )
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/performance.md"
    )
    options = parser.parse_args()
    rounds = 1 if options.quick else options.rounds
    found: list[Series] = []
    try:
        for task in options.tasks:
            function, sizes, quick, warm_up = TASKS[task]
            module, _, name = function.partition(".")
            measured: Callable[..., list[Series]] = getattr(
                import_module(f"tests.bench.{module}"), name
            )
            more = {"latency_ms": options.latency_ms} if task == "pull" else {}
            measured(warm_up, 1)
            for rows in options.rows or ([quick] if options.quick else sizes):
                found += measured(
                    rows, 1 if task == "pull" and rows >= LONG_ROWS else rounds, **more
                )
    except Failed as failed:
        print(f"FAILED\n{failed}", file=sys.stderr)
        return 1
    text = table(found, rounds)
    print(text)
    if options.write:
        before, _, rest = PAGE.read_text("utf-8").partition(MARKS[0])
        PAGE.write_text(
            f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}", "utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
