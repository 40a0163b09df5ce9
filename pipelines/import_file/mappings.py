"""Mappings that remember: the one of a file is found again by the kind and the header, or proposed, asked and kept.

In: a file without a mapping of its own. Out: the path of its mapping, `mappings/KIND.toml` beside the warehouse (the
next ones `KIND-2.toml` …), which a person can edit. A column that the file has got since is no hindrance; one that the
mapping uses has to be there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from orderbridge.pipelines.imports.open import check_filled, count_reject_columns, open_input_table
from orderbridge.pipelines.mapping import MappedColumn, load, propose, sample, to_toml
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
    for kept in filter(Path.exists, (warehouse_path().parent / FOLDER).glob(f"{kind}*.toml")):
        path = kept.resolve()
        mapping = load(path, kind, lookups)
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


def new_mapping(
    kind: KindName,
    file: Path,
    passwords: Literal["mail", "file"] | None,
    ask: AskColumns,
    ask_totals: AskTotals,
    sheet: str = "",
) -> ColumnMapping | None:
    """A mapping proposed for a file and completed by a person; None if it is not complete and nobody can be asked.

    Raises:
        UsageError: the file cannot be read, or no column is recognised as an id that the platform requires.
    """
    table = open_input_table(file, ReadOptions(sheet=sheet or None), None)
    samples = sample(table)
    proposed = propose(own_columns(table), kind, conflicts="leave", samples=samples).with_passwords(
        passwords
    )
    proposed = replace(proposed, read_options=replace(proposed.read_options, sheet=sheet or None))
    if proposed.unknown:
        filled = [path for column in proposed.columns.values() for path in column.paths]
        check_filled(file, proposed, filled, [field.name for field in KINDS[kind].operation.params])
        answers = ask(proposed, samples)
        if answers is None:
            return None
        columns = proposed.columns | {
            name: MappedColumn(name, field) for name, field in answers.items()
        }
        proposed = replace(proposed, columns=columns, unknown=(), contested={})
    used = table.with_cell_rules(dict.fromkeys(proposed.used_columns, CellRules()))
    totals: list[int] = []
    for _ in used.batches(
        on_reject=lambda row: totals.append(row.line) if row.code == "totals" else None
    ):
        pass
    if totals and (answer := ask_totals(totals)) is not None:
        proposed = replace(proposed, read_options=replace(proposed.read_options, totals=answer))
    return proposed


def keep_mapping(mapping: ColumnMapping) -> Path:
    """Writes a mapping to the folder of mappings, under the first free name. Raises UsageError."""
    with _new_path(mapping.kind) as path:
        write_private(path, to_toml(mapping).encode())
    return path


def keep_given_mapping(kind: KindName, path: Path) -> None:
    """Links a mapping that a person gave from the folder of mappings, for the next file. Raises UsageError."""
    target, folder = path.resolve(), warehouse_path().parent.resolve() / FOLDER
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
    folder = warehouse_path().parent / FOLDER
    hint = (
        "Free space or make the folder writable, or pass a mapping file of your own with --mapping."
    )
    with disk_errors(folder, hint):
        folder.mkdir(mode=0o700, exist_ok=True)
        yield first_free(folder, f"{kind}.toml")


def own_columns(table: SourceTable) -> tuple[str, ...]:
    """The columns of a file, without those that a reject file has after them."""
    return table.columns[: len(table.columns) - count_reject_columns(table.columns)]
