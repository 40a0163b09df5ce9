"""A platform in this process and the pulls of some nights: each thing is there at least twice, and differs.

In: a seed. Out: for each pull what was requested and what the platform answered, page by page, with the tables that the
pull left. What these have to say is in `pull_truth.py`, which knows the pages and nothing of the program.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import httpx
import pytest

from orderbridge.pipelines.cli.process import prepare_environment
from orderbridge.pipelines.pull import publishing, walking
from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.warehouse import run
from orderbridge.pipelines.warehouse.accepted_changes import (
    AcceptedChanges,
    AcceptedFall,
    write_changes,
)
from orderbridge.pipelines.warehouse.answers.accepted import (
    Acceptance,
    Accepted,
    accepted_file,
    read_acceptances,
    write_acceptances,
)
from orderbridge.pipelines.warehouse.raw import (
    column_values,
    field_kinds,
    recent_rows,
    recent_values,
)
from orderbridge.pipelines.warehouse.raw.load import DATASET
from orderbridge.pipelines.warehouse.raw.recent_rows import RecentRows
from orderbridge.pipelines.warehouse.raw.recent_values import recent_losses
from orderbridge.sandbox.config import LEGACY_KEY, V1_KEY
from orderbridge.sources.errors import BridgeError
from orderbridge.sources.extract import result, spool
from orderbridge.sources.extract import walk as walks
from orderbridge.sources.extract.result import ListResult
from orderbridge.sources.http.client import Client
from orderbridge.sources.settings import LegacySettings
from tests.pipelines.bridge import reading
from tests.soak.transport import InlineExecutor, requested_url
from tests.soak.walks import inline

Row = dict[str, Any]
Tables = dict[str, list[Row]]
LISTS = ("customers", "promotions", "price_lists", "orders")
HOSTS = {"legacy": ("127.0.0.1:9", "127.0.0.1:11"), "public_v1": ("127.0.0.1:10", "127.0.0.1:12")}
"""Of each API, also after it has moved."""
ENVIRONMENTS = ("sandbox", "production")
PAGE_LIMITS = (20, 25)
BEGIN = datetime(2026, 5, 4, 2, tzinfo=UTC)
REQUEST_S, JUDGING_S = 7, 13
"""How long a request takes, and what follows the reads of a run."""
BATCH_ROWS_MIN, BATCHES_KEPT = 4, 1
"""Instead of 20 and 30: a night here has a few new orders."""


@dataclass(frozen=True)
class Served:
    """A page with the status 200.

    Attributes:
        name: of the list.
        query: of the request.
        rows: as the page has them, each as its JSON text.
        page: all of it.
    """

    name: str
    query: Mapping[str, str]
    rows: list[str]
    page: Row


@dataclass(eq=False)
class Night:
    """A pull: what was wanted, and what the platform holds.

    Attributes:
        after: time since the last one.
        wanted: options of the pull.
        lists: the rows of each list, or those of each pass over it.
        broken: lists that break off on their second page.
        refused: lists that the key may not read.
        organization: as whoami has it.
        accepted: what a person has accepted before it, by rule and place.
        falls: lists whose fall, as it is at hand, a person has accepted before it.
        cut: how many rows more than are listed the platform reports of a list.
        has_moved: the platform has other hosts, and is of another environment.
        is_judged: whether new and changed rows are judged, as `reconcile` does.
    """

    after: timedelta
    lists: dict[str, list[list[Row]]]
    wanted: Row = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    organization: str | None = "org-1"
    accepted: tuple[tuple[str, str], ...] = ()
    falls: tuple[str, ...] = ()
    cut: Mapping[str, int] = field(default_factory=dict)
    has_moved: bool = False
    is_judged: bool = True


@dataclass(eq=False)
class Pulled:
    """What a pull did: its night, the pages it got, when it began and ended, and the tables it left."""

    night: Night
    run_id: str
    began_at: datetime
    ended_at: datetime
    served: list[Served]
    first_at: dict[str, datetime]
    last_at: dict[str, datetime]
    """When the first request of each list was made, and when its last answer came, whatever that was."""
    tables: Tables


class Platform(httpx.BaseTransport):
    """Both APIs: lists paged by number, with and without a `total`, one by a cursor, and one in a single response."""

    def __init__(self) -> None:
        self.now = BEGIN
        self.night = Night(timedelta(), {})
        self.served: list[Served] = []
        self.first_at: dict[str, datetime] = {}
        self.last_at: dict[str, datetime] = {}
        self._passes: dict[str, int] = {}

    def begin(self, night: Night) -> None:
        self.now += night.after
        self.night = night
        self.served = []
        self.first_at = {}
        self.last_at = {}
        self._passes = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = requested_url(request)
        name = {
            "/customers": "customers", "/promotions": "promotions", "/public/v1/prices/lists": "price_lists",
            "/public/v1/orders": "orders", "/public/v1/whoami": "whoami",
        }[url.path]  # fmt: skip
        at = self.now
        self.now += timedelta(seconds=REQUEST_S)
        self.first_at.setdefault(name, at)
        self.last_at[name] = self.now
        query = dict(url.params)
        if name == "whoami":
            return httpx.Response(200, json={"organization": {"id": self.night.organization}})
        if name in self.night.refused:
            return httpx.Response(403, json={"error": {"code": "FORBIDDEN", "message": "scope"}})
        page = self._page(name, query)
        if page is None:
            return httpx.Response(404, json={"message": "no such page"})
        rows = [json.dumps(row) for row in page[_rows_field(name)]]
        self.served.append(Served(name, query, rows, page))
        return httpx.Response(200, content=json.dumps(page).encode())

    def _page(self, name: str, query: Mapping[str, str]) -> Row | None:
        is_first = "startingAfter" not in query and query.get("page", "1") == "1"
        self._passes[name] = self._passes.get(name, 0) + is_first
        passes = self.night.lists[name]
        rows = passes[min(self._passes[name], len(passes)) - 1]
        if name == "price_lists":
            return {"priceLists": rows}
        size = int(query["limit"])
        number = int(query.get("page", "1"))
        first = int(query.get("startingAfter", (number - 1) * size))
        if number == 0:
            return None
        data = rows[first : first + size]
        has_more = first + size < len(rows)
        if name == "orders":
            is_broken = name in self.night.broken and first > 0
            cursor = str(first + size) if has_more and not is_broken else None
            return {"data": data, "hasMore": has_more, "nextCursor": cursor}
        if name == "promotions":  # without the pagination object
            return {"data": data}
        total = len(rows) + self.night.cut.get(name, 0)
        pagination = {
            "page": number, "pages": -(-total // size), "total": total, "hasPrevPage": number > 1,
            "hasNextPage": has_more,
        }  # fmt: skip
        return {"data": data, "pagination": pagination}


def _rows_field(name: str) -> str:
    return "priceLists" if name == "price_lists" else "data"


class Times(datetime):
    """The time of the platform."""

    platform: Platform

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return cls.platform.now


@contextmanager
def played(folder: Path) -> Iterator[Platform]:
    """A platform, and this process's settings for it; time passes only while it answers."""
    platform = Platform()
    Times.platform = platform

    def client(settings: Any, *more: Any) -> Client:
        family = "legacy" if isinstance(settings, LegacySettings) else "public_v1"
        key = settings.api_key.reveal()
        return Client(family, settings.base_url, key, transport=platform)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        stack.enter_context(inline())
        for name, value in _settings(has_moved=False).items():
            patch.setenv(name, value)
        patch.setenv("DLT_PROJECT_DIR", str(folder))
        patch.setenv("WAREHOUSE__PATH", str(folder / "warehouse.duckdb"))
        patch.setattr(Client, "from_settings", client)
        patch.setattr(walking, "ThreadPoolExecutor", InlineExecutor)
        patch.setattr(publishing, "load", _link)
        patch.setattr(spool, "time", SimpleNamespace(time=lambda: platform.now.timestamp()))
        for module in (run, walks, result, column_values, field_kinds):
            patch.setattr(module, "datetime", Times)
        patch.setattr(recent_rows, "BATCHES_KEPT", BATCHES_KEPT)
        for module in (recent_rows, recent_values):
            patch.setattr(module, "BATCH_ROWS_MIN", BATCH_ROWS_MIN)
        prepare_environment()
        yield platform


