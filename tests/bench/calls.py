"""What our code does for fixed work, in figures that no machine changes: guarded by `test_calls`.

    python -m tests.bench.calls            prints the figures next to the recorded ones
    python -m tests.bench.calls --record   records them in calls.json

The figures are calls of functions by Python, whose versions count them differently: each has its own. Seconds and
memory are `make bench`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import count, islice
from pathlib import Path
from types import FrameType
from typing import Any, Final

import duckdb
import httpx

from orderbridge.pipelines.plan.make import PlanOptions, make_plan
from orderbridge.sandbox.config import LEGACY_KEY, V1_KEY, SandboxConfig
from orderbridge.sandbox.records import generators
from orderbridge.sources.contract import LISTS
from orderbridge.sources.extract.result import WalkOptions
from orderbridge.sources.extract.spool import SpoolFolder
from orderbridge.sources.extract.walk import walk
from orderbridge.sources.http.client import Client
from tests.bench import plan, reconcile
from tests.soak.transport import requested_url
from tests.soak.walks import inline

FILE: Final = Path(__file__).with_name("calls.json")
_BY_PYTHON: Final[dict[str, dict[str, int]]] = json.loads(FILE.read_text())
_PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
RECORDED: Final = _BY_PYTHON.get(_PYTHON) or _BY_PYTHON["3.11"]
GROWTH_MAX: Final = 1.25
PAGES: Final = 40
PLANNED_ROWS: Final = 4_000
MATCHED_ROWS: Final = 20_000
KEYS: Final = {"customers": LEGACY_KEY, "orders": V1_KEY}
Work = Callable[[], object]


def bodies(name: str) -> list[bytes]:
    rows = map(
        generators(SandboxConfig(customers=PAGES * 100, orders=PAGES * 100))[name],
        range(PAGES * 100),
    )
    pages = [b",".join(islice(rows, 100)) for _ in range(PAGES)]
    if name == "customers":
        return [b'{"data":[%b]}' % page for page in (*pages, b"")]
    ends = [b'true,"nextCursor":"%d"' % n for n in range(1, PAGES)] + [b"false"]
    return [b'{"data":[%b],"hasMore":%b}' % pair for pair in zip(pages, ends, strict=True)]


def pulled(folder: Path) -> Work:
    """Both lists walked and put into DuckDB, without sockets."""
    lists = {name: bodies(name) for name in KEYS}
    numbers = count()

    def work() -> None:
        place = folder / f"walk-{next(numbers)}"
        with duckdb.connect() as connection, inline():
            for name, pages in lists.items():
                transport = httpx.MockTransport(partial(_answer, pages))
                with Client(
                    LISTS[name].family, "http://127.0.0.1:9", KEYS[name], transport=transport
                ) as client:
                    spools = SpoolFolder(place / name / "spool", {"list": name})
                    options = WalkOptions(100, sweeps=1, window=1)
                    result = walk(name, client, place / name, spools, options)
                assert result.distinct == PAGES * 100, result.error
                for table, ((file, _),) in result.files.items():
                    connection.execute(f"CREATE TABLE {table} AS FROM read_parquet('{file}')")
        shutil.rmtree(place)

    return work


def _answer(pages: list[bytes], request: httpx.Request) -> httpx.Response:
    query = requested_url(request).params
    number = (
        int(query.get("startingAfter", 0))
        if "page" not in query
        else max(int(query["page"]) - 1, 0)
    )
    return httpx.Response(200, stream=httpx.ByteStream(pages[number]))


def planned(folder: Path) -> Work:
    file, mapping, target = folder / "articulos.csv", folder / "mapping.toml", folder / "plan"
    plan.write_file(file, PLANNED_ROWS)
    mapping.write_text(plan.MAPPING, "utf-8")

    def work() -> None:
        make_plan(PlanOptions("variants", file, mapping, target))
        shutil.rmtree(target)

    return work


def matched(folder: Path) -> Work:
    reconcile.make(str(MATCHED_ROWS), str(folder))
    return reconcile.CONTENDERS["ours"](folder)


WORKS: Final[dict[str, Callable[[Path], Work]]] = {
    "pull": pulled,
    "plan": planned,
    "match": matched,
}


def calls(work: Work) -> int:
    number = 0

    def profile(_: FrameType, event: str, __: Any) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return number


def figure(name: str, folder: Path) -> int:
    """The calls of a work, after a first run of it, which imports and fills caches."""
    work = WORKS[name](folder)
    work()
    return calls(work)


def main() -> None:
    os.environ.update(plan.SETTINGS)
    found = {}
    for name in WORKS:
        with tempfile.TemporaryDirectory(prefix="orderbridge-calls-") as folder:
            found[name] = figure(name, Path(folder))
        print(f"{name}: {found[name]} calls, recorded: {RECORDED.get(name)}")
    if sys.argv[1:] == ["--record"]:
        FILE.write_text(json.dumps({**_BY_PYTHON, _PYTHON: found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
