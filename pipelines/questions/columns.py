"""Questions about columns of kept mappings whose field neither name nor values prove.

In: the mappings that imports keep, and the files that they were last used for. Out: a question for each such column,
which is used as before until it is answered. The answer is in the mapping: `answered = true`, or the column is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from orderbridge.pipelines.import_file.mappings import (
    allowed_lookups,
    kept_mappings,
    own_columns,
)
from orderbridge.pipelines.imports.open import open_input_table
from orderbridge.pipelines.mapping import MappedColumn, Mapping, doubts, load, sample
from orderbridge.pipelines.mapping.write import answer_column
from orderbridge.pipelines.plan.model import MANIFEST_FILE
from orderbridge.pipelines.questions.model import (
    AskedQuestion,
    Given,
    GivenAnswer,
    answer_command,
    unknown_question,
)
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import find_root, project_file
from orderbridge.transforms.questions import Choice

_PREFIX: Final = "column:"
_IGNORE: Final = "ignore"
_EXAMPLES: Final = 3
_SHOWN: Final = 30
"""Cells of a column that are shown, and characters of one."""


class _File(msgspec.Struct):
    """A file that a plan names."""

    path: str


class _Planned(msgspec.Struct):
    """What is needed of `plan.json`."""

    input: _File
    mapping: _File | None


class _Doubt(NamedTuple):
    """A column of a kept mapping that nothing proves."""

    mapping: Path
    file: Path
    column: MappedColumn
    field: str
    cells: Sequence[str]


class Columns:
    """Questions about columns of kept mappings. See `QuestionKind`."""

    def is_about(self, question: str) -> bool:
        """See `QuestionKind`."""
        return question.startswith(_PREFIX)

    def asked(self) -> list[AskedQuestion]:
        """See `QuestionKind`."""
        return [_question(name, doubt) for name, doubt in _doubts().items()]

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        known = _doubts()
        for one in answers:
            doubt = known.get(one.question)
            if doubt is None:
                raise unknown_question(one.question)
            if one.value not in (doubt.field, _IGNORE):
                raise UsageError(
                    f"{one.value or 'a withdrawal'} is not an answer to {one.question}",
                    f"If it is right: {answer_command(one.question, doubt.field)}\n"
                    f"  If it must not be sent: {answer_command(one.question, _IGNORE)}\n"
                    f"  For another field, edit {doubt.mapping}.",
                )

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        known = _doubts()
        changed = [(known[one.question], one.value == _IGNORE) for one in answers]
        for doubt, is_ignored in changed:
            answer_column(doubt.mapping, doubt.column, is_ignored=is_ignored)
        return ", ".join(dict.fromkeys(str(doubt.mapping) for doubt, _ in changed))


def _question(name: str, doubt: _Doubt) -> AskedQuestion:
    cells = [cell.strip()[:_SHOWN] for cell in doubt.cells if cell.strip()]
    examples = ", ".join(list(dict.fromkeys(cells))[:_EXAMPLES])
    return AskedQuestion(
        id=name,
        text=f"Is the column {doubt.column.name} of {doubt.file.name} {doubt.field}?",
        state="open",
        value=doubt.field,
        reason=f"{doubt.field} is used as before, and neither name nor values prove it",
        choices=(
            Choice(doubt.field, f"such as {examples}" if examples else "the column is empty"),
            Choice(_IGNORE, "the column is not sent any more"),
        ),
        holds_up=(f"{doubt.field} of the imports that {doubt.mapping} is used for",),
    )


def _doubts() -> dict[str, _Doubt]:
    """The doubtful columns of the kept mappings, by question."""
    found: dict[str, _Doubt] = {}
    mappings = set(kept_mappings())
    for path, file in _last_files(mappings):
        with suppress(UsageError):  # the file is gone, or is another one by now
            mapping = load(path, None, allowed_lookups(path, file, ()))
            for doubt in _of_file(mapping, path, file):
                found[f"{_PREFIX}{path.stem}/{doubt.column.name}"] = doubt
    return found


def _of_file(mapping: Mapping, path: Path, file: Path) -> Iterator[_Doubt]:
    table = open_input_table(file, mapping.read_options, mapping)
    samples = sample(table)
    for name, field in doubts(mapping, own_columns(table), samples).items():
        yield _Doubt(path, file, mapping.columns[name], field, samples[name])


def _last_files(mappings: set[Path]) -> Iterator[tuple[Path, Path]]:
    """The kept mappings that plans of the project used, each with the file of the last such plan."""
    left = set(mappings)
    plans = project_file("").glob(f"plan-*/{MANIFEST_FILE}")
    for manifest in sorted(plans, key=lambda path: -path.stat().st_mtime_ns):
        if not left:
            return
        with suppress(msgspec.DecodeError, OSError):
            planned = msgspec.json.decode(manifest.read_bytes(), type=_Planned)
            if planned.mapping is None:
                continue
            path = (find_root() / planned.mapping.path).resolve()
            if path in left:
                left.discard(path)
                yield path, find_root() / planned.input.path
