"""The pace of a push: within the rate, waiting when the platform asks for it, and stopping when that does not help.

In: a rate, and setbacks (status 429, no connection). Out: workers that wait for their turn before each request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import random
from time import monotonic
from typing import Final

from orderbridge.sources.http.retries import RetryPolicy, delay_s

SETBACKS_MAX: Final = 8
"""Setbacks in a row, without a response in between, after which a push ends."""
WAIT_STEP_S: Final = 0.1


class Pace:
    """The gate before each request; safe to use from several threads.

    Args:
        rate: requests per second at most; None for no limit.
        policy: how long setbacks are waited for.
        stop: set when a person stops the push.
        clock: monotonic seconds.

    Attributes:
        gap_s: seconds between two requests.
        halted: set when no further request may start.
    """

    def __init__(
        self,
        rate: float | None,
        policy: RetryPolicy,
        stop: threading.Event,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.gap_s = 1.0 / rate if rate else 0.0
        self._policy = policy
        self._stop = stop
        self._clock = clock
        self._lock = threading.Lock()
        self._next_at = clock()
        self._round_began = 0.0
        self._setbacks = 0
        self.halted = threading.Event()

    def wait(self, is_expired: Callable[[], bool]) -> float | None:
        """Waits for the turn of a request. Returns the time at which it starts, None if it must not start.

        A request that `is_expired` must not start any more: it leaves its turn to the next one.
        """
        while not (self.halted.is_set() or self._stop.is_set() or is_expired()):
            with self._lock:
                now = self._clock()
                wait_s = self._next_at - now
                if wait_s <= 0:
                    self._next_at = max(self._next_at, now - self.gap_s) + self.gap_s
                    return now
            self.halted.wait(min(wait_s, WAIT_STEP_S))
        return None

    def set_back(self, started_at: float, retry_after_s: float | None) -> bool:
        """Delays all requests after a 429 or a failed connection. Requests in flight together count as one setback.

        Returns whether waiting, as long as the platform asked for, is worthwhile; if not, the push should end.
        """
        with self._lock:
            if started_at >= self._round_began:
                self._setbacks += 1
                self._round_began = self._clock()
            wait_s = delay_s(self._setbacks, retry_after_s, random(), self._policy)
            self._next_at = max(self._next_at, self._clock() + wait_s)
            return (
                self._setbacks <= SETBACKS_MAX
                and (retry_after_s or 0.0) <= self._policy.retry_after_max_s
            )

    def reset(self) -> None:
        """Forgets the setbacks, after a response arrived."""
        with self._lock:
            self._setbacks = 0
