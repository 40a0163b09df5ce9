from __future__ import annotations

import hashlib
import json
import sqlite3
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from pipelines.ledger import schema
from pipelines.ledger.keys import body_hash, key_hashes, salted
from pipelines.ledger.model import PREVIOUS_STATES, State, StateChange
from pipelines.ledger.store import Ledger, LedgerError
from pipelines.plan.model import Plan, PlannedOperation
from pipelines.push.eligibility import PushRules, UnsettledUpdates
from pipelines.push.plan_ledger import PlanLedger
from pipelines.push.run import new_operations
from sources.errors import UsageError
from tests.pipelines.push.plans import customer, patch, subcategory, warehouse, write_plan

VARIANT = "/products/1/variants/7"
STATES: tuple[State, ...] = get_args(State)
HOST = "http://127.0.0.1:9"
ALLOWED = {
    ("planned", "in_flight"), ("planned", "abandoned"),
    ("in_flight", "planned"), ("in_flight", "confirmed"), ("in_flight", "rejected"), ("in_flight", "in_doubt"),
    ("in_doubt", "in_flight"), ("in_doubt", "confirmed"), ("in_doubt", "planned"), ("in_doubt", "conflict"),
    ("in_doubt", "abandoned"),
    ("conflict", "confirmed"), ("conflict", "planned"), ("conflict", "abandoned"),
    ("abandoned", "planned"), ("abandoned", "confirmed"),
}  # fmt: skip
WAY: dict[State, tuple[State, ...]] = {
    "planned": (),
    "in_flight": ("in_flight",),
    "confirmed": ("in_flight", "confirmed"),
    "rejected": ("in_flight", "rejected"),
    "in_doubt": ("in_flight", "in_doubt"),
    "conflict": ("in_flight", "in_doubt", "conflict"),
    "abandoned": ("in_flight", "in_doubt", "abandoned"),
}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.sqlite") as opened:
        yield opened


def book_of(
    ledger: Ledger, folder: Path, operations: list[PlannedOperation], kind: str = "customers", at: float = 1.0
) -> PlanLedger:
    plan = Plan(write_plan(folder, HOST, operations, kind))  # type: ignore[arg-type]
    return PlanLedger.record(ledger, plan, new_operations(plan), at)


def lead(book: PlanLedger, number: int, *states: State, at: float = 2.0, **last: Any) -> None:
    for state in states:
        more = dict(last) if state == states[-1] else {}
        if values := more.get("values"):  # of the only variant here
            more["values"] = {(VARIANT, field): value for field, value in values.items()}
        doubt = {"doubt_at": at} if state == "in_doubt" else {}
        book.commit([StateChange(number, state, **doubt, **more)], at)  # type: ignore[arg-type]


@pytest.mark.parametrize(("before", "after"), list(product(STATES, STATES)))
def test_only_the_changes_of_the_table_are_made(ledger: Ledger, tmp_path: Path, before: State, after: State) -> None:
    book = book_of(ledger, tmp_path / "plan", [customer(1)])
    lead(book, 1, *WAY[before])
    if (before, after) in ALLOWED:
        lead(book, 1, after)
        assert book.counts() == {after: 1}
    else:
        with pytest.raises(LedgerError):
            lead(book, 1, after)
        assert book.counts() == {before: 1}
    assert (before in PREVIOUS_STATES[after]) == ((before, after) in ALLOWED)


def test_of_a_batch_with_one_change_that_must_not_be_nothing_is_kept(ledger: Ledger, tmp_path: Path) -> None:
    book = book_of(ledger, tmp_path / "plan", [customer(1), customer(2)])
    with pytest.raises(LedgerError):
        book.commit([StateChange(1, "in_flight"), StateChange(2, "in_flight"), StateChange(2, "conflict")], 2.0)
    assert book.counts() == {"planned": 2}


