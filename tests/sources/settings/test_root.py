"""Where settings are found, and what dlt reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sources.settings import find_root, ledger_path, legacy_settings, project_file, set_project
from tests.sources.settings.samples import CHECKOUT, LEGACY, refused, write

# For a user whose home cannot be written, dlt's global folder is `<tmp>/dlt`, which anyone may create. For root it has
# another one.
PRELUDE = """
import os, sys
from pathlib import Path
os.geteuid = lambda user=os.geteuid() or 1000: user
os.environ.pop("RUNTIME__DLTHUB_TELEMETRY", None)
{before}
from sources.settings import *
root, other, data = map(Path, sys.argv[1:])
prepare_dlt(root, data)
os.chdir("/")
ours = legacy_settings()
"""
THEIRS = """
load_dlt()
import dlt
context = dlt.current.run_context()
assert (context.global_dir, context.runtime_config.dlthub_telemetry) == (str(root / ".dlt"), False)
assert dlt.secrets["sources.legacy.api_key"] == ours.api_key.reveal()
assert dlt.config["sources.legacy.page_limit"] == ours.page_limit == 7
assert dlt.secrets.get("destination.postgres.credentials") is None
assert dlt.config.get("runtime.sentry_dsn") is None
prepare_dlt(other, data)
load_dlt()
assert dlt.secrets["sources.legacy.api_key"] == "of another organization"
assert dlt.current.run_context().local_dir == str(other)
assert os.umask(0) == 0o077
"""
READ_BEFORE = "import dlt\nassert dlt.secrets.get('destination.postgres.credentials'), 'dlt reads that folder'\n"
SOURCES = """
import os
os.environ.pop("RUNTIME__DLTHUB_TELEMETRY", None)
import sources.legacy, dlt
assert dlt.current.run_context().runtime_config.dlthub_telemetry is False
"""
PROGRAMS = {
    "the sources turn telemetry off": SOURCES,
    "dlt is imported later": PRELUDE.format(before="") + "assert 'dlt' not in sys.modules" + THEIRS,
    "dlt has read its global folder before": PRELUDE.format(before=READ_BEFORE) + THEIRS,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_dlt_reads_the_settings_of_the_project_and_no_others(root: Path, tmp_path: Path, name: str) -> None:
    """In a process of its own: dlt's context is the process's."""
    write(root, LEGACY, "[sources.legacy]\npage_limit = 7\n")
    other, planted = tmp_path / "other", tmp_path / "tmp" / "dlt"
    (other / ".dlt").mkdir(parents=True)
    write(other, "[sources.legacy]\napi_key = 'of another organization'\n")
    planted.mkdir(parents=True)
    (planted / "secrets.toml").write_text("[destination.postgres]\ncredentials = 'postgres://planted'\n")
    if "before" not in name:  # it is used at import, and would look for a package that is not there
        (planted / "config.toml").write_text("[runtime]\nsentry_dsn = 'https://planted.example'\n")
    subprocess.run(
        [sys.executable, "-c", PROGRAMS[name], str(root), str(other), str(tmp_path / "data")],
        check=True,
        cwd=tmp_path,
        env={
            **os.environ, "PYTHONPATH": str(CHECKOUT), "DLT_DATA_DIR": str(tmp_path / "data"),
            "TMPDIR": str(tmp_path / "tmp"), "HOME": "/nonexistent",
        },
        timeout=60,
    )  # fmt: skip


def test_the_root_is_the_nearest_folder_with_dlt(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = root / "notebooks" / "deep"
    deep.mkdir(parents=True)
    assert project_file("plan") == Path("plan")
    monkeypatch.chdir(deep)
    assert find_root() == root
    assert project_file("plan") == root / "plan"
    monkeypatch.setenv("DLT_PROJECT_DIR", str(deep))
    assert find_root() == deep
    monkeypatch.setenv("DLT_PROJECT_DIR", str(deep / "none"))
    with refused("DLT_PROJECT_DIR"):
        find_root()


def test_home_counts_if_it_has_settings_of_ours_and_the_search_ends_there_and_at_a_mount(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the checkout counts if it has settings, otherwise the current folder."""
    home = tmp_path / "home"
    for folder in (tmp_path, home):
        (folder / ".dlt").mkdir(parents=True)
    (home / "work").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "work")
    for foreign in ("", "[runtime]\ndlthub_telemetry = true\n", "[sources.github]\napi_key = 'x'\n"):
        write(home, config=foreign)
        assert find_root() == home / "work"
    write(home, config="[sources.legacy]\nbase_url = 'https://api.example.com'\n")
    assert find_root() == home
    (home / ".dlt").rename(home / "settings")
    monkeypatch.setenv("HOME", "/nonexistent")
    assert find_root() == tmp_path
    with monkeypatch.context() as patched:
        patched.setattr(Path, "is_mount", lambda path: path == home)
        assert find_root() == home / "work"
    monkeypatch.chdir("/")
    assert find_root() == Path("/")
    write(root, LEGACY)
    monkeypatch.setattr("sources.settings.root.CHECKOUT", root)
    assert find_root() == root


@pytest.mark.parametrize("name", ["warehouse.duckdb", "ledger.sqlite"])
def test_files_where_earlier_versions_had_them_are_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write(root, LEGACY)
    (root / "sub").mkdir()
    monkeypatch.chdir(root / "sub")
    (root / "sub" / name).touch()
    with refused(f"{root / name} does not exist, but {root / 'sub' / name} does"):
        ledger_path()
    (root / "sub/.dlt").mkdir()
    monkeypatch.setenv("DLT_PROJECT_DIR", str(root))
    write(root / "sub", LEGACY)
    assert ledger_path() == root / "ledger.sqlite", "that of another project is its own"
    monkeypatch.setenv("WAREHOUSE__PATH", str(root / "warehouse.duckdb"))
    assert ledger_path() == root / "ledger.sqlite"
    monkeypatch.delenv("WAREHOUSE__PATH")
    (root / "sub" / name).rename(root / name)
    assert ledger_path() == root / "ledger.sqlite"


def test_set_project_names_the_root_of_the_process(root: Path, tmp_path: Path) -> None:
    write(root, LEGACY)
    other = tmp_path / "other"
    (other / ".dlt").mkdir(parents=True)
    write(other, LEGACY.replace("a.example", "other.example"))
    assert set_project(other) == other
    assert legacy_settings().base_url == "https://other.example"
    assert os.environ["DLT_PROJECT_DIR"] == str(other)
    with refused("there is no folder", "--project"):
        set_project(tmp_path / "none")


def test_host_and_key_come_from_one_folder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host in dlt's global folder, or in a folder above, gets no key of the project."""
    write(root, LEGACY.replace('base_url = "https://a.example"\n', ""))
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in (tmp_path / ".dlt", tmp_path / "global" / "dlt"):
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text("[sources.legacy]\nbase_url = 'https://planted.example'\n")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "global"))
    with refused("base_url", "is not set"):
        legacy_settings()
