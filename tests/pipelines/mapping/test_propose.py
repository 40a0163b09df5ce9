"""Which column is which field: by names, values and neighbours; what these do not prove is left to a person."""

from __future__ import annotations

import pytest

from orderbridge.pipelines.mapping import Mapping, assume, propose, to_toml

CODES = ["A-0017", "A-0018", "B-2001", "B-2002"]
SIZED = ["Tornillo M8 x 40", "Arandela plana 10 mm", "Martillo", "Cinta aislante 19mm x 20m"]
ARTICLES = ["Tornillo hexagonal", "Arandela plana", "Tuerca ciega", "Taco de nailon"]
FIRMS = ["Talleres Ibáñez, S.L.", "Bazar Núñez", "Hermanos Peña S.A.", "Cafés Luz SL"]
SHORT_FIRMS = ["Talleres Ibáñez", "Bazar Núñez", "Hermanos Peña", "Cafés Luz"]
MAILS = ["ana@example.com", "eva@example.org", "luz@example.net", "pau@example.com"]
TAX_IDS = ["B46000017", "12345678Z", "30.306.201/0001-09", "ESB41000017"]
IDS = ["11", "12", "13", "14"]
PRICES = ["1,50", "12,00", "3,25", "118,90"]
PHONES = ["934 000 901", "934 000 902", "934 000 903", "934 000 904"]
FISCAL, NUMBER, ADDRESS = (
    "documents[0].fiscalName",
    "documents[0].number",
    "documents[0].fiscalAddress",
)
Columns = dict[str, list[str]]


def proposal(kind: str, columns: Columns) -> Mapping:
    return propose(list(columns), kind, conflicts="leave", samples=columns)


def found(kind: str, columns: Columns) -> dict[str, str | None]:
    return {name: one.field for name, one in proposal(kind, columns).columns.items()}


UNCLEAR: list[tuple[str, str, list[str], str]] = [
    *(("variants", name, CODES, "erpCode") for name in ("Artículo", "Article", "Artikel", "Item", "Producto")),
    *(("customers", name, CODES, "erpCode") for name in ("Cuenta", "Account", "Debitor", "Konto", "Cliente")),
    ("customers", "No.", ["10010", "10020", "10030", "10040"], "erpCode"),
    ("customers", "N.º", ["C0010", "C0020", "C0030", "C0040"], "erpCode"),
    ("customers", "Empresa", FIRMS, FISCAL),
    ("customers", "Company", FIRMS, FISCAL),
    ("customers", "Usuario", ["talleres1", "bazar", "hnos.penya", "luz"], "loginCode"),
    ("customers", "Documento", TAX_IDS, NUMBER),
    ("variants", "Tarifa", PRICES, "price"),
    ("subcategories", "Categoría", ["c1", "c2", "c1", "c1"], "categoryId"),
    ("warehouses", "Almacén", ["Central", "Norte", "Sur 2", "Puerto"], "name"),
]  # fmt: skip
UNPROVEN: list[tuple[str, str, list[str], str]] = [
    *(("variants", name, ARTICLES, "erpCode") for name in ("Artículo", "Article", "Artikel", "Item")),
    ("variants", "Artículo", ["A-1", "A-1", "A-1", "A-2"], "erpCode"),  # of the product, not of its variants
    ("variants", "Artículo", [], "erpCode"),
    *(("variants", name, SIZED, "sku") for name in ("Referencia", "SKU")),
    *(("variants", name, SIZED, "erpCode") for name in ("Código", "Cód. artículo", "Artículo")),
    ("variants", "Producto", ARTICLES, "productId"),
    *(("customers", name, SHORT_FIRMS, "erpCode") for name in ("Cuenta", "Account", "Debitor")),
    ("customers", "No.", ["1", "2", "13", "14"], "erpCode"),
    ("customers", "Cuenta", ["ES9121000418450200051332", "ES7921000813610123456789"], "erpCode"),  # of the bank
    ("variants", "Item", ["2026-01-01", "2026-01-02"], "erpCode"),
    ("customers", "Documento", ["F-2024-00017", "F-2024-00018"], NUMBER),  # an invoice
    ("customers", "Grupo", FIRMS, FISCAL),
    ("customers", "Nombre del grupo", [*FIRMS[2:], *FIRMS[2:]], FISCAL),
    ("customers", "Empresa", ["01", "01", "02", "01"], FISCAL),
    ("customers", "Nombre comercial", SHORT_FIRMS, FISCAL),
    ("customers", "Usuario", ["admin", "admin", "luis", "admin"], "loginCode"),
    ("customers", "Documento", ["DNI", "CIF", "DNI", "DNI"], NUMBER),
    ("customers", "VAT", ["21", "10", "21", "21"], NUMBER),
    ("customers", "Tarifa", ["PVP 2025", "TARIFA 1", "PVP 2025", "PVP 2025"], "priceListId"),
    ("customers", "Código", ARTICLES, "erpCode"),
    ("customers", "NIF", ["sí", "no", "no", "sí"], NUMBER),
    ("variants", "Tarifa", ["TARIFA 1", "TARIFA 2", "TARIFA 1", "TARIFA 1"], "price"),
    ("variants", "Tarifa", ["1", "2", "1", "3"], "price"),
    ("subcategories", "Categoría", ["Vinos", "Quesos", "Vinos", "Panes"], "categoryId"),
    ("warehouses", "Almacén", ["01", "02", "03", "04"], "name"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "cells", "path"), UNCLEAR)
