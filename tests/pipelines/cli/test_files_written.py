"""Every file that the commands write, under umask 000: its owner, mode, and whether it may hold personal data.

The table is that of SECURITY.md; what is found on disk is compared with it.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import stat
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from orderbridge.pipelines.cli.project_files import IGNORED
from tests.access import set_acl
from tests.pipelines.bridge import Bridge, bridge, command, start

CHECKOUT = Path(__file__).parents[3]
INPUT = "clientes.csv"
INPUTS = (INPUT, "precios.sql", "cuentas.csv")
NAME = "Zurita-Personal"
EXAMPLES = {
    "the file of `preview --csv`": ("clean.csv",),
    "the file of `questions --csv`": ("asked.csv",),
    "the file of `export --out`": ("exported.xlsx",),
    "`.orderbridge-writing-*/` beside a workbook": (".orderbridge-writing-*/",),
    "the file of `desk --launcher`": ("shop.desktop",),
    "the file of `--erp-result`": ("comparison.xlsx",),
}


class Row(NamedTuple):
    """A row of the table: patterns of paths below the project, and whether they may hold personal data or keys."""

    patterns: tuple[str, ...]
    is_personal: bool
    has_keys: bool

    def matches(self, path: str) -> bool:
        return any(
            fnmatch.fnmatchcase(path, re.sub("/$", "*", pattern)) for pattern in self.patterns
        )


def table() -> list[Row]:
    text = (
        (CHECKOUT / "SECURITY.md").read_text("utf-8").partition("## Files")[2].partition("## ")[0]
    )
    rows = []
    for line in re.findall(r"^\| (?!file|--)(.*) \|$", text, re.M):
        files, _, personal = line.split(" | ")
        patterns = EXAMPLES.get(files) or tuple(re.findall(r"`([^`]+)`", files))
        rows.append(Row(patterns, personal.startswith("yes"), "keys" in personal))
    return rows


def is_ignored(path: str) -> bool:
    """Whether the project's `.gitignore` has a file, or a folder above it."""
    lines = [line.removesuffix("/") for line in IGNORED]
    parts = path.removesuffix("/").split("/")
    return any(fnmatch.fnmatchcase(name, line) for name in (path, *parts) for line in lines)


class Shell:
    """Commands under umask 000 in one project folder; mode and content of what was seen on disk, by relative path."""

    def __init__(self, made: Bridge) -> None:
        self.made, self.project = made, made.folder
        self.modes, self.contents = dict[str, int](), dict[str, bytes]()

    def look(self) -> None:
        for path in [
            Path(at) / name
            for at, folders, files in os.walk(self.project)
            for name in (*folders, *files)
        ]:
            name = path.relative_to(self.project).as_posix()
            try:
                facts = path.lstat()
                content = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
            except FileNotFoundError:  # a file of a command that is running
                continue
            if name not in INPUTS:
                assert facts.st_uid == os.geteuid(), name
                self.modes[name], self.contents[name] = facts.st_mode, content

    def run(self, line: str, codes: tuple[int, ...] = (0, 5), **more: str) -> None:
        done = self.made.command(*line.split(), SOURCES__LEGACY__LOGIN_MODE="email", **more)
        assert done.code in codes, done.said
        self.look()

    def killed(self, line: str, at: str) -> None:
        """Looks while a command runs, and kills it once it has written such a file."""
        env = self.made.environment(SOURCES__LEGACY__LOGIN_MODE="email")
        with start(
            *line.split(), env=env, cwd=self.project, preexec_fn=partial(os.umask, 0)
        ) as process:
            while process.poll() is None and not fnmatch.filter(self.contents, at):
                self.look()
                time.sleep(0.02)
            process.kill()
            process.communicate()
        self.look()


