"""`result.xlsx`: what became of each line, as a person opens it; its first sheet is corrected and imported as it is.

In: a plan, its input, and the results of its push. Out: a workbook in the plan's folder. `to correct` has the rejected
rows with the columns of a reject file, `all lines` every row with its status. Every cell is text in a column of texts,
so that a spreadsheet changes no code; passwords are left out, and what would be a formula has an apostrophe before it.
A hidden sheet has the hash of each row of `all lines`, where corrections would be lost.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import xlsxwriter

from orderbridge.pipelines.import_file.examples import difference_words
from orderbridge.pipelines.imports import Inputs
from orderbridge.pipelines.imports.open import REJECT_COLUMNS
from orderbridge.pipelines.plan.corrections import ALL_LINES, HASHES_SHEET, hash_cells, row_hash
from orderbridge.pipelines.plan.model import DIFFERENCES_FILE, RESULTS_FOLDER, Plan, file_sha256
from orderbridge.pipelines.plan.outcomes import CELLS, DIFFERENCE_SCHEMA, SEPARATOR
from orderbridge.pipelines.plan.rejects import RejectsWriter
from orderbridge.pipelines.push.passwords import inputs_of
from orderbridge.pipelines.push.results import RESULT_COLUMNS, RESULT_FILES, STATUSES
from orderbridge.sources.disk import disk_errors, first_free, write_private
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.formulas import escape, neutralize, people_rows
from orderbridge.sources.files.workbook import CORRECTIONS_SHEET

RESULT_FILE: Final = "result.xlsx"
LINES_MAX: Final = 100_000
"""Lines of a file up to which each has a row; of a larger one, lines that are confirmed have none."""
ROWS_MAX: Final = 1_048_575
_CELL_MAX: Final = 32_767
"""Limits of a sheet: rows below the header, characters of a cell."""
_WRITTEN: Final = ".result.sha256"
_FAULTY: Final = {"bg_color": "#FFF2CC"}
_STATUS_COLUMNS: Final = ("line", "status", "reason", "platform's words")
WORKBOOK_OPTIONS: Final = {
    "constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False,
}  # fmt: skip


class _Outcome(NamedTuple):
    """What became of a line; `is_to_correct`: a person has to change its cells, or look at them."""

    file: str
    status: str
    field: str
    code: str
    words: str
    message: str
    is_to_correct: bool


def write_result(plan: Plan, inputs: Inputs | None = None) -> Path:
    """Writes the workbook and returns its path. One that a person has changed is kept: the new one gets a number.

    `inputs` are those that the plan was made of; None: they are opened.

    Raises:
        UsageError: the input or its mapping was changed since it was planned, or a disk error.
    """
    _check_unchanged(plan)
    inputs = inputs or inputs_of(plan.manifest)
    outcomes = dict(_outcomes(plan))
    if len(outcomes) > LINES_MAX:
        outcomes = {line: one for line, one in outcomes.items() if one.file != "confirmed"}
    hint = "The result of each line is in results/. Free space, then run the same command again."
    with (
        disk_errors(plan.folder, hint),
        tempfile.TemporaryDirectory(dir=plan.folder, prefix=".result-") as folder,
    ):
        made = Path(folder) / RESULT_FILE
        with xlsxwriter.Workbook(made, {**WORKBOOK_OPTIONS, "tmpdir": folder}) as workbook:
            _write_sheets(workbook, inputs, outcomes)
        content = made.read_bytes()
        written = _written(plan.folder)
        path = first_free(plan.folder, RESULT_FILE, lambda path: file_sha256(path) == written)
        write_private(path, content)
        write_private(plan.folder / _WRITTEN, hashlib.sha256(content).hexdigest().encode())
    return path


def has_result(folder: Path) -> bool:
    """Whether a workbook was written for a plan."""
    return _written(folder) != ""


def _check_unchanged(plan: Plan) -> None:
    for file in (plan.manifest.input, plan.manifest.mapping):
        if file is not None and file_sha256(Path(file.path)) != file.sha256:
            hint = f"The result of each line is in {plan.folder / RESULTS_FOLDER}; the next import takes the new file."
            raise UsageError(
                f"{file.path} was changed meanwhile: {RESULT_FILE} cannot repeat its rows", hint
            )


def _outcomes(plan: Plan) -> Iterator[tuple[int, _Outcome]]:
    """The outcome of each line: those of the push, with the fields that the plan names for what is to correct."""
    faulty = {
        line.line: line for line in plan.unsent_lines() if line.outcome in ("rejected", "held")
    }
    differences: dict[int, list[str]] = defaultdict(list)
    for row in people_rows(plan.folder / DIFFERENCES_FILE, DIFFERENCE_SCHEMA.names):
        differences[int(row["line"])].append(difference_words(row))
    for name in RESULT_FILES:
        for row in people_rows(plan.folder / RESULTS_FOLDER / f"{name}.csv", RESULT_COLUMNS):
            line = int(row["line"])
            words = "; ".join(filter(None, (row["words"], *differences.get(line, ()))))
            reason = faulty[line][3:] if line in faulty else ("", row["code"], words)
            yield (
                line,
                _Outcome(
                    name,
                    STATUSES[row["outcome"]],
                    *reason,
                    row["platform_message"],
                    name == "rejected" or line in faulty,
                ),
            )


def _write_sheets(workbook: Any, inputs: Inputs, outcomes: Mapping[int, _Outcome]) -> None:  # noqa: ANN401 # untyped
    text, head, faulty = (
        workbook.add_format({"num_format": "@", **more}) for more in ({}, {"bold": True}, _FAULTY)
    )
    corrections = {
        line: (one.field, one.code, "; ".join(filter(None, (one.words, one.message))))
        for line, one in sorted(outcomes.items())
        if one.is_to_correct
    }
    parts = (
        (CORRECTIONS_SHEET, REJECT_COLUMNS, corrections),
        (
            ALL_LINES,
            _STATUS_COLUMNS,
            {line: (one.status, one.words, one.message) for line, one in outcomes.items()},
        ),
    )
    hashes: list[str] = []
    for name, added, lines in parts:
        sheet = workbook.add_worksheet(name)
        writer = RejectsWriter(inputs.table, inputs.mapping, lines)
        columns = writer.columns
        mapped = inputs.mapping.columns
        paths = {name: {name, *(mapped[name].paths if name in mapped else ())} for name in columns}
        sheet.set_column(0, len(columns) + len(added) - 1, 18, text)
        sheet.freeze_panes(1, 0)
        write_row(sheet, 0, [*map(escape, columns), *added], [head] * (len(columns) + len(added)))
        for at, (line, cells, note) in enumerate(writer.rows(), 1):
            if at > ROWS_MAX:
                break
            *before, words = lines[line]
            own = [cell if len(cell) <= _CELL_MAX else "" for cell in cells]
            notes = [note, "" if own == cells else "; a cell is too long for a sheet"]
            if len(cells) != len(columns):  # other cells may be in its columns than theirs
                own, notes = (
                    [""] * len(columns),
                    [f"{CELLS}{line} of the file: {' | '.join(cells)}"],
                )
            words += "".join(notes) if added is REJECT_COLUMNS else ""
            faults = {*before[0].split(SEPARATOR)} if added is REJECT_COLUMNS else set()
            styles = [faulty if faults & paths[column] else text for column in columns]
            row = [*map(escape, own), str(line), *map(neutralize, (*before, words))]
            write_row(sheet, at, row, [*styles, *[text] * len(added)])
            if name == ALL_LINES:
                hashes.append(row_hash([cell[:_CELL_MAX] for cell in row[: len(columns)]]))
    _write_hashes(workbook, hashes, text)


def _write_hashes(workbook: Any, hashes: Sequence[str], style: str) -> None:  # noqa: ANN401 # untyped
    """Writes the hidden sheet with the hash of each row of `all lines`."""
    sheet = workbook.add_worksheet(HASHES_SHEET)
    sheet.very_hidden()
    for at, cell in enumerate(hash_cells(hashes)):
        write_row(sheet, at, [cell], [style])


def write_row(sheet: Any, at: int, cells: Sequence[str], styles: Sequence[Any]) -> None:  # noqa: ANN401 # untyped
    """Writes cells as text, each in its style."""
    for column, (cell, style) in enumerate(zip(cells, styles, strict=True)):
        if cell:
            sheet.write_string(at, column, cell[:_CELL_MAX], style)
        else:
            sheet.write_blank(at, column, None, style)  # what is typed there is text too


def _written(folder: Path) -> str:
    """Hash of the workbook that was written there last; empty if there is none."""
    try:
        return (folder / _WRITTEN).read_text("ascii")
    except OSError:
        return ""
