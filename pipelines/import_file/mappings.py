"""Mappings that remember: the one of a file is found again by the kind and the header, or proposed, asked and kept.

In: a file without a mapping of its own. Out: the path of its mapping, `mappings/KIND.toml` beside the warehouse (the
next ones `KIND-2.toml` …), which a person can edit. A column that the file has got since is no hindrance; one that the
mapping uses has to be there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from orderbridge.pipelines.import_file.lookup_proposal import (
    are_ids,
    propose_lookup,
    tables_beside,
)
from orderbridge.pipelines.import_file.marks import AskYes, Marks, columns_of, with_marks
from orderbridge.pipelines.import_file.units import Units, with_units
from orderbridge.pipelines.imports.open import check_filled, open_input_table, own_columns
from orderbridge.pipelines.mapping import (
    MappedColumn,
    OutsideLookup,
    load,
    propose,
    sample,
    to_toml,
)
from orderbridge.pipelines.mapping import Mapping as ColumnMapping
from orderbridge.pipelines.plan.model import MANIFEST_FILE, MAPPING_FILE
from orderbridge.sources.disk import disk_errors, first_free, write_private
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import CellRules, ReadOptions, SourceTable
from orderbridge.sources.kinds import KINDS, KindName
from orderbridge.sources.settings import warehouse_path
from orderbridge.sources.words import listed

FOLDER: Final = "mappings"
_SHARE: Final = 0.5
_MISSING: Final = 1 / 3
"""Share of a file's columns that a proposed mapping must name to be that of an earlier version of the file, and share
of the columns it uses that may be missing there: the plan then names them, since they may have been renamed."""
OnStep = Callable[[str, str], object]
Answers = Mapping[str, str | None]
"""The field of each column that was asked for; None: ignored."""
AskTotals = Callable[[Sequence[int]], Literal["skip", "keep"] | None]
"""Asks a person whether lines of totals are skipped, or are rows; None leaves them rejected."""
AskColumns = Callable[[ColumnMapping, Mapping[str, Sequence[str]]], Answers | None]
"""Asks a person for the columns of a proposal that match no field, given cells of each; None if nobody can be asked."""


def find_mapping(
    kind: KindName,
    file: Path,
    sheet: str = "",
    lookups: Collection[Path] = (),
    on_step: OnStep = lambda *_: None,
) -> Path | None:
    """The mapping of a file: that of its plan for rejected rows, otherwise the one kept for such a header.

    Of several for this `sheet`, one that has all its columns, that a person gave, that names most of them, the newest.
    `on_step` gets the columns in which the file differs, if none is used.

    Raises:
        UsageError: a kept mapping is invalid.
    """
    if (file.parent / MANIFEST_FILE).exists() and (file.parent / MAPPING_FILE).exists():
        return file.parent / MAPPING_FILE
    fitting: list[tuple[bool, bool, int, int, Path]] = []
    unused: list[str] = []
    # one that does not exist is a link to what a person gave, and has removed
    for kept in filter(Path.exists, _folder().glob(f"{kind}*.toml")):
        path = kept.resolve()
        try:
            mapping = load(path, kind, allowed_lookups(path, file, lookups))
        except OutsideLookup as error:
            if not is_kept(path):
                raise
            unused.append(f"not used: {error.message}")  # perhaps another file has the ids here
            continue
        if sheet and mapping.read_options.sheet != sheet:
            continue
        try:
            columns = set(own_columns(open_input_table(file, mapping.read_options, mapping)))
        except UsageError:  # its [file] is of another file
            continue
        named, used = columns & {*mapping.columns, *mapping.used_columns}, mapping.used_columns
        missing = [name for name in used if name not in columns]
        is_given = kept.is_symlink()  # it names what it uses; a proposed one every column
        if (is_given or len(named) >= _SHARE * len(columns)) and len(missing) <= _MISSING * len(
            used
        ):
            fitting.append((not missing, is_given, len(named), kept.lstat().st_mtime_ns, path))
        else:
            differing = (
                f"no column {listed(missing)}"
                if missing
                else f"others: {listed(sorted(columns - named))}"
            )
            unused.append(f"{path} is not used: {file.name} has {differing}")
    if unused and not fitting:
        on_step("mapping", "\n  ".join(unused))
    return max(fitting)[-1] if fitting else None


@dataclass(frozen=True, slots=True)
class Person:
    """Who is asked about a new file: each question returns None where nobody can be asked.

    Attributes:
        columns: for the columns that match no field.
        totals: what lines of totals are.
        yes: whether something is so.
    """

    columns: AskColumns = lambda proposed, samples: None
    totals: AskTotals = lambda lines: None
    yes: AskYes = lambda question: None


def new_mapping(
    kind: KindName,
    file: Path,
    passwords: Literal["mail", "file"] | None,
    person: Person,
    sheet: str = "",
    lookups: Collection[Path] = (),
) -> ColumnMapping | None:
    """A mapping proposed for a file and completed by a person; None if it is not complete and nobody can be asked.

    `lookups` are files that may have ids which the file lacks, beside those in its folder.

    Raises:
        UsageError: the file cannot be read, or nothing fills an id that the platform requires.
    """
    table = open_input_table(file, ReadOptions(sheet=sheet or None), None)
    samples = sample(table)
    proposed = propose(own_columns(table), kind, conflicts="leave", samples=samples).with_passwords(
        passwords
    )
    proposed = replace(proposed, read_options=replace(proposed.read_options, sheet=sheet or None))
    proposed = _with_lookup(file, table, proposed, lookups, person.yes)
    if proposed.unknown:
        ids = _missing_ids(proposed)
        if not all(_may_hold(proposed, path, samples) for path in ids):
            check_filled(file, proposed, _filled(proposed), ids)
        doubtful = proposed.doubtful
        answers = person.columns(proposed, samples)
        if answers is None:
            check_filled(file, proposed, _filled(proposed), ids)
            return None
        columns = proposed.columns | {
            name: MappedColumn(name, field, answered=field is not None and name in doubtful)
            for name, field in answers.items()
        }
        proposed = replace(proposed, columns=columns, unknown=(), contested={}, doubtful={})
    used = table.with_cell_rules(dict.fromkeys(proposed.used_columns, CellRules()))
    totals: list[int] = []
    marks = {name: Marks() for name in columns_of(proposed, "boolean")}
    units = {name: Units() for name in columns_of(proposed, "number", "integer")}
    for batch in used.batches(
        on_reject=lambda row: totals.append(row.line) if row.code == "totals" else None
    ):
        for name, found in marks.items():
            found.add(batch[name])
        for name, numbers in units.items():
            numbers.add(batch[name])
    if totals and (answer := person.totals(totals)) is not None:
        proposed = replace(proposed, read_options=replace(proposed.read_options, totals=answer))
    return with_units(with_marks(proposed, marks, person.yes), units, person.yes)


def _filled(mapping: ColumnMapping) -> list[str]:
    """The fields that columns and lookups fill."""
    of_columns = [path for column in mapping.columns.values() for path in column.paths]
    return of_columns + [path for lookup in mapping.lookups for path in lookup.give]


def _missing_ids(mapping: ColumnMapping) -> list[str]:
    """The ids of the request's path that nothing fills."""
    filled = _filled(mapping)
    params = KINDS[mapping.kind].operation.params
    return [field.name for field in params if field.name not in filled]


