"""The question whose a new key is, where no known customer shows it: of the same organization as the key before?

In: the settings, the ledger, the published warehouse. Out: the question, and the digest of the key in the ledger once a
person has answered. A push with such a key sends nothing before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from orderbridge.pipelines.ledger.lock import ledger_lock
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.push.identity import key_digest, needs_confirmation
from orderbridge.pipelines.questions.model import AskedQuestion, Given, GivenAnswer, answer_command
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import LegacySettings, is_set, ledger_path, legacy_settings
from orderbridge.transforms.questions import Choice

PREFIX: Final = "key:"
SAME: Final = "same"


def key_question(legacy: LegacySettings) -> str:
    """The id of the question about the key of a host."""
    return f"{PREFIX}{urlsplit(legacy.base_url).netloc}"


def is_key_open() -> bool:
    """Whether the key of the settings is new, and nothing shows whose it is."""
    if not is_set("sources.legacy"):
        return False
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        return needs_confirmation(legacy_settings(), ledger)


class Keys:
    """The question about a new key. See `QuestionKind`."""

    def is_about(self, question: str) -> bool:
        """See `QuestionKind`."""
        return question.startswith(PREFIX)

    def asked(self) -> list[AskedQuestion]:
        """See `QuestionKind`."""
        if not is_key_open():
            return []
        return [
            AskedQuestion(
                id=key_question(legacy_settings()),
                text="Is sources.legacy.api_key a key of the same organization as the key before?",
                state="open",
                reason="the key was changed, and no known customer shows whose it is",
                choices=(Choice(SAME, "it is: pushes go on"),),
                holds_up=("all pushes and imports",),
            )
        ]

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        question = key_question(legacy_settings())
        for one in answers:
            if one.question != question:
                raise UsageError(
                    f"the settings are for {question.removeprefix(PREFIX)}",
                    f"Answer about its key: {answer_command(question, SAME)}",
                )
            if one.value != SAME:
                raise UsageError(
                    f"{one.value or 'a withdrawal'} is not an answer to {one.question}",
                    "If it is a key of another organization, use a project of its own: "
                    "orderbridge --project DIR init",
                )

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        legacy, path = legacy_settings(), ledger_path()
        with ledger_lock(path), Ledger.open(path) as ledger:
            ledger.keep_key(legacy.base_url, key_digest(legacy, ledger))
        return str(path)
