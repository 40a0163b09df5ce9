"""Where settings are found, who may write them, and what dlt reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sources.errors import UsageError
from sources.settings import (
    find_root,
    ledger_path,
    legacy_settings,
    set_project,
)
from tests.sources.settings.samples import CHECKOUT, LEGACY, write


def isolated(program: str, root: Path, tmp_path: Path, **environment: str) -> None:
    """Runs a program in a process of its own: dlt's context is the process's."""
    subprocess.run(
        [sys.executable, "-c", program, str(root), str(tmp_path / "data")],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **environment},
        timeout=60,
    )


def test_dlt_resolves_the_same_values(root: Path, tmp_path: Path) -> None:
    write(root, LEGACY, "[sources.legacy]\npage_limit = 7\n")
    program = (
        "import os, sys; from pathlib import Path; from sources.settings import *\n"
        "root = find_root(); prepare_dlt(root, Path(sys.argv[1])); assert 'dlt' not in sys.modules\n"
        "os.chdir('/')\n"
        "ours = legacy_settings()\n"
        "assert 'dlt' not in sys.modules\n"
        "load_dlt()\n"
        "import dlt\n"
        "assert dlt.secrets['sources.legacy.api_key'] == ours.api_key.reveal()\n"
        "assert dlt.config['sources.legacy.page_limit'] == ours.page_limit == 7\n"
        "assert os.umask(0) == 0o077\n"
    )
    checkout = str(CHECKOUT)
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "data")],
        check=True,
        env={**os.environ, "PYTHONPATH": checkout},
        timeout=60,
    )


def test_dlt_uses_the_root_even_if_imported_before(root: Path, tmp_path: Path) -> None:
    write(root, LEGACY)
    program = (
        "import sys; from pathlib import Path; import dlt; from sources.settings import *\n"
        "assert dlt.secrets.get('sources.legacy.api_key') is None\n"
        "prepare_dlt(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "assert dlt.secrets['sources.legacy.api_key']\n"
    )
    checkout = str(CHECKOUT)
    subprocess.run(
        [sys.executable, "-c", program, str(root), str(tmp_path / "data")],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": checkout, "DLT_DATA_DIR": str(tmp_path / "data")},
        timeout=60,
    )


def test_dlt_uses_the_next_root_once_another_is_named(root: Path, tmp_path: Path) -> None:
    write(root, LEGACY)
    other = tmp_path / "other"
    (other / ".dlt").mkdir(parents=True)
    write(other, "[sources.legacy]\napi_key = 'of another organization'\n")
    program = (
        "import sys; from pathlib import Path; from sources.settings import *\n"
        "for root in sys.argv[1], sys.argv[3]:\n"
        "    prepare_dlt(Path(root), Path(sys.argv[2]))\n"
        "    load_dlt()\n"
        "import dlt\n"
        "assert dlt.secrets['sources.legacy.api_key'] == 'of another organization'\n"
        "assert dlt.current.run_context().local_dir == sys.argv[3]\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(root), str(tmp_path / "data"), str(other)],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        timeout=60,
    )


def test_the_root_is_the_nearest_folder_with_dlt(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = root / "notebooks" / "deep"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert find_root() == root
    monkeypatch.setenv("DLT_PROJECT_DIR", str(deep))
    assert find_root() == deep
    monkeypatch.setenv("DLT_PROJECT_DIR", str(deep / "none"))
    with pytest.raises(UsageError, match="DLT_PROJECT_DIR"):
        find_root()


def test_the_home_folder_of_dlt_is_not_a_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".dlt").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.delenv("DLT_PROJECT_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "work")
    config = tmp_path / ".dlt" / "config.toml"
    for foreign in ("", "[runtime]\ndlthub_telemetry = true\n", "[sources.github]\napi_key = 'x'\n"):
        config.write_text(foreign)
        assert find_root() == tmp_path / "work"
    config.write_text("[sources.legacy]\nbase_url = 'https://api.example.com'\n")
    assert find_root() == tmp_path


def test_the_checkout_is_the_root_if_it_has_settings_and_no_folder_above_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DLT_PROJECT_DIR", raising=False)
    monkeypatch.chdir("/")
    assert find_root() == Path("/")
    (tmp_path / ".dlt").mkdir()
    write(tmp_path, LEGACY)
    monkeypatch.setattr("sources.settings.root.CHECKOUT", tmp_path)
    assert find_root() == tmp_path


@pytest.mark.parametrize("name", ["warehouse.duckdb", "ledger.sqlite"])
def test_files_where_earlier_versions_had_them_are_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write(root, LEGACY)
    (root / "sub").mkdir()
    monkeypatch.chdir(root / "sub")
    (root / "sub" / name).touch()
    with pytest.raises(UsageError, match=f"{root / name} does not exist, but {root / 'sub' / name} does"):
        ledger_path()
    monkeypatch.setenv("WAREHOUSE__PATH", str(root / "warehouse.duckdb"))
    assert ledger_path() == root / "ledger.sqlite"
    monkeypatch.delenv("WAREHOUSE__PATH")
    (root / "sub" / name).rename(root / name)
    assert ledger_path() == root / "ledger.sqlite"


def test_the_search_for_settings_ends_at_home_and_at_a_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    (tmp_path / ".dlt").mkdir()
    monkeypatch.delenv("DLT_PROJECT_DIR", raising=False)
    monkeypatch.chdir(home / "work")
    assert find_root() == tmp_path
    with monkeypatch.context() as patched:
        patched.setenv("HOME", str(home))
        assert find_root() == home / "work"
    monkeypatch.setattr(Path, "is_mount", lambda path: path == home)
    assert find_root() == home / "work"


def test_set_project_names_the_root_of_the_process(root: Path, tmp_path: Path) -> None:
    write(root, LEGACY)
    other = tmp_path / "other"
    (other / ".dlt").mkdir(parents=True)
    (other / ".dlt" / "secrets.toml").write_text(LEGACY.replace("a.example", "other.example"), "utf-8")
    assert set_project(other) == other
    assert legacy_settings().base_url == "https://other.example"
    assert os.environ["DLT_PROJECT_DIR"] == str(other)
    with pytest.raises(UsageError, match="--project: there is no folder"):
        set_project(tmp_path / "none")


def test_host_and_key_come_from_one_folder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host in dlt's global folder, or in a folder above, gets no key of the project."""
    write(root, LEGACY.replace('base_url = "https://a.example"\n', ""))
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in (tmp_path / ".dlt", tmp_path / "global" / "dlt"):
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text("[sources.legacy]\nbase_url = 'https://planted.example'\n")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "global"))
    with pytest.raises(UsageError, match=r"base_url .* is not set"):
        legacy_settings()


