"""What a pull read of each list, and the raw tables after it, in plain Python from the pages that the platform served.

In: the pulls up to one, with their pages. Out: the passes over each list, the verdict, the rows that cannot be loaded,
and the records of each list with the times that they were seen. Nothing of the program is called.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cache, cached_property
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

from tests.pipelines.pull.pull_world import LISTS, ODD, Pulled, Row, Served
from tests.pipelines.pull.truth import expected

Pulls = tuple[Pulled, ...]
Rows = dict[str, list[Row]]
LEGACY = ("customers", "promotions")
ID_CONFLICT = "id: a different row of the list has the same id"


def id_of(row: Row) -> str:
    return str(row["id"])


def reason_of(row: Row) -> str:
    """Why a row cannot be loaded; empty where it can be."""
    for reason, odd in ODD.items():
        if all(name in row and row[name] == value for name, value in odd.items()):
            return reason
    return ""


# reads


@dataclass(frozen=True)
class Place:
    """A row on a page."""

    page: int
    position: int
    text: str

    @cached_property
    def row(self) -> Row:
        row: Row = json.loads(self.text)
        return row

    @property
    def key(self) -> str:
        return id_of(self.row)

    @property
    def digest(self) -> str:
        return sha256(self.text.encode()).hexdigest()


@dataclass
class Pass:
    """The pages from the first one to the end, and their rows."""

    pages: list[Served]

    @cached_property
    def places(self) -> list[Place]:
        return [
            Place(int(page.query.get("page", number)), position, text)
            for number, page in enumerate(self.pages, 1)
            for position, text in enumerate(page.rows, 1)
        ]

    @cached_property
    def good(self) -> list[Place]:
        return [one for one in self.places if not reason_of(one.row)]

    @cached_property
    def bad(self) -> list[Place]:
        return [one for one in self.places if reason_of(one.row)]

    @property
    def keys(self) -> list[str]:
        return [one.key for one in self.good]

    @property
    def is_repeated(self) -> bool:
        """Whether an id is there more than once."""
        return len(set(self.keys)) < len(self.keys)

    @property
    def total(self) -> int | None:
        total: int | None = self.pages[-1].page.get("pagination", {}).get("total")
        return total

    @property
    def is_clean(self) -> bool:
        equal = len({one.text for one in self.good}) < len(self.good)
        return not equal and self.total in (None, len(self.places))

    @property
    def same(self) -> object:
        """What another pass has as well, if both have the same rows."""
        repeated = Counter(self.keys)
        twice = Counter(one.text for one in self.good if repeated[one.key] > 1)
        return set(self.keys), twice, Counter(one.text for one in self.bad)


@dataclass(eq=False)
class Read:
    """What a pull read of a list.

    Attributes:
        held: known and absent records, where it is held back.
        accepted: the same evidence, where a person has accepted it or the pull does.
    """

    name: str
    of: Pulled
    passes: list[Pass]
    state: State
    verdict: str = "incomplete"
    used: list[Pass] = field(default_factory=list)
    is_failed: bool = False
    held: bool = False

    @property
    def is_whole(self) -> bool:
        return self.verdict != "tail"

    @property
    def is_published(self) -> bool:
        return not self.is_failed and not self.held

    @property
    def started_at(self) -> datetime:
        """When the first page was requested, whatever the answer was."""
        return self.of.first_at[self.name]

    @property
    def ended_at(self) -> datetime:
        return self.of.last_at[self.name]

    @cached_property
    def rows(self) -> dict[str, Row]:
        """The row of each id: the last one of the last pass that has it."""
        found: dict[str, Row] = {}
        for one in self.used:
            found |= {place.key: place.row for place in one.good}
        return found

    @cached_property
    def quarantined(self) -> list[tuple[Place, str]]:
        """The rows that cannot be loaded, as often as the pass that has each most often; and other rows of an id."""
        found: list[tuple[Place, str]] = []
        counts: Counter[str] = Counter()
        for one in self.used:
            own: Counter[str] = Counter()
            for place in one.bad:
                own[place.text] += 1
                if own[place.text] > counts[place.text]:
                    found.append((place, reason_of(place.row)))
            counts |= own
        if not self.used:
            return found
        last = self.used[-1]
        winning = {place.key: place.text for place in last.good}
        places = {place.text: place for place in last.good}
        for text, place in places.items():
            is_stable = all(text in {of.text for of in one.good} for one in self.used)
            if is_stable and winning[place.key] != text:
                found.append((place, ID_CONFLICT))
        return found

    def count(self, what: str) -> int:
        return sum(len(getattr(one, what)) for one in self.used)

    @property
    def duplicates(self) -> int:
        return (
            0 if self.is_failed else self.count("places") - len(self.rows) - len(self.quarantined)
        )

    @cached_property
    def alone(self) -> State:
        """A list that has these rows and no others."""
        at = datetime.min
        return State(self.name, {key: Entry(row, "", at, at) for key, row in self.rows.items()})

    @cached_property
    def known(self) -> State:
        """A list that has these rows beside all earlier ones."""
        return State(self.name, self.state.entries | self.alone.entries)

    @property
    def absent(self) -> list[str]:
        """The known ids that are not in it."""
        return [key for key in self.state.listed if key not in self.rows]


def _passes(pulled: Pulled, name: str) -> Iterator[Pass]:
    pages: list[Served] = []
    has_ended = False
    for one in pulled.served:
        if one.name != name:
            continue
        is_first = one.query.get("page", "1") == "1" and "startingAfter" not in one.query
        if is_first and pages:
            yield Pass(pages)
            pages = []
        if is_first:
            has_ended = False
        if not has_ended:  # the pages after the end were requested in advance
            pages.append(one)
        pagination = one.page.get("pagination", {"hasNextPage": bool(one.rows)})
        has_ended = name in LEGACY and not pagination["hasNextPage"]
    if pages:
        yield Pass(pages)


def _read(pulled: Pulled, name: str, state: State) -> Read:
    night = pulled.night
    read = Read(name, pulled, [*_passes(pulled, name)], state)
    if name in night.refused or name in night.broken:
        read.is_failed = True
        return read
    passes = read.passes
    last = passes[-1]
    read.used = [last]
    if "startingAfter" in passes[0].pages[0].query:
        read.verdict = "tail"
        return read
    if not _is_agreed(name, passes, state):
        read.used = passes
        read.verdict = "unproven"
        return read
    read.verdict = "unproven" if last.bad or not last.is_clean else "complete"
    return read


def _is_agreed(name: str, passes: list[Pass], state: State) -> bool:
    *earlier, last = passes
    if name in LEGACY or last.is_repeated:
        are_clean = all(one.is_clean for one in passes[-2:])
        return bool(earlier) and are_clean and earlier[-1].same == last.same
    if earlier:
        return all(set(one.keys) <= set(last.keys) for one in earlier)
    return name == "price_lists" or state.listed <= set(last.keys)


# raw


@dataclass(frozen=True)
class Entry:
    """A record as the raw table has it."""

    row: Row
    run_id: str
    first_at: datetime
    last_at: datetime
    missing_at: datetime | None = None

    @property
    def bookkeeping(self) -> Row:
        return {
            "_run_id": self.run_id, "_first_seen_at": self.first_at, "_last_seen_at": self.last_at,
            "_missing_since": self.missing_at,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class State:
    """A list in the warehouse: its records, and the run whose whole read they are of."""

    name: str
    entries: dict[str, Entry] = field(default_factory=dict)
    whole_run_id: str = ""

    @cached_property
    def listed(self) -> set[str]:
        return {key for key, one in self.entries.items() if one.missing_at is None}

    @cached_property
    def tables(self) -> Rows:
        return tables_of(self.name, self.entries)

    @cached_property
    def own(self) -> dict[str, Row]:
        """The rows of its own table, by id."""
        return {row["id"]: values_of(row) for row in self.tables[self.name]}

    @cached_property
    def by_record(self) -> dict[str, dict[str, list[Row]]]:
        """The listed rows of each table, by the id of their record."""
        found: dict[str, dict[str, list[Row]]] = {}
        for table, rows in self.tables.items():
            key = "id" if table == self.name else _parent(self.name)
            of_table = found[table] = defaultdict(list)
            for row in rows:
                if row["_missing_since"] is None:
                    of_table[row[key]].append(row)
        return found

    def after(self, read: Read) -> State:
        if not read.is_published:
            return self
        at = read.ended_at
        made: dict[str, Entry] = {}
        for key, row in read.rows.items():
            known = self.entries.get(key)
            first_at = known.first_at if known else at
            made[key] = Entry(row, read.of.run_id, first_at, at)
        for key, one in self.entries.items():
            if key not in made:
                is_missing = read.verdict == "complete" and one.missing_at is None
                missing_at = at if is_missing else one.missing_at
                made[key] = Entry(one.row, one.run_id, one.first_at, one.last_at, missing_at)
        return State(self.name, made, read.of.run_id if read.is_whole else self.whole_run_id)


@cache
def played(pulls: Pulls) -> tuple[dict[str, Read], dict[str, State]]:
    """The reads of the last pull, and the lists after it."""
    before = played(pulls[:-1])[1] if len(pulls) > 1 else {name: State(name) for name in LISTS}
    pulled = pulls[-1]
    wanted = pulled.night.wanted.get("resources", LISTS)
    reads = {name: _read(pulled, name, before[name]) for name in LISTS if name in wanted}
    for read in reads.values():
        _hold_back(pulls, read)
    if all(read.is_failed for read in reads.values()):
        return reads, before
    after = {
        name: state.after(reads[name]) if name in reads else state for name, state in before.items()
    }
    return reads, after


def _hold_back(pulls: Pulls, read: Read) -> None:
    """Holds back a list that lost more than is plausible, unless that is accepted: then it may lose some more."""
    if read.is_failed or not read.is_whole or not is_fall(read):
        return
    night = pulls[-1].night
    earlier = [played(pulls[:number])[0].get(read.name) for number in range(1, len(pulls))]
    held = [one for one in earlier if one is not None and one.held]
    is_accepted = False
    if read.name in night.falls and held:
        is_same = held[-1].state.whole_run_id == read.state.whole_run_id
        is_accepted = is_same and len(read.absent) - len(held[-1].absent) <= 5
    read.held = not is_accepted and not night.wanted.get("accept_shrink")
    if read.held:
        read.verdict = "unproven"


def is_fall(read: Read) -> bool:
    absent, known = len(read.absent), len(read.state.listed)
    return absent * 2 > known or (read.verdict == "complete" and absent > max(5, known / 50))


def published(pulls: Pulls) -> Iterator[tuple[Pulls, dict[str, Read]]]:
    """Each pull that has published something, with those before it, and its reads."""
    for number in range(1, len(pulls) + 1):
        reads = played(pulls[:number])[0]
        if not all(read.is_failed for read in reads.values()):
            yield pulls[:number], reads


def taken(pulls: Pulls) -> Iterator[tuple[Pulls, Read]]:
    """Each read that is in the raw tables."""
    for upto, reads in published(pulls):
        yield from ((upto, read) for read in reads.values() if read.is_published)


def at_of(reads: dict[str, Read]) -> datetime:
    """The end of the reads of a pull."""
    return max(read.ended_at for read in reads.values() if not read.is_failed)


def raw_table(name: str, table: str) -> Callable[[Pulls], list[Row]]:
    def rows(pulls: Pulls) -> list[Row]:
        return played(pulls)[1][name].tables.get(table, [])

    return rows


def tables_of(name: str, entries: dict[str, Entry]) -> Rows:
    """The tables of a list; its columns are those of all its rows."""
    records = [_without_odd(name, one.row) for one in entries.values()]
    tables = expected(SimpleNamespace(records=lambda _: records), name)  # type: ignore[arg-type]
    made: Rows = {}
    for table, rows in tables.items():
        key = "id" if table == name else _parent(name)
        made[table] = [{**_filled(row), **entries[row[key]].bookkeeping} for row in rows]
    for row in made[name] if name == "orders" else ():
        if isinstance(paid := entries[row["id"]].row["paid"], str):
            row["_extra"] = {"paid": paid}
    return made


def _without_odd(name: str, row: Row) -> Row:
    """A text is an odd value of a column of yes and no: it is in `_extra` alone."""
    return {**row, "paid": None} if name == "orders" and isinstance(row["paid"], str) else row


def _filled(row: Row) -> Row:
    """A row without the objects that hold nothing."""
    return {name: value for name, value in row.items() if value != {}}


@cache
def changed(read: Read) -> tuple[list[str], list[str]]:
    """The ids that are new, and those of rows that have changed."""
    before = read.state.own
    new = [key for key in read.rows if key not in before]
    own = read.alone.own
    return new, [key for key in own if key in before and differs(own[key], before[key])]


def values_of(row: Row) -> Row:
    hidden = ("_run_id", "_first_seen_at", "_last_seen_at", "_missing_since")
    return {name: value for name, value in row.items() if name not in hidden}


def differs(one: Row, other: Row) -> bool:
    return any(one.get(name) != other.get(name) for name in {*one, *other})


def is_empty(value: Any) -> bool:
    return value in (None, "", "[]", "{}", [], {})


def _parent(name: str) -> str:
    return f"{name.removesuffix('s')}_id"


@cache
def columns_of(state: State, table: str) -> list[str]:
    names = {name for row in state.tables[table] for name in values_of(row)}
    return sorted(names - {"id", "position", "_extra", "customer_id", "order_id"})


@cache
def has_zero(state: State, table: str, column: str) -> bool:
    values = [row[column] for row in state.tables[table] if row.get(column) is not None]
    return bool(values) and isinstance(values[0], bool | int | float | Decimal)
