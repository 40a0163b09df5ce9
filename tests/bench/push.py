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
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import httpx
import msgspec

from orderbridge.pipelines.plan.model import OPERATIONS_FILE, PlannedOperation
from orderbridge.sandbox import SandboxConfig, serve
from tests.bench.measure import Cost, Failed, Series, called, line_of, measured_rounds, run, serving
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


def bare(url: str, key: str, operations: str) -> None:
    decoder = msgspec.json.Decoder(PlannedOperation)
    made = [decoder.decode(line) for line in Path(operations).read_bytes().splitlines()]

    def work(mine: list[PlannedOperation]) -> None:
        with httpx.Client(
            base_url=url, headers={"api-key": key, "Content-Type": "application/json"}
        ) as client:
            for operation in mine:
                body = msgspec.json.encode(operation.body)
                client.request(operation.method, operation.path, content=body).raise_for_status()

    with ThreadPoolExecutor(CONCURRENCY) as pool:
        list(pool.map(work, [made[n::CONCURRENCY] for n in range(CONCURRENCY)]))


def measured(rows: int, rounds: int) -> list[Series]:
    """So many updates, pushed and sent by the bare loop. Raises Failed where one did not arrive exactly once."""
    with (
        tempfile.TemporaryDirectory(prefix="orderbridge-bench-") as name,
        serving("tests.bench.measure", "push.serve_and_count", folder=Path(name)) as platform,
    ):
        numbers, folder = count(), Path(name)
        url, key = json.loads(line_of(platform))

        def one(name: str) -> Cost:
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
            plan = write_plan(
                folder / f"plan-{number}", url, made, "variants", semantics=semantics_in(settings)
            )
            if name == "push":
                cost, _ = run(
                    "orderbridge.pipelines.cli",
                    "push",
                    str(plan),
                    "--yes",
                    folder=folder,
                    settings=settings,
                )
            else:
                cost, _ = called("push.bare", url, key, plan / OPERATIONS_FILE, folder=folder)
            assert platform.stdin is not None
            platform.stdin.write("\n")
            platform.stdin.flush()
            if (seen := json.loads(line_of(platform))) != [rows, 1]:
                raise Failed(
                    f"the sandbox saw {seen[0]} variants of {rows}, one of them {seen[1]} times"
                )
            return cost

        return measured_rounds("push", rows, rounds, one, {"bare": "", "push": "bare"})
