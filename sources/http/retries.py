"""When a request is made again, and after how long.

In: what happened to a request (a status or a kind of failure), its `Retry-After`, how often it was tried. Out: yes or
no, and seconds. Three pure functions decide; `retrying` gives them to tenacity. Only GET is ever repeated here: what
becomes of a write is the ledger's to decide (design §7, §8).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import random
from typing import Final, Literal

from tenacity import RetryCallState, Retrying, retry_if_result

from sources.contract import Verb

__all__ = ["BrokenBody", "Failure", "Kind", "RetryPolicy", "delay_s", "retry_after_s", "retrying", "should_retry"]

Kind = Literal["connect", "timeout", "protocol", "broken_body", "certificate", "contract"]
"""A failure without a status. A `certificate` that does not verify and a broken `contract` stay so: no other try."""

RETRIED_KINDS: Final = ("connect", "timeout", "protocol", "broken_body")
RETRIED_STATUSES: Final = (408, 429)
_SECONDS: Final = re.compile(r"[0-9]{1,12}")


class BrokenBody(Exception):
    """A body that is cut off or is not what it says; another request may bring a whole one."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a read is tried.

    Attributes:
        attempts: requests at most.
        base_s, cap_s: the backoff is drawn from 0 to base_s, then twice that, up to cap_s.
        retry_after_max_s: a longer `Retry-After` is not waited for.
        budget_s: seconds for all attempts and waits together.
    """

    attempts: int = 8
    base_s: float = 0.5
    cap_s: float = 30.0
    retry_after_max_s: float = 300.0
    budget_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that brought nothing usable. A value, not an exception: it drags no traceback, hence no secret, along.

    Attributes:
        what: the status, or the kind where there was none or it does not matter.
        words: what happened, for a person.
        hint: what to do about it.
        status, code, request_id: of the answer, where there was one.
        retry_after_s: seconds that the platform asked to wait.
    """

    what: int | Kind
    words: str
    hint: str = ""
    status: int | None = None
    code: str = ""
    request_id: str = ""
    retry_after_s: float | None = None


def should_retry(verb: Verb, what: int | Kind) -> bool:
    """Whether the same request may be sent again."""
    if verb != "GET":
        return False
    if isinstance(what, int):
        return what in RETRIED_STATUSES or 500 <= what <= 599
    return what in RETRIED_KINDS


def retry_after_s(header: str | None, now: datetime) -> float | None:
    """Seconds that a `Retry-After` asks for, from seconds or an HTTP-date; None where it is absent or unreadable.

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

    Full jitter: anything from 0 to the doubled base. A `Retry-After` is waited for in full, and up to one base longer,
    so that several workers do not come back in one moment.

    Args:
        attempt: the attempt that failed.
        retry_after: what the platform asked for.
        random: from 0 up to 1.
        policy: base and cap.
    """
    policy = policy or RetryPolicy()
    if retry_after is not None:
        return retry_after + random * policy.base_s
    return random * min(policy.cap_s, policy.base_s * 2.0 ** min(attempt - 1, 63))


class _Switch:
    """Whether waits are real. Not a context variable: a walk's workers are threads that would not see it."""

    def __init__(self) -> None:
        self.off = 0
        self.lock = threading.Lock()

    def turn(self, by: int) -> None:
        with self.lock:
            self.off += by


_backoff: Final = _Switch()


@contextmanager
def without_backoff() -> Iterator[None]:
    """For tests: retries follow at once, in every thread, while the block runs."""
    _backoff.turn(1)
    try:
        yield
    finally:
        _backoff.turn(-1)


def retrying(verb: Verb, policy: RetryPolicy, sleep: Callable[[float], None]) -> Retrying:
    """A tenacity loop over functions that return a `Failure` where they fail; the last one is its result.

    Args:
        verb: of the requests.
        policy: bounds and delays.
        sleep: waits so many seconds, and raises where it is told to stop.
    """

    def again(result: object) -> bool:
        return isinstance(result, Failure) and should_retry(verb, result.what)

    def wait(state: RetryCallState) -> float:
        if _backoff.off:
            return 0.0
        return delay_s(state.attempt_number, _failure(state).retry_after_s, random(), policy)

    def spent(state: RetryCallState) -> bool:
        asked = _failure(state).retry_after_s or 0.0
        return (
            state.attempt_number >= policy.attempts
            or asked > policy.retry_after_max_s
            or (state.seconds_since_start or 0.0) + state.upcoming_sleep >= policy.budget_s
        )

    return Retrying(
        retry=retry_if_result(again),
        wait=wait,
        stop=spent,
        sleep=sleep,
        retry_error_callback=_failure,
    )


def _failure(state: RetryCallState) -> Failure:
    result = state.outcome.result() if state.outcome is not None else None
    if not isinstance(result, Failure):
        raise TypeError("only failures are retried")
    return result
