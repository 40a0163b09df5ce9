"""Questions about columns of kept mappings whose field neither name nor values prove.

In: the mappings that imports keep, with the files that they were last used for, and those of pushed plans without a
mapping, which the next such plan goes on with. Out: a question for each such column, which is used as before until it
is answered. The answer is in the mapping: `answered = true`, or the column is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, get_args

from orderbridge.pipelines.import_file.mappings import allowed_lookups, kept_mappings
from orderbridge.pipelines.imports.open import open_input_table, own_columns
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.mapping import (
    MappedColumn,
    Mapping,
    contested_columns,
    doubts,
    load,
    sample,
)
from orderbridge.pipelines.mapping.write import answer_column
from orderbridge.pipelines.plan.model import MANIFEST_FILE
from orderbridge.pipelines.plan.pushed_columns import mappings_with, newest_by_header
from orderbridge.pipelines.plan.pushed_plans import read_planned
from orderbridge.pipelines.questions.model import (
    AskedQuestion,
    Given,
    GivenAnswer,
    answer_command,
    unknown_question,
)
from orderbridge.sources.errors import UsageError
from orderbridge.sources.kinds import KindName
from orderbridge.sources.settings import (
    find_root,
    is_set,
    ledger_path,
    legacy_settings,
    project_file,
)
from orderbridge.sources.words import listed
from orderbridge.transforms.questions import Choice

_PREFIX: Final = "column:"
_IGNORE: Final = "ignore"
_EXAMPLES: Final = 3
_SHOWN: Final = 30
"""Cells of a column that are shown, and characters of one."""


class _Doubt(NamedTuple):
    """A column of a kept mapping that nothing proves.

    Attributes:
        mappings: the files that an answer is written to.
        holds_up: what goes on as before until then.
        other_field: what to do where the column has another field.
    """

    mappings: Sequence[Path]
    file: Path
    column: MappedColumn
    field: str
    cells: Sequence[str]
    holds_up: str
    other_field: str


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
                    f"  For another field, {doubt.other_field}",
                )

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        known = _doubts()
        changed = [(known[one.question], one.value == _IGNORE) for one in answers]
        written: dict[Path, None] = {}
        for doubt, is_ignored in changed:
            for path in doubt.mappings:
                answer_column(path, doubt.column, is_ignored=is_ignored)
                written[path] = None
        return listed(list(map(str, written)))


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
        holds_up=(doubt.holds_up,),
    )


def _doubts() -> dict[str, _Doubt]:
    """The doubtful columns of the kept mappings and of pushed plans, by question."""
    found: dict[str, _Doubt] = {}
    mappings = set(kept_mappings())
    for path, file in _last_files(mappings):
        with suppress(UsageError):  # the file is gone, or is another one by now
            mapping = load(path, None, allowed_lookups(path, file, ()))
            for doubt in _of_file(mapping, path, file):
                found[f"{_PREFIX}{path.stem}/{doubt.column.name}"] = doubt
    if is_set("sources.legacy"):
        with Ledger.open(ledger_path(), readonly=True) as ledger:
            for kind in get_args(KindName):
                found |= _of_plans(ledger, legacy_settings().base_url, kind)
    return found


def _of_file(mapping: Mapping, path: Path, file: Path) -> Iterator[_Doubt]:
    table = open_input_table(file, mapping.read_options, mapping)
    samples = sample(table)
    for name, field in doubts(mapping, own_columns(table), samples).items():
        column = mapping.columns[name]
        holds_up = f"{field} of the imports that {path} is used for"
        yield _Doubt([path], file, column, field, samples[name], holds_up, f"edit {path}.")


def _of_plans(ledger: Ledger, host: str, kind: KindName) -> dict[str, _Doubt]:
    """The doubtful columns of pushed plans of a kind without a mapping, by question: once for all files of a kind."""
    found: dict[str, _Doubt] = {}
    for pushed in newest_by_header(ledger, host, kind):
        mapping = Mapping(kind, pushed.columns)
        file = find_root() / pushed.input
        with suppress(UsageError):  # the file is gone, or is another one by now
            table = open_input_table(file, mapping=mapping)
            samples = sample(table)
            for name, field in contested_columns(mapping, own_columns(table), samples).items():
                paths = mappings_with(ledger, host, kind, pushed.columns[name])
                found.setdefault(
                    f"{_PREFIX}plan-{kind}/{name}",
                    _Doubt(
                        paths,
                        file,
                        pushed.columns[name],
                        field,
                        samples[name],
                        f"{field} of {kind} that are planned without a mapping",
                        f"use a mapping: orderbridge template {kind} --mapping --for FILE > {kind}.toml",
                    ),
                )
    return found


def _last_files(mappings: set[Path]) -> Iterator[tuple[Path, Path]]:
    """The kept mappings that plans of the project used, each with the file of the last such plan."""
    left = set(mappings)
    plans = project_file("").glob(f"plan-*/{MANIFEST_FILE}")
    for manifest in sorted(plans, key=lambda path: -path.stat().st_mtime_ns):
        if not left:
            return
        planned = read_planned(manifest.parent)
        if planned is None or planned.mapping is None:
            continue
        path = (find_root() / planned.mapping.path).resolve()
        if path in left:
            left.discard(path)
            yield path, find_root() / planned.input.path
