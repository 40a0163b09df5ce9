"""What a ledger says of its plans, and its copy in the warehouse, is what plain Python finds in its rows.

Each thing is there at least twice: two plans of a file, two refusals, a field that two plans have set, two hosts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import duckdb
import pytest

from orderbridge.pipelines.ledger.push_log import update_push_log
from orderbridge.pipelines.ledger.store import Ledger

Row = dict[str, Any]
HOSTS = ("one.example", "two.example", "three.example")
FINAL = ("confirmed", "rejected", "abandoned")
SENT = ("confirmed", "in_flight", "in_doubt", "conflict")
STATES = (
    "planned",
    "in_flight",
    "confirmed",
    "confirmed",
    "rejected",
    "in_doubt",
    "conflict",
    "abandoned",
)
FIELDS = ("", "price", "stock", "price,stock", "sku,price", "erpCode", "priceIsTaxExempt")
AT = 1_780_000_000.0


def _plans(draw: random.Random) -> Iterator[Row]:
    """Several of each kind and host; some have ended, of some the last push was killed."""
    for number in range(1, 41):
        host = draw.choice(HOSTS)
        yield {
            "plan": number, "plan_id": f"plan{draw.randrange(1000)}-{number}",
            "kind": draw.choice(("customers", "variants", "variants", "subcategories")),
            "host": host, "environment": "production" if host == HOSTS[0] else "sandbox",
            "folder": f"folder{draw.randrange(99)}", "operations_sha256": "", "opened_at": AT + draw.randrange(999),
            "recorded_in": draw.randrange(60), "pushes": draw.randrange(4),
        }  # fmt: skip


def _operations(draw: random.Random, plan: Row) -> Iterator[Row]:
    is_ended = draw.random() < 0.3
    for number in range(1, draw.choice((0, 2, 12, 20)) + 1):
        state = draw.choice(FINAL if is_ended else STATES)
        is_update = plan["kind"] == "variants"
        status = draw.choice((None, 200, 201, 204, 299, 300, 409, 422))
        yield {
            "plan": plan["plan"], "id": number, "method": "PATCH" if is_update else "POST",
            "path": f"/v/{draw.randrange(8)}" if is_update else f"/{plan['kind']}",
            "fields": draw.choice(FIELDS) if is_update else "", "state": state, "attempts": draw.randrange(4),
            "status": None if state == "planned" else status, "code": draw.choice(("", "E1", "held")),
            "remote_id": draw.choice((None, str(number))),
            "doubt_at": draw.choice((None, None, AT + draw.randrange(99))),
            "updated_at": AT + draw.randrange(99_999) + draw.choice((0, 0.25)), "state_at": AT,
        }  # fmt: skip


def _confirmed(draw: random.Random, plans: list[Row]) -> Iterator[Row]:
    for host in HOSTS:
        for path in range(8):
            for field in ("price", "stock", "sku", "erpCode"):
                if draw.random() < 0.7:
                    yield {
                        "host": host, "path": f"/v/{path}", "field": field, "value": str(draw.randrange(9)),
                        "confirmed_at": AT + draw.randrange(999), "plan_id": draw.choice(plans)["plan_id"],
                        "confirmed_in": draw.randrange(60),
                    }  # fmt: skip


DRAW = random.Random(3)
PLANS = [*_plans(DRAW)]
OPERATIONS = [one for plan in PLANS for one in _operations(DRAW, plan)]
CONFIRMED = [*_confirmed(DRAW, PLANS)]
BY_PLAN = {one["plan"]: one for one in PLANS}


def of_plan(operation: Row) -> Row:
    return BY_PLAN[operation["plan"]]


def operations_of(plan: Row) -> list[Row]:
    return [one for one in OPERATIONS if one["plan"] == plan["plan"]]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    with Ledger.open(tmp_path_factory.mktemp("ledger") / "ledger.sqlite") as made:
        with made.transaction() as connection:
            for table, rows in (
                ("plans", PLANS),
                ("operations", OPERATIONS),
                ("confirmed", CONFIRMED),
            ):
                marks = ", ".join(f":{name}" for name in rows[0])
                sql = f"INSERT INTO {table} ({', '.join(rows[0])}) VALUES ({marks})"
                connection.executemany(sql, rows)
        yield made


def instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def log() -> list[tuple[Any, ...]]:
    return [
        (of_plan(one)["plan_id"], str(one["id"]), of_plan(one)["kind"], one["method"], one["path"], one["state"],
         one["status"], one["attempts"], instant(one["updated_at"]))
        for one in OPERATIONS
    ]  # fmt: skip


def open_plans() -> list[tuple[Any, ...]]:
    found = []
    for plan in PLANS:
        states = Counter(one["state"] for one in operations_of(plan))
        doubts = [
            one["doubt_at"]
            for one in operations_of(plan)
            if one["state"] == "in_doubt" and one["doubt_at"] is not None
        ]
        if set(states) - set(FINAL):
            names = ("plan_id", "kind", "host", "environment", "folder", "opened_at")
            found.append((*(plan[name] for name in names), states, max(doubts, default=None)))
    return found


def fields_of(operation: Row) -> list[str]:
    return operation["fields"].split(",") if operation["fields"] else []


def confirmed(host: str) -> list[tuple[Any, ...]]:
    in_flight = {
        (one["path"], field)
        for one in OPERATIONS
        for field in fields_of(one)
        if of_plan(one)["host"] == host and one["state"] == "in_flight"
    }
    return [
        (one["path"], one["field"], one["value"], instant(one["confirmed_at"]), one["plan_id"])
        for one in sorted(CONFIRMED, key=lambda one: (one["path"], one["field"]))
        if one["host"] == host and (one["path"], one["field"]) not in in_flight
    ]


def doubtful(host: str) -> set[tuple[str, str]]:
    return {
        (one["path"], field)
        for one in OPERATIONS
        for field in fields_of(one)
        if of_plan(one)["host"] == host
        and (one["state"] == "in_flight" or one["doubt_at"] is not None)
    }


def superseded(plan: Row) -> dict[int, set[str]]:
    """By operation, the folders of the other plans that have confirmed one of its fields since."""
    found: dict[int, set[str]] = {}
    by_id = {one["plan_id"]: one for one in PLANS}
    for one in operations_of(plan):
        if one["state"] not in ("confirmed", "planned", "in_doubt", "abandoned"):
            continue
        for of in CONFIRMED:
            is_field = (
                of["host"] == plan["host"]
                and of["path"] == one["path"]
                and of["field"] in fields_of(one)
            )
            if (
                is_field
                and of["plan_id"] != plan["plan_id"]
                and of["confirmed_in"] > plan["recorded_in"]
            ):
                found.setdefault(one["id"], set()).add(by_id[of["plan_id"]]["folder"])
    return found


def undecided(environment: str) -> dict[str, Counter[str]]:
    """By host, the newest plan first, how many writes of each kind may have arrived."""
    found: dict[str, Counter[str]] = {}
    for plan in reversed(PLANS):
        if plan["environment"] == environment:
            count = sum(one["state"] in SENT for one in operations_of(plan))
            if count:
                found.setdefault(plan["host"], Counter())[plan["kind"]] += count
    return found


def test_what_the_ledger_says_of_its_plans_is_what_its_rows_say(ledger: Ledger) -> None:
    found = ledger.log()
    assert [*map(tuple, zip(*found.to_pydict().values(), strict=True))] == log()
    of_ledger = [
        (one.plan_id, one.kind, one.host, one.environment, one.folder, one.opened_at, Counter(one.states), one.doubt_at)
        for one in ledger.open_plans()
    ]  # fmt: skip
    assert [one[:-1] for one in of_ledger] == [one[:-1] for one in open_plans()]
    wall_time = ledger.clock.wall_time
    assert [one[-1] for one in of_ledger] == [
        one[-1] and wall_time(one[-1]) for one in open_plans()
    ]
    for plan in PLANS:
        folders = ledger.superseded(plan["plan_id"])
        assert folders.keys() == superseded(plan).keys()
        assert all(folder in superseded(plan)[number] for number, folder in folders.items())
        states = Counter(one["state"] for one in operations_of(plan))
        assert ledger.counts(plan["plan_id"]) == states


def test_what_the_ledger_says_of_a_host_is_what_its_rows_say(ledger: Ledger) -> None:
    kinds = {one["kind"] for one in PLANS}
    for host in HOSTS:
        found = ledger.confirmed(host)
        assert [*map(tuple, zip(*found.to_pydict().values(), strict=True))] == confirmed(host)
        assert ledger.doubtful(host) == doubtful(host)
        for kind in kinds:
            own = [one for one in PLANS if (one["host"], one["kind"]) == (host, kind)]
            sent = [
                one["updated_at"]
                for plan in own
                for one in operations_of(plan)
                if one["state"] == "confirmed"
            ]
            for at in (AT, *sent):
                assert ledger.sent_since(host, kind, at) == sum(one > at for one in sent)
            pushed = [
                (one["plan_id"], one["folder"])
                for one in reversed(own)
                if any(of["state"] == "confirmed" for of in operations_of(one))
            ]
            assert ledger.pushed_plans(host, kind) == pushed
            killed = {one["plan_id"]: one["folder"] for one in own if one["pushes"] % 2 == 1}
            assert ledger.killed_pushes(host, kind) == killed
    for environment in ("production", "sandbox"):
        hosts = ledger.undecided_hosts("unknown.example", environment)
        assert [*hosts] == [*undecided(environment)]
        assert hosts == undecided(environment)


def _observed(one: Row) -> Iterator[tuple[str, str]]:
    """What the response to an operation shows of what the interface leaves open."""
    kind, status = of_plan(one)["kind"], one["status"]
    is_create = one["method"] == "POST"
    if status is None:
        return
    if one["state"] == "confirmed" and 200 <= status <= 299:
        yield "created_status" if is_create else "no_content_status", str(status)
        if is_create:
            yield "created_body", f"{kind}: {'an' if one['remote_id'] else 'no'} id in it"
    if one["state"] == "rejected":
        yield "legacy_error_status", f"{kind}: status {status}, code {one['code'] or 'none'}"
    if kind == "subcategories" and one["state"] in ("confirmed", "rejected"):
        is_enough = one["state"] == "confirmed"
        yield (
            "subcategory_required",
            "what was sent was enough" if is_enough else f"status {status}",
        )
    for name in {"price", "stock"} & {*fields_of(one)}:
        if one["state"] == "confirmed":
            yield f"{name}_semantics", "confirmed; whether it was set or added cannot be read back"


def test_the_copy_has_each_operation_and_what_was_first_and_last_seen(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER__PATH", str(ledger.path))
    with duckdb.connect() as build:
        build.execute("SET TimeZone = 'UTC'")
        assert update_push_log(build) is None
        copied = build.execute("FROM ops.push_log").fetchall()
        observed = build.execute("FROM ops.observations").fetchall()
    assert Counter(copied) == Counter(log())
    seen: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for one in OPERATIONS:
        for what in _observed(one):
            seen.setdefault(what, []).append((one["updated_at"], of_plan(one)["plan_id"]))
    expected = {
        (*what, min(times)[1], instant(min(times)[0]), max(times)[1], instant(max(times)[0]))
        for what, times in seen.items()
    }
    assert {*observed} == expected
