"""Faults: what can go wrong with an answer, and when.

In: one request at a time. Out: at most one disruption, and any alterations of its page. Draws come from a seeded
generator. A disruption stops after two in a row for the same request, so that a retry succeeds, unless its rate is 1.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

BURST: Final = 2

Reach = Literal["any", "list", "pages", "cursor", "given_cursor", "public_v1", "write"]
FaultKind = Literal["disruption", "alteration", "hostile"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: the requests it can affect, and what it does to them.

    A `disruption` replaces or breaks the answer, an `alteration` changes the rows of a page that is otherwise well
    formed, a `hostile` one answers as no platform should: a client must end the walk, or quarantine a row.
    """

    name: str
    help: str
    reach: Reach = "any"
    kind: FaultKind = "disruption"


FAULTS: Final = (
    Fault("rate_429", "429 without Retry-After"),
    Fault("rate_429_retry_after", "429 with Retry-After: 0 or 1"),
    Fault("error_500", "status 500"),
    Fault("error_502", "status 502"),
    Fault("error_503", "status 503"),
    Fault("error_504", "status 504"),
    Fault("error_with_password", "400 or 500 whose body repeats the request and a password"),
    Fault("redirect", "302 to another host, with a key in Location"),
    Fault("reset_before", "connection reset before any byte of the answer"),
    Fault("reset_amid", "connection reset after a part of the body"),
    Fault("reset_after", "whole body, then the connection is reset"),
    Fault("truncated_json", "200 with its JSON cut short, its Content-Length right"),
    Fault("html_200", "200 with an HTML page"),
    Fault("stall", "no answer while the client waits, for an hour at most"),
    Fault("drip", "the body one byte at a time"),
    Fault("drip_headers", "the status line and headers one byte at a time"),
    Fault("gzip_truncated", "a gzip body cut short"),
    Fault("gzip_bomb", "a small body that unpacks, twice, into 256 MiB"),
    Fault("expired_key", "the v1 key expires at a drawn request, and stays so", "public_v1"),
    Fault("expired_cursor", "400 on a cursor, once for each", "given_cursor"),
    Fault("repeated_cursor", "nextCursor is the cursor given", "given_cursor"),
    Fault("null_cursor", "hasMore true with nextCursor null", "cursor"),
    Fault("lost_answer", "a write is applied, then the connection is reset", "write"),
    Fault("applied_5xx", "a write is applied, then answered 500 or 502", "write"),
    Fault("late_apply", "a write's connection is reset, and it is applied later", "write"),
    Fault("page_drift", "a record comes or goes before a page is answered", "list", "alteration"),
    Fault("capped_limit", "a page holds half of what was asked", "list", "alteration"),
    Fault("moved_total", "pagination.total moves", "pages", "alteration"),
    Fault("duplicate_records", "a row twice in a page, or again from the page before", "list", "alteration"),
    Fault("type_drift", "a field of one row has another JSON type", "list", "alteration"),
    Fault("extra_fields", "rows have fields that the interface does not name", "list", "alteration"),
    Fault("echoed_key", "400 whose error code is the other family's key"),
    Fault("ignored_query", "page, limit and cursor are ignored: always the first page", "list", "hostile"),
    Fault("picky_limit", "400 for a limit other than 10, 20, 50 or 100", "list", "hostile"),
    Fault("varied_repeat", "past its end a list repeats its last page, one field changed", "pages", "hostile"),
    Fault("shuffled_repeat", "past its end a list repeats its last page in another order", "pages", "hostile"),
    Fault("restarting_cursor", "startingAfter is ignored, each page has a new cursor", "cursor", "hostile"),
    Fault("cursor_at_end", "hasMore is false beside a cursor", "cursor", "hostile"),
    Fault("data_twice", "the member with the rows is in the body twice", "list", "hostile"),
    Fault("deep_nesting", "a member beside the rows is nested 1,500 deep", "list", "hostile"),
    Fault("huge_total", "pagination.total is 2^63", "pages", "hostile"),
    Fault("half_surrogate", "a text of one row ends within an emoji", "list", "hostile"),
    Fault("not_a_number", "a row holds NaN", "list", "hostile"),
    Fault("control_character", "a text of one row holds a raw control character", "list", "hostile"),
    Fault("deep_row", "a value of one row is nested 1,500 deep", "list", "hostile"),
    Fault("keyed_object", "each row has an object whose keys are ids", "list", "hostile"),
)
NAMES: Final[dict[str, str]] = {fault.name: fault.help for fault in FAULTS}
_BY_NAME: Final = {fault.name: fault for fault in FAULTS}


@dataclass(frozen=True, slots=True)
class Target:
    """The properties of a request that a draw depends on. `cursor` is the one sent, if any."""

    key: str
    family: str
    paging: str
    is_list: bool
    is_write: bool
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Draw:
    """The faults drawn for one request: at most one disruption, and alterations of its page."""

    disruption: str = ""
    alterations: frozenset[str] = frozenset()

    @property
    def names(self) -> str:
        """The names of all faults as one text, for the request log."""
        return "+".join(filter(None, (self.disruption, *sorted(self.alterations))))


NOTHING: Final = Draw()


class FaultPlan:
    """Draws the faults of each request.

    Args:
        rates: by name of the fault.
        seed: of the draws.
    """

    def __init__(self, rates: Mapping[str, float], seed: int) -> None:
        self._random = random.Random(f"{seed}:faults")
        self._in_a_row: dict[str, int] = {}
        self._refused_cursors: set[str] = set()
        self._key_expired = False
        self.rates: dict[str, float] = dict(rates)

    @property
    def idle(self) -> bool:
        """True while no fault can be drawn."""
        return not self.rates and not self._key_expired

    def draw(self, target: Target) -> Draw:
        """Draws the faults of this request."""
        if self._key_expired and target.family == "public_v1":
            return Draw("expired_key")
        disruption, sure = "", False
        alterations: set[str] = set()
        for name, rate in self.rates.items():
            fault = _BY_NAME[name]
            # Draw before checking the reach: the sequence of draws then does not depend on which requests came before.
            hit = self._random.random() < rate
            if not hit or not self._reaches(fault, target):
                continue
            if fault.kind != "disruption":
                alterations.add(name)
            elif not disruption:
                disruption, sure = name, rate >= 1.0
        if disruption and not sure and self._in_a_row.get(target.key, 0) >= BURST:
            disruption = ""
        if disruption:
            self._in_a_row[target.key] = self._in_a_row.get(target.key, 0) + 1
            self._remember(disruption, target)
        else:
            self._in_a_row.pop(target.key, None)
        return Draw(disruption, frozenset(alterations))

    def choice(self, *options: int) -> int:
        """Picks one of several values with the plan's generator."""
        return self._random.choice(options)

    @property
    def random(self) -> random.Random:
        """The plan's generator, for positions and sizes within a fault."""
        return self._random

    def _reaches(self, fault: Fault, target: Target) -> bool:
        match fault.reach:
            case "list":
                return target.is_list
            case "pages" | "cursor":
                return target.paging == fault.reach
            case "given_cursor":
                seen = fault.name == "expired_cursor" and target.cursor in self._refused_cursors
                return bool(target.cursor) and not seen
            case "public_v1":
                return target.family == "public_v1"
            case "write":
                return target.is_write
            case _:
                return True

    def _remember(self, name: str, target: Target) -> None:
        if name == "expired_cursor":
            self._refused_cursors.add(target.cursor)
        elif name == "expired_key":
            self._key_expired = True
