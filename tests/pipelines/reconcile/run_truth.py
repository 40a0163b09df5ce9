"""What remains of several nights, in plain Python: versions of records, findings and their counts, what was seen.

In: the nights up to one. Out: the rows of each table as the run of the last of them leaves it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import cache

from orderbridge.transforms.rules import find_rule
from tests.pipelines.reconcile import table_truth
from tests.pipelines.reconcile.match_truth import match_findings, match_totals
from tests.pipelines.reconcile.raw_world import ACCEPTED, SEVERITIES, Night, Row
from tests.pipelines.reconcile.table_truth import (
    OFFSET,
    Nights,
    clean,
    grouped,
    id_key,
    is_complete,
    is_tried_again,
    picked,
)

# histories


def _history(
    nights: Nights, entity: str, key: str, fields: str, derived: Callable[[Nights], list[Row]]
) -> list[Row]:
    """A version begins where a field of the platform's is another one, and where a record comes back."""
    versions: dict[str, list[Row]] = defaultdict(list)
    for number, night in enumerate(nights, 1):
        raw = {one["id"]: one for one in night[entity]}
        documents = grouped(night["customers__documents"], "customer_id")
        for row in derived(nights[:number]):
            one = raw[row[key]]
            texts = [picked(of, DOCUMENT) for of in documents[one["id"]]]
            own = picked(one, fields) | {"documents": texts if entity == "customers" else None}
            shown = {name: row[name] for name in row if name not in NOT_IN_HISTORY}
            if entity == "customers":
                shown["documents"] = json.dumps(texts)
            _add(versions[row[key]], one, {"own": own, "shown": shown})
    return [
        picked(one, "version valid_from valid_to ended_by")
        | {"is_current": one["ended_by"] is None}
        | one["shown"]
        for of_record in versions.values()
        for one in of_record
    ]


def _add(versions: list[Row], one: Row, version: Row) -> None:
    last = versions[-1] if versions else None
    is_open = last is not None and last["ended_by"] is None
    if last is not None and is_open and _same(last["own"], version["own"]):
        last |= version
    elif last is None or is_open or one["_last_seen_at"] > last["valid_to"]:
        if last is not None and is_open:
            last |= {"valid_to": one["_last_seen_at"], "ended_by": "changed"}
        begin = {"valid_from": one["_last_seen_at"], "valid_to": None, "ended_by": None}
        last = {**version, **begin, "version": len(versions) + 1}
        versions.append(last)
    if last["ended_by"] is None and one["_missing_since"] is not None:
        last |= {"valid_to": one["_missing_since"], "ended_by": "missing"}


def _same(one: Row, other: Row) -> bool:
    """The order of documents is not shown."""
    return _sorted(one) == _sorted(other)


def _sorted(one: Row) -> Row:
    return one | {"documents": sorted(map(repr, one["documents"] or ()))}


DOCUMENT = "number fiscal_name fiscal_address email is_default for_taxes"
NOT_IN_HISTORY = ("_run_id", "_first_seen_at", "_missing_since", "_extra", "is_missing")


@cache
def customer_history(nights: Nights) -> list[Row]:
    fields = (
        "erp_code login_code first_name last_name email phone birthdate created_at price_list_id"
    )
    return _history(nights, "customers", "customer_id", fields, table_truth.customers)


@cache
def promotion_history(nights: Nights) -> list[Row]:
    fields = "name is_active usage_limit start_date expiration_date"
    return _history(nights, "promotions", "promotion_id", fields, table_truth.promotions)


@cache
def price_list_history(nights: Nights) -> list[Row]:
    fields = "name source_price_list_id adjustment_type adjustment_value"
    return _history(nights, "price_lists", "price_list_id", fields, table_truth.price_lists)


# findings

Found = tuple[str, str | None]
"""A rule, and the record; of the table as a whole what its detail says, after a `*`."""
Finding = tuple[str, str, str | None]
"""The same with the entity before it."""