def test_a_full_disk_is_named_and_nothing_is_kept(ledger: Ledger, tmp_path: Path) -> None:
    book = book_of(ledger, tmp_path / "plan", [customer(1)])
    (pages,) = ledger.connection.execute("PRAGMA page_count").fetchone()
    ledger.connection.execute(f"PRAGMA max_page_count = {pages}")
    words = "Zoë" * 10_000
    with pytest.raises(UsageError, match="no space left on the disk") as raised:
        book.commit([StateChange(1, "in_flight"), StateChange(1, "rejected", words=words)], 2.0)
    assert "Zoë" not in str(raised.value)
    assert book.counts() == {"planned": 1}


def test_a_change_that_the_tables_do_not_allow_is_a_bug_and_no_damaged_file(ledger: Ledger) -> None:
    with pytest.raises(sqlite3.IntegrityError), ledger.transaction() as connection:
        connection.execute("UPDATE ledger SET commits = NULL")


def test_a_plan_with_the_id_of_another_is_a_bug(ledger: Ledger, tmp_path: Path) -> None:
    plan, other = (Plan(write_plan(tmp_path / name, HOST, [customer(n)])) for n, name in enumerate("ab", 1))
    book = PlanLedger.record(ledger, plan, new_operations(plan), 1.0)
    other.manifest = msgspec.structs.replace(other.manifest, plan_id=book.plan_id)
    with pytest.raises(LedgerError, match="a different plan with the id"):
        PlanLedger.record(ledger, other, new_operations(other), 2.0)


def test_operations_are_recorded_once(ledger: Ledger, tmp_path: Path) -> None:
    plan = Plan(write_plan(tmp_path / "plan", HOST, [customer(1)]))
    lead(PlanLedger.record(ledger, plan, new_operations(plan), 1.0), 1, "in_flight", "confirmed")
    assert PlanLedger.record(ledger, plan, new_operations(plan), 5.0).counts() == {"confirmed": 1}
    assert [row.attempts for row in PlanLedger(ledger, plan.manifest.plan_id).rows()] == [1]
    moved = Plan(plan.folder.rename(tmp_path / "moved"))
    assert PlanLedger.record(ledger, moved, new_operations(moved), 6.0).folder == str(tmp_path / "moved")


def test_a_killed_push_leaves_doubts_no_older_than_what_it_can_have_sent(ledger: Ledger, tmp_path: Path) -> None:
    book = book_of(ledger, tmp_path / "plan", [customer(1), customer(2)])
    lead(book, 1, "in_flight", at=100.0)
    lead(book, 2, "in_flight", at=990.0)
    assert book.recover(120.0, 1000.0) == 2
    assert [row.doubt_at for row in book.rows("in_doubt")] == [220.0, 1000.0]


def test_a_doubt_stays_when_the_operation_is_sent_again_unless_it_surely_did_not_happen(
    ledger: Ledger, tmp_path: Path
) -> None:
    book = book_of(ledger, tmp_path / "plan", [patch(1, 1), patch(2, 2)], "variants")
    for number in (1, 2):
        lead(book, number, "in_flight", "in_doubt", at=5.0)
        lead(book, number, "in_flight", clear=number == 2)
        lead(book, number, "confirmed")
    assert [row.doubt_at for row in book.rows()] == [5.0, None]
    assert [(u.id, u.is_open) for u in book.unsettled(since=4.0)] == [(1, False)]
    assert book.unsettled(since=6.0) == []


def test_an_attempt_in_flight_has_nothing_of_the_response_to_the_one_before(ledger: Ledger, tmp_path: Path) -> None:
    book = book_of(ledger, tmp_path / "plan", [patch(1, 1)], "variants")
    lead(book, 1, "in_flight", "in_doubt", status=502, code="BAD", request_id="r-1", words="bad gateway")
    lead(book, 1, "in_flight")
    (row,) = book.rows()
    assert (row.status, row.code, row.request_id, row.words, row.attempts) == (None, "", "", "", 2)


def claims(book: PlanLedger, *times: float) -> dict[int, tuple[str, State]]:
    """Folder and state of the first claim on each operation's record."""
    return {number: (others[0].folder, others[0].state) for number, others in book.claimed(*times).items()}


