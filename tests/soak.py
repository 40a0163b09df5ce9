"""Long campaigns, for a night: `python -m tests.soak SEEDS [FIRST] [CAMPAIGN …]`, or `make soak SEEDS=N`.

Each campaign takes a seed and raises or returns the problems that it found. A failing seed is printed; running it again
with `SEEDS=1 FIRST=<seed>` replays it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.pipelines.pull.mixtures import judge, mixture
from tests.pipelines.push.simulation import Wrong, simulate
from tests.sandbox.fuzz import fuzz
from tests.sources.files.peers import unexplained
from tests.sources.files.polluted import damaged, silent_errors

REQUESTS_A_SEED = 200


def pull_with_faults(seed: int) -> list[str]:
    """A first pull of a platform with random readings, faults and amounts."""
    with tempfile.TemporaryDirectory(prefix="soak-pull-") as folder:
        return judge(mixture(seed), Path(folder))


def push_with_crashes(seed: int) -> list[str]:
    """Plans and pushes in simulated time, with crashes, lost and late answers."""
    try:
        simulate(seed)
    except Wrong as wrong:
        return [str(wrong)]
    return []


def sandbox_fuzz(seed: int) -> list[str]:
    """Generated requests to every operation of the sandbox."""
    return fuzz(seed, REQUESTS_A_SEED)


def damaged_files(seed: int) -> list[str]:
    """CSV files with one damage and with two: read equal, or refused with the line."""
    problems = []
    with tempfile.TemporaryDirectory(prefix="soak-files-") as folder:
        for count in (1, 2, 3):
            document, name = damaged(seed, count)
            problems += [f"{name}: {error}" for error in silent_errors(document, Path(folder))[0]]
            problems += [f"{name}: {reader} has no {cells}" for reader, cells in unexplained(document, Path(folder))]
    return problems


CAMPAIGNS: dict[str, Callable[[int], list[str]]] = {
    "pull": pull_with_faults,
    "push": push_with_crashes,
    "sandbox": sandbox_fuzz,
    "files": damaged_files,
}


def main(arguments: list[str]) -> int:
    """Runs the campaigns; prints each failing seed, and for each campaign its rate."""
    seeds = int(arguments[0]) if arguments else 100
    first = int(arguments[1]) if len(arguments) > 1 else 0
    os.environ["PYTHONWARNINGS"] = "error"
    failures = 0
    for name in arguments[2:] or CAMPAIGNS:
        started = time.monotonic()
        failed = 0
        for seed in range(first, first + seeds):
            for problem in CAMPAIGNS[name](seed):
                failed += 1
                sys.stdout.write(f"{name} seed {seed}: {problem}\n")
        rate = seeds / (time.monotonic() - started)
        sys.stdout.write(f"{name}: {seeds} seeds from {first}, {failed} problems, {rate:.1f} seeds a second\n")
        sys.stdout.flush()
        failures += failed
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
