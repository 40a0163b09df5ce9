"""Pushes that are cut off by SIGKILL: after the resume each customer is there once.

`ORDERBRIDGE_KILLS=100` kills that many pushes of customers. `tests/crashes` ends a push at each of its points.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.pipelines.bridge import command, start, wait_for
from tests.pipelines.push.plans import Place, customer, place, results

KILLS = int(os.environ.get("ORDERBRIDGE_KILLS", "1"))
ROWS = 60
FAULTS = {"lost_answer": 0.02, "applied_5xx": 0.02, "late_apply": 0.02, "rate_429": 0.02}
LATE_S = 1.5
SETTLE = ("--yes", "--settle", str(2.5 / 60))


def pushed(at: Place, plan: Path, *more: str) -> int:
    return command("push", str(plan), *SETTLE, *more, env=at.environment(), cwd=at.folder).code


def kill_at(at: Place, plan: Path, requests: int) -> None:
    """Starts a push and kills it once the platform has had so many requests more."""
    until = at.platform.state.requests + requests
    with start("push", str(plan), *SETTLE, env=at.environment(), cwd=at.folder) as process:
        wait_for(lambda: at.platform.state.requests >= until or process.poll() is not None)
        process.kill()
        process.communicate(timeout=300)
    (at.folder / ".ledger.sqlite.lock").unlink(missing_ok=True)


def whole(at: Place, plan: Path) -> None:
    """Results add up, agree with the sandbox, and nobody is there twice."""
    created, found = at.codes(), results(plan)
    assert len(created) == len(set(created))
    assert sorted(int(row["line"]) for rows in found.values() for row in rows) == list(range(2, ROWS + 2))
    for file, rows in found.items():
        if file != "in_doubt":
            assert {f"C{int(row['operation']):05d}" in created for row in rows} <= {file == "confirmed"}


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_killed_push_goes_on_and_creates_each_customer_once(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    with place(tmp_path, seed=seed, late_s=LATE_S, latency_ms=2) as at:
        plan = at.plan([customer(n) for n in range(1, ROWS + 1)])
        at.platform.set_faults(FAULTS)
        for _ in range(2):
            kill_at(at, plan, draw.randint(1, ROWS // 2))
        code = pushed(at, plan)
        whole(at, plan)
        assert code == (6 if results(plan)["in_doubt"] else 5 if results(plan)["unsent"] else 0)
        at.platform.set_faults({})
        assert pushed(at, plan, "--wait") == 0
        whole(at, plan)
        assert len(results(plan)["confirmed"]) == ROWS
        assert not [path for path in at.folder.iterdir() if path.name.endswith(".walk")]
