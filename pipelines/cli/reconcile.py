"""The command `reconcile`: builds the reconciled tables, prints their sizes and findings and the match with the ERP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import origin_line, settings_origin, start
from orderbridge.pipelines.cli.terminal import Style, print_lines, print_result
from orderbridge.sources.settings import UNSET_COUNTRY, reconcile_settings
from orderbridge.sources.words import number

if TYPE_CHECKING:
    from orderbridge.pipelines.reconcile.erp.customers import MatchSummary
    from orderbridge.pipelines.reconcile.erp.variants import VariantSummary
    from orderbridge.pipelines.reconcile.reconcile import FailOn, ReconcileResult

MAX_LINE_NUMBERS: Final = 20
_ROWS: Final = {
    "exceptions": "findings",
    "customer_history": "versions of customers",
    "promotion_history": "versions of promotions",
    "price_list_history": "versions of price lists",
}
"""What the rows of a table are called, if not like the table."""
_NOT_COUNTED: Final = "customer_orders"
"""This table has a row for each customer: the number would be read as that of their orders."""
_LISTS: Final = {"order_lines": "orders"}
"""The list that a table is made from, if not that of its name."""
_UNMATCHED: Final = {
    "only_in_erp": "only in the ERP",
    "only_in_platform": "only on the platform",
}
_VARIANT_STATUSES: Final = {
    "same": "as last confirmed",
    "differs": "different",
    "never_sent": "never sent by orderbridge",
}


@declared("reconcile")
def command(fail_on: FailOn, **options: Any) -> int:  # noqa: ANN401 # checked by click
    """Build the reconciled tables from the published raw tables.

    With --erp-customers, the ERP's customers are matched with the platform's by ERP code, login code, e-mail address or
    document number. Rejected lines of an ERP file are listed, and the exit code is 5.
    """
    with start() as reporter:
        from orderbridge.pipelines.reconcile.erp.files import ErpFiles
        from orderbridge.pipelines.reconcile.reconcile import reconcile
        from orderbridge.pipelines.reporting.erp_result import result_target, write_erp_result
        from orderbridge.pipelines.warehouse.failure import publish_and_write

        files = ErpFiles(**options)
        if files.result is not None:
            result_target(files.result)

        def write() -> None:
            if files.result is not None:
                write_erp_result(files.result, files)

        result = publish_and_write(lambda: reconcile(files, fail_on), write)
    print_reconcile(result, reporter.style)
    if reporter.style != "json":
        print_lines(
            *([f"comparison: {files.result}"] if files.result is not None else []), origin_line()
        )
    return result.exit_code


def print_reconcile(result: ReconcileResult, style: Style) -> None:
    """Prints what reconciling built on stdout."""
    columns = ("severity", "entity", "rule", "count")
    findings = [
        (severity, entity, rule, count) for entity, rule, severity, count in result.findings
    ]
    record = {
        "run_id": result.run_id,
        "warehouse": result.path,
        "rows": result.rows,
        "new_findings": [asdict(one) for one in result.new],
        "findings": [dict(zip(columns, finding, strict=True)) for finding in findings],
        "new_rules": [asdict(one) for one in result.new_rules],
        "accepted": result.accepted,
        "new_questions": result.new_questions,
        "left_revenue": result.left_revenue,
        "order_fields": result.order_fields,
        "proposed": result.proposed,
        "exit_code": result.exit_code,
        "erp": asdict(result.match) if result.match else None,
        "erp_variants": asdict(result.variants) if result.variants else None,
        **settings_origin(),
    }
    print_result("reconcile", [*_lines(result, columns, findings)], record, style)


def _lines(
    result: ReconcileResult, columns: Sequence[str], findings: Sequence[Sequence[object]]
) -> Iterator[str]:
    from orderbridge.pipelines.cli.console import table_lines
    from orderbridge.pipelines.warehouse.finding_history import in_words
    from orderbridge.transforms.orders.fields import COLUMN_QUESTIONS

    yield sizes(result)
    yield from in_words(result.new)
    yield from result.left_revenue
    yield from (one.text for one in result.new_rules)
    if findings:
        yield from table_lines(columns, findings, numbers=["count"])
    if result.accepted:
        yield f"{number(result.accepted, 'finding')} accepted and not listed: orderbridge accept"
    yield from match_lines(result.match) if result.match else ()
    yield from variant_lines(result.variants) if result.variants else ()
    for name, evidence in result.proposed.items():
        yield (
            f"order field {name}: read from {result.order_fields[name]} ({evidence}); "
            f"to use another column: orderbridge answer {COLUMN_QUESTIONS[name]} COLUMN"
        )


def sizes(result: ReconcileResult, tables: Collection[str] | None = None) -> str:
    """The rows of each reconciled table, or of some, without those of lists that were never read; empty for none."""
    lists = {table: _LISTS.get(table, table.replace("_history", "s")) for table in result.rows}
    parts = [
        f"{rows} {_ROWS.get(table, table.replace('_', ' '))}"
        for table, rows in result.rows.items()
        if lists[table] not in result.never_read
        and (tables is None or table in tables)
        and table != _NOT_COUNTED
    ]
    return f"reconciled: {', '.join(parts)}" if parts else ""


def match_lines(match: MatchSummary, *, brief: bool = False) -> list[str]:
    """The match with the ERP's customers, in sentences; `brief`: without how the columns are read."""
    counts: Counter[str] = Counter()
    for status, _, rows in match.statuses:
        counts[status] += rows
    keys = [
        f"{rows} by {key.replace('_', ' ')}"
        for status, key, rows in match.statuses
        if status == "matched" and key
    ]
    parts = [f"{counts['matched']} matched" + (f" ({', '.join(keys)})" if keys else "")]
    ambiguous = f"{number(match.ambiguous_lines, 'line')} and {number(match.ambiguous_customers, 'customer')} ambiguous"
    parts += [ambiguous, *(f"{counts[status]} {words}" for status, words in _UNMATCHED.items())]
    lines = [f"customers of the ERP and the platform: {', '.join(parts)}"]
    if match.doubt:
        lines.append(f"customers only in the ERP may still be on the platform ({match.doubt})")
    if match.differences:
        fields = ", ".join(
            f"{count} {field.replace('_', ' ')}" for field, count in match.differences
        )
        lines.append(f"differences: {fields}; both values are in reconciled.erp_differences")
        if "phone" in dict(match.differences) and reconcile_settings().country is None:
            lines.append(UNSET_COUNTRY)
    if not brief:
        lines.append(
            "columns read as: "
            + ", ".join(f"{column} → {field}" for field, column in match.columns.items())
        )
    if match.unread:
        lines.append(f"columns of the file not used: {', '.join(match.unread)}")
    return lines + _rejected(match.refused)


def variant_lines(compared: VariantSummary) -> list[str]:
    """The comparison of the ERP's variants with the ledger, in sentences."""
    counts = Counter(dict(compared.statuses))
    parts = ", ".join(f"{counts[status]} {words}" for status, words in _VARIANT_STATUSES.items())
    return [f"variants of the ERP: {parts}", *_rejected(compared.refused)]


def _rejected(lines: list[int]) -> list[str]:
    shown = ", ".join(map(str, lines[:MAX_LINE_NUMBERS])) + (
        " …" if len(lines) > MAX_LINE_NUMBERS else ""
    )
    return [f"{number(len(lines), 'line')} rejected and not compared: {shown}"] if lines else []
