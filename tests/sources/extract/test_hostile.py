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
from tests.sources.platform import Replies, walked

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
    monkeypatch.setattr("sources.extract.pages._members", made) if "values" in words else None
    result = walked(Replies(lambda _: body), tmp_path, resource)
    assert isinstance(result.error, ContractBroken)
    assert words in result.error.message


@pytest.mark.parametrize(
    ("resource", "growth", "is_first_sweep_sound"),
    [("customers", 0, False), ("customers", 0, True), ("orders", 0, False), ("orders", 2, False)],
)
def test_random_pages_break_the_walk(
    tmp_path: Path, resource: str, growth: int, is_first_sweep_sound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_files, "BATCH_PAGES", 10)
    random, calls, counts = Random(1), count(), count(500, growth)

    def reply(params: Params) -> bytes:
        if is_first_sweep_sound and params["limit"] == 100:
            return legacy(*[key for key in range(250) if key // 100 == int(params["page"]) - 1])
        keys = random.sample(range(next(counts)), 100)
        return legacy(*keys) if resource == "customers" else orders(*keys, cursor=f"c{next(calls)}")

    result = walked(Replies(reply), tmp_path, resource)
    assert result.verdict == "incomplete"
    assert isinstance(result.error, ContractBroken)
    assert result.error.path == f"/{resource}"
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


DEEP = b"[" * 1_500 + b"]" * 1_500


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
