"""A push compared with a bare loop of requests.

The same variant updates, with as many at once, against a sandbox in a process of its own:

    bare   httpx, a client a thread; each answer's status is looked at, and nothing is written down
    push   orderbridge push: plan checked, ledger on disk before each request, results of each line, log

The sandbox counts: an update that did not come exactly once fails the run.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from functools import partial
from itertools import count
from pathlib import Path

import httpx
import msgspec

from pipelines.plan.model import OPERATIONS_FILE, PlannedOperation
from sandbox import SandboxConfig, serve
from tests.bench.measure import Cost, Failed, Series, line_of, measured_rounds, run, serving
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


def measured(rows: int, rounds: int) -> list[Series]:
    """So many updates, pushed and sent by the bare loop. Raises Failed where one did not arrive exactly once."""
    with (
        tempfile.TemporaryDirectory(prefix="orderbridge-bench-") as name,
        serving("tests.bench.push", "--serve", folder=Path(name)) as platform,
    ):
        numbers, folder = count(), Path(name)
        url, key = json.loads(line_of(platform))

        def one(*, is_push: bool) -> Cost:
            number = next(numbers)
            made = [patch(n, n, price=n / 100, sku=f"SKU-{number}-{n}") for n in range(1, rows + 1)]
            settings = {
                "SOURCES__LEGACY__BASE_URL": url,
                "SOURCES__LEGACY__API_KEY": key,
                "SOURCES__LEGACY__ENVIRONMENT": "sandbox",
                "SOURCES__LEGACY__PRICE_SEMANTICS": "set",
                "WAREHOUSE__PATH": str(folder / "warehouse.duckdb"),
                "LEDGER__PATH": str(folder / f"ledger-{number}.sqlite"),
            }
            semantics = semantics_in(settings)
            plan = write_plan(folder / f"plan-{number}", url, made, "variants", semantics=semantics)
            if is_push:
                cost, _ = run("pipelines.cli", "push", str(plan), "--yes", folder=folder, settings=settings)
            else:
                target = ("--bare", url, key, str(plan / OPERATIONS_FILE))
                cost, _ = run("tests.bench.push", *target, folder=folder, settings=settings)
            assert platform.stdin is not None
            platform.stdin.write("\n")
            platform.stdin.flush()
            if (seen := json.loads(line_of(platform))) != [rows, 1]:
                raise Failed(f"the sandbox saw {seen[0]} variants of {rows}, one of them {seen[1]} times")
            return cost

        contenders = {"bare": partial(one, is_push=False), "push": partial(one, is_push=True)}
        return measured_rounds("push", rows, rounds, contenders, {"push": "bare"})


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve_and_count()
    else:
        bare(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
