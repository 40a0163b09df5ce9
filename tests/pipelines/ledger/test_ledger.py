from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, get_args
from unittest import mock

import msgspec
import pytest

from orderbridge.pipelines.ledger import clock
from orderbridge.pipelines.ledger.clock import ClockReading, LedgerClock, elapsed_s
from orderbridge.pipelines.ledger.keys import body_hash, key_hashes, record_hash, salted
from orderbridge.pipelines.ledger.lock import ledger_lock
from orderbridge.pipelines.ledger.model import PREVIOUS_STATES, State, StateChange
from orderbridge.pipelines.ledger.store import Ledger, LedgerError
from orderbridge.pipelines.plan.model import Plan, PlannedOperation
from orderbridge.pipelines.push.eligibility import UnsettledUpdates
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.rules import PushRules
from orderbridge.sources.errors import UsageError
from tests.pipelines.push.plans import customer, patch, subcategory, warehouse, write_plan

VARIANT = "/products/1/variants/7"
STATES: tuple[State, ...] = get_args(State)
HOST = "http://127.0.0.1:9"
OTHER_HOST = "http://127.0.0.1:8"
WAY: dict[State, tuple[State, ...]] = {
    "planned": (), "in_flight": ("in_flight",), "confirmed": ("in_flight", "confirmed"),
    "rejected": ("in_flight", "rejected"), "in_doubt": ("in_flight", "in_doubt"),
    "conflict": ("in_flight", "in_doubt", "conflict"), "abandoned": ("in_flight", "in_doubt", "abandoned"),
}  # fmt: skip
ALLOWED: dict[State, str] = {
    "planned": "in_flight rejected abandoned", "in_flight": "planned confirmed rejected in_doubt",
    "in_doubt": "in_flight confirmed rejected planned conflict abandoned", "conflict": "confirmed planned abandoned",
    "abandoned": "planned confirmed", "confirmed": "", "rejected": "",
}  # fmt: skip


def lead(book: PlanLedger, number: int, *states: State, at: float = 2.0, **last: Any) -> None:
    """Leads an operation through states; `last` of the last one, `values` of the only variant here."""
    if "values" in last:
        last["values"] = {(VARIANT, field): value for field, value in last["values"].items()}
    for place, state in enumerate(states, 1):
        more = last if place == len(states) else {}
        book.commit(
            [StateChange(number, state, doubt_at=at if state == "in_doubt" else None, **more)], at
        )


Record = Callable[..., PlanLedger]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.sqlite") as opened:
        yield opened


def recorded(
    ledger: Ledger, folder: Path, *operations: PlannedOperation, host: str = HOST, at: float = 1.0
) -> PlanLedger:
    return PlanLedger.record(ledger, Plan(write_plan(folder, host, operations)), at)


@pytest.fixture
def record(ledger: Ledger, tmp_path: Path) -> Record:
    """Records plans in folders a, b, c …"""
    names = iter("abcdefgh")
    return lambda *operations, **more: recorded(ledger, tmp_path / next(names), *operations, **more)


def test_of_a_batch_with_one_forbidden_change_or_no_room_nothing_is_kept(
    ledger: Ledger, record: Record
) -> None:
    for before, after in product(STATES, STATES):
        assert (before in PREVIOUS_STATES[after]) == (after in ALLOWED[before].split()), (
            before,
            after,
        )
    book = record(customer(1), customer(2))
    with pytest.raises(LedgerError):
        book.commit(
            [StateChange(1, "in_flight"), StateChange(2, "in_flight"), StateChange(2, "conflict")],
            2.0,
        )
    # a bug, and no damaged file
    with (
        pytest.raises(sqlite3.IntegrityError),
        ledger.transaction() as connection,
    ):
        connection.execute("UPDATE ledger SET commits = NULL")
    (pages,) = ledger.connection.execute("PRAGMA page_count").fetchone()
    ledger.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(UsageError, match="no space left on the disk") as raised:
        book.commit(
            [StateChange(1, "in_flight"), StateChange(1, "rejected", words="Zoë" * 10_000)], 2.0
        )
    assert "Zoë" not in str(raised.value)
    assert book.counts() == {"planned": 2}


