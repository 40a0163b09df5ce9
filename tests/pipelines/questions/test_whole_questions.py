"""What a warehouse remembers of questions and of new rules is compared whole with plain Python, night by night.

Questions come and go, are answered, depend on others and are contradicted; a version, an acceptance and an answer come
between nights. Rules are found by or not, in lists that were made or not.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import duckdb
import msgspec
import pytest

from orderbridge.pipelines.warehouse import new_rules as rules
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers.accepted import Acceptance, Accepted
from orderbridge.pipelines.warehouse.answers.questions import RunQuestions
from orderbridge.pipelines.warehouse.finding_history import prepare_findings
from orderbridge.sources import __version__
from orderbridge.transforms.chance import Share
from orderbridge.transforms.questions import Answer, Choice, Evidence, Question, question

Row = dict[str, Any]
BEGIN = datetime(2026, 5, 4, 2, tzinfo=UTC)
NIGHTS = 12
OLD_NIGHTS = (4, 7, 9)
"""Nights of another version."""
ONLY_PULLED = 7
"""A night that reconciled nothing, and asked nothing."""


def run_id(night: int) -> str:
    """Not in the sequence of the nights."""
    return f"run{night * 7 % 13:02}"


def at(night: int) -> datetime:
    """A clock that was ahead in one night."""
    return BEGIN + timedelta(days=night + 20 * (night == 6))


def versions(night: int) -> str:
    return "0.0.1" if night in OLD_NIGHTS else __version__


# questions

FIELDS = {
    "total": "reconcile.order_total", "customer_id": "reconcile.order_customer_id",
    "currency": "reconcile.order_currency",
    "line_total": "reconcile.order_line_total", "line_discount": "reconcile.order_line_discount",
}  # fmt: skip
DEPENDENT = {
    "reconcile.order_total_unit": "total", "reconcile.order_customer_notation": "customer_id",
    "reconcile.order_line_discount_unit": "line_discount",
}  # fmt: skip
TABLES = ("reconcile.order_statuses", "reconcile.order_line_kinds")
OTHERS = ("sources.legacy.login_mode", "reconcile.timezone", "reconcile.country")
QUESTIONS = (*FIELDS.values(), *DEPENDENT, *TABLES, *OTHERS)


@dataclass(frozen=True)
class Asked:
    """A night: the evidence of what its steps decide, what people have answered, and the fields they have accepted."""

    evidence: list[Evidence]
    given: dict[str, Answer]
    accepted: list[str] = field(default_factory=list)


def _evidence(draw: random.Random, name: str) -> Evidence:
    if name in TABLES:
        rows = draw.sample(("A=sale", "B=open", "C=cancelled", "D=test"), 2)
        return Evidence(
            name, tuple(map(Choice, rows)), draw.choice((rows[0], ",".join(rows), None)),
            about=draw.choice(("", "x", "y")), assumed_rows=draw.choice(("", rows[0], ",".join(rows))),
        )  # fmt: skip
    choices = tuple(
        Choice(
            value, f"{value} fits", draw.choice((None, Share(draw.randrange(20, 90), 90))),
            draw.choice(("", "", "", "rows of another kind")), draw.random() < 0.9,
        )
        for value in draw.sample(("a", "b", "c"), draw.choice((1, 2, 3)))
    )  # fmt: skip
    return Evidence(
        name, choices, draw.choice((None, *[one.value for one in choices])), draw.random() < 0.2,
        draw.choice(("", "two fit")), "none fits", draw.choice(("", "x", "x", "y")) if name in DEPENDENT else "",
        name == OTHERS[0],
    )  # fmt: skip


def _asked() -> Iterator[Asked]:
    draw = random.Random(8)
    for night in range(1, NIGHTS + 1):
        decided = [name for name in QUESTIONS if draw.random() < 0.75]
        given = {
            name: Answer(draw.choice("abc"), "answers.toml", at(night), "ana")
            for name in QUESTIONS
            if name not in TABLES and draw.random() < 0.15
        }
        accepted = draw.sample([*FIELDS], 1) if night % 3 == 0 else []
        yield Asked([_evidence(draw, name) for name in decided], given, accepted)


ASKED = [*_asked()]


@dataclass
class Memory:
    """What is remembered: the rows of `ops.questions`, and those of `reconciled.meanings` of the last night."""

    rows: dict[str, Row] = field(default_factory=dict)
    meanings: list[Row] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    acceptances: list[tuple[str, datetime]] = field(default_factory=list)

    def play(self, night: int, asked: Asked) -> None:
        self.acceptances += [(name, at(night)) for name in asked.accepted]
        known = self._assumptions(night)
        answers = {**known, **asked.given}
        decided = [question(one, answers.get(one.question)) for one in asked.evidence]
        is_first = not self.rows
        self.new = []
        for one in decided:
            row = self.rows.setdefault(one.id, dict.fromkeys(COLUMNS) | {"question": one.id})
            if one.is_asked:
                if row["first_run_id"] is None:
                    row |= {"first_run_id": run_id(night), "first_seen_at": at(night)}
                    self.new += [one.id] * (not is_first)
                row |= {"last_run_id": run_id(night), "last_seen_at": at(night)}
            _remember(row, _assumption(one, known.get(one.id), at(night)))
        for name, answer in known.items():
            if name not in {one.id for one in decided}:
                _remember(self.rows[name], answer)
        self.meanings = [
            {"question": one.id, "state": one.state, "value": one.value, "reason": one.reason,
             "evidence": msgspec.json.encode(one.evidence).decode()}
            for one in decided
        ]  # fmt: skip

    def _assumptions(self, night: int) -> dict[str, Answer]:
        """Those in force, but of fields whose change was accepted; after a new version any proposal may be another."""
        last = night - 1 - (night - 1 == ONLY_PULLED)
        is_new_version = night > 1 and versions(last) != __version__
        contradicted = [one["question"] for one in self.meanings if one["state"] == "contradicted"]
        found: dict[str, Answer] = {}
        for name, row in self.rows.items():
            if row["assumption"] is None:
                continue
            share = None if row["fits"] is None else Share(row["fits"], row["rows"])
            answer = Answer(
                row["assumption"],
                "assumption",
                row["since"],
                share=share,
                about=row["about"],
                rival=row["rival"],
            )
            is_kept = not is_new_version or name in contradicted
            found[name] = answer if is_kept else replace(answer, rival="*")
        changed = {
            of for of, when in self.acceptances if FIELDS[of] in found and when > self.rows[FIELDS[of]]["since"]
        }  # fmt: skip
        gone = {FIELDS[one] for one in changed} | {
            name for name, of in DEPENDENT.items() if of in changed
        }
        return {name: answer for name, answer in found.items() if name not in gone}


COLUMNS = (
    "question", "assumption", "since", "fits", "rows", "about", "rival", "first_run_id", "first_seen_at", "last_run_id",
    "last_seen_at",
)  # fmt: skip


def _assumption(decided: Question, known: Answer | None, now: datetime) -> Answer | None:
    evidence = decided.evidence
    if evidence.question in TABLES:
        if not evidence.assumed_rows:
            return None
        is_same = known is not None and known.about == evidence.about
        kept = (
            known
            if known is not None and is_same
            else Answer("", "assumption", now, about=evidence.about)
        )
        return replace(kept, value=evidence.assumed_rows)
    if known is not None and known.about in ("", evidence.about):
        if known.rival != "*":
            return known
        other = evidence.proposal or evidence.dispute
        return replace(known, rival=other if other != known.value else "")
    if decided.value is None or decided.state == "answered":
        return None
    share = next((one.share for one in evidence.choices if one.value == decided.value), None)
    return Answer(decided.value, "assumption", now, share=share, about=evidence.about)


def _remember(row: Row, answer: Answer | None) -> None:
    of_assumption = ("assumption", "since", "fits", "rows", "about", "rival")
    row |= dict.fromkeys(of_assumption)
    if answer is not None:
        row |= {
            "assumption": answer.value,
            "since": answer.at,
            "about": answer.about,
            "rival": answer.rival,
        }
        if answer.share is not None:
            row |= {"fits": answer.share.hits, "rows": answer.share.rows}


def found_rows(build: duckdb.DuckDBPyConnection, table: str) -> list[Row]:
    found = build.sql(f"FROM {table} ORDER BY ALL")
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


@pytest.fixture
def build() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute("SET TimeZone = 'UTC'; CREATE SCHEMA reconciled")
        ops.create_missing(made)
        prepare_findings(made)
        yield made


def record_run(
    build: duckdb.DuckDBPyConnection, night: int, *entities: str, answers: str = ""
) -> None:
    ops.insert(build, "runs", run_id=run_id(night), version=versions(night), answers_hash=answers)
    for entity in entities:
        ops.record_totals(build, run_id(night), entity, {"raw": night})


def test_what_is_remembered_of_questions_is_what_plain_python_finds(
    build: duckdb.DuckDBPyConnection,
) -> None:
    memory = Memory()
    entries: list[Acceptance] = []
    for night, asked in enumerate(ASKED, 1):
        if night == ONLY_PULLED:
            record_run(build, night, "orders")
            continue
        entries += [
            Acceptance("orders.field_changed", "ana", at(night), place=name)
            for name in asked.accepted
        ]
        accepted = Accepted(entries, BEGIN + timedelta(days=99))
        run = RunQuestions(build, asked.given, accepted)
        for one in asked.evidence:
            run.add(question(one, run.answers.get(one.question)))
        new = [one.id for one in run.record(build, run_id(night), at(night))]
        record_run(build, night, "reconciled.orders")
        memory.play(night, asked)
        assert found_rows(build, "ops.questions") == sorted(
            memory.rows.values(), key=lambda one: one["question"]
        ), night
        meanings = sorted(memory.meanings, key=lambda one: one["question"])
        assert found_rows(build, "reconciled.meanings") == meanings, night
        assert new == memory.new, night


def test_no_column_of_the_questions_is_constant() -> None:
    memory = Memory()
    rows, meanings = [], []
    for night, asked in enumerate(ASKED, 1):
        if night == ONLY_PULLED:
            continue
        memory.play(night, asked)
        rows += [dict(one) for one in memory.rows.values()]
        meanings += memory.meanings
    for of in (rows, meanings):
        assert [name for name in of[0] if len({one[name] for one in of}) < 2] == []
    assert {one["rival"] for one in rows} > {"", "*", None}
    assert {one["state"] for one in meanings} == {
        "contradicted",
        "open",
        "assumed",
        "answered",
        "proven",
    }


# rules

ALWAYS, MATCH = "reconciled.customers", "reconciled.erp_customers"
RULES = (
    "customers.cut", "orders.cut", "orders.duplicate", "promotions.cut", "orders.form_mixed", "orders.total_in_cents",
    "price_lists.cut", "erp_customers.key_missing", "customers.erp_ambiguous", "erp_customers.match_doubtful",
    "checks.cannot_run",
)  # fmt: skip
OF_MATCH = ("erp_customers.key_missing", "customers.erp_ambiguous", "erp_customers.match_doubtful")
OLD_RULES = ("customers.name_missing", "checks.check_sums", "checks.check_ids")
SINCE_NIGHT = (1, 1, 2, 4, 6, 6, 8, 3, 3, 8, 6)
"""The first night of a version that has the rule."""
HASHES = ("h1", "h1", "h1", "h1", "h1", "h2", "h2", "h2", "h2", "h2", "h1", "h1")


@dataclass(frozen=True)
class Checked:
    """A night: the rules of its version, what is found, each with its severity, and the lists that were made."""

    since: dict[str, str]
    findings: list[tuple[str, str, bool]]
    entities: tuple[str, ...]


def _checked() -> Iterator[Checked]:
    draw = random.Random(4)
    for night in range(1, NIGHTS + 1):
        since = {
            name: "0.4" for name, first in zip(RULES, SINCE_NIGHT, strict=True) if first <= night
        }
        if night >= 8:
            since |= {
                "orders.cut": "0.5",
                "erp_customers.key_missing": "0.5",
                "orders.duplicate": "0.5",
            }
        found = [
            (name, draw.choice(("error", "warning", "info")), draw.random() < 0.6)
            for name in (*RULES, *OLD_RULES)
            for _ in range(draw.choice((0, 0, 1, 2)))
        ]
        entities = (ALWAYS,) + ((MATCH,) if night in (4, 5, 7, 9, 11) else ())
        yield Checked(since, found, entities)


CHECKED = [*_checked()]


def _most_severe(findings: list[tuple[str, str, bool]], name: str) -> str:
    found = {severity for of, severity, _ in findings if of == name}
    return next((one for one in ("error", "warning", "info") if one in found), "")


def rule_nights() -> Iterator[tuple[list[Row], list[tuple[str, str, str]]]]:
    """The rows of `ops.rules` after each night, and the rules whose findings are info."""
    rows: dict[str, Row] = {}
    for night, checked in enumerate(CHECKED, 1):
        before = CHECKED[: night - 1]
        if night == 1 or HASHES[night - 1] != HASHES[night - 2]:
            for row in rows.values():
                row["is_info"] = False
        found = {name for name, _, _ in checked.findings}
        unknown = {
            name: of for name, of in checked.since.items() if rows.get(name, {}).get("since") != of
        }
        if "checks.cannot_run" in unknown:
            own = [name for name in found if name.startswith("checks.check_")]
            unknown |= dict.fromkeys(own, unknown["checks.cannot_run"])
        last = (
            {name for name, _, is_accepted in before[-1].findings if not is_accepted}
            if before
            else set()
        )
        for name, since in unknown.items():
            entity = MATCH if name in OF_MATCH else ALWAYS
            if entity in checked.entities:
                is_known = any(entity in one.entities for one in before)
                is_info = is_known and name in found - last
                rows[name] = {
                    "rule": name,
                    "since": since,
                    "run_id": run_id(night),
                    "is_info": is_info,
                }
        info = [
            (name, _most_severe(checked.findings, name), row["since"])
            for name, row in sorted(rows.items())
            if row["is_info"] and _most_severe(checked.findings, name) in ("error", "warning")
        ]
        yield sorted((dict(one) for one in rows.values()), key=lambda one: str(one["rule"])), info


def test_what_is_remembered_of_rules_is_what_plain_python_finds(
    build: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "_OF_MATCH", set(OF_MATCH))
    columns = ("entity", "rule", "severity", "is_accepted")
    for night, (checked, (rows, info)) in enumerate(zip(CHECKED, rule_nights(), strict=True), 1):
        catalogue = {name: SimpleNamespace(since=of) for name, of in checked.since.items()}
        monkeypatch.setattr(rules, "_WITH_SINCE", catalogue)
        found = [(*name.split("."), *of) for name, *of in checked.findings]
        build.execute("CREATE OR REPLACE TEMP TABLE found AS FROM reconciled.exceptions LIMIT 0")
        for one in found:
            values = ", ".join(f"${number}" for number in range(1, 5))
            build.execute(f"INSERT INTO found ({', '.join(columns)}) VALUES ({values})", one)
        for entity in checked.entities:
            ops.record_totals(build, run_id(night), entity, {"raw": night})
        made = rules.new_rules(build, run_id(night), "found", HASHES[night - 1])
        record_run(build, night, answers=HASHES[night - 1])
        build.execute("CREATE OR REPLACE TABLE reconciled.exceptions AS FROM found")
        assert found_rows(build, "ops.rules") == rows, night
        assert [(one.name, one.severity, one.since) for one in made] == info, night


def test_no_column_of_the_rules_is_constant() -> None:
    nights = [*rule_nights()]
    rows = [one for rows, _ in nights for one in rows]
    assert [name for name in rows[0] if len({one[name] for one in rows}) < 2] == []
    assert len({one for _, info in nights for one in info}) > 3
