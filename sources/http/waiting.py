"""Waiting for a platform: the pace of reads after a 429, and what a person sees while reads wait.

In: when requests begin, are answered and are refused. Out: how long the next one waits for its turn; log records. Both
are shared by all reads of a client: what one read learns of the host holds for the others.
"""

from __future__ import annotations

import logging
import threading
from time import monotonic
from typing import TYPE_CHECKING, Final

from orderbridge.sources.contract import Family
from orderbridge.sources.words import duration

if TYPE_CHECKING:
    from orderbridge.sources.http.failures import Failure, FailureKind

GAP_MAX_S: Final = 2.0
"""Longest gap between two reads. A lower rate is kept by waiting after each 429."""
RECOVERY: Final = 0.995
"""What a gap shrinks to with each answer: a gap that was too long is halved after 140 reads."""
SHOWN_FROM_S: Final = 5.0
SHOWN_EVERY_S: Final = 60.0
WAITS: Final = "orderbridge.waits"
"""The logger of waits: a warning when reads wait and each minute, an info when answers come again."""
log = logging.getLogger(WAITS)


class ReadPace:
    """Spaces the reads of a host that has answered 429, at the rate at which it did answer.

    Where it answers n requests, refuses further ones, and answers again t seconds after the first, a request is made
    every t/n seconds from then on. Safe to use from several threads.

    Attributes:
        is_limited: the host has answered 429.
    """

    def __init__(self) -> None:
        self.is_limited = False
        self._lock = threading.Lock()
        self._gap_s = 0.0
        self._next_at = 0.0
        self._refused_at: float | None = None
        self._began_at: float | None = None
        self._answers = 0

    def turn_s(self) -> float:
        """Takes the next turn. Returns the seconds until it comes."""
        with self._lock:
            now = monotonic()
            starts_at = max(self._next_at, now)
            self._next_at = starts_at + self._gap_s
            if self._began_at is None:
                self._began_at = starts_at
            return starts_at - now

    def refused(self, wait_s: float) -> None:
        """Takes a 429: no read begins within `wait_s`."""
        with self._lock:
            now = monotonic()
            self.is_limited = True
            self._refused_at = now
            self._next_at = max(self._next_at, now + wait_s)

    def answered(self, started_at: float) -> None:
        """Takes a usable answer to a request that was started then. The first one after a 429 shows the rate."""
        with self._lock:
            self._gap_s *= RECOVERY
            is_first = self._refused_at is not None and started_at > self._refused_at
            if is_first and self._answers and self._began_at is not None:
                self._gap_s = min(GAP_MAX_S, (started_at - self._began_at) / self._answers)
            if is_first:
                self._began_at = started_at
                self._refused_at = None
                self._answers = 0
            self._answers += 1


class WaitNotices:
    """Logs that the reads of a platform wait, and why: once for several reads that wait for the same reason.

    Records have `facts`, for machines. Safe to use from several threads.
    """

    def __init__(self, family: Family) -> None:
        self._family = family
        self._lock = threading.Lock()
        self._shown_at: dict[int | FailureKind, float] = {}

    def waits(self, failure: Failure, wait_s: float, spent_s: float, budget_s: float) -> bool:
        """Called before a read waits. Returns whether that was logged.

        Args:
            failure: why it waits.
            wait_s: until its next attempt.
            spent_s: on its attempts and delays so far.
            budget_s: that these may take together.
        """
        if spent_s + wait_s < SHOWN_FROM_S or not self._is_due(failure.what):
            return False
        status = f" (status {failure.status})" if failure.status else ""
        asked_s = failure.retry_after_s
        asked = f"; the platform asks to wait {duration(asked_s)}" if asked_s else ""
        facts = {
            "family": self._family,
            "reason": failure.words,
            "status": failure.status,
            "wait_s": round(wait_s, 1),
            "waited_s": round(spent_s, 1),
            "budget_s": budget_s,
        }
        log.warning(
            "%s: %s%s%s: waiting, next attempt in %s, for up to %s",
            self._family,
            failure.words,
            status,
            asked,
            duration(max(1.0, wait_s)),
            duration(budget_s - spent_s),
            extra={"facts": facts},
        )
        return True

    def answered(self, waited_s: float) -> None:
        """Called when a read whose wait was logged has its answer."""
        log.info(
            "%s: answers again after %s",
            self._family,
            duration(waited_s),
            extra={"facts": {"family": self._family, "waited_s": round(waited_s, 1)}},
        )

    def _is_due(self, reason: int | FailureKind) -> bool:
        with self._lock:
            now = monotonic()
            shown_at = self._shown_at.get(reason)
            is_due = shown_at is None or now - shown_at >= SHOWN_EVERY_S
            if is_due:
                self._shown_at[reason] = now
            return is_due
