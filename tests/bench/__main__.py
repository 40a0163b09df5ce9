"""Measures a pull beside others on the same work: `make bench BENCH='--rows 20000 200000 --latency-ms 0 20'`.

For each amount of rows (so many customers with documents, so many orders with lines) and each latency, a sandbox is
started, and each contender pulls both lists from it in a process of its own:

    requests   all pages fetched over bare sockets, in the order that the protocol forces; nothing is parsed
    floor      the least that has to be done: bare sockets, pyarrow, Arrow into DuckDB
    pull       orderbridge pull customers orders --sweeps 1
    certified  orderbridge pull customers orders: swept until two sweeps agree
    tuned      dlt's rest_api source with every setting that makes it faster
    generic    dlt's rest_api source as it comes

Then the files are compared, table by table: a contender whose rows are not those of the floor, or not as many as the
sandbox has, fails the run. A first small run compiles what is imported, and is compared too.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.measure import Cost, Failed, asked, run, sandbox

CONTENDERS = ("requests", "floor", "pull", "certified", "tuned", "generic")
GENERIC_ROWS_MAX = 20_000
RATIOS = {"to_requests": "to requests", "to_floor": "to floor", "to_single": "to single"}
PAGE = 100
WARM_UP_ROWS = 300


@dataclass
class Setting:
    """One amount of rows at one latency, and what each contender cost, round by round."""

    rows: int
    latency_ms: int
    costs: dict[str, list[Cost]] = field(default_factory=dict)

    def ratio(self, name: str, to: str) -> float | None:
        """Median over the rounds of the ratio of walls: the two ran one soon after the other."""
        if name not in self.costs or to not in self.costs:
            return None
        return median(a.wall_s / b.wall_s for a, b in zip(self.costs[name], self.costs[to], strict=True))

    def wall(self, name: str) -> float:
        """Median over the rounds."""
        return median(cost.wall_s for cost in self.costs[name])

    def reported(self) -> list[dict[str, Any]]:
        """A row for each contender."""
        out = []
        for name, costs in self.costs.items():
            wall = self.wall(name)
            out.append(
                {
                    "rows": self.rows,
                    "latency_ms": self.latency_ms,
                    "contender": name,
                    "wall_s": wall,
                    "cpu_s": median(cost.cpu_s for cost in costs),
                    "peak_mb": median(cost.peak_mb for cost in costs),
                    "rows_per_s": 2 * self.rows / wall,
                    "to_requests": self.ratio(name, "requests"),
                    "to_floor": self.ratio(name, "floor"),
                    "to_single": self.ratio(name, "pull") if name == "certified" else None,
                }
            )
        return out


def one(name: str, folder: Path, settings: Mapping[str, str], window: int) -> tuple[Cost, Path, str]:
    """One contender's run; gives its cost, its file, and what it said."""
    file = folder / f"{name}.duckdb"
    settings = {**settings, "WAREHOUSE__PATH": str(file)}
    commands = {
        "requests": ("tests.bench.fetch", str(window)),
        "floor": ("tests.bench.floor", str(file)),
        "pull": ("pipelines.cli", "pull", "customers", "orders", "--sweeps", "1"),
        "certified": ("pipelines.cli", "pull", "customers", "orders"),
        "tuned": ("tests.bench.generic", str(file), "tuned"),
        "generic": ("tests.bench.generic", str(file), "generic"),
    }
    cost, said = run(*commands[name], folder=folder, settings=settings)
    return cost, file, said


def differences(name: str, found: Mapping[str, Any], floor: Mapping[str, Any], counts: Mapping[str, int]) -> list[str]:
    """What is wrong with a contender's tables."""
    wrong = []
    for table, (rows, checksum) in found.items():
        if rows != counts[table]:
            wrong.append(f"{name}: {table} has {rows} rows, the sandbox has {counts[table]}")
        elif checksum != floor[table][1]:
            wrong.append(f"{name}: {table} has other values than the floor's")
    return wrong


def measured(rows: int, latency_ms: int, repeat: int, names: Sequence[str]) -> Setting:
    """All contenders on one work, `repeat` times in turn. Raises Failed where one fails or has other rows."""
    setting = Setting(rows, latency_ms)
    with tempfile.TemporaryDirectory(prefix="orderbridge-bench-") as temporary:
        base = Path(temporary)
        known = asked("tests.bench.known", str(rows), folder=base)
        with sandbox(rows, latency_ms, base) as settings:
            for _ in range(repeat):
                floor: Mapping[str, Any] = {}
                for name in names:
                    folder = base / name
                    folder.mkdir()
                    cost, file, said = one(name, folder, settings, known["window"])
                    setting.costs.setdefault(name, []).append(cost)
                    say(f"{rows} rows, {latency_ms} ms: {name} {cost.wall_s:.2f} s")
                    if name == "requests":
                        pages = 2 * ceil(rows / PAGE)
                        if said.strip() != f"{pages} pages":
                            raise Failed(f"requests: {said.strip()} came, there are {pages}")
                    else:
                        found = asked("tests.bench.check", name, str(file), folder=folder)
                        floor = floor or found
                        if wrong := differences(name, found, floor, known["counts"]):
                            raise Failed("\n".join(wrong))
                    shutil.rmtree(folder)
    return setting


