"""The shell blocks of the documentation are executed as they are written, against the sandbox."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from sandbox import SandboxConfig, serve
from tests.pipelines.bridge import settings

CHECKOUT = Path(__file__).parents[1]
BLOCK = re.compile(r"(?:^<!-- ([^>\n]+) -->\n)?^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OWN_SOURCES = """
from platform_sources.legacy import legacy
from sources.theirs import NAME
import dlt
pipeline = dlt.pipeline("shop", destination=dlt.destinations.duckdb("shop.duckdb"), dataset_name=NAME)
pipeline.run(legacy().with_resources("customers"))
"""


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((CHECKOUT / "docs" / page).read_text("utf-8"))


def environment(folder: Path) -> dict[str, str]:
    """A shell that finds `orderbridge` and `python`, and nobody's settings."""
    binaries = folder / "bin"
    binaries.mkdir()
    (binaries / "orderbridge").write_text(f'#!/bin/sh\nexec {sys.executable} -m pipelines.cli "$@"\n')
    (binaries / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for file in binaries.iterdir():
        file.chmod(0o755)
    (folder / "home").mkdir()
    return {
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "PYTHONPATH": str(CHECKOUT),
        "PYTHONUTF8": "1",
        "DLT_DATA_DIR": str(folder / "home/dlt"),
    }


@pytest.fixture
def project(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder, environment(tmp_path)


def follow_tutorial(folder: Path, env: dict[str, str]) -> list[str]:
    """Runs the blocks of the tutorial in the folder, each with the exit code of its note. Returns what they print."""
    background, printed = None, []
    try:
        for note, script in blocks("tutorial.md"):
            if note == "in the background":
                background = subprocess.Popen(
                    ["bash", "-c", f"exec {script}"], cwd=folder, env=env, stdout=subprocess.PIPE, text=True
                )
                assert background.stdout is not None
                assert background.stdout.readline().startswith("ready ")
                deadline = time.monotonic() + 120
                while not (folder / ".gitignore").exists() and time.monotonic() < deadline:
                    time.sleep(0.05)
                continue
            done = subprocess.run(
                ["bash", "-e", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=300
            )
            expected = int(note.removeprefix("ends with ")) if note else 0
            assert done.returncode == expected, f"{script}\n{done.stdout}{done.stderr}"
            printed.append(done.stdout)
    finally:
        if background is not None:
            background.terminate()
            background.communicate(timeout=300)
    return printed


@pytest.fixture(scope="module")
def first_hour(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str], list[str]]:
    """The folder after the tutorial, its environment, and what the blocks have printed."""
    folder = tmp_path_factory.mktemp("first_hour")
    (folder / "project").mkdir()
    env = environment(folder)
    return folder / "project", env, follow_tutorial(folder / "project", env)


def test_the_tutorial_does_what_it_says(first_hour: tuple[Path, dict[str, str], list[str]]) -> None:
    folder, _, printed = first_hour
    assert len(printed) == 6
    first, second = sorted(folder.glob("plan-customers-*"), key=lambda path: path.stat().st_mtime)
    for name, counts in (("confirmed", (2, 2)), ("rejected", (1, 0)), ("in_doubt", (0, 0)), ("unsent", (0, 0))):
        for plan, count in zip((first, second), counts, strict=True):
            lines = (plan / f"results/{name}.csv").read_text("utf-8-sig").splitlines()[1:]
            assert len(lines) == count, (plan, name)
    assert (first / "result.xlsx").exists()
    assert printed[-1].splitlines()[-1].split() == ["1", "on", "the", "platform", "as", "sent"]


def test_after_the_first_hour_git_sees_nothing_private(first_hour: tuple[Path, dict[str, str], list[str]]) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder, env, _ = first_hour
    subprocess.run(["git", "init", "-q"], cwd=folder, env=env, check=True)
    done = subprocess.run(["git", "add", "-An"], cwd=folder, env=env, check=True, capture_output=True, text=True)
    assert sorted(re.findall(r"add '(.*)'", done.stdout)) == [".gitignore", "mappings/customers.toml"]


@pytest.mark.parametrize("way", ["copy", "environment"])
def test_a_project_with_its_own_sources_uses_them(project: tuple[Path, dict[str, str]], way: str) -> None:
    folder, env = project
    (folder / "sources").mkdir()
    (folder / "sources/__init__.py").touch()
    (folder / "sources/theirs.py").write_text("NAME = 'theirs'\n")
    with serve(SandboxConfig(customers=20, orders=5, promotions=3, price_lists=2)) as platform:
        env |= settings(platform, folder / "unused.duckdb")
        if way == "copy":
            del env["PYTHONPATH"]
            ((_, script),) = blocks("sources.md")
            subprocess.run(
                ["bash", "-e", "-c", script], cwd=folder, env=env | {"ORDERBRIDGE": str(CHECKOUT)}, check=True
            )
            (folder / "load.py").write_text(OWN_SOURCES)
            arguments = ["load.py"]
        else:
            example = (CHECKOUT / "pipelines/examples/own_pipeline.py").read_text("utf-8")
            (folder / "load.py").write_text(example.replace('"platform"', '"theirs"'))
            arguments = ["-P", "load.py"]
        done = subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=300
        )
    assert done.returncode == 0, done.stderr
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        assert connection.sql("SELECT count(*) FROM theirs.customers").fetchall() == [(20,)]
