"""Walks over a platform in memory: verdicts, guards, drift, resume."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sources.decode import documented
from sources.errors import ContractBroken, HttpRejected, PlatformError, Stopped, Unreachable
from sources.extract import page_files
from sources.extract.ids import IdHashes, hash_ids
from sources.extract.pages import Pagination
from sources.extract.result import ListResult, WalkOptions
from sources.extract.spool import SpoolFolder
from sources.extract.walk import walk
from sources.http.exchange import Response
from tests.sources.platform import Platform


def walked(platform: Any, folder: Path, resource: str = "customers", **options: Any) -> ListResult:
    spool = SpoolFolder(folder / "spool", {"list": resource})
    return walk(resource, platform, folder / "files", spool, WalkOptions(**options))


def ids(result: ListResult, table: str = "customers", column: str = "id") -> list[str]:
    return [key for path, _ in result.files[table] for key in pq.read_table(path)[column].to_pylist()]


@pytest.mark.parametrize("ending", ["empty_page", "repeat_last"])
@pytest.mark.parametrize("count", [1, 2, 3, 99, 100, 101, 650])
def test_a_quiet_list_is_complete(tmp_path: Path, ending: str, count: int) -> None:
    platform = Platform(list(range(1, count + 1)), ending=ending)
    result = walked(platform, tmp_path)
    assert result.verdict == "complete", result.evidence
    assert sorted(ids(result), key=int) == [str(key) for key in platform.ids]
    assert len(ids(result, "customers__documents", "customer_id")) == sum(key % 3 for key in platform.ids)
    assert [sweep.distinct for sweep in result.sweeps] == [count, count]


def test_the_second_sweep_asks_for_061_of_what_page_1_held(tmp_path: Path) -> None:
    platform = Platform(list(range(650)), cap=50)
    result = walked(platform, tmp_path, page_limit=100)
    assert result.verdict == "complete"
    assert [sweep.size for sweep in result.sweeps] == [50, 30]
    assert {params["limit"] for params in platform.requests} == {100, 30}


def test_a_short_page_is_not_the_end(tmp_path: Path) -> None:
    platform = Platform(list(range(500)), cap=20)
    assert walked(platform, tmp_path).distinct == 500


@pytest.mark.parametrize("status", [400, 404])
def test_a_refusal_past_a_short_page_is_an_end(tmp_path: Path, status: int) -> None:
    result = walked(Platform(list(range(650)), ending=f"status_{status}"), tmp_path)
    assert (result.verdict, result.distinct) == ("complete", 650)
    assert f"ended by assumed: status {status}" in result.evidence[0]


def test_a_refusal_past_a_full_page_proves_nothing(tmp_path: Path) -> None:
    result = walked(Platform(list(range(600)), ending="status_404"), tmp_path, sweeps=2)
    assert (result.verdict, result.distinct) == ("unproven", 600)
    assert "the end is assumed" in result.evidence[0]


def test_a_refusal_past_a_full_page_proves_where_the_total_is_reached(tmp_path: Path) -> None:
    class NoFlags(Platform):
        def get(self, path: str, params: Any, *, check: Any) -> Any:
            return super().get(path, params, check=lambda raw: check(raw.replace(b'"hasNextPage": false', b'"x": 0')))

    result = walked(NoFlags(list(range(600)), ending="status_404", pagination=True), tmp_path)
    assert (result.verdict, result.distinct) == ("complete", 600)


def test_a_window_on_the_depth_of_pages_proves_nothing(tmp_path: Path) -> None:
    class Window(Platform):
        def get(self, path: str, params: Any, *, check: Any) -> Any:
            if int(params["page"]) * int(params["limit"]) > 400:
                raise HttpRejected("deep", family="legacy", verb="GET", path=path, status=400)
            return super().get(path, params, check=check)

    assert walked(Window(list(range(650))), tmp_path).verdict == "unproven"


@pytest.mark.parametrize("status", [400, 404])
def test_a_refusal_of_the_first_page_is_an_error(tmp_path: Path, status: int) -> None:
    class Gone(Platform):
        def get(self, path: str, params: Any, *, check: Any) -> Any:
            raise HttpRejected("no", family="legacy", verb="GET", path=path, status=status)

    result = walked(Gone([1]), tmp_path)
    assert (result.verdict, result.files) == ("incomplete", {})
    assert isinstance(result.error, HttpRejected)


def test_a_platform_that_ignores_limit_is_never_proven(tmp_path: Path) -> None:
    result = walked(Platform(list(range(650)), fixed=20), tmp_path)
    assert (result.verdict, result.distinct, len(result.sweeps)) == ("unproven", 650, 2)
    assert "ignores `limit`" in " ".join(result.evidence)


@pytest.mark.parametrize(
    ("failure", "pagination", "verdict"),
    [
        (Unreachable("failed", status=500), False, "unproven"),
        (ContractBroken("`data` is absent"), False, "unproven"),
        (Unreachable("failed", status=500), True, "complete"),  # its `total` shows that the list is whole
        (Unreachable("no connection"), False, "incomplete"),
    ],
)
def test_a_page_0_that_fails_does_not_end_the_walk(
    tmp_path: Path, failure: PlatformError, pagination: bool, verdict: str
) -> None:
    class NegativeOffset(Platform):
        def get(self, path: str, params: Any, *, check: Any) -> Any:
            if params["page"] == 0:
                raise failure
            body, response = super().get(path, params, check=check)
            if body.pagination is not None:
                body = replace(body, pagination=Pagination(total=body.pagination.total))
            return body, response

    result = walked(NegativeOffset(list(range(250)), pagination=pagination), tmp_path)
    assert (result.verdict, result.distinct) == (verdict, 0 if result.error else 250)
    assert ("page 0 could not be read" in " ".join(result.evidence)) is (verdict == "unproven")


@pytest.mark.parametrize("count", [1, 20, 99, 100, 101, 150, 200, 650])
@pytest.mark.parametrize("pagination", [False, True])
@pytest.mark.parametrize("ending", ["empty_page", "status_404"])
def test_pages_numbered_from_zero_lose_no_row(tmp_path: Path, count: int, pagination: bool, ending: str) -> None:
    platform = Platform(list(range(count)), first_page=0, pagination=pagination, ending=ending)
    result = walked(platform, tmp_path)
    if ending == "status_404" and count <= 100:  # page 1 is not there: an error, and no empty list
        assert result.verdict == "incomplete"
        return
    assert result.distinct == count
    assert result.verdict == "complete" or ending == "status_404"


def test_a_total_that_moves_is_never_proven(tmp_path: Path) -> None:
    result = walked(Platform(list(range(250)), pagination=True, total_moves=True), tmp_path)
    assert (result.verdict, result.distinct, len(result.sweeps)) == ("unproven", 250, 6)
    assert "total changed" in " ".join(result.evidence)


def test_one_sweep_proves_nothing(tmp_path: Path) -> None:
    result = walked(Platform(list(range(250))), tmp_path, sweeps=1)
    assert (result.verdict, result.distinct) == ("unproven", 250)


def test_an_empty_list_is_complete_and_empty(tmp_path: Path) -> None:
    result = walked(Platform([]), tmp_path)
    assert (result.verdict, result.distinct) == ("complete", 0)
    assert ids(result) == []


@pytest.mark.parametrize("seed", range(60))
def test_drift_never_makes_a_wrong_complete(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    platform = Platform(
        list(range(random.randrange(1, 400))),
        ending=random.choice(["empty_page", "repeat_last", "status_404"]),
        pagination=random.random() < 0.5,
        cap=random.choice([None, 7, 40]),
        drift=random.choice([0.0, 0.02, 0.2, 0.5]),
        random=random,
    )
    result = walked(platform, tmp_path, page_limit=random.choice([10, 25, 100]))
    if result.error is not None:  # a page that drifted past the end can look like a refusal amid the list
        assert result.verdict == "incomplete"
        return
    got = {int(key) for key in ids(result)}
    assert len(ids(result)) == len(got) == result.distinct
    assert got <= platform.ever
    assert result.total("rows") == result.distinct + result.duplicates + len(result.quarantined)
    if result.verdict == "complete":
        assert got >= platform.always


def test_a_stopped_walk_goes_on_where_it_was(tmp_path: Path) -> None:
    calls = 0

    def stop(_: Platform) -> None:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise Stopped("stopped")

    platform = Platform(list(range(1000)), before=stop)
    with pytest.raises(Stopped):
        walked(platform, tmp_path, window=1)
    platform.before = None
    platform.requests.clear()
    stopped_at = datetime.now(UTC)
    result = walked(platform, tmp_path, window=1)
    assert (result.verdict, result.distinct) == ("complete", 1000)
    assert result.started_at < stopped_at  # `verify` asks for a read that began after the push
    assert platform.requests[0]["page"] == 5  # page 1, the probe of page 0, pages 2 to 4 were there
    assert result.sweeps[0].resumed_pages == 5


def test_a_finished_walk_is_not_gone_on_with(tmp_path: Path) -> None:
    platform = Platform(list(range(300)))
    walked(platform, tmp_path)
    platform.ids.append(9999)
    assert "9999" in ids(walked(platform, tmp_path))


@pytest.mark.parametrize(
    ("error", "resumed_pages"),
    [
        pytest.param(Unreachable("away"), 5, id="unreachable"),
        pytest.param(ContractBroken("`data` is absent"), 0, id="contract"),
        pytest.param(HttpRejected("no", family="legacy", verb="GET", path="/customers", status=422), 0, id="rejected"),
    ],
)
def test_a_walk_that_would_not_fail_the_same_way_again_keeps_its_pages(
    tmp_path: Path, error: PlatformError, resumed_pages: int
) -> None:
    def fail(platform: Platform) -> None:
        if len(platform.requests) == 6:
            raise error

    platform = Platform(list(range(1000)), before=fail)
    assert walked(platform, tmp_path, window=1).verdict == "incomplete"
    platform.requests.clear()
    platform.before = None
    assert walked(platform, tmp_path, window=1).sweeps[0].resumed_pages == resumed_pages


def test_rows_that_are_refused_are_reported_and_the_list_is_not_proven(tmp_path: Path) -> None:
    class Drifting(Platform):
        def row(self, key: int) -> dict[str, Any]:
            return {**super().row(key), **({"birthdate": 7} if key == 13 else {})}

    result = walked(Drifting(list(range(100))), tmp_path)
    assert result.verdict == "unproven"
    assert (len(result.quarantined), result.distinct, len(result.sweeps)) == (1, 99, 2)
    assert "birthdate" in result.quarantined[0].reason
    assert "Zoë" not in result.quarantined[0].reason


def test_the_newest_row_of_a_key_wins(tmp_path: Path) -> None:
    latest: dict[int, str] = {}

    class Changing(Platform):
        def row(self, key: int) -> dict[str, Any]:
            latest[key] = str(len(self.requests))
            return {**super().row(key), "phone": latest[key]}

    result = walked(Changing([*range(10), *range(5, 15)]), tmp_path, page_limit=10, window=1)
    assert result.verdict == "unproven"
    assert (result.distinct, result.duplicates) == (15, 20 * len(result.sweeps) - 15)
    rows = [row for path, _ in result.files["customers"] for row in pq.read_table(path).to_pylist()]
    assert {int(row["id"]): row["phone"] for row in rows} == latest
    assert len(rows) == 15


class Moving(Platform):
    """Changes the bytes of one row before it serves the second sweep, and counts the rows that are decoded."""

    def __init__(self, change: tuple[bytes, bytes], **options: Any) -> None:
        super().__init__(list(range(1, 651)), **options)
        self.change = change

    def get(self, path: str, params: Any, *, check: Any) -> Any:
        raw, response = super().get(path, params, check=bytes)
        if params["limit"] != 100 and self.change[0]:
            raw = raw.replace(*self.change)
        return check(raw), replace(response, body=raw)


@pytest.mark.parametrize(
    ("change", "decoded"),
    [((b"", b""), 650), ((b'"id": 3,', b'"id":3,'), 1300), ((b'"id": 640,', b'"id":640,'), 1300)],
    ids=["equal", "differs early", "differs late"],
)
def test_a_second_sweep_of_equal_bytes_is_not_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[bytes, bytes], decoded: int
) -> None:
    rows = []
    real = documented.decode

    def counting(record: Any, pages: Any) -> Any:
        tables = real(record, pages)
        rows.append(len(tables.tables["customers"]))
        return tables

    monkeypatch.setattr(page_files, "decode", counting)
    monkeypatch.setattr(page_files, "BATCH_PAGES", 2)
    result = walked(Moving(change), tmp_path)
    assert (result.verdict, result.used_sweeps, result.distinct, result.duplicates) == ("complete", [2], 650, 0)
    assert [(sweep.rows, sweep.distinct) for sweep in result.sweeps] == [(650, 650)] * 2
    assert ids(result) == [str(key) for key in range(1, 651)]
    assert sum(rows) == decoded
    written = sorted(file.parent.name for file in tmp_path.rglob("*.parquet"))
    assert written == ["sweep-1"] * 2 + ["sweep-2"] * 2 * (decoded > 650)


@pytest.mark.parametrize("position", [1, 300, 650])
def test_a_second_sweep_that_differs_in_one_value_is_published(tmp_path: Path, position: int) -> None:
    change = b'"Zo\\u00eb %d"' % position, b'"New"'
    result = walked(Moving(change), tmp_path)
    assert (result.verdict, result.distinct) == ("complete", 650)
    names = pq.read_table(result.files["customers"][0][0]).column("first_name").to_pylist()
    assert [n for n, name in enumerate(names, 1) if name == "New"] == [position]


def test_a_row_more_or_less_at_the_end_of_the_second_sweep_is_noticed(tmp_path: Path) -> None:
    for n, change in enumerate([(650, 649), (649, 650)]):
        platform = Platform(list(range(1, change[0] + 1)))
        result = walked(Resized(platform, change[1]), tmp_path / str(n), sweeps=2)
        assert (result.verdict, [sweep.rows for sweep in result.sweeps]) == ("unproven", list(change))
        assert result.distinct == 650


class Resized:
    """Gives a platform another number of rows before it serves the second sweep."""

    def __init__(self, platform: Platform, count: int) -> None:
        self.platform, self.count = platform, count

    def get(self, path: str, params: Any, *, check: Any) -> Any:
        if params["limit"] != 100:
            self.platform.ids = list(range(1, self.count + 1))
        return self.platform.get(path, params, check=check)


class RemovedWhileRead(Platform):
    """Serves orders by a cursor that counts rows, and removes the first one after two pages of the first reading."""

    notes: Mapping[int, str] = MappingProxyType({})

    def get(self, path: str, params: Any, *, check: Any) -> Any:
        self.requests.append(params)
        if len(self.requests) == 3:
            del self.ids[0]
        start, limit = int(params.get("startingAfter", 0)), int(params["limit"])
        end = start + limit
        body: dict[str, Any] = {"data": [{"id": str(key), "note": self.notes.get(key)} for key in self.ids[start:end]]}
        has_more = end < len(self.ids)
        raw = json.dumps({**body, "hasMore": has_more, "nextCursor": str(end) if has_more else None}).encode()
        return check(raw), Response(200, raw)


def known_ids(folder: Path) -> IdHashes:
    """The ids of fifty orders."""
    known = IdHashes(folder / "known.ids")
    known.append(hash_ids(pa.chunked_array([[str(key) for key in range(1, 51)]])))
    return known


LEARNT, CONFIRMED = "6 equal sweeps confirm", "as earlier reads confirmed"
GAP = "customers_total_gap"


def counting_deleted(listed: int, deleted: int) -> Platform:
    return Platform([*range(1, listed + 1)], pagination=True, deleted=deleted)


@pytest.mark.parametrize(
    ("platform", "options", "verdict", "sweeps", "observed", "said"),
    [
        (counting_deleted(49, 3), {}, "unproven", 6, "3", LEARNT),
        (counting_deleted(49, -3), {}, "unproven", 6, "-3", LEARNT),
        (counting_deleted(49, 3), {"sweeps": 5}, "unproven", 5, None, ""),
        (counting_deleted(500, 3), {"page_limit": 100}, "unproven", 6, None, ""),  # a maximum of rows, perhaps
        (counting_deleted(49, 3), {"known_gap": 3}, "complete", 2, "3", CONFIRMED),
        (counting_deleted(49, 4), {"known_gap": 3}, "complete", 2, "4", CONFIRMED),  # 50 was listed before
        (counting_deleted(50, 4), {"known_gap": 3}, "unproven", 6, "4", LEARNT),
        (counting_deleted(49, 5), {"known_gap": 3}, "unproven", 6, "5", LEARNT),
        (counting_deleted(49, 2), {"known_gap": 3}, "unproven", 6, "2", LEARNT),
        (counting_deleted(49, 1), {}, "unproven", 6, "1", LEARNT),  # nothing shows yet that it counts deleted rows
        (counting_deleted(49, 0), {"known_gap": 3}, "complete", 2, "0", ""),
        (counting_deleted(49, 0), {}, "complete", 2, None, ""),
        (Platform([*range(49)], pagination=True, deleted=3, drift=0.3), {}, "unproven", 6, None, ""),
    ],
)
def test_a_total_that_counts_deleted_rows_is_learnt_and_watched(
    tmp_path: Path,
    platform: Platform,
    options: dict[str, Any],
    verdict: str,
    sweeps: int,
    observed: str | None,
    said: str,
) -> None:
    result = walked(platform, tmp_path, **{"page_limit": 10, "known_ids": known_ids(tmp_path), **options})
    assert (result.verdict, len(result.sweeps)) == (verdict, sweeps), result.evidence
    assert [value for what, value in result.observations if what == GAP] == ([observed] if observed else [])
    assert said in " ".join(result.evidence)
    assert set(map(int, ids(result))) >= platform.always


def test_a_row_that_a_cursor_skips_is_found_by_a_second_reading(tmp_path: Path) -> None:
    result = walked(RemovedWhileRead([*range(1, 51)]), tmp_path, "orders", page_limit=10, known_ids=known_ids(tmp_path))
    assert (result.verdict, [sweep.distinct for sweep in result.sweeps]) == ("unproven", [49, 49])
    assert sorted(map(int, ids(result, "orders"))) == [*range(1, 51)]


@pytest.mark.parametrize(
    ("listed", "sweeps_max", "verdict", "sweeps"),
    [(50, 1, "complete", 1), (50, 6, "complete", 1), (49, 1, "unproven", 1), (49, 6, "complete", 2)],
)
def test_absent_ids_of_a_list_with_a_cursor_take_two_readings(
    tmp_path: Path, listed: int, sweeps_max: int, verdict: str, sweeps: int
) -> None:
    platform = RemovedWhileRead([*range(1, listed + 1)], requests=[{}] * 3)
    result = walked(platform, tmp_path, "orders", page_limit=10, sweeps=sweeps_max, known_ids=known_ids(tmp_path))
    assert (result.verdict, len(result.sweeps), result.distinct) == (verdict, sweeps, listed)
    assert result.position is not None
    assert result.position.limit == 10, "a tail, which has the limit of the settings, can start there"


@pytest.mark.parametrize(("listed", "sweeps"), [(50, 1), (49, 2)])
def test_a_known_order_that_is_quarantined_is_not_absent(tmp_path: Path, listed: int, sweeps: int) -> None:
    platform = RemovedWhileRead([*range(1, listed + 1)], requests=[{}] * 3)
    platform.notes = {7: "\0"}
    result = walked(platform, tmp_path, "orders", page_limit=10, known_ids=known_ids(tmp_path))
    assert (result.verdict, len(result.sweeps), result.distinct) == ("unproven", sweeps, listed - 1)
    assert [row.key for row in result.quarantined] == ["7"]
