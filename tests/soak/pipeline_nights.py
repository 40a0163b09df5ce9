"""Nights in which the fields of orders drift, through the dlt sources in a pipeline of a user's own.

The first nights are the same for every seed: each odd value, type and form once. Then orders change to random ones of
them; a field has another name for a while, a child table comes and goes. The judge, in plain Python: no run fails; each
value of each order is in a column of its field, of whatever type, or in `_extra`, where nothing else is; the items of
lists are in their child tables; and a column keeps its type.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from unittest import mock

import dlt
import pytest

from sandbox import Sandbox, SandboxConfig, serve
from sources.decode.table_schema import snake
from sources.extract import spool
from sources.public_v1 import public_v1
from sources.settings import prepare_dlt
from tests.postgres import PASSWORD, connect, server
from tests.soak.outcome import Outcome

NIGHTS: Final = 30
ORDERS: Final = 28
Row = dict[str, Any]
Change = dict[int, Row]
FIRST: Final[list[Change]] = [
    {},
    {0: {"number": 10.5, "flag": 5}},
    {1: {"lines": {}, "flag": "007"}, 2: {"customer": "guest"}, 3: {"lines": ""}, 4: {"lines": [None]}},
    {1: {"lines": {"0": {"sku": "A", "quantity": 1}, "2": {"sku": "B"}}}, 2: {"customer": []}, 3: {"shipping": []}},
    {2: {"lines": {"sku": "C", "taxes": {"name": "IGV"}}}, 5: {"lines": False, "number": "11.25", "flag": None}},
    {n: {"flag": n % 2 == 0, "lines": []} for n in range(ORDERS)},
    {n: {"flag": f"0{n}", "customer": {"id": n}, "lines": {"sku": "D"} if n == 3 else []} for n in range(ORDERS)},
]
"""What some orders, by place, change to in each of the first nights."""
FORMS: Final[dict[str, tuple[Any, ...]]] = {
    "number": (7, 7.5, "7.25", "08", True, {"value": 7}, None, []),
    "flag": (True, False, 5, "007", "", None, [None], {}),
    "customer": ({"id": 3}, {"id": "x3"}, [{"id": 4}], "guest", 5, [], [None], {}, "", False, None),
    "lines": (
        [{"sku": "A"}, {"sku": "B"}],
        {"sku": "C"},
        {"0": {"sku": "D"}, "3": {"sku": "E"}},
        [None],
        [],
        {},
        False,
    ),
    "gifts": ([{"text": "a"}, {"text": "b"}], [{"text": "c"}], {"text": "d"}, [None], [], {}, None),
    "channel": ("web", "app", None),
    "Channel": ("shop", None),
}
NOTHING: Final[tuple[Any, ...]] = (None, "", [], {}, [None])


def is_nothing(field: str, value: object) -> bool:
    """Whether a value is empty where others of its field hold something."""
    return value in NOTHING or (value is False and field in ("customer", "lines", "gifts"))


def items(value: Any) -> list[Row]:
    """The items of a list, in whatever form it is written."""
    if isinstance(value, dict):
        value = list(value.values()) if all(name.isdigit() for name in value) else [value]
    return [item for item in value or [] if item]


def canonical(value: Any) -> object:
    """A value without its type."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return format(Decimal(str(value)).normalize(), "f")
    except ArithmeticError:
        return value


def _in_columns(row: Row, name: str) -> list[Any]:
    """What the columns of a field hold: under one of its names, in its type or in that of a variant."""
    return [row[one] for one in row if one.partition("__v_")[0].removesuffix("_2") == name]


def drift(draw: random.Random) -> Change:
    """A night: some orders change a field, or all of them do, so that its form or a child table goes."""
    if draw.random() < 0.3:
        field = draw.choice(list(FORMS))
        return {
            place: {field: draw.choice(FORMS[field][:3] if draw.random() < 0.9 else FORMS[field])}
            for place in range(ORDERS)
        }
    places = draw.sample(range(ORDERS), draw.randint(1, 6))
    return {place: {(field := draw.choice(list(FORMS))): draw.choice(FORMS[field])} for place in places}


