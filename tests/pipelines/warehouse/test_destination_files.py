"""The copy as Parquet files: whole versions behind a pointer, which is replaced last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem  # type: ignore[import-untyped] # it ships no types

from pipelines.warehouse.destination import connect_destination, create_views
from pipelines.warehouse.destination_files import POINTER, ParquetStore
from sources.errors import PlatformError, UsageError
from tests.pipelines.warehouse.destinations import ParquetFiles, Shop

pytestmark = pytest.mark.parametrize("destination", ["filesystem"], indirect=True)
THEIRS = "20260101T000000000000Z"


def point_to(files: ParquetFiles, version: str) -> None:
    (files.copy / POINTER).write_text(json.dumps(files.pointer() | {"version": version}))


def test_the_version_before_is_kept_and_those_older_than_it_go(
    shop: Shop, destination: ParquetFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, ahead, versions = ParquetStore._write, "99990101T000000000000Z", []

    def full(self: ParquetStore, warehouse: Any, version: str, schema: str, table: str) -> dict[str, Any]:
        if table == "promotions":
            raise OSError(28, "No space left on device")
        return write(self, warehouse, version, schema, table)

    destination.copy.mkdir(parents=True)
    (destination.copy / f"{POINTER}.new").write_text('{"version": "2026')  # of a first copy that was killed
    for _ in range(3):
        shop.copy()
        versions.append(destination.pointer()["version"])
        assert destination.versions() == versions[-2:]
    assert sorted(path.name for path in destination.copy.iterdir() if path.is_file()) == [POINTER]
    entry = destination.pointer()["tables"]["raw.customers"]
    assert (entry["rows"], entry["primary_key"]) == (5, ["id"])
    with monkeypatch.context() as patch:
        patch.setattr(ParquetStore, "_write", full)
        with pytest.raises(PlatformError, match="No space left on device"):
            shop.copy()
    (destination.copy / ahead).mkdir()
    shop.copy()
    assert destination.versions()[0] == versions[-1], "the half version is newer: it may be another run's work"
    shop.copy()
    assert len(destination.versions()) == 3
    assert destination.versions()[-1] == ahead


def test_files_and_folders_are_on_disk_before_the_pointer_names_them(
    shop: Shop, destination: ParquetFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, synced = destination.copy, []

    def record(path: Path) -> None:
        synced.append((path, (copy / POINTER).exists()))

    monkeypatch.setattr("sources.disk.sync", record)
    monkeypatch.setattr("pipelines.warehouse.destination_files.sync", record)
    shop.copy()
    version = copy / destination.pointer()["version"]
    files = {copy / entry["path"] for entry in destination.pointer()["tables"].values()}
    before = {path for path, is_pointed in synced if not is_pointed}
    assert before >= {*files, version / "raw", version / "ops", version, copy, copy.parent, copy / f"{POINTER}.new"}
    assert (copy, True) in synced


@pytest.mark.parametrize("content", ["", "[]", '{"version": "1"}', "\xff", '{"version": 1, "source": {"new": "fact"}}'])
def test_a_damaged_pointer_is_named_and_nothing_is_touched(shop: Shop, destination: ParquetFiles, content: str) -> None:
    destination.copy.mkdir(parents=True)
    (destination.copy / POINTER).write_bytes(content.encode("latin-1"))
    with pytest.raises(UsageError, match=r"bucket/orderbridge/current\.json is damaged") as error:
        shop.copy()
    assert "delete it" in error.value.hint
    assert [path.name for path in destination.copy.iterdir()] == [POINTER]


def test_a_copy_does_not_replace_the_pointer_of_another_that_was_faster(
    shop: Shop, destination: ParquetFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.copy()
    write = ParquetStore._write

    def overtaken(self: ParquetStore, *arguments: Any) -> dict[str, Any]:
        point_to(destination, THEIRS)
        return write(self, *arguments)

    monkeypatch.setattr(ParquetStore, "_write", overtaken)
    with pytest.raises(PlatformError, match="another run copied to the folder"):
        shop.copy()
    assert destination.pointer()["version"] == THEIRS


def test_a_version_of_a_clock_that_was_set_back_stays(shop: Shop, destination: ParquetFiles) -> None:
    shop.copy()
    ahead, old = "20990101T000000000000Z", destination.pointer()["version"]
    (destination.copy / old).rename(destination.copy / ahead)
    text = (destination.copy / POINTER).read_text("utf-8")
    (destination.copy / POINTER).write_text(text.replace(old, ahead))
    for _ in range(2):
        shop.copy()
        assert destination.contents() == shop.contents()
    assert destination.versions()[-1] == ahead


def test_a_bucket_that_is_missing_is_named_by_check_and_never_made(shop: Shop, destination: ParquetFiles) -> None:
    destination.configure(BUCKET_URL="memory://lake/shop")
    store = MemoryFileSystem()  # as an object store, it has folders in the names of files only
    with pytest.raises(PlatformError, match="filesystem could not be used: FileNotFoundError") as checked:
        connect_destination(shop.settings)
    assert "published" not in checked.value.hint
    with pytest.raises(PlatformError, match="filesystem could not be used: FileNotFoundError"):
        shop.copy()
    assert not store.exists("lake")
    store.mkdir("lake")
    try:
        shop.copy()
        content = json.loads(store.cat_file(f"lake/shop/orderbridge/{POINTER}"))
        assert {name: entry["rows"] for name, entry in content["tables"].items()} == {
            name: len(rows) for name, rows in shop.contents().items()
        }
        assert connect_destination(shop.settings).endswith(content["version"])
    finally:
        store.rm("lake", recursive=True)


def test_files_have_no_views(shop: Shop, destination: ParquetFiles) -> None:
    with pytest.raises(UsageError, match="filesystem holds files, which have no views"):
        create_views(shop.settings)
