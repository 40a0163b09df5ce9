"""What an import asks about a file, and the answers: those given before, those of a person, or none.

In: questions, as they arise while a file is read. Out: their answers. What nobody has answered is kept in the project
with the file that it is about, so that `orderbridge answer` can answer it and the next import of the file goes on; the
answers are kept there until the import has sent something.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import msgspec

from orderbridge.pipelines.mapping import Mapping as ColumnMapping
from orderbridge.sources.command_line import run_again
from orderbridge.sources.disk import disk_errors, write_private
from orderbridge.sources.files import ReadOptions
from orderbridge.sources.kinds import KindName
from orderbridge.sources.settings import mappings_folder
from orderbridge.sources.texts import english
from orderbridge.sources.words import listed

PREFIX: Final = "import:"
"""Begins the ids of these questions."""
IGNORE: Final = "ignore"
"""The answer for a column that is not sent."""
YES: Final = "yes"
NO: Final = "no"
LOOKUP: Final = "lookup"
"""The key of the question whether ids are taken from another file."""
PASSWORDS: Final = "passwords"
"""The key of the question how new customers get a password."""
_SUFFIX: Final = ".asked.json"
_DIGITS: Final = 8

Topic = Literal[
    "column", "gone", "totals", "lookup", "mark", "unit", "currency", "passwords", "platform"
]
_ANSWERS: Final[dict[Topic, tuple[str, ...]]] = {
    "gone": (YES, "no"),
    "totals": ("skip", "keep"),
    "lookup": (YES, "no"),
    "mark": (YES, "no"),
    "unit": (YES, "no"),
    "currency": (YES, "no"),
    "passwords": ("mail", "file"),
    "platform": (YES, "no"),
}
"""The possible answers of each topic; to a column it is a field, or `ignore`."""


class FileQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a file that a person is asked.

    Attributes:
        topic: what is asked.
        about: the column that it is about; empty: the file.
        values: what its text is made of, by name.
        samples: cells of the column.
        guess: the likeliest field of a column; None: there is none, or it is taken.
        may_be: the field that the name of a column means, and its cells speak against: it can be answered, and is not
            proposed.
        taken: of a column: the fields that others fill.
    """

    topic: Topic
    about: str = ""
    values: dict[str, str] = {}
    samples: tuple[str, ...] = ()
    guess: str | None = None
    may_be: str | None = None
    taken: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        """Its name among the questions of the file."""
        return f"{self.topic}/{self.about}" if self.about else self.topic

    @property
    def text(self) -> str:
        """The question in English."""
        return english()(f"ask.{self.topic}", **self.values)

    @property
    def answers(self) -> tuple[str, ...]:
        """The possible answers; empty for a column."""
        return _ANSWERS.get(self.topic, ())


Ask = Callable[[Sequence[FileQuestion]], Mapping[str, str]]
"""Asks a person, and returns the answers by key; none where nobody can be asked."""


def nobody(asked: Sequence[FileQuestion]) -> Mapping[str, str]:
    """Asks nobody."""
    return {}


class GivenFileAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that `orderbridge answer` has kept: who gave it, when and why."""

    value: str
    by: str
    at: str
    why: str = ""


class BegunImport(msgspec.Struct, kw_only=True):
    """An import that has asked something, or waits for an agreement.

    Attributes:
        kind, file, sheet, encoding, delimiter, lookups: the file, and how it is read.
        columns: of the file.
        questions: that nobody has answered.
        answers: by the key of the question.
        has_ended: no line of the file was sent, and it asks nothing: its columns can still be answered.
    """

    kind: KindName
    file: str
    sheet: str = ""
    encoding: str = ""
    delimiter: str = ""
    lookups: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    questions: tuple[FileQuestion, ...] = ()
    answers: dict[str, GivenFileAnswer] = {}
    has_ended: bool = False

    @property
    def id(self) -> str:
        """Its name in the ids of its questions: the same for each file of these columns."""
        parts = "\x1f".join((self.sheet, *self.columns))
        return f"{self.kind}-{hashlib.sha256(parts.encode()).hexdigest()[:_DIGITS]}"

    def question(self, key: str) -> str:
        """The id of one of its questions."""
        return f"{PREFIX}{self.id}/{key}"

    @property
    def read_options(self) -> ReadOptions:
        """What was given about how the file is read."""
        return ReadOptions.given(self.sheet, self.encoding, self.delimiter)

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return mappings_folder() / f"{self.id}{_SUFFIX}"

    def keep(self) -> Path:
        """Writes it, readable by its owner alone. Raises UsageError."""
        with disk_errors(self.path, _disk_hint()):
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
            write_private(self.path, msgspec.json.format(msgspec.json.encode(self), indent=1))
        return self.path

    def forget(self) -> None:
        """Removes it."""
        with disk_errors(self.path, _disk_hint()):
            self.path.unlink(missing_ok=True)


def begun_imports() -> Iterator[BegunImport]:
    """The imports that have asked something and have not ended."""
    for path in sorted(mappings_folder().glob(f"*{_SUFFIX}")):
        if (begun := _read(path)) is not None:
            yield begun


def _read(path: Path) -> BegunImport | None:
    """One of them; None for a file that is gone, or that is none of ours."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=BegunImport)
    return None


