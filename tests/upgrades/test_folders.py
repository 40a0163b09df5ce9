"""Projects of 0.3.0 in folders that 0.3.0 let pass: their nights go on with one warning, and nothing is sent there."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orderbridge.sources.settings import permissions
from orderbridge.sources.settings.ownership import warn
from tests.access import set_acl
from tests.upgrades.fixtures import unpacked
from tests.upgrades.old_project import NIGHT, PLANS, PUSH
from tests.upgrades.test_upgrades import run

STRANGER = 54321
RELEASE = "0.3.0-ad26ab6f"
PULL = ("pull", "promotions")
ENDS = 9
"""How a night of this project ends in a folder of its own: it has findings."""


def with_acl(project: Path) -> Path:
    set_acl(project, f"user:{STRANGER}:rwx")
    return project


def below_a_folder_of_all(project: Path) -> Path:
    project.parent.chmod(0o777)
    return project.parent


def with_a_group_of_two(project: Path) -> Path:
    """The private group of the user is the primary one of somebody else: `shares_the_group` says so."""
    project.chmod(0o770)
    return project


def _user(name: str, number: int) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", number, os.getegid(), "", "/nowhere", "/bin/sh"))


@pytest.fixture
def shares_the_group(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The user has a private group, which is the primary one of another user too; only a group's bit makes it count."""
    me = _user("ana", os.geteuid())
    bea = _user("bea", STRANGER)
    group = grp.struct_group(("ana", "x", os.getegid(), []))
    monkeypatch.setattr(grp, "getgrgid", lambda _: group)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: bea if number == STRANGER else me)
    monkeypatch.setattr(pwd, "getpwall", lambda: [me, bea])
    permissions._primary_members.cache_clear()
    yield
    permissions._primary_members.cache_clear()


def with_mappings_of_all(project: Path) -> Path:
    mappings = project / "mappings"
    mappings.mkdir(mode=0o700, exist_ok=True)
    mappings.chmod(0o777)
    return mappings


@pytest.mark.usefixtures("shares_the_group")
@pytest.mark.parametrize(
    ("change", "nights"),
    [
        (with_acl, ((NIGHT, ENDS), (PULL, 0), (PULL, 0))),
        (with_a_group_of_two, ((PULL, 0), (PULL, 0))),
        (below_a_folder_of_all, ((PULL, 0), (PULL, 0))),
        (with_mappings_of_all, ((PULL, 0), (PULL, 0))),
    ],
)
def test_nights_go_on_with_one_line_and_only_the_folder_itself_stops_a_push(
    tmp_path: Path,
    change: Callable[[Path], Path],
    nights: tuple[tuple[tuple[str, ...], int], ...],
) -> None:
    project = tmp_path / "above" / "project"
    project.parent.mkdir()
    with unpacked(RELEASE, project):
        named = change(project)
        for command, expected in nights:
            warn.cache_clear()
            night, said = run(project, *command)
            assert night == expected, said
            (line,) = [line for line in said.splitlines() if "The next version refuses" in line]
            assert line.startswith(f"{named} can be written by other users")
        checked, said = run(project, "check")
        assert checked == 2, said
        assert f"wrong folders: {named} can be written by other users" in said
        pushed, said = run(project, *PUSH, [*PLANS][-1])
        assert (pushed == 2 and f"orderbridge: {named} can be written" in said) == (
            named == project
        ), said
