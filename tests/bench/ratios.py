"""What our code costs as a ratio to a floor on the same work, in one process: guarded by `test_ratios`.

    python -m tests.bench.ratios            prints the ratios next to the recorded ones
    python -m tests.bench.ratios --record   records them in ratios.json, on a quiet machine
    python -m tests.bench.ratios --check W  fails where those of the work W have grown by a quarter

Two figures for each work: `cpu`, CPU seconds of ours divided by those of the floor, the least of alternating rounds;
and `calls`, the functions that Python calls on our way, which do not depend on the machine. For the pull also `parsed`:
bytes given to parsers of JSON, for each byte of the pages.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from time import process_time
from types import FrameType
from typing import Any, Final
from unittest import mock

import duckdb
import httpx
import msgspec

from pipelines.plan.make import PlanOptions, make_plan
from sandbox.config import LEGACY_KEY, V1_KEY, SandboxConfig
from sandbox.records import generators
from sources.contract import LISTS
from sources.decode.ndjson import NdjsonBatch
from sources.extract.legacy_pages import LegacyPages
from sources.extract.result import WalkOptions
from sources.extract.spool import SpoolFolder
from sources.extract.v1_pages import V1Cursor
from sources.extract.walk import paginator_for, walk
from sources.http.client import Client
from tests.bench import floor, plan, reconcile, row_by_row
from tests.soak.transport import requested_url
from tests.soak.walks import inline

FILE: Final = Path(__file__).with_name("ratios.json")
GROWTH_MAX: Final = 1.25
ROUNDS_MAX: Final = 25
PAGES: Final = 40
PLANNED_ROWS: Final = 4_000
MATCHED_ROWS: Final = 20_000
KEYS: Final = {"customers": LEGACY_KEY, "orders": V1_KEY}


@dataclass(frozen=True)
class Work:
    """The same work, done by our code and by the floor."""

    ours: Callable[[], object]
    floor: Callable[[], object]


def bodies(name: str) -> list[bytes]:
    """The pages of a list, as the platform sends them."""
    config = SandboxConfig(customers=PAGES * 100, orders=PAGES * 100)
    rows = list(map(generators(config)[name], range(PAGES * 100)))
    pages = [b",".join(rows[start : start + 100]) for start in range(0, len(rows), 100)]
    if name == "customers":
        return [b'{"data":[%b]}' % page for page in (*pages, b"")]
    ends = [b'true,"nextCursor":"%d"' % n for n in range(1, PAGES)] + [b"false"]
    return [b'{"data":[%b],"hasMore":%b}' % pair for pair in zip(pages, ends, strict=True)]


def envelope(_: Path) -> Work:
    """The rows of pages and their ids, compared with a decoder that finds the rows only."""
    lists = {name: bodies(name) for name in KEYS}
    decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])

    def ours() -> None:
        for name, pages in lists.items():
            parse = paginator_for(LISTS[name], 100).parse
            for page in pages:
                parse(page)

    def bare() -> None:
        for pages in lists.values():
            for page in pages:
                decoder.decode(page)

    return Work(ours, bare)


def pull(folder: Path) -> Work:
    """Both lists walked and put into DuckDB, without sockets, compared with the floor of the benchmark."""
    lists = {name: bodies(name) for name in KEYS}
    numbers = count()

    def ours() -> None:
        place = folder / f"walk-{next(numbers)}"
        with duckdb.connect() as connection, inline():
            for name, pages in lists.items():
                transport = httpx.MockTransport(partial(_answer, pages))
                with Client(LISTS[name].family, "http://127.0.0.1:9", KEYS[name], transport=transport) as client:
                    spools = SpoolFolder(place / name / "spool", {"list": name})
                    options = WalkOptions(100, sweeps=1, window=1)
                    result = walk(name, client, place / name, spools, options)
                assert result.distinct == PAGES * 100, result.error
                for table, ((file, _),) in result.files.items():
                    connection.execute(f"CREATE TABLE {table} AS FROM read_parquet('{file}')")
        shutil.rmtree(place)

    def bare() -> None:
        records = {"customers": floor._CUSTOMER, "orders": floor._ORDER}
        with duckdb.connect() as connection:
            for name, child in (("customers", "documents"), ("orders", "lines")):
                listed = floor.Listed(name, iter(()), records[name], child)
                for table, batch in listed.tables(lists[name]):
                    connection.register("batch", batch)
                    connection.execute(f"CREATE TABLE {table} AS SELECT {floor._COLUMNS[table]} FROM batch")
                    connection.unregister("batch")

    return Work(ours, bare)


def _answer(pages: list[bytes], request: httpx.Request) -> httpx.Response:
    query = requested_url(request).params
    number = int(query.get("startingAfter", 0)) if "page" not in query else max(int(query["page"]) - 1, 0)
    return httpx.Response(200, stream=httpx.ByteStream(pages[number]))


def planned(folder: Path) -> Work:
    """A CSV of variants, compared with pandas and pydantic row by row."""
    file, mapping, target = folder / "articulos.csv", folder / "mapping.toml", folder / "plan"
    plan.write_file(file, PLANNED_ROWS)
    mapping.write_text(plan.MAPPING, "utf-8")

    def ours() -> None:
        make_plan(PlanOptions("variants", file, mapping, target))
        shutil.rmtree(target)

    return Work(ours, lambda: row_by_row.counted(str(file), str(folder / "row_by_row.jsonl")))


def matched(folder: Path) -> Work:
    """The match with the ERP, compared with one merge of pandas."""
    reconcile.make(MATCHED_ROWS, folder)
    return Work(reconcile.CONTENDERS["ours"](folder), reconcile.CONTENDERS["pandas"](folder))


WORKS: Final[dict[str, Callable[[Path], Work]]] = {
    "envelope": envelope,
    "pull": pull,
    "plan": planned,
    "match": matched,
}


def prepared(name: str, folder: Path) -> Work:
    """A work after a first run of each, which imports and fills caches."""
    work = WORKS[name](folder)
    work.ours()
    work.floor()
    return work


def cpu_ratios(work: Work) -> Iterator[float]:
    """The ratio of the least CPU seconds so far, after each further round."""
    least = [float("inf")] * 2
    while True:
        for place, run in enumerate((work.ours, work.floor)):
            began = process_time()
            run()
            least[place] = min(least[place], process_time() - began)
        yield least[0] / least[1]


def calls(work: Work) -> int:
    """Functions called on this thread by our way."""
    number = 0

    def profile(_: FrameType, event: str, __: Any) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        work.ours()
    finally:
        sys.setprofile(None)
    return number


def parsed(work: Work) -> float:
    """Bytes that paginators and the decoder parse in a pull, for each byte of the pages."""
    sizes = []

    def counting(function: Callable[..., Any], place: int) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            sizes.append(
                sum(len(page.rows) for page in data) if isinstance(data := arguments[place], list) else len(data)
            )
            return function(*arguments)

        return counted

    with ExitStack() as stack:
        for kind, name in ((LegacyPages, "parse"), (V1Cursor, "parse"), (NdjsonBatch, "__init__")):
            stack.enter_context(mock.patch.object(kind, name, counting(getattr(kind, name), 1)))
        work.ours()
    return round(sum(sizes) / sum(map(len, (*bodies("customers"), *bodies("orders")))), 2)


def measured(name: str, rounds: int) -> dict[str, float]:
    """Both figures of a work."""
    with tempfile.TemporaryDirectory(prefix="orderbridge-ratios-") as folder:
        work = prepared(name, Path(folder))
        found = cpu_ratios(work)
        more = {"parsed": parsed(work)} if name == "pull" else {}
        return {"calls": calls(work), "cpu": round([next(found) for _ in range(rounds)][-1], 2), **more}


def growth(name: str, recorded: dict[str, float]) -> str:
    """The figure of a work that has grown by a quarter; empty if none has."""
    with tempfile.TemporaryDirectory(prefix="orderbridge-ratios-") as folder:
        work = prepared(name, Path(folder))
        found = {"calls": float(calls(work)), **({"parsed": parsed(work)} if name == "pull" else {})}
        # A loaded machine disturbs single rounds: one by which the ratio is as recorded is enough.
        for ratio in islice(cpu_ratios(work), ROUNDS_MAX):
            found["cpu"] = ratio
            if ratio <= GROWTH_MAX * recorded["cpu"]:
                break
    grown = [figure for figure, value in found.items() if value > GROWTH_MAX * recorded[figure]]
    return ", ".join(f"{name}: {figure} {found[figure]:.2f}, recorded: {recorded[figure]}" for figure in grown)


def main() -> None:
    """See the module."""
    os.environ.update(plan.SETTINGS)
    recorded = json.loads(FILE.read_text())
    if sys.argv[1:2] == ["--check"]:
        sys.exit(growth(sys.argv[2], recorded[sys.argv[2]]) or 0)  # a text is printed, and the code 1
    found = {}
    for name in WORKS:
        found[name] = measured(name, 10)
        print(name, found[name], "recorded:", recorded.get(name), flush=True)
    if sys.argv[1:] == ["--record"]:
        FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
