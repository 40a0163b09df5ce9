"""Each outcome has one next step, and every screen, file and message shows the same: the command that was used."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.rules import SETTLE_S
from orderbridge.pipelines.reporting.status import next_steps
from orderbridge.sources.words import format_time
from tests.pipelines.push.plans import WAITS, Place, customer, patch, results, subcategory

CUSTOMERS = "Código;Nombre;Correo\n00001;Ana;ana@example.test\n00002;Eva;eva@example.test\n"
Lose = Callable[[Place], Path]


def repeatable(at: Place) -> Path:
    return at.lost(patch(1, 1))


def asked(at: Place) -> Path:
    return at.lost(subcategory(1))


def waiting(at: Place) -> Path:
    return at.lose(at.plan([customer(1)]), asked=WAITS)


def stopped(at: Place) -> Path:
    return at.stopped(customer(1))


@pytest.mark.parametrize(
    ("lose", "words", "command"),
    [
        (repeatable, "run it again", "orderbridge push plan-0 --yes"),
        (asked, "look on the platform, then answer", "orderbridge questions"),
        (waiting, r"run it again from \S+ \S+ UTC on", "orderbridge push plan-0 --yes"),
        (stopped, "run it again", "orderbridge push plan-0 --yes"),
    ],
)
def test_a_plan_has_the_same_next_step_on_each_screen(
    at: Place, lose: Lose, words: str, command: str
) -> None:
    plan = lose(at)
    at.platform.set_faults({"reset_before": 1.0} if lose is repeatable else {})
    step = f"next: {words}:\n +{command}\n"
    assert re.search(step, at.command("status").out), at.command("status").out
    if lose is not stopped:
        shown = at.command("settle", "--settle", f"{SETTLE_S / 60:g}").out
        assert re.search(f"{words}: {command}\n", shown), shown
        pushed = at.command("push", plan.name, "--yes", "--settle", f"{SETTLE_S / 60:g}")
        assert re.search(step, pushed.out), pushed.out
        of_line = results(plan)["in_doubt"][0]["words"]
        line_command = "orderbridge answer write:" if lose is asked else command
        assert line_command in of_line, of_line


@pytest.mark.parametrize(
    ("lose", "words", "command"),
    [
        (repeatable, "look on the platform, then answer", "orderbridge questions"),
        (asked, "look on the platform, then answer", "orderbridge questions"),
        (waiting, r"look it up from \S+ \S+ UTC on", "orderbridge settle"),
    ],
)
def test_a_plan_whose_folder_is_gone_has_a_next_step_that_ends_it(
    at: Place, lose: Lose, words: str, command: str
) -> None:
    shutil.rmtree(lose(at))
    step = f"next: {words}:\n +{command}\n"
    assert re.search(step, at.command("status").out), at.command("status").out
    shown = at.command("settle", "--settle", f"{SETTLE_S / 60:g}").out
    assert re.search(f"{words}: {command}\n", shown), shown


def test_an_import_goes_on_with_import_on_each_screen_also_after_it_was_killed(at: Place) -> None:
    (at.folder / "clientes.csv").write_text(CUSTOMERS, "utf-8")
    arguments = ("import", "customers", "clientes.csv", "--passwords", "file", "--yes")
    at.platform.set_faults({"lost_answer": 1.0})
    first = at.command(*arguments)
    command = "orderbridge import customers clientes.csv --passwords file"
    assert first.code == 6
    assert f"next: run it again:\n  {command}\n" in first.out
    status = at.command("status").out
    assert f"next: run it again:\n      {command}\n" in status, "the stand-in settles at once"
    (folder,) = at.folder.glob("plan-customers-*")
    assert command in results(folder)["in_doubt"][0]["words"]
    assert "orderbridge push" not in first.said + status
    (folder / "result.xlsx").unlink()  # as if it was killed before
    (folder / ".result.sha256").write_bytes(b"")
    assert command in at.command("status").out
    (at.folder / "clientes.csv").write_text(CUSTOMERS.replace("Ana", "Eva"), "utf-8")
    assert f"orderbridge push {folder.name} --yes" in at.command("status").out, (
        "a file that has changed is planned anew: what is unknown of the old plan is not ended by that"
    )


def test_each_command_that_an_import_shows_can_be_typed_as_it_is(at: Place) -> None:
    (at.folder / "clientes.csv").write_text(f"{CUSTOMERS}00003;Luz;\n", "utf-8")
    shown = ["orderbridge --project . import customers clientes.csv"]

    def next_of(code: int) -> str:
        done = at.command(*shlex.split(shown[-1])[1:])
        assert done.code == code, done.said
        shown.append(re.findall(r"orderbridge --project \. .*", done.said)[-1])
        return shown[-1]

    typed = shown[0]
    assert next_of(2) == f"{typed} --passwords file"
    assert next_of(2) == f"{typed} --passwords file --yes"
    (plan,) = at.folder.glob("plan-customers-*")
    correct = f"orderbridge --project . import customers {plan.name}/result.xlsx"
    assert next_of(5) == correct
    next_of(5)


def test_hints_questions_and_new_findings_name_the_project_that_was_typed(at: Place) -> None:
    (at.folder / "clientes.csv").write_text(CUSTOMERS, "utf-8")
    hint = at.command("--project", ".", "plan", "customers", "clientes.csv", "--passwords", "file")
    assert hint.code == 2
    assert "first: orderbridge --project . pull customers" in hint.err, hint.err
    at.lost(subcategory(1))
    asked = at.command("--project", ".", "questions")
    commands = re.findall(r"orderbridge .*", asked.out)
    assert commands
    assert all(one.startswith("orderbridge --project . ") for one in commands), asked.out
    (name,) = re.findall(r"write:\w+/1", asked.out)[:1]
    shown = at.command("--project", ".", "questions", name)
    assert f"orderbridge --project . answer {name} landed" in shown.out


def test_in_production_an_absent_customer_is_sent_again_by_the_shown_command(
    at: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCES__LEGACY__ENVIRONMENT", "production")
    at.stop_clock()
    plan = at.plan([customer(1)], environment="production")
    agreed = replace(WAITS, confirm=1)
    at.lose(plan, arrives=False, asked=agreed)
    at.now += SETTLE_S + 1
    pushed = at.push(plan, agreed)
    assert pushed.exit_code == 6
    assert set(pushed.actions) == {"resend"}
    words = results(plan)["in_doubt"][0]["words"]
    command = f"orderbridge push {plan} --confirm 1 --resend"
    assert words.endswith(f"not found on the platform; to send it again: {command}"), words


def test_what_another_plan_keeps_waiting_names_the_command_that_ends_that_one(at: Place) -> None:
    at.stop_clock()
    at.lost(subcategory(1))
    second = at.plan([subcategory(1)])
    assert at.code(second) == 5
    words = results(second)["unsent"][0]["words"]
    assert "orderbridge answer write:" in words
    assert words.endswith(f"then run it again: orderbridge push {second} --yes"), words


def test_the_next_step_of_a_plan_counts_from_its_last_doubt(
    at: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has settled, two have not: people are told when the last one has."""
    plan = at.lose(at.plan([customer(1), customer(2), customer(3)]), asked=WAITS)
    monkeypatch.setenv("LEDGER__PATH", str(at.ledger))
    with Ledger.open(at.ledger) as ledger:
        now, wall = ledger.clock.now(), ledger.clock.wall_time
        for number, age_s in ((1, SETTLE_S + 101), (2, 53), (3, 211)):
            with ledger.transaction() as connection:
                ages = "UPDATE operations SET sent_at = ?, doubt_at = ? WHERE id = ?"
                connection.execute(ages, [now - age_s - 5 * SETTLE_S, now - age_s, number])
        (open_plan,) = ledger.open_plans()
        settles_at = wall(now - 53 + SETTLE_S)
    steps = [(one.code, dict(one.values)) for one in next_steps(open_plan)]
    assert steps == [("wait", {"time": format_time(settles_at)}), ("again", {})], plan


