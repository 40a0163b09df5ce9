"""When a request is repeated, and after how long.

In: what happened to a request (a status or a kind of failure), its `Retry-After`, the number of attempts. Out: yes or
no, and seconds. Three pure functions decide; `Retrying` follows them. Only GET is repeated here: whether a
write is repeated is decided by the ledger (docs/in-doubt.md).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from random import random
from time import monotonic
from typing import Final, TypeVar

from sources.contract import Verb
from sources.http.failures import Failure, Kind
from sources.http.limits import RetryPolicy

T = TypeVar("T")
RETRIED_KINDS: Final = ("dns", "connect", "timeout", "protocol", "broken_body")
RETRIED_STATUSES: Final = (408, 429)
_SECONDS: Final = re.compile(r"[0-9]{1,12}")


def should_retry(verb: Verb, what: int | Kind) -> bool:
    """Whether the same request may be sent again."""
    if verb != "GET":
        return False
    if isinstance(what, int):
        return what in RETRIED_STATUSES or 500 <= what <= 599
    return what in RETRIED_KINDS


def retry_after_s(header: str | None, now: datetime) -> float | None:
    """Seconds that a `Retry-After` asks for, from seconds or an HTTP date; None if it is absent or unreadable.

    Args:
        header: the field's value.
        now: the current time, with its zone.
    """
    text = (header or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if at.tzinfo is None:  # the zone `-0000` and the form of asctime; HTTP dates are UTC
        at = at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())


def delay_s(attempt: int, retry_after: float | None, random: float, policy: RetryPolicy | None = None) -> float:
    """Seconds to wait after attempt number `attempt` (from 1).

    Full jitter: from 0 to the doubled base. A `Retry-After` is waited for in full, and up to one base longer, so that
    several workers do not return at the same moment.

    Args:
        attempt: number of the attempt that failed.
        retry_after: what the platform asked for, if it did.
        random: from 0 to 1.
        policy: bounds.
    """
    policy = policy or RetryPolicy()
    if retry_after is not None:
        return retry_after + random * policy.base_s
    return random * min(policy.cap_s, policy.base_s * 2.0 ** min(attempt - 1, 63))


class _Switch:
    """Whether delays are real. Not a context variable: the threads of a walk would not see it."""

    def __init__(self) -> None:
        self.off = 0
        self.lock = threading.Lock()

    def turn(self, by: int) -> None:
        with self.lock:
            self.off += by


_backoff: Final = _Switch()


@contextmanager
def without_backoff() -> Iterator[None]:
    """For tests: inside the block, retries follow at once in every thread."""
    _backoff.turn(1)
    try:
        yield
    finally:
        _backoff.turn(-1)


def no_announcement(failure: Failure, seconds: float) -> None:
    """Announces nothing."""


@dataclass(frozen=True, slots=True)
class Retrying:
    """Repeats what returns a `Failure` when it fails, and returns its last result.

    Attributes:
        verb: of the requests.
        policy: limits and delays.
        sleep: waits for so many seconds; raises Stopped if the client is to stop.
        announce: called before a wait, with the failure and its seconds.
    """

    verb: Verb
    policy: RetryPolicy
    sleep: Callable[[float], None]
    announce: Callable[[Failure, float], None] = no_announcement

    def __call__(self, attempt: Callable[[], T | Failure]) -> T | Failure:
        """Attempts until one succeeds, or a further one does not help or is over a limit."""
        policy, began = self.policy, monotonic()
        for number in count(1):
            result = attempt()
            if not isinstance(result, Failure) or not should_retry(self.verb, result.what):
                break
            wait_s = 0.0 if _backoff.off else delay_s(number, result.retry_after_s, random(), policy)
            if (
                number >= (policy.dns_attempts if result.what == "dns" else policy.attempts)
                or (result.retry_after_s or 0.0) > policy.retry_after_max_s
                or monotonic() - began + wait_s >= policy.budget_s
            ):
                break
            self.announce(result, wait_s)
            self.sleep(wait_s)
        return result
