"""The ERP's files of the demo: customers and articles as a Spanish ERP exports them, with a few rows that cannot go.

In: some customers that the platform has. Out: two CSV files (cp1252, semicolons, decimal comma).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

CUSTOMERS_FILE: Final = "clientes.csv"
VARIANTS_FILE: Final = "articulos.csv"
NEW_CUSTOMERS: Final = 48
ARTICLES: Final = 40
_FIRST: Final = ("Íñigo", "Zoë", "María José", "Núria", "Begoña", "Óscar", "Ana", "Raúl")
_LAST: Final = ("Peña Ibáñez", "Muñoz", "Güell i Sanchís", "de la O", "Etxeberria", "Ñíguez")


def write_files(folder: Path, there: Sequence[Mapping[str, Any]]) -> None:
    """Writes the files; `there` are four customers of the platform or more."""
    for name, header, rows in (
        (CUSTOMERS_FILE, "Código;Nombre;Apellidos;Correo;Teléfono;NIF;Razón social", _customers(there)),
        (VARIANTS_FILE, "Producto;Variante;SKU;PVP;Existencias;Exento IVA", _articles()),
    ):
        lines = "".join(f"{line}\r\n" for line in (header, *rows))
        (folder / name).write_bytes(lines.encode("cp1252"))


def _customers(there: Sequence[Mapping[str, Any]]) -> list[str]:
    names = [(first, last) for last in _LAST for first in _FIRST][:NEW_CUSTOMERS]
    rows = [
        f"{40_000 + n:06d};{first};{last};cliente{n}@example.com;+34 600 000 {n:03d};{n:08d}Z;Comercial {last} nº {n}"
        for n, (first, last) in enumerate(names)
    ]
    same, other, one, two = there[:4]
    return [
        *rows[:10],
        f"{same['erpCode']};{same['firstName']};{same['lastName']};{same['email']};;;",
        f"{other['erpCode']};{other['firstName']};Otro Apellido;{other['email']};;;",
        f"{one['erpCode']};;;{two['email']};;;",
        "050001;Sin;Correo;;;;",
        *rows[10:],
        rows[0],
        "050002;Dos;Veces;dos@example.com;;;",
        "050002;Dos;Veces;otra@example.com;;;",
    ]


def _articles() -> list[str]:
    rows = [
        f"{n // 4 + 1};{1001 + n};{n + 1:05d};{n % 7 + 1},{n * 7 % 100:02d};{n * 3 % 50};{'NS'[n % 2]}"
        for n in range(ARTICLES)
    ]
    rows[37] = "10;1038;00038;19.367,25;17;N"
    return [
        *rows[:20],
        "6;1021;00021;consultar;3;N",
        "6;1022;00022;4,20;2,5;N",
        *rows[22:],
    ]
