from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sources.contract import LISTS
from sources.decode.rows import Decoded, Page
from sources.decode.undocumented import InferredSchema
from sources.errors import BridgeError
from sources.extract import page_files
from sources.extract.ids import Hashes
from sources.extract.legacy_pages import LegacyPages
from sources.extract.page_files import PageFiles, read_batches
from sources.extract.pages import Paginator
from sources.extract.spool import Spool
from sources.extract.v1_pages import V1Cursor


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_files, "BATCH_PAGES", 2)


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with closing(Spool(tmp_path / "spool")) as opened:
        yield opened


def filled(folder: Path, spool: Spool, resource: str, pages: list[list[dict[str, Any]]]) -> PageFiles:
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
    return files


def customer(key: int, name: str = "Zoë", documents: int = 1) -> dict[str, Any]:
    return {"id": key, "firstName": name, "documents": [{"number": f"{key}-{n}"} for n in range(documents)]}


def rows(files: dict[str, tuple[Path, int]], table: str) -> list[dict[str, Any]]:
    path, count = files[table]
    found: list[dict[str, Any]] = pa.concat_tables(read_batches([files[table]])).to_pylist()
    assert len(found) == count == pq.read_metadata(path).num_rows
    return found


def test_every_batch_is_a_row_group_of_one_file_per_table(tmp_path: Path, spool: Spool) -> None:
    pages = [[customer(2 * n), customer(2 * n + 1, documents=0)] for n in range(7)]
    files = filled(tmp_path, spool, "customers", pages)
    assert len(files.finish().ids) == 14
    distinct, written = files.write([])
    assert distinct == 14
    assert [row["id"] for row in rows(written, "customers")] == [str(key) for key in range(14)]
    documents = [row["customer_id"] for row in rows(written, "customers__documents")]
    assert documents == [str(key) for key in range(0, 14, 2)]
    assert [len(batch) for batch in read_batches([written["customers"]])] == [4, 4, 4, 2]
    assert len(list((tmp_path / "files").iterdir())) == 2


def test_a_row_that_came_twice_is_there_as_it_came_last(tmp_path: Path, spool: Spool) -> None:
    pages = [[customer(1, "old"), customer(2)], [customer(3)], [customer(4)], [customer(1, "new", 2)], [customer(5)]]
    files = filled(tmp_path, spool, "customers", pages)
    assert len(files.finish().ids) == 5
    written = files.write([])[1]
    names = [row["id"] + row["first_name"] for row in rows(written, "customers")]
    assert names == ["2Zoë", "3Zoë", "4Zoë", "1new", "5Zoë"]
    documents = [row["number"] for row in rows(written, "customers__documents")]
    assert documents == ["2-0", "3-0", "4-0", "1-0", "1-1", "5-0"]


