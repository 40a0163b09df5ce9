"""Each reading of each gap, seen from outside."""

from __future__ import annotations

import re
from datetime import date
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from orderbridge.sandbox import SandboxConfig, app
from orderbridge.sandbox.legacy import DELETED
from orderbridge.sources.gaps import GAPS
from tests.sandbox.talk import CUSTOMER, V1, WAREHOUSE, shown, talking

Request = tuple[str, str, Any]
TODAY = date(2026, 3, 8)
VARIANT = "/products/1/variants/1"
CREATE: Request = ("POST", "/customers", CUSTOMER)
SEEN: dict[str, tuple[Request, dict[str, str]]] = {
    "date_format": (("GET", "/customers?limit=1", None), {
        "iso_offset": '.*"createdAt":"2024-03-08T08:00:00-05:00"', "iso_naive": '.*"createdAt":"2024-03-08T08:00:00"',
        "date_only": '.*"createdAt":"2024-03-08"', "epoch_s": '.*"createdAt":"1709902800"',
        "epoch_ms": '.*"createdAt":"1709902800000"', "day_first": '.*"createdAt":"08/03/2024 08:00"',
        "month_first": '.*"createdAt":"03/08/2024 08:00"',
    }),
    "promotions_data": (("GET", "/promotions?limit=60", None), {
        "array": r'.*"data":\[\{"id":301,.*"pages":1,', "object_by_id": '.*"data":{"301":{"id":301,.*"pages":1,',
        "object_wrapped": r'.*"data":{"items":\[{"id":301,', "object_single": '.*"data":{"id":301,.*"pages":60,',
    }),
    "customers_end": (("GET", "/customers?limit=20&page=4", None), {
        "empty_page": r'200.*\n{"data":\[\]}', "pagination": r'200.*\n{"data":\[\],"pagination":{"page":4,"pages":3,',
        "repeat_last": r'200.*\n{"data":\[{"id":1041,', "status_404": "404", "status_400": "400",
    }),
    "legacy_limit": (("GET", "/customers?limit=500", None), {
        "honoured": '.*"id":1060,', "capped": '.*"id":1050,(?!.*"id":1051)',
        "ignored": '.*"id":1020,(?!.*"id":1021)',
    }),
    "legacy_total": (("GET", "/promotions", None), {
        "listed": '.*"total":60,', "with_deleted": f'.*"total":{60 + DELETED},',
    }),
    "legacy_first_page": (("GET", "/promotions?page=1", None), {
        "one": '.*{"id":301,.*"hasPrevPage":false', "zero": '.*{"id":321,.*"hasPrevPage":true',
    }),
    "order_shape": (("GET", f"{V1}/orders?limit=1", None), {
        "nested": r'(?!.*attribute).*"customer":{"id":.*"lines":\[{.*"taxes":\[{', "flat": '.*"lineCount":',
        "wide": r'.*"attribute40":.*"lines":\[{',
    }),
    "order_key": (("GET", f"{V1}/orders?limit=1", None), {
        "id": '.*{"id":"ord_000050001"', "uuid": '.*{"uuid":"ord_000050001"',
    }),
    "adjustment_types": (("GET", f"{V1}/prices/lists", None), {
        "none_only": "(?!.*(PERCENTAGE|markup)).*NONE", "percentage": "(?!.*markup).*PERCENTAGE.*NONE",
        "mixed": ".*PERCENTAGE.*FIXED_AMOUNT.*markup",
    }),
    "created_status": (CREATE, {"201": "201", "200": "200"}),
    "no_content_status": (("PATCH", VARIANT, {"sku": "1"}), {"204": "204", "200": "200"}),
    "created_body": (CREATE, {
        "record": r'.*\n{"id":\d+,.*"email":', "id_only": r'.*\n{"id":\d+}$',
        "wrapped": r'.*\n{"data":{"id":\d+,.*"email":', "empty": r"201\n.*\n\n$",
    }),
    "legacy_auth_failure": (("GET", "/customers", "keys"), {
        "401_errors": r'401.*\n{"errors":', "403_errors": r'403.*\n{"errors":', "401_empty": r"401.*\n\n$",
        "403_text": r"403.*\nForbidden$",
    }),
    "legacy_error_status": (("POST", "/customers", {}), {"400": "400", "422": "422"}),
    "missing_scope": (("GET", f"{V1}/prices/lists", "keys"), {
        "403_error": r'403.*\n{"error":{"code":"MISSING_SCOPE"', "403_empty": r"403.*\n\n$",
        "401_error": r'401.*\n{"error":',
    }),
    "whoami_names": (("GET", f"{V1}/whoami", None), {
        "camel": '.*{"organization":"Dist.*"environment":"SANDBOX"',
        "nested": '.*{"organization":{"id":.*"apiKey":{"env', "terse": '.*{"org":"Dist.*"env":"sandbox"',
    }),
    "subcategory_required": (("POST", "/categories/1/subcategories", {}), {"none": "201", "name": "400"}),
}  # fmt: skip
"""By gap a request, and by reading what its answer begins with: its status, its headers, its body."""


@pytest.mark.parametrize("gap", SEEN)
def test_a_reading_is_seen_in_an_answer(gap: str) -> None:
    (verb, path, body), readings = SEEN[gap]
    assert list(readings) == [*next(one.readings for one in GAPS if one.name == gap)]
    assert SandboxConfig().readings[gap] == next(iter(readings))
    for reading, expected in readings.items():
        with talking(readings={gap: reading}, today=TODAY, customers=60, orders=2) as (
            sandbox,
            client,
        ):
            if body == "keys":
                client.headers = httpx.Headers(
                    {"Authorization": f"Bearer {sandbox.v1_no_scope_key}"}
                )
            answer = client.request(verb, path, json=body if isinstance(body, dict) else None)
            assert re.match(expected, shown(answer), re.S), (reading, shown(answer)[:500])


def test_a_warehouse_is_created_with_the_status_that_is_shown() -> None:
    with talking(readings={"created_status": "200"}) as (_, client):
        assert client.post("/logistics/warehouses", json=WAREHOUSE).status_code == 201


def test_a_rate_is_limited_for_each_family(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 7.0
    monkeypatch.setattr(app, "time", SimpleNamespace(monotonic=lambda: now_s))
    with talking(readings={"rate_limit": "per_second"}, rate_per_s=3) as (_, client):
        statuses = [client.get("/promotions?limit=1").status_code for _ in range(3)]
        assert statuses == [200, 200, 200]
        assert client.get(f"{V1}/whoami").status_code == 200
        now_s = 7.999
        limited = client.get("/customers?limit=1")
        assert (limited.status_code, limited.headers["retry-after"]) == (429, "1")
        now_s = 8.0
        assert client.get("/promotions?limit=1").status_code == 200


def test_prices_and_stock_are_set_or_added() -> None:
    for reading, price, stock in (("set", 0.2, 4), ("increment", 0.3, 7)):
        with talking(readings={"price_semantics": reading, "stock_semantics": reading}) as (
            sandbox,
            client,
        ):
            for body in ({"price": 0.1, "stock": 3}, {"price": 0.2, "stock": 4}):
                client.patch(VARIANT, json=body)
            assert sandbox.state.variants[1, 1].fields == {"price": price, "stock": stock}
