"""Verify: what a push sent against what the platform has, field by field, for what can be read back.

In: a plan, the ledger, the published warehouse. Out: counts, and `verify.csv` in the plan folder with each field that
differs; in the ledger, the ids of customers that their create did not return. What a list shows can be read back:
customers that were created, and updates of the records of a list, by their id. The rest is counted as unreadable.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from orderbridge.pipelines.ledger.keys import loose_code
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.current_state import list_read
from orderbridge.pipelines.plan.model import Plan, PlannedOperation
from orderbridge.pipelines.push.checks import host_now
from orderbridge.pipelines.push.listing import (
    CustomerListing,
    Key,
    add_documents,
    any_spelling,
    differing_fields,
    matching_rows,
    records_by_key,
    search_keys,
)
from orderbridge.pipelines.push.passwords import write_private_csv
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.run import ledger_lock
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.source import read_source
from orderbridge.sources.contract import CUSTOMER, Record
from orderbridge.sources.errors import ExitCode, LockedError, UsageError
from orderbridge.sources.http.masking import masked
from orderbridge.sources.kinds import KINDS, KindName
from orderbridge.sources.settings import (
    DataSource,
    ledger_path,
    reconcile_settings,
    warehouse_path,
)

VERIFY_FILE: Final = "verify.csv"
_BATCH: Final = 10_000
_CODES: Final = [name for name in KINDS["customers"].list_keys if name != "email"]


@dataclass(slots=True)
class VerifyResult:
    """Result of a verification.

    Attributes:
        outcomes: operations by outcome: `same`, `differs`, `missing` or `several` if confirmed and readable;
            `unreadable`; `unsettled` if not confirmed.
        fields: operations with a difference, by field.
        spelling: operations whose code the platform writes in another way, by field: the same record, by its id.
        verdict: of the list compared with; if it is not complete, `missing` proves nothing.
        in_doubt: those of the unsettled operations that may have arrived.
    """

    kind: KindName
    outcomes: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)
    spelling: Counter[str] = field(default_factory=Counter)
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
        UsageError: the plan was changed or never pushed, or its list was not pulled since.
    """
    plan = Plan(folder)
    result, kind = VerifyResult(plan.kind), KINDS[plan.kind]
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        if ledger.pushes(plan.manifest.plan_id) is None:
            raise UsageError(
                "this plan was never pushed",
                f"Push it: orderbridge push {shlex.quote(str(folder))}",
            )
        rows = {row.id: row for row in PlanLedger(ledger, plan.manifest.plan_id).rows()}
    confirmed = {number for number, row in rows.items() if row.state == "confirmed"}
    result.outcomes["unsettled"] = len(rows) - len(confirmed)
    result.in_doubt = sum(
        row.state in ("in_flight", "in_doubt", "conflict") for row in rows.values()
    )
    if (shown := kind.operation.shown_in) is None:
        result.outcomes["unreadable"] = len(confirmed)
        return result
    sent_at = max((rows[number].updated_at for number in confirmed), default=0.0)
    country = reconcile_settings().country
    sent = [
        (
            operation,
            (operation.path.rpartition("/")[2] if kind.is_update else rows[operation.id].remote_id)
            or "",
        )
        for operation in plan.operations(confirmed)
    ]
    keys, ids = (
        {key for operation, _ in sent for key in _keys_of(operation)},
        {found for _, found in sent},
    )
    with open_warehouse(warehouse_path()) as connection:
        result.verdict, records = _read_records(connection, plan, shown, sent_at, keys, ids)
    listing = CustomerListing(False, result.verdict, records_by_key(records.values(), keys))
    findings: list[Sequence[object]] = []
    found_ids: dict[int, str] = {}
    for operation, remote_id in sent:
        own_keys = search_keys(operation.keys)
        matches = listing.find(own_keys) or listing.find(any_spelling(own_keys))
        if remote_id in records:  # others with its keys count if they may come from the same create
            twins = (
                r
                for r in matches
                if r["id"] != remote_id and not differing_fields(operation.body, r, country)
            )
            matches = [records[remote_id], *twins]
        line, number = operation.lines[0], operation.id
        if len(matches) != 1:
            outcome = "several" if matches else "missing"
            result.outcomes[outcome] += 1
            findings.append((line, number, outcome, remote_id, "", "", ""))
            continue
        if not remote_id:
            found_ids[number] = str(matches[0][shown.key])
        differing = differing_fields(operation.body, matches[0], country)
        respelt = _respelt(differing, operation.body, matches[0], remote_id)
        fields = [name for name in differing if name not in respelt]
        result.spelling.update(respelt)
        findings += [
            (line, number, "spelling", remote_id, name, operation.body[name], matches[0][name])
            for name in respelt
        ]
        result.outcomes["differs" if fields else "same"] += 1
        result.fields.update(fields)
        for name in fields:
            both = operation.body[name], matches[0][name]
            values = (json.dumps(value, ensure_ascii=False, default=str) for value in both)
            findings.append((line, number, "differs", matches[0][shown.key], name, *values))
    _keep_ids(plan, found_ids)
    result.file = plan.folder / VERIFY_FILE
    columns = ("line", "operation", "outcome", f"{kind.singular}_id", "field", "sent", "found")
    write_private_csv(result.file, [columns, *findings], plan.manifest.delimiter)
    return result


