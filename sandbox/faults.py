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
    """Alters the rows and the pagination of a page by the alterations of these names."""
    for name, alteration in _ALTERATIONS.items():
        if name in names:
            alteration(page, chance)


def break_cursor(page: Page, name: str) -> None:
    """Breaks the page's cursor: repeats that of the request, or is null although rows remain."""
    page.envelope["hasMore"] = True
    page.envelope["nextCursor"] = page.given_cursor if name == "repeated_cursor" else None


def _drift(page: Page, chance: random.Random) -> None:
    if page.rows:
        position = chance.randrange(len(page.rows))
        page.rows[position] = _drifted(page.rows[position], chance)


def _add_fields(page: Page, _: random.Random) -> None:
    page.rows[:] = [row[:-1] + EXTRA for row in page.rows]


def _repeat_record(page: Page, chance: random.Random) -> None:
    """The last one of the page before, or one of this page."""
    if not page.rows:
        return
    if page.before and chance.random() < 0.5:
        page.rows.insert(0, page.before)
    else:
        position = chance.randrange(len(page.rows))
        page.rows.insert(position, page.rows[position])


def _move_total(page: Page, chance: random.Random) -> None:
    if pagination := page.envelope.get("pagination"):
        pagination["total"] = max(0, pagination["total"] + chance.choice((-3, -2, -1, 1, 2, 3)))


def _enlarge_total(page: Page, _: random.Random) -> None:
    if pagination := page.envelope.get("pagination"):
        pagination["total"] = 2**63


def _add_cursor_at_end(page: Page, chance: random.Random) -> None:
    if page.envelope.get("hasMore") is False:
        page.envelope["nextCursor"] = f"{chance.getrandbits(96):024x}"


def _announce_no_more(page: Page, _: random.Random) -> None:
    if page.envelope.get("nextCursor"):
        page.envelope["hasMore"] = False


def _write_array_alone(page: Page, _: random.Random) -> None:
    if not page.rows:
        page.write = _as_empty_array


def _nest(page: Page, _: random.Random) -> None:
    page.write = partial(_deep, page.write)


def _key_by_number(page: Page, _: random.Random) -> None:
    page.rows[:] = [
        _with_member(row, f'"prices":{{"{serial}":1.5}}') for serial, row in enumerate(page.rows)
    ]


def _spoil_record(member: str, page: Page, chance: random.Random) -> None:
    if page.rows:
        position = chance.randrange(len(page.rows))
        page.rows[position] = _with_member(page.rows[position], member)


def _write_data_twice(page: Page, _: random.Random) -> None:
    page.write = partial(_twice, page.write)


_ALTERATIONS: Final[Mapping[str, Callable[[Page, random.Random], None]]] = {
    "type_drift": _drift,
    "extra_fields": _add_fields,
    "duplicate_records": _repeat_record,
    "moved_total": _move_total,
    "huge_total": _enlarge_total,
    "cursor_at_end": _add_cursor_at_end,
    "more_unannounced": _announce_no_more,
    "empty_array": _write_array_alone,
    "deep_nesting": _nest,
    "keyed_object": _key_by_number,
    **{name: partial(_spoil_record, member) for name, member in _BAD_MEMBERS.items()},
    "data_twice": _write_data_twice,
}
"""By the name of the fault, in the order in which they are carried out."""


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