def test_a_failing_disk_is_an_error_of_the_ledger_and_a_wrong_query_a_bug(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.sqlite"
    for name, words in (
        ("SQLITE_IOERR_READ", "SQLite error SQLITE_IOERR_READ"),
        ("SQLITE_IOERR_WRITE", "a limit on the size of files is reached"),
    ):
        failed = sqlite3.OperationalError("disk I/O error")
        failed.sqlite_errorcode = getattr(sqlite3, name)
        failed.sqlite_errorname = name
        with pytest.raises(UsageError, match=words), Ledger.open(path):
            raise failed
    # not another file, which would not know what was sent
    words = "make the file and its folder writable"
    with pytest.raises(UsageError, match=words), ledger_lock(path / "ledger.sqlite"):
        pass
    with pytest.raises(sqlite3.OperationalError), Ledger.open(path) as ledger:
        ledger.connection.execute("SELECT nothing")


def test_a_plan_is_recorded_once_and_may_move_and_its_id_is_no_other_plans(
    ledger: Ledger, record: Record, tmp_path: Path
) -> None:
    lead(record(customer(1)), 1, "in_flight", "confirmed")
    moved = Plan((tmp_path / "a").rename(tmp_path / "moved"))
    book = PlanLedger.record(ledger, moved, 5.0)
    assert ([row.attempts for row in book.rows("confirmed")], book.folder) == (
        [1],
        str(tmp_path / "moved"),
    )
    other = Plan(write_plan(tmp_path / "other", HOST, [customer(2)]))
    for change in (
        {"plan_id": book.plan_id},
        {"plan_id": book.plan_id, "operations_sha256": "", "host": HOST},
    ):
        other.manifest = msgspec.structs.replace(other.manifest, **change)
        with pytest.raises(UsageError, match="was changed after the plan was pushed") as caught:
            PlanLedger.record(ledger, other, 2.0)
        assert "plan again into a new folder: orderbridge plan customers" in caught.value.hint


def test_updates_given_up_or_of_a_killed_push_to_this_host_may_still_arrive(
    record: Record,
) -> None:
    book, killed = record(patch(1, 7)), record(patch(1, 7), patch(2, 7), patch(3, 7))
    lead(killed, 1, "in_flight", "in_doubt", "abandoned")
    lead(killed, 2, "in_flight", at=100.0)
    lead(killed, 3, "in_flight", at=990.0)
    lead(record(patch(1, 7), host=OTHER_HOST), 1, "in_flight")
    expected = [(killed.plan_id, 1, False), (killed.plan_id, 2, True), (killed.plan_id, 3, True)]
    assert sorted((u.plan_id, u.id, u.is_open) for u in book.unsettled(since=0.0)) == expected
    assert killed.recover(120.0, 1000.0) == 2
    doubts = [row.doubt_at for row in killed.rows("in_doubt")]
    assert doubts == [220.0, 1000.0], "no older than what the push can have sent"
    assert sorted((u.plan_id, u.id, u.is_open) for u in book.unsettled(since=0.0)) == expected


def test_a_doubt_stays_when_sent_again_unless_it_surely_did_not_happen(
    record: Record,
) -> None:
    book = record(patch(1, 1), patch(2, 2), patch(3, 3))
    for number in (1, 2, 3):
        lead(
            book,
            number,
            "in_flight",
            "in_doubt",
            status=502,
            code="BAD",
            request_id="r-1",
            words="bad",
            at=5.0,
        )
        lead(book, number, "in_flight", clear=number == 2)
    sent = [(row.status, row.code, row.request_id, row.words, row.attempts) for row in book.rows()]
    assert sent == [(None, "", "", "", 2)] * 3, "nothing of the response before"
    for number in (1, 2):
        lead(book, number, "confirmed")
    lead(book, 3, "in_doubt", at=9.0)
    lead(book, 3, "conflict", remote_id="77")
    lead(book, 3, "confirmed")
    assert [(row.doubt_at, row.remote_id) for row in book.rows()] == [
        (5.0, None),
        (None, None),
        (9.0, "77"),
    ]
    assert [[(u.id, u.is_open) for u in book.unsettled(since)] for since in (4.0, 6.0)] == [
        [(1, False), (3, False)], [(3, False)]
    ]  # fmt: skip


def claims(book: PlanLedger, *times: float) -> dict[int, tuple[str, State]]:
    """Folder and state of the first claim on each operation's record."""
    return {
        number: (Path(others[0].folder).name, others[0].state)
        for number, others in book.claimed(*times).items()
    }


def test_a_key_that_another_plan_may_have_sent_is_taken_until_it_is_listed(
    record: Record,
) -> None:
    other = record(*map(customer, range(len(STATES))))
    same_code = record(
        *(customer(number, email=f"new{number}@example.test") for number in range(len(STATES)))
    )
    same_email = record(
        *(
            customer(n, erpCode=f"new {n}", email=f" ANA{n}@example.test")
            for n in range(len(STATES))
        )
    )
    for number, state in enumerate(STATES):
        lead(other, number, *WAY[state], at=50.0)
    taken = {
        number: ("a", state)
        for number, state in enumerate(STATES)
        if state not in ("planned", "rejected")
    }
    assert claims(same_code, 49.0, 49.0) == claims(same_email, 49.0, 49.0) == taken
    settled = {number: claim for number, claim in taken.items() if claim[1] != "abandoned"}
    assert claims(same_code, 50.0, 50.0) == settled, "a confirmed key is never sent again"
    lead(record(warehouse(1), host=OTHER_HOST), 1, "in_flight", "confirmed")
    assert claims(record(warehouse(1)), 0.0, 0.0) == {}


def test_of_plans_with_a_key_the_open_one_is_named_and_in_one_plan_the_first(
    record: Record,
) -> None:
    confirmed, doubted, mine = (record(customer(1, phone=name)) for name in "abc")
    lead(doubted, 1, "in_flight", "in_doubt")
    lead(confirmed, 1, "in_flight", "confirmed")
    assert claims(mine, 0.0, 0.0) == {1: ("b", "in_doubt")}
    twice = record(customer(3), customer(4, email="ana3@example.test"))
    assert claims(twice, 0.0, 0.0) == {4: ("d", "planned")}
    lead(twice, 3, "in_flight", "rejected")
    assert claims(twice, 0.0, 0.0) == {}


def test_confirmed_has_the_last_value_of_each_field_unless_a_later_write_may_count(
    ledger: Ledger, record: Record
) -> None:
    book = record(
        patch(1, 7, price=1.5, sku="A"),
        patch(2, 7, price=2),
        patch(3, 7, price=3),
        patch(4, 7, sku="B"),
    )
    lead(book, 1, "in_flight", "confirmed", values={"price": "1.5", "sku": '"A"'}, at=10.0)
    lead(book, 2, "in_flight", "confirmed", values={"price": "2"}, at=20.0)
    price, sku = (
        (VARIANT, name, value, datetime.fromtimestamp(at, UTC), book.plan_id)
        for name, value, at in (("price", "2", 20.0), ("sku", '"A"', 10.0))
    )

    def known() -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in ledger.confirmed(HOST).to_pylist()]

    assert (known(), ledger.confirmed(OTHER_HOST).num_rows) == ([price, sku], 0)
    lead(book, 4, "in_flight")
    assert known() == [price]
    lead(book, 4, "planned")
    assert known() == [price, sku]
    lead(book, 4, *WAY["abandoned"])
    assert known() == [price]
    lead(book, 3, "in_flight", "confirmed", values={"price": None}, at=30.0)
    assert known() == [], "it is not known"


