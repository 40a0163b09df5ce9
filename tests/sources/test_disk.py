"""Files on disk: replaced as a whole, private, never through a link, and the disk's errors in words."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from orderbridge.sources.disk import (
    copy_access,
    create_private,
    disk_errors,
    is_disk_full,
    open_private,
    private_folder,
    replace_file,
    working_folder,
    write_private,
)
from orderbridge.sources.errors import UsageError


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_a_replaced_file_is_old_or_new_and_nothing_is_left_of_a_failure(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError), replace_file(target) as file:  # noqa: PT012 # writes, then fails
        file.write(b"new")
        assert target.read_text() == "old"
        raise ZeroDivisionError
    assert target.read_text() == "old"
    assert names(tmp_path) == ["report.html"]
    with replace_file(target, 0o640) as file:
        file.write(b"new")
    assert target.read_text() == "new"
    assert mode(target) == 0o640


def test_what_a_killed_writer_left_goes_an_hour_later_and_what_another_writes_stays(
    tmp_path: Path,
) -> None:
    target = tmp_path / "report.html"
    two_hours_ago = time.time() - 7200
    for age in ("old", "new"):
        left = tmp_path / f".report.html.{age}.new"
        left.touch()
        parts = tmp_path / f".orderbridge-writing-{age}"
        parts.mkdir()
        (parts / "sheet.xml").touch()
        if age == "old":
            os.utime(left, (two_hours_ago, two_hours_ago))
            os.utime(parts, (two_hours_ago, two_hours_ago))
    with working_folder(tmp_path) as folder:
        assert mode(Path(folder)) == 0o700
        write_private(target, b"whole")
    expected = [".orderbridge-writing-new", ".report.html.new.new", "report.html"]
    assert sorted(names(tmp_path)) == expected


def test_a_prepared_file_or_link_is_replaced_and_not_written_to(tmp_path: Path) -> None:
    prepared, link, victim, left = (
        tmp_path / name for name in ("prepared", "link", "victim", ".prepared.abc.new")
    )
    for path in (prepared, victim, left):
        path.write_text("theirs")
        path.chmod(0o666)
    link.symlink_to(victim)
    with prepared.open("rb") as reader:
        for path in (prepared, link):
            write_private(path, b"secret")
            assert not path.is_symlink()
            assert (mode(path), path.read_bytes()) == (0o600, b"secret")
        assert (reader.read(), victim.read_text()) == (b"theirs", "theirs")
    assert left.exists()
    write_private(prepared, b"two", is_only_writer=True)  # what a killed writer left goes
    assert not left.exists()


def test_a_created_file_or_folder_is_new_and_private_whatever_the_umask(tmp_path: Path) -> None:
    path, opened, link, folder = (tmp_path / name for name in ("new", "opened", "link", "a/build"))
    os.close(open_private(opened))
    link.symlink_to(tmp_path / "elsewhere")
    with create_private(path) as file:
        file.write(b"1")
    assert mode(opened) == mode(path) == 0o600
    for existing in (path, link):
        with pytest.raises(FileExistsError):
            create_private(existing)
    assert not (tmp_path / "elsewhere").exists()
    for _ in range(2):
        private_folder(folder)
        assert mode(folder) == 0o700
        folder.chmod(0o755)


def test_a_new_file_keeps_group_and_mode_of_ones_own_and_nothing_for_all(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for file in (old, new):
        file.touch(0o600)
    old.chmod(0o666)
    copy_access(old, new)
    assert mode(new) == 0o660
    with mock.patch.object(os, "chown", side_effect=PermissionError):
        copy_access(old, new)
    assert mode(new) == 0o600
    with mock.patch.object(os, "geteuid", return_value=-1):  # another user's
        copy_access(old, new)
    assert mode(new) == 0o600


def test_a_full_disk_is_named_where_its_handling_fails_for_a_missing_file() -> None:
    missing = FileNotFoundError(errno.ENOENT, "No such file or directory")
    missing.__context__ = ValueError("no such package")  # as dlt raises them
    missing.__context__.__context__ = OSError(errno.ENOSPC, "Error writing bytes to file")
    with pytest.raises(UsageError) as error, disk_errors("/data", "free space", "other place"):
        raise missing
    assert error.value.message == "/data: No space left on device"
    assert error.value.hint == "free space"


@pytest.mark.parametrize(
    ("number", "reason", "hint"),
    [
        (errno.ENOSPC, "No space left on device", "free space"),
        (errno.EACCES, "Permission denied", "other place"),
        (
            errno.EFBIG,
            "a limit on the size of files is reached (ulimit -f)",
            "Raise the limit, then run",
        ),
    ],
)
def test_a_disk_error_names_the_subject_the_reason_and_what_to_do(
    number: int, reason: str, hint: str
) -> None:
    with pytest.raises(UsageError) as error, disk_errors("/data", "free space", "other place"):
        raise OSError(number, os.strerror(number))
    assert error.value.message == f"/data: {reason}"
    assert error.value.hint.startswith(hint)
    with pytest.raises(BrokenPipeError), disk_errors("/data", ""):
        raise BrokenPipeError
    error_of_duckdb = RuntimeError("load failed")
    error_of_duckdb.__cause__ = ValueError("IO Error: write: No space left on device")
    errors = (error_of_duckdb, OSError(errno.EDQUOT, ""), RuntimeError("disk"))
    assert [is_disk_full(one) for one in errors] == [True, True, False]
