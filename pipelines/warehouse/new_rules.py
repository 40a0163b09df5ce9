"""Rules that are new to a warehouse: what they find at once is listed as info, until a person changes something.

In: the findings of a run, and `ops.rules`, which has the rules with a `since` that the warehouse was checked by. Out:
the rules whose findings are info. These are the ones that an earlier version did not have, or that found less there:
by them the first run of this version finds something, and the run before did not. So the nights after an upgrade end
as those before it. A rule that finds nothing in that first run has its own severity from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import duckdb

from orderbridge.pipelines.warehouse.sql import insert_rows
from orderbridge.transforms.rules import OWN_CHECK, RULES

_MATCH: Final = "reconciled.erp_customers"
_ALWAYS: Final = "reconciled.customers"
"""The tables whose totals show that a run has checked by the rules of the match, and by all others."""
_CHECKED: Final = """
    SELECT entity, bool_or(run_id = $run), bool_or(run_id <> $run) FROM ops.control_totals
    WHERE entity IN ($match, $always) GROUP BY entity"""
_FOUND: Final = """
    SELECT entity || '.' || rule, arg_min(severity, list_position(['error', 'warning', 'info'], severity))
    FROM {findings} GROUP BY ALL"""
_LAST_FOUND: Final = _FOUND.format(findings="reconciled.exceptions WHERE is_accepted IS NOT TRUE")
_SINCE_CHANGE: Final = """
    UPDATE ops.rules SET is_info = false WHERE is_info AND $answers_hash IS DISTINCT FROM (
        SELECT answers_hash FROM ops.runs SEMI JOIN (
            FROM ops.control_totals WHERE entity = $always AND run_id <> $run) USING (run_id)
        ORDER BY ops.runs.rowid DESC LIMIT 1)"""
_ON_CONFLICT: Final = """
    ON CONFLICT DO UPDATE SET since = excluded.since, run_id = excluded.run_id, is_info = excluded.is_info"""
_CHECKS: Final = "checks.cannot_run"
"""The rule that came with the checks of a project's own: a folder of that name may be older."""


@dataclass(frozen=True, slots=True)
class NewRule:
    """A rule whose findings are info in this project, since it is new there.

    Attributes:
        name: with its entity, such as `orders.cut`.
        severity: that its findings have otherwise.
        since: the version that has it, or that finds more by it.
    """

    name: str
    severity: str
    since: str

    @property
    def text(self) -> str:
        """In words, with the command that counts its findings."""
        return (
            f"{self.name} finds more since {self.since}. Here it is info until somebody answers, accepts "
            f"or sets something. To count it as {_A[self.severity]} now: "
            f"orderbridge answer finding:{self.name} {self.severity}"
        )


def new_rules(
    build: duckdb.DuckDBPyConnection, run_id: str, findings: str, answers_hash: str
) -> list[NewRule]:
    """Records the rules that this run is the first to check by, and returns those whose findings are info.

    Args:
        build: with the findings of the run before.
        run_id: of this run, which has recorded the totals of its tables.
        findings: of this run, as SQL (the columns of `FINDINGS`).
        answers_hash: of what people have answered, accepted and set; a change ends it for all rules.
    """
    run = {"run": run_id, "always": _ALWAYS}
    build.execute(_SINCE_CHANGE, {**run, "answers_hash": answers_hash})
    known = dict(build.execute("SELECT rule, since FROM ops.rules").fetchall())
    unknown = {
        name: rule.since for name, rule in _WITH_SINCE.items() if known.get(name) != rule.since
    }
    if unknown:
        _record_first(build, run, findings, unknown)
    info = build.execute("SELECT rule, since FROM ops.rules WHERE is_info ORDER BY rule").fetchall()
    found = _severities(build, _FOUND.format(findings=findings))
    return [
        NewRule(name, found[name], since)
        for name, since in info
        if found.get(name, "info") != "info"
    ]


def _record_first(
    build: duckdb.DuckDBPyConnection, run: dict[str, str], findings: str, unknown: dict[str, str]
) -> None:
    """Records rules by their name and version. Those of the match wait for a run that has the ERP's file."""
    rows = build.execute(_CHECKED, {**run, "match": _MATCH}).fetchall()
    checked = {entity: (is_now, is_before) for entity, is_now, is_before in rows}
    found = set(_severities(build, _FOUND.format(findings=findings)))
    if _CHECKS in unknown:
        own = (name for name in found if name.partition(".")[2].startswith(OWN_CHECK))
        unknown = {**unknown, **dict.fromkeys(own, unknown[_CHECKS])}
    found -= set(_severities(build, _LAST_FOUND))
    recorded: list[dict[str, object]] = []
    for name, since in unknown.items():
        is_now, is_before = checked.get(_MATCH if name in _OF_MATCH else _ALWAYS, (False, False))
        if is_now:
            row = {"rule": name, "since": since, "is_info": is_before and name in found}
            recorded.append({**row, "run_id": run["run"]})
    insert_rows(build, "ops.rules", recorded, _ON_CONFLICT)


def _severities(build: duckdb.DuckDBPyConnection, sql: str) -> dict[str, str]:
    """The severity of each rule that something is found by: the most severe one."""
    return dict(build.execute(sql).fetchall())


_A: Final = {"error": "an error", "warning": "a warning"}
_WITH_SINCE: Final = {f"{rule.entity}.{rule.name}": rule for rule in RULES if rule.since}
_OF_MATCH: Final = {
    name
    for name, rule in _WITH_SINCE.items()
    if rule.entity == "erp_customers" or rule.name == "erp_ambiguous"
}