def test_a_doubt_about_a_field_is_that_of_its_host_and_outlives_its_confirmation(
    ledger: Ledger, record: Record
) -> None:
    book = record(*(patch(n, n, sku="A", weight=1) for n in (5, 6, 7)))
    lead(book, 5, "in_flight")
    lead(book, 6, "in_flight", "in_doubt")
    lead(book, 6, "in_flight", "confirmed")
    lead(book, 7, "in_flight", "confirmed", values={"sku": '"A"'})
    lead(record(patch(1, 7, sku="B"), host=OTHER_HOST), 1, "in_flight")
    doubtful = {
        (f"/products/1/variants/{variant}", field)
        for variant in "56"
        for field in ("sku", "weight")
    }
    assert (ledger.doubtful(HOST), ledger.doubtful(OTHER_HOST)) == (doubtful, {(VARIANT, "sku")})
    assert ledger.confirmed(HOST)["value"].to_pylist() == ['"A"']


def test_a_doubt_is_over_where_its_own_field_was_set_since_and_no_other(record: Record) -> None:
    doubted = record(patch(1, 7, weight=1))
    lead(doubted, 1, "in_flight", "in_doubt")
    for fields, overwritten in (({"sku": "B"}, set()), ({"weight": 2}, {1})):
        values = {field: json.dumps(value) for field, value in fields.items()}
        lead(record(patch(1, 7, **fields)), 1, "in_flight", "confirmed", values=values)
        assert {change.id for change in doubted.overwritten()} == overwritten


