"""Today's code on projects of old versions that are committed; `make upgrades` makes new ones with the old code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from tests.pipelines.bridge import command
from tests.upgrades.figures import Table, lost_figures
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


def test_the_judge_names_each_figure_that_is_gone_or_different() -> None:
    row = (Decimal(1), "PEN", Decimal("8.264462810"))
    before = {"raw.orders": Table(("id", "currency", "total"), [row, (Decimal(2), None, None)])}
    child = Table(("order_id", "sku"), [(Decimal(1), "A"), (Decimal(2), "B")])
    changed = [(row[0], None, Decimal("8.26")), (Decimal(2), "PEN", Decimal(3))]
    assert lost_figures(before, {"raw.orders": Table(("id", "currency", "total"), changed)}) == [
        "raw.orders.currency: 1 of 2: PEN is now None, of (Decimal('1'),)",
        "raw.orders.total: 1 of 2: 8.264462810 is now 8.26, of (Decimal('1'),)",
    ]
    (gone,) = lost_figures(before, {"raw.orders": Table(("id", "currency", "total"), [row])})
    assert gone.startswith("raw.orders: 1 of 2 rows are gone")
    assert len(lost_figures(before, {})) == 1
    assert len(lost_figures(before, {"raw.orders": Table(("id", "currency"), [row[:2]])})) == 2
    items = {"raw.orders": Table(("id", "items__sku"), [(Decimal(1), "A"), (Decimal(2), "C")])}
    empty = Table(("id", "items__sku"), [(Decimal(1), None), (Decimal(2), None)])
    (lost,) = lost_figures(items, {"raw.orders": empty, "raw.orders__items": child})
    assert "1 of 2: C is now None" in lost


def test_each_version_of_the_changelog_is_a_commit_that_the_upgrade_page_names() -> None:
    changelog = (CHECKOUT / "CHANGELOG.md").read_text("utf-8")
    dated = re.findall(r"^## \[([0-9.]+)\] – \d", changelog, re.MULTILINE)
    if "## [Unreleased]" not in changelog:
        del dated[0]  # a release does not know its own commit
    assert [*dict.fromkeys(release.version for release in releases())] == dated


@pytest.mark.skipif(
    not (CHECKOUT / ".git").exists() or shutil.which("git") is None, reason="no checkout of git"
)
def test_each_named_commit_has_the_version_and_ledger_of_the_upgrade_page() -> None:
    for release in releases():
        try:
            project = git("show", f"{release.commit}:pyproject.toml").decode()
        except subprocess.CalledProcessError:
            pytest.skip("a clone without the history")
        assert f'version = "{release.version}"' in project
        source = git("grep", "-h", "^VERSION: Final = ", release.commit, "--", "pipelines").decode()
        assert source == f"VERSION: Final = {release.ledger}\n"
