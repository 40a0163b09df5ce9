"""The report: one HTML page about the published warehouse, for a mail or a shared folder.

In: the published warehouse. Out: a file that needs no other file and has no scripts, with counts, ids and the names of
promotions, price lists and fields, and no personal data. The same warehouse gives the same bytes: every age is the age
at the end of the run that reconciled it.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from pathlib import Path
from typing import Any, Final

from pipelines.reporting.order_sections import changes, orders
from pipelines.reporting.report_data import SOON_DAYS, TABLES, ReportData, read_report_data
from pipelines.reporting.tables import (
    Cell,
    anchor,
    bar_column,
    build_table,
    findings_table,
    name_column,
    outcomes_table,
    promotions_table,
    render,
    spaced,
    words,
)
from pipelines.warehouse.build import open_warehouse
from sources.disk import PRIVATE_FILE, disk_errors, replace_file
from sources.errors import UsageError
from transforms.rules import RULES, SEVERITIES

OUT_HINT: Final = "Name a file in an existing, writable folder: orderbridge report --out FILE"
START: Final = "<!doctype html>\n<!-- orderbridge report -->\n"
"""The first bytes of every report, by which a file is recognised as one."""
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
_ENDINGS: Final = {
    "empty page": "an empty page",
    "repeated page": "a repeated page",
    "hasNextPage false": "marked as the last page",
    "hasMore false": "marked as the end",
    "single response": "one answer with everything",
    "assumed: status 400": "assumed: the next page was rejected",
    "assumed: status 404": "assumed: no further page was found",
    "error": "an error",
}
"""How a list ended, for readers who do not know the interface."""
_CHAINS: Final = {
    "root": "has prices of its own",
    "linked": "derives from another list",
    "orphan": "derives from a list that is not listed",
    "unknown": "derives from a list that was not read",
    "cycle": "derives from itself, in a circle",
}
_CUSTOMER_LISTS: Final = {
    "matched": "on a listed price list",
    "default": "on the default list (none of their own)",
    "not_listed": "on a list that is not listed",
    "unknown": "on a list that was not read",
}


def report(out: Path) -> ReportData:
    """Writes the report, whole or not at all, and returns what it shows.

    A new file can be read by its owner only: business figures are for the owner to share. An existing report keeps its
    mode; a link stays a link.

    Raises:
        UsageError: there is no reconciled warehouse; `out` cannot be written, or is not a report.
    """
    target = out.resolve() if out.is_symlink() else out.absolute()
    mode = _mode(target)
    with open_warehouse() as warehouse:
        data = read_report_data(warehouse)
    content = page(data).encode()
    with disk_errors(f"{target} cannot be written", OUT_HINT), replace_file(target, mode) as file:
        file.write(content)
    return data


def _mode(target: Path) -> int:
    """The mode of the new file. Raises UsageError for a file that is not a report: a typo must not cost a warehouse."""
    if not target.exists():
        return PRIVATE_FILE
    if target.is_file():
        with disk_errors(f"{target} cannot be read", OUT_HINT), target.open("rb") as file:
            if file.read(len(START)) in (START.encode(), b""):
                return target.stat().st_mode & 0o777
    raise UsageError(f"{target} exists and is not a report", "Name another file: orderbridge report --out FILE")


def page(data: ReportData) -> str:
    """The whole page."""
    sections = (_summary, changes, _lists, _findings, _erp, orders, _catalogue)
    content = {name: value for section in sections for name, value in section(data).items()}
    return START + render("report.html.j2", data=data, **content)


def _summary(data: ReportData) -> dict[str, object]:
    by_severity = dict.fromkeys(SEVERITIES, 0)
    for row in data.rows["findings"]:
        by_severity[row["severity"]] += row["findings"]
    names = {"error": "errors", "warning": "warnings", "info": "info"}
    listed = {name: data.counts[name][0] - (data.counts[name][1] or 0) for name in TABLES}
    return {"listed": listed, "by_severity": by_severity, "severity_names": names}


def _lists(data: ReportData) -> dict[str, object]:
    def verdict(row: dict[str, Any]) -> Cell:
        if not row["was_taken"]:
            return Cell(f"{row['verdict']}, not published", "error")
        return Cell(row["verdict"], "good" if row["verdict"] == "complete" else "warning")

    findings = {name: 0 for name in (*TABLES, "erp_customers") if name in data.counts}
    for row in data.rows["findings"]:
        findings[row["entity"]] = findings.get(row["entity"], 0) + row["findings"]
    return {
        "lists": build_table(
            data.rows["lists"],
            {
                "list": spaced("resource"),
                "verdict": verdict,
                "records": "distinct",
                "quarantined": "quarantined",
                "age": lambda row: row["taken_at"] and Cell(_age(data.as_of - row["taken_at"]), "short"),
                "read until (UTC)": "taken_at",
                "how it ended": lambda row: _ENDINGS.get(row["ended_by"], row["ended_by"]),
            },
        ),
        "tables": build_table(
            [{"name": name, "rows": rows, "missing": missing} for name, (rows, missing) in data.counts.items()],
            {
                "table": spaced("name"),
                "rows": "rows",
                "no longer listed": "missing",
                "findings": lambda row: findings.get(row["name"]),
            },
        ),
    }


def _age(duration: timedelta) -> str:
    if duration < 2 * _HOUR:
        return f"{max(duration, timedelta()) // timedelta(minutes=1)} min"
    return f"{duration // _HOUR} h" if duration < 2 * _DAY else f"{duration // _DAY} days"


def _findings(data: ReportData) -> dict[str, object]:
    if not data.rows["findings"]:
        return {}
    rules = {(rule.entity, rule.name): rule for rule in RULES}
    return {
        "severities": SEVERITIES,
        "findings": findings_table(
            data.rows["findings"],
            lambda row: Cell(words(row["rule"]), href=f"#{anchor(row['entity'], row['rule'])}"),
        ),
        # a warehouse written by another version may have other rules
        "rules": [
            (row, rules.get((row["entity"], row["rule"])), anchor(row["entity"], row["rule"]))
            for row in data.rows["findings"]
        ],
    }


def _erp(data: ReportData) -> dict[str, object]:
    content: dict[str, object] = {}
    if data.rows["matches"]:
        content["matches"] = outcomes_table(data.rows["matches"])
    if data.rows["differences"]:
        content["differences"] = build_table(
            data.rows["differences"],
            {
                "table": "entity",
                "field": spaced("field"),
                "records": "differences",
                "": bar_column(data.rows["differences"], "differences"),
            },
        )
    if data.rows["variants"]:
        content["variants"] = build_table(data.rows["variants"], {"status": spaced("status"), "variants": "variants"})
    return content


def _catalogue(data: ReportData) -> dict[str, object]:
    """Promotions and price lists, and what an empty table means."""

    def empty(name: str) -> str:
        """Nothing is listed only where the list was read whole."""
        walks = [row for row in data.rows["lists"] if row["resource"] == name and row["was_taken"]]
        is_proven = any(row["verdict"] == "complete" and row["taken_at"] <= data.as_of for row in walks)
        singular = words(name.removesuffix("s"))
        return f"No {singular} is listed." if is_proven else f"No {singular} was read."

    return {
        "empty": empty,
        "customer_list_words": _CUSTOMER_LISTS,
        "price_lists": build_table(
            data.rows["price_lists"],
            {
                "id": "price_list_id",
                "name": name_column("name"),
                "prices": lambda row: _CHAINS[row["chain_status"]],
                "customers": "customer_count",
                "": bar_column(data.rows["price_lists"], "customer_count"),
            },
        ),
        "soon_days": SOON_DAYS,
        "promotions": promotions_table(data.rows["promotion_status"]),
        "expiring": build_table(
            data.rows["expiring"],
            {
                "id": "promotion_id",
                "name": name_column("name"),
                "status": "status",
                "expires (UTC)": lambda row: Cell(row["expires_at"].astimezone(UTC).date(), "short"),
                "used": "use_count",
                "left": "remaining_uses",
            },
        ),
    }
