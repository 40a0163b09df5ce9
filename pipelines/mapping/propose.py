"""A mapping proposed from headers: the interface's own names, and those that ERPs use in English and Spanish.

In: the names of a file's columns. Out: a mapping that a person can read, save and change, with the columns that fit no
field beside it. Nothing is guessed from what the cells hold.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Final, Literal

from pipelines.mapping.model import MappedColumn, Mapping
from pipelines.mapping.places import place
from sources.errors import UsageError
from sources.inputs import pairs, paths

_PERSON: Final = {
    "erpCode": "código, cod, código cliente, cod cliente, código erp, customer code, customer no, customer number, "
    "client code, code, account, account no, nº cliente, núm cliente, número de cliente, cuenta, cliente, id cliente, "
    "customer, customer id, clave cliente",
    "firstName": "nombre, nombres, nombre de pila, given name, forename",
    "lastName": "apellidos, apellido, surname, family name",
    "email": "correo, correo electrónico, e-mail, mail, dirección de correo, email address, e-mail address",
    "loginCode": "usuario, código de acceso, código acceso, login, user, user code, username, user name, "
    "código de usuario",
    "phone": "teléfono, tel, tlf, telf, móvil, teléfono móvil, celular, phone number, telephone, mobile, mobile phone",
    "priceListId": "lista de precios, lista precios, tarifa, price list, pricelist, id lista de precios, price list no",
    "password": "contraseña, clave, clave de acceso",
    "documents[0].number": "nif, cif, dni, ruc, rut, rfc, cuit, nit, vat, vat number, vat no, tax id, tax number, "
    "número de documento, nº documento, documento, document, document number, identificación fiscal",
    "documents[0].fiscalName": "razón social, nombre fiscal, empresa, company, company name, legal name, business name",
    "documents[0].fiscalAddress": "dirección fiscal, domicilio fiscal, domicilio, dirección, billing address, address",
    "documents[0].email": "correo fiscal, correo facturación, email facturación, billing email, invoice email, "
    "email fiscal",
}
_VARIANT: Final = {
    "productId": "producto, id producto, product, product id, id de producto",
    "variantId": "variante, id variante, variant, variant id, id de variante",
    "erpCode": "código, cod, artículo, código artículo, cod artículo, item, item no, item code, item number, article, "
    "code, código erp, referencia erp",
    "sku": "referencia, ref, reference, stock keeping unit, variant sku",
    "price": "pvp, precio, precio venta, precio de venta, tarifa, unit price, sales price, list price, variant price",
    "stock": "existencias, cantidad, disponible, stock disponible, inventario, inventory, on hand, quantity, qty, "
    "units in stock, variant inventory qty",
    "priceIsTaxExempt": "exento iva, exento de iva, exento, exento impuestos, tax exempt, vat exempt",
    "salesUnitFactor": "múltiplo, factor, unidad de venta, factor unidad de venta, multiple, sales unit",
    "jumpFactor": "escalón, salto, incremento, step, jump",
    "order": "orden, posición, position",
    "weight": "peso, peso kg, weight kg",
    "length": "largo, longitud, length cm",
    "width": "ancho, anchura, width cm",
    "height": "alto, altura, height cm",
    "images[0].url": "imagen, foto, url imagen, image, image url, image src, picture",
    "images[0].order": "image position, posición imagen, orden imagen",
    "attributes[0].name": "option1 name",
    "attributes[0].value": "option1 value",
    "attributes[1].name": "option2 name",
    "attributes[1].value": "option2 value",
    "attributes[2].name": "option3 name",
    "attributes[2].value": "option3 value",
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
_NAMED: Final = ("color", "colour", "talla", "size", "tamaño", "material", "sabor", "flavour", "flavor")
"""Headers that are an attribute of that name, where a kind has attributes."""


def propose(columns: Sequence[str], kind: str, *, doubtful: Literal["refuse", "leave"] = "refuse") -> Mapping:
    """A mapping by the names of columns; those that fit no field are in its `unknown`.

    Args:
        columns: of the file.
        kind: of the inputs.
        doubtful: what becomes of columns that would be the same field; left, they are unknown.

    Raises:
        UsageError: two columns would be the same field.
    """
    made: dict[str, MappedColumn] = {}
    unknown: list[str] = []
    taken: dict[str, list[str]] = {}
    for name in columns:
        path = _path(name, kind)
        if path is None:
            unknown.append(name)
            continue
        made[name] = MappedColumn(name, path)
        taken.setdefault(path, []).append(name)
    if doubtful == "leave":
        left = {name for names in taken.values() if names[1:] for name in names}
        kept = {name: column for name, column in made.items() if name not in left}
        return Mapping(kind, kept, unknown=tuple(name for name in columns if name not in kept))
    twice = [f"{' and '.join(map(repr, names))} both read like {path}" for path, names in taken.items() if names[1:]]
    if twice:
        raise UsageError(
            "; ".join(twice),
            f"Say which one it is in a mapping file: `orderbridge template {kind} --mapping --for FILE` begins one.",
        )
    return Mapping(kind, made, unknown=tuple(unknown))


def plain(header: str) -> str:
    """A header without case, accents, signs and blanks; letters of other scripts stay."""
    letters = unicodedata.normalize("NFKD", header).casefold()
    return re.sub(r"[\W_]", "", letters)


def _path(header: str, kind: str) -> str | None:
    if not isinstance(place(kind, header), str):
        return header
    name = plain(header)
    known = _known(kind)
    if name in known:
        return known[name]
    if any(name == plain(word) for word in _NAMED):
        return next((f"{array}.{header.strip()}" for array in pairs(kind)), None)
    numbered = re.fullmatch(r"(\D+?)([1-9])", name)
    if numbered and "[0]" in known.get(numbered[1], ""):
        path = known[numbered[1]].replace("[0]", f"[{int(numbered[2]) - 1}]")
        return None if isinstance(place(kind, path), str) else path
    return None


@cache
def _known(kind: str) -> dict[str, str]:
    """Fields by their headers; a list's fields are those of its first item."""
    known = {plain(word): path for path, words in WORDS[kind].items() for word in words.split(", ")}
    for path in reversed(paths(kind)):
        first = path.replace("[]", "[0]")
        known[plain(first.replace("[0]", ""))] = first
        own = plain(first.removesuffix("[0]").rpartition(".")[2])
        if "." not in path:
            known[own] = first
        elif own not in {plain(other) for other in paths(kind)}:
            known.setdefault(own, first)
    return known