@cache
def _found(nights: Nights) -> dict[str, list[Found]]:
    """The findings of each step."""
    return {
        "customers": [*_of_customers(nights)],
        "promotions": [*_of_promotions(nights)],
        "price_lists": [*_of_price_lists(nights)],
        "orders": [*_of_orders(nights)],
        "order_lines": [("no_products", "*"), ("amounts_unreadable", "*")],
        "customer_orders": [],
    }


def _all_found(nights: Nights) -> list[Finding]:
    of_steps = [(entity, *one) for entity, found in _found(nights).items() for one in found]
    return [*of_steps, *_of_reads(nights[-1]), *match_findings(nights)]


def _of_reads(night: Night) -> Iterator[Finding]:
    for name in ("customers", "promotions", "price_lists", "orders"):
        last = last_read(night, name)
        if last["verdict"] != "complete":
            yield name, "unproven", "*"
        for one in night.quarantined:
            is_of_read = (one["run_id"], one["resource"]) == (last["run_id"], name)
            if is_of_read and one["duplicate_id"] is not None:
                yield name, "id_duplicate", one["duplicate_id"]


def last_read(night: Night, resource: str) -> Row:
    """The last read of the whole list that came."""
    return [
        one
        for one in night.reads
        if one["resource"] == resource and one["published"] and one["verdict"] != "tail"
    ][-1]


