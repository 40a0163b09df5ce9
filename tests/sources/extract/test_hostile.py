"""Lists of hostile or broken platforms: never a wrong `complete`, never an endless walk, never an internal error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from unittest import mock

import pyarrow.parquet as pq
import pytest

from sources.contract import ORDER
from sources.errors import ContractBroken, HttpRejected, Unreachable
from sources.extract import page_files
from sources.extract.legacy_pages import LegacyPages
from sources.extract.result import ListResult, WalkOptions
from sources.extract.spool import SpoolFolder
from sources.extract.v1_pages import V1Cursor
from sources.extract.walk import walk
from sources.http.exchange import Response
from sources.http.failures import BrokenBody
from tests.sources.platform import Platform

T = TypeVar("T")


@dataclass
class Replies:
    """A platform whose response is made by a function of the query; stops a walk that does not end."""

    reply: Callable[[Mapping[str, Any]], bytes]
    requests: list[Mapping[str, Any]] = field(default_factory=list)
    most: int = 2_000

    def get(self, path: str, params: Mapping[str, Any], *, check: Callable[[bytes], T]) -> tuple[T, Response]:
        self.requests.append(dict(params))
        assert len(self.requests) < self.most, "an endless walk"
        body = self.reply(params)
        try:
            return check(body), Response(200, body)
        except BrokenBody as error:
            raise Unreachable(f"the body is broken: {error}", family="legacy", verb="GET", path=path) from None


def walked(platform: Any, folder: Path, resource: str = "customers", **options: Any) -> ListResult:
    spools = SpoolFolder(folder / "spool", {"list": resource})
    return walk(resource, platform, folder / "files", spools, WalkOptions(**options))


def rows(result: ListResult, table: str = "customers") -> list[dict[str, Any]]:
    return [row for path, _ in result.files[table] for row in pq.read_table(path).to_pylist()]


def legacy(*keys: int, **more: Any) -> bytes:
    return json.dumps({"data": [{"id": key} for key in keys], **more}).encode()


def orders(*keys: int, more: bool, cursor: str | None) -> bytes:
    return json.dumps({"data": [{"id": key} for key in keys], "hasMore": more, "nextCursor": cursor}).encode()


# --- 2: endless walks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", ["customers", "orders"])
def test_a_list_without_end_fails_after_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resource: str
) -> None:
    monkeypatch.setenv("SOURCES__HTTP__LIST_TIMEOUT_S", "0.2")
    keys = count(1)

    def reply(_: Mapping[str, Any]) -> bytes:
        key = next(keys)
        return legacy(key) if resource == "customers" else orders(key, more=True, cursor=f"c{key}")

    result = walked(Replies(reply, most=10**9), tmp_path, resource)
    assert isinstance(result.error, ContractBroken)
    assert "did not end within" in result.error.message
    assert "sources.http.list_timeout_s" in result.error.hint
    assert not list((tmp_path / "spool").glob("*.pages"))


BOMBS = {
    "rows without end": (b"{},", "more than 4,000,000 values"),
    "numbers for rows": (b"1,", "more than 4,000,000 values"),
    "too many rows": (b'{"id":1},', "a page has 200,001 rows"),
}


@pytest.mark.parametrize("resource", ["customers", "price_lists"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_page_is_bounded_before_its_rows_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bomb: str, resource: str
) -> None:
    row, words = BOMBS[bomb]
    rows = row * (200_000 if "200,001" in words else 4_000_001) + row[:-1]
    field = b'{"data":[' if resource == "customers" else b'{"priceLists":['
    made = mock.Mock(side_effect=AssertionError("rows were made"))
    monkeypatch.setattr("sources.extract.pages._decoded_members", made) if "values" in words else None
    result = walked(Replies(lambda _: field + rows + b"]}"), tmp_path, resource)
    assert isinstance(result.error, ContractBroken)
    assert words in result.error.message


@pytest.mark.parametrize("change", ["field", "order"])
def test_a_last_page_that_changes_ends_the_list(tmp_path: Path, change: str) -> None:
    random, calls = Random(1), iter(range(10_000))

    def reply(params: Mapping[str, Any]) -> bytes:
        size, page = int(params["limit"]), int(params["page"])
        pages = -(-250 // size)
        start = (min(page, pages) - 1) * size if page else 250
        keys = list(range(250))[start : start + size]
        if page > pages and change == "order":
            random.shuffle(keys)
        data = [{"id": key, "phone": str(next(calls) if change == "field" else "")} for key in keys]
        return json.dumps({"data": data}).encode()

    result = walked(Replies(reply), tmp_path)
    assert (result.verdict, result.distinct) == ("complete", 250)
    assert {sweep.ended_by for sweep in result.sweeps} == {"repeated page"}


def test_pages_that_go_round_in_a_circle_prove_nothing(tmp_path: Path) -> None:
    def reply(params: Mapping[str, Any]) -> bytes:
        size, page = int(params["limit"]), int(params["page"])
        pages = -(-250 // size)
        return legacy(*list(range(250))[(page - 1) % pages * size :][:size]) if page else legacy()

    platform = Replies(reply)
    result = walked(platform, tmp_path)
    assert (result.verdict, result.distinct) == ("unproven", 250)
    assert "a page had no new id" in result.evidence[0]
    assert len(platform.requests) < 300


@pytest.mark.parametrize("growth", [0, 2])
@pytest.mark.parametrize("resource", ["customers", "orders"])
def test_random_pages_break_the_walk(
    tmp_path: Path, resource: str, growth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_files, "BATCH_PAGES", 10)
    random, calls, counts = Random(1), iter(range(10_000)), count(500, growth)

    def reply(params: Mapping[str, Any]) -> bytes:
        keys = random.sample(range(next(counts)), 100)
        return legacy(*keys) if resource == "customers" else orders(*keys, more=True, cursor=f"c{next(calls)}")

    result = walked(Replies(reply), tmp_path, resource)
    assert result.verdict == "incomplete"
    assert isinstance(result.error, ContractBroken)
    assert re.search(r"\d new ids in the last \d+ rows", result.error.message)


def test_rows_without_an_id_are_different_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_files, "BATCH_PAGES", 1)
    monkeypatch.setattr(page_files, "CHECK_ROWS", 2)

    def reply(params: Mapping[str, Any]) -> bytes:
        page = int(params.get("startingAfter", 0))
        more = {"hasMore": page < 9, "nextCursor": f"{page + 1}" if page < 9 else None}
        return json.dumps({"data": [{"number": page * 2}, {"number": page * 2 + 1}], **more}).encode()

    result = walked(Replies(reply), tmp_path, "orders")
    assert (result.verdict, result.error, len(result.quarantined)) == ("unproven", None, 20)


def test_orders_that_ignore_the_cursor_break_the_walk(tmp_path: Path) -> None:
    calls = iter(range(10_000))
    platform = Replies(lambda _: orders(1, 2, 3, more=True, cursor=f"c{next(calls)}"))
    result = walked(platform, tmp_path, "orders")
    assert isinstance(result.error, ContractBroken)
    assert "a page has no new id" in result.error.message
    assert len(platform.requests) == 2


# --- 3: envelopes --------------------------------------------------------------------------------------------------


def test_no_more_beside_a_cursor_breaks_the_contract(tmp_path: Path) -> None:
    result = walked(Replies(lambda _: orders(1, more=False, cursor="c")), tmp_path, "orders")
    assert isinstance(result.error, ContractBroken)
    assert "`hasMore` is false although there is a cursor" in result.error.message


@pytest.mark.parametrize(
    ("resource", "body", "name"),
    [
        ("customers", b'{"data":[{"id":1}],"data":[{"id":2}]}', "data"),
        ("customers", b'{"data":[{"id":1}],"d\\u0061ta":[{"id":1}]}', "data"),
        ("customers", b'{"data":[{"id":1}],"pagination":{"total":1},"pagination":{"total":2}}', "pagination"),
        ("orders", b'{"data":[{"id":1}],"hasMore":true,"data":[{"id":2}],"hasMore":false}', "data"),
        ("orders", b'{"data":[{"id":1}],"hasMore":true,"nextCursor":null,"hasMore":false}', "hasMore"),
        ("price_lists", b'{"priceLists":[{"id":"a"}],"priceLists":[]}', "priceLists"),
    ],
)
def test_a_member_that_occurs_twice_breaks_the_contract(tmp_path: Path, resource: str, body: bytes, name: str) -> None:
    result = walked(Replies(lambda _: body), tmp_path, resource)
    assert isinstance(result.error, ContractBroken)
    assert f"`{name}` occurs twice" in result.error.message


# --- 4: numbers and nesting ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("total", [2**63, -(2**64), 10**400])
def test_a_total_beyond_64_bits_breaks_the_contract(tmp_path: Path, total: int) -> None:
    body = b'{"data":[{"id":1}],"pagination":{"total":' + str(total).encode() + b"}}"
    result = walked(Replies(lambda _: body), tmp_path)
    assert isinstance(result.error, ContractBroken)
    assert "64-bit integers" in result.error.hint


DEEP = b"[" * 1_500 + b"]" * 1_500


@pytest.mark.parametrize("resource", ["customers", "orders"])
def test_deep_nesting_costs_its_row(tmp_path: Path, resource: str) -> None:
    body = b'{"data":[{"id":1,"x":' + DEEP + b'},{"id":2}],"hasMore":false}'
    empty = b'{"data":[]}'
    reply = Replies(lambda params: body if params.get("page", 1) == 1 else empty)
    result = walked(reply, tmp_path, resource, sweeps=1)
    assert result.error is None
    assert [(row.page, row.position, row.key) for row in result.quarantined] == [(1, 1, None)]
    assert [row["id"] for row in rows(result, resource)] == ["2"]


@pytest.mark.parametrize("member", [b"pagination", b"nextCursor", b"hasMore", b"other"])
@pytest.mark.parametrize("resource", ["customers", "orders"])
def test_deep_nesting_of_an_envelope_is_no_internal_error(tmp_path: Path, resource: str, member: bytes) -> None:
    more = b"" if member == b"hasMore" else b',"hasMore":false'
    body = b'{"data":[{"id":1}]' + more + b',"' + member + b'":' + DEEP + b"}"
    result = walked(Replies(lambda params: body if params.get("page", 1) else legacy()), tmp_path, resource)
    assert result.error is None or isinstance(result.error, ContractBroken)
    used = {"customers": b"pagination", "orders": b"nextCursor"}[resource]
    if member == b"other":
        assert result.error is None
    if member in (used, b"hasMore") and resource == "orders":
        assert isinstance(result.error, ContractBroken)


# --- 5: one bad row ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", ["customers", "orders"])
@pytest.mark.parametrize("value", [b'"\\ud83d"', b"NaN", b'"a\x00b"', b'"a\tb"', b'"\xff"'])
def test_one_bad_row_does_not_cost_its_list(tmp_path: Path, resource: str, value: bytes) -> None:
    def reply(params: Mapping[str, Any]) -> bytes:
        page = int(params.get("page", 2))
        if page not in (1, 2):
            return b'{"data":[]}'
        keys = range(page * 10, page * 10 + 10)
        members = [b'{"id":%d%s}' % (key, b',"name":' + value if key == 23 else b"") for key in keys]
        return b'{"data":[' + b",".join(members) + b'],"hasMore":false}'

    result = walked(Replies(reply), tmp_path, resource, sweeps=1)
    assert result.error is None
    assert [(row.page, row.position) for row in result.quarantined] == [(2 if resource == "customers" else 1, 4)]
    assert result.distinct == (19 if resource == "customers" else 9)


@pytest.mark.parametrize("body", [b'{"data":[{"id":1}', b'{"data":[{"id":1}]]}', b"<html>", b'{"data":[1,]}'])
def test_a_broken_envelope_names_its_page(tmp_path: Path, body: bytes) -> None:
    result = walked(Replies(lambda params: body if params["page"] == 3 else legacy(params["page"])), tmp_path, window=1)
    assert isinstance(result.error, Unreachable)
    assert "(page 3)" in str(result.error)
    assert "(page 3)" in result.evidence[-1]


# --- 6 and 7: page sizes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 20, 150])
def test_a_cache_that_drops_the_query_proves_nothing(tmp_path: Path, count: int) -> None:
    result = walked(Replies(lambda _: legacy(*range(count))), tmp_path)
    assert (result.verdict, result.distinct) == ("unproven", count)
    assert "the platform ignores `limit`" in " ".join(result.evidence)


@pytest.mark.parametrize("status", [400, 422])
def test_where_the_second_limit_is_rejected_the_first_sweep_stands(tmp_path: Path, status: int) -> None:
    class Certain(Platform):
        def get(self, path: str, params: Any, *, check: Any) -> Any:
            if params["limit"] not in (10, 25, 50, 100):
                raise HttpRejected("limit", family="legacy", verb="GET", path=path, status=status)
            return super().get(path, params, check=check)

    result = walked(Certain(list(range(250))), tmp_path)
    assert (result.verdict, result.distinct, result.error) == ("unproven", 250, None)
    assert f"limit 61 was rejected with status {status}: no further sweep" in result.evidence
    assert [sweep.number for sweep in result.sweeps] == result.used_sweeps == [1]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 50, 99, 100, 122, 200, 600])
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_a_list_that_ends_with_a_404_can_be_proven(tmp_path: Path, count: int, limit: int) -> None:
    if count > 100 * limit:
        pytest.skip("as many requests as rows")
    result = walked(Platform(list(range(count)), ending="status_404"), tmp_path, page_limit=limit)
    assert (result.verdict, result.distinct) == ("complete", count), result.evidence


def test_a_window_on_the_depth_of_pages_still_proves_nothing(tmp_path: Path) -> None:
    class Window(Platform):
        def get(self, path: str, params: Any, *, check: Any) -> Any:
            if (int(params["page"]) - 1) * int(params["limit"]) >= 400:
                raise HttpRejected("deep", family="legacy", verb="GET", path=path, status=400)
            return super().get(path, params, check=check)

    for limit in (100, 50, 400):
        folder = tmp_path / str(limit)
        assert walked(Window(list(range(650))), folder, page_limit=limit).verdict == "unproven"


# --- 1 and 12 ------------------------------------------------------------------------------------------------------


def test_orders_are_identified_by_a_field_of_choice(tmp_path: Path) -> None:
    data = [{"number": f"N{n}", "id": 7} for n in range(3)] + [{"id": 8}]
    body = json.dumps({"data": data, "hasMore": False}).encode()
    result = walked(Replies(lambda _: body), tmp_path, "orders", key="number")
    assert [row["id"] for row in rows(result, "orders")] == ["N0", "N1", "N2"]
    assert [row.reason for row in result.quarantined] == ["number: expected an identifier, found nothing"]
    assert result.observations["order_key", "number"] == 1
    assert ORDER.key == "id"


@pytest.mark.parametrize("paginator", [LegacyPages(10), V1Cursor(10)], ids=["legacy", "v1"])
def test_every_id_is_noticed_as_written(paginator: Any) -> None:
    body = b'{"data":[{"id":1},{"x":2,"id":"a"},null,{"x":3},{"id":"\\ud83d"}],"hasMore":false}'
    assert paginator.parse(body).ids == {b"1", b'"a"', b"null", b'{"x":3}', b'{"id":"\\ud83d"}'}
