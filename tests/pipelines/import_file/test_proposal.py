"""What an import proposes for columns that names alone do not decide: price lists, and one of several prices."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest

from orderbridge.pipelines.import_file import proposal
from orderbridge.pipelines.import_file.asking import Ask, Interview, nobody
from orderbridge.pipelines.import_file.mappings import (
    DETECTED,
    column_questions,
    keep_mapping,
    new_mapping,
    with_asked_columns,
    with_filled_columns,
)
from orderbridge.pipelines.import_file.reading import read_columns
from orderbridge.pipelines.imports.open import open_input_table, open_inputs
from orderbridge.pipelines.mapping import Mapping, load
from orderbridge.pipelines.plan.current_state import KnownPriceLists
from orderbridge.sources.errors import UsageError

LISTS = ("11", "12")
CODES = ["1", "2", "3"]
PRICES = ["10,50", "9", "2,25"]

CASES = [
    ("customers", {"Tarifa": ["11", "12"]}, {"Tarifa": "priceListId"}, {}),
    ("customers", {"Tarifa": ["", " "]}, {}, {}),
    ("customers", {"Tarifa": [""], "Lista de precios": [""]}, {}, {}),
    ("customers", {"Tarifa": [""], "Lista de precios": LISTS},
     {"Lista de precios": "priceListId"}, {"Tarifa": None}),
    ("customers", {"priceListId": [""]}, {"priceListId": "priceListId"}, {}),
    ("customers", {"column_2": ["", " "], "column_3": ["", "x"], "Nota": [""]}, {},
     {"column_3": None, "Nota": None}),
    ("customers", {"column_2": [], "Nota": []}, {}, {"column_2": None, "Nota": None}),
    ("customers", {"Tarifa": CODES}, {}, {"Tarifa": None}),
    ("customers", {"priceListId": CODES}, {"priceListId": "priceListId"}, {}),
    ("customers", {"Tarifa 2": CODES, "Tarifa 3": LISTS}, {},
     {"Tarifa 2": None, "Tarifa 3": "priceListId"}),
    ("customers", {"Tarifa": CODES, "Lista de precios": LISTS}, {},
     {"Tarifa": None, "Lista de precios": "priceListId"}),
    ("variants", {"Tarifa 1": PRICES, "Tarifa 2": PRICES, "Peso": PRICES}, {"Peso": "weight"},
     {"Tarifa 1": "price", "Tarifa 2": "price"}),
    ("variants", {"Tarifa 1": PRICES, "Tarifa 2": [""]}, {"Tarifa 1": "price"}, {"Tarifa 2": None}),
    ("variants", {"Precio 1": PRICES, "Tarifa 2": PRICES}, {"Precio 1": "price"},
     {"Tarifa 2": None}),
    ("variants", {"PVP": PRICES, "PVP 2": PRICES}, {"PVP": "price"}, {"PVP 2": None}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "columns", "filled", "asked"), CASES)
def test_a_price_list_that_is_not_known_and_one_of_several_prices_are_asked(
    kind: str, columns: dict[str, list[str]], filled: dict[str, str], asked: dict[str, str | None]
) -> None:
    known = KnownPriceLists(pa.array(LISTS))
    with mock.patch.object(proposal, "known_price_lists", return_value=known) as read:
        proposed = proposal.propose_columns([*columns], kind, columns)
    assert read.call_count <= 1, "the warehouse is opened once for a file"
    assert {name: one.field for name, one in proposed.columns.items()} == filled
    questions = column_questions(proposed, columns)
    assert {one.about: one.guess for one in questions} == asked


def test_nothing_is_sent_while_a_price_list_is_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAREHOUSE__PATH", str(tmp_path / "warehouse.duckdb"))
    monkeypatch.setenv("SOURCES__LEGACY__BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("SOURCES__LEGACY__API_KEY", "key")
    monkeypatch.setenv("SOURCES__LEGACY__ENVIRONMENT", "sandbox")
    file = tmp_path / "clientes.csv"
    columns = ("Código", "Nombre", "Correo", "Tarifa")
    header = f"{';'.join(columns)}\n"
    file.write_text(header, "utf-8")

    def asked(person: Ask) -> Mapping | None:
        interview = Interview.about("customers", file, DETECTED, (), columns, person)
        return new_mapping("customers", file, "file", interview)

    assert asked(nobody) is None, "a header alone makes no mapping for the files after it"
    file.write_text(f"{header}C1;Ana;ana@example.com;1\n", "utf-8")
    with pytest.raises(UsageError, match="'Tarifa' may be priceListId, and its values are not"):
        asked(nobody)
    answered = asked(lambda _: {"column/Tarifa": "priceListId"})
    assert answered is not None
    assert answered.columns["Tarifa"].answered, "no later run asks again"
    keep_mapping(answered)
    (tmp_path / "warehouse.duckdb").write_text("damaged", "ascii")
    kept = read_columns("customers", file)
    assert kept.columns[-1].fields == ("priceListId",), "what is kept needs no warehouse"


def test_a_price_list_whose_values_come_late_in_the_file_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAREHOUSE__PATH", str(tmp_path / "warehouse.duckdb"))
    known = KnownPriceLists(pa.array(LISTS))
    monkeypatch.setattr(proposal, "known_price_lists", lambda: known)
    columns = ("Código", "Nombre", "Correo", "Tarifa")
    file = tmp_path / "clientes.csv"
    lines = [f"C{at};Ana;ana{at}@example.com;" for at in range(700)]

    def made(price_list: str) -> Mapping | None:
        rows = [*lines, f"C999;Eva;eva@example.com;{price_list}"]
        file.write_text("\n".join([";".join(columns), *rows, ""]), "utf-8")
        interview = Interview.about("customers", file, DETECTED, (), columns, nobody)
        return new_mapping("customers", file, "file", interview)

    mapping = made("11")
    assert mapping is not None
    assert (mapping.columns["Tarifa"].field, mapping.unfilled) == ("priceListId", ())
    with pytest.raises(UsageError, match="'Tarifa' may be priceListId, and its values are not"):
        made("3")
    empty = made("")
    assert empty is not None
    assert empty.unfilled == ("Tarifa",)


def test_a_price_list_that_was_empty_is_asked_once_it_has_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAREHOUSE__PATH", str(tmp_path / "warehouse.duckdb"))
    known = KnownPriceLists(pa.array(LISTS))
    monkeypatch.setattr(proposal, "known_price_lists", lambda: known)
    columns = ("Código", "Nombre", "Correo", "Tarifa")

    def written(price_list: str) -> Path:
        file = tmp_path / "clientes.csv"
        row = f"C1;Ana;ana@example.com;{price_list}"
        file.write_text(f"{';'.join(columns)}\n{row}\n", "utf-8")
        return file

    def read(file: Path, person: Ask = nobody) -> Mapping:
        interview = Interview.about("customers", file, DETECTED, (), columns, person)
        table = open_input_table(file, None)
        mapping = with_filled_columns(table, kept)
        return with_asked_columns(table, mapping, interview)

    first = written("")
    interview = Interview.about("customers", first, DETECTED, (), columns, nobody)
    made = new_mapping("customers", first, "file", interview)
    assert made is not None
    kept = load(keep_mapping(made))
    assert kept.unfilled == ("Tarifa",)
    assert open_inputs("customers", first, kept, login_mode="email").notes == []
    assert read(first) == kept
    known_list = read(written("11"))
    assert (known_list.columns["Tarifa"].field, known_list.unfilled) == ("priceListId", ())
    of_the_erp = written("3")
    with pytest.raises(UsageError, match="'Tarifa' may be priceListId, and its values are not"):
        read(of_the_erp)
    (note,) = open_inputs("customers", of_the_erp, kept, login_mode="email").notes
    assert "Tarifa" in note, "a plan with the kept mapping says that the column is not sent"
    answered = read(of_the_erp, lambda _: {"column/Tarifa": "ignore"})
    assert (answered.columns["Tarifa"].field, answered.unfilled) == (None, ())
