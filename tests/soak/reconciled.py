"""Reconciled tables compared with what plain Python makes of the same records, one after another.

The rules are written here a second time, from design §6 and the docstrings of the transforms, without a frame.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa

from tests.pipelines.reconcile.in_parts import customer_orders, customers, orders
from tests.soak.order_schemas import judged
from tests.soak.outcome import Outcome
from tests.soak.raw_records import AS_OF, RawRecords, Row
from transforms.customers import LISTED_PRICE_LISTS, RAW_CUSTOMERS
from transforms.dates import DateContext
from transforms.documents import RAW_DOCUMENTS
from transforms.frames import TEXT, frame
from transforms.keys import BOOKKEEPING
from transforms.order_fields import OrderFields
from transforms.price_lists import RAW_PRICE_LISTS, price_lists
from transforms.promotions import RAW_PROMOTIONS, promotions

ZONE_MAX: Final = timedelta(hours=14)
RAW_ORDERS: Final = {
    "id": TEXT,
    **dict.fromkeys(("client_id", "placed_at", "status", "money"), TEXT),
    "total": pa.float64(),
    **BOOKKEEPING,
}
FIELDS: Final = OrderFields("client_id", "placed_at", "total", "status", "money", customer_notation="ids")


def cleaned(text: str | None) -> str | None:
    """The text without spaces around it; None where blank."""
    return (text or "").strip() or None


def as_id(text: str | None) -> str | None:
    """An id in the notation of both families: `1.0` is `1`."""
    text = cleaned(text)
    if text is None:
        return None
    whole, point, fraction = text.partition(".")
    is_number = whole.removeprefix("-").isdigit() and text.isascii()
    return whole if is_number and point and fraction and not fraction.strip("0") else text


def one_per_id(rows: list[Row]) -> tuple[list[Row], list[str]]:
    """The row of each id that counts, by id; and the ids of those left out."""
    kept = dict[str, Row]()
    for row in sorted(rows, key=lambda row: (row["_missing_since"] is not None, -row["_last_seen_at"].timestamp())):
        kept.setdefault(row["id"], row)
    left_out = Counter(row["id"] for row in rows) - Counter(list(kept))
    return [kept[one] for one in sorted(kept)], list(left_out.elements())


class Instant:
    """A date as its text says, in a time zone or in none: a moment, and how far from it the date may be."""

    def __init__(self, text: str | None, timezone: str | None) -> None:
        text, zone = cleaned(text), ZoneInfo(timezone) if timezone is not None else UTC
        self.at: datetime | None = None
        self.end: datetime | None = None  # that of its day, where it has no time
        self.doubt = ZONE_MAX
        self.is_endless = text == "9999-12-31"
        if text is None or self.is_endless:
            return
        try:
            written = datetime.fromisoformat(text)
        except ValueError:
            return
        at = written if written.tzinfo is not None else written.replace(tzinfo=zone)
        if at.astimezone(UTC).astimezone(at.tzinfo) != at:
            return  # the clocks never show it
        day_end = at + timedelta(days=1) if len(text) == len("2026-01-01") else at
        self.at, self.end = at.astimezone(UTC), day_end.astimezone(UTC)
        self.doubt = ZONE_MAX if written.tzinfo is None and timezone is None else timedelta()


def expected_customers(raw: RawRecords) -> tuple[list[Row], list[tuple[str | None, str]]]:
    """The rows and the findings, as ids and rules, of the customers."""
    rows, left_out = one_per_id(raw.customers)
    found: list[tuple[str | None, str]] = [(one, "id_duplicate") for one in left_out]
    lists = dict[str | None, Row]()
    for one in sorted(raw.price_lists, key=lambda one: (one["_missing_since"] is not None, one["id"])):
        lists.setdefault(as_id(one["id"]), one)
    documents = sorted(raw.documents, key=lambda one: int(one["position"]))
    ids = {row["id"] for row in rows}
    found += [(one["customer_id"], "document_orphan") for one in documents if one["customer_id"] not in ids]
    has_dates = any(cleaned(row["created_at"]) not in (None, "soon") for row in rows)
    made = []
    shared: dict[str, list[tuple[str, str | None]]] = {
        name: [] for name in ("erp_code_duplicate", "login_code_duplicate", "email_duplicate", "document_number_shared")
    }
    for row in rows:
        own = [one for one in documents if one["customer_id"] == row["id"]]
        defaults, taxes = ([one for one in own if one[name]] for name in ("is_default", "for_taxes"))
        default = defaults[0] if defaults else own[0] if len(own) == 1 else {}
        reference, known = as_id(row["price_list_id"]), lists.get(as_id(row["price_list_id"]))
        is_known = reference is not None and known is not None
        is_listed = is_known and known is not None and known["_missing_since"] is None
        email, phone = normal_email(row["email"]), normal_phone(row["phone"])
        name = cleaned(f"{(row['first_name'] or '').strip()} {(row['last_name'] or '').strip()}")
        created = Instant(row["created_at"], raw.timezone)
        made.append(
            {
                "customer_id": row["id"],
                "full_name": name,
                "email_normalized": email,
                "phone_digits": phone,
                "created_at": created.at,
                "price_list_id": known["id"] if is_listed and known is not None else row["price_list_id"],
                "price_list_name": known["name"] if is_known and known is not None else None,
                "price_list_status": "default" if reference is None else "matched" if is_listed else "not_listed",
                "document_count": len(own),
                "default_document_number": default.get("number"),
                "default_fiscal_name": default.get("fiscal_name"),
                "tax_document_number": taxes[0]["number"] if taxes else None,
                "is_missing": row["_missing_since"] is not None,
            }
        )
        if has_dates and cleaned(row["created_at"]) is not None and created.at is None:
            found.append((row["id"], "created_at_unreadable"))
        if row["_missing_since"] is not None:
            continue
        impossible = (
            reference is not None and is_number(reference) and not (reference.isascii() and reference.isdigit())
        )
        code, login = cleaned(row["erp_code"]), cleaned(row["login_code"])
        born = row["birthdate"]
        cases = {
            "price_list_not_listed": reference is not None and not is_listed and not impossible,
            "price_list_id_impossible": reference is not None and not is_listed and impossible,
            "erp_code_missing": code is None,
            "erp_code_padded": code is not None and code != row["erp_code"],
            "login_missing": email is None and login is None,
            "email_malformed": email is not None and not is_address(email),
            "phone_without_digits": cleaned(row["phone"]) is not None and phone is None,
            "name_missing": name is None,
            "birthdate_future": born is not None and born > AS_OF.date(),
            "birthdate_absurd": born is not None and born < date(AS_OF.year - 120, AS_OF.month, AS_OF.day),
            "created_at_future": created.at is not None and created.at > AS_OF + ZONE_MAX,
            "document_missing": not own,
            "document_default_missing": len(own) > 1 and not defaults,
            "document_default_several": len(defaults) > 1,
            "document_tax_missing": bool(own) and not taxes,
            "document_tax_several": len(taxes) > 1,
            "document_number_missing": any(cleaned(one["number"]) is None for one in own),
        }
        found += [(row["id"], rule) for rule, holds in cases.items() if holds]
        shared["erp_code_duplicate"].append((row["id"], code))
        shared["login_code_duplicate"].append((row["id"], login))
        shared["email_duplicate"].append((row["id"], email))
        shared["document_number_shared"] += [(row["id"], cleaned(one["number"])) for one in own]
    return made, found + list(several(shared))


def several(shared: dict[str, list[tuple[str, str | None]]]) -> Iterator[tuple[str, str]]:
    """The records, by rule, of which another one has a value too: once for each value."""
    for rule, pairs in shared.items():
        counts = Counter(value for _, value in set(pairs))
        yield from ((one, rule) for one, value in set(pairs) if value is not None and counts[value] > 1)


def normal_email(text: str | None) -> str | None:
    text = cleaned(text)
    if text is not None and not text.isascii():
        text = unicodedata.normalize("NFC", text.replace("\u200b", "")).strip()
    return "".join(letter.lower() if letter.isascii() else letter for letter in text) if text else None


def is_address(text: str) -> bool:
    return (
        text.count("@") == 1 and not text.startswith("@") and not text.endswith("@") and not any(map(str.isspace, text))
    )


def normal_phone(text: str | None) -> str | None:
    text = cleaned(text) or ""
    digits = "".join(letter for letter in text if letter in "0123456789")
    if not digits:
        return None
    return f"00{digits}" if text.startswith(("+", "(+")) else digits


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def expected_promotions(raw: RawRecords) -> list[Row]:
    """The rows of the promotions."""
    made = []
    for row in one_per_id(raw.promotions)[0]:
        start, end, limit, used = (
            Instant(row["start_date"], raw.timezone),
            Instant(row["expiration_date"], raw.timezone),
            row["usage_limit"],
            row["use_count"],
        )
        remaining = max(limit - max(used, 0), 0) if limit is not None and limit > 0 and used is not None else None
        if row["is_active"] is False:
            status = "inactive"
        elif row["is_active"] is None or not (end.is_endless or end.at is not None):
            status = "unknown"
        elif end.end is not None and end.end + end.doubt <= AS_OF:
            status = "expired"
        elif (end.at is not None and end.at - end.doubt <= AS_OF) or start.at is None:
            status = "unknown"
        elif start.at - start.doubt > AS_OF:
            status = "scheduled"
        elif start.at + start.doubt > AS_OF or (limit is not None and remaining is None):
            status = "unknown"
        else:
            status = "exhausted" if remaining == 0 else "running"
        at = {"starts_at": start.at, "expires_at": end.at}
        made.append({"promotion_id": row["id"], "status": status, "remaining_uses": remaining, **at})
    return made


def expected_price_lists(raw: RawRecords, known: list[Row]) -> list[Row]:
    """The rows of the price lists: each chain followed from list to list."""
    rows = one_per_id(raw.price_lists)[0]

    def source(row: Row) -> Row | None:
        name = row["source_price_list_id"]
        exact = [one for one in rows if one["id"] == name]
        loose = [one for one in rows if as_id(name) is not None and as_id(one["id"]) == as_id(name)]
        found = next(iter(exact + loose), None)
        is_broken = found is not None and found["_missing_since"] is not None and row["_missing_since"] is None
        return None if is_broken else found

    made = []
    for row in rows:
        end, depth, seen = row, 0, {row["id"]}
        while (then := source(end)) is not None and then["id"] not in seen:
            end, depth = then, depth + 1
            seen.add(end["id"])
        if then is not None:
            status = "cycle"
        elif cleaned(end["source_price_list_id"]) is not None:
            status = "orphan"
        else:
            status = "linked" if depth else "root"
        is_whole = status in ("root", "linked")
        count = sum(
            one["price_list_id"] == row["id"] and one["price_list_status"] == "matched" and not one["is_missing"]
            for one in known
        )
        chain = {"root_price_list_id": end["id"] if is_whole else None, "depth": depth if is_whole else None}
        made.append({"price_list_id": row["id"], "chain_status": status, **chain, "customer_count": count})
    return made


def expected_orders(raw: RawRecords, known: list[Row]) -> list[Row]:
    """The rows of the orders."""
    ids = {one["customer_id"] for one in known}
    made = []
    for row in one_per_id(raw.orders)[0]:
        named = cleaned(row["client_id"])
        found = as_id(named) if as_id(named) in ids else None
        if found is None and as_id(named) == "0":
            named = None
        made.append(
            {
                "order_id": row["id"],
                "customer_id": found or named,
                "customer_status": "matched" if found else "unknown" if named else "none",
                "ordered_at": Instant(row["placed_at"], raw.timezone).at,
                "total": None if row["total"] is None else Decimal(repr(row["total"])),
                "order_status": cleaned(row["status"]),
                "currency": (cleaned(row["money"]) or "").upper() or None,
                "is_missing": row["_missing_since"] is not None,
            }
        )
    return made


def expected_customer_orders(made: list[Row], known: list[Row]) -> list[Row]:
    """Orders and revenue of each customer."""
    rows = []
    for one in known:
        own = [row for row in made if row["customer_id"] == one["customer_id"] and row["customer_status"] == "matched"]
        own = [row for row in own if not row["is_missing"]]
        counted = [
            row for row in own if not any(word in (row["order_status"] or "").lower() for word in ("cancel", "anul"))
        ]
        sums: dict[str, Decimal] = {}
        for row in counted:
            if row["total"] is not None:
                sums[row["currency"] or ""] = sums.get(row["currency"] or "", Decimal(0)) + row["total"]
        dates = [row["ordered_at"] for row in counted if row["ordered_at"] is not None]
        past = [at for at in dates if at <= AS_OF + ZONE_MAX]
        activity = {
            f"is_active_{days}_days": True
            if any(at >= AS_OF - timedelta(days=days) for at in past)
            else (False if len(dates) == len(counted) else None)
            for days in (30, 90, 365)
        }
        rows.append(
            {
                "customer_id": one["customer_id"],
                "order_count": len(counted),
                "cancelled_count": len(own) - len(counted),
                "currency": next(iter(sums)) or None if len(sums) == 1 else None,
                "revenue": next(iter(sums.values())) if len(sums) == 1 else None,
                "revenue_by_currency": {name: str(plain(amount)) for name, amount in sorted(sums.items())}
                if sums
                else None,
                "first_ordered_at": min(dates, default=None),
                "last_ordered_at": max(dates, default=None),
                **activity,
            }
        )
    return rows


def plain(amount: Decimal) -> str:
    """The amount without zeros at its end, and without an exponent."""
    return str(amount.quantize(Decimal(1)) if amount == amount.to_integral() else amount.normalize())


def differences(name: str, table: pd.DataFrame, expected: list[Row]) -> Iterator[str]:
    """Where a table is not the rows that are expected; no more than the first difference of a column."""
    columns = list(expected[0]) if expected else []
    if len(table) != len(expected):
        yield f"{name}: {len(table)} rows, expected {len(expected)}"
        return
    for column in columns:
        values = [None if pd.isna(value) else value for value in table[column]]
        if column == "revenue_by_currency":
            values = [value and json.loads(value) for value in values]
        for value, row in zip(values, expected, strict=True):
            if value != row[column]:
                yield f"{name}.{column}: {value!r}, expected {row[column]!r} in {row}"
                break


def reconciled_seed(seed: int) -> Outcome:
    """Reconciles the records of a seed, and compares them with what is expected."""
    raw = RawRecords(seed)
    context = DateContext(AS_OF, timezone=raw.timezone)
    lists = frame(RAW_PRICE_LISTS, raw.price_lists)
    known, findings, _ = customers(
        frame(RAW_CUSTOMERS, raw.customers),
        frame({"customer_id": TEXT, **RAW_DOCUMENTS}, raw.documents),
        frame(LISTED_PRICE_LISTS, [{name: row[name] for name in LISTED_PRICE_LISTS} for row in raw.price_lists]),
        context,
    )
    expected, found = expected_customers(raw)
    problems = list(differences("customers", known, expected))
    pairs = Counter(findings[["entity_id", "rule"]].itertuples(index=False, name=None))
    ours = {pair: count for pair, count in pairs.items() if pair[1] not in ("created_at_zone", "created_at_form")}
    if ours != Counter(found):
        problems.append(
            f"customers: findings {Counter(ours) - Counter(found)}, expected {Counter(found) - Counter(ours)}"
        )
    problems += differences(
        "promotions", promotions(frame(RAW_PROMOTIONS, raw.promotions), context)[0], expected_promotions(raw)
    )
    problems += differences("price_lists", price_lists(lists, known)[0], expected_price_lists(raw, expected))
    made = orders(frame(RAW_ORDERS, raw.orders), known, FIELDS, context).orders
    expected_made = expected_orders(raw, expected)
    problems += differences("orders", made, expected_made)
    activity = customer_orders(made, known, context)
    problems += differences("customer_orders", activity, expected_customer_orders(expected_made, expected))
    records = sum(map(len, (expected, raw.promotions, raw.price_lists, raw.orders)))
    stated, wrong = judged(seed)
    return Outcome({"records": records, "findings": len(found), **stated}, problems + wrong)
