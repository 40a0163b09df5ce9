"""dlt resources over lists: for pipelines of users, and for the load of a pull.

In: lists to walk, or lists that were walked. Out: resources with keys, rows as Arrow tables or as
Parquet files; no Python object per row. dlt 1.31 nests the items of Python rows only, so a child table of Arrow tables
is a resource of its own that references its list.

A source can be run any number of times: each run walks its lists anew, and all resources of a run share one walk.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, Self

import dlt
import pyarrow as pa
import pyarrow.parquet as pq
from dlt.common.configuration.container import Container as Contexts
from dlt.common.libs.pyarrow import py_arrow_to_table_schema_columns
from dlt.common.schema.typing import TTableReferenceParam, TTableSchemaColumns
from dlt.extract import DltResource, DltSource
from dlt.extract.source import SourceInjectableContext

from orderbridge.sources import __version__
from orderbridge.sources.contract import LISTS, Record
from orderbridge.sources.decode.column_kinds import ColumnKind, DecidedKind, KeptKind, KeptKinds
from orderbridge.sources.decode.stored_types import as_stored
from orderbridge.sources.decode.table_schema import (
    KEY_COLUMN,
    PLACE,
    TableSchema,
    parent_key,
    snake,
    table_schema,
)
from orderbridge.sources.extract.result import ListResult, WalkOptions
from orderbridge.sources.extract.spool import SpoolFolder, run_folder
from orderbridge.sources.extract.table_files import TableFile, read_batches
from orderbridge.sources.extract.walk import walk
from orderbridge.sources.http.client import Client
from orderbridge.sources.settings import http_settings, known_secrets

RUNS_MAX: Final = 2
"""Runs of one source whose walks are kept, for runs that overlap."""
REMOVED: Final = "_removed"
_MARKER_MEANING: Final = "null; marks the rows that delete the items of a merged record"
_MARKER: Final[TTableSchemaColumns] = {
    REMOVED: {
        "name": REMOVED,
        "data_type": "bool",
        "nullable": True,
        "description": _MARKER_MEANING,
    }
}
_EXTRA: Final = {"_extra": "fields that the interface does not name, as JSON"}
log = logging.getLogger("orderbridge.sources")


class ListSource(DltSource):
    """A source in which the selection of a list includes its child tables."""

    def with_resources(self, *resource_names: str) -> DltSource:
        """A clone with these resources and their child tables selected."""
        children = [
            name
            for name in self.resources
            if any(name.startswith(f"{list_}__") for list_ in resource_names)
        ]
        return super().with_resources(*dict.fromkeys([*resource_names, *children]))

    def clone(self, with_name: str | None = None) -> Self:
        """A deep copy, of this class."""
        name = with_name or self.schema.name
        return type(self)(
            self.schema.clone(with_name=name), self.section, list(self.resources.values())
        )


class _Run:
    """One run of a source over a list, and its walk; the files of that are removed with it."""

    def __init__(self, context: object) -> None:
        self.context = context
        self.lock = threading.Lock()
        self.result: ListResult | None = None


class ListWalker:
    """Walks a list once per run of a source, when its rows are first needed.

    The fields of an undocumented record keep the names and kinds that they had: those of the bulk of its first rows, in
    dlt's state of the source.

    Args:
        record: that is listed.
        base_url, api_key: of its platform.
        options: how the list is walked.
        decimals: whether whole numbers in undocumented fields are decimals from the start.
    """

    def __init__(
        self,
        record: Record,
        base_url: str,
        api_key: str,
        options: WalkOptions,
        *,
        decimals: bool = False,
    ) -> None:
        self.record = record
        self._base_url = base_url
        self._api_key = api_key
        self._options = options
        self._decimals = decimals
        self._lock = threading.Lock()
        self._runs: list[_Run] = []

    def batches(self) -> Iterator[tuple[str, pa.Table, TTableSchemaColumns]]:
        """The rows by table, a batch at a time; one empty batch for a table without rows.

        Yields:
            A table, rows of it, and the hints of its variants.

        Raises:
            BridgeError: the walk failed: a part of a list is never loaded.
        """
        for table, files in self._walked().files.items():
            stored = self._stored_types(table, pq.read_schema(files[0][0]))
            batches = (batch for batch in read_batches(files) if len(batch))
            first = next(batches, pq.read_schema(files[0][0]).empty_table())
            for batch in chain([first], batches):
                typed, variants = as_stored(batch, stored)
                yield table, typed, {name: {"name": name, "variant": True} for name in variants}

    def _stored_types(self, table: str, columns: pa.Schema) -> dict[str, str]:
        """The types of dlt's that columns of an undocumented record are to have: those of the pipeline, or decimals."""
        if self.record.fields:
            return {}
        schema = dlt.current.source_schema()
        types = {}
        stored = schema.tables.get(schema.naming.normalize_tables_path(table))
        for column in columns:
            known = (
                stored["columns"].get(schema.naming.normalize_path(column.name)) if stored else None
            )
            if known and "data_type" in known:
                types[column.name] = str(known["data_type"])
            elif self._decimals and column.type == pa.int64():
                types[column.name] = "decimal"
        return types

    def _current_run(self) -> _Run:
        context = Contexts()[SourceInjectableContext]  # dlt makes one for each run
        with self._lock:
            for run in self._runs:
                if run.context is context:
                    return run
            self._runs = [*self._runs, _Run(context)][-RUNS_MAX:]
            return self._runs[-1]

    def _walked(self) -> ListResult:
        run = self._current_run()
        with run.lock:
            if run.result is None:
                parent = Path(dlt.current.pipeline().working_dir) / "orderbridge"
                with run_folder(parent, self.record.name, run) as (folder, spool):
                    run.result = self._walk(folder, spool)
                    if run.result.error is None:
                        shutil.rmtree(spool)
        if run.result.error is not None:
            raise run.result.error
        return run.result

    def _walk(self, folder: Path, spool: Path) -> ListResult:
        """Walks the list; from where a run was killed or failed, if that was less than an hour ago."""
        name = self.record.name
        # not in the state of the resource, which dlt empties at each run that replaces the table
        state = {} if self.record.fields else dlt.current.source_state().setdefault(name, {})
        known: dict[str, list[Any]] = state.get("kinds", {})
        kinds = {path: _kept_kind(*kept) for path, kept in known.items()}
        options = replace(self._options, names=state.get("names"), kinds=kinds)
        identity = {
            "list": name,
            "host": self._base_url,
            "limit": str(options.page_limit),
            "version": __version__,
        }
        http, secrets = http_settings(), known_secrets()
        with Client(
            LISTS[name].family, self._base_url, self._api_key, http=http, secrets=secrets
        ) as client:
            spools = SpoolFolder(spool, identity, self._api_key, finished_after=0.0)
            result = walk(name, client, folder, spools, options)
        if result.error is None and not self.record.fields:
            _warn_of_lists(result, kinds)
            state["kinds"] = known | {
                one.path: _most(one, kinds.get(one.path)) for one in result.kinds
            }
            state["names"] = result.field_names(state.get("names", {}))
        _warn(result)
        return result


