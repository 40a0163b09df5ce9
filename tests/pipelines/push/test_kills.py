"""Pushes that are cut off by SIGKILL at any moment: after the resume each customer is there once, nothing is lost."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from sandbox import SandboxConfig, serve
from tests.pipelines.bridge import command, start, wait_for
from tests.pipelines.push.plans import Place, customer, patch, results, write_plan

KILLS = int(os.environ.get("ORDERBRIDGE_KILLS", "2"))
ROWS = int(os.environ.get("ORDERBRIDGE_KILL_ROWS", "300" if KILLS > 50 else "60"))
FAULTS = {"lost_answer": 0.02, "applied_5xx": 0.02, "late_apply": 0.02, "rate_429": 0.02}
LATE_S = 1.5
SETTLE = str(2.5 / 60)


def pushed(place: Place, plan: Path, *more: str) -> int:
    return command(
        "push", str(plan), "--yes", "--settle", SETTLE, *more, env=place.environment(), cwd=place.folder
    ).code


def lasts(place: Place, plan: Path) -> float:
    """Seconds that a push works without faults, from its lock on."""
    lock = place.folder / ".ledger.sqlite.lock"
    with start("push", str(plan), "--yes", env=place.environment(), cwd=place.folder) as process:
        wait_for(lambda: lock.exists() or process.poll() is not None)
        began = time.monotonic()
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        return time.monotonic() - began


def kill_after(place: Place, plan: Path, seconds: float) -> bool:
    """Starts a push and kills it so long after it took its lock. Whether it had ended before."""
    lock = place.folder / ".ledger.sqlite.lock"
    env = place.environment()
    with start("push", str(plan), "--yes", "--settle", SETTLE, env=env, cwd=place.folder) as process:
        wait_for(lambda: lock.exists() or process.poll() is not None)
        time.sleep(seconds)
        process.kill()
        process.communicate(timeout=300)
        lock.unlink(missing_ok=True)
        return process.returncode >= 0


def whole(place: Place, plan: Path, number: int) -> None:
    """Results add up, agree with the sandbox, and nobody is there twice."""
    codes = Counter(place.codes())
    assert not [code for code, times in codes.items() if times > 1], f"kill {number}"
    found = results(plan)
    lines = sorted(int(row["line"]) for rows in found.values() for row in rows)
    assert lines == list(range(2, ROWS + 2)), f"kill {number}"
    for row in found["confirmed"]:
        assert codes[f"C{int(row['operation']):05d}"] == 1, f"kill {number}"
    for row in (*found["rejected"], *found["unsent"]):
        assert codes[f"C{int(row['operation']):05d}"] == 0, f"kill {number}"


@pytest.mark.parametrize("part", range(2))
def test_a_killed_push_goes_on_and_creates_each_customer_once(tmp_path: Path, part: int) -> None:
    draw = random.Random(part)
    took = 3.0
    for number in range(part, KILLS, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        config = SandboxConfig(customers=8, orders=0, promotions=0, price_lists=1, seed=number, late_s=LATE_S)
        with serve(config) as platform:
            place = Place(platform, folder)
            plan = place.plan([customer(n) for n in range(1, ROWS + 1)])
            if number == part:
                took = lasts(place, place.plan([customer(n) for n in range(1001, ROWS + 1001)])) * 1.1
                platform.state.customer_inputs.clear()
            platform.set_faults(FAULTS)
            kill_after(place, plan, took * number / max(1, KILLS - 1))
            if draw.random() < 0.5:
                kill_after(place, plan, took * draw.random())
            code = pushed(place, plan)
            whole(place, plan, number)
            assert code == (6 if results(plan)["in_doubt"] else 5 if results(plan)["unsent"] else 0)
            platform.set_faults({})
            code = pushed(place, plan, "--wait")
            whole(place, plan, number)
            assert (code, len(results(plan)["confirmed"])) == (0, ROWS), f"kill {number}"
            assert not [path for path in folder.iterdir() if path.name.endswith(".walk")]
        shutil.rmtree(folder)


def test_a_killed_push_of_variants_never_adds_twice(tmp_path: Path) -> None:
    readings = {"stock_semantics": "increment", "price_semantics": "increment"}
    config = SandboxConfig(customers=2, orders=0, promotions=0, price_lists=1, readings=readings, late_s=LATE_S)
    with serve(config) as platform:
        place = Place(platform, tmp_path)
        operations = []
        for variant in range(1, 101):
            number = 2 * variant - 1
            operations.append(patch(number, variant, line=variant + 1, sku=f"S{variant}", weight=variant))
            operations.append(patch(number + 1, variant, repeatable=False, line=variant + 1, stock=5, price=1.5))
        plan = write_plan(tmp_path / "plan", platform.url, operations, "variants")
        platform.set_faults(FAULTS)
        for seconds in (0.15, 0.3):
            kill_after(place, plan, seconds)
        code = pushed(place, plan)
        time.sleep(LATE_S + 0.5)
        counts = [dict(kept.counts) for kept in platform.state.variants.values()]
        assert max(kept.get("stock", 0) for kept in counts) <= 1
        assert max(kept.get("price", 0) for kept in counts) <= 1
        doubtful = {int(row["operation"]) for row in results(plan)["in_doubt"]}
        assert code == (6 if doubtful else 0)
        for row in place.rows(plan):
            kept = platform.state.variants.get((1, (row.id + 1) // 2))
            times = kept.counts["sku" if row.id % 2 else "stock"] if kept else 0
            assert times >= (row.state == "confirmed")
            assert row.state in ("confirmed", "in_doubt")
