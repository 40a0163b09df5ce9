"""Faults of responses: drawn at random for each request, and those that alter a page carried out.

In: one request at a time, and its page before it is encoded. Out: at most one disruption and any number of alterations,
drawn by a seeded generator; the page, altered in place. Unless its rate is 1, a request is disrupted at most twice in a
row, so that a retry succeeds. Ids are never changed, so that a test can compare the result with the list.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any, Final, Literal

from orderbridge.sandbox.messages import Call, Page, encoded

BURST: Final = 2
EXTRA: Final = b',"loyaltyTier":"gold","origin":{"channel":"web","score":3.5}}'
Writer = Callable[[list[bytes], dict[str, Any]], bytes]
_DEEP: Final = "[" * 1500 + "]" * 1500
_BAD_MEMBERS: Final = {
    "half_surrogate": r'"nickname":"Caf\ud83d"',
    "not_a_number": '"score":NaN',
    "control_character": '"nickname":"two\nlines"',
    "deep_row": '"tree":' + _DEEP,
}
"""A member that makes a row unreadable, by the name of the fault."""

Reach = Literal["any", "list", "pages", "cursor", "given_cursor", "public_v1", "write"]
FaultKind = Literal["disruption", "alteration", "hostile"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: the requests it can affect, and what it does to them.

    A `disruption` replaces or breaks the response. An `alteration` changes rows of a well-formed page. A `hostile`
    fault violates the interface: a client must end the walk or quarantine a row.
    """

    name: str
    help: str
    reach: Reach = "any"
    kind: FaultKind = "disruption"


def _faults() -> tuple[Fault, ...]:
    tables = tomllib.loads(files("orderbridge.sandbox").joinpath("faults.toml").read_text("utf-8"))
    return tuple(Fault(name, **table) for name, table in tables.items())


FAULTS: Final = _faults()
NAMES: Final[dict[str, str]] = {fault.name: fault.help for fault in FAULTS}
_BY_NAME: Final = {fault.name: fault for fault in FAULTS}


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
    """Draws the faults of each request by their `rates`; `random` also draws positions and sizes within a fault."""

    def __init__(self, rates: Mapping[str, float], seed: int) -> None:
        self.random = random.Random(f"{seed}:faults")
        self._in_a_row: Counter[tuple[str, str, str]] = Counter()
        self._expired_cursors: set[str] = set()
        self._key_expired = False
        self.rates: dict[str, float] = dict(rates)

    def draw(self, call: Call) -> Draw:
        """Draws the faults of this request."""
        if self._key_expired and call.operation.family == "public_v1":
            return Draw("expired_key")
        if not self.rates:
            return NOTHING
        disruption = ""
        is_certain = False
        alterations: set[str] = set()
        for name, rate in self.rates.items():
            fault = _BY_NAME[name]
            # Draw before checking the reach, so that the sequence of draws does not depend on the requests.
            hit = self.random.random() < rate
            if not hit or not _reaches(fault.reach, call):
                continue
            if name == "expired_cursor" and call.cursor in self._expired_cursors:
                continue
            if fault.kind != "disruption":
                alterations.add(name)
            elif not disruption:
                disruption = name
                is_certain = rate >= 1.0
        request = (call.operation.verb, call.path, call.query_text)
        if not is_certain and self._in_a_row[request] >= BURST:
            disruption = ""
        if disruption:
            self._in_a_row[request] += 1
        else:
            del self._in_a_row[request]
        if disruption == "expired_cursor":
            self._expired_cursors.add(call.cursor)
        self._key_expired |= disruption == "expired_key"
        return Draw(disruption, frozenset(alterations))


def _reaches(reach: Reach, call: Call) -> bool:
    """Whether a fault of this reach can affect a request."""
    operation = call.operation
    return {
        "any": True,
        "list": operation.records is not None,
        "pages": operation.paging == "pages",
        "cursor": operation.paging == "cursor",
        "given_cursor": bool(call.cursor),
        "public_v1": operation.family == "public_v1",
        "write": operation.verb != "GET",
    }[reach]


def alter(page: Page, names: frozenset[str], chance: random.Random) -> None:
    """Alters the rows and the pagination of a page."""
    if "type_drift" in names and page.rows:
        position = chance.randrange(len(page.rows))
        page.rows[position] = _drifted(page.rows[position], chance)
    if "extra_fields" in names:
        page.rows[:] = [row[:-1] + EXTRA for row in page.rows]
    if "duplicate_records" in names and page.rows:
        if page.before and chance.random() < 0.5:
            page.rows.insert(0, page.before)
        else:
            position = chance.randrange(len(page.rows))
            page.rows.insert(position, page.rows[position])
    pagination = page.envelope.get("pagination")
    if "moved_total" in names and pagination:
        pagination["total"] = max(0, pagination["total"] + chance.choice((-3, -2, -1, 1, 2, 3)))
    if "huge_total" in names and pagination:
        pagination["total"] = 2**63
    if "cursor_at_end" in names and page.envelope.get("hasMore") is False:
        page.envelope["nextCursor"] = f"{chance.getrandbits(96):024x}"
    if "more_unannounced" in names and page.envelope.get("nextCursor"):
        page.envelope["hasMore"] = False
    if "empty_array" in names and not page.rows:
        page.write = _as_empty_array
    if "deep_nesting" in names:
        page.write = partial(_deep, page.write)
    if "keyed_object" in names:
        page.rows[:] = [
            _with_member(row, f'"prices":{{"{serial}":1.5}}')
            for serial, row in enumerate(page.rows)
        ]
    for name in names & _BAD_MEMBERS.keys():
        if page.rows:
            position = chance.randrange(len(page.rows))
            page.rows[position] = _with_member(page.rows[position], _BAD_MEMBERS[name])
    if "data_twice" in names:
        page.write = partial(_twice, page.write)


def break_cursor(page: Page, name: str) -> None:
    """Breaks the page's cursor: repeats that of the request, or is null although rows remain."""
    page.envelope["hasMore"] = True
    page.envelope["nextCursor"] = page.given_cursor if name == "repeated_cursor" else None


def _with_member(row: bytes, member: str) -> bytes:
    return row[:-1] + (b"," if len(row) > len(b"{}") else b"") + member.encode() + b"}"


def _deep(write: Writer, rows: list[bytes], envelope: dict[str, Any]) -> bytes:
    return _with_member(write(rows, envelope), f'"meta":{_DEEP}')


def _as_empty_array(rows: list[bytes], envelope: dict[str, Any]) -> bytes:
    return b"[]"


def _twice(write: Writer, rows: list[bytes], envelope: dict[str, Any]) -> bytes:
    """Writes the member with the rows twice, first empty: some parsers keep the first one, some the last."""
    body = write(rows, envelope)
    name = body[1 : body.index(b":")]
    return b"{" + name + b":[]," + body[1:]


def _drifted(row: bytes, chance: random.Random) -> bytes:
    record: dict[str, Any] = json.loads(row)
    names = [name for name in record if name != "id"]
    if not names:
        return row
    name = chance.choice(names)
    match record[name]:
        case bool(value):
            record[name] = "yes" if value else "no"
        case str():
            record[name] = 12345
        case int() | float() as value:
            record[name] = str(value)
        case list():
            record[name] = {"items": "none"}
        case dict():
            record[name] = "none"
        case _:
            record[name] = False
    return encoded(record)
