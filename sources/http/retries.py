"""When a read is repeated, after how long, and until when.

In: what happened to a request (a status or a kind of failure), its `Retry-After`, what was spent on the read so far.
Out: yes or no, and seconds. Only GET is repeated here: whether a write is repeated is decided by the ledger
(docs/exactly-once.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import inf
from random import random
from typing import Final

from orderbridge.sources.http.failures import Failure

RETRIED_KINDS: Final = ("dns", "connect", "timeout", "protocol", "broken_body")
TOO_MANY_REQUESTS: Final = 429
RETRIED_STATUSES: Final = (408, TOO_MANY_REQUESTS)
RETRIED_WITH_A_PROVEN_KEY: Final = (409, 425)
ACCESS_STATUSES: Final = (401, 403)
FAILURES_OF_A_PROBE: Final = (500, "broken_body")
"""How a platform answers a page that it does not have, if it does not reject it."""
EPOCH_FROM_S: Final = 1_000_000_000
"""A `Retry-After` from here on is a time in seconds since 1970, not a number of seconds: it would be 31 years."""
_SECONDS: Final = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a read is attempted. Its attempts and the delays between them are counted together.

    Attributes:
        first_answer_s: seconds for a read while the host has not answered yet: mostly its name is misspelt.
        budget_s: seconds for a read once it has.
        probe_s: seconds for a request of a page that may not exist, where the platform fails at it.
        base_s, cap_s: the delay is drawn from 0 to base_s, then from 0 to twice that, up to cap_s.
        retry_after_max_s: a longer `Retry-After` is not waited for.
        attempt_s: seconds for one attempt, where the settings allow more.
        limited_s: seconds for a read that a limit of the platform (429) refuses; None: as for other failures.
    """

    first_answer_s: float = 120.0
    budget_s: float = 600.0
    probe_s: float = 30.0
    base_s: float = 0.5
    cap_s: float = 30.0
    retry_after_max_s: float = 300.0
    attempt_s: float = inf
    limited_s: float | None = None


ONCE: Final = RetryPolicy(first_answer_s=0.0, budget_s=0.0, probe_s=0.0, attempt_s=10.0)
"""One short attempt."""
PERSON_WAITS: Final = replace(ONCE, limited_s=10.0)
"""For a command whose answer a person waits for: only what a limit of the platform refuses is tried again."""


def should_retry(failure: Failure, *, is_key_proven: bool = False) -> bool:
    """Whether the same read may bring something another time.

    Args:
        failure: of the last attempt.
        is_key_proven: a page was read with the same key before. Then a 401 or 403 that is not in the form of the API
            comes from somebody in between, and a 409 or 425 passes.
    """
    what = failure.what
    if not isinstance(what, int):
        return what in RETRIED_KINDS
    if what in RETRIED_STATUSES or 500 <= what <= 599:
        return True
    if what in ACCESS_STATUSES:
        return is_key_proven and failure.is_foreign
    return is_key_proven and what in RETRIED_WITH_A_PROVEN_KEY


def retry_after_s(header: str | None, now: datetime) -> float | None:
    """Seconds that a `Retry-After` asks for; None if it is absent or unreadable.

    It has seconds, an HTTP date, or, against the standard, a time in seconds since 1970.
    """
    text = (header or "").strip()
    if _SECONDS.fullmatch(text):
        seconds = float(text)
        return seconds if seconds < EPOCH_FROM_S else max(0.0, seconds - now.timestamp())
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if at.tzinfo is None:  # the zone `-0000` and the form of asctime; HTTP dates are UTC
        at = at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())


def delay_s(attempt: int, retry_after: float | None, random: float, policy: RetryPolicy) -> float:
    """Seconds to wait after attempt number `attempt` (from 1).

    Full jitter: from 0 to the doubled base. A `Retry-After` is waited for in full before that, so that several workers
    do not return at the same moment, and one that always says 0 is not asked without end. `random` is from 0 to 1.
    """
    jitter = random * min(policy.cap_s, policy.base_s * 2.0 ** min(attempt - 1, 63))
    return (retry_after or 0.0) + jitter


def time_budget_s(
    failure: Failure, policy: RetryPolicy, *, has_answered: bool, is_probe: bool
) -> float:
    """Seconds that attempts and delays of a read may take together, after this failure.

    Args:
        failure: of the last attempt.
        policy: has the limits.
        has_answered: the host has answered a request of this run.
        is_probe: the request is for a page that may not exist.
    """
    if failure.what == TOO_MANY_REQUESTS and policy.limited_s is not None:
        return policy.limited_s
    if not has_answered:
        return policy.first_answer_s
    if is_probe and failure.what in FAILURES_OF_A_PROBE:
        return min(policy.probe_s, policy.budget_s)
    return policy.budget_s


def retry_delay_s(
    failure: Failure,
    attempts: int,
    left_s: float,
    policy: RetryPolicy,
    *,
    is_key_proven: bool = False,
) -> float | None:
    """Seconds until a read is attempted again; None where that would not help or is over a limit of the policy.

    `attempts` were made so far, the last with this failure, and `left_s` are left of the read's budget.
    """
    if not should_retry(failure, is_key_proven=is_key_proven):
        return None
    if (failure.retry_after_s or 0.0) > policy.retry_after_max_s:
        return None
    wait_s = delay_s(attempts, failure.retry_after_s, random(), policy)
    return wait_s if wait_s < left_s else None