def _may_hold(mapping: ColumnMapping, path: str, samples: Mapping[str, Sequence[str]]) -> bool:
    """Whether a column that matches no field may hold these ids."""
    return any(are_ids(mapping.kind, path, samples[name]) for name in mapping.unknown)


def _with_lookup(
    file: Path,
    table: SourceTable,
    proposed: ColumnMapping,
    lookups: Collection[Path],
    ask_yes: AskYes,
) -> ColumnMapping:
    """The mapping with a lookup for ids that the file lacks, if one fits and a person agrees.

    Raises:
        UsageError: one fits, and nobody can be asked.
    """
    missing = _missing_ids(proposed)
    if not missing:
        return proposed
    found = propose_lookup(table, proposed, missing, [*lookups, *tables_beside(file)])
    if found is None:
        return proposed
    answer = ask_yes(found.question)
    if answer is None and not any(_may_hold(proposed, path, sample(table)) for path in missing):
        raise UsageError(
            f"{file.name}: no column fills {', '.join(missing)}",
            f"{found.question} Import the file once in a terminal, where this is asked, or write [[lookup]] in a "
            "mapping (docs/mapping.md).",
        )
    return replace(proposed, lookups=(found.lookup,)) if answer else proposed


def keep_mapping(mapping: ColumnMapping) -> Path:
    """Writes a mapping to the folder of mappings, under the first free name. Raises UsageError."""
    with _new_path(mapping.kind) as path:
        lookups = tuple(
            replace(lookup, file=os.path.relpath(lookup.path, path.parent.resolve()))
            for lookup in mapping.lookups
        )
        write_private(path, to_toml(replace(mapping, lookups=lookups)).encode())
    return path


def kept_mappings() -> list[Path]:
    """The mappings that imports have kept, without the links to those that a person gave."""
    return [path.resolve() for path in _folder().glob("*.toml") if not path.is_symlink()]


def is_kept(path: Path) -> bool:
    """Whether a mapping is one that an import has kept, and no link to a person's own."""
    return path.parent == _folder().resolve() and not path.is_symlink()


def allowed_lookups(mapping: Path, file: Path, lookups: Collection[Path]) -> tuple[Path, ...]:
    """The lookup files that a mapping may read outside its folder.

    They are those given, and for a kept mapping, whose lookup a person agreed to, those beside the input.
    """
    return (*lookups, *tables_beside(file)) if is_kept(mapping) else tuple(lookups)


def _folder() -> Path:
    return warehouse_path().parent / FOLDER


def keep_given_mapping(kind: KindName, path: Path) -> None:
    """Links a mapping that a person gave from the folder of mappings, for the next file. Raises UsageError."""
    target, folder = path.resolve(), _folder().resolve()
    if target.parent == folder or (target.parent / MANIFEST_FILE).exists():
        return  # kept already, or that of a plan
    links = [
        link
        for link in folder.glob(f"{kind}*.toml")
        if link.is_symlink() and link.resolve() == target
    ]
    with _new_path(kind) as free:
        if links:
            os.utime(links[0], follow_symlinks=False)
        else:
            free.symlink_to(os.path.relpath(target, folder))


@contextmanager
def _new_path(kind: str) -> Iterator[Path]:
    """A free path in the folder of mappings. Raises UsageError."""
    folder = _folder()
    hint = (
        "Free space or make the folder writable, or pass a mapping file of your own with --mapping."
    )
    with disk_errors(folder, hint):
        folder.mkdir(mode=0o700, exist_ok=True)
        yield first_free(folder, f"{kind}.toml")
