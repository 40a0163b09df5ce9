"""Exports of customers as programs and people write them: which column is which field, by name and by values."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.mapping import load, propose, to_toml
from pipelines.mapping.field_paths import all_paths
from sources.errors import UsageError
from sources.kinds import KINDS

FISCAL, ADDRESS, NUMBER = "documents[0].fiscalName", "documents[0].fiscalAddress", "documents[0].number"
COMPANIES = ["Cafés Luz S.L.", "Ana Ruiz", "Bodegas Mar SA", "Talleres Gil, S.L."]
EMAILS = ["ana@example.com", "info@example.org", "", "luz@example.net"]
TAX_IDS = ["B12345674", "00000000T", "A58818501", ""]
PHONES = ["+34 600 112 233", "934000902", "", "91 555 01 02"]
CODES = ["000901", "000902", "000903", "000904"]
EXPORTS: dict[str, dict[str, tuple[str, list[str]]]] = {
    "spanish": {
        "Código": ("erpCode", CODES), "Razón social": (FISCAL, COMPANIES), "Nombre": ("firstName", ["Ana", "Eva"]),
        "Apellidos": ("lastName", ["Ruiz", "Gil"]), "Teléfono": ("phone", PHONES), "Correo": ("email", EMAILS),
        "Dirección fiscal": (ADDRESS, ["Calle Mayor 1"]), "NIF": (NUMBER, TAX_IDS), "Tarifa": ("priceListId", ["1"]),
    },
    "english": {
        "Customer No.": ("erpCode", CODES), "Company": (FISCAL, COMPANIES), "First name": ("firstName", ["Ana"]),
        "Surname": ("lastName", ["Ruiz"]), "Telephone": ("phone", PHONES), "E-mail": ("email", EMAILS),
        "Billing address": (ADDRESS, ["1 High St"]), "VAT number": (NUMBER, TAX_IDS),
        "Price list": ("priceListId", ["2"]),
    },
    "portuguese": {
        "Código do cliente": ("erpCode", CODES), "Razão social": (FISCAL, COMPANIES), "Nome": ("firstName", ["Ana"]),
        "Apelido": ("lastName", ["Gil"]), "Telefone": ("phone", PHONES), "Correio eletrónico": ("email", EMAILS),
        "Morada": (ADDRESS, ["Rua Augusta 1"]), "NIF": (NUMBER, TAX_IDS), "Tabela de preços": ("priceListId", ["1"]),
    },
    "french": {
        "Code client": ("erpCode", CODES), "Raison sociale": (FISCAL, COMPANIES), "Prénom": ("firstName", ["Zoé"]),
        "Nom": ("lastName", ["Gil"]), "Téléphone": ("phone", PHONES), "Courriel": ("email", EMAILS),
        "Adresse": (ADDRESS, ["1 rue Pavée"]), "N° TVA": (NUMBER, TAX_IDS), "Tarif": ("priceListId", ["1"]),
    },
    "italian": {
        "Codice cliente": ("erpCode", CODES), "Ragione sociale": (FISCAL, COMPANIES), "Nome": ("firstName", ["Ada"]),
        "Cognome": ("lastName", ["Neri"]), "Telefono": ("phone", PHONES), "Indirizzo e-mail": ("email", EMAILS),
        "Indirizzo": (ADDRESS, ["Via Roma 1"]), "Partita IVA": (NUMBER, TAX_IDS), "Listino": ("priceListId", ["1"]),
    },
    "german": {
        "Kundennummer": ("erpCode", CODES), "Firma": (FISCAL, COMPANIES), "Vorname": ("firstName", ["Jörg"]),
        "Name": ("lastName", ["Groß"]), "Telefon": ("phone", PHONES), "E-Mail-Adresse": ("email", EMAILS),
        "Anschrift": (ADDRESS, ["Hauptstr. 1"]), "USt-IdNr.": (NUMBER, TAX_IDS), "Preisliste": ("priceListId", ["1"]),
    },
    "Odoo": {
        "Internal Reference": ("erpCode", CODES), "Name": (FISCAL, COMPANIES), "Email": ("email", EMAILS),
        "Phone": ("phone", PHONES), "Mobile": ("", PHONES), "Street": (ADDRESS, ["Calle Mayor 1"]),
        "City": ("", ["Vigo"]), "Tax ID": (NUMBER, TAX_IDS), "Pricelist": ("priceListId", ["3"]),
        "Salesperson": ("", ["eva@shop.example"] * 4), "Tags": ("", ["VIP"]),
    },
    "Holded": {
        "Nombre": (FISCAL, COMPANIES), "Código": ("erpCode", CODES), "NIF": (NUMBER, TAX_IDS),
        "Email": ("email", EMAILS), "Teléfono": ("phone", PHONES), "Móvil": ("", PHONES),
        "Dirección": (ADDRESS, ["Calle Mayor 1"]), "Población": ("", ["Vigo"]), "Código postal": ("", ["36201"]),
        "Provincia": ("", ["Pontevedra"]), "País": ("", ["España"]), "Tarifa": ("priceListId", ["1"]),
    },
    "SAP Business One": {
        "CardCode": ("erpCode", CODES), "CardName": (FISCAL, COMPANIES), "GroupCode": ("", ["100"]),
        "LicTradNum": (NUMBER, TAX_IDS), "Phone1": ("phone", PHONES), "Cellular": ("", PHONES),
        "E_Mail": ("email", EMAILS), "Address": (ADDRESS, ["Calle Mayor 1"]), "ListNum": ("priceListId", ["1"]),
        "Balance": ("", ["12,50"]), "CntctPrsn": ("", ["Ana Ruiz"]),
    },
    "ContaPlus": {
        "COD": ("erpCode", CODES), "TITULO": (FISCAL, COMPANIES), "NIF": (NUMBER, TAX_IDS),
        "DOMICILIO": (ADDRESS, ["CL MAYOR 1"]), "POBLACION": ("", ["VIGO"]), "PROVINCIA": ("", ["PONTEVEDRA"]),
        "CODPOSTAL": ("", ["36201"]), "TELEF01": ("phone", PHONES), "FAX01": ("", PHONES), "EMAIL": ("email", EMAILS),
    },
    "Shopify": {
        "Customer ID": ("erpCode", ["'6940095561234"]), "First Name": ("firstName", ["Ana"]),
        "Last Name": ("lastName", ["Ruiz"]), "Email": ("email", EMAILS), "Accepts Email Marketing": ("", ["yes", "no"]),
        "Default Address Company": (FISCAL, COMPANIES), "Default Address Address1": (ADDRESS, ["1 High St"]),
        "Default Address Address2": ("", [""]), "Default Address City": ("", ["Leeds"]),
        "Default Address Phone": ("", PHONES), "Phone": ("phone", PHONES), "Total Spent": ("", ["99.90"]),
        "Note": ("", [""]), "Tax Exempt": ("", ["no"]), "Tags": ("", ["b2b"]),
    },
    "WooCommerce": {
        "customer_id": ("erpCode", ["17", "18"]), "user_login": ("loginCode", ["ana", "eva"]),
        "first_name": ("firstName", ["Ana"]), "last_name": ("lastName", ["Ruiz"]), "user_email": ("email", EMAILS),
        "billing_company": (FISCAL, COMPANIES), "billing_phone": ("phone", PHONES), "billing_first_name": ("", ["Ana"]),
        "billing_address_1": (ADDRESS, ["Calle Mayor 1"]), "billing_email": ("documents[0].email", EMAILS),
        "billing_city": ("", ["Vigo"]), "orders": ("", ["4"]),
    },
}  # fmt: skip


OTHERS: dict[str, tuple[str, str]] = {
    "customers": ("customers", "Lista de precios=priceListId,Contraseña=password,Razón social=documents[0].fiscalName"),
    "logins": ("customers", "SURNAME=lastName,E-Mail=email,login_code=loginCode,priceListId=priceListId,NIF 2="
               "documents[1].number,Address 1=documents[0].fiscalAddress,For taxes=documents[0].forTaxes"),
    "artículos": ("variants", "Producto=productId,Variante=variantId,Artículo=erpCode,PVP=price,Existencias=stock,"
                  "Exento IVA=priceIsTaxExempt,Múltiplo=salesUnitFactor,Escalón=jumpFactor,Peso=weight,"
                  "Foto=images[0].url,Foto 2=images[1].url,Talla=attributes.Talla"),
    "articles": ("variants", "product_id=productId,VARIANT ID=variantId,Item code=erpCode,Unit price=price,"
                 "Quantity=stock,Tax exempt=priceIsTaxExempt,sales-unit-factor=salesUnitFactor,"
                 "images[3].url=images[3].url"),
    "subcategories": ("subcategories", "Categoría=categoryId,Nombre=name,Descripción=description,Orden=order"),
    "warehouses": ("warehouses", "Almacén=name,Por defecto=isDefault,Dirección=location.line,CP=location.zipCode,"
                   "code=code"),
    # what may mean another field: `Clave` is the customer's code in some ERPs; `Address 2` is no second document
    "doubtful": ("customers", "Clave=,Cliente=,Customer=,Dirección 2=,Address2=,Empresa 2=,"
                 "Correo fiscal 2=,Number=,Send="),
    "general": ("variants", "Name=,Value=,URL="),
    **{f"interface {kind}": (kind, ",".join(f"{path}={path}" for path in all_paths(kind))) for kind in KINDS},
}  # fmt: skip
CASES = {name: ("customers", columns) for name, columns in EXPORTS.items()} | {
    name: (kind, {one.split("=")[0]: (one.split("=")[1], []) for one in pairs.split(",")})
    for name, (kind, pairs) in OTHERS.items()
}


@pytest.mark.parametrize("name", CASES)
def test_the_columns_of_an_export_are_proposed_and_none_is_wrong(name: str) -> None:
    kind, export = CASES[name]
    samples = {one: cells for one, (_, cells) in export.items()}
    proposed = propose(list(export), kind, conflicts="leave", samples=samples if name in EXPORTS else None)
    found = {column: mapped.field for column, mapped in proposed.columns.items()}
    assert found == {column: field for column, (field, _) in export.items() if field}
    assert proposed.unknown == tuple(column for column, (field, _) in export.items() if not field)
    assert proposed.contested == {}


MAILS = ["ana@example.com", "eva@example.com", "luz@example.com"]
VALUES = {"Buzón": MAILS, "Vendedor": ["jefe@shop.example"] * 3, "Mail": ["sí", "no", "no"], "Código": ["1", "2", "3"]}


@pytest.mark.parametrize(
    ("columns", "kind", "expected", "contested"),
    [
        (VALUES, "customers", {"Buzón": "email", "Código": "erpCode"}, {}),  # what a name does not show
        ({"Correo": ["a@b.es"], "E-mail": ["c@d.es"]}, "customers", {}, {"email": ("Correo", "E-mail")}),
        ({"Correo": ["a@b.es"], "E-mail": [""]}, "customers", {"Correo": "email"}, {}),
        ({"PVP": ["consultar", "-", "consultar"], "Stock": ["3"]}, "variants", {"Stock": "stock"}, {}),
        (
            {"PVP": ["consultar", "-"], "Stock": ["3"]},
            "variants",
            {"PVP": "price", "Stock": "stock"},
            {},
        ),  # too few cells
        ({"Name": ["Ana Ruiz"], "Código": ["1"]}, "customers", {"Código": "erpCode"}, {}),
    ],
)
def test_values_veto_a_name_and_what_cancels_each_other_is_left_to_a_person(
    columns: dict[str, list[str]], kind: str, expected: dict[str, str], contested: dict[str, tuple[str, ...]]
) -> None:
    proposed = propose(list(columns), kind, conflicts="leave", samples=columns)
    assert {name: column.field for name, column in proposed.columns.items()} == expected
    assert proposed.contested == contested
    if contested:
        with pytest.raises(UsageError, match="'Correo' and 'E-mail' both match email"):
            propose(list(columns), kind)


def test_a_proposal_is_explained_and_saved_with_its_unknown_columns_left_to_be_named(tmp_path: Path) -> None:
    assert propose(["PVP", "Descripción"], "variants").explain() == [
        "PVP          → price",
        "Descripción  matches no field",
    ]
    proposed = propose(["Código", "Descripción del producto", "PVP", "a\u202eb\x7f"], "variants")
    text = to_toml(proposed)
    assert all(line.isprintable() for line in text.splitlines())
    assert '# "Descripción del producto" = ""' in text
    (tmp_path / "mapping.toml").write_text(text, "utf-8")
    assert load(tmp_path / "mapping.toml").columns == proposed.columns
