"""Questions about files whose codes seem to have lost their zeros: are the new codes as they should be?

In: what the plans of the project have kept of it. Out: a question for each file, and the answers in
`.dlt/accepted.toml`. An answer is about the file as it is: another export is another question.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orderbridge.pipelines.plan.lost_zeros import AS_WRITTEN, QUESTION, LostZeros, kept_zeros
from orderbridge.pipelines.plan.model import file_sha256
from orderbridge.pipelines.questions.model import (
    AskedQuestion,
    Given,
    GivenAnswer,
    answer_command,
    unknown_question,
)
from orderbridge.pipelines.warehouse.accepted_changes import (
    AcceptedChanges,
    AcceptedCodes,
    write_changes,
)
from orderbridge.sources.errors import UsageError
from orderbridge.sources.words import number
from orderbridge.transforms.questions import Choice


class Codes:
    """Questions about codes without zeros. See `QuestionKind`."""

    def is_about(self, question: str) -> bool:
        """See `QuestionKind`."""
        return question.startswith(QUESTION)

    def asked(self) -> list[AskedQuestion]:
        """See `QuestionKind`."""
        answered = {one.file for one in AcceptedChanges.read().codes}
        return [
            AskedQuestion(
                id=question,
                text=f"Are the new codes of {path} as they should be?",
                state="answered" if lost.file in answered else "open",
                value=AS_WRITTEN if lost.file in answered else None,
                reason=lost.reason,
                choices=(Choice(AS_WRITTEN, "they never had zeros: the next import creates them"),),
                holds_up=(number(lines, "line") + " of the file",),
            )
            for question, (lost, path, lines) in _held().items()
        ]

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        known = _held()
        for one in answers:
            if one.question not in known:
                raise unknown_question(one.question)
            if one.value not in (AS_WRITTEN, None):
                raise UsageError(
                    f"{one.value} is not an answer to {one.question}",
                    f"If the codes are right: {answer_command(one.question, AS_WRITTEN)}\n"
                    "  If they lost zeros, export the file with its codes as text.",
                )

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        files = {question: lost.file for question, (lost, _, _) in _held().items()}
        added = [
            AcceptedCodes(files[one.question], given.by, given.at, one.why)
            for one in answers
            if one.value is not None
        ]
        withdrawn = {files[one.question] for one in answers if one.value is None}
        removed = [one for one in AcceptedChanges.read().codes if one.file in withdrawn]
        return str(write_changes(AcceptedChanges(codes=added), AcceptedChanges(codes=removed)))


def _held() -> dict[str, tuple[LostZeros, str, int]]:
    """By question, what was lost, the path of a file that lines were held of, as it is, and how many."""
    return {
        lost.question: (lost, kept.path, kept.lines)
        for kept in kept_zeros()
        for lost in kept.found
        if kept.lines and file_sha256(Path(kept.path)) == kept.sha256
    }
