"""A file and its mapping held against each other, before a line is read.

In: a file, a mapping or none, and what the settings say. Out: `Inputs`, or an error that tells all columns that fit
nothing at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Pairs
from pathlib import Path
from typing import Any, Final

from pipelines.imports.fields import Source, shape
from pipelines.imports.fields import sources as sources_of
from pipelines.imports.lookups import LookupTable
from pipelines.imports.model import named
from pipelines.imports.walk import Inputs
from pipelines.mapping import Mapping, propose
from pipelines.mapping.places import examples, nearest
from sources.errors import UsageError
from sources.files import open_table
from sources.inputs import paths, required, violations
from sources.kinds import KINDS, LOGIN_FIELDS, PASSWORD, LoginMode
from transforms.upserts.bodies import Given, bodies

OF_REJECTS: Final = ("line", "field", "code", "words")
"""The columns that a reject file has at its end, beside those of the file; a name that was taken is numbered."""


def open_inputs(
    kind: str,
    file: Path,
    mapping: Mapping | None = None,
    *,
    login_mode: LoginMode | None = None,
    semantics: Pairs[str, str] | None = None,
) -> Inputs:
    """Opens a file as inputs of a kind.

    Args:
        kind: customers, variants, subcategories, warehouses.
        file: CSV or .xlsx.
        mapping: of its columns; None proposes one by their names.
        login_mode: of the customers.
        semantics: of the fields that are "added": field → `unknown`, `set`, `increment`.

    Raises:
        UsageError: the file cannot be read, or does not fit the mapping.
    """
    if mapping is not None and mapping.kind != kind:
        raise UsageError(f"the mapping is of {mapping.kind}, not of {kind}", "Name the mapping of this file.")
    table = open_table(file, mapping.told if mapping is not None else None)
    table.refuse_line_column()
    columns = table.columns[: len(table.columns) - reject_columns(table.columns, mapping)]
    if mapping is None:
        mapping = propose(columns, kind)
    _check_columns(file, columns, mapping)
    _check_semantics(mapping, semantics or {})
    found = sources_of(mapping)
    notes = []
    if len(columns) < len(table.columns):
        notes.append("the columns line, field, code and words are of a reject file, and are passed over")
    if KINDS[kind].has_login and login_mode == "email" and any(s.path == LOGIN_FIELDS["code"] for s in found):
        found = [source for source in found if source.path != LOGIN_FIELDS["code"]]
        notes.append("loginCode is left out: customers log in by e-mail, and the platform ignores it")
    _check_required(file, mapping, found, login_mode)
    _check_constants(mapping)
    lookups = [
        LookupTable(lookup, {source.column for source in found if source.lookup == at and source.is_number})
        for at, lookup in enumerate(mapping.lookups)
    ]
    password = next((source.column for source in found if source.path == PASSWORD), None)
    return Inputs(file, table, mapping, found, lookups, password, login_mode, notes)


def reject_columns(columns: Sequence[str], mapping: Mapping | None = None) -> int:
    """How many columns at the end are those of a reject file: four, or none; none where the mapping names them."""
    last = columns[-len(OF_REJECTS) :]
    if len(columns) <= len(OF_REJECTS) or (mapping is not None and set(last) & mapping.columns.keys() == set(last)):
        return 0
    is_ours = all(
        column == name or (column.startswith(f"{name}_") and column[len(name) + 1 :].isdecimal())
        for name, column in zip(OF_REJECTS, last, strict=True)
    )
    return len(OF_REJECTS) if is_ours else 0


def _check_columns(file: Path, columns: Sequence[str], mapping: Mapping) -> None:
    """Every column of the file has its place, and every column of the mapping is in the file."""
    others = {
        *mapping.group,
        *mapping.fill_down,
        *mapping.fill_within,
        *mapping.skip_blank,
        *(name for lookup in mapping.lookups for name in lookup.match),
    }
    read = [name for name, column in mapping.columns.items() if column.field is not None]
    absent = [name for name in dict.fromkeys([*read, *sorted(others)]) if name not in columns]
    if absent:
        told = named(absent, lambda name: f"{name!r}{nearest(name, columns)}")
        raise UsageError(
            f"{file.name} has no column {told}, which the mapping names", f"Its columns: {named(columns)}."
        )
    unplaced = [name for name in columns if name not in mapping.columns and name not in others]
    if unplaced:
        known = examples(mapping.kind)
        told = named(unplaced, lambda name: f"{name!r}{nearest(name, known)}")
        how = (
            'Name a field for each in the mapping, or ignore it by name: ignore = ["…"].'
            if mapping.path is not None
            else f"Begin one: `orderbridge template {mapping.kind} --mapping --for {file.name} > {file.stem}.toml`. "
            "Name a field for each or ignore it there, and give that file as the mapping."
        )
        count = "a column fits" if len(unplaced) == 1 else f"{len(unplaced):,} columns fit"
        raise UsageError(f"{file.name}: {count} no field of {mapping.kind}: {told}", how)


def _check_semantics(mapping: Mapping, semantics: Pairs[str, str]) -> None:
    """Whether numbers are changes or new values is said alike in the settings and in the mapping."""
    for name, column in mapping.columns.items():
        for path in (column.field, *column.also):
            means = semantics.get(path or "")
            if means == "increment" and not column.change:
                raise UsageError(
                    f"{path} is added to what is there (sources.legacy.{path}_semantics), and {name!r} is not said to "
                    "hold changes",
                    f'If it does: "{name}" = {{ field = "{path}", change = true }} in the mapping.',
                )
            if means is not None and means != "increment" and column.change:
                raise UsageError(
                    f"{name!r} holds changes of {path}, and the platform is not known to add them "
                    f"(sources.legacy.{path}_semantics = {means})",
                    f'Where it does add, set it to "increment"; else map a column with the new {path} itself.',
                )
    for path in (*mapping.constants, *(path for lookup in mapping.lookups for path in lookup.give)):
        if semantics.get(path) == "increment":
            raise UsageError(f"{path} is added to what is there, so that it must come from a column", "Map one.")


def _check_required(file: Path, mapping: Mapping, found: Iterable[Source], login_mode: LoginMode | None) -> None:
    """Something fills each field without which no input is one."""
    filled = {source.path for source in found} | mapping.constants.keys()
    tops = {path.partition(".")[0].partition("[")[0] for path in filled}
    needed = required(mapping.kind, login_mode) | {f.name for f in KINDS[mapping.kind].record.fields if f.required}
    order = dict.fromkeys([*paths(mapping.kind), *(field.name for field in KINDS[mapping.kind].record.fields)])
    absent = [name for name in order if name in needed and name not in tops and name != PASSWORD]
    if absent:
        raise UsageError(
            f"{file.name}: nothing gives {', '.join(absent)}, without which there is no input of {mapping.kind}",
            "Map a column to it, or give a constant or a lookup in the mapping (docs/mapping.md).",
        )


def _check_constants(mapping: Mapping) -> None:
    """Constants hold to their limits: else every line would break them."""
    body: dict[str, Any] = bodies(shape(mapping.kind, (), mapping.constants), Given({}, 1, {}))[0]
    for found in violations(mapping.kind, [body], with_password=False):
        if found.code != "required":
            raise UsageError(
                f"the constant {found.field} {found.words}", "Change it in the mapping, under [constants]."
            )
