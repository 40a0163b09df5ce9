"""The report as a test reads it, changes of the warehouse that it is made from, and what no output of ours may show."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import duckdb

from orderbridge.pipelines.reporting.report import report
from orderbridge.pipelines.warehouse.build import open_warehouse
from tests.pipelines.bridge import Bridge

PRIVATE = ("Secundina", "secreta@example.com", "Nombre Del Fichero", "C-NUEVO", "nueva@example.com")
"""What the file holds and the platform does not."""
_LEFTOVERS = re.compile(
    r"\b(?:NaN|NaT|nan|None(?! of|[.:] ?))\b|<NA>|&lt;NA&gt;|(?<![\d.])\d+\.0(?![\d.])"
)
"""How Python and pandas write a missing value or a float."""


class Page(HTMLParser):
    """Elements with their attributes, and the visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._hidden = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._hidden = tag == "style"
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False

    def handle_data(self, data: str) -> None:
        self.words += "" if self._hidden else f"{data} "

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def write_erp_file(made: Bridge) -> None:
    """`clientes.csv` next to the warehouse: two lines match by code, one by e-mail, one is new, two clash."""
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
    (made.folder / "clientes.csv").write_text(
        "".join(";".join(line) + "\n" for line in lines), "utf-8"
    )


def change(path: Path, sql: str) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(sql)
        columns = connection.sql(
            "SELECT column_name FROM duckdb_columns() WHERE schema_name = 'reconciled'"
        ).fetchall()
        if {("ordered_date",), ("today",)} <= set(columns):  # those of the times that were changed
            connection.execute("UPDATE reconciled.orders SET ordered_date = ordered_at::DATE")
            connection.execute(
                "UPDATE reconciled.as_of SET today = (SELECT max(ended_at) FROM ops.runs)::DATE"
            )


def made(path: Path) -> Page:
    out = path.with_name("report.html")
    report(out)
    return Page(out.read_text("utf-8"))


def personal(path: Path, *more: str) -> list[str]:
    """What must not be shown of the customers of a warehouse and of the ERP file; `more` of their columns."""
    columns = "full_name, email, phone, erp_code, login_code, default_fiscal_name, default_document_number"
    names = ", ".join([columns, *more])
    with open_warehouse(path) as warehouse:
        found = warehouse.execute(
            f"SELECT DISTINCT unnest([{names}]) FROM reconciled.customers"
        ).fetchall()
    return [*PRIVATE, *(value for (value,) in found if value and len(value) > 3)]


def leftovers(text: str) -> list[str]:
    """Missing values (`NaN`, `None`) and whole numbers as floats (`5000.0`), each with the text around it."""
    if "</" in text:
        text = re.sub(r"<style.*?</style>|<[^<>]+>", " ", text, flags=re.DOTALL)
    return [
        text[max(0, found.start() - 40) : found.end() + 20] for found in _LEFTOVERS.finditer(text)
    ]


def leftovers_in(folder: Path) -> dict[str, list[str]]:
    """Those of every text file below a folder, by name; ERP exports may be cp1252."""
    texts = {
        path.name: path.read_bytes().decode("cp1252", "replace")
        for path in folder.rglob("*")
        if path.suffix in (".csv", ".json", ".jsonl", ".md", ".html", ".toml")
    }
    return {name: found for name, text in texts.items() if (found := leftovers(text))}