def _link(lists: Sequence[ListResult], folder: Path) -> None:
    """What dlt does with the files of the walks, which has tests of its own and takes a fifth of the CPU."""
    for walked in lists:
        for table, files in walked.files.items():
            (folder / DATASET / table).mkdir(parents=True)
            for number, (path, _) in enumerate(files):
                os.link(path, folder / DATASET / table / f"{number}.parquet")


def _settings(*, has_moved: bool) -> dict[str, str]:
    hosts = {family: f"http://{names[has_moved]}" for family, names in HOSTS.items()}
    return {
        "SOURCES__LEGACY__BASE_URL": hosts["legacy"],
        "SOURCES__LEGACY__API_KEY": LEGACY_KEY,
        "SOURCES__LEGACY__ENVIRONMENT": ENVIRONMENTS[has_moved],
        "SOURCES__LEGACY__PAGE_LIMIT": str(PAGE_LIMITS[has_moved]),
        "SOURCES__PUBLIC_V1__BASE_URL": hosts["public_v1"],
        "SOURCES__PUBLIC_V1__API_KEY": V1_KEY.replace("_test_", "_live_") if has_moved else V1_KEY,
        "SOURCES__PUBLIC_V1__PAGE_LIMIT": str(PAGE_LIMITS[has_moved]),
    }


