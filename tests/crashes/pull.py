"""Pulls that end at each of their points, and are pulled again.

The warehouse holds a first version, and the platform a second one. The judge: whatever a crash leaves, a reader finds
one of the two whole, and after the pull has returned only the second; the next pull publishes the second and leaves
nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb

from tests.crashes.recorder import Enumeration, Point, Recorder
from tests.pipelines.bridge import Bridge, bridge
from tests.pipelines.pull.truth import change_all, version_sql

SIZES: Final = {"customers": 12, "orders": 6, "promotions": 4, "price_lists": 3}
PAGE_LIMIT: Final = 5


@dataclass
class PullCrashes:
    """A recorded pull, and the versions before and after it."""

    made: Bridge
    sql: str
    options: dict[str, Any]
    last: Point | None = None
    first: list[tuple[Any, ...]] = field(default_factory=list)
    second: list[tuple[Any, ...]] = field(default_factory=list)

    def found(self) -> list[tuple[Any, ...]] | str:
        """What a reader finds, or why the file cannot be read."""
        try:
            return self.made.rows(self.sql)
        except duckdb.Error as error:
            return f"{type(error).__name__}: {error}"

    def key(self, point: Point, variant: str) -> object:
        """Equal where a reader finds the same file, and the same is expected of it."""
        return point.states[variant].files.get(self.made.path.name), point is self.last

    def read(self, point: Point, variant: str) -> Iterator[str]:
        """What is wrong after a crash at a point."""
        point.states[variant].restore(self.made.folder)
        if (found := self.found()) not in ((self.second,) if point is self.last else (self.first, self.second)):
            yield f"a reader finds {found}"

    def resume(self, point: Point, variant: str) -> Iterator[str]:
        """What is wrong after the next pull."""
        point.states[variant].restore(self.made.folder)
        code, found = self.made.code(**self.options), self.found()
        runs = 3  # the last columns count them: a run that was published before the crash was recorded is one more
        if code or isinstance(found, str) or found[0][:-runs] != self.second[0][:-runs]:
            yield f"the next pull ends with {code}, and a reader finds {found}"
        if self.made.left() != [self.made.path.name]:
            yield f"the next pull leaves {self.made.left()}"


def pull_crashes(folder: Path, *, resumed: range | None = None, is_tail: bool = False) -> Enumeration:
    """Every crash of a pull over a first version, as a reader finds it; and resumed, at all points or some."""
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
        with recorder.recording():
            made.pull(**crashes.options)
        if is_tail and made.one("SELECT count(*) FROM ops.coverage WHERE verdict = 'tail'") != 1:
            raise RuntimeError("the recorded pull read the orders whole")
        crashes.last, crashes.second = recorder.points[-1], made.rows(crashes.sql)
        read = Enumeration.of(recorder.points, crashes.key, crashes.read)
        points = [point for point in recorder.points if resumed is None or point.number in resumed]
        again = Enumeration.of(
            points, lambda point, variant: (point.states[variant].digest, point is crashes.last), crashes.resume
        )
        return Enumeration(len(recorder.points), read.states + again.states, read.problems + again.problems)
