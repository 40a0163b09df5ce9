"""Verify: what a push sent against what the platform has, field by field, for what can be read back.

In: a plan, the ledger, the published warehouse. Out: counts, and `verify.csv` in the plan folder with each field that
differs; in the ledger, the ids of customers that their create did not return. What a list shows can be read back:
customers that were created, and updates of the records of a list, by their id. The rest is counted as unreadable.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa

from orderbridge.pipelines.ledger.keys import loose_code
from orderbridge.pipelines.ledger.lock import ledger_lock
from orderbridge.pipelines.ledger.model import LedgerRow
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
from orderbridge.pipelines.push.next_steps import NextSteps
from orderbridge.pipelines.push.passwords import write_private_csv
from orderbridge.pipelines.push.plan_ledger import PlanLedger
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
_IN_DOUBT: Final = ("in_flight", "in_doubt", "conflict")
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
    kind = KINDS[plan.kind]
    result = VerifyResult(plan.kind)
    rows = _ledger_rows(plan)
    confirmed = {number: row for number, row in rows.items() if row.state == "confirmed"}
    result.outcomes["unsettled"] = len(rows) - len(confirmed)
    result.in_doubt = sum(row.state in _IN_DOUBT for row in rows.values())
    shown = kind.operation.shown_in
    if shown is None:
        result.outcomes["unreadable"] = len(confirmed)
        return result
    sent = [
        _Sent(operation, _id_of(operation, confirmed[operation.id]))
        for operation in plan.operations(confirmed)
    ]
    sent_at = max((row.updated_at for row in confirmed.values()), default=0.0)
    keys = {key for one in sent for key in _keys_of(one.operation)}
    ids = {one.record_id for one in sent}
    with open_warehouse(warehouse_path()) as connection:
        result.verdict, records = _read_records(connection, plan, shown, sent_at, keys, ids)
    comparison = _Comparison(result, shown, records, keys)
    for one in sent:
        comparison.compare(one)
    _keep_ids(plan, comparison.found_ids)
    result.file = plan.folder / VERIFY_FILE
    columns = ("line", "operation", "outcome", f"{kind.singular}_id", "field", "sent", "found")
    write_private_csv(result.file, [columns, *comparison.findings], plan.manifest.delimiter)
    return result


class _Sent(NamedTuple):
    """A confirmed operation, and the id of its record; empty where the platform did not return it."""

    operation: PlannedOperation
    record_id: str


def _ledger_rows(plan: Plan) -> dict[int, LedgerRow]:
    """The operations of a plan in the ledger, by number. Raises UsageError if it was never pushed."""
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        if ledger.pushes(plan.manifest.plan_id) is None:
            raise UsageError(
                "this plan was never pushed",
                f"Push it: {NextSteps.of(plan).push}",
            )
        return {row.id: row for row in PlanLedger(ledger, plan.manifest.plan_id).rows()}


def _id_of(operation: PlannedOperation, row: LedgerRow) -> str:
    if operation.method == "PATCH":
        return operation.path.rpartition("/")[2]
    return row.remote_id or ""


class _Comparison:
    """Compares operations with the records of a list, and counts in the result.

    Attributes:
        findings: the rows of `verify.csv`.
        found_ids: of records whose id the platform did not return, by operation.
    """

    def __init__(
        self,
        result: VerifyResult,
        shown: Record,
        records: Mapping[str, dict[str, Any]],
        keys: Set[Key],
    ) -> None:
        self.result = result
        self.shown = shown
        self.records = records
        self.country = reconcile_settings().country
        self.findings: list[Sequence[object]] = []
        self.found_ids: dict[int, str] = {}
        self.listing = CustomerListing(
            False, result.verdict, records_by_key(records.values(), keys)
        )

    def compare(self, sent: _Sent) -> None:
        """Compares what was sent with its record."""
        operation, record_id = sent
        matches = self._matches(sent)
        if len(matches) != 1:
            outcome = "several" if matches else "missing"
            self.result.outcomes[outcome] += 1
            self._add(operation, outcome, record_id, "", "", "")
            return
        (found,) = matches
        if not record_id:
            self.found_ids[operation.id] = str(found[self.shown.key])
        differing = differing_fields(operation.body, found, self.country)
        respelt = _respelt(differing, operation.body, found, record_id)
        fields = [name for name in differing if name not in respelt]
        self.result.spelling.update(respelt)
        self.result.fields.update(fields)
        self.result.outcomes["differs" if fields else "same"] += 1
        for name in respelt:
            self._add(operation, "spelling", record_id, name, operation.body[name], found[name])
        for name in fields:
            both = (operation.body[name], found[name])
            values = [json.dumps(value, ensure_ascii=False, default=str) for value in both]
            self._add(operation, "differs", found[self.shown.key], name, *values)

    def _matches(self, sent: _Sent) -> list[dict[str, Any]]:
        """The records that may be the one that was sent. Others with its keys count if they may be the same create."""
        operation, record_id = sent
        own_keys = search_keys(operation.keys)
        matches = self.listing.find(own_keys) or self.listing.find(any_spelling(own_keys))
        if record_id not in self.records:
            return matches
        twins = (
            record
            for record in matches
            if record["id"] != record_id
            and not differing_fields(operation.body, record, self.country)
        )
        return [self.records[record_id], *twins]

    def _add(
        self, operation: PlannedOperation, outcome: str, record_id: object, *rest: object
    ) -> None:
        self.findings.append((operation.lines[0], operation.id, outcome, record_id, *rest))


def _keep_ids(plan: Plan, found: Mapping[int, str]) -> None:
    """Writes ids that the platform did not return when it created the customers: they are known by them from now on."""
    if not found:
        return
    path = ledger_path()
    # while another push has the ledger, the ids are kept the next time
    with (
        suppress(LockedError),
        ledger_lock(path),
        Ledger.open(path) as ledger,
    ):
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
