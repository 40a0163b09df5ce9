"""Verify: what a push created against what the platform has, field by field, for what can be read back.

In: a plan, the ledger, the published warehouse. Out: counts, and `verify.csv` in the plan folder with each field that
differs. Only customers can be read back (interface, GET /customers); the rest is counted as unreadable.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from pipelines.ledger.store import Ledger
from pipelines.plan.current_state import customers_read
from pipelines.plan.model import Plan
from pipelines.push.listing import (
    CustomerListing,
    Key,
    add_documents,
    differing_fields,
    matching_rows,
    records_by_key,
    search_keys,
)
from pipelines.push.passwords import write_private_csv
from pipelines.push.plan_ledger import PlanLedger
from pipelines.warehouse.build import open_warehouse
from pipelines.warehouse.source import DataSource, read_source
from sources.errors import ExitCode, UsageError
from sources.kinds import KINDS
from sources.settings import ledger_path, reconcile_settings, warehouse_path

VERIFY_FILE: Final = "verify.csv"
_BATCH: Final = 10_000
VERIFY_COLUMNS: Final = ("line", "operation", "outcome", "customer_id", "field", "sent", "found")


@dataclass(slots=True)
class VerifyResult:
    """Result of a verification.

    Attributes:
        outcomes: operations by outcome: `same`, `differs`, `missing` or `several` if confirmed and readable;
            `unreadable`; `unsettled` if not confirmed.
        fields: operations with a difference, by field.
        verdict: of the list compared with; if it is not complete, `missing` proves nothing.
        in_doubt: those of the unsettled operations that may have arrived.
    """

    kind: str
    outcomes: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)
    verdict: str = ""
    file: Path | None = None
    in_doubt: int = 0

    @property
    def exit_code(self) -> ExitCode:
        """6 with doubts, else 5 if something differs or is missing; 7 if it is missing from an unproven list."""
        if self.in_doubt:
            return ExitCode.IN_DOUBT
        if self.outcomes["differs"] or self.outcomes["several"]:
            return ExitCode.REJECTED
        if self.outcomes["missing"]:
            return ExitCode.REJECTED if self.verdict == "complete" else ExitCode.COVERAGE
        return ExitCode.DONE


def verify(folder: Path) -> VerifyResult:
    """Compares what was sent with what was pulled since (`orderbridge verify`).

    Raises:
        UsageError: the plan was changed or never pushed, or its customers were not pulled since.
    """
    plan = Plan(folder)
    result = VerifyResult(plan.kind)
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        if ledger.pushes(plan.manifest.plan_id) is None:
            raise UsageError("this plan was never pushed", f"Push it: orderbridge push {shlex.quote(str(folder))}")
        rows = {row.id: row for row in PlanLedger(ledger, plan.manifest.plan_id).rows()}
    confirmed = {number for number, row in rows.items() if row.state == "confirmed"}
    result.outcomes["unsettled"] = len(rows) - len(confirmed)
    result.in_doubt = sum(row.state in ("in_flight", "in_doubt", "conflict") for row in rows.values())
    if not KINDS[plan.kind].is_listed:
        result.outcomes["unreadable"] = len(confirmed)
        return result
    sent_at = max((rows[number].updated_at for number in confirmed), default=0.0)
    country = reconcile_settings().country
    sent = [(operation, rows[operation.id].remote_id) for operation in plan.operations(confirmed)]
    with open_warehouse(warehouse_path()) as connection:
        run_id, result.verdict = _last_read(connection, plan, sent_at)
        keys = {key for operation, _ in sent for key in search_keys(operation.keys)}
        records = _read_records(connection, run_id, keys, {remote_id for _, remote_id in sent if remote_id is not None})
    listing = CustomerListing(False, result.verdict, records_by_key(records.values(), keys))
    findings: list[Sequence[object]] = []
    for operation, remote_id in sent:
        matches = listing.find(search_keys(operation.keys))
        if remote_id in records:  # others with its keys count if they may come from the same create
            twins = (r for r in matches if r["id"] != remote_id and not differing_fields(operation.body, r, country))
            matches = [records[remote_id], *twins]
        line, number = operation.lines[0], operation.id
        if len(matches) != 1:
            outcome = "several" if matches else "missing"
            result.outcomes[outcome] += 1
            findings.append((line, number, outcome, remote_id or "", "", "", ""))
            continue
        fields = differing_fields(operation.body, matches[0], country)
        result.outcomes["differs" if fields else "same"] += 1
        result.fields.update(fields)
        for name in fields:
            values = (json.dumps(value, ensure_ascii=False) for value in (operation.body[name], matches[0].get(name)))
            findings.append((line, number, "differs", matches[0]["id"], name, *values))
    result.file = plan.folder / VERIFY_FILE
    write_private_csv(result.file, [VERIFY_COLUMNS, *findings], plan.manifest.delimiter)
    return result


def _last_read(connection: duckdb.DuckDBPyConnection, plan: Plan, sent_at: float) -> tuple[str, str]:
    """Run and verdict of the last walk over the customers. Raises UsageError if it began before the last send."""
    last_read = customers_read(connection, warehouse_path(), plan.manifest.host)
    if difference := read_source(connection).differences(DataSource(organization=plan.manifest.organization)):
        raise UsageError(
            f"this warehouse is of another organization than the plan: {difference[0]}",
            "Set WAREHOUSE__PATH to the right file.",
        )
    if last_read.started_at < datetime.fromtimestamp(sent_at, UTC):
        hint = "Pull them now: orderbridge pull customers"
        raise UsageError("the customers were pulled before the last of them was sent", hint)
    return last_read.run_id, last_read.verdict


def _read_records(
    connection: duckdb.DuckDBPyConnection, run_id: str, keys: Set[Key], ids: Set[str]
) -> dict[str, dict[str, Any]]:
    """The customers of a walk with one of the keys or ids, by id, in the interface's field names."""
    is_last = duckdb.ColumnExpression("_run_id") == duckdb.ConstantExpression(run_id)
    customers = connection.table("raw.customers").filter(is_last)
    documents = connection.table("raw.customers__documents").sort("customer_id", "position")
    records = matching_rows(map(pa.table, customers.to_arrow_reader(_BATCH)), keys, ids)
    add_documents(records, map(pa.table, documents.to_arrow_reader(_BATCH)))
    return records