def test_updates_given_up_or_of_a_killed_push_and_of_this_host_alone_may_still_arrive(
    ledger: Ledger, tmp_path: Path
) -> None:
    book = book_of(ledger, tmp_path / "a", [patch(1, 7)], "variants")
    killed = book_of(ledger, tmp_path / "b", [patch(1, 7), patch(2, 7)], "variants")
    elsewhere = Plan(write_plan(tmp_path / "c", "http://127.0.0.1:8", [patch(1, 7)], "variants"))
    lead(killed, 1, "in_flight", "in_doubt", "abandoned")
    lead(killed, 2, "in_flight")
    lead(PlanLedger.record(ledger, elsewhere, new_operations(elsewhere), 1.0), 1, "in_flight")
    found = sorted((u.plan_id, u.id, u.is_open) for u in book.unsettled(since=0.0))
    assert found == [(killed.plan_id, 1, False), (killed.plan_id, 2, True)]


@pytest.mark.parametrize(
    ("states", "blocks"),
    [
        ((), False),
        (("in_flight",), True),
        (("in_flight", "in_doubt"), True),
        (("in_flight", "in_doubt", "conflict"), True),
        (("in_flight", "confirmed"), True),
        (("in_flight", "rejected"), False),
        (("in_flight", "in_doubt", "abandoned"), True),
    ],
)
@pytest.mark.parametrize("shared", ["erpCode", "email"])
def test_a_key_that_another_plan_may_send_is_taken(
    ledger: Ledger, tmp_path: Path, states: tuple[State, ...], blocks: bool, shared: str
) -> None:
    same = {"erpCode": "C00001"} if shared == "erpCode" else {"email": " ANA1@example.test"}
    other = book_of(ledger, tmp_path / "a", [customer(1)])
    mine = book_of(ledger, tmp_path / "b", [customer(5, password="stored", **same)])
    lead(other, 1, *states)
    assert claims(mine, 0.0, 0.0) == ({5: (str(tmp_path / "a"), states[-1])} if blocks else {})


def test_a_key_given_up_long_ago_is_free(ledger: Ledger, tmp_path: Path) -> None:
    other = book_of(ledger, tmp_path / "a", [customer(1)])
    mine = book_of(ledger, tmp_path / "b", [customer(1, phone="1")])
    lead(other, 1, "in_flight", "in_doubt", "abandoned", at=50.0)
    assert mine.claimed(49.0, 0.0)
    assert not mine.claimed(51.0, 0.0)


def test_a_customer_confirmed_long_ago_is_left_to_the_list(ledger: Ledger, tmp_path: Path) -> None:
    other = book_of(ledger, tmp_path / "a", [customer(1)])
    mine = book_of(ledger, tmp_path / "b", [customer(1, phone="1")])
    lead(other, 1, "in_flight", "confirmed", at=50.0)
    assert claims(mine, 0.0, 49.0) == {1: (str(tmp_path / "a"), "confirmed")}
    assert claims(mine, 0.0, 50.0) == {}


def test_a_later_doubt_counts_and_the_id_that_a_conflict_found_is_kept(ledger: Ledger, tmp_path: Path) -> None:
    book = book_of(ledger, tmp_path / "plan", [customer(1)])
    lead(book, 1, "in_flight", "in_doubt", at=5.0)
    lead(book, 1, "in_flight", "in_doubt", at=9.0)
    lead(book, 1, "conflict", remote_id="77")
    lead(book, 1, "confirmed")
    assert [(row.doubt_at, row.remote_id) for row in book.rows()] == [(9.0, "77")]


def test_of_two_plans_with_a_key_the_one_that_has_not_ended_is_named(ledger: Ledger, tmp_path: Path) -> None:
    confirmed, doubted, mine = (book_of(ledger, tmp_path / name, [customer(1, phone=name)]) for name in "abc")
    lead(doubted, 1, "in_flight", "in_doubt")
    lead(confirmed, 1, "in_flight", "confirmed")
    assert claims(mine, 0.0, 0.0) == {1: (str(tmp_path / "b"), "in_doubt")}


