"""The report as a test reads it, and changes of the warehouse that it is made from."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import duckdb

from pipelines.reporting.report import report
from pipelines.warehouse.build import open_warehouse
from tests.pipelines.reconcile.erp_file import PRIVATE


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


def change(path: Path, sql: str) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(sql)
        columns = connection.sql("SELECT column_name FROM duckdb_columns() WHERE schema_name = 'reconciled'").fetchall()
        if {("ordered_date",), ("today",)} <= set(columns):  # those of the times that were changed
            connection.execute("UPDATE reconciled.orders SET ordered_date = ordered_at::DATE")
            connection.execute("UPDATE reconciled.as_of SET today = (SELECT max(ended_at) FROM ops.runs)::DATE")


def made(path: Path) -> Page:
    out = path.with_name("report.html")
    report(out)
    return Page(out.read_text("utf-8"))


def personal(path: Path) -> list[str]:
    """What must not be shown of the customers of a warehouse and of the ERP file."""
    names = "full_name, email, phone, erp_code, login_code, default_fiscal_name, default_document_number"
    with open_warehouse(path) as warehouse:
        found = warehouse.execute(f"SELECT DISTINCT unnest([{names}]) FROM reconciled.customers").fetchall()
    return [*PRIVATE, *(value for (value,) in found if value and len(value) > 3)]
