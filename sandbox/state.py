"""The data of the sandbox: its lists as encoded rows, what was written to it, and the history of both.

In: generated or given records, then changes by requests, faults and tests. Out: encoded rows for pages; for tests, the
ids that are in a list now, were in it at any time, and were always in it. A lock guards it: tests run in other threads.
"""

from __future__ import annotations

import json
import random
import threading
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from orderbridge.sandbox.config import SandboxConfig
from orderbridge.sandbox.messages import encoded
from orderbridge.sandbox.records import (
    FIRST_CUSTOMER,
    FIRST_ORDER,
    UNNAMED,
    Generate,
    generators,
    platform_time,
)
from orderbridge.sandbox.rows import Rows, read_rows
from orderbridge.sources.contract import CUSTOMER, RECORDS, Operation

LOG_LENGTH: Final = 20_000

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Logged:
    """One request; `status` is 0 if a fault suppressed the response."""

    method: str
    path: str
    query: str
    status: int
    fault: str


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a list; `request` is the number of requests before it."""

    request: int
    resource: str
    id: str
    what: str


@dataclass(slots=True)
class Updated:
    """A record after its updates: field values, number of updates, and how often each field was sent."""

    fields: Json = field(default_factory=dict)
    applied: int = 0
    counts: Counter[str] = field(default_factory=Counter)


class State:
    """All data of the platform.

    Attributes:
        created: by operation, the records of its creates, in order; the bodies where a list shows the records.
        updated: by operation and ids in its path, what became of each record.
        customer_inputs, subcategories, warehouses, variants: those of the four operations that the interface shows.
        log: the latest requests.
        truth: every change of a list, in order.
        removed: number of records removed from each list.
        requests: number of requests so far.
    """

    def __init__(self, config: SandboxConfig) -> None:
        self.lock = threading.RLock()
        self.config = config
        self._generate: dict[str, Generate] = generators(config)
        counts = {name: int(getattr(config, name, config.others)) for name in RECORDS}
        self.lists: dict[str, Rows] = {}
        for name in RECORDS:
            given = None if config.records is None else read_rows(config.records / f"{name}.json")
            self.lists[name] = Rows(
                map(self._generate[name], range(counts[name])) if given is None else given
            )
        self._order_sequence = config.readings["order_sequence"]
        if self._order_sequence != "oldest_first":
            orders = self.lists["orders"].rows[::-1]
            if self._order_sequence == "unordered":
                random.Random(f"{config.seed}:sequence").shuffle(orders)
            self.lists["orders"] = Rows(orders)
        self._serial = max(counts.values())
        self.created: defaultdict[str, list[Json]] = defaultdict(list)
        self.updated: defaultdict[str, dict[tuple[Any, ...], Updated]] = defaultdict(dict)
        self.customer_inputs, self.subcategories = (
            self.created["create_customer"],
            self.created["create_subcategory"],
        )
        self.warehouses, self.variants = (
            self.created["create_warehouse"],
            self.updated["update_variant"],
        )
        self.log: deque[Logged] = deque(maxlen=LOG_LENGTH)
        self.truth: list[Change] = []
        self.removed: Counter[str] = Counter()
        self.requests = 0

    # Lists, for tests.

    def records(self, resource: str) -> list[Json]:
        """The records of a list now, in order."""
        with self.lock:
            return [json.loads(row) for row in self.lists[resource].rows]

    def ids(self, resource: str) -> list[str]:
        """The ids of a list now, in order, as texts."""
        with self.lock:
            return list(self.lists[resource].ids)

    def ever(self, resource: str) -> set[str]:
        """Ids that were in the list at any time."""
        with self.lock:
            return {*self.ids(resource), *self._changed(resource, "removed")}

    def always(self, resource: str) -> set[str]:
        """Ids that were in the list from the start and never left it."""
        with self.lock:
            return set(self.ids(resource)).difference(self._changed(resource, "added"))

    def _changed(self, resource: str, what: str) -> Iterator[str]:
        return (
            change.id for change in self.truth if (change.resource, change.what) == (resource, what)
        )

    def add(self, resource: str, fields: Mapping[str, Any], position: int | None = None) -> Json:
        """Adds a record, with a new id unless `fields` has one; at `position` or where new ones are listed."""
        with self.lock:
            record = {"id": self._new_id(resource), **fields}
            position = self._position_of_new(resource) if position is None else position
            identifier = self.lists[resource].put(position, encoded(record))
            self._note(resource, identifier, "added")
            return record

    def change(self, resource: str, identifier: str | int, fields: Mapping[str, Any]) -> Json:
        """Sets fields of a record. Returns the record. Raises KeyError for an unknown id."""
        with self.lock:
            rows = self.lists[resource]
            position = self._position(resource, identifier)
            record: Json = {**json.loads(rows.rows[position]), **fields}
            rows.rows[position] = encoded(record)
            self._note(resource, str(identifier), "changed")
            return record

    def remove(self, resource: str, identifier: str | int) -> None:
        """Removes a record. Raises KeyError for an unknown id."""
        with self.lock:
            self.lists[resource].take(self._position(resource, identifier))
            self._note(resource, str(identifier), "removed")

    def drift(self, resource: str, position: int, removes: bool) -> None:
        """Removes the record at a position, or puts a new one before it."""
        with self.lock:
            rows = self.lists[resource]
            if removes and rows.rows:
                self._note(resource, rows.take(position % len(rows.rows)), "removed")
            else:
                row = self._generate[resource](self._next_serial())
                self._note(resource, rows.put(position % (len(rows.rows) + 1), row), "added")

    def grow(self, resource: str, count: int) -> None:
        """Adds generated records, dated on the day the sandbox started."""
        for _ in range(count):
            self.drift(resource, self._position_of_new(resource), removes=False)

    # Writes.

    def create(self, operation: Operation, ids: Json, body: Json) -> Json:
        """Applies a create and returns the record: one of the list at its path, or one that no list shows.

        A listed record ignores the fields of its list that no create takes; the id is always the platform's.

        Args:
            operation: the create.
            ids: the parameters of its path; those that are numbers as such.
            body: what was sent.
        """
        with self.lock:
            created = self.created[operation.name]
            listed = operation.shown_in
            if listed is None or operation.input is None:
                created.append({**body, **ids, "id": len(created) + 1})
                return created[-1]
            created.append(body)
            hidden = {one.name for one in listed.fields} ^ {
                one.name for one in operation.input.fields
            }
            hidden |= {"loginCode"} if self.config.login_mode == "email" else set()
            record = {name: value for name, value in body.items() if name not in hidden}
            if listed is CUSTOMER:
                now = platform_time(datetime.now(UTC), self.config.readings["date_format"])
                record = {**UNNAMED, **record, "createdAt": now}
            return self.add(listed.name, record)

    def update(self, operation: Operation, ids: Json, body: Json) -> None:
        """Applies an update: fields with a reading `<field>_semantics` by it, the others replace what was there.

        Args:
            operation: the update.
            ids: the parameters of its path; those that are numbers as such.
            body: what was sent.

        Raises:
            KeyError: the list at the path before the id has no record with it.
        """
        with self.lock:
            if operation.shown_in is not None:
                shown = {one.name for one in operation.shown_in.fields}
                self.change(
                    operation.shown_in.name,
                    [*ids.values()][-1],
                    {name: body[name] for name in body if name in shown},
                )
            record = self.updated[operation.name].setdefault(tuple(ids.values()), Updated())
            record.applied += 1
            for name, value in body.items():
                record.counts[name] += 1
                adds = self.config.readings.get(f"{name}_semantics") == "increment"
                record.fields[name] = _sum(record.fields.get(name, 0), value) if adds else value

    def _position_of_new(self, resource: str) -> int:
        """Where a new record is listed: at the end, except for orders by the reading `order_sequence`."""
        length = len(self.lists[resource].rows)
        if resource != "orders" or self._order_sequence == "oldest_first":
            return length
        return (
            0
            if self._order_sequence == "newest_first"
            else zlib.crc32(b"%d" % self._serial) % (length + 1)
        )

    def _position(self, resource: str, identifier: str | int) -> int:
        try:
            return self.lists[resource].ids.index(str(identifier))
        except ValueError:
            raise KeyError(f"{resource} has no {identifier}") from None

    def _new_id(self, resource: str) -> int | str:
        serial = self._next_serial()
        match resource:
            case "orders":
                return f"ord_{FIRST_ORDER + serial:09d}"
            case "price_lists":
                return str(1 + serial)
            case "customers":
                numbers = [int(last) for last in self.lists[resource].ids[-1:] if last.isdigit()]
                return max([FIRST_CUSTOMER + serial, *(number + 1 for number in numbers)])
            case _:
                return 301 + serial

    def _next_serial(self) -> int:
        # Starts after the largest number of records: a new id never equals a generated one.
        self._serial += 1
        return self._serial

    def _note(self, resource: str, identifier: str, what: str) -> None:
        self.removed[resource] += what == "removed"
        self.truth.append(Change(self.requests, resource, identifier, what))


def _sum(before: float, value: float) -> float:
    """The decimal sum: 0.1 + 0.2 is 0.3."""
    total = Decimal(str(before)) + Decimal(str(value))
    return int(total) if isinstance(before, int) and isinstance(value, int) else float(total)
