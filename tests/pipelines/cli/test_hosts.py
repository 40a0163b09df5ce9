"""Keys of the environment, and hosts that files of a folder name: asked once on a terminal, and one line elsewhere."""

from __future__ import annotations

import os
import sys
from functools import partial

import pytest

from tests.pipelines.bridge import Bridge, Done, command, start

QUESTION = "The files of this folder say where keys from elsewhere go"


def with_host_in_a_file(made: Bridge) -> dict[str, str]:
    """Writes the hosts into the folder, as somebody else who made it; the keys stay in the environment."""
    env = made.environment()
    hosts = {
        section: env.pop(f"SOURCES__{section.upper()}__BASE_URL")
        for section in ("legacy", "public_v1")
    }
    settings = made.folder / ".dlt" / "config.toml"
    settings.parent.mkdir(mode=0o700, exist_ok=True)
    text = "".join(f'[sources.{name}]\nbase_url = "{host}"\n' for name, host in hosts.items())
    settings.write_text(text, "utf-8")
    return env | {"DLT_PROJECT_DIR": str(made.folder)}


def sits(name: str) -> None:
    """Gives the process a terminal to read from."""
    os.dup2(os.open(name, os.O_RDWR), 0)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 # for the process


def at_a_terminal(made: Bridge, line: str, typed: str, env: dict[str, str]) -> Done:
    terminal, keyboard = os.openpty()
    os.write(terminal, typed.encode())
    with start(
        *line.split(),
        env=env,
        cwd=made.folder,
        preexec_fn=partial(sits, os.ttyname(keyboard)),
    ) as process:
        out, err = process.communicate(300)
    os.close(terminal)
    os.close(keyboard)
    return Done(process.wait(60), out, err)


@pytest.mark.parametrize("line", ["check", "pull promotions", "run"])
def test_no_key_is_sent_before_a_person_agreed_to_the_host(fresh: Bridge, line: str) -> None:
    env = with_host_in_a_file(fresh)
    refused = at_a_terminal(fresh, line, "n\n", env)
    assert refused.code == 2, refused.said
    assert QUESTION in refused.said
    for family in ("legacy", "public_v1"):
        key = f"SOURCES__{family.upper()}__API_KEY"
        words = f"sources.{family}.api_key ({key}) goes to {fresh.platform.url} (.dlt/config.toml)"
        assert words in refused.said
    assert not fresh.platform.state.log
    agreed = at_a_terminal(fresh, line, "y\n", env)
    assert agreed.code == 0, agreed.said
    assert fresh.platform.state.log


def test_a_project_that_has_a_warehouse_is_not_asked(published: Bridge) -> None:
    done = at_a_terminal(published, "pull promotions", "", with_host_in_a_file(published))
    assert done.code == 0, done.said
    assert QUESTION not in done.said


def test_without_a_terminal_one_line_says_it_and_the_run_goes_on(fresh: Bridge) -> None:
    env = with_host_in_a_file(fresh)
    done = command("pull", "promotions", env=env, cwd=fresh.folder)
    assert done.code == 0, done.said
    lines = [line for line in done.err.splitlines() if "first request of this project" in line]
    assert len(lines) == 1
    assert f"goes to {fresh.platform.url} (.dlt/config.toml)" in lines[0]


def test_check_says_where_each_key_goes_and_who_set_it(published: Bridge) -> None:
    done = published.command("check")
    host = f"{published.platform.url} (SOURCES__LEGACY__BASE_URL)"
    route = f"sources.legacy.api_key (SOURCES__LEGACY__API_KEY) goes to {host}"
    assert route in done.out
    assert published.platform.legacy_key not in done.said


def test_check_warns_of_a_file_with_a_key_that_others_can_read(published: Bridge) -> None:
    env = published.environment()
    file = published.folder / "key"
    file.write_text(env.pop("SOURCES__LEGACY__API_KEY"))
    env["SOURCES__LEGACY__API_KEY_FILE"] = str(file)
    file.chmod(0o644)
    done = command("check", env=env, cwd=published.folder)
    assert done.code == 0, done.said
    assert f"chmod go-rwx {file}" in done.out
    assert "sources.legacy.api_key (SOURCES__LEGACY__API_KEY_FILE) goes to" in done.out
