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


def listed(sandbox: Sandbox, name: str) -> list[Any]:
    return sandbox.state.records(name)


def json_of(path: str, *names: str) -> Look:

    def look(sandbox: Sandbox, client: httpx.Client) -> object:
        body = client.get(path).json()
        for name in names:
            body = body[name]
        return body

    return look


def statuses(*requests: tuple[str, str, Any], **headers: str) -> Look:
    def look(sandbox: Sandbox, client: httpx.Client) -> object:
        return [client.request(verb, path, json=body, headers=headers).status_code for verb, path, body in requests]

    return look


def rows_of(*paths: str) -> Look:
    return lambda _, client: [len(client.get(path).json()["data"]) for path in paths]


def dates(pattern: str) -> tuple[Look, object]:
    def look(sandbox: Sandbox, client: httpx.Client) -> object:
        (customer, *_), (promotion, *_) = (client.get(path).json()["data"] for path in ("/customers", "/promotions"))
        client.post("/customers", json=CUSTOMER)
        values = [customer["createdAt"], promotion["startDate"], promotion["expirationDate"]]
        values.append(listed(sandbox, "customers")[-1]["createdAt"])
        return [value for value in values if not re.fullmatch(pattern, value)]

    return look, []


def promotions(shape: Callable[[list[Any]], object]) -> tuple[Look, object]:
    def look(sandbox: Sandbox, client: httpx.Client) -> object:
        return client.get("/promotions?limit=60").json()["data"] == shape(listed(sandbox, "promotions"))

    return look, True


def one_by_one(sandbox: Sandbox, client: httpx.Client) -> object:
    body = client.get("/promotions?limit=60&page=2").json()
    rest = client.get("/promotions?page=61").json()["data"]
    return body["data"] == listed(sandbox, "promotions")[1], body["pagination"]["pages"], rest


def repeated_end(sandbox: Sandbox, client: httpx.Client) -> object:
    last, *past = (client.get(f"/customers?limit=100&page={page}").json() for page in (7, 8, 99))
    return len(last["data"]), past == [last, last]


def refused_end(status: int) -> tuple[Look, object]:
    return statuses(*(("GET", f"/customers?limit=100&page={page}", None) for page in (7, 8))), [200, status]


def total_after_a_removal(sandbox: Sandbox, client: httpx.Client) -> object:
    count = len(sandbox.state.ids("promotions"))
    sandbox.state.remove("promotions", sandbox.state.ids("promotions")[0])
    assert pages(client, "/promotions", 7) == listed(sandbox, "promotions")
    return client.get("/promotions").json()["pagination"]["total"] - count


def first_page(first: int) -> tuple[Look, object]:
    def look(sandbox: Sandbox, client: httpx.Client) -> object:
        assert pages(client, "/customers", 100, first=first) == listed(sandbox, "customers")
        default, one = (client.get(path).json() for path in (f"/promotions?page={first}", "/promotions?page=1"))
        return client.get("/promotions").json() == default, one["pagination"]["hasPrevPage"]

    return look, (True, first == 0)


def order(look: Callable[[dict[str, Any]], object]) -> tuple[Look, object]:
    return lambda _, client: look(cursors(client, 100)[0]), True


def keys(name: str) -> tuple[Look, object]:
    def look(sandbox: Sandbox, client: httpx.Client) -> object:
        orders = cursors(client, 100)
        return [one[name] for one in orders] == sandbox.state.ids("orders"), "id" in orders[0]

    return look, (True, name == "id")


def adjustments(*expected: str) -> tuple[Look, object]:
    def look(sandbox: Sandbox, client: httpx.Client) -> object:
        rows = client.get(f"{V1}/prices/lists").json()["priceLists"]
        assert rows == listed(sandbox, "price_lists")
        assert all(re.fullmatch(r"-?\d+(\.\d+)?", row["adjustmentValue"]) for row in rows)
        return {row["adjustmentType"] for row in rows}

    return look, {*expected}