def _warn_of_lists(result: ListResult, kept: KeptKinds) -> None:
    """Logs the fields that version 0.3 held as columns of an object and that are child tables from now on."""
    for known in result.kinds:
        before = kept.get(known.path)
        if before is not None and (before.kind, known.kind) == ("object", "table"):
            words = "%s: the field %s is a list: its items are in a child table now, its columns get no values"
            log.warning(words, result.resource, known.path)


def _kept_kind(kind: ColumnKind, values: int, objects: int = 0) -> KeptKind:
    """What dlt's state of a source has of a place; version 0.3 did not count plain objects."""
    return KeptKind(kind, values, None, objects)


def _most(decided: DecidedKind, kept: KeptKind | None) -> list[Any]:
    """What is kept of a place: its kind, and the most values and plain objects of any walk."""
    values, objects = decided.values, decided.objects
    if kept is not None:
        values = max(values, kept.values or 0)
        objects = max(objects, kept.objects)
    return [decided.kind, values, objects]


def _warn(result: ListResult) -> None:
    """Logs what a pipeline of a user would not notice: rows that are left out, and a list that is not proven whole."""
    for reason, count in Counter(row.reason for row in result.quarantined).items():
        place = next((row.page, row.position) for row in result.quarantined if row.reason == reason)
        words = "%s: rows that cannot be loaded and are left out: %d; %s (the first: page %d, position %d)"
        log.warning(words, result.resource, count, reason, *place)
    if result.verdict == "unproven":
        log.warning("%s may lack rows: %s", result.resource, "; ".join(result.evidence))


def list_resources(walker: ListWalker) -> Iterator[DltResource]:
    """The resources of a list: its own table, and its child tables. A list that is not selected is not walked.

    Child tables follow the disposition of their list: merged, the items of each merged record are replaced; otherwise
    they are those of the last walk. The child tables of an undocumented record are known after its walk only: one
    resource, `orders__children`, has all.

    Args:
        walker: walks the list.
    """
    record = walker.record
    table = table_schema(record)
    key: TTableSchemaColumns = {
        KEY_COLUMN: {"name": KEY_COLUMN, "data_type": "text", "nullable": False}
    }
    rows = partial(_rows_of, walker, record.name, {})
    yield _resource(rows, record.name, primary_key=KEY_COLUMN, columns=_columns(table) | key)
    for child in table.children:
        columns = _columns(child) | _MARKER
        columns[parent_key(record)]["description"] = f"`{KEY_COLUMN}` in `{record.name}`"
        columns["position"]["description"] = f"place in `{child.array}`, from 1"
        read = partial(_child_rows, walker, child.name)
        yield _resource(
            read, child.name, primary_key="", columns=columns, references=_references(record)
        )
    if not record.fields:
        yield _resource(partial(_all_children, walker), f"{record.name}__children", primary_key="")


def _columns(table: TableSchema) -> TTableSchemaColumns:
    """Hints of a table's columns that are known before a run: types, and the interface's descriptions."""
    columns = (column for column in table.schema if column.name not in dict(PLACE))
    hints = py_arrow_to_table_schema_columns(pa.schema(columns))
    meanings = {
        snake(field.name): field.meaning for field in table.fields if field.meaning
    } | _EXTRA
    for name, meaning in meanings.items():
        hints[name]["description"] = meaning
    return hints


