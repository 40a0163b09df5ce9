"""How far a command of the desk is: its events as bars and lines.

In: the files of a command. Out: `Progress` for the fragment that a page fetches each second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orderbridge.pipelines.desk.jobs import Event, Job
from orderbridge.pipelines.desk.texts import Texts

_WARNINGS_SHOWN: Final = 5
_GOOD: Final = (0, 5, 9)
"""Exit codes of a command that did what it was asked to."""


_SENDING: Final = "push"
_CHECKING: Final = "verify"
"""Phases of an import. What it reads after it has sent is a part of the last one."""


@dataclass(frozen=True, slots=True)
class Bar:
    """How far an activity is. `total` is None where it is not known."""

    activity: str
    done: int
    total: int | None

    def is_behind(self, other: Bar) -> bool:
        """Whether it would go back from another one."""
        if not self.total or not other.total:
            return self.done < other.done
        own_share = self.done / self.total
        other_share = other.done / other.total
        return (own_share, self.done) < (other_share, other.done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A command as far as it is.

    Attributes:
        phase: what it does now.
        bars: the activities that are counted.
        line: why it waits, in English, if it does.
        warnings: what it warned of.
        is_lost: it was killed: there is neither a result nor an error.
        error: why it failed, in English.
        summary: what it printed at its end, a line each.
    """

    is_running: bool = False
    was_started: bool = False
    phase: str = ""
    bars: Sequence[Bar] = ()
    line: str = ""
    warnings: Sequence[str] = ()
    is_lost: bool = False
    is_good: bool = False
    error: str = ""
    summary: Sequence[str] = ()


def progress_of(job: Job, texts: Texts) -> Progress:
    """How far a command is."""
    is_running = job.is_running  # before its events are read: they are complete if it has ended
    events = job.events()
    results = job.results()
    code = exit_code(events, results)
    errors = [_message(event) for event in events if event.get("event") == "error"]
    return Progress(
        is_running=is_running,
        was_started=job.was_started,
        phase=_phase(events, texts),
        bars=_bars(events, texts),
        line=_line(events),
        warnings=_warnings(events),
        is_lost=job.was_started and not is_running and code is None,
        is_good=code in _GOOD,
        error=errors[-1] if errors and code not in _GOOD else "",
        summary=_message(results[-1]).splitlines() if results else (),
    )


def exit_code(events: Sequence[Event], results: Sequence[Event]) -> int | None:
    """The exit code of a command that has ended; None where it did not come to report it."""
    codes = [one["exit_code"] for one in (*results, *events) if "exit_code" in one]
    return codes[-1] if codes else None


def _message(event: Event) -> str:
    return str(event.get("message", ""))


def _phase(events: Sequence[Event], texts: Texts) -> str:
    phases = [str(event["phase"]) for event in events if event.get("phase")]
    if not phases:
        return ""
    has_sent = _SENDING in phases and phases[-1] != _SENDING
    phase = _CHECKING if has_sent else phases[-1]
    return texts.or_own(f"phase.{phase}", phase)


def _bars(events: Sequence[Event], texts: Texts) -> list[Bar]:
    """How far each activity has come. One that begins anew, such as a list that is read twice, does not go back."""
    bars: dict[str, Bar] = {}
    has_sent = False
    for event in events:
        if has_sent and event.get("phase") != _SENDING:
            bars.pop("customers", None)  # the list that is read now is another one than before
            has_sent = False
        has_sent = has_sent or event.get("phase") == _SENDING
        activity = event.get("activity") or event.get("resource")
        done = event.get("done", event.get("rows"))
        if event.get("event") != "progress" or activity is None or not isinstance(done, int):
            continue
        total = event.get("total")
        name = texts.or_own(f"list.{activity}", texts.or_own(f"activity.{activity}", str(activity)))
        bar = Bar(name, done, max(total, done) if isinstance(total, int) else None)
        before = bars.get(str(activity))
        if before is None or not bar.is_behind(before):
            bars[str(activity)] = bar
    return [*bars.values()]


def _line(events: Sequence[Event]) -> str:
    """Why the command waits, if that is the last thing that it reported."""
    last = events[-1] if events else {}
    return _message(last) if last.get("event") == "waiting" else ""


def _warnings(events: Sequence[Event]) -> list[str]:
    found = [_message(event) for event in events if event.get("event") == "log"]
    return [*dict.fromkeys(found)][-_WARNINGS_SHOWN:]
