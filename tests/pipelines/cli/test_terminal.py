"""Nothing that a terminal would act on is printed, whatever files, settings, arguments and the platform contain."""

from __future__ import annotations

import json
import logging
import os
import random
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.cli import console
from pipelines.cli.console import STEPS, Reporter
from pipelines.cli.terminal import Style, escape, escape_lines, print_lines, to_json
from sandbox.public_v1 import KEYS, Key
from tests.pipelines.bridge import Bridge, command, pulled

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\u2066\u200f\x7f\x08"


def is_safe(text: str) -> bool:
    return all(char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in text)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    before = dict(os.environ)
    with pulled(tmp_path_factory.mktemp("terminal")) as one:
        yield one
    os.environ.clear()
    os.environ.update(before)


@given(st.text(alphabet=st.characters()))
def test_escaped_text_is_safe_and_plain_text_stays_as_it_is(text: str) -> None:
    assert is_safe(escape(text))
    assert is_safe(escape_lines(text))
    assert is_safe(to_json(text))
    assert json.loads(to_json({"a": text})) == {"a": text}
    if text.isprintable():
        assert escape(text) == escape_lines(text) == text


def test_a_line_break_from_outside_starts_no_line_of_its_own() -> None:
    assert escape("a\nb") == "a\\nb"
    assert escape_lines("a\norderbridge: all is well") == "a\n  orderbridge: all is well"


def test_results_go_to_stdout_while_bars_are_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    with Reporter() as reporter:
        reporter.result("check", "ok    ledger")
        print_lines("a" * 200)
    assert reporter.style == "auto"
    assert capsys.readouterr().out == f"ok    ledger\n{'a' * 200}\n"


@pytest.mark.parametrize("style", ["plain", "json", "auto"])
def test_sweeps_and_steps_are_shown(
    style: Style,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(console, "LINE_EVERY_S", 0.0)
    caplog.set_level("INFO", STEPS)
    if style == "auto":
        monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
        monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(logging.getLogger("orderbridge"), "handlers", [])  # as before, afterwards
    with Reporter(style) as reporter:
        reporter.progress("customers", 3, 40, 120, 2)
        logging.getLogger(STEPS).info("reconciling orders")
        logging.getLogger(STEPS).info("publishing")
        logging.getLogger("orderbridge.pull").info("not for people")
    said = capsys.readouterr().err
    assert "3 pages, sweep 2" in said
    assert "publishing" in said
    assert "not for people" not in said
    assert style == "auto" or "reconciling orders" in said


def run(made: Bridge, *arguments: str, **more: str) -> str:
    """What a command prints, on both streams; it must not be a bug."""
    done = command(*arguments, env=made.environment(**more), cwd=made.folder)
    assert done.code != 1, done.said
    return done.said


def test_headers_and_file_names_are_escaped(made: Bridge) -> None:
    seed = random.randrange(10**6)
    draw = random.Random(seed)
    for _ in range(3):
        name = "".join(draw.sample([*HOSTILE.replace("\x08", ""), "ñ", "'"], 8))
        path = made.folder / f"{name}.csv"
        path.write_bytes(f"Código {HOSTILE};correo;[red]{name}\n1;a@example.com;x\n2;b\n".encode())
        for arguments in (
            ["preview", path.name],
            ["preview", path.name, "--json"],
            ["template", "customers", "--mapping", "--for", path.name],
            ["plan", "customers", path.name],
            ["plan", "customers", path.name, "--log", "json"],
            ["reconcile", "--erp-customers", path.name],
        ):
            text = run(made, *arguments, SOURCES__LEGACY__LOGIN_MODE="email")
            assert text
            assert is_safe(text), (seed, arguments, text)
        path.unlink()


@pytest.mark.parametrize(
    "arguments",
    [
        ["preview", f"none{HOSTILE}.csv"],
        ["pull", f"orders{HOSTILE}"],
        ["push", f"plan{HOSTILE}"],
        ["report", "--out", f"no{HOSTILE}/where.html"],
        ["--project", f"none{HOSTILE}", "status"],
        ["sandbox", "--fault", HOSTILE],
        [HOSTILE],
    ],
    ids=["file", "choice", "plan", "out", "project", "fault", "command"],
)
def test_arguments_are_escaped_in_errors(made: Bridge, arguments: list[str]) -> None:
    text = run(made, *arguments)
    assert text
    assert is_safe(text)


def test_names_in_settings_are_escaped(made: Bridge, tmp_path: Path) -> None:
    (tmp_path / ".dlt").mkdir()
    (tmp_path / ".dlt/config.toml").write_text(f"[sources.legacy]\n{json.dumps('base_url' + HOSTILE)} = 1\n", "utf-8")
    for arguments in (["check"], ["pull", "customers"]):
        text = run(made, "--project", str(tmp_path), *arguments)
        assert "base_url" in text
        assert is_safe(text)


def test_scopes_of_the_platform_are_escaped(made: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    key = made.platform.v1_key
    monkeypatch.setitem(KEYS, key, Key(scopes=(*KEYS[key].scopes, HOSTILE)))
    text = run(made, "check")
    assert "owned" in text
    assert is_safe(text)