CREATES = [("POST", "/customers", CUSTOMER), ("POST", "/categories/1/subcategories", {}),
           ("POST", "/logistics/warehouses", WAREHOUSE)]  # fmt: skip
VARIANT = "/products/1/variants/1"


def created_body(read: Callable[[httpx.Response], object], expected: object) -> tuple[Look, object]:
    def look(sandbox: Sandbox, client: httpx.Client) -> object:
        answer = client.post("/customers", json=CUSTOMER)
        assert CUSTOMER["password"] not in answer.text
        return read(answer)

    return look, expected


def refusal(status: int, text: str | None = None) -> tuple[Look, object]:

    def look(sandbox: Sandbox, client: httpx.Client) -> object:
        answer = client.get("/customers", headers={"api-key": "wrong"})
        return answer.status_code, answer.text if text is not None else bool(answer.json()["errors"])

    return look, (status, True if text is None else text)


def scope(status: int, has_body: bool) -> tuple[Look, object]:
    def look(sandbox: Sandbox, client: httpx.Client) -> object:
        headers = {"Authorization": f"Bearer {sandbox.v1_no_scope_key}"}
        answer = client.get(f"{V1}/prices/lists", headers=headers)
        return answer.status_code, bool(answer.content)

    return look, (status, has_body)


def sequence(*expected: bool) -> tuple[Look, object]:
    """Whether the numbers of orders, some of them new, rise or fall; none is lost."""

    def look(sandbox: Sandbox, client: httpx.Client) -> object:
        sandbox.state.grow("orders", 9)
        numbers = [row["number"] for row in cursors(client, 50)]
        return numbers == sorted(numbers), numbers == sorted(numbers)[::-1], len({*numbers})

    return look, (*expected, 409)


def reuse(status: int, first: int | None) -> tuple[Look, object]:
    """`first`: the position of the first order that the cursor after 300 orders leads to when it is used again."""

    def look(sandbox: Sandbox, client: httpx.Client) -> object:
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

    return look, (status, first)


def limited(sandbox: Sandbox, client: httpx.Client) -> object:
    answers = [client.get("/promotions") for _ in range(50)]
    waits = {answer.headers["retry-after"] for answer in answers if answer.status_code == 429}
    assert client.get(f"{V1}/whoami").status_code == 200, "each family has its own"
    return {answer.status_code for answer in answers[:20]}, waits


def semantics(field: str, expected: float) -> tuple[Look, object]:
    def look(sandbox: Sandbox, client: httpx.Client) -> object:
        for value in (3, 4):
            client.patch(VARIANT, json={field: value})
        return sandbox.state.variants[1, 1].fields[field]

    return look, expected


def whoami(*names: str) -> tuple[Look, object]:
    return lambda _, client: [*client.get(f"{V1}/whoami").json()], [*names]


