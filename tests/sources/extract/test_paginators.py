"""Guards of the paginators, page by page; when sweeps prove a list."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from orderbridge.sources.errors import ContractBroken, HttpRejected
from orderbridge.sources.extract.legacy_pages import WITHOUT_NEW_ID, LegacyPages
from orderbridge.sources.extract.pages import PageBody, Paginator, Request
from orderbridge.sources.extract.proof import agree, have_equal_pages, next_limit, observations_of
from orderbridge.sources.extract.result import Sweep
from orderbridge.sources.extract.v1_pages import CursorExpired, SinglePage, V1Cursor
from orderbridge.sources.http.failures import BrokenBody
from tests.soak.platforms import platform_seed
from tests.soak.walks import Outcome, walk_seed

IDS = count()
ALL = [LegacyPages(10), V1Cursor(10), SinglePage("id", "data")]


def v1(rows: int = 1, *, more: Any = True, cursor: Any = "c") -> bytes:
    data = [{"id": next(IDS)} for _ in range(rows)]
    return json.dumps({"data": data, "hasMore": more, "nextCursor": cursor}).encode()


def data(*keys: int, **pagination: Any) -> bytes:
    more = {"pagination": pagination} if pagination else {}
    return json.dumps({"data": [{"id": key} for key in keys], **more}).encode()


def feed(paginator: Paginator, *bodies: bytes) -> list[Request]:
    """Lets it have these responses, as long as it requests any."""
    requests = []
    for body in bodies:
        if request := paginator.next_request():
            requests.append(request)
            paginator.accept(request, paginator.parse(body))
    return requests


def refusal(status: int = 400) -> HttpRejected:
    return HttpRejected("no", family="public_v1", verb="GET", path="/orders", status=status)


def test_v1_passes_the_cursor_on_and_keeps_its_limit() -> None:
    paginator = V1Cursor(7)
    pages = [
        v1(0, cursor="a"),
        v1(0, cursor="b"),
        v1(1, cursor="c"),
        v1(0, cursor="d"),
        v1(2, more=False, cursor=None),
    ]
    requests = feed(paginator, *pages)
    assert [request.params for request in requests] == [
        {"limit": 7},
        *({"limit": 7, "startingAfter": c} for c in "abcd"),
    ]
    assert (paginator.ended_by, paginator.size, paginator.next_request()) == (
        "hasMore false",
        0,
        None,
    )


@pytest.mark.parametrize(
    ("bodies", "words"),
    [
        ([v1(cursor=None)], "without a cursor"),
        ([v1(more=False)], "`hasMore` is false although there is a cursor"),
        ([v1(cursor="a"), v1(cursor="b"), v1(cursor="a")], "issued twice"),
        ([v1(0, cursor="a"), v1(0, cursor="b"), v1(0, cursor="c")], "empty pages"),
        (
            [b'{"data":[{"id":7}],"hasMore":true,"nextCursor":"%d"}' % n for n in range(2)],
            "a page has no new id",
        ),
        *(([v1(more=more)], "not a boolean") for more in ("true", None, 1)),
        ([v1(cursor=12)], "neither a string nor null"),
        ([b'{"hasMore": false}'], "absent"),
        ([b'{"data": {}, "hasMore": false}'], "an object"),
        (
            [b'{"data":[{"id":1}],"hasMore":true,"data":[{"id":2}],"hasMore":false}'],
            "`data` occurs twice",
        ),
        (b'{"data": {"a": 1, "b": 2}}', "no known form"),
        (b'{"data": [{"id": 1}], "pagination": {"page": 3}}', "requested page 1, received page 3"),
        *((data(1, total=total), "the pagination object") for total in (2**63, -(2**64), 10**400)),
        (b'{"data":[{"id":1}],"d\\u0061ta":[{"id":1}]}', "`data` occurs twice"),
    ],
)
def test_what_breaks_the_contract_is_named(bodies: list[bytes] | bytes, words: str) -> None:
    """Bodies of the list with a cursor, and single ones of those with page numbers."""
    with pytest.raises(ContractBroken, match=words):
        feed(LegacyPages(10), bodies) if isinstance(bodies, bytes) else feed(V1Cursor(10), *bodies)


def test_v1_an_expired_cursor_starts_again_and_another_rejection_is_an_error() -> None:
    paginator = V1Cursor(10)
    (first,) = feed(paginator, v1())
    second = paginator.next_request()
    assert second is not None
    for request, error in ((first, refusal()), (second, refusal(422))):
        with pytest.raises(HttpRejected):
            paginator.reject(request, error)
    with pytest.raises(CursorExpired):
        paginator.reject(second, refusal())


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"<html>", b'{"data": [1, 2}', b"null", b"\xff\xfe", b'{"data": []} 2'),
        *(
            b'{"meta": 1 2, "data": [], "hasMore": false}',
            b'{"data": [], "hasMore": false "nextCursor": null}',
        ),
        b'{"data": [{"id": 1} 5], "hasMore": false}',
    ],
)
@pytest.mark.parametrize("paginator", ALL)
def test_what_is_no_json_object_is_broken(paginator: Paginator, body: bytes) -> None:
    with pytest.raises(BrokenBody):
        paginator.parse(body)


@pytest.mark.parametrize(
    "paginator", [LegacyPages(10, rows_field="rows"), V1Cursor(10, "id", "rows")]
)
def test_an_error_in_place_of_the_rows_may_pass_and_another_form_does_not(
    paginator: Paginator,
) -> None:
    for body in (
        b'{"errors": [{"message": "no", "code": 1}]}',
        b'{"rows": null, "error": {"code": "INTERNAL", "message": "no"}}',
        b'{"success": false, "message": "Too many connections"}',
    ):
        with pytest.raises(BrokenBody):
            paginator.parse(body)
    for body in (
        b'{"message": "", "errors": [], "error": false}',
        b'{"rows": {"a": 1}, "message": "no"}',
        b"{}",
    ):
        with pytest.raises(ContractBroken):
            paginator.parse(body)


def test_data_as_an_object() -> None:
    rows: list[tuple[Any, str, int]] = [
        ([{"id": 1}], "array", 1),
        ({"1": {"id": 1}, "2": {"id": 2}}, "object_by_id", 2),
        ({"items": [{"id": 1}], "more": 3}, "object_wrapped", 1),
        ({"id": 1, "name": "x"}, "object_single", 1),
        ({}, "object_by_id", 0),
    ]
    for sent, form, length in rows:
        body = LegacyPages(10).parse(json.dumps({"data": sent}).encode())
        assert (body.form, body.count, len(json.loads(body.rows))) == (form, length, length)


@pytest.mark.parametrize(
    ("first_page", "bodies", "ended_by", "is_doubted"),
    [
        # what the pagination announces
        (1, [data(1, page=1, pages=3, hasNextPage=False)], "hasNextPage false", True),
        (1, [data(1, page=1, pages=3, hasNextPage=False, total=1)], "hasNextPage false", False),
        (1, [data(1, page=1, pages=3), data()], "empty page", True),
        (1, [data(1, hasNextPage=True), data(hasNextPage=True)], "empty page", True),
        # what page 0, the second request, has
        (None, [data(1), data(1), data()], "empty page", False),
        (None, [data(1), data(1, 2), data()], "empty page", True),
        # what a page repeats
        (1, [data(1), data(1)], "repeated page", False),
        (1, [data(1), data(2), data(1), data(2)], WITHOUT_NEW_ID, True),  # in a circle
        # what is more than was requested
        (1, [data(*range(11)), data()], "empty page", True),
    ],
)
def test_a_list_that_may_go_on_is_a_doubt(
    first_page: int | None, bodies: list[bytes], ended_by: str, is_doubted: bool
) -> None:
    paginator = LegacyPages(10, first_page=first_page)
    feed(paginator, *bodies)
    assert (paginator.ended_by, bool(paginator.issues())) == (ended_by, is_doubted)
    assert paginator.rows == {WITHOUT_NEW_ID: 3}.get(ended_by, paginator.size)


def test_an_empty_page_below_the_total_is_a_gap() -> None:
    for last, gap in ((data(page=2), 4), (data(page=2, total=6), 0)):
        paginator = LegacyPages(10)
        feed(paginator, data(1, total=5), data(), last)
        assert (paginator.ended_by, paginator.gap) == ("empty page", gap)
        assert paginator.issues() == ["total changed between 5 and 6"] * (not gap)


def test_a_404_after_as_many_rows_as_the_total_is_no_end_after_a_full_page() -> None:
    for total, end in ((2, "short"), (3, "full")):
        paginator = LegacyPages(2, first_page=1)
        feed(paginator, data(1, 2, total=total))
        further = paginator.next_request()
        assert further is not None
        paginator.reject(further, refusal(404))
        assert paginator.assumed_end == end


@pytest.mark.parametrize("paginator", ALL)
def test_a_first_page_without_rows_and_with_an_error_is_no_list(paginator: Paginator) -> None:
    page: dict[str, Any] = {"data": [], "hasMore": False, "nextCursor": None}
    for name, error in (("error", {"code": "BUSY"}), ("errors", [{"message": "no database"}])):
        with pytest.raises(BrokenBody, match="an error in place of the rows"):
            paginator.parse(json.dumps({**page, name: error}).encode())
    for name, value in (("error", None), ("errors", []), ("error", {}), ("message", "no rows")):
        assert paginator.parse(json.dumps({**page, name: value}).encode()).count == 0


@pytest.mark.parametrize(
    "paginator",
    [LegacyPages(10, first_page=1), V1Cursor(10), SinglePage("id", "data")],
    ids=lambda one: type(one).__name__,
)
def test_an_error_beside_rows_loses_none_and_proves_no_list(paginator: Paginator) -> None:
    rows = {"data": [{"id": 1, "error": {"code": "OF_A_ROW"}}, {"id": 2}]}
    others: dict[str, Any] = {"hasMore": False, "nextCursor": None}

    def parse(name: str, value: object) -> list[PageBody]:
        more = {**others, name: value}
        return [
            paginator.parse(json.dumps(body).encode()) for body in ({**rows, **more}, more | rows)
        ]

    for name, value in (
        ("error", None),
        ("errors", []),
        ("error", {}),
        ("warnings", [{"code": 1}]),
    ):
        assert [page.has_error for page in parse(name, value)] == [False, False]
    pages = parse("errors", [{"message": "no database"}])
    pages += parse("error", {"code": "BUSY"})
    assert {(page.count, page.has_error) for page in pages} == {(2, True)}
    request = paginator.next_request()
    assert request is not None
    assert paginator.issues() == []
    assert paginator.accept(request, pages[0])
    assert paginator.issues() == ["pages with an error beside their rows: 1"]


def test_an_error_beside_no_rows_after_a_page_is_an_assumed_end() -> None:
    error = json.dumps({"data": [], "errors": [{"message": "no database", "code": "X"}]}).encode()
    for rows, end in ((range(10), "full"), (range(3), "short")):
        paginator = LegacyPages(10, first_page=1)
        feed(paginator, data(*range(10, 20)), data(*rows), error)
        assert (paginator.ended_by, paginator.assumed_end) == (
            "assumed: an error in place of rows",
            end,
        )


def test_an_empty_first_page_ends_the_list_only_once_page_0_was_looked_at() -> None:
    paginator = LegacyPages(10)
    feed(paginator, data())
    assert paginator.ended_by == ""
    (probe,) = feed(paginator, data(1))
    assert (probe.params["page"], paginator.ended_by, paginator.first_page) == (0, "empty page", 0)
    for page_1, is_doubted in ((data(), True), (data(1), False)):
        paginator = LegacyPages(10)
        feed(paginator, page_1)
        refused = paginator.next_request()
        assert refused is not None
        paginator.reject(refused, refusal())
        assert bool(paginator.issues()) is is_doubted


def test_price_lists_that_announce_further_rows_are_not_proven() -> None:
    announced: list[dict[str, Any]] = [
        {"hasMore": False},
        {"hasMore": True},
        {"hasMore": 1},
        {"nextCursor": "c"},
    ]
    for more in announced:
        paginator = SinglePage("id", "priceLists")
        feed(paginator, json.dumps({"priceLists": [{"id": "a"}], **more}).encode())
        assert paginator.ended_by
        assert bool(paginator.issues()) is (more != {"hasMore": False})


@pytest.mark.parametrize("paginator", ALL)
def test_every_id_is_noticed_as_written_and_a_message_is_no_error(paginator: Paginator) -> None:
    assert (
        paginator.parse(b'{"data": [], "message": "ok", "errors": [{}], "hasMore": false}').count
        == 0
    )
    body = b'{"data":[{"id":1},{"x":2,"id":"a"},null,{"x":3},{"id":"\\ud83d"}],"hasMore":false}'
    assert paginator.parse(body).ids == {b"1", b'"a"', b"null", b'{"x":3}', b'{"id":"\\ud83d"}'}


def sweep(limit: int, rows: int, end: Any = "", size: int | None = None, **more: Any) -> Sweep:
    """A sweep over so many rows, whose first page had `size` rows: by default as many as were requested."""
    return Sweep(
        1, limit, min(limit, rows) if size is None else size, rows=rows, assumed_end=end, **more
    )


def test_sweeps_with_the_same_ids_prove_a_list() -> None:
    for before, last, is_proof in (
        (sweep(100, 250), sweep(61, 250), True),
        (sweep(100, 250, issues=["total changed"]), sweep(61, 250), False),
        (sweep(100, 250), sweep(61, 250, issues=["total changed"]), False),
        (sweep(100, 250, "short"), sweep(61, 250, "short"), True),
        (sweep(100, 250, "short"), sweep(61, 250), True),
        (sweep(100, 250, "full"), sweep(61, 250, "full"), False),
        (sweep(100, 250, "full"), sweep(61, 250, "short"), False),
        (sweep(100, 1, "single"), sweep(3, 1, "single"), True),
        (sweep(3, 1, "single"), sweep(3, 1, "single"), False),
        (sweep(100, 7, "single"), sweep(61, 7, "single"), False),
        (sweep(100, 7, "single"), sweep(4, 7, "short"), True),
        (sweep(100, 2, "single"), sweep(1, 2, "full"), True),
        (sweep(100, 1, "single"), sweep(1, 1, "full"), False),
        (sweep(100, 6, "single"), sweep(3, 6, "full", size=2), False),
    ):
        assert agree(before, last) is is_proof, (before, last)


@pytest.mark.parametrize(
    ("sweeps", "limit"),
    [
        ([], 100),
        ([sweep(100, 650)], 61),
        ([sweep(100, 650, size=50), sweep(30, 650)], 50),
        ([sweep(1, 9)], 2),
        # The end is only assumed: a size that leaves a short last page, and was not used.
        ([sweep(100, 600, "full")], 61),
        ([sweep(100, 600, "full"), sweep(61, 600, "full", size=60)], 36),
        ([sweep(100, 1, "single")], 3),
        ([sweep(61, 200, size=100)], 62),
        ([sweep(1, 1, "full"), sweep(3, 1, "single")], 2),
    ],
)
def test_each_sweep_requests_pages_of_another_size(sweeps: list[Sweep], limit: int) -> None:
    assert next_limit(sweeps, 100) == limit


def test_sweeps_with_pages_of_one_size_have_the_same_boundaries() -> None:
    for sweeps, expected in (
        ([sweep(100, 50, size=20), sweep(61, 50, size=20)], True),
        ([sweep(100, 20, size=20), sweep(61, 21, size=20)], True),
        ([sweep(100, 1, size=1), sweep(2, 1, size=1)], False),
        ([sweep(100, 2, size=2), sweep(1, 1, size=1), sweep(2, 1, size=1)], True),
        ([sweep(100, 50, size=20), sweep(61, 50, size=12)], False),
    ):
        assert have_equal_pages(sweeps) is expected, sweeps


def test_a_sweep_shows_what_its_pages_show() -> None:
    ended = {"legacy_first_page": "customers: 0", "customers_end": ""}
    for read, shown in (
        (sweep(100, 0), {"customers_end": ""}),
        (sweep(100, 100), ended),
        (sweep(100, 101), ended | {"legacy_limit": "customers: honoured"}),
        (
            sweep(100, 101, size=50),
            ended | {"legacy_limit": "customers: not honoured: 50 rows for 100"},
        ),
    ):
        assert dict(observations_of("customers", read, 0)) == shown


@pytest.mark.parametrize(
    ("walk", "seed"),
    [
        # some requests are capped: the last two sweeps agree on half of the list
        (
            walk_seed,
            500152,
        ),
        (walk_seed, 713701),  # page 0 has all rows, and is rejected once
        (platform_seed, 933273),  # a cache has half of page 1, which page 0 contradicts
        (platform_seed, 936184),  # the last two sweeps have one row, the first has 22
    ],
)
def test_a_seed_whose_sweeps_agreed_without_all_rows_is_not_proven(
    walk: Callable[[int], Outcome], seed: int
) -> None:
    assert walk(seed).problems == []
