"""`orderbridge accept`: what a person accepts is a file that others can read, and that refuses what is unknown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pipelines.bridge import Done, command

RULE = "customers.erp_code_duplicate"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".dlt").mkdir(mode=0o700)
    return tmp_path


def accept(project: Path, *arguments: str) -> Done:
    return command("accept", *arguments, env={"DLT_PROJECT_DIR": str(project)}, cwd=project)


def test_what_is_accepted_is_listed_and_can_be_withdrawn(project: Path) -> None:
    assert accept(project).out == "nothing is accepted\n"
    done = accept(project, RULE, "7", "8", "--who", "ana", "--why", "one firm", "--until", "2030-01-31")
    assert (done.code, done.err) == (0, "")
    file = project / ".dlt/accepted.toml"
    file.write_text("# agreed with sales\n" + file.read_text("utf-8"), "utf-8")
    assert accept(project, "orders.form_changed", "--who", "eva", "--why", "new ERP").code == 0
    listed = json.loads(accept(project, "--json").out)["accepted"]
    assert [(one["rule"], one["subject"], one["who"], one["why"], one["until"]) for one in listed] == [
        (RULE, "7", "ana", "one firm", "2030-01-31"),
        (RULE, "8", "ana", "one firm", "2030-01-31"),
        ("orders.form_changed", "", "eva", "new ERP", None),
    ]
    assert accept(project, RULE, "7", "--withdraw").out.startswith(f"withdrawn: {RULE} '7': one firm (ana, ")
    assert file.read_text("utf-8").startswith("# agreed with sales\n"), "a person's comments stay"
    assert len(json.loads(accept(project, "--json").out)["accepted"]) == 2
    assert [path.name for path in file.parent.iterdir()] == ["accepted.toml"]
    accept(project, RULE, "8", "--withdraw")
    accept(project, "orders.form_changed", "--withdraw")
    assert accept(project).out == "nothing is accepted\n"
    assert accept(project, RULE, "9", "--who", "ana", "--why", "again").code == 0
    assert accept(project).out.startswith(f"{RULE} '9': again (ana, "), "also after the last one was withdrawn"


def test_accepting_again_takes_the_place_of_the_entry(project: Path) -> None:
    for why in ("first", "second"):
        assert accept(project, RULE, "--who", "ana", "--why", why, "--up-to", "20").code == 0
    assert accept(project, RULE, "--who", "ana", "--why", "third", "--severity", "info").code == 0
    up_to, severity = accept(project).out.splitlines()
    assert up_to.startswith(f"{RULE}: second (ana, ")
    assert up_to.endswith(", up to 20)")
    assert severity.endswith(", severity info)"), "a severity stands beside an acceptance"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([RULE, "--why", "x", "--up-to", "3", "--severity", "info"], "`up_to` cannot be combined"),
        (["orders.form_changed", "--why", "x", "--up-to", "3"], "`up_to` cannot be combined"),
        (["customers.no_rule", "--why", "x"], "there is no rule 'customers.no_rule'"),
        (["match_doubtful", "--why", "x"], "Did you mean erp_customers.match_doubtful?"),
        (["orders.form_chnaged", "--why", "x"], "Did you mean orders.form_changed"),
        ([RULE], "--why is missing"),
        ([RULE, "--why", " "], "must not be empty"),
        ([RULE, "--withdraw"], "nothing of that is accepted"),
        (["--why", "x"], "no RULE is named"),
    ],
)
def test_what_cannot_be_accepted_is_an_error_and_changes_nothing(
    project: Path, arguments: list[str], words: str
) -> None:
    done = accept(project, *arguments)
    assert (done.code, words in done.err) == (2, True), done.err
    assert not (project / ".dlt/accepted.toml").exists()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("rule = 'no.rule'\nwho = 'a'\nwhy = 'b'\nwhen = 2026-01-01", "entry 1 of [[accepted]]"),
        (f"rule = '{RULE}'\nwho = 'a'\nwhen = 2026-01-01T00:00:00Z", "missing required field `why`"),
        (f"rule = '{RULE}'\nwho = 'a'\nwhy = 'b'\nwhen = 2026-01-01T00:00:00Z\nuntill = 2026-02-01", "`untill`"),
    ],
)
def test_a_file_with_a_mistake_ends_a_run_before_it_reads_anything(project: Path, entry: str, words: str) -> None:
    (project / ".dlt/accepted.toml").write_text(f"[[accepted]]\n{entry}\n", "utf-8")
    done = command("run", env={"DLT_PROJECT_DIR": str(project)}, cwd=project)
    assert (done.code, words in done.err) == (2, True), done.err


def test_every_command_names_a_setting_whose_section_is_misspelt(project: Path) -> None:
    for name, setting in (("WAREHOSE__PATH", "WAREHOUSE__PATH"), ("LEDGER_PATH", "LEDGER__PATH")):
        done = command("accept", env={"DLT_PROJECT_DIR": str(project), name: "x"}, cwd=project)
        assert (done.code, done.err) == (0, f"`{name}` is not a setting and is not read. Did you mean `{setting}`?\n")
