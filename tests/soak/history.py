"""The history of customers under random sequences of whole, short and failed walks of a platform that changes.

Each pull of a seed is a real walk, merged into raw tables and followed by the history. The judge: the versions are
those of a plain model, and no customer that the platform always had was ever taken for missing.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.reconcile.history import HISTORIES, record_history
from pipelines.warehouse import merge
from pipelines.warehouse.load import CATALOG, LOADED
from sandbox.app import Platform
from sandbox.config import LEGACY_KEY, SandboxConfig
from sources.extract.result import ListResult, WalkOptions
from sources.extract.spool import SpoolFolder
from sources.extract.walk import walk
from sources.http.client import Client
from tests.pipelines.reconcile.test_history import Pulled, Warehouse, at
from tests.soak.outcome import Outcome
from tests.soak.transport import SandboxTransport
from tests.soak.walks import MEMORY, inline

FAULTS: Final = ("page_drift", "capped_limit", "moved_total", "duplicate_records", "error_503", "truncated_json")
NAMES: Final = ("Ana", "Eva", "Zoë")


class Model(Pulled):
    """What is known of each customer, and the versions that this makes: name, begin, end and what ended it."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, list[list[Any]]] = {}

    def keep(self) -> None:
        """Brings the versions up to the rows, as reconciling does."""
        for key, row in self.rows.items():
            name, seen, missing = row["name"], row["seen"], row["missing"]
            versions = self.kept.setdefault(key, [])
            if versions and versions[-1][2] is None and versions[-1][0] != name:
                versions[-1][2:] = [seen, "changed"]
            is_open = bool(versions) and versions[-1][2] is None
            if not is_open and (not versions or versions[-1][3] == "changed" or seen > versions[-1][2]):
                versions.append([name, seen, None, None])
            if missing is not None and versions[-1][2] is None:
                versions[-1][2:] = [missing, "missing"]

    def expected(self) -> list[tuple[Any, ...]]:
        return [
            (key, number, begin, end, end is None, by, name)
            for key, versions in sorted(self.kept.items())
            for number, (name, begin, end, by) in enumerate(versions, 1)
        ]


class _Seed:
    """One platform, one warehouse, and the pulls between them."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.draw = random.Random(seed)
        config = SandboxConfig(seed=seed, customers=self.draw.choice((1, 4, 12)), orders=0, promotions=0, price_lists=0)
        self.platform = Platform(config)
        self.folder = folder
        self.build = Warehouse().connection
        self.build.execute(f"ATTACH ':memory:' AS {CATALOG}; CREATE SCHEMA {LOADED}")
        self.model = Model()
        self.counts: dict[str, int] = {}

    def run(self) -> Iterator[str]:
        """Pulls, with changes of the platform in between; yields what is wrong."""
        for number in range(self.draw.randint(2, 7)):
            self._change()
            self._pull(number)
            if self.draw.random() < 0.7:
                yield from self._reconcile()
        yield from self._reconcile()
        self.build.close()

    def _change(self) -> None:
        state, draw = self.platform.state, self.draw
        for key in state.ids("customers"):
            if draw.random() < 0.2:
                state.change("customers", key, {"firstName": draw.choice(NAMES)})
            elif draw.random() < 0.1:
                state.remove("customers", key)
        if draw.random() < 0.3:
            state.add("customers", {"firstName": draw.choice(NAMES)})
        names = draw.sample(FAULTS, draw.choice((0, 0, 1, 2)))
        self.platform.plan.rates = {name: draw.choice((0.1, 0.4)) for name in names}

    def _pull(self, number: int) -> None:
        folder = self.folder / str(number)
        limit = self.draw.choice((2, 3, 5))
        options = WalkOptions(limit, sweeps=self.draw.choice((1, 2, 6)), window=1)
        with Client("legacy", "http://127.0.0.1:9", LEGACY_KEY, transport=SandboxTransport(self.platform)) as client:
            spools = SpoolFolder(folder / "spool", {"pull": number})
            result = walk("customers", client, folder / "files", spools, options)
        verdict = result.verdict if result.error is None and self._merge(result, number) else "not merged"
        self.counts[verdict] = self.counts.get(verdict, 0) + 1

    def _merge(self, result: ListResult, number: int) -> bool:
        """Whether the rows were merged, and not held back."""
        for table, files in result.files.items():
            paths = [str(path) for path, _ in files]
            self.build.execute(f'CREATE OR REPLACE TABLE {LOADED}."{table}" AS FROM read_parquet($1)', [paths])
        if merge.shrink_reason(result, merge.compare(self.build, result)) and self.draw.random() < 0.5:
            return False
        result.ended_at = at(number)
        merge.merge_list(self.build, result, f"run {number}")
        rows = self.build.execute(f"SELECT id, coalesce(first_name, '') FROM {LOADED}.customers").fetchall()
        self.model.pull(number, dict(rows), proven=result.verdict == "complete")
        return True

    def _reconcile(self) -> Iterator[str]:
        self.build.execute(
            """DELETE FROM reconciled.customers;
            INSERT INTO reconciled.customers (customer_id, first_name, _last_seen_at, _missing_since)
            SELECT id, coalesce(first_name, ''), _last_seen_at, _missing_since FROM raw.customers"""
        )
        self.build.execute("DELETE FROM raw.customers__documents")  # their changes are not in the model
        record_history(self.build, HISTORIES[0])
        self.model.keep()
        versions = self._versions(self.build)
        if versions != self.model.expected():
            yield "the versions are not those of the model"
        always = self.platform.state.always("customers")
        if gone := {row[0] for row in versions if row[5] == "missing"} & always:
            yield f"{len(gone)} customers that were always there have a version that ended as missing"
        record_history(self.build, HISTORIES[0])
        if self._versions(self.build) != versions:
            yield "reconciling again changes the history"

    @staticmethod
    def _versions(build: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
        return build.execute(
            "SELECT customer_id, version, valid_from, valid_to, is_current, ended_by, first_name "
            "FROM reconciled.customer_history ORDER BY customer_id, version"
        ).fetchall()


def history_seed(seed: int) -> Outcome:
    """The pulls of a seed, each merged, with the history after most of them."""
    with tempfile.TemporaryDirectory(prefix="history-", dir=MEMORY) as folder, inline():
        run = _Seed(seed, Path(folder))
        problems = list(run.run())
    return Outcome(run.counts, problems)
