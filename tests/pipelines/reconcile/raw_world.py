"""Four nights of a shop as pulls leave them in the raw tables: each thing is there at least twice, and differs.

In: a seed. Out: for each night the raw rows, the reads, and the lines of the ERP's file. What the tables that are made
of them have to say is in `table_truth.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from orderbridge.transforms.rules import Severity

Row = dict[str, Any]
ZONE = ZoneInfo("America/Lima")
FIRST_NIGHT = datetime(2026, 6, 27, 2, tzinfo=UTC)
"""In Lima it is still the day before."""
NIGHTS = 4
KEYS = {"customers": "C", "promotions": "P", "price_lists": "L", "orders": "o"}
VERDICTS: tuple[dict[str, str], ...] = (
    {},
    {"customers": "unproven", "promotions": "incomplete"},
    {"price_lists": "incomplete"},
    {"price_lists": "unproven"},
)
"""Of the lists of each night that are not proven complete; one that is incomplete did not come at all."""
TAILS = {2: 2, 3: 1}
"""How often the orders after those of the last read were read once more, by night."""
STATUSES = {
    "Paid": "sale", "sent": "sale", "waiting": "open", "draft": "open", "CANCELLED": "cancelled", "lost": "cancelled",
    "returned": "refunded", "money back": "refunded", "Probe": "test", "trial": "test",
}  # fmt: skip
"""What a person answered; `17` and `18` are not answered."""
KINDS = {"type: promo": "no_product", "type: freight": "no_product", "parent_id: *": "part"}
ORDER_FIELDS = {
    "customer_id": "customer__id", "ordered_at": "created_at", "total": "total", "status": "status",
    "currency": "currency", "tax": "total_tax", "shipping": "shipping_total", "lines": "orders__lines",
    "line_product": "sku", "line_product_name": "name", "line_quantity": "quantity", "line_unit_price": "price",
    "line_total": "line_total", "line_discount": "discount", "line_discount_unit": "percent",
    "customer_notation": "ids", "total_unit": "units",
    "statuses": ",".join(f"{value}={of}" for value, of in STATUSES.items()),
    "line_kinds": ",".join(f"{value}={of}" for value, of in KINDS.items()),
}  # fmt: skip
"""The settings: which columns hold what."""
ACCEPTED = {
    ("customers.login_missing", ""),
    ("promotions.dates_unreadable", ""),
    ("customers.erp_code_duplicate", "C5"),
}
"""Findings that a person has accepted: all of a rule, or those about a record."""
SEVERITIES: dict[str, Severity] = {
    "orders.customer_missing": "error",
    "price_lists.chain_cycle": "info",
}
"""What a person has said of others."""


@dataclass(eq=False)
class Night:
    """What a pull left.

    Attributes:
        number: from 1.
        tables: the rows of each raw table.
        erp: the lines of the ERP's file, None without one.
        reviews: what a person has decided about pairs, by the code of the line and the id of the customer.
        reads: rows of `ops.coverage`, up to this night.
        quarantined: rows of `ops.quarantine`, likewise.
    """

    number: int
    tables: dict[str, list[Row]]
    erp: list[Row] | None = None
    reviews: dict[tuple[str, str], bool] = field(default_factory=dict)
    reads: list[Row] = field(default_factory=list)
    quarantined: list[Row] = field(default_factory=list)

    @property
    def run_id(self) -> str:
        return f"run{self.number}"

    @property
    def as_of(self) -> datetime:
        return FIRST_NIGHT + timedelta(days=self.number - 1)

    @property
    def read_at(self) -> datetime:
        return self.as_of + timedelta(minutes=3)

    def __getitem__(self, table: str) -> list[Row]:
        return self.tables[table]


class RawWorld:
    """The nights of a seed."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._records: dict[str, dict[str, Row]] = {name: {} for name in KEYS}
        self._children: dict[str, dict[str, list[Row]]] = {name: {} for name in CHILDREN}
        self._reads: list[Row] = []
        self._quarantined: list[Row] = []
        self._erp: list[Row] = []
        self.nights = tuple(self._night(number) for number in range(1, NIGHTS + 1))

    def _night(self, number: int) -> Night:
        night = Night(number, {})
        for name in KEYS:
            verdict = VERDICTS[number - 1].get(name, "complete")
            if verdict != "incomplete":
                self._read(night, name, verdict)
            self._record(night, name, verdict)
            self._quarantine(night, name)
        for tail in range(TAILS.get(number, 0)):
            self._record(night, "orders", "tail", f"tail{number}-{tail}")
        night.reads = list(self._reads)
        night.quarantined = list(self._quarantined)
        night.tables = {
            name: list(map(dict, rows.values())) for name, rows in self._records.items()
        }
        for name, rows in self._children.items():
            night.tables[name] = [dict(row) for of_record in rows.values() for row in of_record]
        if number in ERP_NIGHTS:
            self._erp = night.erp = [*_erp_lines(self._draw, night, self._erp)]
        return night

    def _record(self, night: Night, name: str, verdict: str, run_id: str = "") -> None:
        draw = self._draw.randrange
        self._reads.append(
            {
                "run_id": run_id or night.run_id, "resource": name, "verdict": verdict, "sweeps": draw(1, 7),
                "pages": draw(99), "rows": draw(999), "distinct": draw(999), "duplicates": draw(9),
                "quarantined": draw(9), "total_reported": self._draw.choice((None, draw(999))),
                "ended_by": self._draw.choice(("empty_page", "has_next_page")), "evidence": f"evidence {draw(99)}",
                "started_at": night.as_of, "ended_at": night.read_at, "published": verdict != "incomplete",
                "read_number": len(self._reads) + 1, "cut": None,
            }
        )  # fmt: skip

    def _quarantine(self, night: Night, name: str) -> None:
        """Two passes over a list quarantine the same rows; other rows have the id of a record."""
        for number in range(self._draw.randrange(3)):
            duplicate = self._draw.choice((None, *self._records[name]))
            for page in (1, 2):
                self._quarantined.append(
                    {
                        "run_id": night.run_id, "resource": name, "page": page, "position": number,
                        "reason": "odd", "row_hash": f"{night.number}/{number}", "duplicate_id": duplicate,
                    }
                )  # fmt: skip

    def _read(self, night: Night, name: str, verdict: str) -> None:
        """Some records are new, changed, gone or back; of a list that was not read whole, some were not seen."""
        known = self._records[name]
        for one in DRAWN[name](self._draw, night.number):
            known.setdefault(one["id"], {**one, "_first_seen_at": night.read_at})
            self._place(name, known[one["id"]], night, is_new=True)
        for one in known.values():
            luck = self._draw.random()
            is_new = one["_first_seen_at"] == night.read_at
            if one["_missing_since"] is not None and luck < 0.6:
                if luck < 0.1 and verdict == "complete":
                    # a read that nobody reconciled had it once more
                    seen_at = night.read_at - timedelta(hours=1)
                    one |= {"_last_seen_at": seen_at, "_missing_since": night.read_at}
                    self._mark_children(name, one)
                continue
            if not is_new and luck < 0.12:
                if verdict == "complete" and one["_missing_since"] is None:
                    one["_missing_since"] = night.read_at
                self._mark_children(name, one)
                continue
            if not is_new and luck > 0.6:
                CHANGED[name](self._draw, one, night)
            self._place(name, one, night, is_new=luck > 0.8)

    def _place(self, name: str, one: Row, night: Night, *, is_new: bool) -> None:
        one |= {"_last_seen_at": night.read_at, "_run_id": night.run_id, "_missing_since": None}
        for child, (of, draw) in CHILDREN.items():
            if of == name and (is_new or one["id"] not in self._children[child]):
                self._children[child][one["id"]] = [*draw(self._draw, one)]
        self._mark_children(name, one)

    def _mark_children(self, name: str, one: Row) -> None:
        for child, (of, _) in CHILDREN.items():
            if of == name:
                for row in self._children[child].get(one["id"], ()):
                    row |= {key: one[key] for key in BOOKKEEPING}