def test_what_another_host_has_is_not_taken_here(ledger: Ledger, tmp_path: Path) -> None:
    elsewhere = Plan(write_plan(tmp_path / "a", "http://127.0.0.1:8", [warehouse(1)], "warehouses"))
    lead(PlanLedger.record(ledger, elsewhere, new_operations(elsewhere), 1.0), 1, "in_flight", "confirmed")
    assert claims(book_of(ledger, tmp_path / "b", [warehouse(1)], "warehouses"), 0.0, 0.0) == {}


def test_a_key_twice_in_one_plan_is_the_first_ones(ledger: Ledger, tmp_path: Path) -> None:
    book = book_of(ledger, tmp_path / "a", [customer(1), customer(2, email="ana1@example.test")])
    assert claims(book, 0.0, 0.0) == {2: (str(tmp_path / "a"), "planned")}
    lead(book, 1, "in_flight", "rejected")
    assert claims(book, 0.0, 0.0) == {}


def test_confirmed_has_what_was_last_confirmed_of_each_field(ledger: Ledger, tmp_path: Path) -> None:
    book = book_of(ledger, tmp_path / "a", [patch(1, 7, price=1.5, sku="A"), patch(2, 7, price=2)], "variants")
    lead(book, 1, "in_flight", "confirmed", values={"price": "1.5", "sku": '"A"'}, at=10.0)
    lead(book, 2, "in_flight", "confirmed", values={"price": "2"}, at=20.0)
    assert ledger.confirmed(HOST).to_pylist() == [
        {
            "path": VARIANT,
            "field": field,
            "value": value,
            "confirmed_at": datetime.fromtimestamp(at, UTC),
            "plan_id": book.plan_id,
        }
        for field, value, at in (("price", "2", 20.0), ("sku", '"A"', 10.0))
    ]
    assert ledger.confirmed("http://127.0.0.1:8").num_rows == 0


@pytest.mark.parametrize("way", [("in_flight",), ("in_flight", "in_doubt"), ("in_flight", "in_doubt", "abandoned")])
def test_a_field_whose_last_write_is_in_the_air_does_not_count_as_confirmed(
    ledger: Ledger, tmp_path: Path, way: tuple[State, ...]
) -> None:
    book = book_of(ledger, tmp_path / "a", [patch(1, 7, price=1, sku="A"), patch(2, 7, price=2)], "variants")
    lead(book, 1, "in_flight", "confirmed", values={"price": "1", "sku": '"A"'})
    lead(book, 2, *way)
    assert ledger.confirmed(HOST)["field"].to_pylist() == ["sku"]


@pytest.mark.parametrize("way", [("in_flight", "rejected"), ("in_flight", "planned")])
def test_a_field_whose_last_write_surely_did_not_happen_stays_confirmed(
    ledger: Ledger, tmp_path: Path, way: tuple[State, ...]
) -> None:
    book = book_of(ledger, tmp_path / "a", [patch(1, 7, price=1), patch(2, 7, price=2)], "variants")
    lead(book, 1, "in_flight", "confirmed", values={"price": "1"})
    lead(book, 2, *way)
    assert ledger.confirmed(HOST)["value"].to_pylist() == ["1"]


def test_a_doubt_about_a_field_is_that_of_its_host_and_outlives_its_confirmation(
    ledger: Ledger, tmp_path: Path
) -> None:
    book = book_of(ledger, tmp_path / "a", [patch(n, n, sku="A", weight=1) for n in (5, 6, 7)], "variants")
    lead(book, 5, "in_flight")
    lead(book, 6, "in_flight", "in_doubt")
    lead(book, 6, "in_flight", "confirmed")
    lead(book, 7, "in_flight", "confirmed", values={"sku": '"A"'})
    host = "http://127.0.0.1:8"
    plan = Plan(write_plan(tmp_path / "b", host, [patch(1, 7, sku="B")], "variants"))
    lead(PlanLedger.record(ledger, plan, new_operations(plan), 1.0), 1, "in_flight")
    assert ledger.doubtful(HOST) == {
        (f"/products/1/variants/{variant}", field) for variant in "56" for field in ("sku", "weight")
    }
    assert ledger.doubtful(host) == {(VARIANT, "sku")}
    assert ledger.confirmed(HOST)["value"].to_pylist() == ['"A"']


