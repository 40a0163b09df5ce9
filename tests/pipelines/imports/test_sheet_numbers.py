"""Numbers of a sheet: cells that are numbers are read as such, and prove nothing about the texts next to them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipelines.imports import Inputs, ReadyInput, RejectedInput, open_inputs
from pipelines.mapping import load
from tests.sources.files.workbooks import sheet, text, workbook


def opened(folder: Path, field: str, cells: list[str | float], mapping: str | None = None) -> Inputs:
    """A sheet with a column of texts and numbers, behind productId and variantId."""
    header = text("A1", "productId") + text("B1", "variantId") + text("C1", field)
    rows = [
        (n, f'<c r="A{n}"><v>1</v></c><c r="B{n}"><v>{n}</v></c>' + cell(f"C{n}", value))
        for n, value in enumerate(cells, 2)
    ]
    file = workbook(folder, ("Hoja1", sheet((1, header), *rows)))
    if mapping is None:
        return open_inputs("variants", file)
    (folder / "mapping.toml").write_text(f'kind = "variants"\n{mapping}', "utf-8")
    return open_inputs("variants", file, load(folder / "mapping.toml"))


def cell(ref: str, value: str | float) -> str:
    return text(ref, value) if isinstance(value, str) else f'<c r="{ref}"><v>{value}</v></c>'


def found(inputs: Inputs, field: str) -> list[Any]:
    """The field of each input, or the codes in a list."""
    return [
        item.body[field] if isinstance(item, ReadyInput) else [p.code for p in item.problems]
        for item in inputs
        if isinstance(item, ReadyInput | RejectedInput)
    ]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ([19.99, 1.234, 12], ["19.99", "1.234", "12"]),
        (["1.234", 19.99, 1.234], [["ambiguous_number"], "19.99", "1.234"]),
        (["1.234", "2,50", 19.99, 1.234], ["1234", "2.50", "19.99", "1.234"]),
        (["1,234", "2.50", 19.99, 1.234], ["1234", "2.50", "19.99", "1.234"]),
        (["1,5", "1.5", 19.99], [["mixed_numbers"], ["mixed_numbers"], "19.99"]),
    ],
    ids=["numbers alone", "texts prove nothing", "texts prove a comma", "texts prove a point", "texts prove both"],
)
def test_texts_are_read_by_texts_and_numbers_as_they_are(tmp_path: Path, cells: Any, values: Any) -> None:
    wanted = [value if isinstance(value, list) else Decimal(value) for value in values]
    assert found(opened(tmp_path, "price", cells), "price") == wanted


def test_numbers_of_a_sheet_prove_no_stock(tmp_path: Path) -> None:
    assert found(opened(tmp_path, "stock", ["1.000", 2.5, 7]), "stock") == [["ambiguous_number"], ["not_whole"], 7]


def test_a_reported_notation_is_that_of_texts(tmp_path: Path) -> None:
    inputs = opened(
        tmp_path,
        "PVP",
        ["1.234", 1.234, 19.99, "2,5"],
        '[numbers]\ndecimal = ","\n[columns]\nproductId = "productId"\nvariantId = "variantId"\nPVP = "price"\n',
    )
    assert found(inputs, "price") == [Decimal("1234"), Decimal("1.234"), Decimal("19.99"), Decimal("2.5")]


def test_a_sheets_numbers_are_written_as_the_texts_of_their_column(tmp_path: Path) -> None:
    """What is written out of the table is read again in one notation."""
    for cells, written in (
        (["2,50", 1.234], ["2,50", "1,234"]),
        (["2.50", 1.234], ["2.50", "1.234"]),
        (["1.000", 1.234], ["1.000", "1·234"]),
        ([1.234], ["1.234"]),
    ):
        table = opened(tmp_path, "price", cells).table  # type: ignore[arg-type] # a list of both
        assert [value for batch in table.batches() for value in batch["price"].to_pylist()] == written


def test_a_lookups_numbers_prove_nothing_of_its_texts(tmp_path: Path) -> None:
    prices: list[tuple[str, str | float]] = [("A", "1.234"), ("B", 19.99)]
    rows = [(n, text(f"A{n}", sku) + cell(f"B{n}", price)) for n, (sku, price) in enumerate(prices, 2)]
    workbook(tmp_path, ("H", sheet((1, text("A1", "code") + text("B1", "PVP")), *rows)), name="prices.xlsx")
    (tmp_path / "file.csv").write_text("productId,variantId,sku\n1,1,A\n1,2,B\n", "utf-8")
    (tmp_path / "mapping.toml").write_text(
        'kind = "variants"\n[columns]\nproductId = "productId"\nvariantId = "variantId"\nsku = "sku"\n'
        '[[lookup]]\nfile = "prices.xlsx"\nmatch = { sku = "code" }\ngive = { price = "PVP" }\n',
        "utf-8",
    )
    inputs = open_inputs("variants", tmp_path / "file.csv", load(tmp_path / "mapping.toml"))
    assert found(inputs, "price") == [["ambiguous_number"], Decimal("19.99")]
