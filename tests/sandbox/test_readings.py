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

Look = Callable[[Sandbox, httpx.Client], Any]
VARIANT = "/products/1/variants/1"
SUBCATEGORIES = "/categories/1/subcategories"


def dates(sandbox: Sandbox, client: httpx.Client) -> object:
    """The forms of dates, with 0 for each digit and + for the sign of an offset."""
    (customer, *_), (promotion, *_) = (client.get(path).json()["data"] for path in ("/customers", "/promotions"))
    client.post("/customers", json=CUSTOMER)
    values = [customer["createdAt"], promotion["startDate"], promotion["expirationDate"]]
    values.append(sandbox.state.records("customers")[-1]["createdAt"])
    return {re.sub(r"\d", "0", re.sub(r"[+-](\d\d:\d\d)$", r"+\1", value)) for value in values}


def promotions(sandbox: Sandbox, client: httpx.Client) -> object:
    """The shape of a page with all rows, the pages of that size, and the data of a page past the end."""
    rows, body = sandbox.state.records("promotions"), client.get("/promotions?limit=60").json()
    by_id = {str(row["id"]): row for row in rows}
    shapes = {"array": rows, "object_by_id": by_id, "object_wrapped": {"items": rows}, "object_single": rows[0]}
    (shape,) = (name for name, shape in shapes.items() if body["data"] == shape)
    second = client.get("/promotions?limit=60&page=2").json()["data"]
    return shape, body["pagination"]["pages"], second == rows[1], client.get("/promotions?page=61").json()["data"]


def customers_end(sandbox: Sandbox, client: httpx.Client) -> object:
    """Of two pages past the end: statuses, and what they are; and the pagination of the last page."""
    last, *past = (client.get(f"/customers?limit=100&page={page}") for page in (7, 8, 99))
    assert len(last.json()["data"]) == 50
    bodies = ["last" if page.json() == last.json() else page.json().get("data") for page in past]
    return [page.status_code for page in past], bodies, last.json().get("pagination")


def rows_by_limit(sandbox: Sandbox, client: httpx.Client) -> object:
    queries = ("", "?limit=3", "?limit=30", "?limit=500")
    return [len(client.get(f"/customers{query}").json()["data"]) for query in queries]


def total_after_a_removal(sandbox: Sandbox, client: httpx.Client) -> object:
    ids = sandbox.state.ids("promotions")
    sandbox.state.remove("promotions", ids[0])
    assert pages(client, "/promotions", 7) == sandbox.state.records("promotions")
    return client.get("/promotions").json()["pagination"]["total"] - len(ids)


def first_page(sandbox: Sandbox, client: httpx.Client) -> object:
    default, *numbered = (client.get(f"/promotions{query}").json() for query in ("", "?page=0", "?page=1"))
    first = 0 if numbered[1]["pagination"]["hasPrevPage"] else 1
    assert default == numbered[0] == numbered[first], "a page before the first one is the first one"
    assert pages(client, "/customers", 100, first=first) == sandbox.state.records("customers")
    return first


def order_shape(sandbox: Sandbox, client: httpx.Client) -> object:
    one = cursors(client, 100)[0]
    if not any(isinstance(value, (dict, list)) for value in one.values()):
        return "flat"
    assert one["lines"][0]["taxes"]
    assert one["customer"]["id"]
    return "wide" if len(one) > 45 else "nested"


def order_key(sandbox: Sandbox, client: httpx.Client) -> object:
    orders = cursors(client, 100)
    return [name for name in ("id", "uuid") if [one.get(name) for one in orders] == sandbox.state.ids("orders")]


def adjustment_types(sandbox: Sandbox, client: httpx.Client) -> object:
    rows = client.get(f"{V1}/prices/lists").json()["priceLists"]
    assert rows == sandbox.state.records("price_lists")
    assert all(re.fullmatch(r"-?\d+(\.\d+)?", row["adjustmentValue"]) for row in rows)
    return {row["adjustmentType"] for row in rows}


