"""Alterations: faults that change the rows or the pagination of a page.

In: a page before it is encoded, the names of its faults, a seeded generator. Out: the page, altered in place. Ids are
never changed, so that a test can compare the result with the list.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from sandbox.replies import Page, encoded

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
    if "deep_nesting" in names:
        page.write = partial(_deep, page.write)
    if "keyed_object" in names:
        page.rows[:] = [_with_member(row, f'"prices":{{"{serial}":1.5}}') for serial, row in enumerate(page.rows)]
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
