"""Nothing that a terminal, a browser or a spreadsheet would act on is printed or written, whatever comes from outside.

Names of the platform's records, its scopes and messages, headers and cells of ERP files, arguments: all are hostile.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import random
import re
import sys
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.cli import console
from pipelines.cli.console import STEPS, Reporter
from pipelines.cli.terminal import Style, escape, escape_lines, print_lines, to_json
from sandbox.app import Platform
from sandbox.config import SandboxConfig
from sandbox.public_v1 import KEYS, Key
from sources.files.formulas import neutralize
from tests.pipelines.bridge import SMALL, Bridge, Done, bridge
from tests.pipelines.reporting.page import Page

SEED = int(os.environ.get("HOSTILE_SEED", "14"))
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\u2066\u200f\x7f\x08"
PIECES = (
    "\x1b]0;owned\x07", "\x1b[2J", "\x9b31m", "\x1b]8;;http://x\x1b\\link", "\r", "\n", "\x08\x08", "\x7f", "\x00",
    "\u202e", "\u2066", "\u200f", "\u2028", "\u2029", "\ufeff", "\U000e0041",
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onmouseover='x", "</style><svg onload=x>",
    "&lt;b&gt;",
    "{{ 7 * 7 }}", "{% raw %}", "javascript:alert(1)", "]]>", "<!--", "${7*7}", "%s%n", "[red]x[/red]", ":smile:",
    "orderbridge: published", "ok    warehouse", "Peña", "日本", "'", '"', ";", ",", "|", "`", "\\",
)  # fmt: skip
FORMULAS = ("=cmd|'/c calc'!A1", '=HYPERLINK("http://x")', "+1+cmd", "-2+3", "@SUM(A1)", "\t=1+1", "\uff1d1+1")
TAGS = re.compile(r"<\s*(script|iframe|object|embed|link|base|form|meta http-equiv=.refresh)", re.I)
CLEAN = re.compile(r"[^\x00\r\n\ud800-\udfff]+")


def is_safe(text: str) -> bool:
    return all(char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in text)


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


@pytest.mark.parametrize("style", ["plain", "auto"])
def test_sweeps_steps_and_warnings_are_shown_on_stderr_and_results_on_stdout(
    style: Style, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
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
        logging.getLogger("orderbridge.http").warning("the platform asks to wait")
        print_lines("a" * 400)  # which no line of the terminal holds
    out, said = capsys.readouterr()
    assert out == f"{'a' * 400}\n"
    for words in ("3 pages, sweep 2", "publishing", "the platform asks to wait"):
        assert words in said
    assert "not for people" not in said
    assert style == "auto" or "reconciling orders" in said


def hostile(draw: random.Random, *, is_formula: bool = False) -> str:
    start = draw.choice(FORMULAS) if is_formula or draw.random() < 0.3 else ""
    return start + "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 5)))


def poisoned(draw: random.Random, value: Any, path: str = "") -> Any:
    """A record whose texts are hostile, except for those that the bridge must recognise."""
    if isinstance(value, dict):
        poisoned_members = {name: poisoned(draw, member, name) for name, member in value.items()}
        return poisoned_members | ({f"x{hostile(draw)}": hostile(draw)} if draw.random() < 0.1 else {})
    if isinstance(value, list):
        return [poisoned(draw, one, path) for one in value]
    is_free = isinstance(value, str) and not re.search(r"id$|at$|date|code|sku|type|status|currency", path, re.I)
    return hostile(draw) if is_free and draw.random() < 0.6 else value


@pytest.fixture
def poisonous(tmp_path: Path) -> Iterator[Bridge]:
    draw, state = random.Random(SEED), Platform(SandboxConfig(**SMALL)).state
    (tmp_path / "records").mkdir()
    for name in ("customers", "promotions", "price_lists", "orders"):
        rows = [poisoned(draw, row) for row in state.records(name)]
        (tmp_path / f"records/{name}.json").write_text(json.dumps(rows))
    with bridge(tmp_path, records=tmp_path / "records") as made:
        yield made


def erp_file(folder: Path, draw: random.Random) -> str:
    """A file whose name, last column and cells are hostile; its mapping is beside it. Returns its name."""
    unknown = hostile(draw).replace("\0", "")
    name = "".join(draw.sample([*HOSTILE.replace("\x08", ""), "ñ", "'"], 8)) + ".csv"
    columns = ("erpCode", "email", "firstName", "lastName")
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow([*columns, unknown])
        for number in range(40):
            first, other = (CLEAN.search(hostile(draw, is_formula=number % 2 == 0)) for _ in range(2))
            email = f"a{number}@example.test" if number % 3 else hostile(draw, is_formula=True).replace("\0", "")
            writer.writerow([f"E{number}", email, first[0] if first else "", "B", other[0] if other else ""])
    with (folder / name).open(encoding="utf-8", newline="") as file:
        read = next(csv.reader(file, delimiter=";"))[-1]
    lines = "".join(f'{column} = "{column}"\n' for column in columns)
    (folder / "erp.toml").write_text(f"ignore = [{json.dumps(read)}]\n[columns]\n{lines}", "utf-8")
    return name


def test_nothing_hostile_is_raw_in_a_terminal_html_or_csv(poisonous: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, key, folder = random.Random(SEED), poisonous.platform.v1_key, poisonous.folder
    monkeypatch.setitem(KEYS, key, Key(scopes=(*KEYS[key].scopes, f"owned{HOSTILE}", hostile(draw))))
    file = erp_file(folder, draw)

    def run(*arguments: str) -> Done:
        done = poisonous.command(*arguments, SOURCES__LEGACY__LOGIN_MODE="email")
        assert done.code != 1, (SEED, arguments, done.said)
        assert is_safe(done.said), (SEED, arguments, done.said)
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
    plan = ("plan", "customers", file, "--passwords", "file", "--mapping", "erp.toml", "--out", "plan-1")
    for line in (plan, ("push", "plan-1", "--yes", "--accept-unproven")):
        done = run(*line)
        assert done.code in (0, 5), done.said
    run("pull")
    run("verify", "plan-1")

    html = (folder / "report.html").read_text("utf-8")
    attributes = [attribute for _, given in Page(html).found for attribute in given.items()]
    assert not TAGS.search(html), SEED
    assert not [name for name, _ in attributes if name.startswith("on")]
    links = [value or "" for name, value in attributes if name in ("href", "src", "xlink:href", "action")]
    assert not [link for link in links if not link.startswith(("#", "data:image/"))]
    assert is_safe(html.replace("\r", "")), SEED
    assert "49" not in re.findall(r"\{\{.*?\}\}|49(?= \*)", html)

    cells = 0
    for path in (folder / "plan-1").rglob("*.csv"):
        with path.open(encoding="utf-8-sig", newline="") as lines:
            for row in csv.reader(lines, delimiter="," if path.name == "lines.csv" else ";"):
                cells += len(row)
                assert [cell for cell in row if neutralize(cell) != cell] == [], (SEED, path.name)
    assert cells > 200
