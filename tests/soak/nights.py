"""Thirty nights of one warehouse, while the fields of its orders drift and single values are odd.

Each night is a real walk, merge and reconcile. The platform writes known orders: the same meaning in many ways (an
empty list as `{}` or `""`, a list of one as its item, a number as a text), single values of another kind, and fields
that change their form, go and come back. The judge, in plain Python: each value is in the tables, under its name, and
in `_extra` only if the form that was decided or accepted has no column for it; each loss and change is a finding, night
after night until it is accepted; columns keep their types.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, Final
from unittest import mock

import duckdb
import httpx

from orderbridge.pipelines.pull.model import PullOptions, PullResult
from orderbridge.pipelines.pull.publishing import Publication
from orderbridge.pipelines.pull.targets import Targets
from orderbridge.pipelines.reconcile import reconcile
from orderbridge.pipelines.reconcile.entities import STEPS
from orderbridge.pipelines.reconcile.reconcile import Reconciling
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers.accepted import (
    Acceptance,
    accepted_file,
    read_acceptances,
    write_acceptances,
)
from orderbridge.pipelines.warehouse.build import Build
from orderbridge.pipelines.warehouse.raw import merge
from orderbridge.pipelines.warehouse.raw.field_kinds import kept_kinds
from orderbridge.pipelines.warehouse.raw.load import CATALOG, LOADED
from orderbridge.pipelines.warehouse.raw.recent_rows import mark_recent_rows
from orderbridge.pipelines.warehouse.raw.schema_changes import field_names
from orderbridge.sandbox.config import V1_KEY
from orderbridge.sources.extract.result import WalkOptions
from orderbridge.sources.extract.spool import SpoolFolder
from orderbridge.sources.extract.walk import walk
from orderbridge.sources.http.client import Client
from orderbridge.sources.settings import ReconcileSettings
from tests.soak.copies import NightlyCopy, nightly_copy
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
NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
"""A text that is a number, without the zeros of a code."""
OURS: Final = (
    "_run_id",
    "_extra",
    "_missing_since",
    "_first_seen_at",
    "_last_seen_at",
    "_page",
    "_position",
    "_orderbridge_removed",
)
"""Fields of the platform that are named like columns of ours. In a raw table, the reserved ones end in `_2`."""
OURS_OF_LINE: Final = ("order_id", "position", "_run_id", "_extra")
RULES: Final = ("form_changed", "odd_value", "values_gone", "type_widened")
Row = dict[str, Any]
Written = tuple[object, str]
"""A value in JSON, and the place of what no column of its own form holds; empty where there is none."""
Write = Callable[[Row, random.Random, bool], Written]


def _scalar(
    name: str, odd: tuple[object, ...], order: Row, draw: random.Random, is_odd: bool
) -> Written:
    value = order[name]
    if is_odd:
        return draw.choice(odd), f"orders: {name}"
    if value in EMPTY:
        return draw.choice(EMPTY), ""
    return str(value) if name in ("number", "total") and draw.random() < 0.02 else value, ""


def _object(name: str, order: Row, draw: random.Random, is_odd: bool) -> Written:
    value = order[name]
    if is_odd:
        odd = ("guest", 5, True, ["x"], [{"id": 1}, {"id": 2}], {"0": "x"})
        return draw.choice(odd), f"orders: {name}"
    if value in EMPTY:
        return draw.choice((*EMPTY, False)), ""
    return [value] if draw.random() < 0.02 else value, ""


def _items(name: str, order: Row, draw: random.Random, is_odd: bool) -> Written:
    items, way = order["lines"], draw.random()
    if is_odd and (way < 0.4 or not items):
        return "none", f"orders: {name}"
    if is_odd and way < 0.7:
        return [*items, "x"], f"orders: {name}[]"
    if is_odd:
        return [*items[:-1], {**items[-1], "quantity": "two"}], f"orders__{name}: quantity"
    if not items:
        return draw.choice((*EMPTY, False, [None])), ""
    if way < 0.05:
        return {str(n * n): item for n, item in enumerate(items)}, ""
    return items[0] if len(items) == 1 and way < 0.2 else items, ""


def _payments(order: Row, draw: random.Random, is_odd: bool) -> Written:
    """Always a list, and nearly always of one payment."""
    if is_odd:
        return "none", "orders: payments"
    return order["payments"], ""


def _tags(order: Row, draw: random.Random, is_odd: bool) -> Written:
    tags, way = order["tags"], draw.random()
    if not tags:
        return draw.choice((*EMPTY, False)), ""
    if way < 0.05:
        return {str(n): tag for n, tag in enumerate(tags)}, ""
    return tags[0] if len(tags) == 1 and way < 0.1 else tags, ""


def _text(name: str, text: str, order: Row, draw: random.Random, is_odd: bool) -> Written:
    if is_odd and name != "lines":  # whose items would be odd
        return {"0": "odd"}, f"orders: {name}"
    return text.format(**order), ""


@dataclass
class Field:
    """A field of the orders: the forms in which it may be written, the present one, and the one decided or accepted."""

    name: str
    forms: dict[str, Write]
    form: str = "plain"
    kept: str | None = None

    def __post_init__(self) -> None:
        self.forms["absent"] = lambda *_: (NOT_WRITTEN, "")

    @property
    def is_text(self) -> bool:
        return self.kept == "text" or (
            self.kept == "plain" and self.name in ("status", "channel", *OURS)
        )

    def is_nothing(self, value: object) -> bool:
        if value in (*EMPTY, [None]):
            return True
        return value is False and self.name != "gift" and not self.is_text

    def odd_place(self, written: Written) -> str:
        """The place of what has no column in the form that is kept; empty where all of it has."""
        value, place = written
        if self.kept == self.form:
            return place
        is_empty = self.is_nothing(value) or (value is False and not self.is_text)
        is_held = self.kept is None or is_empty
        return (
            ""
            if is_held or (self.is_text and isinstance(value, (str, int, float)))
            else f"orders: {self.name}"
        )


def fields() -> list[Field]:
    total = partial(_scalar, "total", ("about 12", [1], {"a": 1}, True))
    number = partial(_scalar, "number", ("A-7", [1], {"a": 1}, True, "007"))
    gift = partial(_scalar, "gift", ("yes", 1, [True], {"a": 1}))
    return [
        Field("number", {"plain": number, "text": partial(_text, "number", "A-{number}")}),
        Field("total", {"plain": total, "text": partial(_text, "total", "{total} EUR")}),
        Field("status", {"plain": partial(_scalar, "status", ([1], {"a": 1}))}),
        Field("gift", {"plain": gift, "text": partial(_text, "gift", "yes")}),
        Field(
            "customer",
            {"plain": partial(_object, "customer"), "text": partial(_text, "customer", "C-1")},
        ),
        Field(
            "lines", {"plain": partial(_items, "lines"), "text": partial(_text, "lines", "2 lines")}
        ),
        Field("tags", {"plain": _tags}),
        Field("payments", {"plain": _payments}),
        *(Field(name, {"plain": partial(_scalar, name, ([1],))}) for name in OURS),
        Field("items", {"plain": partial(_items, "items")}, "absent"),
        Field("channel", {"plain": partial(_scalar, "channel", ([1],))}, "absent"),
    ]


class Shop(httpx.BaseTransport):
    def __init__(self) -> None:
        self.orders: list[Row] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        query = requested_url(request).params
        begin = int(query.get("startingAfter", 0))
        end = begin + int(query["limit"])
        more = end < len(self.orders)
        page = {
            "data": self.orders[begin:end],
            "hasMore": more,
            "nextCursor": str(end) if more else None,
        }
        return httpx.Response(200, json=page)


class NightlyPull:
    """A shop's platform, and the warehouse that it is pulled into every night."""

    def __init__(self, folder: Path, page: int = PAGE) -> None:
        self.folder, self.page, self.shop = folder, page, Shop()
        self.number = 0
        # rows are kept beside it for a while
        self.warehouse = duckdb.connect(str(folder / "warehouse.duckdb"))
        self.warehouse.execute("SET TimeZone = 'UTC'")
        self.warehouse.execute(f"ATTACH ':memory:' AS {CATALOG}; CREATE SCHEMA {LOADED}")
        merge.create_missing(self.warehouse)
        ops.create_missing(self.warehouse)

    @property
    def at(self) -> datetime:
        return BEGIN + timedelta(days=self.number)

    def pull(self) -> str:
        """A whole pull and reconcile, but that the rows are not loaded by dlt and nothing is published."""
        build, warehouse = (
            Build(self.folder / f"{self.number}" / "warehouse.duckdb"),
            self.warehouse,
        )
        options = WalkOptions(
            self.page,
            window=1,
            names=field_names(warehouse, "orders"),
            kinds=kept_kinds(warehouse, "orders"),
        )
        with Client("public_v1", "http://127.0.0.1:9", V1_KEY, transport=self.shop) as client:
            spools = SpoolFolder(build.spools, {"night": self.number})
            result = walk("orders", client, build.run_folder / "files", spools, options)
        if result.error is not None:
            return str(result.error)
        result.ended_at = self.at
        for table, files in result.files.items():
            paths = [str(path) for path, _ in files]
            warehouse.execute(
                f'CREATE OR REPLACE TABLE {LOADED}."{table}" AS FROM read_parquet($1)', [paths]
            )
        pulled = PullResult(f"run {self.number:02}", build.path, [result])
        counts = pulled.changes["orders"] = merge.compare(warehouse, result)
        mark_recent_rows(warehouse, result, counts)
        merge.merge_list(warehouse, result, pulled.run_id)
        run: Any = SimpleNamespace(build=build)
        publication = Publication(run, PullOptions(), Targets(), pulled, None, Event())
        publication._record_lists(warehouse, self.at)
        with ExitStack() as stack:
            if self.number > 1:  # the other tables are as empty as before
                steps = {name: STEPS[name] for name in ("orders", "order_lines")}
                stack.enter_context(mock.patch.multiple(reconcile, STEPS=steps, HISTORIES=()))
            Reconciling(settings=ReconcileSettings()).build_tables(
                warehouse, pulled.run_id, self.at
            )
        return ""

    def accept(self, rule: str, place: str) -> None:
        """A person accepts a finding an hour after the run."""
        entry = Acceptance(
            f"orders.{rule}", "ana", self.at + timedelta(hours=1), "as agreed", place
        )
        path = accepted_file()
        others = [
            one for one in read_acceptances(path) if one.rule != entry.rule or one.subject != place
        ]
        write_acceptances(path, [*others, entry])


