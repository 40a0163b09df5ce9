"""A shop with a record of each list in each state, and what each command says about them.

In: a folder. Out: by list and command, the words for each state. A sandbox is written to, and read three times; each
command then works on files as they were after the second read, or after the third.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from orderbridge.pipelines.ledger.clock import ClockReading, ReadClock
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.make import PlanOptions, make_plan
from orderbridge.pipelines.plan.model import Plan, PlannedOperation
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.resolutions import Answers
from orderbridge.pipelines.push.settle import settle
from orderbridge.pipelines.push.verify import VERIFY_FILE, verify
from orderbridge.pipelines.reconcile.erp.files import ErpFiles
from orderbridge.pipelines.reconcile.reconcile import reconcile
from orderbridge.pipelines.reporting.report_data import read_report_data
from orderbridge.sandbox.rows import Rows
from orderbridge.sources.errors import HttpRejected
from orderbridge.sources.http.exchange import WriteOutcome
from tests.pipelines.bridge import Bridge, bridge, reading
from tests.pipelines.push.plans import (
    LOST,
    WAITS,
    Answering,
    Place,
    customer,
    listed,
    means,
    nobody,
    outcomes,
)
from tests.spreadsheet import spreadsheet_rows

OURS = ("known", "renamed", "moved", "deleted")
STATES = ("listed", *OURS, "gone", "refused", "lost", "older", "odd")
"""What became of a record. The first read has all but the refused one and the lost one.

