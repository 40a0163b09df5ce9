"""Pulls of orders, tails among them, of a platform that changes, with random faults and readings of the gaps.

The judge: a tail only where its conditions hold by a count of its own; after a tail no order is absent that was listed
before it began, unless it was put among older ones; rows never vanish, and only whole reads mark any as missing; the
last whole read is that of the last whole walk.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pipelines.warehouse.ops import last_reads
from sources.extract.result import ListResult
from tests.pipelines.pull.tails import TailBench
from tests.soak.walks import Outcome, folder_in_memory, inline

FAULTS: Final = ("error_503", "truncated_json", "expired_cursor", "capped_limit", "duplicate_records", "null_cursor")
SEQUENCES: Final = (*["oldest_first"] * 4, "newest_first", "unordered")
REUSES: Final = (*["continues"] * 6, "rejected", "restarts", "skips")
DAYS: Final = 7


class _Seed:
    """One platform and one warehouse, and the pulls between them."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.draw = draw = random.Random(seed)
        self.sequence = draw.choice(SEQUENCES)
        self.reuse = draw.choice(REUSES)
        readings = {"order_sequence": self.sequence, "cursor_reuse": self.reuse}
        readings["order_shape"] = draw.choice(("nested", "flat"))
        orders, limit = draw.choice((0, 5, 25, 60)), draw.choice((4, 10))
        self.bench = TailBench.of(folder, orders, limit, seed=seed, readings=readings)
        self.counts: Counter[str] = Counter()
        self.whole: tuple[str, datetime, tuple[object, ...]] | None = None
        self.tail_run: str | None = None
        self.is_moved = False

    def run(self) -> Iterator[str]:
        """Pulls, with changes in between; yields what is wrong."""
        for _ in range(self.draw.randint(3, 9)):
            self._change()
            yield from self._pull()
        self.bench.warehouse.close()

    def _change(self) -> None:
        bench, draw = self.bench, self.draw
        state = bench.state
        state.grow("orders", draw.choice((0, 0, 1, 3, 8, 20)))
        for key in state.ids("orders"):
            if draw.random() < 0.03:
                state.change("orders", key, {"status": draw.choice(("PAID", "SENT"))})
            elif draw.random() < 0.002:
                state.remove("orders", key)
        if draw.random() < 0.06:
            state.drift("orders", draw.randrange(len(state.ids("orders")) + 1), removes=False)
            self.is_moved = True
        if draw.random() < 0.05:
            bench.configure(page_limit=draw.choice((4, 10)))
        if draw.random() < 0.1:
            bench.organization = draw.choice(("org", "org", "org", None))
        names = draw.sample(FAULTS, draw.choice((0, 0, 0, 0, 1, 2)))
        if self.reuse == "skips":  # a request that is repeated would lose rows, and nobody could notice
            names = []
        bench.platform.plan.rates = {name: draw.choice((0.05, 0.3)) for name in names}

    def _pull(self) -> Iterator[str]:
        bench, draw = self.bench, self.draw
        listed, known = set(bench.state.ids("orders")), bench.ids()
        marked = bench.ids("_missing_since IS NOT NULL")
        is_tail = draw.random() < 0.8
        result = bench.pull(tail=is_tail, after=timedelta(hours=draw.choice((1, 1, 12, 30, 90))))
        self.counts[result.verdict] += 1
        if self.sequence == "oldest_first" and result.verdict == "tail":
            self.counts["tail with new orders"] += len(bench.ids() - known) > 0
        yield from self._judge(result, is_tail)
        if not known <= bench.ids():
            yield "rows vanished"
        if result.verdict != "complete" and marked - bench.ids("_missing_since IS NOT NULL") - bench.ids(
            _SEEN % bench.pulls
        ):
            yield "rows that were missing are not, and were not read"
        if result.verdict != "complete" and bench.ids("_missing_since IS NOT NULL") - marked:
            yield f"rows are marked as missing by a read that is {result.verdict}"
        if result.verdict in ("complete", "tail") and (absent := listed - bench.ids()) and not self.is_moved:
            yield f"{len(absent)} orders are absent after a read that is {result.verdict}"
        if result.error is None:
            yield from self._judge_rows()

    def _judge(self, result: ListResult, is_tail: bool) -> Iterator[str]:
        """Whether a tail was allowed, and what counts as the last whole read."""
        bench, run_id = self.bench, f"run {self.bench.pulls:03d}"
        owner = (bench.settings.page_limit, bench.organization)
        if result.verdict == "tail":
            if not is_tail or self.whole is None:
                yield "a tail that nobody asked for, or without a whole read"
            elif bench.now - self.whole[1] >= timedelta(days=DAYS):
                yield "a tail after the interval"
            elif self.whole[2] != owner or bench.organization is None:
                yield "a tail with the cursor of another or an unknown organization, or of another page limit"
            self.tail_run = run_id
        elif result.error is None:
            self.whole, self.tail_run, self.is_moved = (run_id, bench.now, owner), None, False
        read = last_reads(bench.warehouse).get("orders")
        if (read and read.run_id, read and read.tail_run_id) != (self.whole and self.whole[0], self.tail_run):
            yield f"the last whole read and the last tail are said to be {read}"

    def _judge_rows(self) -> Iterator[str]:
        bench = self.bench
        platform = {record["id"]: record["status"] for record in bench.state.records("orders")}
        if not bench.rows("SELECT 1 FROM duckdb_columns() WHERE table_name = 'orders' AND column_name = 'status'"):
            return
        read = dict(bench.rows(f"SELECT id, status FROM raw.orders WHERE {_SEEN % bench.pulls}"))
        if any(platform[key] != status for key, status in read.items()):
            yield "rows are not the platform's"


_SEEN: Final = "_run_id = 'run %03d'"


def tail_seed(seed: int) -> Outcome:
    with folder_in_memory() as folder, inline():
        run = _Seed(seed, folder)
        problems = list(run.run())
    return Outcome(run.counts, problems)
