"""The states of a write, and the values in which the ledger takes and returns them (docs/exactly-once.md).

    planned ──> in_flight | rejected | abandoned
    in_flight > confirmed | rejected | planned | in_doubt
    in_doubt ─> in_flight | confirmed | rejected | conflict | planned | abandoned
    conflict ─> confirmed | planned | abandoned
    abandoned > confirmed | planned: a create that a person has looked for since

Abandoned without a doubt (`doubt_at`), it did not happen: never sent, or absent from a complete list afterwards.

A write is `planned` only while it is certain that it did not happen. One that is rejected without being sent belongs to
a record that the platform refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

State = Literal[
    "planned", "in_flight", "confirmed", "rejected", "in_doubt", "conflict", "abandoned"
]

PREVIOUS_STATES: Final[Mapping[State, tuple[State, ...]]] = {
    "planned": ("in_flight", "in_doubt", "conflict", "abandoned"),
    "in_flight": ("planned", "in_doubt"),
    "confirmed": ("in_flight", "in_doubt", "conflict", "abandoned"),
    "rejected": ("planned", "in_flight", "in_doubt"),
    "in_doubt": ("in_flight",),
    "conflict": ("in_doubt",),
    "abandoned": ("planned", "in_doubt", "conflict"),
}
FINAL_STATES: Final[tuple[State, ...]] = ("confirmed", "rejected", "abandoned")

STATES: Final[Mapping[State, str]] = {
    "planned": "not sent",
    "in_flight": "with unknown outcome",
    "in_doubt": "with unknown outcome",
    "conflict": "with unknown outcome",
    "confirmed": "confirmed",
    "rejected": "rejected",
    "abandoned": "given up",
}
"""What people read for a state."""
UpdatedField = tuple[str, str]
"""The path of an update, which names the record, and a field of it."""


class StateChange(NamedTuple):
    """A new state of an operation.

    Attributes:
        status, code, request_id, words: of the response, if there was one.
        remote_id: id that the platform gave to the created record.
        doubt_at: start of the doubt, ledger time; for `in_doubt`. It remains when the operation is sent again and
            confirmed, because the first attempt may still arrive.
        sent_at: of the attempt before, in ledger time, where the last one certainly did not happen.
        clear: the previous attempts certainly did not happen; their doubt ends.
        values: of a confirmed update: path, field → JSON text of the value now, None if it is unknown. An
            operation in doubt makes the values of all its fields unknown.
    """

    id: int
    to: State
    status: int | None = None
    code: str = ""
    request_id: str = ""
    words: str = ""
    remote_id: str | None = None
    doubt_at: float | None = None
    sent_at: float | None = None
    clear: bool = False
    values: Mapping[UpdatedField, str | None] = MappingProxyType({})


class LedgerRow(NamedTuple):
    """An operation of the ledger. `sent_at` and `doubt_at` are in ledger time (`pipelines.ledger.clock`)."""

    id: int
    method: str
    path: str
    fields: tuple[str, ...]
    state: State
    attempts: int
    status: int | None
    code: str
    request_id: str
    words: str
    remote_id: str | None
    sent_at: float | None
    doubt_at: float | None
    updated_at: float

    @property
    def has_one_arrival(self) -> bool:
        """Whether one attempt at most may have arrived, the last one: a doubt began after it was sent.

        Further attempts certainly did not happen: a limit of requests has refused them, or they had no connection.
        """
        if self.attempts == 1:
            return True
        return self.doubt_at is not None and self.doubt_at > (self.sent_at or 0.0)


class UnsettledGroup(NamedTuple):
    """The operations of a plan that are in flight, in doubt or in conflict, with the same fields.

    Attributes:
        first_at: when the first of them was sent, or came to be in doubt, in ledger time.
        last_at: likewise, of the last one.
    """

    state: State
    fields: tuple[str, ...]
    first_at: float
    last_at: float


class Claim(NamedTuple):
    """An operation that writes the same record as another one. `doubt_at`: when it was sent, in ledger time."""

    plan_id: str
    folder: str
    id: int
    state: State
    doubt_at: float


@dataclass(frozen=True, slots=True)
class UnsettledUpdate:
    """An update with an attempt that may still arrive: it is in doubt now (`is_open`), or was.

    `is_later`: its plan was first pushed after the one that asks. `doubt_at`: the start of the doubt, in ledger time.
    """

    plan_id: str
    folder: str
    id: int
    path: str
    fields: frozenset[str]
    is_open: bool
    is_later: bool
    doubt_at: float


@dataclass(frozen=True, slots=True)
class OpenPlan:
    """A plan with operations that are not final. `doubt_at`: the latest start of a doubt among them."""

    plan_id: str
    kind: str
    host: str
    environment: str
    folder: str
    opened_at: float
    states: Mapping[State, int]
    doubt_at: float | None
