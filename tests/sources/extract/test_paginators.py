"""Guards of the paginators, page by page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sources.errors import ContractBroken, HttpRejected
from sources.extract.paginators import CursorExpired, LegacyPages, OnePage, V1Cursor
from sources.http.retries import BrokenBody


def v1(rows: int = 1, *, more: Any = True, cursor: Any = "c") -> bytes:
    return json.dumps({"data": [{"id": n} for n in range(rows)], "hasMore": more, "nextCursor": cursor}).encode()


def feed(paginator: V1Cursor, *bodies: bytes) -> None:
    for body in bodies:
        request = paginator.ask()
        assert request is not None
        paginator.take(request, paginator.parse(body))


def test_v1_passes_the_cursor_on_and_keeps_its_limit() -> None:
    paginator = V1Cursor(7)
    first = paginator.ask()
    assert first is not None
    assert first.params == {"limit": 7}
    assert paginator.ask() is None
    paginator.take(first, paginator.parse(v1(cursor="abc")))
    second = paginator.ask()
    assert second is not None
    assert second.params == {"limit": 7, "startingAfter": "abc"}
    paginator.take(second, paginator.parse(v1(more=False, cursor=None)))
    assert paginator.ended_by == "hasMore false"


@pytest.mark.parametrize(
    ("bodies", "words"),
    [
        pytest.param([v1(cursor=None)], "no cursor", id="more-without-cursor"),
        pytest.param([v1(cursor="")], "no cursor", id="more-with-empty-cursor"),
        pytest.param([v1(cursor="a"), v1(cursor="a")], "second time", id="repeated"),
        pytest.param([v1(cursor="a"), v1(cursor="b"), v1(cursor="a")], "second time", id="circle"),
        pytest.param([v1(0, cursor="a"), v1(0, cursor="b"), v1(0, cursor="c")], "empty pages", id="three-empty"),
        pytest.param([v1(more="true")], "not a boolean", id="more-is-text"),
        pytest.param([v1(more=None)], "not a boolean", id="more-is-null"),
        pytest.param([v1(more=1)], "not a boolean", id="more-is-number"),
        pytest.param([v1(cursor=12)], "neither a text nor null", id="cursor-is-number"),
        pytest.param([b'{"hasMore": false}'], "absent", id="no-data"),
        pytest.param([b'{"data": {}, "hasMore": false}'], "an object", id="data-is-object"),
        pytest.param([b'{"data": null, "hasMore": false}'], "null", id="data-is-null"),
    ],
)
def test_v1_contract(bodies: list[bytes], words: str) -> None:
    with pytest.raises(ContractBroken, match=words):
        feed(V1Cursor(10), *bodies)


def test_v1_two_empty_pages_are_borne() -> None:
    paginator = V1Cursor(10)
    feed(paginator, v1(0, cursor="a"), v1(0, cursor="b"), v1(1, cursor="c"), v1(0, cursor="d"), v1(more=False))
    assert paginator.ended_by


def test_v1_an_expired_cursor_starts_again_and_a_first_400_is_an_error() -> None:
    paginator = V1Cursor(10)
    refusal = HttpRejected("no", family="public_v1", verb="GET", path="/orders", status=400)
    first = paginator.ask()
    assert first is not None
    with pytest.raises(HttpRejected):
        paginator.refused(first, refusal)
    paginator.take(first, paginator.parse(v1()))
    second = paginator.ask()
    assert second is not None
    with pytest.raises(CursorExpired):
        paginator.refused(second, refusal)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"data": [', b'{"data": [1, 2}', b"null", b"[]", b"\xff\xfe"])
@pytest.mark.parametrize("paginator", [LegacyPages(10), V1Cursor(10), OnePage()], ids=["legacy", "v1", "lists"])
def test_what_is_no_json_object_is_broken(paginator: Any, body: bytes) -> None:
    with pytest.raises(BrokenBody):
        paginator.parse(body)


def test_errors_with_200_are_no_empty_list() -> None:
    with pytest.raises(ContractBroken, match="absent"):
        LegacyPages(10).parse(b'{"errors": [{"message": "no", "code": 1}]}')


@pytest.mark.parametrize(
    ("data", "form", "count"),
    [
        pytest.param([{"id": 1}], "array", 1, id="array"),
        pytest.param({"1": {"id": 1}, "2": {"id": 2}}, "object_by_id", 2, id="by-id"),
        pytest.param({"items": [{"id": 1}], "more": 3}, "object_wrapped", 1, id="wrapped"),
        pytest.param({"id": 1, "name": "x"}, "object_single", 1, id="single"),
        pytest.param({}, "object_by_id", 0, id="empty-object"),
    ],
)
def test_data_as_an_object(data: Any, form: str, count: int) -> None:
    body = LegacyPages(10).parse(json.dumps({"data": data}).encode())
    assert (body.form, body.count, len(json.loads(body.rows))) == (form, count, count)


def test_data_of_no_known_form_is_refused() -> None:
    with pytest.raises(ContractBroken, match="no known form"):
        LegacyPages(10).parse(b'{"data": {"a": 1, "b": 2}}')


def test_an_echoed_page_that_is_another_breaks_the_contract() -> None:
    paginator = LegacyPages(10)
    request = paginator.ask()
    assert request is not None
    with pytest.raises(ContractBroken, match="page 1 was asked for, page 3 came"):
        paginator.take(request, paginator.parse(b'{"data": [{"id": 1}], "pagination": {"page": 3}}'))


def test_pagination_of_wrong_types_breaks_the_contract() -> None:
    with pytest.raises(ContractBroken, match="pagination"):
        LegacyPages(10).parse(b'{"data": [{"id": 1}], "pagination": {"hasNextPage": "no"}}')


def test_an_empty_page_below_the_total_is_a_doubt() -> None:
    paginator = LegacyPages(10)
    for body in (b'{"data": [{"id": 1}], "pagination": {"total": 5}}', b'{"data": []}', b'{"data": []}'):
        request = paginator.ask()
        assert request is not None
        paginator.take(request, paginator.parse(body))
    assert paginator.ended_by == "empty page"
    assert paginator.issues() == ["total said 5, 1 rows came"]


def test_an_empty_first_page_ends_the_list_only_once_page_0_was_looked_at() -> None:
    paginator = LegacyPages(10)
    first = paginator.ask()
    assert first is not None
    paginator.take(first, paginator.parse(b'{"data": []}'))
    assert paginator.ended_by == ""
    probe = paginator.ask()
    assert probe is not None
    assert probe.params["page"] == 0
    assert paginator.take(probe, paginator.parse(b'{"data": [{"id": 1}]}'))
    assert (paginator.ended_by, paginator.first_page) == ("empty page", 0)
