"""What a question is to the person who is asked, and what an answer to it is, of whatever kind both are.

In: nothing. Out: the types that the kinds of questions make and take. Each kind keeps its answers in a store of its
own, which is what it was before there were questions: settings, acceptances, reviews, the ledger.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from orderbridge.sources.command_line import program
from orderbridge.sources.errors import UsageError
from orderbridge.transforms.questions import Choice, State

PRESSING: tuple[State, ...] = ("contradicted", "open", "assumed")
"""The states in which a question is asked, the most pressing first."""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer that a person has given, who gave it, when and why, as far as that is kept."""

    value: str
    by: str = ""
    at: datetime | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question as a person sees it.

    Attributes:
        id: as it is answered.
        text: what is asked, in a sentence.
        state: see `State`.
        value: that is used now; None: none.
        proposal: the answer that is proposed; None: nothing is decisive.
        reason: why it is open or contradicted; empty otherwise.
        choices: the possible answers, with what speaks for each.
        examples: records to judge by, a line each; they may have names of customers.
        holds_up: what rests on it: columns, or what waits.
        first_seen_at: when it was first asked; None: not known.
        is_confirmable: `answer --proposed` confirms it.
        example: what another answer than the choices can be, in words; empty: there is no other.
        advice: why it matters.
        otherwise: when nothing is to be answered, and what to do then; empty where there is always an answer.
        note: what has to be said once it is answered, such as that a setting overrides the answer.
        answer: that a person has given; None: nobody has.
        is_final: its answer can be neither changed nor withdrawn.
    """

    id: str
    text: str
    state: State
    value: str | None = None
    proposal: str | None = None
    reason: str = ""
    choices: Sequence[Choice] = ()
    examples: Sequence[str] = ()
    holds_up: Sequence[str] = ()
    first_seen_at: datetime | None = None
    is_confirmable: bool = False
    example: str = ""
    advice: str = ""
    otherwise: str = ""
    note: str = ""
    answer: KeptAnswer | None = None
    is_final: bool = False

    @property
    def has_unknown_rows(self) -> bool:
        """Whether a table is in use that lacks some of the values, such as a status nobody has classed."""
        return self.state == "open" and self.value is not None

    @property
    def command(self) -> str:
        """The command that answers it: with the proposal, with the only choice, or one that shows the choices."""
        value = self.value if self.state == "assumed" else self.proposal
        if value is None and len(self.choices) == 1:
            value = self.choices[0].value
        if value is None:
            return f"{program()} questions {shlex.quote(self.id)}"
        return answer_command(self.id, value)


def answer_command(question: str, value: str) -> str:
    """The command that answers a question with a value; it can be copied, also where the value looks like an option."""
    words = ["answer", question, *(["--"] if value.startswith("-") else []), value]
    return f"{program()} {shlex.join(words)}"


def unknown_question(name: str, guess: str = "") -> UsageError:
    """The error for an answer to a question that nobody asks; `guess` is a sentence that names another one."""
    hint = "`orderbridge questions` lists all of them."
    return UsageError(f"there is no question {name}", f"{guess} {hint}" if guess else hint)


def no_answer(name: str) -> UsageError:
    """The error for a withdrawal of an answer that nobody has given."""
    return UsageError(f"{name} has no answer", "`orderbridge questions` lists what is asked.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswer:
    """An answer that a person gives.

    Attributes:
        question: the id.
        value: the answer; None: it is withdrawn.
        why: the reason; may be empty.
    """

    question: str
    value: str | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What holds for all answers that are given at once.

    Attributes:
        by: who gives them.
        at: when.
        until: the last day on which they hold; None: without an end.
        up_to: so many findings are accepted; None: any number.
    """

    by: str
    at: datetime
    until: date | None = None
    up_to: int | None = None


def refuse_limits(given: Given, about: str, hint: str = "") -> None:
    """Only what is accepted about findings ends by itself. Raises UsageError."""
    if given.until is None and given.up_to is None:
        return
    raise UsageError(
        f"--until and --up-to are about findings, not about {about}",
        f"Leave them out. {hint}" if hint else "Leave them out.",
    )


class QuestionKind(Protocol):
    """A kind of question: where its questions come from, and where its answers are kept."""

    def is_about(self, question: str) -> bool:
        """Whether an id is one of this kind."""

    def asked(self) -> list[AskedQuestion]:
        """The questions of this kind, answered ones too where the answer is not forgotten."""

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """Raises UsageError where an answer is not possible."""

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """Writes answers that were checked, all or none. Returns where they are kept.

        Raises:
            UsageError: the store cannot be written.
        """


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """What was answered.

    Attributes:
        answers: in the order in which they were given.
        places: where they are kept.
        notes: what else has to be said, such as an answer that a setting overrides.
    """

    answers: Sequence[GivenAnswer]
    places: Sequence[str]
    notes: Sequence[str]
