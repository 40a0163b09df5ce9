"""Guards of the paginators, page by page."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from sources.errors import ContractBroken, HttpRejected
from sources.extract.legacy_pages import LegacyPages
from sources.extract.pages import Paginator
from sources.extract.v1_pages import CursorExpired, SinglePage, V1Cursor
from sources.http.failures import BrokenBody

IDS = count()


def v1(rows: int = 1, *, more: Any = True, cursor: Any = "c") -> bytes:
    data = [{"id": next(IDS)} for _ in range(rows)]
    return json.dumps({"data": data, "hasMore": more, "nextCursor": cursor}).encode()


def feed(paginator: V1Cursor, *bodies: bytes) -> None:
    for body in bodies:
        request = paginator.next_request()
        assert request is not None
        paginator.accept(request, paginator.parse(body))


def test_v1_passes_the_cursor_on_and_keeps_its_limit() -> None:
    paginator = V1Cursor(7)
    first = paginator.next_request()
    assert first is not None
    assert first.params == {"limit": 7}
    assert paginator.next_request() is None
    paginator.accept(first, paginator.parse(v1(cursor="abc")))
    second = paginator.next_request()
    assert second is not None
    assert second.params == {"limit": 7, "startingAfter": "abc"}
    paginator.accept(second, paginator.parse(v1(2, more=False, cursor=None)))
    assert (paginator.ended_by, paginator.size) == ("hasMore false", 1)


@pytest.mark.parametrize(
    ("bodies", "words"),
    [
        pytest.param([v1(cursor=None)], "without a cursor", id="more-without-cursor"),
        pytest.param([v1(cursor="")], "without a cursor", id="more-with-empty-cursor"),
        pytest.param([v1(cursor="a"), v1(cursor="a")], "issued twice", id="repeated"),
        pytest.param([v1(cursor="a"), v1(cursor="b"), v1(cursor="a")], "issued twice", id="circle"),
        pytest.param([v1(0, cursor="a"), v1(0, cursor="b"), v1(0, cursor="c")], "empty pages", id="three-empty"),
        pytest.param([v1(more="true")], "not a boolean", id="more-is-text"),
        pytest.param([v1(more=None)], "not a boolean", id="more-is-null"),
        pytest.param([v1(more=1)], "not a boolean", id="more-is-number"),
        pytest.param([v1(cursor=12)], "neither a string nor null", id="cursor-is-number"),
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
    pages = [v1(0, cursor="a"), v1(0, cursor="b"), v1(1, cursor="c"), v1(0, cursor="d"), v1(more=False, cursor=None)]
    feed(paginator, *pages)
    assert paginator.ended_by


def test_v1_an_expired_cursor_starts_again_and_a_first_400_is_an_error() -> None:
    paginator = V1Cursor(10)
    refusal = HttpRejected("no", family="public_v1", verb="GET", path="/orders", status=400)
    first = paginator.next_request()
    assert first is not None
    with pytest.raises(HttpRejected):
        paginator.reject(first, refusal)
    paginator.accept(first, paginator.parse(v1()))
    second = paginator.next_request()
    assert second is not None
    with pytest.raises(CursorExpired):
        paginator.reject(second, refusal)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"data": [', b'{"data": [1, 2}', b"null", b"[]", b"\xff\xfe"])
@pytest.mark.parametrize(
    "paginator", [LegacyPages(10), V1Cursor(10), SinglePage("id", "priceLists")], ids=["legacy", "v1", "lists"]
)
def test_what_is_no_json_object_is_broken(paginator: Any, body: bytes) -> None:
    with pytest.raises(BrokenBody):
        paginator.parse(body)


@pytest.mark.parametrize("paginator", [LegacyPages(10), V1Cursor(10), SinglePage("id", "data")])
def test_a_message_beside_an_empty_page_is_no_error(paginator: Paginator) -> None:
    assert paginator.parse(b'{"data": [], "message": "ok", "errors": [{}], "hasMore": false}').count == 0


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ('{"errors": [{"message": "no", "code": 1}]}', BrokenBody),
        ('{"error": {"code": "INTERNAL", "message": "no"}}', BrokenBody),
        ('{"rows": null, "errors": [{"message": "no"}]}', BrokenBody),
        ('{"success": false, "message": "Too many connections"}', BrokenBody),
        ('{"message": "", "errors": [], "error": false, "result": []}', ContractBroken),
        ('{"rows": {"a": 1}, "message": "no"}', ContractBroken),
        ("{}", ContractBroken),
    ],
)
@pytest.mark.parametrize("paginator", [LegacyPages(10, rows_field="rows"), V1Cursor(10, "id", "rows")])
def test_an_error_in_place_of_the_rows_may_pass_and_another_form_does_not(
    paginator: Paginator, body: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        paginator.parse(body.encode())


@pytest.mark.parametrize(
    ("data", "form", "length"),
    [
        pytest.param([{"id": 1}], "array", 1, id="array"),
        pytest.param({"1": {"id": 1}, "2": {"id": 2}}, "object_by_id", 2, id="by-id"),
        pytest.param({"items": [{"id": 1}], "more": 3}, "object_wrapped", 1, id="wrapped"),
        pytest.param({"id": 1, "name": "x"}, "object_single", 1, id="single"),
        pytest.param({}, "object_by_id", 0, id="empty-object"),
    ],
)
def test_data_as_an_object(data: Any, form: str, length: int) -> None:
    body = LegacyPages(10).parse(json.dumps({"data": data}).encode())
    assert (body.form, body.count, len(json.loads(body.rows))) == (form, length, length)


def test_data_of_no_known_form_is_refused() -> None:
    with pytest.raises(ContractBroken, match="no known form"):
        LegacyPages(10).parse(b'{"data": {"a": 1, "b": 2}}')


def test_data_as_an_object_with_a_broken_name_is_broken() -> None:
    with pytest.raises(BrokenBody):
        LegacyPages(10).parse(b'{"data": {"\xff": {"id": 1}}}')


def test_an_echoed_page_that_is_another_breaks_the_contract() -> None:
    paginator = LegacyPages(10)
    request = paginator.next_request()
    assert request is not None
    with pytest.raises(ContractBroken, match="requested page 1, received page 3"):
        paginator.accept(request, paginator.parse(b'{"data": [{"id": 1}], "pagination": {"page": 3}}'))


def test_pagination_of_wrong_types_breaks_the_contract() -> None:
    with pytest.raises(ContractBroken, match="pagination"):
        LegacyPages(10).parse(b'{"data": [{"id": 1}], "pagination": {"hasNextPage": "no"}}')


def test_an_empty_page_below_the_total_is_a_doubt() -> None:
    paginator = LegacyPages(10)
    for body in (
        b'{"data": [{"id": 1}], "pagination": {"total": 5}}',
        b'{"data": []}',
        b'{"data": [], "pagination": {}}',
    ):
        request = paginator.next_request()
        assert request is not None
        paginator.accept(request, paginator.parse(body))
    assert paginator.ended_by == "empty page"
    assert paginator.gap == 4


@pytest.mark.parametrize(
    ("last", "is_doubted"),
    [
        ('"page": 1, "pages": 1, "hasNextPage": false', False),
        ('"page": 1, "pages": 3, "hasNextPage": false', True),
        ('"page": 1, "pages": 3, "hasNextPage": false, "total": 1', False),
        ('"page": 1', False),
        ('"page": 1, "pages": 3', True),
    ],
)
def test_a_pagination_that_announces_further_pages_is_a_doubt(last: str, is_doubted: bool) -> None:
    paginator = LegacyPages(10, first_page=1)
    for body in (b'{"data": [{"id": 1}], "pagination": {%b}}' % last.encode(), b'{"data": []}'):
        if request := paginator.next_request():
            paginator.accept(request, paginator.parse(body))
    assert paginator.ended_by
    assert bool(paginator.issues()) is is_doubted


@pytest.mark.parametrize("is_doubted", [True, False])
def test_an_empty_page_with_a_next_one_is_a_doubt(is_doubted: bool) -> None:
    paginator = LegacyPages(10, first_page=1)
    for rows in ([{"id": 1}], []):
        request = paginator.next_request()
        assert request is not None
        body = json.dumps({"data": rows, "pagination": {"hasNextPage": is_doubted or bool(rows)}}).encode()
        paginator.accept(request, paginator.parse(body))
    assert paginator.ended_by == "empty page"
    assert bool(paginator.issues()) is is_doubted


def test_an_empty_first_page_ends_the_list_only_once_page_0_was_looked_at() -> None:
    paginator = LegacyPages(10)
    first = paginator.next_request()
    assert first is not None
    paginator.accept(first, paginator.parse(b'{"data": []}'))
    assert paginator.ended_by == ""
    probe = paginator.next_request()
    assert probe is not None
    assert probe.params["page"] == 0
    assert paginator.accept(probe, paginator.parse(b'{"data": [{"id": 1}]}'))
    assert (paginator.ended_by, paginator.first_page) == ("empty page", 0)


@pytest.mark.parametrize(("data", "is_doubted"), [("[]", True), ('[{"id": 1}]', False)])
def test_a_rejected_page_0_is_a_doubt_where_page_1_is_empty(data: str, is_doubted: bool) -> None:
    paginator = LegacyPages(10)
    first = paginator.next_request()
    assert first is not None
    paginator.accept(first, paginator.parse(b'{"data": %b}' % data.encode()))
    probe = paginator.next_request()
    assert probe is not None
    assert probe.probe
    paginator.reject(probe, HttpRejected("no", family="legacy", verb="GET", path="/customers", status=400))
    assert bool(paginator.issues()) is is_doubted


@pytest.mark.parametrize(("ids", "is_doubted"), [((1,), False), ((), False), ((1, 2), True)])
def test_a_page_0_that_has_more_rows_than_page_1_is_a_doubt(ids: tuple[int, ...], is_doubted: bool) -> None:
    paginator = LegacyPages(10)
    for rows in ((1,), ids, ()):
        request = paginator.next_request()
        assert request is not None
        paginator.accept(request, paginator.parse(json.dumps({"data": [{"id": row} for row in rows]}).encode()))
    assert (paginator.ended_by, paginator.rows, bool(paginator.issues())) == ("empty page", 1, is_doubted)


@pytest.mark.parametrize(
    ("more", "is_doubted"),
    [
        ({}, False),
        ({"hasMore": False, "nextCursor": None}, False),
        ({"hasMore": True, "nextCursor": "c"}, True),
        ({"hasMore": True}, True),
        ({"nextCursor": "c"}, True),
    ],
)
def test_price_lists_that_announce_further_rows_are_not_proven(more: dict[str, object], is_doubted: bool) -> None:
    paginator = SinglePage("id", "priceLists")
    request = paginator.next_request()
    assert request is not None
    assert paginator.accept(request, paginator.parse(json.dumps({"priceLists": [{"id": "a"}], **more}).encode()))
    assert bool(paginator.issues()) is is_doubted
