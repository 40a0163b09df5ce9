"""Questions as a page shows them: rows of a list, and one with its evidence and the answers to choose from.

In: questions, as `orderbridge questions` reads them. Out: dataclasses for the templates. An answer is given by a
command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from orderbridge.pipelines.desk.texts import COMPARED, Texts
from orderbridge.pipelines.desk.zones import offered_zones, zones_of_named
from orderbridge.pipelines.questions.findings import NOT_FINE
from orderbridge.pipelines.questions.model import AskedQuestion
from orderbridge.pipelines.questions.pairs import PREFIX as PAIR
from orderbridge.pipelines.questions.pairs import pair_of
from orderbridge.pipelines.questions.writes import is_write
from orderbridge.pipelines.warehouse.answers.doubtful_pairs import doubtful_pairs
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import reconcile_settings
from orderbridge.sources.settings.setting import SETTINGS
from orderbridge.transforms.questions import Choice, table_of, table_text
from orderbridge.transforms.value_questions import TIMEZONE

SHOWN_MAX: Final = 100
"""Questions of a kind that are listed; the others are counted."""
NO_CLASS: Final = "withdraw"
"""What is chosen for a value of a table to take its answer back."""
_CHOICES_MAX: Final = 50
_ANY_WEIGHT: Final = 1_000_000
_KINDS: Final = {
    "write": "write",
    "match": "match",
    "matches": "match",
    "finding": "finding",
    "import": "import",
}
"""The kinds that have a heading of their own, by what their ids begin with; others are about the meaning of
values."""
_DIFFERENCE: Final = re.compile(f"(?:^|, )({'|'.join(COMPARED)}): ")
"""The name of a field before its values, which follow each other."""
_AT_ONCE: Final = ("write", "import")
_OF_FILES: Final = "sources.legacy."
"""What the ids of questions begin with whose answers decide how files are sent."""


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A question in a list.

    Attributes:
        language: of the text, where it is not that of the page.
        now: what is used, or why nothing is.
        kind: under which it is listed.
    """

    id: str
    text: str
    language: str
    state: str
    state_words: str
    now: str
    href: str
    kind: str


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """An answer to choose.

    Attributes:
        evidence: what speaks for it, a thing each.
        mark: whether it is used now, or proposed.
    """

    value: str
    label: str
    evidence: Sequence[str]
    mark: str = ""
    is_checked: bool = False


