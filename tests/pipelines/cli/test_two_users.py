"""Two users of one machine: what one prepares in a shared folder does not reach the other, and nothing can be read.

The victim's commands run as a user of its own, so root is needed, and setpriv for the stranger's.
"""

from __future__ import annotations

import codecs
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest

from tests.pipelines.bridge import Bridge, Done, command, pulled

VICTIM, STRANGER = 54320, 54321
SECRET = "the victim's own words"


def as_user(user: int, *arguments: str) -> list[str]:
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *arguments]


def become_victim(search_path: list[str]) -> None:
    """Gives up root, with all its groups and capabilities, in a process that has imported the program."""
    codecs.lookup("unicode-escape")  # of a package that was found in a folder which the victim may not read
    sys.path[:] = search_path
    os.setgroups([])
    os.setgid(VICTIM)
    os.setuid(VICTIM)


@cache
def victims_search_path() -> list[str]:
    """Where Python finds modules when the victim starts it, who may not read the folders of root's; empty: nowhere."""
    line = as_user(VICTIM, sys.executable, "-P", "-c", "import json, sys; print(json.dumps(sys.path))")
    done = subprocess.run(line, capture_output=True, check=False, cwd="/")
    return list(json.loads(done.stdout)) if done.returncode == 0 else []


def _skipped() -> str:
    if os.name == "nt" or os.geteuid() != 0 or shutil.which("setpriv") is None:
        return "running as two users takes root and setpriv"
    return "" if victims_search_path() else "another user cannot run this Python"


pytestmark = pytest.mark.skipif(bool(_skipped()), reason=_skipped() or "-")


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    with pulled(tmp_path_factory.mktemp("platform")) as made:
        yield made


@pytest.fixture
def home() -> Iterator[Path]:
    """The victim's folder, which every user can enter, as pytest's own cannot be."""
    folder = Path("/tmp") / f"orderbridge-test-{os.getpid()}"
    folder.mkdir()
    os.chown(folder, VICTIM, VICTIM)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def shared(home: Path) -> Path:
    """A folder like /tmp."""
    folder = home / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    own(home / "secret.txt", VICTIM, SECRET)
    return folder


def own(path: Path, user: int, text: str | None = None, mode: int = 0o600) -> Path:
    """Gives a file to a user, written first if a text is given."""
    if text is not None:
        path.write_text(text)
    if not path.is_symlink():
        path.chmod(mode)
    os.chown(path, user, user, follow_symlinks=False)
    return path


@pytest.fixture
def victim(platform: Bridge, home: Path) -> Callable[..., Done]:
    """A command of the victim in a folder, with a sandbox."""
    become = partial(become_victim, victims_search_path())

    def run(*arguments: str, cwd: Path = home, **more: str) -> Done:
        env = platform.environment() | {"SOURCES__LEGACY__LOGIN_MODE": "email", "HOME": str(home), "TMPDIR": str(home)}
        env |= {"WAREHOUSE__PATH": str(cwd / "w.duckdb"), "LEDGER__PATH": str(cwd / "ledger.sqlite")}
        return command(*arguments, env=env | more, cwd=cwd, preexec_fn=become)

    return run


def test_settings_planted_in_a_shared_folder_are_an_error(victim: Callable[..., Done], shared: Path) -> None:
    (shared / ".dlt").mkdir()
    own(shared / ".dlt/config.toml", STRANGER, "[sources.legacy]\nbase_url = 'http://127.0.0.1:1'\n", 0o644)
    own(shared / ".dlt", STRANGER, mode=0o755)
    for arguments in (["pull"], ["check"], ["status"], ["init", "--sandbox"]):
        done = victim(*arguments, cwd=shared, DLT_PROJECT_DIR=str(shared))
        assert (done.code, "belongs to another user" in done.err) == (2, True), done.said
    assert not (shared / ".dlt/secrets.toml").exists()


def facts(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in folder.iterdir()}


def test_no_command_opens_private_files_in_a_folder_that_others_can_write(
    victim: Callable[..., Done], home: Path, shared: Path, platform: Bridge
) -> None:
    """What the stranger planted: a warehouse with a log to replay, a journal of the ledger, links, a plan."""
    (home / "c.csv").write_text("erpCode,email,firstName,lastName\nE1,a@b.example,A,B\n")
    shutil.copyfile(platform.path, shared / "w.duckdb")
    for name in ("w.duckdb", "w.duckdb.wal", "ledger.sqlite-journal", "w.duckdb.failed.json", "plan.json"):
        own(shared / name, STRANGER, None if name == "w.duckdb" else "{}", 0o644)
    for name in ("report.html", "clean.csv", ".gitignore"):
        (shared / name).symlink_to(home / "secret.txt")
        own(shared / name, STRANGER)
    shared.chmod(0o777)  # in a sticky folder, the kernel's own protection of links may be on
    before = facts(shared)
    commands = (
        ["pull", "promotions"], ["reconcile"], ["status"], ["report"], ["check"], ["init", "--sandbox"],
        ["plan", "customers", str(home / "c.csv"), "--passwords", "file"], ["push", "."], ["verify", "."],
        ["preview", str(home / "c.csv"), "--csv", "clean.csv"],
    )  # fmt: skip
    for arguments in commands:
        done = victim(*arguments, cwd=shared, DLT_PROJECT_DIR=str(shared if arguments[0] == "init" else home))
        assert (done.code, f"{shared} can be written by other users" in done.said) == (2, True), done.said
        assert "FILES__SHARED_FOLDER" in done.said, done.said
    assert facts(shared) == before
    assert (home / "secret.txt").read_text() == SECRET


def test_a_folder_that_is_declared_as_shared_is_used(victim: Callable[..., Done], shared: Path) -> None:
    assert victim("pull", "promotions", cwd=shared, FILES__SHARED_FOLDER=str(shared)).code == 0
    assert stat.S_IMODE((shared / "w.duckdb").stat().st_mode) == 0o600


def test_no_other_user_can_read_what_the_commands_write(victim: Callable[..., Done], home: Path) -> None:
    (home / "c.csv").write_text("erpCode,email,firstName,lastName\nE1,a@b.example,A,B\n")
    assert victim("run").code == 0
    assert victim("plan", "customers", "c.csv", "--passwords", "file", "--out", "plan-1").code == 0
    assert victim("push", "plan-1", "--yes").code == 0
    assert victim("report").code == 0
    written = [path for path in home.rglob("*") if path.is_file() and path.name != "c.csv"]
    assert {"w.duckdb", "passwords.csv", "ledger.sqlite", "report.html"} <= {path.name for path in written}
    for path in written:
        assert path.stat().st_uid == VICTIM, path
        read = subprocess.run(as_user(STRANGER, "cat", str(path)), capture_output=True, check=False)
        assert read.returncode != 0, path