def test_an_earlier_plan_waits_for_the_doubt_of_a_later_one_however_old_it_is(
    record: Record,
) -> None:
    first, later = record(patch(1, 7, weight=1)), record(patch(1, 7, weight=2))
    lead(later, 1, "in_flight", "in_doubt", at=2.0)
    rules = PushRules(settle_s=0.0, resend=False)
    assert "is later" in str(UnsettledUpdates(first, rules).conflict(patch(1, 7, weight=1)))
    lead(first, 1, "in_flight", "in_doubt", at=2.0)
    assert UnsettledUpdates(later, rules).conflict(patch(1, 7, weight=2)) is None


def test_a_plan_is_overtaken_where_another_has_confirmed_one_of_its_fields_since(
    ledger: Ledger, record: Record
) -> None:
    def push(at: float, host: str = HOST, **fields: Any) -> str:
        book = record(patch(1, 7, **fields), at=at, host=host)
        values = {name: json.dumps(value) for name, value in fields.items()}
        lead(book, 1, "in_flight", "confirmed", values=values, at=at)
        return book.plan_id

    first, other = push(10.0, sku="A", weight=1), push(20.0, order=2)
    push(20.0, OTHER_HOST, sku="B")
    assert (ledger.superseded(first), ledger.superseded(other)) == ({}, {})
    third, later = push(30.0, weight=2), record(patch(1, 7, weight=3)).plan_id
    names = (first, third, later, "a plan of which it knows nothing")
    assert [list(ledger.superseded(name)) for name in names] == [[1], [], [], []]


def test_what_was_not_sent_is_overtaken_where_an_older_plan_was_pushed_after_it(
    ledger: Ledger, record: Record
) -> None:
    old_update = record(patch(1, 7, sku="A"), at=10.0)
    old_creates = record(customer(1), customer(2), at=10.0)
    lead(old_creates, 1, "in_flight", "confirmed", at=15.0)
    update = record(patch(1, 7, sku="B"), at=20.0)
    creates = record(customer(1), customer(2), at=20.0)
    assert [ledger.overtaken(plan.plan_id) for plan in (update, creates)] == [0, 0]
    lead(old_update, 1, "in_flight", "confirmed", values={"sku": '"A"'}, at=30.0)
    lead(old_creates, 2, "in_flight", "confirmed", at=30.0)
    assert [ledger.overtaken(plan.plan_id) for plan in (update, creates)] == [1, 1]


