"""What a push may do: the rules by which writes are sent, repeated and looked up (docs/exactly-once.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from orderbridge.pipelines.ledger.model import LedgerRow, UpdatedField
from orderbridge.pipelines.plan.model import PlannedOperation
from orderbridge.pipelines.warehouse.answers.reviews import Review
from orderbridge.sources.command_line import typed_command
from orderbridge.sources.errors import UsageError
from orderbridge.sources.http.client import Client
from orderbridge.sources.kinds import additive_fields
from orderbridge.sources.settings import LegacySettings

SETTLE_S: Final = 900.0
"""Seconds after which a write whose response was lost has arrived, if ever."""


def check_settle_s(settle_s: float | None, legacy: LegacySettings) -> None:
    """Refuses a short settle time for production. Raises UsageError."""
    if settle_s is not None and settle_s < SETTLE_S and legacy.environment != "sandbox":
        raise UsageError(
            f"--settle is less than {SETTLE_S / 60:.0f} minutes",
            f"Only a sandbox allows that: {typed_command(without='--settle')}",
        )


def settle_time_s(settle_s: float | None, client: Client) -> float:
    """The settle time given; by default `SETTLE_S`, or none where the platform says that it settles at once."""
    if settle_s is not None:
        return settle_s
    return 0.0 if client.settles_at_once() else SETTLE_S


@dataclass(frozen=True, slots=True)
class PushRules:
    """What a push may do.

    Attributes:
        settle_s: seconds after which a write whose response was lost has arrived, if ever.
        resend: whether a create that is absent after that time is sent again.
        accept_unproven: whether creates are sent although the list of customers is not proven complete, or although
            another plan abandoned the same create of what has no list.
        additive: fields of a variant that a repeated update would or may add to.
        increments: those of them whose values are increments: the value afterwards is unknown.
        wall_time: wall time of a ledger time, for people.
        country: of phone numbers without a country code.
        changed: what was changed since the plan was made: nothing is sent that never was; empty if nothing was.
        answered: operations that a person just reported as not arrived: they are sent whatever was changed.
        reviews: reads what people have said about pairs of a code and a customer.
    """

    settle_s: float
    resend: bool
    accept_unproven: bool = False
    additive: frozenset[str] = field(default_factory=lambda: additive_fields({}))
    increments: frozenset[str] = frozenset()
    wall_time: Callable[[float], float] = float
    country: str | None = None
    changed: str = ""
    answered: frozenset[int] = frozenset()
    reviews: Callable[[], Mapping[str, Review]] = dict

    def is_repeatable(self, operation: PlannedOperation) -> bool:
        """Whether sending it twice has the same effect as sending it once."""
        return (
            operation.repeatable
            and operation.method == "PATCH"
            and not self.additive & set(operation.body)
        )

    def confirmed_values(self, operation: PlannedOperation) -> dict[UpdatedField, str | None]:
        """The values on the platform after an update; after an increment they are unknown."""
        if operation.method != "PATCH":
            return {}
        return {
            (operation.path, name): None
            if name in self.increments
            else msgspec.json.encode(value).decode()
            for name, value in operation.body.items()
        }

    def settles_at(self, row: LedgerRow) -> float:
        """When a create in doubt can be looked up, ledger time."""
        return (row.doubt_at or row.sent_at or 0.0) + self.settle_s
