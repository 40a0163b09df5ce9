"""The values of each column of the raw tables, counted at every whole read of a list.

In: a build whose raw tables were just merged. Out: `ops.column_values`, the columns and child tables that had values
and have none, and the columns whose values jumped. No value is kept but the least and the largest of numbers and
dates. A read is compared with the last one and the oldest one of a month, but for those that had jumped themselves,
and those from before a jump that a person accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

import duckdb
import msgspec

from pipelines.warehouse.accepted import Accepted
from pipelines.warehouse.field_kinds import place
from pipelines.warehouse.merge import columns_of
from pipelines.warehouse.ops import record_totals
from pipelines.warehouse.schema_changes import field_names
from pipelines.warehouse.sql import sql_text
from sources.decode.schema_inference import CHILD_TABLES, RESERVED, FieldNames, path_text
from sources.errors import BridgeError
from sources.extract.result import ListResult

HAD_MIN: Final = 5
"""Values that a column must have had to be missed, or values in half of the rows: rare ones go with their orders."""
JUMP_MIN: Final = 20
"""Values that a column must have had, or lost, for a jump: in fewer, chance moves shares far."""
JUMP_FACTOR: Final = 2
SCALE_FACTOR: Final = 10
"""Least factor by which shares and different values fall, and by which all numbers change, in a jump."""
COMPARED_WITHIN: Final = timedelta(days=30)
_NUMBERS: Final = ("BIGINT", "INTEGER", "DOUBLE", "DECIMAL")
_ORDERED: Final = (*_NUMBERS, "DATE", "TIMESTAMP")
_LAST: Final = "SELECT arg_max(run_id, rowid) FROM ops.column_values WHERE resource = $resource"
_GONE: Final = f"""
    WITH counted AS (
        SELECT *, rows - nulls - if(maximum IS NULL, 0, zeros) AS filled FROM ops.column_values
        WHERE resource = $resource),
    now AS (FROM counted WHERE run_id = ({_LAST}))
    SELECT h.table_name, h.column_name, max(h.filled), max(h.recorded_at),
        (SELECT max(rows) FROM now WHERE table_name = h.table_name),
        coalesce((SELECT max(zeros) FROM now WHERE (table_name, column_name) = (h.table_name, h.column_name)), 0)
    FROM counted h ANTI JOIN (FROM now WHERE filled > 0) n USING (table_name, column_name)
    WHERE h.filled > 0 AND EXISTS (FROM now WHERE table_name = $resource AND rows > 0)
    GROUP BY ALL HAVING bool_or(h.filled >= {HAD_MIN} OR h.filled * 2 >= h.rows) ORDER BY ALL"""
_PULSE: Final = '{0}.rows, {0}.nulls, {0}.zeros, {0}."distinct", {0}.minimum, {0}.maximum'
_STATES: Final = f"""
    WITH compared AS (
        FROM ops.column_values WHERE resource = $resource AND run_id <> $run AND jump IS NULL
        QUALIFY row_number() OVER (PARTITION BY table_name, column_name ORDER BY rowid DESC) = 1
            OR recorded_at >= $since
            AND row_number() OVER (PARTITION BY table_name, column_name, recorded_at >= $since ORDER BY rowid) = 1)
    SELECT n.table_name, n.column_name, {_PULSE.format("n")}, {_PULSE.format("c")}
    FROM ops.column_values n JOIN compared c USING (table_name, column_name)
    WHERE n.resource = $resource AND n.run_id = $run AND n.rows > 0 AND c.rows > 0
    ORDER BY n.table_name, n.column_name, c.recorded_at"""
_JUMPS: Final = f"""
    SELECT table_name, column_name, jump, recorded_at, run_id = ({_LAST}) FROM ops.column_values
    WHERE resource = $resource AND jump <> '' ORDER BY ALL"""
_OF_COLUMN: Final = "WHERE resource = $resource AND table_name = $table AND column_name = $column"


_Limits = tuple[Decimal, Decimal] | tuple[str, str]


class Pulse(NamedTuple):
    """What was counted of a column: a row of `ops.column_values`."""

    rows: int
    nulls: int
    zeros: int | None
    distinct: int
    minimum: str | None
    maximum: str | None

    @property
    def values(self) -> int:
        """Rows with a value."""
        return self.rows - self.nulls

    @property
    def limits(self) -> _Limits | None:
        """The least and the largest number or date."""
        if self.minimum is None or self.maximum is None:
            return None
        is_number = self.zeros is not None
        return (Decimal(self.minimum), Decimal(self.maximum)) if is_number else (self.minimum, self.maximum)


def jump_between(before: Pulse, now: Pulse) -> str | None:
    """How the values of a column jumped, in words without a value; None where they did not, and where none is left."""
    if not before.values or not now.values or (now.limits is not None and now.values == now.zeros):
        return None  # see `gone_values`
    parts = [(before.values, before.rows, now.values, now.rows, "of the rows have a value")]
    if before.zeros is not None and now.zeros is not None:
        others = before.values - before.zeros, now.values - now.zeros
        parts.append((others[0], before.values, others[1], now.values, "of the values are other than 0 or false"))
    for had, of, has, of_now, words in parts:
        expected = had / of * of_now
        if expected - has >= JUMP_MIN and has * JUMP_FACTOR < expected:
            return f"{has / of_now:.0%} {words}, {had / of:.0%} before"
    if before.distinct >= JUMP_MIN and now.values >= before.values > 0 and now.distinct * JUMP_FACTOR < before.distinct:
        return f"{now.distinct} different values, {before.distinct} before"
    if min(before.values, now.values) >= JUMP_MIN and before.limits and now.limits:
        return _moved(before.limits, now.limits)
    return None


def _moved(before: _Limits, now: _Limits) -> str | None:
    """How the range of the values moved as a whole."""
    if isinstance(before[0], str) or isinstance(now[0], str):
        texts = (*map(str, before), *map(str, now))
        has_moved = type(before[0]) is type(now[0]) and (texts[2] > texts[1] or texts[3] < texts[0])
        return "no value is between the first and the last of before" if has_moved else None
    pairs = list(zip(before, now, strict=True))
    for changes in (pairs, [(new, old) for old, new in pairs]):
        if all(one > 0 and one * SCALE_FACTOR <= other for one, other in changes):
            size = f"{SCALE_FACTOR} times" if changes is pairs else "a tenth of"
            return f"the least and the largest number are {size} those of before, or further from them"
    return None


def record_column_values(build: duckdb.DuckDBPyConnection, run_id: str, at: datetime, walked: ListResult) -> None:
    """Counts the rows that a walk brought into the raw tables of its list, and after a whole read their values.

    Raises:
        BridgeError: a raw table does not have the rows that were loaded.
    """
    for table, files in walked.files.items():
        ((rows,),) = build.execute(f'SELECT count(*) FROM raw."{table}" WHERE _run_id = $1', [run_id]).fetchall()
        if rows != (loaded := sum(count for _, count in files)):
            raise BridgeError(f"{table}: {loaded} rows were loaded, {rows} of them are in its raw table")
        listed = {"listed": walked.items[table]} if table != walked.resource else {}
        record_totals(build, run_id, f"raw.{table}", {**listed, "loaded": loaded, "raw": rows})
        if not walked.is_whole:
            continue
        own = {name: kind for name, kind in columns_of(build, f'raw."{table}"').items() if name not in RESERVED}
        counts = ", ".join(_counts(name, kind) for name, kind in own.items())
        build.execute(
            f"""INSERT INTO ops.column_values BY NAME
            SELECT $run AS run_id, $list AS resource, $table AS table_name, *, $at AS recorded_at
            FROM (SELECT unnest([{counts}], recursive := true) FROM raw."{table}" WHERE _run_id = $run)""",
            {"run": run_id, "list": walked.resource, "table": table, "at": at},
        )
    if walked.is_whole:
        _forget_accepted(build, walked.resource)
        _record_jumps(build, run_id, walked.resource, at)


def _forget_accepted(build: duckdb.DuckDBPyConnection, resource: str) -> None:
    """Makes a state whose jump a person has accepted the one to compare with, instead of earlier ones."""
    for one in list(_jumps(build, resource, Accepted.read(datetime.now(UTC)))):
        if one.is_accepted:
            values = {"resource": resource, "table": one.table, "column": one.column, "at": one.recorded_at}
            set_jump = f"SET jump = if(recorded_at < $at, '', NULL) {_OF_COLUMN} AND recorded_at <= $at"
            build.execute(f"UPDATE ops.column_values {set_jump}", values)


def _record_jumps(build: duckdb.DuckDBPyConnection, run_id: str, resource: str, at: datetime) -> None:
    """Compares the values of a read with earlier states, and records what jumped."""
    values = {"resource": resource, "run": run_id, "since": at - COMPARED_WITHIN}
    for table, column, *counts in build.execute(_STATES, values).fetchall():
        now, before = Pulse(*counts[: len(Pulse._fields)]), Pulse(*counts[len(Pulse._fields) :])
        if jump := jump_between(before, now):
            new = {"resource": resource, "table": table, "column": column, "run": run_id, "jump": jump}
            build.execute(f"UPDATE ops.column_values SET jump = $jump {_OF_COLUMN} AND run_id = $run", new)


def _counts(name: str, kind: str) -> str:
    """What is counted of a column, as a struct in SQL; an empty text, list or object is no value."""
    column = f'"{name}"'
    is_empty = f"{column} IS NULL" + (f" OR {column} IN ('', '[]', '{{}}')" if kind == "VARCHAR" else "")
    zeros = f"count_if({column} = 0)" if kind.startswith(_NUMBERS) else "NULL::BIGINT"
    zeros = f"count_if(NOT {column})" if kind == "BOOLEAN" else zeros
    least, largest = (f"{limit}({column})" if kind.startswith(_ORDERED) else "NULL" for limit in ("min", "max"))
    return (
        f"{{column_name: {sql_text(name)}, rows: count(*), nulls: count_if({is_empty}), zeros: {zeros}, "
        f'"distinct": approx_count_distinct({column}), minimum: {least}::VARCHAR, maximum: {largest}::VARCHAR}}'
    )


def gone_values(build: duckdb.DuckDBPyConnection, resource: str, accepted: Accepted) -> Iterator[tuple[str, str]]:
    """The columns and child tables of a list that had values and have none, until a person accepts it.

    Yields:
        The place, as findings name it (`field_kinds.place`), and what it had.
    """
    names, gone = field_names(build, resource), list[list[str]]()
    for table, column, filled, at, rows, zeros in build.execute(_GONE, {"resource": resource}).fetchall():
        if not rows and column != "position":
            continue  # of a child table without rows one column stands for all
        keys = _keys(names, table, column if rows else "")
        # The field itself, after the objects and lists that hold it: in another form they have other columns.
        places = _places(resource, names, keys)
        where = places[-1] if places else f"{table}: {column}" if rows else table
        is_accepted = accepted.is_changed(f"{resource}.values_gone", where, at) or any(
            accepted.is_changed(f"{resource}.form_changed", one, at) for one in places
        )
        if not is_accepted and not any(keys[: len(holder)] == holder for holder in gone):
            none = "only 0" if zeros else "none"
            yield where, f"{filled} {f'values before, {none} in {rows} rows' if rows else 'rows before, none'} now"
        if not rows and keys:
            gone.append(keys)


def jumped_values(build: duckdb.DuckDBPyConnection, resource: str, accepted: Accepted) -> Iterator[tuple[str, str]]:
    """The columns of a list whose values jumped in its last whole read, until a person accepts it.

    Yields:
        The place, as `gone_values` names it, and how they jumped.
    """
    for jump in _jumps(build, resource, accepted):
        if jump.is_last and not jump.is_accepted:
            yield jump.place, jump.text


class _Jump(NamedTuple):
    table: str
    column: str
    text: str
    recorded_at: datetime
    is_last: bool
    place: str
    is_accepted: bool


def _jumps(build: duckdb.DuckDBPyConnection, resource: str, accepted: Accepted) -> Iterator[_Jump]:
    """The jumps of a list, in all of its reads; accepted are those that a person accepted after they were recorded."""
    names = field_names(build, resource)
    for table, column, text, at, is_last in build.execute(_JUMPS, {"resource": resource}).fetchall():
        where = [f"{table}: {column}", *_places(resource, names, _keys(names, table, column))][-1]
        is_accepted = accepted.is_changed(f"{resource}.values_jumped", where, at)
        yield _Jump(table, column, text, at, is_last, where, is_accepted)


def _keys(names: FieldNames, table: str, column: str) -> list[str]:
    """The names that lead to the field of a column of an undocumented list, or to that of a child table."""
    paths = [path for path, name in names.get(CHILD_TABLES, {}).items() if name == table]
    paths += [path for path, name in names.get(table, {}).items() if name == column][-1:]
    return [key for path in paths for key in msgspec.json.decode(path, type=list[str])]


def _places(resource: str, names: FieldNames, keys: list[str]) -> list[str]:
    """A field, after the objects and lists that hold it, as findings name places."""
    return [place(resource, path_text(keys[: n + 1]), names) for n in range(len(keys))]
