"""Questions about many pairs at once: those that the match suggests for the same reason. Reviews are the answer.

In: the suggested pairs of the published warehouse, and `.dlt/reviewed.csv`. Out: a question for each reason, such as
name and phone, with examples; and a review of each pair that the question was about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from orderbridge.pipelines.questions.model import (
    AskedQuestion,
    Given,
    GivenAnswer,
    answer_command,
    refuse_limits,
    unknown_question,
)
from orderbridge.pipelines.questions.pairs import DECISIONS, grouped_pairs
from orderbridge.pipelines.warehouse.answers.reviews import reviews_file, write_reviews
from orderbridge.pipelines.warehouse.sql import Rows
from orderbridge.sources.errors import UsageError
from orderbridge.transforms.questions import Choice

PREFIX: Final = "matches:"
_EXAMPLES: Final = 5


class PairGroups:
    """Questions about suggested pairs, by what is the same in them. See `QuestionKind`."""

    def is_about(self, question: str) -> bool:
        """See `QuestionKind`."""
        return question.startswith(PREFIX)

    def asked(self) -> list[AskedQuestion]:
        """See `QuestionKind`."""
        return [_asked(reason, pairs) for reason, pairs in grouped_pairs().items()]

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        refuse_limits(given, "pairs")
        groups = {_question(reason) for reason in grouped_pairs()}
        for one in answers:
            if one.value is None:
                raise UsageError(
                    f"{one.question} is answered pair by pair",
                    "Withdraw each pair: `orderbridge review` lists them.",
                )
            if one.question not in groups:
                raise unknown_question(one.question)
            if one.value not in DECISIONS:
                raise UsageError(
                    f"{one.value} is not an answer to {one.question}",
                    f"Answer same or different: {answer_command(one.question, 'same')}",
                )

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        groups = {_question(reason): pairs for reason, pairs in grouped_pairs().items()}
        decided = {
            pair["pair"]: (DECISIONS[str(one.value)], one.why)
            for one in answers
            for pair in groups[one.question]
        }
        write_reviews(decided, given.by)
        return str(reviews_file())


def _question(reason: str) -> str:
    return f"{PREFIX}{reason.replace(', ', '+')}"


def _asked(reason: str, pairs: Rows) -> AskedQuestion:
    same = reason.replace("_", " ")
    return AskedQuestion(
        id=_question(reason),
        text="Are these lines of the ERP's file and these customers of the platform the same?",
        state="open",
        reason=f"{len(pairs)} pairs have no key in common, but {same}",
        choices=[
            Choice("same", "each pair is one customer: they are compared"),
            Choice("different", "each pair is two customers: they are not suggested again"),
        ],
        examples=[_example(pair) for pair in pairs[:_EXAMPLES]],
        holds_up=("the match of these lines",),
        otherwise="where some are the same and others are not. `orderbridge review` asks one by one.",
    )


def _example(pair: dict[str, Any]) -> str:
    platform = pair["platform_name"] or pair["platform_fiscal_name"] or "no name"
    return f"line {pair['line']}, {pair['erp_name'] or 'no name'}: {platform}"
