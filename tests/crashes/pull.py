"""Pulls that end at each of their points, and are pulled again.

The warehouse holds a first version, and the platform a second one. The judge: whatever a crash leaves, a reader finds
one of the two whole, and after the pull has returned only the second; the next pull publishes the second and leaves
nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import duckdb

from tests.crashes.recorder import Enumeration, Point, Recorder
from tests.pipelines.bridge import bridge
from tests.pipelines.pull.truth import change_all, version_sql

SIZES: Final = {"customers": 12, "orders": 6, "promotions": 4, "price_lists": 3}
PAGE_LIMIT: Final = 5


def pull_crashes(
    folder: Path, *, resumed: range | None = None, is_tail: bool = False
) -> Enumeration:
    """Every crash of a pull over a first version, as a reader finds it; and resumed, at all points or some."""
    sizes = SIZES | {"orders": 12} if is_tail else SIZES
    with bridge(folder, page_limit=PAGE_LIMIT, **sizes) as made:
        sql, name = version_sql(made), made.path.name
        made.pull()
        first = made.rows(sql)
        if is_tail:  # changed orders would be read again by a whole walk only
            made.platform.state.grow("orders", 4)
        else:
            change_all(made)
        recorder = Recorder(
            made.folder, folder / "attic", scratch=made.folder / f".build-{name}" / "run"
        )
        with recorder.recording():
            made.pull(tail=is_tail)
        if is_tail and made.one("SELECT count(*) FROM ops.coverage WHERE verdict = 'tail'") != 1:
            raise RuntimeError("the recorded pull read the orders whole")
        points, last, second = recorder.points, recorder.points[-1], made.rows(sql)

        def found() -> list[tuple[Any, ...]] | str:
            """What a reader finds, or why the file cannot be read."""
            try:
                return made.rows(sql)
            except duckdb.Error as error:
                return f"{type(error).__name__}: {error}"

        def read(point: Point, variant: str) -> Iterator[str]:
            """What is wrong after a crash at a point."""
            point.states[variant].restore(made.folder)
            if (rows := found()) not in ((second,) if point is last else (first, second)):
                yield f"a reader finds {rows}"

        def resume(point: Point, variant: str) -> Iterator[str]:
            """What is wrong after the next pull."""
            point.states[variant].restore(made.folder)
            code, rows = made.code(tail=is_tail), found()
            runs = 3  # the last columns count them: a run that was published before the crash was recorded is one more
            if code or isinstance(rows, str) or rows[0][:-runs] != second[0][:-runs]:
                yield f"the next pull ends with {code}, and a reader finds {rows}"
            if made.left() != [name]:
                yield f"the next pull leaves {made.left()}"

        # equal where a reader finds the same file, and the same is expected of it
        as_read = Enumeration.of(
            points, lambda at, how: (at.states[how].files.get(name), at is last), read
        )
        some = [point for point in points if resumed is None or point.number in resumed]
        again = Enumeration.of(some, lambda at, how: (at.states[how].digest, at is last), resume)
        return Enumeration(
            len(points), as_read.states + again.states, as_read.problems + again.problems
        )
