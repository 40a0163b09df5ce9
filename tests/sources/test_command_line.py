"""The command that a person typed, as messages repeat it."""

from __future__ import annotations

import pytest

from orderbridge.sources.command_line import (
    complete,
    keep_typed,
    program,
    run_again,
    typed_command,
)
from orderbridge.sources.errors import UsageError

IMPORT = ["import", "customers", "mis clientes.csv"]


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (IMPORT, "orderbridge import customers 'mis clientes.csv' --yes"),
        ([*IMPORT, "--yes", "--json"], "orderbridge import customers 'mis clientes.csv' --yes"),
        (["run", "--log", "json", "--notify=https://host/secret"], "orderbridge run --yes"),
        (["run", "--notify", "https://host/secret"], "orderbridge run --yes"),
        (["import", "customers", "--", "-a.csv"], "orderbridge import customers --yes -- -a.csv"),
        (["--project", "d", "run"], "orderbridge --project d run --yes"),
        ([], "the same command with --yes"),
    ],
)
def test_a_command_is_repeated_without_secrets_and_how_it_prints(
    typed: list[str], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orderbridge.sources.command_line._typed", [])
    keep_typed(typed)
    assert typed_command("--yes") == shown


def test_an_option_takes_the_place_of_the_one_that_was_typed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("orderbridge.sources.command_line._typed", [])
    keep_typed(["--project=d", "import", "customers", "a.csv", "--confirm", "4"])
    assert program() == "orderbridge --project=d"
    command = "orderbridge --project=d import customers a.csv"
    assert typed_command("--confirm", "7") == f"{command} --confirm 7"
    assert typed_command(without="--confirm") == command
    assert run_again() == f"run it again: {command} --confirm 4"


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (["--project", "my shop", "run"], "orderbridge --project 'my shop' pull customers"),
        (["run"], "orderbridge pull customers"),
        ([], "orderbridge pull customers"),
    ],
)
def test_each_command_of_a_text_has_the_project_that_was_typed(
    typed: list[str], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_typed", "_commands"):
        monkeypatch.setattr(f"orderbridge.sources.command_line.{name}", [])
    keep_typed(typed, ["pull", "run"])
    hint = UsageError("not read", "Pull them: orderbridge pull customers").hint
    assert hint == complete(hint) == f"Pull them: {shown}"
    assert complete("another version of orderbridge wrote it") == (
        "another version of orderbridge wrote it"
    )
