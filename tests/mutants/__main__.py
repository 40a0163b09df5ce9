"""Plants bugs in copies of the checkout and runs their tests there.

    python -m tests.mutants [--check] [--jobs N] [NAME …]
    python -m tests.mutants --change REVISION [--most N] [--jobs N] [TESTS …]

Each bug is reported as caught or survived; one that no test catches ends the command with 1, and a patch that cannot be
applied, which is named before any test runs, with 2. The first form plants those of the catalogue (see `catalogue.py`);
names may contain `*`, and `--check` runs no test. The second form plants small changes (see `operators.py`) in the
lines that a commit, or a range of commits, changed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from tests.mutants.catalogue import read_mutants
from tests.mutants.change import change_mutants
from tests.mutants.planting import CHECKOUT, PatchError, judge_all


def main(arguments: Sequence[str]) -> int:
    """Plants the bugs and prints which are caught. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--check", action="store_true", help="only check that every patch can be applied"
    )
    parser.add_argument("--jobs", type=int, default=2, help="bugs that are tested at the same time")
    parser.add_argument("--change", metavar="REVISION", help="a commit, or a range of commits")
    parser.add_argument(
        "--most", type=int, default=40, help="a random choice of so many bugs of a change"
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="bugs of the catalogue (default: all), or files and folders of tests for a change",
    )
    options = parser.parse_args(arguments)
    if options.change:
        try:
            bugs = change_mutants(options.change, options.names, options.most, options.jobs)
        except PatchError as error:
            print(error)
            return 2
        return judge_all(bugs, options.jobs)
    return _planted_of_catalogue(options.names or ["*"], options.jobs, is_check=options.check)


def _planted_of_catalogue(names: Sequence[str], jobs: int, *, is_check: bool) -> int:
    files = sorted(Path(__file__).parent.glob("*.txt"))
    catalogue = [mutant for file in files for mutant in read_mutants(file)]
    problems = [
        f"no mutant is named {name}"
        for name in names
        if not any(fnmatch(mutant.name, name) for mutant in catalogue)
    ]
    mutants = [mutant for mutant in catalogue if any(fnmatch(mutant.name, name) for name in names)]
    for mutant in mutants:
        try:
            mutant.patched(CHECKOUT)
        except PatchError as error:
            problems.append(str(error))
    if problems or is_check:
        print("\n".join(problems) or f"{len(mutants)} patches can be applied")
        return 2 if problems else 0
    return judge_all(mutants, jobs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
