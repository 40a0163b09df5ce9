"""`result.xlsx`: what became of each line, as a person opens it; its first sheet is corrected and imported as it is.

In: a plan, its input, and the results of its push. Out: a workbook in the plan's folder. `to correct` has the rejected
rows with the columns of a reject file, `all lines` every row with its status. Every cell is text in a column of texts,
so that a spreadsheet changes no code; passwords are left out, and what would be a formula has an apostrophe before it.
A hidden sheet has the hash of each row of `all lines`, where corrections would be lost.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import xlsxwriter
from xlsxwriter.exceptions import FileCreateError

from orderbridge.pipelines.imports import Inputs
from orderbridge.pipelines.imports.open import REJECT_COLUMNS
from orderbridge.pipelines.plan.alike import CODE as NEARLY_KNOWN
from orderbridge.pipelines.plan.corrections import hash_cells, row_hash
from orderbridge.pipelines.plan.lost_zeros import CODE as ZEROS_LOST
from orderbridge.pipelines.plan.model import (
    DIFFERENCES_FILE,
    IMPORT_MARK,
    RESULTS_FOLDER,
    Plan,
    file_sha256,
    is_import,
)
from orderbridge.pipelines.plan.outcomes import DIFFERENCE_SCHEMA, SEPARATOR
from orderbridge.pipelines.plan.rejects import RejectsWriter
from orderbridge.pipelines.plan.wording import problems_in, reason_in
from orderbridge.pipelines.push.passwords import inputs_of
from orderbridge.pipelines.push.results import FILE_OF, RESULT_COLUMNS, RESULT_FILES
from orderbridge.sources.command_line import run_again
from orderbridge.sources.disk import disk_errors, first_free, working_folder, write_private
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.formulas import escape, neutralize, people_rows
from orderbridge.sources.files.workbook import HASHES_SHEET
from orderbridge.sources.texts import LANGUAGES, Language, Texts

RESULT_FILE: Final = "result.xlsx"
LINES_MAX: Final = 100_000
"""Lines of a file up to which each has a row; of a larger one, lines that are confirmed have none."""
ROWS_MAX: Final = 1_048_575
_CELL_MAX: Final = 32_767
"""Limits of a sheet: rows below the header, characters of a cell."""
_FAULTY: Final = {"bg_color": "#FFF2CC"}
_HEAD: Final = {"bold": True, "bottom": 1, "bg_color": "#E7E6E6"}
_NOTE: Final = {"x_scale": 2.0, "font_size": 9}
_NOTE_MAX: Final = 1000
"""Characters of a note on a cell."""
_WIDTH_MIN: Final = 7
_WIDTH_MAX: Final = 50
"""Characters of a column; room for the sign of the filter is added."""
_A4: Final = 9
_BEGUN: Final = "begun"
_STATUS_COLUMNS: Final = ("line", "status", "reason", "platform")
WORKBOOK_OPTIONS: Final = {
    "constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False,
}  # fmt: skip


class LineOutcome(NamedTuple):
    """What became of a line, or of one of a plan that nobody has sent yet what would.

    Attributes:
        file: of the results that has it.
        outcome: by code.
        field, code, words: the reason; several are separated by ` | `.
        message: the platform's words.
        is_to_correct: a person has to change its cells, or look at them.
    """

    file: str
    outcome: str
    field: str
    code: str
    words: str
    message: str
    is_to_correct: bool


@contextmanager
def new_workbook(target: Path | BinaryIO, folder: str) -> Iterator[xlsxwriter.Workbook]:
    """A workbook that is written to a file, whole. Raises OSError.

    Args:
        target: the file.
        folder: for its parts until it is written.
    """
    try:
        with xlsxwriter.Workbook(target, {**WORKBOOK_OPTIONS, "tmpdir": folder}) as workbook:
            yield workbook
    except FileCreateError as error:
        (refused,) = error.args
        raise refused from None


def write_result(
    plan: Plan,
    inputs: Inputs | None = None,
    language: Language | None = None,
    *,
    has_ended: bool = True,
) -> Path:
    """Writes the workbook and returns its path. One that a person has changed is kept: the new one gets a number.

    Args:
        plan: whose lines it has.
        inputs: those that the plan was made of; None: they are opened.
        language: None: that of the last workbook.
        has_ended: False while an import has still to read back what it has sent.

    Raises:
        UsageError: the input or its mapping was changed since it was planned, or a disk error.
    """
    _check_unchanged(plan)
    inputs = inputs or inputs_of(plan)
    texts = Texts(language or _language(plan.folder))
    outcomes = dict(line_outcomes(plan, texts))
    if len(outcomes) > LINES_MAX:
        outcomes = {line: one for line, one in outcomes.items() if one.file != "confirmed"}
    hint = f"The result of each line is in results/. Free space, then {run_again()}"
    with (
        disk_errors(plan.folder, hint),
        working_folder(plan.folder) as folder,
    ):
        made = Path(folder) / RESULT_FILE
        with new_workbook(made, folder) as workbook:
            _write_sheets(workbook, inputs, outcomes, texts)
        content = made.read_bytes()
        written = _read_mark(plan.folder).sha256
        path = first_free(plan.folder, RESULT_FILE, lambda path: file_sha256(path) == written)
        write_private(path, content)
        sha256 = hashlib.sha256(content).hexdigest()
        _write_mark(plan.folder, _Mark(sha256, texts.language, has_ended))
    return path


def corrections_sheet_of(plan: Plan) -> str:
    """The name of the sheet to correct in the last workbook of a plan."""
    return Texts(_language(plan.folder))("sheet.corrections")


def mark_begun(plan: Plan) -> None:
    """Marks a plan as that of an import, before it is pushed. Raises UsageError."""
    with disk_errors(plan.folder, f"Free space, then {run_again()}"):
        _write_mark(plan.folder, _read_mark(plan.folder)._replace(has_ended=False))


def mark_ended(plan: Plan) -> None:
    """Marks that the import of a plan has read back what it has sent. Raises UsageError."""
    with disk_errors(plan.folder, f"Free space, then {run_again()}"):
        _write_mark(plan.folder, _read_mark(plan.folder)._replace(has_ended=True))


def was_cut_off(folder: Path) -> bool:
    """Whether an import has begun to send the plan in a folder, and ended before it had read back what it sent."""
    return is_import(folder) and not _read_mark(folder).has_ended


def _check_unchanged(plan: Plan) -> None:
    for file in (plan.manifest.input, plan.manifest.mapping):
        if file is not None and file_sha256(Path(file.path)) != file.sha256:
            hint = f"The result of each line is in {plan.folder / RESULTS_FOLDER}; the next import takes the new file."
            raise UsageError(
                f"{file.path} was changed meanwhile: {RESULT_FILE} cannot repeat its rows", hint
            )


def line_outcomes(plan: Plan, texts: Texts) -> Iterator[tuple[int, LineOutcome]]:
    """The outcome of each line, with the fields that the plan names for what is to correct, in a language."""
    faulty = {
        line.line: line
        for line in plan.unsent_lines()
        if line.outcome in ("rejected", "held") and line.code not in _ANSWERED
    }
    differences: dict[int, list[str]] = defaultdict(list)
    for row in people_rows(plan.folder / DIFFERENCES_FILE, DIFFERENCE_SCHEMA.names):
        differences[int(row["line"])].append(
            difference_words(row, texts, texts.field(row["field"]))
        )
    is_pushed = (plan.folder / RESULTS_FOLDER / f"{RESULT_FILES[0]}.csv").exists()
    for line, found in _pushed_lines(plan) if is_pushed else _planned_lines(plan):
        field = ""
        code = found.code
        own = reason_in(texts, found.words)
        words = "; ".join(filter(None, (own, *differences.get(line, ()))))
        if line in faulty:
            field, code, words = faulty[line][3:]
            words = problems_in(texts, code, words)
        is_to_correct = found.file == "rejected" or line in faulty
        yield (
            line,
            found._replace(field=field, code=code, words=words, is_to_correct=is_to_correct),
        )


def difference_words(row: Mapping[str, str], texts: Texts, field: str) -> str:
    """Both values of a row of `differences.csv`, with a name of the field."""
    return texts(
        "note.difference",
        field=field,
        platform=row["platform_value"],
        file=row["file_value"],
    )


def _pushed_lines(plan: Plan) -> Iterator[tuple[int, LineOutcome]]:
    """The lines as the push has left them."""
    for name in RESULT_FILES:
        for row in people_rows(plan.folder / RESULTS_FOLDER / f"{name}.csv", RESULT_COLUMNS):
            outcome = LineOutcome(
                name, row["outcome"], "", row["code"], row["words"], row["platform_message"], False
            )
            yield int(row["line"]), outcome


def _planned_lines(plan: Plan) -> Iterator[tuple[int, LineOutcome]]:
    """The lines of a plan that nobody has sent."""
    for line in plan.unsent_lines():
        file = FILE_OF[line.outcome]
        yield line.line, LineOutcome(file, line.outcome, "", line.code, line.words, "", False)
    not_sent = LineOutcome("unsent", "not_sent", "", "", "", "", False)
    for operation in plan.operations():
        for number in operation.lines:
            yield number, not_sent


_ANSWERED: Final = (ZEROS_LOST, NEARLY_KNOWN)
"""Why lines are held that an answer or a new export ends, and no correction of a cell."""


class _Sheet(NamedTuple):
    """A sheet: what it has beside the columns of the file, and its lines.

    Attributes:
        added: the columns after those of the file.
        lines: the cells of `added` but for the first one, which is the line, by line.
        is_corrections: whether its rows are corrected and imported.
    """

    name: str
    added: Sequence[str]
    lines: Mapping[int, tuple[str, str, str]]
    texts: Texts
    is_corrections: bool = False


def _write_sheets(
    workbook: Any,  # noqa: ANN401 # untyped
    inputs: Inputs,
    outcomes: Mapping[int, LineOutcome],
    texts: Texts,
) -> None:
    text = workbook.add_format({"num_format": "@"})
    formats = _Formats(
        text=text,
        head=workbook.add_format({"num_format": "@", **_HEAD}),
        faulty=workbook.add_format({"num_format": "@", **_FAULTY}),
        words=workbook.add_format({"num_format": "@", "text_wrap": True}),
    )
    corrections = {
        line: (one.field, one.code, "; ".join(filter(None, (one.words, one.message))))
        for line, one in sorted(outcomes.items())
        if one.is_to_correct
    }
    statuses = {
        line: (texts(f"status.{one.outcome}", count=1), one.words, one.message)
        for line, one in outcomes.items()
    }
    name = texts("sheet.corrections")
    to_correct = _Sheet(name, REJECT_COLUMNS, corrections, texts, is_corrections=True)
    _write_sheet(workbook.add_worksheet(to_correct.name), to_correct, inputs, formats)
    all_lines = _Sheet(texts("sheet.all_lines"), _STATUS_COLUMNS, statuses, texts)
    rows = _write_sheet(workbook.add_worksheet(all_lines.name), all_lines, inputs, formats)
    _write_hashes(workbook, rows, text)


def _write_hashes(workbook: Any, hashes: Sequence[str], style: str) -> None:  # noqa: ANN401 # untyped
    """Writes the hidden sheet with the hash of each row of `all lines`."""
    sheet = workbook.add_worksheet(HASHES_SHEET)
    sheet.very_hidden()
    for at, cell in enumerate(hash_cells(hashes)):
        write_row(sheet, at, [cell], [style])


class _Formats(NamedTuple):
    """Of cells; all are text."""

    text: Any
    head: Any
    faulty: Any
    words: Any


def _write_sheet(
    worksheet: Any,  # noqa: ANN401 # untyped
    sheet: _Sheet,
    inputs: Inputs,
    formats: _Formats,
) -> list[str]:
    """Writes a sheet and returns the hash of the cells of the file in each row."""
    writer = RejectsWriter(inputs.table, inputs.mapping, sheet.lines)
    columns = writer.columns
    mapped = inputs.mapping.columns
    paths = {name: {name, *(mapped[name].paths if name in mapped else ())} for name in columns}
    added = [sheet.texts(f"sheet.{name}") for name in sheet.added]
    names = [*map(escape, columns), *added]
    write_row(worksheet, 0, names, [formats.head] * len(names))
    widths = [*map(len, names)]
    own_formats = [formats.text] * len(columns)
    added_formats = [formats.text, *[formats.words] * (len(sheet.added) - 1)]
    hashes: list[str] = []
    for at, (line, cells, note) in enumerate(writer.rows(), 1):
        if at > ROWS_MAX:
            break
        *before, words = sheet.lines[line]
        own, notes = _own_cells(line, cells, len(columns), note, sheet.texts)
        styles = own_formats
        if sheet.is_corrections:
            fields = before[0].split(SEPARATOR)
            faults = [n for n, name in enumerate(columns) if not paths[name].isdisjoint(fields)]
            styles = [formats.faulty if n in faults else formats.text for n in range(len(own))]
            for n in faults:
                reason = _reason(paths[columns[n]], fields, words)
                worksheet.write_comment(at, n, _note_text(reason), _NOTE)
            words += notes
            before[0] = _field_words(fields, sheet.texts)
        row = [*map(escape, own), str(line), *map(neutralize, (*before, words))]
        write_row(worksheet, at, row, [*styles, *added_formats])
        widths = [max(pair) for pair in zip(widths, map(len, row), strict=True)]
        hashes.append(row_hash([cell[:_CELL_MAX] for cell in row[: len(columns)]]))
    _lay_out(worksheet, widths, len(hashes), formats.text)
    if sheet.is_corrections:
        # the import of the corrected rows reads the codes; people read the words
        code = len(columns) + sheet.added.index("code")
        worksheet.set_column(code, code, None, formats.text, {"hidden": True})
    return hashes


def _own_cells(
    line: int, cells: list[str], width: int, note: str, texts: Texts
) -> tuple[list[str], str]:
    """The cells of a row as a sheet can have them, and what has to be said about them."""
    if len(cells) != width:  # other cells may be in its columns than theirs
        return [""] * width, f"; {texts('note.cells', line=line, cells=' | '.join(cells))}"
    own = [cell if len(cell) <= _CELL_MAX else "" for cell in cells]
    notes = [texts.reworded(note.removeprefix("; "), "note")] if note else []
    if own != cells:
        notes.append(texts("note.too_long"))
    return own, "".join(f"; {one}" for one in notes)


def _field_words(fields: Sequence[str], texts: Texts) -> str:
    """The fields of a row as people call them; a problem may have several."""
    paths = ", ".join(fields).split(", ")
    return ", ".join(dict.fromkeys(map(texts.field, paths)))


def _reason(paths: Set[str], fields: Sequence[str], words: str) -> str:
    """What a line's reason says about a column which fills these fields; all of it, if it has other parts."""
    reasons = words.split(SEPARATOR)
    if len(fields) != len(reasons):
        return words
    own = (reason for field, reason in zip(fields, reasons, strict=True) if field in paths)
    return "\n".join(own)


