"""What `template` prints: it reads as it stands, with every field of the contract."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipelines.cli.main import orderbridge
from pipelines.cli.template import template
from pipelines.imports import open_inputs
from pipelines.mapping import load
from pipelines.mapping.field_paths import all_paths
from sources.errors import UsageError
from sources.kinds import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_the_csv_has_a_column_for_each_field_and_needs_no_mapping(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "empty.csv"
    file.write_text(template(kind, mapping=False, file=None), "utf-8", newline="")
    assert next(csv.reader(file.read_text("utf-8").splitlines())) == all_paths(kind)
    inputs = open_inputs(kind, file)
    assert [column.field for column in inputs.mapping.columns.values()] == all_paths(kind)
    assert list(inputs) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_mapping_reads_and_maps_that_csv(tmp_path: Path, kind: str) -> None:
    path, file = tmp_path / "mapping.toml", tmp_path / "empty.csv"
    path.write_text(template(kind, mapping=True, file=None), "utf-8")
    file.write_text(template(kind, mapping=False, file=None), "utf-8")
    assert list(load(path, kind).columns) == all_paths(kind)
    assert list(open_inputs(kind, file, load(path))) == []


def test_what_is_a_comment_in_it_reads_too_once_it_is_none(tmp_path: Path) -> None:
    path = tmp_path / "mapping.toml"
    text = re.sub(
        r"^(productId|variantId) = .*\n", "", template("variants", mapping=True, file=None), flags=re.MULTILINE
    )
    path.write_text(re.sub(r"^# (\[|\w+ = )", r"\1", text, flags=re.MULTILINE), "utf-8")
    mapping = load(path)
    assert mapping.columns["Observaciones"].field is None
    assert (mapping.read_options.encoding, mapping.formats.decimal, mapping.skip_blank) == ("cp1252", ",", ("PVP",))
    assert mapping.lookups[0].give == {"productId": "product_id", "variantId": "variant_id"}


@pytest.mark.parametrize("header", [None, "Código;NIF"])
def test_a_mapping_of_customers_shows_a_constant(tmp_path: Path, header: str | None) -> None:
    file = None
    if header is not None:
        file = tmp_path / "clientes.csv"
        file.write_text(f"{header}\n1;2\n", "utf-8")
    text = re.sub(r'^"documents.0..isDefault" = .*\n', "", template("customers", mapping=True, file=file), flags=re.M)
    path = tmp_path / "mapping.toml"
    path.write_text(text.replace("# [constants]\n# ", "[constants]\n"), "utf-8")
    assert load(path).constants == {"documents[0].isDefault": True}


def test_it_begins_from_the_columns_of_a_file(tmp_path: Path) -> None:
    file, path = tmp_path / "articulos.csv", tmp_path / "mapping.toml"
    file.write_bytes("Artículo;PVP;Descripción;Precio\n1;2;a;3\n".encode("cp1252"))
    text = template("variants", mapping=True, file=file)
    path.write_text(text, "utf-8")
    assert {name: column.field for name, column in load(path).columns.items()} == {"Artículo": "erpCode"}
    for name in ("Descripción", "PVP", "Precio"):
        assert re.search(rf'^# "?{name}"? = ""', text, re.MULTILINE), name


def test_a_file_is_for_a_mapping_only(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--for requires --mapping"):
        template("variants", mapping=False, file=tmp_path / "a.csv")


def test_the_command_prints_it_as_utf8() -> None:
    done = CliRunner().invoke(orderbridge, ["template", "variants", "--mapping"])
    assert done.exit_code == 0, done.output
    assert done.stdout_bytes.decode("utf-8") == template("variants", mapping=True, file=None)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("Código;Nombre", ""),
        ("Código;Vendedor", "1 column fits no field: Vendedor: edit its line in the mapping file\n"),
        (
            "Código;a1x;a2x;a3x;a4x;a5x;a6x;a7x",
            "7 columns fit no field: a1x, a2x, a3x, a4x, a5x, 2 more: edit their lines in the mapping file\n",
        ),
    ],
)
def test_the_command_prints_on_stderr_which_columns_fit_no_field(tmp_path: Path, header: str, said: str) -> None:
    file = tmp_path / "clientes.csv"
    file.write_text(f"{header}\n{';'.join('x' for _ in header.split(';'))}\n", "utf-8")
    done = CliRunner().invoke(orderbridge, ["template", "customers", "--mapping", "--for", str(file)])
    assert (done.exit_code, done.stderr) == (0, said)
    assert done.stdout == template("customers", mapping=True, file=file)
