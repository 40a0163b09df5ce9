"""Findings about values that are of another kind than their column or table, or that are gone.

In: the raw tables of a list, the kinds that its walks decided, the values that they counted. Out: findings by field,
with counts. Odd values, of undocumented fields, are the members of `_extra`, by the path of their field.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import duckdb

from orderbridge.pipelines.warehouse.answers.accepted import SAFE_NAME, Accepted, place_subject
from orderbridge.pipelines.warehouse.raw.column_values import gone_values, jumped_values
from orderbridge.pipelines.warehouse.raw.field_kinds import (
    known_members,
    mixed_forms,
    odd_members,
    widened,
)
from orderbridge.pipelines.warehouse.raw.recent_rows import (
    ALL_ROWS,
    KINDS,
    RECENT,
    Count,
    Fall,
    Measure,
    RecentRows,
    RowKind,
)
from orderbridge.pipelines.warehouse.raw.recent_values import recent_losses
from orderbridge.pipelines.warehouse.sql import table_names
from orderbridge.sources.contract import RECORDS
from orderbridge.sources.decode.table_schema import KEY_COLUMN, parent_key
from orderbridge.transforms.chance import Share
from orderbridge.transforms.findings import table_finding

if TYPE_CHECKING:
    import pandas as pd

CHANGED_SHARE: Final = 0.05
CHANGED_MIN: Final = 5
"""Least share, and number, of a table's listed rows with an odd value at one place that show a change of the field."""
_FIELDS_MAX: Final = 20
_ODD: Final = """
    SELECT regexp_replace(field, '\\[[0-9]+\\]', '[]', 'g') AS path, count(*) AS odd,
        (SELECT count(*) FROM raw."{table}" WHERE _missing_since IS NULL) AS listed
    FROM (FROM raw."{table}" SELECT unnest({members}) AS field WHERE _missing_since IS NULL)
    GROUP BY path ORDER BY odd DESC, path"""
_RECENT_RECORDS: Final = f"""
    SELECT s.batch, count(DISTINCT s.id) FROM {RECENT} s JOIN raw."{{table}}" r ON r."{{key}}" = s.id
    WHERE r._missing_since IS NULL GROUP BY s.batch"""
_RECENT_ODD: Final = f"""
    SELECT batch, regexp_replace(field, '\\[[0-9]+\\]', '[]', 'g') AS path, count(DISTINCT id) FROM (
        SELECT s.batch, s.id, unnest(r.fields) AS field FROM {RECENT} s JOIN (
            SELECT "{{key}}" AS id, {{members}} AS fields FROM raw."{{table}}"
            WHERE _missing_since IS NULL AND "{{key}}" IN (FROM {RECENT} SELECT id)) r USING (id))
    GROUP BY batch, path"""


def odd_values(rows: RecentRows, accepted: Accepted) -> list[pd.DataFrame]:
    """The findings about the forms of the values of one list (the columns of `FINDINGS`)."""
    build, entity = rows.build, rows.resource
    tables = [
        name
        for name in table_names(build, "raw")
        if name == entity or name.startswith(f"{entity}__")
    ]
    measure = Measure(
        "form",
        partial(_forms, build, entity, tables),
        _is_changed,
        dict.fromkeys(KINDS, ALL_ROWS.format(entity)),
    )
    falls: dict[str, Fall] = {}
    for fall in rows.fallen(measure, partial(accepted.is_changed, f"{entity}.form_changed")):
        falls.setdefault(fall.place, fall)
    return [
        *_odd(build, entity, tables, falls),
        *_widened(build, entity),
        *_mixed(build, entity),
    ]


def lost_values(rows: RecentRows, accepted: Accepted, newest: str | None) -> Iterator[pd.DataFrame]:
    """A finding for each column or child table of a list that had values and has none, and for each that jumped.

    `newest`: see `recent_losses`.
    """
    found: set[tuple[str, str]] = set()
    for rule, lost in (("values_gone", gone_values), ("values_jumped", jumped_values)):
        for place, words in lost(rows.build, rows.resource, accepted):
            found.add((rule, place))
            yield table_finding(
                rows.resource, rule, f"{_shown(place)}: {words}", place_subject(place)
            )
    for rule, place, words in recent_losses(rows, accepted, newest):
        if (rule, place) not in found and ("values_gone", place) not in found:
            yield table_finding(
                rows.resource, rule, f"{_shown(place)}: {words}", place_subject(place)
            )


