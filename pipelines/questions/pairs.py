"""Questions about pairs of a line of the ERP's file and a customer: are they the same? A review is the answer.

In: the creates that plans hold, since a customer has their code in another spelling; the pairs of the match with the
ERP in the published warehouse; and `.dlt/reviewed.csv`. Out: a question for each doubtful pair, those that hold creates
first, then the most doubtful; and reviews, which the next run and the next plan with the ERP's file use.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from orderbridge.pipelines.plan.alike import AlikePair, kept_pairs
from orderbridge.pipelines.questions.model import (
    AskedQuestion,
    Given,
    GivenAnswer,
    answer_command,
    no_answer,
    refuse_limits,
)
from orderbridge.pipelines.warehouse.answers.doubtful_pairs import doubtful_pairs
from orderbridge.pipelines.warehouse.answers.reviews import (
    SEPARATOR,
    Decision,
    read_reviews,
    reviews_file,
    write_reviews,
)
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.sql import Rows, has_tables
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import warehouse_path
from orderbridge.transforms.questions import Choice

PREFIX: Final = "match:"
_CERTAIN_FROM: Final = 10
"""Matched pairs of this weight and more are not asked."""
_LINES_PER_QUESTION, _ASKED_MIN = 100, 10
"""One pair of so many lines is asked, and at least so many pairs. `review` writes all of them as a spreadsheet."""
_GROUP_MIN: Final = 3
"""So many pairs are asked about together."""
_LINES: Final = "SELECT count(line) FROM reconciled.erp_customers"
DECISIONS: Final[Mapping[str, Decision]] = {"same": "accept", "different": "reject"}


class Pairs:
    """Questions about pairs. See `QuestionKind`."""

    def is_about(self, question: str) -> bool:
        """See `QuestionKind`."""
        return question.startswith(PREFIX)

    def asked(self) -> list[AskedQuestion]:
        """See `QuestionKind`."""
        reviewed = read_reviews()
        held = {
            pair.pair: _holding(pair, kept.path)
            for kept in kept_pairs()
            for pair in kept.pairs
            if pair.pair not in reviewed
        }
        pairs, lines = _pairs_and_lines()
        without = {*reviewed, *held}
        for together in _grouped(pairs, reviewed).values():
            without.update(pair["pair"] for pair in together)
        left = [pair for pair in pairs if pair["pair"] not in without]
        doubtful = left[: max(lines // _LINES_PER_QUESTION, _ASKED_MIN)]
        return [*held.values(), *map(_asked, doubtful)]

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        refuse_limits(given, "pairs")
        reviewed = read_reviews()
        for one in answers:
            pair = pair_of(one.question)
            if one.value is None and pair not in reviewed:
                raise no_answer(one.question)
            if one.value is not None and one.value not in DECISIONS:
                raise UsageError(
                    f"{one.value} is not an answer to {one.question}",
                    f"Answer same or different: {answer_command(one.question, 'same')}",
                )

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        decided = {
            pair_of(one.question): (DECISIONS[one.value], one.why)
            for one in answers
            if one.value is not None
        }
        withdrawn = [pair_of(one.question) for one in answers if one.value is None]
        write_reviews(decided, given.by, withdrawn)
        return str(reviews_file())


def question_of(pair: str) -> str:
    """The id of the question about a pair."""
    line_key, _, customer_id = pair.rpartition(SEPARATOR)
    return f"{PREFIX}{line_key}/{customer_id}"


def pair_of(question: str) -> str:
    """The pair that a question is about. Raises UsageError."""
    line_key, separator, customer_id = question.removeprefix(PREFIX).rpartition("/")
    if not separator:
        raise UsageError(
            f"{question} names no pair", "`orderbridge questions` lists those that are asked."
        )
    return f"{line_key}{SEPARATOR}{customer_id}"


def grouped_pairs() -> dict[str, Rows]:
    """The suggested pairs that nobody has decided, by what is the same in them, where that is two things or more.

    A few are no group: they are asked one by one.
    """
    pairs, _ = _pairs_and_lines()
    return _grouped(pairs, read_reviews())


def _grouped(pairs: Rows, reviewed: Collection[str]) -> dict[str, Rows]:
    groups: dict[str, Rows] = {}
    for pair in pairs:
        is_group = pair["status"] == "suggested" and "," in pair["matched_by"]
        if is_group and pair["pair"] not in reviewed:
            groups.setdefault(pair["matched_by"], []).append(pair)
    large = {reason: rows for reason, rows in groups.items() if len(rows) >= _GROUP_MIN}
    return dict(sorted(large.items(), key=lambda one: -len(one[1])))


def _pairs_and_lines() -> tuple[Rows, int]:
    """The doubtful pairs of the match with the ERP, the most doubtful first, and how many lines its file had."""
    if not warehouse_path().is_file():
        return [], 0
    with open_warehouse() as warehouse:
        if not has_tables(warehouse, "reconciled", "erp_pairs"):
            return [], 0
        ((lines,),) = warehouse.execute(_LINES).fetchall()
        return doubtful_pairs(warehouse, _CERTAIN_FROM), lines


def _holding(pair: AlikePair, file: str) -> AskedQuestion:
    """The question about a pair that holds a create back."""
    return AskedQuestion(
        id=pair.question,
        text=f"Is line {pair.line} of {Path(file).name} the customer {pair.customer} of the platform?",
        state="open",
        reason=f"{pair.field} is {pair.written} in the file, and {pair.known} on the platform",
        choices=[
            Choice("same", "one customer: nothing is created"),
            Choice("different", "two customers: the next plan of the file creates it"),
        ],
        holds_up=("the create of this line",),
    )


def _asked(pair: Mapping[str, Any]) -> AskedQuestion:
    names = [pair["platform_name"], pair["platform_fiscal_name"]]
    platform = ", ".join(filter(None, names)) or "no name"
    erp = pair["erp_name"] or "no name"
    differences = pair["differences"]
    examples = [f"in the ERP:      {erp}", f"on the platform: {platform}"]
    if differences:
        examples.append(f"different (ERP / platform): {differences}")
    return AskedQuestion(
        id=question_of(pair["pair"]),
        text="Are this line of the ERP's file and this customer of the platform the same?",
        state="open",
        reason=f"line {pair['line']}: equal {pair['agreeing'] or 'nothing'}",
        choices=[
            Choice("same", "one customer: the two are compared"),
            Choice("different", "two customers: the two are never matched"),
        ],
        examples=examples,
        holds_up=("the match of this line",),
    )
