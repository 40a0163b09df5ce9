"""The campaigns by name: what a seed runs, and blocks of seeds for a process to take."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.crashes.enumeration import enumerate_all
from tests.pipelines.push.simulation import Run, Wrong, simulate
from tests.sandbox.fuzz import fuzz
from tests.soak.fortnight import fortnight_seed
from tests.soak.nights import nights_seed
from tests.soak.outcome import Outcome
from tests.soak.platforms import platform_seed
from tests.soak.tails import tail_seed
from tests.soak.walks import walk_seed
from tests.sources.files.business import export, judged
from tests.sources.files.polluted import damaged, silent_errors

REQUESTS_A_SEED: Final = 200


def push_seed(seed: int) -> Outcome:
    """Two plans pushed in simulated time, with crashes, lost, late and wrong answers."""
    run: Run | Wrong
    try:
        run = simulate(seed)
    except Wrong as wrong:
        return Outcome({}, [str(wrong)])
    return Outcome(run.counts)


def sandbox_fuzz(seed: int) -> Outcome:
    """Generated requests to every operation of the sandbox."""
    return Outcome({"requests": REQUESTS_A_SEED}, fuzz(seed, REQUESTS_A_SEED))


def polluted_files(seed: int) -> Outcome:
    """CSV files with one to three damages: read equal, or refused with the line. And a clean one: read whole."""
    problems: list[str] = []
    refused = 0
    with tempfile.TemporaryDirectory(prefix="soak-files-") as folder:
        for count in (1, 2, 3):
            document, name = damaged(seed, count)
            errors, is_refused = silent_errors(document, Path(folder))
            problems += [f"{name}: {error}" for error in errors]
            refused += is_refused
        errors, reason = judged(export(seed), Path(folder))
        problems += [f"clean: {error}" for error in errors]
    return Outcome(
        {"files": 4, "refused": refused, "clean files refused or with a row rejected": bool(reason)}, problems
    )


def all_crashes(seed: int) -> Outcome:
    """Crashes at every point of a pull and of pushes whose length depends on the seed."""
    counts: Counter[str] = Counter()
    problems = []
    for name, enumeration in enumerate_all(2 + seed % 4):
        counts.update({f"{name}: points": enumeration.points, f"{name}: states": enumeration.states})
        problems += [f"{name}: {problem}" for problem in enumeration.problems]
    return Outcome(counts, problems)


@dataclass(frozen=True)
class Campaign:
    """Runs of one kind; `seeds_max` where more seeds bring nothing new or take a night each."""

    run: Callable[[int], Outcome]
    seeds_max: int = sys.maxsize


CAMPAIGNS: Final = {
    "pull": Campaign(walk_seed),
    "platforms": Campaign(platform_seed),
    "push": Campaign(push_seed),
    "fortnights": Campaign(fortnight_seed, 1000),
    "files": Campaign(polluted_files),
    "sandbox": Campaign(sandbox_fuzz),
    "tails": Campaign(tail_seed),
    "nights": Campaign(nights_seed, 200),
    "crashes": Campaign(all_crashes, 4),
}


def block(task: tuple[str, int, int]) -> tuple[Counter[str], list[tuple[int, str]]]:
    """Runs some seeds of a campaign: its name, the first one, and the one after the last."""
    name, first, end = task
    counts: Counter[str] = Counter()
    problems = []
    for seed in range(first, end):
        try:
            outcome = CAMPAIGNS[name].run(seed)
        except Exception as error:  # reported with its seed, and the others go on
            outcome = Outcome({}, [f"{type(error).__name__}: {error}"])
        counts.update(outcome.counts)
        problems += [(seed, problem) for problem in outcome.problems]
    return counts, problems
