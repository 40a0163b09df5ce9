"""What a pull has to leave in `raw` and `ops`, in plain Python from the pages that the platform served.

In: the pulls up to one. Out: the rows of each table.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import sha256
from typing import Any

from tests.pipelines.pull.pull_world import ENVIRONMENTS, HOSTS, PAGE_LIMITS, Row
from tests.pipelines.pull.read_truth import (
    ID_CONFLICT,
    LEGACY,
    Pulls,
    Read,
    at_of,
    changed,
    columns_of,
    id_of,
    is_empty,
    played,
    published,
    raw_table,
    taken,
)
from tests.pipelines.pull.value_truth import column_values, recent_rows, recent_shares

UNKNOWN = ("loyaltyTier", "kind", "color")
"""Fields that the interface does not name."""
MORE_THAN_HALF = "{} of {} known records are not in the list any more (more than half)"


# what was read


def coverage(pulls: Pulls) -> list[Row]:
    rows: list[Row] = []
    for _, reads in published(pulls):
        for read in reads.values():
            used = read.passes if read.is_failed else read.used
            pages = [page for one in used for page in one.pages]
            if read.name in read.of.night.broken:
                pages = pages[:-1]  # that one is none
            last = None if read.is_failed else read.passes[-1]
            ends = {
                "customers": "hasNextPage false",
                "promotions": "empty page",
                "price_lists": "single response",
            }
            rows.append(
                {
                    "run_id": read.of.run_id, "resource": read.name, "verdict": read.verdict,
                    "sweeps": max(len(read.passes), 1), "pages": len(pages),
                    "rows": sum(len(one.rows) for one in pages),
                    "distinct": len(read.rows), "duplicates": read.duplicates, "quarantined": len(read.quarantined),
                    "total_reported": last.total if last else None,
                    "ended_by": ends.get(read.name, "hasMore false") if last else "error",
                    "started_at": read.started_at, "ended_at": read.ended_at, "published": read.is_published,
                    "read_number": len(rows) + 1, "cut": _cut(read),
                }
            )  # fmt: skip
    return rows


def _cut(read: Read) -> str | None:
    if read.name not in read.of.night.cut:
        return None
    total = min(one.total or 0 for one in read.passes)
    return f"rows read: {len(read.rows) + len(read.quarantined)}, reported: {total}"


def quarantine(pulls: Pulls) -> list[Row]:
    return [
        {
            "run_id": read.of.run_id, "resource": read.name, "page": place.page, "position": place.position,
            "reason": reason, "row_hash": place.digest, "duplicate_id": place.key if reason == ID_CONFLICT else None,
        }
        for _, reads in published(pulls)
        for read in reads.values()
        for place, reason in read.quarantined
    ]  # fmt: skip


def held_lists(pulls: Pulls) -> list[Row]:
    rows: list[Row] = []
    for _, reads in published(pulls):
        for read in reads.values():
            if read.held:
                known, absent = len(read.state.listed), len(read.absent)
                reason = MORE_THAN_HALF if absent * 2 > known else MORE_THAN_HALF.partition(" (")[0]
                rows.append(
                    {
                        "run_id": read.of.run_id, "resource": read.name, "known": known, "absent": absent,
                        "reason": reason.format(absent, known), "examples": ", ".join(sorted(read.absent)[:3]),
                        "compared_with": read.state.whole_run_id,
                    }
                )  # fmt: skip
    return rows


# runs


def families(reads: Iterable[str]) -> set[str]:
    return {"legacy" if name in LEGACY else "public_v1" for name in reads}


def _source(reads: dict[str, Read]) -> Row:
    """The hosts that were read from, and their environment."""
    has_moved = next(iter(reads.values())).of.night.has_moved
    read = families(reads)
    hosts = {
        f"{one}_host": names[has_moved] if one in read else None for one, names in HOSTS.items()
    }
    return {**hosts, "environment": ENVIRONMENTS[has_moved]}


def runs(pulls: Pulls) -> list[Row]:
    rows = []
    for upto, reads in published(pulls):
        one = upto[-1]
        codes = {"price_lists": 3, "orders": 4}
        failed = [codes[read.name] for read in reads.values() if read.is_failed]
        code = 5 * any(read.quarantined for read in reads.values())
        if any(read.held for read in reads.values()):
            code = 7
        rows.append(
            {
                "run_id": one.run_id, "command": one.night.wanted.get("command", "pull"), "started_at": one.began_at,
                "ended_at": one.ended_at, "exit_code": min(failed, default=code), **_source(reads),
            }
        )  # fmt: skip
    return rows


def warehouse(pulls: Pulls) -> list[Row]:
    """What the last pull does not know stays."""
    row: Row = {}
    for upto, reads in published(pulls):
        known = _source(reads) | {"organization": upto[-1].night.organization}
        row |= {name: value for name, value in known.items() if value is not None}
        row |= {"run_id": upto[-1].run_id, "read_at": at_of(reads)}
    return [row]


def order_cursor(pulls: Pulls) -> list[Row]:
    """Near the end of the last read of the orders: the last page, or the one before it as well."""
    row: Row | None = None
    is_newest_last = None
    for upto, read in taken(pulls):
        if read.name != "orders":
            continue
        if read.is_whole:
            shown = _is_newest_last(read)
            if row is None:
                is_newest_last = None
            is_newest_last = is_newest_last if shown is None else shown
        pages = [page for page in read.passes[0].pages if page.rows][-2:]
        has_moved = upto[-1].night.has_moved
        limit = PAGE_LIMITS[has_moved]
        if len(pages[-1].rows) == limit:
            pages = pages[-1:]
        ids = [id_of(json.loads(text)).encode() for page in pages for text in page.rows]
        digest = sha256(b"".join(len(one).to_bytes(8, "big") + one for one in ids)).hexdigest()
        cursor = pages[0].query.get("startingAfter")
        row = None if cursor is None else {
            "run_id": upto[-1].run_id, "cursor": cursor, "page_limit": limit, "page_rows": len(ids),
            "page_digest": digest, "base_url": f"http://{HOSTS['public_v1'][has_moved]}",
            "environment": ENVIRONMENTS[has_moved],
            "organization": upto[-1].night.organization, "order_key": "id", "is_newest_last": is_newest_last,
        }  # fmt: skip
    return [row] if row else []


def _is_newest_last(read: Read) -> bool | None:
    """Whether the orders are listed by their time, and none that was known comes after a new one."""
    are_known = [key in read.state.entries for key in read.rows]
    times = [row["createdAt"] for row in read.rows.values()]
    return times == sorted(times) and are_known == sorted(are_known, reverse=True)


def control_totals(pulls: Pulls) -> list[Row]:
    rows = []
    for upto, reads in published(pulls):
        for read in reads.values():
            measures = {
                "read": read.count("places"), "loaded": len(read.rows), "held_back": 0, "duplicates": read.duplicates,
                "quarantined": len(read.quarantined),
            }  # fmt: skip
            if read.held:
                measures |= {"loaded": 0, "held_back": len(read.rows)}
            if read.is_published:
                new, others = changed(read)
                gone = len(read.absent) if read.verdict == "complete" else 0
                measures |= {"new": len(new), "changed": len(others), "newly_missing": gone}
                for table, of in read.alone.tables.items():
                    counts = {"loaded": len(of), "raw": len(of)}
                    if table != read.name:
                        counts["listed"] = len(of)
                    rows += _totals(upto, f"raw.{table}", counts)
            rows += _totals(upto, read.name, measures)
    return rows


def _totals(upto: Pulls, entity: str, measures: dict[str, int]) -> list[Row]:
    return [
        {"run_id": upto[-1].run_id, "entity": entity, "measure": measure, "value": value}
        for measure, value in measures.items()
    ]


# fields of orders


def field_kinds(pulls: Pulls) -> list[Row]:
    """By place: the kind of most values of the first read that had some; whole numbers may become decimals.

    Values of a kind that is kept are counted in some reads only: there may be up to `most`.
    """
    known: dict[str, Row] = {}
    for upto, read in taken(pulls):
        if read.name != "orders":
            continue
        at = at_of(played(upto)[0])
        accepted = [
            place.partition(": ")[2]
            for rule, place in upto[-1].night.accepted
            if rule == "orders.form_changed"
        ]
        for path in [one for one in known if ".".join(json.loads(one)) in accepted]:
            del known[path]
        found: dict[str, list[Any]] = defaultdict(list)
        for one in read.passes:
            for place in one.good:
                _collect(place.row, (), found)
        for path, values in found.items():
            if path == '["id"]':
                continue
            counted = _kind_counts(values)
            before = known.get(path)
            new = {
                "resource": "orders",
                "path": path,
                "previous_kind": None,
                "run_id": read.of.run_id,
                "decided_at": at,
            }
            if before is None:
                known[path] = new | counted | {"most": counted["values_seen"]}
                continue
            before["most"] = max(before["most"], counted["values_seen"])
            kind = (
                before["kind"] if counted["kind"] in ("empty", before["kind"]) else counted["kind"]
            )
            if (before["kind"], kind) == ("decimal", "bigint"):
                kind = "decimal"
            is_counted = before["values_seen"] < 20
            for name in ("values_seen", "objects", "arrays"):
                before[name] = max(before[name], counted[name]) if is_counted else before[name]
            if kind != before["kind"]:
                previous = before["previous_kind"] if before["kind"] == "empty" else before["kind"]
                before |= {
                    "kind": kind,
                    "previous_kind": previous,
                    "run_id": read.of.run_id,
                    "decided_at": at,
                }
    return [dict(one) for one in known.values()]


@cache
def path_of(names: tuple[str, ...]) -> str:
    return json.dumps(names, separators=(",", ":"))


def _collect(row: Row, above: tuple[str, ...], found: dict[str, list[Any]]) -> None:
    for name, value in row.items():
        path = (*above, name)
        found[path_of(path)].append(value)
        inner = value if isinstance(value, list) else [value]
        for one in inner:
            if isinstance(one, dict):
                _collect(one, path, found)


def _kind_counts(values: list[Any]) -> Row:
    filled = [one for one in values if not is_empty(one)]
    objects = [one for one in filled if isinstance(one, dict)]
    arrays = [one for one in filled if isinstance(one, list)]
    kinds: dict[type, str] = {
        bool: "boolean",
        int: "bigint",
        float: "decimal",
        str: "text",
        dict: "object",
    }
    kind = "empty"
    if arrays:
        kind = "table" if isinstance(arrays[0][0], dict) else "list"
    elif filled:
        types = Counter(map(type, filled))
        kind = kinds[float if float in types else types.most_common(1)[0][0]]
    count = len(filled)
    if objects:
        count += sum(one == {} for one in values)
    if kind == "boolean" and True not in filled:
        count = 0
    return {"kind": kind, "values_seen": count, "objects": len(objects), "arrays": len(arrays)}


# what the interface does not show


def observations(pulls: Pulls) -> list[Row]:
    rows: dict[tuple[str, str], Row] = {}
    for upto, reads in published(pulls):
        at = at_of(reads)
        seen = {*_types(upto)}
        for read in reads.values():
            seen |= {*_observed(read)}
        for what, value in seen:
            new = {
                "what": what,
                "value": value,
                "first_run_id": upto[-1].run_id,
                "first_seen_at": at,
            }
            row = rows.setdefault((what, value), new)
            row |= {"last_run_id": upto[-1].run_id, "last_seen_at": at}
    return [dict(one) for one in rows.values()]


def _types(pulls: Pulls) -> Iterator[tuple[str, str]]:
    """The types of the columns of orders, and the adjustment types of price lists, gone ones too."""
    lists = played(pulls)[1]
    for table, rows in lists["orders"].tables.items():
        yield (
            f"{table}.id: type of a field"
            if table == "orders"
            else f"{table}.order_id: type of a field",
            "VARCHAR",
        )
        if table != "orders":
            yield f"{table}.position: type of a field", "INTEGER"
        for column in columns_of(lists["orders"], table):
            values = [row.get(column) for row in rows if row.get(column) is not None]
            names: dict[type, str] = {bool: "BOOLEAN", int: "BIGINT", float: "DECIMAL(38,9)"}
            kind = float if float in map(type, values) else type(next(iter(values), ""))
            yield f"{table}.{column}: type of a field", names.get(kind, "VARCHAR")
    for entry in lists["price_lists"].entries.values():
        yield "adjustment_types", str(entry.row["adjustmentType"])


def _observed(read: Read) -> Iterator[tuple[str, str]]:
    name = read.name
    if name in LEGACY:
        yield f"{name}_data", "array"
        for one in read.passes:
            yield "legacy_first_page", f"{name}: 1"
            yield f"{name}_end", "hasNextPage false" if name == "customers" else "empty page"
            if len(one.places) > len(one.pages[0].rows):
                yield "legacy_limit", f"{name}: honoured"
    for row in read.rows.values():
        yield from (
            (f"{name}: field not in the interface", one)
            for one in UNKNOWN
            if one in row and name != "orders"
        )
        for document in row.get("documents") or ():
            if "vat" in document:
                yield "customers__documents: field not in the interface", "vat"
    if name in read.of.night.refused:
        yield "missing_scope", "status 403, code FORBIDDEN"
    if name != "orders" or read.is_failed:
        return
    yield "order_key", "id"
    if read.is_whole:
        is_last = "listed" if _is_newest_last(read) else "not listed"
        yield "order_sequence", f"new orders are {is_last} last"
    else:
        yield "cursor_reuse", "continues"
    yield "orders__lines: path of the field", '["lines"]'
    for table in read.known.tables:
        columns = columns_of(read.known, table) + ["id"] * (table == "orders")
        for column in columns:
            path = column.replace("created_at", "createdAt").split("__")
            yield f"{table}.{column}: path of the field", path_of(tuple(path))
            yield "orders: field found, not shown by the interface", f"{table}.{column}"


TRUTH: dict[str, Callable[[Pulls], list[Row]]] = {
    "ops.coverage": coverage,
    "ops.quarantine": quarantine,
    "ops.held_lists": held_lists,
    "ops.runs": runs,
    "ops.warehouse": warehouse,
    "ops.order_cursor": order_cursor,
    "ops.control_totals": control_totals,
    "ops.column_values": column_values,
    "ops.field_kinds": field_kinds,
    "ops.observations": observations,
    "ops.recent_rows": recent_rows,
    "ops.recent_shares": recent_shares,
    **{
        f"raw.{table}": raw_table(table.partition("__")[0], table)
        for table in (
            "customers", "customers__documents", "promotions", "price_lists", "orders", "orders__lines",
        )
    },
}  # fmt: skip
