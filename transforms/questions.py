"""What values mean: proven, assumed, answered by a person, or a question that is open.

In: the evidence about each subject, and the answers in force. Out: a question for each subject, with its state and the
value that is used. An assumption is an answer that nobody gave: the proposal that was used first. It does not change by
itself. Nothing else is known of a question: it is computed anew whenever it is looked at.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from orderbridge.transforms.chance import Share, has_fallen

State = Literal["contradicted", "open", "assumed", "answered", "proven"]
"""The state of a question. Only the first three are shown to people, in this order."""
ASSUMPTION: Final = "assumption"
"""The origin of an answer that nobody gave."""
ANY_RIVAL: Final = "*"
"""The rival of an assumption on the first night of a version of the program: whatever its rules propose."""
SHARE_KEPT_MIN: Final = 0.9
"""An answer is contradicted where the share of rows that fit it is less than this part of what it was."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that may be the answer.

    Attributes:
        value: as it is answered.
        evidence: what a person can judge it by: counts, sums, examples; parts are separated by `; `.
        share: the rows that fit it; kept with an answer. None: nothing is counted.
        against: what contradicts it, if it is the answer in force.
        is_possible: False: it cannot be used, such as a column that is gone.
    """

    value: str
    evidence: str = ""
    share: Share | None = None
    against: str = ""
    is_possible: bool = True


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the data say about a subject.

    Attributes:
        question: its id: the key of a setting.
        choices: the possible answers that the data offer, the most likely first.
        proposal: the one that is decisive; None where none is.
        is_proven: whether names or values leave no other choice than the proposal.
        dispute: why none is decisive although several fit.
        reason: why none is decisive otherwise.
        about: the value of the question that this one depends on, such as the column whose notation it is.
        is_only_proposed: the proposal is not used until a person confirms it, since a write may rest on it.
        rivals: the choices that fit, and of which only one can be right, where that is known.
        assumed_rows: of a table, `PAID=sale,PENDING=open`, the rows that are assumed from now on; None: it is no table.
            Choices are rows, an answer decides any of them, and the proposal is all that are decided without one.
    """

    question: str
    choices: tuple[Choice, ...] = ()
    proposal: str | None = None
    is_proven: bool = False
    dispute: str = ""
    reason: str = ""
    about: str = ""
    is_only_proposed: bool = False
    rivals: tuple[str, ...] = ()
    assumed_rows: str | None = None

    @property
    def is_table(self) -> bool:
        """Whether it is about the rows of a table."""
        return self.assumed_rows is not None

    def rival_of(self, value: str) -> str:
        """What speaks for another answer than a value: the proposal, or that several fit; empty where nothing does."""
        rival = self.proposal or self.dispute
        return "" if rival == value else rival

    def choice(self, value: str) -> Choice:
        """The choice with a value; one that nothing is known of, if there is none."""
        return next((one for one in self.choices if one.value == value), Choice(value))


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer in force: that of a person, a setting, or an assumption.

    Attributes:
        value: what was answered.
        origin: where it is set: a file, a variable, or `ASSUMPTION`.
        at: since when it is in force; None: not known, so that no rows are newer.
        by: who gave it.
        why: the reason that was given.
        share: the rows that fitted it then; None where that is not known.
        about: the value of another question that it is about, such as the column whose notation it is; empty: of any.
        rival: another proposal that a new version of the program makes, and no new rows: it contradicts nothing.
    """

    value: str
    origin: str
    at: datetime | None = None
    by: str = ""
    why: str = ""
    share: Share | None = None
    about: str = ""
    rival: str = ""

    @property
    def is_assumption(self) -> bool:
        """Whether nobody gave it, or nobody has confirmed it for this source."""
        return self.origin == ASSUMPTION

    @property
    def is_own_assumption(self) -> bool:
        """Whether nobody gave it at all."""
        return self.is_assumption and not self.by


@dataclass(frozen=True, slots=True)
class Question:
    """A subject as it is now.

    Attributes:
        evidence: about it.
        answer: in force; None: none.
        state: see `State`.
        value: that is used; None: what rests on it is not known.
        reason: why it is open or contradicted; empty otherwise.
    """

    evidence: Evidence
    answer: Answer | None
    state: State
    value: str | None
    reason: str = ""

    @property
    def id(self) -> str:
        """The id of the question."""
        return self.evidence.question

    @property
    def is_confirmable(self) -> bool:
        """Whether a person can confirm what is assumed or proposed."""
        if self.evidence.is_table and self.answer is not None and not self.answer.is_assumption:
            return _folded(self.answer.value) != _folded(self.value or "")
        return self.state in ("assumed", "open") and self.evidence.proposal is not None

    @property
    def is_asked(self) -> bool:
        """Whether people are asked."""
        return self.state in ("contradicted", "open", "assumed")


def answer_about(answer: Answer | None, about: str) -> Answer | None:
    """The answer, if it is about this value of the question that it depends on, or about any."""
    return answer if answer is None or answer.about in ("", about) else None


def questions(evidence: Iterable[Evidence], answers: Mapping[str, Answer]) -> list[Question]:
    """The question of each subject, from the answers in force by the id of the question."""
    return [question(one, answers.get(one.question)) for one in evidence]


def question(evidence: Evidence, answer: Answer | None) -> Question:
    """A subject as it is with an answer, or without one."""
    if evidence.is_table:
        return _table_question(evidence, answer)
    if answer is None:
        return _unanswered(evidence)
    choice = evidence.choice(answer.value)
    is_kept = choice.is_possible or answer.at is None
    value = answer.value if is_kept else evidence.proposal
    if against := _contradiction(evidence, choice, answer):
        return Question(evidence, answer, "contradicted", value, against)
    if not answer.is_assumption:
        return Question(evidence, answer, "answered", value)
    is_proven = evidence.is_proven and evidence.proposal == value
    return Question(evidence, answer, "proven" if is_proven else "assumed", value)


def table_of(text: str) -> dict[str, str]:
    """The rows of a table, `PAID=sale,PENDING=open`; a row with a comma in it is in double quotes."""
    rows = [
        row.rpartition("=") for line in csv.reader([text], skipinitialspace=True) for row in line
    ]
    return {value.strip(): decided.strip() for value, separator, decided in rows if separator}


def table_text(rows: Mapping[str, str]) -> str:
    """A table as `table_of` reads it."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(
        [f"{row}={decided}" for row, decided in rows.items()]
    )
    return text.getvalue()


