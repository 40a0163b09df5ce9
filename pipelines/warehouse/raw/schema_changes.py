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

from orderbridge.pipelines.warehouse.ops import record_observations
from orderbridge.pipelines.warehouse.sql import has_tables
from orderbridge.sources.contract import RECORDS
from orderbridge.sources.decode.inferred_tables import FieldNames
from orderbridge.sources.decode.table_schema import ABSENT, FIELD, MISTYPED, UNKNOWN
from orderbridge.sources.decode.undocumented import FOUND

ChangeKind = Literal["new_field", "changed_type", "new_value", "unexpected_type", "absent"]

ENUMERATION_MAX: Final = 12
"""A column with more values is not an enumeration."""
_TYPE: Final = "type of a field"
_VALUE: Final = "value"
_ALIASES: Final = {"adjustment_types": f"price_lists.adjustment_type: {_VALUE}"}
_SAFE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_. -]{0,79}(\([0-9,]+\))?)?")
_NEW_FIELD: Final[tuple[ChangeKind, str]] = ("new_field", "new field {name}")
_KINDS: Final[dict[str, tuple[ChangeKind, str]]] = {
    FOUND: _NEW_FIELD,
    UNKNOWN: _NEW_FIELD,
    _TYPE: ("changed_type", "the type of {name} is now {value} (before: {previous})"),
    _VALUE: ("new_value", "new value of {name}: {value}"),
    MISTYPED: ("unexpected_type", "{name} has the type {value}, which the interface does not name"),
    ABSENT: ("absent", "{name} is required by the interface, and absent or null"),
}
"""By the kind of an observation, that of the change and its words."""
_ALWAYS_OBSERVED: Final = (FOUND, _TYPE, _VALUE)
"""Every pull observes some of these: they are news only if an earlier pull observed the list."""
_SEEN: Final = """
    WITH pull AS (SELECT max(rowid) AS n FROM ops.runs WHERE command IN ('pull', 'run') AND ended_at <= $as_of),
    seen AS (
        SELECT o.what, o.value, o.last_seen_at, r.rowid >= pull.n AS is_new
        FROM ops.observations o JOIN ops.runs r ON r.run_id = o.first_run_id, pull
        WHERE r.rowid < pull.n OR r.ended_at <= $as_of)
    SELECT what, value, is_new FROM (
        FROM seen UNION ALL SELECT DISTINCT resource, '', NULL, false
        FROM ops.coverage JOIN ops.runs r USING (run_id), pull WHERE verdict <> 'incomplete' AND r.rowid < pull.n)
    ORDER BY is_new, if(is_new, NULL, last_seen_at), what, value"""
"""What was observed before the last pull, and what by it for the first time; by `rowid`, the order in which runs were
recorded: after a clock that was wrong once, nothing would be new."""
_FIELD_NAMES: Final = """
    SELECT left(what, -length($1)), value FROM ops.observations WHERE ends_with(what, $1) ORDER BY last_run_id, rowid"""


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One change, as seen by the last pull.

    Attributes:
        resource: the list.
        kind: what changed.
        name: the field, with its table where it is in a child table.
        value: the type or the value; empty for a new field.
        previous: the type before.
        text: the change in words.
    """

    resource: str
    kind: ChangeKind
    name: str
    value: str
    previous: str
    text: str


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
    """The names that the fields of an undocumented list have in a warehouse; none of another list."""
    names: dict[str, dict[str, str]] = {}
    if RECORDS[resource].fields or not has_tables(warehouse, "ops", "observations"):
        return names
    for name, field in warehouse.execute(
        _FIELD_NAMES, [f": {FIELD}"]
    ).fetchall():  # of several, the last
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
    rows = warehouse.execute(_SEEN, {"as_of": as_of}).fetchall()
    seen = [(_ALIASES.get(what, what), value, is_new) for what, value, is_new in rows]
    earlier = {what: value for what, value, is_new in seen if not is_new}  # of several, the last
    observed_before = {(resource, about) for resource, _, about in map(_parts, earlier)}
    changes = []
    for what, value, is_new in seen:
        resource, _, about = _parts(what)
        if not is_new or about not in _KINDS or value == "None":
            continue
        is_known = resource in earlier
        if about in _ALWAYS_OBSERVED:
            is_known = (resource, about) in observed_before
        if not is_known:
            continue  # a list that was not observed before
        if about == _TYPE and what not in earlier:
            continue  # the type of a new field
        previous = earlier[what] if about == _TYPE else ""
        changes.append(_change(what, value, previous))
    return changes


def _change(what: str, value: str, previous: str) -> SchemaChange:
    """A change in words: of a field that was found, the observed value is its name."""
    resource, subject, about = _parts(what)
    name, detail = _shown(subject), _shown(value)
    if about in (FOUND, UNKNOWN):
        name, detail = _shown(value), ""
    kind, words = _KINDS[about]
    text = f"{resource}: {words.format(name=name, value=detail, previous=previous)}"
    return SchemaChange(resource, kind, name, detail, previous, text)


def _shown(text: str) -> str:
    return text if _SAFE.fullmatch(text) else "(not shown)"


def _parts(what: str) -> tuple[str, str, str]:
    """The list, the subject and the kind of an observation: `orders__lines.sku: type of a field` is about orders."""
    subject, _, about = what.rpartition(": ")
    return subject.partition(".")[0].partition("__")[0], subject, about
