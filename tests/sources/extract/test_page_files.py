"""What a walk keeps on disk: its tables, the hashes of its ids, and the spool with the bytes of its pages."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orderbridge.sources.contract import LISTS
from orderbridge.sources.decode.rows import Decoded, Page
from orderbridge.sources.decode.undocumented import InferredSchema
from orderbridge.sources.errors import BridgeError
from orderbridge.sources.extract import page_files
from orderbridge.sources.extract.batches import BatchDecoder
from orderbridge.sources.extract.ids import Hashes, IdHashes, hash_ids, rows_with_shared_hash
from orderbridge.sources.extract.legacy_pages import LegacyPages
from orderbridge.sources.extract.page_files import PageFiles
from orderbridge.sources.extract.pages import Paginator
from orderbridge.sources.extract.spool import Spool, SpoolFolder, run_folder
from orderbridge.sources.extract.sweep_rows import SweepRows
from orderbridge.sources.extract.table_files import read_batches
from orderbridge.sources.extract.v1_pages import V1Cursor


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_files, "BATCH_PAGES", 2)


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with closing(Spool(tmp_path / "spool")) as opened:
        yield opened


def filled(
    folder: Path, spool: Spool, resource: str, pages: list[list[dict[str, Any]]]
) -> SweepRows:
    record = LISTS[resource].records
    assert record is not None
    paginator: Paginator = LegacyPages(100) if resource == "customers" else V1Cursor(100)
    inferred = None if record.fields else InferredSchema(record)
    files = PageFiles(record, folder / "files", spool, paginator, inferred)
    for number, rows in enumerate(pages, 1):
        body = json.dumps({"data": rows, "hasMore": True}).encode()
        offset = spool.offset
        spool.write(f"page={number}", body)
        files.add(number, paginator.parse(body), offset)
    return files.finish()


def customer(key: int, name: str = "Zoë", documents: int = 1) -> dict[str, Any]:
    return {
        "id": key,
        "firstName": name,
        "documents": [{"number": f"{key}-{n}"} for n in range(documents)],
    }


def rows(files: dict[str, tuple[Path, int]], table: str) -> list[dict[str, Any]]:
    path, count = files[table]
    found: list[dict[str, Any]] = pa.concat_tables(read_batches([files[table]])).to_pylist()
    assert len(found) == count == pq.read_metadata(path).num_rows
    return found


def test_every_batch_is_a_row_group_of_one_file_per_table(tmp_path: Path, spool: Spool) -> None:
    pages = [[customer(2 * n), customer(2 * n + 1, documents=0)] for n in range(7)]
    files = filled(tmp_path, spool, "customers", pages)
    distinct, written = files.write([])
    assert (distinct, len(files.ids)) == (14, 14)
    assert [row["id"] for row in rows(written, "customers")] == [str(key) for key in range(14)]
    documents = [row["customer_id"] for row in rows(written, "customers__documents")]
    assert documents == [str(key) for key in range(0, 14, 2)]
    assert [len(batch) for batch in read_batches([written["customers"]])] == [4, 4, 4, 2]


@pytest.mark.parametrize(
    "collides", [False, True], ids=["each id has a hash", "different ids with one hash"]
)
def test_a_row_that_came_twice_is_there_as_it_came_last(
    tmp_path: Path, spool: Spool, monkeypatch: pytest.MonkeyPatch, collides: bool
) -> None:
    def colliding(keys: pa.ChunkedArray) -> Hashes:
        return np.array([int(key) % 3 for key in keys.to_pylist()], np.uint64)

    if collides:
        monkeypatch.setattr("orderbridge.sources.extract.sweep_rows.hash_ids", colliding)
    pages = [
        [customer(1, "old"), customer(2)],
        [customer(3)],
        [customer(4)],
        [customer(1, "new", 2)],
        [customer(5)],
    ]
    distinct, written = filled(tmp_path, spool, "customers", pages).write([])
    names = [row["id"] + row["first_name"] for row in rows(written, "customers")]
    assert (distinct, names) == (5, ["2Zoë", "3Zoë", "4Zoë", "1new", "5Zoë"])
    documents = [row["number"] for row in rows(written, "customers__documents")]
    assert documents == ["2-0", "3-0", "4-0", "1-0", "1-1", "5-0"]


def test_rows_that_a_later_sweep_has_are_left_to_it(tmp_path: Path, spool: Spool) -> None:
    def sweep(name: str, *keys: int) -> SweepRows:
        return filled(tmp_path / name, spool, "customers", [[customer(key)] for key in keys])

    files, second, third = sweep("1", *range(6)), sweep("2", 0, 1), sweep("3", 2, 9)
    distinct, written = files.write([second, third])
    assert distinct == 3
    assert [row["id"] for row in rows(written, "customers")] == ["3", "4", "5"]
    assert second.write([third])[0] == 2
    assert files.write([sweep("4", *range(6))]) == (0, {})


def test_a_late_type_holds_for_the_rows_before_and_a_late_table_is_there(
    tmp_path: Path, spool: Spool
) -> None:
    totals: list[Any] = [1, 2, 3, 4, 1.5, 6, "about 7", 8]
    orders: list[list[dict[str, Any]]] = [
        [{"id": f"o{n}", "total": total}] for n, total in enumerate(totals)
    ]
    orders[-1][0]["lines"] = [{"sku": "a"}]
    written = filled(tmp_path, spool, "orders", orders).write([])[1]
    assert [row["total"] for row in rows(written, "orders")] == [
        "1",
        "2",
        "3",
        "4",
        "1.5",
        "6",
        "about 7",
        "8",
    ]
    assert [(row["order_id"], row["sku"]) for row in rows(written, "orders__lines")] == [
        ("o7", "a")
    ]


TAXED: dict[str, Any] = {"sku": "A", "taxes": [{"a": 1}, None, 5], "a": [{"taxes": [{}]}]}


@pytest.mark.parametrize(
    "orders",
    [
        [
            {"lines": lines}
            for lines in [[TAXED, TAXED]] * 9 + [{"0": TAXED, "2": TAXED}, TAXED, {}, "", [None]]
        ],
        [
            {"lines": [], "a": a}
            for a in [{"taxes": [{"a": 1}]}] * 9 + [[{"taxes": [{}]}] * 2, [{"taxes": [{"a": 2}]}]]
        ],
        [
            {"lines": lines, "a": lines}
            for lines in [[{"sku": "A"}, {"sku": "A", "taxes": [1, {}]}], "x", [[]], 0, False]
        ],
    ],
)
def test_items_counted_in_pages_are_those_that_are_decoded(
    tmp_path: Path, spool: Spool, orders: list[dict[str, Any]]
) -> None:
    rows_ = [{"id": f"o{n % 9}", **order} for n, order in enumerate(orders)]
    files = filled(
        tmp_path, spool, "orders", [rows_[start : start + 3] for start in range(0, len(rows_), 3)]
    )
    written = files.write([])[1]
    counted = {table: count for table, (_, count) in written.items() if table != "orders"}
    assert Counter(files.items) == Counter(counted), "an absent one and 0 are equal"


@pytest.mark.parametrize("resource", ["customers", "orders"])
@pytest.mark.parametrize(
    "is_late", [False, True], ids=["in a batch", "in one that is decoded again"]
)
def test_an_item_that_the_decoder_loses_is_noticed(
    tmp_path: Path, spool: Spool, monkeypatch: pytest.MonkeyPatch, resource: str, is_late: bool
) -> None:
    decode = BatchDecoder.decode

    def lossy(self: BatchDecoder, pages: list[Page], *, is_known: bool = False) -> Decoded:
        full = decode(self, pages, is_known=is_known)
        tables = {
            name: table.slice(0, len(table) - ("__" in name)) for name, table in full.tables.items()
        }
        return replace(full, tables=tables) if is_late == is_known else full

    monkeypatch.setattr(BatchDecoder, "decode", lossy)
    rows_ = [
        {"id": n, "documents": [{"number": "1"}], "lines": [{"sku": "A"}] * 2}
        for n in (1, 2, *[3] * is_late, 3)
    ]
    with pytest.raises(
        BridgeError, match=f"^{resource}__[a-z]+: [0-9] items are in the pages, [0-9] were decoded"
    ):
        filled(tmp_path, spool, resource, [rows_]).write([])


def ids_column(*chunks: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string())


def test_hashes_are_equal_exactly_for_equal_ids() -> None:
    some, others = ["", "\0", "a", "a\0", "á", "a"], ["x" * 8, "x" * 16, "x" * 17, "", "b"]
    ids = [*some, *others]
    hashes = hash_ids(ids_column(some, others))
    sliced = hash_ids(pa.chunked_array([pa.array(["before", *ids, "after"]).slice(1, len(ids))]))
    assert list(sliced) == list(hashes)
    assert len(set(hashes)) == len(set(ids))
    assert list(rows_with_shared_hash(hashes)) == [0, 2, 5, 9]


@pytest.mark.parametrize("part_rows", [1, 3, 100])
def test_sweeps_are_compared_in_parts_as_they_would_be_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_rows: int
) -> None:
    monkeypatch.setattr("orderbridge.sources.extract.ids.PART_ROWS", part_rows)

    def hashes(name: str, *keys: int) -> IdHashes:
        kept = IdHashes(tmp_path / name)
        for start in range(0, len(keys), 3):
            kept.append(hash_ids(ids_column([str(key) for key in keys[start : start + 3]])))
        return kept

    first = hashes("first", 1, 2, 3, 2, 4, 5, 5)
    assert (first.count_distinct(), list(first.shared()), len(first)) == (5, [1, 3, 5, 6], 7)
    first.drop([1, 6])
    equal, later, empty = (
        hashes("equal", 5, 4, 3, 2, 1),
        hashes("later", 9, 3, 8, 5),
        hashes("empty"),
    )
    assert [first.equals(other) for other in (equal, later, empty)] == [True, False, False]
    assert not first.equals(hashes("more", 5, 4, 3, 2, 1, 1))
    assert [first.count_absent(other) for other in (equal, later, empty)] == [0, 2, 0]
    assert first.new_rows([later, empty]).tolist() == [True, False, False, True, True, False, False]


def kept(folder: SpoolFolder, *labels: str) -> list[bytes | None]:
    """The bodies that the spool of the first sweep still has for these requests."""
    with closing(folder.sweep(1)) as spool:
        return [spool.replay(label) for label in labels]


@pytest.mark.parametrize("written_at_once", [None, 1, 21])
def test_round_trip_and_modes(
    tmp_path: Path, written_at_once: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(
        os, "pwrite", lambda file, data, offset: pwrite(file, data[:written_at_once], offset)
    )
    spool = SpoolFolder(tmp_path / "s", {"list": "a"}).sweep(1)
    places = []
    for label, body in (("page=1", b"one"), ("page=2", b"\x00" * 5000)):
        places.append(spool.offset)
        spool.write(label, body)
    assert [spool.at(place) for place in places] == [b"one", b"\x00" * 5000]
    spool.close()
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "s").iterdir()} == {0o600}
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o700
    labels = [f"page={n}" for n in (1, 2, 3)]
    assert kept(SpoolFolder(tmp_path / "s", {"list": "a"}), *labels) == [
        b"one",
        b"\x00" * 5000,
        None,
    ]


@pytest.mark.parametrize("cut", [0, 1, 10, 17, 22, 30])
def test_a_torn_frame_ends_the_replay_and_is_cut_off(tmp_path: Path, cut: int) -> None:
    spool = SpoolFolder(tmp_path / "s", {}).sweep(1)
    spool.write("page=1", b"first body")
    end = spool.offset
    spool.write("page=2", b"second body")
    spool.close()
    path = tmp_path / "s" / "sweep-1.pages"
    data = path.read_bytes()
    # of an earlier version; changed
    broken = {
        0: data[:end] + b"OBS1" + data[end + 4 :],
        30: data[:-4] + b"XXXX",
    }
    path.write_bytes(broken.get(cut, data[:-cut]))
    assert kept(SpoolFolder(tmp_path / "s", {}), "page=1", "page=2") == [b"first body", None]
    assert path.stat().st_size == end


@pytest.mark.parametrize(
    "change", ["", "label", "host", "environment", "key", "finished", "garbage"]
)
def test_only_the_same_walk_is_resumed(tmp_path: Path, change: str) -> None:
    def folder(
        host: str = "a", environment: str = "sandbox", key: str = "brand_test_abc"
    ) -> SpoolFolder:
        return SpoolFolder(tmp_path / "s", {"host": host, "environment": environment}, key)

    first = folder()
    with closing(first.sweep(1)) as spool:
        spool.write("page=1", b"x")
    if change == "finished":
        first.finish()
    elif change == "garbage":
        (tmp_path / "s" / "walk.json").write_text("{")
    again = folder(**({change: "other"} if change in ("host", "environment", "key") else {}))
    labels = ["page=2", "page=1"] if change == "label" else ["page=1"]
    assert kept(again, *labels) == ([b"x"] if not change else [None] * len(labels))


def test_no_digest_of_a_key_can_be_compared(tmp_path: Path) -> None:
    notes = []
    for name in ("a", "b"):
        SpoolFolder(tmp_path / name, {}, "brand_live_secret")
        notes.append((tmp_path / name / "walk.json").read_text())
    assert len({json.loads(note)["digest"] for note in notes}) == 2, "each has a salt of its own"
    assert "secret" not in "".join(notes)


@pytest.mark.parametrize(
    ("started_s", "stopped_s", "expected"),
    [
        *((age, None, age in (0, 3500)) for age in (0, 3500, 3700, 86_400, -60)),
        *(
            (80_000, 60, True),
            (80_000, 3700, False),
            (87_000, 60, False),
            (60, -60, False),
            (-60, 60, False),
        ),
    ],
)
def test_a_walk_is_resumed_within_an_hour_of_its_last_page_and_a_day_of_its_first(
    tmp_path: Path, started_s: float, stopped_s: float | None, expected: bool
) -> None:
    folder = tmp_path / "spool"
    spools = SpoolFolder(folder, {"list": "customers"}, "key")
    if stopped_s is not None:  # else it stopped before its first page
        spools.sweep(1).close()
        os.utime(folder / "sweep-1.pages", (time.time() - stopped_s,) * 2)
    described = json.loads((folder / "walk.json").read_text())
    started_at = described["started_at"] - started_s
    (folder / "walk.json").write_text(json.dumps({**described, "started_at": started_at}))
    assert (SpoolFolder(folder, {"list": "customers"}, "key").started_at == started_at) is expected
    assert stopped_s is None or (folder / "sweep-1.pages").exists() is expected


@pytest.mark.parametrize(
    ("started_h", "stopped_h", "expected"),
    [(24.1, 24, True), (35, 35, True), (60, 24, True), (37, 36.1, False), (73, 1, False)],
)
def test_a_walk_that_a_limit_stopped_is_resumed_the_next_night(
    tmp_path: Path, started_h: float, stopped_h: float, expected: bool
) -> None:
    folder = tmp_path / "spool"
    spools = SpoolFolder(folder, {"list": "customers"}, "key")
    spools.sweep(1).close()
    spools.stop_by_limit()
    os.utime(folder / "sweep-1.pages", (time.time() - stopped_h * 3600,) * 2)
    described = json.loads((folder / "walk.json").read_text())
    started_at = described["started_at"] - started_h * 3600
    (folder / "walk.json").write_text(json.dumps({**described, "started_at": started_at}))
    assert (SpoolFolder(folder, {"list": "customers"}, "key").started_at == started_at) is expected


class Run:
    """With which the folder of its files is removed."""


def test_the_folder_of_a_run_is_private_and_removed_with_it(tmp_path: Path) -> None:
    run, later = Run(), Run()
    with run_folder(tmp_path / "new", "orders", run) as (folder, spool):
        SpoolFolder(spool, {})
    (folder / "rows.parquet").write_text("rows")
    assert folder.stat().st_mode & 0o077 == folder.parent.stat().st_mode & 0o077 == 0
    with run_folder(tmp_path / "new", "orders", later) as (other, its_spool):
        assert its_spool == spool
        assert (spool / "walk.json").exists()
    assert (folder / "rows.parquet").exists(), "that run goes on"
    del run
    assert (folder.exists(), other.exists()) == (False, True)


def test_the_next_run_of_a_list_has_the_pages_of_a_killed_one_and_removes_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("weakref.finalize", lambda run, end, folder, lock: os.close(lock))
        with run_folder(tmp_path, "orders", Run()) as (folder, spool):
            spool.mkdir()
    (folder / "rows.parquet").write_text("rows")
    # as where a run has just removed its own
    (tmp_path / "orders" / "run-gone").symlink_to("nowhere")
    with run_folder(tmp_path, "customers", Run()) as (_, other):
        assert (other.exists(), folder.exists()) == (False, True)
    with run_folder(tmp_path, "orders", Run()) as (_, again):
        assert (again.exists(), folder.exists()) == (True, False)


def test_a_list_is_walked_by_one_run_at_a_time(tmp_path: Path) -> None:
    def come_and_go(name: str) -> str:
        with run_folder(tmp_path, name, Run()):
            return name

    with ThreadPoolExecutor(2) as pool:
        with run_folder(tmp_path, "a", Run()):
            waiting = pool.submit(come_and_go, "a")
            assert pool.submit(come_and_go, "b").result(20) == "b"
            assert not wait([waiting], 0.2).done
        assert waiting.result(20) == "a"
    assert not [*tmp_path.glob("*/run-*")]
