"""Questions about findings of severity error: is what was found right, or is it a fault? An acceptance is the answer.

In: the findings of the published warehouse, and `.dlt/accepted.toml`. Out: a question for each rule, or for each
subject of a rule, such as a column; and acceptances, which are exactly about what was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast, get_args

import duckdb

from orderbridge.pipelines.questions.model import AskedQuestion, Given, GivenAnswer
from orderbridge.pipelines.warehouse.accepted import (
    COMPARED,
    RULE_NAMES,
    Acceptance,
    Accepted,
    accepted_file,
    read_acceptances,
    write_acceptances,
)
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.sql import table_names
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import warehouse_path
from orderbridge.sources.words import number
from orderbridge.transforms.questions import Choice
from orderbridge.transforms.rules import RULES, Severity

PREFIX: Final = "finding:"
_ACCEPT: Final = "accept"
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
    SELECT entity || '.' || rule, subject, count(*), min(detail), min(first_seen_at),
        array_to_string(list(entity_id ORDER BY entity_id)[:3], ', ')
    FROM reconciled.exceptions
    WHERE severity = 'error' AND NOT is_accepted AND NOT ({accepted}) AND NOT list_contains(?, rule)
    GROUP BY ALL ORDER BY 3 DESC, 1, 2"""
_BY_NAME: Final = {f"{rule.entity}.{rule.name}": rule for rule in RULES}
_CHOICES: Final = (
    Choice(
        _ACCEPT,
        "known and fine: it is counted, but no longer listed, and no run ends with 9 for it",
    ),
    Choice("warning", "not fine yet: it stays listed as a warning"),
    Choice("info", "it stays listed, without a warning"),
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
            rows = warehouse.execute(sql, [list(_OF_MEANINGS)]).fetchall()
            ((as_of,),) = warehouse.execute("SELECT as_of FROM reconciled.as_of").fetchall()
        return [
            _asked(*row)
            for row in rows
            if row[0] not in COMPARED or not accepted.is_changed(row[0], row[1] or "", as_of)
        ]

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        _entries(answers, given)

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        path = accepted_file()
        write_acceptances(path, _entries(answers, given))
        return str(path)


def _has_subjects(warehouse: duckdb.DuckDBPyConnection) -> bool:
    """Whether the findings are those of this version."""
    tables = table_names(warehouse, "reconciled")
    if not {"exceptions", "as_of"} <= set(tables):
        return False
    names = [row[0] for row in warehouse.execute("DESCRIBE reconciled.exceptions").fetchall()]
    return "subject" in names


def _asked(
    rule: str,
    subject: str | None,
    count: int,
    detail: str,
    first_seen_at: datetime | None,
    ids: str,
) -> AskedQuestion:
    """The question about the findings of a rule, or of a subject of it."""
    texts = _BY_NAME.get(rule)
    of_records = f"{number(count, 'finding')}, such as {ids}" if ids else detail
    return AskedQuestion(
        id=f"{PREFIX}{rule}" + (f"/{subject}" if subject else ""),
        text=texts.meaning if texts is not None else rule,
        state="open",
        reason=of_records,
        choices=_CHOICES,
        holds_up=(texts.impact,) if texts is not None else (),
        first_seen_at=first_seen_at,
        note=texts.action if texts is not None else "",
    )


def _entries(answers: Sequence[GivenAnswer], given: Given) -> list[Acceptance]:
    """The entries of the file with these answers. Raises UsageError."""
    entries = read_acceptances(accepted_file())
    for one in answers:
        rule, place = _parts(one.question)
        if one.value is None:
            kept = [entry for entry in entries if (entry.rule, entry.place) != (rule, place)]
            if len(kept) == len(entries):
                raise UsageError(
                    f"{one.question} has no answer", "`orderbridge accept` lists what is accepted."
                )
            entries = kept
            continue
        made = _acceptance(one, rule, place, given)
        entries = [entry for entry in entries if _key(entry) != _key(made)]
        entries.append(made)
    return entries


def _parts(question: str) -> tuple[str, str]:
    """The rule of a question, and its place; empty for all findings of the rule. Raises UsageError."""
    rule, _, place = question.removeprefix(PREFIX).partition("/")
    if rule not in RULE_NAMES:
        raise UsageError(f"there is no rule {rule}", "`orderbridge questions` lists what is asked.")
    return rule, place


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