@dataclass(frozen=True, slots=True)
class TableRow:
    """A value that is decided on its own, such as a status: its class is chosen from a list.

    `is_answered`: a person has chosen it.
    """

    value: str
    chosen: str
    is_answered: bool
    evidence: Sequence[str]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two records, side by side. `differences`: a field, and the values of the ERP and of the platform in one text."""

    line: int
    erp_name: str
    platform_name: str
    fiscal_name: str
    agreeing: Sequence[str]
    differences: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPage:
    """One question.

    Attributes:
        table: the values of a table, each with one of `classes`; empty where the question is no table.
        unless, otherwise: the case in which no answer is right, where it is known apart, and what to do then.
        holds_up: what rests on it: figures by their names.
        pair: the two records that it is about.
        answer: of a person, in words; empty: there is none.
        no_class: what is chosen for a value of a table to take its answer back.
        is_withdrawable: a person has answered it, and can take that back.
        counts: from when the answer counts, in words.
    """

    question: AskedQuestion
    text: str
    language: str
    state_words: str
    choices: Sequence[ChoiceRow]
    hidden: int = 0
    table: Sequence[TableRow] = ()
    classes: Sequence[str] = ()
    unless: str = ""
    otherwise: str = ""
    holds_up: Sequence[str] = ()
    pair: Pair | None = None
    answer: str = ""
    no_class: str = ""
    is_withdrawable: bool = False
    counts: str = ""


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """Questions of a kind."""

    kind: str
    rows: Sequence[QuestionRow]
    hidden: int


def question_rows(asked: Iterable[AskedQuestion], texts: Texts) -> list[QuestionRow]:
    """Questions as rows of a list."""
    return [
        QuestionRow(
            id=one.id,
            text=asked_text(one, texts),
            language=text_language(one, texts),
            state=one.state,
            state_words=texts(f"state.{one.state}"),
            now=_now(one, texts),
            href=f"/question?id={quote(one.id, safe='')}",
            kind=kind_of(one.id),
        )
        for one in asked
    ]


def kind_of(question: str) -> str:
    """The kind of a question, under which it is listed."""
    return _KINDS.get(question.partition(":")[0], "meaning")


def question_groups(rows: Sequence[QuestionRow]) -> list[QuestionGroup]:
    """The rows by kind: what holds up a write first."""
    groups: list[QuestionGroup] = []
    for kind in ("write", "import", "finding", "meaning", "match"):
        of_kind = [row for row in rows if row.kind == kind]
        if of_kind:
            shown = of_kind[:SHOWN_MAX]
            groups.append(QuestionGroup(kind, shown, len(of_kind) - len(shown)))
    return groups


def question_page(question: AskedQuestion, texts: Texts, typed: str = "") -> QuestionPage:
    """One question, with its evidence; `typed`: what a person has answered that was not possible."""
    classes = _classes(question)
    is_table = bool(classes)
    possible = [one for one in question.choices if one.is_possible and not is_table]
    shown = {one.value: one for one in possible[:_CHOICES_MAX]}
    for value in () if is_table else [*_zones(question, typed), *_typed_answer(question)]:
        shown.setdefault(value, Choice(value))
    return QuestionPage(
        question=question,
        text=asked_text(question, texts),
        language=text_language(question, texts),
        state_words=texts(f"state.{question.state}"),
        choices=[_choice(question, one, texts) for one in [*shown.values()]],
        hidden=max(0, len(possible) - _CHOICES_MAX),
        table=_table(question) if is_table else (),
        classes=classes,
        unless=texts("question.not_fine") if question.otherwise.startswith(NOT_FINE) else "",
        otherwise=question.otherwise.removeprefix(NOT_FINE),
        holds_up=[*dict.fromkeys(_held_up(one, texts) for one in question.holds_up)],
        pair=_pair(question.id, texts) if question.id.startswith(PAIR) else None,
        answer=_given_answer(question, texts),
        no_class=NO_CLASS,
        is_withdrawable=question.state == "answered" and not is_write(question.id),
        counts=_counts(question.id, texts),
    )


def _given_answer(question: AskedQuestion, texts: Texts) -> str:
    """The answer of a person in words; empty where there is none."""
    is_answered = question.state == "answered"
    value = (question.value if is_answered else None) or ""
    if question.answer is not None:
        value = question.answer.value
    if _classes(question):
        return _table_words(value, texts)
    return answer_label(question.id, value, texts) if value else ""


def _table_words(table: str, texts: Texts) -> str:
    return ", ".join(f"{value}: {texts(f'class.{of}')}" for value, of in table_of(table).items())


def _counts(question: str, texts: Texts) -> str:
    """From when an answer counts: at once, with the next file, or with the next run."""
    if kind_of(question) in _AT_ONCE:
        return texts("question.at_once")
    return texts("question.when_import" if question.startswith(_OF_FILES) else "question.when")


def _classes(question: AskedQuestion) -> Sequence[str]:
    """The words that each row may be of a question that is a table; none of others."""
    setting = SETTINGS.get(question.id)
    return () if setting is None else setting.classes


def _held_up(name: str, texts: Texts) -> str:
    """What rests on a question: a column of the report's tables is the figures of its table."""
    return texts.or_own(f"figures.{'.'.join(name.split('.')[:2])}", name)


def table_answer(rows: Iterable[tuple[str, str]]) -> str:
    """The answer that a table of values and classes makes; values without a class are left out."""
    return table_text(
        {value: "" if chosen == NO_CLASS else chosen for value, chosen in rows if chosen}
    )


def refused_words(question: str, value: str, texts: Texts) -> str:
    """Why a value is no answer, in words of the page; empty where it is one, or the page has no words for it."""
    setting = SETTINGS.get(question)
    if setting is None:
        return ""
    try:
        setting.checked(value)
    except UsageError:
        if question == TIMEZONE and zones_of_named(value):
            return texts("refused.country", value=value)
        return texts.or_own(f"refused.{question}", "", value=value)
    return ""


def asked_text(one: AskedQuestion, texts: Texts) -> str:
    """What is asked, in the language of the page where it is known."""
    return asked_words(one.id, one.text, texts)


