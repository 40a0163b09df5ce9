"""`questions` and `answer`: what is asked, where an answer is kept, and from when it counts."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import duckdb
import pytest

from orderbridge.pipelines.questions.model import Given, GivenAnswer
from orderbridge.pipelines.questions.questions import answer_questions
from orderbridge.pipelines.reconcile.reconcile import reconcile
from orderbridge.sources.disk import write_private
from orderbridge.sources.settings import read_answers, warehouse_path
from orderbridge.sources.settings.setting import SETTINGS as SETTINGS_TABLE
from tests.pipelines.bridge import Bridge, Done, pulled

TOTAL = "reconcile.order_total"
STATUS = "reconcile.order_status"
CURRENCY = "reconcile.order_currency"
STATUSES = "reconcile.order_statuses"
SETTINGS = """
[reconcile]
timezone = "America/Lima"
country = "PE"
[sources.legacy]
login_mode = "email"
"""
GROSS = (
    "ALTER TABLE raw.orders ADD COLUMN IF NOT EXISTS grand_total DECIMAL(38, 9)",
    "UPDATE raw.orders SET grand_total = total * 1.21",
    f"DELETE FROM ops.questions WHERE question = '{TOTAL}'",
)


@pytest.fixture
def gross(tmp_path: Path) -> Iterator[Bridge]:
    """A shop with two totals, reconciled: the lines do not say which one is the revenue."""
    with pulled(tmp_path, reconcile_gross, write_settings) as made:
        yield made


def write_settings(made: Bridge) -> None:
    (made.folder / ".dlt").mkdir()
    (made.folder / ".dlt/config.toml").write_text(SETTINGS, "utf-8")
    os.environ["DLT_PROJECT_DIR"] = str(made.folder)


def reconcile_gross() -> None:
    reconcile()
    change(warehouse_path(), *GROSS)
    reconcile()


def change(file: Path, *sql: str) -> None:
    with duckdb.connect(file) as warehouse:
        for one in sql:
            warehouse.execute(one)


def update(made: Bridge, *sql: str) -> None:
    """Changes the published warehouse, as a pull might."""
    change(made.path, *sql)


def run(made: Bridge, line: str) -> Done:
    return made.command(*shlex.split(line), DLT_PROJECT_DIR=str(made.folder))


def revenue(made: Bridge) -> object:
    return made.one("SELECT sum(total) FROM reconciled.orders")


def test_an_assumption_is_listed_shown_and_confirmed_and_then_nothing_is_asked(
    gross: Bridge,
) -> None:
    listed = run(gross, "questions")
    assert (listed.code, listed.err) == (0, "")
    assert f"assumed       {TOTAL}     total is used" in listed.out
    shown = run(gross, f"questions {TOTAL}").out
    assert "30 of 30 are decimal numbers" in shown
    assert f"to answer: orderbridge answer {TOTAL} grand_total" in shown
    proven = run(gross, f"questions {STATUS}").out
    assert proven.startswith(f"{STATUS}: decided by the values\n")
    before = revenue(gross)
    done = run(gross, "answer --proposed --who maria")
    assert (done.code, done.err) == (0, "")
    stored = read_answers().answers[TOTAL]
    assert (stored.value, stored.by, stored.fits, stored.rows) == ("total", "maria", 30, 30)
    assert run(gross, "questions").out == "nothing is open and nothing is assumed\n"
    reconcile()
    assert revenue(gross) == before


def test_an_answer_counts_from_the_next_run_or_at_once_and_can_be_withdrawn(gross: Bridge) -> None:
    before = revenue(gross)
    assert run(gross, f"answer {TOTAL} grand_total --why 'we report gross'").code == 0
    assert revenue(gross) == before
    assert run(gross, f"answer {TOTAL} grand_total --now").code == 0
    assert revenue(gross) == gross.one("SELECT sum(grand_total) FROM reconciled.orders") != before
    states = f"SELECT state, value FROM reconciled.meanings WHERE question = '{TOTAL}'"
    assert gross.rows(states) == [("answered", "grand_total")]
    assert run(gross, f"answer {TOTAL} --withdraw").code == 0
    assert run(gross, f"answer {TOTAL} --withdraw").code == 2
    reconcile()
    assert gross.rows(states) == [("assumed", "total")], "what was assumed before is used again"
    assert revenue(gross) == before


def test_what_rests_on_an_assumption_carries_a_mark_until_it_is_confirmed(gross: Bridge) -> None:
    def marks() -> list[bool]:
        comment = """
            SELECT comment FROM duckdb_columns()
            WHERE schema_name = 'bi' AND table_name = 'orders' AND column_name = 'total'"""
        assert run(gross, f"report --out {gross.folder / 'report.html'}").code == 0
        page = (gross.folder / "report.html").read_text("utf-8")
        return [
            f"\u2248 assumed, not confirmed: {TOTAL} = total" in str(gross.one(comment)),
            "<h2>Orders of all time \u2248</h2>" in page,
            "which column has the total of an order (total)" in page,
            "\u2248 questions: 2 assumed; see orderbridge questions" in run(gross, "status").out,
        ]

    assert marks() == [True] * 4
    assert run(gross, "answer --proposed --now").code == 0
    assert marks() == [False] * 4
    columns = "SELECT schema_name || '.' || table_name || '.' || column_name FROM duckdb_columns()"
    known = {name for (name,) in gross.rows(columns)}
    held_up = {name for one in SETTINGS_TABLE.values() for name in one.holds_up if "." in name}
    assert held_up - known == set()


def test_single_statuses_are_answered_and_the_others_stay_as_they_are(gross: Bridge) -> None:
    def statuses() -> dict[str, bool | None]:
        return dict(gross.rows("SELECT DISTINCT order_status, is_sale FROM reconciled.orders"))

    def state() -> object:
        return gross.one(f"SELECT state FROM reconciled.meanings WHERE question = '{STATUSES}'")

    status = "['paid', 'pending', '-7', 'cancelled'][id[-1:]::INT % 4 + 1]"
    update(gross, f"UPDATE raw.orders SET status = {status}")
    reconcile()
    assert (state(), statuses()) == (
        "open",
        {"paid": True, "pending": False, "-7": None, "cancelled": False},
    )
    shown = run(gross, f"questions {STATUSES}").out
    assert "not known: -7" in shown
    assert re.search(r"-7 +\d+ orders, [0-9.]+ PEN, not known", shown)
    offered = "-7=sale, -7=open, -7=cancelled, -7=refunded, -7=test; or several"
    assert f"to answer: orderbridge answer {STATUSES} -- VALUE  # one of {offered}" in shown
    assert re.search(r"pending=open +\d+ orders, [0-9.]+ PEN, used now", shown)
    assert run(gross, f"answer {STATUSES} -- -7=sale").code == 0
    assert run(gross, f"answer {STATUSES} PENDING=sale --now").code == 0
    assert (state(), statuses()) == (
        "assumed",
        {"paid": True, "pending": True, "-7": True, "cancelled": False},
    )
    assert "-7=sale" in str(read_answers().answers[STATUSES].value)
    assert run(gross, "answer --proposed --now").code == 0
    assert (state(), statuses()["pending"]) == ("answered", True)
    assert run(gross, f"answer {STATUSES} -- -7=sold").code == 2
    assert "no order has penidng" in run(gross, f"answer {STATUSES} penidng=open").err
    assert run(gross, f"answer {STATUSES} --withdraw --now").code == 0
    assert (state(), statuses()["pending"], statuses()["-7"]) == ("open", False, None)


def test_two_answers_at_the_same_time_are_both_kept(
    gross: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DLT_PROJECT_DIR", str(gross.folder))
    others: list[Thread] = []

    def answer(question: str, value: str) -> None:
        given = Given(by="ana", at=datetime(2026, 12, 1, tzinfo=UTC))
        answer_questions([GivenAnswer(question=question, value=value)], given)

    def write_late(path: Path, content: bytes) -> None:
        if not others:
            others.append(Thread(target=answer, args=("reconcile.country", "ES")))
            others[0].start()
            others[0].join(0.5)
        write_private(path, content)

    monkeypatch.setattr("orderbridge.sources.settings.answers.write_private", write_late)
    answer("reconcile.timezone", "Europe/Madrid")
    others[0].join()
    assert {"reconcile.country", "reconcile.timezone"} <= read_answers().answers.keys()


def test_an_answer_that_a_setting_overrides_is_named(gross: Bridge) -> None:
    line = shlex.split(f"answer {TOTAL} grand_total")
    done = gross.command(*line, DLT_PROJECT_DIR=str(gross.folder), RECONCILE__ORDER_TOTAL="total")
    assert done.code == 0
    note = f"{TOTAL}: the answer grand_total is overridden by RECONCILE__ORDER_TOTAL"
    assert note in done.err


def test_a_setting_that_counts_before_an_answer_is_named_before_it_is_given(gross: Bridge) -> None:
    (gross.folder / ".dlt").mkdir(mode=0o700, exist_ok=True)
    config = gross.folder / ".dlt/config.toml"
    config.write_text('[reconcile]\norder_total = "total"\n', "utf-8")
    shown = run(gross, f"questions {TOTAL}").out
    note = "note: .dlt/config.toml sets total, which counts before an answer; to change it there:"
    assert f"{note} orderbridge init {TOTAL}\n" in shown
    config.unlink()
    assert "note:" not in run(gross, f"questions {TOTAL}").out


def test_an_answer_that_is_no_name_of_a_column_is_taken(gross: Bridge) -> None:
    for question, value in ((TOTAL, "sum_of_lines"), (STATUS, "none"), (CURRENCY, "none")):
        done = run(gross, f"answer {question} {value}")
        assert done.code == 0, done.err
        assert read_answers().answers[question].value == value


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"answer {TOTAL} totel", f"Did you mean total? Show the choices with: orderbridge questions {TOTAL}"),
        (f"answer {TOTAL}", f"orderbridge answer {TOTAL} total"),
        ("answer reconcile.order_totel x", f"Did you mean {TOTAL}?"),
        (f"answer {TOTAL}=total", f"The answer is a word of its own: orderbridge answer {TOTAL} total"),
        ("answer reconcile.timezone Mars", "is not a known time zone"),
        ("answer reconcile.country UK", "is not a country with a calling code"),
        ("init reconcile.country=UK", "is not a country with a calling code"),
        ("init reconcile.order_total=nothing", f"orderbridge questions {TOTAL}"),
        ("answer warehouse.path x", "orderbridge init warehouse.path=VALUE"),
        (f"answer {TOTAL} total --until 2999-01-01", "orderbridge answer QUESTION --withdraw"),
        ("answer", "name one QUESTION"),
        (f"answer {TOTAL} --proposed", "name one QUESTION"),
        ("questions nothing.like.it", "`orderbridge questions` lists all of them"),
    ],
)  # fmt: skip
def test_an_answer_that_is_not_possible_ends_with_2_and_a_command(
    gross: Bridge, line: str, words: str
) -> None:
    done = run(gross, line)
    assert (done.code, words in done.err) == (2, True), done.err
    assert read_answers().answers == {}


def test_a_spreadsheet_of_questions_comes_back_with_answers_all_or_none(gross: Bridge) -> None:
    file = gross.folder / "q.csv"
    assert run(gross, f"questions --csv {file}").code == 0
    names, *rows = csv.reader(file.read_text("utf-8-sig").splitlines(), delimiter=";")
    assert names[:3] == ["question", "answer", "why"]
    cells = next(row for row in rows if row[0] == TOTAL)

    def filled(*answers: tuple[str, str]) -> Done:
        lines = [f"{question};{answer};ours" for question, answer in answers]
        file.write_text("\n".join(["question;answer;why", *lines]), "utf-8")
        return run(gross, f"answer --from {file} --who ana")

    assert filled((cells[0], "grand_total"), ("reconcile.country", "Spain")).code == 2
    assert read_answers().answers == {}
    assert (
        filled((cells[0], "grand_total"), ("reconcile.country", ""), (STATUS, "status")).code == 0
    )
    stored = read_answers().answers
    assert {key: (one.value, one.why, one.by) for key, one in stored.items()} == {
        TOTAL: ("grand_total", "ours", "ana"),
        STATUS: ("status", "ours", "ana"),
    }
    assert filled((TOTAL, "total"), (TOTAL, "grand_total")).code == 2


def test_answers_are_read_from_json_and_from_another_project(gross: Bridge, tmp_path: Path) -> None:
    document = json.loads(run(gross, "questions --json").out)
    for one in document["questions"]:
        one["answer"] = "grand_total" if one["id"] == TOTAL else ""
    file = tmp_path / "answers.json"
    file.write_text(json.dumps(document), "utf-8")
    assert run(gross, f"answer --from {file}").code == 0
    assert read_answers().answers[TOTAL].value == "grand_total"
    kept = gross.folder / ".dlt/answers.toml"
    sandbox = tmp_path / "sandbox.toml"
    sandbox.write_text(kept.read_text("utf-8").replace('value = "grand_', 'value = "'), "utf-8")
    assert run(gross, f"answer --from {sandbox} --who eva").code == 0
    assert (read_answers().answers[TOTAL].value, read_answers().answers[TOTAL].by) == (
        "total",
        "eva",
    )
    mistyped = run(gross, "answer --from answer.toml")
    assert (mistyped.code, "answer.toml cannot be read: No such file" in mistyped.said) == (2, True)


def test_answers_of_a_sandbox_are_assumptions_in_production_until_confirmed(
    gross: Bridge,
) -> None:
    assert run(gross, f"answer {TOTAL} grand_total").code == 0
    file = gross.folder / ".dlt/answers.toml"
    text = file.read_text("utf-8")
    file.write_text(text.replace('environment = "sandbox"', 'environment = "production"'), "utf-8")
    reconcile()
    states = f"SELECT state, value FROM reconciled.meanings WHERE question = '{TOTAL}'"
    assert gross.rows(states) == [("assumed", "grand_total")]
    assert file.read_text("utf-8").count("production") == 1, "a run writes no answer"
    assert run(gross, "answer --proposed").code == 0
    assert run(gross, "questions").out == "nothing is open and nothing is assumed\n"
    reconcile()
    assert gross.rows(states) == [("answered", "grand_total")]


@pytest.mark.parametrize(("answer", "column"), [("grand_total", "grand_total"), ("", "total")])
def test_what_is_in_force_survives_thirty_nights_until_evidence_contradicts_it(
    gross: Bridge, answer: str, column: str
) -> None:
    """Each night has a new order, and some have no total; then the new orders of a night have none at all."""
    if answer:  # else the other one is assumed
        assert run(gross, f"answer {TOTAL} {answer}").code == 0
    more = """
        INSERT INTO raw.orders BY NAME SELECT * REPLACE (
            'n' || '{night}-' || id AS id, now() + INTERVAL {night} HOUR AS _first_seen_at, {total} AS {column})
        FROM raw.orders WHERE id NOT LIKE 'n%' LIMIT {orders}"""
    # reconciling thirty times takes a minute; the warehouse of each is the same
    total = f"if(hash(id) % 20 = 0, NULL, {column})"
    for night in (1, 2):
        new = [
            more.format(night=f"{night}{n:02}", total=total, orders=1, column=column)
            for n in range(15)
        ]
        update(gross, *new)
        reconcile()
        found = "SELECT count(*) FROM reconciled.exceptions WHERE rule = 'field_changed'"
        assert gross.one(found) == 0
    update(gross, more.format(night=900, total="NULL", orders=30, column=column))
    for _ in range(2):
        assert reconcile().exit_code == 9
        (detail,) = gross.rows(
            "SELECT detail FROM reconciled.exceptions WHERE rule = 'field_changed'"
        )
        assert (
            " new orders have a value; to answer: orderbridge questions reconcile.order_total"
            in detail[0]
        )
    listed = run(gross, "questions").out
    assert listed.startswith(f"contradicted  {TOTAL}")
