"""Changes of the platform's schema: a new field, a changed type, a new value of an enumeration.

In: a build whose raw tables were just taken from a pull. Out: observations of what the lists consist of
(`ops.observations` keeps when each was first seen), and what the last pull saw for the first time. Names of fields and
values of enumerations are the platform's; one that could be something else, such as a person's data, is not shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

import duckdb

from pipelines.warehouse.ops import record_observations
from pipelines.warehouse.sql import table_names
from sources.contract import RECORDS
from sources.decode.schema_inference import FieldNames
from sources.decode.table_schema import ABSENT, FIELD, MISTYPED, UNKNOWN
from sources.decode.undocumented import FOUND

ChangeKind = Literal["new_field", "changed_type", "new_value", "unexpected_type", "absent"]

ENUMERATION_MAX: Final = 12
"""A column with more values is not an enumeration."""
_TYPE: Final = "type of a field"
_VALUE: Final = "value"
_ALIASES: Final = {"adjustment_types": f"price_lists.adjustment_type: {_VALUE}"}
_SAFE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_. -]{0,79}(\([0-9,]+\))?)?")
_KINDS: Final[dict[str, ChangeKind]] = {
    FOUND: "new_field", UNKNOWN: "new_field", _TYPE: "changed_type", _VALUE: "new_value",
    MISTYPED: "unexpected_type", ABSENT: "absent",
}  # fmt: skip
_ALWAYS_OBSERVED: Final = (FOUND, _TYPE, _VALUE)
"""Of these each pull has some: the first time that a list is observed is not news."""
_LAST_PULL: Final = "SELECT max(rowid) FROM ops.runs WHERE command IN ('pull', 'run') AND ended_at <= $as_of"
"""By `rowid`, the order in which runs were recorded: after a clock that was wrong once, nothing would be new."""
_NEW: Final = """
    SELECT o.what, o.value FROM ops.observations o JOIN ops.runs r ON r.run_id = o.first_run_id
    WHERE r.rowid >= $pull AND r.ended_at <= $as_of ORDER BY o.what, o.value"""
_EARLIER: Final = """
    WITH earlier AS (SELECT run_id FROM ops.runs WHERE rowid < $pull)
    SELECT what, value, last_seen_at FROM ops.observations WHERE first_run_id IN (FROM earlier)
    UNION ALL SELECT DISTINCT resource, '', NULL FROM ops.coverage SEMI JOIN earlier USING (run_id)
        WHERE verdict <> 'incomplete'
    ORDER BY last_seen_at"""
_FIELD_NAMES: Final = """
    SELECT left(what, -length($1)), value FROM ops.observations WHERE ends_with(what, $1) ORDER BY last_run_id, rowid"""
_TEXTS: Final[dict[ChangeKind, str]] = {
    "new_field": "new field {name}",
    "changed_type": "the type of {name} is now {value} (before: {previous})",
    "new_value": "new value of {name}: {value}",
    "unexpected_type": "{name} has the type {value}, which the interface does not name",
    "absent": "{name} is required by the interface, and absent or null",
}


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One change, as seen by the last pull.

    Attributes:
        resource: the list.
        kind: what changed.
        name: the field, with its table where it is in a child table.
        value: the type or the value; empty for a new field.
        previous: the type before.
    """

    resource: str
    kind: ChangeKind
    name: str
    value: str = ""
    previous: str = ""

    def __post_init__(self) -> None:
        for name in ("name", "value"):
            if not _SAFE.fullmatch(getattr(self, name)):
                object.__setattr__(self, name, "(not shown)")

    @property
    def text(self) -> str:
        """The change in words."""
        return f"{self.resource}: {_TEXTS[self.kind].format(name=self.name, value=self.value, previous=self.previous)}"


def observe_schema(build: duckdb.DuckDBPyConnection, run_id: str, at: datetime) -> None:
    """Records the types of undocumented fields, which only a walk shows, and the adjustment types of price lists."""
    undocumented = [name for name, record in RECORDS.items() if not record.fields]
    types = build.execute(
        """SELECT table_name || '.' || column_name, data_type FROM duckdb_columns() WHERE schema_name = 'raw'
            AND list_contains(?, split_part(table_name, '__', 1)) AND NOT starts_with(column_name, '_')""",
        [undocumented],
    ).fetchall()
    kinds = build.execute("SELECT DISTINCT adjustment_type FROM raw.price_lists").fetchall()
    observed = [(f"{name}: {_TYPE}", kind) for name, kind in types]
    observed += [("adjustment_types", str(kind)) for (kind,) in kinds]
    record_observations(build, run_id, at, observed)


def field_names(warehouse: duckdb.DuckDBPyConnection, resource: str) -> FieldNames:
    """The names that the fields of an undocumented list have in a warehouse."""
    names: dict[str, dict[str, str]] = {}
    if "observations" not in table_names(warehouse, "ops"):
        return names
    for name, field in warehouse.execute(_FIELD_NAMES, [f": {FIELD}"]).fetchall():  # of several, the last
        table, _, column = name.rpartition(".")
        if _parts(f"{name}: {FIELD}")[0] == resource:
            names.setdefault(table, {})[field] = column
    return names


def enumeration(name: str, values: Iterable[tuple[object]]) -> list[tuple[str, str]]:
    """Observations of the distinct values of a column, but null; none if there are more than an enumeration has."""
    texts = [str(value) for (value,) in values if value is not None]
    return [(f"{name}: {_VALUE}", text) for text in texts] if len(texts) <= ENUMERATION_MAX else []


def schema_changes(warehouse: duckdb.DuckDBPyConnection, as_of: datetime) -> list[SchemaChange]:
    """What the last pull saw that no earlier one had seen; empty for a first pull.

    Args:
        warehouse: with the tables of `ops`.
        as_of: later runs do not count.
    """
    ((pull,),) = warehouse.execute(_LAST_PULL, {"as_of": as_of}).fetchall()
    if pull is None:
        return []
    earlier: dict[str, list[str]] = {}
    for what, value, _ in warehouse.execute(_EARLIER, {"pull": pull}).fetchall():
        earlier.setdefault(_ALIASES.get(what, what), []).append(value)
    observed_before = {(resource, about) for resource, _, about in map(_parts, earlier)}
    changes = []
    for observed, value in warehouse.execute(_NEW, {"pull": pull, "as_of": as_of}).fetchall():
        what = _ALIASES.get(observed, observed)
        resource, subject, about = _parts(what)
        if about not in _KINDS or value == "None":
            continue
        is_known = (resource, about) in observed_before if about in _ALWAYS_OBSERVED else resource in earlier
        if not is_known or (about == _TYPE and what not in earlier):
            continue  # a list that was not observed before, or the type of a new field
        name, detail = (value, "") if about in (FOUND, UNKNOWN) else (subject, value)
        previous = earlier[what][-1] if about == _TYPE else ""
        changes.append(SchemaChange(resource, _KINDS[about], name, detail, previous))
    return changes


def _parts(what: str) -> tuple[str, str, str]:
    """The list, the subject and the kind of an observation: `orders__lines.sku: type of a field` is about orders."""
    subject, _, about = what.rpartition(": ")
    return subject.partition(".")[0].partition("__")[0], subject, about
