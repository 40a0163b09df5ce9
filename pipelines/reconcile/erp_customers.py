"""Files of the ERP's beside the platform: read before all else, matched when the tables are reconciled.

In: a file that the intake reads, and which of its columns is which field. Out: frames for the transforms, and in a
build `reconciled.erp_customers` and `.erp_differences`, whose totals add up on both sides. Without a file the tables
are there and empty: what an older file said of older customers would be taken for today's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb

from pipelines.warehouse import ops
from pipelines.warehouse.tables import replace
from sources.errors import BridgeError, UsageError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from sources.files import RejectedRow

CUSTOMER_FIELDS: Final = {
    "erpCode": "erp_code",
    "loginCode": "login_code",
    "email": "email",
    "documents[0].number": "document_number",
    "firstName": "first_name",
    "lastName": "last_name",
    "phone": "phone",
    "priceListId": "price_list_id",
    "documents[0].fiscalName": "fiscal_name",
    "documents[0].fiscalAddress": "fiscal_address",
    "documents[0].email": "document_email",
}
"""The fields of a customer that are compared, as a mapping names them, and the columns that the match knows."""
KEYS: Final = ("erp_code", "login_code", "email", "document_number")


@dataclass(frozen=True, slots=True)
class ErpFiles:
    """Which files of the ERP's are compared, and their mappings; None: none, or proposed by the columns' names."""

    customers: Path | None = None
    mapping: Path | None = None
    variants: Path | None = None
    variants_mapping: Path | None = None


@dataclass(frozen=True, slots=True)
class ErpCustomers:
    """The ERP's customers as their file has them.

    Attributes:
        rows: `_line` and a column of text for each field that the file has, as `transforms.erp.match` names it.
        refused: lines that do not fit.
        columns: what is compared, with the column of the file that it is read from.
        unread: columns of the file that nothing is read from.
    """

    rows: pd.DataFrame
    refused: list[RejectedRow]
    columns: dict[str, str]
    unread: tuple[str, ...]


@dataclass(slots=True)
class MatchSummary:
    """What the match with the ERP came to.

    Attributes:
        statuses: status, the key that decided (None for none) and how many rows, in the order of the cascade.
        differences: field and how many customers differ in it, the most frequent first.
        repeated: lines that are equal to an earlier one.
        refused: numbers of the lines that do not fit the file.
        columns: what was compared, with the column of the file that it was read from.
        unread: columns of the file that nothing was read from.
        doubt: why the customer of a line may be one who was not read; empty where all were.
    """

    statuses: list[tuple[str, str | None, int]] = field(default_factory=list)
    differences: list[tuple[str, int]] = field(default_factory=list)
    repeated: int = 0
    refused: list[int] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    doubt: str = ""


def read_customers(files: ErpFiles) -> ErpCustomers | None:
    """Reads the ERP's customers; None where no file is told.

    Raises:
        UsageError: the file or its mapping cannot be read, or no column of it is a key.
    """
    if files.customers is None:
        if files.mapping is not None:
            raise UsageError("--erp-mapping is of a file that is not told", "Name it with --erp-customers.")
        return None
    import pyarrow as pa

    from pipelines.mapping import load, propose
    from sources.files import open_table
    from transforms.frames import from_arrow

    mapping = load(files.mapping, "customers") if files.mapping is not None else None
    table = open_table(files.customers, mapping.read_options if mapping is not None else None)
    mapping = mapping or propose(table.columns, "customers")
    read = {
        CUSTOMER_FIELDS[path]: column
        for column in mapping.columns.values()
        for path in (column.field, *column.also)
        if path in CUSTOMER_FIELDS
    }
    lacking = sorted({column.name for column in read.values()} - set(table.columns))
    if lacking:
        raise UsageError(
            f"{files.customers.name} has no column {', '.join(lacking)}, which the mapping names",
            f"Its columns: {', '.join(table.columns)}.",
        )
    if not set(KEYS) & set(read):
        raise UsageError(
            f"{files.customers.name}: no column is a code, login code, e-mail or document number",
            f"Its columns: {', '.join(table.columns)}. Say which is which in a mapping file: --erp-mapping FILE.",
        )
    refused: list[RejectedRow] = []
    schema = pa.schema([*((name, pa.string()) for name in read), ("_line", pa.int64())])
    parts = [schema.empty_table()]
    for batch in table.batches(on_reject=refused.append):
        cells = {
            name: _without(batch[column.name], column.formats.over(mapping.formats).empty or ())
            for name, column in read.items()
        }
        parts.append(pa.table({**cells, "_line": batch["_line"]}, schema))
    columns = {name: column.name for name, column in read.items()}
    unread = tuple(name for name in table.columns if name not in columns.values())
    return ErpCustomers(from_arrow(pa.concat_tables(parts)), refused, columns, unread)


def _without(cells: pa.ChunkedArray, empty: Sequence[str]) -> pa.ChunkedArray:
    """The cells, null for those that the mapping says mean nothing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not empty:
        return cells
    return pc.if_else(pc.is_in(cells, value_set=pa.array(empty, pa.string())), pa.scalar(None, pa.string()), cells)


