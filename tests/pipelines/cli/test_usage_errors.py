"""Errors of arguments and files end with a command, and that command works."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from orderbridge.sandbox.config import settings
from orderbridge.sources import command_line
from orderbridge.sources.command_line import ending_with_command
from tests.pipelines.bridge import Done, command


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".dlt").mkdir(mode=0o700)
    return tmp_path


def run(project: Path, line: str) -> Done:
    environment = {"DLT_PROJECT_DIR": str(project), "HOME": str(project)}
    for key, value in settings("http://127.0.0.1:9").items():
        environment[key.upper().replace(".", "__")] = value
    return command(*shlex.split(line), env=environment, cwd=project)


def proposed(done: Done) -> str:
    """The command at the end of an error."""
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("orderbridge: ")
    _, colon, line = done.err.rstrip().rpartition(": orderbridge ")
    assert colon, f"there is no command: {done.err}"
    return line


@pytest.mark.parametrize(
    ("line", "said", "next_line"),
    [
        ("statsu --lang es", "No such command 'statsu'.", "status --lang es"),
        ("run --reprot=x.html --verbose", "No such option '--reprot'.", "run --report=x.html --verbose"),
        ("pull order --sweeps 2", "'order' is not one of", "pull orders --sweeps 2"),
        ("plan custmers c.csv", "'custmers' is not one of", "plan customers c.csv"),
        ("frobnicate", "No such command 'frobnicate'.", "--help"),
        ("--frobnicate", "No such option '--frobnicate'.", "--help"),
        ("push", "Missing argument 'PLAN'.\n  Usage: orderbridge push [OPTIONS] PLAN\n", "push --help"),
        ("plan", "Missing argument 'KIND'. Choose from: customers, variants", "plan --help"),
        ("export bi.orders", "Missing option '--out'.", "export --help"),
        ("run extra", "Got unexpected extra argument (extra)", "run --help"),
        ("run --sweeps x", "'x' is not a valid integer.", "run --help"),
        ("status --project d", "--project goes before the command", "--project DIR status"),
        ("--project", "Option '--project' requires an argument.", "--help"),
        ("pull orders --tail --require-complete", "--tail excludes", "pull orders --tail"),
        ("status --max-age nan", "--max-age is not a number of hours", "status --max-age 26"),
        ("accept orders.form_changed --until 2020-01-01", "is past", "accept orders.form_changed --until 20"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_reported_with_the_command_that_is_next(
    project: Path, line: str, said: str, next_line: str
) -> None:
    done = run(project, line)
    assert said in done.err
    assert proposed(done).startswith(next_line)
    if next_line.endswith("--help"):
        assert run(project, proposed(done)).code == 0


def test_the_command_names_the_project_that_was_typed(project: Path) -> None:
    folder = shlex.quote(str(project))
    done = run(project, f"--project {folder} statsu")
    assert done.err.endswith(f": orderbridge --project {folder} status\n")
    done = run(project, f"--project {folder} push")
    assert done.err.endswith(f": orderbridge --project {folder} push --help\n")


def test_a_program_that_reads_json_gets_one_object(project: Path) -> None:
    done = run(project, "status --json --max-age x")
    error = json.loads(done.err)
    assert (done.code, error["event"], error["exit_code"]) == (2, "error", 2)
    assert error["message"].endswith("orderbridge status --help")


def test_a_missing_file_has_the_command_for_the_one_that_is_there(
    project: Path,
) -> None:
    (project / "clientes.csv").write_text("codigo;nombre\n1;Ana\n", "utf-8")
    done = run(project, "preview clintes.csv --rows 1")
    assert proposed(done) == "preview clientes.csv --rows 1"
    assert run(project, proposed(done)).code == 0
    done = run(project, "preview other.csv")
    assert proposed(done) == "preview other.csv"
    (project / "clientes.csv").rename(project / "other.csv")
    assert run(project, proposed(done)).code == 0


@pytest.mark.parametrize(
    ("hint", "ended"),
    [
        ("Fix the line.", "Fix the line, then run it again: orderbridge run -v"),
        ("It is lost. Fix it.", "It is lost. Fix it, then run it again: orderbridge run -v"),
        ("Did you mean a?", "Did you mean a?\n  Then run it again: orderbridge run -v"),
        ("", "Correct it, then run it again: orderbridge run -v"),
        ("Set it: orderbridge init x", "Set it: orderbridge init x"),
        ("Wait, or stop it: kill 12", "Wait, or stop it: kill 12"),
    ],
)
def test_a_hint_without_a_command_ends_with_the_one_that_was_typed(
    monkeypatch: pytest.MonkeyPatch, hint: str, ended: str
) -> None:
    assert ending_with_command(hint) == hint, "in a notebook nothing was typed"
    monkeypatch.setattr(command_line, "_typed", ["run", "--log", "json", "-v"])
    assert ending_with_command(hint) == ended