def created(sandbox: Sandbox, client: httpx.Client) -> object:
    bodies = {"/customers": CUSTOMER, SUBCATEGORIES: {}, "/logistics/warehouses": WAREHOUSE}
    return [client.post(path, json=body).status_code for path, body in bodies.items()]


def created_body(sandbox: Sandbox, client: httpx.Client) -> object:
    answer = client.post("/customers", json=CUSTOMER)
    assert CUSTOMER["password"] not in answer.text
    found = answer.json() if answer.content else {}
    return [*found] if "email" not in found.get("data", found) else ["email" in found, "data" in found]


def refusal(sandbox: Sandbox, client: httpx.Client) -> object:
    answer = client.get("/customers", headers={"api-key": "wrong"})
    return answer.status_code, [*answer.json()] if "json" in answer.headers.get("content-type", "") else answer.text


def missing_scope(sandbox: Sandbox, client: httpx.Client) -> object:
    answer = client.get(f"{V1}/prices/lists", headers={"Authorization": f"Bearer {sandbox.v1_no_scope_key}"})
    return answer.status_code, bool(answer.content)


def sequence(sandbox: Sandbox, client: httpx.Client) -> object:
    """Whether the numbers of orders, some of them new, rise or fall; none is lost."""
    sandbox.state.grow("orders", 9)
    numbers = [row["number"] for row in cursors(client, 50)]
    assert len({*numbers}) == 409
    return numbers == sorted(numbers), numbers == sorted(numbers)[::-1]


def reuse(sandbox: Sandbox, client: httpx.Client) -> object:
    """The position of the first order that the cursor after 300 orders leads to when it is used again."""

    def page(cursor: str | None = None) -> httpx.Response:
        return client.get(f"{V1}/orders", params={"limit": 100} | ({"startingAfter": cursor} if cursor else {}))

    cursor = None
    for _ in range(3):
        cursor = page(cursor).json()["nextCursor"]
    assert page(cursor).json()["hasMore"] is False
    sandbox.state.grow("orders", 40)
    answer = page(cursor)
    rows = answer.json().get("data")
    return answer.status_code, rows and sandbox.state.ids("orders").index(rows[0]["id"])


def limited(sandbox: Sandbox, client: httpx.Client) -> object:
    answers = [client.get("/promotions") for _ in range(50)]
    assert client.get(f"{V1}/whoami").status_code == 200, "each family has its own"
    waits = {answer.headers["retry-after"] for answer in answers if answer.status_code == 429}
    return {answer.status_code for answer in answers[:20]}, waits


def after(field: str, *values: float) -> Look:
    def look(sandbox: Sandbox, client: httpx.Client) -> object:
        for value in values:
            client.patch(VARIANT, json={field: value})
        return sandbox.state.variants[1, 1].fields[field]

    return look


def status(verb: str, path: str, body: Any) -> Look:
    return lambda _, client: client.request(verb, path, json=body).status_code


