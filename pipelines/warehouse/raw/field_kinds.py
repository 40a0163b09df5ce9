"""The kinds of the fields of undocumented records: decided by walks or declared by a person, and kept for later walks.

In: a warehouse, the file in which a person declares fields (`.dlt/orders.toml`), and what is accepted. Out:
`ops.field_kinds`, the kinds that the next walk keeps, and the lines of that file. Declared kinds come before decided
ones; decided ones are forgotten where a person has accepted a change.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import duckdb
import msgspec

from orderbridge.pipelines.warehouse.answers.accepted import Accepted
from orderbridge.pipelines.warehouse.raw.schema_changes import field_names
from orderbridge.pipelines.warehouse.sql import columns_of, has_tables, sql_name, sql_text
from orderbridge.sources.contract import RECORDS
from orderbridge.sources.decode.column_kinds import KeptKind, KeptKinds, path_text
from orderbridge.sources.decode.inferred_tables import CHILD_TABLES, RESERVED, FieldNames
from orderbridge.sources.decode.schema_inference import ODD_MAX
from orderbridge.sources.decode.table_schema import DECIMAL, KEY_COLUMN
from orderbridge.sources.decode.values import NUMERIC_TEXT
from orderbridge.sources.disk import disk_errors, write_private
from orderbridge.sources.errors import UsageError
from orderbridge.sources.extract.result import ListResult
from orderbridge.sources.settings.ownership import check_private
from orderbridge.sources.settings.root import UNWRITABLE_HINT, find_root, read_toml

_COUNTED: Final = """
    (SELECT NULL::BIGINT AS objects, NULL::BIGINT AS arrays WHERE false UNION ALL BY NAME FROM ops.field_kinds)"""
"""Version 0.3 did not count plain objects and arrays."""
_KNOWN: Final = f"""
    SELECT path, kind, values_seen, decided_at, coalesce(objects, 0), coalesce(arrays, 0)
    FROM {_COUNTED} WHERE resource = ? ORDER BY path"""
_WIDENED: Final = """
    SELECT path, previous_kind, kind FROM ops.field_kinds
    WHERE resource = ? AND previous_kind IS NOT NULL ORDER BY path"""
_MIXED: Final = """
    SELECT path, kind, objects, arrays FROM ops.field_kinds
    WHERE resource = ? AND kind IN ('object', 'table') AND objects > 0 AND arrays > 0 ORDER BY path"""
_RECORD: Final = """
    INSERT INTO ops.field_kinds BY NAME SELECT $resource AS resource, unnest($paths) AS path, unnest($kinds) AS kind,
        unnest($values) AS values_seen, unnest($objects) AS objects, unnest($arrays) AS arrays, $run AS run_id,
        $at AS decided_at
    ON CONFLICT DO UPDATE SET
        values_seen = greatest(field_kinds.values_seen, excluded.values_seen), kind = excluded.kind,
        objects = greatest(field_kinds.objects, excluded.objects),
        arrays = greatest(field_kinds.arrays, excluded.arrays),
        previous_kind = CASE WHEN list_contains($declared, field_kinds.path) THEN NULL
            WHEN field_kinds.kind = 'text' AND excluded.kind = 'decimal' THEN NULL -- narrower: see `_numbers_of_0_3`
            WHEN field_kinds.kind IN ('empty', excluded.kind) THEN field_kinds.previous_kind ELSE field_kinds.kind END,
        run_id = if(field_kinds.kind = excluded.kind, field_kinds.run_id, excluded.run_id),
        decided_at = if(field_kinds.kind = excluded.kind, field_kinds.decided_at, excluded.decided_at)"""
_TEXTS_OF_0_3: Final = f"""
    SELECT path FROM {_COUNTED} WHERE resource = ? AND kind = 'text' AND objects IS NULL"""
_DECIMAL: Final = f"DECIMAL({DECIMAL.precision},{DECIMAL.scale})"
_HEADER: Final = """\
# The fields of {resource}, by their path in the JSON of the platform: field = "kind", or
# field = {{ kind = "kind", name = "name_of_its_column_or_table" }}
# Kinds: text, bigint, decimal, boolean, json (any value, as text), list (as JSON text), object, table.
# A line with # is what pulls decided and may change; remove the # to declare it. The next pull uses it.
"""


FieldKind = Literal["text", "bigint", "decimal", "boolean", "json", "list", "object", "table"]


class DeclaredField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person declares about a field."""

    kind: FieldKind
    name: Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9_]{0,62}$")] | None = None