- listed: nothing; somebody else has made it, with another name
- known: this program has made it
- renamed: known, and the platform has another code for it
- moved: renamed, and it has another e-mail address
- deleted: known, and absent from the second read, which is complete
- gone: listed, and absent from it
- refused: this program sent it, and the platform rejected it
- lost: this program sent it, and the answer was lost
- older: listed, and absent from the third read, which is not proven
- odd: listed, and its row in that read is refused; it has another e-mail address there
"""
LATE = ("older", "odd")
"""The states that only the third read has."""
UNPROVEN = (
    ("customers", "reconcile: ERP"),
    ("customers", "reconcile: orders"),
    ("price_lists", "plan"),
    ("price_lists", "reconcile: sources"),
    ("price_lists", "reconcile: customers"),
)
"""What commands say otherwise of all states where the lists are not proven."""
NEVER = ("refused", "lost")
"""The states of what was never listed."""
FIRST = 901
SETTLE_S = 907.0
UPTIME = 5003.0
ANSWER_S = 13.0
"""How long the platform takes to answer."""
NOT_FOUND = WriteOutcome("in_doubt", 404, error=HttpRejected("no", status=404))
INVALID = WriteOutcome("answered", 422, error=HttpRejected("no", status=422))
MOVED_ORDER = "ord_000000999"
"""The new id of the order in the state `moved`."""
Said = dict[str, str]
"""What a command says, by state."""


def copy_ledger(folder: Path, name: str, copy: str) -> None:
    """Copies a ledger within a folder. A push takes it for no copy, which it would refuse."""
    for path in folder.glob(f"{name}.sqlite*"):
        shutil.copyfile(path, path.with_name(path.name.replace(name, copy)))
    with closing(sqlite3.connect(folder / f"{copy}.sqlite")) as copied:
        copied.execute("DELETE FROM home")
        copied.commit()


def id_of(name: str, state: str) -> str:
    number = FIRST + STATES.index(state)
    return f"ord_{number:09d}" if name == "orders" else str(number)


def own_list(state: str) -> str:
    """The price list that only the customer in this state has."""
    return str(FIRST + 50 + STATES.index(state))


def create(state: str) -> PlannedOperation:
    """The create of a customer, with the number of its state."""
    keys: dict[str, Any] = {"erpCode": f"C-{state}", "email": f"{state}@x.es"}
    return customer(STATES.index(state) + 1, **keys, priceListId=int(own_list(state)))


def by_state(by_line: Mapping[str, str]) -> Said:
    """By state what is said by line of an input with a line for each."""
    return {STATES[int(line) - 2]: words for line, words in by_line.items()}


@dataclass
class Shop:
    """A shop that is being built."""

    made: Bridge
    ids: dict[str, str] = field(default_factory=dict)
    """Of the customers that are listed, by state."""
    lists: dict[str, Rows] = field(default_factory=dict)
    """The customers on the platform at a read."""
    answered_s: dict[str, float] = field(default_factory=dict)
    """When the last write of a ledger was answered."""

    def __post_init__(self) -> None:
        self.began = time.time() - 10 * ANSWER_S
        self.place = Place(self.made.platform, self.made.folder)
        self.state = self.made.platform.state
        now = datetime.now(UTC)
        self.ordered_at, self.starts, self.ends = (
            (now + timedelta(days=days)).isoformat(timespec="seconds") for days in (-3, -11, 7)
        )

    # the platform

    def open(self) -> None:
        """Adds the records of others. The own price list of a customer is made from that in its state."""
        for state in STATES:
            number = int(id_of("price_lists", state))
            price_list = {"adjustmentType": "NONE", "adjustmentValue": "0"}
            own = {"id": own_list(state), "name": own_list(state), "sourcePriceListId": str(number)}
            self.state.add("price_lists", {**own, **price_list})
            if state in NEVER:
                continue
            self.state.add(
                "price_lists", {"id": str(number), "name": f"List {state}", **price_list}
            )
            uses = {"useCount": 3, "usageLimit": 23, "isActive": True}
            dates = {"startDate": self.starts, "expirationDate": self.ends}
            self.state.add("promotions", {"id": number, "name": f"Offer {state}", **uses, **dates})
            if state not in OURS:
                sent = {**create(state).body, "firstName": "Luz"}
                del sent["notification"]
                self.state.add("customers", {"id": number, **sent})

    def order(self) -> None:
        """Adds two orders of each customer: one in its state, and one that stays."""
        for state in STATES:
            key = id_of("orders", state)
            self.state.add("orders", self._order(state, key))
            self.state.add("orders", self._order(state, f"{key}-b", "EUR"))

    def _order(self, state: str, key: str, currency: str = "USD") -> dict[str, Any]:
        """An order; that of the n-th state has a total of 2 to the power of n."""
        total = 2 ** STATES.index(state)
        line = {"position": 1, "sku": "X", "name": "X", "quantity": 1, "unitPrice": total}
        whose = {"id": int(self.customer(state)), "erpCode": f"C-{state}"}
        more = {"status": "DELIVERED", "createdAt": self.ordered_at, "currency": currency}
        return {
            "id": key,
            "number": f"{total}{currency}",
            **more,
            "total": total,
            "customer": whose,
            "lines": [line],
        }

    def customer(self, state: str) -> str:
        """The id of a customer; that of one who was never listed is free."""
        return self.ids.get(state, id_of("customers", state))

    def change(self) -> None:
        """What happens before the second read."""
        remove, change = self.state.remove, self.state.change
        for state in ("gone", "deleted"):
            remove("customers", self.customer(state))
            for name in ("price_lists", "promotions", "orders"):
                remove(name, id_of(name, state))
        change("customers", self.customer("renamed"), {"erpCode": "Z-renamed"})
        change("customers", self.customer("moved"), {"erpCode": "Z-moved", "email": "new@x.es"})
        change("price_lists", id_of("price_lists", "renamed"), {"name": "New"})
        change("promotions", id_of("promotions", "renamed"), {"name": "New"})
        remove("orders", id_of("orders", "moved"))
        self.state.add("orders", self._order("moved", MOVED_ORDER))

    def hide(self) -> None:
        """What happens before the third read; a customer has the price list in each state then."""
        for name in ("customers", "price_lists", "promotions", "orders"):
            self.state.remove(name, id_of(name, "older"))
        self.state.change("customers", self.customer("odd"), {"birthdate": 7, "email": "odd@y.es"})
        self.state.change("promotions", id_of("promotions", "odd"), {"useCount": "many"})
        for name in ("price_lists", "orders"):
            self.state.change(name, id_of(name, "odd"), {"id": {}})
        for customer_id, state in zip(self.state.ids("customers"), STATES, strict=False):
            price_list = int(id_of("price_lists", state))
            self.state.change("customers", customer_id, {"priceListId": price_list})

    def read(self, name: str, **options: Any) -> None:
        """A read, and a copy of what it published."""
        self.made.pull(**options)
        rows = "".join(f"C-{state};Ana;{state}@x.es\n" for state in STATES)
        file = self.made.folder / "erp.csv"
        file.write_text(f"erpCode;firstName;email\n{rows}", "utf-8")
        reconcile(ErpFiles(file))
        shutil.copyfile(self.made.path, self.made.folder / f"{name}.duckdb")
        self.lists[name] = deepcopy(self.state.lists["customers"])

    # commands

    def use(self, ledger: str, read: str = "warehouse") -> None:
        """From now on commands use this ledger, and the warehouse after a read."""
        os.environ["LEDGER__PATH"] = str(self.made.folder / f"{ledger}.sqlite")
        os.environ["WAREHOUSE__PATH"] = str(self.made.folder / f"{read}.duckdb")

    def copy(self, ledger: str, read: str) -> None:
        """Uses a copy of a ledger, and the warehouse after a read."""
        name = f"{ledger}-{read}-{len(list(self.made.folder.iterdir()))}"
        copy_ledger(self.made.folder, ledger, name)
        self.use(name, read)

    def clock(self, ledger: str, seconds: float = 0.0) -> ReadClock:
        """A clock that stands so many seconds after the last answer to a write of a ledger."""
        at_s = self.answered_s[ledger] + seconds
        return lambda: ClockReading(self.began + at_s, "boot", UPTIME + at_s)

    def now(self, ledger: str, read: str, seconds: float = 0.0, *, is_proven: bool = True) -> None:
        """So many seconds after the last answer, with a copy of a ledger, the warehouse and customers of a read."""
        self.copy(ledger, read)
        self.state.lists["customers"] = deepcopy(self.lists[read])
        self.place.means = means(read_clock=self.clock(ledger, seconds))
        if not is_proven:
            rows = self.state.records("customers")
            self.place.means = replace(
                self.place.means, read_customers=lambda keys: listed(rows, keys, is_whole=False)
            )

    def send(
        self,
        ledger: str,
        operations: Sequence[PlannedOperation],
        answers: Callable[[str], WriteOutcome | None],
    ) -> Path:
        """Pushes operations until each was sent, answered by its state; the first answer takes a while."""
        self.use(ledger)
        sent_s = max(self.answered_s.values(), default=0.0)
        self.answered_s[ledger] = sent_s

        def answer(place: int, path: str, body: bytes) -> WriteOutcome | None:
            self.answered_s[ledger] = sent_s + ANSWER_S
            return answers(state_in(path, body))

        client = Answering(answer, lambda: self.state.records("customers"))
        self.place.means = means(
            client=lambda settings, stop: client,
            read_customers=nobody,
            read_clock=lambda: self.clock(ledger)(),
        )
        plan = self.place.plan(operations)
        for _ in range(3):
            self.place.push(plan, WAITS, concurrency=1)
        return plan


def state_in(path: str, body: bytes) -> str:
    """The state that a write is about: of an update by its id, else by its code or name."""
    sent = msgspec.json.decode(body)
    if "variants" in path:
        return STATES[int(path.rpartition("/")[2]) - FIRST]
    return str(sent.get("erpCode") or sent["name"]).rpartition("-")[2]


# what the commands say


def said(folder: Path) -> dict[tuple[str, str], Said]:
    """What each command says about the states of each list, by list and command."""
    few = {"customers": 12, "orders": 20, "promotions": 2, "price_lists": 4, "others": 0}
    with mock.patch.dict(os.environ, clear=True), bridge(folder, **few) as made:
        os.environ["SOURCES__LEGACY__LOGIN_MODE"] = "email"
        shop = Shop(made)
        plans = _history(shop)
        two, three = (
            {**_writes_of_customers(shop, plans, read), **_lists(shop, read)}
            for read in ("two", "three")
        )
        found = {
            cell: {state: (three if state in LATE else two)[cell][state] for state in STATES}
            for cell in two
        }
        more = {(name, f"{what}, third read"): three[name, what] for name, what in UNPROVEN}
        return found | more


def _history(shop: Shop) -> dict[str, Path]:
    """Sends creates and reads the lists. Returns the plans, by ledger."""
    shop.open()
    shop.send("main", [create("refused")], lambda state: INVALID)
    shop.send("main", [create("lost")], lambda state: LOST)
    shop.place.means = means(read_clock=shop.clock("main"))
    shop.place.push(shop.place.plan([create(state) for state in OURS]), WAITS)
    for record in shop.state.records("customers"):
        if record.get("erpCode", "").startswith("C-"):
            shop.ids[record["erpCode"].removeprefix("C-")] = str(record["id"])

    def confirm(state: str) -> WriteOutcome | None:
        body = msgspec.json.encode({"id": int(shop.customer(state))})
        created = WriteOutcome("answered", 201, body=body)
        others = {"refused": INVALID, "lost": LOST, "known": None}  # without its id
        return others.get(state, created)

    creates = [*map(create, STATES)]
    plans = {
        "sent": shop.send("sent", creates, confirm),
        "doubts": shop.send(
            "doubts", creates, lambda state: LOST if state != "refused" else NOT_FOUND
        ),
    }
    shop.order()
    shop.use("main")
    shop.read("one")
    shop.change()
    shop.read("two")
    shop.hide()
    shop.read("three", sweeps=1)
    return plans


def _writes_of_customers(
    shop: Shop, plans: Mapping[str, Path], read: str
) -> dict[tuple[str, str], Said]:
    shop.now("main", read)
    lines = [f"C-{state},Ana,{state}@x.es," for state in STATES]
    lists = [f"N{state},Ana,n{state}@x.es,{id_of('price_lists', state)}" for state in STATES]
    plan = _planned(shop, f"customers-{read}", lines)
    plan_lists = _planned(shop, f"lists-{read}", lists)
    return {
        ("customers", "plan"): plan,
        ("price_lists", "plan"): plan_lists,
        ("customers", "push"): _pushed(shop, read, SETTLE_S),
        ("customers", "push, a second before"): _pushed(shop, read, SETTLE_S - 1),
        ("customers", "push, list not proven"): _pushed(shop, read, SETTLE_S, is_proven=False),
        ("customers", "settle"): _settled(shop, plans["doubts"], read, SETTLE_S),
        ("customers", "settle, a second before"): _settled(
            shop, plans["doubts"], read, SETTLE_S - 1
        ),
        ("customers", "settle, list not proven"): _settled(
            shop, plans["doubts"], read, SETTLE_S, is_proven=False
        ),
        ("customers", "verify"): _verified(shop, plans["sent"], read),
    }


def _planned(shop: Shop, name: str, lines: Sequence[str]) -> Said:
    """What a plan decides about each line, and what it points out."""
    file = shop.made.folder / f"{name}.csv"
    file.write_text("\n".join(["erpCode,firstName,email,priceListId", *lines, ""]), "utf-8")
    made = make_plan(PlanOptions("customers", file, passwords="mail"))
    words = {one.line: [str(one.outcome)] for one in Plan(made.folder).unsent_lines()}
    for reason in made.statistics.suspicious:
        for line in reason.first:
            words.setdefault(line, ["send"]).append(reason.code)
    gaps = ["not checked"] if any(": unproven" in note for note in made.statistics.notes) else []
    lines_of = range(2, len(STATES) + 2)
    return by_state({str(line): ", ".join(words.get(line, ["send"]) + gaps) for line in lines_of})


def _pushed(shop: Shop, read: str, seconds: float, *, is_proven: bool = True) -> Said:
    """What a push does with creates of a plan that was made before all that."""
    shop.now("main", read, seconds, is_proven=is_proven)
    plan = shop.place.plan([*map(create, STATES)])
    shop.place.push(plan, WAITS, settle_s=SETTLE_S)
    return {state: words.partition(".")[2] for state, words in by_state(outcomes(plan)).items()}


def _settled(shop: Shop, plan: Path, read: str, seconds: float, *, is_proven: bool = True) -> Said:
    """What `settle` finds out about creates whose answers were lost, and what it advises."""
    shop.now("doubts", read, seconds, is_proven=is_proven)
    result = settle(None, Answers(), SETTLE_S, dependencies=shop.place.means)
    with Ledger.open(Path(os.environ["LEDGER__PATH"]), readonly=True) as ledger:
        rows = [*PlanLedger(ledger, Plan(plan).manifest.plan_id).rows()]
    advice = {one.operation: step_in(one.advice) for one in result.left}
    return {
        STATES[row.id - 1]: ", ".join(filter(None, (row.state, advice.get(row.id)))) for row in rows
    }


def step_in(advice: str) -> str:
    """The next step that an advice ends with."""
    if "look on the platform, then answer" in advice:
        return "answer"
    return "wait" if " UTC on" in advice else "again"


def _verified(shop: Shop, plan: Path, read: str) -> Said:
    """What `verify` says of creates that were answered, and the fields that differ."""
    shop.now("sent", read)
    result = verify(plan)
    found: dict[str, list[str]] = {}
    for row in spreadsheet_rows(plan / VERIFY_FILE):
        found.setdefault(row["line"], [row["outcome"]]).append(row["field"])
    same = {str(line): ["same"] for line in range(2, len(STATES) + 2)}
    words = by_state({line: " ".join(filter(None, one)) for line, one in (same | found).items()})
    unsettled = dict.fromkeys(NEVER, "unsettled")
    assert (result.outcomes["unsettled"], result.in_doubt) == (len(unsettled), 1)
    assert result.verdict == {"two": "complete", "three": "unproven"}[read]
    return words | unsettled


def _lists(shop: Shop, read: str) -> dict[tuple[str, str], Said]:
    """What the reconciled tables and the report have of each list."""
    found: dict[tuple[str, str], Said] = {}
    with reading(shop.made.folder / f"{read}.duckdb") as connection:

        def words(sql: str) -> dict[str, str]:
            rows = connection.execute(sql).fetchall()
            return {str(key): ", ".join(filter(None, rest)) for key, *rest in rows}

        data = read_report_data(connection).rows
        tables = {name: words(sql) for name, sql in TABLES.items()}
    shown = {
        "promotions": {row["promotion_id"] for row in data["expiring"]},
        "price_lists": {row["price_list_id"] for row in data["price_lists"]},
    }
    totals = {row["currency"]: int(row["revenue"]) for row in data["order_totals"]}
    counts = {row["price_list_id"]: row["customer_count"] for row in data["price_lists"]}
    for place, state in enumerate(STATES):
        order = MOVED_ORDER if state == "moved" else id_of("orders", state)
        cells = {
            ("customers", "reconcile"): tables["customers"].get(shop.customer(state)),
            ("customers", "reconcile: ERP"): tables["erp"].get(f"C-{state}"),
            ("customers", "reconcile: orders"): tables["orders"].get(f"{id_of('orders', state)}-b"),
            ("customers", "reconcile: what they ordered"): tables["totals"].get(
                shop.customer(state)
            ),
            ("customers", "report"): f"{counts[own_list(state)]} of its list",
            ("orders", "reconcile"): tables["orders"].get(order),
            ("orders", "reconcile: before"): tables["orders"].get(id_of("orders", state)),
            ("orders", "report"): "counted" if totals["USD"] >> place & 1 else "not counted",
            ("promotions", "reconcile"): tables["promotions"].get(id_of("promotions", state)),
            ("promotions", "report"): _shown(id_of("promotions", state) in shown["promotions"]),
            ("price_lists", "reconcile"): tables["price_lists"].get(id_of("price_lists", state)),
            ("price_lists", "reconcile: sources"): tables["price_lists"].get(own_list(state)),
            ("price_lists", "reconcile: customers"): tables["named"].get(
                id_of("price_lists", state)
            ),
            ("price_lists", "report"): _shown(id_of("price_lists", state) in shown["price_lists"]),
        }
        for cell, one in cells.items():
            found.setdefault(cell, {})[state] = one or "-"
    return found


def _shown(is_shown: bool) -> str:
    return "shown" if is_shown else "not shown"


_RECORD = "if(r.is_missing, 'missing', 'listed')"
_VERSIONS = """(SELECT nullif(string_agg(ended_by, ' ' ORDER BY version), '') FROM reconciled.{0}_history h
    WHERE h.{0}_id = r.{0}_id)"""
_FINDINGS = """(SELECT string_agg(rule, ' ' ORDER BY rule) FROM reconciled.exceptions e
    WHERE entity = '{0}' AND entity_id = {1} AND rule NOT LIKE 'document%')"""
TABLES = {
    "customers": f"""SELECT customer_id, {_RECORD}, {_VERSIONS.format("customer")},
        {_FINDINGS.format("customers", "r.customer_id")} FROM reconciled.customers r""",
    "erp": f"""SELECT erp_code, status, matched_by, {_FINDINGS.format("erp_customers", "r.line::VARCHAR")}
        FROM reconciled.erp_customers r WHERE line IS NOT NULL""",
    "orders": f"""SELECT order_id, {_RECORD}, customer_status, {_FINDINGS.format("orders", "r.order_id")}
        FROM reconciled.orders r""",
    "totals": "SELECT customer_id, order_count || ' orders' FROM reconciled.customer_orders",
    "promotions": f"""SELECT promotion_id, {_RECORD}, status, {_VERSIONS.format("promotion")},
        {_FINDINGS.format("promotions", "r.promotion_id")} FROM reconciled.promotions r""",
    "price_lists": f"""SELECT price_list_id, {_RECORD}, chain_status, {_VERSIONS.format("price_list")},
        {_FINDINGS.format("price_lists", "r.price_list_id")} FROM reconciled.price_lists r""",
    "named": """SELECT price_list_id, any_value(price_list_status) FROM reconciled.customers WHERE NOT is_missing
        GROUP BY 1""",
}
"""The words of each record, by its id or code, in SQL."""
