"""What the views of `bi`, and `reconciled.customer_orders`, have to say of a world, in plain Python.

In: a world. Out: the rows of each view. Nothing of the program computes them: a maximum for a minimum, the last for the
first, a condition that is left out would differ from them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise, permutations
from statistics import median
from typing import Any, TypeVar

from tests.pipelines.warehouse.world import (
    ACTIVE_DAYS,
    AS_OF,
    LISTS,
    OFFSET,
    RECONCILED_UP_TO,
    TODAY,
    ZONE,
    Row,
    World,
    day_of,
)

Key = TypeVar("Key", bound=Hashable)


def cents(amount: Decimal | None) -> Decimal | None:
    return None if amount is None else amount.quantize(Decimal("0.01"), ROUND_HALF_UP)


def total(amounts: Iterable[Decimal | None]) -> Decimal | None:
    """The sum as SQL has it: of nothing known it is not known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if known else None


def revenue_of(known: Sequence[Row], sales: Sequence[Row]) -> Decimal | None:
    """The total of sales: 0 where it is known that there are none."""
    return Decimal(0) if known and not sales else total(one["total"] for one in sales)


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


def zone_of_days(times: Iterable[datetime | None]) -> tzinfo:
    """UTC for a column that has midnight in UTC everywhere: it has dates."""
    has_times = any((at.hour, at.minute) != (0, 0) for at in times if at is not None)
    return ZONE if has_times else UTC


def as_of(world: World) -> list[Row]:
    zone = "America/Lima"
    return [{"as_of": AS_OF, "today": TODAY, "time_zone": zone, "environment": "sandbox"}]


def customers(world: World) -> list[Row]:
    by_customer = {row["customer_id"]: row for row in world["customer_orders"]}
    zone = zone_of_days(row["created_at"] for row in world["customers"])
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
                "created_date": day_of(one["created_at"], zone),
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
    rows = []
    for customer, group in grouped(_sales_of_listed(world), lambda one: one["customer_id"]).items():
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
        version = None
        for later in versions.get(one["customer_id"], []):
            if later["version"] == 1 or later["valid_from"] <= at:
                version = later
        is_assumed = version is not None and not (
            version["valid_from"] <= at < (version["valid_to"] or datetime.max.replace(tzinfo=UTC))
        )
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
                "orders": len(sales) or None,
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


