"""`accept`, `review` and `schema`: what a person decides is kept in files of the project."""

from __future__ import annotations

import csv
import json
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from subprocess import TimeoutExpired
from types import SimpleNamespace
from typing import Any

import click
import duckdb
import pytest
from click.testing import CliRunner

from orderbridge.pipelines.cli import push, verify
from orderbridge.pipelines.cli.import_questions import ask
from orderbridge.pipelines.cli.review import _ask
from orderbridge.pipelines.import_file.asking import FileQuestion
from orderbridge.pipelines.push.verify import VerifyResult
from orderbridge.pipelines.questions.pair_groups import PairGroups
from orderbridge.pipelines.questions.pairs import Pairs
from orderbridge.pipelines.reconcile.erp.customers import review_frame
from orderbridge.pipelines.reconcile.reconcile import reconcile
from orderbridge.pipelines.warehouse.answers.accepted import (
    Acceptance,
    accepted_file,
    read_acceptances,
    write_acceptances,
)
from orderbridge.pipelines.warehouse.answers.doubtful_pairs import doubtful_pairs
from orderbridge.pipelines.warehouse.answers.lock import answers_lock
from orderbridge.pipelines.warehouse.answers.reviews import read_reviews, write_reviews
from orderbridge.pipelines.warehouse.raw.field_kinds import declared_file, write_declared
from orderbridge.sources.errors import UsageError
from orderbridge.sources.texts import english
from tests.pipelines.bridge import Bridge, Done, command, start

RULE = "customers.erp_code_duplicate"
PAIRS = """
    CREATE SCHEMA reconciled;
    CREATE TABLE reconciled.customers AS SELECT
        unnest(['1', '2', '3', '123456789012345678']) AS customer_id, 'Núria' AS full_name, NULL AS default_fiscal_name;
    CREATE TABLE reconciled.erp_customers AS SELECT unnest([2, 3, 4, 5]) AS line, '=NURIA()' AS name;
    CREATE TABLE reconciled.erp_pairs AS FROM (VALUES
        (2, '1', 'matched', 'erp_code', 20, 'code 7'), (3, '2', 'matched', 'email', 8, 'code 007'),
        (4, '123456789012345678', 'possible', 'email', 5, 'keys a = b'), (5, '3', 'matched', 'reviewed', 1, 'code 9')
    ) AS t (line, customer_id, status, matched_by, weight, line_key),
    (SELECT 'email' AS agreeing, 'phone' AS differing, 'email: x' AS differences)"""
LISTED = ["keys a = b = 123456789012345678", "code 007 = 2"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".dlt").mkdir(mode=0o700)
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def pairs(project: Path) -> list[dict[str, Any]]:
    """Those of a warehouse in the project."""
    with duckdb.connect(str(project / "warehouse.duckdb")) as warehouse:
        warehouse.execute(PAIRS)
        return doubtful_pairs(warehouse, below=20)


MANY_PAIRS = """
    CREATE SCHEMA reconciled;
    CREATE TABLE reconciled.customers AS
        SELECT range::VARCHAR AS customer_id, 'Ana' AS full_name, NULL AS default_fiscal_name FROM range(40);
    CREATE TABLE reconciled.erp_customers AS SELECT range AS line, 'Ana' AS name FROM range({lines});
    CREATE TABLE reconciled.erp_pairs AS SELECT range AS line, range::VARCHAR AS customer_id,
        if(range % 2 = 0, 'possible', 'suggested') AS status, 'phone' AS matched_by, 6 AS weight,
        'code ' || range AS line_key, 'phone' AS agreeing,
        if(range = 39, 'email', '') AS differing, '' AS differences FROM range(40)"""


def test_a_warehouse_without_a_match_has_no_pairs_to_review(project: Path) -> None:
    duckdb.connect(str(project / "warehouse.duckdb")).close()
    done = run(project, "review")
    assert done.code == 2
    assert "this warehouse has no match with the ERP" in done.err