def _references(record: Record) -> TTableReferenceParam:
    """The relation of a child table to its parent. dlt does not take Arrow tables into its own nested tables."""
    return [
        {
            "referenced_table": record.name,
            "columns": [parent_key(record)],
            "referenced_columns": [KEY_COLUMN],
            "label": "belongs to",
            "cardinality": "many_to_one",
        }
    ]


def _child_rows(walker: ListWalker, child: str) -> Iterator[Any]:
    hints = _child_hints(walker.record)
    yield from (_hinted(rows, hints) for rows in _removals(walker))
    yield from _rows_of(walker, child, hints)


def _all_children(walker: ListWalker) -> Iterator[Any]:
    record = walker.record
    prefix = f"{walker.record.name}__"
    known = {table for table in dlt.current.source_schema().tables if table.startswith(prefix)} - {
        f"{prefix}children"
    }
    walked = dict.fromkeys(table for table, *_ in walker.batches() if table != record.name)
    # of a table that no record has any more
    no_rows = pa.table({parent_key(record): pa.array([], pa.string())})
    for table in walked | dict.fromkeys(known):
        hints = {
            "table_name": table,
            "primary_key": "",
            "references": _references(record),
            **_child_hints(record),
        }
        yield from (_hinted(rows, hints) for rows in _removals(walker))
        yield from _rows_of(walker, table, hints) if table in walked else [_hinted(no_rows, hints)]


def _rows_of(walker: ListWalker, table: str, hints: Mapping[str, Any]) -> Iterator[Any]:
    has_key = table == walker.record.name
    for name, batch, variants in walker.batches():
        if name == table:
            columns = {"columns": {**hints.get("columns", {}), **variants}} if variants else {}
            rows = _with_key(batch) if has_key else batch
            yield _hinted(rows, {**hints, **columns})


def _with_key(rows: pa.Table) -> pa.Table:
    """The rows, whose key is not null for Arrow either: dlt warns where a hint is another one than Arrow's."""
    at = rows.schema.get_field_index(KEY_COLUMN)
    key = rows.schema.field(at).with_nullable(False)
    return pa.Table.from_arrays(rows.columns, schema=rows.schema.set(at, key))


def _hinted(rows: pa.Table, hints: Mapping[str, Any]) -> Any:  # noqa: ANN401 # dlt's
    made = dlt.mark.make_hints(**hints)
    return (
        dlt.mark.with_hints(rows, made, create_table_variant="table_name" in hints)
        if hints
        else rows
    )


def _is_merged(record: Record) -> bool:
    """Whether this run merges the list, which its child tables follow. dlt appends where it cannot merge."""
    listed = Contexts()[SourceInjectableContext].source.resources.get(record.name)
    disposition = listed.write_disposition if listed else "replace"
    name = disposition.get("disposition") if isinstance(disposition, dict) else disposition
    destination = dlt.current.pipeline().destination
    return name == "merge" and "delete-insert" in (
        destination.capabilities().supported_merge_strategies or ()
    )


def _child_hints(record: Record) -> dict[str, Any]:
    if not _is_merged(record):
        return {"write_disposition": "replace", "columns": _MARKER}
    key = parent_key(record)
    merge_key = {"name": key, "data_type": "text", "nullable": True, "merge_key": True}
    marker: TTableSchemaColumns = {REMOVED: {**_MARKER[REMOVED], "hard_delete": True}}
    return {"write_disposition": "merge", "columns": {key: merge_key} | marker}


def _removals(walker: ListWalker) -> Iterator[pa.Table]:
    """A row for each merged record, which deletes its present items: it may have no item any more."""
    record = walker.record
    if _is_merged(record):
        for table, batch, _ in walker.batches():
            if table == record.name:
                yield pa.table(
                    {parent_key(record): batch[KEY_COLUMN], REMOVED: pa.repeat(True, len(batch))}
                )


def _resource(rows: Callable[[], Iterator[Any]], name: str, **hints: Any) -> DltResource:  # noqa: ANN401 # dlt's
    def generate() -> Iterator[Any]:  # dlt starts a generator function anew in each run
        yield from rows()

    resource: DltResource = dlt.resource(generate, name=name, write_disposition="replace", **hints)
    return resource


def file_resources(result: ListResult) -> Iterator[DltResource]:
    """The tables of a list that was walked, for a single run: dlt takes the Parquet files as they are."""
    for table, files in result.files.items():
        yield dlt.resource(
            # of a generator dlt would look for its module, along every module's path
            chain(_file_imports(files)),
            name=table,
            primary_key=KEY_COLUMN if table == result.resource else "",
            write_disposition="replace",
        )


def _file_imports(files: list[TableFile]) -> Iterator[Any]:
    for path, rows in files:
        yield dlt.mark.with_file_import(
            str(path), "parquet", rows, hints=pa.Table.from_batches([], pq.read_schema(path))
        )
