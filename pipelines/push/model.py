"""What a push is asked for, what it works with, and how it went."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final

from pipelines.ledger.store import State
from pipelines.plan.model import Plan
from pipelines.push import passwords
from pipelines.push.eligibility import Look
from sources.errors import BridgeError, ExitCode, Stopped
from sources.http.client import Client
from sources.http.limits import RetryPolicy, Timeouts
from sources.settings import LegacySettings

SETTLE_S: Final = 900.0
"""Until when a write whose answer was lost may still land."""
GRACE_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PushOptions:
    """What a push is asked for; see `orderbridge push --help`."""

    confirm: int | None = None
    agreed: bool = False
    rate: float | None = None
    concurrency: int | None = None
    settle_s: float = SETTLE_S
    resend: bool = False
    wait: bool = False
    accept_unproven: bool = False
    landed: frozenset[int] = frozenset()
    not_landed: frozenset[int] = frozenset()
    abandon: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class PushDependencies:
    """What a push works with; tests put their own in place."""

    client: Callable[[LegacySettings, threading.Event], Client]
    reader: passwords.Reader = passwords.from_input
    look: Look | None = None
    clock: Callable[[], float] = time.time
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    deadline_s: float = Timeouts().total_s
    grace_s: float = GRACE_S


MEANS: Final = PushDependencies(Client.from_settings)
Gently = Callable[[], AbstractContextManager[None]]
Watch = Callable[[int, int], None]
"""Called with how many operations ended in this push, and how many were to be sent."""


@dataclass(slots=True)
class PushResult:
    """How a push went.

    Attributes:
        lines: of the input, by file of the results and outcome.
        states: operations by state.
        settles_at: when the next doubt can be looked for, epoch seconds.
        error: what ended it early.
        stopped: by a person.
        observed: (what, value) of what the interface does not show and the ledger does not keep (design §9).
    """

    plan: Plan
    lines: Counter[tuple[str, str]] = field(default_factory=Counter)
    states: dict[State, int] = field(default_factory=dict)
    settles_at: float | None = None
    error: BridgeError | None = None
    broke: bool = False
    stopped: bool = False
    observed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """The gravest of: told to stop, an error, doubts, lines refused, held back or given up."""
        if self.stopped:
            return Stopped.exit_code
        if self.error is not None:
            return self.error.exit_code
        if self.states.get("in_doubt") or self.states.get("conflict"):
            return ExitCode.IN_DOUBT
        held = sum(self.lines["unsent", outcome] for outcome in ("blocked", "exists_now", "not_sent"))
        refused = sum(n for (file, outcome), n in self.lines.items() if file == "rejected" or outcome == "abandoned")
        return ExitCode.REJECTED if refused or held else 0
