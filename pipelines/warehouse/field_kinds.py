"""The kinds of the fields of undocumented records: decided by walks, kept for later ones, forgotten where accepted.

In: a warehouse, and what a person has accepted. Out: `ops.field_kinds`, and the kinds that the next walk keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import duckdb
import msgspec

from pipelines.warehouse.accepted import Accepted
from pipelines.warehouse.schema_changes import field_names
from pipelines.warehouse.sql import table_names
from sources.decode.schema_inference import CHILD_TABLES, FieldNames, KeptKinds, path_text
from sources.extract.result import ListResult

_KNOWN: Final = "SELECT path, kind, decided_at FROM ops.field_kinds WHERE resource = ?"
_WIDENED: Final = """
    SELECT path, previous_kind, kind FROM ops.field_kinds
    WHERE resource = ? AND previous_kind IS NOT NULL ORDER BY path"""
_RECORD: Final = """
    INSERT INTO ops.field_kinds SELECT $resource, unnest($paths), unnest($kinds), unnest($values), NULL, $run, $at
    ON CONFLICT DO UPDATE SET kind = excluded.kind, previous_kind = field_kinds.kind, run_id = excluded.run_id,
        decided_at = excluded.decided_at WHERE field_kinds.kind <> excluded.kind"""


def kept_kinds(warehouse: duckdb.DuckDBPyConnection, resource: str) -> KeptKinds:
    """The kind of each place of a list, by its path, but those whose change was accepted after they were decided."""
    if "field_kinds" not in table_names(warehouse, "ops"):
        return {}
    accepted, names = Accepted.read(datetime.now(UTC)), field_names(warehouse, resource)
    return {
        path: kind
        for path, kind, decided_at in warehouse.execute(_KNOWN, [resource]).fetchall()
        if not accepted.is_changed(f"{resource}.form_changed", place(resource, path, names), decided_at)
    }


def record_kinds(build: duckdb.DuckDBPyConnection, run_id: str, at: datetime, walked: ListResult) -> None:
    """Records the kinds that a published walk decided, for later walks: new ones, and those that became wider."""
    kept = kept_kinds(build, walked.resource)
    build.execute(
        "DELETE FROM ops.field_kinds WHERE resource = ? AND NOT list_contains(?, path)", [walked.resource, list(kept)]
    )
    paths, kinds, values = map(list, zip(*walked.kinds, strict=True)) if walked.kinds else ([], [], [])
    build.execute(
        _RECORD,
        {"resource": walked.resource, "paths": paths, "kinds": kinds, "values": values, "run": run_id, "at": at},
    )


def widened(build: duckdb.DuckDBPyConnection, resource: str) -> Iterator[tuple[str, str, str]]:
    """The places whose kind became wider since it was first decided: the place, its kind before, its kind now."""
    names = field_names(build, resource)
    for path, previous, kind in build.execute(_WIDENED, [resource]).fetchall():
        yield place(resource, path, names), previous, kind


def place(resource: str, path: str, names: FieldNames) -> str:
    """How findings name a place: its table, and its path in a row of it.

    Args:
        resource: the list.
        path: in the record, as `ops.field_kinds` has it.
        names: of its child tables.
    """
    keys, tables = msgspec.json.decode(path, type=list[str]), names.get(CHILD_TABLES, {})
    for n in range(len(keys) - 1, 0, -1):
        if table := tables.get(path_text(keys[:n])):
            return f"{table}: {'.'.join(keys[n:])}"
    return f"{resource}: {'.'.join(keys)}"