def test_every_file_is_private_under_any_umask_and_holds_what_the_table_says(
    tmp_path: Path,
) -> None:
    with bridge(tmp_path, latency_ms=20, faults={"deep_row": 1.0}) as made:
        shell, rows = Shell(made), table()
        (shell.project / INPUT).write_text(
            f"erpCode;email;firstName;lastName\nE1;{NAME}1@example.test;Ana;{NAME}\n002;;{NAME};B\n"
        )
        (shell.project / "precios.sql").write_text(
            "SELECT 1 AS productId, 1 AS variantId, 'S' AS sku"
        )
        (shell.project / "cuentas.csv").write_text("Account;Nombre\n1;Ana\n2;Eva\n")
        os.umask(0)
        shell.run("init --sandbox")
        shell.killed("pull", at=".build-*/*")
        shell.run("pull")
        shell.run("run", (2,), SOURCES__LEGACY__BASE_URL="http://127.0.0.1:1")
        for line in (
            "schema orders --write",
            "accept orders.values_gone --why agreed",
            "status",
            "check",
        ):
            shell.run(line)
        comparison = f"reconcile --erp-customers {INPUT} --erp-result comparison.xlsx"
        shell.run(comparison, (0, 5, 9), WAREHOUSE__KEEP="1")
        shell.run(f"preview {INPUT} --csv clean.csv")
        shell.run(f"plan customers {INPUT} --passwords file --out plan-1")
        shell.killed("push plan-1 --yes --accept-unproven", at=".ledger.sqlite.walk/*")
        for line in (
            "push plan-1 --yes --accept-unproven",
            "pull customers",
            "verify plan-1",
            "report",
        ):
            shell.run(line)
        shell.run(f"import customers {INPUT} --passwords file --yes")
        shell.run("import variants precios.sql --sql --yes")
        shell.run("import customers cuentas.csv --passwords file --yes", (2,))
        shell.run("answer reconcile.country ES")
        shell.run("questions --csv asked.csv")
        shell.run("export bi.orders --out exported.xlsx")
        emails = {
            str(row["email"]).encode()
            for row in made.platform.state.records("customers")
            if row.get("email")
        }
        people, keys = (
            {*emails, NAME.encode()},
            {made.platform.legacy_key.encode(), made.platform.v1_key.encode()},
        )
    assert len(people) > 20
    assert any(person in shell.contents["plan-1/operations.jsonl"] for person in people)
    for name, mode in shell.modes.items():
        found = [row for row in rows if row.matches(name)]
        assert found or stat.S_ISDIR(mode), f"{name} is not in SECURITY.md"
        assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), f"{name} {mode:o}"
        assert not stat.S_ISLNK(mode)
        content = shell.contents[name]
        assert (
            not content
            or found[0].is_personal
            or not [person for person in people if person in content]
        ), name
        assert not content or found[0].has_keys or not [key for key in keys if key in content], name
        is_private = found and (found[0].is_personal or found[0].has_keys)
        assert not content or not is_private or is_ignored(name), f"git sees {name}"
    elsewhere = (
        ".warehouse.duckdb.copied/",
        "orderbridge/",
    )
    # tests of their commands
    of_others = (
        "demo/",
        "desk/",
        "shop.desktop",
        "tmp*/",
        ".dlt/reviewed.csv",
        ".lookup-records.json",
        "plan-*/.platform-messages.jsonl",
    )
    transient = (
        ".orderbridge-plan-*/",
        ".orderbridge-writing-*/",
        ".*.new",
        *elsewhere,
        *of_others,
    )
    for pattern in [pattern for row in rows for pattern in row.patterns]:
        row = Row((pattern,), is_personal=False, has_keys=False)
        assert pattern in transient or any(map(row.matches, shell.modes)), (
            f"{pattern} is not written"
        )


def test_no_command_opens_private_files_in_a_folder_that_others_can_write(
    shop: Bridge, tmp_path: Path
) -> None:
    """What another user planted there: a warehouse with a log to replay, a journal of the ledger, links, a plan."""
    shared, secret, rows = tmp_path / "shared", tmp_path / "secret.txt", tmp_path / "c.csv"
    shared.mkdir()
    secret.write_text("mine")
    rows.write_text("erpCode,email,firstName,lastName\nE1,a@b.example,A,B\n")
    shutil.copyfile(shop.path, shared / "w.duckdb")
    for name in ("w.duckdb.wal", "ledger.sqlite-journal", "w.duckdb.failed.json", "plan.json"):
        (shared / name).write_text("{}")
    for name in ("report.html", "clean.csv", ".gitignore"):
        (shared / name).symlink_to(secret)
    shared.chmod(0o777)
    before = {path: (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in shared.iterdir()}
    there = {
        "WAREHOUSE__PATH": str(shared / "w.duckdb"),
        "LEDGER__PATH": str(shared / "ledger.sqlite"),
    }
    private = (
        "pull promotions", "run", "reconcile", "status", "report", "check", "init --sandbox", "push .", "verify .",
        f"plan customers {rows} --passwords file", f"import customers {rows} --passwords file --yes", "settle",
        f"preview {rows} --csv clean.csv", "review", "schema orders",
    )  # fmt: skip
    named = [f"report --out {shared}/a.html", f"run --report {shared}/a.html"]
    named.append(f"reconcile --erp-customers {rows} --erp-result {shared}/a.xlsx")
    for line in (*private, *named):
        given = there if line in private else {}
        project = str(shared if line.startswith("init") else tmp_path)
        env = shop.environment(
            SOURCES__LEGACY__LOGIN_MODE="email", DLT_PROJECT_DIR=project, **given
        )
        done = command(*line.split(), env=env, cwd=shared)
        assert (done.code, f"{shared} can be written by other users" in done.said) == (2, True), (
            line,
            done.said,
        )
        assert "FILES__SHARED_FOLDER" in done.said, line
    assert {
        path: (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in shared.iterdir()
    } == before
    assert secret.read_text() == "mine"


def test_nothing_is_sent_and_no_desk_opens_where_an_acl_lets_others_write(
    published: Bridge, tmp_path: Path
) -> None:
    rows = tmp_path / "c.csv"
    rows.write_text("erpCode,email,firstName,lastName\nE1,a@b.example,A,B\n")
    email = {"SOURCES__LEGACY__LOGIN_MODE": "email"}
    plan = ("plan", "customers", str(rows), "--passwords", "file", "--out", "plan-1")
    assert published.command(*plan, **email).code == 0
    before = len(published.platform.state.log)
    set_acl(published.folder, "user:54321:rwx")
    for line in (
        "push plan-1 --yes --accept-unproven",
        f"import customers {rows} --passwords file --yes",
        "desk --no-browser",
    ):
        done = published.command(*line.split(), **email)
        assert done.code == 2, (line, done.said)
        words = f"orderbridge: {published.folder} can be written by other users (mode 0770, ACL"
        assert words in done.err, (line, done.said)
    assert len(published.platform.state.log) == before
    assert published.command("run", **email).code == 0
