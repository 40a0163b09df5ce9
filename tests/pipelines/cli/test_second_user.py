"""Attacks of a second user, by a process of that user: what it can reach, and what the owner's commands do.

Each attack is shown to work on the file system before a command of the owner meets it. The owner is root, who can act
as another user.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import signal
import stat
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from orderbridge.sources.settings import permissions
from orderbridge.sources.settings.ownership import warn
from tests.access import set_acl
from tests.pipelines.bridge import Bridge, Done, bridge, command

OTHER = 54321
ROWS = "erpCode,email,firstName,lastName\nE1,a@b.example,A,B\n"
PLAN = "plan customers c.csv --passwords file --out plan-1"
PUSH = "push plan-1 --yes --accept-unproven"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as two other users")


def succeeds(action: Callable[[], object], group: int = OTHER) -> bool:
    """Whether the second user can do it, whose primary group this is."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a lock that another thread held is never released here
        code = 2
        try:
            os.setgroups([])
            os.setgid(group)
            os.setuid(OTHER)
            action()
            code = 0
        except OSError:
            code = 1
        finally:
            os._exit(code)  # nothing else goes on twice
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1)
    return code == 0


class Users:
    """A project of the owner, below a folder that everybody may read."""

    def __init__(self, made: Bridge, above: Path) -> None:
        self.made = made
        self.above = above
        self.project = made.folder

    def run(self, line: str) -> Done:
        """A command of the owner."""
        return self.made.command(*line.split(), SOURCES__LEGACY__LOGIN_MODE="email")

    @property
    def requests(self) -> int:
        return len(self.made.platform.state.log)


@pytest.fixture
def users() -> Iterator[Users]:
    above = Path(tempfile.mkdtemp(prefix="orderbridge-users-", dir="/tmp"))  # both may enter it
    try:
        with bridge(above, customers=5, orders=5) as made:
            above.chmod(0o755)
            made.folder.chmod(0o700)
            (made.folder / ".dlt").mkdir(mode=0o700)
            (made.folder / "c.csv").write_text(ROWS)
            os.environ["DLT_PROJECT_DIR"] = str(made.folder)
            yield Users(made, above)
    finally:
        shutil.rmtree(above)


@pytest.fixture
def planned(users: Users) -> Users:
    """A project with a warehouse and a plan."""
    for line in ("run", PLAN):
        done = users.run(line)
        assert done.code == 0, done.said
    return users


def test_a_second_user_who_can_enter_the_folder_reads_and_writes_nothing_in_it(
    planned: Users,
) -> None:
    planned.project.chmod(0o755)
    assert planned.run(PUSH).code == 0
    (planned.project / "c.csv").unlink()
    paths = sorted(planned.project.rglob("*"))
    assert len([path for path in paths if path.is_file()]) > 10
    for path in paths:
        assert not succeeds(partial(os.open, path, os.O_RDONLY)), path
        assert not succeeds(partial(os.open, path, os.O_WRONLY)), path
    assert not succeeds((planned.project / "ledger.sqlite-journal").touch)


def with_a_default_acl(users: Users, _: pytest.MonkeyPatch) -> int:
    """The owner made the project below a team folder: its entries came along."""
    project = users.project
    team = users.above / "team"
    team.mkdir()
    set_acl(team, f"user:{OTHER}:rwx")
    entries = os.getxattr(team, "system.posix_acl_access")
    os.setxattr(team, "system.posix_acl_default", entries)
    os.removexattr(team, "system.posix_acl_access")
    made = team / "project"
    made.mkdir()
    for path in project.iterdir():
        path.rename(made / path.name)
    project.rmdir()
    made.rename(project)
    return OTHER


def with_a_group_of_two(users: Users, monkeypatch: pytest.MonkeyPatch) -> int:
    """The private group of the owner is the primary one of the second user too."""
    group = os.getegid()
    accounts = [
        pwd.struct_passwd((name, "x", number, group, "", "/", "/bin/sh"))
        for name, number in (("ana", os.geteuid()), ("bea", OTHER))
    ]
    of_ana = grp.struct_group(("ana", "x", group, []))
    monkeypatch.setattr(pwd, "getpwall", lambda: accounts)
    monkeypatch.setattr(pwd, "getpwuid", {one.pw_uid: one for one in accounts}.__getitem__)
    monkeypatch.setattr(grp, "getgrgid", {group: of_ana}.__getitem__)
    permissions._primary_members.cache_clear()
    users.project.chmod(0o770)
    return group


