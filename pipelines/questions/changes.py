"""Questions about the platform as a whole: a list that lost records, and a source that is another one.

In: what the last run held back or refused. Out: a question for each, and answers in `.dlt/accepted.toml`. An answer is
about the evidence at hand and counts for the next run that publishes: a next fall is another question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final

import duckdb
import msgspec

from orderbridge.pipelines.questions.model import (
    AskedQuestion,
    Given,
    GivenAnswer,
    no_answer,
    refuse_limits,
    unknown_question,
)
from orderbridge.pipelines.warehouse import failure
from orderbridge.pipelines.warehouse.accepted_changes import (
    AcceptedChanges,
    AcceptedFall,
    AcceptedSource,
    changed_parts,
    write_changes,
)
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.ops import last_reads
from orderbridge.pipelines.warehouse.raw.held_lists import HeldList, held_lists
from orderbridge.pipelines.warehouse.source import SOURCE_FACTS, read_source, source_run
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import DataSource, configured_source, warehouse_path
from orderbridge.transforms.questions import Choice

_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_ACCEPT: Final = "accept"
_LIST: Final = "list:"
_SOURCE: Final = "source"
_PARTS: Final = {
    "legacy_host": "legacy host",
    "public_v1_host": "public v1 host",
    "environment": "environment",
    "organization": "organization",
}


class Changes:
    """Questions that are answered with `accept`, or not at all. See `QuestionKind`."""

    def is_about(self, question: str) -> bool:
        """See `QuestionKind`."""
        return question == _SOURCE or question.startswith(_LIST)

    def asked(self) -> list[AskedQuestion]:
        """See `QuestionKind`. An answer is listed until the run that uses it has published."""
        return [question for question, _ in _asked().values()]

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        _changes(answers, given)

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        added, removed = _changes(answers, given)
        return str(write_changes(added, removed))


_Subject = HeldList | AcceptedSource
"""What is accepted; of a source the entry as it would be without who and why."""


def _asked() -> dict[str, tuple[AskedQuestion, _Subject]]:
    """The questions by their id, each with what is accepted."""
    if not warehouse_path().is_file():
        return {}
    accepted = AcceptedChanges.read()
    found: dict[str, tuple[AskedQuestion, _Subject]] = {}
    with open_warehouse() as warehouse:
        for held in held_lists(warehouse):
            question = _list_question(warehouse, held, is_accepted=accepted.covers_fall(held))
            found[question.id] = question, held
        known = read_source(warehouse)
        source = _other_source(known)
        if source is not None:
            is_accepted = accepted.covers_source(known, source_run(warehouse), source)
            found[_SOURCE] = _source_question(warehouse, source, is_accepted=is_accepted)
    return found


def _list_question(
    warehouse: duckdb.DuckDBPyConnection, held: HeldList, *, is_accepted: bool
) -> AskedQuestion:
    examples = f", such as {held.examples}" if held.examples else ""
    words = held.resource.replace("_", " ")
    evidence = f"they are gone, and are marked as missing: {held.reason}{examples}"
    read = last_reads(warehouse).get(held.resource)
    since = "" if read is None else f" since {read.ended_at:%Y-%m-%d %H:%M} UTC"
    return AskedQuestion(
        id=f"{_LIST}{held.resource}",
        text=f"Some {words} no longer arrive. Are they really gone from the platform? Search one of them there.",
        state="answered" if is_accepted else "open",
        value=_ACCEPT if is_accepted else None,
        reason="" if is_accepted else f"held back: {held.known} → {held.listed} records",
        choices=[Choice(_ACCEPT, evidence)],
        holds_up=[f"new and changed {held.resource}{since}"],
        otherwise=(
            "where they are still on the platform. Nothing is marked as missing. Check key and host: "
            "orderbridge check"
        ),
    )


def _other_source(held: DataSource) -> DataSource | None:
    """The source that the settings name and a refused run saw, if it is not that of the warehouse."""
    source = configured_source()
    facts = (failure.read(warehouse_path()) or {}).get(SOURCE_FACTS)
    if facts is not None:
        refused = DataSource(**facts)
        if not refused.differences(source):
            source = source.updated(refused)
    return source if held.differences(source) else None


def _source_question(
    warehouse: duckdb.DuckDBPyConnection, source: DataSource, *, is_accepted: bool
) -> tuple[AskedQuestion, AcceptedSource]:
    held = read_source(warehouse)
    after = changed_parts(held, source)
    known = asdict(held)
    before = {name: known[name] for name in after}
    changes = [f"{_PARTS[name]}: {before[name]} → {after[name]}" for name in after]
    counts = [f"{read.rows} {name}" for name, read in last_reads(warehouse).items() if read.rows]
    question = AskedQuestion(
        id=_SOURCE,
        text="Is this still the organization of the warehouse? If not, name another file in WAREHOUSE__PATH.",
        state="answered" if is_accepted else "open",
        value=_ACCEPT if is_accepted else None,
        reason="" if is_accepted else "; ".join(changes),
        choices=[Choice(_ACCEPT, f"{'; '.join(changes)}; the warehouse holds {', '.join(counts)}")],
        holds_up=["every pull and run"],
    )
    entry = AcceptedSource(before, after, source_run(warehouse), "", _NEVER)
    return question, entry


def _changes(
    answers: Sequence[GivenAnswer], given: Given
) -> tuple[AcceptedChanges, AcceptedChanges]:
    """The entries to add and to remove. Raises UsageError."""
    refuse_limits(
        given,
        "lists or sources",
        "An answer counts for what is held back now, and for no later fall.",
    )
    asked = _asked()
    falls: list[AcceptedFall] = []
    sources: list[AcceptedSource] = []
    withdrawn = [one.question for one in answers if one.value is None]
    for one in answers:
        if one.value is None:
            continue
        if one.question not in asked:
            raise unknown_question(one.question)
        if one.value != _ACCEPT:
            raise UsageError(
                f"{one.value} is no answer to {one.question}",
                f"The only one is: orderbridge answer {one.question} {_ACCEPT}",
            )
        entry = _entry(asked[one.question][1], one, given)
        if isinstance(entry, AcceptedFall):
            falls.append(entry)
        else:
            sources.append(entry)
    return AcceptedChanges(falls, sources), _withdrawn(withdrawn)


def _entry(subject: _Subject, answer: GivenAnswer, given: Given) -> AcceptedFall | AcceptedSource:
    if isinstance(subject, AcceptedSource):
        return msgspec.structs.replace(subject, who=given.by, when=given.at, why=answer.why)
    return AcceptedFall(
        subject.resource,
        subject.known,
        subject.listed,
        subject.compared_with,
        given.by,
        given.at,
        answer.why,
    )


def _withdrawn(questions: Sequence[str]) -> AcceptedChanges:
    """The entries about these questions. Raises UsageError where there is none."""
    kept = AcceptedChanges.read()
    names = [one.removeprefix(_LIST) for one in questions if one.startswith(_LIST)]
    falls = [one for one in kept.falls if one.list in names]
    sources = kept.sources if _SOURCE in questions else []
    answered = {f"{_LIST}{one.list}" for one in falls}
    if sources:
        answered.add(_SOURCE)
    for question in questions:
        if question not in answered:
            raise no_answer(question)
    return AcceptedChanges(falls, sources)
