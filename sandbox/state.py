"""What the stand-in platform holds: its lists as encoded rows, what was written to it, and the truth of it all.

In: records made or given, then changes by requests, by drift and by tests. Out: slices of bytes for pages, and for
tests what is there, what ever was, and what always was. One lock guards it: a test's thread and the server share it.
"""

from __future__ import annotations

import json
import threading
from array import array
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from sandbox.config import SandboxConfig, SandboxConfigError
from sandbox.records import FIRST_CUSTOMER, FIRST_ORDER, Make, coupon_code, made, makers, now_written

RESOURCES: Final = ("customers", "promotions", "price_lists", "orders")
LOG_LENGTH: Final = 20_000

Json = dict[str, Any]


class _Key(msgspec.Struct):
    id: int | float | str


_key: Final = msgspec.json.Decoder(_Key)
_records: Final = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Logged:
    """One request as it was answered; `status` is 0 where no answer was meant to arrive."""

    method: str
    path: str
    query: str
    status: int
    fault: str


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a list: `request` counts the requests seen before it."""

    request: int
    resource: str
    id: str
    what: str


@dataclass(slots=True)
class Variant:
    """What the updates of a variant left, how many there were, and how often each field was in one."""

    fields: Json = field(default_factory=dict)
    applied: int = 0
    counts: Counter[str] = field(default_factory=Counter)


class Rows:
    """One list: ids and encoded rows in order, with a rank for each by which a cursor finds its place again.

    Ranks ascend and stay when rows come and go; a row put between two takes the middle of their ranks.
    """

    def __init__(self, rows: Iterable[bytes]) -> None:
        self.rows: list[bytes] = list(rows)
        self.ids: list[str] = [_id(row) for row in self.rows]
        self.initial: tuple[str, ...] = tuple(self.ids)
        self.ranks: array[float] = array("d", range(len(self.rows)))
        self.added: set[str] = set()
        self.removed: set[str] = set()
        self.version = 0

    def after(self, rank: float) -> int:
        """The position of the first row past that rank."""
        return bisect_right(self.ranks, rank)

    def put(self, position: int, row: bytes) -> str:
        """Puts a row before that position; returns its id."""
        while True:
            below = self.ranks[position - 1] if position else (self.ranks[0] - 2 if self.ranks else -1.0)
            above = self.ranks[position] if position < len(self.ranks) else below + 2
            rank = (below + above) / 2
            if below < rank < above:
                break
            position += 1  # the gap is used up: the next one will do
        identifier = _id(row)
        self.rows.insert(position, row)
        self.ids.insert(position, identifier)
        self.ranks.insert(position, rank)
        self.added.add(identifier)
        self.version += 1
        return identifier

    def take(self, position: int) -> str:
        """Takes the row at that position out; returns its id."""
        del self.rows[position], self.ranks[position]
        identifier = self.ids.pop(position)
        self.removed.add(identifier)
        self.version += 1
        return identifier


class State:
    """All that the platform holds.

    Attributes:
        variants: by product and variant id.
        subcategories, warehouses: as created, in order.
        customer_inputs: bodies of the customer creates that were applied, in order.
        log: the last requests.
        truth: every change of a list, in order.
        requests: how many requests were seen.
    """

    def __init__(self, config: SandboxConfig) -> None:
        self.lock = threading.RLock()
        self.config = config
        self._make: dict[str, Make] = makers(config)
        amounts = {name: int(getattr(config, name)) for name in RESOURCES}
        self.lists: dict[str, Rows] = {}
        for name in RESOURCES:
            given = None if config.records is None else _given(config.records / f"{name}.json")
            self.lists[name] = Rows(made(self._make[name], amounts[name]) if given is None else given)
        self._serial = max(amounts.values())
        self._found: dict[str, tuple[int, list[bytes]]] = {}
        self.variants: dict[tuple[int, int], Variant] = {}
        self.subcategories: list[Json] = []
        self.warehouses: list[Json] = []
        self.customer_inputs: list[Json] = []
        self.log: deque[Logged] = deque(maxlen=LOG_LENGTH)
        self.truth: list[Change] = []
        self.requests = 0

    # The lists, for the tests.

    def records(self, resource: str) -> list[Json]:
        """What the list holds now, in order."""
        with self.lock:
            return [json.loads(row) for row in self.lists[resource].rows]

    def ids(self, resource: str) -> list[str]:
        """Ids of what the list holds now, in order, as texts."""
        with self.lock:
            return list(self.lists[resource].ids)

    def ever(self, resource: str) -> set[str]:
        """Ids that were in the list at any time."""
        with self.lock:
            return set(self.lists[resource].initial) | self.lists[resource].added

    def always(self, resource: str) -> set[str]:
        """Ids that were in the list from the start and never left it."""
        with self.lock:
            return set(self.lists[resource].initial) - self.lists[resource].removed

    def add(self, resource: str, fields: Mapping[str, Any], position: int | None = None) -> Json:
        """Adds a record, at the end or before a position, with a new id unless it brings one. Returns the record."""
        with self.lock:
            rows = self.lists[resource]
            record = {"id": self._new_id(resource), **fields}
            identifier = rows.put(len(rows.rows) if position is None else position, _encode(record))
            self._note(resource, identifier, "added")
            return record

    def change(self, resource: str, identifier: str | int, fields: Mapping[str, Any]) -> Json:
        """Sets fields of a record. Returns the record. Raises KeyError where there is none of that id."""
        with self.lock:
            rows = self.lists[resource]
            position = self._position(resource, identifier)
            record: Json = {**json.loads(rows.rows[position]), **fields}
            rows.rows[position] = _encode(record)
            rows.version += 1
            self._note(resource, str(identifier), "changed")
            return record

    def remove(self, resource: str, identifier: str | int) -> None:
        """Removes a record. Raises KeyError where there is none of that id."""
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
                row = self._make[resource](self._next_serial())
                self._note(resource, rows.put(position % (len(rows.rows) + 1), row), "added")

    # The lists, for the routes.

    def found(self, resource: str, term: str) -> list[bytes]:
        """Rows whose name or coupon code holds the term, whatever its case."""
        with self.lock:
            rows = self.lists[resource]
            if not term:
                return rows.rows
            kept = self._found.get(term)
            if kept is None or kept[0] != rows.version:
                kept = (rows.version, [row for row in rows.rows if term.casefold() in _searched(row)])
                self._found = {term: kept}
            return kept[1]

    # Writes.

    def create_customer(self, body: Json) -> Json:
        """Adds a customer to the list; returns its record."""
        hidden = {"password", "notification"} | ({"loginCode"} if self.config.login_mode == "email" else set())
        with self.lock:
            self.customer_inputs.append(body)
            record = {name: value for name, value in body.items() if name not in hidden}
            record["createdAt"] = now_written(self.config.reading("date_format"))
            record.setdefault("priceListId", 1)
            record.setdefault("documents", [])
            return self.add("customers", record)

    def create_subcategory(self, category: str, body: Json) -> Json:
        """Keeps a subcategory; returns its record."""
        with self.lock:
            record = {"id": len(self.subcategories) + 1, "categoryId": category, **body}
            self.subcategories.append(record)
            return record

    def create_warehouse(self, body: Json) -> Json:
        """Keeps a warehouse; returns its record."""
        with self.lock:
            record = {"id": len(self.warehouses) + 1, **body}
            self.warehouses.append(record)
            return record

    def update_variant(self, product: int, variant: int, body: Json) -> None:
        """Applies an update; price and stock by their readings."""
        with self.lock:
            kept = self.variants.setdefault((product, variant), Variant())
            kept.applied += 1
            for name, value in body.items():
                kept.counts[name] += 1
                adds = name in ("price", "stock") and self.config.reading(f"{name}_semantics") == "increment"
                kept.fields[name] = _sum(kept.fields.get(name, 0), value) if adds else value

    def _position(self, resource: str, identifier: str | int) -> int:
        try:
            return self.lists[resource].ids.index(str(identifier))
        except ValueError:
            raise KeyError(f"{resource} holds no {identifier}") from None

    def _new_id(self, resource: str) -> int | str:
        serial = self._next_serial()
        match resource:
            case "orders":
                return f"ord_{FIRST_ORDER + serial:09d}"
            case "price_lists":
                return str(1 + serial)
            case "customers":
                numbers = [int(found) for found in self.lists[resource].ids[-1:] if found.isdigit()]
                return max([FIRST_CUSTOMER + serial, *(number + 1 for number in numbers)])
            case _:
                return 301 + serial

    def _next_serial(self) -> int:
        # Past every amount, so that no new id is one of the made ones, in any list.
        self._serial += 1
        return self._serial

    def _note(self, resource: str, identifier: str, what: str) -> None:
        self.truth.append(Change(self.requests, resource, identifier, what))


def _given(path: Path) -> list[bytes] | None:
    """Rows of a file, each with its bytes as they are; None where there is no file.

    Raises:
        SandboxConfigError: the file is no array of objects with an `id`.
    """
    if not path.exists():
        return None
    try:
        rows = [bytes(raw).strip() for raw in _records.decode(path.read_bytes())]
    except (msgspec.DecodeError, OSError) as error:
        raise SandboxConfigError(f"{path} cannot be read as a JSON array: {error}") from None
    for position, row in enumerate(rows, 1):
        try:
            _id(row)
        except msgspec.DecodeError as error:
            raise SandboxConfigError(f"{path}: record {position} is no object with an `id`: {error}") from None
    return rows


def _id(row: bytes) -> str:
    value = _key.decode(row).id
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _searched(row: bytes) -> str:
    record: Json = json.loads(row)
    code = coupon_code(record["id"]) if isinstance(record["id"], int) else ""
    return f"{record.get('name', '')} {record.get('code', code)}".casefold()


def _sum(before: float, value: float) -> float:
    """A sum in decimals: 0.1 and 0.2 make 0.3."""
    total = Decimal(str(before)) + Decimal(str(value))
    return int(total) if isinstance(before, int) and isinstance(value, int) else float(total)


def _encode(record: Json) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