def test_values_decide_a_name_with_several_meanings(
    kind: str, name: str, cells: list[str], path: str
) -> None:
    assert found(kind, {name: cells}) == {name: path}


@pytest.mark.parametrize(("kind", "name", "cells", "path"), UNPROVEN)
def test_a_name_that_its_values_do_not_prove_is_left_to_a_person(
    kind: str, name: str, cells: list[str], path: str
) -> None:
    proposed = proposal(kind, {name: cells})
    assert (proposed.columns, proposed.doubtful) == ({}, {name: path})
    assert proposed.unknown == (name,)
    assert proposed.explain() == [f"{name}  may be {path}: not proven"]
    assert f"may be {path}, which neither name nor values prove" in to_toml(proposed)


@pytest.mark.parametrize(
    "cells",
    [["ART 001", "ART 002", "MESA 01"], ["CAMISETA-ROJA-M", "CAMISETA-ROJA-L", "GORRA-AZUL"]],
)
def test_a_code_of_words_is_no_name(cells: list[str]) -> None:
    assert found("variants", {"SKU": cells}) == {"SKU": "sku"}


def test_neighbours_decide_what_values_leave_open() -> None:
    ids = {"Id producto": IDS, "Id variante": ["21", "22", "23", "24"]}
    assert found("variants", ids | {"Artículo": ARTICLES, "Referencia": CODES}) == {
        "Id producto": "productId",
        "Id variante": "variantId",
        "Referencia": "sku",
    }
    assert found("variants", {"Artículo": CODES, "Código": ["1", "2", "3", "4"]}) == {
        "Código": "erpCode"
    }
    alone = proposal("variants", {"ID de producto": IDS, "SKU": CODES})
    assert alone.doubtful == {"ID de producto": "productId"}, "a shop's id, or that of the ERP"
    firms = {"Nombre": FIRMS, "Nombre comercial": SHORT_FIRMS}
    assert found("customers", firms) == {"Nombre": FISCAL}
    assert found("customers", {"Account": FIRMS}) == {"Account": FISCAL}
    assert found("customers", {"Calle": ["Mayor", "Sol"], "Nº": ["1010", "1020"]}) == {
        "Calle": ADDRESS
    }
    ledger = {"Konto": ["10001", "10002", "10003", "10004"], "Kundennummer": [""]}
    assert found("customers", ledger) == {"Konto": "erpCode"}, "an empty column fills nothing"


