"""Campaigns of seeded runs: `make soak SEEDS=1000 FIRST=0 CAMPAIGNS="pull push" JOBS=2`.

    python -m tests.soak [--jobs N] [SEEDS] [FIRST] [CAMPAIGN …]

Each campaign prints its seeds, what was counted over them (verdicts, faults, exit codes), each problem with the seed
that has it, and its rate. `SEEDS=1 FIRST=<seed>` runs a seed again. The command ends with 1 if there is a problem.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from tests.soak.campaigns import CAMPAIGNS, block

BLOCK: Final = 20
"""Seeds that a process takes at a time."""


def run_campaign(name: str, first: int, seeds: int, jobs: int) -> int:
    """Runs a campaign and prints it. Returns the number of problems."""
    seeds = min(seeds, CAMPAIGNS[name].seeds_max)
    end = first + seeds
    tasks = [(name, start, min(start + BLOCK, end)) for start in range(first, end, BLOCK)]
    counts: Counter[str] = Counter()
    problems = 0
    started, used = time.monotonic(), _cpu_s()
    with multiprocessing.get_context("spawn").Pool(jobs, logging.disable) as pool:
        for found, wrong in pool.imap_unordered(block, tasks):
            counts.update(found)
            problems += len(wrong)
            for seed, problem in wrong:
                _say(f"{name} seed {seed}: {problem}")
        pool.close()
        pool.join()
    seconds, cpu = time.monotonic() - started, _cpu_s() - used
    counted = ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
    _say(f"{name}: seeds {first} to {end - 1}, {problems} problems; {counted or 'nothing counted'}")
    _say(f"{name}: {seeds / seconds:.1f} seeds a second on {jobs} cores, {seeds / cpu:.1f} per CPU second")
    return problems


def _cpu_s() -> float:
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("seeds", type=int, nargs="?", default=100, metavar="SEEDS")
    parser.add_argument("first", type=int, nargs="?", default=0, metavar="FIRST")
    parser.add_argument("campaigns", nargs="*", metavar="CAMPAIGN", help=", ".join(CAMPAIGNS))
    options = parser.parse_args(arguments)
    os.environ["PYTHONWARNINGS"] = "error"
    names = options.campaigns or list(CAMPAIGNS)
    if unknown := set(names) - set(CAMPAIGNS):
        parser.error(f"no campaign {', '.join(sorted(unknown))}: there are {', '.join(CAMPAIGNS)}")
    return 1 if sum(run_campaign(name, options.first, options.seeds, options.jobs) for name in names) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