def _note_text(reason: str) -> str:
    """The text of a note, without characters that a workbook cannot hold."""
    text = "".join(char if char.isprintable() or char == "\n" else " " for char in reason)
    return text if len(text) <= _NOTE_MAX else f"{text[:_NOTE_MAX]}…"


def _lay_out(worksheet: Any, widths: Sequence[int], rows: int, text: Any) -> None:  # noqa: ANN401 # untyped
    """Columns as wide as their cells, a header that stays and filters, and a page that holds all columns."""
    for at, width in enumerate(widths):
        worksheet.set_column(at, at, min(max(width + 2, _WIDTH_MIN), _WIDTH_MAX), text)
    worksheet.freeze_panes(1, 0)
    worksheet.autofilter(0, 0, rows, len(widths) - 1)
    worksheet.set_landscape()
    worksheet.set_paper(_A4)
    worksheet.fit_to_pages(1, 0)
    worksheet.repeat_rows(0)


def write_row(sheet: Any, at: int, cells: Sequence[str], styles: Sequence[Any]) -> None:  # noqa: ANN401 # untyped
    """Writes cells as text, each in its style."""
    for column, (cell, style) in enumerate(zip(cells, styles, strict=True)):
        if cell:
            sheet.write_string(at, column, cell[:_CELL_MAX], style)
        else:
            sheet.write_blank(at, column, None, style)  # what is typed there is text too


class _Mark(NamedTuple):
    """What is kept beside the workbook of an import.

    Attributes:
        sha256: of the workbook that was written last; empty if there is none.
        language: of that; empty if there is none, or version 0.3 wrote it.
        has_ended: False from when the import began to send until it has read back what it sent.
    """

    sha256: str
    language: str
    has_ended: bool


def _language(folder: Path) -> Language:
    """The language of the workbook that was written there last; English if there is none."""
    written = _read_mark(folder).language
    return next((one for one in LANGUAGES if one == written), "en")


def _read_mark(folder: Path) -> _Mark:
    try:
        text = (folder / IMPORT_MARK).read_text("ascii", "replace")
    except OSError:
        text = ""
    sha256, _, rest = text.partition(" ")
    language, _, state = rest.partition(" ")
    return _Mark(sha256, language, has_ended=bool(sha256) and state != _BEGUN)


def _write_mark(folder: Path, mark: _Mark) -> None:
    """Writes the mark, durably. Raises OSError."""
    state = [] if mark.has_ended else [_BEGUN]
    write_private(folder / IMPORT_MARK, " ".join([mark.sha256, mark.language, *state]).encode())
