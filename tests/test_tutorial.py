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


def test_the_tutorial_does_what_it_says_and_git_sees_nothing_private(tmp_path: Path) -> None:
    """Each block ends with the exit code of its note; commands of ours run in processes that have imported them."""
    folder = tmp_path / "project"
    folder.mkdir()
    env, printed = environment(tmp_path), ""
    with ExitStack() as background:
        for note, script in blocks("tutorial.md"):
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
                    printed = done.out
    first, second = sorted(folder.glob("plan-customers-*"), key=lambda path: path.stat().st_mtime)
    for name, counts in (
        ("confirmed", (2, 2)),
        ("rejected", (1, 0)),
        ("in_doubt", (0, 0)),
        ("unsent", (0, 0)),
    ):
        for plan, count in zip((first, second), counts, strict=True):
            lines = (plan / f"results/{name}.csv").read_text("utf-8-sig").splitlines()[1:]
            assert len(lines) == count, (plan, name)
    assert (first / "result.xlsx").exists()
    assert "\nread again: 1 customer on the platform as sent\n" in printed
    if shutil.which("git") is not None:
        subprocess.run(["git", "init", "-q"], cwd=folder, env=env, check=True)
        added = subprocess.run(
            ["git", "add", "-An"], cwd=folder, env=env, check=True, capture_output=True, text=True
        )
        assert sorted(re.findall(r"add '(.*)'", added.stdout)) == [
            ".gitignore",
            "mappings/customers.toml",
        ]


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
