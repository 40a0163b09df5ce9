"""The copy as Parquet files: whole versions behind a pointer, and nobody else's files touched."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem  # type: ignore[import-untyped] # it ships no types

from pipelines.pull.check import check
from pipelines.reconcile.reconcile import reconcile
from pipelines.warehouse.destination import connect_destination, copy_to_destination
from pipelines.warehouse.destination_files import POINTER, ParquetStore
from sources.errors import ExitCode, PlatformError, UsageError
from sources.settings import warehouse_path, warehouse_settings
from tests.pipelines.bridge import Bridge, bridge
from tests.pipelines.warehouse.test_destination import tables


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    """The folder of the copies of what is published from now on: a fixture after that of the warehouse."""
    os.environ |= {
        "WAREHOUSE__DESTINATION": "filesystem",
        "DESTINATION__FILESYSTEM__BUCKET_URL": (tmp_path / "bucket").as_uri(),
    }
    return tmp_path / "bucket"


def copy_published() -> bool:
    """What the end of a run does."""
    return copy_to_destination(warehouse_path(), warehouse_settings())


def pointer(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / POINTER).read_text("utf-8"))
    return content


def rows(folder: Path) -> dict[str, int]:
    return {name: len(pq.read_table(folder / entry["path"])) for name, entry in pointer(folder)["tables"].items()}


def versions(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def test_a_bucket_for_every_destination_of_dlt_is_used(
    published: Bridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAREHOUSE__DESTINATION", "filesystem")
    monkeypatch.setenv("BUCKET_URL", (tmp_path / "bucket").as_uri())
    assert copy_published()
    assert rows(tmp_path / "bucket" / "orderbridge") == tables(published.path)


def test_the_files_hold_what_is_published(published: Bridge, bucket: Path) -> None:
    assert copy_published()
    copy = bucket / "orderbridge"
    assert rows(copy) == tables(published.path)
    entry = pointer(copy)["tables"]["raw.customers"]
    assert (entry["rows"], entry["primary_key"]) == (40, ["id"])
    columns = pq.read_schema(copy / entry["path"])
    assert columns.field("id").metadata == {
        b"primary_key": b"true",
        b"description": b"id on the platform; id of GET /customers",
    }
    assert columns.field("erp_code").metadata == {
        b"description": b"code of the record in the ERP; erpCode of GET /customers (code used by the integrator's ERP)"
    }
    first = versions(copy)
    published.platform.state.change("customers", published.platform.state.ids("customers")[0], {"lastName": "Ñandú"})
    assert published.code("customers") == 0
    names = pq.read_table(copy / pointer(copy)["tables"]["raw.customers"]["path"])["last_name"].to_pylist()
    assert names.count("Ñandú") == 1
    assert reconcile().exit_code == ExitCode.DONE
    assert rows(copy) == tables(published.path)
    assert "reconciled.customers" in rows(copy)
    assert len(versions(copy)) == 2
    assert first[0] not in versions(copy)
    assert pointer(copy)["version"] == versions(copy)[-1]


def test_a_reader_of_the_files_sees_one_version(published: Bridge, bucket: Path) -> None:
    assert copy_published()
    stop = threading.Event()
    seen: set[tuple[int, int, int]] = set()
    failed: list[BaseException] = []

    def poll() -> None:
        try:
            while not stop.wait(0.002):
                counts = rows(bucket / "orderbridge")
                seen.add((counts["raw.customers"], counts["raw.promotions"], counts["ops.runs"]))
        except BaseException as error:
            failed.append(error)

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        for _ in range(2):
            published.platform.state.add("customers", {"erpCode": f"N{len(published.platform.state.ids('customers'))}"})
            published.platform.state.add("promotions", {"name": "Nueva"})
            published.pull("customers", "promotions")
    finally:
        stop.set()
        reader.join()
    assert not failed
    assert seen <= {(40, 9, 1), (41, 10, 2), (42, 11, 3)}


def test_a_copy_that_fails_midway_leaves_the_version_before(
    published: Bridge, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert copy_published()
    before, copy = pointer(bucket / "orderbridge"), bucket / "orderbridge"
    write = ParquetStore._write

    def full(self: ParquetStore, warehouse: Any, version: str, schema: str, table: str) -> dict[str, Any]:
        if table == "promotions":
            raise OSError(28, "No space left on device")
        return write(self, warehouse, version, schema, table)

    with monkeypatch.context() as patch:
        patch.setattr(ParquetStore, "_write", full)
        with pytest.raises(PlatformError, match="No space left on device"):
            published.pull("price_lists")
    assert pointer(copy) == before
    assert len(versions(copy)) == 2
    assert copy_published()
    second = pointer(copy)
    assert versions(copy)[0] == before["version"]  # the half version is newer: it may be the work of another run
    assert copy_published()
    assert versions(copy) == [second["version"], pointer(copy)["version"]]
    assert rows(copy) == tables(published.path)


def test_files_of_others_and_of_another_source_stay(tmp_path: Path, published: Bridge, bucket: Path) -> None:
    (bucket / "orderbridge").mkdir(parents=True)
    (bucket / "orderbridge/theirs.csv").write_text("1")
    with pytest.raises(UsageError, match="holds files that orderbridge did not create"):
        published.pull("price_lists")
    assert [path.name for path in bucket.rglob("*")] == ["orderbridge", "theirs.csv"]
    os.environ["WAREHOUSE__DESTINATION_DATASET"] = "shop"
    assert copy_published()
    with bridge(tmp_path / "other") as other, pytest.raises(UsageError, match="another source's data"):
        other.pull("price_lists")
    assert rows(bucket / "shop")["raw.customers"] == 40


def test_check_names_the_folder_and_its_version(published: Bridge, bucket: Path) -> None:
    def message() -> str:
        (one,) = [one for one in check(threading.Event()) if one.what == "destination"]
        assert one.exit_code == ExitCode.DONE
        return one.message

    assert message() == f"filesystem, {bucket}/orderbridge: no copy yet"
    assert copy_published()
    assert message() == f"filesystem, {bucket}/orderbridge: {pointer(bucket / 'orderbridge')['version']}"


def test_a_first_copy_killed_before_its_rename_does_not_block_the_next(published: Bridge, bucket: Path) -> None:
    copy = bucket / "orderbridge"
    copy.mkdir(parents=True)
    (copy / f"{POINTER}.new").write_text('{"version": "2026')
    assert copy_published()
    assert sorted(path.name for path in copy.iterdir() if path.is_file()) == [POINTER]
    assert rows(copy) == tables(published.path)


def test_files_and_folders_are_on_disk_before_the_pointer_names_them(
    published: Bridge, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, synced = bucket / "orderbridge", []

    def record(path: Path) -> None:
        synced.append((path, (copy / POINTER).exists()))

    monkeypatch.setattr("sources.disk.sync", record)
    monkeypatch.setattr("pipelines.warehouse.destination_files.sync", record)
    assert copy_published()
    version = copy / pointer(copy)["version"]
    files = {copy / entry["path"] for entry in pointer(copy)["tables"].values()}
    before = {path for path, is_pointed in synced if not is_pointed}
    assert before >= {*files, version / "raw", version / "ops", version, copy, bucket, copy / f"{POINTER}.new"}
    assert (copy, True) in synced


@pytest.mark.parametrize("content", ["", "[]", '{"version": "1"}', "\xff", '{"version": 1, "source": {"new": "fact"}}'])
def test_a_damaged_pointer_is_named_and_nothing_is_touched(published: Bridge, bucket: Path, content: str) -> None:
    copy = bucket / "orderbridge"
    copy.mkdir(parents=True)
    (copy / POINTER).write_bytes(content.encode("latin-1"))
    with pytest.raises(UsageError, match=r"bucket/orderbridge/current\.json is damaged") as error:
        copy_published()
    assert "delete it" in error.value.hint
    assert [path.name for path in copy.iterdir()] == [POINTER]
    (copy / POINTER).unlink()
    assert copy_published()


def test_a_copy_does_not_replace_the_pointer_of_another_that_was_faster(
    published: Bridge, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert copy_published()
    copy, write, theirs = bucket / "orderbridge", ParquetStore._write, "20260101T000000000000Z"

    def overtaken(self: ParquetStore, warehouse: Any, version: str, schema: str, table: str) -> dict[str, Any]:
        (copy / POINTER).write_text(json.dumps(pointer(copy) | {"version": theirs}))
        return write(self, warehouse, version, schema, table)

    with monkeypatch.context() as patch:
        patch.setattr(ParquetStore, "_write", overtaken)
        with pytest.raises(PlatformError, match="another run copied to the folder"):
            copy_published()
    assert pointer(copy)["version"] == theirs


def test_a_version_of_a_clock_that_was_set_back_stays(published: Bridge, bucket: Path) -> None:
    assert copy_published()
    copy, ahead = bucket / "orderbridge", "20990101T000000000000Z"
    old = pointer(copy)["version"]
    (copy / old).rename(copy / ahead)
    (copy / POINTER).write_text((copy / POINTER).read_text("utf-8").replace(old, ahead))
    for _ in range(2):
        assert copy_published()
        assert rows(copy) == tables(published.path)
    assert versions(copy)[-1] == ahead


def test_a_copy_leaves_newer_versions_of_another_alone(published: Bridge, bucket: Path) -> None:
    assert copy_published()
    unfinished = bucket / "orderbridge" / "99990101T000000000000Z"
    unfinished.mkdir()
    assert copy_published()
    assert unfinished.exists()


def test_a_bucket_that_is_missing_is_named_by_check_and_never_made(
    published: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAREHOUSE__DESTINATION", "filesystem")
    monkeypatch.setenv("DESTINATION__FILESYSTEM__BUCKET_URL", "memory://lake/shop")
    store = MemoryFileSystem()  # as an object store, it has folders in the names of files only
    with pytest.raises(PlatformError, match="filesystem could not be used: FileNotFoundError") as checked:
        connect_destination(warehouse_settings())
    assert "published" not in checked.value.hint
    with pytest.raises(PlatformError, match="filesystem could not be used: FileNotFoundError") as copied:
        copy_published()
    assert copied.value.hint.endswith("The DuckDB file is published.")
    assert not store.exists("lake")
    store.mkdir("lake")
    try:
        assert copy_published()
        content = json.loads(store.cat_file(f"lake/shop/orderbridge/{POINTER}"))
        assert {name: entry["rows"] for name, entry in content["tables"].items()} == tables(published.path)
        assert connect_destination(warehouse_settings()).endswith(content["version"])
    finally:
        store.rm("lake", recursive=True)