class KnownField(NamedTuple):
    """What walks know of a place.

    Attributes:
        path: of the place (`path_text`).
        key: of the place in the file of declared fields.
        place: as findings name it.
        kind: that is used.
        values: the most that were counted in a walk.
        objects, arrays: how many of them are plain objects, and arrays.
    """

    path: str
    key: str
    place: str
    kind: str
    values: int
    objects: int
    arrays: int


def declared_file(resource: str) -> Path:
    """The file with the declared fields of a list."""
    return find_root() / ".dlt" / f"{resource}.toml"


def declared_kinds(resource: str) -> KeptKinds:
    """What a person has declared about the fields of a list.

    Raises:
        UsageError: the file is not valid, or others can write to it; the message names the field.
    """
    path = declared_file(resource)
    declared: dict[str, KeptKind] = {}
    check_private(path)
    for key, value in read_toml(path).items():
        try:
            entry = msgspec.convert(
                {"kind": value} if isinstance(value, str) else value, DeclaredField
            )
            keys = _names_of(key)
        except msgspec.MsgspecError as error:
            raise UsageError(
                f"{path}, {key!r}: {error}", 'A line is "path.of.field" = "kind"; see its head.'
            ) from None
        is_table = entry.kind == "table"
        if keys == [RECORDS[resource].key] or (entry.name or "") in {
            KEY_COLUMN,
            "position",
            *RESERVED,
        }:
            raise UsageError(
                f"{path}, {key!r}: its name or the field is reserved", "Choose another name."
            )
        if entry.name is not None and is_table != entry.name.startswith(f"{resource}__"):
            words = f"{path}, {key!r}: names of tables, and no others, begin with {resource}__"
            raise UsageError(words, "Choose another name.")
        declared[path_text(keys)] = KeptKind(entry.kind, None, entry.name)
    return declared


def known_fields(warehouse: duckdb.DuckDBPyConnection, resource: str) -> list[KnownField]:
    """What walks know of each place of a list, in the order of their paths."""
    if not has_tables(warehouse, "ops", "field_kinds"):
        return []
    names = field_names(warehouse, resource)
    fields: list[KnownField] = []
    for path, kind, values, _, objects, arrays in warehouse.execute(_KNOWN, [resource]).fetchall():
        at = place(resource, path, names)
        fields.append(KnownField(path, _declared_key(path), at, kind, values, objects, arrays))
    return fields


def write_declared(resource: str, changes: Mapping[str, str | None], comment: str) -> Path:
    """Declares the kinds of fields, by the path of each, or takes declarations back (None).

    Other lines and the names of columns stay; a commented line of the same field is replaced.

    Args:
        resource: the list.
        changes: the kind of each field.
        comment: who declared it, when, and why.

    Raises:
        UsageError: see `declared_kinds`; or the file cannot be written.
    """
    import tomlkit

    path = declared_file(resource)
    declared_kinds(resource)
    text = path.read_text("utf-8") if path.exists() else _HEADER.format(resource=resource)
    quoted = {f"# {json.dumps(_declared_key(one), ensure_ascii=False)}" for one in changes}
    lines = [line for line in text.splitlines() if line.partition(" =")[0] not in quoted]
    document = tomlkit.parse("\n".join([*lines, ""]))
    keys = {path_text(_names_of(key)): key for key in document}
    for field, kind in changes.items():
        key = keys.get(field, _declared_key(field))
        if kind is None:
            document.pop(key, None)
            continue
        value: Any = tomlkit.item(_declared_value(document.get(key), kind))
        value.comment(comment)
        document[key] = value
    with disk_errors(path, UNWRITABLE_HINT):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_private(path, tomlkit.dumps(document).encode())
    return path


def _declared_value(old: object, kind: str) -> object:
    """The kind of a field as the file has it: with the name that was declared, if the kind may have that name."""
    if isinstance(old, dict) and "name" in old and (kind == "table") == (old["kind"] == "table"):
        import tomlkit

        entry = tomlkit.inline_table()
        entry.update({"kind": kind, "name": old["name"]})
        return entry
    return kind


