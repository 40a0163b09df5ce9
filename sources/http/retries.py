"""When a request is repeated, and after how long.

In: what happened to a request (a status or a kind of failure), its `Retry-After`, the number of attempts. Out: yes or
no, and seconds. Only GET is repeated here: whether a write is repeated is decided by the ledger (docs/in-doubt.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import random
from typing import Final

from orderbridge.sources.http.failures import Failure, FailureKind

RETRIED_KINDS: Final = ("dns", "connect", "timeout", "protocol", "broken_body")
RETRIED_STATUSES: Final = (408, 429)
_SECONDS: Final = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a read is attempted.

    Attributes:
        attempts: requests at most.
        dns_attempts: the same where name servers do not know the host: mostly it is misspelt.
        base_s, cap_s: the delay is drawn from 0 to base_s, then from 0 to twice that, up to cap_s.
        retry_after_max_s: a longer `Retry-After` is not waited for.
        budget_s: seconds for all attempts and delays together.
    """

    attempts: int = 8
    dns_attempts: int = 2
    base_s: float = 0.5
    cap_s: float = 30.0
    retry_after_max_s: float = 300.0
    budget_s: float = 600.0


def should_retry(what: int | FailureKind) -> bool:
    """Whether the same read may bring something another time."""
    if isinstance(what, int):
        return what in RETRIED_STATUSES or 500 <= what <= 599
    return what in RETRIED_KINDS


def retry_after_s(header: str | None, now: datetime) -> float | None:
    """Seconds that a `Retry-After` asks for, from seconds or an HTTP date; None if it is absent or unreadable."""
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


def delay_s(attempt: int, retry_after: float | None, random: float, policy: RetryPolicy) -> float:
    """Seconds to wait after attempt number `attempt` (from 1).

    Full jitter: from 0 to the doubled base. A `Retry-After` is waited for in full, and up to one base longer, so that
    several workers do not return at the same moment. `random` is from 0 to 1.
    """
    if retry_after is not None:
        return retry_after + random * policy.base_s
    return random * min(policy.cap_s, policy.base_s * 2.0 ** min(attempt - 1, 63))


def retry_delay_s(
    failure: Failure, attempts: int, left_s: float, policy: RetryPolicy
) -> float | None:
    """Seconds until a read is attempted again; None where that would not help or is over a limit of the policy.

    `attempts` were made so far, the last with this failure, and `left_s` are left of the read's budget.
    """
    if not should_retry(failure.what):
        return None
    wait_s = delay_s(attempts, failure.retry_after_s, random(), policy)
    is_over = (
        attempts >= (policy.dns_attempts if failure.what == "dns" else policy.attempts)
        or (failure.retry_after_s or 0.0) > policy.retry_after_max_s
        or wait_s >= left_s
    )
    return None if is_over else wait_s
