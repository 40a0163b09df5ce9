"""Thirty nights of one warehouse, while the fields of its orders drift and single values are odd.

Each night is a real walk, merge and reconcile. The platform writes known orders: the same meaning in many ways (an
empty list as `{}` or `""`, a list of one as its item, a number as a text), single values of another kind, and fields
that change their form, go and come back. The judge, in plain Python: the tables are those orders in the form that was
decided or accepted; what has no column is in `_extra`; each loss and change is a finding, night after night until it is
accepted; columns keep their types.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, Final, NamedTuple
from unittest import mock

import duckdb
import httpx

from pipelines.pull.model import PullOptions, PullResult
from pipelines.pull.publishing import Publication
from pipelines.pull.targets import Targets
from pipelines.reconcile import reconcile
from pipelines.reconcile.entities import STEPS
from pipelines.reconcile.reconcile import Reconciling
from pipelines.warehouse import merge, ops
from pipelines.warehouse.accepted import Acceptance, accepted_file, read_acceptances, write_acceptances
from pipelines.warehouse.build import Build
from pipelines.warehouse.field_kinds import kept_kinds
from pipelines.warehouse.load import CATALOG, LOADED
from pipelines.warehouse.schema_changes import field_names
from sandbox.config import V1_KEY
from sources.extract.result import WalkOptions
from sources.extract.spool import SpoolFolder
from sources.extract.walk import walk
from sources.http.client import Client
from sources.settings import ReconcileSettings
from tests.soak.transport import requested_url
from tests.soak.walks import Outcome, folder_in_memory, inline

NIGHTS: Final = 30
BEGIN: Final = datetime(2026, 3, 2, 3, tzinfo=UTC)
PAGE: Final = 13
ORDERS_MIN: Final = 40
ODD_MAX: Final = 2
"""Odd values of a field in a night; one where its form is decided: fewer than another form would need."""
NOT_WRITTEN: Final = object()
EMPTY: Final[tuple[Any, ...]] = (NOT_WRITTEN, None, [], {}, "")
BOOKKEEPING: Final = ("_run_id", "_first_seen_at", "_last_seen_at", "_missing_since")
Row = dict[str, Any]


class Written(NamedTuple):
    """A value as the platform writes it in one order.

    `columns` hold it where its field has the form that it was written in, of a list of objects its items; no column
    holds what is `odd`, by path.
    """

    value: object
    columns: Row | list[Row] = {}  # noqa: RUF012 # never changed
    odd: Row = {}  # noqa: RUF012


def _scalar(name: str, odd: tuple[object, ...], *, is_number: bool = False) -> Callable[..., Written]:
    def write(order: Row, draw: random.Random, is_odd: bool) -> Written:
        if is_odd:
            value = draw.choice(odd)
            return Written(value, {}, {name: value})
        value = order[name]
        if value in EMPTY:
            return Written(draw.choice(EMPTY))
        return Written(str(value) if is_number and draw.random() < 0.02 else value, {name: value})

    return write


def _object(name: str) -> Callable[..., Written]:
    def write(order: Row, draw: random.Random, is_odd: bool) -> Written:
        if is_odd:
            value = draw.choice(("guest", 5, True, ["x"], [{"id": 1}, {"id": 2}], {"0": "x"}))
            return Written(value, {}, {name: value})
        value = order[name]
        if value in EMPTY:
            return Written(draw.choice((*EMPTY, False)))
        columns = {f"{name}__{key}": inner for key, inner in value.items()}
        return Written([value] if draw.random() < 0.02 else value, columns)

    return write


def _items(name: str) -> Callable[..., Written]:
    def write(order: Row, draw: random.Random, is_odd: bool) -> Written:
        items: list[Row] = [{"position": n, **item} for n, item in enumerate(order["lines"], 1)]
        way = draw.random()
        if is_odd and (way < 0.4 or not items):
            return Written("none", [], {name: "none"})
        if is_odd and way < 0.7:
            return Written([*order["lines"], "x"], items, {f"{name}[{len(items) + 1}]": "x"})
        if is_odd:
            last = {**order["lines"][-1], "quantity": "two"}
            items[-1] |= {"quantity": None, "_extra": {"quantity": "two"}}
            return Written([*order["lines"][:-1], last], items)
        if not items:
            return Written(draw.choice((*EMPTY, False, [None])), [])
        if way < 0.05:
            return Written({str(n * n): item for n, item in enumerate(order["lines"])}, items)
        return Written(order["lines"][0] if len(items) == 1 and way < 0.2 else order["lines"], items)

    return write


def _tags(order: Row, draw: random.Random, is_odd: bool) -> Written:
    tags, way = order["tags"], draw.random()
    if not tags:
        return Written(draw.choice((*EMPTY, False)))
    text = json.dumps(tags, separators=(",", ":"))
    if way < 0.05:
        return Written({str(n): tag for n, tag in enumerate(tags)}, {"tags": text})
    return Written(tags[0] if len(tags) == 1 and way < 0.1 else tags, {"tags": text})


def _text(name: str, text: Callable[[Row], str]) -> Callable[..., Written]:
    def write(order: Row, draw: random.Random, is_odd: bool) -> Written:
        if is_odd and name != "lines":  # whose items would be odd
            return Written({"0": "odd"}, {}, {name: {"0": "odd"}})
        return Written(text(order), {name: text(order)})

    return write


@dataclass
class Field:
    """A field of the orders: the forms in which it may be written, the present one, and the one decided or accepted."""

    name: str
    forms: dict[str, Callable[..., Written]]
    form: str = "plain"
    kept: str | None = None

    def held(self, written: Written) -> Written:
        """What the warehouse should make of a value: columns as far as it is of the form that is kept."""
        value = written.value
        if self.kept == self.form:
            return written
        is_text = self.kept == "text" or (self.kept == "plain" and self.name in ("status", "channel"))
        if self.kept is None or value in EMPTY or (value is False and not is_text):
            return Written(value)
        if is_text and isinstance(value, (str, int, float)):
            return Written(value, {self.name: value})
        return Written(value, {}, {self.name: value})


def fields() -> list[Field]:
    total = _scalar("total", ("about 12", [1], {"a": 1}, True), is_number=True)
    number = _scalar("number", ("A-7", [1], {"a": 1}, True, "007"), is_number=True)
    all_fields = [
        Field("number", {"plain": number, "text": _text("number", lambda order: f"A-{order['number']}")}),
        Field("total", {"plain": total, "text": _text("total", lambda order: f"{order['total']} EUR")}),
        Field("status", {"plain": _scalar("status", ([1], {"a": 1}))}),
        Field("gift", {"plain": _scalar("gift", ("yes", 1, [True], {"a": 1})), "text": _text("gift", lambda _: "yes")}),
        Field("customer", {"plain": _object("customer"), "text": _text("customer", lambda _: "C-1")}),
        Field("lines", {"plain": _items("lines"), "text": _text("lines", lambda _: "2 lines")}),
        Field("tags", {"plain": _tags}),
        Field("items", {"plain": _items("items")}, "absent"),
        Field("channel", {"plain": _scalar("channel", ([1],))}, "absent"),
    ]
    for one in all_fields:
        one.forms["absent"] = lambda *_: Written(NOT_WRITTEN)
    return all_fields


class Shop(httpx.BaseTransport):
    def __init__(self) -> None:
        self.orders: list[Row] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        query = requested_url(request).params
        begin = int(query.get("startingAfter", 0))
        end = begin + int(query["limit"])
        more = end < len(self.orders)
        page = {"data": self.orders[begin:end], "hasMore": more, "nextCursor": str(end) if more else None}
        return httpx.Response(200, json=page)


@dataclass
class Expected:
    """The tables of a night, and its findings."""

    tables: dict[str, dict[Any, Row]] = field(default_factory=lambda: {"orders": {}})
    odd: Counter[str] = field(default_factory=Counter)


class Nights:
    """One shop and one warehouse."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.draw, self.folder, self.shop = random.Random(seed), folder, Shop()
        self.fields, self.orders = fields(), [self._order(n) for n in range(ORDERS_MIN)]
        self.warehouse = duckdb.connect(str(folder / "warehouse.duckdb"))  # rows are kept beside it for a while
        self.warehouse.execute("SET TimeZone = 'UTC'")
        self.warehouse.execute(f"ATTACH ':memory:' AS {CATALOG}; CREATE SCHEMA {LOADED}")
        merge.create_missing(self.warehouse)
        ops.create_missing(self.warehouse)
        self.counts: Counter[str] = Counter()
        self.number = 0
        self.types: dict[tuple[str, str], str] = {}
        self.had: dict[str, tuple[bool, int]] = {}
        """By place: whether its loss is to be reported, and the last night that it had values."""
        self.accepted: dict[tuple[str, str], int] = {}
        self.is_widened, self.type_of_number = False, ""

    @property
    def at(self) -> datetime:
        return BEGIN + timedelta(days=self.number)

    def kept(self, name: str) -> str | None:
        """The form of a field that is kept; None also where there is no such field."""
        return next((one.kept for one in self.fields if one.name == name), None)

    def _order(self, key: int) -> Row:
        draw = self.draw
        prices = [draw.randrange(100, 9999) / 100 for _ in range(draw.choice((0, 1, 1, 2, 2, 3, 4)))]
        return {
            "id": 1000 + key,
            "number": 500 + key,
            "total": draw.randrange(100, 99999) / 100,
            "status": draw.choice(("paid", "open", "sent", "held", None)),
            "gift": draw.choice((True, False, True, False, None)),
            "customer": draw.choice((None, *[{"id": draw.randrange(9), "code": f"0{draw.randrange(9)}"}] * 4)),
            "lines": [{"sku": f"S{draw.randrange(9)}", "quantity": draw.randrange(1, 9), "price": p} for p in prices],
            "tags": draw.choice(([], ["a"], ["a", "b"])),
            "channel": draw.choice(("web", "app")),
        }

    def run(self, nights: int) -> Iterator[str]:
        for self.number in range(1, nights + 1):
            if self.number > 1:
                self._change()
            expected = self._write()
            if error := self._pull():
                yield f"night {self.number}: {error}"
                break
            for problem in [*self._judge_tables(expected), *self._judge_types(), *self._judge_findings(expected)]:
                yield f"night {self.number}: {problem}"
        self.warehouse.close()

    def _change(self) -> None:
        """Orders come, go and change; a field takes another form."""
        draw = self.draw
        self.orders += [self._order(1000 * self.number + n) for n in range(draw.randrange(4))]
        for order in draw.sample(self.orders, 3):
            order |= {"status": draw.choice(("paid", "sent")), "total": draw.randrange(100, 99999) / 100}
        if len(self.orders) > ORDERS_MIN and draw.random() < 0.5:
            self.orders.remove(draw.choice(self.orders))
        if draw.random() < 0.1:
            draw.choice(self.orders)["number"] += 0.5
        if draw.random() < 0.5:
            one = draw.choice(self.fields)
            one.form = draw.choice([*one.forms, "plain"])
            self.counts["fields in another form"] += 1

    def _write(self) -> Expected:
        """Writes the orders for the platform, and what the warehouse should make of them."""
        expected, draw = Expected(), self.draw
        self.shop.orders = [{"id": order["id"]} for order in self.orders]
        rows = expected.tables["orders"]
        rows |= {str(order["id"]): {"_extra": {}} for order in self.orders}
        for one in self.fields:
            count = draw.choice((0, 0, 0, 1, ODD_MAX if one.kept else 1)) if one.form != "absent" else 0
            odd = draw.sample(range(len(self.orders)), count)
            written = [one.forms[one.form](order, draw, n in odd) for n, order in enumerate(self.orders)]
            if one.kept is None and any(value.value not in EMPTY for value in written):
                one.kept = one.form
                if one.name == "number":
                    self.type_of_number, self.is_widened = "", False
            for order, row, value in zip(self.orders, self.shop.orders, written, strict=True):
                if value.value is not NOT_WRITTEN:
                    row[one.name] = value.value
                self._expect(expected, str(order["id"]), one, one.held(value))
        return expected

    def _expect(self, expected: Expected, key: str, one: Field, held: Written) -> None:
        row = expected.tables["orders"][key]
        row["_extra"] |= held.odd
        for path in held.odd:
            expected.odd[f"orders: {path.partition('[')[0]}{'[]' if '[' in path else ''}"] += 1
        if isinstance(held.columns, dict):
            row |= held.columns
            return
        for item in held.columns:
            odd = item.get("_extra", {})
            expected.tables.setdefault(f"orders__{one.name}", {})[key, item["position"]] = {"_extra": {}, **item}
            expected.odd.update(f"orders__{one.name}: {path}" for path in odd)

    def _pull(self) -> str:
        """A whole pull and reconcile, but that the rows are not loaded by dlt and nothing is published."""
        build, warehouse = Build(self.folder / f"{self.number}" / "warehouse.duckdb"), self.warehouse
        options = WalkOptions(
            PAGE, window=1, names=field_names(warehouse, "orders"), kinds=kept_kinds(warehouse, "orders")
        )
        with Client("public_v1", "http://127.0.0.1:9", V1_KEY, transport=self.shop) as client:
            spools = SpoolFolder(build.spools, {"night": self.number})
            result = walk("orders", client, build.run_folder / "files", spools, options)
        if result.error is not None:
            return str(result.error)
        result.ended_at = self.at
        for table, files in result.files.items():
            paths = [str(path) for path, _ in files]
            warehouse.execute(f'CREATE OR REPLACE TABLE {LOADED}."{table}" AS FROM read_parquet($1)', [paths])
        pulled = PullResult(f"run {self.number:02}", build.path, [result])
        pulled.changes["orders"] = merge.compare(warehouse, result)
        merge.merge_list(warehouse, result, pulled.run_id)
        run: Any = SimpleNamespace(build=build)
        publication = Publication(run, PullOptions(), Targets(), pulled, None, Event())
        publication._record_lists(warehouse, self.at)
        with ExitStack() as stack:
            if self.number > 1:  # the other tables are as empty as before
                steps = {name: STEPS[name] for name in ("orders", "order_lines")}
                stack.enter_context(mock.patch.multiple(reconcile, STEPS=steps, HISTORIES=()))
            Reconciling(settings=ReconcileSettings()).build_tables(warehouse, pulled.run_id, self.at)
        return ""

    def _judge_tables(self, expected: Expected) -> Iterator[str]:
        sql = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'raw' AND starts_with(table_name, 'orders')"
        tables = {name for (name,) in self.warehouse.execute(sql).fetchall()}
        for table in sorted(tables | expected.tables.keys()):
            actual = self._rows(table) if table in tables else {}
            wanted = expected.tables.get(table, {})
            if actual.keys() != wanted.keys():
                yield f"{table} has {len(actual)} rows instead of {len(wanted)}"
            for key in actual.keys() & wanted.keys():
                row = {name: text for name, value in wanted[key].items() if (text := canonical(value)) is not None}
                if row != actual[key]:
                    yield f"{table} {key}: {actual[key]} instead of {row}"
                    break
        sizes = [len(expected.tables.get(table, {})) for table in ("orders__lines", "orders__items")]
        sql = "SELECT count(*) FROM reconciled.order_lines JOIN reconciled.orders USING (order_id) WHERE NOT is_missing"
        ((lines,),) = self.warehouse.execute(sql).fetchall()
        if lines != (sizes[0] or sizes[1]):
            yield f"{lines} reconciled lines instead of {sizes[0] or sizes[1]}"

    def _rows(self, table: str) -> dict[Any, Row]:
        """The listed rows of a raw table, without what is null or empty."""
        cursor = self.warehouse.execute(f'SELECT * FROM raw."{table}" WHERE _missing_since IS NULL')
        names, rows = [column[0] for column in cursor.description or ()], {}
        for values in cursor.fetchall():
            row = {name: value for name, value in zip(names, values, strict=True) if name not in BOOKKEEPING}
            row["_extra"] = json.loads(row["_extra"] or "{}")
            key = row.pop("id") if table == "orders" else (row.pop("order_id"), row["position"])
            rows[key] = {name: text for name, value in row.items() if (text := canonical(value)) is not None}
        return rows

    def _judge_types(self) -> Iterator[str]:
        """Whether columns keep their types."""
        sql = "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE schema_name = 'raw'"
        types = {(table, column): kind for table, column, kind in self.warehouse.execute(sql).fetchall()}
        last_night = {place for (_, place), night in self.accepted.items() if night == self.number - 1}
        for key, kind in self.types.items():
            now, is_accepted = types.get(key), f"orders: {key[1].partition('__')[0]}" in last_night
            if now != kind and not is_accepted and (key[1], kind, now) != ("number", "BIGINT", "DECIMAL(38,9)"):
                yield f"{'.'.join(key)} was {kind}, and is {now}"
            if self.kept(key[1]) == "plain" and key in (("orders", "number"), ("orders", "total")) and now == "VARCHAR":
                yield f"{'.'.join(key)} is text, whatever was decided"
        self.types = types

    def _judge_findings(self, expected: Expected) -> Iterator[str]:
        wanted: set[tuple[str, str, int]] = set()
        for place, count in expected.odd.items():
            rows = len(expected.tables[place.partition(":")[0]])
            wanted.add(("form_changed" if count >= max(5, rows / 20) else "odd_value", place, count))
        wanted |= {("values_gone", place, 0) for place in self._gone(expected)}
        wanted |= {("type_widened", "orders: number", 0)} if self._widened(expected) else set()
        sql = "SELECT rule, detail FROM reconciled.exceptions WHERE rule IN ({}) AND NOT is_accepted"
        rules = ("form_changed", "odd_value", "values_gone", "type_widened")
        found: set[tuple[str, str, int]] = set()
        for rule, detail in self.warehouse.execute(sql.format(str(rules)[1:-1])).fetchall():
            place, _, words = detail.rpartition(": ")
            found.add((rule, place, int(words.split()[0]) if rule in ("form_changed", "odd_value") else 0))
        for one in sorted(wanted - found):
            yield f"not announced: {one}"
        for one in sorted(found - wanted):
            yield f"announced without a reason: {one}"
        self.counts.update(rule for rule, _, _ in found)
        errors = sorted((rule, place) for rule, place, _ in found if rule in ("form_changed", "values_gone"))
        if errors and self.draw.random() < 0.35:
            self._accept(*self.draw.choice(errors))

    def _gone(self, expected: Expected) -> Iterator[str]:
        """The places that had values and have none, until that is accepted."""
        filled: Counter[str] = Counter()
        sizes = {table: len(rows) for table, rows in expected.tables.items()}
        for table, rows in expected.tables.items():
            if table != "orders":
                filled[f"orders: {table.removeprefix('orders__')}"] = len(rows)
            for row in rows.values():
                names = (name for name, value in row.items() if canonical(value) is not None and name != "_extra")
                filled.update(f"{table}: {name.replace('__', '.')}" for name in names if name != "position")
        for place, count in filled.items():
            size = sizes[place.partition(":")[0]]
            is_missed = count >= 5 or count * 2 >= size or self.had.get(place, (False, 0))[0]
            self.had[place] = is_missed, self.number
        for place, (is_missed, last) in self.had.items():
            table, _, path = place.partition(": ")
            holders = [f"{table}: {path.rpartition('.')[0]}"] if "." in path else []
            accepted = [("values_gone", place), *(("form_changed", one) for one in [place, *holders])]
            is_gone = is_missed and not filled[place] and sizes.get(table, 0)
            if is_gone and all(self.accepted.get(one, 0) < last for one in accepted):
                yield place

    def _widened(self, expected: Expected) -> bool:
        if self.kept("number") != "plain":
            self.type_of_number, self.is_widened = "", False
            return False
        numbers = [row["number"] for row in expected.tables["orders"].values() if "number" in row]
        has_fraction = any(Decimal(str(number)) % 1 for number in numbers)
        self.is_widened |= has_fraction and self.type_of_number == "bigint"
        if not self.type_of_number or has_fraction:
            self.type_of_number = "decimal" if has_fraction else "bigint"
        return self.is_widened

    def _accept(self, rule: str, place: str) -> None:
        """A person accepts a finding an hour after the run; a form is decided anew by the next one."""
        entry = Acceptance(f"orders.{rule}", "ana", self.at + timedelta(hours=1), "as agreed", place)
        path = accepted_file()
        write_acceptances(
            path, [*(one for one in read_acceptances(path) if one.rule != entry.rule or one.subject != place), entry]
        )
        self.accepted[rule, place] = self.number
        self.counts["accepted"] += 1
        for one in self.fields:
            if rule == "form_changed" and place == f"orders: {one.name}":
                one.kept = None


def canonical(value: Any) -> object:
    """A value without its type; None where it is empty."""
    if value is None or value in ("", "[]", {}):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float, Decimal)):
        return f"{Decimal(str(value)).normalize():f}"
    return value


def nights_seed(seed: int, nights: int = NIGHTS) -> Outcome:
    with folder_in_memory() as folder, mock.patch.dict(os.environ, DLT_PROJECT_DIR=str(folder)), inline():
        (folder / ".dlt").mkdir(mode=0o700)
        run = Nights(seed, folder)
        problems = list(run.run(nights))
    return Outcome(run.counts, problems)
