"""The shell blocks of the documentation are executed as they are written, against the sandbox."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from sandbox import SandboxConfig, serve
from tests.pipelines.bridge import settings, wait_for

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


@pytest.fixture(scope="module")
def first_hour(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str], list[str]]:
    """Runs the blocks, each to the exit code of its note: the folder, its environment, and what they print."""
    folder = tmp_path_factory.mktemp("first_hour") / "project"
    folder.mkdir()
    env, background, printed = environment(folder.parent), None, []
    try:
        for note, script in blocks("tutorial.md"):
            if note == "in the background":
                exec_ = ["bash", "-c", f"exec {script}"]
                background = subprocess.Popen(exec_, cwd=folder, env=env, stdout=subprocess.PIPE, text=True)
                assert background.stdout is not None
                assert background.stdout.readline().startswith("ready ")
                wait_for((folder / ".gitignore").exists)
                continue
            line = ["bash", "-e", "-c", script]
            done = subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
            expected = int(note.removeprefix("ends with ")) if note else 0
            assert done.returncode == expected, f"{script}\n{done.stdout}{done.stderr}"
            printed.append(done.stdout)
    finally:
        if background is not None:
            background.terminate()
            background.communicate(timeout=300)
    return folder, env, printed


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
def test_a_project_with_its_own_sources_uses_them(tmp_path: Path, way: str) -> None:
    folder, env = tmp_path / "project", environment(tmp_path)
    (folder / "sources").mkdir(parents=True)
    (folder / "sources/__init__.py").touch()
    (folder / "sources/theirs.py").write_text("NAME = 'theirs'\n")
    with serve(SandboxConfig(customers=20, orders=5, promotions=3, price_lists=2)) as platform:
        env |= settings(platform, folder / "unused.duckdb")
        if way == "copy":
            del env["PYTHONPATH"]
            ((_, script),) = blocks("sources.md")
            env["ORDERBRIDGE"] = str(CHECKOUT)
            subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=env, check=True)
            (folder / "load.py").write_text(OWN_SOURCES)
            arguments = ["load.py"]
        else:
            example = (CHECKOUT / "pipelines/examples/own_pipeline.py").read_text("utf-8")
            (folder / "load.py").write_text(example.replace('"platform"', '"theirs"'))
            arguments = ["-P", "load.py"]
        line = [sys.executable, *arguments]
        done = subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        assert connection.sql("SELECT count(*) FROM theirs.customers").fetchall() == [(20,)]
