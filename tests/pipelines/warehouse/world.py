"""A shop in which each thing is there twice and differs, and what the views of `bi` have to say of it, in plain Python.

In: a seed. Out: rows of the reconciled tables and of `ops`, and of each view the rows that it must have. Nothing of the
program computes them: a maximum for a minimum, the last for the first, a condition left out would differ from them.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise, permutations
from statistics import median
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

Row = dict[str, Any]
Key = TypeVar("Key", bound=Hashable)
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
            has_times: whether customers were created at a time of the day; else all at midnight in UTC.
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
        world.tables["reconciled.promotions"] = [*_promotions(draw)]
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
    for number in range(1, 31):
        created_at = _instant(draw)
        if not has_times:
            created_at = created_at.replace(hour=0, minute=0)
        status = draw.choice(("matched", "matched", "not_listed", "default"))
        price_list = draw.choice(lists)
        yield {
            "customer_id": str(number),
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
            "is_missing": number % 9 == 0,
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
    """Up to three versions of each customer; some lists are not listed any more, or never were."""
    for customer in customers:
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
            begin = end


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


REGULARS = {"r1": (10, 10, 40, 40), "r2": (10, 10, 10, 20), "r3": (6, 10, 11, 19)}
"""Days between the orders of customers, and since the last one: as long as the longest gap; twice the usual one; not
quite twice."""
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


def _promotions(draw: random.Random) -> Iterator[Row]:
    for number in range(12):
        yield {
            "promotion_id": f"P{number}",
            "name": f"Promotion {number}",
            "status": draw.choice(("running", "expired", "scheduled")),
            "is_active": draw.choice((True, False)),
            "starts_at": draw.choice((None, _instant(draw))),
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


# the truth


def cents(amount: Decimal | None) -> Decimal | None:
    return None if amount is None else amount.quantize(Decimal("0.01"), ROUND_HALF_UP)


def day_of(at: datetime | None, zone: Any = ZONE) -> date | None:
    return None if at is None else at.astimezone(zone).date()


def total(amounts: Iterable[Decimal | None]) -> Decimal | None:
    """The sum as SQL has it: of nothing known it is not known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if known else None


def rounded(value: float, digits: int) -> float:
    scale = float(10**digits)
    return math.floor(value * scale + 0.5) / scale


def average(amounts: Sequence[Decimal]) -> float | None:
    """Of amounts in cents, as a double that is rounded to cents."""
    if not amounts:
        return None
    return rounded(int(sum(amounts) * 100) / len(amounts) / 100, 2)


def largest(values: Iterable[Any]) -> Any:
    return max((value for value in values if value is not None), default=None)


