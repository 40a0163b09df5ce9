"""Verify: what landed against what was sent, field by field, for what can be read back.

In: a plan, the ledger, the published warehouse. Out: counts, and `verify.csv` in the plan's folder with each field that
differs. Customers alone can be read (interface, GET /customers); what cannot be read is said, and counted.
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

from pipelines.ledger.store import Ledger, identity
from pipelines.plan.model import Plan, PlannedOperation
from pipelines.push.listing import KEYS, differing
from pipelines.push.passwords import write_private_csv
from pipelines.push.plan_ledger import PlanLedger
from pipelines.warehouse.build import open_warehouse
from pipelines.warehouse.ops import last_reads
from sources.contract import CUSTOMER
from sources.decode.table_schema import snake
from sources.errors import ExitCode, UsageError
from sources.kinds import KINDS
from sources.settings import ledger_path, warehouse_path

FILE: Final = "verify.csv"
COLUMNS: Final = ("line", "operation", "outcome", "customer_id", "field", "sent", "found")


@dataclass(slots=True)
class VerifyResult:
    """What was found.

    Attributes:
        outcomes: operations by outcome: `same`, `differs`, `missing`, `several` of what was confirmed and can be read;
            `unreadable`; `unsettled` of what is not confirmed.
        fields: differing operations by field.
        verdict: of the list that was read; where it is not complete, `missing` proves nothing.
        file: with the fields that differ.
    """

    kind: str
    outcomes: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)
    verdict: str = ""
    file: Path | None = None

    @property
    def exit_code(self) -> int:
        """Nothing differs; something does; or something is missing from a list that proves nothing."""
        if self.outcomes["differs"] or self.outcomes["several"]:
            return ExitCode.REJECTED
        if self.outcomes["missing"]:
            return ExitCode.REJECTED if self.verdict == "complete" else ExitCode.COVERAGE
        return 0


def verify(folder: Path) -> VerifyResult:
    """Compares what was sent with what was pulled since (design §5, `orderbridge verify`).

    Raises:
        UsageError: the plan was changed or never pushed; or its customers were not pulled since.
    """
    plan = Plan(folder)
    made = VerifyResult(plan.manifest.kind)
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        if not any(
            True for _ in ledger.connection.execute("SELECT 1 FROM plans WHERE plan_id = ?", [plan.manifest.plan_id])
        ):
            raise UsageError("this plan was never pushed", f"Push it: orderbridge push {folder}")
        rows = {row.id: row for row in PlanLedger(ledger, plan.manifest.plan_id).rows()}
    confirmed = {number for number, row in rows.items() if row.state == "confirmed"}
    made.outcomes["unsettled"] = len(rows) - len(confirmed)
    if not KINDS[plan.kind].is_listed:
        made.outcomes["unreadable"] = len(confirmed)
        return made
    sent_at = max((rows[number].updated_at for number in confirmed), default=0.0)
    findings: list[Sequence[object]] = []
    with open_warehouse(warehouse_path()) as connection:
        run_id, made.verdict = _read_since(connection, plan, sent_at)
        index = _customers(connection, run_id, [op for op in plan.operations() if op.id in confirmed])
    for operation in plan.operations():
        if operation.id in confirmed:
            _compare(operation, rows[operation.id].remote_id, index, made, findings)
    made.file = plan.folder / FILE
    write_private_csv(made.file, [COLUMNS, *findings])
    return made


def _read_since(connection: duckdb.DuckDBPyConnection, plan: Plan, sent_at: float) -> tuple[str, str]:
    """Run and verdict of the last walk over the customers. Raises UsageError where it began before the last send."""
    hint = "Pull them now: orderbridge pull customers"
    last_read = last_reads(connection).get("customers")
    if last_read is None:
        raise UsageError("the customers were never pulled into this warehouse", hint)
    host = last_read.legacy_host
    if host != urlsplit(plan.manifest.host).netloc:
        raise UsageError(f"this warehouse is of {host}, the plan of {plan.manifest.host}", "Look at WAREHOUSE__PATH.")
    if last_read.started_at < datetime.fromtimestamp(sent_at, UTC):
        raise UsageError("the customers were pulled before the last of them was sent", hint)
    return last_read.run_id, last_read.verdict


Index = Mapping[tuple[str, str], list[dict[str, Any]]]


def _customers(connection: duckdb.DuckDBPyConnection, run_id: str, operations: Sequence[PlannedOperation]) -> Index:
    """The customers of a walk that have a key of these operations, by id and key, with the interface's own names."""
    keys = {(name, identity(name, value)) for operation in operations for name, value in operation.keys.items()}
    scalars = {f.name: snake(f.name) for f in CUSTOMER.fields if f.type != "array"}
    listed = ", ".join(f'"{column}"' for column in scalars.values())
    index: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    by_id: dict[str, dict[str, Any]] = {}
    cursor = connection.execute(f"SELECT {listed} FROM raw.customers WHERE _run_id = $1", [run_id])
    while batch := cursor.fetchmany(10_000):
        for row in batch:
            record: dict[str, Any] = dict(zip(scalars, row, strict=True), documents=[])
            found = [(n, k) for n in KEYS if record[n] and (n, k := identity(n, record[n])) in keys]
            if found:
                by_id[record["id"]] = record
            for key in found:
                index[key].append(record)
    fields = {f.name: snake(f.name) for f in CUSTOMER.field("documents").fields}
    listed = ", ".join(f'"{column}"' for column in fields.values())
    cursor = connection.execute(
        f"SELECT customer_id, {listed} FROM raw.customers__documents ORDER BY customer_id, position"
    )
    while batch := cursor.fetchmany(10_000):
        for customer_id, *values in batch:
            if customer_id in by_id:
                by_id[customer_id]["documents"].append(dict(zip(fields, values, strict=True)))
    return index


def _compare(
    operation: PlannedOperation,
    remote_id: str | None,
    index: Index,
    made: VerifyResult,
    findings: list[Sequence[object]],
) -> None:
    found = {
        record["id"]: record
        for name, value in operation.keys.items()
        for record in index.get((name, identity(name, value)), ())
    }
    line = operation.lines[0]
    if len(found) != 1:
        outcome = "several" if found else "missing"
        made.outcomes[outcome] += 1
        findings.append((line, operation.id, outcome, remote_id or "", "", "", ""))
        return
    (record,) = found.values()
    fields = differing(operation.body, record)
    made.outcomes["differs" if fields else "same"] += 1
    made.fields.update(fields)
    for name in fields:
        sent, there = (json.dumps(value, ensure_ascii=False) for value in (operation.body[name], record.get(name)))
        findings.append((line, operation.id, "differs", record["id"], name, sent, there))
