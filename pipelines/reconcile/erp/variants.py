"""The ERP's variants compared with what was last confirmed: the platform shows no variants, so the ledger decides.

In: a file of variants, read as `plan` reads it, and the ledger. Out: `reconciled.erp_variants` in a build: never sent,
same, or different. Without a file the table is empty; without a ledger every variant is never sent.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Final

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.imports import ReadyInputs, RejectedInput, open_inputs
from orderbridge.pipelines.imports.json_columns import as_json
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.mapping import load
from orderbridge.pipelines.reconcile.erp.files import ErpFiles, warn_of_layout
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.sql import has_tables, replace
from orderbridge.sources.errors import BridgeError
from orderbridge.sources.kinds import increment_fields
from orderbridge.sources.settings import ledger_path, legacy_settings
from orderbridge.transforms.erp.variants import (
    CONFIRMED,
    ERP_VARIANTS,
    FIELD_KEY,
    VARIANT_LINES,
    variants,
)
from orderbridge.transforms.frames import frame, from_arrow

_VARIANT: Final = "^/products/(?P<product_id>[^/]+)/variants/(?P<variant_id>[^/]+)$"
_IDS: Final = {"productId": "product_id", "variantId": "variant_id"}
_STATUSES: Final = """
    SELECT status, count(*) FROM reconciled.erp_variants GROUP BY status
    ORDER BY CASE status WHEN 'same' THEN 0 WHEN 'differs' THEN 1 ELSE 2 END"""


@dataclass(frozen=True, slots=True)
class ErpVariants:
    """The contents of a file of the ERP's variants, and what was confirmed of variants.

    Attributes:
        rows: `_line` (the first of an input), `product_id`, `variant_id`, and a column of JSON text for each field.
        confirmed: the columns of `transforms.erp.variants.CONFIRMED`, of the settings' host; those of the key alone of
            fields that were sent, and whether they arrived is unknown.
        refused: first lines of the inputs that are rejected.
    """

    rows: pd.DataFrame
    confirmed: pd.DataFrame
    refused: list[int]


@dataclass(slots=True)
class VariantSummary:
    """Number of rows by status, and the lines that were rejected."""

    statuses: list[tuple[str, int]]
    refused: list[int]


def read_erp_variants(files: ErpFiles) -> ErpVariants | None:
    """Reads the file of the ERP's variants and the ledger; None without a file.

    A field whose numbers the platform adds to the present ones has no value to compare, and is left out.

    Raises:
        UsageError: the file, its mapping, the ledger or the settings of the legacy family cannot be used.
    """
    if files.variants is None:
        return None
    settings = legacy_settings()
    mapping = (
        load(files.variants_mapping, "variants", files.lookups)
        if files.variants_mapping is not None
        else None
    )
    inputs = open_inputs("variants", files.variants, mapping, semantics=settings.semantics)
    warn_of_layout(files.variants, inputs.table)
    added = increment_fields(settings.semantics)
    tables = [pa.schema(list(VARIANT_LINES.items())).empty_table()]
    refused: list[int] = []
    for one in inputs:
        if isinstance(one, RejectedInput):
            refused.append(one.lines[0])
        elif isinstance(one, ReadyInputs):
            tables.append(_lines_without(added, one))
    rows = from_arrow(pa.concat_tables(tables, promote_options="default"))
    return ErpVariants(rows, _confirmed(settings.base_url), sorted(refused))


def _lines_without(added: Set[str], ready: ReadyInputs) -> pa.Table:
    """Lines of the file, without these fields."""
    columns = {
        name: texts
        for name, texts in as_json("variants", ready.columns).items()
        if name not in added
    }
    names = [_IDS.get(name, name) for name in columns]
    lines = pc.list_element(ready.lines, 0)
    return pa.table([lines, *columns.values()], ["_line", *names])


def _confirmed(host: str) -> pd.DataFrame:
    """The fields of variants that the ledger has sent: with the value last confirmed, or none while in doubt."""
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        values = ledger.confirmed(host)
        sent = sorted(ledger.doubtful(host))
    ids = pc.extract_regex(values["path"], _VARIANT)
    parts = {name: pc.struct_field(ids, name) for name in FIELD_KEY[:2]}
    columns = {name: parts[name] if name in parts else values[name] for name in CONFIRMED}
    table = pa.table(columns, pa.schema(list(CONFIRMED.items()))).filter(pc.is_valid(ids))
    confirmed = from_arrow(table)
    doubtful = [
        found.groupdict() | {"field": name}
        for path, name in sent
        if (found := re.fullmatch(_VARIANT, path))
    ]
    if not doubtful:
        return confirmed
    known = pd.concat([confirmed, frame(CONFIRMED, doubtful)])
    return known.drop_duplicates(FIELD_KEY, ignore_index=True)


def compare_variants(
    build: duckdb.DuckDBPyConnection, run_id: str, erp: ErpVariants | None, *, forget: bool
) -> VariantSummary | None:
    """Makes the table in a build. Returns its counts; None without a file: the last table stays, or is forgotten.

    Raises:
        BridgeError: a line is in no row of the table.
    """
    if erp is None:
        if forget or not has_tables(build, "reconciled", "erp_variants"):
            replace(build, "erp_variants", frame(ERP_VARIANTS))
        return None
    table = variants(erp.rows, erp.confirmed)
    if len(table) != len(erp.rows):
        raise BridgeError(
            f"erp_variants: {len(erp.rows)} lines read, {len(table)} rows: the totals do not balance"
        )
    replace(build, "erp_variants", table)
    summary = VariantSummary(build.execute(_STATUSES).fetchall(), erp.refused)
    totals = {"erp_read": len(erp.rows), **dict(summary.statuses), "refused": len(erp.refused)}
    ops.record_totals(build, run_id, "reconciled.erp_variants", totals)
    return summary
