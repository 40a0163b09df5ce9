"""The command `template`: an empty CSV with every column of a kind, or a mapping file to start from.

In: a kind, and optionally a file of the ERP. Out: text. The CSV needs no mapping, since its columns are named like the
fields. The mapping file is valid as printed; what a person has to decide is commented out.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from orderbridge.pipelines.cli.options import declared, kind_argument
from orderbridge.pipelines.cli.terminal import escape
from orderbridge.sources.contract import Field
from orderbridge.sources.errors import UsageError
from orderbridge.sources.kinds import KINDS, PASSWORD
from orderbridge.sources.words import listed, number, render_text


def template(kind: str, *, mapping: bool, file: Path | None) -> str:
    """A CSV header with a column for every field (of each list, the first item), or a mapping file.

    With a file, the mapping is of its columns; those that fit no field are named on stderr.

    Raises:
        UsageError: the file cannot be read, or is given without `mapping`.
    """
    from orderbridge.pipelines.mapping import MappedColumn, Mapping, propose, sample, to_toml
    from orderbridge.pipelines.mapping.field_paths import all_paths

    if not mapping:
        if file is not None:
            raise UsageError("--for requires --mapping", "Add --mapping.")
        out = io.StringIO()
        csv.writer(out).writerow(all_paths(kind))
        return out.getvalue()
    if file is None:
        from orderbridge.sources.inputs import paths

        columns = {path: MappedColumn(path, path) for path in all_paths(kind)}
        before, lines = to_toml(Mapping(kind, columns)).split("[columns]\n")
        fields = zip(lines.splitlines(), paths(kind).items(), strict=True)
        comments = (f"{line}  # {'; '.join(_described(kind, *field))}\n" for line, field in fields)
        text = "".join([before, "[columns]\n", *comments])
    else:
        from orderbridge.pipelines.imports.open import open_input_table

        table = open_input_table(file)
        proposed = propose(table.columns, kind, conflicts="leave", samples=sample(table))
        if proposed.unknown:
            count = number(len(proposed.unknown), "column")
            names = listed(proposed.unknown, escape)
            # stdout is the mapping file
            click.echo(f"{count} without a field, to edit in the mapping file: {names}", err=True)
        text = to_toml(proposed)
    kind_line, tables = text.split("\n", 1)
    values = {"kind_line": kind_line, "tables": tables, "kind": KINDS[kind]}
    return render_text("orderbridge.pipelines.cli", "mapping.toml.j2", **values)


def _described(kind: str, path: str, field: Field) -> Iterator[str]:
    """The type and limits of a field, in words."""
    from orderbridge.pipelines.mapping.field_paths import root_of
    from orderbridge.sources.inputs import required

    yield {"identifier": "id", "boolean": "yes or no", "integer": "whole number"}.get(
        field.type, field.type
    )
    top = root_of(path)
    if path in required(kind) or any(
        one.required and one.name == top for one in KINDS[kind].record.fields
    ):
        yield "required" if path == top else f"{top} is required"
    if path == PASSWORD:
        yield "or generated, see [passwords]"
    if field.minimum is not None:
        yield f"at least {field.minimum}"
    if field.max_decimals is not None:
        yield f"at most {field.max_decimals} decimals"
    array = next(
        (one for one in KINDS[kind].record.fields if one.name == top and one.type == "array"), None
    )
    if array is not None and array.max_items is not None:
        yield f"at most {array.max_items}; the next one is [1]"
    elif array is not None:
        yield "the next one is [1]"
    if field.meaning:
        yield field.meaning
    if path in {one.name for one in KINDS[kind].operation.params}:
        yield "part of the request path"


@declared("template")
@kind_argument
def command(kind: str, mapping: bool, file: Path | None) -> None:
    """Print an empty CSV with every column of a kind, or a mapping file to start from.

    KIND. With --mapping: which column is which field; a column that
    fits no field is in it as a comment, to be mapped or ignored.
    """
    sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr] # a text file, whatever the terminal
    click.echo(template(kind, mapping=mapping, file=file), nl=False)
