"""Walks of a platform with random faults, readings and drift; stopped and resumed; judged against what it held.

A seed draws a list, its length, page size, sweeps, faults of every kind (hostile ones too), readings, and moments at
which the walk is stopped, its spool perhaps torn. The judge compares the files with the sandbox's state.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from unittest import mock

import httpx
import pyarrow.parquet as pq

from orderbridge.sandbox.app import Platform
from orderbridge.sandbox.config import LEGACY_KEY, V1_KEY, SandboxConfig
from orderbridge.sandbox.faults import FAULTS
from orderbridge.sources.contract import LISTS, RECORDS
from orderbridge.sources.errors import Stopped
from orderbridge.sources.extract import fetch, page_files, spool
from orderbridge.sources.extract.result import ListResult, WalkOptions
from orderbridge.sources.extract.spool import SpoolFolder
from orderbridge.sources.extract.walk import walk
from orderbridge.sources.gaps import GAPS
from orderbridge.sources.http.client import Client
from tests.pipelines.pull.truth import Row, comparable, expected
from tests.soak.transport import InlineExecutor, SandboxTransport
from tests.sources.rawserver import without_backoff

UNMIXED = {"rate_limit", "order_sequence", "cursor_reuse"}
"""Readings that cost time, and those that a tail is for: a request that is repeated uses its cursor again too."""
SLOW: Final = {"stall", "drip"}
"""Faults that only test a client's patience or cost time."""
CALM: Final = [fault.name for fault in FAULTS if fault.reach != "write" and fault.kind != "hostile"]
HOSTILE: Final = [fault.name for fault in FAULTS if fault.kind == "hostile"]
DANGEROUS: Final = ("page_drift", "page_drift", "capped_limit", "duplicate_records", "moved_total")
"""Drawn more often: they are what a proof must not overlook."""
ALTERING: Final = {"page_drift", "type_drift", "extra_fields", "duplicate_records", *HOSTILE}
"""Faults by which a row differs from the platform's."""
RESOURCES: Final = (*["customers"] * 5, "promotions", "orders", *RECORDS)
STOPS_MAX: Final = 3


@dataclass(frozen=True)
class Outcome:
    """What a seed came to: counts, to be added up over the seeds, and what the judge found wrong."""

    counts: Mapping[str, int]
    problems: list[str] = field(default_factory=list)


