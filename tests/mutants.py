"""A catalogue of planted bugs: each breaks one promise, and the tests named beside it must catch it.

    python -m tests.mutants [NAME …]

Each bug is applied to a copy of the checkout, and its tests run there. A bug that no test catches is printed, and the
command ends with 1. A bug whose place is not in the code any more is an error: move it along with the code.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Mutant:
    """A planted bug: in `file`, `before` becomes `after`; one of `tests` must fail."""

    name: str
    file: str
    before: str
    after: str
    tests: str


MUTANTS = (
    Mutant(
        "a write is retried like a read",
        "sources/http/retries.py",
        'if verb != "GET":',
        'if verb == "DELETE":',
        "tests/sources/http",
    ),
    Mutant(
        "Retry-After is ignored",
        "sources/http/retries.py",
        "return retry_after + random * policy.base_s",
        "return random * policy.base_s",
        "tests/sources/http",
    ),
    Mutant(
        "the deadline of a request is not applied to its reads",
        "sources/http/network.py",
        "return left if timeout is None else min(timeout, left)",
        "return left if timeout is None else timeout",
        "tests/sources/http",
    ),
    Mutant(
        "a byte that left is taken for unsent",
        "sources/http/network.py",
        "exchange.is_sent |= self._carries_requests",
        "exchange.is_sent |= False",
        "tests/sources/http",
    ),
    Mutant(
        "hasMore true without a cursor ends the list",
        "sources/extract/v1_pages.py",
        "if page.has_more and not page.cursor:",
        "if page.has_more and not page.cursor and self.limit < 0:",
        "tests/sources/extract",
    ),
    Mutant(
        "a cursor that was issued before is followed",
        "sources/extract/v1_pages.py",
        "if page.cursor in self._cursors:",
        "if not page.cursor:",
        "tests/sources/extract",
    ),
    Mutant(
        "both sweeps have pages of one size",
        "sources/extract/proof.py",
        "SECOND_SIZE: Final = 0.61",
        "SECOND_SIZE: Final = 1.0",
        "tests/sources/extract",
    ),
    Mutant(
        "the content of a build is not synced before it is renamed",
        "sources/disk.py",
        "    sync(source)\n    source.replace(target)",
        "    source.replace(target)",
        "tests/sources/test_disk.py tests/pipelines/warehouse",
    ),
    Mutant(
        "the folder is not synced after the rename",
        "sources/disk.py",
        "    source.replace(target)\n    sync(target.parent)",
        "    source.replace(target)",
        "tests/sources/test_disk.py tests/pipelines/warehouse",
    ),
    Mutant(
        "a private file of another user is accepted",
        "sources/disk.py",
        "if status.st_uid not in (os.geteuid(), 0):",
        "if status.st_uid < 0:",
        "tests/sources tests/pipelines/warehouse tests/pipelines/ledger",
    ),
    Mutant(
        "rows that an unproven walk did not see are marked missing",
        "pipelines/warehouse/merge.py",
        'marked = "coalesce(o._missing_since, $at)" if walked.verdict == "complete" else "o._missing_since"',
        'marked = "coalesce(o._missing_since, $at)"',
        "tests/pipelines/pull/test_pull.py",
    ),
    Mutant(
        "a list that was held back counts as read",
        "pipelines/warehouse/ops.py",
        "WHERE {published}",
        "WHERE {published} OR true",
        "tests/pipelines/warehouse tests/pipelines/pull/test_pull.py",
    ),
    Mutant(
        "requests leave before their intent is on disk",
        "pipelines/push/send.py",
        "            self._context.ledger.commit([*changes, *in_flight], self._context.ledger.now())\n"
        "            for task in intents:\n                self._tasks.put(task)\n",
        "            for task in intents:\n                self._tasks.put(task)\n"
        "            self._context.ledger.commit([*changes, *in_flight], self._context.ledger.now())\n",
        "tests/pipelines/push",
    ),
    Mutant(
        "the error body of a family confirms a write",
        "pipelines/push/outcome.py",
        "if any(read_error(family, outcome.body).shaped for family in _FAMILIES):",
        "if any(read_error(family, b'').shaped for family in _FAMILIES):",
        "tests/pipelines/push",
    ),
    Mutant(
        "a broken body confirms a write",
        "pipelines/push/outcome.py",
        'return "its body is broken" if outcome.status == _OK else None',
        "return None",
        "tests/pipelines/push",
    ),
    Mutant(
        "the breaker counts doubts in all instead of in a row",
        "pipelines/push/send.py",
        "            self._doubts_in_row = 0\n            self._pace.reset()",
        "            self._pace.reset()",
        "tests/pipelines/push",
    ),
    Mutant(
        "an update that adds is sent twice",
        "pipelines/push/eligibility.py",
        " and not self.additive & set(operation.body)",
        "",
        "tests/pipelines/push",
    ),
    Mutant(
        "conflicting lines of a file are sent",
        "pipelines/plan/dedupe.py",
        "is_decided = ~duplicates.is_conflicting[rows] & (duplicates.first[rows] == rows)",
        "is_decided = duplicates.first[rows] == rows",
        "tests/pipelines/plan",
    ),
    Mutant(
        "a promotion past its end is running",
        "transforms/promotions.py",
        '(latest_end <= as_of, "expired"),',
        "",
        "tests/transforms/test_promotions.py",
    ),
    Mutant(
        "a circle of price lists is a chain",
        "transforms/price_lists.py",
        '(is_cycle, "cycle"), ',
        "",
        "tests/transforms/test_price_lists.py",
    ),
    Mutant(
        "what the terminal interprets is printed",
        "pipelines/cli/terminal.py",
        "char if char.isprintable() or char in keep else char.encode",
        "char if char else char.encode",
        "tests/pipelines/cli",
    ),
)


def is_caught(mutant: Mutant) -> bool:
    """Whether a test fails once the bug is in the code. Raises ValueError if its place is not there."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder) / "checkout"
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "demo")
        shutil.copytree(CHECKOUT, copy, ignore=ignored, symlinks=True)
        file = copy / mutant.file
        text = file.read_text("utf-8")
        if text.count(mutant.before) != 1:
            raise ValueError(f"{mutant.name}: {mutant.file} holds its place {text.count(mutant.before)} times")
        file.write_text(text.replace(mutant.before, mutant.after), "utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n2", "-p", "no:cacheprovider", *mutant.tests.split()]
        environment = {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=copy, env=dict(os.environ) | environment, capture_output=True, check=False)
        report = done.stdout.decode()
        has_failed = re.search(r"\b[0-9]+ failed\b", report[-500:]) is not None
        if done.returncode != 0 and not has_failed:  # nothing collected, or an error in the copy
            raise ValueError(f"{mutant.name}: pytest ended with {done.returncode}:\n{report[-2000:]}")
        return has_failed


def main(names: list[str]) -> int:
    """Plants each bug; prints which are caught. 1 where one is not."""
    survivors = 0
    for mutant in MUTANTS:
        if names and mutant.name not in names:
            continue
        caught = is_caught(mutant)
        survivors += not caught
        sys.stdout.write(f"{'caught  ' if caught else 'SURVIVED'} {mutant.name}\n")
        sys.stdout.flush()
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
