"""Numbers of a sheet: cells that are numbers are read as such, and prove nothing about the texts next to them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipelines.imports import Inputs, open_inputs
from pipelines.mapping import load
from tests.pipelines.imports.opening import VARIANT, items_of, opened, outcomes
from tests.sources.files.workbooks import cell, sheet, text, workbook


def of_sheet(folder: Path, field: str, cells: list[str | float], mapping: str | None = None) -> Inputs:
    """A sheet with a column of texts and numbers, behind productId and variantId."""
    header = text("A1", "productId") + text("B1", "variantId") + text("C1", field)
    rows = [(n, cell(f"A{n}", 1) + cell(f"B{n}", n) + cell(f"C{n}", value)) for n, value in enumerate(cells, 2)]
    file = workbook(folder, ("Hoja1", sheet((1, header), *rows)))
    (folder / "mapping.toml").write_text(f'kind = "variants"\n{mapping}', "utf-8")
    return open_inputs("variants", file, load(folder / "mapping.toml") if mapping is not None else None)


@pytest.mark.parametrize(
    ("field", "cells", "values", "written"),
    [
        ("price", [19.99, 1.234, 12], ["19.99", "1.234", "12"], "1.234"),
        ("price", ["1.234", 19.99, 1.234], ["ambiguous_number", "19.99", "1.234"], "1·234"),
        ("price", ["1.234", "2,50", 19.99, 1.234], ["1234", "2.5", "19.99", "1.234"], "1,234"),
        ("price", ["1,234", "2.50", 19.99, 1.234], ["1234", "2.5", "19.99", "1.234"], "1.234"),
        ("price", ["1,5", "1.5", 1.234], ["mixed_numbers", "mixed_numbers", "1.234"], "1·234"),
        ("stock", ["1.000", 2.5, 7], ["ambiguous_number", "not_whole", "7"], "2·5"),
    ],
)
def test_texts_are_read_by_texts_and_numbers_as_they_are(
    tmp_path: Path, field: str, cells: Any, values: list[str], written: str
) -> None:
    inputs = of_sheet(tmp_path, field, cells)
    found = [str(one[field]) if isinstance(one, dict) else one[0].split()[-1] for one in outcomes(items_of(inputs))]
    assert found == values
    own = [one for batch in inputs.table.batches() for one in batch[field].to_pylist()]
    assert written in own, "what is written out of the table is read again in one notation"


def test_a_reported_notation_is_that_of_texts(tmp_path: Path) -> None:
    mapping = f'[numbers]\ndecimal = ","\n{VARIANT}PVP = "price"\n'
    found = outcomes(items_of(of_sheet(tmp_path, "PVP", ["1.234", 1.234, 19.99, "2,5"], mapping)))
    assert [body["price"] for body in found] == [Decimal(price) for price in ("1234", "1.234", "19.99", "2.5")]


def test_a_column_that_is_a_text_too_keeps_its_numbers(tmp_path: Path) -> None:
    mapping = f'{VARIANT}PVP = {{ field = "price", also = ["sku"] }}\n'
    found = outcomes(items_of(of_sheet(tmp_path, "PVP", ["2,50", 1.234], mapping)))
    assert [body["price"] for body in found] == [Decimal("2.5"), Decimal("1.234")]


def test_a_lookups_numbers_prove_nothing_of_its_texts(tmp_path: Path) -> None:
    rows = [(2, text("A2", "A") + text("B2", "1.234")), (3, text("A3", "B") + cell("B3", 19.99))]
    workbook(tmp_path, ("H", sheet((1, text("A1", "code") + text("B1", "PVP")), *rows)), name="prices.xlsx")
    lookup = '[[lookup]]\nfile = "prices.xlsx"\nmatch = { sku = "code" }\ngive = { price = "PVP" }\n'
    inputs = opened(tmp_path, "productId,variantId,sku\n1,1,A\n1,2,B\n", f'{VARIANT}sku = "sku"\n{lookup}')
    assert outcomes(items_of(inputs)) == [["2 - price ambiguous_number"], {"sku": "B", "price": Decimal("19.99")}]