@pytest.mark.parametrize(("lines", "asked"), [(40, 10), (1_000, 10), (2_499, 24)])
def test_one_pair_of_a_hundred_is_asked_at_least_ten_contradicted_ones_first(
    project: Path, lines: int, asked: int
) -> None:
    with duckdb.connect(str(project / "warehouse.duckdb")) as warehouse:
        warehouse.execute(MANY_PAIRS.format(lines=lines))
        assert len(doubtful_pairs(warehouse, below=10)) == 40
    expected = [f"match:code {line}/{line}" for line in (39, *range(asked - 1))]
    assert [one.id for one in Pairs().asked()] == expected


def test_pairs_that_are_suggested_for_one_reason_are_one_question(project: Path) -> None:
    """Of 20 suggested pairs, ten have name and phone in common, two name and address, and one is decided already."""
    with duckdb.connect(str(project / "warehouse.duckdb")) as warehouse:
        warehouse.execute(MANY_PAIRS.format(lines=4_000))
        warehouse.execute("""UPDATE reconciled.erp_pairs SET matched_by = CASE WHEN line < 20 THEN 'name, phone'
            WHEN line < 24 THEN 'name, fiscal_address' ELSE matched_by END WHERE status = 'suggested'""")
    write_reviews({"code 1 = 1": ("reject", "")}, "ana")
    (group,) = PairGroups().asked()
    assert (group.id, group.reason) == (
        "matches:name+phone",
        "9 pairs have no key in common, but name, phone",
    )
    assert group.examples[0] == "line 3, Ana: Ana"
    singly = {one.id for one in Pairs().asked()}
    assert "match:code 21/21" in singly
    assert not singly & {f"match:code {line}/{line}" for line in range(1, 20, 2)}
    assert run(project, "answer", "matches:name+phone", "some").code == 2
    assert run(project, "answer", "matches:name", "same").code == 2
    assert run(project, "answer", "matches:name+phone", "same", "--why", "seen").code == 0
    decided = {pair: (one.decision, one.why) for pair, one in read_reviews().items()}
    expected = {f"code {line} = {line}": ("accept", "seen") for line in range(3, 20, 2)}
    assert decided == {"code 1 = 1": ("reject", ""), **expected}
    assert PairGroups().asked() == []


def run(project: Path, *arguments: str) -> Done:
    return command(*arguments, env={"DLT_PROJECT_DIR": str(project)}, cwd=project)


def test_what_is_accepted_is_listed_and_can_be_withdrawn(project: Path) -> None:
    def listed() -> list[tuple[str, ...]]:
        names, entries = (
            ("rule", "subject", "who", "why", "until"),
            json.loads(run(project, "accept", "--json").out),
        )
        return [tuple(one[name] for name in names) for one in entries["accepted"]]

    form, file = "orders.form_changed", project / ".dlt/accepted.toml"
    assert run(project, "accept").out == "nothing is accepted\n"
    done = run(
        project,
        "accept",
        RULE,
        "7",
        "8",
        "--who",
        "ana",
        "--why",
        "one firm",
        "--until",
        "2030-01-31",
    )
    assert (done.code, done.out.startswith(f"accepted: {RULE} '7': one firm (ana, ")) == (0, True)
    assert done.err == f"from the next version on: orderbridge answer finding:{RULE}/7 accept\n"
    file.write_text("# agreed with sales\n" + file.read_text("utf-8"), "utf-8")
    assert run(project, "accept", form, "--who", "eva", "--why", "new ERP").code == 0
    entries: list[Any] = [(RULE, subject, "ana", "one firm", "2030-01-31") for subject in "78"]
    entries.append((form, "", "eva", "new ERP", None))
    assert listed() == entries
    assert run(project, "accept", RULE, "7", "--withdraw").out.startswith(
        f"withdrawn: {RULE} '7': one firm (ana, "
    )
    assert file.read_text("utf-8").startswith("# agreed with sales\n"), "a person's comments stay"
    assert run(project, "accept", RULE, "--withdraw").code == 2, "it is accepted of a subject alone"
    assert listed() == entries[1:]
    for more in (
        ("first", "--up-to", "9"),
        ("second", "--up-to", "20"),
        ("third", "--severity", "info"),
    ):
        assert run(project, "accept", RULE, "9", "--who", "ana", "--why", *more).code == 0
    *_, up_to, severity = run(project, "accept").out.splitlines()
    assert (up_to.startswith(f"{RULE} '9': second (ana, "), up_to.endswith(", up to 20)")) == (
        True,
        True,
    )
    assert severity.endswith(", severity info)"), "a severity stands beside an acceptance"


