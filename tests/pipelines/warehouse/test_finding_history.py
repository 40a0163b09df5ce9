"""Findings have a memory: which are new, which are gone, how many each rule has, and what a person decided."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import duckdb
import pytest

from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers.accepted import Acceptance, Accepted
from orderbridge.pipelines.warehouse.finding_history import (
    NewFindings,
    in_words,
    new_findings,
    prepare_findings,
    record_findings,
)
from orderbridge.sources.texts import Texts

START = datetime(2026, 5, 1, 3, tzinfo=UTC)
PHONE, GONE = "customers.phone_without_digits", "orders.values_gone"
Finding = tuple[str, str | None, str]
"""Rule with its table, id of the record, detail."""


class Nights:
    """Runs that reconcile, one a night."""

    def __init__(self, build: duckdb.DuckDBPyConnection) -> None:
        self.build, self.night = build, 0

    def run(
        self,
        *findings: Finding,
        accepted: tuple[Acceptance, ...] = (),
        read: str = "",
        failed: str = "",
    ) -> list[str]:
        """Records the findings of a night, and lists that it read, or could not read. Returns what is new in words."""
        self.night += 1
        at, run = START + timedelta(days=self.night), f"run-{self.night}"
        names = "entity, entity_id, rule, severity, detail"
        self.build.execute(
            f"CREATE OR REPLACE TEMP TABLE found ({names.replace(',', ' VARCHAR,')} VARCHAR)"
        )
        for rule, one, detail in findings:
            entity, _, name = rule.partition(".")
            severity = "error" if rule == GONE else "info"
            self.build.execute(
                "INSERT INTO found VALUES (?, ?, ?, ?, ?)", [entity, one, name, severity, detail]
            )
        for names, is_published in ((read, True), (failed, False)):
            for name in names.split():
                ops.insert(
                    self.build, "coverage", run_id=run, resource=name, published=is_published
                )
        ops.record_totals(self.build, run, "reconciled.customers", {"raw": 1})
        prepare_findings(self.build)
        record_findings(self.build, run, at, "found", Accepted(accepted, at))
        ops.insert(self.build, "runs", run_id=run, ended_at=at)
        return in_words(new_findings(self.build))

    def pull(self, run: str, read: list[str], failed: list[str]) -> None:
        """A run that reconciles nothing."""
        for names, is_published in ((read, True), (failed, False)):
            for name in names:
                ops.insert(
                    self.build, "coverage", run_id=run, resource=name, published=is_published
                )
        ops.insert(self.build, "runs", run_id=run)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.build.execute(sql).fetchall()


@pytest.fixture
def nights() -> Iterator[Nights]:
    with duckdb.connect() as build:
        build.execute("SET TimeZone = 'UTC'; CREATE SCHEMA reconciled")
        ops.create_missing(build)
        yield Nights(build)


def accepted(rule: str, subject: str = "", **rest: Any) -> Acceptance:
    return Acceptance(rule, "ana", START, "agreed", subject, **rest)


def test_what_is_new_is_counted_in_the_language_of_the_reader() -> None:
    new = [NewFindings("warning", "customers", "email_malformed", 2, "")]
    assert in_words(new, Texts("es")) == [
        "nuevo desde la última ejecución: 2 avisos",
        "  warning customers.email_malformed: 2",  # a code, as it is accepted
    ]


def test_a_finding_is_new_once_and_is_kept_with_its_runs_when_it_is_gone(nights: Nights) -> None:
    one, two = (PHONE, "1", ""), (PHONE, "2", "")
    # nothing was before
    assert nights.run(one, (GONE, None, "orders: total: 40 values before")) == []
    # the same but for numbers
    assert nights.run(one, (GONE, None, "orders: total: 41 values before")) == []
    assert nights.run(one, two, (GONE, None, "orders: address1: 9 values before")) == [
        "new since the last run: 1 error, 1 info",
        "  error orders.values_gone: orders: address1: 9 values before",
    ]
    other = nights.run(two, (GONE, None, "orders: address2: 9 values before"))
    assert other[0] == "new since the last run: 1 error", (
        "a number in a field's name makes another finding"
    )
    assert nights.rows(
        "SELECT first_run_id, first_seen_at FROM reconciled.exceptions WHERE entity_id = '2'"
    ) == [("run-3", START + timedelta(days=3))]
    assert nights.run() == []
    gone = "SELECT rule, entity_id, first_run_id, last_run_id, gone_run_id FROM ops.past_findings ORDER BY ALL"
    assert nights.rows(gone) == [
        ("phone_without_digits", "1", "run-1", "run-3", "run-4"),
        ("phone_without_digits", "2", "run-3", "run-4", "run-5"),
        ("values_gone", None, "run-1", "run-2", "run-3"),
        ("values_gone", None, "run-3", "run-3", "run-4"),
        ("values_gone", None, "run-4", "run-4", "run-5"),
    ]
    counts = "SELECT findings, new, gone FROM ops.finding_counts WHERE rule = 'values_gone' ORDER BY run_id"
    assert nights.rows(counts) == [(1, 1, 0), (1, 0, 0), (1, 1, 1), (1, 1, 1), (0, 0, 1)]


def test_what_was_gone_while_a_list_could_not_be_read_is_not_new_when_it_is_back(
    nights: Nights,
) -> None:
    one, two, both = (PHONE, "1", ""), (PHONE, "2", ""), "customers orders"
    nights.run(one, two, read=both)
    nights.run(two, read=both)
    assert nights.run(read="orders", failed="customers") == []
    assert nights.run(failed="customers") == [], "two nights of the outage"
    new = nights.run(one, two, (PHONE, "3", ""), read="customers", failed="orders")
    assert new == ["new since the last run: 2 info"], (
        "what was gone before the outage is new, and what nobody saw"
    )
    assert nights.rows("SELECT first_run_id FROM reconciled.exceptions ORDER BY entity_id") == [
        ("run-5",), ("run-1",), ("run-5",)
    ]  # fmt: skip
    nights.run(one, read="customers")
    assert nights.run(one, two, failed="orders") == ["new since the last run: 1 info"], (
        "another list is still missing"
    )
    nights.run(two, failed="orders")
    nights.run(two, read=both)
    assert nights.run(one, two, read=both) == ["new since the last run: 1 info"], (
        "a night with all lists lacked it"
    )


class PlainMemory:
    """The findings that are there and those that are gone, as plain Python keeps them."""

    def __init__(self) -> None:
        self.there: dict[tuple[str, str], int] = {}
        self.gone: list[tuple[tuple[str, str], int, int]] = []
        """Finding, the first night that had it, and the first one without it."""
        self.night = 0
        self.runs = 0
        self.last_run = 0
        """The number of the last run that reconciled, of all runs."""
        self.run_of: dict[int, int] = {}
        self.reads: dict[str, dict[int, bool]] = {"customers": {}, "orders": {}}
        """By list and run whether it was read; runs that did not try are not there."""

    def pull(self, read: list[str], failed: list[str]) -> None:
        self.runs += 1
        for names, is_read in ((read, True), (failed, False)):
            for name in names:
                self.reads[name][self.runs] = is_read

    def reconcile(self, found: set[tuple[str, str]]) -> None:
        """In the same run as the last pull."""
        self.night += 1
        self.run_of[self.night] = self.runs
        known: dict[tuple[str, str], int] = dict(self.there)
        outage = self._outage()
        for one, first, gone_in in self.gone:
            if outage is not None and self.run_of[gone_in] >= outage:
                known[one] = min(known.get(one, first), first)
        left = [one for one in self.there if one not in found]
        self.gone += [(one, self.there[one], self.night) for one in left]
        self.there = {one: known.get(one, self.night) for one in found}
        self.last_run = self.runs

    def _outage(self) -> int | None:
        """The first run, since the last read that was reconciled, in which a list failed that is back since."""
        failures = []
        for tries in self.reads.values():
            before = {run: is_read for run, is_read in tries.items() if run <= self.last_run}
            is_back = any(is_read for run, is_read in tries.items() if run > self.last_run)
            last = max((run for run, is_read in before.items() if is_read), default=None)
            if is_back and last is not None:
                failures += [run for run in before if run > last]
        return min(failures, default=None)


@pytest.mark.parametrize("seed", range(4))
def test_findings_are_remembered_as_plain_python_remembers_them(nights: Nights, seed: int) -> None:
    """Of two lists, each of which cannot be read now and then; a number in a detail makes no other finding."""
    draw = Random(seed)
    plain = PlainMemory()
    details = {"total": "orders: total", "address": "orders: address"}
    for _ in range(25):
        read = [name for name in plain.reads if draw.random() < 0.6]
        failed = [name for name in plain.reads if name not in read and draw.random() < 0.8]
        found = {(PHONE, key) for key in draw.sample("1234", draw.randrange(5))}
        found |= {(GONE, key) for key in draw.sample(sorted(details), draw.randrange(3))}
        if draw.random() < 0.3:
            nights.pull(f"pull-{plain.runs}", read, failed)
            plain.pull(read, failed)
            continue
        count = draw.randrange(99)
        texts = {key: f"{name}: {count} values, {count + 1} now" for key, name in details.items()}
        rows = [
            (rule, None, texts[key]) if rule == GONE else (rule, key, "") for rule, key in found
        ]
        nights.run(*rows, read=" ".join(read), failed=" ".join(failed))
        plain.pull(read, failed)
        plain.reconcile(found)
        there = nights.rows(
            "SELECT entity || '.' || rule, coalesce(entity_id, detail), first_run_id, first_seen_at"
            " FROM reconciled.exceptions"
        )
        assert sorted(there) == sorted(
            (
                rule,
                texts[key] if rule == GONE else key,
                f"run-{first}",
                START + timedelta(days=first),
            )
            for (rule, key), first in plain.there.items()
        )
    past = nights.rows(
        "SELECT entity || '.' || rule, coalesce(entity_id, detail), first_run_id, last_run_id, gone_run_id"
        " FROM ops.past_findings"
    )
    assert Counter(
        (rule, text.rpartition(": ")[0] or text, *runs) for rule, text, *runs in past
    ) == Counter(
        (rule, details.get(key, key), f"run-{first}", f"run-{night - 1}", f"run-{night}")
        for (rule, key), first, night in plain.gone
    )
    counts = nights.rows(
        "SELECT run_id, entity || '.' || rule, findings, new, gone FROM ops.finding_counts"
        f" WHERE run_id = 'run-{plain.night}'"
    )
    expected: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for (rule, _), first in plain.there.items():
        expected[rule][0] += 1
        expected[rule][1] += first == plain.night
    for (rule, _), _, night in plain.gone:
        expected[rule][2] += night == plain.night
    assert {rule: numbers for _, rule, *numbers in counts} == {
        rule: numbers for rule, numbers in expected.items() if any(numbers)
    }


def test_findings_of_an_earlier_version_are_not_new(nights: Nights) -> None:
    ops.record_totals(nights.build, "run-0", "reconciled.customers", {"raw": 1})
    nights.build.execute("""CREATE TABLE reconciled.exceptions AS SELECT 'customers' AS entity, '1' AS entity_id,
        'phone_without_digits' AS rule, 'info' AS severity, '' AS detail, false AS is_accepted""")
    assert new_findings(nights.build) == []
    assert nights.run((PHONE, "1", "")) == []
    assert nights.rows("SELECT first_run_id FROM reconciled.exceptions") == [(None,)]
    assert nights.run() == []
    assert nights.rows("SELECT first_run_id, last_run_id FROM ops.past_findings") == [
        (None, "run-1")
    ]


def test_an_entry_accepts_what_it_is_about_which_is_counted_and_no_news(nights: Nights) -> None:
    nights.run()
    found = (PHONE, "7", ""), (PHONE, "8", "a (b): c"), (PHONE, "77", "")
    assert nights.run(*found, accepted=(accepted(PHONE, "7"),)) == [
        "new since the last run: 2 info"
    ]
    assert nights.rows("SELECT findings, accepted, new FROM ops.finding_counts") == [(3, 1, 3)]
    for entry, expected in (
        (accepted(PHONE, until=date(2026, 5, 4)), ["7", "77", "8"]),  # the day of this run
        (accepted(PHONE), ["7", "77", "8"]),
        (accepted(PHONE, "7"), ["7"]),
        (accepted(PHONE, "7."), []),
        (accepted(PHONE, "a (b)"), ["8"]),
        (accepted(PHONE, until=date(2026, 5, 1)), []),
        (Acceptance(PHONE, "ana", START + timedelta(days=99), "agreed"), []),
        (accepted(PHONE, up_to=3), ["7", "77", "8"]),
        (accepted(PHONE, up_to=2), []),
        (accepted(PHONE, "7", up_to=1), ["7"]),
        (accepted(PHONE, severity="error"), []),
        (accepted("customers.name_missing"), []),
    ):
        nights.run(*found, accepted=(entry,))
        sql = "SELECT entity_id FROM reconciled.exceptions WHERE is_accepted ORDER BY entity_id"
        assert [one for (one,) in nights.rows(sql)] == expected, entry
    entries = (
        accepted(GONE, severity="info"),
        accepted(GONE, "orders: total", severity="warning"),
        accepted(GONE),
    )
    nights.run((GONE, None, "orders: total: 1"), (GONE, None, "orders: phone: 1"), accepted=entries)
    assert nights.rows("SELECT detail, severity, is_accepted FROM reconciled.exceptions") == [
        ("orders: phone: 1", "info", False),
        ("orders: total: 1", "warning", False),
    ], "it compares with an earlier state"
    for some, is_changed in ((entries[:2], False), (entries, True)):
        known = Accepted(some, START + timedelta(days=1))
        assert known.is_changed(GONE, "orders: total", START - timedelta(days=1)) is is_changed


def test_an_accepted_change_is_that_of_its_own_column() -> None:
    columns = ("orders: total", "orders: total_tax")
    for subject, expected in (
        ("orders: total", columns[:1]), ("orders", columns), ("", columns), ("orders: tot", ()),
        ("orders: total: 3", ()),
    ):  # fmt: skip
        made = Accepted([accepted("orders.form_changed", subject)], START)
        # recorded since: it counts again
        for before, accepts in (
            (timedelta(days=1), expected),
            (timedelta(), ()),
        ):
            found = [
                one
                for one in columns
                if made.is_changed("orders.form_changed", one, START - before)
            ]
            assert tuple(found) == accepts