def asked_words(question: str, text: str, texts: Texts) -> str:
    """The text of a question: by the setting that it asks for, or by the kind of those asked in the same words."""
    own = texts.known(SETTINGS[text].asks if text in SETTINGS else text)
    if texts.language == "en" and text != question:
        return own
    return texts.or_own(f"asked.{question.partition(':')[0]}", own)


def text_language(one: AskedQuestion, texts: Texts) -> str:
    """The language of the text where it is not that of the page; empty otherwise."""
    return "en" if texts.language != "en" and asked_text(one, texts) == one.text else ""


def _now(one: AskedQuestion, texts: Texts) -> str:
    if one.state == "answered" and (answer := _given_answer(one, texts)):
        return "; ".join(filter(None, (one.reason, answer)))
    used = (one.proposal if one.state == "open" else one.value) or ""
    if one.reason or not _classes(one):
        return one.reason or used
    words = _table_words(used, texts)
    return texts("question.table_words", table=words) if words else ""


def _choice(question: AskedQuestion, choice: Choice, texts: Texts) -> ChoiceRow:
    is_used = choice.value == question.value
    is_proposed = choice.value == question.proposal
    mark = "choice.used" if is_used else "choice.proposed" if is_proposed else ""
    return ChoiceRow(
        value=choice.value,
        label=answer_label(question.id, choice.value, texts),
        evidence=() if is_write(question.id) else _parts(choice),
        mark=texts(mark) if mark else "",
        is_checked=is_used or is_proposed,
    )


def answer_label(question: str, value: str, texts: Texts) -> str:
    """An answer in words: those of the question, or of each question that has it; else as it is typed."""
    return texts.or_own(f"answer.{question}.{value}", texts.or_own(f"answer.{value}", value))


def _zones(question: AskedQuestion, typed: str) -> list[str]:
    """The zones of a country that was typed, of this machine and of the country that is set."""
    if question.id != TIMEZONE:
        return []
    return zones_of_named(typed) + offered_zones(reconcile_settings().country)


def _typed_answer(question: AskedQuestion) -> list[str]:
    """The value in use where a person has answered, who may have typed another one than the choices."""
    return [question.value] if question.answer is not None and question.value else []


def _parts(choice: Choice) -> list[str]:
    return choice.evidence.split("; ") if choice.evidence else []


def _table(question: AskedQuestion) -> list[TableRow]:
    """The values of a table, with the class that is used. What is not known has none."""
    given = table_of(question.answer.value) if question.answer is not None else {}
    answered = {value.casefold() for value in given}
    used = {value.casefold() for value in table_of(question.value or "")}
    return [
        TableRow(
            value=value,
            chosen=chosen if value.casefold() in used else "",
            is_answered=value.casefold() in answered,
            evidence=_parts(choice),
        )
        for choice in question.choices
        for value, chosen in _row_of(choice, _classes(question)).items()
    ]


def _row_of(choice: Choice, classes: Sequence[str]) -> dict[str, str]:
    """A value and its class; what is not known is shown to a person as the value alone."""
    row = table_of(choice.value)
    has_class = len(row) == 1 and set(row.values()) <= set(classes)
    return row if has_class else {choice.value: ""}


def _pair(question: str, texts: Texts) -> Pair | None:
    """The two records of a match; None where the warehouse has them no more."""
    wanted = pair_of(question)
    with open_warehouse() as warehouse:
        pairs = doubtful_pairs(warehouse, _ANY_WEIGHT)
    found = next((pair for pair in pairs if pair["pair"] == wanted), None)
    if found is None:
        return None
    return Pair(
        line=found["line"],
        erp_name=found["erp_name"] or "",
        platform_name=found["platform_name"] or "",
        fiscal_name=found["platform_fiscal_name"] or "",
        agreeing=[
            texts.compared_field(name) for name in (found["agreeing"] or "").split(", ") if name
        ],
        differences=_differences(found["differences"] or "", texts),
    )


def _differences(text: str, texts: Texts) -> list[tuple[str, str]]:
    """The fields that differ, with both values."""
    _, *parts = _DIFFERENCE.split(text)
    return [
        (texts.compared_field(name), values)
        for name, values in zip(parts[::2], parts[1::2], strict=True)
    ]