class Nights(NightlyPull):
    """Known orders whose fields drift."""

    def __init__(self, seed: int, folder: Path, copy: NightlyCopy | None = None) -> None:
        super().__init__(folder)
        self.copy = copy
        self.draw = random.Random(seed)
        self.fields, self.orders = fields(), [self._order(n) for n in range(ORDERS_MIN)]
        self.counts: Counter[str] = Counter()
        self.odd: Counter[str] = Counter()
        self.written: dict[str, Counter[object]] = {}
        self.tables: dict[str, list[Row]] = {}
        self.types: dict[tuple[str, str], str] = {}
        self.had: dict[str, tuple[bool, int]] = {}
        """By place: whether its loss is to be reported, and the last night that it had values."""
        self.accepted: dict[tuple[str, str], int] = {}
        self.is_widened, self.type_of_number = False, ""

    def kept(self, name: str) -> str | None:
        """The form of a field that is kept; None also where there is no such field."""
        return next((one.kept for one in self.fields if one.name == name), None)

    def _price(self) -> float:
        """An amount; some have the decimals of a division, such as 8.264462809917356 for 10 / 1.21."""
        price = self.draw.randrange(100, 9999) / 100
        return price / 1.21 if self.draw.random() < 0.3 else price

    def _order(self, key: int) -> Row:
        draw = self.draw
        prices = [self._price() for _ in range(draw.choice((0, 1, 1, 2, 2, 3, 4)))]
        payments = [
            {"method": draw.choice(("card", "cash")), "paid": self._price()}
            for _ in range(2 if draw.random() < 0.04 else 1)
        ]
        return {
            "id": 1000 + key,
            "number": 500 + key,
            "total": 10 * self._price(),
            "status": draw.choice(("paid", "open", "sent", "held", None)),
            "gift": draw.choice((True, False, True, False, None)),
            "customer": draw.choice(
                (None, *[{"id": draw.randrange(9), "code": f"0{draw.randrange(9)}"}] * 4)
            ),
            "lines": [
                {
                    "sku": f"S{draw.randrange(9)}",
                    "quantity": draw.randrange(1, 9),
                    "price": p,
                    **{name: f"their {name}" for name in OURS_OF_LINE},
                }
                for p in prices
            ],
            "payments": payments,
            **{name: draw.choice((None, *[f"their {name}"] * 4)) for name in OURS},
            "tags": draw.choice(([], ["a"], ["a", "b"])),
            "channel": draw.choice(("web", "app")),
        }

    def run(self, nights: int) -> Iterator[str]:
        for self.number in range(1, nights + 1):
            if self.number > 1:
                self._change()
            self._write()
            if error := self.pull():
                yield f"night {self.number}: {error}"
                break
            for problem in [
                *self._judge_tables(),
                *self._judge_types(),
                *self._judge_findings(),
                *self._judge_copy(),
            ]:
                yield f"night {self.number}: {problem}"
        self.warehouse.close()

    def _change(self) -> None:
        """Orders come, go and change; a field takes another form."""
        draw = self.draw
        self.orders += [self._order(1000 * self.number + n) for n in range(draw.randrange(4))]
        for order in draw.sample(self.orders, 3):
            order |= {
                "status": draw.choice(("paid", "sent")),
                "total": 10 * self._price(),
            }
        if len(self.orders) > ORDERS_MIN and draw.random() < 0.5:
            self.orders.remove(draw.choice(self.orders))
        if draw.random() < 0.1:
            draw.choice(self.orders)["number"] += 0.5
        if draw.random() < 0.5:
            one = draw.choice(self.fields)
            one.form = draw.choice([*one.forms, "plain"])
            self.counts["fields in another form"] += 1

    def _write(self) -> None:
        """Writes the orders for the platform, and what the warehouse should make of them."""
        draw, self.odd = self.draw, Counter()
        self.shop.orders = [{"id": order["id"]} for order in self.orders]
        self.written = {str(order["id"]): Counter() for order in self.orders}
        for one in self.fields:
            count = (
                draw.choice((0, 0, 0, 1, ODD_MAX if one.kept else 1)) if one.form != "absent" else 0
            )
            odd = draw.sample(range(len(self.orders)), count)
            written = [
                one.forms[one.form](order, draw, n in odd) for n, order in enumerate(self.orders)
            ]
            if one.kept is None and any(value not in EMPTY for value, _ in written):
                one.kept = one.form
                if one.name == "number":
                    self.type_of_number, self.is_widened = "", False
            for row, made in zip(self.shop.orders, written, strict=True):
                value, _ = made
                if value is not NOT_WRITTEN:
                    row[one.name] = value
                if not one.is_nothing(value):
                    self.written[str(row["id"])].update(leaves(value, one.name, one.name))
                self.odd.update(filter(None, [one.odd_place(made)]))

    def _judge_tables(self) -> Iterator[str]:
        """Whether each order has each of its values under its name once, and nothing else."""
        sql = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'raw' AND starts_with(table_name, 'orders')"
        self.tables = {
            table: self._rows(table) for (table,) in self.warehouse.execute(sql).fetchall()
        }
        found = {row["id"]: Counter[object]() for row in self.tables["orders"]}
        for table, rows in self.tables.items():
            for row in rows:
                values = found[row.get("order_id", row.get("id"))]
                values.update(self._values_of(table, row))
        for key in self.written.keys() | found.keys():
            if (was := found.get(key)) != (wanted := self.written.get(key)):
                yield f"order {key} has {was} instead of {wanted}"
                break
        places = Counter(
            f"{table}: {path.partition('[')[0]}{'[]' if '[' in path else ''}"
            for table, rows in self.tables.items()
            for row in rows
            for path in row["_extra"]
            if not is_exact_text(row, path)
        )
        if places != self.odd:
            yield f"without a column are {places} instead of {self.odd}"
        if self.kept("payments") == "plain" and "orders__payments" not in self.tables:
            yield "lists of one payment are no child table"
        sizes = [len(self.tables.get(table, ())) for table in ("orders__lines", "orders__items")]
        sql = "SELECT count(*) FROM reconciled.order_lines JOIN reconciled.orders USING (order_id) WHERE NOT is_missing"
        ((lines,),) = self.warehouse.execute(sql).fetchall()
        if lines != (sizes[0] or sizes[1]):
            yield f"{lines} reconciled lines instead of {sizes[0] or sizes[1]}"

    def _values_of(self, table: str, row: Row) -> Iterator[object]:
        """The values that a row of a raw table holds; of a rounded number, the exact one in `_extra`."""
        for column, value in row.items():
            name, *inner = [*table.split("__")[1:], *column.split("__")]
            if column == "_extra":
                for path, odd in value.items():
                    top = table.partition("__")[2] or path.partition("[")[0]
                    yield from leaves(odd, top, path.partition("[")[0])
            elif column in ("id", "order_id", "position") or is_exact_text(row, column):
                continue
            else:
                is_list = name == "tags" and value and value[0] == "["
                yield from leaves(
                    json.loads(value) if is_list else value,
                    their_name(name),
                    their_name((inner or [name])[-1]),
                )

    def _rows(self, table: str) -> list[Row]:
        """The listed rows of a raw table."""
        cursor = self.warehouse.execute(f'SELECT * FROM raw."{table}" WHERE _missing_since IS NULL')
        names = [column[0] for column in cursor.description or ()]
        rows = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
        rows = [
            {name: value for name, value in row.items() if name not in BOOKKEEPING} for row in rows
        ]
        return [
            {**row, "_extra": json.loads(row["_extra"] or "{}", parse_float=Decimal)}
            for row in rows
        ]

    def _judge_types(self) -> Iterator[str]:
        """Whether columns keep their types."""
        sql = "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE schema_name = 'raw'"
        types = {
            (table, column): kind for table, column, kind in self.warehouse.execute(sql).fetchall()
        }
        last_night = {
            place for (_, place), night in self.accepted.items() if night == self.number - 1
        }
        for key, kind in self.types.items():
            now, is_accepted = types.get(key), f"orders: {key[1].partition('__')[0]}" in last_night
            if (
                now != kind
                and not is_accepted
                and (key[1], kind, now) != ("number", "BIGINT", "DECIMAL(38,9)")
            ):
                yield f"{'.'.join(key)} was {kind}, and is {now}"
            if (
                self.kept(key[1]) == "plain"
                and key in (("orders", "number"), ("orders", "total"))
                and now == "VARCHAR"
            ):
                yield f"{'.'.join(key)} is text, whatever was decided"
        self.types = types

    def _judge_findings(self) -> Iterator[str]:
        wanted: set[tuple[str, str, int]] = set()
        for place, count in self.odd.items():
            rows = len(self.tables[place.partition(":")[0]])
            wanted.add(
                ("form_changed" if count >= max(5, rows / 20) else "odd_value", place, count)
            )
        wanted |= {("values_gone", place, 0) for place in self._gone()}
        wanted |= {("type_widened", "orders: number", 0)} if self._widened() else set()
        sql = f"SELECT rule, detail FROM reconciled.exceptions WHERE rule IN {RULES} AND NOT is_accepted"
        found: set[tuple[str, str, int]] = set()
        for rule, detail in self.warehouse.execute(sql).fetchall():
            place, _, words = detail.rpartition(": ")
            found.add(
                (rule, place, int(words.split()[0]) if rule in ("form_changed", "odd_value") else 0)
            )
        for one in sorted(wanted - found):
            yield f"not announced: {one}"
        for one in sorted(found - wanted):
            yield f"announced without a reason: {one}"
        self.counts.update(rule for rule, _, _ in found)
        errors = sorted(
            (rule, place) for rule, place, _ in found if rule in ("form_changed", "values_gone")
        )
        if errors and self.draw.random() < 0.35:
            self._accept(*self.draw.choice(errors))

    def _judge_copy(self) -> Iterator[str]:
        """Whether the copy in Postgres is the warehouse."""
        if self.copy is not None:
            self.counts["copies"] += 1
            yield from self.copy.differences(self.warehouse, self.folder / "warehouse.duckdb")

    def _gone(self) -> Iterator[str]:
        """The places that had values and have none, until that is accepted."""
        filled: Counter[str] = Counter()
        for table, rows in self.tables.items():
            if table != "orders":
                filled[f"orders: {table.removeprefix('orders__')}"] = len(rows)
            for row in rows:
                names = (
                    name
                    for name, value in row.items()
                    if canonical(value) is not None and name != "_extra"
                )
                filled.update(f"{table}: {their_name(name).replace('__', '.')}" for name in names)
        for place, count in filled.items():
            if not place.endswith((": id", ": order_id", ": position")) and count:
                size = len(self.tables[place.partition(":")[0]])
                is_missed = count >= 5 or count * 2 >= size or self.had.get(place, (False, 0))[0]
                self.had[place] = is_missed, self.number
        for place, (is_missed, last) in self.had.items():
            table, _, path = place.partition(": ")
            holders = [f"{table}: {path.rpartition('.')[0]}"] if "." in path else []
            accepted = [
                ("values_gone", place),
                *(("form_changed", one) for one in [place, *holders]),
            ]
            is_gone = is_missed and not filled[place] and self.tables.get(table)
            if is_gone and all(self.accepted.get(one, 0) < last for one in accepted):
                yield place

    def _widened(self) -> bool:
        if self.kept("number") != "plain":
            self.type_of_number, self.is_widened = "", False
            return False
        has_fraction = any((row["number"] or 0) % 1 for row in self.tables["orders"])
        self.is_widened |= has_fraction and self.type_of_number == "bigint"
        if not self.type_of_number or has_fraction:
            self.type_of_number = "decimal" if has_fraction else "bigint"
        return self.is_widened

    def _accept(self, rule: str, place: str) -> None:
        """A form that is accepted is decided anew by the next run."""
        self.accept(rule, place)
        self.accepted[rule, place] = self.number
        self.counts["accepted"] += 1
        for one in self.fields:
            if rule == "form_changed" and place == f"orders: {one.name}":
                one.kept = None


