"""Questions about meanings: which column is the total, how customers log in. A setting is the answer.

In: the evidence of the published warehouse, and what is set, answered and assumed now. Out: a question for each
subject, and answers in `.dlt/answers.toml`. An answer counts from the next run.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from typing import Final

import duckdb

from orderbridge.pipelines.questions.model import (
    AskedQuestion,
    Given,
    GivenAnswer,
    KeptAnswer,
    no_answer,
    refuse_limits,
)
from orderbridge.pipelines.questions.order_key import order_key_evidence
from orderbridge.pipelines.questions.semantics import semantics_evidence
from orderbridge.pipelines.reconcile.orders.lines import discount_columns
from orderbridge.pipelines.reconcile.value_questions import check_country
from orderbridge.pipelines.warehouse.answers.questions import (
    LINES,
    first_asked,
    last_assumptions,
    last_evidence,
)
from orderbridge.pipelines.warehouse.answers.run_answers import RunAnswers
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.ops import last_order_fields
from orderbridge.pipelines.warehouse.source import read_source
from orderbridge.pipelines.warehouse.sql import columns_of, sql_name, table_names
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import (
    ANSWERS,
    DataSource,
    StoredAnswer,
    answered_keys,
    configured_source,
    read_answers,
    warehouse_path,
    write_answers,
)
from orderbridge.sources.settings.setting import SETTINGS, Setting
from orderbridge.transforms.orders.fields import COLUMN_QUESTIONS, FIELD_QUESTIONS, OTHER_ANSWERS
from orderbridge.transforms.orders.line_fields import LINE_QUESTIONS, ONE
from orderbridge.transforms.questions import (
    Answer,
    Choice,
    Evidence,
    Question,
    merged_tables,
    questions,
    table_of,
    table_text,
)
from orderbridge.transforms.value_questions import COUNTRY


class Meanings:
    """Questions whose answer is a setting. See `QuestionKind`."""

    def is_about(self, question: str) -> bool:
        """See `QuestionKind`."""
        return question in SETTINGS

    def asked(self) -> list[AskedQuestion]:
        """See `QuestionKind`. Where no run of this version has reconciled, those that were answered."""
        evidence, assumptions, first, source = _last_run()
        given = RunAnswers.read().in_force(source)
        made = questions(evidence, {**assumptions, **given})
        set_elsewhere = _set_elsewhere(given)
        asked = [
            replace(
                _asked(one, SETTINGS[one.id]),
                first_seen_at=first.get(one.id),
                note=set_elsewhere.get(one.id) or _unused_rows(one),
            )
            for one in made
        ]
        known = {one.id for one in asked}
        return asked + [
            without_evidence(SETTINGS[key], stored)
            for key, stored in read_answers().answers.items()
            if key not in known and key in SETTINGS
        ]

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        _changes(answers, given)

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        return str(write_answers(_changes(answers, given), _source()))


_WORDS: Final = {**OTHER_ANSWERS, LINE_QUESTIONS["quantity"]: (ONE,)}
"""Answers that are no name of a column, by question."""


def _changes(answers: Sequence[GivenAnswer], given: Given) -> dict[str, StoredAnswer | None]:
    """The entries of the file; None for those that are withdrawn. Raises UsageError."""
    refuse_limits(
        given,
        "the meaning of values",
        "An answer holds until it is withdrawn: orderbridge answer QUESTION --withdraw",
    )
    known = {one.question: one for one in _last_run()[0]}
    withdrawn = {one.question for one in answers if one.value is None}
    stored = read_answers(
        ignored={one.question for one in answers if not SETTINGS[one.question].classes} | withdrawn
    ).answers
    changes: dict[str, StoredAnswer | None] = {}
    for one in answers:
        setting = SETTINGS[one.question]
        if not setting.asks:
            hint = f"Set it: orderbridge init {one.question}=VALUE"
            raise UsageError(f"{one.question} is a setting, not a question", hint)
        if one.value is None:
            changes[one.question] = None
            continue
        if setting.classes:
            earlier = stored.get(one.question)
            value = _merged(setting, one.value, "" if earlier is None else str(earlier.value))
        else:
            value = checked_answer(setting, one.value)
        if not value:
            changes[one.question] = None
            continue
        choice = known.get(one.question, Evidence(one.question)).choice(value)
        changes[one.question] = _stored(value, choice, one.why, given)
    answered = answered_keys()
    for key, change in changes.items():
        if change is None and key not in answered:
            raise no_answer(key)
    return changes


def _merged(setting: Setting, given: str, earlier: str) -> str:
    """A table with the rows that are given; one that is given without a class, `PAID=`, is withdrawn from it.

    Raises:
        UsageError: a class that the setting does not have, or a row to withdraw that the table does not have.
    """
    rows = table_of(given)
    withdrawn = {row.casefold() for row, decided in rows.items() if not decided}
    known = {row.casefold() for row in table_of(earlier)}
    if missing := withdrawn - known:
        raise no_answer(f"{', '.join(sorted(missing))} of {setting.key}")
    if len(withdrawn) < len(rows) or not rows:
        left = {row: decided for row, decided in rows.items() if decided}
        earlier = merged_tables(
            earlier, checked_answer(setting, table_text(left) if rows else given)
        )
    kept = table_of(earlier).items()
    return table_text({row: of for row, of in kept if row.casefold() not in withdrawn})


def _stored(value: str, choice: Choice, why: str, given: Given) -> StoredAnswer:
    """An answer as the file has it, with what spoke for it when it was given."""
    share = choice.share
    fits, rows = (None, None) if share is None else (share.hits, share.rows)
    return StoredAnswer(value, given.by, given.at, why, choice.evidence, fits=fits, rows=rows)


def _asked(one: Question, setting: Setting) -> AskedQuestion:
    """A question in the words of its setting."""
    choices = [_with_meaning(setting, choice) for choice in one.evidence.choices]
    if one.evidence.is_table:
        choices = [_row(choice, table_of(one.value or "")) for choice in choices]
    return AskedQuestion(
        id=one.id,
        text=setting.asks,
        state=one.state,
        value=one.value,
        proposal=one.value if one.evidence.is_table else one.evidence.proposal,
        reason=one.reason,
        choices=choices,
        holds_up=setting.holds_up,
        example=_example(setting, one),
        is_confirmable=one.is_confirmable,
        answer=_kept(one.answer),
    )


def _kept(answer: Answer | None) -> KeptAnswer | None:
    """The answer of a person; None: nobody has given one."""
    if answer is None or answer.is_own_assumption:
        return None
    return KeptAnswer(answer.value, answer.by, answer.at, answer.why)


def without_evidence(setting: Setting, given: StoredAnswer | None = None) -> AskedQuestion:
    """The question of a setting that no run has evidence about, with the answer that was given."""
    answer = None
    if given is not None:
        answer = KeptAnswer(str(given.value), given.by, given.at, given.why)
    return AskedQuestion(
        id=setting.key,
        text=setting.asks,
        state="open" if answer is None else "answered",
        value=None if answer is None else answer.value,
        answer=answer,
        reason="no run has evidence about it yet" if answer is None else "",
        choices=[_with_meaning(setting, Choice(value)) for value in setting.choices],
        holds_up=setting.holds_up,
        example=_example(setting),
    )


def _unused_rows(one: Question) -> str:
    """The rows of a table that a person has answered and that the data do not have, in words: they may be typos."""
    if not one.evidence.is_table or one.answer is None or one.answer.is_own_assumption:
        return ""
    listed = {row.casefold() for choice in one.evidence.choices for row in table_of(choice.value)}
    unused = [row for row in table_of(one.answer.value) if row.casefold() not in listed]
    return f"no order has {', '.join(unused)}" if unused else ""


def _row(choice: Choice, used: Mapping[str, str]) -> Choice:
    """A row of a table with whether it is used; one that is not known is shown without a class, which it has not."""
    if table_of(choice.value).items() <= used.items():
        return replace(choice, evidence=f"{choice.evidence}, used now", is_possible=False)
    (value,) = table_of(choice.value)
    return replace(choice, value=value, evidence=f"{choice.evidence}, not known", is_possible=False)


def _with_meaning(setting: Setting, choice: Choice) -> Choice:
    """A choice, after what speaks for it what it has as a consequence."""
    parts = [choice.evidence, setting.means.get(choice.value, "")]
    return replace(choice, evidence="; ".join(filter(None, parts)))


def _example(setting: Setting, one: Question | None = None) -> str:
    """What another value than those that are shown can be; empty where only they are valid."""
    if setting.choices:
        return ""
    if one is not None and one.evidence.is_table:
        return _rows_of(one, setting.classes)
    if setting.key in FIELD_QUESTIONS.values():
        return "the name of another column of raw.orders"
    return f"such as {setting.example or setting.default}"


def _rows_of(one: Question, classes: Sequence[str]) -> str:
    """The rows that a person can give a table: those of a value that is not known, else of any."""
    used = table_of(one.value or "")
    rows = [row for choice in one.evidence.choices for row in table_of(choice.value)]
    unknown = [row for row in rows if row not in used]
    row = next(iter([*unknown, *rows]), "PAID")
    written = ", ".join(table_text({row: name}) for name in classes)
    return f"one of {written}; or several, with commas between; what you do not name stays as it is"


def _last_run() -> tuple[list[Evidence], Mapping[str, Answer], Mapping[str, datetime], DataSource]:
    """The evidence of the published warehouse, its assumptions, when each was first asked, and whose data it holds."""
    sent = semantics_evidence()
    if not warehouse_path().is_file():
        return sent, {}, {}, DataSource()
    with open_warehouse() as warehouse:
        return (
            [*last_evidence(warehouse), *sent, *order_key_evidence(warehouse)],
            last_assumptions(warehouse),
            first_asked(warehouse),
            read_source(warehouse),
        )


def _source() -> DataSource:
    """Whose data answers are about: the hosts of the settings, and the organization that the warehouse knows."""
    configured = configured_source()
    held = DataSource()
    if warehouse_path().is_file():
        with suppress(UsageError, duckdb.Error), open_warehouse() as warehouse:
            held = read_source(warehouse)
    return configured if held.differences(configured) else held.updated(configured)


def _set_elsewhere(given: Mapping[str, Answer]) -> dict[str, str]:
    """What a person has to know before and after answering: a setting counts before the answer, in words."""
    stored = read_answers().answers
    notes: dict[str, str] = {}
    for key, answer in given.items():
        if answer.origin == ANSWERS or answer.is_assumption:
            continue
        notes[key] = f"{answer.origin} sets {answer.value}, which counts before an answer"
        change = key
        if key in stored:
            value = stored[key].value
            notes[key] = f"the answer {value} is overridden by {answer.origin}"
            change = shlex.quote(f"{key}={value}")
        if answer.origin.startswith(".dlt"):
            notes[key] += f"; to change it there: orderbridge init {change}"
    return notes


def checked_answer(setting: Setting, value: str) -> str:
    """The value of an answer. Raises UsageError for one that the setting does not accept or that is not there."""
    checked = str(setting.checked(value))
    if setting.key == COUNTRY:
        check_country(checked)
    if checked in _WORDS.get(setting.key, ()) or not warehouse_path().is_file():
        return checked
    with open_warehouse() as warehouse:
        known = _known_names(setting.key, warehouse)
    if known is None or checked in known[1]:
        return checked
    what, names = known
    near = get_close_matches(checked, names, n=1)
    guess = f"Did you mean {near[0]}? " if near else ""
    raise UsageError(
        f"{checked} is not {what}",
        f"{guess}Show the choices with: orderbridge questions {setting.key}",
    )


def _known_names(
    key: str, warehouse: duckdb.DuckDBPyConnection
) -> tuple[str, Sequence[str]] | None:
    """What the value of an answer has to be, and the names that are there; None: any value."""
    tables = [name for name in table_names(warehouse, "raw") if name.startswith("orders__")]
    if key in COLUMN_QUESTIONS.values():
        return "a column of raw.orders", [*columns_of(warehouse, "raw.orders")]
    if key == LINES:
        return "a child table of raw.orders", tables
    if key not in LINE_QUESTIONS.values():
        return None
    lines = RunAnswers.read().in_force(read_source(warehouse)).get(LINES)
    name = lines.value if lines is not None else last_order_fields(warehouse).columns.get("lines")
    if name not in tables:
        return None
    columns = [*columns_of(warehouse, f"raw.{sql_name(name)}"), *discount_columns(warehouse, name)]
    return f"a column of raw.{name}", columns