def grouped(rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    groups: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def picked(row: Mapping[str, Any], names: str) -> Row:
    """Some fields of a row; `name=other` has the name of `other`."""
    pairs = (name.partition("=")[::2] for name in names.split())
    return {to: row[name or to] if name else row[to] for to, name in pairs}


def as_of(world: World) -> list[Row]:
    zone = "America/Lima"
    return [{"as_of": AS_OF, "today": TODAY, "time_zone": zone, "environment": "sandbox"}]


def customers(world: World) -> list[Row]:
    by_customer = {row["customer_id"]: row for row in world["customer_orders"]}
    created = [row["created_at"] for row in world["customers"] if row["created_at"] is not None]
    has_times = any((at.hour, at.minute) != (0, 0) for at in created)
    rows = []
    for one in world["customers"]:
        if one["is_missing"]:
            continue
        of = defaultdict(lambda: None, by_customer.get(one["customer_id"], {}))
        count, revenue = of["order_count"], of["revenue"]
        because = of["unknown_because"]
        if because is None and (count or 0) > 0 and revenue is None and of["revenue_by_currency"]:
            because = "revenue: several currencies"
        rows.append(
            picked(
                one,
                "customer_id erp_code name=full_name email=email_normalized phone=phone_digits created_at "
                "price_list_id price_list_name price_list_status document_count default_fiscal_name",
            )
            | {
                name: of[name]
                for name in (
                    "order_count", "cancelled_count", "currency", "first_ordered_at", "last_ordered_at",
                    "is_active_30_days", "is_active_90_days", "is_active_365_days", "revenue_by_currency",
                    "unknown_orders", "first_ordered_date", "last_ordered_date",
                )
            }
            | {
                "revenue": Decimal(0) if count == 0 else cents(revenue),
                "unknown_because": because,
                "unknown_total": cents(of["unknown_total"]),
                "created_date": day_of(one["created_at"], ZONE if has_times else UTC),
            }
        )  # fmt: skip
    return rows


def orders(world: World) -> list[Row]:
    by_id = {row["customer_id"]: row for row in world["customers"]}
    rows = []
    for one in world["orders"]:
        if one["is_missing"]:
            continue
        customer = defaultdict(lambda: None, by_id.get(one["customer_id"], {}))
        is_default = customer["price_list_status"] == "default"
        revenue, net = one["total"], None
        if one["is_sale"] is None:
            revenue = None
        elif not one["is_sale"]:
            revenue = Decimal(0)
        if one["charges_in_total"] is not None and one["is_sale"] is not None:
            is_known = one["is_sale"] and one["total"] is not None
            net = one["total"] - one["charges_in_total"] if is_known else None
            net = net if one["is_sale"] else Decimal(0)
        amounts = ("total", "refunded", "tax_in_total", "shipping_in_total")
        rows.append(
            picked(
                one,
                "order_id ordered_at ordered_date customer_id customer_status order_status is_cancelled "
                "currency unknown_because status_class is_sale",
            )
            | {name: cents(one[name]) for name in amounts}
            | {
                "customer_name": customer["full_name"],
                "price_list_name": "default" if is_default else customer["price_list_name"],
                "revenue": cents(revenue),
                "net_revenue": cents(net),
            }
        )
    return rows


def open_orders(world: World) -> list[Row]:
    return [
        picked(
            one,
            "order_id ordered_at ordered_date order_status customer_id customer_name currency total",
        )
        | {"age_days": one["ordered_date"] and (TODAY - one["ordered_date"]).days}
        for one in orders(world)
        if one["status_class"] == "open"
    ]


def order_lines(world: World) -> list[Row]:
    by_id = {one["order_id"]: one for one in orders(world)}
    rows = []
    for line in world["order_lines"]:
        order = by_id.get(line["order_id"])
        if order is None or line["line_kind"] != "product":
            continue
        amount = cents(line["line_amount"])
        revenue = {True: amount, False: Decimal(0), None: None}[order["is_sale"]]
        rows.append(
            picked(line, "order_id line_number product quantity unit_price product_name")
            | picked(
                order,
                "ordered_at ordered_date customer_id customer_name currency is_cancelled status_class is_sale",
            )
            | {"line_total": amount, "revenue": revenue}
        )
    return rows


def _product(line: Row) -> Any:
    return line["product_name"] if line["product"] is None else line["product"]


def top_products(world: World) -> list[Row]:
    lines = [line for line in order_lines(world) if line["is_sale"] is not False]
    rows = []
    for (product, currency), group in grouped(
        lines, lambda line: (_product(line), line["currency"])
    ).items():
        sold = [line for line in group if line["is_sale"]]
        unknown = [line for line in group if line["is_sale"] is None]
        rows.append(
            {
                "product": product,
                "product_name": largest(line["product_name"] for line in group),
                "currency": currency,
                "orders": len({line["order_id"] for line in sold}) or None,
                "quantity": total(line["quantity"] for line in sold),
                "revenue": total(line["revenue"] for line in sold),
                "last_ordered_date": largest(line["ordered_date"] for line in sold),
                "unknown_orders": len({line["order_id"] for line in unknown}),
                "unpriced_lines": sum(line["revenue"] is None for line in sold),
                "uncounted_lines": sum(line["quantity"] is None for line in sold),
            }
        )
    return rows


def products_by_month(world: World) -> list[Row]:
    lines = [line for line in order_lines(world) if line["is_sale"] and line["ordered_date"]]
    rows = []
    for (month, product, currency), group in grouped(
        lines,
        lambda line: (line["ordered_date"].replace(day=1), _product(line), line["currency"]),
    ).items():
        rows.append(
            {
                "month": month,
                "product": product,
                "product_name": largest(line["product_name"] for line in group),
                "currency": currency,
                "orders": len({line["order_id"] for line in group}),
                "quantity": total(line["quantity"] for line in group),
                "revenue": total(line["revenue"] for line in group),
                "unpriced_lines": sum(line["revenue"] is None for line in group),
                "uncounted_lines": sum(line["quantity"] is None for line in group),
            }
        )
    return rows


def bought_together(world: World) -> list[Row]:
    names: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for line in order_lines(world):
        if line["is_sale"] and _product(line) is not None:
            names[line["order_id"], _product(line)].append(line["product_name"])
    by_order = grouped(
        [{"order": order, "product": product} for order, product in names],
        lambda one: one["order"],
    )
    together: dict[tuple[str, str], list[str]] = defaultdict(list)
    alone: dict[str, int] = defaultdict(int)
    for order, products in by_order.items():
        for one in products:
            alone[one["product"]] += 1
        for one, other in permutations(products, 2):
            together[one["product"], other["product"]].append(order)
    return [
        {
            "product": product,
            "product_name": largest(largest(names[order, product]) for order in found),
            "other_product": other,
            "other_product_name": largest(largest(names[order, other]) for order in found),
            "orders_together": len(found),
            "product_orders": alone[product],
            "together_percent": rounded(100 * len(found) / alone[product], 1),
        }
        for (product, other), found in together.items()
        if len(found) >= 2
    ]


def regular_customers(world: World) -> list[Row]:
    sales = [
        one
        for one in orders(world)
        if one["customer_status"] == "matched" and one["is_sale"] and one["ordered_date"]
    ]
    rows = []
    for customer, group in grouped(sales, lambda one: one["customer_id"]).items():
        days = sorted({one["ordered_date"] for one in group if one["ordered_date"] <= TODAY})
        if len(days) < 4:
            continue
        gaps = [(later - day).days for day, later in pairwise(days)]
        since = (TODAY - days[-1]).days
        rows.append(
            {
                "customer_id": customer,
                "customer_name": largest(one["customer_name"] for one in group),
                "price_list_name": largest(one["price_list_name"] for one in group),
                "order_days": len(days),
                "usual_gap_days": round(median(gaps)),
                "longest_gap_days": max(gaps),
                "last_ordered_date": days[-1],
                "days_since_last": since,
                "has_stopped": since > max(gaps) and since > 2 * median(gaps),
            }
        )
    return rows


def revenue_by_price_list(world: World) -> list[Row]:
    names = {row["price_list_id"]: row["name"] for row in world["price_lists"]}
    versions = grouped(world["customer_history"], lambda row: row["customer_id"])
    found: list[Row] = []
    for one in orders(world):
        if one["is_sale"] is False or one["ordered_date"] is None:
            continue
        at = one["ordered_at"]
        of_customer = [
            version
            for version in versions.get(one["customer_id"], [])
            if (version["valid_from"] <= at or version["version"] == 1)
            and (version["valid_to"] is None or at < version["valid_to"])
        ]
        candidates: list[Row | None] = [*of_customer] or [None]
        for version in candidates:
            is_assumed = version is not None and at < version["valid_from"]
            list_id = version and version["price_list_id"]
            key = (one["ordered_date"].replace(day=1), list_id, one["currency"], version is None)
            found.append(one | {"key": key, "is_assumed": is_assumed})
    rows = []
    for key, group in grouped(found, lambda one: one["key"]).items():
        month, list_id, currency, is_nobody = key
        sales = [one for one in group if one["is_sale"]]
        unknown = [one for one in group if one["is_sale"] is None]
        label = names.get(list_id) or f"not listed: {list_id}"
        rows.append(
            {
                "month": month,
                "price_list_id": list_id,
                "price_list_name": names.get(list_id),
                "currency": currency,
                "orders": len(sales) or None,
                "revenue": total(one["total"] for one in sales),
                "assumed_orders": sum(one["is_assumed"] for one in group),
                "price_list": "no known customer"
                if is_nobody
                else "default"
                if list_id is None
                else label,
                "unpriced_orders": sum(one["total"] is None for one in sales),
                "unknown_orders": len(unknown),
                "unknown_total": total(one["total"] for one in unknown),
            }
        )
    return rows


def revenue_by_day(world: World) -> list[Row]:
    dated = [one for one in orders(world) if one["ordered_date"]]
    rows = []
    for (day, currency), group in grouped(
        dated, lambda one: (one["ordered_date"], one["currency"])
    ).items():
        known = [one for one in group if one["is_sale"] is not None]
        sales = [one for one in group if one["is_sale"]]
        unknown = [one for one in group if one["is_sale"] is None]
        buyers = {one["customer_id"] for one in sales} - {None}
        has_status = any(one["customer_status"] is not None for one in group)
        revenue = total(one["total"] for one in sales)
        rows.append(
            {
                "ordered_date": day,
                "currency": currency,
                "orders": len(sales) if known else None,
                "cancelled_orders": sum(one["is_cancelled"] is True for one in group)
                if known
                else None,
                "customers": len(buyers) if known and has_status else None,
                "revenue": Decimal(0) if known and not sales else revenue,
                "unpriced_orders": sum(one["total"] is None for one in sales),
                "unknown_because": largest(one["unknown_because"] for one in group),
                "unknown_orders": len(unknown),
                "unknown_total": total(one["total"] for one in unknown),
                "refunded": total(one["refunded"] for one in group),
            }
        )
    return rows


def revenue_by_customer(world: World) -> list[Row]:
    listed = {row["customer_id"]: row["name"] for row in customers(world)}
    words = {None: "(not known)", "none": "(no customer)"}
    found = []
    for one in orders(world):
        if one["is_sale"] is False:
            continue
        is_listed = one["customer_status"] == "matched" and one["customer_id"] in listed
        customer = one["customer_id"] if is_listed else None
        other = words.get(one["customer_status"], "(customers that are not listed)")
        name = listed[one["customer_id"]] if is_listed else other
        found.append(one | {"key": (customer, name, one["currency"])})
    rows = []
    for key, group in grouped(found, lambda one: one["key"]).items():
        sales = [one for one in group if one["is_sale"]]
        unknown = [one for one in group if one["is_sale"] is None]
        undated = [one for one in sales if one["ordered_date"] is None]
        rows.append(
            dict(zip(("customer_id", "customer", "currency"), key, strict=True))
            | {
                "orders": len(sales),
                "revenue": total(one["total"] for one in sales),
                "undated_orders": len(undated),
                "undated_revenue": total(one["total"] for one in undated),
                "unknown_orders": len(unknown),
                "unknown_total": total(one["total"] for one in unknown),
                "unpriced_orders": sum(one["total"] is None for one in sales),
            }
        )
    return rows


def _first_months(world: World) -> dict[str, date]:
    first: dict[str, date] = {}
    for one in _identified_sales(world):
        month = one["ordered_date"].replace(day=1)
        first[one["customer_id"]] = min(first.get(one["customer_id"], month), month)
    return first


def _identified_sales(world: World) -> list[Row]:
    return [
        one
        for one in orders(world)
        if one["is_sale"]
        and one["ordered_date"]
        and one["customer_id"] is not None
        and one["customer_status"] not in (None, "none")
    ]


def revenue_by_month(world: World) -> list[Row]:
    first = _first_months(world)
    dated = [one for one in orders(world) if one["ordered_date"]]
    rows = []
    for (month, currency), group in grouped(
        dated, lambda one: (one["ordered_date"].replace(day=1), one["currency"])
    ).items():
        known = [one for one in group if one["is_sale"] is not None]
        sales = [one for one in group if one["is_sale"]]
        unknown = [one for one in group if one["is_sale"] is None]
        revenue = total(one["total"] for one in sales)
        priced_totals = [one["total"] for one in sales if one["total"] is not None]
        new = [one for one in sales if first.get(one["customer_id"]) == month]
        returning = [one for one in sales if first.get(one["customer_id"], month) < month]
        nobody = [one for one in sales if one["customer_id"] not in first]
        rows.append(
            {
                "month": month,
                "currency": currency,
                "orders": len(sales) if known else None,
                "revenue": Decimal(0) if known and not sales else revenue,
                "average_order_value": average(priced_totals),
                "new_customers": len({one["customer_id"] for one in new}),
                "returning_customers": len({one["customer_id"] for one in returning}),
                "new_revenue": total(one["total"] for one in new),
                "returning_revenue": total(one["total"] for one in returning),
                "orders_without_customer": len(nobody),
                "unpriced_orders": len(sales) - len(priced_totals),
                "unknown_orders": len(unknown),
                "unknown_total": total(one["total"] for one in unknown),
                "cancelled_orders": sum(one["is_cancelled"] is True for one in group)
                if known
                else None,
                "net_revenue": total(one["net_revenue"] for one in sales),
            }
        )
    return rows


def retention_by_month(world: World) -> list[Row]:
    first = _first_months(world)
    active = {
        (one["customer_id"], one["ordered_date"].replace(day=1)) for one in _identified_sales(world)
    }
    rows = []
    for start in {*first.values()}:
        begun = {customer for customer, month in first.items() if month == start}
        for month in {month for _, month in active if month >= start}:
            kept = sum((customer, month) in active for customer in begun)
            rows.append(
                {
                    "first_month": start,
                    "months_later": 12 * (month.year - start.year) + month.month - start.month,
                    "customers": kept,
                    "customers_at_start": len(begun),
                    "customers_percent": rounded(100 * kept / len(begun), 1),
                }
            )
    return rows


def fifths(rows: Sequence[Row], key: Callable[[Row], Any]) -> dict[str, int]:
    """5 for the first fifth of the customers in this order, 1 for the last; the first ones are larger by one."""
    ordered = sorted(rows, key=lambda row: (key(row), row["customer_id"]))
    size, more = divmod(len(ordered), 5)
    sizes = [size + (fifth < more) for fifth in range(5)]
    marks = [5 - fifth for fifth, count in enumerate(sizes) for _ in range(count)]
    return {row["customer_id"]: mark for row, mark in zip(ordered, marks, strict=True)}


def customer_value(world: World) -> list[Row]:
    sales = [one for one in _identified_sales(world) if one["customer_status"] == "matched"]
    made = []
    for (customer, currency), group in grouped(
        sales, lambda one: (one["customer_id"], one["currency"])
    ).items():
        priced = [one["total"] for one in group if one["total"] is not None]
        last = max(one["ordered_date"] for one in group)
        made.append(
            {
                "customer_id": customer,
                "customer_name": largest(one["customer_name"] for one in group),
                "currency": currency,
                "orders": len(group),
                "revenue": total(priced),
                "average_order_value": average(priced),
                "first_ordered_date": min(one["ordered_date"] for one in group),
                "last_ordered_date": last,
                "days_since_last": (TODAY - last).days,
                "unpriced_orders": len(group) - len(priced),
            }
        )
    rows = []
    for group in grouped(made, lambda one: one["currency"]).values():
        recency = fifths(group, lambda one: one["days_since_last"])
        frequency = fifths(group, lambda one: -one["orders"])
        monetary = fifths(group, lambda one: -(one["revenue"] or 0))
        whole = sum(one["revenue"] or 0 for one in group)
        for one in group:
            better = [other for other in group if (other["revenue"] or 0) > (one["revenue"] or 0)]
            is_known = one["revenue"] is not None and whole
            part = rounded(float(100 * one["revenue"] / whole), 2) if is_known else None
            marks = {"recency": recency, "frequency": frequency, "monetary": monetary}
            rows.append(
                one
                | {name: of_all[one["customer_id"]] for name, of_all in marks.items()}
                | {"revenue_rank": 1 + len(better), "revenue_percent": part}
            )
    return rows


def promotions(world: World) -> list[Row]:
    rows = []
    for one in world["promotions"]:
        if one["is_missing"]:
            continue
        limit = one["usage_limit"]
        rows.append(
            picked(
                one,
                "promotion_id name status is_active starts_at expires_at use_count usage_limit remaining_uses",
            )
            | {
                "used_percent": rounded(100 * one["use_count"] / limit, 1) if limit else None,
                "starts_date": day_of(one["starts_at"]),
                "expires_date": day_of(one["expires_at"]),
            }
        )
    return rows


def promotion_uses(world: World) -> list[Row]:
    names = {row["promotion_id"]: row["name"] for row in world["promotions"]}
    rows = []
    uses = grouped(world.tables["ops.promotion_uses"], lambda one: one["promotion_id"])
    for promotion, group in uses.items():
        before: int | None = None
        for one in sorted(group, key=lambda one: one["read_at"]):
            count = one["use_count"]
            more: int | None = None if before is None or count is None else count - before
            rows.append(
                {
                    "promotion_id": promotion,
                    "name": names.get(promotion),
                    "read_at": one["read_at"],
                    "read_date": day_of(one["read_at"]),
                    "use_count": count,
                    "uses_since_before": more,
                }
            )
            before = count
    return rows


def price_lists(world: World) -> list[Row]:
    names = {row["price_list_id"]: row["name"] for row in world["price_lists"]}
    return [
        picked(
            one,
            "price_list_id name chain_status depth source_price_list_id root_price_list_id adjustment_type "
            "adjustment_value customer_count",
        )
        | {"root_name": names.get(one["root_price_list_id"])}
        for one in world["price_lists"]
        if not one["is_missing"]
    ]


def findings(world: World) -> list[Row]:
    groups = grouped(world["exceptions"], lambda one: (one["entity"], one["rule"], one["severity"]))
    return [
        dict(zip(("entity", "rule", "severity"), key, strict=True))
        | {"findings": len(group), "accepted": sum(one["is_accepted"] is True for one in group)}
        for key, group in groups.items()
    ]


def findings_by_run(world: World) -> list[Row]:
    return [
        one | {"recorded_date": day_of(one["recorded_at"])}
        for one in world.tables["ops.finding_counts"]
    ]


def erp_match(world: World) -> list[Row]:
    groups = grouped(
        world["erp_customers"], lambda one: (one["status"], one["matched_by"], one["reason"])
    )
    return [
        dict(zip(("status", "matched_by", "reason"), key, strict=True))
        | {
            "rows": len(group),
            "erp_lines": sum(one["line"] is not None for one in group),
            "platform_customers": sum(one["customer_id"] is not None for one in group),
        }
        for key, group in groups.items()
    ]


def _reconciled_reads(world: World, resource: str) -> list[Row]:
    """The reads of a list of which the reconciled tables are made, in their order."""
    return [
        one
        for one in world.tables["ops.coverage"]
        if one["resource"] == resource
        and one["published"]
        and one["read_number"] <= RECONCILED_UP_TO
    ]


def lists(world: World) -> list[Row]:
    rows = []
    for resource in LISTS:
        reads = _reconciled_reads(world, resource)
        whole = [one for one in reads if one["verdict"] != "tail"]
        last = defaultdict(lambda: None, whole[-1] if whole else {"verdict": "never_read"})
        later = [
            one["ended_at"]
            for one in reads
            if one["verdict"] == "tail" and whole and one["read_number"] > last["read_number"]
        ]
        rows.append(
            {
                "resource": resource,
                "verdict": last["verdict"],
                "rows": last["distinct"],
                "quarantined": last["quarantined"],
                "read_at": last["ended_at"],
                "run_id": last["run_id"],
                "tail_read_at": later[-1] if later else None,
                "read_date": day_of(last["ended_at"]),
            }
        )
    return rows


def freshness(world: World) -> list[Row]:
    complete = {
        resource: largest(
            one["ended_at"]
            for one in _reconciled_reads(world, resource)
            if one["verdict"] == "complete"
        )
        for resource in LISTS
    }
    times = [*complete.values()]
    return [
        {f"{resource}_complete_at": at for resource, at in complete.items()}
        | {"as_of": AS_OF, "environment": "sandbox"}
        | {"oldest_complete_at": None if None in times else min(times)}
    ]


TRUTH: dict[str, Callable[[World], list[Row]]] = {
    one.__name__: one
    for one in (
        as_of, customers, orders, open_orders, order_lines, top_products, products_by_month, bought_together,
        regular_customers, revenue_by_price_list, revenue_by_day, revenue_by_customer, revenue_by_month,
        retention_by_month, customer_value, promotions, promotion_uses, price_lists, findings, findings_by_run,
        erp_match, lists, freshness,
    )
}  # fmt: skip
"""What each view has to have."""