def say(text: str) -> None:
    """Progress, beside the table."""
    print(text, file=sys.stderr, flush=True)


def table(settings: Sequence[Setting]) -> str:
    """An aligned table."""
    lines = [["rows", "latency", "contender", "wall s", "CPU s", "peak MB", "rows/s", *RATIOS.values()]]
    for reported in (reported for setting in settings for reported in setting.reported()):
        line = [f"{reported['rows']:,}", f"{reported['latency_ms']} ms", reported["contender"]]
        line += [
            f"{reported['wall_s']:.2f}",
            f"{reported['cpu_s']:.2f}",
            f"{reported['peak_mb']:,.0f}",
            f"{reported['rows_per_s']:,.0f}",
        ]
        line += ["" if reported[ratio] is None else f"{reported[ratio]:.2f}×" for ratio in RATIOS]
        lines.append(line)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(_aligned, line, widths)) for line in lines)


def growth(settings: Sequence[Setting]) -> list[str]:
    """What more rows cost, without what every run costs: the way from the smallest amount to each larger one."""
    lines = []
    for latency_ms in dict.fromkeys(setting.latency_ms for setting in settings):
        least, *larger = sorted((s for s in settings if s.latency_ms == latency_ms), key=lambda s: s.rows)
        for setting in larger:
            more = {
                name: (setting.wall(name) - least.wall(name)) / (setting.rows - least.rows) * 100_000
                for name in setting.costs
                if name in least.costs and setting.rows > least.rows
            }
            reported = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in more.items())
            lines.append(f"{least.rows:,} to {setting.rows:,} rows, {latency_ms} ms, per 100,000 more: {reported}")
    return lines


def _aligned(cell: str, width: int) -> str:
    return cell.ljust(width) if cell in (*CONTENDERS, "contender") else cell.rjust(width)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        "make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000], help="of each list (default: 20000)")
    parser.add_argument("--latency-ms", type=int, nargs="+", default=[0], help="before each answer (default: 0)")
    parser.add_argument("--repeat", type=int, default=1, help="rounds; medians are reported (default: 1)")
    parser.add_argument(
        "--contenders",
        type=lambda text: text.split(","),
        help=f"of {','.join(CONTENDERS)}; the floor always runs (default: all, and generic up to {GENERIC_ROWS_MAX:,} "
        "rows: it takes minutes above)",
    )
    parser.add_argument("--json", action="store_true", help="figures as JSON in place of the table")
    found = parser.parse_args()
    if unknown := set(found.contenders or ()) - set(CONTENDERS):
        parser.error(f"there is no contender {', '.join(sorted(unknown))}; there are {', '.join(CONTENDERS)}")
    if min(*found.rows, found.repeat) < 1 or min(found.latency_ms) < 0:
        parser.error("--rows and --repeat begin at 1, --latency-ms at 0")
    return found


def chosen(contenders: Sequence[str] | None, rows: int) -> list[str]:
    """The contenders at so many rows, in the order in which they run."""
    if contenders is None:
        return [name for name in CONTENDERS if name != "generic" or rows <= GENERIC_ROWS_MAX]
    return [name for name in CONTENDERS if name in contenders or name == "floor"]


def main() -> int:
    """Measures and reports. 1 where a contender failed or had other rows."""
    asked_for = arguments()
    settings = []
    try:
        measured(WARM_UP_ROWS, 0, 1, chosen(asked_for.contenders, min(asked_for.rows)))
        for rows in asked_for.rows:
            for latency_ms in asked_for.latency_ms:
                names = chosen(asked_for.contenders, rows)
                settings.append(measured(rows, latency_ms, asked_for.repeat, names))
    except Failed as failed:
        print(f"FAILED\n{failed}", file=sys.stderr)
        return 1
    if asked_for.json:
        print(json.dumps([reported for setting in settings for reported in setting.reported()], indent=1))
        return 0
    print(table(settings))
    print("", *growth(settings), sep="\n")
    print("rows: of each list; rows/s: customers and orders together; peak MB: of a contender's largest process.")
    print(f"Rows and checksums of all tables are equal. Medians of {asked_for.repeat} round(s).")
    if asked_for.contenders is None and max(asked_for.rows) > GENERIC_ROWS_MAX:
        print(f"generic is left out above {GENERIC_ROWS_MAX:,} rows: it takes minutes; --contenders names it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
