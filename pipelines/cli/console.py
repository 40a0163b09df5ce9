"""What a command prints: bars on a terminal, lines in a pipe, JSON for machines.

In: progress and results. Out: stderr for what goes on, stdout for what came of it. No row's value is ever printed.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from pipelines.pull.pull import PullResult
from pipelines.reconcile.erp_customers import MatchSummary
from pipelines.reconcile.erp_variants import VariantSummary
from pipelines.reconcile.reconcile import ReconcileResult
from sources.extract.walk import ListResult

LINE_EVERY_S: Final = 10.0
LINES_MAX: Final = 20
_STATUSES: Final = {
    "ambiguous": "ambiguous",
    "only_in_erp": "only in the ERP",
    "only_in_platform": "only on the platform",
}
_VARIANTS: Final = {
    "same": "as last confirmed",
    "differs": "different",
    "never_sent": "never sent from here",
}
Style = Literal["auto", "plain", "json"]


class _Console(Console):
    """rich's console, which leaves a closed pipe to the command: rich would end the process with 1, a bug's code."""

    def on_broken_pipe(self) -> None:
        """Raises what rich has caught."""
        raise BrokenPipeError


class Reporter:
    """Progress of a run, as bars, lines or JSON. Thread-safe; a context manager."""

    def __init__(self, style: Style = "auto") -> None:
        self.err = _Console(stderr=True, highlight=False)
        self.style: Style = "plain" if style == "auto" and not self.err.is_terminal else style
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskID] = {}
        self._told: dict[str, float] = {}
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("rows, {task.fields[pages]} pages"),
            TimeElapsedColumn(),
            console=self.err,
        )

    def __enter__(self) -> Reporter:
        if self.style == "auto":
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.style == "auto":
            self._bars.stop()

    def progress(self, resource: str, pages: int, rows: int, total: int | None) -> None:
        """Called after each page of a walk."""
        with self._lock:
            if self.style == "auto":
                if resource not in self._tasks:
                    self._tasks[resource] = self._bars.add_task(resource, total=total, pages=pages)
                self._bars.update(self._tasks[resource], completed=rows, total=total, pages=pages)
                return
            now = time.monotonic()
            if now - self._told.setdefault(resource, now) < LINE_EVERY_S:
                return
            self._told[resource] = now
        of = f" of {total}" if total is not None else ""
        self.event("progress", f"{resource}: {rows}{of} rows, {pages} pages", resource=resource, rows=rows, pages=pages)

    def event(self, name: str, words: str, **facts: object) -> None:
        """One line on stderr: words for people, an object for machines."""
        if self.style == "json":
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            sys.stderr.write(json.dumps({"at": at, "event": name, "message": words, **facts}, default=str) + "\n")
            sys.stderr.flush()
        else:
            self.err.print(words, markup=False, soft_wrap=True)

    def pulled(self, pulled: PullResult) -> None:
        """What a pull did, on stdout."""
        if self.style == "json":
            lists = [_facts(pulled, walked) for walked in pulled.walked]
            told = {"run_id": pulled.run_id, "published": pulled.published, "warehouse": str(pulled.path)}
            sys.stdout.write(json.dumps({**told, "exit_code": pulled.exit_code, "lists": lists}) + "\n")
            return
        out = _Console(highlight=False)
        out.print(table_of(pulled), soft_wrap=not out.is_terminal)
        for walked in pulled.walked:
            if walked.verdict != "complete":
                out.print(
                    f"{walked.resource} is {walked.verdict}: {'; '.join(walked.evidence)}", markup=False, soft_wrap=True
                )
        refused = sum(len(walked.quarantined) for walked in pulled.walked)
        if refused:
            from pipelines.pull.pull import quarantine_file

            out.print(
                f"{refused} rows were refused: reasons in ops.quarantine, "
                f"the rows in {quarantine_file(pulled.path).name}",
                markup=False,
                soft_wrap=True,
            )
        if pulled.published:
            out.print(f"published {pulled.path} (run {pulled.run_id})", markup=False, soft_wrap=True)

    def reconciled(self, made: ReconcileResult) -> None:
        """What reconciling made, on stdout."""
        if self.style == "json":
            findings = [dict(zip(("entity", "rule", "severity", "count"), row, strict=True)) for row in made.findings]
            told: dict[str, object] = {"run_id": made.run_id, "warehouse": str(made.path), "rows": made.rows}
            told["findings"] = findings
            told |= {"order_fields": made.order_fields, "proposed": made.proposed, "exit_code": made.exit_code}
            told["erp"] = asdict(made.match) if made.match else None
            told["erp_variants"] = asdict(made.variants) if made.variants else None
            sys.stdout.write(json.dumps(told) + "\n")
            return
        out = _Console(highlight=False)
        counts = ", ".join(f"{rows} {table.replace('_', ' ')}" for table, rows in made.rows.items())
        out.print(f"reconciled: {counts}", markup=False, soft_wrap=True)
        if made.findings:
            table = Table(box=None, pad_edge=False)
            for name in ("severity", "entity", "rule"):
                table.add_column(name)
            table.add_column("count", justify="right")
            for entity, rule, severity, count in made.findings:
                table.add_row(severity, entity, rule, str(count))
            out.print(table, soft_wrap=not out.is_terminal)
        lines = (match_lines(made.match) if made.match else []) + (
            variant_lines(made.variants) if made.variants else []
        )
        for line in lines:
            out.print(line, markup=False, soft_wrap=True)
        for name, evidence in made.proposed.items():
            out.print(
                f"an order's {name} is read from {made.order_fields[name]} ({evidence}); "
                f"RECONCILE__ORDER_{name.upper()} names another",
                markup=False,
                soft_wrap=True,
            )


def match_lines(match: MatchSummary) -> list[str]:
    """The funnel of a match with the ERP, in words."""
    counts: dict[str, int] = {}
    for status, _, rows in match.statuses:
        counts[status] = counts.get(status, 0) + rows
    keys = [f"{rows} by {key.replace('_', ' ')}" for status, key, rows in match.statuses if status == "matched" and key]
    said = [f"{counts.get('matched', 0)} matched" + (f" ({', '.join(keys)})" if keys else "")]
    said += [f"{counts.get(status, 0)} {words}" for status, words in _STATUSES.items()]
    lines = [f"customers of the ERP and the platform: {', '.join(said)}"]
    if match.doubt:
        lines.append(f"those only in the ERP may be on the platform all the same ({match.doubt})")
    if match.differences:
        fields = ", ".join(f"{count} {field.replace('_', ' ')}" for field, count in match.differences)
        lines.append(f"they differ in: {fields}; both values in reconciled.erp_differences")
    lines.append("read as: " + ", ".join(f"{column} → {field}" for field, column in match.columns.items()))
    if match.unread:
        lines.append(f"columns of the file that were not read: {', '.join(match.unread)}")
    return lines + _refused(match.refused)


def variant_lines(compared: VariantSummary) -> list[str]:
    """The comparison of the ERP's variants with the ledger, in words."""
    counts = dict(compared.statuses)
    said = ", ".join(f"{counts.get(status, 0)} {words}" for status, words in _VARIANTS.items())
    return [f"variants of the ERP: {said}", *_refused(compared.refused)]


