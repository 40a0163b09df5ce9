"""Upgrades of projects that each release made with its own code: `make upgrades`.

For each release of docs/upgrade.md and each shop: a project, then today's `run`, pushes and plans. Prints what is
wrong; ends with 1 if anything is.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.upgrades.fixtures import ADDRESS, COMMITTED, pack
from tests.upgrades.old_project import NIGHT, PLANS, PUSH, Code, make_project
from tests.upgrades.platform import serve
from tests.upgrades.releases import Release, code_of, interpreter_of, releases
from tests.upgrades.shops import SHOPS, Lists, lists_in, lists_of
from tests.upgrades.upgrade import upgrade

TODAY = Code((str(Path(sys.executable).with_name("orderbridge")),))


def main() -> int:
    """Upgrades from the releases that are named, or from all."""
    parser = argparse.ArgumentParser(prog="python -m tests.upgrades")
    parser.add_argument("commits", nargs="*", help="commits of releases; all by default")
    parser.add_argument("--data", type=Path, help="folder with orders.json … of a real shop")
    parser.add_argument("--keep", type=Path, help="folder for the projects, before and after")
    parser.add_argument("--pack", action="store_true", help="write projects/ anew")
    arguments = parser.parse_args()
    if arguments.pack:
        return _pack_all()
    chosen = [one for one in releases() if not arguments.commits or one.commit in arguments.commits]
    shops: Mapping[str, Lists] = {name: lists_of(name) for name in SHOPS}
    if arguments.data is not None:
        shops = {arguments.data.name: lists_in(arguments.data)}
    failed = False
    with tempfile.TemporaryDirectory(prefix="upgrades-") as made:
        folder = arguments.keep or Path(made)
        for release in chosen:
            for shop, lists in shops.items():
                began = time.monotonic()
                wrong = _upgrade(folder / f"{release.commit}-{shop}", Path(made), release, lists)
                failed |= bool(wrong)
                _report(f"{release.version} {release.commit} {shop}", wrong, began)
    sys.stdout.write(f"{len(chosen) * len(shops)} upgrades of {len(chosen)} releases\n")
    return int(failed or not chosen)


def _pack_all() -> int:
    """Makes the projects that are committed anew, with the code of their commits."""
    with tempfile.TemporaryDirectory(prefix="upgrades-") as made:
        for name, shop in COMMITTED.items():
            commit = name.partition("-")[2]
            project = Path(made) / name / "project"
            project.parent.mkdir(mode=0o700)
            code = _code(commit, Path(made))
            with serve(lists_of(shop), ADDRESS) as platform:
                make_project(project, code, platform)
                pack(project, platform, name)
    return 0


def _report(name: str, wrong: Sequence[str], began: float) -> None:
    outcome = f"{len(wrong)} wrong" if wrong else "ok"
    sys.stdout.write(f"{name}: {outcome} ({time.monotonic() - began:.0f} s)\n")
    sys.stdout.writelines(f"  {line}\n" for line in wrong)
    sys.stdout.flush()


def _upgrade(folder: Path, archives: Path, release: Release, lists: Lists) -> list[str]:
    """Makes a project of a release, and upgrades it. Returns what is wrong."""
    folder.mkdir(parents=True, mode=0o700)
    project = folder / "project"
    with serve(lists) as platform:
        make_project(project, _code(release.commit, archives), platform)
        if release.via:  # it ends the plans too
            between = _code(release.via, archives)
            pushes = [(*PUSH, plan) for plan in PLANS]
            for command in (("status",), NIGHT, *pushes, NIGHT):
                between.do(project, *command)
        shutil.copytree(project, folder / "before")
        return upgrade(project, TODAY.run, platform, () if release.via else tuple(PLANS))


def _code(commit: str, archives: Path) -> Code:
    """The command of a commit; up to 0.3.0 its packages were at the top level."""
    code = code_of(commit, archives)
    python = str(interpreter_of(commit, code))
    if (code / "src/orderbridge").exists():
        return Code((python, "-m", "orderbridge.pipelines.cli"), str(code / "src"))
    return Code((python, "-m", "pipelines.cli"), str(code))


if __name__ == "__main__":
    sys.exit(main())
