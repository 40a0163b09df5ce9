"""Findings about values that are of another kind than their column or table, or that are gone.

In: the raw tables of a list, the kinds that its walks decided, the values that they counted. Out: findings by field,
with counts. Odd values, of undocumented fields, are the members of `_extra`, by the path of their field.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

import duckdb

from orderbridge.pipelines.warehouse.accepted import Accepted
from orderbridge.pipelines.warehouse.column_values import gone_values, jumped_values
from orderbridge.pipelines.warehouse.field_kinds import (
    known_members,
    odd_members,
    widened,
)
from orderbridge.pipelines.warehouse.sql import table_names
from orderbridge.transforms.findings import table_finding

if TYPE_CHECKING:
    import pandas as pd

CHANGED_SHARE: Final = 0.05
CHANGED_MIN: Final = 5
"""Least share, and number, of a table's listed rows with an odd value at one place that show a change of the field."""
_FIELDS_MAX: Final = 20
_SAFE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_. \[\]-]{0,99}")
"""A name that is none of a person, such as an e-mail address that keys an object."""
_ODD: Final = """
    SELECT regexp_replace(field, '\\[[0-9]+\\]', '[]', 'g') AS path, count(*) AS odd,
        (SELECT count(*) FROM raw."{table}" WHERE _missing_since IS NULL) AS listed
    FROM (FROM raw."{table}" SELECT unnest({members}) AS field WHERE _missing_since IS NULL)
    GROUP BY path ORDER BY odd DESC, path"""


def odd_values(build: duckdb.DuckDBPyConnection, entity: str) -> list[pd.DataFrame]:
    """The findings about one list (the columns of `FINDINGS`)."""
    tables = [
        name
        for name in table_names(build, "raw")
        if name == entity or name.startswith(f"{entity}__")
    ]
    return [*_odd(build, entity, sorted(tables)), *_widened(build, entity)]


def lost_values(
    build: duckdb.DuckDBPyConnection, entity: str, accepted: Accepted
) -> Iterator[pd.DataFrame]:
    """A finding for each column or child table of a list that had values and has none, and for each that jumped."""
    for rule, lost in (("values_gone", gone_values), ("values_jumped", jumped_values)):
        for place, words in lost(build, entity, accepted):
            yield table_finding(entity, rule, f"{_shown(place)}: {words}")


def _odd(
    build: duckdb.DuckDBPyConnection, entity: str, tables: list[str]
) -> Iterator[pd.DataFrame]:
    known = known_members(build, entity)
    beyond: list[tuple[str, int, int]] = []
    for table in tables:
        members = odd_members(build, entity, table)
        found = build.execute(_ODD.format(table=table, members=members)).fetchall()
        fields = [one for one in found if not _is_beyond(table, one[0], known)]
        beyond += [one for one in found if _is_beyond(table, one[0], known)]
        for path, odd, listed in fields[:_FIELDS_MAX]:
            rule = (
                "form_changed" if odd >= max(CHANGED_MIN, CHANGED_SHARE * listed) else "odd_value"
            )
            yield table_finding(
                entity, rule, f"{_shown(f'{table}: {path}')}: {odd} values in {listed} rows"
            )
        if len(fields) > _FIELDS_MAX:
            yield table_finding(
                entity, "odd_value", f"{table}: {len(fields) - _FIELDS_MAX} more fields"
            )

    if beyond:
        rows = max(count for _, count, _ in beyond)
        yield table_finding(
            entity, "fields_beyond", f"{len(beyond)} more fields, in up to {rows} rows of a table"
        )


def _is_beyond(table: str, path: str, known: Collection[tuple[str, str]]) -> bool:
    """Whether a member of `_extra` is of a field that walks do not know: there were too many for columns."""
    return bool(known) and (table, path.replace("[]", "")) not in known


def _widened(build: duckdb.DuckDBPyConnection, entity: str) -> Iterator[pd.DataFrame]:
    for place, previous, kind in widened(build, entity):
        yield table_finding(entity, "type_widened", f"{_shown(place)}: {previous} is {kind} now")


def _shown(place: str) -> str:
    table, separator, name = place.partition(": ")
    return place if not separator or _SAFE.fullmatch(name) else f"{table}: (not shown)"