def _keep_ids(plan: Plan, found: Mapping[int, str]) -> None:
    """Writes ids that the platform did not return when it created the customers: they are known by them from now on."""
    if not found:
        return
    path = ledger_path()
    with (
        suppress(LockedError),
        ledger_lock(path),
        Ledger.open(path) as ledger,
    ):  # else the next time
        PlanLedger(ledger, plan.manifest.plan_id).keep_ids(found)


def _keys_of(operation: PlannedOperation) -> list[Key]:
    """The keys of an operation, and those of other spellings."""
    own = search_keys(operation.keys)
    return [*own, *any_spelling(own)]


def _respelt(
    fields: Sequence[str], body: Mapping[str, Any], found: Mapping[str, Any], remote_id: str
) -> list[str]:
    """The codes that the platform writes in another way: alike, or with a prefix if it gave this record this id."""
    codes = [name for name in fields if name in _CODES and found[name]]
    is_its_own = found["id"] == remote_id
    return [name for name in codes if _is_alike(body[name], found[name], is_its_own=is_its_own)]


def _is_alike(sent: str, found: str, *, is_its_own: bool) -> bool:
    left, right = loose_code(sent), loose_code(found)
    return left == right or (is_its_own and bool(left) and right.endswith(left))


def _read_records(
    connection: duckdb.DuckDBPyConnection,
    plan: Plan,
    shown: Record,
    sent_at: float,
    keys: Set[Key],
    ids: Set[str],
) -> tuple[str, dict[str, dict[str, Any]]]:
    """The verdict of the last walk over a list, and its records with one of the ids or, of customers, keys.

    Raises:
        UsageError: it began before the last send, or was not over the list of the plan's shop.
    """
    name = shown.name
    last_read = list_read(connection, warehouse_path(), host_now(plan.manifest), name)
    if difference := read_source(connection).differences(
        DataSource(organization=masked(plan.manifest.organization))
    ):
        raise UsageError(
            f"this warehouse is of another organization than the plan: {difference[0]}",
            "Set WAREHOUSE__PATH to the right file.",
        )
    if last_read.started_at < datetime.fromtimestamp(sent_at, UTC):
        hint = f"Pull them now: orderbridge pull {name}"
        raise UsageError(f"the {name} were pulled before the last of them was sent", hint)
    is_last = duckdb.ColumnExpression("_run_id") == duckdb.ConstantExpression(last_read.run_id)
    rows = connection.table(f"raw.{name}").filter(is_last).to_arrow_reader(_BATCH)
    records = matching_rows(map(pa.table, rows), keys, ids, shown)
    if shown is CUSTOMER:
        documents = connection.table("raw.customers__documents").sort("customer_id", "position")
        add_documents(records, map(pa.table, documents.to_arrow_reader(_BATCH)))
    return last_read.verdict, records