def test_a_doubt_is_over_where_its_own_field_was_set_since_and_no_other(ledger: Ledger, tmp_path: Path) -> None:
    doubted = book_of(ledger, tmp_path / "a", [patch(1, 7, weight=1)], "variants")
    lead(doubted, 1, "in_flight", "in_doubt")
    for name, fields, overwritten in (("b", {"sku": "B"}, set()), ("c", {"weight": 2}, {1})):
        book = book_of(ledger, tmp_path / name, [patch(1, 7, **fields)], "variants")
        lead(book, 1, "in_flight", "confirmed", values={field: json.dumps(value) for field, value in fields.items()})
        assert doubted.overwritten() == overwritten


def test_an_earlier_plan_waits_for_the_doubt_of_a_later_one_however_old_it_is(ledger: Ledger, tmp_path: Path) -> None:
    first = book_of(ledger, tmp_path / "a", [patch(1, 7, weight=1)], "variants")
    later = book_of(ledger, tmp_path / "b", [patch(1, 7, weight=2)], "variants")
    lead(later, 1, "in_flight", "in_doubt", at=2.0)
    rules = PushRules(settle_s=0.0, resend=False)
    assert "which is later" in str(UnsettledUpdates(first, rules).conflict(patch(1, 7, weight=1)))
    lead(first, 1, "in_flight", "in_doubt", at=2.0)
    assert UnsettledUpdates(later, rules).conflict(patch(1, 7, weight=2)) is None


def test_a_field_with_an_unknown_value_is_forgotten(ledger: Ledger, tmp_path: Path) -> None:
    book = book_of(ledger, tmp_path / "a", [patch(1, 7, stock=1), patch(2, 7, stock=2)], "variants")
    lead(book, 1, "in_flight", "confirmed", values={"stock": "1"})
    lead(book, 2, "in_flight", "confirmed", values={"stock": None})
    assert ledger.confirmed(HOST).num_rows == 0


def test_a_plan_is_overtaken_where_another_has_confirmed_one_of_its_fields_since(
    ledger: Ledger, tmp_path: Path
) -> None:
    first = book_of(ledger, tmp_path / "a", [patch(1, 7, sku="A", weight=1)], "variants", at=1.0)
    lead(first, 1, "in_flight", "confirmed", values={"sku": '"A"', "weight": "1"}, at=10.0)
    other = book_of(ledger, tmp_path / "b", [patch(1, 7, order=2)], "variants", at=15.0)
    lead(other, 1, "in_flight", "confirmed", values={"order": "2"}, at=20.0)
    elsewhere = Plan(write_plan(tmp_path / "d", "http://127.0.0.1:8", [patch(1, 7, sku="B")], "variants"))
    lead(
        PlanLedger.record(ledger, elsewhere, new_operations(elsewhere), 20.0),
        1, "in_flight", "confirmed", values={"sku": '"B"'},
    )  # fmt: skip
    assert not ledger.is_superseded(first.plan_id)
    assert not first.superseded().keys() & {(VARIANT, "sku")}
    assert not other.superseded()
    third = book_of(ledger, tmp_path / "c", [patch(1, 7, weight=2)], "variants", at=25.0)
    lead(third, 1, "in_flight", "confirmed", values={"weight": "2"}, at=30.0)
    assert ledger.is_superseded(first.plan_id)
    assert not ledger.is_superseded(third.plan_id)
    assert not ledger.is_superseded("a plan of which it knows nothing")


