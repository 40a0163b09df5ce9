"""`preview` and `template`: what they show and write. A template reads as it stands, with every field."""

from __future__ import annotations

import csv
import json
import os
import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from orderbridge.pipelines.cli.main import orderbridge
from orderbridge.pipelines.cli.preview import preview
from orderbridge.pipelines.cli.template import template
from orderbridge.pipelines.imports import open_inputs
from orderbridge.pipelines.mapping import load
from orderbridge.pipelines.mapping.field_paths import all_paths
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import ReadOptions
from orderbridge.sources.kinds import KINDS, PASSWORD_NAME

DATA = "Listado\n\nCódigo;Nombre\n007;Peña, SL\n1E5;x;y\n008;\x1b[31m[red]\n"
Captured = pytest.CaptureFixture[str]


def shown(
    path: Path, *, rows: int = 10, target: Path | None = None, as_json: bool = False, **options: Any
) -> int:
    return preview(path, ReadOptions(**options), rows=rows, target=target, as_json=as_json)


def written(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "in.csv"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path, DATA, "cp1252")


def test_it_shows_what_was_found_and_the_first_rows(file: Path, capsys: Captured) -> None:
    assert shown(file) == 5
    out, err = capsys.readouterr()
    for words in (
        "cp1252 (assumed)",
        "semicolon",
        "header      line 3",
        "2, and 1 rejected",
        "007",
        "[red]",
    ):
        assert words in out
    assert ("\x1b" in out, err) == (False, "line 5 rejected: 3 cells, but the header has 2\n")
    assert shown(file, as_json=True, rows=1) == 5
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["rejected"], facts["format"]["delimiter"]) == (2, 1, ";")
    assert facts["first"] == [{"line": 4, "cells": ["007", "Peña, SL"]}]
    assert facts["first_rejected"][0]["code"] == "too_long"


def test_it_writes_the_whole_as_clean_csv_and_a_failure_leaves_the_old_target(
    file: Path, capsys: Captured
) -> None:
    target, link, pipe = (file.with_name(name) for name in ("out.csv", "link", "pipe"))
    link.symlink_to("out.csv")
    for _ in range(2):  # the file is not there yet; it is
        assert shown(file, target=link, rows=0) == 5
        assert (
            target.read_bytes()
            == 'Código,Nombre\r\n007,"Peña, SL"\r\n008,\x1b[31m[red]\r\n'.encode()
        )
        assert link.readlink() == Path("out.csv")
    assert "line 5" in capsys.readouterr().err
    os.mkfifo(pipe)
    before = target.read_bytes()
    for to, words in (
        (pipe, "--csv is a device or a pipe"),
        (file.parent, "--csv is a folder"),
        (file, "the input"),
    ):
        with pytest.raises(UsageError, match=words):
            shown(file, target=to)
    file.write_text('a;b\n1;"2"\n"3;4\n')
    with pytest.raises(UsageError, match="never closed"):
        shown(file, target=target, quote="double")
    assert (target.read_bytes(), pipe.is_fifo()) == (before, True)
    assert sorted(path.name for path in file.parent.iterdir()) == [
        "in.csv",
        "link",
        "out.csv",
        "pipe",
    ]


def test_without_a_header_columns_are_numbered_and_if_unclear_both_readings_shown(
    tmp_path: Path, capsys: Captured
) -> None:
    file = written(tmp_path, "A0041;Perno;1,50;\nA0042;Tuerca;2,50;\nA0043;Clavo;3,50;\n")
    assert shown(file, target=tmp_path / "out.csv") == 0
    out = capsys.readouterr().out
    for words in (
        "header      none: the names column_1 and so on are not in the file",
        "left out    1 empty column without a name at the right",
        "column_3",
        "A0041",
    ):
        assert words in out
    with pytest.raises(UsageError, match="looks like a row"):
        shown(written(tmp_path, "2019;2020;2021\n2015;2018;2016\n2014;2012;2011\n"))
    first, second = capsys.readouterr().out.split("If ")[1:]
    assert ("column_1" in first, "column_1" in second, "2019" in second) == (False, True, True)


def test_passwords_are_not_shown(tmp_path: Path, capsys: Captured) -> None:
    path = written(
        tmp_path, "erpCode;Contraseña;city\nE1;planted-1;Vigo\nE2;;Lugo\nE3;planted-2;Ourense\n"
    )
    for as_json in (False, True):
        assert shown(path, as_json=as_json, target=tmp_path / "out.csv") == 0
        out = capsys.readouterr().out
        assert all(text in out for text in ("***", "E1", "Vigo", "E2", "Lugo"))
        assert "planted" not in out
    assert "planted-2" in (tmp_path / "out.csv").read_text("utf-8")
    known = tomllib.loads(
        files("orderbridge.pipelines.mapping").joinpath("column_names.toml").read_text("utf-8")
    )
    assert all(map(PASSWORD_NAME.search, ("password", *known["customers"]["password"].split(", "))))


