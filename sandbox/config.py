"""Configuration of a sandbox: numbers of records, seed, readings of the gaps, faults and their rates.

In: values from the command line or a test. Out: a frozen configuration, validated when created.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import Final

from orderbridge.sandbox.faults import NAMES
from orderbridge.sources.contract import RECORDS
from orderbridge.sources.gaps import GAPS

ZONE: Final = timezone(timedelta(hours=-5))
"""Time zone of the platform's dates."""
LEGACY_KEY: Final = "sandbox-legacy-key"
V1_KEY: Final = "brand_test_sandboxkey"
V1_LIVE_KEY: Final = "brand_live_sandboxkey"
V1_EXPIRED_KEY: Final = "brand_test_expiredkey"
V1_NO_SCOPE_KEY: Final = "brand_test_noscopekey"


class SandboxConfigError(ValueError):
    """An invalid sandbox configuration; the message names what to change."""


@dataclass(frozen=True)
class SandboxConfig:
    """A sandbox's configuration, validated when created.

    Attributes:
        seed: the same seed gives the same records (on the same day) and the same faults.
        today: dates of records are relative to this day: orders end the day before it.
        customers, orders, promotions, price_lists: how many records to generate; others: of each other list.
        readings: of the gaps, by name; the others take the first of the contract's readings.
        faults: rate from 0 to 1 by name, see `sandbox.faults.NAMES`.
        records: folder with JSON arrays in files named after the lists, such as customers.json; a list
            whose file is absent is generated.
        latency_ms: delay of each response.
        stall_s: how long a stalled response is delayed while the client is connected.
        drip_s: seconds between two bytes of a dripped response.
        late_s: seconds after which a `late_apply` write is applied.
        rate_per_s: requests per second allowed to a family under the reading `rate_limit=per_second`.
        login_mode: `email` or `code`: what customers log in by.
        port: 0 for a free one.

    Raises:
        SandboxConfigError: an unknown name, or a value out of range.
    """

    seed: int = 0
    today: date = field(default_factory=lambda: datetime.now(ZONE).date())
    customers: int = 650
    orders: int = 400
    promotions: int = 60
    price_lists: int = 12
    others: int = 60
    readings: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, float] = field(default_factory=dict)
    records: Path | None = None
    latency_ms: float = 0.0
    stall_s: float = 3600.0
    drip_s: float = 0.5
    late_s: float = 1.0
    rate_per_s: int = 20
    login_mode: str = "email"
    port: int = 0

    def __post_init__(self) -> None:
        known = {gap.name: gap.readings for gap in GAPS}
        for name, value in self.readings.items():
            if name not in known:
                raise _unknown("reading", name, sorted(known))
            if value not in known[name]:
                raise SandboxConfigError(
                    f"{name} has no reading {value!r}. Use one of: {', '.join(known[name])}"
                )
        first = {name: readings[0] for name, readings in known.items()}
        object.__setattr__(self, "readings", {**first, **self.readings})
        check_faults(self.faults)
        for name in (*RECORDS, "others", "latency_ms", "stall_s", "drip_s", "late_s"):
            if not 0 <= (number := getattr(self, name, 0)) < inf:
                raise SandboxConfigError(f"{name} is {number}. Use a number from 0 on")
        if self.rate_per_s < 1:
            raise SandboxConfigError(f"rate_per_s is {self.rate_per_s}. Use 1 or more")
        if self.login_mode not in ("email", "code"):
            raise SandboxConfigError(f"login mode is {self.login_mode!r}. Use `email` or `code`")
        if not 0 <= self.port <= 65535:
            raise SandboxConfigError(f"port is {self.port}. Use 0 (a free one) to 65535")
        if self.records is not None and not self.records.is_dir():
            raise SandboxConfigError(
                f"{self.records} is not a folder. Name one with customers.json, orders.json …"
            )


def check_faults(faults: Mapping[str, float]) -> None:
    """Checks names and rates of faults. Raises SandboxConfigError."""
    for name, rate in faults.items():
        if name not in NAMES:
            raise _unknown("fault", name, NAMES)
        if not 0 <= rate <= 1:
            raise SandboxConfigError(f"the rate of {name} is {rate}. Use a number from 0 to 1")


def _unknown(what: str, name: str, known: Iterable[str]) -> SandboxConfigError:
    """The error for a name that is not known: the most similar one, or else all of them."""
    nearest = get_close_matches(name, known, n=1)
    hint = f"Did you mean {nearest[0]}?" if nearest else f"Use one of: {', '.join(known)}"
    return SandboxConfigError(f"no {what} is named {name!r}. {hint}")


def settings(url: str, login_mode: str = "email") -> dict[str, str]:
    """The settings of a project that uses a sandbox at this address, by key."""
    return {
        "sources.legacy.base_url": url,
        "sources.legacy.api_key": LEGACY_KEY,
        "sources.legacy.environment": "sandbox",
        "sources.legacy.login_mode": login_mode,
        "sources.public_v1.base_url": url,
        "sources.public_v1.api_key": V1_KEY,
    }
