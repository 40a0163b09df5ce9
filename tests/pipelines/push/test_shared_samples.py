"""Real exports from file to confirmed, where they are on the machine: as .csv and as .xlsx.

What the sandbox holds in the end is compared with the file as Python's csv module reads it.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.plan.make import PlanOptions, make_plan
from pipelines.pull.model import PullOptions
from pipelines.pull.pull import pull
from tests.pipelines.push.plans import Place, outcomes
from tests.sources.files.samples import NO_SAMPLES, SAMPLES, as_workbook

pytestmark = pytest.mark.skipif(not SAMPLES, reason=NO_SAMPLES)
GUIDE = Path(__file__).parents[3] / "docs" / "mapping.md"
ARTICLES = """kind = "variants"
ignore = ["Descripción"]
[numbers]
decimal = ","
thousands = "."
[columns]
Producto = "productId"
Variante = "variantId"
"Artículo" = "erpCode"
PVP = "price"
Existencias = "stock"
"Exento IVA" = "priceIsTaxExempt"
"Múltiplo" = "salesUnitFactor"
"Escalón" = "jumpFactor"
Peso = "weight"
"""
TEXTS = {"Código": "erpCode", "Nombre": "firstName", "Apellidos": "lastName", "Teléfono": "phone", "Correo": "email"}
DOCUMENT = {"NIF": "number", "Razón social": "fiscalName", "Dirección fiscal": "fiscalAddress"}
Record = dict[str, Any]


def rows_of(name: str) -> list[dict[str, str]]:
    encoding = "cp1252" if name.startswith("erp/") else "utf-8"
    with SAMPLES[name].open(encoding=encoding, newline="") as file:
        return list(csv.DictReader(file, delimiter=";" if name.startswith("erp/") else ","))


@pytest.fixture(params=["csv", "xlsx"])
def given(request: pytest.FixtureRequest, at: Place) -> Callable[[str], Path]:
    """The path of a sample in the format under test."""
    return lambda name: SAMPLES[name] if request.param == "csv" else as_workbook(at.folder, SAMPLES[name])


def confirmed(at: Place, options: PlanOptions) -> Counter[str]:
    """Plans and pushes a file. The number of lines by outcome."""
    made = make_plan(options)
    at.push(made.folder)
    return Counter(outcomes(made.folder).values())


def number(text: str) -> float:
    return float(text.replace(".", "").replace(",", "."))


def test_customers_of_the_erp(at: Place, given: Callable[[str], Path]) -> None:
    pull(PullOptions(("customers",)))
    options = PlanOptions("customers", given("erp/clientes"), out=at.folder / "plan", passwords="file")
    assert confirmed(at, options) == {"confirmed.confirmed": 80, "rejected.rejected": 11}
    expected = []
    for row in rows_of("erp/clientes"):
        document = {field: row[name] for name, field in DOCUMENT.items() if row[name]}
        fields = {field: row[name] for name, field in TEXTS.items() if row[name]}
        price_list = {"priceListId": int(row["Lista de precios"])} if row["Lista de precios"] else {}
        if row["Correo"]:
            expected.append({**fields, **price_list, "documents": [document]})
    ours = ("password", "notification")
    inputs = [{name: v for name, v in body.items() if name not in ours} for body in at.platform.state.customer_inputs]
    assert inputs == expected


def test_variants_of_the_erp(at: Place, given: Callable[[str], Path]) -> None:
    (at.folder / "articulos.toml").write_text(ARTICLES, "utf-8")
    mapping = at.folder / "articulos.toml"
    options = PlanOptions("variants", given("erp/articulos"), mapping=mapping, out=at.folder / "plan")
    assert confirmed(at, options) == {"confirmed.confirmed": 77}
    expected: dict[tuple[int, int], Record] = {}
    for row in rows_of("erp/articulos"):
        fields: Record = {"erpCode": row["Artículo"], "priceIsTaxExempt": row["Exento IVA"] == "S"}
        for name, field in (("Múltiplo", "salesUnitFactor"), ("Escalón", "jumpFactor"), ("Existencias", "stock"),
                            ("PVP", "price"), ("Peso", "weight")):  # fmt: skip
            fields |= {field: number(row[name])} if row[name] else {}
        expected[int(row["Producto"]), int(row["Variante"])] = fields
    assert {ids: variant.fields for ids, variant in at.platform.state.variants.items()} == expected


@pytest.mark.parametrize(("shop", "variants"), [("apparel", 22), ("home-and-garden", 21), ("jewelery", 23)])
def test_variants_of_a_shop(at: Place, given: Callable[[str], Path], shop: str, variants: int) -> None:
    """The mapping of docs/mapping.md."""
    toml = re.search(r"## A shop's export.*?```toml\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert toml is not None
    (at.folder / "shop.toml").write_text(toml[1], "utf-8")
    rows = rows_of(f"shopify/{shop}")
    names: dict[str, str] = {}
    ids = ["handle,option,product_id,variant_id"]
    expected: dict[tuple[int, int], Record] = {}
    for row in rows:
        names.setdefault(row["Handle"], row["Option1 Name"])
        if not row["Variant Price"]:
            continue
        key = len(names), len(ids)
        ids.append(f'{row["Handle"]},"{row["Option1 Value"]}",{key[0]},{key[1]}')
        fields: Record = {"price": float(row["Variant Price"]), "stock": int(row["Variant Inventory Qty"])}
        if names[row["Handle"]] != "Title":
            fields["attributes"] = [{"name": names[row["Handle"]], "value": row["Option1 Value"]}]
        if row["Variant Image"]:
            fields["images"] = [{"url": row["Variant Image"]}]
        expected[key] = fields
    (at.folder / "ids.csv").write_text("\n".join(ids) + "\n", "utf-8")
    file, mapping = given(f"shopify/{shop}"), at.folder / "shop.toml"
    outcome = confirmed(at, PlanOptions("variants", file, mapping=mapping, out=at.folder / "plan"))
    skipped = Counter({"unsent.skipped": len(rows) - variants})
    assert outcome == Counter({"confirmed.confirmed": variants}) + skipped
    assert {ids: variant.fields for ids, variant in at.platform.state.variants.items()} == expected
