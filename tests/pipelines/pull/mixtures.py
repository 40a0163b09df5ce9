"""Pulls of a platform with faults and readings mixed at random, each judged against what the platform held.

`make soak CAMPAIGNS=whole-pull SEEDS=1000` judges any number of them, and prints each problem with its seed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.pull.model import PullResult
from sandbox import Sandbox
from sandbox.faults import FAULTS
from sources.errors import BridgeError
from sources.gaps import GAPS
from tests.pipelines.bridge import Bridge, bridge
from tests.pipelines.pull.truth import RESOURCES, ids, same
from tests.soak.outcome import Outcome
from tests.sources.http.backoff import without_backoff

SLOW = {"stall", "drip"}
READ_FAULTS = [fault.name for fault in FAULTS if fault.reach != "write" and fault.kind != "hostile"]
MIXED_FAULTS = [name for name in READ_FAULTS if name not in SLOW]
UNMIXED = {"rate_limit", "order_sequence", "cursor_reuse"}
"""Readings that cost time, and those that a tail is for: a request that is repeated uses its cursor again too."""
ALTERED = {"page_drift", "type_drift", "extra_fields"}
"""Faults by which a row comes otherwise than the platform holds it, or the platform changes meanwhile."""


@dataclass(frozen=True)
class Mixture:
    """A platform to pull from."""

    seed: int
    customers: int
    faults: Mapping[str, float] = field(default_factory=dict)
    readings: Mapping[str, str] = field(default_factory=dict)


def mixture(seed: int) -> Mixture:
    """The mixture of that number: up to three faults, up to four readings, a list of some length."""
    draw = random.Random(seed)
    rates = {name: draw.choice([0.02, 0.1, 0.3]) for name in draw.sample(MIXED_FAULTS, draw.randrange(4))}
    gaps = draw.sample([gap for gap in GAPS if gap.name not in UNMIXED], draw.randrange(5))
    readings = {gap.name: draw.choice(gap.readings) for gap in gaps}
    return Mixture(seed, draw.choice([0, 1, 7, 20, 41, 90]), rates, readings)


def representative(seeds: int) -> list[int]:
    """The fewest of the first `seeds` that meet every fault and every reading that all of them meet."""
    parts: dict[int, set[object]] = {
        seed: {*mixture(seed).faults, *mixture(seed).readings.items()} for seed in range(seeds)
    }
    left: set[object] = set().union(*parts.values())
    chosen = []
    while left:
        chosen.append(max(parts, key=lambda seed: len(parts[seed] & left)))
        left -= parts[chosen[-1]]
    return sorted(chosen)


def pulled(made: Bridge, *resources: str) -> tuple[PullResult | None, int]:
    """What a pull did, and its exit code; None where it published nothing."""
    try:
        done = made.pull(*resources)
    except BridgeError as error:
        return None, error.exit_code
    return done, done.exit_code


def wrongs(made: Bridge, done: PullResult | None, code: int, altered: bool) -> Iterator[str]:
    """Everything that the pull said and that was not so."""
    if done is None:
        if made.path.exists():
            yield "it failed, and there is a warehouse"
        if not code:
            yield "it failed with 0"
        return
    left = {made.path.name, f"{made.path.name}.quarantine.jsonl", f".build-{made.path.name}"}
    if not set(made.left()) <= left:
        yield f"left behind: {made.left()}"
    for walked in done.lists:
        name = walked.resource
        yield from (f"{name}: {wrong}" for wrong in _of_a_list(made, done, name, walked.verdict, altered))
        if walked.error is not None and not code:
            yield f"{name} failed, and the exit code is 0"
        if walked.quarantined and not code:
            yield f"{name} has refused rows, and the exit code is 0"


def _of_a_list(made: Bridge, done: PullResult, name: str, verdict: str, altered: bool) -> Iterator[str]:
    always, ever = _bounds(made.platform, name)
    have = ids(made.path, name)
    if not have <= ever:
        yield f"{len(have - ever)} rows that never were"
    reported = dict(
        made.rows("SELECT measure, value FROM ops.control_totals WHERE run_id = $1 AND entity = $2", done.run_id, name)
    )
    if (
        reported["read"]
        != reported["loaded"] + reported["held_back"] + reported["duplicates"] + reported["quarantined"]
        and reported["loaded"]
    ):
        yield f"totals do not balance: {reported}"
    if reported["loaded"] != len(have):
        yield f"{reported['loaded']} said to be loaded, {len(have)} are"
    if verdict == "complete":
        if not always <= have:
            yield f"complete, and {len(always - have)} of {len(always)} rows are missing"
        elif not altered and not same(made.path, made.platform.state, name):
            yield "complete, and the rows are not the platform's"
    elif verdict == "incomplete" and have:
        yield "the walk failed, and rows were published"


def _bounds(platform: Sandbox, name: str) -> tuple[set[str], set[str]]:
    return set(platform.state.always(name)), set(platform.state.ever(name))


def judge(mixed: Mixture, folder: Path) -> Outcome:
    """The verdicts of a first pull of that platform, and what was reported wrongly."""
    config = {"seed": mixed.seed, "customers": mixed.customers, "faults": mixed.faults, "readings": mixed.readings}
    with without_backoff(), bridge(folder, page_limit=10, stall_s=1, **config) as made:
        done, code = pulled(made, *RESOURCES)
        verdicts = Counter([walked.verdict for walked in done.lists] if done is not None else [f"exit {code}"])
        return Outcome(verdicts, list(wrongs(made, done, code, bool(ALTERED & set(mixed.faults)))))