def test_customers_created_since_are_those_confirmed_after_that_time(ledger: Ledger, tmp_path: Path) -> None:
    book = book_of(ledger, tmp_path / "a", [customer(1), customer(2), customer(3)])
    lead(book, 1, "in_flight", "confirmed", at=5.0)
    lead(book, 2, "in_flight", "rejected", at=5.0)
    assert [ledger.created_since(HOST, "customers", at) for at in (4.0, 5.0)] == [1, 0]
    assert (
        ledger.created_since(HOST, "warehouses", 4.0) == ledger.created_since("https://o.test", "customers", 4.0) == 0
    )


def test_created_has_the_bodies_that_were_confirmed(ledger: Ledger, tmp_path: Path) -> None:
    book = book_of(ledger, tmp_path / "a", [subcategory(1), subcategory(2)], "subcategories")
    lead(book, 1, "in_flight", "confirmed")
    created = ledger.created(HOST, "subcategories")
    assert len(created) == 2  # of the body, and of the name
    assert body_hash("/categories/7/subcategories", {"name": "Sub 1"}) in created
    assert body_hash("/categories/7/subcategories", {"name": "Sub 2"}) not in created
    assert len(ledger.created(HOST, "warehouses")) == 0
    assert len(ledger.created("http://127.0.0.1:8", "subcategories")) == 0


def test_a_body_is_the_same_however_its_fields_are_ordered() -> None:
    assert body_hash("/x", {"a": 1, "b": {"c": 2, "d": 3}}) == body_hash("/x", {"b": {"d": 3, "c": 2}, "a": 1})
    assert body_hash("/x", {"a": 1}) != body_hash("/y", {"a": 1})
    assert key_hashes(HOST, "email", " Ana@X.test") == key_hashes(HOST, "email", "ana@x.test")
    assert key_hashes(HOST, "erpCode", "a") != key_hashes(HOST, "erpCode", "A")
    assert key_hashes(HOST, "erpCode", "a") != key_hashes(HOST, "loginCode", "a")
    assert [len(key_hashes(HOST, "email", text)) for text in ("ana@x.test", "ana@ſhop.es", " ", "\u200b")] == [
        1,
        1,
        0,
        1,
    ]


def test_open_plans_are_those_with_operations_that_have_not_ended(ledger: Ledger, tmp_path: Path) -> None:
    done = book_of(ledger, tmp_path / "a", [warehouse(1), warehouse(2), warehouse(3)], "warehouses")
    lead(done, 1, "in_flight", "confirmed")
    lead(done, 2, "in_flight", "rejected")
    lead(done, 3, "abandoned")
    left = book_of(ledger, tmp_path / "b", [customer(1), customer(2), customer(3)])
    lead(left, 1, "in_flight", "in_doubt", at=7.0)
    lead(left, 2, "in_flight", "rejected")
    (found,) = ledger.open_plans()
    assert (found.plan_id, found.kind, found.folder) == (left.plan_id, "customers", str(tmp_path / "b"))
    assert (dict(found.states), found.doubt_at) == ({"in_doubt": 1, "rejected": 1, "planned": 1}, 7.0)


def test_the_log_has_every_operation_and_no_body(ledger: Ledger, tmp_path: Path) -> None:
    book = book_of(ledger, tmp_path / "a", [warehouse(1)], "warehouses")
    lead(book, 1, "in_flight", "confirmed", status=201, at=1.5)
    assert ledger.log().to_pylist() == [
        {
            "plan_id": book.plan_id,
            "operation_id": "1",
            "kind": "warehouses",
            "method": "POST",
            "path": "/logistics/warehouses",
            "state": "confirmed",
            "status": 201,
            "attempts": 1,
            "updated_at": datetime.fromtimestamp(1.5, UTC),
        }
    ]


