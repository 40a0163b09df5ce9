"""Walks whose pages come late, short or grown, and what is on disk when a page is handed out."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq

from sources.contract import Record
from sources.decode.documented import decode
from sources.decode.rows import Decoded, Page
from sources.extract import page_files
from sources.extract.result import ListResult, WalkOptions
from sources.extract.spool import SpoolFolder
from sources.extract.walk import walk
from sources.http.exchange import Response
from tests.sources.platform import Platform


def walked(platform: Any, folder: Path, **options: Any) -> ListResult:
    spool = SpoolFolder(folder / "spool", {"list": "customers"})
    return walk("customers", platform, folder / "files", spool, WalkOptions(**options))


def ids(result: ListResult) -> list[int]:
    return [int(key) for path, _ in result.files["customers"] for key in pq.read_table(path)["id"].to_pylist()]


def test_a_late_page_is_taken_in_its_place(tmp_path: Path) -> None:
    class Late(Platform):
        def get(self, path: str, params: Mapping[str, Any], *, check: Any) -> Any:
            if params["page"] == 7:
                time.sleep(0.3)
            return super().get(path, params, check=check)

    result = walked(Late(list(range(1, 71))), tmp_path, page_limit=10)
    assert (result.verdict, result.distinct) == ("complete", 70)
    sweep = pq.read_table(tmp_path / "files" / "sweep-1" / "0-0.parquet")["id"].to_pylist()
    assert sweep == [str(number) for number in range(1, 71)]


def test_a_page_of_less_than_half_is_not_the_end(tmp_path: Path) -> None:
    class Uneven(Platform):
        """Page 2 has three rows of ten."""

        def get(self, path: str, params: Mapping[str, Any], *, check: Any) -> Any:
            whole = self.ids
            if params["page"] == 2:
                self.ids = whole[:13]
            try:
                return super().get(path, params, check=check)
            finally:
                self.ids = whole

    result = walked(Uneven(list(range(1, 41))), tmp_path, page_limit=10, sweeps=1, window=1)
    assert ids(result) == [*range(1, 14), *range(21, 41)]


def test_sweeps_do_not_agree_where_the_second_has_one_row_more(tmp_path: Path) -> None:
    class Growing(Platform):
        is_grown = False

        def get(self, path: str, params: Mapping[str, Any], *, check: Any) -> Any:
            if params["limit"] != 10 and not self.is_grown:
                self.is_grown = True
                self.ids = [*self.ids, 1000]
            return super().get(path, params, check=check)

    result = walked(Growing(list(range(1, 36))), tmp_path, page_limit=10)
    assert [sweep.distinct for sweep in result.sweeps] == [35, 36, 36]
    assert result.verdict == "complete"
    assert walked(Growing(list(range(1, 36))), tmp_path / "two", page_limit=10, sweeps=2).verdict == "unproven"


def test_a_page_is_on_disk_before_it_counts(tmp_path: Path) -> None:
    sizes: list[int] = []

    def progress(resource: str, pages: int, rows: int, total: int | None, sweep: int) -> None:
        sizes.append((tmp_path / "spool" / "sweep-1.pages").stat().st_size)

    spool = SpoolFolder(tmp_path / "spool", {"list": "customers"})
    platform: Any = Platform(list(range(1, 36)))
    walk("customers", platform, tmp_path / "files", spool, WalkOptions(10, sweeps=1), progress)
    pages = sizes[:4]
    assert pages[0] > 0
    assert pages == sorted(set(pages))


def test_pages_are_requested_before_the_one_before_them_has_come(tmp_path: Path) -> None:
    class Waiting(Platform):
        page_3 = threading.Event()

        def get(self, path: str, params: Mapping[str, Any], *, check: Any) -> Any:
            if params["page"] == 3:
                self.page_3.set()
            assert params["page"] != 2 or self.page_3.wait(10)
            return super().get(path, params, check=check)

    assert walked(Waiting(list(range(1, 81))), tmp_path, page_limit=10).verdict == "complete"


def test_after_a_429_pages_are_requested_one_at_a_time(tmp_path: Path) -> None:
    class Busy(Platform):
        lock = threading.Lock()
        running = most = 0

        def get(self, path: str, params: Mapping[str, Any], *, check: Any) -> Any:
            with self.lock:
                self.running += 1
                self.most = max(self.most, self.running)
            time.sleep(0.005)
            body, response = super().get(path, params, check=check)
            with self.lock:
                self.running -= 1
            return body, replace(response, throttled=True)

    busy = Busy(list(range(1, 81)))
    assert walked(busy, tmp_path, page_limit=10).verdict == "complete"
    assert busy.most == 1


def test_a_row_that_the_decoder_loses_fails_the_walk(tmp_path: Path) -> None:
    def lossy(record: Record, pages: Sequence[Page]) -> Decoded:
        decoded = decode(record, pages)
        return replace(decoded, tables={name: table.slice(1) for name, table in decoded.tables.items()})

    with mock.patch.object(page_files, "decode", lossy):
        result = walked(Platform(list(range(1, 36))), tmp_path, page_limit=10)
    assert (result.verdict, result.distinct) == ("incomplete", 0)
    assert str(result.error) == "customers: 35 rows were read, 34 decoded"


def test_a_cursor_that_brings_an_id_twice_does_not_prove_its_list(tmp_path: Path) -> None:
    """While the first sweep goes on, the first order moves to the end and the third one moves up, unseen."""

    class Moving:
        requests = 0

        def get(self, path: str, params: Mapping[str, Any], *, check: Any) -> Any:
            self.requests += 1
            order = [1, 2, 3, 4, 5, 6] if self.requests == 1 else [2, 3, 4, 5, 6, 1]
            start = int(params.get("startingAfter", "0"))
            rows = [{"id": f"o{number}", "total": number} for number in order[start : start + int(params["limit"])]]
            end = start + len(rows)
            envelope = {"data": rows, "hasMore": end < 6, "nextCursor": str(end) if end < 6 else None}
            raw = json.dumps(envelope).encode()
            return check(raw), Response(200, raw)

    platform: Any = Moving()
    spool = SpoolFolder(tmp_path / "spool", {"list": "orders"})
    result = walk("orders", platform, tmp_path / "files", spool, WalkOptions(2))
    found = {key for path, _ in result.files["orders"] for key in pq.read_table(path)["id"].to_pylist()}
    assert len(result.sweeps) > 1
    assert found == {f"o{number}" for number in range(1, 7)}
    platform = Moving()
    spool = SpoolFolder(tmp_path / "again", {"list": "orders"})
    alone = walk("orders", platform, tmp_path / "alone", spool, WalkOptions(2, sweeps=1))
    assert alone.verdict == "unproven"
