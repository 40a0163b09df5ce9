"""Pulls that end at each of their points, and are pulled again.

The warehouse holds a first version, and the platform a second one. The judge: whatever a crash leaves, a reader finds
one of the two whole, and after the pull has returned only the second; the next pull publishes the second and leaves
nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb

from tests.crashes.recorder import Point, Recorder
from tests.pipelines.bridge import Bridge, bridge
from tests.pipelines.pull.versions import change_all, version_sql

SIZES: Final = {"customers": 12, "orders": 6, "promotions": 4, "price_lists": 3}
PAGE_LIMIT: Final = 5


@dataclass
class PullCrashes:
    """A recorded pull. Use `recorded_pull`."""

    made: Bridge
    sql: str
    options: dict[str, Any]
    points: list[Point] = field(default_factory=list)
    first: list[tuple[Any, ...]] = field(default_factory=list)
    second: list[tuple[Any, ...]] = field(default_factory=list)

    def found(self) -> list[tuple[Any, ...]] | str:
        """What a reader finds, or why the file cannot be read."""
        try:
            return self.made.rows(self.sql)
        except duckdb.Error as error:
            return f"{type(error).__name__}: {error}"

    def judge(self, point: Point, variant: str, *, resume: bool = True) -> list[str]:
        """What is wrong after a crash at a point, and after the next pull."""
        point.states[variant].restore(self.made.folder)
        allowed = (self.second,) if point is self.points[-1] else (self.first, self.second)
        problems = []
        if (found := self.found()) not in allowed:
            problems.append(f"a reader finds {found}")
        if resume and not problems:
            code = self.made.code(**self.options)
            # a run that was published before the crash was recorded in the file: the next one is one more
            if code or not self._is_second(self.found()):
                problems.append(f"the next pull ends with {code}, and a reader finds {self.found()}")
            if self.made.left() != [self.made.path.name]:
                problems.append(f"the next pull leaves {self.made.left()}")
        return problems

    def _is_second(self, found: list[tuple[Any, ...]] | str) -> bool:
        runs = 3  # the last columns count the runs
        return not isinstance(found, str) and found[0][:-runs] == self.second[0][:-runs]


@contextmanager
def recorded_pull(
    folder: Path, broken: Callable[[], Any] = nullcontext, *, is_tail: bool = False
) -> Iterator[PullCrashes]:
    """Records a pull over a first version."""
    sizes = SIZES | {"orders": 12} if is_tail else SIZES
    with bridge(folder, page_limit=PAGE_LIMIT, **sizes) as made:
        crashes = PullCrashes(made, version_sql(made), {"tail": is_tail})
        made.pull()
        crashes.first = made.rows(crashes.sql)
        if is_tail:  # changed orders would be read again by a whole walk only
            made.platform.state.grow("orders", 4)
        else:
            change_all(made)
        scratch = made.folder / f".build-{made.path.name}" / "run"
        recorder = Recorder(made.folder, folder / "attic", scratch=scratch)
        with broken(), recorder.recording():
            made.pull(**crashes.options)
        if is_tail and made.one("SELECT count(*) FROM ops.coverage WHERE verdict = 'tail'") != 1:
            raise RuntimeError("the recorded pull read the orders whole")
        crashes.points = recorder.points
        crashes.second = made.rows(crashes.sql)
        yield crashes
