"""The contract: its limits are held by the models of the inputs, and a new field touches it and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sources.contract import Field
from sources.inputs import ITEM_FIELDS, fits, model, paths, pattern, required, violations
from sources.kinds import KINDS

RIGHT: dict[str, Any] = {
    "text": "a",
    "identifier": "1",
    "integer": 1,
    "number": Decimal("1.5"),
    "boolean": True,
    "date": "2026-01-31",
    "decimal_text": "1.5",
}
WRONG: dict[str, list[Any]] = {
    "text": [1, True, Decimal(1), None, [], {}],
    "integer": ["1", 1.0, 1.5, True, Decimal(1), None],
    "number": ["1", 1.5, True, None, Decimal("NaN"), Decimal("Infinity")],
    "boolean": ["true", 1, 0, None],
    "date": [20260131, "31/01/2026", "2026-02-31", "2026-W01-1", None],
    "object": ["{}", [], 1, None],
    "array": ["[]", {}, 1, None],
}


def value(field: Field) -> Any:
    if field.type == "object":
        return {inner.name: value(inner) for inner in field.fields}
    if field.type == "array":
        item = {inner.name: value(inner) for inner in field.fields} if field.fields else RIGHT[field.items or "text"]
        return [item] * max(1, field.min_items)
    return max(1, field.minimum or 1) if field.type == "integer" else RIGHT[field.type]


def whole(kind: str) -> dict[str, Any]:
    return {field.name: value(field) for field in KINDS[kind].record.fields}


def all_fields(kind: str) -> Iterator[tuple[str, Field, tuple[str | int, ...]]]:
    """Every field at every depth, with the way to it in a whole body."""

    def inside(fields: tuple[Field, ...], way: tuple[str | int, ...]) -> Iterator[tuple[Field, tuple[str | int, ...]]]:
        for field in fields:
            yield field, (*way, field.name)
            yield from inside(field.fields, (*way, field.name, *((0,) if field.type == "array" else ())))

    for field, way in inside(KINDS[kind].record.fields, ()):
        yield kind, field, way


EVERY = [found for kind in KINDS for found in all_fields(kind)]


def put(body: dict[str, Any], way: tuple[str | int, ...], value: Any, *, is_absent: bool = False) -> dict[str, Any]:
    here: Any = body
    for step in way[:-1]:
        here = here[step]
    here[way[-1]] = value
    if is_absent:
        del here[way[-1]]
    return body


def path_of(way: tuple[str | int, ...]) -> str:
    text = ""
    for step in way:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def reported(kind: str, body: dict[str, Any]) -> list[tuple[str, str]]:
    return [(found.field, found.code) for found in violations(kind, [body])]


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_with_every_field_of_the_contract_and_no_other_is_valid(kind: str) -> None:
    assert reported(kind, whole(kind)) == []
    model(kind).model_validate(whole(kind))
    assert reported(kind, {**whole(kind), "colour": "red"}) == [("colour", "unknown_field")]


def test_violations_say_which_body_breaks_them_and_nothing_of_its_values() -> None:
    long = {"sku": 987654, "price": Decimal("98765432109876.54321"), "images": [{"url": "98765"}] * 6}
    found = list(violations("variants", [{"stock": 1}, {"stock": "x"}, {"stock": 2}, {"jumpFactor": 0}, long]))
    expected = [(1, "stock"), (3, "jumpFactor"), (4, "images"), (4, "price"), (4, "sku")]
    assert sorted((violation.row, violation.field) for violation in found) == expected
    assert "9876" not in str(found)


@pytest.mark.parametrize(("kind", "field", "way"), EVERY)
def test_the_type_and_every_limit_of_a_field_are_held(kind: str, field: Field, way: tuple[str | int, ...]) -> None:
    for wrong in WRONG[field.type]:
        found = reported(kind, put(whole(kind), way, wrong))
        assert [where for where, _ in found] == [path_of(way)], wrong
        assert found[0][1] in ("type", "not_a_number", "not_a_date")
    broken: list[tuple[Any, str]] = []
    allowed: list[Any] = []
    if field.min_length:
        broken.append(("a" * (field.min_length - 1), "min_length"))
    if field.min_items:
        broken.append((value(field)[: field.min_items - 1], "min_items"))
    if field.max_items is not None:
        broken.append((value(field) * (field.max_items + 1), "max_items"))
        allowed.append(value(field) * field.max_items)
    if field.minimum is not None:
        broken.append((type(value(field))(field.minimum - 1), "minimum"))
    if field.max_decimals is not None:
        broken.append((Decimal(1).scaleb(-field.max_decimals - 1), "too_many_decimals"))
        allowed.append(Decimal(1).scaleb(-field.max_decimals))
    if field.type == "integer":
        allowed.append(2**63 - 1 if field.int64 else 2**53 - 1)
        broken.append((allowed[-1] + 1, "maximum"))
    if field.type == "number" and field.max_decimals is None:
        broken.append((Decimal("1234567890.123456"), "too_many_digits"))
    for wrong, code in broken:
        (violation,) = violations(kind, [put(whole(kind), way, wrong)])
        assert (violation.field, violation.code) == (path_of(way), code)
        assert re.search(r"\d", violation.words)
    assert not [most for most in allowed if reported(kind, put(whole(kind), way, most))]
    siblings = KINDS[kind].record.fields if len(way) == 1 else ()
    must = field.required or (bool(siblings) and field.name in required(kind))
    in_item = len(way) == 3 and field.name in ITEM_FIELDS
    absent = reported(kind, put(whole(kind), way, None, is_absent=True))
    assert absent == ([(path_of(way), "required")] if must or in_item else [])


def test_a_customer_needs_what_customers_log_in_by_and_a_plans_body_has_no_password() -> None:
    modes: list[tuple[Any, str]] = [("email", "email"), ("code", "loginCode")]
    for mode, field in modes:
        body = {"password": "x"}
        assert [v.field for v in violations("customers", [body], mode)] == [field]
        assert not list(violations("customers", [{**body, field: "x"}], mode))
    assert not list(violations("customers", [{"email": "a@b"}], "email", with_password=False))
    found = list(violations("customers", [{"password": "secret"}], with_password=False))
    assert [(v.field, v.code) for v in found] == [("password", "unknown_field")]
    assert "secret" not in str(found)


def test_paths_name_each_value_once_and_those_of_the_request_first() -> None:
    assert list(paths("variants"))[:3] == ["productId", "variantId", "sku"]
    assert {"images[].url", "attributes[].name"} <= paths("variants").keys()
    assert {"location.coordinates[]", "location.divisions.level4"} <= paths("warehouses").keys()
    assert list(paths("subcategories")) == ["categoryId", "name", "description", "seo.description", "order"]
    assert pattern("images[12].url") == pattern("images[+].url") == "images[].url"


def test_values_of_a_field_fit_all_or_not() -> None:
    field = KINDS["variants"].record.field("jumpFactor")
    assert fits(field, [1, 2, 2**63 - 1])
    assert not fits(field, [1, 0])


ROOT = Path(__file__).parents[2]
SCRIPT = """
import tomllib
from pathlib import Path