def _declared_key(path: str) -> str:
    """The key of a field in the file: its names with dots, or their JSON where these would be ambiguous."""
    keys = msgspec.json.decode(path, type=list[str])
    is_plain = all(keys) and not any("." in key for key in keys) and not keys[0].startswith("[")
    return ".".join(keys) if is_plain else path


def _names_of(key: str) -> list[str]:
    """The names that lead to a field, from its key in the file. Raises DecodeError."""
    return msgspec.json.decode(key, type=list[str]) if key.startswith("[") else key.split(".")


def kept_kinds(
    warehouse: duckdb.DuckDBPyConnection, resource: str, *, is_refreshed: bool = False
) -> KeptKinds:
    """What is known of each place of a list, by its path, but of those whose change was accepted since.

    For a list that is refreshed, only kinds that a person has declared count.

    Raises:
        UsageError: see `declared_kinds`.
    """
    if is_refreshed or not has_tables(warehouse, "ops", "field_kinds"):
        return declared_kinds(resource)
    accepted = Accepted.read(datetime.now(UTC))
    names = field_names(warehouse, resource)
    known = {
        path: KeptKind(kind, values, None, objects)
        for path, kind, values, decided_at, objects, _ in warehouse.execute(
            _KNOWN, [resource]
        ).fetchall()
        if not accepted.is_changed(
            f"{resource}.form_changed", place(resource, path, names), decided_at
        )
    }
    numbers = dict.fromkeys(_numbers_of_0_3(warehouse, resource, names), KeptKind("decimal", 0))
    return {**known, **numbers, **declared_kinds(resource)}


def _numbers_of_0_3(
    warehouse: duckdb.DuckDBPyConnection, resource: str, names: FieldNames
) -> Iterator[str]:
    """The paths of fields whose column version 0.3 made text because many numbers had more than nine decimals.

    Their texts are still those of numbers. The next walk decides whether the platform writes numbers or texts.
    """
    for (path,) in warehouse.execute(_TEXTS_OF_0_3, [resource]).fetchall():
        table, keys = _table_and_keys(resource, path, names)
        column = names.get(table, {}).get(path_text(keys), "")
        if columns_of(warehouse, f'raw."{table}"').get(column) != "VARCHAR":
            continue
        texts = f"FROM raw.{sql_name(table)} SELECT {sql_name(column)} AS x"
        numbers = f"regexp_matches(x, '{NUMERIC_TEXT}')"
        long = f"count_if({numbers} AND regexp_matches(x, '\\.[0-9]{{{DECIMAL.scale + 1}}}'))"
        row = warehouse.execute(f"SELECT count(x), count_if({numbers}), {long} FROM ({texts})")
        ((given, plain, many_decimals),) = row.fetchall()
        if many_decimals and given - plain <= ODD_MAX * given:
            yield path


def record_kinds(
    build: duckdb.DuckDBPyConnection,
    run_id: str,
    at: datetime,
    walked: ListResult,
    *,
    is_refreshed: bool = False,
) -> None:
    """Records the kinds that a published walk decided, for later walks: new ones, and those that became wider."""
    if RECORDS[walked.resource].fields:
        return
    kept = kept_kinds(build, walked.resource, is_refreshed=is_refreshed)
    build.execute(
        "DELETE FROM ops.field_kinds WHERE resource = ? AND NOT list_contains(?, path)",
        [walked.resource, list(kept)],
    )
    declared = [path for path, known in kept.items() if known.values is None]
    parameters = {
        "resource": walked.resource,
        "paths": [known.path for known in walked.kinds],
        "kinds": [known.kind for known in walked.kinds],
        "values": [known.values for known in walked.kinds],
        "objects": [known.objects for known in walked.kinds],
        "arrays": [known.arrays for known in walked.kinds],
        "declared": declared,
    }
    build.execute(_RECORD, {**parameters, "run": run_id, "at": at})


