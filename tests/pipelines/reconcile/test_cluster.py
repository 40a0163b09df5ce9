"""`reconcile --scheduler`: the same tables by a Dask cluster of two processes, and nothing published when it fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from distributed import LocalCluster

from orderbridge.pipelines.reconcile import cluster as cluster_module
from orderbridge.pipelines.reconcile import parts
from orderbridge.pipelines.reconcile.cluster import Cluster
from orderbridge.pipelines.reconcile.erp import match
from orderbridge.pipelines.reconcile.erp.files import ErpFiles
from orderbridge.pipelines.reconcile.orders import orders
from orderbridge.pipelines.reconcile.reconcile import Reconciling, reconcile
from orderbridge.sources.errors import ExitCode, UsageError
from tests.pipelines.reconcile.test_erp_customers import Shop
from tests.pipelines.reconcile.test_erp_customers import shop as shop
from tests.pipelines.reconcile.test_reconcile import tables_of


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster whose workers are not replaced when a task kills them."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
    ):
        yield cluster.scheduler_address


def test_a_cluster_publishes_the_same_tables_or_none(
    shop: Shop, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = reconcile(ErpFiles(shop.file))
    whole = tables_of(shop.made)
    monkeypatch.setattr(parts, "PART_ROWS", 5)
    monkeypatch.setattr(match, "ROWS_PER_BUCKET", 12)
    there = reconcile(ErpFiles(shop.file, scheduler=address))
    assert tables_of(shop.made) == whole
    assert there.match == here.match
    assert there.rows == here.rows

    published = shop.made.path.read_bytes()
    monkeypatch.setattr(orders, "orders_part", _die)
    with pytest.raises(UsageError, match="workers of the cluster died repeatedly") as error:
        reconcile(ErpFiles(shop.file, scheduler=address))
    assert error.value.exit_code == ExitCode.USAGE
    assert shop.made.path.read_bytes() == published
    assert not list(shop.made.folder.rglob("*.parquet"))


def _die(rows: object, **_: object) -> None:
    os._exit(1)


def test_workers_that_do_not_see_the_folder_are_named(address: str) -> None:
    with (
        pytest.raises(UsageError, match="worker does not see"),
        Cluster(address).mapper(Path("/nowhere/match")),
    ):
        pass


def test_a_cluster_that_lost_its_workers_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "WORKERS_WAIT_S", 0.5)
    lost = LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0")
    with lost, Cluster(lost.scheduler_address).mapper(tmp_path) as map_tasks:
        lost.scale(0)
        results = iter(map_tasks(str, [1]))
        with pytest.raises(UsageError, match="has no workers"):
            next(results)


def test_other_versions_on_the_workers_end_the_run(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the workers have a process each
    monkeypatch.setattr("distributed.versions._version_cached", lambda name: "0")
    with pytest.raises(UsageError, match=r"the cluster has other versions: (?s:.*)orderbridge"):
        Cluster(address).check()


def test_an_address_without_a_scheduler_ends_the_run_in_five_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert cluster_module.CONNECT_TIMEOUT_S == 5
    monkeypatch.setattr(cluster_module, "CONNECT_TIMEOUT_S", 0.2)
    for address in ("tcp://127.0.0.1:9", "nonsense", "tls://127.0.0.1:9"):
        with pytest.raises(UsageError, match=f"no Dask scheduler answers at {address}: "):
            Cluster(address).check()


def test_without_the_extra_the_message_has_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    # no file is required: the customers are made there
    for file in (
        tmp_path / "clientes.csv",
        None,
    ):
        with pytest.raises(UsageError, match=r"(?s)not installed.*make -C \S+ setup EXTRAS=dask"):
            Reconciling(ErpFiles(file, scheduler="tcp://127.0.0.1:9"))
