"""The contract: its limits are held by the models of the inputs, and a new field touches it and nothing else."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from orderbridge.sources.contract import Field
from orderbridge.sources.inputs import fits, model, paths, pattern, violations
from orderbridge.sources.kinds import KINDS

LEAST: dict[str, dict[str, Any]] = {
    "customers": {"password": "x"},
    "variants": {},
    "subcategories": {"name": "x"},
    "warehouses": {"name": "x", "isDefault": True, "location": {}},
}
HELD: list[tuple[str, dict[str, Any]]] = [
    (
        "customers",
        {
            "notification": {"send": True},
            "priceListId": Decimal(7),
            "documents": [{"isDefault": False}],
        },
    ),
    (
        "variants",
        {
            "stock": 2**53 - 1,
            "order": -(2**63),
            "jumpFactor": 2**63 - 1,
            "images": [{"url": "u"}] * 5,
        },
    ),
    (
        "variants",
        {"salesUnitFactor": Decimal("0.01"), "price": Decimal("-1.123456"), "stock": -(2**53) + 1},
    ),
    (
        "variants",
        {
            "jumpFactor": 1,
            "attributes": [{"name": "Color", "value": "red"}],
            "priceIsTaxExempt": False,
        },
    ),
    ("subcategories", {"order": 0, "seo": {"description": ""}}),
    ("warehouses", {"location": {"coordinates": [Decimal("1.5")], "divisions": {"level4": "x"}}}),
]
BROKEN: list[tuple[str, dict[str, Any], str, str]] = [
    *(("customers", {"email": wrong}, "email", "type") for wrong in (1, True, None)),
    *(("customers", {field: ""}, field, "min_length") for field in ("email", "loginCode")),
    ("customers", {"documents": []}, "documents", "min_items"),
    ("customers", {"documents": {}}, "documents", "type"),
    ("customers", {"documents": [{}, {"number": 1}]}, "documents[1].number", "type"),
    ("customers", {"notification": {"send": "true"}}, "notification.send", "type"),
    ("customers", {"colour": "red"}, "colour", "unknown_field"),
    *(("variants", {"stock": wrong}, "stock", "type") for wrong in ("1", 1.0, True, Decimal(1))),
    ("variants", {"stock": 2**53}, "stock", "maximum"),
    ("variants", {"stock": -(2**53)}, "stock", "minimum"),
    ("variants", {"order": 2**63}, "order", "maximum"),
    ("variants", {"jumpFactor": 0}, "jumpFactor", "minimum"),
    *(("variants", {"price": wrong}, "price", "type") for wrong in ("1", 1.5, True)),
    ("variants", {"price": Decimal("NaN")}, "price", "not_a_number"),
    ("variants", {"price": Decimal("1234567890.123456")}, "price", "too_many_digits"),
    ("variants", {"salesUnitFactor": Decimal("0.001")}, "salesUnitFactor", "too_many_decimals"),
    ("variants", {"images": [{"url": "u"}] * 6}, "images", "max_items"),
    ("variants", {"images": [{"order": Decimal(1)}]}, "images[0].url", "required"),
    ("variants", {"attributes": [{"name": "Color"}]}, "attributes[0].value", "required"),
    ("variants", {"priceIsTaxExempt": 1}, "priceIsTaxExempt", "type"),
    ("warehouses", {"location": "{}"}, "location", "type"),
    ("warehouses", {"location": {"coordinates": ["1"]}}, "location.coordinates[0]", "type"),
]


def reported(kind: str, body: dict[str, Any]) -> list[tuple[str, str]]:
    return [(found.field, found.code) for found in violations(kind, [body])]


@pytest.mark.parametrize(("kind", "fields"), HELD)
def test_a_body_within_the_limits_is_valid(kind: str, fields: dict[str, Any]) -> None:
    assert reported(kind, LEAST[kind] | fields) == []
    model(kind).model_validate(LEAST[kind] | fields)


@pytest.mark.parametrize(("kind", "fields", "path", "code"), BROKEN)
def test_each_limit_is_held_and_named(
    kind: str, fields: dict[str, Any], path: str, code: str
) -> None:
    assert reported(kind, LEAST[kind] | fields) == [(path, code)]


def test_what_is_required_is_asked_for() -> None:
    absent = {
        kind: [path for path, code in reported(kind, {}) if code == "required"] for kind in LEAST
    }
    assert absent == {kind: list(fields) for kind, fields in LEAST.items()}
    modes: list[tuple[Any, str]] = [("email", "email"), ("code", "loginCode")]
    for mode, field in modes:
        body = {"password": "x"}
        assert [v.field for v in violations("customers", [body], mode)] == [field]
        assert not list(violations("customers", [{**body, field: "x"}], mode))
    assert not list(violations("customers", [{"email": "a@b"}], "email", with_password=False))
    found = list(violations("customers", [{"password": "secret"}], with_password=False))
    assert [(v.field, v.code) for v in found] == [("password", "unknown_field")], (
        "a plan's body has none"
    )
    assert "secret" not in str(found)


def test_violations_say_which_body_breaks_them_and_nothing_of_its_values() -> None:
    long = {
        "sku": 987654,
        "price": Decimal("98765432109876.54321"),
        "images": [{"url": "98765"}] * 6,
    }
    found = list(
        violations(
            "variants", [{"stock": 1}, {"stock": "x"}, {"stock": 2}, {"jumpFactor": 0}, long]
        )
    )
    expected = [(1, "stock"), (3, "jumpFactor"), (4, "images"), (4, "price"), (4, "sku")]
    assert sorted((violation.row, violation.field) for violation in found) == expected
    assert "9876" not in str(found)
    assert "more than 5 items" in str(found)


def test_paths_name_each_value_once_and_those_of_the_request_first() -> None:
    assert list(paths("variants"))[:3] == ["productId", "variantId", "sku"]
    assert {"images[].url", "attributes[].name"} <= paths("variants").keys()
    assert {"location.coordinates[]", "location.divisions.level4"} <= paths("warehouses").keys()
    assert list(paths("subcategories")) == [
        "categoryId",
        "name",
        "description",
        "seo.description",
        "order",
    ]
    assert pattern("images[12].url") == pattern("images[+].url") == "images[].url"
    field, day = KINDS["variants"].record.field("jumpFactor"), Field("loyalSince", "date")
    assert (fits(field, [1, 2, 2**63 - 1]), fits(field, [1, 0])) == (True, False)
    assert fits(day, ["2026-01-31"])
    assert not any(
        fits(day, [wrong])
        for wrong in (20260131, "31/01/2026", "2026-02-31", "2026-W01-1", "", None)
    )


ROOT = Path(__file__).parents[2]
SCRIPT = """
import tomllib
from pathlib import Path