def test_accept_leaves_what_was_answered_about_one_place_and_lists_it(project: Path) -> None:
    assert run(project, "answer", f"finding:{RULE}/7", "accept", "--who", "ana").code == 0
    assert run(project, "accept", RULE, "--who", "eva").code == 0
    listed = run(project, "accept").out.splitlines()
    assert [line.partition(":")[0] for line in listed] == [f"{RULE} '7'", RULE]
    assert run(project, "accept", RULE, "--withdraw").code == 0
    assert [line.partition(":")[0] for line in run(project, "accept").out.splitlines()] == [
        f"{RULE} '7'"
    ]
    assert run(project, "accept", RULE, "7", "--withdraw").code == 0
    assert run(project, "accept").out == "nothing is accepted\n"


def test_a_subject_that_no_finding_has_is_named_and_an_entry_that_ran_out_is_marked(
    project: Path,
) -> None:
    with duckdb.connect(str(project / "warehouse.duckdb")) as warehouse:
        warehouse.execute(
            """CREATE SCHEMA reconciled; CREATE TABLE reconciled.exceptions AS
            SELECT 'customers' AS entity, 'erp_code_duplicate' AS rule, '7' AS entity_id, 'x: y' AS detail"""
        )
    done = run(
        project,
        "accept",
        RULE,
        "7",
        "x",
        "8",
        "--why",
        "x",
        "--who",
        "ana",
        "--until",
        "2999-01-01",
    )
    assert (done.code, done.err) == (
        0,
        f"from the next version on: orderbridge answer finding:{RULE}/7 accept\n"
        f"no finding of the last run is one of {RULE} '8': accepted all the same\n",
    )
    file = project / ".dlt/accepted.toml"
    file.write_text(file.read_text("utf-8").replace("2999-01-01", "2026-01-01", 1), "utf-8")
    assert ["(ran out)" in line for line in run(project, "accept").out.splitlines()] == [
        True,
        False,
        False,
    ]


ACCEPTED = f"[[accepted]]\nrule = '{RULE}'\nwho = 'a'\nwhen = 2026-01-01T00:00:00Z\n"
HEADER = "pair;decision;why\n"


@pytest.mark.parametrize(
    ("name", "content", "line", "words"),
    [
        (
            ".dlt/accepted.toml",
            ACCEPTED.replace(RULE, "no.rule") + "why = 'b'",
            "run",
            "entry 1 of [[accepted]]",
        ),
        (".dlt/accepted.toml", ACCEPTED.replace("who", "w"), "run", "unknown field `w`"),
        (
            "pairs.csv",
            f"{HEADER}code 7 = 1;maybe;\n",
            "review pairs.csv",
            "'maybe' is neither accept nor reject",
        ),
        ("pairs.csv", "pair;decision\ncode 7 = 1;accept\n", "review pairs.csv", "no column why"),
        (
            "pairs.csv",
            f"{HEADER}code 7 = 1;accept;a;b\n",
            "review pairs.csv",
            "pairs.csv, line 2: 4 cells",
        ),
    ],
)
@pytest.mark.usefixtures("pairs")
def test_a_file_that_is_not_understood_ends_a_command_and_changes_nothing(
    project: Path, name: str, content: str, line: str, words: str
) -> None:
    (project / name).write_text(content, "utf-8")
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    done = run(project, *line.split())
    assert (done.code, words in done.err) == (2, True), done.err
    assert {path: path.read_bytes() for path in before} == before
    assert read_reviews() == {}