def merged_tables(*texts: str) -> str:
    """The rows of several tables, each as the last one that has it decides; upper and lower case are the same."""
    rows: dict[str, tuple[str, str]] = {}
    for text in texts:
        for row, decided in table_of(text).items():
            rows[row.casefold()] = (row, decided)
    return table_text(dict(rows.values()))


def _table_question(evidence: Evidence, answer: Answer | None) -> Question:
    """A table whose rows are decided one by one: as answered, else as proposed; a row without either is open."""
    given = _folded(answer.value) if answer is not None else {}
    decided = {**_folded(evidence.proposal or ""), **given}
    listed = [row for choice in evidence.choices for row in table_of(choice.value)]
    used = {row: decided[row.casefold()] for row in listed if row.casefold() in decided}
    shown = replace(evidence, choices=tuple(_as_used(one, used) for one in evidence.choices))
    value = table_text(used) if used else None
    unknown = [row for row in listed if row not in used]
    if unknown:
        return Question(shown, answer, "open", value, f"not known: {', '.join(unknown)}")
    is_answered = answer is not None and not answer.is_assumption
    has_every_row = given.keys() >= {row.casefold() for row in listed}
    return Question(
        shown, answer, "answered" if is_answered and has_every_row else "assumed", value
    )


def _as_used(choice: Choice, used: Mapping[str, str]) -> Choice:
    """A row of a table as it is decided; one that is not stays as it is."""
    rows = table_of(choice.value)
    return replace(
        choice, value=table_text({row: used.get(row, first) for row, first in rows.items()})
    )


def _folded(table: str) -> dict[str, str]:
    return {row.casefold(): decided for row, decided in table_of(table).items()}


def _unanswered(evidence: Evidence) -> Question:
    if evidence.proposal is None or evidence.is_only_proposed:
        return Question(evidence, None, "open", None, evidence.dispute or evidence.reason)
    return Question(
        evidence, None, "proven" if evidence.is_proven else "assumed", evidence.proposal
    )


def _contradiction(evidence: Evidence, choice: Choice, answer: Answer) -> str:
    """What contradicts an answer in force; empty where nothing does.

    A setting of a file or of the environment has no time, so no rows can be newer.
    """
    if answer.at is None:
        return ""
    if choice.against:
        return choice.against
    if not answer.is_assumption:
        return ""
    rival = evidence.rival_of(answer.value)
    if rival in ("", answer.rival) or answer.rival == ANY_RIVAL:
        return ""
    if evidence.proposal is not None:
        return f"{answer.value} is kept, {rival} fits better now"
    return f"{answer.value} is kept, but {rival}"


def is_broken(now: Share, before: Share | None) -> bool:
    """Whether so few rows fit an answer that it is contradicted.

    Args:
        now: the rows that fit it, of all or of those since it was given.
        before: the same when it was given, or of the rows until then; None: not known, then all fitted it.
    """
    if before is None:
        return now.part < SHARE_KEPT_MIN
    return now.part < SHARE_KEPT_MIN * before.part and has_fallen(now, before)