loads = tomllib.loads


def with_fields(text):
    for field, added in (
        ('birthdate = { type = "date", json = "string", meaning = "YYYY-MM-DD" }',
         'loyaltyTier = { type = "text", meaning = "level" }\\ntags = { type = "array", items = "text" }'),
        ('forTaxes = { type = "boolean" }', 'issuedOn = { type = "date", json = "string" }'),
        ('password = { type = "text", required = true, min_length = 1 }', 'loyaltyTier = { type = "text" }'),
    ):
        assert text.count(field) == 1
        text = text.replace(field, field + "\\n" + added)
    return loads(text)


tomllib.loads = with_fields
import orderbridge.sources.contract

tomllib.loads = loads

from orderbridge.sources.inputs import paths
from tests.pipelines.bridge import bridge

with bridge(Path.cwd()) as made:
    first = made.platform.state.ids("customers")[0]
    documents = [{"number": "1", "issuedOn": "2021-03-04"}]
    made.platform.state.change("customers", first, {"loyaltyTier": "gold", "tags": ["a", "b"], "documents": documents})
    made.pull("customers")
    print(made.rows("SELECT loyalty_tier, tags, _extra FROM raw.customers WHERE id = $1", first))
    print(made.rows("SELECT issued_on::TEXT, _extra FROM raw.customers__documents WHERE customer_id = $1", first))
    print(made.one("SELECT comment FROM duckdb_columns() WHERE column_name = 'loyalty_tier'"))
print("loyaltyTier" in paths("customers"))
"""


def test_a_new_field_is_added_in_the_contract_alone(tmp_path: Path) -> None:
    environment = {
        "PYTHONPATH": str(ROOT),
        "PATH": "",
        "HOME": str(tmp_path),
        "DLT_DATA_DIR": str(tmp_path / "dlt"),
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.splitlines() == [
        "[('gold', '[\"a\",\"b\"]', None)]",
        "[('2021-03-04', None)]",
        "level; loyaltyTier of GET /customers",
        "True",
    ], done.stderr
