"""The command that a person typed, as messages repeat it."""

from __future__ import annotations

import pytest

from orderbridge.sources.command_line import keep_typed, program, run_again, typed_command

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
