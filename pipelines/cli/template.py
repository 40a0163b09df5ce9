"""The command `template`: an empty CSV with every column of a kind, or a mapping file to begin with.

In: a kind, and maybe a file of the ERP's. Out: text. The CSV needs no mapping: its columns are named as the fields are.
The mapping file reads as it stands; what a person has to decide is in it as a comment.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from sources.contract import Field
from sources.errors import UsageError
from sources.kinds import KINDS, PASSWORD

_HEAD: Final = """\
# A mapping: which column of a file is which field of the platform's. docs/mapping.md explains every key.
# A line that begins with # is a comment. Names with blanks, accents or brackets stand in quotes.
"""
_IGNORE: Final = """\
# Columns that are not sent; it stands here, before the first [table]:
# ignore = ["Observaciones"]
"""
_KEYS: Final = """
# How numbers are written, where the columns do not prove it:
# [numbers]
# decimal = ","
# thousands = "."

# Words for true and false, in any case:
# [booleans]
# yes = ["S", "Sí"]
# no = ["N", "No"]

# How the file is read, where it is not found rightly (see orderbridge preview):
# [file]
# encoding = "cp1252"
# delimiter = ";"
# header_row = 1
# sheet = "Hoja1"

# Texts that mean an empty cell; a line that is no input where these columns are empty:
# [rows]
# empty = ["NULL"]
# skip_blank = ["PVP"]

# Ids that stand in another file, beside this one:
# [[lookup]]
# file = "ids.csv"
# match = { "Artículo" = "sku" }
# give = { productId = "product_id", variantId = "variant_id" }
"""
_PASSWORDS: Final = """
# Passwords of new customers, where no column holds them: mailed by the platform, or kept in a file for you.
# [passwords]
# make = "mail"
"""


def template(kind: str, *, mapping: bool, file: Path | None) -> str:
    """A CSV, or a mapping file.

    Args:
        kind: of the inputs.
        mapping: a mapping file is wanted.
        file: whose columns it is of; None: of the CSV that this makes.

    Raises:
        UsageError: the file cannot be read, or is told for a CSV.
    """
    if file is not None and not mapping:
        raise UsageError("--for is of a mapping file", "Add --mapping.")
    if not mapping:
        return csv_of(kind)
    if file is None:
        return mapping_of(kind)
    from pipelines.mapping import propose, to_toml
    from sources.files import open_table

    proposed = propose(open_table(file).columns, kind, doubtful="leave")
    first, rest = to_toml(proposed).split("\n", 1)
    return "".join([_HEAD, first, "\n", _IGNORE, rest, _PASSWORDS if KINDS[kind].has_login else "", _KEYS])


def csv_of(kind: str) -> str:
    """The header of a CSV in which every field has its column, the first item of each list."""
    from pipelines.mapping.places import examples

    out = io.StringIO()
    csv.writer(out).writerow(examples(kind))
    return out.getvalue()


def mapping_of(kind: str) -> str:
    """A mapping of that CSV, with what is known of each field."""
    from pipelines.mapping import MappedColumn, Mapping, to_toml
    from pipelines.mapping.places import examples
    from sources.inputs import paths

    proposed = Mapping(kind, {path: MappedColumn(path, path) for path in examples(kind)})
    limits = dict(zip(examples(kind), paths(kind).items(), strict=True))
    lines = to_toml(proposed).splitlines()
    begin = lines.index("[columns]") + 1
    fields = [
        f"{line}  # {'; '.join(_words(kind, path, field))}"
        for line, (path, field) in zip(lines[begin:], limits.values(), strict=True)
    ]
    tables = "\n".join([*lines[1:begin], *fields, ""])
    return "".join([_HEAD, lines[0], "\n", _IGNORE, tables, _PASSWORDS if KINDS[kind].has_login else "", _KEYS])


def _words(kind: str, path: str, field: Field) -> Iterator[str]:
    """What a person should know of a field."""
    from sources.inputs import required

    yield {"identifier": "id", "boolean": "yes or no", "integer": "whole number"}.get(field.type, field.type)
    top = path.partition(".")[0].partition("[")[0]
    if path in required(kind) or any(one.required and one.name == top for one in KINDS[kind].record.fields):
        yield "required" if path == top else f"{top} is required"
    if path == PASSWORD:
        yield "or made, see [passwords]"
    if field.minimum is not None:
        yield f"at least {field.minimum}"
    if field.max_decimals is not None:
        yield f"at most {field.max_decimals} decimals"
    array = next((one for one in KINDS[kind].record.fields if one.name == top and one.type == "array"), None)
    if array is not None and array.max_items is not None:
        yield f"at most {array.max_items}, the next is [1]"
    elif array is not None:
        yield "the next is [1]"
    if field.meaning:
        yield field.meaning
    if path in {one.name for one in KINDS[kind].operation.params}:
        yield "part of the request's path"


@click.command("template", epilog="Example: orderbridge template customers > clientes.csv")
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
@click.option("--mapping", is_flag=True, help="Print a commented mapping file instead of a CSV.")
@click.option(
    "--for",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --mapping: start from the columns of this CSV or .xlsx.",
)
def command(kind: str, mapping: bool, file: Path | None) -> None:
    """Print an empty CSV with every column of KIND, or a mapping file to start from.

    KIND: customers, variants, subcategories, warehouses. With --mapping: which column is which field; a column that
    fits no field is in it as a comment, to be mapped or ignored.
    """
    sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr] # a text file, whatever the terminal
    click.echo(template(kind, mapping=mapping, file=file), nl=False)
