"""Walks over a platform in memory: verdicts, guards, drift, resume, ids that occur twice, hostile lists."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orderbridge.sources.contract import Record
from orderbridge.sources.decode.documented import decode
from orderbridge.sources.decode.rows import Decoded, Page
from orderbridge.sources.errors import (
    ContractBroken,
    HttpRejected,
    RateLimited,
    Stopped,
    Unreachable,
)
from orderbridge.sources.extract import batches, page_files
from orderbridge.sources.extract.ids import ID_CONFLICT, IdHashes, hash_ids
from orderbridge.sources.extract.result import WalkOptions
from orderbridge.sources.extract.spool import SpoolFolder
from orderbridge.sources.extract.walk import walk
from tests.sources.platform import Orders, Platform, Replies, Row, ids, rejected, rows_of, walked


def refusing(
    when: Callable[[Mapping[str, Any]], bool], error: Exception
) -> Callable[[Platform], None]:
    def before(platform: Platform) -> None:
        if when(platform.requests[-1]):
            raise error

    return before


def deeper(than: int) -> Callable[[Platform], None]:
    return refusing(
        lambda params: (int(params["page"]) - 1) * int(params["limit"]) >= than, rejected(400)
    )


def page_0(error: Exception) -> Callable[[Platform], None]:
    return refusing(lambda params: params["page"] == 0, error)


ONE_LIMIT = refusing(lambda params: params["limit"] not in (10, 25, 50, 100), rejected(422))
FAILED = Unreachable("failed", status=500)
MANY, TWO = list(range(650)), b'{"data": [{"id": 0}, {"id": 1}]}'
VERDICTS: dict[str, tuple[Platform, dict[str, Any], str, int, str]] = {
    **{
        f"{count} rows, {ending}": (
            Platform([*range(1, count + 1)], ending=ending),
            {},
            "complete",
            2,
            "",
        )
        for count in (0, 1, 100, 650)
        for ending in ("empty_page", "repeat_last")
    },
    **{
        f"{count} rows from page 0": (
            Platform([*range(count)], first_page=0, pagination=has),
            {},
            "complete",
            2,
            "",
        )
        for count in (1, 101)
        for has in (False, True)
    },
    "page 0 fails": (
        Platform(MANY[:250], before=page_0(FAILED)),
        {},
        "unproven",
        1,
        "page 0 could not be read",
    ),
    "short pages": (Platform(MANY, cap=20), {}, "complete", 2, "of 12"),
    "a cache without the query": (
        Platform(MANY[:2], alter=lambda *_: TWO),
        {},
        "unproven",
        2,
        "ignores `limit`",
    ),
    "404 after a full page": (
        Platform(MANY[:600], ending="status_404"),
        {"sweeps": 2},
        "unproven",
        2,
        "is assumed",
    ),
    "a window on the depth": (
        Platform(MANY, before=deeper(400)),
        {"page_limit": 50},
        "unproven",
        6,
        "assumed",
    ),
    "limit is ignored": (
        Platform(MANY, fixed=20),
        {},
        "unproven",
        2,
        "the platform ignores `limit`",
    ),
    "total moves": (
        Platform(MANY, pagination=True, total_moves=True),
        {},
        "unproven",
        6,
        "total changed",
    ),
    "second limit rejected": (
        Platform(MANY, before=ONE_LIMIT),
        {},
        "unproven",
        1,
        "was rejected with status 422",
    ),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_what_a_list_shows_decides_whether_it_is_proven(tmp_path: Path, name: str) -> None:
    platform, options, verdict, sweeps, words = VERDICTS[name]
    result = walked(platform, tmp_path, **options)
    assert (result.verdict, len(result.sweeps), result.error) == (verdict, sweeps, None), (
        result.evidence
    )
    assert result.distinct == (420 if name.startswith("a window") else len(platform.ids))
    assert words in " ".join(result.evidence)
    if platform.alter is None:
        documents = ids(result, "customers__documents", "customer_id")
        assert len(documents) == sum(int(key) % 3 for key in ids(result))


REFUSED = {
    "page 1": Platform(MANY, before=refusing(lambda _: True, rejected(422))),
    "of a list from page 0, page 1": Platform(MANY[:100], first_page=0, ending="status_404"),
    "a page amid the second sweep": Platform(
        MANY,
        before=refusing(lambda params: (params["limit"], params["page"]) == (61, 3), rejected(422)),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_an_error(tmp_path: Path, name: str) -> None:
    result = walked(REFUSED[name], tmp_path)
    assert (result.verdict, result.files, result.distinct) == ("incomplete", {}, 0)
    assert isinstance(result.error, HttpRejected)


@pytest.mark.parametrize(
    ("error", "resumed_pages"),
    [(Stopped("stopped"), 5), (Unreachable("away"), 5), (ContractBroken("`data` is absent"), 0)],
)
def test_a_walk_that_would_not_fail_the_same_way_again_goes_on_where_it_was(
    tmp_path: Path, error: Exception, resumed_pages: int
) -> None:
    def fail(platform: Platform) -> None:
        if len(platform.requests) == 6:
            raise error

    platform = Platform(list(range(1000)), before=fail)
    if isinstance(error, Stopped):
        with pytest.raises(Stopped):
            walked(platform, tmp_path, window=1)
    else:
        assert walked(platform, tmp_path, window=1).verdict == "incomplete"
    platform.before, stopped_at = None, datetime.now(UTC)
    platform.requests.clear()
    result = walked(platform, tmp_path, window=1)
    assert (result.verdict, result.distinct, result.sweeps[0].resumed_pages) == (
        "complete",
        1000,
        resumed_pages,
    )
    # `verify`: a read that began after the push
    assert result.started_at < stopped_at or not resumed_pages
    # page 1, the probe of page 0, pages 2 to 4
    assert platform.requests[0]["page"] == (resumed_pages or 1)
    platform.ids.append(9999)
    assert "9999" in ids(walked(platform, tmp_path)), "a finished walk starts anew"


@pytest.mark.parametrize(
    ("count", "sweeps"), [(100, 2), (98, 6)], ids=["quarantined", "and repeated"]
)
def test_rows_that_are_refused_are_reported_once_and_the_list_is_not_proven(
    tmp_path: Path, count: int, sweeps: int
) -> None:
    def row(key: int) -> Row:
        odd = {"birthdate": 7} if key in (13, 80) else {}
        return {"firstName": "Zoë", "documents": [{"number": "1"}], **odd}

    repeated = [80] if sweeps == 6 else []
    platform = Platform(
        [*range(count), *repeated], row=row, pagination=sweeps == 6, total_moves=sweeps == 6
    )
    result = walked(platform, tmp_path)
    assert (result.verdict, len(result.sweeps), result.distinct) == ("unproven", sweeps, count - 2)
    assert sorted(str(one.key) for one in result.quarantined) == ["13", "80", *map(str, repeated)]
    assert sweeps == 6 or [(one.page, one.position) for one in result.quarantined] == [
        (1, 14),
        (2, 20),
    ]
    assert (result.sweeps[0].duplicates, result.sweeps[0].quarantined) == (0, 2 + len(repeated))
    assert result.total("rows") == result.distinct + result.duplicates + len(result.quarantined)
    assert all("birthdate" in one.reason and "Zoë" not in one.reason for one in result.quarantined)


def test_the_newest_row_of_a_key_wins(tmp_path: Path) -> None:
    latest: dict[str, str] = {}

    def row(key: int) -> Row:
        latest[str(key)] = str(len(platform.requests))
        return {"phone": latest[str(key)]}

    platform = Platform([*range(10), *range(5, 15)], row=row)
    result = walked(platform, tmp_path, page_limit=10, window=1)
    assert result.verdict == "unproven"
    assert (result.distinct, result.duplicates) == (15, 20 * len(result.sweeps) - 15)
    assert sorted((row["id"], row["phone"]) for row in rows_of(result, "customers")) == sorted(
        latest.items()
    )


@pytest.mark.parametrize("position", [0, 1, 650], ids=["equal", "differs early", "differs late"])
def test_a_second_sweep_is_decoded_and_published_only_if_its_bytes_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, position: int
) -> None:
    rows = []

    def counting(record: Record, pages: Sequence[Page]) -> Decoded:
        tables = decode(record, pages)
        rows.append(len(tables.tables["customers"]))
        return tables

    def changed(params: Mapping[str, Any], raw: bytes) -> bytes:
        return (
            raw if params["limit"] == 100 else raw.replace(b'"Zo\\u00eb %d"' % position, b'"New"')
        )

    monkeypatch.setattr(batches, "decode", counting)
    monkeypatch.setattr(page_files, "BATCH_PAGES", 2)
    result = walked(Platform(list(range(1, 651)), alter=changed), tmp_path)
    assert (result.verdict, result.used_sweeps, result.distinct, result.duplicates) == (
        "complete",
        [2],
        650,
        0,
    )
    assert ids(result) == [str(key) for key in range(1, 651)]
    assert [n for n, name in enumerate(ids(result, column="first_name"), 1) if name == "New"] == [
        position
    ][:position]
    assert sum(rows) == 650 * (2 if position else 1)


@pytest.mark.parametrize(("first", "second"), [(650, 649), (649, 650)])
def test_a_row_more_or_less_at_the_end_of_the_second_sweep_is_noticed(
    tmp_path: Path, first: int, second: int
) -> None:
    def resize(platform: Platform) -> None:
        if platform.requests[-1]["limit"] != 100:
            platform.ids = list(range(1, second + 1))

    result = walked(Platform(list(range(1, first + 1)), before=resize), tmp_path / "two", sweeps=2)
    assert (result.verdict, [sweep.rows for sweep in result.sweeps]) == (
        "unproven",
        [first, second],
    )
    assert result.distinct == 650
    result = walked(Platform(list(range(1, first + 1)), before=resize), tmp_path / "six")
    assert (result.verdict, [sweep.rows for sweep in result.sweeps]) == (
        "complete",
        [first, second, second],
    )


def removed_while_read(listed: int, note: str | None = None) -> Orders:
    """Of fifty orders, the first one is removed after two pages of the first reading, or was before it."""
    rows = [{"id": str(key), "note": note if key == 7 else None} for key in range(1, 51)]
    return Orders(
        lambda reading, request: rows if (reading, request) < (1, 3) else rows[50 - listed :]
    )


@pytest.fixture
def known_ids(tmp_path: Path) -> IdHashes:
    known = IdHashes(tmp_path / "known.ids")
    known.append(hash_ids(pa.chunked_array([[str(key) for key in range(1, 51)]])))
    return known


LEARNT, CONFIRMED = "6 equal passes confirm", "as earlier reads confirmed"


@pytest.mark.parametrize(
    "case",
    [
        (49, 3, {}, "unproven", 6, "3", LEARNT),
        (49, 3, {"sweeps": 5}, "unproven", 5, None, ""),
        (500, 3, {"page_limit": 100}, "unproven", 6, None, ""),  # a maximum of rows, perhaps
        (49, 3, {"known_gap": 3}, "complete", 2, "3", CONFIRMED),
        (49, 4, {"known_gap": 3}, "complete", 2, "4", CONFIRMED),  # 50 was listed before
        (50, 4, {"known_gap": 3}, "unproven", 6, "4", LEARNT),
        (49, 2, {"known_gap": 3}, "unproven", 6, "2", LEARNT),
        (49, 0, {}, "complete", 2, None, ""),
        (49, 3, {"page_limit": 9}, "unproven", 6, None, ""),
    ],
)
def test_a_total_that_counts_deleted_rows_is_learnt_and_watched(
    tmp_path: Path,
    known_ids: IdHashes,
    case: tuple[int, int, dict[str, Any], str, int, str | None, str],
) -> None:
    listed, deleted, options, verdict, sweeps, observed, said = case
    moves = options.get("page_limit") == 9
    platform = Platform(
        [*range(1, listed + 1)], pagination=True, deleted=deleted, total_moves=moves
    )
    result = walked(platform, tmp_path, **{"page_limit": 10, "known_ids": known_ids, **options})
    assert (result.verdict, len(result.sweeps)) == (verdict, sweeps), result.evidence
    gaps = [value for what, value in result.observations if what == "customers_total_gap"]
    assert gaps == ([observed] if observed else [])
    assert said in " ".join(result.evidence)
    assert len(ids(result)) == listed


def paged(listed: int, *, moves: int = 0, **cut: Any) -> Replies:
    """A list whose pages and counts are altered by `cut`, and that loses a row at every `moves`-th request.

    `ignores_page`, `ignores_limit`: each response is the first page, of any size; `most`: rows of the whole list;
    `hidden`: rows that are counted only; `without`: fields of the pagination that are not reported; `ends`: whether
    `hasNextPage` is false on the first page; `stale`: the `total` does not follow the list.
    """
    left, requests = [*range(1, listed + 1)], count(1)

    def reply(params: Params) -> bytes:
        if moves and next(requests) % moves == 0:
            left.pop(0)
        limit = 100 if cut.get("ignores_limit") else int(params["limit"])
        page = 1 if cut.get("ignores_page") else int(params["page"])
        total = (listed if cut.get("stale") else len(left)) + cut.get("hidden", 0)
        rows = left[: cut.get("most", listed)][(page - 1) * limit : page * limit] if page else []
        pages = -(-total // limit)
        pagination = {"total": total, "pages": pages, "hasPrevPage": params["page"] > 1}
        if cut.get("ends"):
            pagination["hasNextPage"] = False
        for name in cut.get("without", ()):
            del pagination[name]
        return json.dumps(
            {"data": [{"id": key} for key in rows], "pagination": pagination}
        ).encode()

    return Replies(reply)


CUT: dict[str, tuple[Replies, dict[str, Any], str]] = {
    "page is ignored": (paged(250, ignores_page=True), {}, "rows read: 100, reported: 250"),
    "page and limit are ignored": (
        paged(250, ignores_page=True, ignores_limit=True),
        {},
        "rows read: 100, reported: 250",
    ),
    "page is ignored, without pages": (
        paged(250, ignores_page=True, without=["pages"]),
        {},
        "rows read: 100, reported: 250",
    ),
    "page is ignored, without total": (
        paged(250, ignores_page=True, without=["total"]),
        {},
        "pages read: 1, reported: 3",
    ),
    "page is ignored, one sweep": (
        paged(250, ignores_page=True),
        {"sweeps": 1},
        "rows read: 100, reported: 250",
    ),
    "no next page": (paged(250, ends=True), {}, "rows read: 100, reported: 250"),
    "a maximum of rows": (paged(1250, most=1000), {}, "rows read: 1000, reported: 1250"),
    "a maximum of one page": (paged(250, most=100), {}, "rows read: 100, reported: 250"),
    "page is ignored, and the list moves": (
        paged(250, ignores_page=True, moves=3),
        {"window": 1},  # or threads would race for which page the list moves at
        "rows read: 10., reported: 2[34].",
    ),
    "the whole list": (paged(250), {}, ""),
    "the list moves": (paged(650, moves=3), {}, ""),
    "the list moves, total does not": (paged(650, moves=9, stale=True), {}, ""),
    "the list moves, one sweep": (paged(650, moves=2), {"sweeps": 1}, ""),
    "a few hidden rows": (paged(247, hidden=3), {}, ""),
    "hidden rows at the border of a page": (paged(200, hidden=1), {}, ""),
    "many hidden rows, confirmed": (paged(130, hidden=500), {}, ""),
    "many hidden rows, known": (paged(130, hidden=500), {"known_gap": 500}, ""),
    "many hidden rows, known, moving": (paged(650, hidden=500, moves=3), {"known_gap": 500}, ""),
    "an empty list": (paged(0), {}, ""),
}


def partly_failing(sweeps: int) -> Replies:
    """A list of 250 rows that lacks every seventh of them, with an error on its first page, in so many sweeps."""
    limits: list[int] = []

    def reply(params: Params) -> bytes:
        page, limit = int(params["page"]), int(params["limit"])
        if page == 1:
            limits.append(limit)
        is_failing = len(limits) <= sweeps
        keys = [key for key in range(1, 251) if key % 7 or not is_failing]
        rows = [{"id": key} for key in keys][(page - 1) * limit : page * limit] if page else []
        error = {"message": "a part did not answer", "code": "BUSY"}
        errors = [error] if is_failing and page == 1 else []
        return json.dumps({"data": rows, "errors": errors}).encode()

    return Replies(reply)


@pytest.mark.parametrize(
    ("failing", "verdict", "sweeps", "distinct"),
    [(0, "complete", 2, 250), (1, "complete", 3, 250), (9, "unproven", 6, 215)],
)
def test_a_page_with_an_error_beside_its_rows_is_kept_and_proves_nothing(
    tmp_path: Path, failing: int, verdict: str, sweeps: int, distinct: int
) -> None:
    result = walked(partly_failing(failing), tmp_path, page_limit=100)
    assert (result.verdict, len(result.sweeps), result.distinct, result.error) == (
        verdict,
        sweeps,
        distinct,
        None,
    )
    words = "pages with an error beside their rows: 1"
    assert (words in " ".join(result.evidence)) == (failing > 0)


@pytest.mark.parametrize("name", CUT)
def test_a_list_that_has_less_than_the_platform_reports_is_cut(tmp_path: Path, name: str) -> None:
    platform, options, words = CUT[name]
    result = walked(platform, tmp_path, **{"page_limit": 100, **options})
    assert re.fullmatch(words, result.cut), result.evidence
    assert result.error is None
    assert not (words and result.verdict == "complete")


@pytest.mark.parametrize(
    "case",
    [
        (50, 1, None, "complete", [50]),
        (49, 1, None, "unproven", [49]),
        (49, 6, None, "complete", [49, 49]),
        (49, 6, "\0", "unproven", [48, 48]),
    ],
)
def test_absent_ids_of_a_list_with_a_cursor_take_two_readings(
    tmp_path: Path, known_ids: IdHashes, case: tuple[int, int, str | None, str, list[int]]
) -> None:
    listed, sweeps_max, note, verdict, distinct = case
    platform = removed_while_read(listed, note)
    quiet = Orders.of(platform.rows(2, 1))
    result = walked(
        quiet, tmp_path, "orders", page_limit=10, sweeps=sweeps_max, known_ids=known_ids
    )
    assert (result.verdict, [sweep.distinct for sweep in result.sweeps]) == (verdict, distinct)
    if (listed, note) == (49, None) and sweeps_max > 1:
        skipping = walked(
            platform, tmp_path / "skips", "orders", page_limit=10, known_ids=known_ids
        )
        assert (skipping.verdict, [sweep.distinct for sweep in skipping.sweeps]) == (
            "unproven",
            [49, 49],
        )
        assert sorted(map(int, ids(skipping, "orders"))) == [*range(1, 51)]
    assert [row.key for row in result.quarantined] == ["7"] * bool(note)
    assert result.position is not None
    assert result.position.limit == 10, (
        "a tail, which has the limit of the settings, can start there"
    )


@pytest.mark.parametrize(
    ("second", "verdict", "words"),
    [
        ([9, 1, 2], "unproven", "no two passes agree"),  # 3 is gone, or was passed over
        ([9, 3, 1, 2], "complete", "each id once, and all ids before it"),
        ([1, 2, 2, 3], "unproven", "were read twice"),
    ],
)
def test_a_cursor_that_repeats_an_id_proves_nothing_alone(
    tmp_path: Path, second: list[int], verdict: str, words: str
) -> None:
    platform = Orders.of(
        *[[{"id": key} for key in keys] for keys in ([1, 2, 2, 3], second)], size=2
    )
    result = walked(platform, tmp_path, "orders")
    assert (result.verdict, len(result.sweeps)) == (verdict, 2), result.evidence
    assert words in " ".join(result.evidence)
    assert set(ids(result, "orders")) == {str(key) for key in (1, 2, 3, *second)}


def test_two_sweeps_of_orders_have_the_same_types(tmp_path: Path) -> None:
    first: list[Row] = [{"id": key, "total": key} for key in (1, 2, 2, 3)]
    second: list[Row] = [
        {"id": 4, "total": 12.5, "note": "new"},
        *({"id": key, "total": key} for key in (1, 1, 3)),
    ]
    result = walked(Orders.of(first, second, size=2), tmp_path, "orders")
    schemas = [pq.read_schema(path) for path, _ in result.files["orders"]]
    assert (result.verdict, len(schemas), schemas[0] == schemas[1]) == ("unproven", 2, True)
    rows = {row["id"]: (row["total"], row["note"]) for row in rows_of(result, "orders")}
    assert rows == {"4": (12.5, "new"), "1": (1.0, None), "2": (2.0, None), "3": (3.0, None)}


def test_pages_are_requested_in_advance_and_taken_in_their_place(tmp_path: Path) -> None:
    page_3 = threading.Event()

    def wait(platform: Platform) -> None:
        page = platform.requests[-1]["page"]
        page_3.set() if page == 3 else None
        assert page != 2 or page_3.wait(10)
        time.sleep(0.2 * (page == 7))

    result = walked(Platform(list(range(1, 71)), before=wait), tmp_path, page_limit=10)
    assert (result.verdict, result.distinct) == ("complete", 70)
    sweep = pq.read_table(tmp_path / "files" / "sweep-1" / "0-0.parquet")["id"].to_pylist()
    assert sweep == [str(number) for number in range(1, 71)]


def test_a_page_of_less_than_half_is_not_the_end(tmp_path: Path) -> None:
    def shorten(platform: Platform) -> None:
        platform.ids = list(range(1, 14 if platform.requests[-1]["page"] == 2 else 41))

    platform = Platform(list(range(1, 41)), before=shorten)
    result = walked(platform, tmp_path, page_limit=10, sweeps=1, window=1)
    assert list(map(int, ids(result))) == [*range(1, 14), *range(21, 41)]


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


def test_after_a_429_pages_are_requested_one_at_a_time(tmp_path: Path) -> None:
    class Busy(Platform):
        lock = threading.Lock()

        def get(self, path: str, params: Mapping[str, Any], **more: Any) -> Any:
            assert self.lock.acquire(blocking=False), "two requests at a time"
            time.sleep(0.005)
            answer = super().get(path, params, **more)
            self.is_throttled = True
            self.lock.release()
            return answer

    busy = Busy(list(range(1, 81)))
    result = walked(busy, tmp_path, page_limit=10)
    assert (result.verdict, result.error) == ("complete", None)
    assert result.observations["rate_limit", "legacy: 429 received"] == 1


def test_a_row_that_the_decoder_loses_fails_the_walk(tmp_path: Path) -> None:
    def lossy(record: Record, pages: Sequence[Page]) -> Decoded:
        decoded = decode(record, pages)
        return replace(
            decoded, tables={name: table.slice(1) for name, table in decoded.tables.items()}
        )

    with mock.patch.object(batches, "decode", lossy):
        result = walked(Platform(list(range(1, 36))), tmp_path, page_limit=10)
    assert (result.verdict, result.distinct, result.files) == ("incomplete", 0, {})
    assert str(result.error) == "customers: 35 rows were read, 34 decoded"


class SecondRecords(Platform):
    """From the second time on, an id in a list is another record."""

    lock = threading.Lock()
    """Pages are requested ahead, in threads."""

    def get(self, path: str, params: Any, **more: Any) -> Any:
        with self.lock:
            self.row = self.named
            self.seen = set(self.ids[: max(int(params["page"]) - 1, 0) * int(params["limit"])])
            return super().get(path, params, **more)

    def named(self, key: int) -> Row:
        name = "other" if key in self.seen else "first"
        self.seen.add(key)
        return {"firstName": name}


def first_names(result: Any) -> dict[str, str]:
    return {row["id"]: row["first_name"] for row in rows_of(result, "customers")}


@pytest.mark.parametrize("page_limit", [3, 100])
def test_two_records_with_one_id_are_loaded_and_quarantined(
    tmp_path: Path, page_limit: int
) -> None:
    result = walked(
        SecondRecords([*range(20), 7, *range(20, 30), 3]), tmp_path, page_limit=page_limit
    )
    assert (result.verdict, len(result.sweeps)) == ("complete", 2), result.evidence
    assert (result.distinct, result.duplicates, result.total("rows")) == (30, 0, 32)
    conflicts = [(row.key, row.reason, row.is_id_duplicate) for row in result.quarantined]
    assert conflicts == [("3", ID_CONFLICT, True), ("7", ID_CONFLICT, True)]
    assert b'"first"' in result.quarantined[0].row
    assert {key for key, name in first_names(result).items() if name == "other"} == {"3", "7"}
    assert len(ids(result)) == 30


def test_the_same_row_twice_is_a_duplicate_and_proves_nothing(tmp_path: Path) -> None:
    result = walked(Platform([*range(20), 7, *range(20, 30), 7]), tmp_path, page_limit=3)
    assert (result.verdict, len(result.sweeps)) == ("unproven", 6), result.evidence
    assert (result.distinct, result.duplicates, result.quarantined) == (30, 6 * 32 - 30, [])
    assert "2 rows were read twice" in result.evidence[0]


@pytest.mark.parametrize("leaves_at", [4, 10], ids=["at once", "in the second sweep"])
def test_an_earlier_version_is_no_second_record(tmp_path: Path, leaves_at: int) -> None:
    """One row is edited during the first sweep, and moves to the end."""

    def move(platform: Platform) -> None:
        if len(platform.requests) == 4:
            platform.ids.append(5)
        if len(platform.requests) == leaves_at:
            platform.ids.remove(5)

    platform = Platform(list(range(60)), before=move)
    platform.row = lambda key: {
        "firstName": "new" if key == 5 and len(platform.requests) > 3 else "old"
    }
    result = walked(platform, tmp_path, page_limit=10, window=1)
    assert (result.verdict, len(result.sweeps)) == ("complete", 3), result.evidence
    assert (result.quarantined, first_names(result)["5"]) == ([], "new")


Params = Mapping[str, Any]


def legacy_page(*keys: int, **more: Any) -> bytes:
    return json.dumps({"data": [{"id": key} for key in keys], **more}).encode()


def orders_page(*keys: int, cursor: str | None = None) -> bytes:
    rows = [{"id": key} for key in keys]
    return json.dumps({"data": rows, "hasMore": cursor is not None, "nextCursor": cursor}).encode()


@pytest.mark.parametrize("resource", ["customers", "orders"])
def test_a_list_without_end_fails_after_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resource: str
) -> None:
    monkeypatch.setenv("SOURCES__HTTP__LIST_TIMEOUT_S", "0.2")
    keys = count(1)

    def reply(_: Params) -> bytes:
        key = next(keys)
        return legacy_page(key) if resource == "customers" else orders_page(key, cursor=f"c{key}")

    result = walked(Replies(reply, most=10**9), tmp_path, resource)
    assert isinstance(result.error, ContractBroken)
    assert "did not end within" in result.error.message
    assert not list((tmp_path / "spool").glob("*.pages"))


def test_a_limited_list_that_is_not_read_in_its_time_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = Platform(list(range(1, 36)), is_throttled=True)
    with monkeypatch.context() as limited:
        limited.setenv("SOURCES__HTTP__LIST_TIMEOUT_S", "0.2")
        platform.before = lambda _: time.sleep(0.15)
        result = walked(platform, tmp_path, page_limit=5, window=1)
    assert isinstance(result.error, RateLimited)
    platform.before = None
    result = walked(platform, tmp_path, page_limit=5, window=1)
    assert result.verdict == "complete"
    assert result.sweeps[0].resumed_pages > 0


@pytest.mark.parametrize(
    ("row", "rows", "words"),
    [
        (b"{},", 4_000_001, "more than 4,000,000 values"),
        (b'{"id":1},', 200_000, "a page has 200,001 rows"),
    ],
)
def test_a_page_is_bounded_before_its_rows_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: bytes, rows: int, words: str
) -> None:
    body = b'{"data":[' + row * rows + row[:-1] + b"]}"
    made = mock.Mock(side_effect=AssertionError("rows were made"))
    monkeypatch.setattr(
        "orderbridge.sources.extract.pages._members", made
    ) if "values" in words else None
    result = walked(Replies(lambda _: body), tmp_path)
    assert isinstance(result.error, ContractBroken)
    assert words in result.error.message


@pytest.mark.parametrize(
    ("resource", "growth", "is_first_sweep_sound"),
    [("customers", 0, True), ("orders", 0, False), ("orders", 2, False)],
)
def test_random_pages_break_the_walk(
    tmp_path: Path,
    resource: str,
    growth: int,
    is_first_sweep_sound: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_files, "BATCH_PAGES", 10)
    random, calls, counts = Random(1), count(), count(500, growth)

    def reply(params: Params) -> bytes:
        if is_first_sweep_sound and params["limit"] == 100:
            return legacy_page(
                *[key for key in range(250) if key // 100 == int(params["page"]) - 1]
            )
        keys = random.sample(range(next(counts)), 100)
        return (
            legacy_page(*keys)
            if resource == "customers"
            else orders_page(*keys, cursor=f"c{next(calls)}")
        )

    result = walked(Replies(reply), tmp_path, resource)
    assert result.verdict == "incomplete"
    assert isinstance(result.error, ContractBroken)
    assert re.search(r"\d new ids in the last \d+ rows", result.error.message)


DEEP = b"[" * 1_500 + b"]" * 1_500


@pytest.mark.parametrize("member", [b"pagination", b"nextCursor", b"hasMore", b"other"])
@pytest.mark.parametrize("resource", ["customers", "orders"])
def test_deep_nesting_of_an_envelope_is_no_internal_error(
    tmp_path: Path, resource: str, member: bytes
) -> None:
    more = b"" if member == b"hasMore" else b',"hasMore":false'
    body = b'{"data":[{"id":1}]' + more + b',"' + member + b'":' + DEEP + b"}"
    result = walked(
        Replies(lambda params: body if params.get("page", 1) else legacy_page()), tmp_path, resource
    )
    assert result.error is None or isinstance(result.error, ContractBroken)


@pytest.mark.parametrize("body", [b'{"data":[{"id":1}', b"<html>"])
def test_a_broken_envelope_names_its_page(tmp_path: Path, body: bytes) -> None:
    result = walked(
        Replies(lambda params: body if params["page"] == 3 else legacy_page(params["page"])),
        tmp_path,
        window=1,
    )
    assert isinstance(result.error, Unreachable)
    assert "(page 3)" in str(result.error)
    assert "(page 3)" in result.evidence[-1]
