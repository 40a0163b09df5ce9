"""Each operation as the interface shows it, with the default readings."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import httpx
import pytest

from sandbox import Sandbox, SandboxConfig, serve
from sandbox.public_v1 import KEYS
from sources.contract import CUSTOMER, OPERATIONS, RECORDS
from tests.sandbox.talk import CUSTOMER as CUSTOMER_BODY
from tests.sandbox.talk import V1, WAREHOUSE, pages, talking

DOCUMENTED = [record for record in RECORDS.values() if record.fields]


def test_every_operation_is_routed(client: httpx.Client) -> None:
    keyless = httpx.Client(base_url=client.base_url)  # with a key, 404 may be that of a record
    for operation in OPERATIONS:
        path = re.sub(r"\{\w+\}", "1", operation.path)
        prefix = V1 if operation.family == "public_v1" else ""
        assert keyless.request(operation.verb, prefix + path).status_code == 401, operation.name
    keyless.close()


def test_pagination_object(client: httpx.Client) -> None:
    body = client.get("/promotions", params={"page": 2, "limit": 25}).json()
    assert body["pagination"] == {"page": 2, "pages": 3, "total": 60, "hasPrevPage": True, "hasNextPage": True}
    assert list(body["pagination"]) == ["page", "pages", "total", "hasPrevPage", "hasNextPage"]


def test_term_searches_names_and_coupon_codes(client: httpx.Client) -> None:
    named = client.get("/promotions", params={"term": "naviDAD", "limit": 100}).json()
    assert 0 < named["pagination"]["total"] < 60
    assert all("Navidad" in row["name"] for row in named["data"])
    coded = client.get("/promotions", params={"term": "cupon-00305"}).json()
    assert [row["id"] for row in coded["data"]] == [305]


def test_a_search_finds_what_was_changed_since_the_last_one() -> None:
    with talking() as (sandbox, client):
        for name, found in (("Omega", 0), ("Zeta", 1)):
            sandbox.state.change("promotions", 301, {"name": name})
            assert client.get("/promotions", params={"term": "zeta"}).json()["pagination"]["total"] == found


def test_whoami(client: httpx.Client) -> None:
    body = client.get(f"{V1}/whoami").json()
    assert body["environment"] == "SANDBOX"
    assert body["scopes"] == ["prices:read"]


def test_whoami_of_a_live_key(sandbox: Sandbox, client: httpx.Client) -> None:
    body = client.get(f"{V1}/whoami", headers={"Authorization": f"Bearer {sandbox.v1_live_key}"}).json()
    assert body["environment"] == "LIVE"


@pytest.mark.parametrize("record", DOCUMENTED, ids=lambda record: record.name)
def test_records_have_fields_of_the_interface_only(sandbox: Sandbox, record: object) -> None:
    from sources.contract import Record

    assert isinstance(record, Record)
    rows = sandbox.state.records(record.name)
    names = {field.name for field in record.fields}
    required = {field.name for field in record.fields if field.required}
    assert set().union(*(row.keys() for row in rows)) == names
    assert all(required <= row.keys() for row in rows)


def test_records_look_real(sandbox: Sandbox) -> None:
    customers = sandbox.state.records("customers")
    documents = [row.get("documents", []) for row in customers]
    assert {len(found) for found in documents} == {0, 1, 2, 3}
    names = {field.name for field in CUSTOMER.field("documents").fields}
    assert all(document.keys() <= names for found in documents for document in found)
    assert any("email" not in row for row in customers)
    assert any(not row["firstName"].isascii() for row in customers)
    assert {len(row["lines"]) for row in sandbox.state.records("orders")} == {1, 2, 3, 4, 5}
    sources = {row.get("sourcePriceListId") for row in sandbox.state.records("price_lists")}
    assert None in sources
    assert sources - {row["id"] for row in sandbox.state.records("price_lists")} - {None}, "no orphan"


def test_the_same_seed_gives_the_same_records() -> None:
    config: dict[str, Any] = {"customers": 50, "orders": 50, "today": date(2026, 3, 1)}
    with talking(seed=3, **config) as (first, _), talking(seed=3, **config) as (second, _):
        for resource in ("customers", "orders", "promotions", "price_lists"):
            assert first.state.records(resource) == second.state.records(resource)
    with talking(seed=4, **config) as (other, _):
        assert other.state.records("customers") != first.state.records("customers")


def test_orders_go_up_to_yesterday_with_growth_seasons_and_quiet_sundays() -> None:
    today = date(2026, 3, 1)
    with talking(orders=4_000, customers=10, today=today) as (sandbox, _):
        days = [datetime.fromisoformat(row["createdAt"]).date() for row in sandbox.state.records("orders")]
        sandbox.state.grow("orders", 2)
        added = [row["createdAt"][:10] for row in sandbox.state.records("orders")[-2:]]
    assert days == sorted(days)
    assert days[-1] == today - timedelta(days=1)
    assert added == [today.isoformat()] * 2
    by_weekday = Counter(day.weekday() for day in days)
    assert by_weekday[6] * 3 < by_weekday[5] * 2 < by_weekday[0] * 2
    by_month = Counter(day.strftime("%Y-%m") for day in days)
    assert by_month["2025-12"] > by_month["2025-11"] > by_month["2025-08"] > 1.5 * by_month["2024-08"]
    assert sum(day >= today - timedelta(days=30) for day in days) > 200


def test_promotions_run_today_and_some_end_soon() -> None:
    now = datetime.now(UTC)
    with talking() as (sandbox, _):
        rows = [row for row in sandbox.state.records("promotions") if row["isActive"]]
    spans = [[datetime.fromisoformat(row[name]) for name in ("startDate", "expirationDate")] for row in rows]
    running = [end for start, end in spans if start < now < end]
    assert len(running) >= 20
    assert sum(end < now + timedelta(days=30) for end in running) >= 6
    assert (sum(start > now for start, _ in spans), sum(end < now for _, end in spans)) == (6, 18)


def test_a_created_customer_is_listed() -> None:
    with talking(customers=5) as (sandbox, client):
        body = {
            **CUSTOMER_BODY,
            "erpCode": "0007",
            "loginCode": "ignored",
            "documents": [{"number": "1", "isDefault": True}],
            "notification": {"send": False, "withCredentials": False},
        }
        answer = client.post("/customers", json=body)
        assert answer.status_code == 201
        listed = pages(client, "/customers", 4)[-1]
        assert listed == answer.json() == sandbox.state.records("customers")[-1]
        assert listed["erpCode"] == "0007"
        assert listed["priceListId"] == 1
        assert not {"password", "notification", "loginCode"} & listed.keys()
        assert sandbox.state.customer_inputs == [body]


def test_a_customer_who_logs_in_by_code() -> None:
    with talking(customers=1, login_mode="code") as (sandbox, client):
        assert client.post("/customers", json=CUSTOMER_BODY).status_code == 400
        assert client.post("/customers", json={"password": "x", "loginCode": "007"}).status_code == 201
        assert sandbox.state.records("customers")[-1]["loginCode"] == "007"


def test_a_variant_keeps_what_was_sent_and_how_often() -> None:
    with talking() as (sandbox, client):
        for price in (1.5, 2.25):
            answer = client.patch("/products/7/variants/9", json={"price": price, "sku": "007"})
            assert (answer.status_code, answer.content) == (204, b"")
        variant = sandbox.state.variants[7, 9]
        assert variant.fields == {"price": 2.25, "sku": "007"}
        assert (variant.applied, variant.counts["price"], variant.counts["stock"]) == (2, 2, 0)


def test_subcategories_and_warehouses_are_kept() -> None:
    with talking() as (sandbox, client):
        body = {"name": "Cafés", "description": "d", "seo": {"description": "s"}, "order": 1}
        assert client.post("/categories/12/subcategories", json=body).status_code == 201
        assert client.post("/logistics/warehouses", json=WAREHOUSE).status_code == 201
        assert sandbox.state.subcategories == [{"id": 1, "categoryId": "12", **body}]
        assert sandbox.state.warehouses == [{"id": 1, **WAREHOUSE}]


def test_the_truth_is_kept() -> None:
    with talking(customers=5) as (sandbox, client):
        state = sandbox.state
        ids = state.ids("customers")
        state.remove("customers", ids[0])
        state.change("customers", ids[1], {"lastName": "Ñandú"})
        added = state.add("customers", {"firstName": "Zoë"}, position=0)
        shown = pages(client, "/customers", 2)
        assert [str(row["id"]) for row in shown] == [str(added["id"]), *ids[1:]]
        assert shown[1]["lastName"] == "Ñandú"
        assert state.ever("customers") == {*ids, str(added["id"])}
        assert state.always("customers") == set(ids[1:])
        assert [change.what for change in state.truth] == ["removed", "changed", "added"]
        with pytest.raises(KeyError):
            state.remove("customers", "no such id")


def test_requests_are_logged() -> None:
    with talking() as (sandbox, client):
        client.get("/customers", params={"page": 1})
        client.get("/nowhere")
        logged = [(entry.method, entry.path, entry.query, entry.status, entry.fault) for entry in sandbox.state.log]
        assert logged == [("GET", "/customers", "page=1", 200, ""), ("GET", "/nowhere", "", 404, "")]


def test_cursors_survive_removals_and_insertions() -> None:
    with talking(orders=30) as (sandbox, client):
        first = client.get(f"{V1}/orders", params={"limit": 10}).json()
        sandbox.state.remove("orders", first["data"][-1]["id"])
        sandbox.state.add("orders", {"status": "NEW"}, position=9)
        second = client.get(f"{V1}/orders", params={"limit": 10, "startingAfter": first["nextCursor"]}).json()
        assert second["data"][0]["id"] == sandbox.state.ids("orders")[10]


def test_many_insertions_at_one_place() -> None:
    with serve(SandboxConfig(customers=3)) as sandbox:
        for number in range(200):
            sandbox.state.add("customers", {"erpCode": str(number)}, position=1)
        ranks = sandbox.state.lists["customers"].ranks
        assert list(ranks) == sorted(set(ranks))


def test_authentication_of_public_v1(sandbox: Sandbox) -> None:
    with httpx.Client(base_url=sandbox.url, verify=False) as client:
        cases = {
            None: "UNAUTHENTICATED",
            "Bearer nothing": "INVALID_API_KEY",
            f"Basic {sandbox.v1_key}": "INVALID_API_KEY",
            f"Bearer {sandbox.v1_expired_key}": "KEY_EXPIRED",
        }
        for value, code in cases.items():
            answer = client.get(f"{V1}/whoami", headers={} if value is None else {"Authorization": value})
            assert answer.status_code == 401
            error = answer.json()["error"]
            assert error["code"] == code
            assert {name: type(member) for name, member in error.items()} == dict.fromkeys(
                ("code", "message", "requestId"), str
            )


def test_keys_name_their_environment() -> None:
    assert all(("_live_" in key) == (held.environment == "LIVE") for key, held in KEYS.items())