def test_what_was_not_sent_is_overtaken_where_another_plan_has_confirmed_all_of_it(
    ledger: Ledger, record: Record
) -> None:
    updates = record(
        patch(1, 7, sku="A", weight=1), patch(2, 7, sku="A", order=1), patch(3, 7, stock=1)
    )
    creates = record(customer(1), customer(2), customer(3))
    newer_updates = record(patch(1, 7, sku="B", weight=2, stock=2), patch(2, 7, sku="C"))
    newer_creates = record(*map(customer, range(1, 5)))
    plans = (updates, creates, newer_updates, newer_creates)
    assert [ledger.overtaken(plan.plan_id) for plan in plans] == [0, 0, 0, 0]
    values = {"sku": '"B"', "weight": "2", "stock": None}
    lead(newer_updates, 1, "in_flight", "confirmed", values=values)
    lead(creates, 1, "in_flight", "confirmed")
    lead(newer_creates, 2, "in_flight", "confirmed")
    lead(newer_creates, 3, "in_flight", "in_doubt")
    assert [ledger.overtaken(plan.plan_id) for plan in plans] == [1, 1, 0, 1]


def test_what_was_created_is_known_by_its_body_and_its_name(ledger: Ledger, record: Record) -> None:
    book = record(subcategory(1, order=1), subcategory(2))
    lead(book, 1, "in_flight", "confirmed", at=5.0)
    lead(book, 2, "in_flight", "rejected", at=5.0)
    path, kind = "/categories/7/subcategories", "subcategories"
    keys = (
        body_hash(path, {"order": 1, "name": "Sub 1"}), body_hash(f"{path} name", {"name": "Sub 1"}),
        body_hash(path, {"name": "Sub 2"}),
    )  # fmt: skip
    assert [ledger.is_created(HOST, kind, key) for key in keys] == [True, True, False]
    assert not any(
        ledger.is_created(*place, keys[0]) for place in ((HOST, "warehouses"), (OTHER_HOST, kind))
    )
    asked = (
        (HOST, kind, 4.0),
        (HOST, kind, 5.0),
        (HOST, "customers", 4.0),
        (OTHER_HOST, kind, 4.0),
    )
    assert [ledger.sent_since(*given) for given in asked] == [1, 0, 0, 0]


def test_a_body_or_key_is_the_same_however_it_is_written() -> None:
    assert body_hash("/x", {"a": 1, "b": {"c": 2, "d": 3}}) == body_hash(
        "/x", {"b": {"d": 3, "c": 2}, "a": 1}
    )
    assert body_hash("/x", {"a": 1}) != body_hash("/y", {"a": 1})
    assert key_hashes(HOST, "email", " Ana@X.test") == key_hashes(HOST, "email", "ana@x.test")
    others = (
        (HOST, "erpCode", "a"),
        (HOST, "erpCode", "A"),
        (HOST, "loginCode", "a"),
        (OTHER_HOST, "erpCode", "a"),
    )
    assert len({key_hashes(*key) for key in others}) == 4
    assert [len(key_hashes(HOST, "email", email)) for email in (" ", "ana@x.pe")] == [0, 1]
    for email, older in (
        ("ANA\u200b@x.pe", "ana\u200b@x.pe"),
        ("Jose\u0301@x.pe", "jose\u0301@x.pe"),
    ):
        claimed = hashlib.sha256("\0".join((HOST, "email", older)).encode()).digest()
        assert claimed in key_hashes(HOST, "email", email), (
            "a claim with the oldest form of an address still counts"
        )


def test_open_plans_are_those_with_operations_that_have_not_ended(
    ledger: Ledger, record: Record
) -> None:
    done, left = (
        record(warehouse(1), warehouse(2), warehouse(3)),
        record(*map(customer, range(1, 6))),
    )
    lead(done, 1, "in_flight", "confirmed")
    lead(done, 2, "in_flight", "rejected")
    lead(done, 3, "abandoned")
    lead(left, 4, "in_flight", "in_doubt", at=5.0)
    lead(left, 1, "in_flight", "in_doubt", at=7.0)
    lead(left, 2, "in_flight", "rejected")
    lead(left, 5, "in_flight", "in_doubt", "confirmed", at=11.0)
    lead(record(customer(7)), 7, *WAY["conflict"])
    found, disputed = ledger.open_plans()
    assert dict(disputed.states) == {"conflict": 1}
    assert (found.plan_id, found.kind, Path(found.folder).name) == (left.plan_id, "customers", "b")
    assert (dict(found.states), found.doubt_at) == (
        {"in_doubt": 2, "rejected": 1, "planned": 1, "confirmed": 1},
        7.0,
    )