def test_the_file_is_for_its_owner_and_holds_nothing_personal(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        book_of(ledger, tmp_path / "a", [customer(1, lastName="Ñandú", loginCode="LOGIN-7")])
        files = sorted(path.parent.glob("ledger.sqlite*"))
        assert len(files) == 3
        for file in files:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            content = file.read_bytes()
            for text in ("ana1@example", "C00001", "Ñandú", "LOGIN-7", "Ana"):
                assert text.encode() not in content
        assert ledger.connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert ledger.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_an_absent_ledger_reads_as_an_empty_one_and_is_not_made(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.sqlite", readonly=True) as ledger:
        assert ledger.confirmed(HOST).num_rows == 0
        assert (len(ledger.created(HOST, "warehouses")), ledger.open_plans(), ledger.log().num_rows) == (0, [], 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_ledger_whose_creation_was_interrupted_reads_as_an_empty_one(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "ledger.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.close()
    before = path.read_bytes()
    with Ledger.open(path, readonly=True) as ledger:
        assert (ledger.open_plans(), ledger.log().num_rows) == ([], 0)
    assert path.read_bytes() == before
    with Ledger.open(path) as ledger:
        assert ledger.open_plans() == []


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE bookmarks (url TEXT)")
    other.close()
    before = path.read_bytes()
    for readonly in (True, False):
        with pytest.raises(UsageError, match="is not a ledger"):
            Ledger.open(path, readonly=readonly)
    assert path.read_bytes() == before


def keys_in(ledger: Ledger) -> set[bytes]:
    return {key for (key,) in ledger.connection.execute("SELECT key FROM claims")}


def test_a_customers_email_cannot_be_guessed_from_the_keys_of_a_ledger(tmp_path: Path) -> None:
    keys = []
    for name in ("a", "b"):
        with Ledger.open(tmp_path / f"{name}.sqlite") as ledger:
            book_of(ledger, tmp_path / name, [customer(1)])
            keys.append(keys_in(ledger))
    assert [len(found) for found in keys] == [2, 2]
    assert not keys[0] & keys[1]
    assert key_hashes(HOST, "email", "ana1@example.test")[0] not in keys[0] | keys[1]


def make_older(connection: sqlite3.Connection, version: int) -> None:
    """Turns a ledger into one of version 2 to 4: values by ids; no numbers of commits and pushes, and of keys."""
    (confirmed,) = [one for one in schema._statements() if "TABLE confirmed" in one]
    connection.execute("ALTER TABLE confirmed RENAME TO newer")
    connection.execute(
        confirmed.replace("path TEXT", "product_id TEXT NOT NULL, variant_id TEXT").replace(
            "path,", "product_id, variant_id,"
        )
    )
    connection.execute(
        "INSERT INTO confirmed SELECT host, '1', '7', field, value, confirmed_at, plan_id, confirmed_in FROM newer"
    )
    connection.execute("DROP TABLE newer")
    later = {"ledger": ["commits"], "plans": ["recorded_in", "pushes"], "confirmed": ["confirmed_in"]}
    later["plans"] += ["key_version"] if version == 2 else []
    later = later if version < 4 else {}
    for table, names in later.items():
        for name in names:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
    connection.execute(f"PRAGMA user_version = {version}")


@pytest.mark.parametrize("version", [3, 4])
def test_what_an_older_ledger_has_came_before_all_that_follows_whatever_the_clock_says(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        plans = [
            book_of(ledger, tmp_path / name, [patch(1, 7, sku=name)], "variants", at=at)
            for name, at in (("a", 10.0), ("b", 20.0))
        ]
        lead(plans[1], 1, "in_flight", "confirmed", values={"sku": '"b"'}, at=30.0)
        make_older(ledger.connection, version)
    with Ledger.open(path) as ledger:
        first, second = (PlanLedger(ledger, plan.plan_id) for plan in plans)
        assert list(first.superseded()) == [(VARIANT, "sku")]
        third = book_of(ledger, tmp_path / "c", [patch(1, 7, sku="c")], "variants", at=5.0)
        assert not third.superseded()
        lead(third, 1, "in_flight", "confirmed", values={"sku": '"c"'}, at=6.0)
        assert second.superseded() == {(VARIANT, "sku"): str(tmp_path / "c")}


@pytest.mark.parametrize("readonly", [False, True])
def test_a_ledger_of_version_1_goes_on_with_its_claims(tmp_path: Path, readonly: bool) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        book = book_of(ledger, tmp_path / "a", [customer(1), customer(2)], at=5.0)
        lead(book, 1, "in_flight", "in_doubt", at=7.0)
        lead(book, 2, "in_flight", "confirmed", at=8.0)
    with sqlite3.connect(path) as old:  # as version 1 was: hashes without salt, no ledger time
        old.execute("DELETE FROM claims")
        for number in (1, 2):
            (key,) = key_hashes(HOST, "email", f"ana{number}@example.test")
            old.execute("INSERT INTO claims VALUES (?, ?, 1, ?)", [HOST, key, number])
        make_older(old, 2)
        old.execute("DROP TABLE ledger")
        old.execute("ALTER TABLE operations DROP COLUMN state_at")
        old.execute("PRAGMA user_version = 1")
    old.close()
    with Ledger.open(path, readonly=readonly) as ledger:
        assert PlanLedger(ledger, book.plan_id).counts() == {"confirmed": 1, "in_doubt": 1}
        assert key_hashes(HOST, "email", "ana1@example.test")[0] not in keys_in(ledger)
    with Ledger.open(path) as ledger:
        mine = book_of(ledger, tmp_path / "b", [customer(1), customer(2)])
        in_doubt, confirmed = ((str(tmp_path / "a"), state) for state in ("in_doubt", "confirmed"))
        assert claims(mine, 0.0, 7.5) == {1: in_doubt, 2: confirmed}
        assert claims(mine, 0.0, 8.5) == {1: in_doubt}
        assert [row.doubt_at for row in PlanLedger(ledger, book.plan_id).rows("in_doubt")] == [7.0]


OLDER_FORMS = [  # an e-mail address of version 2, one that looks like it, and whether the claim of version 2 covers it
    ("İsa@x.test", "i̇sa@x.test", True),
    ("ana@ﬁn.test", "ana@fin.test", True),
    ("ana@①.test", "ana@1.test", False),
    ("a\u200bna@x.test", "ana@x.test", False),
    ("josé@x.test", "jose\u0301@x.test", True),
]


@pytest.mark.parametrize(("older", "newer", "is_covered"), OLDER_FORMS)
@pytest.mark.parametrize("is_resumed", [False, True])
def test_claims_of_a_version_2_ledger_hold_under_the_new_rule_for_e_mails(
    tmp_path: Path, older: str, newer: str, is_covered: bool, is_resumed: bool
) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        book = book_of(ledger, tmp_path / "a", [customer(1, erpCode="", email=older)])
        lead(book, 1, "in_flight", "in_doubt")
        with ledger.transaction() as connection:  # as version 2 was: an address stripped and casefolded
            form = "\0".join((HOST, "email", older.strip().casefold()))
            key = salted(ledger.salt, hashlib.sha256(form.encode()).digest())
            connection.execute("DELETE FROM claims")
            connection.execute("INSERT INTO claims VALUES (?, ?, 1, 1)", [HOST, key])
        make_older(ledger.connection, 2)
    with Ledger.open(path) as ledger:
        if is_resumed:
            plan = Plan(tmp_path / "a")
            PlanLedger.record(ledger, plan, new_operations(plan), 3.0)
        same, similar = (
            book_of(ledger, tmp_path / name, [customer(1, erpCode="", email=email)])
            for name, email in (("b", older), ("c", newer))
        )
        claim = {1: (str(tmp_path / "a"), "in_doubt")}
        assert claims(same, 0.0, 0.0) == claim
        assert claims(similar, 0.0, 0.0) == (claim if is_resumed or is_covered else {})


def test_what_is_no_ledger_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"this is a note, and no database" * 100)
    before = path.read_bytes()
    for readonly in (True, False):
        with pytest.raises(UsageError, match="is not a ledger"):
            Ledger.open(path, readonly=readonly)
    assert path.read_bytes() == before
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(UsageError, match="another version"):
        Ledger.open(path)
