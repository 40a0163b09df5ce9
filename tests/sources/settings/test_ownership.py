"""Whose folder it is: access control lists, primary groups, folders above, and when they are a warning."""

from __future__ import annotations

import grp
import logging
import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import (
    check_before_writes,
    check_project,
    mappings_folder,
    other_writers_here,
    own_path,
    permissions,
    warehouse_path,
)
from tests.access import set_acl

STRANGER = 54321
TEAM = 54322
ME = os.geteuid()
needs_root = pytest.mark.skipif(ME != 0, reason="needs root, to give files to another user")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project in a folder of its own; one of these names it, the other is above."""
    project = tmp_path / "above" / "project"
    (project / ".dlt").mkdir(parents=True)
    monkeypatch.chdir(project)
    permissions._primary_members.cache_clear()
    yield project
    permissions._primary_members.cache_clear()


@pytest.fixture
def old(root: Path) -> Path:
    """A project that has a ledger: nights of version 0.3 rest on it."""
    (root / "ledger.sqlite").touch()
    return root


def refusal(check: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as caught:
        check()
    return str(caught.value)


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize(
    ("entry", "words", "fix"),
    [
        (f"user:{STRANGER}:rwx", f"ACL entry user:{STRANGER}:rwx", f"u:{STRANGER}:r-x"),
        (f"group:{TEAM}:-wx", f"ACL entry group:{TEAM}:-wx", f"g:{TEAM}:--x"),
    ],
)
def test_an_acl_entry_that_lets_others_write_counts_as_a_mode_that_does(
    root: Path, entry: str, words: str, fix: str
) -> None:
    set_acl(root, entry)
    text = refusal(warehouse_path)
    assert f"{root} can be written by other users (mode 0770, {words})" in text
    command = f"setfacl -m {fix} {root}"
    assert f"run: {command}" in text
    if shutil.which("setfacl"):
        subprocess.run(command.split(), check=True)
        assert warehouse_path() == root / "warehouse.duckdb"


def test_an_acl_that_lets_nobody_else_write_is_fine(root: Path) -> None:
    for entry in (f"user:{STRANGER}:r-x", f"user:{ME}:rwx", "user:0:rwx", f"group:{TEAM}:r-x"):
        set_acl(root, entry)
        assert warehouse_path() == root / "warehouse.duckdb", entry
    set_acl(root, f"user:{STRANGER}:rwx", mask=5)
    assert warehouse_path() == root / "warehouse.duckdb"


def test_the_owning_group_counts_by_its_entry_not_by_the_mask(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grp, "getgrgid", mock.Mock(side_effect=KeyError))
    set_acl(root, f"user:{ME}:rwx", group=5)
    assert warehouse_path() == root / "warehouse.duckdb"
    set_acl(root, f"user:{ME}:rwx", group=7)
    assert "ACL entry group::rwx" in refusal(warehouse_path)


def test_a_user_whose_primary_group_is_the_owners_is_another_user(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def user(name: str, number: int, group: int) -> mock.Mock:
        return mock.Mock(pw_name=name, pw_uid=number, pw_gid=group)

    group = root.stat().st_gid
    users = {ME: user("ana", ME, group), STRANGER: user("bea", STRANGER, STRANGER)}
    monkeypatch.setattr(
        grp, "getgrgid", lambda number: mock.Mock(gr_gid=number, gr_name="ana", gr_mem=[])
    )
    monkeypatch.setattr(pwd, "getpwuid", lambda number: users[number])
    monkeypatch.setattr(pwd, "getpwall", lambda: [*users.values()])
    root.chmod(0o775)
    assert warehouse_path() == root / "warehouse.duckdb"
    users[STRANGER] = user("bea", STRANGER, group)
    permissions._primary_members.cache_clear()
    assert "(mode 0775, group ana, the primary group of bea too)" in refusal(warehouse_path)


@pytest.mark.parametrize("where", ["above", "link", "target"])
def test_a_folder_on_the_way_that_others_can_write_is_refused_unless_it_is_sticky(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    above = root.parent
    if where != "above":
        links = tmp_path / "links"
        links.mkdir()
        (links / "here").symlink_to(root)
        monkeypatch.setenv("WAREHOUSE__PATH", str(links / "here" / "w.duckdb"))
        above = links if where == "link" else root.parent
    assert warehouse_path()
    above.chmod(0o777)
    text = refusal(warehouse_path)
    assert (
        f"{above} can be written by other users (mode 0777), who can replace what is in it" in text
    )
    command = f"chmod +t {above}"
    assert f"Run: {command}" in text
    subprocess.run(command.split(), check=True)
    assert warehouse_path()


def test_a_link_that_leads_to_itself_ends(root: Path) -> None:
    (root / "turn").mkdir()
    (root / "loop").symlink_to("turn/../loop")
    own_path(root / "loop" / "w.duckdb")


def test_a_file_of_dlts_own_is_no_setting(root: Path) -> None:
    file = root / ".dlt" / ".anonymous_id"
    file.touch()
    set_acl(file, f"user:{STRANGER}:rwx")
    check_project()
    check_before_writes()


@needs_root
def test_a_folder_above_of_another_user_is_refused(root: Path) -> None:
    os.chown(root.parent, STRANGER, -1)
    text = refusal(warehouse_path)
    assert f"{root.parent} belongs to another user (uid {STRANGER}), who can replace" in text
    os.chown(root.parent, 0, -1)
    (root.parent / "link").symlink_to(root)
    os.lchown(root.parent / "link", STRANGER, -1)
    assert "link belongs to another user" in refusal(
        lambda: own_path(root.parent / "link" / "w.duckdb")
    )


@needs_root
def test_the_owner_of_the_root_may_own_folders_above_but_not_the_folder_itself(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a namespace of users that does not show root, its folders belong to `nobody`."""
    monkeypatch.setattr("orderbridge.sources.settings.ownership._system_owner", lambda: STRANGER)
    os.chown(root.parent, STRANGER, -1)
    assert warehouse_path() == root / "warehouse.duckdb"
    os.chown(root, STRANGER, -1)
    assert f"{root} belongs to another user" in refusal(warehouse_path)