def declarations(warehouse: duckdb.DuckDBPyConnection, resource: str) -> str:
    """The file in which a person declares fields, with a line for each known one; lines that are there stay.

    Raises:
        UsageError: see `declared_kinds`.
    """
    path = declared_file(resource)
    declared_kinds(resource)
    text = path.read_text("utf-8") if path.exists() else _HEADER.format(resource=resource)
    present = {line.lstrip("# ").partition(" =")[0] for line in text.splitlines()}
    known = warehouse.execute(_KNOWN, [resource]).fetchall()
    for field, kind, values, decided_at, objects, arrays in known:
        quoted = json.dumps(_declared_key(field), ensure_ascii=False)
        if quoted not in present:
            line = f'# {quoted} = "{"text" if kind == "empty" else kind}"'
            forms = f", {shares_of_forms(objects, arrays)}" if arrays and objects else ""
            text += f"{line:<40} # {values} values{forms}; since {decided_at:%Y-%m-%d}\n"
    return text


def widened(build: duckdb.DuckDBPyConnection, resource: str) -> Iterator[tuple[str, str, str]]:
    """The places whose kind became wider since it was first decided: the place, its kind before, its kind now."""
    names = field_names(build, resource)
    for path, previous, kind in build.execute(_WIDENED, [resource]).fetchall():
        yield place(resource, path, names), previous, kind


def odd_members(build: duckdb.DuckDBPyConnection, resource: str, table: str) -> str:
    """The names of the members of `_extra` of a raw row that are not the exact text of a rounded number, in SQL."""
    kinds = columns_of(build, f'raw."{table}"')
    rounded = [
        f"CASE WHEN {sql_name(column)} IS NOT NULL THEN {sql_text(_member(path))} END"
        for path, column in field_names(build, resource).get(table, {}).items()
        if kinds.get(column) == _DECIMAL
    ]
    if not rounded:
        return "json_keys(_extra)"
    return f"list_filter(json_keys(_extra), lambda name: NOT list_contains([{', '.join(rounded)}], name))"


def known_members(build: duckdb.DuckDBPyConnection, resource: str) -> Collection[tuple[str, str]]:
    """The table and the name in `_extra` of each place that walks know; empty where none has recorded them.

    What a row has beside these is of fields beyond the most that become columns.
    """
    names = field_names(build, resource)
    paths = build.execute("SELECT path FROM ops.field_kinds WHERE resource = ?", [resource])
    known = set()
    for (path,) in paths.fetchall():
        table, keys = _table_and_keys(resource, path, names)
        known.add((table, ".".join(keys)))
    return known


def _member(path: str) -> str:
    """The name of the member of `_extra` for a field."""
    return ".".join(msgspec.json.decode(path, type=list[str]))


def mixed_forms(build: duckdb.DuckDBPyConnection, resource: str) -> Iterator[tuple[str, str, str]]:
    """The places with plain objects and arrays: the place, its kind, and the shares of both."""
    names = field_names(build, resource)
    for path, kind, objects, arrays in build.execute(_MIXED, [resource]).fetchall():
        yield place(resource, path, names), kind, shares_of_forms(objects, arrays)


def list_fields(build: duckdb.DuckDBPyConnection, resource: str) -> frozenset[tuple[str, ...]]:
    """The fields of a list that are child tables, each by the names that lead to it."""
    sql = "SELECT path FROM ops.field_kinds WHERE resource = ? AND kind = 'table'"
    paths = build.execute(sql, [resource]).fetchall()
    return frozenset(tuple(msgspec.json.decode(path, type=list[str])) for (path,) in paths)


def shares_of_forms(objects: int, arrays: int) -> str:
    """The shares of arrays and objects, in words. No counts: a list that a walk reads twice is counted twice."""
    share = arrays / (arrays + objects)
    return f"{share:.1%} arrays, {1 - share:.1%} objects"


def place(resource: str, path: str, names: FieldNames) -> str:
    """How findings name a place: its table, and its path in a row of it.

    Args:
        resource: the list.
        path: in the record, as `ops.field_kinds` has it.
        names: of its child tables.
    """
    table, keys = _table_and_keys(resource, path, names)
    return f"{table}: {'.'.join(keys)}"


def _table_and_keys(resource: str, path: str, names: FieldNames) -> tuple[str, list[str]]:
    """The table that holds a place, and the names that lead to it from a row of that table."""
    keys = msgspec.json.decode(path, type=list[str])
    tables = names.get(CHILD_TABLES, {})
    for n in range(len(keys) - 1, 0, -1):
        if table := tables.get(path_text(keys[:n])):
            return table, keys[n:]
    return resource, keys
