"""Alterations: a page that arrives well and says something else than the list does.

In: a page before it is written, the names of what befalls it, a seeded generator. Out: the page, altered in place.
The field that identifies a row is never touched, so that a test can still compare what arrived with the truth.
"""

from __future__ import annotations

import json
import random
from typing import Any, Final

from sandbox.replies import Page, encoded
from sandbox.state import State

EXTRA: Final = b',"loyaltyTier":"gold","origin":{"channel":"web","score":3.5}}'


def drift(state: State, resource: str, chance: random.Random) -> None:
    """A record comes or goes, anywhere in the list."""
    state.drift(resource, chance.randrange(1 << 30), removes=chance.random() < 0.5)


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


def break_cursor(page: Page, name: str) -> None:
    """Makes the page's cursor lead nowhere: the one given, or none though more remains."""
    page.envelope["hasMore"] = True
    page.envelope["nextCursor"] = page.given_cursor if name == "repeated_cursor" else None


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
