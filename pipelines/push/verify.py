"""Verify: what a push created against what the platform has, field by field, for what can be read back.

In: a plan, the ledger, the published warehouse. Out: counts, and `verify.csv` in the plan folder with each field that
differs. Only customers can be read back (interface, GET /customers); the rest is counted as unreadable.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import duckdb

from pipelines.ledger.keys import normalized
from pipelines.ledger.store import Ledger
from pipelines.plan.model import Plan, PlannedOperation
from pipelines.push.comparison import differing_fields
from pipelines.push.listing import LIST_KEYS
from pipelines.push.passwords import write_private_csv
from pipelines.push.plan_ledger import PlanLedger
from pipelines.warehouse.build import open_warehouse
from pipelines.warehouse.ops import last_reads
from sources.contract import CUSTOMER
from sources.decode.table_schema import snake
from sources.errors import ExitCode, UsageError
from sources.kinds import KINDS
from sources.settings import ledger_path, warehouse_path

VERIFY_FILE: Final = "verify.csv"
VERIFY_COLUMNS: Final = ("line", "operation", "outcome", "customer_id", "field", "sent", "found")


@dataclass(slots=True)
class VerifyResult:
    """Result of a verification.

    Attributes:
        outcomes: operations by outcome: `same`, `differs`, `missing` or `several` if confirmed and readable;
            `unreadable`; `unsettled` if not confirmed.
        fields: operations with a difference, by field.
        verdict: of the list compared with; if it is not complete, `missing` proves nothing.
        file: with the fields that differ.
    """

    kind: str
    outcomes: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)
    verdict: str = ""
    file: Path | None = None

    @property
    def exit_code(self) -> ExitCode:
        """5 if something differs or is missing, 7 if something is missing from a list that is not complete."""
        if self.outcomes["differs"] or self.outcomes["several"]:
            return ExitCode.REJECTED
        if self.outcomes["missing"]:
            return ExitCode.REJECTED if self.verdict == "complete" else ExitCode.COVERAGE
        return ExitCode.DONE


def verify(folder: Path) -> VerifyResult:
    """Compares what was sent with what was pulled since (design §5, `orderbridge verify`).

    Raises:
        UsageError: the plan was changed or never pushed, or its customers were not pulled since.
    """
    plan = Plan(folder)
    result = VerifyResult(plan.kind)
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        if not ledger.has(plan.manifest.plan_id):
            raise UsageError("this plan was never pushed", f"Push it: orderbridge push {folder}")
        rows = {row.id: row for row in PlanLedger(ledger, plan.manifest.plan_id).rows()}
    confirmed = {number for number, row in rows.items() if row.state == "confirmed"}
    result.outcomes["unsettled"] = len(rows) - len(confirmed)
    if not KINDS[plan.kind].is_listed:
        result.outcomes["unreadable"] = len(confirmed)
        return result
    sent_at = max((rows[number].updated_at for number in confirmed), default=0.0)
    operations = [operation for operation in plan.operations() if operation.id in confirmed]
    with open_warehouse(warehouse_path()) as connection:
        run_id, result.verdict = _last_read(connection, plan, sent_at)
        index = _customers(connection, run_id, operations)
    findings: list[Sequence[object]] = []
    for operation in operations:
        _compare(operation, rows[operation.id].remote_id, index, result, findings)
    result.file = plan.folder / VERIFY_FILE
    write_private_csv(result.file, [VERIFY_COLUMNS, *findings])
    return result


def _last_read(connection: duckdb.DuckDBPyConnection, plan: Plan, sent_at: float) -> tuple[str, str]:
    """Run and verdict of the last walk over the customers. Raises UsageError if it began before the last send."""
    hint = "Pull them now: orderbridge pull customers"
    last_read = last_reads(connection).get("customers")
    if last_read is None:
        raise UsageError("the customers were never pulled into this warehouse", hint)
    host = last_read.legacy_host
    if host != urlsplit(plan.manifest.host).netloc:
        raise UsageError(
            f"this warehouse is of {host}, the plan of {plan.manifest.host}", "Set WAREHOUSE__PATH to the right file."
        )
    if last_read.started_at < datetime.fromtimestamp(sent_at, UTC):
        raise UsageError("the customers were pulled before the last of them was sent", hint)
    return last_read.run_id, last_read.verdict


Index = Mapping[tuple[str, str], list[dict[str, Any]]]
"""Customers by name and normalized value of a key."""


def _customers(connection: duckdb.DuckDBPyConnection, run_id: str, operations: Sequence[PlannedOperation]) -> Index:
    """The customers of a walk with a key of these operations, in the interface's field names."""
    keys = {(name, normalized(name, value)) for operation in operations for name, value in operation.keys.items()}
    columns = {f.name: snake(f.name) for f in CUSTOMER.fields if f.type != "array"}
    listed = ", ".join(f'"{column}"' for column in columns.values())
    index: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    by_id: dict[str, dict[str, Any]] = {}
    cursor = connection.execute(f"SELECT {listed} FROM raw.customers WHERE _run_id = $1", [run_id])
    while batch := cursor.fetchmany(10_000):
        for row in batch:
            record: dict[str, Any] = dict(zip(columns, row, strict=True), documents=[])
            matches = [(n, k) for n in LIST_KEYS if record[n] and (n, k := normalized(n, record[n])) in keys]
            if matches:
                by_id[record["id"]] = record
            for key in matches:
                index[key].append(record)
    columns = {f.name: snake(f.name) for f in CUSTOMER.field("documents").fields}
    listed = ", ".join(f'"{column}"' for column in columns.values())
    cursor = connection.execute(
        f"SELECT customer_id, {listed} FROM raw.customers__documents ORDER BY customer_id, position"
    )
    while batch := cursor.fetchmany(10_000):
        for customer_id, *values in batch:
            if customer_id in by_id:
                by_id[customer_id]["documents"].append(dict(zip(columns, values, strict=True)))
    return index


def _compare(
    operation: PlannedOperation,
    remote_id: str | None,
    index: Index,
    result: VerifyResult,
    findings: list[Sequence[object]],
) -> None:
    matches = {
        record["id"]: record
        for name, value in operation.keys.items()
        for record in index.get((name, normalized(name, value)), ())
    }
    line = operation.lines[0]
    if len(matches) != 1:
        outcome = "several" if matches else "missing"
        result.outcomes[outcome] += 1
        findings.append((line, operation.id, outcome, remote_id or "", "", "", ""))
        return
    (record,) = matches.values()
    fields = differing_fields(operation.body, record)
    result.outcomes["differs" if fields else "same"] += 1
    result.fields.update(fields)
    for name in fields:
        sent, actual = (json.dumps(value, ensure_ascii=False) for value in (operation.body[name], record.get(name)))
        findings.append((line, operation.id, "differs", record["id"], name, sent, actual))