def _odd(
    build: duckdb.DuckDBPyConnection, entity: str, tables: list[str], falls: Mapping[str, Fall]
) -> Iterator[pd.DataFrame]:
    known = known_members(build, entity)
    beyond: list[tuple[str, int, int]] = []
    for table in tables:
        members = odd_members(build, entity, table)
        found = build.execute(_ODD.format(table=table, members=members)).fetchall()
        fields = [one for one in found if not _is_beyond(table, one[0], known)]
        beyond += [one for one in found if _is_beyond(table, one[0], known)]
        for n, (path, odd, listed) in enumerate(fields):
            place = f"{table}: {path}"
            fall = falls.get(place)
            if n < _FIELDS_MAX or fall is not None:
                yield _odd_finding(entity, place, odd, listed, fall)
        if len(fields) > _FIELDS_MAX:
            yield table_finding(
                entity, "odd_value", f"{table}: {len(fields) - _FIELDS_MAX} more fields"
            )

    if beyond:
        rows = max(count for _, count, _ in beyond)
        yield table_finding(
            entity, "fields_beyond", f"{len(beyond)} more fields, in up to {rows} rows of a table"
        )


def _odd_finding(entity: str, place: str, odd: int, listed: int, fall: Fall | None) -> pd.DataFrame:
    """The finding about odd values of a field: its form has changed where many are odd, or more than before."""
    is_many = odd >= max(CHANGED_MIN, CHANGED_SHARE * listed)
    words = f"{odd} values in {listed} rows"
    if fall is not None and not is_many:
        words = f"{words}, {fall.words('have the form of before')}"
    rule = "form_changed" if is_many or fall is not None else "odd_value"
    return table_finding(entity, rule, f"{_shown(place)}: {words}", place_subject(place))


def _is_beyond(table: str, path: str, known: Collection[tuple[str, str]]) -> bool:
    """Whether a member of `_extra` is of a field that walks do not know: there were too many for columns."""
    return bool(known) and (table, path.replace("[]", "")) not in known


def _forms(
    build: duckdb.DuckDBPyConnection, entity: str, tables: list[str], kind: RowKind
) -> Iterator[Count]:
    """How many of the new or changed records have all their values at a place in the form of before."""
    known = known_members(build, entity)
    for table in tables:
        key = KEY_COLUMN if table == entity else parent_key(RECORDS[entity])
        counts = build.execute(_RECENT_RECORDS.format(table=table, key=key)).fetchall()
        records = dict(counts)
        for batch, count in records.items():
            yield Count(batch, table, Share(count, count))
        members = odd_members(build, entity, table)
        sql = _RECENT_ODD.format(table=table, key=key, members=members)
        for batch, path, odd in build.execute(sql).fetchall():
            if not _is_beyond(table, path, known):
                fitting = Share(records[batch] - odd, records[batch])
                yield Count(batch, f"{table}: {path}", fitting)


def _is_changed(now: Share, before: Share) -> bool:
    return now.part <= before.part - CHANGED_SHARE


def _widened(build: duckdb.DuckDBPyConnection, entity: str) -> Iterator[pd.DataFrame]:
    for place, previous, kind in widened(build, entity):
        is_list = (previous, kind) == ("object", "table")
        rule = "list_recovered" if is_list else "type_widened"
        yield table_finding(
            entity, rule, f"{_shown(place)}: {previous} is {kind} now", place_subject(place)
        )


def _mixed(build: duckdb.DuckDBPyConnection, entity: str) -> Iterator[pd.DataFrame]:
    for place, kind, shares in mixed_forms(build, entity):
        held = "columns" if kind == "object" else "a child table"
        detail = f"{_shown(place)}: {shares}; held as {held}"
        yield table_finding(entity, "form_mixed", detail, place_subject(place))


def _shown(place: str) -> str:
    table, separator, name = place.partition(": ")
    return place if not separator or SAFE_NAME.fullmatch(name) else f"{table}: (not shown)"
