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
from typing import Final

import click

from orderbridge.pipelines.cli.options import declared, kind_argument
from orderbridge.pipelines.cli.terminal import escape
from orderbridge.sources.command_line import typed_command
from orderbridge.sources.contract import Field
from orderbridge.sources.errors import UsageError
from orderbridge.sources.kinds import KINDS, PASSWORD
from orderbridge.sources.words import listed, number, render_text

_TYPE_WORDS: Final = {"identifier": "id", "boolean": "yes or no", "integer": "whole number"}


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
            raise UsageError("--for requires --mapping", f"Add it: {typed_command('--mapping')}")
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

    root = root_of(path)
    yield _TYPE_WORDS.get(field.type, field.type)
    if _is_required(kind, path, root):
        yield "required" if path == root else f"{root} is required"
    if path == PASSWORD:
        yield "or generated, see [passwords]"
    if field.minimum is not None:
        yield f"at least {field.minimum}"
    if field.max_decimals is not None:
        yield f"at most {field.max_decimals} decimals"
    yield from _list_words(kind, root)
    if field.meaning:
        yield field.meaning
    if path in {one.name for one in KINDS[kind].operation.params}:
        yield "part of the request path"


def _is_required(kind: str, path: str, root: str) -> bool:
    """Whether the field is required, by itself or because the field that it is in is."""
    from orderbridge.sources.inputs import required

    fields = KINDS[kind].record.fields
    return path in required(kind) or any(one.required and one.name == root for one in fields)


def _list_words(kind: str, root: str) -> Iterator[str]:
    """How many items there may be, of a field in a list."""
    for field in KINDS[kind].record.fields:
        if field.name != root or field.type != "array":
            continue
        if field.max_items is None:
            yield "the next one is [1]"
        else:
            yield f"at most {field.max_items}; the next one is [1]"


@declared("template")
@kind_argument
def command(kind: str, mapping: bool, file: Path | None) -> None:
    """Print an empty CSV with every column of a kind, or a mapping file to start from.

    KIND. A mapping file has which column is which field. A column
    that fits no field is a comment there, to be mapped or ignored.
    """
    sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr] # a text file, whatever the terminal
    click.echo(template(kind, mapping=mapping, file=file), nl=False)