def test_the_file_is_private_without_personal_data_and_keys_cannot_be_guessed(
    tmp_path: Path,
) -> None:
    keys, texts = [], ("ana1@example", "C00001", "Ñandú", "LOGIN-7", "Ana")
    for name in "ab":
        with Ledger.open(tmp_path / f"{name}.sqlite") as ledger:
            recorded(ledger, tmp_path / name, customer(1, lastName="Ñandú", loginCode="LOGIN-7"))
            written = sorted(tmp_path.glob(f"{name}.sqlite*"))
            assert [stat.S_IMODE(file.stat().st_mode) for file in written] == [0o600] * 3
            content = b"".join(file.read_bytes() for file in written)
            assert not [text for text in texts if text.encode() in content]
            pragmas = [
                ledger.connection.execute(f"PRAGMA {one}").fetchone()
                for one in ("synchronous", "journal_mode")
            ]
            assert pragmas == [(2,), ("wal",)]
            keys.append({key for (key,) in ledger.connection.execute("SELECT key FROM claims")})
    assert [len(found) for found in keys] == [5, 5], "two codes are kept in any spelling as well"
    assert not keys[0] & (keys[1] | {*key_hashes(HOST, "email", "ana1@example.test")})


@pytest.mark.parametrize("journal", ["", "delete", "wal"])
def test_a_ledger_that_is_absent_or_was_never_finished_reads_as_an_empty_one(
    tmp_path: Path, journal: str
) -> None:
    path = tmp_path / "ledger.sqlite"
    if journal:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA journal_mode = {journal}")
    before = path.read_bytes() if journal else None
    with Ledger.open(path, readonly=True) as ledger:
        assert (ledger.confirmed(HOST).num_rows, ledger.open_plans(), ledger.log().num_rows) == (
            0,
            [],
            0,
        )
    assert (path.read_bytes() if path.exists() else None) == before
    with Ledger.open(path) as ledger:
        assert ledger.open_plans() == []


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("CREATE TABLE a (b)", "is not a ledger"),
        ("", "is not a ledger"),
        ("PRAGMA user_version = 99", "written by a newer orderbridge"),
        ("PRAGMA user_version = 2", "written by orderbridge 0.1 .* Run `orderbridge status` of"),
    ],
)
def test_what_is_no_ledger_of_a_known_version_is_refused_and_left_alone(
    tmp_path: Path, script: str, words: str
) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"" if script else b"this is a note, and no database" * 100)
    if script:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(script)
    before = path.read_bytes()
    for readonly in (True, False):
        with pytest.raises(UsageError) as raised:
            Ledger.open(path, readonly=readonly)
        assert re.search(words, str(raised.value).replace("\n", " "))
    assert path.read_bytes() == before


COUNTS = ("ledger.commits", "plans.recorded_in", "plans.pushes", "confirmed.confirmed_in")