class WalkSeed:
    """The list of a seed, how it is walked and what goes wrong."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        names = draw.sample(
            [name for name in CALM if name not in SLOW], draw.choice((0, 0, 1, 2, 3))
        )
        names += [name for name in DANGEROUS if draw.random() < 0.25 and name not in names]
        if draw.random() < 0.2:
            names.append(draw.choice(HOSTILE))
        gaps = draw.sample([gap for gap in GAPS if gap.name not in UNMIXED], draw.randrange(5))
        is_long = "page_drift" in names
        page_limit = draw.choice((3, 7, 10) if is_long else (1, 2, 3, 7, 10, 25))
        self.resource = draw.choice(RESOURCES)
        self.count = draw.choice((20, 41, 90) if is_long else (0, 1, 2, 7, 20, 41, 90))
        self.options = WalkOptions(page_limit, draw.choice((1, 2, 6, 6, 6)), draw.choice((1, 4)))
        self.faults = {
            name: draw.choice((0.02, 0.1, 0.3, 1.0 if name in HOSTILE else 0.3)) for name in names
        }
        self.readings = {gap.name: draw.choice(gap.readings) for gap in gaps}
        self.stops = [draw.randrange(1, 30) for _ in range(draw.choice((0, 0, 0, 1, STOPS_MAX)))]


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(
        prefix="soak-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    ) as name:
        yield Path(name)


@contextmanager
def inline() -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(without_backoff())
        stack.enter_context(mock.patch.object(fetch, "ThreadPoolExecutor", InlineExecutor))
        stack.enter_context(mock.patch.object(page_files, "ThreadPoolExecutor", InlineExecutor))
        stack.enter_context(
            mock.patch.object(
                spool.SpoolFolder, "_digest", lambda own, salt: f"{own._identity}:{salt}"
            )
        )
        yield


def walk_seed(seed: int) -> Outcome:
    """Walks the list of a seed to its end, and judges it."""
    drawn = WalkSeed(seed)
    config = SandboxConfig(
        seed=seed,
        customers=0,
        orders=0,
        promotions=0,
        price_lists=0,
        faults=drawn.faults,
        readings=drawn.readings,
    )
    option = drawn.resource if hasattr(config, drawn.resource) else "others"
    platform = Platform(replace(config, **{option: drawn.count}))  # type: ignore[arg-type] # amounts
    with folder_in_memory() as folder, inline():
        result, stops = _walked(drawn, platform, folder, random.Random(f"{seed}:torn"))
        problems = list(_judge(result, platform, is_altered=bool(ALTERING & set(drawn.faults))))
    faults = sum(bool(logged.fault) for logged in platform.state.log)
    counts = {
        result.verdict: 1,
        "stops": stops,
        "requests": platform.state.requests,
        "faults": faults,
    }
    return Outcome(counts, problems)


def _walked(
    drawn: WalkSeed, platform: Platform, folder: Path, draw: random.Random
) -> tuple[ListResult, int]:
    """The result of the walk, and how often it was stopped before."""
    family = LISTS[drawn.resource].family
    for stops, stop_after in enumerate((*drawn.stops, 0)):
        stop = threading.Event()
        transport = _Stopping(platform, stop, stop_after)
        key = LEGACY_KEY if family == "legacy" else V1_KEY
        spools = SpoolFolder(folder / "spool", {"list": drawn.resource}, key)
        with (
            Client(family, "http://127.0.0.1:9", key, stop=stop, transport=transport) as client,
            suppress(Stopped),
        ):
            return walk(
                drawn.resource, client, folder / f"files-{stops}", spools, drawn.options
            ), stops
        for path in (folder / "spool").glob("*.pages"):
            if draw.random() < 0.3:  # as a power failure may leave it
                os.truncate(path, draw.randrange(path.stat().st_size + 1))
    raise RuntimeError("a walk was stopped that nobody stops")


class _Stopping(SandboxTransport):
    """Stops the client after a number of requests; 0 for never."""

    def __init__(self, platform: Platform, stop: threading.Event, after: int) -> None:
        super().__init__(platform)
        self._stop, self._after = stop, after

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if self.requests == self._after:
            self._stop.set()
        return response


def judge_ids(
    result: ListResult, ids: list[str], always: set[str], ever: set[str]
) -> Iterator[str]:
    """What is wrong with the ids of a list, which had some always, and others at some time only."""
    have = set(ids)
    if result.verdict == "incomplete":
        if result.error is None or result.error.exit_code < 3:
            yield f"internal error: {result.error}"
        if ids or result.distinct:
            yield "it is incomplete, but with rows"
    if len(ids) != len(have):
        yield f"doubled: {len(ids) - len(have)} rows"
    if not have <= ever:
        yield f"invented: {len(have - ever)} rows"
    if result.verdict == "complete" and not always <= have:
        yield f"false complete: {len(always - have)} of {len(always)} rows are missing"


def _judge(result: ListResult, platform: Platform, *, is_altered: bool) -> Iterator[str]:
    state, name, tables = platform.state, result.resource, tables_of(result)
    ids = [str(row["id"]) for row in tables[name]]
    yield from judge_ids(result, ids, state.always(name), state.ever(name))
    if result.verdict == "incomplete":
        return
    if any(
        s.rows != s.distinct + s.duplicates + s.quarantined or s.duplicates < 0
        for s in result.sweeps
    ):
        yield f"unbalanced: {result.sweeps}"
    if (
        result.verdict == "complete"
        and not is_altered
        and comparable(tables) != comparable(expected(state, name))
    ):
        yield "complete, but the rows are not the platform's"


def tables_of(result: ListResult) -> dict[str, list[Row]]:
    """The rows of a list and of its children, from their files."""
    tables: dict[str, list[Row]] = {result.resource: []}
    for name, files in result.files.items():
        for path, count in files:
            read = pq.read_table(path).to_pylist()
            if len(read) != count:
                raise ValueError(f"{path.name} has {len(read)} rows, not {count}")
            tables.setdefault(name, []).extend(read)
    return tables