def _other_readings(begun: BegunImport) -> list[BegunImport]:
    """The same file, begun with another encoding or delimiter."""
    return [
        one
        for one in begun_imports()
        if (one.kind, one.file, one.sheet) == (begun.kind, begun.file, begun.sheet)
        and (one.encoding, one.delimiter) != (begun.encoding, begun.delimiter)
        and one.id != begun.id
    ]


def _answers_of_columns(read: BegunImport, begun: BegunImport) -> dict[str, GivenFileAnswer]:
    """The answers about columns of another reading of a file, by the keys that these columns have now.

    Another encoding writes their names otherwise, in the same order; another delimiter makes others of them.
    """
    is_same_row = len(read.columns) == len(begun.columns)
    now = begun.columns if is_same_row else read.columns
    keys = {f"column/{old}": f"column/{new}" for old, new in zip(read.columns, now, strict=True)}
    return {keys[key]: answer for key, answer in read.answers.items() if key in keys}


@dataclass(slots=True)
class Interview:
    """The questions of one import: each is asked once, and answers that were given before count first.

    Attributes:
        begun: the file, and the answers that were given before.
        person: asks somebody.
        open: what nobody has answered, by key.
        asked_before: what nobody had answered when the file was read last.
    """

    begun: BegunImport
    person: Ask = nobody
    open: dict[str, FileQuestion] = field(default_factory=dict)
    asked_before: Sequence[FileQuestion] = ()

    @classmethod
    def about(
        cls,
        kind: KindName,
        file: Path,
        given: ReadOptions,
        lookups: Collection[Path],
        columns: Sequence[str],
        person: Ask,
    ) -> Interview:
        """The questions about a file, with the answers that were given for one of its columns."""
        begun = BegunImport(
            kind=kind,
            file=str(file.absolute()),
            sheet=given.sheet or "",
            encoding=given.encoding or "",
            delimiter=given.delimiter or "",
            lookups=tuple(str(path) for path in lookups),
            columns=tuple(columns),
        )
        before = _read(begun.path)
        asked_before: Sequence[FileQuestion] = ()
        if before is not None:
            begun.answers = before.answers
            asked_before = before.questions
        for other in _other_readings(begun):
            for key, answer in _answers_of_columns(other, begun).items():
                known = begun.answers.get(key)
                if known is None or known.at < answer.at:
                    begun.answers[key] = answer
        return cls(begun, person, asked_before=asked_before)

    def has_asked(self, topics: Collection[Topic]) -> bool:
        """Whether one of these topics was asked before, and may have an answer since."""
        is_answered = any(key.partition("/")[0] in topics for key in self.begun.answers)
        return is_answered or any(one.topic in topics for one in self.asked_before)

    def ask(self, questions: Sequence[FileQuestion]) -> dict[str, str]:
        """The answers by key, of those that are answered."""
        given = {key: one.value for key, one in self.begun.answers.items()}
        answers = {one.key: given[one.key] for one in questions if one.key in given}
        left = [one for one in questions if one.key not in answers]
        if left:
            answers |= self.person(left)
        self.open |= {one.key: one for one in questions if one.key not in answers}
        return answers

    def ask_one(self, question: FileQuestion) -> str | None:
        """The answer to one question; None where nobody has answered it."""
        return self.ask([question]).get(question.key)

    def is_answered(self, question: FileQuestion) -> bool:
        """Whether a question was answered before."""
        return question.key in self.begun.answers

    def is_read_anew(self, mapping: ColumnMapping) -> bool:
        """Whether the columns are proposed anew, because the file lacks some that its kept mapping uses."""
        gone = [name for name in mapping.used_columns if name not in self.begun.columns]
        if not gone:
            return False
        values = {"file": Path(self.begun.file).name, "columns": listed(gone)}
        return self.ask_one(FileQuestion(topic="gone", values=values)) == YES

    @property
    def columns(self) -> dict[str, str]:
        """The answers about columns that were given before: a field, or `ignore`."""
        given = {
            key.removeprefix("column/"): one.value
            for key, one in self.begun.answers.items()
            if key.startswith("column/")
        }
        return {name: value for name, value in given.items() if name in self.begun.columns}

    def end(self, *, is_sent: bool) -> None:
        """Forgets what was asked. Where nothing was sent of the file, what is open and its columns can be answered."""
        if is_sent:
            for other in _other_readings(self.begun):
                other.forget()
            self.begun.forget()
            self.open = {}
            return
        self.begun.answers = {}
        self.begun.questions = tuple(self.open.values())
        self.begun.has_ended = not self.open
        self.begun.keep()

    def keep(self) -> None:
        """Keeps what is open, for who answers it. Raises UsageError."""
        before = _read(self.begun.path)
        if before is not None:  # answers may have come meanwhile
            self.begun.answers = before.answers
        self.begun.questions = tuple(self.open.values())
        self.begun.keep()


def _disk_hint() -> str:
    return f"Free space or make the folder writable, then {run_again()}"