BOOKKEEPING = ("_run_id", "_first_seen_at", "_last_seen_at", "_missing_since")


def iso(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


# customers


def _names(draw: random.Random) -> Row:
    firsts = (None, "", " ", "Ana", " Ana ", "Luis", "Núria", "MARTA")
    lasts = (None, "", "Peña", " Ruiz", "García López", "Soto")
    return {"first_name": draw.choice(firsts), "last_name": draw.choice(lasts)}


def _time(draw: random.Random, days: int = 500) -> datetime:
    """Within so many days before the first night, at an hour of which the day in Lima is another one now and then."""
    return FIRST_NIGHT - timedelta(
        days=draw.randrange(1, days), hours=draw.randrange(24), seconds=draw.randrange(3600)
    )


def _written(draw: random.Random, at: datetime) -> str:
    """An instant in UTC, with another offset, or by the clocks of Lima without one."""
    return draw.choice(
        (
            iso(at),
            at.astimezone(ZoneInfo("Asia/Kolkata")).isoformat(),
            at.astimezone(ZONE).replace(tzinfo=None).isoformat(),
        )
    )


PRICE_LISTS_OF_CUSTOMERS = (
    None, "", *[f"L{number}" for number in range(1, 8)], " L2 ", "7", "7.0", "08", "8", "404", "405", "-3", "1.5",
)  # fmt: skip
TODAYS = [(FIRST_NIGHT + timedelta(days=night)).date() for night in range(NIGHTS)]
BIRTHDATES = (
    None, date(1980, 2, 29), date(1991, 5, 4), date(1890, 1, 1), date(2031, 1, 1),
    *[day + timedelta(days=more) for day in TODAYS[:2] for more in (0, 1)],
    *[day.replace(year=day.year - 120) - timedelta(days=less) for day in TODAYS[:2] for less in (0, 1)],
)  # fmt: skip
"""Also of today and of tomorrow, and 120 years ago."""


def _customer(draw: random.Random, key: str) -> Row:
    number = int(key[1:])
    return {
        "id": key,
        **_names(draw),
        "phone": draw.choice(
            (None, "", " ", "ask", f"+51 987-654-32{key[-1]}", "(+34) 600 11", "00511", "98 7+6",
             f"912 345 {number:03}")
        ),
        "email": draw.choice(
            (None, " ", f"{key}@Shop.pe", f" U{key}@shop.PE ", f"u{key}@shop.pe", "one@shop.pe", "Two@shop.pe",
             "two@shop.pe", "no address", "a@b@c")
        ),
        "login_code": draw.choice((None, "", f"u{number}", f" u{number % 7}", f"u{number % 7}")),
        "created_at": draw.choice(
            (None, "", "2026-02-30T10:00:00Z", "9999-12-31T00:00:00Z", *[_written(draw, _time(draw)) for _ in range(9)],
             *[iso(FIRST_NIGHT + timedelta(days=1, hours=14, seconds=more)) for more in (0, 1)])
        ),
        "price_list_id": draw.choice(PRICE_LISTS_OF_CUSTOMERS),
        "erp_code": draw.choice(
            (None, " ", f"E{number}", f"E{number}", f" E{number % 9}", f"E{number % 9}")
        ),
        "birthdate": draw.choice(BIRTHDATES),
        "_extra": draw.choice((None, f'{{"a":{number}}}')),
    }  # fmt: skip


def _customers(draw: random.Random, night: int) -> Iterator[Row]:
    numbers = [*range(1, 71)] if night == 1 else [*range(100 * night, 100 * night + 4)]
    draw.shuffle(numbers)
    for number in numbers:
        yield _customer(draw, f"C{number}")


def _documents(draw: random.Random, of: Row) -> Iterator[Row]:
    """Up to four, not in the order of their positions; two may be the default, or for taxes, or none is."""
    number = int(of["id"][1:])
    positions = [*range(1, draw.choice((0, 1, 1, 2, 3, 4)) + 1)]
    draw.shuffle(positions)
    for position in positions:
        yield {
            "customer_id": of["id"],
            "position": position,
            "number": draw.choice((None, " ", f"D{number}-{position}", f" D{number % 5}", f"D{number % 5}")),
            "fiscal_name": draw.choice((None, f"Firm{number}x{position}", "Firm")),
            "fiscal_address": draw.choice((None, f"Street{position}")),
            "email": draw.choice((None, f"{position}@firm.pe")),
            "is_default": draw.choice((None, True, False, False)),
            "for_taxes": draw.choice((None, True, False, False)),
            "_extra": None,
        }  # fmt: skip


def _change_customer(draw: random.Random, one: Row, night: Night) -> None:
    other = _customer(draw, one["id"])
    for name in draw.sample([*other], 2):
        one[name] = other[name]


# price lists


def _price_list(draw: random.Random, key: str, source: str | None) -> Row:
    return {
        "id": key,
        "name": draw.choice((None, "", f"List {key}", "List A", " List A", "List B", "list b")),
        "source_price_list_id": source,
        "adjustment_type": draw.choice((None, "NONE", "none ", "percent", "amount")),
        "adjustment_value": draw.choice((None, Decimal(0), Decimal("-1.5"), Decimal("0.000000001"))),
        "_extra": draw.choice((None, '{"b":1}')),
    }  # fmt: skip


SOURCES = {
    "L1": None, "L2": "L1", "L3": "L2", "L4": "L9", "L5": "L4", "L6": "L7", "L7": "L6", "L8": "L6", "7": "",
    "7.0": "L1", "8": "7", "08": None, "L10": "8.0", "L11": "L10", "L12": " L11", "L13": "L13", "L14": "404",
    "L15": "L14", "L17": "08",
}  # fmt: skip
"""Two chains of two steps and more, two circles, two that end at a list which is not there."""
LATER_LISTS = {2: ("L9", "L1"), 4: ("L16", "L15")}


def _price_lists(draw: random.Random, night: int) -> Iterator[Row]:
    if night == 1:
        keys = [*SOURCES]
        draw.shuffle(keys)
        for key in keys:
            yield _price_list(draw, key, SOURCES[key])
    if night in LATER_LISTS:
        yield _price_list(draw, *LATER_LISTS[night])


def _change_price_list(draw: random.Random, one: Row, night: Night) -> None:
    if draw.random() < 0.4:
        one["source_price_list_id"] = draw.choice([*SOURCES, None])
    other = _price_list(draw, one["id"], one["source_price_list_id"])
    name = draw.choice([*other])
    one[name] = other[name]


# promotions


def _promotion(draw: random.Random, key: str) -> Row:
    """Also at the very instants of the nights, and on days without a time."""
    nights = [FIRST_NIGHT + timedelta(days=night) for night in range(NIGHTS)]
    near = [at + timedelta(seconds=more) for at in nights for more in (-1, 0, 1)]
    days = [
        at.astimezone(ZONE).date() + timedelta(days=more) for at in nights for more in (-1, 0, 1)
    ]
    starts = draw.choice(near if draw.random() < 0.3 else [_time(draw, 60), _time(draw, 60)])
    ends = draw.choice(
        [*near, *(FIRST_NIGHT + timedelta(days=draw.randrange(30), hours=5) for _ in range(20))]
    )
    odd = (None, "", "soon", "9999-12-31")
    limit = draw.choice((None, None, -1, 0, 5, 9))
    return {
        "id": key,
        "name": draw.choice((None, " ", f"Promotion {key}")),
        "use_count": draw.choice((None, -2, 0, 3, 5, 9, 12)),
        "usage_limit": limit,
        "is_active": draw.choice((None, False, *[True] * 5)),
        "start_date": draw.choice((*odd, *[_written(draw, starts)] * 12, *map(str, draw.sample(days, 2)))),
        "expiration_date": draw.choice((*odd, *[_written(draw, ends)] * 12, *map(str, draw.sample(days, 4)))),
        "_extra": draw.choice((None, '{"c":1}')),
    }  # fmt: skip


def _promotions(draw: random.Random, night: int) -> Iterator[Row]:
    numbers = [*range(1000 * night, 1000 * night + (110 if night == 1 else 3))]
    draw.shuffle(numbers)
    for number in numbers:
        yield _promotion(draw, f"P{number}")


def _change_promotion(draw: random.Random, one: Row, night: Night) -> None:
    other = _promotion(draw, one["id"])
    for name in draw.sample([*other], 2):
        one[name] = other[name]


# orders


def _order(draw: random.Random, key: str) -> Row:
    at = _time(draw)
    status = draw.choice((None, "17", "18", *["Paid", "sent", "PAID "] * 5, *STATUSES))
    total = draw.choice(
        (None, Decimal("-3.5"), Decimal(0), *[Decimal(draw.randrange(1, 99_999)) / 100] * 18)
    )
    is_cancelled = status in ("Paid", "sent", "waiting", "CANCELLED") and draw.random() < 0.15
    return {
        "id": key,
        "customer__id": draw.choice(
            (None, "", "0", "C901", "C902", *[f"C{n}" for n in range(1, 41)], *["C1", "C2"] * 4)
        ),
        "created_at": draw.choice(
            (None, "", "2026-13-01T10:00:00Z", *[_written(draw, at)] * 25, "2026-01-05T00:00:00Z",
             *[iso(FIRST_NIGHT + timedelta(days=1, hours=14, seconds=more)) for more in (0, 1)])
        ),
        "number": draw.choice((f"N{key}", "N1", "N2", None)),
        "total": total,
        "status": status,
        "currency": draw.choice((None, "", "PEN", "pen", "USD", " USD ")),
        "total_tax": draw.choice((None, Decimal(0), Decimal("1.25"), Decimal("2.5"))),
        "shipping_total": draw.choice((None, Decimal("0.75"), Decimal(4))),
        "total_refunded": draw.choice((None, None, Decimal(0), Decimal("-1.5"), total)),
        "cancelled_at": draw.choice(("", "0000-00-00", None))
        if not is_cancelled
        else iso(at + timedelta(days=1)),
        "_extra": draw.choice((None, '{"d":1}')),
    }  # fmt: skip


COPIES: dict[str, tuple[str, Row]] = {
    "o7": ("o3", {}),
    "o9": ("o3", {"_extra": None}),
    "o11": ("o4", {}),
    "o12": ("o4", {"number": "other"}),
    "o13": ("o4", {"currency": "USD"}),
    "o14": ("o4", {"total": Decimal("50.01")}),
    "o15": ("o4", {"status": "CANCELLED"}),
    "o16": ("o4", {"customer__id": "C2"}),
    "o17": ("o4", {"created_at": "2026-02-02T10:00:00Z"}),
    "o18": ("o4", {"number": None}),
    "o19": ("o4", {"number": None}),
}
"""Orders that are there once more under another id, and what differs."""


def _orders(draw: random.Random, night: int) -> Iterator[Row]:
    first = 1 if night == 1 else 1000 * night
    made: dict[str, Row] = {}
    for number in range(first, first + (260 if night == 1 else 12)):
        key = f"o{number}"
        one = _order(draw, key)
        if key in ("o3", "o4"):
            one |= {
                "status": "Paid",
                "number": f"N{key}",
                "total": Decimal(50),
                "cancelled_at": None,
            }
            one |= {"created_at": iso(_time(draw)), "currency": "PEN", "total_refunded": None}
        if key in COPIES:
            like, changes = COPIES[key]
            one = {**made[like], **changes, "id": key}
        made[key] = one
    rows = [*made.values()]
    draw.shuffle(rows)
    yield from rows


def _change_order(draw: random.Random, one: Row, night: Night) -> None:
    other = _order(draw, one["id"])
    for name in draw.sample(["total", "total_tax", "shipping_total", "number", "currency"], 2):
        one[name] = other[name]


def _lines(draw: random.Random, of: Row) -> Iterator[Row]:
    """Up to five, not in the order of their positions; a product may be on two of them, and has several names."""
    positions = [*range(1, draw.choice((0, 1, 2, 3, 5)) + 1)]
    draw.shuffle(positions)
    for position in positions:
        sku = draw.choice((None, " ", "007", "A", "A", "B", "B ", "C"))
        yield {
            "order_id": of["id"],
            "position": position,
            "line_id": f"{of['id']}/{position}",
            "sku": sku,
            "name": draw.choice((None, "Soap", "Box", f"{sku} {position}")),
            "type": draw.choice((None, *["item"] * 6, "Promo", "freight ")),
            "parent_id": draw.choice((None, None, None, "", "0", f"{of['id']}/1" if position > 1 else None)),
            "quantity": draw.choice((None, Decimal(0), Decimal(1), Decimal(2), Decimal("0.5"), Decimal(-1))),
            "price": draw.choice((None, Decimal(3), Decimal("0.123456789"), Decimal("12.5"), Decimal("-2.25"))),
            "line_total": draw.choice((None, None, None, Decimal("9.99"), Decimal(7), Decimal(-4))),
            "discount": draw.choice((None, None, "", "0", "10", "33.3", "100", "101", "-5", "n/a")),
            "status": draw.choice((None, "packed")),
            "_extra": draw.choice((None, '{"e":1}')),
        }  # fmt: skip


def _refunds(draw: random.Random, of: Row) -> Iterator[Row]:
    """None, one or two; some have an amount of their own, others that of their payments or lines, or none."""
    if draw.random() < 0.75:
        return
    for position in range(1, draw.choice((1, 2)) + 1):
        total = of["total"]
        amount = draw.choice((None, None, Decimal(2), Decimal("-1.25"), total))
        yield {"order_id": of["id"], "position": position, "amount": amount, "_extra": None}


def _refund_payments(draw: random.Random, of: Row) -> Iterator[Row]:
    for refund in (1, 2):
        for position in range(1, draw.choice((0, 0, 1, 2)) + 1):
            amount = draw.choice(
                (None, Decimal(1), Decimal("2.5"), Decimal("0.25"), Decimal("3.75"))
            )
            yield {
                "order_id": of["id"], "refunds_position": refund, "position": position, "amount": amount,
                "_extra": None,
            }  # fmt: skip


def _refund_lines(draw: random.Random, of: Row) -> Iterator[Row]:
    for refund in (1, 2):
        for position in range(1, draw.choice((0, 0, 1, 2)) + 1):
            yield {
                "order_id": of["id"], "refunds_position": refund, "position": position,
                "quantity": draw.choice((None, Decimal(1), Decimal(3), Decimal(2))),
                "price": draw.choice((Decimal("1.5"), Decimal(2))), "_extra": None,
            }  # fmt: skip


def _payments(draw: random.Random, of: Row) -> Iterator[Row]:
    """Tried twice or three times: the last one counts. None of an order with a time of cancellation."""
    if draw.random() < 0.5 or len(of["cancelled_at"] or "") > 10:
        return
    positions = [*range(1, draw.choice((1, 2, 3)) + 1)]
    draw.shuffle(positions)
    for position in positions:
        state = draw.choice(("paid", "paid", "paid", "declined", "voided", "refunded", None))
        amount = draw.choice((None, Decimal(1), Decimal(20)))
        yield {
            "order_id": of["id"], "position": position, "status": state, "amount": amount, "_extra": None,
        }  # fmt: skip


DRAWN = {
    "customers": _customers,
    "promotions": _promotions,
    "price_lists": _price_lists,
    "orders": _orders,
}
CHANGED = {
    "customers": _change_customer,
    "promotions": _change_promotion,
    "price_lists": _change_price_list,
    "orders": _change_order,
}
CHILDREN = {
    "customers__documents": ("customers", _documents),
    "orders__lines": ("orders", _lines),
    "orders__refunds": ("orders", _refunds),
    "orders__refunds__transactions": ("orders", _refund_payments),
    "orders__refunds__refund_line_items": ("orders", _refund_lines),
    "orders__transactions": ("orders", _payments),
}
"""The tables of what records have: the list, and how it is drawn."""


# the ERP's file

ERP_NIGHTS = (1, 2, 4)
"""The others have no file: what was matched stays."""
ERP_FIELDS = (
    "erp_code", "login_code", "email", "document_number", "first_name", "last_name", "phone", "price_list_id",
    "fiscal_name", "fiscal_address", "document_email",
)  # fmt: skip
REFUSED = 2
"""So many lines at the end of the file have a cell too many."""


def _erp_lines(draw: random.Random, night: Night, before: list[Row]) -> Iterator[Row]:
    """Most lines are customers as the ERP writes them; some are there twice, or have what is another's."""
    documents = night["customers__documents"]
    line = 2
    kept = [one for one in before if draw.random() < 0.8]
    for old in kept:
        changed = draw.choice(ERP_FIELDS)
        yield {**old, "line": line, changed: old[changed] if draw.random() < 0.8 else None}
        line += 1
    others = draw.sample(night["customers"], 20 if before else 60)
    for of in [*others, *[None] * (3 if before else 8)]:
        own = [one for one in documents if of is not None and one["customer_id"] == of["id"]]
        one = _erp_line(draw, of or {}, draw.choice(own) if own else {})
        for _ in range(2 if draw.random() < 0.1 else 1):
            yield {**one, "line": line}
            line += 1
        if draw.random() < 0.15:
            other = draw.choice(ERP_FIELDS)
            yield {**one, other: _erp_line(draw, {}, {})[other], "line": line}
            line += 1


def _erp_line(draw: random.Random, of: Row, document: Row) -> Row:
    number = draw.randrange(1, 99)
    own = {
        name: of.get(name)
        for name in (
            "erp_code",
            "login_code",
            "email",
            "first_name",
            "last_name",
            "phone",
            "price_list_id",
        )
    }
    own |= {
        "document_number": document.get("number"),
        "fiscal_name": document.get("fiscal_name"),
        "fiscal_address": document.get("fiscal_address"),
        "document_email": document.get("email"),
    }
    others = {
        "erp_code": ("-", "0000", str(number), f"E{number}", f"E0{number}", f"e{number}", f"E{number % 9}"),
        "login_code": ("S/N", f"u{number}", f"U{number}", f"u{number % 7}"),
        "email": (f"x{number}@shop.pe", f"u{number}+web@Shop.PE", "two@shop.pe", "noemail@shop.pe", "nothing"),
        "document_number": ("00000", f"D{number}-1", f"d{number} 2", f"D0{number}-1", f"D{number % 5}"),
        "first_name": ("Ana", "LUIS", "Nuria", "marta Ana", "Zoe"),
        "last_name": ("Pena", "RUIZ", "García  López", "Soto Peña", "Gomez"),
        "phone": ("51 98765432" + str(number % 10), f"+51 111 222 {number}", "600"),
        "price_list_id": ("L1", "7,0", "08", "1", "007"),
        "fiscal_name": (f"FIRM{number}X1", "FIRM", "Other"),
        "fiscal_address": ("STREET1", "Street2", "Square"),
        "document_email": ("1@FIRM.PE", "9@firm.pe"),
    }  # fmt: skip
    line = {}
    for name in ERP_FIELDS:
        luck = draw.random()
        value = draw.choice(others[name]) if luck > (0.8 if of else 0.4) else own[name]
        line[name] = None if luck < 0.08 or not (value or "").strip() else value
    if draw.random() < 0.2:
        line |= dict.fromkeys(("erp_code", "login_code", "email", "document_number"))
    return line
