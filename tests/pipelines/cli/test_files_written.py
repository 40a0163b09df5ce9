"""Every file that the commands write, under umask 000: its owner, mode, and whether it may hold personal data.

The table is that of SECURITY.md; what is found on disk is compared with it.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.bridge import Bridge, Done, bridge, command, start, wait_for

CHECKOUT = Path(__file__).parents[3]
INPUT = "clientes.csv"
NAME = "Zurita-Personal"
EXAMPLES = {"the file of `--csv`": ("clean.csv",)}


@dataclass(frozen=True)
class Row:
    """A row of the table: patterns of paths below the project, and whether they may hold personal data or keys."""

    patterns: tuple[str, ...]
    is_personal: bool
    has_keys: bool

    def matches(self, path: str) -> bool:
        return any(fnmatch.fnmatchcase(path, re.sub("/$", "*", pattern)) for pattern in self.patterns)


def table() -> list[Row]:
    text = (CHECKOUT / "SECURITY.md").read_text("utf-8").partition("## Files")[2].partition("## ")[0]
    rows = []
    for line in re.findall(r"^\| (?!file|--)(.*) \|$", text, re.M):
        files, _, personal = line.split(" | ")
        patterns = EXAMPLES.get(files) or tuple(re.findall(r"`([^`]+)`", files))
        rows.append(Row(patterns, personal.startswith("yes"), "keys" in personal))
    return rows


@dataclass
class Watched:
    """What was seen on disk, at any moment, below a folder: mode by relative path, and contents."""

    folder: Path
    modes: dict[str, int] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)

    def look(self) -> None:
        found = [Path(folder) / name for folder, folders, files in os.walk(self.folder) for name in (*folders, *files)]
        for path in found:
            name = path.relative_to(self.folder).as_posix()
            try:
                facts = path.lstat()
                content = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
            except FileNotFoundError:  # a file of a command that is running
                continue
            if name not in self.given:
                assert facts.st_uid == os.geteuid(), name
                self.modes[name] = facts.st_mode
                self.contents[name] = content


def open_to_all() -> None:
    os.umask(0)


@dataclass
class Shell:
    """Commands under umask 000 in one project folder."""

    made: Bridge
    project: Path
    watched: Watched

    def run(self, *arguments: str, codes: tuple[int, ...] = (0, 5), **more: str) -> Done:
        done = command(*arguments, env=self.env(**more), cwd=self.project)
        assert done.code in codes, done.said
        self.watched.look()
        return done

    def kill_once(self, pattern: str, *arguments: str) -> None:
        """Kills a command once it has written a file like this."""
        with start(*arguments, env=self.env(), cwd=self.project, preexec_fn=open_to_all) as process:
            wait_for(lambda: any(path.is_file() for path in self.project.glob(pattern)) or process.poll() is not None)
            self.watched.look()
            process.kill()
            process.communicate()
        self.watched.look()

    def env(self, **more: str) -> dict[str, str]:
        return self.made.environment(SOURCES__LEGACY__LOGIN_MODE="email", **more)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Watched, Bridge]]:
    """All commands, run once; ends of runs by a kill among them."""
    tmp = tmp_path_factory.mktemp("files")
    project = tmp / "warehouse"
    with bridge(tmp, latency_ms=20, faults={"deep_row": 1.0}) as made:
        watched = Watched(project, given={INPUT})
        shell = Shell(made, project, watched)
        (project / INPUT).write_text(
            f"erpCode;email;firstName;lastName\nE1;{NAME}1@example.test;Ana;{NAME}\n002;;{NAME};B\n"
        )
        mask = os.umask(0)
        shell.run("init", "--sandbox")
        shell.kill_once(".build-*/**/*", "pull")
        shell.run("pull")
        with start("pull", "promotions", env=shell.env(), cwd=project, preexec_fn=open_to_all) as process:
            while process.poll() is None:
                watched.look()
                time.sleep(0.02)
            process.communicate()
        shell.run("run", codes=(2,), SOURCES__LEGACY__BASE_URL="http://127.0.0.1:1")
        shell.run("reconcile")
        shell.run("schema", "orders", "--write")
        shell.run("accept", "orders.values_gone", "--why", "as agreed")
        shell.run("status")
        shell.run("check")
        shell.run("template", "customers")
        shell.run("preview", INPUT, "--csv", "clean.csv")
        plan = ("plan", "customers", INPUT, "--passwords", "file", "--out", "plan-1")
        shell.run(*plan)
        shell.kill_once(".ledger.sqlite.walk/**/*", "push", "plan-1", "--yes", "--accept-unproven")
        shell.run("push", "plan-1", "--yes", "--accept-unproven")
        shell.run("pull", "customers")
        shell.run("verify", "plan-1")
        shell.run("import", "customers", INPUT, "--passwords", "file", "--yes")
        shell.run("report")
        os.umask(mask)
        yield watched, made


def test_every_file_is_in_the_table_and_private_whatever_the_umask(seen: tuple[Watched, Any]) -> None:
    watched, _ = seen
    rows = table()
    for name, mode in watched.modes.items():
        assert [row for row in rows if row.matches(name)] or stat.S_ISDIR(mode), f"{name} is not in SECURITY.md"
        assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), f"{name} {mode:o}"
        assert not stat.S_ISLNK(mode)


def test_each_row_of_the_table_is_a_file_that_is_written(seen: tuple[Watched, Any]) -> None:
    watched, _ = seen
    elsewhere = (".warehouse.duckdb.copied/", ".warehouse.duckdb.copying/", "orderbridge/", "$TMPDIR/orderbridge-*")
    of_others = ("demo/", ".dlt/reviewed.csv")  # tests of their commands
    transient = (".orderbridge-plan-*/", "plan-*/.result-*/", ".*.new", *elsewhere, *of_others)
    for pattern in [pattern for row in table() for pattern in row.patterns]:
        row = Row((pattern,), is_personal=False, has_keys=False)
        assert pattern in transient or any(map(row.matches, watched.modes)), pattern


def test_files_without_personal_data_and_keys_have_none(seen: tuple[Watched, Bridge]) -> None:
    watched, made = seen
    rows = table()
    people = {str(row["email"]).encode() for row in made.platform.state.records("customers") if row.get("email")}
    people.add(NAME.encode())
    keys = {made.platform.legacy_key.encode(), made.platform.v1_key.encode()}
    assert len(people) > 20
    assert any(person in watched.contents["plan-1/operations.jsonl"] for person in people)
    for name, content in watched.contents.items():
        if not content:
            continue
        row = next(row for row in rows if row.matches(name))
        if not row.is_personal:
            assert not [person for person in people if person in content], name
        if not row.has_keys:
            assert not [key for key in keys if key in content], name