@pytest.mark.parametrize("kind", KINDS)
def test_templates_have_each_field_and_read_as_they_stand(tmp_path: Path, kind: str) -> None:
    path, file = tmp_path / "mapping.toml", tmp_path / "empty.csv"
    path.write_text(template(kind, mapping=True, file=None), "utf-8")
    file.write_text(template(kind, mapping=False, file=None), "utf-8", newline="")
    assert next(csv.reader(file.read_text("utf-8").splitlines())) == all_paths(kind)
    assert list(load(path, kind).columns) == all_paths(kind)
    for inputs in (open_inputs(kind, file), open_inputs(kind, file, load(path))):
        assert [column.field for column in inputs.mapping.columns.values()] == all_paths(kind)
        assert list(inputs) == []


def test_what_is_a_comment_in_it_reads_too_once_it_is_none(tmp_path: Path) -> None:
    path, whole = tmp_path / "mapping.toml", template("variants", mapping=True, file=None)
    assert (
        'jumpFactor = "jumpFactor"  # whole number; at least 1; default 1; step of the quantity counter'
        in whole
    )
    text = re.sub(r"^(productId|variantId) = .*\n", "", whole, flags=re.M)
    path.write_text(re.sub(r"^# (\[|\w+ = )", r"\1", text, flags=re.M), "utf-8")
    mapping = load(path)
    assert mapping.columns["Observaciones"].field is None
    assert (mapping.read_options.encoding, mapping.formats.decimal, mapping.skip_blank) == (
        "cp1252",
        ",",
        ("PVP",),
    )
    assert mapping.lookups[0].give == {"productId": "product_id", "variantId": "variant_id"}
    text = template("customers", mapping=True, file=written(tmp_path, "Código;NIF\n1;2\n"))
    text = re.sub(r'^"documents.0..isDefault" = .*\n', "", text, flags=re.M)
    path.write_text(text.replace("# [constants]\n# ", "[constants]\n"), "utf-8")
    assert load(path).constants == {"documents[0].isDefault": True}


def test_a_mapping_begins_from_the_columns_of_a_file_and_names_those_of_no_field(
    tmp_path: Path,
) -> None:
    file, path = (
        written(tmp_path, "Artículo;PVP;Descripción;Precio\n1;2;a;3\n", "cp1252"),
        tmp_path / "mapping.toml",
    )
    text = template("variants", mapping=True, file=file)
    path.write_text(text, "utf-8")
    assert {name: column.field for name, column in load(path).columns.items()} == {
        "Artículo": "erpCode"
    }
    assert re.findall(r'^# "?(\w+)"? = ""', text, re.MULTILINE) == ["PVP", "Descripción", "Precio"]
    file = written(tmp_path, "Código;a1x;a2x;a3x;a4x;a5x;a6x;a7x\n1;2;3;4;5;6;7;8\n")
    done = CliRunner().invoke(
        orderbridge, ["template", "customers", "--mapping", "--for", str(file)]
    )
    said = "7 columns without a field, to edit in the mapping file: a1x, a2x, a3x, a4x, a5x, a6x, a7x\n"
    assert (done.exit_code, done.stderr) == (0, said)
    assert done.stdout_bytes.decode("utf-8") == template("customers", mapping=True, file=file)


def test_words_stand_for_signs_that_a_shell_eats() -> None:
    made = ReadOptions(delimiter="tab", quote="single", escape="backslash")
    assert (made.delimiter, made.quote, made.escape) == ("\t", "'", "\\")


def test_short_rows_are_filled_with_a_mapping_too(tmp_path: Path) -> None:
    file, mapping = written(tmp_path, "codigo;nombre\n1;a\n2\n"), tmp_path / "mapping.toml"
    mapping.write_text('kind = "customers"\n[columns]\ncodigo = "erpCode"\nnombre = "firstName"\n')
    of_file = ["preview", str(file), "--mapping", str(mapping)]
    assert "0, and 2 rejected" in CliRunner().invoke(orderbridge, of_file).output
    assert "2, and 0 rejected" in CliRunner().invoke(orderbridge, [*of_file, "--fill-short"]).output