def test_the_shared_folder_ends_the_rule_there_and_not_above(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.parent.chmod(0o777)
    set_acl(root, f"user:{STRANGER}:rwx")
    monkeypatch.setenv("FILES__SHARED_FOLDER", str(root))
    assert str(root.parent) in refusal(warehouse_path)
    monkeypatch.setenv("FILES__SHARED_FOLDER", str(root.parent))
    assert warehouse_path() == root / "warehouse.duckdb"


@pytest.mark.parametrize("name", [".dlt", ".dlt/secrets.toml", ".dlt/answers.toml"])
def test_settings_that_an_acl_lets_others_write_end_each_command_of_a_new_project(
    root: Path, name: str
) -> None:
    path = root / name
    path.parent.mkdir(exist_ok=True)
    if not path.is_dir():
        path.touch()
    check_project()
    set_acl(path, f"user:{STRANGER}:rwx")
    assert f"{path} can be written by other users" in refusal(check_project)


def test_a_project_with_a_ledger_is_warned_once_about_each_folder(
    old: Path, caplog: pytest.LogCaptureFixture
) -> None:
    set_acl(old, f"user:{STRANGER}:rwx")
    old.parent.chmod(0o777)
    check_project()
    assert warehouse_path() == old / "warehouse.duckdb"
    itself, above = warnings_in(caplog)
    assert f"{old} can be written by other users (mode 0770, ACL entry" in itself
    assert "The next version refuses this. Use a folder of your own, or run: setfacl -m" in itself
    assert f"{old.parent} can be written by other users (mode 0777), who can replace" in above
    assert f"Run: chmod +t {old.parent} (or, if all who can write there are trusted" in above
    assert "\n" not in itself + above
    assert [found.path for found in other_writers_here()] == [old, old.parent]


def test_what_version_0_3_refused_is_refused_in_every_project(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grp, "getgrgid", mock.Mock(side_effect=KeyError))
    for mode in (0o777, 0o1777, 0o775, 0o757):
        old.chmod(mode)
        assert f"mode {mode:04o}" in refusal(warehouse_path)
        with pytest.raises(UsageError):
            check_before_writes()


def test_nothing_is_sent_where_others_can_write_to_the_folder_itself(
    old: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plan = tmp_path / "plan"
    plan.mkdir(0o700)
    old.parent.chmod(0o777)
    check_before_writes(plan)  # a folder above is a warning for one version
    for folder in (old, old / ".dlt", plan):
        set_acl(folder, f"user:{STRANGER}:rwx")
        text = refusal(lambda: check_before_writes(plan))
        assert f"{folder} can be written by other users" in text
        folder.chmod(0o700)


@pytest.mark.parametrize("name", ["", "customers.toml"])
def test_mappings_that_others_can_write_are_a_warning_and_in_a_new_project_an_error(
    root: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    folder = root / "mappings"
    folder.mkdir(0o700)
    (folder / "customers.toml").touch(0o600)
    (folder / name).chmod(0o777)
    assert f"{folder / name} can be written" in refusal(mappings_folder)
    (root / "ledger.sqlite").touch()
    mappings_folder()
    (warning,) = warnings_in(caplog)
    assert f"{folder / name} can be written" in warning
    assert [found.path for found in other_writers_here()] == [folder / name]


def test_settings_that_are_not_valid_are_the_error_of_the_command_that_reads_them(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAREHOUSE__PATCH", "x")
    check_project()
    assert "WAREHOUSE__PATCH" in refusal(warehouse_path)


def test_a_system_without_access_control_lists_goes_by_the_mode(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "getxattr", raising=False)
    assert warehouse_path() == root / "warehouse.duckdb"
    root.chmod(0o777)
    assert "mode 0777" in refusal(warehouse_path)
