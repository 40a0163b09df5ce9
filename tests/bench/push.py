"""A push compared with a bare loop of requests.

The same variant updates, with as many at once, against a sandbox in a process of its own:

    bare   httpx, a client a thread; each answer's status is looked at, and nothing is written down
    push   orderbridge push: plan checked, ledger on disk before each request, results of each line, log

The sandbox counts: an update that did not come exactly once fails the run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import msgspec

from pipelines.plan.model import OPERATIONS_FILE, PlannedOperation
from sandbox import SandboxConfig, serve
from tests.bench.measure import Cost, Failed, Series, environment, measured_rounds, run
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


def measured(rows: int, rounds: int) -> list[Series]:
    """So many updates, pushed and sent by the bare loop. Raises Failed where one did not arrive exactly once."""
    with tempfile.TemporaryDirectory(prefix="orderbridge-bench-") as name, counting(Path(name)) as platform:
        numbers, folder = count(), Path(name)

        def one(*, is_push: bool) -> Cost:
            number = next(numbers)
            made = [patch(n, n, price=n / 100, sku=f"SKU-{number}-{n}") for n in range(1, rows + 1)]
            settings = {
                "SOURCES__LEGACY__BASE_URL": platform.url,
                "SOURCES__LEGACY__API_KEY": platform.key,
                "SOURCES__LEGACY__ENVIRONMENT": "sandbox",
                "SOURCES__LEGACY__PRICE_SEMANTICS": "set",
                "WAREHOUSE__PATH": str(folder / "warehouse.duckdb"),
                "LEDGER__PATH": str(folder / f"ledger-{number}.sqlite"),
            }
            semantics = semantics_in(settings)
            plan = write_plan(folder / f"plan-{number}", platform.url, made, "variants", semantics=semantics)
            if is_push:
                cost, _ = run("pipelines.cli", "push", str(plan), "--yes", folder=folder, settings=settings)
            else:
                target = ("--bare", platform.url, platform.key, str(plan / OPERATIONS_FILE))
                cost, _ = run("tests.bench.push", *target, folder=folder, settings=settings)
            platform.check(rows)
            return cost

        contenders = {"bare": partial(one, is_push=False), "push": partial(one, is_push=True)}
        return measured_rounds("push", rows, rounds, contenders, {"push": "bare"})


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve_and_count()
    else:
        bare(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
