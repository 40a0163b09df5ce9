"""Crashes enumerated: every distinct state that a crash of a recorded run can leave is resumed and judged.

`python -m tests.soak 1 0 crashes`, or `make soak CAMPAIGNS=crashes`, enumerates all of them; `make test` a part.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sources.kinds import KindName
from tests.crashes.pull import PullCrashes, recorded_pull
from tests.crashes.push import PushCrashes
from tests.crashes.recorder import VARIANTS, Point

MEMORY: Final = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@dataclass
class Enumeration:
    """What an enumeration judged."""

    points: int = 0
    states: int = 0
    problems: list[str] = field(default_factory=list)


def _judge(
    points: list[Point], key: Callable[[Point, str], object], judge: Callable[[Point, str], list[str]]
) -> Enumeration:
    enumeration = Enumeration(len(points))
    judged: set[object] = set()
    for point in points:
        for variant in VARIANTS:
            if (state := key(point, variant)) in judged:
                continue
            judged.add(state)
            enumeration.states += 1
            place = f"point {point.number} ({point.what}), {variant}"
            enumeration.problems += [f"{place}: {problem}" for problem in judge(point, variant)]
    return enumeration


def push_crashes(kind: KindName, count: int, broken: Callable[[], Any] = nullcontext) -> Enumeration:
    """Every crash of a push of so many operations, resumed to its end."""
    with tempfile.TemporaryDirectory(prefix="push-crashes-", dir=MEMORY) as folder:
        crashes = PushCrashes(Path(folder), kind, count, broken)
        return _judge(
            crashes.points, lambda point, variant: (point.states[variant].digest, repr(point.world)), crashes.judge
        )


def pull_crashes(
    folder: Path, *, resumed: range | None = None, broken: Callable[[], Any] = nullcontext, is_tail: bool = False
) -> Enumeration:
    """Every crash of a pull, as a reader finds it; and resumed."""
    with recorded_pull(folder, broken, is_tail=is_tail) as crashes:
        readable = _judge(crashes.points, _as_read(crashes), lambda *at: crashes.judge(*at, resume=False))
        points = [point for point in crashes.points if resumed is None or point.number in resumed]
        enumeration = _judge(
            points, lambda point, variant: (point.states[variant].digest, point is crashes.points[-1]), crashes.judge
        )
        return Enumeration(
            len(crashes.points), readable.states + enumeration.states, readable.problems + enumeration.problems
        )


def _as_read(crashes: PullCrashes) -> Callable[[Point, str], object]:
    """Equal where a reader finds the same file, and the same is expected of it."""
    name, last = crashes.made.path.name, crashes.points[-1]
    return lambda point, variant: (point.states[variant].files.get(name), point is last)


def enumerate_all(count: int) -> Iterator[tuple[str, Enumeration]]:
    """All crashes of pull and push, with so many operations in a push."""
    yield "push of customers", push_crashes("customers", count)
    yield "push of variants", push_crashes("variants", count)
    with tempfile.TemporaryDirectory(prefix="pull-crashes-", dir=MEMORY) as folder:
        yield "pull", pull_crashes(Path(folder) / "whole")
        yield "tail", pull_crashes(Path(folder) / "tail", is_tail=True)