LAST = {"page": 7, "pages": 7, "total": 650, "hasPrevPage": True, "hasNextPage": False}
LOOKS: dict[str, tuple[Look, dict[str, Any]]] = {
    "date_format": (dates, {
        "iso_offset": {"0000-00-00T00:00:00+00:00"}, "iso_naive": {"0000-00-00T00:00:00"}, "date_only": {"0000-00-00"},
        "epoch_s": {"0" * 10}, "epoch_ms": {"0" * 13},
        "day_first": {"00/00/0000 00:00"}, "month_first": {"00/00/0000 00:00"},
    }),
    "promotions_data": (promotions, {
        "array": ("array", 1, False, []), "object_by_id": ("object_by_id", 1, False, {}),
        "object_wrapped": ("object_wrapped", 1, False, {"items": []}), "object_single": ("object_single", 60, True, {}),
    }),
    "customers_end": (customers_end, {
        "empty_page": ([200, 200], [[], []], None), "pagination": ([200, 200], [[], []], LAST),
        "repeat_last": ([200, 200], ["last", "last"], None),
        "status_404": ([404, 404], [None, None], None), "status_400": ([400, 400], [None, None], None),
    }),
    "legacy_limit": (rows_by_limit, {
        "honoured": [20, 3, 30, 500], "capped": [20, 3, 30, 50], "ignored": [20, 20, 20, 20],
    }),
    "legacy_total": (total_after_a_removal, {"listed": -1, "with_deleted": DELETED}),
    "legacy_first_page": (first_page, {"one": 1, "zero": 0}),
    "order_shape": (order_shape, {"nested": "nested", "flat": "flat", "wide": "wide"}),
    "order_key": (order_key, {"id": ["id"], "uuid": ["uuid"]}),
    "adjustment_types": (adjustment_types, {
        "none_only": {"NONE"}, "percentage": {"NONE", "PERCENTAGE"},
        "mixed": {"NONE", "PERCENTAGE", "FIXED_AMOUNT", "markup"},
    }),
    "created_status": (created, {"201": [201, 201, 201], "200": [200, 200, 201]}),  # 201 is shown for warehouses
    "no_content_status": (status("PATCH", VARIANT, {"sku": "1"}), {"204": 204, "200": 200}),
    "created_body": (created_body, {
        "record": [True, False], "id_only": ["id"], "wrapped": [False, True], "empty": [],
    }),
    "legacy_auth_failure": (refusal, {
        "401_errors": (401, ["errors"]), "403_errors": (403, ["errors"]), "401_empty": (401, ""),
        "403_text": (403, "Forbidden"),
    }),
    "legacy_error_status": (status("POST", "/customers", {}), {"400": 400, "422": 422}),
    "order_sequence": (sequence, {
        "oldest_first": (True, False), "newest_first": (False, True), "unordered": (False, False),
    }),
    "cursor_reuse": (reuse, {
        "continues": (200, 300), "rejected": (400, None), "restarts": (200, 0), "skips": (200, 400),
    }),
    "missing_scope": (missing_scope, {
        "403_error": (403, True), "403_empty": (403, False), "401_error": (401, True),
    }),
    "whoami_names": (lambda _, client: [*client.get(f"{V1}/whoami").json()], {
        "camel": ["organization", "environment", "scopes"], "nested": ["organization", "apiKey"],
        "terse": ["org", "env", "scope"],
    }),
    "rate_limit": (limited, {"none": ({200}, set()), "per_second": ({200}, {"1"})}),
    "price_semantics": (after("price", 0.1, 0.2), {"set": 0.2, "increment": 0.3}),
    "stock_semantics": (after("stock", 3, 4), {"set": 4, "increment": 7}),
    "subcategory_required": (status("POST", SUBCATEGORIES, {}), {"none": 201, "name": 400}),
}  # fmt: skip
"""By gap what is looked at, and by reading what it has to be."""


@pytest.mark.parametrize(("name", "value"), [(gap.name, value) for gap in GAPS for value in gap.readings])
def test_reading(name: str, value: str) -> None:
    look, expected = LOOKS[name]
    with talking(readings={name: value}) as (sandbox, client):
        assert look(sandbox, client) == expected[value]


def test_the_default_is_the_first_reading() -> None:
    config = SandboxConfig()
    assert {gap.name: config.reading(gap.name) for gap in GAPS} == {gap.name: gap.readings[0] for gap in GAPS}


def test_day_first_and_month_first_are_the_same_day() -> None:
    seen = []
    for form in ("day_first", "month_first"):
        with talking(readings={"date_format": form}) as (_, client):
            seen.append(client.get("/customers").json()["data"][0]["createdAt"].split("/"))
    (day, month, rest), other = seen
    assert other == [month, day, rest]
