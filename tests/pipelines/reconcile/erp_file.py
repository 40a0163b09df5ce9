"""A file of the ERP's for a sandbox's customers, whose lines match in one way each, or not at all."""

from __future__ import annotations

from tests.pipelines.bridge import Bridge

PRIVATE = ("Secundina", "secreta@example.com", "Nombre Del Fichero", "C-NUEVO", "nueva@example.com")
"""What the file holds and the platform does not."""


def write_erp_file(made: Bridge) -> None:
    """Writes `clientes.csv` next to the warehouse: two lines match by code, one by e-mail, one is new, two clash."""
    (one, two, three, four) = made.rows(
        """SELECT erp_code, email, first_name FROM raw.customers WHERE erp_code IS NOT NULL AND email IS NOT NULL
        ORDER BY id LIMIT 4"""
    )
    lines = [
        ("erp_code", "email", "first_name"),
        (one[0], PRIVATE[1], one[2]),
        (two[0], two[1], PRIVATE[2]),
        ("", three[1], three[2]),
        (PRIVATE[3], PRIVATE[4], PRIVATE[2]),
        (four[0], "a@example.com", PRIVATE[0]),
        (four[0], "b@example.com", PRIVATE[2]),
    ]
    (made.folder / "clientes.csv").write_text("".join(";".join(line) + "\n" for line in lines), "utf-8")
