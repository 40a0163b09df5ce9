"""A seeded fuzz of text from outside: escapes, bidi, markup and formulas, raw in no terminal, HTML or CSV.

Names of the platform's records, its scopes and error messages, headers and cells of ERP files: all are hostile.
"""

from __future__ import annotations

import csv
import json
import os
import random
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from sandbox.public_v1 import KEYS, Key
from sources.files.formulas import neutralize
from tests.pipelines.bridge import Bridge, Done, bridge, command
from tests.pipelines.cli.test_terminal import is_safe

SEED = int(os.environ.get("HOSTILE_SEED", "14"))
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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    before = dict(os.environ)
    folder, draw = tmp_path_factory.mktemp("hostile"), random.Random(SEED)
    records = folder / "records"
    records.mkdir()
    with bridge(folder / "first") as first:
        for name in ("customers", "promotions", "price_lists", "orders"):
            rows = [poisoned(draw, row) for row in first.platform.state.records(name)]
            (records / f"{name}.json").write_text(json.dumps(rows))
    with bridge(folder, records=records) as one:
        yield one
    os.environ.clear()
    os.environ.update(before)


def run(made: Bridge, *arguments: str) -> Done:
    done = command(*arguments, env=made.environment(SOURCES__LEGACY__LOGIN_MODE="email"), cwd=made.folder)
    assert done.code != 1, (SEED, arguments, done.said)
    assert is_safe(done.said), (SEED, arguments, done.said)
    return done


class Page(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.attributes: set[str] = set()
        self.addresses: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes |= {name for name, _ in attrs}
        self.addresses |= {value or "" for name, value in attrs if name in ("href", "src", "xlink:href", "action")}


def erp_file(folder: Path, draw: random.Random) -> Path:
    path = folder / "erp.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["erpCode", "email", "firstName", "lastName", hostile(draw).replace("\0", "")])
        for number in range(40):
            name, other = (CLEAN.search(hostile(draw, is_formula=number % 2 == 0)) for _ in range(2))
            email = f"a{number}@example.test" if number % 3 else hostile(draw, is_formula=True).replace("\0", "")
            writer.writerow([f"E{number}", email, name[0] if name else "", "B", other[0] if other else ""])
    return path


def test_nothing_hostile_is_raw_in_a_terminal_html_or_csv(made: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(SEED)
    key = made.platform.v1_key
    monkeypatch.setitem(KEYS, key, Key(scopes=(*KEYS[key].scopes, hostile(draw))))
    file = erp_file(made.folder, draw)
    mapping = made.folder / "erp.toml"
    for arguments in (
        ["check"],
        ["run"],
        ["preview", file.name],
        ["preview", file.name, "--csv", "clean.csv"],
        ["plan", "customers", file.name, "--out", "plan-0"],
        ["reconcile", "--erp-customers", file.name],
        ["status"],
        ["status", "--json"],
        ["report"],
    ):
        run(made, *arguments)
    columns = "".join(f'{name} = "{name}"\n' for name in ("erpCode", "email", "firstName", "lastName"))
    with file.open(encoding="utf-8", newline="") as lines:
        unknown = next(csv.reader(lines, delimiter=";"))[-1]
    mapping.write_text(f"ignore = [{json.dumps(unknown)}]\n[columns]\n{columns}", "utf-8")
    planned = run(
        made, "plan", "customers", file.name, "--passwords", "file", "--mapping", mapping.name, "--out", "plan-1"
    )
    assert planned.code in (0, 5), planned.said
    pushed = run(made, "push", "plan-1", "--yes", "--accept-unproven")
    assert pushed.code in (0, 5), pushed.said
    run(made, "pull")
    run(made, "verify", "plan-1")

    html = (made.folder / "report.html").read_text("utf-8")
    page = Page()
    page.feed(html)
    assert not TAGS.search(html), SEED
    assert not [name for name in page.attributes if name.startswith("on")]
    assert not [address for address in page.addresses if not address.startswith(("#", "data:image/"))]
    assert is_safe(html.replace("\r", "")), SEED
    assert "49" not in re.findall(r"\{\{.*?\}\}|49(?= \*)", html)

    cells = 0
    for path in (made.folder / "plan-1").rglob("*.csv"):
        with path.open(encoding="utf-8-sig", newline="") as lines:
            for row in csv.reader(lines, delimiter="," if path.name == "lines.csv" else ";"):
                cells += len(row)
                assert [cell for cell in row if neutralize(cell) != cell] == [], (SEED, path.name)
    assert cells > 200
