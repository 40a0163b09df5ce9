"""The match with the ERP's customers as a workbook for the office (`--erp-result FILE`).

In: the published warehouse. Out: one sheet with a row for each line of the ERP's file, and for each customer that no
line is: status, both codes, and what differs. What needs a person comes first.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from orderbridge.pipelines.import_file.result import ROWS_MAX, new_workbook, write_row
from orderbridge.pipelines.imports.open import open_input_table
from orderbridge.pipelines.mapping import load, propose, sample
from orderbridge.pipelines.plan.rejects import RejectsWriter
from orderbridge.pipelines.reconcile.erp.files import ErpFiles
from orderbridge.pipelines.reporting.outputs import output_target
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.sources.disk import disk_errors, replace_file, working_folder
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.formulas import neutralize

SHEET: Final = "customers of the ERP"
COLUMNS: Final = (
    "status", "line", "erp_code", "name", "customer_id", "matched_by", "reason", "may be", "differences", "rejected row"
)  # fmt: skip
_WORDS: Final = {"only_in_erp": "only in the ERP", "only_in_platform": "only on the platform"}
_HINT: Final = "Name another file: --erp-result FILE.xlsx"
_REJECTED: Final = (
    "SELECT TRY_CAST(entity_id AS BIGINT) AS line FROM reconciled.exceptions "
    "WHERE entity = 'erp_customers' AND rule = 'line_refused' AND line IS NOT NULL ORDER BY line"
)
_ROWS: Final = """
    WITH differences AS (
        SELECT platform_id, string_agg(
            field || ': ' || coalesce(erp_value, '–') || ' in the ERP, ' || coalesce(platform_value, '–')
                || ' on the platform', '; ' ORDER BY field) AS words
        FROM reconciled.erp_differences GROUP BY platform_id),
    matched AS (
        SELECT list_position(['only_in_erp', 'ambiguous', 'matched', 'only_in_platform'], status) + 1 AS part,
            words IS NULL AS is_equal, status, line, erp_code, name, customer_id, matched_by, reason,
            coalesce(members, member_lines) AS may_be, words
        FROM reconciled.erp_customers LEFT JOIN differences
            ON platform_id = customer_id AND status = 'matched')
    FROM matched UNION ALL BY NAME
    SELECT 1 AS part, 'rejected' AS status, TRY_CAST(entity_id AS BIGINT) AS line,
        regexp_replace(detail, '^[a-z_]+: ', '') AS reason
        FROM reconciled.exceptions WHERE entity = 'erp_customers' AND rule = 'line_refused'
    ORDER BY part, is_equal, line, erp_code"""


def write_erp_result(out: Path, files: ErpFiles) -> None:
    """Writes the workbook, mode 0600, whole or not at all. Rejected lines have their text, from the file again.

    Raises:
        UsageError: see `result_target`; a sheet does not hold all rows.
    """
    target = result_target(out)
    with (
        open_warehouse() as warehouse,
        disk_errors(f"{target} cannot be written", _HINT),
        working_folder(target.parent) as folder,
        replace_file(target) as file,
        new_workbook(file, folder) as workbook,
    ):
        text, head = (
            workbook.add_format({"num_format": "@", **more}) for more in ({}, {"bold": True})
        )
        sheet = workbook.add_worksheet(SHEET)
        sheet.set_column(0, len(COLUMNS) - 1, 18, text)
        sheet.freeze_panes(1, 0)
        write_row(sheet, 0, COLUMNS, [head] * len(COLUMNS))
        texts_of = _rejected_rows(warehouse.execute(_REJECTED).fetchall(), files)
        at = 0
        rows = warehouse.execute(_ROWS)
        while part := rows.fetchmany(10_000):
            if at + len(part) > ROWS_MAX:
                raise UsageError(
                    "a sheet does not hold so many rows",
                    "Query reconciled.erp_customers (docs/reference/comparison.md).",
                )
            for _, _, status, *cells in part:
                at += 1
                row = texts_of.get(cells[0], "") if status == "rejected" else ""
                texts = [
                    _WORDS.get(status, status),
                    *("" if cell is None else str(cell) for cell in cells),
                    row,
                ]
                write_row(sheet, at, list(map(neutralize, texts)), [text] * len(COLUMNS))
        sheet.autofilter(0, 0, at, len(COLUMNS) - 1)


def _rejected_rows(found: Sequence[tuple[int]], files: ErpFiles) -> dict[int, str]:
    """The cells of rejected lines as one text each, without passwords."""
    if not found or files.customers is None:
        return {}
    mapping = load(files.mapping, "customers", files.lookups) if files.mapping is not None else None
    table = open_input_table(
        files.customers, mapping.read_options if mapping is not None else None, mapping
    )
    mapping = mapping or propose(
        table.columns, "customers", conflicts="leave", samples=sample(table)
    )
    writer = RejectsWriter(table, mapping, {line: ("", "", "") for (line,) in found})
    return {line: " | ".join(filter(None, cells)) for line, cells, _ in writer.rows()}


def result_target(out: Path) -> Path:
    """The file to write. Raises UsageError: it is no .xlsx, or see `output_target`."""
    if out.suffix.casefold() != ".xlsx":
        raise UsageError(f"--erp-result {out.name} is not the name of an .xlsx", _HINT)
    return output_target(out, "a result of this command", _HINT, _is_result)


def _is_result(file: Path) -> bool:
    try:
        with zipfile.ZipFile(file) as parts:
            return f'<sheet name="{SHEET}"'.encode() in parts.read("xl/workbook.xml")
    except (OSError, zipfile.BadZipFile, KeyError):
        return False
