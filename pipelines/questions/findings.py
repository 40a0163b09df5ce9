"""Questions about findings of severity error: is what was found right, or is it a fault? An acceptance is the answer.

In: the findings of the published warehouse, and `.dlt/accepted.toml`. Out: a question for each rule, or for each
subject of a rule, such as a column; and acceptances, which are exactly about what was asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, cast, get_args

import duckdb

from orderbridge.pipelines.questions.model import AskedQuestion, Given, GivenAnswer
from orderbridge.pipelines.warehouse.answers.accepted import (
    COMPARED,
    Acceptance,
    Accepted,
    accepted_file,
    read_acceptances,
    write_acceptances,
)
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.sql import has_tables, table_names
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import warehouse_path
from orderbridge.sources.words import listed, number
from orderbridge.transforms.questions import Choice
from orderbridge.transforms.rules import RULES, Severity, find_rule
from orderbridge.transforms.value_questions import DATE_ORDER

PREFIX: Final = "finding:"
_ACCEPT: Final = "accept"
_SHOWN: Final = 12
"""So many fields that vanished together are shown one by one."""
_OF_MEANINGS: Final = (
    "field_changed",
    "field_disputed",
    "customer_notation",
    "login_mode_contradicted",
    "created_at_contradicted",
    "dates_contradicted",
    "ordered_at_contradicted",
)
"""Rules whose question is one about a meaning, with more evidence."""
_ERRORS: Final = """
    SELECT entity || '.' || rule, coalesce(subject, ''), count(*), min(detail), min(first_seen_at),
        array_to_string(list(entity_id ORDER BY entity_id)[:3], ', ')
    FROM reconciled.exceptions
    WHERE severity = 'error' AND NOT is_accepted AND NOT ({accepted}) AND NOT list_contains(?, rule)
    GROUP BY ALL ORDER BY 3 DESC, 1, 2"""
_ORDER_IS_OPEN: Final = (
    "SELECT count(*) FROM reconciled.meanings WHERE question = ? AND state = 'open'"
)
GONE: Final = frozenset(
    f"{rule.entity}.{rule.name}" for rule in RULES if rule.name == "values_gone"
)
"""Rules whose findings of one run are one question: fields that vanish together."""
_AND: Final = " + "
"""Between the places of such a question."""
NOT_FINE: Final = "where it is not fine. "
_FINE: Final = "known and fine: it is counted, but no longer listed, and is no error any more"
_ON_PURPOSE: Final = "it was on purpose: what is empty stays so, and is no error any more"
_STILL_THERE: Final = (
    "where the platform still shows the values, or you do not know. Ask its support why they no longer arrive. "
    "When they are back, this question goes away by itself."
)
_OTHERS: Final = (
    Choice("warning", "not fine yet: it stays listed, as a warning instead of an error"),
    Choice("info", "it stays listed, for information only"),
)


class Findings:
    """Questions about findings. See `QuestionKind`."""

    def is_about(self, question: str) -> bool:
        """See `QuestionKind`."""
        return question.startswith(PREFIX)

    def asked(self) -> list[AskedQuestion]:
        """See `QuestionKind`."""
        if not warehouse_path().is_file():
            return []
        accepted = Accepted.read(datetime.now(UTC))
        with open_warehouse() as warehouse:
            if not _has_subjects(warehouse):
                return []
            sql = _ERRORS.format(accepted=accepted.accepted_sql("reconciled.exceptions"))
            asked_elsewhere = [*_OF_MEANINGS, *_asked_as_order(warehouse)]
            rows = warehouse.execute(sql, [asked_elsewhere]).fetchall()
            ((as_of,),) = warehouse.execute("SELECT as_of FROM reconciled.as_of").fetchall()
        found = [_Found(*row) for row in rows]
        return [*_questions(one for one in found if not one.is_answered(accepted, as_of))]

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        _entries(answers, given)

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        path = accepted_file()
        write_acceptances(path, _entries(answers, given))
        return str(path)


def _asked_as_order(warehouse: duckdb.DuckDBPyConnection) -> list[str]:
    """The rules about dates that cannot be read, where the order of day and month is asked: that comes first."""
    if not has_tables(warehouse, "reconciled", "meanings"):
        return []
    ((count,),) = warehouse.execute(_ORDER_IS_OPEN, [DATE_ORDER]).fetchall()
    return [f"{prefix}_form" for prefix in ("created_at", "dates", "ordered_at")] if count else []


def _has_subjects(warehouse: duckdb.DuckDBPyConnection) -> bool:
    """Whether the findings are those of this version."""
    tables = table_names(warehouse, "reconciled")
    if not {"exceptions", "as_of"} <= set(tables):
        return False
    names = [row[0] for row in warehouse.execute("DESCRIBE reconciled.exceptions").fetchall()]
    return "subject" in names


class _Found(NamedTuple):
    """The findings of a rule, or of a subject of it: the ids of a few records, and the detail of one finding."""

    rule: str
    subject: str
    findings: int
    detail: str
    first_seen_at: datetime | None
    ids: str

    def is_answered(self, accepted: Accepted, as_of: datetime) -> bool:
        """Whether a person has accepted the change since the run that found it."""
        return self.rule in COMPARED and accepted.is_changed(self.rule, self.subject, as_of)


def _questions(found: Iterable[_Found]) -> Iterator[AskedQuestion]:
    """A question for each rule and subject; fields that vanished in the same run are one."""
    together: dict[tuple[object, ...], list[_Found]] = {}
    for one in found:
        what: object = one.first_seen_at if one.rule in GONE else one.subject
        together.setdefault((one.rule, what), []).append(one)
    for first, *others in together.values():
        yield _gone([first, *others]) if first.rule in GONE else _asked(first)


def _asked(found: _Found) -> AskedQuestion:
    """The question about the findings of a rule, or of a subject of it."""
    rule = found.rule
    texts = find_rule(rule)
    of_records = f"{number(found.findings, 'finding')}, such as {found.ids}"
    return AskedQuestion(
        id=f"{PREFIX}{rule}" + (f"/{found.subject}" if found.subject else ""),
        text=texts.meaning if texts is not None else rule,
        state="open",
        reason=of_records if found.ids else found.detail,
        choices=[Choice(_ACCEPT, _FINE), *_OTHERS],
        first_seen_at=found.first_seen_at,
        advice=texts.impact if texts is not None else "",
        otherwise=f"{NOT_FINE}{texts.action}" if texts is not None else "",
    )


def _gone(found: Sequence[_Found]) -> AskedQuestion:
    """The question about the fields of a list that have no values any more since the same run."""
    rule = found[0].rule
    entity = rule.partition(".")[0]
    since = found[0].first_seen_at
    places = _AND.join(one.subject for one in found if one.subject)
    fields = [one.subject.partition(": ")[2] or one.subject or entity for one in found]
    when = "" if since is None else f" since {since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    texts = find_rule(rule)
    return AskedQuestion(
        id=f"{PREFIX}{rule}" + (f"/{places}" if places else ""),
        text=f"Fields of the {entity.replace('_', ' ')} have lost their values. Did the platform do that on purpose?",
        state="open",
        reason=f"{listed(fields)}: no values{when}",
        choices=[Choice(_ACCEPT, _ON_PURPOSE), *_OTHERS],
        examples=[one.detail for one in found[:_SHOWN]],
        first_seen_at=since,
        advice=texts.impact if texts is not None else "",
        otherwise=_STILL_THERE,
    )


def _entries(answers: Sequence[GivenAnswer], given: Given) -> list[Acceptance]:
    """The entries of the file with these answers. Raises UsageError."""
    entries = read_acceptances(accepted_file())
    for one in answers:
        rule, places = _parts(one.question)
        if one.value is None:
            kept = [entry for entry in entries if entry.rule != rule or entry.place not in places]
            if len(kept) == len(entries):
                raise UsageError(
                    f"{one.question} has no answer", "`orderbridge accept` lists what is accepted."
                )
            entries = kept
            continue
        for place in places:
            made = _acceptance(one, rule, place, given)
            entries = [entry for entry in entries if _key(entry) != _key(made)]
            entries.append(made)
    return entries


def _parts(question: str) -> tuple[str, list[str]]:
    """The rule of a question, and its places; an empty one for all findings of the rule. Raises UsageError."""
    rule, _, place = question.removeprefix(PREFIX).partition("/")
    if find_rule(rule) is None:
        raise UsageError(f"there is no rule {rule}", "`orderbridge questions` lists what is asked.")
    return rule, place.split(_AND) if rule in GONE else [place]


def _acceptance(answer: GivenAnswer, rule: str, place: str, given: Given) -> Acceptance:
    words = (_ACCEPT, *get_args(Severity))
    if answer.value not in words:
        raise UsageError(
            f"{answer.value} is not an answer to {answer.question}",
            f"Answer one of {', '.join(words)}: orderbridge answer '{answer.question}' accept",
        )
    severity = None if answer.value == _ACCEPT else cast(Severity, answer.value)
    rest: dict[str, Any] = {"until": given.until, "up_to": given.up_to, "severity": severity}
    try:
        return Acceptance(rule, given.by, given.at, answer.why, place=place, **rest)
    except ValueError as error:
        raise UsageError(
            str(error), f"Leave it out: orderbridge answer '{answer.question}' accept"
        ) from None


def _key(entry: Acceptance) -> tuple[str, str, str, bool]:
    """What only one entry can be about: a severity can stand beside an acceptance."""
    return entry.rule, entry.place, entry.subject, entry.severity is None