def play(folder: Path, nights: list[Night]) -> Iterator[Pulled]:
    """Pulls one night after the other."""
    tables: Tables = {}
    with played(folder) as platform:
        for night in nights:
            platform.begin(night)
            os.environ.update(_settings(has_moved=night.has_moved))
            _accept(night, platform.now, tables)
            began_at = platform.now
            step = _judging(platform) if night.is_judged else None
            run_id = ""
            with suppress(BridgeError):  # nothing is published
                run_id = pull(PullOptions(**night.wanted), step=step).run_id
            tables = _tables(folder / "warehouse.duckdb")
            yield Pulled(
                night,
                run_id,
                began_at,
                platform.now,
                platform.served,
                platform.first_at,
                platform.last_at,
                tables,
            )


def _accept(night: Night, at: datetime, tables: Tables) -> None:
    """What a person has accepted: changes of places, and falls of lists as the last runs held them back."""
    file = accepted_file()
    if night.accepted:
        new = [Acceptance(rule, "ana", at, place=place) for rule, place in night.accepted]
        write_acceptances(file, [*read_acceptances(file), *new])
    falls = [
        AcceptedFall(one["resource"], one["known"], one["known"] - one["absent"], one["compared_with"], "ana", at)
        for one in tables.get("ops.held_lists", ())
        if one["resource"] in night.falls
    ]  # fmt: skip
    if falls:
        write_changes(AcceptedChanges(falls), AcceptedChanges())


def _judging(platform: Platform) -> Callable[[duckdb.DuckDBPyConnection, str, datetime], int]:
    def judge(build: duckdb.DuckDBPyConnection, run_id: str, at: datetime) -> int:
        platform.now += timedelta(seconds=JUDGING_S)
        accepted = Accepted.read(platform.now)
        for name in LISTS:
            list(recent_losses(RecentRows(build, name, run_id, at), accepted, None))
        return 0

    return judge


def _tables(path: Path) -> Tables:
    tables: Tables = {}
    with reading(path) as connection:
        names = connection.execute(
            "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE schema_name IN ('raw', 'ops')"
        ).fetchall()
        for (name,) in names:
            found = connection.sql(f"FROM {name} ORDER BY rowid")
            tables[name] = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    return tables


# records