@pytest.mark.parametrize("is_imported", [True, False], ids=["dlt before", "dlt after"])
def test_the_global_folder_of_dlt_is_not_read(root: Path, tmp_path: Path, is_imported: bool) -> None:
    """For a user whose home cannot be written it is `<tmp>/dlt`, which anyone may create."""
    write(root, LEGACY)
    planted = tmp_path / "tmp" / "dlt"
    planted.mkdir(parents=True)
    (planted / "secrets.toml").write_text("[destination.postgres]\ncredentials = 'postgres://planted'\n")
    if not is_imported:  # it is used at import, and would look for a package that is not there
        (planted / "config.toml").write_text("[runtime]\nsentry_dsn = 'https://planted.example'\n")
    before = "import dlt\nassert dlt.secrets.get('destination.postgres.credentials'), 'dlt reads that folder'\n"
    program = (
        "import os, sys; from pathlib import Path\n"
        "os.geteuid = lambda user=os.geteuid() or 1000: user\n"  # dlt has another folder for root
        f"{before if is_imported else ''}"
        "from sources.settings import *\n"
        "root = Path(sys.argv[1]); prepare_dlt(root, Path(sys.argv[2]))\n"
        "assert legacy_settings().base_url == 'https://a.example'\n"
        "load_dlt()\n"
        "import dlt\n"
        "assert dlt.current.run_context().global_dir == str(root / '.dlt')\n"
        "assert dlt.secrets.get('destination.postgres.credentials') is None\n"
        "assert dlt.config.get('runtime.sentry_dsn') is None\n"
        "assert dlt.secrets['sources.legacy.api_key']\n"
    )
    isolated(program, root, tmp_path, TMPDIR=str(tmp_path / "tmp"), HOME="/nonexistent")


def test_telemetry_is_off_for_whoever_imports_the_sources(tmp_path: Path) -> None:
    program = (
        "import os; os.environ.pop('RUNTIME__DLTHUB_TELEMETRY', None)\n"
        "import sources.legacy\n"
        "import dlt\n"
        "assert dlt.current.run_context().runtime_config.dlthub_telemetry is False\n"
    )
    isolated(program, tmp_path, tmp_path, DLT_DATA_DIR=str(tmp_path / "data"))
