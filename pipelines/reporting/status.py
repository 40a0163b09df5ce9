"""Status: the last runs, the verdict and age of each list, the failure since, open plans; for a person or a monitor.

In: the published warehouse, the note of a failed run, the ledger. Out: text or JSON on stdout, and 7 where a list is
older than allowed.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from pipelines.ledger.store import Ledger, OpenPlan
from pipelines.warehouse import failure as failures
from pipelines.warehouse.build import open_warehouse
from pipelines.warehouse.ops import TAKEN
from sources.contract import LISTS
from sources.errors import ExitCode, UsageError
from sources.settings import ledger_path, warehouse_path

_LISTS_SQL = f"""
    SELECT resource, verdict, "distinct" AS rows, (
        SELECT count(DISTINCT row_hash) FROM ops.quarantine q WHERE q.run_id = c.run_id AND q.resource = c.resource
    ) AS quarantined, ended_at, run_id
    FROM ops.coverage c WHERE {TAKEN}
    QUALIFY row_number() OVER (PARTITION BY resource ORDER BY ended_at DESC) = 1"""
_NEVER_SQL = f"SELECT DISTINCT resource FROM ops.coverage WHERE resource NOT IN (SELECT resource FROM ({_LISTS_SQL}))"
_RUNS_SQL = "SELECT run_id, command, started_at, ended_at, exit_code FROM ops.runs ORDER BY started_at DESC LIMIT 5"


def status(max_age_h: float | None, as_json: bool) -> int:
    """Prints what there is.

    Args:
        max_age_h: hours since a list was last read whole; older, or never read, makes 7 of the exit code.
        as_json: for machines.

    Raises:
        UsageError: there is no warehouse, and neither a note of a failure nor an open plan.
    """
    if max_age_h is not None and math.isnan(max_age_h):
        raise UsageError("--max-age is no number of hours", "Example: --max-age 26")
    path = warehouse_path()
    failure = failures.read(path)
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        plans = ledger.open_plans()
    told = _read(path) if path.exists() or not (failure or plans) else {"lists": [], "never": [], "runs": []}
    never = sorted(row["resource"] for row in told.pop("never"))
    now = datetime.now(UTC)
    for row in told["lists"]:
        row["age_h"] = (now - row["ended_at"]).total_seconds() / 3600
    read = {row["resource"] for row in told["lists"]}
    old = [row["resource"] for row in told["lists"] if max_age_h is not None and row["age_h"] > max_age_h]
    if max_age_h is not None:
        old += never if read else LISTS
    for row in told["lists"]:
        row["age_h"] = round(row["age_h"], 2)
    if as_json:
        facts = {"warehouse": str(path), **told, "never_read": never, "failure": failure, "too_old": old}
        facts["open_plans"] = [_facts(plan) for plan in plans]
        click.echo(json.dumps(facts, default=str))
    else:
        _print(str(path), told, never, failure, old)
        _print_plans(plans)
    return ExitCode.COVERAGE if old else 0


def _read(path: Path) -> dict[str, list[dict[str, Any]]]:
    with open_warehouse(path) as connection:
        known = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        found: dict[str, list[dict[str, Any]]] = {}
        for name, sql in (("lists", _LISTS_SQL), ("never", _NEVER_SQL), ("runs", _RUNS_SQL)):
            if not {"coverage", "quarantine", "runs"} <= known:
                found[name] = []
                continue
            cursor = connection.execute(sql)
            columns = [column[0] for column in cursor.description or ()]
            found[name] = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        return found


def _facts(plan: OpenPlan) -> dict[str, Any]:
    """An open plan for machines, its times as the others are told."""
    facts = asdict(plan)
    for name in ("opened_at", "doubt_at"):
        facts[name] = None if facts[name] is None else datetime.fromtimestamp(facts[name], UTC)
    return facts


def _print(
    path: str,
    told: dict[str, list[dict[str, Any]]],
    never: list[str],
    failure: dict[str, Any] | None,
    old: list[str],
) -> None:
    click.echo(f"warehouse {path}")
    for row in sorted(told["lists"], key=lambda r: list(LISTS).index(r["resource"]) if r["resource"] in LISTS else 99):
        refused = f", {row['quarantined']} refused" if row["quarantined"] else ""
        mark = "  TOO OLD" if row["resource"] in old else ""
        age = _age(row["age_h"])
        click.echo(f"  {row['resource']:<12} {row['rows']:>10} rows  {row['verdict']:<9} {age}{refused}{mark}")
    for name in never:
        click.echo(f"  {name:<12} was never read whole{'  TOO OLD' if name in old else ''}")
    for row in told["runs"]:
        ended = f"{row['ended_at']:%Y-%m-%d %H:%M:%S}"
        click.echo(f"  run {row['run_id']}  {row['command']:<8} ended {ended} UTC, exit {row['exit_code']}")
    if failure:
        what = "published, and failed in what follows" if failure.get("published") else "failed and published nothing"
        click.echo(f"the last run {what} ({failure.get('failed_at', 'time unknown')}):")
        click.echo(f"  {failure.get('message', '')}\n  {failure.get('hint', '')}".rstrip())
    if old and not told["lists"]:
        click.echo("nothing was ever pulled")


def _print_plans(plans: list[OpenPlan]) -> None:
    """Plans with operations that have not ended: what is left, and how to go on."""
    for plan in plans:
        left = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in sorted(plan.states.items()))
        click.echo(f"  open plan {plan.plan_id}  {plan.kind}: {left}; to go on: orderbridge push {plan.folder}")


def _age(hours: float) -> str:
    return f"{hours * 60:.0f} min old" if hours < 1 else f"{hours:.1f} h old"
