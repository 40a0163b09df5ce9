"""The mapping files that a plan writes: complete for its rejects, proposed for the person who edits it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from pipelines.imports import Inputs
from pipelines.mapping import Mapping, to_toml
from pipelines.plan.folder import plan_disk_errors
from sources.disk import create_private
from sources.errors import UsageError


def complete_mapping(inputs: Inputs, passwords: Literal["mail", "file"] | None) -> Mapping:
    """The mapping with what the file proved and the choice of passwords: the rejects are planned in the same way."""
    columns = dict(inputs.mapping.columns)
    for name, notation in inputs.notations.items():
        formats = replace(columns[name].formats, decimal=notation.decimal, thousands=notation.thousands)
        columns[name] = replace(columns[name], formats=formats)
    lookups = tuple(replace(lookup, file=str(lookup.path.resolve())) for lookup in inputs.mapping.lookups)
    mapping = replace(inputs.mapping, columns=columns, lookups=lookups)
    return mapping.with_passwords(passwords) if passwords is not None else mapping


def save_mapping(mapping: Mapping, path: Path) -> None:
    """Writes a new mapping file. Raises UsageError if the file exists or cannot be written."""
    with plan_disk_errors(path.absolute().parent):
        if path.exists():
            raise UsageError(f"{path} exists already", "Name another file with --save-mapping.")
        with create_private(path) as out:
            out.write(to_toml(mapping).encode())
