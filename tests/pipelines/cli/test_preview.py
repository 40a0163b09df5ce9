"""The command `preview`: what it shows, what it writes, and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli.preview import PASSWORD_NAME, PreviewOptions, preview
from sources.errors import UsageError
from sources.files import ReadOptions

DATA = "Listado\n\nCódigo;Nombre\n007;Peña, SL\n1E5;x;y\n008;\x1b[31m[red]\n"


def shown(
    path: Path,
    *,
    rows: int = 10,
    target: Path | None = None,
    as_json: bool = False,
    **options: Any,  # of ReadOptions
) -> int:
    return preview(path, ReadOptions(**options), PreviewOptions(rows, target, as_json))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    path.write_bytes(DATA.encode("cp1252"))
    return path


def test_it_shows_what_was_found_and_the_first_rows(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(file) == 5
    out, err = capsys.readouterr()
    for words in (
        "cp1252",
        "semicolon",
        "preamble    line 1",
        "header      line 3",
        "2, and 1 rejected",
        "007",
        "[red]",
    ):
        assert words in out
    assert "\x1b" not in out
    assert err == "line 5 rejected: 3 cells, but the header has 2\n"


def test_no_column_of_a_wide_table_is_squeezed_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wide.csv"
    names = [f"column {chr(97 + n)}" for n in range(26)]
    path.write_text(";".join(names) + "\n" + ";".join(f"value {n}" for n in range(26)) + "\n")
    assert shown(path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(name in lines[-2] for name in ("line", *names))
    assert all(f"value {n}" in lines[-1] for n in range(26))


def test_it_writes_the_whole_as_clean_csv(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = file.with_name("out.csv")
    assert shown(file, target=target, rows=0) == 5
    assert target.read_bytes() == 'Código,Nombre\r\n007,"Peña, SL"\r\n008,\x1b[31m[red]\r\n'.encode()
    assert sorted(path.name for path in file.parent.iterdir()) == ["in.csv", "out.csv"]
    assert "line 5" in capsys.readouterr().err


def test_a_failure_leaves_the_old_target(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old")
    file.write_text('a;b\n1;"2"\n"3;4\n')
    with pytest.raises(Exception, match="never closed"):
        shown(file, target=target, quote="double")
    assert target.read_text() == "old"
    with pytest.raises(Exception, match="the input file"):
        shown(file, target=file)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


def test_a_device_or_a_pipe_is_left_as_it_is(file: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for target, words in ((pipe, "a device or a pipe"), (link, "a device or a pipe"), (tmp_path, "a folder")):
        with pytest.raises(UsageError, match=f"--csv is {words}"):
            shown(file, target=target)
    assert pipe.is_fifo()
    assert link.readlink() == pipe


def test_a_link_to_a_file_stays_one(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("out.csv")
    for _ in range(2):  # the file is not there yet; it is
        shown(file, target=tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "out.csv").is_file()


@pytest.mark.parametrize("as_json", [False, True])
def test_passwords_are_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    path = tmp_path / "in.csv"
    path.write_text("erpCode;Contraseña;city\nE1;planted-1;Vigo\nE2;;Lugo\nE3;planted-2;Ourense\n")
    assert shown(path, as_json=as_json, target=tmp_path / "out.csv") == 0
    out = capsys.readouterr().out
    assert "***" in out
    assert all(text in out for text in ("E1", "Vigo", "E2", "Lugo"))
    assert "planted" not in out
    assert "planted-2" in (tmp_path / "out.csv").read_text("utf-8")


def test_each_name_of_a_password_column_is_recognised() -> None:
    known = tomllib.loads(files("pipelines.mapping").joinpath("column_names.toml").read_text("utf-8"))
    for name in ("password", *known["customers"]["password"].split(", ")):
        assert PASSWORD_NAME.search(name), name


def test_json_is_for_machines(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(file, as_json=True, rows=1) == 5
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["rejected"], facts["format"]["delimiter"]) == (2, 1, ";")
    assert facts["first"] == [{"line": 4, "cells": ["007", "Peña, SL"]}]
    assert facts["first_rejected"][0]["code"] == "too_long"


def test_a_text_file_has_no_sheets(file: Path) -> None:
    with pytest.raises(UsageError, match=r"in\.csv is a text file, which has no sheets"):
        shown(file, sheet="x")


def test_words_stand_for_signs_that_a_shell_eats() -> None:
    made = ReadOptions(delimiter="tab", quote="single", escape="backslash")
    assert (made.delimiter, made.quote, made.escape) == ("\t", "'", "\\")
    assert ReadOptions(quote="none", escape="doubled").quote == ""
    assert (ReadOptions(delimiter="\\t").delimiter, ReadOptions(quote="double").quote) == ("\t", '"')


def test_the_command_has_its_exit_codes(file: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-X", "importtime", "-m", "pipelines.cli", "preview", *arguments]
        env = {**os.environ, "PYTHONIOENCODING": "utf-8"}
        return subprocess.run(command, capture_output=True, text=True, env=env, check=False)

    first = run(str(file))
    assert first.returncode == 5
    assert "pyarrow.lib" in first.stderr
    assert "pandas.core" not in first.stderr  # 0.3 s for nothing
    whole = run(str(file), "--delimiter", ",", "--header-row", "1", "--json")
    assert whole.returncode in (0, 5)
    missing = run(str(file.with_name("none.csv")))
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "cannot be read" in missing.stderr


def test_11_an_assumed_encoding_is_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown(file)
    assert "cp1252 (assumed)" in capsys.readouterr().out


def test_json_has_no_character_that_a_terminal_acts_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.csv"
    path.write_text("Nombre;Ciudad\n\x1b31m\u202egnp;Peña\n", "utf-8")
    assert shown(path, as_json=True, header_row=1) == 0
    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out)["first"] == [{"line": 2, "cells": ["\x1b31m\u202egnp", "Peña"]}]


def test_a_table_without_a_header_is_shown_with_numbered_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.csv"
    path.write_text("A0041;Perno;1,50\nA0042;Tuerca;2,50\nA0043;Clavo;3,50\n", "utf-8")
    assert shown(path) == 0
    out = capsys.readouterr().out
    assert "header      none, columns are numbered" in out
    assert "3: column_1, column_2, column_3" in out
    assert "A0041" in out


def test_where_the_header_is_not_clear_both_readings_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.csv"
    path.write_text("2019;2020;2021\n2015;2018;2016\n2014;2012;2011\n", "utf-8")
    with pytest.raises(UsageError, match="looks like a row"):
        shown(path)
    first, second = capsys.readouterr().out.split("If ")[1:]
    assert first.startswith("line 1 has the names:")
    assert second.startswith("there are no names:")
    assert "column_1" not in first
    assert "column_1" in second
    assert "2019" in second