def make_older(connection: sqlite3.Connection, version: int, *lacking: str) -> None:
    """Turns a ledger into an older one: values by ids, without some columns."""
    tables = (
        files("orderbridge.pipelines.ledger").joinpath("tables.sql").read_text("utf-8").split(";")
    )
    (confirmed,) = [table for table in tables if "TABLE confirmed" in table]
    ids = confirmed.replace("path TEXT", "product_id TEXT NOT NULL, variant_id TEXT")
    connection.executescript(
        f"ALTER TABLE confirmed RENAME TO newer; {ids.replace('path,', 'product_id, variant_id,')};"
        " INSERT INTO confirmed SELECT host, '1', '7', field, value, confirmed_at, plan_id, confirmed_in FROM newer;"
        " DROP TABLE newer; ALTER TABLE plans ADD COLUMN key_version INTEGER NOT NULL DEFAULT 2;"
        f" PRAGMA user_version = {version}"
    )
    for column in lacking:
        connection.execute("ALTER TABLE {} DROP COLUMN {}".format(*column.split(".")))


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize(("version", "lacking"), [(3, COUNTS), (4, ("plans.pushes",)), (4, ())])
def test_rows_of_an_older_ledger_come_first_whatever_the_clock_says(
    ledger: Ledger,
    record: Record,
    tmp_path: Path,
    readonly: bool,
    version: int,
    lacking: tuple[str, ...],
) -> None:
    plans = [record(patch(1, 7, sku=name), at=at) for name, at in (("a", 10.0), ("b", 20.0))]
    lead(plans[1], 1, "in_flight", "confirmed", values={"sku": '"b"'}, at=30.0)
    later = record(patch(1, 7, sku="later"), at=40.0)
    make_older(ledger.connection, version, *lacking)
    with Ledger.open(tmp_path / "ledger.sqlite", readonly=readonly) as opened:
        assert opened.confirmed(HOST).select(["path", "value"]).to_pylist() == [
            {"path": VARIANT, "value": '"b"'}
        ]
        tables = {
            name
            for (name,) in opened.connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            )
        }
        current = {
            "ledger",
            "plans",
            "operations",
            "claims",
            "confirmed",
            "home",
            "hosts",
            "keys",
            "settling",
        }
        assert tables == current, "nothing of the older version"
    with Ledger.open(tmp_path / "ledger.sqlite") as opened:
        assert list(opened.superseded(plans[0].plan_id)) == [1]
        assert not opened.superseded(later.plan_id)
        third = recorded(opened, tmp_path / "z", patch(1, 7, sku="c"), at=5.0)
        assert not opened.superseded(third.plan_id)
        lead(third, 1, "in_flight", "confirmed", values={"sku": '"c"'}, at=6.0)
        assert opened.superseded(plans[1].plan_id) == {1: str(tmp_path / "z")}


