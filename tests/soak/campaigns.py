"""Campaigns of seeded runs: `make soak SEEDS=1000 FIRST=0 CAMPAIGNS="pull push" JOBS=2`.

    python -m tests.soak [--jobs N] [SEEDS] [FIRST] [CAMPAIGN …]

Each campaign prints its seeds, what was counted over them (verdicts, faults, exit codes), each problem with the seed
that has it, and its rate. `SEEDS=1 FIRST=<seed>` runs a seed again. The command ends with 1 if there is a problem.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Final
from unittest import mock

from tests.crashes.pull import pull_crashes
from tests.crashes.push import push_crashes
from tests.pipelines.push.damaged import Scene, alter, damage
from tests.pipelines.push.plans import place
from tests.pipelines.push.simulation import Wrong, simulate
from tests.postgres import is_available
from tests.soak.damage import damage_seed
from tests.soak.fortnight import fortnight_seed
from tests.soak.new_rows import new_rows_seed
from tests.soak.nights import nights_seed
from tests.soak.platforms import platform_seed
from tests.soak.shops import shops_seed
from tests.soak.walks import Outcome, folder_in_memory, walk_seed
from tests.sources.files.test_polluted import DAMAGES, HARMLESS, silent_errors


def push_seed(seed: int) -> Outcome:
    """Two plans pushed in simulated time, with crashes, lost, late and wrong answers."""
    try:
        return Outcome(simulate(seed).counts)
    except Wrong as wrong:
        return Outcome({}, [str(wrong)])


def polluted_files(seed: int) -> Outcome:
    """CSV files with one to three damages: read equal, or refused with the line. Two that cost no row: read whole."""
    problems: list[str] = []
    refused, draw = 0, random.Random(seed)
    with folder_in_memory() as folder:
        for count in (1, 2, 3):
            names = draw.sample([*DAMAGES], count)
            errors, cost = silent_errors(names, folder, seed)
            problems += [f"{'+'.join(names)}: {error}" for error in errors]
            refused += cost.startswith("refused")
        _, cost = silent_errors([name for name in HARMLESS if draw.random() < 0.2], folder, seed)
    return Outcome(
        {"files": 4, "refused": refused, "clean files refused or with a row rejected": bool(cost)},
        problems,
    )


def all_nights(seed: int) -> Outcome:
    """Nights in which the fields of all orders drift; of each twenty seeds, three in which those of new orders do.

    Of each twenty, four are copied to Postgres after each night, where one can be started.
    """
    if seed % 20 < 3:
        return new_rows_seed(seed)
    return nights_seed(seed, is_copied=seed % 20 >= 16 and is_available())


def all_crashes(seed: int) -> Outcome:
    """Crashes at every point of a pull, of a tail, and of pushes whose length depends on the seed."""
    with folder_in_memory() as folder:
        enumerations = {
            "push of customers": push_crashes("customers", 2 + seed % 4),
            "push of variants": push_crashes("variants", 2 + seed % 4),
            "pull": pull_crashes(folder / "whole"),
            "tail": pull_crashes(folder / "tail", is_tail=True),
        }
    counts = {f"{name}: states": enumeration.states for name, enumeration in enumerations.items()}
    problems = [
        f"{name}: {problem}" for name, of in enumerations.items() for problem in of.problems
    ]
    return Outcome(counts, problems)


def ledgers_seed(seed: int) -> Outcome:
    """A project whose ledger a disk damages, or another program alters, and pushes with it: see `damaged`."""
    counts: Counter[str] = Counter()
    problems: list[str] = []
    with mock.patch.dict(os.environ), folder_in_memory() as folder:
        (copies := folder / "copies").mkdir()
        (project := folder / "project").mkdir(mode=0o700)
        with place(project) as at:
            scene = Scene.build(at, copies)
            for number in range(seed * LEDGERS, (seed + 1) * LEDGERS):
                played = scene.play(number, alter if number % 3 == 0 else damage)
                problems += played.problems
                check = "finds nothing wrong" if played.is_intact else "refuses it"
                pushes = "none began" if played.is_refused else "went on"
                counts[f"the integrity check {check}, pushes: {pushes}"] += 1
                counts["writes with a ledger that it refuses"] += (
                    0 if played.is_intact else sum(sent for _, sent in played.done)
                )
    return Outcome(counts, problems)


LEDGERS: Final = 20
"""Damaged ledgers of a seed."""
CAMPAIGNS: Final[dict[str, tuple[Callable[[int], Outcome], int]]] = {
    "pull": (walk_seed, sys.maxsize),
    "platforms": (platform_seed, sys.maxsize),
    "push": (push_seed, sys.maxsize),
    "fortnights": (fortnight_seed, 1000),
    "files": (polluted_files, sys.maxsize),
    "nights": (all_nights, 200),
    "crashes": (all_crashes, 4),
    "damage": (damage_seed, 200),
    "shops": (shops_seed, 300),
    "ledgers": (ledgers_seed, 500),
}
"""What a seed runs, and the most seeds: more bring nothing new, or take a night each."""


def run_seed(name: str, seed: int) -> Outcome:
    try:
        return CAMPAIGNS[name][0](seed)
    except Exception as error:  # reported with its seed, and the others go on
        return Outcome({}, [f"{type(error).__name__}: {error}"])


def run_campaign(name: str, first: int, seeds: int, jobs: int) -> int:
    """Runs a campaign and prints it. Returns the number of problems."""
    numbers = range(first, first + min(seeds, CAMPAIGNS[name][1]))
    counts: Counter[str] = Counter()
    problems, started = 0, time.monotonic()
    with ProcessPoolExecutor(jobs, get_context("spawn"), logging.disable) as pool:
        for seed, outcome in zip(numbers, pool.map(partial(run_seed, name), numbers), strict=True):
            counts.update(outcome.counts)
            problems += len(outcome.problems)
            for problem in outcome.problems:
                print(f"{name} seed {seed}: {problem}", flush=True)
    counted = (
        ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
        or "nothing counted"
    )
    rate = len(numbers) / (time.monotonic() - started)
    print(
        f"{name}: seeds {first} to {numbers[-1]}, {problems} problems; {counted}; {rate:.1f} seeds a second",
        flush=True,
    )
    return problems


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("seeds", type=int, nargs="?", default=100, metavar="SEEDS")
    parser.add_argument("first", type=int, nargs="?", default=0, metavar="FIRST")
    parser.add_argument(
        "campaigns",
        nargs="*",
        metavar="CAMPAIGN",
        default=list(CAMPAIGNS),
        help=", ".join(CAMPAIGNS),
    )
    options = parser.parse_args(arguments)
    os.environ["PYTHONWARNINGS"] = "error"
    if unknown := set(options.campaigns) - set(CAMPAIGNS):
        parser.error(f"no campaign {', '.join(sorted(unknown))}: there are {', '.join(CAMPAIGNS)}")
    return (
        1
        if sum(
            run_campaign(name, options.first, options.seeds, options.jobs)
            for name in options.campaigns
        )
        else 0
    )