def match_into(
    build: duckdb.DuckDBPyConnection,
    run_id: str,
    erp: ErpCustomers | None,
    customers: pd.DataFrame,
    documents: pd.DataFrame,
    doubt: str = "",
) -> tuple[MatchSummary | None, pd.DataFrame]:
    """Makes the tables of the match in a build that has the reconciled customers.

    Args:
        build: open for writing.
        run_id: of this run, for the control totals.
        erp: the ERP's customers; None makes the tables empty.
        customers: the reconciled ones.
        documents: the raw ones.
        doubt: why a customer may be listed who is not among them; empty where they are proven to be all.

    Returns:
        What it came to, None without a file; and the findings.

    Raises:
        BridgeError: a row of either side is in no row of the table, or in two.
    """
    import pyarrow as pa

    from transforms.erp.match import ERP_CUSTOMERS, ERP_DIFFERENCES, match
    from transforms.findings import FINDINGS, combine_findings, rule_findings, table_finding
    from transforms.frames import frame

    if erp is None:
        replace(build, "erp_customers", frame(ERP_CUSTOMERS))
        replace(build, "erp_differences", frame(ERP_DIFFERENCES))
        return None, frame(FINDINGS)
    found = match(erp.rows, customers, documents)
    replace(build, "erp_customers", found.customers)
    replace(build, "erp_differences", found.differences)
    refused = [line.line for line in erp.refused]
    made = MatchSummary(repeated=found.repeated, refused=refused, columns=dict(erp.columns), unread=erp.unread)
    made.statuses = build.execute(_STATUSES).fetchall()
    made.differences = build.execute(_DIFFERENCES).fetchall()
    totals = _balanced(build, len(erp.rows), found.repeated)
    ops.record_totals(build, run_id, "reconciled.erp_customers", {**totals, "refused": len(refused)})
    ids = pa.array([str(line) for line in refused], pa.string())
    codes = pa.array([line.code for line in erp.refused], pa.string())
    findings = [found.findings, rule_findings("erp_customers", "line_refused", ids, detail=codes)]
    if doubt and len(erp.rows):
        made.doubt = doubt
        detail = f"{totals['only_in_erp']} lines only in the ERP: {doubt}"
        findings.append(table_finding("erp_customers", "customers_unproven", detail))
    return made, combine_findings(findings)


_STATUSES: Final = """
    SELECT status, matched_by, count(*) FROM reconciled.erp_customers GROUP BY status, matched_by
    ORDER BY CASE status WHEN 'matched' THEN 0 WHEN 'ambiguous' THEN 1 WHEN 'only_in_erp' THEN 2 ELSE 3 END,
        CASE matched_by WHEN 'erp_code' THEN 0 WHEN 'login_code' THEN 1 WHEN 'email' THEN 2 ELSE 3 END"""
_DIFFERENCES: Final = """
    SELECT field, count(*) FROM reconciled.erp_differences GROUP BY field ORDER BY count(*) DESC, field"""
_TOTALS: Final = """
    SELECT count(line), count(DISTINCT line), count(customer_id), count(DISTINCT customer_id),
        count(*) FILTER (status = 'matched'),
        count(*) FILTER (status = 'only_in_erp'), count(line) FILTER (status = 'ambiguous'),
        count(*) FILTER (status = 'only_in_platform'), count(customer_id) FILTER (status = 'ambiguous'),
        (SELECT count(*) FROM reconciled.customers WHERE NOT is_missing),
        (SELECT count(*) FROM reconciled.customers c JOIN reconciled.erp_customers e USING (customer_id)
            WHERE NOT c.is_missing)
    FROM reconciled.erp_customers"""


def _balanced(build: duckdb.DuckDBPyConnection, read: int, repeated: int) -> dict[str, int]:
    """The totals of both sides. Raises BridgeError where they do not add up to what was read."""
    (
        lines,
        distinct_lines,
        ids,
        distinct_ids,
        matched,
        in_erp,
        lines_several,
        in_platform,
        ids_several,
        present,
        known,
    ) = build.execute(_TOTALS).fetchone() or (0,) * 11
    erp_side = (lines, distinct_lines, matched + in_erp + lines_several)
    platform_side = (ids, distinct_ids, known, matched + in_platform + ids_several)
    if set(erp_side) != {read - repeated} or set(platform_side) != {present}:
        raise BridgeError(
            f"erp_customers: {read} lines read, {repeated} repeated, in the table {erp_side}; "
            f"{present} customers present, in the table {platform_side}: the totals do not balance"
        )
    return {
        "erp_read": read,
        "erp_repeated": repeated,
        "platform": present,
        "matched": matched,
        "only_in_erp": in_erp,
        "ambiguous_in_erp": lines_several,
        "only_in_platform": in_platform,
        "ambiguous_in_platform": ids_several,
    }
