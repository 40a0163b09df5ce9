"""The report: one HTML page about the published warehouse, for a mail or a shared folder.

In: the published warehouse. Out: a file that needs no other file and has no scripts, with counts, ids and the names of
promotions, price lists and fields, and no personal data. The same warehouse gives the same bytes: every age is the age
at the end of the run that reconciled it.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from pipelines.reporting.order_sections import changes, orders
from pipelines.reporting.report_data import SOON_DAYS, TABLES, ReportData, read_report_data
from pipelines.reporting.tables import Cell, anchor, render, words
from pipelines.warehouse.build import open_warehouse
from sources.disk import PRIVATE_FILE, disk_errors, replace_file
from sources.errors import UsageError
from transforms.rules import RULES, SEVERITIES

OUT_HINT: Final = "Name a file in an existing, writable folder: orderbridge report --out FILE"
START: Final = "<!doctype html>\n<!-- orderbridge report -->\n"
"""The first bytes of every report, by which a file is recognised as one."""
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)


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
    by_severity, by_entity = dict.fromkeys(SEVERITIES, 0), dict.fromkeys((*TABLES, "erp_customers"), 0)
    for row in data.rows["findings"]:
        by_severity[row["severity"]] += row["findings"]
        by_entity[row["entity"]] = by_entity.get(row["entity"], 0) + row["findings"]
    rules = {(rule.entity, rule.name): rule for rule in RULES}
    content = {
        "listed": {name: data.counts[name][0] - (data.counts[name][1] or 0) for name in TABLES},
        "by_severity": by_severity,
        "tables": [
            {"name": name, "rows": rows, "missing": missing, "findings": by_entity.get(name)}
            for name, (rows, missing) in data.counts.items()
        ],
        "verdict": _verdict,
        "age": lambda row: row["taken_at"] and Cell(_age(data.as_of - row["taken_at"]), "short"),
        "severities": SEVERITIES,
        "rule_link": lambda row: Cell(words(row["rule"]), href=f"#{anchor(row['entity'], row['rule'])}"),
        # a warehouse written by another version may have other rules
        "rules": [
            (row, rules.get((row["entity"], row["rule"])), anchor(row["entity"], row["rule"]))
            for row in data.rows["findings"]
        ],
        "empty": lambda name: _empty(data, name),
        "soon_days": SOON_DAYS,
    }
    return START + render("report.html.j2", data=data, **content, **changes(data), **orders(data))


def _verdict(row: dict[str, Any]) -> Cell:
    """The verdict of a list's last walk, in its colour."""
    if not row["was_taken"]:
        return Cell(f"{row['verdict']}, not published", "error")
    return Cell(row["verdict"], "good" if row["verdict"] == "complete" else "warning")


def _age(duration: timedelta) -> str:
    if duration < 2 * _HOUR:
        return f"{max(duration, timedelta()) // timedelta(minutes=1)} min"
    return f"{duration // _HOUR} h" if duration < 2 * _DAY else f"{duration // _DAY} days"


def _empty(data: ReportData, name: str) -> str:
    """What an empty table means: nothing is listed only where the list was read whole."""
    walks = [row for row in data.rows["lists"] if row["resource"] == name and row["was_taken"]]
    is_proven = any(row["verdict"] == "complete" and row["taken_at"] <= data.as_of for row in walks)
    singular = words(name.removesuffix("s"))
    return f"No {singular} is listed." if is_proven else f"No {singular} was read."
