"""A shop in which each thing is there at least twice and differs.

In: a seed. Out: rows of the reconciled tables and of `ops`. What the views have to say of them is in `view_truth.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

Row = dict[str, Any]
ZONE = ZoneInfo("America/Lima")
AS_OF = datetime(2026, 7, 1, 2, tzinfo=UTC)
"""In Lima it is still the last day of June."""
TODAY = date(2026, 6, 30)
RECONCILED_UP_TO = 40
"""The number of the last read of which the reconciled tables were made."""
LISTS = ("customers", "promotions", "price_lists", "orders")
CLASSES = {"sale": True, "open": False, "cancelled": False, "refunded": False, "test": False}
"""Whether an order of a class is a sale; of an unknown class that is not known."""


@dataclass
class World:
    """The rows of each table."""

    tables: dict[str, list[Row]] = field(default_factory=dict)

    @classmethod
    def of(cls, seed: int, *, has_times: bool = True, is_read: bool = False) -> World:
        """The world of a seed.

        Args:
            seed: of what is drawn.
            has_times: whether customers were created, and promotions start, at a time of the day; else all at midnight
                in UTC.
            is_read: whether the orders were read whole as well.
        """
        draw = random.Random(seed)
        world = cls()
        lists = world.tables["reconciled.price_lists"] = [*_price_lists(draw)]
        customers = world.tables["reconciled.customers"] = [*_customers(draw, lists, has_times)]
        world.tables["reconciled.customer_orders"] = [*_customer_orders(draw, customers)]
        world.tables["reconciled.customer_history"] = [*_history(draw, customers), *MOVED]
        drawn = [*_orders(draw)]
        orders = world.tables["reconciled.orders"] = [*drawn, *_borders(drawn[1])]
        world.tables["reconciled.order_lines"] = [*_lines(draw, orders)]
        world.tables["reconciled.promotions"] = [*_promotions(draw, has_times)]
        world.tables["ops.promotion_uses"] = [*_promotion_uses(draw)]
        world.tables["reconciled.exceptions"] = [*_findings(draw)]
        world.tables["ops.finding_counts"] = [*_finding_counts(draw)]
        world.tables["reconciled.erp_customers"] = [*_erp_customers(draw)]
        world.tables["ops.coverage"] = [*_reads(draw, LISTS[: 4 if is_read else 3])]
        world.tables["ops.warehouse"] = [{"environment": "sandbox"}]
        return world

    def __getitem__(self, table: str) -> list[Row]:
        return self.tables[f"reconciled.{table}"]


# the rows


def day_of(at: datetime | None, zone: Any = ZONE) -> date | None:
    return None if at is None else at.astimezone(zone).date()


def _instant(draw: random.Random, days: int = 700) -> datetime:
    """Within so many days, at an hour of which the day in Lima is another one now and then."""
    return AS_OF - timedelta(days=draw.randrange(days), hours=draw.randrange(24), minutes=7)


def _money(draw: random.Random) -> Decimal | None:
    """With more decimals than are shown; null now and then."""
    return draw.choice((None, *[Decimal(draw.randrange(1, 999_999)) / 1000] * 4))


def _price_lists(draw: random.Random) -> Iterator[Row]:
    for number in range(1, 8):
        yield {
            "price_list_id": f"L{number}",
            "name": f"List {number % 6}",
            "chain_status": draw.choice(("root", "linked", "orphan", "cycle")),
            "depth": draw.choice((None, 0, 1, 2)),
            "source_price_list_id": draw.choice((None, "L1", "L2")),
            "root_price_list_id": draw.choice((None, "L1", "L3", "L7")),
            "adjustment_type": draw.choice(("percent", "other")),
            "adjustment_value": Decimal(draw.randrange(-99, 99)) / 10,
            "customer_count": draw.randrange(9),
            "is_missing": number in (3, 7),
        }


def _customers(draw: random.Random, lists: Sequence[Row], has_times: bool) -> Iterator[Row]:
    for number, name in enumerate((*map(str, range(1, 31)), *AT_BORDERS), 1):
        created_at = _instant(draw)
        if not has_times:
            created_at = created_at.replace(hour=0, minute=0)
        status = draw.choice(("matched", "matched", "not_listed", "default"))
        price_list = draw.choice(lists)
        yield {
            "customer_id": name,
            "erp_code": draw.choice((None, f"E{number}")),
            "full_name": f"Name {number % 27}",
            "email_normalized": f"{number}@example.com",
            "phone_digits": draw.choice((None, f"51{number}")),
            "created_at": draw.choice((None, created_at, created_at)),
            "price_list_id": None if status == "default" else price_list["price_list_id"],
            "price_list_name": price_list["name"] if status == "matched" else None,
            "price_list_status": status,
            "document_count": draw.randrange(3),
            "default_fiscal_name": draw.choice((None, f"Firm {number}")),
            "is_missing": number in (9, 18, 27),
        }


def _customer_orders(draw: random.Random, customers: Sequence[Row]) -> Iterator[Row]:
    for customer in customers:
        count = draw.choice((None, 0, 1, 5))
        revenue = draw.choice((None, Decimal(draw.randrange(1, 99_999)) / 1000))
        first = _instant(draw)
        last = first + timedelta(days=draw.randrange(99))
        if draw.random() < 0.1:
            continue
        yield {
            "customer_id": customer["customer_id"],
            "order_count": count,
            "cancelled_count": draw.choice((None, 0, 2)),
            "currency": draw.choice((None, "PEN", "USD")),
            "revenue": revenue,
            "revenue_by_currency": draw.choice((None, '{"PEN": 1.5, "USD": 2}')),
            "first_ordered_at": first,
            "last_ordered_at": last,
            "first_ordered_date": first.astimezone(ZONE).date(),
            "last_ordered_date": last.astimezone(ZONE).date(),
            "is_active_30_days": draw.choice((True, False, None)),
            "is_active_90_days": draw.choice((True, False, None)),
            "is_active_365_days": draw.choice((True, False, None)),
            "unknown_because": draw.choice((None, None, "total: no column")),
            "unknown_orders": draw.randrange(4),
            "unknown_total": _money(draw),
        }


def _history(draw: random.Random, customers: Sequence[Row]) -> Iterator[Row]:
    """Up to three versions of each customer, some after a gap; some lists are not listed any more, or never were."""
    drawn = (one for one in customers if one["customer_id"] != MOVED[0]["customer_id"])
    for customer in drawn:
        begin = AS_OF - timedelta(days=600 + draw.randrange(90))
        for version in range(1, draw.choice((1, 2, 3, 3)) + 1):
            end = begin + timedelta(days=draw.randrange(30, 250), hours=draw.randrange(24))
            yield {
                "customer_id": customer["customer_id"],
                "version": version,
                "price_list_id": draw.choice((None, "L1", "L2", "L3", "L9")),
                "valid_from": begin,
                "valid_to": end if version < 3 else None,
            }
            begin = end + timedelta(days=draw.choice((0, 0, 40)))


def _orders(draw: random.Random) -> Iterator[Row]:
    """Of listed customers, of some that are gone or unknown, and of guests."""
    for number in range(420):
        at = _instant(draw, draw.choice((40, 700)))
        status_class = draw.choice(
            (*["sale"] * 6, "open", "cancelled", "refunded", "test", "unknown")
        )
        customer = draw.choice((None, "77", "78", *map(str, range(1, 31))))
        status = (
            "none" if customer is None else "unknown" if customer in ("77", "78") else "matched"
        )
        has_date = draw.random() < 0.93
        yield {
            "order_id": f"o{number}",
            "customer_id": customer,
            "customer_status": draw.choice((status, status, status, status, None)),
            "ordered_at": at if has_date else None,
            "ordered_date": at.astimezone(ZONE).date() if has_date else None,
            "total": _money(draw),
            "order_status": draw.choice((None, "A", "B")),
            "status_class": status_class,
            "is_sale": CLASSES.get(status_class),
            "is_cancelled": None
            if status_class == "unknown"
            else status_class in ("cancelled", "refunded"),
            "currency": draw.choice(("PEN", "PEN", "USD", None)),
            "unknown_because": draw.choice((None, "status", "total")),
            "refunded": draw.choice((None, None, Decimal(draw.randrange(999)) / 1000)),
            "tax_in_total": draw.choice((None, Decimal(draw.randrange(999)) / 1000)),
            "shipping_in_total": draw.choice((None, Decimal(draw.randrange(999)) / 1000)),
            "charges_in_total": draw.choice((None, Decimal(draw.randrange(999)) / 1000)),
            "is_missing": number % 12 == 0,
        }


REGULARS = {
    "r1": (10, 10, 40, 40), "r2": (10, 10, 10, 20), "r3": (6, 10, 11, 19), "r4": (10, 10, 10, 46, -5)
}  # fmt: skip
"""Days between the orders of customers, and since the last one: as long as the longest gap; twice the usual one; not
quite twice; one that is planned after a long gap."""
ACTIVE_DAYS = (30, 90, 365)
ACTIVITY = {
    f"{name}{days}": (TODAY - timedelta(days=days - later), state)
    for days in ACTIVE_DAYS
    for name, later, state in (
        ("d", 0, "sale"), ("e", 1, "sale"), ("u", 0, "unknown"), ("v", 1, "unknown"),
    )
}  # fmt: skip
"""Customers whose only order, known to be a sale or not, is as old as one who is active may have, or a day younger."""
OFFSET = timedelta(hours=14)
PLANNED = {"p1": AS_OF + OFFSET, "p2": AS_OF + OFFSET + timedelta(seconds=1)}
"""Customers whose only order is in the future: perhaps written without its offset, or surely planned."""
UNKNOWN: dict[str, list[datetime | None]] = {
    "w1": [AS_OF - timedelta(days=days) for days in (3, 50, 120)],
    "w2": [AS_OF - timedelta(days=days) for days in (500, 40)],
    "w3": [None, AS_OF - timedelta(days=600)],
    "w4": [AS_OF + OFFSET],
    "w5": [AS_OF + OFFSET + timedelta(seconds=1)],
}
"""When customers ordered of whom no order is known to be a sale."""
AT_BORDERS = ("n1", "n2", *UNKNOWN, *REGULARS, "m1", *ACTIVITY, *PLANNED)
"""The customers of these orders, and two who never ordered."""
MOVED_AT = datetime(2026, 5, 20, 18, tzinfo=UTC)
MOVED: list[Row] = [
    {
        "customer_id": "m1", "version": version, "price_list_id": f"L{version}",
        "valid_from": MOVED_AT + timedelta(days=30 * (version - 2)),
        "valid_to": MOVED_AT + timedelta(days=30 * (version - 1)) if version < 3 else None,
    }
    for version in (1, 2, 3)
]  # fmt: skip
"""A customer whose price list changes at the instant of an order."""


def _borders(like: Row) -> Iterator[Row]:
    """Orders at the borders of conditions; else as another one."""
    sale: Row = {**like, "customer_status": "matched", "status_class": "sale", "is_sale": True}
    sale |= {"is_cancelled": False, "is_missing": False, "total": Decimal(7), "currency": "PEN"}
    for customer, gaps in REGULARS.items():
        day = TODAY
        for number, gap in enumerate((*reversed(gaps), 0)):
            at = datetime(day.year, day.month, day.day, 18, tzinfo=UTC)
            when = {"ordered_at": at, "ordered_date": day}
            if number:
                yield {**sale, **when, "order_id": f"{customer}-{number}", "customer_id": customer}
            day -= timedelta(days=gap)
    for version in MOVED:
        at = version["valid_from"]
        when = {"ordered_at": at, "ordered_date": at.astimezone(ZONE).date()}
        name = f"m1-{version['version']}"
        yield {**sale, **when, "order_id": name, "customer_id": "m1"}
    for customer, (day, state) in ACTIVITY.items():
        at = datetime(day.year, day.month, day.day, 18, tzinfo=UTC)
        what = {"status_class": state, "is_sale": CLASSES.get(state), "ordered_at": at}
        yield {**sale, **what, "ordered_date": day, "order_id": customer, "customer_id": customer}
    for customer, at in PLANNED.items():
        when = {"ordered_at": at, "ordered_date": at.astimezone(ZONE).date()}
        yield {**sale, **when, "order_id": customer, "customer_id": customer}
    unknown = {**sale, "status_class": "unknown", "is_sale": None, "is_cancelled": None}
    for customer, times in UNKNOWN.items():
        for number, instant in enumerate(times):
            shown = {"ordered_at": instant, "ordered_date": day_of(instant)}
            name = f"{customer}-{number}"
            yield {**unknown, **shown, "order_id": name, "customer_id": customer}
    free = {**sale, "currency": "JPY"}
    yield {**free, "order_id": "free", "customer_id": "2", "total": Decimal(0)}
    yield {**free, "order_id": "unpriced", "customer_id": "1", "total": None}


def _lines(draw: random.Random, orders: Sequence[Row]) -> Iterator[Row]:
    """A product is on two lines of an order now and then, and has several names; others have only a name, or none."""
    for order in orders:
        for line in range(draw.choice((0, 1, 2, 3, 5))):
            product = draw.choice((None, *"AABBCDE"))
            yield {
                "order_id": order["order_id"],
                "line_number": line,
                "line_kind": draw.choice((*["product"] * 5, "shipping", "discount")),
                "product": product,
                "product_name": draw.choice((None, "Soap", "Box", f"{product} {line}")),
                "quantity": draw.choice((None, Decimal(1), Decimal(2), Decimal("0.5"))),
                "unit_price": _money(draw),
                "line_amount": _money(draw),
            }


def _promotions(draw: random.Random, has_times: bool) -> Iterator[Row]:
    for number in range(12):
        starts_at = _instant(draw)
        if not has_times:
            starts_at = starts_at.replace(hour=0, minute=0)
        yield {
            "promotion_id": f"P{number}",
            "name": f"Promotion {number}",
            "status": draw.choice(("running", "expired", "scheduled")),
            "is_active": draw.choice((True, False)),
            "starts_at": draw.choice((None, starts_at)),
            "expires_at": draw.choice((None, _instant(draw))),
            "use_count": draw.randrange(50),
            "usage_limit": draw.choice((None, 0, 37, 80)),
            "remaining_uses": draw.choice((None, 3, 9)),
            "is_missing": number in (4, 9),
        }


def _promotion_uses(draw: random.Random) -> Iterator[Row]:
    """Of listed promotions, of one that is gone, and of one that no table has any more."""
    for name in ("P0", "P1", "P4", "P99"):
        for at in draw.sample(range(60), 4):
            read_at = AS_OF - timedelta(days=at, hours=draw.randrange(24))
            uses = draw.choice((None, draw.randrange(99)))
            yield {"promotion_id": name, "read_at": read_at, "use_count": uses}


def _findings(draw: random.Random) -> Iterator[Row]:
    for number in range(60):
        yield {
            "entity": draw.choice(("orders", "customers")),
            "entity_id": str(number),
            "rule": draw.choice(("a", "b")),
            "severity": draw.choice(("error", "warning")),
            "is_accepted": draw.choice((True, False, None)),
        }


def _finding_counts(draw: random.Random) -> Iterator[Row]:
    for number in range(12):
        yield {
            "run_id": f"r{number}",
            "recorded_at": _instant(draw),
            "entity": draw.choice(("orders", "customers")),
            "rule": draw.choice(("a", "b")),
            "severity": draw.choice(("error", "warning")),
            **{name: draw.randrange(9) for name in ("findings", "accepted", "new", "gone")},
        }


def _erp_customers(draw: random.Random) -> Iterator[Row]:
    for number in range(50):
        yield {
            "line": draw.choice((None, number)),
            "customer_id": draw.choice((None, str(number))),
            "status": draw.choice(("matched", "ambiguous")),
            "matched_by": draw.choice((None, "email", "erp_code")),
            "reason": draw.choice((None, "several lines")),
        }


def _reads(draw: random.Random, names: Sequence[str]) -> Iterator[Row]:
    """Several of each of these lists; the last ones were not reconciled. Of one, two tails follow the whole ones."""
    last_one = ("customers", "tail") if len(names) > 3 else ("promotions", "complete")
    last = {
        RECONCILED_UP_TO - 3: ("customers", "unproven"),
        RECONCILED_UP_TO - 2: ("customers", "tail"),
        RECONCILED_UP_TO - 1: ("customers", "tail"),
        RECONCILED_UP_TO: last_one,
    }
    for number in range(1, RECONCILED_UP_TO + 9):
        drawn = draw.choice(names), draw.choice(("complete", "complete", "unproven", "tail"))
        resource, verdict = last.get(number, drawn)
        yield {
            "resource": resource,
            "verdict": verdict,
            "run_id": f"r{number}",
            "read_number": number,
            "published": number in last or draw.random() < 0.8,
            "distinct": draw.randrange(99),
            "quarantined": draw.randrange(3),
            "ended_at": _instant(draw),
        }
