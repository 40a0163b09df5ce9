"""The pace of a push: no faster than told, not at all while the platform asks to wait, and no further once it ends.

In: setbacks (429, no connection) and a rate. Out: workers that wait at the gate, and a push that gives up in time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import random
from time import monotonic
from typing import Final

from sources.http.limits import RetryPolicy
from sources.http.retries import delay_s

SETBACKS_MAX: Final = 8
"""Rounds of 429 or of no connection, without anything getting through, until a push gives up."""
POLL_S: Final = 0.1


class Pace:
    """The gate before each request; safe to use from several threads.

    Args:
        rate: requests a second at most; None: as fast as the platform answers.
        policy: how long setbacks are waited for.
        stop: a person's wish to end.
        clock: seconds on a clock that never goes back.

    Attributes:
        halted: nothing more passes.
    """

    def __init__(
        self,
        rate: float | None,
        policy: RetryPolicy,
        stop: threading.Event,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._gap_s = 1.0 / rate if rate else 0.0
        self._policy, self._stop, self._clock = policy, stop, clock
        self._lock = threading.Lock()
        self._next_at = clock()
        self._round_began = 0.0
        self.halted = threading.Event()
        self.setbacks = 0

    def passed(self) -> float | None:
        """Waits for this request's turn. The moment of its passing, or None where nothing passes any more."""
        while not self._ended():
            with self._lock:
                now = self._clock()
                wait_s = self._next_at - now
                if wait_s <= 0:
                    self._next_at = max(self._next_at, now - self._gap_s) + self._gap_s
                    return now
            self.halted.wait(min(wait_s, POLL_S))
        return None

    def _ended(self) -> bool:
        return self.halted.is_set() or self._stop.is_set()

    def set_back(self, passed_at: float, retry_after_s: float | None) -> bool:
        """Holds everybody up after a 429 or a connection that did not come about.

        Several requests that were under way at once are one setback.

        Args:
            passed_at: when the request passed.
            retry_after_s: what the platform asked for.

        Returns:
            Whether it is worth waiting.
        """
        with self._lock:
            if passed_at >= self._round_began:
                self.setbacks += 1
                self._round_began = self._clock()
            wait_s = delay_s(self.setbacks, retry_after_s, random(), self._policy)
            self._next_at = max(self._next_at, self._clock() + wait_s)
        return self.setbacks <= SETBACKS_MAX and (retry_after_s or 0.0) <= self._policy.retry_after_max_s

    def got_through(self) -> None:
        """An answer came: what was before is forgiven."""
        self.setbacks = 0
