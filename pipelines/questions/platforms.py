"""Questions whether the host of the settings is a platform that the ledger has under another name.

In: the settings, the ledger. Out: a question for each such host, and what a person has said in the ledger: writes of
the same platform are known under both names from then on. Nothing is planned or sent before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orderbridge.pipelines.ledger.hosts import (
    DIFFERENT,
    QUESTION,
    SAME,
    describe_writes,
    question_about,
)
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


class Platforms:
    """Questions about a new host. See `QuestionKind`."""

    def is_about(self, question: str) -> bool:
        """See `QuestionKind`."""
        return question.startswith(QUESTION)

    def asked(self) -> list[AskedQuestion]:
        """See `QuestionKind`."""
        if not is_set("sources.legacy"):
            return []
        host = legacy_settings().base_url
        return [
            AskedQuestion(
                id=question_about(other),
                text=f"Is {host} the same platform as {other}?",
                state="open",
                reason=f"this ledger has {describe_writes(writes)} of {other}, and none of {host}",
                choices=(
                    Choice(SAME, "it has another name now: what was sent there is not sent again"),
                    Choice(DIFFERENT, "all of the next files is sent there"),
                ),
                holds_up=("all plans, pushes and imports",),
            )
            for other, writes in _undecided().items()
        ]

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        known = {question_about(other) for other in _undecided()}
        for one in answers:
            if one.question not in known:
                raise unknown_question(one.question)
            if one.value not in (SAME, DIFFERENT):
                raise UsageError(
                    f"{one.value or 'a withdrawal'} is not an answer to {one.question}",
                    f"If it is the same platform: {answer_command(one.question, SAME)}\n"
                    f"  If not: {answer_command(one.question, DIFFERENT)}",
                )
        if [one.value for one in answers].count(SAME) > 1:
            raise UsageError(
                f"{legacy_settings().base_url} cannot be the platform of several hosts",
                "Answer `same` for the one that was used last.",
            )

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        host = legacy_settings().base_url
        path = ledger_path()
        others = {question_about(other): other for other in _undecided()}
        with ledger_lock(path), Ledger.open(path) as ledger:
            for one in answers:
                ledger.keep_host(host, others[one.question], is_same=one.value == SAME)
        return str(path)


def _undecided() -> Mapping[str, Mapping[str, int]]:
    legacy = legacy_settings()
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        return ledger.undecided_hosts(legacy.base_url, legacy.environment)
