"""Questions about files that an import has asked where nobody could answer: columns, notations, passwords.

In: what imports have kept of their questions. Out: these questions, and answers kept beside them, which the next import
of the file reads. Every column of a file can be answered, also one whose field is known, and so can the passwords.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from orderbridge.pipelines.import_file.asking import (
    IGNORE,
    PREFIX,
    BegunImport,
    FileQuestion,
    GivenFileAnswer,
    begun_imports,
)
from orderbridge.pipelines.import_file.reading import read_columns
from orderbridge.pipelines.mapping.field_paths import paths_of_answer, resolve
from orderbridge.pipelines.questions.model import (
    AskedQuestion,
    Given,
    GivenAnswer,
    KeptAnswer,
    answer_command,
    unknown_question,
)
from orderbridge.sources.errors import UsageError
from orderbridge.sources.kinds import KINDS
from orderbridge.transforms.questions import Choice

_COLUMN: Final = "column/"
_PASSWORDS: Final = FileQuestion(topic="passwords")
_EXAMPLES: Final = 5
_SHOWN: Final = 40
"""Cells of a column that are shown, and characters of one."""
_MEANINGS: Final = {
    "skip": "these lines are left out, in later files too",
    "keep": "they are lines like any other",
    "yes": "it is so",
    "no": "it is not so: the cells are rejected, or nothing is looked up",
    "mail": "the platform makes one and mails it to each",
    "file": "one is made for each and kept for you in passwords.csv",
    IGNORE: "the column is not sent",
}


class Imports:
    """Questions about files. See `QuestionKind`."""

    def is_about(self, question: str) -> bool:
        """See `QuestionKind`."""
        return question.startswith(PREFIX)

    def asked(self) -> list[AskedQuestion]:
        """See `QuestionKind`."""
        return [asked_of(begun, one) for begun in begun_imports() for one in begun.questions]

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        fields: dict[Path, dict[str, str]] = {}
        for one in answers:
            begun, key = _find(one.question)
            if one.value is None:
                continue
            _check_value(begun, key, one)
            if key.startswith(_COLUMN):
                of_file = fields.setdefault(begun.path, {})
                of_file[key.removeprefix(_COLUMN)] = one.value
        for begun in begun_imports():
            if begun.path in fields:
                _check_fields(begun, fields[begun.path])

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        changed: dict[Path, BegunImport] = {}
        for one in answers:
            begun, key = _find(one.question)
            begun = changed.setdefault(begun.path, begun)
            begun.answers.pop(key, None)
            if one.value is not None:
                at = given.at.isoformat()
                begun.answers[key] = GivenFileAnswer(
                    value=one.value, by=given.by, at=at, why=one.why
                )
        return ", ".join(str(begun.keep()) for begun in changed.values())


def is_asked(question: str) -> bool:
    """Whether a question about a file can be answered: its import may have ended meanwhile, or another of its form."""
    try:
        _find(question)
    except UsageError:
        return False
    return True


def answer_to(question: str) -> str | None:
    """The answer that a question about a file has now; None: none, or it is not asked any more."""
    try:
        begun, key = _find(question)
    except UsageError:
        return None
    answer = begun.answers.get(key)
    return answer.value if answer is not None else None


def asked_of(begun: BegunImport, question: FileQuestion) -> AskedQuestion:
    """A question about a file as a person sees it."""
    answer = begun.answers.get(question.key)
    values = question.answers or tuple(filter(None, (question.guess, question.may_be, IGNORE)))
    return AskedQuestion(
        id=begun.question(question.key),
        text=question.text,
        state="open" if answer is None else "answered",
        value=None if answer is None else answer.value,
        answer=None if answer is None else _kept(answer),
        proposal=question.guess,
        choices=tuple(Choice(value, _MEANINGS.get(value, "")) for value in values),
        examples=[cell.strip()[:_SHOWN] for cell in question.samples[:_EXAMPLES]],
        holds_up=(f"the import of {begun.file}",),
        example=f"a field that `orderbridge template {begun.kind} --mapping` lists"
        if question.topic == "column"
        else "",
    )


def _kept(answer: GivenFileAnswer) -> KeptAnswer:
    return KeptAnswer(answer.value, answer.by, datetime.fromisoformat(answer.at), answer.why)


def _find(question: str) -> tuple[BegunImport, str]:
    """The import that a question is about, and its key. Raises UsageError: there is none."""
    name, _, key = question.removeprefix(PREFIX).partition("/")
    for begun in begun_imports():
        if begun.id == name and key in _keys(begun):
            return begun, key
    raise unknown_question(question)


def _keys(begun: BegunImport) -> set[str]:
    """The keys of all questions about a file that can be answered."""
    columns = {f"{_COLUMN}{column}" for column in begun.columns}
    keys = {one.key for one in begun.questions} | columns | {*begun.answers}
    if KINDS[begun.kind].has_login:
        keys.add(_PASSWORDS.key)  # also where they are known
    return keys


def _check_fields(begun: BegunImport, answers: Mapping[str, str]) -> None:
    """Raises UsageError where two columns would fill one field."""
    lookups = tuple(map(Path, begun.lookups))
    columns = read_columns(begun.kind, Path(begun.file), begun.read_options, lookups).columns
    fields = {one.name: list(one.fields) for one in columns}
    for name, value in answers.items():
        fields[name] = [] if value == IGNORE else [*paths_of_answer(begun.kind, value)]
    filled_by: dict[str, str] = {}
    for name, paths in fields.items():
        for path in paths:
            other = filled_by.setdefault(path, name)
            if other != name:
                question = begun.question(f"{_COLUMN}{other}")
                raise UsageError(
                    f"{other} and {name} would both fill {path}",
                    f"Answer both at once; to leave one out: {answer_command(question, IGNORE)}",
                )


def _check_value(begun: BegunImport, key: str, given: GivenAnswer) -> None:
    """Raises UsageError where a value is no answer to a question."""
    value = str(given.value)
    if key.startswith(_COLUMN):
        for path in () if value == IGNORE else paths_of_answer(begun.kind, value):
            target = resolve(begun.kind, path)
            if isinstance(target, str):
                raise UsageError(
                    f"{path} {target}",
                    f"The fields, and what they mean: orderbridge template {begun.kind} --mapping\n"
                    f"  If the column is not to be sent: {answer_command(given.question, IGNORE)}",
                )
        return
    asked = (*begun.questions, _PASSWORDS)
    possible = next((one.answers for one in asked if one.key == key), (value,))
    if value not in possible:
        raise UsageError(
            f"{value} is not an answer to {given.question}",
            f"Answer one of {', '.join(possible)}: {answer_command(given.question, possible[0])}",
        )
