"""Questions about customers that were created before, and are not in the list by their keys: create them again?

In: the ledger. Out: a question for each of them that a plan has held back; the answer makes the ledger forget the
create, so that the next plan sends it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from orderbridge.pipelines.ledger.lock import ledger_lock
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.questions.model import (
    AskedQuestion,
    Given,
    GivenAnswer,
    answer_command,
    unknown_question,
)
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import is_set, ledger_path, legacy_settings
from orderbridge.transforms.questions import Choice

PREFIX: Final = "create:"
AGAIN: Final = "again"
_ID_DIGITS: Final = 12
_NAME: Final = re.compile(r"create:([0-9a-f]{6,64})/([0-9]{1,9})")


class Creates:
    """Questions about held creates. See `QuestionKind`."""

    def is_about(self, question: str) -> bool:
        """See `QuestionKind`."""
        return question.startswith(PREFIX)

    def asked(self) -> list[AskedQuestion]:
        """See `QuestionKind`."""
        if not is_set("sources.legacy"):
            return []
        with Ledger.open(ledger_path(), readonly=True) as ledger:
            held = ledger.held_creates(legacy_settings().base_url)
        return [
            AskedQuestion(
                id=f"{PREFIX}{plan_id[:_ID_DIGITS]}/{number}",
                text="This customer was created before and is not in the list by its keys. Create it again?",
                state="open",
                reason="the platform writes its keys in another way, or it was deleted there",
                choices=(Choice(AGAIN, "it was deleted: the next plan of the file creates it"),),
                holds_up=(f"the held line of the file, in {folder}",),
            )
            for plan_id, number, folder in held
        ]

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        known = {one.id for one in self.asked()}
        for one in answers:
            if one.value != AGAIN or _NAME.fullmatch(one.question) is None:
                raise UsageError(
                    f"{one.value or 'a withdrawal'} is not an answer to {one.question}",
                    f"If it was deleted on the platform: {answer_command(one.question, AGAIN)}",
                )
            if one.question not in known:
                raise unknown_question(one.question)

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        path = ledger_path()
        with ledger_lock(path), Ledger.open(path) as ledger:
            for one in answers:
                plan, _, number = one.question.removeprefix(PREFIX).partition("/")
                ledger.forget_create(plan, int(number))
        return str(path)
