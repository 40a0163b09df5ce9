"""Launchers: files that start the desk of a project by a double click."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from orderbridge.pipelines.desk.launcher import write_launcher
from orderbridge.sources.errors import UsageError


def test_a_desktop_file_starts_the_desk_of_its_project(project: Path) -> None:
    file = project / "shop.desktop"
    write_launcher(file, "es")
    assert file.stat().st_mode & 0o777 == 0o700
    lines = dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
    words = shlex.split(lines["Exec"])
    assert words[words.index("--project") + 1] == str(project)
    assert words[-3:] == ["desk", "--lang", "es"]


def test_a_launcher_of_windows_starts_it_in_this_distribution(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSL_DISTRO_NAME", "Debian")
    file = project / "shop.cmd"
    write_launcher(file, "en")
    text = file.read_bytes()
    assert b'wsl.exe -d "Debian" -- "' in text
    assert b'"--no-browser"\r\n' in text


def test_a_folder_whose_name_would_be_run_gets_no_launcher(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project / "shop $(touch x)"
    folder.mkdir()
    monkeypatch.setenv("DLT_PROJECT_DIR", str(folder))
    with pytest.raises(UsageError, match="cannot hold"):
        write_launcher(project / "shop.desktop", "en")
    with pytest.raises(UsageError, match="no launcher"):
        write_launcher(project / "shop.txt", "en")
    assert [path.name for path in project.iterdir() if path.is_file()] == []


def test_a_launcher_in_a_folder_that_is_missing_names_the_command(project: Path) -> None:
    folder = project / "Escritorio"
    with pytest.raises(UsageError, match=f"mkdir -p {folder}"):
        write_launcher(folder / "shop.desktop", "es")
