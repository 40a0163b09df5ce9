"""The columns of plans without a mapping that were pushed: the next file with the same header is read as they were.

In: the ledger, and the plan folders that it names. Out: a mapping of columns to fields. A plan that is made every night
goes on as before, although the rules for names and values are others by now. Only columns count: formats are detected
in each file anew, as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from orderbridge.pipelines.imports.open import open_input_table, own_columns
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.mapping import MappedColumn, Mapping, contested_columns, load, sample
from orderbridge.pipelines.plan.model import MANIFEST_FILE, MAPPING_FILE
from orderbridge.pipelines.plan.pushed_plans import Planned, pushed_plans, read_planned
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import SourceTable
from orderbridge.sources.kinds import KindName
from orderbridge.sources.settings import project_file
from orderbridge.sources.words import listed


class PushedColumns(NamedTuple):
    """The columns of a plan without a mapping, of which the platform has confirmed operations.

    Attributes:
        path: the mapping that the plan folder keeps.
        input: the file of the plan, as the manifest has it.
    """

    plan_id: str
    path: Path
    input: str
    columns: dict[str, MappedColumn]


def pushed_columns(ledger: Ledger, host: str, kind: KindName) -> Iterator[PushedColumns]:
    """The columns of each such plan of a host and kind whose folder is there, the newest first."""
    for folder, planned in pushed_plans(ledger, host, kind):
        columns = _columns_of(planned, folder, kind)
        if columns is not None:
            yield columns


def _columns_of(planned: Planned, folder: Path, kind: KindName) -> PushedColumns | None:
    """The columns of a plan of a kind; None if it is of another one, or has a mapping."""
    if planned.kind != kind or planned.mapping is not None:
        return None
    path = folder / MAPPING_FILE
    with suppress(UsageError, OSError):
        return PushedColumns(planned.plan_id, path, planned.input.path, load(path, kind).columns)
    return None


def mappings_with(ledger: Ledger, host: str, kind: KindName, column: MappedColumn) -> list[Path]:
    """The mappings of plans without one that have a column: of pushed plans, and of those in the project."""
    plans = [*pushed_columns(ledger, host, kind)]
    for manifest in project_file("").glob(f"plan-*/{MANIFEST_FILE}"):
        planned = read_planned(manifest.parent)
        found = _columns_of(planned, manifest.parent, kind) if planned is not None else None
        if found is not None:
            plans.append(found)
    paths = [one.path.resolve() for one in plans if one.columns.get(column.name) == column]
    return list(dict.fromkeys(paths))


def mapping_as_pushed(ledger: Ledger, host: str, kind: KindName, file: Path) -> Mapping | None:
    """The mapping of a file by the newest of these plans with exactly its header; None if there is none."""
    for pushed in newest_by_header(ledger, host, kind):
        before = {
            one.name: MappedColumn(one.name, one.field, answered=one.answered)
            for one in pushed.columns.values()
        }
        with suppress(UsageError):  # it is no file of such columns
            header = own_columns(open_input_table(file, mapping=Mapping(kind, before)))
            if before.keys() == set(header):
                return Mapping(kind, {name: before[name] for name in header})
    return None


def explain_columns(mapping: Mapping, table: SourceTable) -> list[str]:
    """One line per column of a mapping that nobody has given, and what to do about those that are not proven."""
    lines = mapping.explain()
    contested = contested_columns(mapping, own_columns(table), sample(table))
    if contested:
        lines.append(
            f"As in the last plan that was pushed, though not proven: {listed(list(contested))}. "
            "To decide: orderbridge questions"
        )
    return lines


def newest_by_header(ledger: Ledger, host: str, kind: KindName) -> Iterator[PushedColumns]:
    """The newest of these plans for each header."""
    found: set[frozenset[str]] = set()
    for pushed in pushed_columns(ledger, host, kind):
        header = frozenset(pushed.columns)
        if header not in found:
            found.add(header)
            yield pushed
