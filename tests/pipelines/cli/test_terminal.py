"""Nothing that a terminal, a browser or a spreadsheet would act on is printed or written, whatever comes from outside.

Names of the platform's records, its scopes and messages, headers and cells of ERP files, arguments: all are hostile.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import re
import sys
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orderbridge.pipelines.cli import console
from orderbridge.pipelines.cli.console import Reporter
from orderbridge.pipelines.cli.terminal import (
    Style,
    escape,
    escape_lines,
    print_lines,
    print_result,
    to_json,
)
from orderbridge.pipelines.pull.refused_keys import replace_key
from orderbridge.sandbox.app import Platform
from orderbridge.sandbox.config import SandboxConfig
from orderbridge.sandbox.public_v1 import KEYS, Key
from orderbridge.sources.files.formulas import neutralize
from orderbridge.sources.http.failures import Failure
from orderbridge.sources.http.waiting import WaitNotices
from tests.pipelines.bridge import SMALL, Bridge, Done, bridge
from tests.pipelines.reporting.page import Page

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\u2066\u200f\x7f\x08"
MARKUP = "<script>alert(1)</script>\"><img src=x onerror=alert(1)>' onmouseover='x</style>{{ 7 * 7 }}]]><!--`\\"
CHARACTERS = "\x1b]8;;http://x\x1b\\link\r\n\x00\u2028\u2029\ufeff\U000e0041Peña日本;,|"
FORMULAS = (
    "=cmd|'/c calc'!A1",
    '=HYPERLINK("http://x")',
    "+1+cmd",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "\uff1d1+1",
)
TEXTS = tuple(f"{one}{HOSTILE}{rest}" for one in ("", *FORMULAS) for rest in (MARKUP, CHARACTERS))
TAGS = re.compile(r"<\s*(script|iframe|object|embed|link|base|form|meta http-equiv=.refresh)", re.I)


def is_safe(text: str) -> bool:
    return all(
        char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
        for char in text
    )


@given(st.text(alphabet=st.characters()))
def test_escaped_text_is_safe_and_plain_text_stays_as_it_is(text: str) -> None:
    assert is_safe(escape(text))
    assert is_safe(escape_lines(text))
    assert is_safe(to_json(text))
    assert json.loads(to_json({"a": text})) == {"a": text}
    assert to_json(datetime(2026, 1, 2, tzinfo=UTC)) == '"2026-01-02T00:00:00+00:00"'
    if text.isprintable():
        assert escape(text) == escape_lines(text) == text


def test_no_line_break_starts_a_line_and_json_is_ascii_unless_the_output_is_utf_8(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "iso8859-1"))
    assert to_json("Peña") == '"Pe\\u00f1a"'
    assert escape("a\nb") == "a\\nb"
    assert escape_lines("a\norderbridge: all is well") == "a\n  orderbridge: all is well"


def test_sweeps_and_warnings_are_shown_on_stderr_and_results_on_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "LINE_EVERY_S", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(logging.getLogger("orderbridge"), "handlers", [])  # as before, afterwards
    for style in ("plain", "auto"):
        with Reporter(style) as reporter:
            reporter.progress("customers", 3, 40, 120, 2)
            logging.getLogger("orderbridge.http").warning("the platform asks to wait")
            print_lines("a" * 400)  # which no line of the terminal holds
        out, said = capsys.readouterr()
        assert out == f"{'a' * 400}\n"
        assert all(words in said for words in ("3 pages, pass 2", "the platform asks to wait"))


@pytest.mark.parametrize("style", ["plain", "json"])
def test_commands_of_a_result_have_the_project_that_was_typed(
    style: Style, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("orderbridge.sources.command_line._typed", ["--project", "d", "check"])
    monkeypatch.setattr("orderbridge.sources.command_line._commands", ["check", "init"])
    print_result(
        "check", ["wrong", "each: orderbridge check"], {"hint": replace_key("legacy")}, style
    )
    out = capsys.readouterr().out
    assert "orderbridge --project d check" in out
    assert ("orderbridge --project d init sources.legacy.api_key" in out) == (style == "json")


def test_waits_are_shown_in_every_style_and_with_their_facts_for_machines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(logging.getLogger("orderbridge"), "handlers", [])
    styles: tuple[Style, ...] = ("plain", "auto", "json")
    for style in styles:
        if style == "auto":
            monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
        with Reporter(style):
            notices = WaitNotices("legacy")
            assert notices.waits(Failure(429, "too many requests", status=429), 24.0, 8.0, 600.0)
            assert not notices.waits(Failure(429, "too many requests", status=429), 9.0, 9.0, 600.0)
            notices.answered(62.0)
        said = capsys.readouterr().err
        assert "too many requests (status 429): waiting, next attempt in 24 s" in said
        assert "legacy: answers again after 62 s" in said
    events = [json.loads(line) for line in said.splitlines()]
    assert [event["event"] for event in events] == ["waiting", "waiting"]
    assert (events[0]["status"], events[0]["wait_s"], events[0]["family"]) == (429, 24.0, "legacy")


def poisoned(value: Any, texts: Iterator[str], path: str = "") -> Any:
    """A record whose texts are hostile, except for those that the bridge must recognise."""
    if isinstance(value, dict):
        members = {name: poisoned(member, texts, name) for name, member in value.items()}
        return members if path else {**members, f"x{HOSTILE}": next(texts)}
    if isinstance(value, list):
        return [poisoned(one, texts, path) for one in value]
    is_kept = not isinstance(value, str) or re.search(
        r"id$|at$|date|code|sku|type|status|currency", path, re.I
    )
    return value if is_kept else next(texts)


@pytest.fixture
def poisonous(tmp_path: Path) -> Iterator[Bridge]:
    state, texts = Platform(SandboxConfig(**SMALL)).state, cycle(TEXTS)
    (tmp_path / "records").mkdir()
    for name in ("customers", "promotions", "price_lists", "orders"):
        rows = [poisoned(row, texts) for row in state.records(name)]
        (tmp_path / f"records/{name}.json").write_text(json.dumps(rows))
    with bridge(tmp_path, records=tmp_path / "records") as made:
        yield made


def erp_file(folder: Path) -> str:
    """A file whose name, last column and cells are hostile; its mapping is beside it. Returns its name."""
    unknown = f"=1{HOSTILE}<script>".replace("\x7f", "")
    name = f"{HOSTILE}ñ'.csv".replace("\x08", "")
    columns = ("erpCode", "email", "firstName", "lastName")
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow([*columns, unknown])
        for number, text in enumerate(TEXTS * 2):
            clean = re.sub(r"[\x00\r\n]", "", text)
            writer.writerow(
                [
                    f"E{number}",
                    f"a{number}@example.test" if number % 3 else clean,
                    clean,
                    "B",
                    clean,
                ]
            )
    lines = "".join(f'{column} = "{column}"\n' for column in columns)
    (folder / "erp.toml").write_text(
        f"ignore = [{json.dumps(unknown)}]\n[columns]\n{lines}", "utf-8"
    )
    return name


def test_nothing_hostile_is_raw_in_a_terminal_html_or_csv(
    poisonous: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, folder = poisonous.platform.v1_key, poisonous.folder
    monkeypatch.setitem(KEYS, key, Key(scopes=(*KEYS[key].scopes, f"owned{HOSTILE}")))
    file = erp_file(folder)

    def run(*arguments: str) -> Done:
        done = poisonous.command(*arguments, SOURCES__LEGACY__LOGIN_MODE="email")
        assert done.code != 1, (arguments, done.said)
        assert is_safe(done.said), (arguments, done.said)
        return done

    assert "owned" in run("check").out
    for arguments in (
        ["run"],
        ["preview", file],
        ["preview", file, "--json"],
        ["preview", file, "--csv", "clean.csv"],
        ["template", "customers", "--mapping", "--for", file],
        ["plan", "customers", file, "--out", "plan-0"],
        ["plan", "customers", file, "--log", "json"],
        ["reconcile", "--erp-customers", file],
        ["status"],
        ["status", "--json"],
        ["report"],
    ):
        assert run(*arguments).said
    plan = (
        "plan",
        "customers",
        file,
        "--passwords",
        "file",
        "--mapping",
        "erp.toml",
        "--out",
        "plan-1",
    )
    for line in (plan, ("push", "plan-1", "--yes", "--accept-unproven")):
        done = run(*line)
        assert done.code in (0, 5), done.said
    run("pull")
    run("verify", "plan-1")

    html = (folder / "report.html").read_text("utf-8")
    attributes = [attribute for _, given in Page(html).found for attribute in given.items()]
    assert not TAGS.search(html)
    assert not [name for name, _ in attributes if name.startswith("on")]
    links = [
        value or "" for name, value in attributes if name in ("href", "src", "xlink:href", "action")
    ]
    assert not [link for link in links if not link.startswith(("#", "data:image/"))]
    assert is_safe(html.replace("\r", ""))
    assert "49" not in re.findall(r"\{\{.*?\}\}|49(?= \*)", html)

    cells = 0
    for path in (folder / "plan-1").rglob("*.csv"):
        with path.open(encoding="utf-8-sig", newline="") as lines:
            for row in csv.reader(lines, delimiter="," if path.name == "lines.csv" else ";"):
                cells += len(row)
                assert [cell for cell in row if neutralize(cell) != cell] == [], path.name
    assert cells > 200