def _shared(rows: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    """The records of each value that several have, once for each value."""
    by_value: dict[str, list[str]] = defaultdict(list)
    for key, value in rows:
        if value is not None and key not in by_value[value]:
            by_value[value].append(key)
    for keys in by_value.values():
        if len(keys) > 1:
            yield from keys


def _of_customers(nights: Nights) -> Iterator[Found]:
    night = nights[-1]
    today = night.as_of.date()
    documents = grouped(night["customers__documents"], "customer_id")
    rows = table_truth.customers(nights)
    listed = [one for one in rows if not one["is_missing"]]
    for one in rows:
        if clean(one["created_at_text"]) is not None and one["created_at"] is None:
            yield "created_at_unreadable", one["customer_id"]
    for one in listed:
        own = documents[one["customer_id"]]
        key = id_key(one["price_list_id"])
        is_number = key is not None and re.fullmatch("[-.0-9]+", key) is not None
        is_impossible = is_number and not str(key).isdecimal()
        defaults = sum(of["is_default"] is True for of in own)
        taxes = sum(of["for_taxes"] is True for of in own)
        born, created = one["birthdate"], one["created_at"]
        email = one["email_normalized"]
        is_email = email is None or re.fullmatch(r"[^@\s]+@[^@\s]+", email) is not None
        holds = {
            "erp_code_missing": clean(one["erp_code"]) is None,
            "erp_code_padded": clean(one["erp_code"]) not in (None, one["erp_code"]),
            "login_missing": email is None and clean(one["login_code"]) is None,
            "email_malformed": not is_email,
            "phone_without_digits": clean(one["phone"]) is not None and not one["phone_digits"],
            "name_missing": one["full_name"] is None,
            "birthdate_future": born is not None and born > today,
            "birthdate_absurd": born is not None and born < today.replace(year=today.year - 120),
            "created_at_future": created is not None and created > night.as_of + OFFSET,
            "price_list_not_listed": one["price_list_status"] == "not_listed" and not is_impossible,
            "price_list_id_impossible": one["price_list_status"] == "not_listed" and is_impossible,
            "document_missing": not own,
            "document_default_missing": len(own) > 1 and defaults == 0,
            "document_default_several": defaults > 1,
            "document_tax_missing": len(own) > 0 and taxes == 0,
            "document_tax_several": taxes > 1,
            "document_number_missing": any(clean(of["number"]) is None for of in own),
        }
        yield from ((rule, one["customer_id"]) for rule, is_so in holds.items() if is_so)
    for rule, name in (
        ("erp_code_duplicate", "erp_code"), ("login_code_duplicate", "login_code"),
        ("email_duplicate", "email_normalized"),
    ):  # fmt: skip
        shared = _shared((one["customer_id"], clean(one[name])) for one in listed)
        yield from ((rule, key) for key in shared)
    numbers = [
        (one["customer_id"], clean(of["number"]))
        for one in listed
        for of in documents[one["customer_id"]]
    ]
    yield from (("document_number_shared", key) for key in _shared(numbers))
    if any(one["price_list_status"] == "unknown" for one in listed):
        is_tried = is_tried_again(night, "price_lists")
        yield "price_lists_unproven", f"*{is_tried}"


def _of_promotions(nights: Nights) -> Iterator[Found]:
    for one in table_truth.promotions(nights):
        key = one["promotion_id"]
        starts, ends = one["starts_at"], one["expires_at"]
        is_endless = (one["expiration_date"] or "").startswith("9999")
        if clean(one["start_date"]) is not None and starts is None:
            yield "dates_unreadable", key
        if clean(one["expiration_date"]) is not None and ends is None and not is_endless:
            yield "dates_unreadable", key
        if one["is_missing"]:
            continue
        limit, used = one["usage_limit"], one["use_count"]
        is_before = starts is not None and ends is not None and ends < starts
        if is_before and len(one["expiration_date"]) == len("2026-01-01"):
            is_before = ends + timedelta(days=1) <= starts
        holds = {
            "name_missing": clean(one["name"]) is None,
            "ends_before_start": is_before,
            "used_beyond_limit": None not in (limit, used) and 0 < limit < used,
            "use_count_negative": used is not None and used < 0,
            "usage_limit_not_positive": limit is not None and limit <= 0,
            "active_but_expired": one["status"] == "expired",
            "active_but_exhausted": one["status"] == "exhausted",
        }
        yield from ((rule, key) for rule, is_so in holds.items() if is_so)


def _of_price_lists(nights: Nights) -> Iterator[Found]:
    rows = [one for one in table_truth.price_lists(nights) if not one["is_missing"]]
    lists = nights[-1]["price_lists"]
    for one in rows:
        raw = next(of for of in lists if of["id"] == one["price_list_id"])
        chain, _ = table_truth.chain_of(raw, lists)
        is_orphan = one["chain_status"] == "orphan"
        kind = (clean(one["adjustment_type"]) or "").upper()
        holds = {
            "name_missing": clean(one["name"]) is None,
            "adjustment_contradicts": kind == "NONE" and bool(one["adjustment_value"]),
            "chain_cycle": one["chain_status"] == "cycle",
            "source_not_listed": is_orphan and len(chain) == 1,
            "chain_orphaned": is_orphan and len(chain) > 1,
        }
        yield from ((rule, one["price_list_id"]) for rule, is_so in holds.items() if is_so)
    for rule, cleaned in (("id_ambiguous", id_key), ("name_duplicate", clean)):
        name = "price_list_id" if rule == "id_ambiguous" else "name"
        shared = _shared((one["price_list_id"], cleaned(one[name])) for one in rows)
        yield from ((rule, key) for key in shared)
    if any(one["chain_status"] == "unknown" for one in rows):
        yield "sources_unproven", "*"


def _of_orders(nights: Nights) -> Iterator[Found]:
    night = nights[-1]
    rows = table_truth.orders(nights)
    refunds = {one["order_id"] for one in night["orders__refunds"]}
    is_proven = is_complete(night, "customers")
    for one in rows:
        if clean(one["created_at"]) is not None and one["ordered_at"] is None:
            yield "ordered_at_unreadable", one["order_id"]
    listed = [one for one in rows if not one["is_missing"]]
    amounts = table_truth.refunded(night)
    payments = grouped(night["orders__transactions"], "order_id")
    kept = {
        one["id"]
        for one in night["orders"]
        if table_truth.stated_class(one, payments[one["id"]]) in ("sale", "unknown")
    }
    for one in listed:
        is_unknown = one["customer_status"] == "unknown"
        is_refund_known = (
            amounts.get(one["order_id"]) is not None or one["total_refunded"] is not None
        )
        at, amount = one["ordered_at"], one["total"]
        holds = {
            "ordered_at_future": at is not None and at > night.as_of + OFFSET,
            "total_negative": amount is not None and amount < 0,
            "customer_unknown": is_unknown and is_proven,
            "customer_missing": one["customer_status"] == "none",
            "refund_unknown": one["order_id"] in refunds & kept and not is_refund_known,
            "duplicate": any(_is_copy(one, other) for other in listed),
        }
        yield from ((rule, one["order_id"]) for rule, is_so in holds.items() if is_so)
    if any(one["customer_status"] == "unknown" for one in listed) and not is_proven:
        yield "customers_unproven", "*"
    yield from ((rule, "*") for rule in OF_ALL_ORDERS)
    yield from (("form_changed", f"*{field}") for field in ("d", "e"))


OF_ALL_ORDERS = (
    "cancelled_disputed", "cancelled_with_total", "currencies_mixed", "ordered_at_missing", "status_unknown",
    "total_missing", "totals_differ",
)  # fmt: skip


def _is_copy(one: Row, of: Row) -> bool:
    names = ("number", "customer_id", "ordered_at", "total", "currency")
    values = [clean(one["number"]), one["ordered_at"], one["total"]]
    return (
        of["order_id"] < one["order_id"]
        and None not in values
        and one["is_sale"] is not False
        and of["is_sale"] is not False
        and all(one[name] == of[name] for name in names)
    )


@cache
def findings(nights: Nights) -> list[Row]:
    """The findings of the last night, each with the run since which it is there without a break."""
    rows: list[Row] = []
    gone: list[Row] = []
    for number, night in enumerate(nights, 1):
        found = _all_found(nights[:number])
        known: dict[Finding, Row] = {}
        for one in [*_back(night, gone), *rows]:
            before = known.get(one["finding"])
            if before is None or one["first_seen_at"] < before["first_seen_at"]:
                known[one["finding"]] = one
        new = [_finding(one, night, known) for one in found]
        gone += [one | {"gone_run_id": night.run_id} for one in rows if one["finding"] not in found]
        rows = new
    return rows


def _finding(finding: Finding, night: Night, known: dict[Finding, Row]) -> Row:
    entity, rule, key = finding
    name = f"{entity}.{rule}"
    catalogued = find_rule(name)
    first = known.get(finding, {"first_run_id": night.run_id, "first_seen_at": night.as_of})
    return picked(first, "first_run_id first_seen_at") | {
        "finding": finding,
        "entity": entity,
        "entity_id": None if (key or "").startswith("*") else key,
        "rule": rule,
        "severity": SEVERITIES.get(name, catalogued.severity if catalogued else None),
        "is_accepted": (name, "") in ACCEPTED or (name, key) in ACCEPTED,
    }


def _back(night: Night, gone: Sequence[Row]) -> list[Row]:
    """What was gone while a list could not be read that this night has read again."""
    back: set[str] = set()
    for resource in ("customers", "promotions", "price_lists", "orders"):
        of_list = [one for one in night.reads if one["resource"] == resource]
        tonight = [one for one in of_list if one["run_id"] == night.run_id and one["published"]]
        earlier = [one for one in of_list if one["run_id"] < night.run_id]
        while tonight and earlier and not earlier[-1]["published"]:
            back.add(earlier.pop()["run_id"])
    return [one for one in gone if back and one["gone_run_id"] >= min(back)]


@cache
def exceptions(nights: Nights) -> list[Row]:
    return [
        {name: value for name, value in one.items() if name != "finding"}
        for one in findings(nights)
    ]


@cache
def past_findings(nights: Nights) -> list[Row]:
    rows = []
    for number in range(1, len(nights)):
        now = {one["finding"] for one in findings(nights[: number + 1])}
        for one in findings(nights[:number]):
            if one["finding"] not in now:
                rows.append(
                    picked(one, "entity entity_id rule severity first_run_id first_seen_at")
                    | {
                        "last_run_id": nights[number - 1].run_id,
                        "gone_run_id": nights[number].run_id,
                    }
                )
    return rows


@cache
def finding_counts(nights: Nights) -> list[Row]:
    rows = []
    gone = past_findings(nights)
    for number, night in enumerate(nights, 1):
        of_run = findings(nights[:number])
        left = [one for one in gone if one["gone_run_id"] == night.run_id]
        for key in {(one["entity"], one["rule"], one["severity"]) for one in [*of_run, *left]}:
            own, went = (
                [one for one in of if (one["entity"], one["rule"], one["severity"]) == key]
                for of in (of_run, left)
            )
            rows.append(
                dict(zip(("entity", "rule", "severity"), key, strict=True))
                | {
                    "run_id": night.run_id,
                    "recorded_at": night.as_of,
                    "findings": len(own),
                    "accepted": sum(one["is_accepted"] for one in own),
                    "new": sum(one["first_run_id"] == night.run_id for one in own),
                    "gone": len(went),
                }
            )
    return rows


# what was seen


def promotion_uses(nights: Nights) -> list[Row]:
    rows: list[Row] = []
    last: dict[str, int] = {}
    for night in nights:
        for one in night["promotions"]:
            count = one["use_count"]
            if count is not None and last.get(one["id"]) != count:
                last[one["id"]] = count
                rows.append(
                    {
                        "promotion_id": one["id"],
                        "run_id": night.run_id,
                        "use_count": count,
                        "read_at": one["_last_seen_at"],
                    }
                )
    return rows


def last_reads(nights: Nights) -> list[Row]:
    night = nights[-1]
    rows = []
    for resource in ("customers", "promotions", "price_lists", "orders"):
        read = last_read(night, resource)
        tails = [
            one
            for one in night.reads
            if (one["resource"], one["verdict"]) == (resource, "tail")
            and one["read_number"] > read["read_number"]
        ]
        hashes = {
            one["row_hash"]
            for one in night.quarantined
            if (one["run_id"], one["resource"]) == (read["run_id"], resource)
        }
        rows.append(
            read
            | {
                "quarantined_rows": len(hashes),
                "tail_run_id": tails[-1]["run_id"] if tails else None,
                "tail_ended_at": tails[-1]["ended_at"] if tails else None,
            }
        )
    return rows


def control_totals(nights: Nights) -> list[Row]:
    rows = []
    for number, night in enumerate(nights, 1):
        upto = nights[:number]
        totals: dict[str, dict[str, int]] = defaultdict(dict)
        for name in ("customers", "promotions", "price_lists", "orders", "order_lines"):
            raw = night["orders__lines" if name == "order_lines" else name]
            totals[name] = {"raw": len(raw), "reconciled": len(raw)}
        totals["customer_orders"] = dict(totals["customers"])
        for name, found in _found(upto).items():
            totals[name]["findings"] = len(found)
        for history in (customer_history, promotion_history, price_list_history):
            versions = history(upto)
            current = sum(one["is_current"] for one in versions)
            totals[history.__name__] = {"versions": len(versions), "current": current}
        if night.erp is not None:
            totals["erp_customers"] = match_totals(upto)
        totals["lists"] = {"read_number": night.reads[-1]["read_number"]}
        rows += [
            {
                "run_id": night.run_id,
                "entity": f"reconciled.{entity}",
                "measure": measure,
                "value": value,
            }
            for entity, measures in totals.items()
            for measure, value in measures.items()
        ]
    return rows


TRUTH: dict[str, Callable[[Nights], list[Row]]] = {
    "reconciled.customer_history": customer_history,
    "reconciled.promotion_history": promotion_history,
    "reconciled.price_list_history": price_list_history,
    "reconciled.exceptions": exceptions,
    "ops.past_findings": past_findings,
    "ops.finding_counts": finding_counts,
    "ops.promotion_uses": promotion_uses,
    "ops.last_read": last_reads,
    "ops.control_totals": control_totals,
}
"""What each table has to have."""
