"""The columns of a file as a page shows them: a row each, with samples and the field that it fills.

In: what the import reads of the file. Out: rows, and the fields to choose from; and the answers that a form gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from orderbridge.pipelines.desk.imports import DeskImport
from orderbridge.pipelines.desk.texts import Texts
from orderbridge.pipelines.import_file.mappings import may_be_passwords
from orderbridge.pipelines.import_file.reading import (
    FileReading,
    ReadColumn,
    SampleCell,
    TargetField,
    read_columns,
)
from orderbridge.pipelines.imports.open import open_input_table
from orderbridge.pipelines.plan.wording import problem_in
from orderbridge.sources.files import DetectedFormat
from orderbridge.sources.kinds import PASSWORD, KindName

IGNORE: Final = "ignore"
KEEP: Final = ""
"""The choice of a column that fills several fields: they stay as they are."""
CODES: Final = ("erpCode", "loginCode")
"""The fields that one column fills where customers log in with their code in the ERP."""
_SAMPLES: Final = 3
ENCODINGS: Final = ("utf-8", "cp1252", "cp850", "iso-8859-15", "utf-16", "mac_roman")
DELIMITERS: Final = {";": ";", ",": ",", "tab": "TAB", "|": "|"}
"""What can be chosen where a file is not read as it should be: the values, and how they are shown."""


@dataclass(frozen=True, slots=True)
class ColumnRow:
    """A column.

    Attributes:
        chosen: the field that is chosen in the list; empty: none yet, or several.
        paths: all fields that it fills.
        may_be: why the field that its name means is not proposed; empty: there is none, or it is.
        is_new: it was not in the files before.
        is_hidden: its cells may be passwords, which no page shows.
    """

    name: str
    question: str
    state: str
    chosen: str
    paths: Sequence[str]
    samples: Sequence[SampleCell]
    rivals: Sequence[str]
    may_be: str
    is_new: bool
    is_hidden: bool


@dataclass(frozen=True, slots=True)
class FieldOption:
    """A field to choose."""

    path: str
    label: str
    is_required: bool
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsPage:
    """How a file is read.

    Attributes:
        asked: how many columns need an answer.
        missing: required fields that no column fills.
        is_known: the columns are read as in an earlier file.
        encoding, delimiter: as the file is read; empty for a workbook.
        sheets: of a workbook with several; `sheet` is the one that is read.
    """

    rows: Sequence[ColumnRow]
    fields: Sequence[FieldOption]
    asked: int
    missing: Sequence[FieldOption]
    is_known: bool
    encoding: str
    delimiter: str
    sheets: Sequence[str]
    sheet: str


def columns_page(one: DeskImport, texts: Texts) -> ColumnsPage:
    """How the file of an import is read. Raises UsageError: it cannot be read."""
    found = open_input_table(one.file, one.read_options, None).format
    reading = read_columns(one.kind, one.file, one.read_options, one.lookups)
    numbers = frozenset(field.path for field in reading.fields if field.type == "number")
    rows = [_row(column, one.kind, numbers, texts) for column in reading.columns]
    rows.sort(key=lambda row: (row.state != "asked", not row.is_new))
    return ColumnsPage(
        rows=rows,
        fields=[*_options(reading, texts)],
        asked=sum(row.state == "asked" for row in rows),
        missing=[_option(field, texts) for field in reading.fields if _is_missing(field)],
        is_known=reading.mapping is not None,
        encoding=found.encoding or "",
        delimiter=_shown_delimiter(found),
        sheets=[*found.sheets] if len(found.sheets) > 1 else [],
        sheet=found.sheet or "",
    )


def _options(reading: FileReading, texts: Texts) -> Iterator[FieldOption]:
    """The fields to choose; where customers log in with a code, that it is their code in the ERP."""
    paths = {field.path: field for field in reading.fields}
    for field in reading.fields:
        yield _option(field, texts)
        if field.path == CODES[0] and CODES[1] in paths and paths[CODES[1]].is_required:
            label = texts("columns.both", fields=" + ".join(map(texts.field, CODES)))
            yield FieldOption(",".join(CODES), label, is_required=True, meaning="")


def _option(field: TargetField, texts: Texts) -> FieldOption:
    return FieldOption(
        path=field.path,
        label=texts.field(field.path),
        is_required=field.is_required and field.path != PASSWORD,
        meaning=field.meaning,
    )


def _is_missing(field: TargetField) -> bool:
    """Whether a field is required and nothing fills it. Where a file has no passwords, they are asked for later."""
    return field.is_required and field.column is None and field.path != PASSWORD


def column_answers(reading: FileReading, chosen: Mapping[str, str]) -> dict[str, str]:
    """The answers to give, by question: of columns that are asked or new, and of those whose field is changed.

    Args:
        reading: how the file is read now.
        chosen: the field that was chosen for a column, by its question.
    """
    answers: dict[str, str] = {}
    for column in reading.columns:
        choice = chosen.get(column.question, KEEP)
        if choice == KEEP:
            continue
        is_open = column.state == "asked" or column.is_new
        if is_open or choice != _current(column):
            answers[column.question] = choice
    return answers


def without_rest(chosen: Mapping[str, str]) -> dict[str, str]:
    """The fields that were chosen, where the columns without one are not sent."""
    return {question: choice or IGNORE for question, choice in chosen.items()}


def changed_columns(reading: FileReading, chosen: Mapping[str, str]) -> dict[str, str]:
    """The fields that a person has changed, by question: what the page proposes is no choice yet."""
    changed: dict[str, str] = {}
    for column in reading.columns:
        choice = chosen.get(column.question, KEEP)
        if choice not in (KEEP, _shown(column)):
            changed[column.question] = choice
    return changed


def columns_of_one_field(
    reading: FileReading, chosen: Mapping[str, str]
) -> tuple[str, Sequence[str]] | None:
    """A field that several columns would fill, and these columns; None where each fills one of its own."""
    columns: dict[str, list[str]] = {}
    for column in reading.columns:
        choice = chosen.get(column.question, KEEP)
        paths = column.fields if choice == KEEP else paths_of_choice(choice)
        for path in paths:
            columns.setdefault(path, []).append(column.name)
    columns.pop(IGNORE, None)
    return next(((path, names) for path, names in columns.items() if len(names) > 1), None)


def paths_of_choice(choice: str) -> tuple[str, ...]:
    """The fields of a choice."""
    return CODES if choice == ",".join(CODES) else (choice,)


def _current(column: ReadColumn) -> str:
    """The choice that the list shows for a column as it is read now."""
    if tuple(column.fields) == CODES:
        return ",".join(CODES)
    if len(column.fields) > 1:
        return KEEP
    if column.fields:
        return column.fields[0]
    return IGNORE


def _shown(column: ReadColumn) -> str:
    """The choice that the page begins with."""
    if column.state != "asked":
        return _current(column)
    return KEEP if column.rivals else column.guess or KEEP


def _row(column: ReadColumn, kind: KindName, numbers: frozenset[str], texts: Texts) -> ColumnRow:
    """A column; `numbers` are the fields of numbers with decimals."""
    is_number = not numbers.isdisjoint(column.fields)
    return ColumnRow(
        name=column.name,
        question=column.question,
        state=column.state,
        chosen=_shown(column),
        paths=column.fields,
        samples=[
            _sample(cell, texts, is_number=is_number)
            for cell in column.samples
            if cell.text.strip()
        ][:_SAMPLES],
        rivals=column.rivals,
        may_be=_may_be(column, texts),
        is_new=column.is_new,
        is_hidden=may_be_passwords(kind, column.name) or PASSWORD in column.fields,
    )


def _may_be(column: ReadColumn, texts: Texts) -> str:
    if column.may_be is None:
        return ""
    code = "columns.unchecked" if column.is_unchecked else "columns.may_be"
    return texts(code, field=texts.field(column.may_be))


def _sample(cell: SampleCell, texts: Texts, *, is_number: bool) -> SampleCell:
    if cell.value is not None and is_number:
        return replace(cell, value=texts.number(Decimal(cell.value)))
    if not cell.problem:
        return cell
    return replace(cell, problem=problem_in(texts, cell.code, cell.problem))


def _shown_delimiter(found: DetectedFormat) -> str:
    return {"\t": "TAB", " ": "SPACE"}.get(found.delimiter or "", found.delimiter or "")