ISO = r"\d{4}-\d\d-\d\d"
LOOKS: dict[str, dict[str, tuple[Look, Any]]] = {
    "date_format": {
        "iso_offset": dates(rf"{ISO}T\d\d:\d\d:\d\d[+-]\d\d:\d\d"), "iso_naive": dates(rf"{ISO}T\d\d:\d\d:\d\d"),
        "date_only": dates(ISO), "epoch_s": dates(r"\d{10}"), "epoch_ms": dates(r"\d{13}"),
        "day_first": dates(r"\d\d/\d\d/\d{4} \d\d:\d\d"), "month_first": dates(r"\d\d/\d\d/\d{4} \d\d:\d\d"),
    },
    "promotions_data": {
        "array": promotions(lambda rows: rows),
        "object_by_id": promotions(lambda rows: {str(row["id"]): row for row in rows}),
        "object_wrapped": promotions(lambda rows: {"items": rows}),
        "object_single": (one_by_one, (True, 60, {})),
    },
    "customers_end": {
        "empty_page": (json_of("/customers?limit=100&page=8"), {"data": []}),
        "pagination": (json_of("/customers?limit=100&page=7", "pagination"),
                       {"page": 7, "pages": 7, "total": 650, "hasPrevPage": True, "hasNextPage": False}),
        "repeat_last": (repeated_end, (50, True)),
        "status_404": refused_end(404), "status_400": refused_end(400),
    },
    "legacy_limit": {
        "honoured": (rows_of("/customers?limit=500", "/customers"), [500, 20]),
        "capped": (rows_of("/customers?limit=500", "/customers?limit=30"), [50, 30]),
        "ignored": (rows_of("/customers", "/customers?limit=500", "/customers?limit=3"), [20, 20, 20]),
    },
    "legacy_total": {"listed": (total_after_a_removal, -1), "with_deleted": (total_after_a_removal, DELETED)},
    "legacy_first_page": {"one": first_page(1), "zero": first_page(0)},
    "order_shape": {
        "nested": order(lambda one: bool(one["lines"][0]["taxes"] and one["customer"]["id"])),
        "flat": order(lambda one: not any(isinstance(value, (dict, list)) for value in one.values())),
        "wide": order(lambda one: len(one) > 45),
    },
    "order_key": {"id": keys("id"), "uuid": keys("uuid")},
    "adjustment_types": {
        "none_only": adjustments("NONE"), "percentage": adjustments("NONE", "PERCENTAGE"),
        "mixed": adjustments("NONE", "PERCENTAGE", "FIXED_AMOUNT", "markup"),
    },
    # The interface says 201 for warehouses.
    "created_status": {"201": (statuses(*CREATES), [201, 201, 201]), "200": (statuses(*CREATES), [200, 200, 201])},
    "no_content_status": {code: (statuses(("PATCH", VARIANT, {"sku": "1"})), [int(code)]) for code in ("204", "200")},
    "created_body": {
        "record": created_body(lambda answer: {"id", "email"} <= answer.json().keys(), True),
        "id_only": created_body(lambda answer: [*answer.json()], ["id"]),
        "wrapped": created_body(lambda answer: "email" in answer.json()["data"], True),
        "empty": created_body(lambda answer: answer.content, b""),
    },
    "legacy_auth_failure": {
        "401_errors": refusal(401), "403_errors": refusal(403), "401_empty": refusal(401, ""),
        "403_text": refusal(403, "Forbidden"),
    },
    "legacy_error_status": {code: (statuses(("POST", "/customers", {})), [int(code)]) for code in ("400", "422")},
    "order_sequence": {
        "oldest_first": sequence(True, False), "newest_first": sequence(False, True),
        "unordered": sequence(False, False),
    },
    "cursor_reuse": {
        "continues": reuse(200, 300), "rejected": reuse(400, None), "restarts": reuse(200, 0), "skips": reuse(200, 400),
    },
    "missing_scope": {
        "403_error": scope(403, True), "403_empty": scope(403, False), "401_error": scope(401, True),
    },
    "whoami_names": {
        "camel": whoami("organization", "environment", "scopes"), "nested": whoami("organization", "apiKey"),
        "terse": whoami("org", "env", "scope"),
    },
    "rate_limit": {
        "none": (statuses(*[("GET", "/promotions", None)] * 50), [200] * 50), "per_second": (limited, ({200}, {"1"})),
    },
    "price_semantics": {"set": semantics("price", 4), "increment": semantics("price", 7)},
    "stock_semantics": {"set": semantics("stock", 4), "increment": semantics("stock", 7)},
    "subcategory_required": {"none": (statuses(CREATES[1]), [201]), "name": (statuses(CREATES[1]), [400])},
}  # fmt: skip
"""By gap and reading: what is looked at, and what it has to be."""


@pytest.mark.parametrize(("name", "value"), [(gap.name, value) for gap in GAPS for value in gap.readings])
def test_reading(name: str, value: str) -> None:
    look, expected = LOOKS[name][value]
    with talking(readings={name: value}) as (sandbox, client):
        assert look(sandbox, client) == expected


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
