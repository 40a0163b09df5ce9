"""A file of another kind than the chosen one is noticed by its columns, and one of the chosen kind is not suspected."""

from __future__ import annotations

from collections import Counter

import pytest

from orderbridge.pipelines.import_file.other_kind import likelier_kind
from orderbridge.sources.errors import UsageError
from orderbridge.sources.kinds import KindName
from tests.pipelines.import_file.desk import Desk
from tests.pipelines.mapping.test_exports import EXPORTS


@pytest.mark.parametrize(
    ("columns", "chosen", "likelier"),
    [
        ("Código;Nombre;Apellidos;Correo", "variants", "customers"),
        ("Código;Nombre;Apellidos;Correo", "customers", None),
        ("Código;Nombre;Precio;Stock", "customers", "variants"),
        ("codigo;articulo;precio", "customers", None),
        ("Código;Almacén;Dirección;CP;Contacto;Teléfono", "warehouses", None),
        ("categoryId;name;description;order", "subcategories", None),
        ("Producto;Variante;SKU;PVP;Existencias", "subcategories", "variants"),
    ],
)
def test_columns_speak_for_a_kind(columns: str, chosen: KindName, likelier: str | None) -> None:
    assert likelier_kind(columns.split(";"), chosen) == likelier


def test_exports_are_suspected_under_the_wrong_kind_only() -> None:
    found: Counter[str] = Counter()
    other: dict[str, KindName] = {"customers": "variants", "variants": "customers"}
    for export, columns in EXPORTS.items():
        names = [name for name, _, _ in columns]
        _, _, kind = export.partition(" ")
        found["suspected"] += likelier_kind(names, kind) is not None  # type: ignore[arg-type] # of the corpus
        found["noticed"] += likelier_kind(names, other[kind]) == kind
    assert not found["suspected"]
    assert found["noticed"] >= 45, f"of {len(EXPORTS)}"


def test_an_import_of_the_wrong_kind_shows_the_command_of_the_other(desk: Desk) -> None:
    file = desk.write("Código;Nombre;Apellidos;Correo\nC1;Ana;Paz;ana@example.test\n")
    with pytest.raises(UsageError):
        desk.run(file, "variants")
    (said,) = desk.said
    assert said.endswith(f"customers; if they are: orderbridge import customers {file}")