@pytest.mark.parametrize("change", ["", "moved", "changed", "removed"])
def test_a_create_of_an_older_ledger_is_known_by_name_if_its_plan_is_unchanged(
    ledger: Ledger,
    record: Record,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    book = record(subcategory(1))
    lead(book, 1, "in_flight", "confirmed")
    operations = tmp_path / "a" / "operations.jsonl"
    body = body_hash("/categories/7/subcategories", {"name": "Sub 1"})
    ledger.connection.execute("DELETE FROM claims WHERE key <> ?", [salted(ledger.salt, body)])
    make_older(ledger.connection, 3, *COUNTS)
    if change == "changed":
        operations.write_bytes(operations.read_bytes() + b"\n")
    elif change == "removed":
        operations.unlink()
    elif change == "moved":
        ledger.connection.execute("UPDATE plans SET folder = '/former/a'")
    name = record_hash("/categories/7/subcategories", {"name": "Sub 1", "order": 2}, ("name",))
    with Ledger.open(tmp_path / "ledger.sqlite") as opened:
        is_unchanged = change in ("", "moved")
        assert opened.is_created(HOST, "subcategories", name) is is_unchanged
        assert opened.is_created(HOST, "subcategories", body)


def test_without_a_boot_id_of_linux_that_of_macos_is_used_and_without_any_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_process() -> ClockReading:
        clock._boot.cache_clear()
        return clock.read_clock()

    sysctl = mock.Mock(return_value="0A1B2C3D-0000-4000-8000-000000000000")
    monkeypatch.setattr(clock, "_BOOT_ID", tmp_path / "boot_id")
    monkeypatch.setattr(clock, "_system_value", sysctl)
    earlier, later = other_process(), other_process()
    assert earlier.boot_id == later.boot_id == sysctl.return_value
    assert later.uptime >= earlier.uptime > 1, "of the machine"
    assert (
        elapsed_s(earlier, later._replace(wall=later.wall + 3600, uptime=later.uptime + 3600))
        > 3599
    )
    sysctl.assert_called_with(b"kern.bootsessionuuid")
    sysctl.return_value = ""
    earlier, later = other_process(), other_process()
    assert earlier.boot_id != later.boot_id
    assert later.uptime < 1, "of the process"
    clock._boot.cache_clear()


def test_a_value_that_the_system_does_not_have_is_empty() -> None:
    assert clock._system_value(b"kern.nothing_of_this_name") == ""


BEGIN = ClockReading(1e6, "boot", 5_000.0)


def test_the_lesser_of_both_clocks_has_passed_and_time_never_goes_back() -> None:
    now, readings = 1e6, [BEGIN]
    clock = LedgerClock(lambda: readings[-1])
    for wall_s, boot, uptime_s, passed_s in (
        (100.0, "boot", 5_100.0, 100.0), (300.5, "boot", 5_300.0, 300.5), (500_000.0, "boot", 5_400.0, 400.0),
        (-100_000.0, "boot", 5_300.0, 0.0), (500_000.0, "another", 500.0, 500.0), (100.0, "another", 300.0, 100.0),
        (-100_000.0, "another", 300.0, 0.0),
    ):  # fmt: skip
        readings.append(ClockReading(1e6 + wall_s, boot, uptime_s))
        assert elapsed_s(BEGIN, readings[-1]) == passed_s
        now = max(now, 1e6 + passed_s)
        assert clock.now() == now


def test_the_time_goes_on_in_the_file_and_people_are_reported_wall_time(tmp_path: Path) -> None:
    for reading, now in (
        (BEGIN, 1e6),
        (ClockReading(1e6 + 100.0, "boot", 5_100.0), 1e6 + 100.0),
        (ClockReading(2e6, "another", 20.0), 1e6 + 120.0),  # after a restart, and set by days
    ):
        with Ledger.open(
            tmp_path / "ledger.sqlite", read=partial(ClockReading, *reading)
        ) as ledger:
            assert ledger.clock.now() == now
            assert ledger.clock.wall_time(1e6 + 1000.0) == reading.wall + 1e6 + 1000.0 - now
            with ledger.transaction():
                pass


def test_a_copy_of_a_ledger_is_refused_while_the_other_one_is_there(tmp_path: Path) -> None:
    first, second, moved = (tmp_path / name / "ledger.sqlite" for name in ("a", "b", "c"))

    def check(path: Path) -> None:
        with Ledger.open(path) as opened:
            opened.check_home()

    for path in (first, second, moved):
        path.parent.mkdir(mode=0o700)
    check(first)
    shutil.copy(first, second)
    with pytest.raises(UsageError, match=f"is a copy of {re.escape(str(first))}"):
        check(second)
    check(first)
    backup = tmp_path / "backup"
    shutil.copy(first, backup)
    backup.replace(first)
    check(first)
    shutil.copy(first, second)
    first.replace(moved)
    check(second)
    check(moved)
    shutil.copy(moved, first)
    with Ledger.open(first) as copied:
        copied.accept()
        copied.check_home()
    check(moved)


def test_a_commit_that_fails_leaves_the_ledger_the_newest(ledger: Ledger) -> None:
    ledger.accept()
    ledger.connection.execute("PRAGMA foreign_keys = ON")
    ledger.connection.execute("PRAGMA defer_foreign_keys = ON")
    of_no_plan = "INSERT INTO settling VALUES (99, 0.0)"  # which COMMIT refuses
    with pytest.raises(sqlite3.IntegrityError), ledger.transaction() as connection:
        connection.execute(of_no_plan)
    ledger.check_newest()


def test_the_folder_of_a_plan_that_cannot_be_looked_into_is_shown_as_recorded(
    ledger: Ledger, record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record(customer(1))
    folder = str(tmp_path / ("long" * 100))
    ledger.connection.execute("UPDATE plans SET folder = ?", [folder])
    with Ledger.open(tmp_path / "ledger.sqlite") as opened:
        assert [plan.folder for plan in opened.open_plans()] == [folder]
