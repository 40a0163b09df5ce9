"""A mapping proposed from headers: the interface's own names, and those that ERPs use in English and Spanish.

In: the names of a file's columns. Out: a mapping that a person can read, save and change; or an error that names what
fits no field, or fits one that another column fits as well. Nothing is guessed from what the cells hold.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from pipelines.mapping.model import Column, Mapping, generic
from pipelines.mapping.read import is_of_ours
from sources.errors import UsageError
from sources.inputs import parameters, paths

_PERSON: Final = {
    "erpCode": "código, cod, código cliente, cod cliente, código erp, customer code, customer no, customer number, "
    "client code, code, account, account no, nº cliente, núm cliente, número de cliente, cuenta",
    "firstName": "nombre, nombres, nombre de pila, given name, forename",
    "lastName": "apellidos, apellido, surname, family name",
    "email": "correo, correo electrónico, e-mail, mail, dirección de correo, email address",
    "loginCode": "usuario, código de acceso, login, user, username, user name, código de usuario",
    "phone": "teléfono, tel, tlf, telf, móvil, celular, phone number, telephone, mobile",
    "priceListId": "lista de precios, lista precios, tarifa, price list, pricelist, id lista de precios, price list no",
    "password": "contraseña, clave, clave de acceso",
    "documents[0].number": "nif, cif, dni, ruc, rut, rfc, cuit, nit, vat, vat number, vat no, tax id, tax number, "
    "número de documento, nº documento, documento, document, document number",
    "documents[0].fiscalName": "razón social, nombre fiscal, empresa, company, company name, legal name, "
    "business name, fiscal name",
    "documents[0].fiscalAddress": "dirección fiscal, domicilio fiscal, domicilio, dirección, fiscal address, "
    "billing address, address",
    "documents[0].email": "correo fiscal, correo facturación, billing email, email fiscal",
}
_VARIANT: Final = {
    "productId": "producto, id producto, product, product id, id de producto",
    "variantId": "variante, id variante, variant, variant id, id de variante",
    "erpCode": "código, cod, artículo, código artículo, cod artículo, item, item no, item code, item number, article, "
    "code, código erp, referencia erp",
    "sku": "referencia, ref, stock keeping unit",
    "price": "pvp, precio, precio venta, precio de venta, tarifa, unit price, sales price, list price",
    "stock": "existencias, cantidad, disponible, stock disponible, inventory, on hand, quantity, qty, units in stock",
    "priceIsTaxExempt": "exento iva, exento de iva, exento, exento impuestos, tax exempt, vat exempt",
    "salesUnitFactor": "múltiplo, factor, unidad de venta, factor unidad de venta, multiple, sales unit",
    "jumpFactor": "escalón, salto, incremento, step, jump",
    "order": "orden, posición, position",
    "weight": "peso, peso kg, weight kg",
    "length": "largo, longitud, length cm",
    "width": "ancho, anchura, width cm",
    "height": "alto, altura, height cm",
    "images[0].url": "imagen, foto, url imagen, image, image url, picture",
}
_SUBCATEGORY: Final = {
    "categoryId": "categoría, id categoría, category, category id, id de categoría",
    "name": "nombre, subcategoría, subcategory",
    "description": "descripción",
    "seo.description": "descripción seo, seo, meta description",
    "order": "orden, posición, position",
}
_WAREHOUSE: Final = {
    "name": "nombre, almacén, bodega, depósito, warehouse",
    "code": "código, cod",
    "isDefault": "por defecto, predeterminado, principal, default, main",
    "location.line": "dirección, domicilio, address, street",
    "location.reference": "referencia, reference",
    "location.zipCode": "código postal, cp, zip, zip code, postal code, postcode",
    "location.contactName": "contacto, persona de contacto, contact, contact person",
    "location.contactPhone": "teléfono, tel, phone, telephone",
    "location.contactEmail": "correo, correo electrónico, email, mail",
    "location.divisions.level1": "departamento, comunidad, estado, region, state",
    "location.divisions.level2": "provincia, province, county",
    "location.divisions.level3": "distrito, municipio, ciudad, localidad, city, town, district",
}
WORDS: Final = {
    "customers": _PERSON,
    "variants": _VARIANT,
    "subcategories": _SUBCATEGORY,
    "warehouses": _WAREHOUSE,
}
"""Headers by field, beside the interface's own names."""


def propose(columns: Sequence[str], kind: str, ignore: Iterable[str] = ()) -> Mapping:
    """A mapping of these columns.

    Args:
        columns: of the file.
        kind: of the inputs.
        ignore: columns that are no field.

    Raises:
        UsageError: a column fits no field, or two fit one; all of them are named.
    """
    made, unknown, twice = matches(columns, kind, ignore)
    wrong = [f"{name!r} fits no field{_near(name, kind)}" for name in unknown]
    wrong += [f"{' and '.join(map(repr, names))} both fit {path}" for path, names in twice.items()]
    if wrong:
        raise UsageError(
            f"the columns cannot all be told: {'; '.join(wrong)}",
            f"Write a mapping file, and name it with --mapping: `orderbridge template {kind} --mapping --for FILE` "
            "begins one from this file's columns.",
        )
    return made


def matches(
    columns: Sequence[str], kind: str, ignore: Iterable[str] = ()
) -> tuple[Mapping, list[str], dict[str, list[str]]]:
    """The mapping of what can be told; the columns that fit no field; and the fields that several columns fit."""
    known = _known(kind)
    ignored = set(ignore)
    made: dict[str, Column] = {}
    unknown: list[str] = []
    taken: dict[str, list[str]] = {}
    for name in columns:
        if is_of_ours(name):
            continue
        if name in ignored:
            made[name] = Column(None)
            continue
        path = name if generic(kind, name) is not None else known.get(normal(name))
        if path is None:
            unknown.append(name)
            continue
        made[name] = Column(path)
        taken.setdefault(path, []).append(name)
    return Mapping(kind, made), unknown, {path: names for path, names in taken.items() if len(names) > 1}


def normal(header: str) -> str:
    """A header without case, accents, signs and blanks."""
    plain = unicodedata.normalize("NFKD", header).casefold()
    return re.sub(r"[^a-z0-9]", "", plain)


def _known(kind: str) -> dict[str, str]:
    """Fields by their headers; a list's fields are those of its first item."""
    known = {normal(word): path for path, words in WORDS[kind].items() for word in words.split(", ")}
    for path in [*paths(kind), *parameters(kind)]:
        first = path.replace("[]", "[0]")
        known.setdefault(normal(first), first)
        if "[]." not in path:
            known[normal(path.rpartition(".")[2])] = first
    return known


def _near(name: str, kind: str) -> str:
    known = _known(kind)
    near = get_close_matches(normal(name), list(known), 1, 0.75)
    return f" (is it {known[near[0]]}?)" if near else ""
