"""Who may write to settings and to the folders of private files, and what others left in them."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path
from unittest import mock

import pytest

from sources.settings import http_settings, ledger_path, legacy_settings, own_path, warehouse_path
from tests.sources.settings.samples import LEGACY, refused, write

needs_root = pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="changing owners takes root")
STRANGER = 54321


@needs_root
@pytest.mark.parametrize("name", [".dlt", ".dlt/config.toml", ".dlt/secrets.toml"])
def test_settings_that_another_user_owns_are_an_error(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    write(root, LEGACY)
    assert legacy_settings().base_url == "https://a.example"
    os.chown(root / name, STRANGER, -1)
    with refused("belongs to another user", str(root / name)):
        legacy_settings()
    monkeypatch.setattr("sources.settings.ownership._code_owner", lambda: STRANGER)
    with refused("belongs to another user"):  # those of the checkout may belong to the owner of its code
        legacy_settings()
    monkeypatch.setattr("sources.settings.ownership.CHECKOUT", root)
    assert legacy_settings().base_url == "https://a.example"


@needs_root
def test_a_link_that_another_user_made_is_an_error(root: Path) -> None:
    link = root / "report.html"
    link.symlink_to(root / "target")
    (root / "target").touch()
    assert own_path(link) == root / "target"
    write(root, LEGACY)
    (root / ".dlt").rename(root / "settings")
    (root / ".dlt").symlink_to(root / "settings")
    assert legacy_settings().base_url == "https://a.example"
    for path, read in ((link, lambda: own_path(link)), (root / ".dlt", legacy_settings)):
        os.lchown(path, STRANGER, -1)
        with refused("belongs to another user"):
            read()


@pytest.mark.parametrize(
    ("name", "mode"), [(".dlt", 0o777), (".dlt/config.toml", 0o646), (".dlt/secrets.toml", 0o602), (".dlt", 0o1777)]
)
def test_settings_that_others_can_write_are_an_error(
    root: Path, name: str, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, LEGACY, f"[files]\nshared_folder = '{root}'\n")
    (root / "mine/work").mkdir(parents=True)
    (root / name).chmod(mode)
    for folder in (root, root / "mine/work"):
        monkeypatch.chdir(folder)
        with refused("can be written by other users", f"chmod go-w {root / name}"):
            legacy_settings()  # what the file itself says does not count
    monkeypatch.setenv("FILES__SHARED_FOLDER", str(root))
    assert legacy_settings().base_url == "https://a.example"


@pytest.mark.parametrize("mode", [0o1777, 0o777, 0o775, 0o757])
def test_a_folder_that_others_can_write_holds_no_private_file(
    root: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    shared, own, team = root / "shared", root / "own", mock.Mock(gr_gid=-1)
    for folder in (shared, own):
        folder.mkdir()
    shared.chmod(mode)
    (own / "ledger.sqlite").symlink_to(shared / "ledger.sqlite")
    monkeypatch.setattr(grp, "getgrgid", lambda _: team)
    monkeypatch.setenv("WAREHOUSE__PATH", str(shared / "w.duckdb"))
    monkeypatch.setenv("LEDGER__PATH", str(own / "ledger.sqlite"))
    for path_of in (warehouse_path, ledger_path):
        with refused(f"{shared} can be written by other users", "set FILES__SHARED_FOLDER to the folder"):
            path_of()
    write(root, config=f"[files]\nshared_folder = '{shared}'\n")
    assert (warehouse_path(), ledger_path()) == (shared / "w.duckdb", shared / "ledger.sqlite")
    shared.chmod(0o755)
    write(root)
    assert warehouse_path() == shared / "w.duckdb"


@pytest.mark.parametrize(
    ("group", "members", "is_private"),
    [("ana", [], True), ("ana", ["ana"], True), ("ana", ["ana", "bea"], False), ("staff", [], False)],
)
def test_a_group_of_the_user_alone_is_the_user(
    root: Path, monkeypatch: pytest.MonkeyPatch, group: str, members: list[str], is_private: bool
) -> None:
    root.chmod(0o775)
    gid = root.stat().st_gid
    monkeypatch.setattr(grp, "getgrgid", lambda _: mock.Mock(gr_name=group, gr_gid=gid, gr_mem=members))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: mock.Mock(pw_name="ana", pw_gid=gid))
    if is_private:
        assert own_path(root / "w.duckdb") == root / "w.duckdb"
    else:
        with refused("can be written by other users"):
            own_path(root / "w.duckdb")


@needs_root
@pytest.mark.parametrize(
    "name", ["", "w.duckdb", "w.duckdb.wal", "w.duckdb-journal", "w.duckdb.failed.json", ".w.duckdb.lock"]
)
def test_a_folder_of_another_user_or_what_one_left_in_it_is_an_error(root: Path, name: str) -> None:
    folder = root / "data"
    folder.mkdir()
    (folder / "other.txt").touch()
    os.chown(folder / "other.txt", STRANGER, -1)
    assert own_path(folder / "w.duckdb") == folder / "w.duckdb"
    if name:
        (folder / name).touch()
    os.chown(folder / name, STRANGER, -1)
    with refused(f"{folder / name} belongs to another user (uid {STRANGER})"):
        own_path(folder / "w.duckdb")


def test_certificates_that_others_can_write_are_an_error(root: Path) -> None:
    file = root / "ca.pem"
    file.touch()
    write(root, config=f"[sources.http]\nca_file = '{file}'\n")
    assert http_settings().ca_file == file
    file.chmod(0o646)
    with refused("ca.pem can be written by other users"):
        http_settings()
