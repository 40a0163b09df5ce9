"""Faults: what can go wrong on the way to an answer and in it, and when it does.

In: one request at a time. Out: at most one disruption, and the alterations of a page that go with any answer. The
draws come from a seeded generator; a disruption stops after two in a row for the same request, so that whoever tries
again gets through, unless its rate is 1.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

BURST: Final = 2

Reach = Literal["any", "list", "pages", "cursor", "given_cursor", "public_v1", "write"]
Kind = Literal["disruption", "alteration"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: the requests within its reach, and whether it disrupts the answer or alters a page's rows."""

    name: str
    help: str
    reach: Reach = "any"
    kind: Kind = "disruption"


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
)
NAMES: Final[dict[str, str]] = {fault.name: fault.help for fault in FAULTS}
_BY_NAME: Final = {fault.name: fault for fault in FAULTS}


@dataclass(frozen=True, slots=True)
class Target:
    """What the draw must know of a request. `cursor` is the one given, if any."""

    key: str
    family: str
    paging: str
    is_list: bool
    is_write: bool
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Draw:
    """What befalls one request: a disruption or none, and alterations of its page."""

    disruption: str = ""
    alterations: frozenset[str] = frozenset()

    @property
    def names(self) -> str:
        """All of it in one text, for the log of requests."""
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
        """Nothing can befall any request."""
        return not self.rates and not self._key_expired

    def draw(self, target: Target) -> Draw:
        """What befalls this request."""
        if self._key_expired and target.family == "public_v1":
            return Draw("expired_key")
        disruption, sure = "", False
        alterations: set[str] = set()
        for name, rate in self.rates.items():
            fault = _BY_NAME[name]
            # The draw comes before the reach, so that what one request meets does not hang on what others asked for.
            hit = self._random.random() < rate
            if not hit or not self._reaches(fault, target):
                continue
            if fault.kind == "alteration":
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
        """One of several, from the plan's generator."""
        return self._random.choice(options)

    @property
    def random(self) -> random.Random:
        """The plan's generator, for the places and sizes of what was drawn."""
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
