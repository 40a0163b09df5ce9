"""A pull of millions of rows: memory and disk over time, cost by rows, a kill near the end and the resumed run.

    python -m tests.bench.scale --orders 200000 1000000 3000000 10000000 --kill --json scale.json
    python -m tests.bench.scale --plot scale.json docs/images/scale.svg

For each number of orders, and a tenth as many customers, a pull of one sweep from a platform that generates its pages
when they are requested. With `--kill`, a second pull of the largest is killed (SIGKILL) once it has read 99 % of the
pages, and run again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from tests.bench.measure import Failed, run, served

KILL_AT: Final = 0.99
"""Share of the pages that are on disk."""
_RSS: Final = re.compile(r"VmRSS:\s+(\d+)")


@dataclass
class Watcher:
    """Samples a pull: seconds, resident MB, MB on disk. Kills it once its spools have more than `kill_bytes`."""

    folder: Path
    kill_bytes: float
    samples: list[tuple[float, float, float]] = field(default_factory=list)
    spooled: int = 0
    began: float = field(default_factory=time.monotonic)

    def __call__(self, process: int) -> None:
        with suppress(OSError):
            resident = int(_RSS.findall(Path(f"/proc/{process}/status").read_text())[0]) / 1024
            sizes = {file: file.stat().st_blocks * 512 for file in self.folder.rglob("*") if file.is_file()}
            self.samples.append((round(time.monotonic() - self.began, 1), resident, sum(sizes.values()) / 1e6))
            spooled = sum(size for file, size in sizes.items() if file.suffix == ".pages")
            self.spooled = max(self.spooled, spooled)
            if spooled > self.kill_bytes:
                os.kill(process, signal.SIGKILL)


def measured(orders: int, *, with_kill: bool) -> Iterator[dict[str, Any]]:
    """One pull; with a kill, two more runs."""
    with tempfile.TemporaryDirectory(prefix="orderbridge-scale-") as temporary:
        base = Path(temporary)
        folder = base / "pull"
        folder.mkdir()
        with served("tests.bench.platform", str(orders // 10), str(orders), "0", folder=base) as settings:
            settings |= {"WAREHOUSE__PATH": str(folder / "warehouse.duckdb")}
            whole = float("inf")
            for name in ("pull", "killed", "resumed")[: 3 if with_kill else 1]:
                watcher = Watcher(folder, KILL_AT * whole if name == "killed" else float("inf"))
                code = -signal.SIGKILL if name == "killed" else 0
                command = ("pull", "customers", "orders", "--sweeps", "1")
                cost, _ = run("pipelines.cli", *command, folder=folder, settings=settings, codes=[code], watch=watcher)
                whole = min(whole, watcher.spooled)
                figures = {"run": name, "orders": orders, **vars_of(cost)}
                print(figures, flush=True)
                yield {**figures, "samples": watcher.samples}
        with duckdb.connect(str(folder / "warehouse.duckdb"), read_only=True) as warehouse:
            found = warehouse.execute("SELECT count(*), count(DISTINCT id) FROM raw.orders").fetchone()
        if found != (orders, orders):
            raise Failed(f"{orders} orders were served, {found} are in the warehouse")


def vars_of(cost: Any) -> dict[str, float]:
    """Wall and CPU seconds, peak MB by the kernel."""
    return {"wall_s": round(cost.wall_s, 1), "cpu_s": round(cost.cpu_s, 1), "peak_mb": round(cost.peak_mb)}


def plot(runs: list[dict[str, Any]], file: Path) -> None:
    """Memory of the largest run over time, and CPU by rows with its linear fit."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "orderbridge"
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    largest = max(run["orders"] for run in runs)
    for run_ in runs:
        if run_["orders"] == largest:
            seconds, memory, _ = zip(*run_["samples"][:: max(1, len(run_["samples"]) // 300)], strict=True)
            left.plot([s / 60 for s in seconds], memory, label=run_["run"], linewidth=1)
    left.axhline(1000, color="grey", linestyle=":", linewidth=1)
    left.set(xlabel="minutes", ylabel="resident MB", ylim=(0, 1100), title=f"{largest:,} orders")
    left.legend()
    whole = [run_ for run_ in runs if run_["run"] == "pull"]
    rows, cpu = [run_["orders"] / 1e6 for run_ in whole], [run_["cpu_s"] for run_ in whole]
    right.plot(rows, cpu, "o")
    slope, fixed = np.polyfit(rows, cpu, 1)
    right.plot([0, max(rows)], [fixed, fixed + slope * max(rows)], linewidth=1)
    right.set(xlabel="million orders", ylabel="CPU s", title=f"{fixed:.1f} s + {slope:.1f} s per million")
    figure.savefig(file, metadata={"Date": None})


def main() -> int:
    """Measures, or plots what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, nargs="+", default=[200_000])
    parser.add_argument("--kill", action="store_true", help="with the largest: kill a second pull, and run it again")
    parser.add_argument("--json", type=Path, help="file for the samples")
    parser.add_argument("--plot", type=Path, nargs=2, metavar=("JSON", "SVG"))
    options = parser.parse_args()
    if options.plot:
        plot(json.loads(options.plot[0].read_text()), options.plot[1])
        return 0
    runs = []
    for orders in options.orders:
        for figures in measured(orders, with_kill=options.kill and orders == max(options.orders)):
            runs.append(figures)
            if options.json:
                options.json.write_text(json.dumps(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