@pytest.mark.parametrize(
    "name",
    [
        "Sales rep e-mail",
        "Correo del contador",
        "E-mail vendedor",
        "Buchhalter-Mail",
        "Account manager",
    ],
)
def test_addresses_of_somebody_else_are_not_the_login(name: str) -> None:
    proposed = proposal("customers", {"Código": CODES, name: MAILS})
    assert {one.field for one in proposed.columns.values()} == {"erpCode"}
    assert "email" not in proposed.doubtful.values()


def test_addresses_under_an_unclear_name_are_asked_and_only_assumed_for_figures() -> None:
    columns = {"Código": CODES, "Buzón": MAILS}
    proposed = proposal("customers", columns)
    assert (list(proposed.columns), proposed.doubtful) == (["Código"], {"Buzón": "email"})
    assert assume(proposed, columns).columns["Buzón"].field == "email"
    accounts = {"Account": SHORT_FIRMS, "Cuenta": ["CAMROJ", "TALIBA", "HERPEN", "LUZ"]}
    assumed = assume(proposal("customers", accounts), accounts).columns
    assert {name: one.field for name, one in assumed.items()} == {"Cuenta": "erpCode"}


ADDED: list[tuple[str, str, list[str], str]] = [
    ("customers", "Nombre *", ["Ana", "Eva"], "firstName"),
    ("customers", "Teléfono (opcional)", PHONES, "phone"),
    ("customers", "Telefon 1", PHONES, "phone"),
    ("customers", "Phone No.", PHONES, "phone"),
    ("customers", "Teléfono del cliente", PHONES, "phone"),
    ("customers", "Customer phone", PHONES, "phone"),
    ("customers", "A1_EMAIL", MAILS, "email"),
    ("customers", "N.º de cliente", CODES, "erpCode"),
    ("customers", "CNPJ / CPF", TAX_IDS, NUMBER),
    ("customers", "NIF / CIF / VAT", TAX_IDS, NUMBER),
    ("customers", "Número de identificación fiscal", TAX_IDS, NUMBER),
    ("customers", "Street 1", ["Mayor 1", "Mayor 2"], ADDRESS),
    ("variants", "B1_COD", CODES, "erpCode"),
    ("variants", "Alto (cm)", PRICES, "height"),
    ("variants", "Largura do Produto", PRICES, "width"),
    ("variants", "Precio de venta 1", PRICES, "price"),
    ("variants", "Código del artículo", CODES, "erpCode"),
    ("customers", "PriceListNum", IDS, "priceListId"),
    ("customers", "A1_TABELA", IDS, "priceListId"),
    ("customers", "Identificación (Obligatorio)", TAX_IDS, NUMBER),
    ("variants", "Listino 1 (ivato)", PRICES, "price"),
]  # fmt: skip
NOT_ADDED: list[tuple[str, str, list[str]]] = [
    ("customers", "Teléfono 2", PHONES),
    ("customers", "Nombre del cliente", ["Ana Ruiz", "Bazar Núñez"]),  # a person or a company
    ("customers", "Telefon / Fax", PHONES),
    ("customers", "Teléfono del proveedor", PHONES),
    ("customers", "Código postal del cliente", ["08001", "08014"]),
    ("variants", "Alto (mm)", PRICES),
    ("variants", "Stock 1", IDS),
    ("variants", "Precio de venta 2", PRICES),
    ("variants", "Nombre del producto", ARTICLES),
    ("variants", "IVA del producto", IDS),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "cells", "path"), ADDED)
def test_what_exports_add_to_a_name_does_not_hide_it(
    kind: str, name: str, cells: list[str], path: str
) -> None:
    assert found(kind, {name: cells}) == {name: path}


