"""A mapping proposed from column names: the interface's own, and those that ERPs use in English and Spanish.

In: the column names of a file. Out: a mapping that a person can save and edit, and the columns that match no field.
Cell values are not looked at.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Final, Literal

from pipelines.mapping.field_paths import resolve
from pipelines.mapping.model import MappedColumn, Mapping
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
"""Common column names by field, in addition to the interface's own."""
_ATTRIBUTES: Final = ("color", "colour", "talla", "size", "tamaño", "material", "sabor", "flavour", "flavor")
"""Column names that become an attribute of the same name, for kinds that have attributes."""


def propose(columns: Sequence[str], kind: str, *, conflicts: Literal["error", "leave"] = "error") -> Mapping:
    """A mapping by column names; columns that match no field are listed as `unknown`.

    Args:
        columns: the column names of the file.
        kind: the kind of input.
        conflicts: what happens when several columns match the same field: an error, or all of them become unknown.

    Raises:
        UsageError: several columns match the same field.
    """
    targets = {name: path for name in columns if (path := _path(name, kind)) is not None}
    by_path: dict[str, list[str]] = {}
    for name, path in targets.items():
        by_path.setdefault(path, []).append(name)
    ambiguous = {path: names for path, names in by_path.items() if len(names) > 1}
    if ambiguous and conflicts == "error":
        raise UsageError(
            "; ".join(f"{' and '.join(map(repr, names))} both match {path}" for path, names in ambiguous.items()),
            f"Choose one in a mapping file. To create one: orderbridge template {kind} --mapping --for FILE",
        )
    mapped = {name: MappedColumn(name, path) for name, path in targets.items() if path not in ambiguous}
    return Mapping(kind, mapped, unknown=tuple(name for name in columns if name not in mapped))


def normalize(header: str) -> str:
    """A column name without case, accents, punctuation and spaces; letters of other scripts stay."""
    letters = unicodedata.normalize("NFKD", header).casefold()
    return re.sub(r"[\W_]", "", letters)


def _path(header: str, kind: str) -> str | None:
    if not isinstance(resolve(kind, header), str):
        return header
    name = normalize(header)
    known = _known(kind)
    if name in known:
        return known[name]
    if any(name == normalize(word) for word in _ATTRIBUTES):
        return next((f"{array}.{header.strip()}" for array in pairs(kind)), None)
    numbered = re.fullmatch(r"(\D+?)([1-9])", name)
    if numbered and "[0]" in known.get(numbered[1], ""):
        path = known[numbered[1]].replace("[0]", f"[{int(numbered[2]) - 1}]")
        return None if isinstance(resolve(kind, path), str) else path
    return None


@cache
def _known(kind: str) -> dict[str, str]:
    """Field paths by normalized column name; of each array, the first item."""
    known = {normalize(word): path for path, words in WORDS[kind].items() for word in words.split(", ")}
    for path in reversed(paths(kind)):
        first = path.replace("[]", "[0]")
        known[normalize(first.replace("[0]", ""))] = first
        own = normalize(first.removesuffix("[0]").rpartition(".")[2])
        if "." not in path:
            known[own] = first
        elif own not in {normalize(other) for other in paths(kind)}:
            known.setdefault(own, first)
    return known
