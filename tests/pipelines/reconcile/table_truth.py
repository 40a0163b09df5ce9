"""What the reconciled tables have to say of raw rows, in plain Python.

In: the nights up to one. Out: the rows of each table as the run of the last of them makes it. Nothing of the program
computes them: a maximum for a minimum, the last for the first, a condition that is left out would differ from them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache

from tests.pipelines.reconcile.raw_world import BOOKKEEPING, STATUSES, ZONE, Night, Row

Nights = tuple[Night, ...]
OFFSET = timedelta(hours=14)


def picked(row: Row, names: str | Iterable[str]) -> Row:
    names = names.split() if isinstance(names, str) else names
    return {name: row[name] for name in names}


def bookkeeping(row: Row) -> Row:
    return picked(row, ("_extra", *BOOKKEEPING)) | {"is_missing": row["_missing_since"] is not None}


def clean(text: str | None) -> str | None:
    """Without whitespace around it; nothing of nothing else."""
    return (text or "").strip() or None


def written(text: str | None) -> datetime | None:
    """An instant in ISO 8601; without an offset it is by the clocks of Lima."""
    if clean(text) is None or str(text).startswith("9999"):
        return None
    try:
        at = datetime.fromisoformat(str(text).strip())
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=ZONE)).astimezone(UTC)


def id_key(text: str | None) -> str | None:
    """`7.0` is `7`, and `07` is another one."""
    cleaned = clean(text)
    return None if cleaned is None else re.sub(r"^(-?[0-9]+)\.0+$", r"\1", cleaned)


def is_complete(night: Night, resource: str) -> bool:
    """Whether the last read that came was complete."""
    came = [one for one in night.reads if one["resource"] == resource and one["published"]]
    return bool(came[-1]["verdict"] == "complete")


def is_tried_again(night: Night, resource: str) -> bool:
    """Whether the last read of a list did not come."""
    return not [one for one in night.reads if one["resource"] == resource][-1]["published"]


def grouped(rows: Iterable[Row], key: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[key]].append(row)
    return groups


# customers


@cache
def customers(nights: Nights) -> list[Row]:
    night = nights[-1]
    lists = sorted(
        night["price_lists"], key=lambda one: (one["_missing_since"] is not None, one["id"])
    )
    is_proven = is_complete(night, "price_lists") and not is_tried_again(night, "price_lists")
    documents = grouped(night["customers__documents"], "customer_id")
    return [
        _customer(
            one, lists, sorted(documents[one["id"]], key=lambda of: of["position"]), is_proven
        )
        for one in night["customers"]
    ]


def _customer(one: Row, lists: Sequence[Row], documents: Sequence[Row], is_proven: bool) -> Row:
    names = [clean(one["first_name"]), clean(one["last_name"])]
    key = id_key(one["price_list_id"])
    own = next((of for of in lists if id_key(of["id"]) == key), None) if key else None
    is_listed = own is not None and own["_missing_since"] is None
    is_number = key is not None and re.fullmatch(r"[-+]?[0-9.]+", key) is not None
    if key is None:
        status = "default"
    elif is_listed:
        status = "matched"
    elif is_proven or (is_number and not str(key).isdecimal()):
        status = "not_listed"
    else:
        status = "unknown"
    default = next((of for of in documents if of["is_default"]), None)
    if default is None and len(documents) == 1:
        default = documents[0]
    tax = next((of for of in documents if of["for_taxes"]), None)
    return (
        picked(one, "erp_code login_code first_name last_name email phone birthdate")
        | bookkeeping(one)
        | {
            "customer_id": one["id"],
            "full_name": " ".join(filter(None, names)) or None,
            "email_normalized": (clean(one["email"]) or "").lower() or None,
            "phone_digits": _digits(one["phone"]),
            "created_at": written(one["created_at"]),
            "created_at_text": one["created_at"],
            "price_list_id": own["id"] if own and is_listed else one["price_list_id"],
            "price_list_name": own["name"] if own else None,
            "price_list_status": status,
            "document_count": len(documents),
            "default_document_number": default["number"] if default else None,
            "default_fiscal_name": default["fiscal_name"] if default else None,
            "tax_document_number": tax["number"] if tax else None,
        }
    )


def _digits(phone: str | None) -> str | None:
    text = (phone or "").strip()
    is_abroad = text.startswith(("+", "(+"))
    digits = "".join(filter(str.isdecimal, text))
    return ("00" if is_abroad else "") + digits if digits else None


# price lists


@cache
def price_lists(nights: Nights) -> list[Row]:
    night = nights[-1]
    lists = sorted(night["price_lists"], key=lambda one: one["id"])
    of_customers = [one["price_list_id"] for one in customers(nights) if not one["is_missing"]]
    rows = []
    for one in lists:
        chain, is_broken = chain_of(one, lists)
        is_circle = chain[-1] in chain[:-1]
        status = "root" if len(chain) == 1 else "linked"
        if is_broken:
            status = "orphan" if is_complete(night, "price_lists") else "unknown"
        elif is_circle:
            status = "cycle"
        is_whole = status in ("root", "linked")
        rows.append(
            picked(one, "name source_price_list_id adjustment_type adjustment_value")
            | bookkeeping(one)
            | {
                "price_list_id": one["id"],
                "root_price_list_id": chain[-1] if is_whole else None,
                "depth": len(chain) - 1 if is_whole else None,
                "chain_status": status,
                "customer_count": of_customers.count(one["id"]),
            }
        )
    return rows


def chain_of(one: Row, lists: Sequence[Row]) -> tuple[list[str], bool]:
    """The ids from a list to the end of its chain, which repeats one in a circle; and whether it ends in nothing."""
    chain = [one["id"]]
    while clean(one["source_price_list_id"]) is not None:
        wanted = one["source_price_list_id"]
        found = [of for of in lists if of["id"] == wanted]
        found += [of for of in lists if id_key(of["id"]) == id_key(wanted)]
        if not found or (found[0]["_missing_since"] is not None and one["_missing_since"] is None):
            return chain, True
        one = found[0]
        chain.append(one["id"])
        if one["id"] in chain[:-1]:
            return chain, False
    return chain, False


# promotions


@cache
def promotions(nights: Nights) -> list[Row]:
    as_of = nights[-1].as_of
    rows = []
    for one in nights[-1]["promotions"]:
        starts, ends = written(one["start_date"]), written(one["expiration_date"])
        limit, used = one["usage_limit"], one["use_count"]
        remaining = None
        if limit is not None and limit > 0 and used is not None:
            remaining = max(limit - max(used, 0), 0)
        rows.append(
            picked(one, "name is_active use_count usage_limit start_date expiration_date")
            | bookkeeping(one)
            | {
                "promotion_id": one["id"],
                "starts_at": starts,
                "expires_at": ends,
                "remaining_uses": remaining,
                "status": _promotion_status(one, starts, ends, remaining, as_of),
            }
        )
    return rows


def _promotion_status(
    one: Row, starts: datetime | None, ends: datetime | None, remaining: int | None, as_of: datetime
) -> str:
    if one["is_active"] is False:
        return "inactive"
    is_endless = (one["expiration_date"] or "").startswith("9999")
    if one["is_active"] is None or (ends is None and not is_endless):
        return "unknown"
    if ends is not None:
        is_day = len(one["expiration_date"]) == len("2026-01-01")
        last = ends + timedelta(days=1) if is_day else ends
        if last <= as_of:
            return "expired"
        if ends <= as_of:
            return "unknown"  # whether the last day counts is not shown
    if starts is None:
        return "unknown"
    if starts > as_of:
        return "scheduled"
    if one["usage_limit"] is not None and remaining is None:
        return "unknown"
    return "exhausted" if remaining == 0 else "running"


# orders


@cache
def orders(nights: Nights) -> list[Row]:
    night = nights[-1]
    known = {one["id"] for one in night["customers"]}
    amounts = refunded(night)
    payments = grouped(night["orders__transactions"], "order_id")
    return [
        _order(one, known, amounts.get(one["id"]), payments[one["id"]])
        | {
            ("raw_" if name in ORDERS else "") + name: one[name]
            for name in one
            if name not in ("id", *OURS)
        }
        for one in night["orders"]
    ]


OURS = ("_extra", *BOOKKEEPING)
ORDERS = (
    "order_id", "customer_id", "customer_status", "ordered_at", "total", "order_status", "currency", "is_cancelled",
    "status_class", "is_sale", "refunded", "is_missing", "ordered_date", "unknown_because", "tax_in_total",
    "shipping_in_total", "charges_in_total",
)  # fmt: skip


def refunded(night: Night) -> dict[str, Decimal | None]:
    """What the refunds of each order come to; None where one has neither an amount nor parts with amounts."""
    parts: dict[tuple[str, int], list[list[Decimal | None]]] = defaultdict(lambda: [[], []])
    for row in night["orders__refunds__transactions"]:
        parts[row["order_id"], row["refunds_position"]][0].append(row["amount"])
    for row in night["orders__refunds__refund_line_items"]:
        amount = None if row["quantity"] is None else row["quantity"] * row["price"]
        parts[row["order_id"], row["refunds_position"]][1].append(amount)
    amounts: dict[str, Decimal | None] = {}
    for order, of_order in grouped(night["orders__refunds"], "order_id").items():
        of_refunds = []
        for refund in of_order:
            known = [refund["amount"]]
            for of_part in parts[order, refund["position"]]:
                known.append(total(of_part))
            of_refunds.append(next((one for one in known if one is not None), None))
        amounts[order] = total([None if one is None else abs(one) for one in of_refunds])
    return amounts


def total(amounts: Sequence[Decimal | None]) -> Decimal | None:
    """None where one is not known, and of nothing."""
    known = [one for one in amounts if one is not None]
    return sum(known, Decimal(0)) if known and len(known) == len(amounts) else None


def _order(one: Row, known: set[str], refunds: Decimal | None, payments: Sequence[Row]) -> Row:
    named = clean(one["customer__id"])
    named = None if named == "0" else named
    at = written(one["created_at"])
    amount = one["total"]
    status = clean(one["status"])
    went_back = refunds
    if went_back is None and one["total_refunded"] is not None:
        went_back = abs(one["total_refunded"])
    if went_back is not None and (went_back == 0 or amount is None):
        went_back = None
    status_class = stated_class(one, payments)
    if status_class in ("sale", "unknown") and amount is not None:
        is_all_back = went_back is not None and amount > 0 and amount - went_back < Decimal("0.01")
        if amount < 0 or is_all_back:
            status_class = "refunded"
    if status_class == "refunded" and went_back is None and amount is not None:
        went_back = abs(amount)
    is_known = status_class != "unknown"
    tax, shipping = (one[name] or Decimal(0) for name in ("total_tax", "shipping_total"))
    because = [
        *(["ordered_at: no readable value"] if at is None else []),
        *(["total: no readable value"] if amount is None else []),
        *([] if is_known else ["order_status: what this status means is not known"]),
    ]
    return bookkeeping(one) | {
        "order_id": one["id"],
        "customer_id": named,
        "customer_status": "none" if named is None else "matched" if named in known else "unknown",
        "ordered_at": at,
        "ordered_date": at and at.astimezone(ZONE).date(),
        "total": amount,
        "order_status": status,
        "currency": (clean(one["currency"]) or "").upper() or None,
        "status_class": status_class,
        "is_sale": status_class == "sale" if is_known else None,
        "is_cancelled": status_class in ("cancelled", "refunded") if is_known else None,
        "refunded": went_back,
        "tax_in_total": tax,
        "shipping_in_total": shipping,
        "charges_in_total": tax + shipping,
        "unknown_because": "; ".join(because) or None,
    }


def stated_class(one: Row, payments: Sequence[Row]) -> str:
    """The class by the status, the last payment and the time of a cancellation, whatever went back."""
    classes = {name.lower(): of for name, of in STATUSES.items()}
    status_class = classes.get((clean(one["status"]) or "").lower(), "unknown")
    said = [of["status"] for of in sorted(payments, key=lambda of: of["position"]) if of["status"]]
    if said and status_class not in ("cancelled", "refunded"):
        status_class = {"voided": "cancelled", "refunded": "refunded"}.get(said[-1], status_class)
    return "cancelled" if re.search("[1-9]", one["cancelled_at"] or "") else status_class


@cache
def order_lines(nights: Nights) -> list[Row]:
    by_id = {one["order_id"]: one for one in orders(nights)}
    return [_line(one, by_id[one["order_id"]]) for one in nights[-1]["orders__lines"]]


LINES = (
    "order_id", "line_number", "customer_id", "ordered_at", "currency", "is_cancelled", "status_class", "is_sale",
    "product", "product_name", "quantity", "unit_price", "line_total", "line_discount", "line_amount", "line_kind",
)  # fmt: skip


def _line(one: Row, order: Row) -> Row:
    amount = one["line_total"]
    if amount is None and None not in (one["quantity"], one["price"]):
        amount = one["quantity"] * one["price"]
        amount = amount.quantize(Decimal("1e-9"), ROUND_HALF_EVEN)
    discount = None if one["discount"] in (None, "", "n/a") else Decimal(one["discount"])
    if one["discount"] == "n/a" or (discount is not None and not 0 <= discount <= 100):
        amount = None
    elif amount is not None and discount is not None:
        amount = amount * (100 - discount) / 100
    kind = "product"
    if (clean(one["type"]) or "").lower() in ("promo", "freight"):
        kind = "no_product"
    if one["parent_id"] not in (None, "", "0"):
        kind = "part"
    raw = {name: value for name, value in one.items() if name not in ("order_id", "position")}
    return (
        picked(order, "order_id customer_id ordered_at currency is_cancelled status_class is_sale")
        | {("raw_" if name in LINES else "") + name: value for name, value in raw.items()}
        | {
            "line_number": one["position"],
            "product": clean(one["sku"]),
            "product_name": clean(one["name"]),
            "quantity": one["quantity"],
            "unit_price": one["price"],
            "line_total": one["line_total"],
            "line_discount": discount,
            "line_amount": amount,
            "line_kind": kind,
        }
    )


TRUTH: dict[str, Callable[[Nights], list[Row]]] = {
    f"reconciled.{one.__name__}": one
    for one in (customers, price_lists, promotions, orders, order_lines)
}
"""What each table has to have."""
