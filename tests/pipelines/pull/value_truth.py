"""What a pull has to record of values: those of each column, and those of new and changed rows by themselves.

In: the pulls up to one. Out: the rows of `ops.column_values`, `ops.recent_rows` and `ops.recent_shares`. Nothing of the
program is called but the test of chance, which has tests of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

from orderbridge.transforms.chance import Share, has_fallen
from tests.pipelines.pull.pull_world import BATCH_ROWS_MIN, BATCHES_KEPT, Row
from tests.pipelines.pull.read_truth import (
    Pulls,
    Read,
    State,
    at_of,
    changed,
    columns_of,
    has_zero,
    is_empty,
    played,
    taken,
    values_of,
)

# values


def column_values(pulls: Pulls) -> list[Row]:
    """Of each whole read the values of each column, and how they jumped from those of earlier reads."""
    rows: list[Row] = []
    kinds: dict[tuple[str, str], type] = {}
    for upto, read in taken(pulls):
        at = at_of(played(upto)[0])
        tables = read.alone.tables
        columns = _columns(read, kinds)
        if not read.is_whole:
            continue
        new = [
            {"run_id": read.of.run_id, "resource": read.name, "recorded_at": at, "jump": None}
            | _counts(
                table, column, [row.get(column) for row in of], kinds.get((table, column), str)
            )
            for table, of in tables.items()
            for column in columns[table]
        ]
        _forget(rows, read)
        for one in new:
            one["jump"] = _jump(one, rows)
        rows += new
    return [{**one, **{name: _limit(one, name) for name in ("minimum", "maximum")}} for one in rows]


def _limit(one: Row, name: str) -> str | None:
    value = one[name]
    if value is None:
        return None
    return f"{value:.9f}" if one["is_decimal"] else str(value)


def _columns(read: Read, kinds: dict[tuple[str, str], type]) -> dict[str, list[str]]:
    """The columns of the tables of a list, which are those of all rows so far."""
    columns: dict[str, list[str]] = {}
    for table, of in read.known.tables.items():
        names = {name for row in of for name in values_of(row)} - {"_extra"}
        columns[table] = sorted(names)
        for name in names:
            values = [row[name] for row in of if row.get(name) is not None]
            if values:
                is_decimal = any(isinstance(one, float | Decimal) for one in values)
                kinds[table, name] = Decimal if is_decimal else type(values[0])
    return columns


def _counts(table: str, column: str, values: list[Any], kind: type) -> Row:
    filled = [one for one in values if one is not None]
    has_zero = kind in (bool, int, Decimal)
    has_order = kind in (int, Decimal, date)
    return {
        "table_name": table, "column_name": column, "rows": len(values), "nulls": sum(map(is_empty, values)),
        "zeros": sum(one == 0 for one in filled) if has_zero else None, "distinct": len(set(map(str, filled))),
        "minimum": min(filled, default=None) if has_order else None,
        "maximum": max(filled, default=None) if has_order else None, "is_decimal": kind is Decimal,
    }  # fmt: skip


def _jump(now: Row, rows: list[Row]) -> str | None:
    """Compared with the read before, and with the oldest one of the last thirty days; the later of both counts."""
    earlier = [
        one for one in rows
        if all(one[name] == now[name] for name in ("resource", "table_name", "column_name")) and one["jump"] is None
    ]  # fmt: skip
    month = [
        one for one in earlier if one["recorded_at"] >= now["recorded_at"] - timedelta(days=30)
    ]
    for before in (*earlier[-1:], *month[:1]):
        if words := _fall(before, now):
            return words
    return None


def _fall(before: Row, now: Row) -> str | None:
    was, filled = (one["rows"] - one["nulls"] for one in (before, now))
    if not was or not filled:
        return None
    has_zero = now["zeros"] is not None and before["zeros"] is not None
    had, has = (one["rows"] - one["nulls"] - (one["zeros"] or 0) for one in (before, now))
    if now["maximum"] is not None and has_zero and has == 0:
        return None
    if _is_smaller(was, before["rows"], filled, now["rows"]):
        return f"{100 * filled / now['rows']:.0f}% of the rows have a value, {100 * was / before['rows']:.0f}% before"
    if has_zero and _is_smaller(had, was, has, filled):
        words = "{:.0f}% of the values are other than 0 or false, {:.0f}% before"
        return words.format(100 * has / filled, 100 * had / was)
    different = before["distinct"]
    if different >= 20 and filled >= was and now["distinct"] * 2 < different:
        return "far fewer different values"
    if min(was, filled) < 20 or now["maximum"] is None:
        return None
    if isinstance(now["maximum"], date):
        is_apart = now["minimum"] > before["maximum"] or now["maximum"] < before["minimum"]
        return "no value is between the first and the last of before" if is_apart else None
    ends = [(one["minimum"], one["maximum"]) for one in (before, now)]
    words = "the least and the largest number are {} those of before, or further from them"
    if all(0 < 10 * one <= other for one, other in zip(*ends, strict=True)):
        return words.format("10 times")
    if all(0 < 10 * one <= other for other, one in zip(*ends, strict=True)):
        return words.format("a tenth of")
    return None


def _is_smaller(part: int, whole: int, now: int, of: int) -> bool:
    as_before = part / whole * of
    return as_before - now >= 20 and now * 2 < as_before


def _forget(rows: list[Row], read: Read) -> None:
    """What a person has accepted is the state to compare with: a read before that is compared with no more."""
    accepted = [
        place for rule, place in read.of.night.accepted if rule == f"{read.name}.values_jumped"
    ]
    jumped = [
        one
        for one in rows
        if one["jump"] and f"{one['table_name']}: {one['column_name']}" in accepted
    ]
    for last in jumped:
        for one in rows:
            is_same = all(
                one[name] == last[name] for name in ("resource", "table_name", "column_name")
            )
            if (
                is_same
                and one["recorded_at"] <= last["recorded_at"]
                and last["recorded_at"] < read.of.began_at
            ):
                one["jump"] = None if one is last else ""


# new and changed rows


@dataclass(frozen=True)
class Kept:
    """A share of a batch as it is recorded: `before` is that of earlier batches, where it fell."""

    now: Share
    before: Share | None
    run_id: str
    at: datetime


Stream = tuple[str, str]
"""A list, and `new` or `changed`."""
Recorded = dict[tuple[int, str], Kept]
"""By batch and place."""
RecentRow = tuple[int, str, frozenset[str], frozenset[str]]
"""Batch, id, and the columns that lost or gained a value."""
FILLED_LATER, FILLED, NOT_ZERO = "filled later", "filled", "not zero"


@dataclass
class Recent:
    """The new and changed rows of all lists, in batches, and the shares of each batch."""

    rows: dict[Stream, list[RecentRow]] = field(default_factory=lambda: defaultdict(list))
    shares: dict[tuple[str, str, str], Recorded] = field(default_factory=lambda: defaultdict(dict))
    accepted: list[tuple[str, datetime]] = field(default_factory=list)

    def mark(self, read: Read) -> None:
        new, others = changed(read)
        before = read.state.own
        own = read.alone.own
        columns = {name for row in before.values() for name in row}
        listed = len(read.state.listed) + len(new)
        for kind, keys in (("new", new), ("changed", others)):
            if not keys or len(keys) * 2 > listed or (read.name, kind) == ("customers", "new"):
                continue
            batch = self._batch(read.name, kind)
            fallen = {at for _, at, _, one in self._of(read.name, kind) if one.before is not None}
            stream = read.name, kind
            self.rows[stream] = [
                one for one in self.rows[stream] if one[0] == batch or one[0] in fallen
            ]
            for key in keys:
                moves = (
                    _moves(columns, before[key], own[key])
                    if kind == "changed"
                    else (frozenset(), frozenset())
                )
                self.rows[stream].append((batch, key, *moves))

    def _of(self, name: str, kind: str) -> Iterator[tuple[str, int, str, Kept]]:
        for (of, measure, of_kind), recorded in self.shares.items():
            if (of, of_kind) == (name, kind):
                yield from (
                    (measure, batch, place, one) for (batch, place), one in recorded.items()
                )

    def _batch(self, name: str, kind: str) -> int:
        judged = max((batch for _, batch, _, _ in self._of(name, kind)), default=0)
        batches = [one[0] for one in self.rows[name, kind]]
        if not batches:
            return judged + 1
        last = max(batches)
        is_closed = batches.count(last) >= BATCH_ROWS_MIN and judged >= last
        return last + is_closed

    def judge(self, state: State, run_id: str, at: datetime) -> None:
        name = state.name
        for measure in (FILLED_LATER, FILLED, NOT_ZERO):
            for kind in ("new", "changed"):
                counted = self._counted(state, measure, kind)
                key = name, measure, kind
                if self.shares[key]:
                    self.shares[key] = self._judged(key, counted, run_id, at)
                else:
                    self.shares[key] = {
                        (batch, place): Kept(share, None, run_id, at)
                        for batch, shares in counted.items()
                        for place, share in shares.items()
                    }

    def _judged(
        self,
        key: tuple[str, str, str],
        counted: dict[int, dict[str, Share]],
        run_id: str,
        at: datetime,
    ) -> Recorded:
        name, measure, kind = key
        made = dict(self.shares[key])
        for (batch, place), one in self.shares[key].items():
            if one.before is None:
                continue
            now = counted.get(batch, {}).get(place, Share(0, 0))
            if self._is_accepted(place, one):
                made[batch, place] = replace(one, before=None)
            elif has_fallen(now, one.before):
                made[batch, place] = replace(one, now=now)
            else:
                made[batch, place] = replace(one, now=now, before=None)
        last = max(counted, default=0)
        for place, share in counted.get(last, {}).items():
            if (known := made.get((last, place))) and known.before is not None:
                continue
            earlier = []
            for batch in {batch for batch, _ in made if batch < last}:
                of = made.get((batch, place)) or made.get((batch, place.partition(": ")[0]))
                if of and of.before is None and not self._is_accepted(place, of):
                    earlier.append(of.now)
            before = Share(sum(one.hits for one in earlier), sum(one.rows for one in earlier))
            compared = [before, *(one for one in earlier if one.rows >= BATCH_ROWS_MIN)]
            is_large = measure != FILLED_LATER and all(
                share.part * 2 < one.part for one in compared
            )
            has = (
                is_large
                and has_fallen(share, before)
                and not self._is_expected(name, kind, place, before)
            )
            made[last, place] = Kept(share, before if has else None, run_id, at)
        return {
            of: one for of, one in made.items() if of[0] >= last - BATCHES_KEPT or one.before is not None
        }  # fmt: skip

    def _is_accepted(self, place: str, one: Kept) -> bool:
        return any(accepted == place and at > one.at for accepted, at in self.accepted)

    def _is_expected(self, name: str, kind: str, place: str, before: Share) -> bool:
        """New rows may lack what few had, or what is filled later."""
        if kind == "changed":
            return False
        if before.rows <= BATCH_ROWS_MIN and before.hits < before.rows:
            return True
        is_of_record = place.startswith(f"{name}: ") and place != "orders: lines"
        if not is_of_record and before.hits < 0.95 * before.rows:
            return True
        later = [one.now for of in ("new", "changed") for (_, at), one in self.shares[name, FILLED_LATER, of].items()
                 if at == place]  # fmt: skip
        hits = sum(one.hits for one in later)
        return hits > 0 and hits >= 0.05 * sum(one.rows for one in later)

    def _counted(self, state: State, measure: str, kind: str) -> dict[int, dict[str, Share]]:
        counts: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
        rows: dict[tuple[int, str], tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
        for batch, key, lost, gained in self.rows[state.name, kind]:
            rows[batch, key][0].update(lost)
            rows[batch, key][1].update(gained)
        for (batch, key), moves in rows.items():
            for place, is_hit, is_counted in _marks(state, measure, kind, key, *moves):
                counts[batch, place][0] += is_hit
                counts[batch, place][1] += is_counted
        found: dict[int, dict[str, Share]] = {}
        for (batch, place), (hits, of) in counts.items():
            found.setdefault(batch, {"": Share(0, 0)})[place] = Share(hits, of)
        return found


def _moves(columns: set[str], before: Row, now: Row) -> tuple[frozenset[str], frozenset[str]]:
    """Of the columns that the raw table has, those that lost a value, and those that gained one."""
    lost = {name for name in columns if not is_empty(before.get(name)) and is_empty(now.get(name))}
    gained = {name for name in columns if is_none(before.get(name)) and not is_none(now.get(name))}
    return frozenset(lost), frozenset(gained)


def is_none(value: Any) -> bool:
    """Whether it is empty, the number 0, or false."""
    return is_empty(value) or (not isinstance(value, str) and value == 0)


def _marks(
    state: State, measure: str, kind: str, key: str, lost: set[str], gained: set[str]
) -> Iterator[tuple[str, bool, bool]]:
    """At which places a record counts: whether it is as it should be, and whether it counts at all."""
    name = state.name
    if measure == FILLED_LATER:
        if kind == "changed":
            yield from ((_place(name, one), one in gained, True) for one in columns_of(state, name))
        return
    is_listed = key in state.by_record[name]
    for table in state.tables:
        if table != name and kind == "changed":
            continue
        own = state.by_record[table].get(key, [])
        if table != name and is_listed and measure == FILLED:
            yield _place(table, ""), bool(own), True
        if not own:
            continue
        for one in columns_of(state, table):
            filled = [row for row in own if not is_empty(row.get(one))]
            if measure == NOT_ZERO:
                if has_zero(state, table, one):
                    yield (
                        _place(table, one),
                        any(not is_none(row[one]) for row in filled),
                        bool(filled),
                    )
            else:
                is_counted = kind == "new" or bool(filled) or one in lost
                yield _place(table, one), bool(filled), is_counted


def _place(table: str, column: str) -> str:
    """As findings name it: fields of orders as the platform writes them."""
    if not column:
        return "orders: lines" if table == "orders__lines" else table
    if table.startswith("orders"):
        column = column.replace("__", ".").replace("created_at", "createdAt")
    return f"{table}: {column}"


@cache
def recent(pulls: Pulls) -> Recent:
    if not pulls:
        return Recent()
    made = deepcopy(recent(pulls[:-1]))
    reads, lists = played(pulls)
    if all(read.is_failed for read in reads.values()):
        return made
    night = pulls[-1].night
    made.accepted += [(place, pulls[-1].began_at) for _, place in night.accepted]
    for read in reads.values():
        if read.is_published:
            made.mark(read)
    if night.is_judged:
        for state in lists.values():
            made.judge(state, pulls[-1].run_id, at_of(reads))
    return made


def recent_rows(pulls: Pulls) -> list[Row]:
    return [
        {
            "resource": name,
            "kind": kind,
            "batch": batch,
            "id": key,
            "lost": _quoted(lost),
            "gained": _quoted(gained),
        }
        for (name, kind), rows in recent(pulls).rows.items()
        for batch, key, lost, gained in rows
    ]


def _quoted(names: Iterable[str]) -> str:
    return " ".join(sorted(f'"{name}"' for name in names))


def recent_shares(pulls: Pulls) -> list[Row]:
    return [
        {
            "resource": name, "measure": measure, "kind": kind, "batch": batch, "place": place, "hits": one.now.hits,
            "rows": one.now.rows, "hits_before": one.before and one.before.hits,
            "rows_before": one.before and one.before.rows, "run_id": one.run_id, "recorded_at": one.at,
        }
        for (name, measure, kind), recorded in recent(pulls).shares.items()
        for (batch, place), one in recorded.items()
    ]  # fmt: skip