def _sales_of_listed(world: World) -> list[Row]:
    listed = {row["customer_id"] for row in world["customers"] if not row["is_missing"]}
    return [
        one
        for one in _identified_sales(world)
        if one["customer_status"] == "matched" and one["customer_id"] in listed
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
        priced_totals = [one["total"] for one in sales if one["total"] is not None]
        new = [one for one in sales if first.get(one["customer_id"]) == month]
        returning = [one for one in sales if first.get(one["customer_id"], month) < month]
        nobody = [one for one in sales if one["customer_id"] not in first]
        rows.append(
            {
                "month": month,
                "currency": currency,
                "orders": len(sales) if known else None,
                "revenue": revenue_of(known, sales),
                "average_order_value": average(priced_totals),
                "new_customers": len({one["customer_id"] for one in new}),
                "returning_customers": len({one["customer_id"] for one in returning}),
                "new_revenue": revenue_of(known, new),
                "returning_revenue": revenue_of(known, returning),
                "orders_without_customer": len(nobody),
                "unpriced_orders": len(sales) - len(priced_totals),
                "unknown_orders": len(unknown),
                "unknown_total": total(one["total"] for one in unknown),
                "cancelled_orders": sum(one["is_cancelled"] is True for one in group)
                if known
                else None,
                "net_revenue": None
                if any(one["net_revenue"] is None and one["total"] is not None for one in sales)
                else total(one["net_revenue"] for one in sales),
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
    """5 for the first fifth of the customers in this order, 1 for the last; the first ones are larger by one.

    Those who are alike have the mark of the last of them.
    """
    ordered = sorted(rows, key=key)
    size, more = divmod(len(ordered), 5)
    sizes = [size + (fifth < more) for fifth in range(5)]
    marks = [5 - fifth for fifth, count in enumerate(sizes) for _ in range(count)]
    of_last = {key(row): mark for row, mark in zip(ordered, marks, strict=True)}
    return {row["customer_id"]: of_last[key(row)] for row in rows}


def customer_value(world: World) -> list[Row]:
    made = []
    for (customer, currency), group in grouped(
        _sales_of_listed(world), lambda one: (one["customer_id"], one["currency"])
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
    starts = zone_of_days(row["starts_at"] for row in world["promotions"])
    ends = zone_of_days(row["expires_at"] for row in world["promotions"])
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
                "starts_date": day_of(one["starts_at"], starts),
                "expires_date": day_of(one["expires_at"], ends),
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


def _amounts(groups: Mapping[Any, list[Row]]) -> dict[Any, Decimal]:
    """The sum by currency, of those that have an amount; an order without a currency comes last."""
    sums = {
        currency: total(one["total"] for one in group if one["is_sale"])
        for currency, group in groups.items()
    }
    ordered = sorted(sums, key=lambda currency: (currency is None, currency or ""))
    return {one: amount for one in ordered if (amount := sums[one]) is not None}


def _of_orders(count: int, of: int) -> str:
    return f"{count} of {of} order{'s' * (of != 1)} {'has' if count == 1 else 'have'}"


def _plain(amount: Decimal) -> str:
    return f"{amount:.9f}".rstrip("0").rstrip(".")


def customer_orders(world: World, dates: str | None, totals: str | None) -> list[Row]:
    """`reconciled.customer_orders`; `dates` and `totals`: why those of some orders are not known, None if they are."""
    by_customer = grouped(
        [
            one
            for one in world["orders"]
            if one["customer_status"] == "matched" and not one["is_missing"]
        ],
        lambda one: one["customer_id"],
    )
    return [
        _ordered(one["customer_id"], by_customer.get(one["customer_id"], []), dates, totals)
        for one in world["customers"]
    ]


def _ordered(customer: str, of: list[Row], dates: str | None, totals: str | None) -> Row:
    sales = [one for one in of if one["is_sale"]]
    unknown = [one for one in of if one["is_sale"] is None]
    undated = sum(one["ordered_date"] is None for one in sales)
    unpriced = sum(one["total"] is None for one in sales)
    is_known = len(unknown) < len(of) or not of
    has_dates = bool(of) and (not undated or dates is None)
    has_totals = bool(of) and (not unpriced or totals is None)
    amounts = _amounts(grouped(of, lambda one: one["currency"]))
    unknown_amounts = [
        amount
        for group in grouped(unknown, lambda one: one["currency"]).values()
        if (amount := total(one["total"] for one in group)) is not None
    ]
    text = ", ".join(f'"{currency or ""}": "{_plain(one)}"' for currency, one in amounts.items())
    because = [
        *([dates or f"ordered_at: {_of_orders(undated, len(sales))} none"] if undated else []),
        *([totals or f"total: {_of_orders(unpriced, len(sales))} none"] if unpriced else []),
        *(
            [f"order_status: {_of_orders(len(unknown), len(of))} one of unknown meaning"]
            if unknown
            else []
        ),
    ]
    is_single = has_totals and len(amounts) == 1
    instants = [one["ordered_at"] for one in sales if one["ordered_at"]] if has_dates else []
    days = [one["ordered_date"] for one in sales if one["ordered_date"]] if has_dates else []
    return {
        "customer_id": customer,
        "order_count": len(sales) if is_known else None,
        "cancelled_count": sum(one["is_cancelled"] is True for one in of) if is_known else None,
        "currency": next(iter(amounts)) if is_single else None,
        "revenue": next(iter(amounts.values())) if is_single else None,
        "revenue_by_currency": f"{{{text}}}" if has_totals and amounts else None,
        "first_ordered_at": min(instants, default=None),
        "last_ordered_at": max(instants, default=None),
        "first_ordered_date": min(days, default=None),
        "last_ordered_date": max(days, default=None),
        **{f"is_active_{days}_days": _is_active(sales, unknown, days) for days in ACTIVE_DAYS},
        "unknown_orders": len(unknown),
        "unknown_total": unknown_amounts[0] if len(unknown_amounts) == 1 else None,
        "unknown_because": "; ".join(because) or None,
    }


def _is_active(sales: list[Row], unknown: list[Row], days: int) -> bool | None:
    """Whether a sale is younger; None where only an order without a date, or of an unknown status, may decide it."""
    since = TODAY - timedelta(days=days)

    def is_past(one: Row) -> bool:
        return one["ordered_at"] is None or one["ordered_at"] <= AS_OF + OFFSET

    if any(one["ordered_date"] and one["ordered_date"] > since for one in filter(is_past, sales)):
        return True
    may_be = list(filter(is_past, unknown))
    is_open = any(one["ordered_date"] is None or one["ordered_date"] > since for one in may_be)
    is_open = is_open or any(one["ordered_date"] is None for one in sales)
    return None if is_open else False


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