@pytest.mark.usefixtures("pairs")
def test_a_file_of_pairs_comes_back_from_a_spreadsheet_with_decisions(project: Path) -> None:
    written = run(project, "review").out
    assert written.startswith("\ufeffpair;decision;why;")
    names, *rows = csv.reader(written[1:].splitlines(), delimiter=";")
    assert [row[0] for row in rows] == LISTED, (
        "the most doubtful first, without those that are certain or decided"
    )
    assert "'=NURIA()" in rows[0], "a spreadsheet runs no cell"
    rows[0][1:3], rows[1][1] = ["Sí", "llamé"], "reject"
    with (project / "pairs.csv").open("w", encoding="cp1252", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    done = run(project, "review", "pairs.csv", "--who", "ana", "--why", "by phone")
    assert done.out == "2 pairs decided; the next run with the ERP's file uses them\n", done.err
    kept = read_reviews()
    assert [(one.pair, one.decision, one.who, one.why) for one in kept.values()] == [
        (LISTED[0], "accept", "ana", "llamé"),
        (LISTED[1], "reject", "ana", "by phone"),
    ]
    assert review_frame(kept.values()).to_dict("records") == [
        {"line_key": "keys a = b", "customer_id": "123456789012345678", "is_accepted": True},
        {"line_key": "code 007", "customer_id": "2", "is_accepted": False},
    ]


@pytest.mark.usefixtures("pairs")
def test_pairs_are_questions_answered_one_by_one_or_by_the_spreadsheet_of_before(
    project: Path,
) -> None:
    ids = ["match:keys a = b/123456789012345678", "match:code 007/2"]
    listed = run(project, "questions").out
    assert [line[14:].split("  ")[0] for line in listed.splitlines()[:2]] == ids
    assert not [word for word in ("Núria", "email: x") if word in listed], "no values in a list"
    shown = run(project, "questions", ids[1]).out
    assert ("Núria" in shown, "different (ERP / platform): email: x" in shown) == (True, True)
    assert run(project, "answer", ids[1], "same", "--who", "ana", "--why", "by phone").code == 0
    assert run(project, "answer", ids[1], "perhaps").code == 2
    kept = read_reviews()["code 007 = 2"]
    assert (kept.decision, kept.who, kept.why) == ("accept", "ana", "by phone")
    assert ids[1] not in run(project, "questions").out
    assert run(project, "answer", ids[1], "--withdraw").code == 0
    assert read_reviews() == {}
    names, *rows = csv.reader(run(project, "review").out[1:].splitlines(), delimiter=";")
    rows[0][1], rows[1][1] = "yes", "no"
    with (project / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    assert run(project, "answer", "--from", "pairs.csv", "--who", "eva").code == 0
    decided = [(one.pair, one.decision, one.who) for one in read_reviews().values()]
    assert decided == [(LISTED[0], "accept", "eva"), (LISTED[1], "reject", "eva")]
    assert run(project, "questions").out == "nothing is open and nothing is assumed\n"


def test_a_decision_takes_the_place_of_an_earlier_one_and_the_file_is_private(
    project: Path,
) -> None:
    write_reviews({"code 7 = 1": ("accept", 'one, two, "three", four,\nfive')}, "ana")
    assert [one.why for one in read_reviews().values()] == ['one, two, "three", four,\nfive']
    write_reviews({"code 8 = 2": ("accept", "")}, "ana")
    write_reviews({"code 7 = 1": ("reject", "another branch")}, "eva")
    assert [(one.pair, one.decision, one.who) for one in read_reviews().values()] == [
        ("code 8 = 2", "accept", "ana"),
        ("code 7 = 1", "reject", "eva"),
    ], "in the order of the decisions"
    kept = project / ".dlt/reviewed.csv"
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.write_text("pair;decision;who;when;why\ncode 7 = 1;;ana;2026-01-01;\n", "utf-8")
    with pytest.raises(UsageError, match="'' is neither"):
        read_reviews()


def test_on_a_terminal_each_pair_is_asked_about(pairs: list[dict[str, Any]]) -> None:
    decided: list[Any] = []
    ask = click.Command("ask", callback=lambda: decided.append(_ask(pairs)))
    result = CliRunner().invoke(ask, input="no\n\nq\n")
    assert (result.exit_code, decided) == (0, [{LISTED[0]: "reject"}])
    assert "1 of 2: line 4 (possible, weight 5)" in result.output


@pytest.mark.parametrize(
    ("environment", "typed", "is_agreed"),
    [
        ("sandbox", "Sí", True), ("sandbox", "", False), ("sandbox", "ok", False),
        ("production", "17", True), ("production", "71", False), ("production", "y", False),
    ],
)  # fmt: skip
def test_a_person_agrees_to_a_plan_and_types_the_number_for_production(
    monkeypatch: pytest.MonkeyPatch, environment: str, typed: str, is_agreed: bool
) -> None:
    plan: Any = SimpleNamespace(folder="plan-1", manifest=SimpleNamespace(environment=environment))
    monkeypatch.setattr(
        "orderbridge.pipelines.push.checks.describe_plan", lambda *_: "17 customers"
    )
    monkeypatch.setattr("orderbridge.pipelines.push.checks.operations_left", lambda _: (17, 0))
    answers: list[object] = []
    ask = click.Command("ask", callback=lambda: answers.append(push.agree(plan, ["Ana \x1b[2J"])))
    assert CliRunner().invoke(ask).exit_code == 0
    assert answers == [False], "nobody can be asked"
    monkeypatch.setattr(push, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    result = CliRunner().invoke(ask, input=f"{typed}\n")
    assert "  Ana \\x1b[2J\n17 customers" in result.stderr
    assert (answers[1:], isinstance(result.exception, UsageError)) == (
        [True] * is_agreed,
        not is_agreed,
    )
    assert is_agreed or "send it all the same: the same command" in str(result.exception)


def test_lines_of_totals_and_passwords_are_asked_for() -> None:
    answers: list[object] = []
    totals = FileQuestion(topic="totals", values={"lines": "7, 9"})
    questions = [totals, FileQuestion(topic="passwords")]
    asks = click.Command("ask", callback=lambda: answers.append(ask(questions, english())))
    shown = CliRunner().invoke(asks, input="\nfile\n").stderr
    assert "Lines of totals (7, 9): leave them out? [Y/n]: " in shown
    CliRunner().invoke(asks, input="n\nmail\n")
    assert answers == [
        {"totals": "skip", "passwords": "file"},
        {"totals": "keep", "passwords": "mail"},
    ]


def test_customers_that_an_unproven_list_lacks_may_exist() -> None:
    for verdict, is_doubt in (("unproven", True), ("complete", False)):
        found = VerifyResult(kind="customers", verdict=verdict, outcomes=Counter(missing=1))
        assert (
            any("missing customers may exist" in line for line in verify.lines_of(found))
            is is_doubt
        )


def declare(made: Bridge, lines: str) -> None:
    (made.folder / ".dlt").mkdir(mode=0o700, exist_ok=True)
    (made.folder / ".dlt/orders.toml").write_text(lines, "utf-8")


def test_the_file_shows_decisions_and_what_a_person_declares_in_it_counts(
    reconciled: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = reconciled
    monkeypatch.setenv("DLT_PROJECT_DIR", str(shop.folder))
    write, file, state = (
        ("schema", "orders", "--write"),
        shop.folder / ".dlt/orders.toml",
        shop.platform.state,
    )
    assert shop.command(*write, DLT_PROJECT_DIR=str(shop.folder)).code == 0
    text = file.read_text("utf-8")
    for field, kind, declared in (
        ("number", "bigint", '{ kind = "text", name = "order_number" } # as printed'),
        ("lines", "table", '{ kind = "table", name = "orders__items" }'),
        ("shipping", "object", '"json"'),
        ("total", "decimal", '"bigint"'),
    ):
        assert f'# "{field}" = "{kind}"' in text
        text = text.replace(f'# "{field}" = "{kind}"', f'"{field}" = {declared}')
    file.write_text(text, "utf-8")
    state.change("orders", state.ids("orders")[0], {"total": 12, "brand new": [1.5]})
    shop.pull("orders")
    assert shop.command(*write, DLT_PROJECT_DIR=str(shop.folder)).code == 0
    kept, added = file.read_text("utf-8")[: len(text)], file.read_text("utf-8")[len(text) :]
    assert (kept, added.partition("=")[0].strip()) == (text, '# "brand new"')
    types = "SELECT column_name, data_type FROM duckdb_columns() WHERE schema_name = 'raw' AND table_name = 'orders'"
    orders = dict(shop.rows(types))
    assert (orders["order_number"], orders["total"]) == ("VARCHAR", "BIGINT")
    assert shop.one("SELECT count(number) FROM raw.orders") == 0, (
        "a column stays, for those who have views on it"
    )
    assert shop.one("SELECT count(total) FROM raw.orders") < 30
    assert (
        shop.one(
            "SELECT count(*) FROM raw.orders WHERE total IS NULL AND json_keys(_extra) <> ['total']"
        )
        == 0
    )
    assert shop.one("SELECT count(*) FROM raw.orders__items") == 96
    findings = {finding[:2] for finding in reconcile().findings}
    assert ("orders", "field_changed") in findings, (
        "the lines are in another table now: a person looks"
    )


def test_commands_wait_while_another_one_writes_decisions_and_all_are_kept(
    reconciled: Bridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = reconciled.folder
    monkeypatch.setenv("DLT_PROJECT_DIR", str(folder))
    (folder / ".dlt").mkdir(mode=0o700, exist_ok=True)
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("pair;decision;why\ncode 1 = 1;accept;\n", "utf-8")
    commands = (("accept", RULE, "7"), ("review", str(pairs)), ("schema", "orders", "--write"))
    environment = reconciled.environment(DLT_PROJECT_DIR=str(folder))
    with ExitStack() as started:
        with answers_lock("answer"):
            processes = [
                started.enter_context(start(*words, env=environment, cwd=folder))
                for words in commands
            ]
            for process in processes:
                with pytest.raises(TimeoutExpired):
                    process.wait(1.5)
            at = datetime(2026, 12, 1, tzinfo=UTC)
            write_acceptances(accepted_file(), [Acceptance(RULE, "ana", at, "", "8")])
            write_reviews({"code 2 = 2": ("reject", "")}, "ana")
            write_declared("orders", {'["total"]': "text"}, "ana")
        assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert {one.subject for one in read_acceptances(accepted_file())} == {"7", "8"}
    assert read_reviews().keys() == {"code 1 = 1", "code 2 = 2"}
    declared = declared_file("orders").read_text("utf-8")
    assert 'total = "text" # ana' in declared
    assert '# "number" = "bigint"' in declared
    assert [*(folder / ".dlt").glob("*.lock")] == []


def test_a_line_that_cannot_be_used_ends_a_pull_before_its_first_request(
    fresh: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DLT_PROJECT_DIR", str(fresh.folder))
    for line, words in (
        ('"total" = "money"', "'total': Invalid enum value 'money'"),
        ('"total" = { kind = "text", name = "_extra" }', "'total'"),
        ('customer.id = "text"', "'customer'"),
        ('"id" = "bigint"', "'id': its name or the field is reserved"),
        ('"lines" = { kind = "table", name = "items" }', "begin with orders__"),
    ):
        declare(fresh, line + "\n")
        with pytest.raises(UsageError) as error:
            fresh.pull("orders")
        assert words in error.value.message
    assert fresh.platform.state.requests == 0
    declare(fresh, '"number" = "text"\n')
    assert fresh.code("orders") == 0
    assert fresh.one("SELECT any_value(typeof(number)) FROM raw.orders") == "VARCHAR", (
        "also in the first pull"
    )