def is_exact_text(row: Row, path: str) -> bool:
    """Whether a member of `_extra` is the exact text of the number that its column has rounded."""
    exact, rounded = row["_extra"].get(path), row.get(path)
    if not isinstance(exact, Decimal) or not isinstance(rounded, Decimal):
        return False
    return exact != rounded and abs(exact - rounded) <= Decimal("5e-10")


def their_name(column: str) -> str:
    """The field of a column whose name would be one of ours."""
    name = column.removesuffix("_2")
    return name if name in (*OURS, *OURS_OF_LINE) else column


def canonical(value: Any) -> object:
    """A value without its type; None where it is empty. A number is the same in a text: 631, 631.0 and "631.0"."""
    if value is None or value in ("", "[]", {}):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    is_number = isinstance(value, (int, float, Decimal))
    if is_number or (isinstance(value, str) and NUMBER.fullmatch(value)):
        return f"{Decimal(str(value)).normalize():f}"
    return value


def leaves(value: object, field: str, name: str) -> Iterator[object]:
    """The single values below a value of a field, each with the name that it has, without those that are empty."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, field, name if key.isdigit() else key)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, field, name)
    elif (text := canonical(value)) is not None:
        yield field, name, text


def nights_seed(seed: int, nights: int = NIGHTS, *, is_copied: bool = False) -> Outcome:
    """The nights of a seed, with a copy of each in Postgres where that is wanted."""
    with (
        folder_in_memory() as folder,
        mock.patch.dict(os.environ, DLT_PROJECT_DIR=str(folder)),
        inline(),
        nightly_copy(folder) if is_copied else nullcontext() as copy,
    ):
        (folder / ".dlt").mkdir(mode=0o700)
        run = Nights(seed, folder, copy)
        problems = list(run.run(nights))
    return Outcome(run.counts, problems)
