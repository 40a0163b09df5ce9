"""Lists of hostile or broken platforms: never a wrong `complete`, never an endless walk, never an internal error."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest

from sources.errors import ContractBroken, Unreachable
from sources.extract import page_files
from tests.sources.platform import Replies, ids, walked

Params = Mapping[str, Any]


def legacy(*keys: int, **more: Any) -> bytes:
    return json.dumps({"data": [{"id": key} for key in keys], **more}).encode()


def orders(*keys: int, cursor: str | None = None) -> bytes:
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
        return legacy(key) if resource == "customers" else orders(key, cursor=f"c{key}")

    result = walked(Replies(reply, most=10**9), tmp_path, resource)
    assert isinstance(result.error, ContractBroken)
    assert "did not end within" in result.error.message
    assert "sources.http.list_timeout_s" in result.error.hint
    assert not list((tmp_path / "spool").glob("*.pages"))


@pytest.mark.parametrize(
    ("resource", "row", "rows", "words"),
    [
        ("customers", b"{},", 4_000_001, "more than 4,000,000 values"),
        ("price_lists", b"1,", 4_000_001, "more than 4,000,000 values"),
        ("customers", b'{"id":1},', 200_000, "a page has 200,001 rows"),
    ],
)
def test_a_page_is_bounded_before_its_rows_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resource: str, row: bytes, rows: int, words: str
) -> None:
    body = (b'{"data":[' if resource == "customers" else b'{"priceLists":[') + row * rows + row[:-1] + b"]}"
    made = mock.Mock(side_effect=AssertionError("rows were made"))
    monkeypatch.setattr("sources.extract.pages._rows_decoder", made) if "values" in words else None
    result = walked(Replies(lambda _: body), tmp_path, resource)
    assert isinstance(result.error, ContractBroken)
    assert words in result.error.message


@pytest.mark.parametrize("change", ["field", "order"])
def test_a_last_page_that_changes_ends_the_list(tmp_path: Path, change: str) -> None:
    random, calls = Random(1), count()

    def reply(params: Params) -> bytes:
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
    def reply(params: Params) -> bytes:
        size, page = int(params["limit"]), int(params["page"])
        pages = -(-250 // size)
        return legacy(*list(range(250))[(page - 1) % pages * size :][:size]) if page else legacy()

    platform = Replies(reply)
    result = walked(platform, tmp_path)
    assert (result.verdict, result.distinct) == ("unproven", 250)
    assert "a page had no new id" in result.evidence[0]
    assert len(platform.requests) < 300


@pytest.mark.parametrize(("resource", "growth"), [("customers", 0), ("orders", 0), ("orders", 2)])
def test_random_pages_break_the_walk(
    tmp_path: Path, resource: str, growth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_files, "BATCH_PAGES", 10)
    random, calls, counts = Random(1), count(), count(500, growth)

    def reply(params: Params) -> bytes:
        keys = random.sample(range(next(counts)), 100)
        return legacy(*keys) if resource == "customers" else orders(*keys, cursor=f"c{next(calls)}")

    result = walked(Replies(reply), tmp_path, resource)
    assert result.verdict == "incomplete"
    assert isinstance(result.error, ContractBroken)
    assert re.search(r"\d new ids in the last \d+ rows", result.error.message)


def test_rows_without_an_id_are_different_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_files, "BATCH_PAGES", 1)
    monkeypatch.setattr(page_files, "CHECK_ROWS", 2)

    def reply(params: Params) -> bytes:
        page = int(params.get("startingAfter", 0))
        more = {"hasMore": page < 9, "nextCursor": f"{page + 1}" if page < 9 else None}
        return json.dumps({"data": [{"number": page * 2}, {"number": page * 2 + 1}], **more}).encode()

    result = walked(Replies(reply), tmp_path, "orders")
    assert (result.verdict, result.error, len(result.quarantined)) == ("unproven", None, 20)


def test_orders_that_ignore_the_cursor_break_the_walk(tmp_path: Path) -> None:
    calls = count()
    platform = Replies(lambda _: orders(1, 2, 3, cursor=f"c{next(calls)}"))
    result = walked(platform, tmp_path, "orders")
    assert isinstance(result.error, ContractBroken)
    assert (result.error.family, result.error.path) == ("public_v1", "/orders")
    assert "a page has no new id" in result.error.message
    assert len(platform.requests) == 2


DEEP = b"[" * 1_500 + b"]" * 1_500
BAD: dict[str, bytes] = {
    "surrogate": b'"\\ud83d"',
    "NaN": b"NaN",
    "NUL": b'"a\x00b"',
    "tab": b'"a\tb"',
    "byte": b'"\xff"',
}


@pytest.mark.parametrize("resource", ["customers", "orders"])
@pytest.mark.parametrize("name", [*BAD, "deep"])
def test_one_bad_row_does_not_cost_its_list(tmp_path: Path, resource: str, name: str) -> None:
    value = BAD.get(name, DEEP)

    def reply(params: Params) -> bytes:
        page = int(params.get("page", 2))
        keys = range(page * 10, page * 10 + 10) if page in (1, 2) else ()
        members = [b'{"id":%d%s}' % (key, b',"name":' + value if key == 23 else b"") for key in keys]
        return b'{"data":[' + b",".join(members) + b'],"hasMore":false}'

    result = walked(Replies(reply), tmp_path, resource, sweeps=1)
    assert result.error is None
    assert [(row.page, row.position) for row in result.quarantined] == [(2 if resource == "customers" else 1, 4)]
    assert (len(ids(result, resource)), "23" in ids(result, resource)) == (19 if resource == "customers" else 9, False)


@pytest.mark.parametrize("member", [b"pagination", b"nextCursor", b"hasMore", b"other"])
@pytest.mark.parametrize("resource", ["customers", "orders"])
def test_deep_nesting_of_an_envelope_is_no_internal_error(tmp_path: Path, resource: str, member: bytes) -> None:
    more = b"" if member == b"hasMore" else b',"hasMore":false'
    body = b'{"data":[{"id":1}]' + more + b',"' + member + b'":' + DEEP + b"}"
    result = walked(Replies(lambda params: body if params.get("page", 1) else legacy()), tmp_path, resource)
    assert result.error is None or isinstance(result.error, ContractBroken)
    if resource == "orders" and member in (b"nextCursor", b"hasMore"):
        assert result.error is not None
    assert result.error is None or member != b"other"


@pytest.mark.parametrize("body", [b'{"data":[{"id":1}', b'{"data":[{"id":1}]]}', b"<html>", b'{"data":[1,]}'])
def test_a_broken_envelope_names_its_page(tmp_path: Path, body: bytes) -> None:
    result = walked(Replies(lambda params: body if params["page"] == 3 else legacy(params["page"])), tmp_path, window=1)
    assert isinstance(result.error, Unreachable)
    assert "(page 3)" in str(result.error)
    assert "(page 3)" in result.evidence[-1]