@pytest.fixture(autouse=True)
def _no_members_of_another_test() -> Iterator[None]:
    yield
    permissions._primary_members.cache_clear()


@pytest.mark.parametrize("change", [with_a_default_acl, with_a_group_of_two])
def test_a_journal_that_a_second_user_plants_meets_no_push(
    planned: Users,
    change: Callable[[Users, pytest.MonkeyPatch], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = change(planned, monkeypatch)
    assert succeeds((planned.project / "ledger.sqlite-journal").touch, group)
    before = planned.requests
    for line in (PUSH, "import customers c.csv --passwords file --yes", "desk --no-browser"):
        done = planned.run(line)
        assert (done.code, "can be written by other users" in done.err) == (2, True), done.said
    assert planned.requests == before
    assert not (planned.project / "ledger.sqlite").exists()
    (planned.project / "ledger.sqlite-journal").unlink()
    warn.cache_clear()
    night = planned.run("run")
    assert (night.code, night.err.count("The next version refuses")) == (0, 1), night.said


@pytest.mark.parametrize("change", [with_a_default_acl, with_a_group_of_two])
def test_a_new_project_in_such_a_folder_does_nothing(
    users: Users,
    change: Callable[[Users, pytest.MonkeyPatch], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = change(users, monkeypatch)
    assert succeeds((users.project / "warehouse.duckdb.wal").touch, group)
    for line in ("run", PLAN, "import customers c.csv --passwords file --yes"):
        done = users.run(line)
        assert (done.code, "can be written by other users" in done.err) == (2, True), done.said
    assert users.requests == 0


def test_a_new_project_below_a_folder_where_it_can_be_swapped_does_nothing(users: Users) -> None:
    users.above.chmod(0o777)
    assert succeeds(partial(users.project.rename, users.above / "away"))
    assert succeeds(partial((users.above / "away").rename, users.project))
    for line in ("run", PLAN):
        done = users.run(line)
        assert (done.code, f"{users.above} can be written" in done.err) == (2, True), done.said
    assert users.requests == 0
    users.above.chmod(0o1777)
    assert not succeeds(partial(users.project.rename, users.above / "away"))
    assert users.run("run").code == 0


def test_a_project_that_a_second_user_has_put_in_the_place_of_another_gets_no_key(
    planned: Users,
) -> None:
    planned.above.chmod(0o777)
    away = planned.above / "away"

    def swap() -> None:
        planned.project.rename(away)
        planned.project.mkdir(mode=0o755)
        (planned.project / ".dlt").mkdir(mode=0o755)

    assert succeeds(swap)
    before = planned.requests
    for line in (f"push {away}/plan-1 --yes --accept-unproven", "run", "status"):
        done = planned.run(line)
        assert (done.code, "belongs to another user" in done.err) == (2, True), done.said
    assert planned.requests == before


def test_settings_of_a_second_user_in_a_folder_of_ones_own_are_not_read(planned: Users) -> None:
    config = planned.project / ".dlt" / "config.toml"
    config.write_text('[sources.legacy]\nbase_url = "http://127.0.0.1:1"\n')
    os.chown(config, OTHER, OTHER)
    assert stat.S_IMODE(planned.project.stat().st_mode) == 0o700
    done = planned.run("run")
    assert (done.code, str(config) in done.err) == (2, True), done.said


def test_a_key_in_a_file_that_a_second_user_could_have_written_is_not_sent(users: Users) -> None:
    key = users.above / "key"
    key.write_text("sandbox-legacy-key")
    os.chown(key, OTHER, OTHER)
    env = users.made.environment(SOURCES__LEGACY__API_KEY_FILE=str(key))
    del env["SOURCES__LEGACY__API_KEY"]
    done = command("pull", "customers", env=env, cwd=users.project)
    assert (done.code, str(key) in done.err) == (2, True), done.said
    assert users.requests == 0
