"""Rejected lines that were corrected on a page, as the workbook that the import of corrections reads.

In: what an import printed, and the cells that a person typed. Out: an .xlsx with the sheet `to correct`, which has the
corrected lines alone, each at its number in the person's file, every cell as text.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence

import xlsxwriter

from orderbridge.pipelines.desk.plans import Corrections
from orderbridge.pipelines.import_file.result import WORKBOOK_OPTIONS, write_row
from orderbridge.sources.files.formulas import escape
from orderbridge.sources.files.sheet_xml import SPARSE
from orderbridge.sources.texts import english


def corrected_rows(
    corrections: Corrections, typed: Mapping[str, str], left_out: Collection[int] = ()
) -> dict[int, list[str]]:
    """The lines to check again, each with all its cells as they are now; none where nothing was changed.

    These are the lines of which a cell was changed, and those that are wrong only beside another one, which may be
    `left_out` now. A line that an earlier import has sent is among them only if a cell was changed.
    """
    rows: dict[int, list[str]] = {}
    is_changed = False
    for one in corrections.rows:
        if one.line in left_out:
            is_changed = is_changed or (one.is_of_others and not one.is_left_out)
            continue
        cells = [typed.get(cell.name, cell.text) for cell in one.cells]
        differs = cells != [cell.text for cell in one.cells]
        is_changed = is_changed or differs
        is_beside = one.is_of_others and one.sent is None
        if differs or is_beside:
            rows[one.line] = cells
    return rows if is_changed else {}


def workbook_of(columns: Sequence[str], rows: Mapping[int, Sequence[str]]) -> bytes:
    """The workbook. `rows` have the cells of the columns, by the line of the file."""
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {**WORKBOOK_OPTIONS, "in_memory": True}) as workbook:
        text = workbook.add_format({"num_format": "@"})
        sheet = workbook.add_worksheet(english()("sheet.corrections"))
        places = _places([*rows], len(columns))
        for at, row in zip([1, *places], [columns, *rows.values()], strict=True):
            write_row(sheet, at - 1, [*map(escape, row)], [text] * len(columns))
    return content.getvalue()


def _places(lines: Sequence[int], columns: int) -> Sequence[int]:
    """The rows of the sheet for these lines: their own, as far as the header and the limits of a sheet let them."""
    is_free = lines[0] > 1 and lines[-1] * columns <= SPARSE
    return lines if is_free else range(2, len(lines) + 2)
