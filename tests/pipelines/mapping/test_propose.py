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
SAMPLES = {
    "erpCode": CODES, "F": COMPANIES, "email": EMAILS, "phone": PHONES, "N": TAX_IDS, "priceListId": ["1"],
    "documents[0].email": EMAILS, **dict.fromkeys(("Mobile", "Móvil", "Cellular", "FAX01"), PHONES),
    "Default Address Phone": PHONES, "Salesperson": ["eva@shop.example"] * 4, "Accepts Email Marketing": ["yes", "no"],
}  # fmt: skip
"""Cells of a column, by its field or its name."""
EXPORTS: dict[str, str] = {
    "spanish": "Código=erpCode, Razón social=F, Nombre=firstName, Apellidos=lastName, Teléfono=phone, Correo=email, "
        "Dirección fiscal=A, NIF=N, Tarifa=priceListId",
    "english": "Customer No.=erpCode, Company=F, First name=firstName, Surname=lastName, Telephone=phone, "
        "E-mail=email, Billing address=A, VAT number=N, Price list=priceListId",
    "portuguese": "Código do cliente=erpCode, Razão social=F, Nome=firstName, Apelido=lastName, Telefone=phone, "
        "Correio eletrónico=email, Morada=A, NIF=N, Tabela de preços=priceListId",
    "french": "Code client=erpCode, Raison sociale=F, Prénom=firstName, Nom=lastName, Téléphone=phone, "
        "Courriel=email, Adresse=A, N° TVA=N, Tarif=priceListId",
    "italian": "Codice cliente=erpCode, Ragione sociale=F, Nome=firstName, Cognome=lastName, Telefono=phone, "
        "Indirizzo e-mail=email, Indirizzo=A, Partita IVA=N, Listino=priceListId",
    "german": "Kundennummer=erpCode, Firma=F, Vorname=firstName, Name=lastName, Telefon=phone, E-Mail-Adresse=email, "
        "Anschrift=A, USt-IdNr.=N, Preisliste=priceListId",
    "Odoo": "Internal Reference=erpCode, Name=F, Email=email, Phone=phone, Mobile=, Street=A, City=, Tax ID=N, "
        "Pricelist=priceListId, Salesperson=, Tags=",
    "Holded": "Nombre=F, Código=erpCode, NIF=N, Email=email, Teléfono=phone, Móvil=, Dirección=A, Población=, "
        "Código postal=, Provincia=, País=, Tarifa=priceListId",
    "SAP Business One": "CardCode=erpCode, CardName=F, GroupCode=, LicTradNum=N, Phone1=phone, Cellular=, "
        "E_Mail=email, Address=A, ListNum=priceListId, Balance=, CntctPrsn=",
    "ContaPlus": "COD=erpCode, TITULO=F, NIF=N, DOMICILIO=A, POBLACION=, PROVINCIA=, CODPOSTAL=, TELEF01=phone, "
        "FAX01=, EMAIL=email",
    "Shopify": "Customer ID=erpCode, First Name=firstName, Last Name=lastName, Email=email, Accepts Email Marketing=, "
        "Default Address Company=F, Default Address Address1=A, Default Address Address2=, "
        "Default Address City=, Default Address Phone=, Phone=phone, Total Spent=, Note=, Tax Exempt=, Tags=",
    "WooCommerce": "customer_id=erpCode, user_login=loginCode, first_name=firstName, last_name=lastName, "
        "user_email=email, billing_company=F, billing_phone=phone, billing_first_name=, billing_address_1=A, "
        "billing_email=documents[0].email, billing_city=, orders=",
}  # fmt: skip
SHORT = {"F": FISCAL, "A": ADDRESS, "N": NUMBER}


def columns_of(export: str) -> dict[str, tuple[str, list[str]]]:
    """The field of each column, and its cells."""
    pairs = [one.split("=") for one in export.split(", ")]
    return {name: (SHORT.get(field, field), SAMPLES.get(field or name, ["Ana"])) for name, field in pairs}


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
    "Peru": ("variants", "Producto=productId,Variante=variantId,Exento IGV=priceIsTaxExempt"),
    "short": ("customers", "Código=erpCode,Lista=priceListId"),
    "both": ("customers", "Tarifa=priceListId,Lista="),
    # what may mean another field: `Clave` is the customer's code in some ERPs; `Address 2` is no second document
    "doubtful": ("customers", "Clave=,Cliente=,Customer=,Dirección 2=,Address2=,Empresa 2=,"
                 "Correo fiscal 2=,Number=,Send="),
    "general": ("variants", "Name=,Value=,URL="),
    **{f"interface {kind}": (kind, ",".join(f"{path}={path}" for path in all_paths(kind))) for kind in KINDS},
}  # fmt: skip
CASES = {name: ("customers", columns_of(export)) for name, export in EXPORTS.items()} | {
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
