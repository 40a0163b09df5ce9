"""Commands that findings and questions propose are complete, work as they are, and mean exactly what they say."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator

import click
import duckdb
import pytest

from orderbridge.pipelines.cli.main import orderbridge
from orderbridge.pipelines.reconcile.reconcile import reconcile
from orderbridge.pipelines.warehouse.answers.accepted import (
    RULE_NAMES,
    accepted_file,
    read_acceptances,
)
from orderbridge.sources.settings.setting import SETTINGS
from orderbridge.transforms.rules import OWN_CHECK, RULES
from tests.pipelines.bridge import Bridge, Done
from tests.test_docs import CHECKOUT, documented

PROPOSED = re.compile(r"`(orderbridge [^`]+)`")
COMMANDS = sorted(
    {
        command
        for rule in RULES
        for text in (rule.meaning, rule.impact, rule.action)
        for command in PROPOSED.findall(text)
    }
)
ERRORS = """
    INSERT INTO reconciled.exceptions BY NAME SELECT 'orders' AS entity, rule, 'error' AS severity, subject,
        subject || ': 3 values in 30 rows' AS detail, false AS is_accepted, 'r' AS first_run_id, now() AS first_seen_at
    FROM (VALUES ('total_notation', 'orders: a'), ('total_notation', 'orders: a: b'), ('total_notation', 'orders'),
        ('total_notation', 'orders: it''s "new" [€]')) AS t (rule, subject)"""


@pytest.fixture
def project(reconciled: Bridge, monkeypatch: pytest.MonkeyPatch) -> Bridge:
    (reconciled.folder / ".dlt").mkdir(exist_ok=True, mode=0o700)
    monkeypatch.setenv("DLT_PROJECT_DIR", str(reconciled.folder))
    return reconciled


def run(made: Bridge, line: str) -> Done:
    name, *arguments = shlex.split(line)
    assert name == "orderbridge"
    return made.command(*arguments, DLT_PROJECT_DIR=str(made.folder))


def test_every_command_that_a_rule_proposes_can_be_copied(project: Bridge) -> None:
    assert len(COMMANDS) > 5
    for line in COMMANDS:
        if re.search(r" [A-Z]{3,}", line):  # the file of the person who reads it
            assert line == "orderbridge preview FILE"
            continue
        done = run(project, line)
        needs_erp = line == "orderbridge review" and "has no match with the ERP" in done.err
        assert done.code == 0 or needs_erp, f"{line}: {done.err}"


def test_every_command_of_a_question_answers_that_question_and_no_other(project: Bridge) -> None:
    with duckdb.connect(project.path) as warehouse:
        warehouse.execute(ERRORS)

    def findings() -> set[str]:
        listed = run(project, "orderbridge questions").out
        return {line.split("  ")[0] for line in listed.splitlines() if "total_notation" in line}

    listed = run(project, "orderbridge questions --json").out
    questions = json.loads(listed)["questions"]
    asked = [one for one in questions if "total_notation" in one["id"]]
    assert len(asked) == 4
    for left, one in zip((3, 2, 1, 0), asked, strict=True):
        shown = run(project, one["command"])
        assert shown.code == 0, shown.err
        commands = [line for line in shown.out.splitlines() if line.startswith("to answer: ")]
        done = run(project, commands[0].removeprefix("to answer: "))
        assert done.code == 0, done.err
        rest = json.loads(run(project, "orderbridge questions --json").out)
        assert len([one for one in rest["questions"] if "total_notation" in one["id"]]) == left
    for one in asked:
        command = f"orderbridge answer {shlex.quote(one['id'])}"
        assert run(project, f"{command} warning --until 2999-01-01").code == 0
        assert run(project, f"{command} accept --up-to 9").code == 0
        assert run(project, f"{command} maybe").code == 2
    places = {entry.place for entry in read_acceptances(accepted_file())}
    assert places == {one["id"].partition("/")[2] for one in asked}
    for one in asked:
        assert run(project, f"orderbridge answer {shlex.quote(one['id'])} --withdraw").code == 0
    assert read_acceptances(accepted_file()) == []


def test_an_acceptance_of_a_place_is_exact_and_those_of_before_keep_their_meaning(
    project: Bridge,
) -> None:
    place = "customers.erp_code_duplicate"
    with duckdb.connect(project.path) as warehouse:
        warehouse.execute("UPDATE raw.customers SET erp_code = 'X' WHERE rowid < 2")
    reconcile()
    (first, *_) = project.rows(
        "SELECT entity_id FROM reconciled.exceptions WHERE rule = 'erp_code_duplicate' ORDER BY 1"
    )
    assert run(project, f"orderbridge answer finding:{place}/{first[0]} accept").code == 0
    assert reconcile().accepted == 1
    assert run(project, f"orderbridge answer finding:{place} accept").code == 0
    assert reconcile().accepted == 2
    assert run(project, "orderbridge answer finding:no.rule accept").code == 2


MESSAGES = [*CHECKOUT.glob("pipelines/**/*.py"), *CHECKOUT.glob("sources/**/*.py")]
END = re.compile(
    r"[`\n;|)]|  | \(|[.,:](?=\s|$)|,? or | says | shows | lists | describes | ends |<|-->"
)
"""Where a command ends within a sentence."""


def texts(tree: ast.AST) -> Iterator[str]:
    """The texts of a module; what is filled in is `•`."""
    parts: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {*node.values}
            yield "".join(
                str(one.value) if isinstance(one, ast.Constant) else "•" for one in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield node.value


def messages() -> Iterator[tuple[str, str]]:
    """Each command of ours in a text of the program, with its place."""
    for file in MESSAGES:
        for text in texts(ast.parse(file.read_text("utf-8"))):
            for found in re.finditer(r"\borderbridge (?=[a-z])", text):
                line = END.split(text[found.end() :], maxsplit=1)[0]
                if line.split(" ")[0] in orderbridge.commands:  # else it is about the program
                    yield file.relative_to(CHECKOUT).as_posix(), line


def is_whole(words: list[str]) -> bool:
    """Whether nothing of a command is filled in, by the program or by the person who reads it."""
    return bool(words) and not any(
        word.isupper() or any(sign in word for sign in ("•", "{", "%s")) for word in words
    )


NEEDS = {
    "answer source accept": "there is no question source",  # this project's source did not change
    "init sources.legacy.api_key": "Run it in a terminal",
    "init sources.public_v1.api_key": "Run it in a terminal",
    "init warehouse.destination": "Run it in a terminal",
    "sandbox --write-settings": "existing settings are not replaced",
}
"""What a command of a message lacks in a project that did not bring about its message."""
WAITS = ("desk", "demo --desk", "sandbox --fault error_503=0.05")
"""Commands that end when a person ends them."""


def test_every_command_of_a_message_runs_as_it_stands(project: Bridge) -> None:
    """Those in which an id is filled in are run by the tests of their questions."""
    lines = {
        line.strip() for _, line in messages() if is_whole(shlex.split(line, comments=True)[1:])
    }
    lines |= {"check", "pull", "questions", "reconcile", "report", "run", "settle", "status"}
    assert lines > NEEDS.keys()
    for line in sorted(lines.difference(WAITS)):
        done = run(project, f"orderbridge {line}")
        if line in NEEDS:
            assert (done.code, NEEDS[line] in done.err) == (2, True), f"{line}: {done.err}"
        else:
            assert done.code == 0, f"{line}: {done.err}"


def test_commands_of_messages_and_pages_can_be_copied_and_their_questions_exist() -> None:
    group = click.Context(orderbridge, **orderbridge.context_settings)
    found = [(where, shlex.split(line, comments=True)) for where, line in messages()]
    whole = [(where, words) for where, words in found if is_whole(words[1:])]
    assert len(whole) > 20
    for where, (name, *words) in whole:
        try:
            orderbridge.commands[name].make_context(name, [*words], group).close()
        except click.exceptions.Exit:  # --help
            pass
        except click.UsageError as error:
            pytest.fail(f"{where}: orderbridge {name} {' '.join(words)}: {error}")
    asked = 0
    for where, (name, *words) in [*whole, *documented()]:
        if name not in ("answer", "questions") or not words:
            continue
        question, *values = words
        if question.startswith("finding:"):
            rule = question.removeprefix("finding:").partition("/")[0]
            assert rule in RULE_NAMES or f".{OWN_CHECK}" in rule, where
        elif re.fullmatch(r"[a-z_0-9]+(\.[a-z_0-9]+)+", question) and not question.endswith("csv"):
            asked += 1
            assert SETTINGS[question].asks, where
            if values and values[0].islower() and not values[0].startswith("--"):
                if values[0].endswith("="):  # takes back the answer for a value of a table
                    assert SETTINGS[question].classes, where
                else:
                    SETTINGS[question].checked(values[0])
    assert asked > 20