def test_different_ids_with_one_hash_are_different_rows(
    tmp_path: Path, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def colliding(keys: pa.ChunkedArray) -> Hashes:
        return np.array([int(key) % 3 for key in keys.to_pylist()], np.uint64)

    monkeypatch.setattr("sources.extract.page_files.hash_ids", colliding)
    pages = [[customer(1, "old"), customer(2)], [customer(3)], [customer(4)], [customer(1, "new")], [customer(5)]]
    files = filled(tmp_path, spool, "customers", pages)
    assert len(files.finish().ids) == 5
    distinct, written = files.write([])
    assert distinct == 5
    names = {row["id"]: row["first_name"] for row in rows(written, "customers")}
    assert names == {"1": "new", "2": "Zoë", "3": "Zoë", "4": "Zoë", "5": "Zoë"}


def test_rows_that_a_later_sweep_has_are_left_to_it(tmp_path: Path, spool: Spool) -> None:
    def sweep(name: str, *keys: int) -> PageFiles:
        files = filled(tmp_path / name, spool, "customers", [[customer(key)] for key in keys])
        files.finish()
        return files

    files, second, third = sweep("1", *range(6)), sweep("2", 0, 1), sweep("3", 2, 9)
    distinct, written = files.write([second, third])
    assert distinct == 3
    assert [row["id"] for row in rows(written, "customers")] == ["3", "4", "5"]
    assert second.write([third])[0] == 2
    assert files.write([sweep("4", *range(6))]) == (0, {})


def test_a_late_type_holds_for_the_rows_before_and_a_late_table_is_there(tmp_path: Path, spool: Spool) -> None:
    totals: list[Any] = [1, 2, 3, 4, 1.5, 6, "about 7", 8]
    orders: list[list[dict[str, Any]]] = [[{"id": f"o{n}", "total": total}] for n, total in enumerate(totals)]
    orders[-1][0]["lines"] = [{"sku": "a"}]
    files = filled(tmp_path, spool, "orders", orders)
    files.finish()
    written = files.write([])[1]
    assert [row["total"] for row in rows(written, "orders")] == ["1", "2", "3", "4", "1.5", "6", "about 7", "8"]
    assert [(row["order_id"], row["sku"]) for row in rows(written, "orders__lines")] == [("o7", "a")]


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, False, 0, 1.5, "", "x", "7", [], {}]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["lines", "taxes", "0", "2", "a", 'q"']), inner, max_size=3),
    ),
    max_leaves=8,
)
LINES = st.lists(st.fixed_dictionaries({"sku": st.just("A")}, optional={"taxes": st.lists(VALUES, max_size=2)}))


TAXED: dict[str, Any] = {"sku": "A", "taxes": [{"a": 1}, None, 5], "a": [{"taxes": [{}]}]}


@example(
    [{"lines": lines, "a": None} for lines in [[TAXED, TAXED]] * 9 + [{"0": TAXED, "2": TAXED}, TAXED, {}, "", [None]]]
)
@example(
    [{"lines": [], "a": a} for a in [{"taxes": [{"a": 1}]}] * 9 + [[{"taxes": [{}]}] * 2, [{"taxes": [{"a": 2}]}]]]
)
@given(st.lists(st.fixed_dictionaries({"lines": VALUES | LINES, "a": VALUES}), min_size=1, max_size=12))
@settings(deadline=None)
def test_items_counted_in_pages_are_those_that_are_decoded(orders: list[dict[str, Any]]) -> None:
    rows_ = [{"id": f"o{n % 9}", **order} for n, order in enumerate(orders)]
    with tempfile.TemporaryDirectory() as name, closing(Spool(Path(name) / "spool")) as spool:
        pages = [rows_[start : start + 3] for start in range(0, len(rows_), 3)]
        files = filled(Path(name), spool, "orders", pages)
        written = files.finish().write([])[1]
    assert {table: count for table, count in files.items.items() if count} == {
        table: count for table, (_, count) in written.items() if count and table != "orders"
    }


@pytest.mark.parametrize("resource", ["customers", "orders"])
@pytest.mark.parametrize("is_late", [False, True], ids=["in a batch", "in one that is decoded again"])
def test_an_item_that_the_decoder_loses_is_noticed(
    tmp_path: Path, spool: Spool, monkeypatch: pytest.MonkeyPatch, resource: str, is_late: bool
) -> None:
    decode = PageFiles._decode

    def lossy(self: PageFiles, pages: list[Page], *, is_known: bool = False) -> Decoded:
        full = decode(self, pages, is_known=is_known)
        tables = {name: table.slice(0, len(table) - ("__" in name)) for name, table in full.tables.items()}
        return replace(full, tables=tables) if is_late == is_known else full

    monkeypatch.setattr(PageFiles, "_decode", lossy)
    rows_ = [{"id": n, "documents": [{"number": "1"}], "lines": [{"sku": "A"}] * 2} for n in (1, 2, *[3] * is_late, 3)]
    files = filled(tmp_path, spool, resource, [rows_])
    with pytest.raises(BridgeError, match=f"^{resource}__[a-z]+: [0-9] items are in the pages, [0-9] were decoded"):
        files.finish().write([])
