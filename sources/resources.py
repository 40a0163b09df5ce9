"""dlt resources over walked lists: a resource a table, its Parquet files handed to dlt as they are.

In: walks, done or to be done when the first row is asked for. Out: resources with keys, hints and a frozen contract.
Files are imported, not read again: no Python object per row. A child table is a resource of its own, since dlt does
not take Arrow into a nested table (facts).
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

import dlt
import pyarrow.parquet as pq
from dlt.common.schema.typing import TSchemaContract
from dlt.extract import DltResource

from sources.contract import LISTS, Operation
from sources.decode.table_schema import schema_of
from sources.extract.result import ListResult, WalkOptions
from sources.extract.spool import SpoolFolder
from sources.extract.table_files import read_batches
from sources.extract.walk import walk
from sources.http.client import Client

FROZEN: Final[TSchemaContract] = {"tables": "evolve", "columns": "evolve", "data_type": "freeze"}


class Walks:
    """Lists walked when they are first asked for, each once, for a pipeline that is not this project's.

    Args:
        client: makes the client of the family.
        options: how the lists are walked.
    """

    def __init__(self, client: Callable[[], Client], options: WalkOptions) -> None:
        self._client, self._options = client, options
        self._lock = threading.Lock()
        self._walked: dict[str, ListResult] = {}
        self._folder = Path(tempfile.mkdtemp(prefix="orderbridge-"))
        # dlt takes the files when it likes: they go with the source, or with the process.
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def __call__(self, resource: str) -> ListResult:
        """The list, walked. Raises the walk's error where it failed: a part of a list is never loaded."""
        with self._lock:
            if resource not in self._walked:
                folder = self._folder / resource
                with self._client() as client:
                    spool = SpoolFolder(folder / "spool", {"resource": resource})
                    self._walked[resource] = walk(resource, client, folder, spool, self._options)
        walked = self._walked[resource]
        if walked.error is not None:
            raise walked.error
        return walked


def of_walks(operation: Operation, walks: Callable[[str], ListResult]) -> Iterator[DltResource]:
    """The resources of one list: its table, its child tables, and nothing that is not asked for is walked."""
    if operation.records is None:
        raise TypeError(f"{operation.name} lists nothing")
    record = operation.records
    if not record.fields:
        yield dlt.resource(
            _with_children(walks, record.name),
            name=record.name,
            primary_key=record.key,
            write_disposition="replace",
            schema_contract=FROZEN,
        )
        return
    for table in schema_of(record):
        yield table_resource(table, lambda table=table: walks(record.name).files[table], key=record.key)  # type: ignore[misc]


def table_resource(table: str, files: Callable[[], list[tuple[Path, int]]], *, key: str = "") -> DltResource:
    """A resource for one table, whose rows are Parquet files already; `key` where it is a list's own table."""
    resource: DltResource = dlt.resource(
        chain(_imports(files)),  # of a generator dlt would ask for its module, and look at every module's path for it
        name=table,
        primary_key=key if "__" not in table else "",
        write_disposition="replace",
        schema_contract=FROZEN,
    )
    return resource


def walked_resources(walked: ListResult) -> Iterator[DltResource]:
    """The resources of a list that was walked: every table of it is known."""
    for table, files in walked.files.items():
        yield table_resource(table, lambda files=files: files, key=LISTS[walked.resource].records.key)  # type: ignore[misc, union-attr]


def _imports(files: Callable[[], list[tuple[Path, int]]]) -> Iterator[Any]:
    for path, rows in files():
        hints = pq.read_schema(path).empty_table()
        yield dlt.mark.with_file_import(str(path), "parquet", rows, hints=hints)


def _with_children(walks: Callable[[str], ListResult], name: str) -> Iterator[Any]:
    """A list whose child tables are known once it is walked: they go as Arrow tables, the list itself as files."""
    for table, files in walks(name).files.items():
        if table == name:
            yield from _imports(lambda files=files: files)  # type: ignore[misc]
            continue
        hints = dlt.mark.make_hints(table_name=table, primary_key="", write_disposition="replace")
        for batch in read_batches(files):
            yield dlt.mark.with_hints(batch, hints, create_table_variant=True)