def _documents(draw: random.Random, key: int) -> list[Row]:
    return [
        {
            "number": draw.choice(("", f"D{key % 9}", f"D{key}-{n}")),
            "fiscalName": draw.choice((None, "Firm", f"F{key}")),
            "fiscalAddress": draw.choice((None, f"Street {key}")), "email": draw.choice(("", f"{n}@firm{key}.pe")),
            "isDefault": draw.choice((True, False, None)), "forTaxes": n == 1,
        }
        for n in range(1, draw.choice((1, 1, 2, 3, 4)))
    ]  # fmt: skip


def _customer(draw: random.Random, key: int) -> Row:
    return {
        "id": key, "firstName": draw.choice(("Ana", "", "Luis", f"N{key}")), "lastName": f"Peña {key % 17}",
        "phone": draw.choice((f"9{key:08}", f"8{key:08}", f"7{key:08}", "")), "email": f"u{key}@shop.pe",
        "loginCode": draw.choice((None, f"login{key}")),
        "createdAt": draw.choice(("", f"2026-01-{key % 28 + 1:02}T10:00:00Z")),
        "priceListId": draw.choice((None, 3, "3", 7)), "erpCode": f"{key:05}",
        "birthdate": draw.choice((None, *[f"19{key % 70 + 20}-0{key % 9 + 1}-11"] * 4)),
        "documents": _documents(draw, key),
    }  # fmt: skip


def _promotion(draw: random.Random, key: int) -> Row:
    return {
        "id": key, "name": f"Promo {key}", "useCount": draw.choice((3, 3 + key, 100 + key)),
        "usageLimit": draw.choice((None, 0, 50 + key)), "isActive": draw.random() < 0.6,
        "startDate": f"2026-0{key % 9 + 1}-01", "expirationDate": draw.choice(("", "2026-12-31")),
    }  # fmt: skip


def _price_list(draw: random.Random, key: int) -> Row:
    return {
        "id": f"L{key}", "name": draw.choice((None, f"List {key}")),
        "sourcePriceListId": draw.choice((None, "L1", "L2")),
        "adjustmentType": draw.choice(("NONE", "PERCENT", "AMOUNT")),
        "adjustmentValue": f"{draw.randrange(-40, 40)}.{key}",
    }  # fmt: skip


def _order(draw: random.Random, key: int, minute: int) -> Row:
    """The time of an order is that of its place in the list."""
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)
    lines = [
        {"sku": f"S{n + key % 5}", "quantity": n, "price": draw.choice((0, 1.5, 20)), "gift": draw.random() < 0.5}
        for n in range(1, draw.choice((2, 2, 3, 4)))
    ]  # fmt: skip
    return {
        "id": key, "createdAt": at.isoformat(), "number": 1000 + key, "total": draw.choice((0, 10, 25.5, 7.25)),
        "status": draw.choice(("PAID", "OPEN", "")), "paid": draw.random() < 0.7,
        "customer": draw.choice(({"id": key % 60 + 1, "vip": key % 3 == 0}, {})), "lines": lines,
        "tags": draw.choice(([], ["new"], ["a", "b"])), "note": draw.choice((None, "gift")), "gate": None,
        "ref": f"R{key}", "sent": "yes",
    }  # fmt: skip


RECORDS: dict[str, Callable[[random.Random, int], Row]] = {
    "customers": _customer,
    "promotions": _promotion,
    "price_lists": _price_list,
}
FIRST = {"customers": 55, "promotions": 33, "price_lists": 9, "orders": 62}
"""Records in the first night."""
ODD: dict[str, Row] = {
    "birthdate: expected date YYYY-MM-DD, found number": {"birthdate": 7},
    "firstName: a NUL character": {"firstName": "x\0y"},
    "documents: expected array, found string": {"documents": "none"},
    "id: expected an identifier, found null": {"id": None},
    "isActive: expected boolean, found string": {"isActive": "yes"},
}
"""What makes a row one that cannot be loaded, by the reason."""


KEPT = {"ref", "sent", "total"}
"""Fields that change on purpose only."""


