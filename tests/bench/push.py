"""Measures a push beside a bare loop of requests: `make bench-push BENCH='--operations 20000 --rounds 3'`.

The same variant updates, with as many at once, against a sandbox in a process of its own:

    bare   httpx, a client a thread; each answer's status is looked at, and nothing is written down
    push   orderbridge push: plan checked, ledger on disk before each request, results of each line, log

Each round is of one after the other. The sandbox counts: an update that did not come exactly once fails the run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import msgspec

from pipelines.plan.model import OPERATIONS_FILE, PlannedOperation
from sandbox import SandboxConfig, serve
from tests.bench.measure import Cost, Failed, environment, run
from tests.pipelines.push.plans import patch, semantics_in, write_plan

CONCURRENCY = 4


def serve_and_count() -> None:
    """The sandbox: says where it is, then, for each line that it reads, what it counted since the last."""
    with serve(SandboxConfig(customers=1, orders=0, promotions=0, price_lists=1)) as platform:
        print(json.dumps([platform.url, platform.legacy_key]), flush=True)
        for _ in sys.stdin:
            applied = [kept.applied for kept in platform.state.variants.values()]
            platform.state.variants.clear()
            print(json.dumps([len(applied), max(applied, default=0)]), flush=True)


def bare(url: str, key: str, operations: Path) -> None:
    """The loop that has nothing to lose."""
    decoder = msgspec.json.Decoder(PlannedOperation)
    made = [decoder.decode(line) for line in operations.read_bytes().splitlines()]
    failed: list[int] = []

    def work(mine: list[PlannedOperation]) -> None:
        headers = {"api-key": key, "Content-Type": "application/json"}
        with httpx.Client(base_url=url, headers=headers) as client:
            for operation in mine:
                answer = client.request(operation.method, operation.path, content=msgspec.json.encode(operation.body))
                if answer.status_code != 204:
                    failed.append(operation.id)

    threads = [threading.Thread(target=work, args=(made[n::CONCURRENCY],)) for n in range(CONCURRENCY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        sys.exit(f"{len(failed)} updates failed")


class Counting:
    """The sandbox in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url, self.key = self._said()

    def _said(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def check(self, operations: int) -> None:
        """Raises Failed where not each update came exactly once since the last look."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        variants, most = self._said()
        if (variants, most) != (operations, 1):
            raise Failed(f"the sandbox saw {variants} variants of {operations}, one of them {most} times")


@contextmanager
def counting(folder: Path) -> Iterator[Counting]:
    """Starts the sandbox, and ends it."""
    arguments = [sys.executable, "-m", "tests.bench.push", "--serve"]
    with subprocess.Popen(
        arguments,
        cwd=folder,
        env=environment(folder, {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Counting(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(20)


def round_of(number: int, operations: int, platform: Counting, folder: Path) -> tuple[Cost, Cost]:
    """One after the other: bare, push."""
    made = [patch(n, n, price=n / 100, sku=f"SKU-{number}-{n}") for n in range(1, operations + 1)]
    settings = {
        "SOURCES__LEGACY__BASE_URL": platform.url,
        "SOURCES__LEGACY__API_KEY": platform.key,
        "SOURCES__LEGACY__ENVIRONMENT": "sandbox",
        "SOURCES__LEGACY__PRICE_SEMANTICS": "set",
        "WAREHOUSE__PATH": str(folder / "warehouse.duckdb"),
        "LEDGER__PATH": str(folder / f"ledger-{number}.sqlite"),
    }
    plan = write_plan(folder / f"plan-{number}", platform.url, made, "variants", semantics=semantics_in(settings))
    reported = ("--bare", platform.url, platform.key, str(plan / OPERATIONS_FILE))
    first, _ = run("tests.bench.push", *reported, folder=folder, settings=settings)
    platform.check(operations)
    second, _ = run("pipelines.cli", "push", str(plan), "--yes", folder=folder, settings=settings)
    platform.check(operations)
    return first, second


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--bare", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve_and_count()
        return 0
    if asked.bare:
        bare(asked.bare[0], asked.bare[1], Path(asked.bare[2]))
        return 0
    costs: list[tuple[Cost, Cost]] = []
    with tempfile.TemporaryDirectory(prefix="orderbridge-bench-") as name, counting(Path(name)) as platform:
        round_of(0, 50, platform, Path(name))  # compiles what is imported
        for number in range(1, asked.rounds + 1):
            costs.append(round_of(number, asked.operations, platform, Path(name)))
            one, other = costs[-1]
            print(
                f"round {number}: bare {one.wall_s:.1f} s wall, {one.cpu_s:.1f} s CPU; "
                f"push {other.wall_s:.1f} s wall, {other.cpu_s:.1f} s CPU, {other.peak_mb:.0f} MB; "
                f"ratio {other.wall_s / one.wall_s:.2f}",
                flush=True,
            )
    ratio = median(other.wall_s / one.wall_s for one, other in costs)
    print(
        f"{asked.operations} updates, {CONCURRENCY} at once: push takes {ratio:.2f} × the bare loop (median of ratios)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
