"""How long, how large, how often: the limits of a client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: to connect (with TLS), without data while reading or writing, and for one request as a whole.

    Resolving the host's name is not limited: the system offers no way to.
    """

    connect_s: float = 10.0
    read_s: float = 30.0
    total_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Caps:
    """The largest body, as transferred and decoded."""

    wire_bytes: int = 64 * MIB
    plain_bytes: int = 256 * MIB


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a read is attempted.

    Attributes:
        attempts: requests at most.
        dns_attempts: the same while the host's name does not resolve: mostly it is misspelt.
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