def test_the_next_steps_of_a_plan_are_known_without_reading_each_of_its_operations(
    at: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is reloaded while 100,000 lines are sent would wait for it."""
    at.stopped(*(customer(number) for number in range(30)))
    with Ledger.open(at.ledger, readonly=True) as ledger:
        (plan,) = ledger.open_plans()
    monkeypatch.setenv("LEDGER__PATH", str(at.ledger))
    monkeypatch.setattr(PlanLedger, "rows", mock.Mock(side_effect=AssertionError))
    (step,) = next_steps(plan)
    assert step.code == "again"


def test_held_creates_are_found_without_looking_at_the_claims_of_all_others(at: Place) -> None:
    at.stopped(*(customer(number) for number in range(30)))
    with Ledger.open(at.ledger, readonly=True) as ledger:
        (plan,) = ledger.open_plans()
        statements: list[str] = []
        ledger.connection.set_trace_callback(statements.append)
        assert ledger.held_creates(plan.host) == []
        ledger.connection.set_trace_callback(None)
        (sql,) = statements
        ways = [row[3] for row in ledger.connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
    places = [
        next(at for at, way in enumerate(ways) if f" {name}" in way) for name in ("o ", "mine")
    ]
    assert places == sorted(places), ways


def test_operations_in_doubt_are_found_by_their_index(at: Place) -> None:
    at.lost(customer(1))
    with Ledger.open(at.ledger, readonly=True) as ledger:
        statements: list[str] = []
        ledger.connection.set_trace_callback(statements.append)
        (plan,) = PlanLedger.all_unsettled(ledger)
        assert [group.state for group in plan.unsettled_groups()] == ["in_doubt"]
        ledger.connection.set_trace_callback(None)
        for sql in [one for one in statements if "FROM operations" in one]:
            ways = [row[3] for row in ledger.connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
            assert any("USING" in way and "INDEX unended" in way for way in ways), (sql, ways)
