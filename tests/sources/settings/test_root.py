"""Where settings are found, and what dlt reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sources.settings import find_root, ledger_path, legacy_settings, project_file, set_project
from tests.sources.settings.samples import CHECKOUT, LEGACY, refused, write

PRELUDE = (
    "import os, sys; from pathlib import Path; from sources.settings import *\n"
    "root, other = Path(sys.argv[1]), Path(sys.argv[2])\n"
    "prepared = lambda folder: prepare_dlt(folder, Path(sys.argv[3]))\n"
)
TELEMETRY = (
    "import os; os.environ.pop('RUNTIME__DLTHUB_TELEMETRY', None)\n"
    "import sources.legacy, dlt\n"
    "assert dlt.current.run_context().runtime_config.dlthub_telemetry is False\n"
)
SAME_VALUES = (
    f"{PRELUDE}"
    "prepared(root); os.chdir('/')\n"
    "ours = legacy_settings()\n"
    "assert 'dlt' not in sys.modules\n"
    "load_dlt()\n"
    "import dlt\n"
    "assert dlt.secrets['sources.legacy.api_key'] == ours.api_key.reveal()\n"
    "assert dlt.config['sources.legacy.page_limit'] == ours.page_limit == 7\n"
    "assert os.umask(0) == 0o077\n"
)
IMPORTED_BEFORE = (
    "import dlt\n"
    f"{PRELUDE}"
    "assert dlt.secrets.get('sources.legacy.api_key') is None\n"
    "prepared(root)\n"
    "assert dlt.secrets['sources.legacy.api_key']\n"
)
NEXT_ROOT = (
    f"{PRELUDE}"
    "for folder in root, other:\n"
    "    prepared(folder)\n"
    "    load_dlt()\n"
    "import dlt\n"
    "assert dlt.secrets['sources.legacy.api_key'] == 'of another organization'\n"
    "assert dlt.current.run_context().local_dir == str(other)\n"
)
# For a user whose home cannot be written, dlt's global folder is `<tmp>/dlt`, which anyone may create.
USER = "import os; os.geteuid = lambda user=os.geteuid() or 1000: user\n"  # dlt has another folder for root
GLOBAL_FOLDER = (
    f"{PRELUDE}"
    "prepared(root)\n"
    "assert legacy_settings().base_url == 'https://a.example'\n"
    "load_dlt()\n"
    "import dlt\n"
    "assert dlt.current.run_context().global_dir == str(root / '.dlt')\n"
    "assert dlt.secrets.get('destination.postgres.credentials') is None\n"
    "assert dlt.config.get('runtime.sentry_dsn') is None\n"
    "assert dlt.secrets['sources.legacy.api_key']\n"
)
READ_BEFORE = "import dlt\nassert dlt.secrets.get('destination.postgres.credentials'), 'dlt reads that folder'\n"
PROGRAMS = {
    "telemetry is off": TELEMETRY,
    "dlt resolves the same values": SAME_VALUES,
    "also if it was imported before": IMPORTED_BEFORE,
    "and those of the next project": NEXT_ROOT,
    "never of its global folder": USER + GLOBAL_FOLDER,
    "nor if it had read it": USER + READ_BEFORE + GLOBAL_FOLDER,
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
    if name == "never of its global folder":  # it is used at import, and would look for a package that is not there
        (planted / "config.toml").write_text("[runtime]\nsentry_dsn = 'https://planted.example'\n")
    home = {"TMPDIR": str(tmp_path / "tmp"), "HOME": "/nonexistent"} if USER in PROGRAMS[name] else {}
    subprocess.run(
        [sys.executable, "-c", PROGRAMS[name], str(root), str(other), str(tmp_path / "data")],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "DLT_DATA_DIR": str(tmp_path / "data"), **home},
        timeout=60,
    )


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


def test_the_home_folder_of_dlt_is_not_a_root(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".dlt").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "work")
    for foreign in ("", "[runtime]\ndlthub_telemetry = true\n", "[sources.github]\napi_key = 'x'\n"):
        write(tmp_path, config=foreign)
        assert find_root() == tmp_path / "work"
    write(tmp_path, config="[sources.legacy]\nbase_url = 'https://api.example.com'\n")
    assert find_root() == tmp_path


def test_the_checkout_is_the_root_if_it_has_settings_and_no_folder_above_has(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    assert find_root() == Path("/")
    write(root, LEGACY)
    monkeypatch.setattr("sources.settings.root.CHECKOUT", root)
    assert find_root() == root


def test_the_search_for_settings_ends_at_home_and_at_a_mount(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    (tmp_path / ".dlt").mkdir()
    monkeypatch.chdir(home / "work")
    assert find_root() == tmp_path
    with monkeypatch.context() as patched:
        patched.setenv("HOME", str(home))
        assert find_root() == home / "work"
    monkeypatch.setattr(Path, "is_mount", lambda path: path == home)
    assert find_root() == home / "work"


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
