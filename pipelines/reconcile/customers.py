"""The customers of a build, reconciled in parts.

In: the raw customers, their documents and the raw price lists. Out: `reconciled.customers`. A part has customers with
all of their documents. What concerns the list as a whole comes from narrow columns: the form of createdAt, and values
that several customers have.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import pandas as pd

from orderbridge.pipelines.reconcile import parts
from orderbridge.pipelines.reconcile.parts import Parts
from orderbridge.transforms.customers import (
    CUSTOMER_FIELDS,
    CUSTOMERS,
    READ_CUSTOMERS,
    customers_findings,
    customers_part,
)
from orderbridge.transforms.documents import OWNED_DOCUMENTS
from orderbridge.transforms.findings import rule_findings
from orderbridge.transforms.frames import from_arrow
from orderbridge.transforms.values.dates import DateContext, DateEvidence, ReadDates

_NAMES: Final = {"customer_id": "o.id", "created_at_text": "o.created_at"}
_DOCUMENTS: Final = """
    CREATE OR REPLACE TEMP TABLE owned_documents AS
    SELECT c.rowid - (SELECT coalesce(min(rowid), 0) FROM {customers}) AS owner, d.customer_id,
        d.position::BIGINT AS position, d.number, d.fiscal_name, d.is_default, d.for_taxes
    FROM raw.customers__documents d LEFT JOIN {customers} c ON c.id = d.customer_id ORDER BY owner, position"""


def reconcile_customers(
    tables: Parts, price_lists: pd.DataFrame, context: DateContext, coverage_gap: str = ""
) -> ReadDates:
    """Makes `reconciled.customers`; the other arguments are those of `customers_part`. Returns how dates were read."""
    source = tables.numbered("customers")
    dates = DateEvidence(context.order)
    for part in tables.read({source: "created_at"}):
        dates.add(part["created_at"])
    form = dates.form()
    tables.build.execute(_DOCUMENTS.format(customers=source))
    task = partial(
        customers_part, form=form, price_lists=price_lists, context=context, gap=coverage_gap
    )
    made, counts = tables.fill(CUSTOMER_FIELDS, task, _with_documents(tables, source))
    tables.findings.add(customers_findings(counts, form, coverage_gap))
    orphans = tables.build.sql(
        "SELECT customer_id FROM temp.owned_documents WHERE owner IS NULL"
    ).to_arrow_table()
    ids = from_arrow(orphans)["customer_id"]
    tables.findings.add(rule_findings("customers", "document_orphan", ids, detail="documents"))
    columns = (
        f"f.{name}" if name in CUSTOMER_FIELDS else f"{_NAMES.get(name, f'o.{name}')} AS {name}"
        for name in CUSTOMERS
    )
    tables.build.execute(
        f"CREATE OR REPLACE TABLE reconciled.customers AS SELECT {', '.join(columns)} "
        f"FROM {source} o POSITIONAL JOIN {made} f"
    )
    tables.build.execute("DROP TABLE temp.owned_documents")
    return ReadDates("createdAt", form.form, form.evidence, counts["zone_unknown"])


def _with_documents(tables: Parts, source: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    columns = ", ".join(["owner - $first AS owner", *list(OWNED_DOCUMENTS)[1:]])
    sql = f"SELECT {columns} FROM temp.owned_documents WHERE owner >= $first AND owner < $first + $count"
    for number, rows in enumerate(tables.read({source: ", ".join(READ_CUSTOMERS)})):
        values = {"first": number * parts.PART_ROWS, "count": len(rows)}
        # `sql` with parameters would make a Python object of each value
        yield rows, from_arrow(tables.build.execute(sql, values).to_arrow_table())
