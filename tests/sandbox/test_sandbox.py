"""Each operation as the interface shows it, with the default readings; records, the truth, configurations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from orderbridge.sandbox import Sandbox, SandboxConfig, SandboxConfigError
from orderbridge.sandbox.state import Logged, State
from orderbridge.sources.contract import OPERATIONS, RECORDS, Field, Operation, Record
from tests.sandbox.talk import CUSTOMER, V1, WAREHOUSE, pages, talking


def test_lists_are_paged_found_by_a_term_and_empty(client: httpx.Client) -> None:
    names = ["page", "pages", "total", "hasPrevPage", "hasNextPage"]
    pagination = client.get("/promotions", params={"page": 2, "limit": 25}).json()["pagination"]
    assert list(pagination.items()) == list(zip(names, [2, 3, 60, True, True], strict=True))
    found = client.get("/promotions", params={"term": "25 %", "limit": 60}).json()["data"]
    assert 0 < len(found) < 60
    assert all("25 %" in row["name"] for row in found)
    with talking(promotions=3) as (platform, coded):
        promotion = platform.state.add("promotions", {"name": "Winter", "code": "FRIO-25"})
        found = coded.get("/promotions", params={"term": "frio"}).json()["data"]
        assert [row["id"] for row in found] == [promotion["id"]]
    with talking(customers=0, orders=0, promotions=0, price_lists=0) as (_, empty):
        assert empty.get("/customers").json() == {"data": []}
        assert empty.get("/promotions").json()["pagination"]["hasNextPage"] is False
        assert empty.get(f"{V1}/orders").json() == {
            "data": [],
            "hasMore": False,
            "nextCursor": None,
        }
        assert empty.get(f"{V1}/prices/lists").json() == {"priceLists": []}


def test_keys_of_public_v1_and_what_they_may(sandbox: Sandbox, client: httpx.Client) -> None:
    assert client.get(f"{V1}/whoami").json()["scopes"] == ["prices:read"]
    live = client.get(
        f"{V1}/whoami", headers={"Authorization": f"Bearer {sandbox.v1_live_key}"}
    ).json()
    assert (client.get(f"{V1}/whoami").json()["environment"], live["environment"]) == (
        "SANDBOX",
        "LIVE",
    )
    for value, code in (
        ("Bearer nothing", "INVALID_API_KEY"),
        (f"Basic {sandbox.v1_key}", "INVALID_API_KEY"),
        (f"Bearer {sandbox.v1_expired_key}", "KEY_EXPIRED"),
    ):
        answer = client.get(f"{V1}/whoami", headers={"Authorization": value})
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, code)
    answer = httpx.get(f"{sandbox.url}{V1}/whoami")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHENTICATED")


def test_records_have_the_fields_of_the_interface_and_what_a_pull_must_cope_with(
    sandbox: Sandbox,
) -> None:
    records = sandbox.state.records
    for record in (record for record in RECORDS.values() if record.fields):
        rows = records(record.name)
        assert set().union(*(row.keys() for row in rows)) == {
            field.name for field in record.fields
        }, record.name
        assert all(
            {field.name for field in record.fields if field.required} <= row.keys() for row in rows
        )
    customers = records("customers")
    assert {len(row.get("documents", [])) for row in customers} == {0, 1, 2, 3}
    assert any("email" not in row for row in customers)
    assert any(not row["firstName"].isascii() for row in customers)


def test_a_created_customer_is_listed_with_the_fields_that_a_create_takes() -> None:
    taken = {
        "erpCode": "0007",
        "documents": [{"number": "1", "isDefault": True}],
        "nickname": "Ana",
    }
    ignored = {"loginCode": "x", "notification": {"send": False}, "birthdate": 5, "createdAt": []}
    with talking(customers=5) as (sandbox, client):
        known = sandbox.state.ids("customers")
        body = {**CUSTOMER, **taken, **ignored, "id": int(known[0])}
        answer = client.post("/customers", json=body)
        listed = pages(client, "/customers", 4)[-1]
        assert listed == answer.json() == sandbox.state.records("customers")[-1]
        assert listed.keys() == {"id", "email", "createdAt", "priceListId", *taken}
        assert (listed["erpCode"], listed["priceListId"], type(listed["createdAt"])) == (
            "0007",
            1,
            str,
        )
        assert str(listed["id"]) not in known
        assert sandbox.state.customer_inputs == [body]
    with talking(customers=1, login_mode="code") as (sandbox, client):
        assert client.post("/customers", json=CUSTOMER).status_code == 400
        assert (
            client.post("/customers", json={"password": "x", "loginCode": "007"}).status_code == 201
        )
        assert sandbox.state.records("customers")[-1]["loginCode"] == "007"


def test_other_writes_are_kept_and_counted() -> None:
    with talking() as (sandbox, client):
        for price in (1.5, 2.25):
            answer = client.patch("/products/7/variants/9", json={"price": price, "sku": "007"})
            assert (answer.status_code, answer.content) == (204, b"")
        variant = sandbox.state.variants[7, 9]
        assert variant.fields == {"price": 2.25, "sku": "007"}
        assert (variant.applied, variant.counts["price"], variant.counts["stock"]) == (2, 2, 0)
        body = {"name": "Cafés", "description": "d", "seo": {"description": "s"}, "order": 1}
        assert (
            client.post("/categories/12/subcategories", json={**body, "id": 99}).status_code == 201
        )
        assert client.post("/logistics/warehouses", json={**WAREHOUSE, "id": 99}).status_code == 201
        assert sandbox.state.subcategories == [{"id": 1, "categoryId": "12", **body}]
        assert sandbox.state.warehouses == [{"id": 1, **WAREHOUSE}]


def test_an_update_below_the_path_of_a_list_changes_its_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids, body = (
        (Field("customerId", "identifier", "integer"),),
        Record("customer_update", (Field("phone", "text"),)),
    )
    update = Operation(
        "update_customer", "legacy", "PATCH", "/customers/{customerId}", params=ids, input=body
    )
    monkeypatch.setattr("orderbridge.sandbox.app.OPERATIONS", (*OPERATIONS, update))
    with talking(customers=2) as (sandbox, client):
        first, second = sandbox.state.records("customers")
        assert (
            client.patch(f"/customers/{first['id']}", json={"phone": "9", "note": "n"}).status_code
            == 204
        )
        assert sandbox.state.records("customers") == [{**first, "phone": "9"}, second]
        assert client.patch("/customers/77", json={"phone": "9"}).status_code == 404
        assert {ids: one.applied for ids, one in sandbox.state.updated[update.name].items()} == {
            (first["id"],): 1
        }


def test_the_truth_is_kept_and_requests_are_logged() -> None:
    with talking(customers=5) as (sandbox, client):
        state = sandbox.state
        ids = state.ids("customers")
        state.remove("customers", ids[0])
        state.change("customers", ids[1], {"lastName": "Ñandú"})
        added = state.add("customers", {"firstName": "Zoë"}, position=0)
        shown = pages(client, "/customers", 4)
        assert [str(row["id"]) for row in shown] == [str(added["id"]), *ids[1:]]
        assert shown[1]["lastName"] == "Ñandú"
        assert state.ever("customers") == {*ids, str(added["id"])}
        assert state.always("customers") == set(ids[1:])
        assert [change.what for change in state.truth] == ["removed", "changed", "added"]
        client.get("/nowhere")
        assert state.log[0] == Logged("GET", "/customers", "page=1&limit=4", 200, "")
        assert state.log[-1] == Logged("GET", "/nowhere", "", 404, "")


def test_cursors_survive_removals_and_insertions() -> None:
    with talking(orders=30) as (sandbox, client):
        first = client.get(f"{V1}/orders", params={"limit": 10}).json()
        sandbox.state.remove("orders", first["data"][-1]["id"])
        sandbox.state.add("orders", {"status": "NEW"}, position=9)
        second = client.get(
            f"{V1}/orders", params={"limit": 10, "startingAfter": first["nextCursor"]}
        ).json()
        assert second["data"][0]["id"] == sandbox.state.ids("orders")[10]
        for number in range(100):
            sandbox.state.add("orders", {"number": number}, position=1)
        ranks = list(sandbox.state.lists["orders"].ranks)
        assert ranks == sorted(set(ranks))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"faults": {"eror_503": 0.5}}, r"Did you mean error_503\?"),
        ({"readings": {"created_status": "204"}}, "Use one of: 201, 200"),
        ({"records": Path("/no/such/folder")}, "is not a folder"),
        ({"stall_s": float("inf")}, "from 0 on"),
        ({"port": 70000}, "65535"),
    ],
)
def test_invalid_configurations_are_errors(config: dict[str, Any], words: str) -> None:
    with pytest.raises(SandboxConfigError, match=words):
        SandboxConfig(**config)


def test_own_records_keep_their_bytes_and_need_no_id(tmp_path: Path) -> None:
    row = '{ "id": 1.0, "total": 12.50, "big": 12345678901234567890.10, "name": "\\u00e1" }'
    (tmp_path / "customers.json").write_text(f"[ {row} ,\n {row.replace('1.0', '2', 1)}\n]")
    (tmp_path / "orders.json").write_text('[{"number":7},{"n":1e3}]')
    with talking(records=tmp_path, promotions=2) as (sandbox, client):
        assert row in client.get("/customers?limit=1").text
        assert sandbox.state.ids("customers") == ["1", "2"]
        assert '[{"number":7},{"n":1e3}]' in client.get(f"{V1}/orders").text
        assert len(client.get("/promotions").json()["data"]) == 2
        assert (
            client.post("/customers", json={"password": "x", "email": "a@example.com"}).status_code
            == 201
        )
        assert len(set(sandbox.state.ids("customers"))) == 3


def test_own_records_that_cannot_be_read(tmp_path: Path) -> None:
    for text in ("", "[1]", '[{"id":{}}]'):
        (tmp_path / "orders.json").write_text(text)
        with pytest.raises(SandboxConfigError, match=r"orders\.json"):
            State(SandboxConfig(records=tmp_path))
