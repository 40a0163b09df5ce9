"""Pulls of orders, whole or tails, without sockets, dlt and a file: the walk, the decision and the merge are the real
ones, the warehouse is in memory, and the clock is the test's."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import duckdb

from pipelines.pull.order_tail import OrderTail
from pipelines.pull.targets import Targets
from pipelines.pull.walking import ListWalks
from pipelines.warehouse import merge, ops
from pipelines.warehouse.build import Build
from pipelines.warehouse.load import CATALOG, LOADED
from sandbox.app import Platform
from sandbox.config import V1_KEY, SandboxConfig
from sources.extract.result import ListResult, no_progress
from sources.http.client import Client
from sources.settings import PublicV1Settings, Secret
from tests.soak.transport import SandboxTransport

BEGIN = datetime(2026, 3, 2, 4, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass
class TailBench:
    """A platform with orders, and a warehouse that they are pulled into."""

    platform: Platform
    folder: Path
    warehouse: duckdb.DuckDBPyConnection
    settings: PublicV1Settings
    organization: str | None = "org"
    now: datetime = BEGIN
    pulls: int = 0
    results: list[ListResult] = field(default_factory=list)
    counts: list[merge.MergeCounts] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Path, orders: int = 25, limit: int = 10, **config: Any) -> TailBench:
        amounts: dict[str, Any] = {"customers": 0, "promotions": 0, "price_lists": 0, "orders": orders}
        warehouse = duckdb.connect()
        warehouse.execute("SET TimeZone = 'UTC'")
        warehouse.execute(f"ATTACH ':memory:' AS {CATALOG}; CREATE SCHEMA {LOADED}")
        merge.create_missing(warehouse)
        ops.create_missing(warehouse)
        settings = PublicV1Settings(base_url="http://127.0.0.1:9", api_key=Secret(V1_KEY), page_limit=limit)
        return cls(Platform(SandboxConfig(**amounts, **config)), folder, warehouse, settings)

    @property
    def state(self) -> Any:
        return self.platform.state

    def configure(self, **changed: Any) -> None:
        """Other settings from now on."""
        self.settings = replace(self.settings, **changed)

    def objection(self) -> str:
        """Why a tail would not start now."""
        orders = OrderTail(self.settings, is_wanted=True)
        orders.find_start(self.warehouse, self.now)
        return orders.objection(self.organization)

    def pull(self, *, tail: bool = True, after: timedelta = HOUR) -> ListResult:
        """A pull that ends so long after the last one. Publishes the orders unless their walk failed."""
        self.now += after
        self.pulls += 1
        orders = OrderTail(self.settings, is_wanted=tail)
        orders.find_start(self.warehouse, self.now)
        result = self._walked(orders)
        result.started_at = result.ended_at = self.now
        self.results.append(result)
        run_id = f"run {self.pulls:03d}"
        if result.error is None:
            self._merge(result, run_id, orders)
        ops.record_coverage(self.warehouse, run_id, result, published=result.error is None)
        return result

    def _walked(self, orders: OrderTail) -> ListResult:
        build = Build(self.folder / f"{self.pulls}" / "warehouse.duckdb")
        walks = ListWalks(Targets(public_v1=self.settings), build, 6, no_progress, Event(), tail=orders)
        transport = SandboxTransport(self.platform)
        key = self.settings.api_key.reveal()
        with Client("public_v1", self.settings.base_url, key, transport=transport) as client:
            return walks._walk("orders", client, lambda: self.organization)

    def _merge(self, result: ListResult, run_id: str, orders: OrderTail) -> None:
        for table, files in result.files.items():
            paths = [str(path) for path, _ in files]
            self.warehouse.execute(f'CREATE OR REPLACE VIEW {LOADED}."{table}" AS FROM read_parquet({paths!r})')
        counts = merge.compare(self.warehouse, result)
        self.counts.append(counts)
        orders.record(self.warehouse, run_id, result, counts, self.organization)
        merge.merge_list(self.warehouse, result, run_id)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.warehouse.execute(sql).fetchall()

    def ids(self, where: str = "true") -> set[str]:
        return {key for (key,) in self.rows(f"SELECT id FROM raw.orders WHERE {where}")}

    def reason(self) -> str:
        """Why the last pull read the orders whole; empty where it did not say so."""
        words, *_ = self.results[-1].evidence
        return words.partition("read whole: ")[2]
