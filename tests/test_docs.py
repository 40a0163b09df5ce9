"""What the documentation says holds: the rules as they are, the commands as they are taken."""

from __future__ import annotations

import re
import runpy
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import click
import pytest

from docs import dictionary
from orderbridge.pipelines.cli.main import orderbridge
from orderbridge.pipelines.imports import inputs as lines
from orderbridge.pipelines.imports import lookups
from orderbridge.pipelines.mapping.cells import WORDS
from orderbridge.pipelines.plan.outcomes import CONFLICTING_LINES
from orderbridge.pipelines.reporting.tables import anchor
from orderbridge.sources import inputs
from orderbridge.sources.files.model import RejectCode
from orderbridge.sources.settings.setting import SETTINGS, variable
from orderbridge.transforms.rules import RULES

CHECKOUT = Path(__file__).parents[1]
PACKAGES = ("sources", "transforms", "pipelines", "sandbox")
generate = SimpleNamespace(**runpy.run_path(str(CHECKOUT / "docs/generate.py")))


def test_generated_pages_are_what_make_docs_writes_and_nothing_is_left_out() -> None:
    pages = dict(generate.pages())
    for name, text in pages.items():
        assert (CHECKOUT / name).read_text("utf-8") == text, f"{name}: run `make docs`"
    sections = re.findall(r'<a id="([a-z-]+)"></a>', pages["docs/rules.md"])
    assert sorted(sections) == sorted(anchor(rule.entity, rule.name) for rule in RULES)
    assert len(set(sections)) == len(sections)
    assert all(
        f"| `{key}` | `{variable(key)}` |" in pages["docs/reference/settings.md"]
        for key in SETTINGS
    )
    commands = re.findall(r"^## `(.*)`$", pages["docs/reference/commands.md"], re.MULTILINE)
    assert commands == sorted(orderbridge.commands)
    for schema, table in dictionary.tables():
        assert f"\n## {schema}.{table}\n" in pages[f"docs/dictionary/{schema}.md"]


def test_pages_of_another_checkout_are_not_written(tmp_path: Path) -> None:
    script = tmp_path / "docs/generate.py"
    script.parent.mkdir()
    script.write_bytes((CHECKOUT / "docs/generate.py").read_bytes())
    with pytest.raises(SystemExit, match=f"PYTHONPATH={tmp_path}"):
        runpy.run_path(str(script), run_name="__main__")


def test_each_code_of_a_rejected_line_is_explained() -> None:
    section = (CHECKOUT / "docs/reference/rejected-lines.md").read_text("utf-8")
    explained = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|(.*?)\|", section, re.M))))
    limits = {code for code, _ in inputs._LIMITS.values()}
    others = {
        lines.SCATTERED[0],
        lines.TORN[0],
        "group_blank",
        "lines_differ",
        "blank",
        "no_key",
        CONFLICTING_LINES,
    }
    assert {*WORDS, *get_args(RejectCode), *lookups.MESSAGES, *limits, *others} - explained == set()


def command_lines() -> Iterator[tuple[str, str]]:
    """Each command line of ours in the documentation, the examples and the help, with its place."""
    pages = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", CHECKOUT / "CHANGELOG.md"]
    pages += [*(CHECKOUT / "docs").rglob("*.md"), *(CHECKOUT / "notebooks").glob("*.ipynb")]
    for page in pages:
        where, text = page.relative_to(CHECKOUT).as_posix(), page.read_text("utf-8")
        blocks = re.findall(r"^ *```\w*\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
        spans = re.findall(
            r"`(orderbridge [^`\n]+)`",
            re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL),
        )
        yield from ((where, line) for line in [*"".join(blocks).splitlines(), *spans])
    for page in sorted((CHECKOUT / "docs/schedules").iterdir()):
        if page.suffix in (".cron", ".service", ".sh", ".yml"):
            lines = page.read_text("utf-8").splitlines()
            yield from ((page.name, line) for line in lines if not line.startswith("#"))
    for name, command in orderbridge.commands.items():
        yield from ((f"{name} --help", line) for line in (command.epilog or "").splitlines())


def documented() -> list[tuple[str, tuple[str, ...]]]:
    """The arguments of each, up to where the shell takes over."""
    ours = re.compile(
        r"(?<!-o )(?<!-u )(?:^|(?<=[\s/=]))orderbridge (?=[a-z])((?:[^;|&>#`\"]|\"[^\"]*\")*)"
    )
    found = {
        (where, words[1])
        for where, line in command_lines()
        for words in ours.finditer(line.split(" #")[0])
    }
    return sorted(
        (where, tuple(shlex.split(re.sub(r" 2$", "", words.rstrip())))) for where, words in found
    )


def test_command_lines_in_the_docs_are_accepted_and_each_command_has_one() -> None:
    group = click.Context(orderbridge, **orderbridge.context_settings)
    written = documented()
    assert {arguments[0] for where, arguments in written if where.endswith(".md")} >= set(
        orderbridge.commands
    )
    for where, (name, *rest) in written:
        assert name in orderbridge.commands, where
        # --records must name a folder that is there; nothing else is looked at
        words = [
            str(CHECKOUT) if before == "--records" else word
            for before, word in pairwise([name, *rest])
        ]
        try:
            orderbridge.commands[name].make_context(name, words, group).close()
        except click.exceptions.Exit:  # --help
            pass
        except click.UsageError as error:
            pytest.fail(f"{where}: {name} {rest}: {error}")


def test_blocks_of_a_step_are_part_of_it_on_the_site() -> None:
    """Its Markdown takes four spaces; after fewer of them the numbers of the steps begin anew."""
    for page in (CHECKOUT / "docs").rglob("*.md"):
        assert not re.search(r"^ {1,3}```", page.read_text("utf-8"), re.MULTILINE), page


def test_files_and_names_that_the_pages_for_contributors_give_exist() -> None:
    pages = (CHECKOUT / "docs/contributing").glob("*.md")
    text = "".join(page.read_text("utf-8") for page in pages)
    named = re.findall(
        r"`([\w./]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    )
    folders = [CHECKOUT / name for name in (*PACKAGES, "tests", "docs")]
    files = [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in (".py", ".toml", ".txt")
    ]
    code = "".join(path.read_text("utf-8") for path in files)
    names = {part.name for path in files for part in (path, *path.relative_to(CHECKOUT).parents)}
    for name in named:
        is_name = "/" not in name and all(part in code for part in name.split("."))
        assert is_name or name in names | {"nav"} or (CHECKOUT / name).exists(), name


def test_every_page_is_in_the_navigation_and_linked_and_every_link_leads_somewhere() -> None:
    docs, linked = CHECKOUT / "docs", set()
    for page in [*CHECKOUT.glob("*.md"), *docs.rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text("utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
                linked.add((page.parent / target).resolve())
    for path in [path for name in PACKAGES for path in (CHECKOUT / name).rglob("*.py")]:
        cited = re.findall(r"\bdocs/[\w./-]+\.md\b", path.read_text("utf-8"))
        assert [page for page in cited if not (CHECKOUT / page).exists()] == [], path
    assert {path for path in docs.rglob("*") if path.is_file() and path.suffix != ".pyc"} <= linked
    listed = re.findall(
        r"^ *- [^:\n]+: (\S+\.md)$", (CHECKOUT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(listed) == sorted(
        page.relative_to(docs).as_posix() for page in docs.rglob("*.md")
    )
