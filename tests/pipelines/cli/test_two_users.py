"""Two users of one machine: what one prepares in a shared folder does not reach the other, and nothing can be read.

The victim's commands run as a user of its own, so root is needed, and setpriv for the stranger's.
"""

from __future__ import annotations

import codecs
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import duckdb
import pytest

from pipelines.ledger.store import Ledger
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
def shared() -> Iterator[Path]:
    """A folder like /tmp, which every user can reach; pytest's own folders are closed."""
    folder = Path("/tmp") / f"orderbridge-test-{os.getpid()}"
    folder.mkdir()
    for name, mode, owner in (("shared", 0o1777, 0), ("victim", 0o755, VICTIM)):
        (folder / name).mkdir()
        (folder / name).chmod(mode)
        os.chown(folder / name, owner, owner)
    own(folder / "victim/secret.txt", VICTIM, SECRET)
    yield folder / "shared"
    shutil.rmtree(folder)


def own(path: Path, user: int, text: str | None = None, mode: int = 0o600) -> Path:
    """Gives a file to a user, written first if a text is given."""
    if text is not None:
        path.write_text(text)
    if not path.is_symlink():
        path.chmod(mode)
    os.chown(path, user, user, follow_symlinks=False)
    return path


@pytest.fixture
def victim(platform: Bridge, shared: Path) -> Callable[..., Done]:
    """A command of the victim in the shared folder."""
    home, become = shared.parent / "victim", partial(become_victim, victims_search_path())

    def run(*arguments: str, settings: bool = True, **more: str) -> Done:
        env = {name: value for name, value in platform.environment().items() if settings or "__" not in name}
        env |= {"HOME": str(home), "TMPDIR": str(home)}
        if settings:
            env |= {"WAREHOUSE__PATH": str(shared / "w.duckdb"), "LEDGER__PATH": str(home / "ledger.sqlite")}
        return command(*arguments, env=env | more, cwd=shared, preexec_fn=become, timeout=120)

    return run


def is_untouched(shared: Path) -> bool:
    return (shared.parent / "victim/secret.txt").read_text() == SECRET


def test_issue_14_1_settings_planted_in_a_shared_folder_are_an_error(victim: Callable[..., Done], shared: Path) -> None:
    (shared / ".dlt").mkdir()
    own(shared / ".dlt/config.toml", STRANGER, "[sources.legacy]\nbase_url = 'http://127.0.0.1:1'\n", 0o644)
    own(shared / ".dlt", STRANGER, mode=0o755)
    for arguments in (["pull"], ["check"], ["status"], ["init", "--sandbox"]):
        done = victim(*arguments)
        assert (done.code, "belongs to another user" in done.err) == (2, True), done.said
    assert not (shared / ".dlt/secrets.toml").exists()


@pytest.mark.parametrize(
    "name", [".w.duckdb.lock", ".build-w.duckdb", "w.duckdb.failed.json", "w.duckdb.quarantine.jsonl"]
)
def test_issue_14_3_links_next_to_the_warehouse_are_not_followed(
    victim: Callable[..., Done], shared: Path, name: str
) -> None:
    secret = shared.parent / "victim/secret.txt"
    shared.chmod(0o777)  # in a sticky folder, the kernel's own protection of links may be on
    (shared / name).symlink_to(secret.parent if name == ".build-w.duckdb" else secret)
    own(shared / name, STRANGER)
    done = victim("pull", "promotions")
    assert done.code in (0, 2), done.said
    assert is_untouched(shared)
    assert victim("pull", "orders", SOURCES__PUBLIC_V1__API_KEY="brand_test_wrong").code in (2, 3)
    assert is_untouched(shared)


@pytest.mark.parametrize("name", ["w.duckdb", "out.csv", ".gitignore"])
def test_issue_14_3_a_link_of_another_user_in_the_place_of_an_output_is_an_error(
    victim: Callable[..., Done], shared: Path, name: str
) -> None:
    (shared / name).symlink_to(shared.parent / "victim/secret.txt")
    own(shared / name, STRANGER)
    (shared / "in.csv").write_text("a,b\n1,2\n")
    arguments = {
        "w.duckdb": ("pull", "promotions"),
        "out.csv": ("preview", "in.csv", "--csv", "out.csv"),
        ".gitignore": ("init", "--sandbox"),
    }[name]
    shared.chmod(0o777)  # in a sticky folder, the kernel's own protection of links may be on
    (shared / ".dlt").mkdir()
    own(shared / ".dlt", VICTIM, mode=0o700)
    done = victim(*arguments)
    assert (done.code, "link" in done.err) == (2, True), done.said
    assert is_untouched(shared)


def test_issue_14_7_a_view_over_other_files_in_a_strangers_warehouse_is_an_error(
    victim: Callable[..., Done], shared: Path, platform: Bridge
) -> None:
    warehouse = shared / "w.duckdb"
    shutil.copyfile(platform.path, warehouse)
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("DROP TABLE raw.promotions")
        connection.execute(
            f"CREATE VIEW raw.promotions AS SELECT content AS id FROM read_text('{shared.parent}/victim/secret.txt')"
        )
    own(warehouse, STRANGER, mode=0o644)
    for arguments in (["status"], ["report"], ["reconcile"], ["pull", "promotions"]):
        done = victim(*arguments)
        assert (done.code, "the view raw.promotions in" in done.err) == (2, True), done.said
        assert SECRET not in done.said


def test_issue_14_14_a_ledger_of_another_user_is_an_error(victim: Callable[..., Done], shared: Path) -> None:
    Ledger.open(shared / "ledger.sqlite").close()
    for file in shared.glob("ledger.sqlite*"):
        own(file, STRANGER, mode=0o666)
    done = victim("status", LEDGER__PATH=str(shared / "ledger.sqlite"))
    assert (done.code, "owned by another user" in done.err) == (2, True), done.said


def test_issue_14_no_other_user_can_read_what_the_commands_write(victim: Callable[..., Done], shared: Path) -> None:
    (shared / "c.csv").write_text("erpCode,email,firstName,lastName\nE1,a@b.example,A,B\n")
    assert victim("run").code == 0
    login = {"SOURCES__LEGACY__LOGIN_MODE": "email"}
    assert victim("plan", "customers", "c.csv", "--passwords", "file", "--out", "plan-1", **login).code == 0
    assert victim("push", "plan-1", "--yes", **login).code == 0
    assert victim("report").code == 0
    home = shared.parent / "victim"
    written = [path for path in (*shared.rglob("*"), *home.rglob("*")) if path.is_file() and path.name != "c.csv"]
    assert {"w.duckdb", "passwords.csv", "ledger.sqlite", "report.html"} <= {path.name for path in written}
    for path in written:
        assert path.stat().st_uid == VICTIM, path
        read = subprocess.run(as_user(STRANGER, "cat", str(path)), capture_output=True, check=False)
        assert read.returncode != 0, path