loads = tomllib.loads


def with_fields(text):
    for field, added in (
        ('birthdate = { type = "date", json = "string", meaning = "YYYY-MM-DD" }',
         'loyaltyTier = { type = "text", meaning = "level of the customer" }\\n'
         'loyalSince = { type = "date", json = "string" }\\ntags = { type = "array", items = "text" }'),
        ('forTaxes = { type = "boolean" }', 'issuedOn = { type = "date", json = "string", meaning = "day of issue" }'),
        ('password = { type = "text", required = true, min_length = 1 }',
         'loyaltyTier = { type = "text", min_length = 3 }'),
    ):
        assert text.count(field) == 1
        text = text.replace(field, field + "\\n" + added)
    return loads(text)


tomllib.loads = with_fields
import sources.contract

tomllib.loads = loads

from pipelines.reconcile.reconcile import reconcile
from docs.dictionary import pages
from sandbox.validation import problems
from sources.inputs import paths
from sources.kinds import KINDS
from sources.legacy import legacy
from tests.pipelines.bridge import bridge

with bridge(Path.cwd()) as made:
    first = made.platform.state.ids("customers")[0]
    documents = [{"number": "1", "issuedOn": "2021-03-04"}]
    changed = {"loyaltyTier": "gold", "loyalSince": "2020-02-29", "tags": ["a", "b"], "documents": documents}
    made.platform.state.change("customers", first, changed)
    made.pull("customers")
    print(made.rows("SELECT id = $1, loyalty_tier, loyal_since::TEXT, tags, _extra FROM raw.customers "
                    "WHERE loyalty_tier IS NOT NULL", first))
    print(made.rows("SELECT customer_id = $1, number, issued_on::TEXT, _extra FROM raw.customers__documents "
                    "WHERE issued_on IS NOT NULL", first))
    print(made.rows("SELECT count(*) FROM ops.observations WHERE value IN ('loyaltyTier', 'loyalSince', 'issuedOn')"))
    for column in made.rows("SELECT column_name, data_type, comment FROM duckdb_columns() "
                            "WHERE column_name IN ('loyalty_tier', 'loyal_since', 'issued_on')"):
        print(*column, sep=" | ")
    reconcile()
    print(made.one("SELECT document_count FROM reconciled.customers WHERE customer_id = $1", first))
print([problem.message for problem in problems(KINDS["customers"].record, {"password": "x", "loyaltyTier": "a"})])
print("loyaltyTier" in paths("customers"))
print(*[line for _, page in pages() for line in page.splitlines() if "loyalty_tier" in line])
columns = legacy("https://localhost", "none").customers.columns
print(columns["loyalty_tier"]["description"], columns["loyal_since"]["data_type"])
"""


def test_a_new_field_is_added_in_the_contract_alone(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path), "DLT_DATA_DIR": str(tmp_path / "dlt")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "[(True, 'gold', '2020-02-29', '[\"a\",\"b\"]', None)]",
        "[(True, '1', '2021-03-04', None)]",
        "[(0,)]",
        "loyalty_tier | VARCHAR | level of the customer; loyaltyTier of GET /customers",
        "loyal_since | DATE | loyalSince of GET /customers",
        "issued_on | DATE | day of issue; documents[].issuedOn of GET /customers",
        "1",
        "['loyaltyTier must have at least 3 characters']",
        "True",
        "| `loyalty_tier`<br>VARCHAR | level of the customer<br>loyaltyTier of GET /customers |",
        "level of the customer date",
    ], done.stderr
