"""Each reading of each gap, seen from outside."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from sandbox import Sandbox, SandboxConfig
from sandbox.legacy import DELETED
from sources.gaps import GAPS
from tests.sandbox.talk import CUSTOMER, V1, WAREHOUSE, cursors, pages, talking

Look = Callable[[Sandbox, httpx.Client], None]
LOOKS: dict[tuple[str, str], Look] = {}


def reading(name: str, value: str) -> Callable[[Look], Look]:
    def kept(look: Look) -> Look:
        LOOKS[name, value] = look
        return look

    return kept


def dates(pattern: str) -> Look:
    def look(sandbox: Sandbox, client: httpx.Client) -> None:
        customer = client.get("/customers").json()["data"][0]
        promotion = client.get("/promotions").json()["data"][0]
        client.post("/customers", json=CUSTOMER)
        created = sandbox.state.records("customers")[-1]
        for value in (customer["createdAt"], promotion["startDate"], promotion["expirationDate"], created["createdAt"]):
            assert re.fullmatch(pattern, value), value

    return look


for form, pattern in {
    "iso_offset": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d",
    "iso_naive": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d",
    "date_only": r"\d{4}-\d\d-\d\d",
    "epoch_s": r"\d{10}",
    "epoch_ms": r"\d{13}",
    "day_first": r"\d\d/\d\d/\d{4} \d\d:\d\d",
    "month_first": r"\d\d/\d\d/\d{4} \d\d:\d\d",
}.items():
    LOOKS["date_format", form] = dates(pattern)


@reading("promotions_data", "array")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    assert pages(client, "/promotions", 7) == sandbox.state.records("promotions")


@reading("promotions_data", "object_by_id")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    data = client.get("/promotions?limit=60").json()["data"]
    assert data == {str(row["id"]): row for row in sandbox.state.records("promotions")}


@reading("promotions_data", "object_wrapped")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    assert client.get("/promotions?limit=60").json()["data"] == {"items": sandbox.state.records("promotions")}


@reading("promotions_data", "object_single")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    body = client.get("/promotions?limit=60&page=2").json()
    assert body["data"] == sandbox.state.records("promotions")[1]
    assert body["pagination"]["pages"] == 60
    assert client.get("/promotions?page=61").json()["data"] == {}


@reading("customers_end", "empty_page")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    assert client.get("/customers?limit=100&page=8").json() == {"data": []}


@reading("customers_end", "pagination")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    last = client.get("/customers?limit=100&page=7").json()["pagination"]
    assert last == {"page": 7, "pages": 7, "total": 650, "hasPrevPage": True, "hasNextPage": False}


@reading("customers_end", "repeat_last")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    last = client.get("/customers?limit=100&page=7").json()
    assert len(last["data"]) == 50
    assert client.get("/customers?limit=100&page=8").json() == last == client.get("/customers?limit=100&page=99").json()


@reading("customers_end", "status_404")
@reading("customers_end", "status_400")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    assert client.get("/customers?limit=100&page=7").status_code == 200
    answer = client.get("/customers?limit=100&page=8")
    assert answer.status_code in (400, 404)
    assert answer.json()["errors"]


@reading("legacy_limit", "honoured")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    assert len(client.get("/customers?limit=500").json()["data"]) == 500
    assert len(client.get("/customers").json()["data"]) == 20


@reading("legacy_limit", "capped")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    assert len(client.get("/customers?limit=500").json()["data"]) == 50
    assert len(client.get("/customers?limit=30").json()["data"]) == 30
    assert pages(client, "/customers", 500) == sandbox.state.records("customers")


@reading("legacy_limit", "ignored")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    for query in ("", "limit=500", "limit=3"):
        assert len(client.get(f"/customers?{query}").json()["data"]) == 20


@reading("legacy_total", "listed")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    assert client.get("/promotions").json()["pagination"]["total"] == len(sandbox.state.ids("promotions"))


@reading("legacy_total", "with_deleted")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    listed = sandbox.state.ids("promotions")
    sandbox.state.remove("promotions", listed[0])
    assert client.get("/promotions").json()["pagination"]["total"] == len(listed) + DELETED
    assert pages(client, "/promotions", 7) == sandbox.state.records("promotions")


@reading("legacy_first_page", "one")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    assert client.get("/promotions").json() == client.get("/promotions?page=1").json()
    assert client.get("/promotions?page=1").json()["pagination"]["hasPrevPage"] is False


@reading("legacy_first_page", "zero")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    assert client.get("/promotions").json() == client.get("/promotions?page=0").json()
    assert client.get("/promotions?page=1").json()["pagination"]["hasPrevPage"] is True
    assert pages(client, "/customers", 100, first=0) == sandbox.state.records("customers")


@reading("order_shape", "nested")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    order = cursors(client, 100)[0]
    assert order["lines"][0]["taxes"]
    assert order["customer"]["id"]


@reading("order_shape", "flat")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    assert not any(isinstance(value, (dict, list)) for order in cursors(client, 100) for value in order.values())


@reading("order_shape", "wide")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    assert len(cursors(client, 100)[0]) > 45


@reading("order_key", "id")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    assert [order["id"] for order in cursors(client, 100)] == sandbox.state.ids("orders")


@reading("order_key", "uuid")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    orders = cursors(client, 100)
    assert [order["uuid"] for order in orders] == sandbox.state.ids("orders")
    assert not any("id" in order for order in orders)


def adjustments(expected: set[str]) -> Look:
    def look(sandbox: Sandbox, client: httpx.Client) -> None:
        lists = sandbox.state.records("price_lists")
        assert client.get(f"{V1}/prices/lists").json() == {"priceLists": lists}
        assert {row["adjustmentType"] for row in lists} == expected
        assert all(re.fullmatch(r"-?\d+(\.\d+)?", row["adjustmentValue"]) for row in lists)

    return look


LOOKS["adjustment_types", "none_only"] = adjustments({"NONE"})
LOOKS["adjustment_types", "percentage"] = adjustments({"NONE", "PERCENTAGE"})
LOOKS["adjustment_types", "mixed"] = adjustments({"NONE", "PERCENTAGE", "FIXED_AMOUNT", "markup"})


def created(status: int) -> Look:
    def look(sandbox: Sandbox, client: httpx.Client) -> None:
        assert client.post("/customers", json=CUSTOMER).status_code == status
        assert client.post("/categories/1/subcategories", json={}).status_code == status
        assert client.post("/logistics/warehouses", json=WAREHOUSE).status_code == 201, "the interface says 201"

    return look


LOOKS["created_status", "201"] = created(201)
LOOKS["created_status", "200"] = created(200)


def no_content(status: int) -> Look:
    def look(sandbox: Sandbox, client: httpx.Client) -> None:
        answer = client.patch("/products/1/variants/1", json={"sku": "1"})
        assert (answer.status_code, answer.content) == (status, b"")

    return look


LOOKS["no_content_status", "204"] = no_content(204)
LOOKS["no_content_status", "200"] = no_content(200)


def created_body(check: Callable[[bytes, Any], bool]) -> Look:
    def look(sandbox: Sandbox, client: httpx.Client) -> None:
        answer = client.post("/customers", json=CUSTOMER)
        assert check(answer.content, answer.json() if answer.content else None)
        assert "secret-1" not in answer.text

    return look


LOOKS["created_body", "record"] = created_body(lambda _, body: {"id", "email"} <= body.keys())
LOOKS["created_body", "id_only"] = created_body(lambda _, body: body.keys() == {"id"})
LOOKS["created_body", "wrapped"] = created_body(lambda _, body: "email" in body["data"])
LOOKS["created_body", "empty"] = created_body(lambda content, _: content == b"")


def refusal(status: int, check: Callable[[httpx.Response], bool]) -> Look:
    def look(sandbox: Sandbox, client: httpx.Client) -> None:
        answer = client.get("/customers", headers={"api-key": "wrong"})
        assert answer.status_code == status
        assert check(answer)

    return look


LOOKS["legacy_auth_failure", "401_errors"] = refusal(401, lambda answer: bool(answer.json()["errors"]))
LOOKS["legacy_auth_failure", "403_errors"] = refusal(403, lambda answer: bool(answer.json()["errors"]))
LOOKS["legacy_auth_failure", "401_empty"] = refusal(401, lambda answer: answer.content == b"")
LOOKS["legacy_auth_failure", "403_text"] = refusal(403, lambda answer: answer.text == "Forbidden")


def error_status(status: int) -> Look:
    def look(sandbox: Sandbox, client: httpx.Client) -> None:
        answer = client.post("/customers", json={})
        assert answer.status_code == status
        assert answer.json()["errors"]

    return look


LOOKS["legacy_error_status", "400"] = error_status(400)
LOOKS["legacy_error_status", "422"] = error_status(422)


def sequence(*, is_reversed: bool, is_sorted: bool = True) -> Look:
    def look(sandbox: Sandbox, client: httpx.Client) -> None:
        sandbox.state.grow("orders", 9)
        numbers = [row["number"] for row in cursors(client, 50)]
        assert (numbers == sorted(numbers, reverse=is_reversed)) == is_sorted
        assert len({*numbers}) == 409

    return look


LOOKS["order_sequence", "oldest_first"] = sequence(is_reversed=False)
LOOKS["order_sequence", "newest_first"] = sequence(is_reversed=True)
LOOKS["order_sequence", "unordered"] = sequence(is_reversed=False, is_sorted=False)


def reuse(status: int, first: int | None) -> Look:
    """`first`: the position of the first order that the cursor after 300 orders leads to when it is used again."""

    def look(sandbox: Sandbox, client: httpx.Client) -> None:
        def page(cursor: str | None = None) -> httpx.Response:
            return client.get(f"{V1}/orders", params={"limit": 100} | ({"startingAfter": cursor} if cursor else {}))

        cursor = None
        for _ in range(3):
            cursor = page(cursor).json()["nextCursor"]
        assert page(cursor).json()["hasMore"] is False
        sandbox.state.grow("orders", 40)
        answer = page(cursor)
        assert answer.status_code == status
        if first is not None:
            assert answer.json()["data"][0]["id"] == sandbox.state.ids("orders")[first]

    return look


LOOKS["cursor_reuse", "continues"] = reuse(200, 300)
LOOKS["cursor_reuse", "rejected"] = reuse(400, None)
LOOKS["cursor_reuse", "restarts"] = reuse(200, 0)
LOOKS["cursor_reuse", "skips"] = reuse(200, 400)


def scope(status: int, has_body: bool) -> Look:
    def look(sandbox: Sandbox, client: httpx.Client) -> None:
        headers = {"Authorization": f"Bearer {sandbox.v1_no_scope_key}"}
        answer = client.get(f"{V1}/prices/lists", headers=headers)
        assert (answer.status_code, bool(answer.content)) == (status, has_body)

    return look


LOOKS["missing_scope", "403_error"] = scope(403, True)
LOOKS["missing_scope", "403_empty"] = scope(403, False)
LOOKS["missing_scope", "401_error"] = scope(401, True)


def whoami(*names: str) -> Look:
    def look(sandbox: Sandbox, client: httpx.Client) -> None:
        assert tuple(client.get(f"{V1}/whoami").json()) == names

    return look


LOOKS["whoami_names", "camel"] = whoami("organization", "environment", "scopes")
LOOKS["whoami_names", "nested"] = whoami("organization", "apiKey")
LOOKS["whoami_names", "terse"] = whoami("org", "env", "scope")


@reading("rate_limit", "none")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    assert {client.get("/promotions").status_code for _ in range(50)} == {200}


@reading("rate_limit", "per_second")
def _(sandbox: Sandbox, client: httpx.Client) -> None:
    answers = [client.get("/promotions") for _ in range(50)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert [answer.status_code for answer in answers[:20]] == [200] * 20
    assert {answer.headers["retry-after"] for answer in refused} == {"1"}
    assert client.get(f"{V1}/whoami").status_code == 200, "each family has its own"


def semantics(field: str, expected: float) -> Look:
    def look(sandbox: Sandbox, client: httpx.Client) -> None:
        for value in (3, 4):
            client.patch("/products/1/variants/1", json={field: value})
        assert sandbox.state.variants[1, 1].fields[field] == expected

    return look


LOOKS["price_semantics", "set"] = semantics("price", 4)
LOOKS["price_semantics", "increment"] = semantics("price", 7)
LOOKS["stock_semantics", "set"] = semantics("stock", 4)
LOOKS["stock_semantics", "increment"] = semantics("stock", 7)


def nameless(status: int) -> Look:
    def look(sandbox: Sandbox, client: httpx.Client) -> None:
        assert client.post("/categories/1/subcategories", json={}).status_code == status

    return look


LOOKS["subcategory_required", "none"] = nameless(201)
LOOKS["subcategory_required", "name"] = nameless(400)


@pytest.mark.parametrize(
    ("name", "value"),
    [pytest.param(gap.name, value, id=f"{gap.name}={value}") for gap in GAPS for value in gap.readings],
)
def test_reading(name: str, value: str) -> None:
    with talking(readings={name: value}) as (sandbox, client):
        LOOKS[name, value](sandbox, client)


def test_the_default_is_the_first_reading() -> None:
    config = SandboxConfig()
    assert {gap.name: config.reading(gap.name) for gap in GAPS} == {gap.name: gap.readings[0] for gap in GAPS}


def test_day_first_and_month_first_say_the_same_day() -> None:
    seen = []
    for form in ("day_first", "month_first"):
        with talking(readings={"date_format": form}) as (_, client):
            day, month, rest = client.get("/customers").json()["data"][0]["createdAt"].split("/")
            seen.append((day, month, rest))
    assert seen[0] == (seen[1][1], seen[1][0], seen[1][2])