class PipelineNights:
    """The nights of one pipeline."""

    def __init__(self, seed: int, platform: Sandbox, pipe: dlt.Pipeline) -> None:
        self._draw, self._platform, self._pipe = random.Random(seed), platform, pipe
        self._types: dict[str, Any] = {}

    def run(self, nights: int) -> Iterator[str]:
        """The nights; yields what is wrong."""
        ids = sorted(self._platform.state.ids("orders"))
        for number in range(nights):
            for place, change in (FIRST[number] if number < len(FIRST) else drift(self._draw)).items():
                self._platform.state.change("orders", ids[place], change)
            self._pipe.run(public_v1().with_resources("orders"))
            yield from (f"night {number + 1}: {problem}" for problem in self._judge())

    def _judge(self) -> Iterator[str]:
        columns = self._pipe.default_schema.tables["orders"]["columns"]
        types = {name: column["data_type"] for name, column in columns.items() if "data_type" in column}
        for name in self._types.keys() - {name for name in types if types[name] == self._types.get(name)}:
            yield f"{name} was {self._types[name]}, and is {types.get(name)}"
        self._types = types
        loaded = {row["id"]: row for row in self._rows("orders")}
        children = {field: self._rows(f"orders__{field}") for field in ("lines", "gifts")}
        for order in self._platform.state.records("orders"):
            row = loaded.get(str(order["id"]))
            if row is None:
                yield f"order {order['id']} is lost"
                continue
            extra = json.loads(row["_extra"] or "{}")
            for problem in (*self._scalars(order, row, extra), *self._items(order, row, children, extra)):
                yield f"order {order['id']}: {problem}"
            if extra:
                yield f"order {order['id']}: _extra has {extra}"

    def _scalars(self, order: Row, row: Row, extra: Row) -> Iterator[str]:
        for field in ("number", "flag", "customer", "channel", "Channel"):
            value = order.get(field)
            if is_nothing(field, value):
                continue
            single, places = value[0] if isinstance(value, list) else value, {field: value}
            if field not in extra and isinstance(single, dict):
                places = {f"{field}.{inner}": one for inner, one in single.items()}
            for path, wanted in places.items():
                found = [extra.pop(path)] if path in extra else _in_columns(row, "__".join(map(snake, path.split("."))))
                if canonical(wanted) not in map(canonical, found):
                    yield f"{path} is {found} instead of {wanted!r}"

    def _items(self, order: Row, row: Row, children: Mapping[str, list[Row]], extra: Row) -> Iterator[str]:
        for field, name in (("lines", "sku"), ("gifts", "text")):
            wanted = [item[name] for item in items(order.get(field))]
            rows = [one for one in children[field] if one["order_id"] == str(order["id"])]
            found = [one[name] for one in sorted(rows, key=lambda one: one["position"])]
            if field in extra:
                found += [item[name] for item in items(extra.pop(field))]
            if len(wanted) == 1 and not found:  # where most have a single one
                found = [value for value in _in_columns(row, f"{field}__{name}") if value is not None]
            if found != wanted:
                yield f"{field} are {found} instead of {wanted}"

    def _rows(self, table: str) -> list[Row]:
        if table not in self._pipe.default_schema.tables:
            return []
        with self._pipe.sql_client() as client, client.execute_query(f"SELECT * FROM {table}") as cursor:
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def pipeline_nights_seed(seed: int, nights: int = NIGHTS) -> Outcome:
    """Nights in DuckDB and, where a server can be started, in Postgres."""
    problems: list[str] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pipeline-nights-")))
        targets: dict[str, Any] = {"duckdb": dlt.destinations.duckdb(str(folder / "shop.duckdb"))}
        try:
            port = stack.enter_context(server())
        except pytest.skip.Exception:
            pass
        else:
            with closing(connect(port)) as connection:
                connection.cursor().execute("CREATE DATABASE shop")
            targets["postgres"] = dlt.destinations.postgres(f"postgresql://loader:{PASSWORD}@127.0.0.1:{port}/shop")
        stack.enter_context(mock.patch.dict(os.environ))
        stack.enter_context(mock.patch.object(spool, "DIGEST_COST", 2))
        for name, target in targets.items():
            with serve(SandboxConfig(orders=ORDERS)) as platform:
                state = folder / f"{name}-state"
                state.mkdir()
                prepare_dlt(folder, state)
                os.environ |= {
                    "SOURCES__PUBLIC_V1__BASE_URL": platform.url,
                    "SOURCES__PUBLIC_V1__API_KEY": platform.v1_key,
                    "SOURCES__PUBLIC_V1__PAGE_LIMIT": "25",
                }
                pipe = dlt.pipeline("shop", pipelines_dir=str(state), destination=target, dataset_name="theirs")
                try:
                    problems += [f"{name}: {one}" for one in PipelineNights(seed, platform, pipe).run(nights)]
                except Exception as error:  # a run that fails is what the judge looks for
                    problems.append(f"{name}: {type(error).__name__}: {error}")
                pipe.deactivate()
    return Outcome({"nights": nights * len(targets), **dict.fromkeys(targets, nights)}, problems)
