"""The page of an import at the step where it is: running, asking, to be confirmed, or at its end.

In: an import of the desk. Out: one dataclass for the template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePath
from typing import Any, Final

from orderbridge.pipelines.desk.columns import CODES, ColumnsPage, columns_page, paths_of_choice
from orderbridge.pipelines.desk.imports import (
    DeskImport,
    ImportRow,
    State,
    are_corrections_sent,
    busy_now,
    corrections_by_name,
    find_import,
    import_row,
    lines_of,
    other_parts,
)
from orderbridge.pipelines.desk.link import Link
from orderbridge.pipelines.desk.password_files import PasswordFile, password_files
from orderbridge.pipelines.desk.plans import (
    Document,
    PlanPage,
    corrections_of,
    lines_to_confirm,
    plan_page,
    rejected_cells,
)
from orderbridge.pipelines.desk.progress import Progress, progress_of
from orderbridge.pipelines.desk.questions import ChoiceRow, answer_label, asked_words
from orderbridge.pipelines.desk.settled import settled_lines
from orderbridge.pipelines.desk.texts import Texts
from orderbridge.pipelines.import_file.asking import LOOKUP, NO, PASSWORDS, PREFIX
from orderbridge.pipelines.import_file.other_kind import likelier_kind
from orderbridge.pipelines.plan.model import PASSWORD_SOURCES
from orderbridge.pipelines.questions.imports import answer_to
from orderbridge.pipelines.questions.meanings import without_evidence
from orderbridge.pipelines.questions.model import AskedQuestion
from orderbridge.pipelines.questions.writes import Writes, is_write, plan_of, write_examples
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import ReadOptions
from orderbridge.sources.kinds import KINDS, PASSWORD, KindName
from orderbridge.sources.settings import legacy_settings
from orderbridge.sources.settings.setting import SETTINGS

_COLUMN_TOPIC: Final = "column"
_GONE_TOPIC: Final = "gone"
_UNKNOWN: Final = "unknown"
"""What a setting is whose question nobody has answered: no answer."""
_INCREMENT: Final = "increment"
"""What a setting is under which a file has to have changes."""
_WAITING: Final = ("asking", "planned")
Corrected = Mapping[str, Sequence[DeskImport]]
"""The imports of corrected lines, by the name of the import that the lines are of."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about the file, beside those about its columns.

    Attributes:
        id: as it is answered.
        is_here: its answers are chosen on the page; others have a page of their own.
    """

    id: str
    text: str
    reason: str
    examples: Sequence[str]
    choices: Sequence[ChoiceRow]
    is_here: bool


@dataclass(frozen=True, slots=True)
class FirstFile:
    """The import whose lines a correction has, and what is left of the file beside them.

    Attributes:
        left: where it goes on: the file itself, or another correction; None: nothing is left.
        unsent: lines that wait for their confirmation, in all of these.
        rejected: lines that wait for their correction.
    """

    row: ImportRow
    left: ImportRow | None
    unsent: int
    rejected: int


@dataclass(frozen=True, slots=True)
class CorrectedLines:
    """An import of corrected lines, and their numbers in the file that they are of.

    `rejected`: lines that are wrong again, and wait there for their correction.
    """

    row: ImportRow
    lines: Sequence[int]
    rejected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPage:
    """An import.

    Attributes:
        shown: what names the plan that the page shows; a confirmation is for it alone.
        has_changed: a person has agreed to another plan, and what is left of the file waits again.
        corrections: the imports of its corrected lines.
        is_corrected: its corrected lines were sent, perhaps some of them.
        first: the import whose lines it corrects; None: it is no correction.
        is_answered: it has asked what became of requests, and a person has answered all of that since.
        undecided: what the platform does with numbers that would be sent, where nobody has said so.
        other_kind: the kind that the columns look like, if it is another one.
        new_columns: that were not in the files before, by their questions, while a person can choose a field for them.
    """

    row: ImportRow
    progress: Progress
    plan: PlanPage
    questions: Sequence[Asked]
    is_answered: bool
    undecided: Sequence[Asked]
    passwords: Asked | None
    password_files: Sequence[PasswordFile]
    other_kind: KindName | None
    new_columns: Mapping[str, str]
    corrections: Sequence[CorrectedLines]
    is_corrected: bool
    first: FirstFile | None
    shown: str
    has_changed: bool
    busy: Link | None
    was_refused: bool
    is_removable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsView:
    """The columns of an import.

    Attributes:
        error: why its file cannot be read, in English.
        read_as: what was chosen of how it is read.
        has_earlier_lookups: the lookups are those of an earlier import.
        fitting_lookup: the file whose ids a person is asked about next; empty: there is none.
        declined: the question whether ids are taken from them, where a person has said no; empty otherwise.
        other_kind: the kind that the columns look like, if it is another one.
        is_corrected: its corrected lines were sent, perhaps some of them.
        is_text: an encoding and a delimiter can be chosen.
        needs_ids: its lines change records, which are named by ids of the platform.
        needs_code: no column has the codes that customers log in with.
        offers_lookup: a second file may have what this one lacks.
    """

    row: ImportRow
    page: ColumnsPage | None
    read_as: ReadOptions
    is_text: bool
    other_kind: KindName | None
    lookups: Sequence[str]
    fitting_lookup: str
    has_earlier_lookups: bool
    declined: str
    error: str
    is_removable: bool
    is_corrected: bool
    is_correction: bool
    needs_ids: bool
    needs_code: bool
    offers_lookup: bool


def import_view(one: DeskImport, texts: Texts) -> ImportPage:
    """The page of an import that was started."""
    document = one.result
    columns = document.get("columns") or ()
    made = corrections_by_name()
    corrected = made.get(one.name, [])
    unknown = unknown_writes(document)
    new_columns = _new_columns(document) if one.is_removable else {}
    plan = plan_page(
        document, texts, lines_of(corrected), settled_lines(one), asks_columns=bool(new_columns)
    )
    return ImportPage(
        row=import_row(one, texts),
        progress=progress_of(one.job, texts),
        plan=plan,
        questions=_questions(document, unknown, texts),
        is_answered=asks_writes_only(document) and not unknown,
        undecided=_undecided(one.state, document, texts),
        other_kind=_other_kind(one, [str(column["name"]) for column in columns]),
        new_columns=new_columns,
        passwords=_passwords(document, texts) if one.is_removable else None,
        password_files=password_files(one),
        corrections=[_corrected_lines(each, made, texts) for each in corrected],
        is_corrected=are_corrections_sent(one, made),
        first=_first_file(one, made, texts),
        shown=shown_plan(document),
        has_changed=one.state in _WAITING and one.seen not in ("", shown_plan(document)),
        busy=busy_now(texts) if one.state == "planned" else None,
        was_refused=one.was_refused,
        is_removable=one.is_removable,
    )


def _questions(document: Document, unknown: Sequence[AskedQuestion], texts: Texts) -> list[Asked]:
    """What it has asked, but about columns; about requests what is asked now, as another page or command answers it."""
    asked = [
        _asked(one, texts)
        for one in document.get("questions") or ()
        if one.get("topic") != _COLUMN_TOPIC and not is_write(str(one["id"]))
    ]
    for one in unknown:
        with_examples = replace(one, examples=write_examples(one.id))
        asked.append(_asked(asdict(with_examples), texts))
    return asked


def unknown_writes(document: Document) -> list[AskedQuestion]:
    """The open questions about requests of the plan that an import has asked about."""
    names = [str(one["id"]) for one in document.get("questions") or ()]
    plans = {plan_of(name) for name in names if is_write(name)}
    if not plans:
        return []
    return [one for one in Writes().asked() if one.state == "open" and plan_of(one.id) in plans]


def asks_writes_only(document: Document) -> bool:
    """Whether an import has asked what became of requests, and nothing else."""
    names = [str(one["id"]) for one in document.get("questions") or ()]
    return bool(names) and all(map(is_write, names))


def _other_kind(one: DeskImport, columns: Sequence[str]) -> KindName | None:
    """The kind that the columns of a file look like, while it can be imported as that one instead."""
    return likelier_kind(columns, one.kind) if one.is_removable and not one.is_correction else None


def _new_columns(document: Document) -> dict[str, str]:
    """The names of the columns that were not in the files before, by their questions.

    None while it is asked whether all columns are read anew.
    """
    if any(one.get("topic") == _GONE_TOPIC for one in document.get("questions") or ()):
        return {}
    columns = document.get("columns") or ()
    return {one["question"]: one["name"] for one in columns if one.get("is_new")}


def _corrected_lines(one: DeskImport, made: Corrected, texts: Texts) -> CorrectedLines:
    rejected = _left_to_correct(one, made, texts)
    return CorrectedLines(import_row(one, texts), one.corrected_lines, rejected)


def _left_to_correct(one: DeskImport, made: Corrected, texts: Texts) -> int:
    """The lines of an import that wait for their correction."""
    document = one.result
    if not rejected_cells(document):
        return 0
    done = lines_of(made.get(one.name, []))
    return corrections_of(document, texts, done, settled_lines(one)).waiting


def _first_file(one: DeskImport, made: Corrected, texts: Texts) -> FirstFile | None:
    """The import whose lines a correction has, and what of its file is not done yet."""
    first = find_import(one.corrects) or find_import(one.root)
    if first is None or not one.is_correction:
        return None
    unsent = 0
    rejected = 0
    left: list[ImportRow] = []
    for part in other_parts(one, made):
        to_confirm = lines_to_confirm(part.result)
        to_correct = _left_to_correct(part, made, texts)
        row = import_row(part, texts)
        if to_confirm or to_correct or row.waits:
            left.append(row)
        unsent += to_confirm
        rejected += to_correct
    return FirstFile(import_row(first, texts), next(iter(left), None), unsent, rejected)


def asks_columns(document: Document) -> bool:
    """Whether columns need an answer before the import can go on, or a required field lacks one."""
    questions = document.get("questions") or ()
    if any(each.get("topic") == _COLUMN_TOPIC for each in questions):
        return True
    if is_unreadable(document):
        return True
    fields = document.get("fields") or ()
    is_missing = any(
        one["is_required"] and one["column"] is None and one["path"] != PASSWORD for one in fields
    )
    return is_missing and not questions and document.get("state") == "failed"


def is_unreadable(document: Document) -> bool:
    """Whether the command has come to the file, and found no columns in it."""
    return document.get("state") == "failed" and document.get("columns") == []


def shown_plan(document: Document) -> str:
    """What names the plan that an import printed: a digest of what it would send."""
    agreement = document.get("agreement") or {}
    return str(agreement.get("plan") or document.get("folder"))


def columns_view(one: DeskImport, texts: Texts, chosen: Mapping[str, str]) -> ColumnsView:
    """The page of the columns of a file."""
    page = None
    error = ""
    try:
        page = _with_choices(columns_page(one, texts), chosen)
    except UsageError as problem:
        error = problem.message
    needs_ids = KINDS[one.kind].is_update
    question = one.lookup_question
    lacking = {field.path for field in page.missing} if page is not None else set()
    may_need_lookup = needs_ids or bool(lacking - {CODES[1]} or one.lookups)
    return ColumnsView(
        row=import_row(one, texts),
        page=page,
        read_as=one.read_options,
        is_text=bool(page.encoding) if page is not None else one.file.suffix.lower() != ".xlsx",
        other_kind=_other_kind(one, [column.name for column in page.rows] if page else []),
        lookups=[path.name for path in one.lookups],
        fitting_lookup=_fitting_lookup(one.result),
        declined=question if one.lookups and answer_to(question) == NO else "",
        has_earlier_lookups=bool(one.lookups) and one.lookups == one.earlier_lookups,
        error=error,
        is_removable=one.is_removable,
        is_corrected=are_corrections_sent(one, corrections_by_name()),
        is_correction=one.is_correction,
        needs_ids=needs_ids,
        needs_code=CODES[1] in lacking,
        offers_lookup=may_need_lookup and not one.is_correction,
    )


def _fitting_lookup(document: Document) -> str:
    """The name of the file with the ids that an import has found and asks about."""
    questions = document.get("questions") or ()
    files = [one["values"]["file"] for one in questions if one.get("topic") == LOOKUP]
    return PurePath(files[0]).name if files else ""


def _with_choices(page: ColumnsPage, chosen: Mapping[str, str]) -> ColumnsPage:
    """The page with the fields that a person has chosen so far, by the question of their column."""
    rows = [replace(row, chosen=chosen.get(row.question, row.chosen)) for row in page.rows]
    filled = {path for choice in chosen.values() for path in paths_of_choice(choice)}
    missing = [field for field in page.missing if field.path not in filled]
    return replace(page, rows=rows, missing=missing)


def _undecided(state: State, document: Document, texts: Texts) -> list[Asked]:
    """Questions about the fields of a file that the platform may add to what it has.

    Those that are not answered; and where a file cannot be sent, those whose answer may be why.
    """
    asked = {"planned": _UNKNOWN, "failed": _INCREMENT}.get(state)
    columns = document.get("columns") or ()
    filled = {path for column in columns for path in column["fields"]}
    return [
        _asked_setting(f"sources.legacy.{name}_semantics", value, texts)
        for name, value in legacy_settings().semantics.items()
        if name in filled and value == asked
    ]


def _passwords(document: Document, texts: Texts) -> Asked | None:
    """The question how new customers get their passwords, as it is answered; None where none are made."""
    made = (document.get("agreement") or {}).get("passwords")
    if made is None:
        return None
    choices = [
        ChoiceRow(way, answer_label(PASSWORDS, way, texts), (), is_checked=way == made)
        for way in PASSWORD_SOURCES
    ]
    question = f"{PREFIX}{document['import_id']}/{PASSWORDS}"
    text = texts("page.ask.passwords")
    return Asked(question, text, reason="", examples=(), choices=choices, is_here=True)


def _asked_setting(key: str, value: str, texts: Texts) -> Asked:
    """The question of a setting, with what each answer means: that nothing is known is none."""
    question = without_evidence(SETTINGS[key])
    choices = [
        ChoiceRow(
            choice.value,
            answer_label(key, choice.value, texts),
            choice.evidence.split("; "),
            is_checked=choice.value == value,
        )
        for choice in question.choices
        if choice.value != _UNKNOWN
    ]
    text = asked_words(key, question.text, texts)
    return Asked(key, text, reason="", examples=(), choices=choices, is_here=True)


def _asked(question: Mapping[str, Any], texts: Texts) -> Asked:
    topic = question.get("topic") or ""
    proposal = question.get("proposal")
    choices = [
        ChoiceRow(
            value=str(choice["value"]),
            label=answer_label(str(topic), str(choice["value"]), texts),
            evidence=_evidence(topic, choice, texts),
            is_checked=choice["value"] == proposal,
        )
        for choice in question.get("choices") or ()
    ]
    return Asked(
        id=str(question["id"]),
        text=asked_words(str(question["id"]), str(question["text"]), texts),
        reason=str(question.get("reason") or ""),
        examples=[str(example) for example in question.get("examples") or ()],
        choices=choices,
        is_here=bool(choices),
    )


def _evidence(topic: str, choice: Mapping[str, Any], texts: Texts) -> list[str]:
    """What an answer means; nothing where its words on the page say so."""
    value = str(choice["value"])
    is_worded = answer_label(topic, value, texts) != value
    text = str(choice.get("evidence") or "")
    return [text] if text and not is_worded else []
