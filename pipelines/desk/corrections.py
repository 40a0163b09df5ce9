"""Rejected lines that were corrected on a page, as the workbook that the import of corrections reads.

In: what an import printed, and the cells that a person typed. Out: an .xlsx with the sheet `to correct`, which has
the
corrected lines alone, every cell as text: what a person would have saved from `result.xlsx`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import xlsxwriter

from orderbridge.pipelines.desk.plans import Corrections
from orderbridge.pipelines.import_file.result import WORKBOOK_OPTIONS, write_row
from orderbridge.sources.files.formulas import escape
from orderbridge.sources.texts import english


def corrected_rows(corrections: Corrections, typed: Mapping[str, str]) -> dict[int, list[str]]:
    """The lines of which a cell was changed, each with all its cells as they are now."""
    rows: dict[int, list[str]] = {}
    for one in corrections.rows:
        cells = [typed.get(cell.name, cell.text) for cell in one.cells]
        if cells != [cell.text for cell in one.cells]:
            rows[one.line] = cells
    return rows


def workbook_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    """The workbook. `rows` have the cells of the columns."""
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {**WORKBOOK_OPTIONS, "in_memory": True}) as workbook:
        text = workbook.add_format({"num_format": "@"})
        sheet = workbook.add_worksheet(english()("sheet.corrections"))
        for at, row in enumerate([columns, *rows]):
            write_row(sheet, at, [*map(escape, row)], [text] * len(columns))
    return content.getvalue()
