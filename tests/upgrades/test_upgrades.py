"""Today's code on projects of old versions that are committed; `make upgrades` makes new ones with the old code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.pipelines.bridge import command
from tests.upgrades.fixtures import COMMITTED, unpacked
from tests.upgrades.releases import CHECKOUT, git, releases
from tests.upgrades.upgrade import upgrade


def run(project: Path, *arguments: str) -> tuple[int, str]:
    """A command of today in this process."""
    home = project.parent / "home"
    home.mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(project.parent)}
    done = command(*arguments, env=env, cwd=project)
    return done.code, f"{done.out}{done.err}"


@pytest.mark.parametrize("name", COMMITTED)
def test_an_old_project_loses_no_figure_and_its_plans_go_on(tmp_path: Path, name: str) -> None:
    with unpacked(name, tmp_path / "project") as platform:
        assert upgrade(tmp_path / "project", run, platform) == []


def test_each_version_of_the_changelog_is_a_commit_that_the_upgrade_page_names() -> None:
    changelog = (CHECKOUT / "CHANGELOG.md").read_text("utf-8")
    dated = re.findall(r"^## \[([0-9.]+)\] – \d", changelog, re.MULTILINE)
    if "## [Unreleased]" not in changelog:
        del dated[0]  # a release does not know its own commit
    assert [*dict.fromkeys(release.version for release in releases())] == dated


@pytest.mark.skipif(
    not (CHECKOUT / ".git").exists() or shutil.which("git") is None, reason="no checkout of git"
)
def test_each_named_commit_has_the_version_and_the_ledger_that_the_upgrade_page_says() -> None:
    for release in releases():
        try:
            project = git("show", f"{release.commit}:pyproject.toml").decode()
        except subprocess.CalledProcessError:
            pytest.skip("a clone without the history")
        assert f'version = "{release.version}"' in project
        source = git("grep", "-h", "^VERSION: Final = ", release.commit, "--", "pipelines").decode()
        assert source == f"VERSION: Final = {release.ledger}\n"