def _refused(lines: list[int]) -> list[str]:
    told = ", ".join(map(str, lines[:LINES_MAX])) + (" …" if len(lines) > LINES_MAX else "")
    return [f"left out, since they do not fit the file, {len(lines)} of its lines: {told}"] if lines else []


def _facts(pulled: PullResult, walked: ListResult) -> dict[str, object]:
    change = pulled.changes.get(walked.resource)
    return {
        "resource": walked.resource,
        "verdict": walked.verdict,
        "rows": walked.distinct,
        "new": change.new if change else None,
        "changed": change.changed if change else None,
        "missing": change.newly_missing if change else None,
        "duplicates": walked.duplicates if walked.error is None else 0,
        "quarantined": len(walked.quarantined),
        "sweeps": len(walked.sweeps),
        "evidence": walked.evidence,
    }


def table_of(pulled: PullResult) -> Table:
    """The lists of a pull as a table: rows, verdict, what changed."""
    table = Table(box=None, pad_edge=False)
    table.add_column("list")
    for name in ("rows", "new", "changed", "missing", "refused", "sweeps"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for walked in pulled.walked:
        facts = _facts(pulled, walked)
        cells = [facts[name] for name in ("rows", "new", "changed", "missing", "quarantined", "sweeps", "verdict")]
        table.add_row(walked.resource, *("–" if cell is None else str(cell) for cell in cells))
    return table