class Records:
    """What the platform holds; each night changes it."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.rows: dict[str, list[Row]] = {name: [] for name in LISTS}
        self._next = dict.fromkeys(LISTS, 1)
        for name, count in FIRST.items():
            self.add(name, count)

    def add(self, name: str, count: int, **fields: Any) -> None:
        for _ in range(count):
            key = self._next[name]
            self._next[name] += 1
            made = (
                _order(self.draw, key, key) if name == "orders" else RECORDS[name](self.draw, key)
            )
            self.rows[name].append(made | fields)

    def change(self, name: str, count: int, **fields: Any) -> None:
        """Others of the values of some records, or these."""
        rows = self.rows[name]
        for place in self.draw.sample(range(len(rows)), count):
            one = rows[place]
            key = int(str(one["id"]).lstrip("L"))
            other = (
                _order(self.draw, key, key) if name == "orders" else RECORDS[name](self.draw, key)
            )
            changed = self.draw.sample(sorted(one.keys() - KEPT), 3)
            rows[place] = one | (fields or {of: other[of] for of in changed if of in other})

    def fill(self, name: str, count: int, **fields: Any) -> None:
        """Gives the first records these values."""
        self.rows[name][:count] = [one | fields for one in self.rows[name][:count]]

    def remove(self, name: str, count: int) -> list[Row]:
        gone = self.draw.sample(self.rows[name], count)
        self.rows[name] = [one for one in self.rows[name] if one not in gone]
        return gone

    def lists(self) -> dict[str, list[list[Row]]]:
        return {name: [list(rows)] for name, rows in self.rows.items()}


def with_odd(rows: list[Row], *reasons: str, first: int = 3) -> list[Row]:
    """The rows, and between them some that cannot be loaded, with ids of their own."""
    made = list(rows)
    for n, reason in enumerate(reasons):
        made.insert(first + 11 * n, {**rows[n], "id": 9000 + n, **ODD[reason]})
    return made


def nights(seed: int) -> Iterator[Night]:
    """The nights of a seed. Each says what is different in it."""
    held = Records(seed)
    day = timedelta(days=1)
    birthdate, nul, documents, no_id, active = ODD

    held.fill("orders", 10, sent=None)
    held.fill("price_lists", 2, adjustmentType="FIXED")

    # 1: all is new; two customers cannot be loaded; the list of promotions is longer in its second pass
    lists = held.lists()
    lists["customers"] = [with_odd(lists["customers"][0], birthdate, nul)]
    lists["promotions"].insert(0, lists["promotions"][0][:-1])
    yield Night(day, lists)

    # 2: some are gone; two rows have the id of another; one order is on two pages of the first pass
    held.change("customers", 8)
    held.fill("customers", 14, erpCode=None)
    held.add("customers", 3)
    customers_gone = held.remove("customers", 2)
    held.remove("promotions", 2)
    held.fill("promotions", 4, usageLimit=None, expirationDate="", startDate="2027-01-01")
    del held.rows["price_lists"][:3]
    held.add("price_lists", 6)
    held.change("orders", 7)
    held.fill("orders", 4, sent="at last")
    held.remove("orders", 2)
    held.add("orders", 13)
    lists = held.lists()
    rows = lists["customers"][0]
    doubled = [
        *rows[:25],
        {**rows[4], "lastName": "Other"},
        {**rows[7], "lastName": "Another"},
        *rows[25:],
    ]
    lists["customers"] = [with_odd(doubled, documents, no_id, documents, first=9)]
    orders = lists["orders"][0]
    lists["orders"] = [[*orders[:30], orders[3], *orders[31:]], orders]
    yield Night(day, lists)

    # 3: orders break off, price lists are refused, half of the promotions is not there; customers have no addresses,
    # and fewer codes than in the first night, but not far fewer than in the second
    held.fill("customers", 45, email="")
    held.fill("customers", 30, erpCode=None)
    customers_gone += held.remove("customers", 3)
    held.add("orders", 6, total=None, number=None, ref=None, sent=None)
    lists = held.lists()
    lists["promotions"] = [lists["promotions"][0][:14]]
    yield Night(2 * day, lists, broken=("orders",), refused=("price_lists",))

    # 4: the legacy API alone; that fall is accepted, and one of the customers is not
    held.fill("promotions", 1, usageLimit=9)
    lists = held.lists()
    lists["promotions"] = [lists["promotions"][0][:13]]
    lists["customers"] = [lists["customers"][0][::3]]
    yield Night(day, lists, {"resources": ("customers", "promotions")}, falls=("promotions",))

    # 5: the tail of the orders, of which the new ones lack four values: one of them is often filled later
    held.add("orders", 7, total=None, number=None, ref=None, sent=None)
    yield Night(day, held.lists(), {"resources": ("orders",), "tail": True, "command": "run"})

    # 6: nothing is published
    yield Night(
        day, held.lists(), {"resources": ("orders", "price_lists")}, ("orders",), ("price_lists",)
    )

    # 7: orders come in another sequence, two rows have the id of another, a number is none any more; one of the values
    # is there again, that the other is not is accepted, and so is the jump; customers move while they are read
    held.rows["customers"] += customers_gone[1:4]
    held.change("customers", 9)
    held.add(
        "customers",
        2,
        loyaltyTier="gold",
        documents=[{"number": "7", "vat": "x"}, {"number": "8", "vat": 1}],
    )
    held.fill("promotions", 1, expirationDate="2027-11-11")
    held.add("promotions", 2, kind="web")
    held.add("price_lists", 2, color=5)
    held.add("orders", 2, paid="maybe", ref=None)
    held.add("orders", 1, paid="later", ref=None)
    held.rows["orders"] = [
        one | {"number": 5} if one["number"] is None else one for one in held.rows["orders"]
    ]
    held.change("orders", 8)
    held.add(
        "orders",
        9,
        number=7.5,
        channel="web",
        coupon={"code": "X", "off": 5},
        gate="north",
        ref=None,
    )
    lists = held.lists()
    orders = lists["orders"][0][::-1]
    orders[30:30] = [{**orders[50], "total": 99}, {**orders[60], "total": 98}]
    lists["orders"] = [orders]
    lists["customers"] = [
        lists["customers"][0],
        lists["customers"][0][1:],
        lists["customers"][0][:-1],
    ]
    accepted = (
        ("customers.values_jumped", "customers: email"), ("orders.values_gone", "orders: total"),
    )  # fmt: skip
    yield Night(3 * day, lists, {"sweeps": 3}, accepted=accepted, cut={"customers": 40})

    # 8: an order is listed among older ones; nobody judges it; whoami has no organization; lists are read in one pass,
    # with rows that are there twice; of the customers less than half has gone, and of the price lists just half
    held.change("customers", 6)
    held.add("orders", 4, total=None, coupon={"code": "Y", "off": 2.5})
    held.rows["orders"].insert(40, {**held.rows["orders"][40], "id": 990})
    held.change("price_lists", 3)
    held.remove("price_lists", 7)
    lists = held.lists()
    rows = lists["customers"][0][:36]
    lists["customers"] = [[*rows[:20], *rows[16:20], *rows[20:]]]
    lists["promotions"] = [with_odd(lists["promotions"][0], active, no_id)]
    yield Night(
        35 * day, lists, {"sweeps": 1}, organization=None, cut={"customers": 25}, is_judged=False
    )

    # 9: the platform has moved; half of the orders has gone, and a fourth of the customers, which is accepted at once;
    # numbers, days and flags are others than before
    held.add("orders", 4, total=None)
    held.remove("orders", 50)
    held.change("orders", 16, paid=None)
    held.remove("customers", 14)
    held.rows["customers"] = [
        one | {"birthdate": f"20{31 + n % 60}-01-01"}
        for n, one in enumerate(held.rows["customers"])
    ]
    held.rows["promotions"] = [
        one | {"useCount": 1000 * one["useCount"], "name": "Promo"}
        for one in held.rows["promotions"]
    ]
    for one in held.rows["orders"]:
        one["lines"] = [line | {"gift": line["price"] == 7} for line in one["lines"]]
    yield Night(
        day, held.lists(), {"accept_shrink": True, "accept_new_source": True}, organization="org-2", has_moved=True,
        accepted=(("orders.form_changed", "orders: channel"),),
    )  # fmt: skip