@pytest.mark.parametrize(("kind", "name", "cells"), NOT_ADDED)
def test_an_addition_that_changes_the_meaning_matches_no_field(
    kind: str, name: str, cells: list[str]
) -> None:
    assert found(kind, {name: cells}) == {}


def test_a_name_with_an_addition_never_contests_a_plain_one() -> None:
    assert found("customers", {"Teléfono del cliente": PHONES, "Teléfono": PHONES}) == {
        "Teléfono": "phone"
    }
    two = {"Teléfono del cliente": PHONES, "Phone No.": PHONES}
    assert propose(list(two), "customers", samples=two).contested == {"phone": tuple(two)}


def test_a_name_that_says_the_code_comes_before_one_with_several_meanings() -> None:
    accounts = ["43000100", "43000200", "43000300"]
    columns = {"CUENTA": accounts, "CODCLI": ["1", "2", "3"]}
    assert found("customers", columns) == {"CODCLI": "erpCode"}
    assert found("customers", {"CUENTA": accounts}) == {"CUENTA": "erpCode"}


def test_first_and_last_names_with_the_same_addition_are_those_of_persons() -> None:
    first = {"Nombres del tercero (Obligatorio)": ["Ana", "", "Luz"]}
    last = {"Apellidos del tercero (Obligatorio)": ["Ruiz", "", "Mar"]}
    assert list(found("customers", first | last).values()) == ["firstName", "lastName"]
    assert found("customers", first) == {}


def test_companies_that_stand_in_two_columns_are_taken_once() -> None:
    assert found("customers", {"Nombre mostrado": FIRMS, "Nombre": FIRMS}) == {"Nombre": FISCAL}


@pytest.mark.parametrize("cells", [[], ["pan.jpg", "bollo.jpg", "tarta.jpg"]])
def test_a_column_of_pictures_without_addresses_is_asked_about(cells: list[str]) -> None:
    assert found("variants", {"Immagine": cells}) == {}
    assert found("variants", {"Immagine": ["https://img.example/pan.jpg"]}) == {
        "Immagine": "images[0].url"
    }


SHORT_NAMES = [
    ("customers", "TFNO.", PHONES, "phone"),
    ("customers", "DIR_FISCAL", ["C/ Mayor 1", "Plaza 2", "Paseo 3"], "documents[0].fiscalAddress"),
    ("customers", "EmailID", ["ana@x.test", "eva@y.test", "leo@z.test"], "email"),
    ("customers", "GSTIN", ["29ABCDE1234F1Z5", "27ABCDE1234F1Z4"], NUMBER),
    ("variants", "EXIST.", IDS, "stock"),
    ("variants", "Custom SKU", CODES, "sku"),
]


@pytest.mark.parametrize(("kind", "name", "cells", "path"), SHORT_NAMES)
def test_short_names_of_exports_fill_their_field(
    kind: str, name: str, cells: list[str], path: str
) -> None:
    assert found(kind, {name: cells}) == {name: path}


GUESSED = [
    ("variants", "Stock Casa Matriz", IDS, "stock"),
    ("variants", "Peso de venta", PRICES, "weight"),
    ("variants", "SalesUnitWeight", PRICES, "weight"),
    ("variants", "Imágenes externas", ["https://img.example/1.png"], "images[0].url"),
    ("customers", "Teléfono de la tienda", PHONES, "phone"),
    *(("variants", name, IDS, None) for name in
      ("Stock mínimo", "Precio coste", "In stock?", "Código de barras", "Precio proveedor")),
    ("variants", "Stock Casa Matriz", ["sí", "no", "no"], None),
    ("customers", "Teléfono del comercial", PHONES, None),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "cells", "path"), GUESSED)
def test_a_part_of_a_name_is_a_guess_for_a_person_and_fills_nothing(
    kind: str, name: str, cells: list[str], path: str | None
) -> None:
    made = proposal(kind, {name: cells})
    assert (made.columns, made.doubtful, made.guesses.get(name)) == ({}, {}, path)
    assert made.unknown == (name,)
