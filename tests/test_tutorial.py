"""The shell blocks of the documentation are executed as they are written, against the sandbox."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import duckdb

from orderbridge.sandbox import SandboxConfig, serve
from tests.pipelines.bridge import command, settings, start, wait_for

CHECKOUT = Path(__file__).parents[1]
BLOCK = re.compile(r"(?:^<!-- ([^>\n]+) -->\n)?^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((CHECKOUT / "docs" / page).read_text("utf-8"))


def environment(folder: Path) -> dict[str, str]:
    """A shell that finds `python`, and nobody's settings."""
    home, path = folder / "home", f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    home.mkdir()
    return {
        "PATH": path,
        "HOME": f"{home}",
        "PYTHONUTF8": "1",
        "DLT_DATA_DIR": f"{home}/dlt",
    }


def follow(page: str, folder: Path, env: dict[str, str]) -> list[str]:
    """What each command of a page prints; each block ends with the exit code of its note."""
    printed = []
    with ExitStack() as background:
        for note, script in blocks(page):
            expected = int(note.removeprefix("ends with ")) if note.startswith("ends with ") else 0
            for other, ours in re.findall(
                r"((?:^(?!orderbridge ).*\n)*)(?:^orderbridge (.*)\n)?", script, re.M
            ):
                if other:
                    subprocess.run(
                        ["bash", "-e", "-c", other],
                        cwd=folder,
                        env=env,
                        check=True,
                        capture_output=True,
                    )
                if ours and note == "in the background":
                    process = background.enter_context(
                        start(*shlex.split(ours), env=env, cwd=folder)
                    )
                    background.callback(process.send_signal, signal.SIGTERM)
                    assert process.stdout.readline().startswith("ready ")
                    wait_for((folder / ".gitignore").exists)
                elif ours:
                    done = command(*shlex.split(ours), env=env, cwd=folder)
                    assert done.code == expected, f"{ours}\n{done.said}"
                    printed.append(done.said)
    return printed


def seen_by_git(folder: Path, env: dict[str, str]) -> list[str]:
    """The files that `git add` would take."""
    subprocess.run(["git", "init", "-q"], cwd=folder, env=env, check=True)
    added = subprocess.run(
        ["git", "add", "-An"], cwd=folder, env=env, check=True, capture_output=True, text=True
    )
    return sorted(re.findall(r"add '(.*)'", added.stdout))


def test_the_tutorial_of_a_night_publishes_asks_and_uses_the_answer(tmp_path: Path) -> None:
    folder, env = tmp_path / "project", environment(tmp_path)
    folder.mkdir()
    checked, _, status, _, questions, *_ = follow("tutorial.md", folder, env)
    assert "wrong" not in checked
    assert status.count(" complete ") == 4
    assert re.search("^assumed +reconcile.timezone +UTC is used", questions, re.M)
    with duckdb.connect(str(folder / "warehouse.duckdb"), read_only=True) as warehouse:
        sql = "SELECT state, value FROM reconciled.meanings WHERE question = 'reconcile.timezone'"
        assert warehouse.sql(sql).fetchall() == [("answered", "Europe/Madrid")]
    if shutil.which("git") is not None:
        assert seen_by_git(folder, env) == [".dlt/answers.toml", ".gitignore"]


def test_the_import_tutorial_creates_each_customer_once_and_git_sees_no_secret(
    tmp_path: Path,
) -> None:
    folder, env = tmp_path / "project", environment(tmp_path)
    folder.mkdir()
    _, _, second, third = follow("tutorial-import.md", folder, env)
    plans = sorted(folder.glob("plan-customers-*"), key=lambda path: path.stat().st_mtime)
    for name, counts in (
        ("confirmed", (2, 2, 2)),
        ("rejected", (1, 0, 0)),
        ("in_doubt", (0, 0, 0)),
        ("unsent", (0, 0, 0)),
    ):
        for plan, count in zip(plans, counts, strict=True):
            lines = (plan / f"results/{name}.csv").read_text("utf-8-sig").splitlines()[1:]
            assert len(lines) == count, (plan, name)
    assert (plans[0] / "result.xlsx").exists()
    assert "\nread again: 1 customer on the platform as sent\n" in second
    assert "nothing to send" in third
    if shutil.which("git") is not None:
        assert seen_by_git(folder, env) == [".gitignore", "mappings/customers.toml"]


def test_a_project_with_its_own_sources_and_pipelines_imports_both(tmp_path: Path) -> None:
    folder, env = tmp_path / "project", environment(tmp_path)
    for package in ("sources", "pipelines", "transforms", "sandbox"):
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").touch()
    (folder / "sources/theirs.py").write_text("NAME = 'theirs'\n")
    example = (CHECKOUT / "pipelines/examples/own_pipeline.py").read_text("utf-8")
    assert '"platform"' in example
    ours = example.replace('"platform"', "NAME")
    (folder / "load.py").write_text(
        ours.replace("import dlt\n", "import dlt\nfrom sources.theirs import NAME\n", 1)
    )
    with serve(SandboxConfig(customers=20, orders=5, promotions=3, price_lists=2)) as platform:
        env |= settings(platform, folder / "unused.duckdb") | {"PYTHONPATH": "."}
        for line in (["load.py"], ["-m", "orderbridge.pipelines.cli", "check"]):
            done = subprocess.run(
                [sys.executable, *line],
                cwd=folder,
                env=env,
                capture_output=True,
                text=True,
                timeout=300,
            )
            assert done.returncode == 0, done.stderr
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        assert connection.sql("SELECT count(*) FROM theirs.customers").fetchall() == [(20,)]
