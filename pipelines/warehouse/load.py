"""Walked lists into a DuckDB file, through dlt, in a working folder for this load alone.

In: walks and a folder. Out: a file whose dataset `loaded` holds their rows, counted. dlt's state is disposable: a
fresh working folder each time, removed with the run (facts: 164 of 164 kills came out right so).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb

from sources.disk import is_disk_full
from sources.errors import BridgeError
from sources.extract.result import ListResult

DATASET: Final = "loaded"
BOUNDS: Final = {"memory_limit": "384MB", "threads": 4}
"""Of DuckDB, while rows go through it once: left alone it keeps them all, up to most of the machine's memory. Each
thread needs its share."""
_SETTINGS: Final = {
    # The file is this run's own and empty: a staging copy would guard nothing, and costs a third of the load's time.
    # What readers see is replaced as a whole file, once these rows were counted.
    "DESTINATION__REPLACE_STRATEGY": "truncate-and-insert",
    "LOAD__WORKERS": "4",
    "RESTORE_FROM_DESTINATION": "false",  # a new file holds no state
}


def load(walked: Sequence[ListResult], folder: Path) -> Path:
    """Loads the walks' rows. Returns the file that dlt filled, in a folder that is made for it.

    Raises:
        BridgeError: dlt failed, or what it loaded is not what was walked. dlt's own text stays inside: it can hold
            values of rows.
    """
    import dlt
    from dlt.pipeline.exceptions import PipelineStepFailed

    from sources.resources import file_resources

    folder.mkdir(mode=0o700)
    file = folder / "load.duckdb"

    @dlt.source(name="orderbridge", max_table_nesting=0)
    def lists() -> Iterator[object]:
        for walk in walked:
            yield from file_resources(walk)

    with _settings(_SETTINGS), _opened(file) as connection:
        pipeline = dlt.pipeline(
            "orderbridge",
            pipelines_dir=str(folder / "dlt"),
            destination=dlt.destinations.duckdb(connection),
            dataset_name=DATASET,
        )
        try:
            pipeline.run(lists(), loader_file_format="parquet")
        except PipelineStepFailed as error:
            cause = error.exception if error.exception is not None else error
            if is_disk_full(error):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
            raise BridgeError(
                f"dlt could not load the rows: step {error.step}, {type(cause).__name__}",
                "Nothing was published. Please report it, with the versions that `orderbridge --version` prints.",
            ) from None
        _check(connection, walked)
        connection.execute("CHECKPOINT")  # closing would do it too, and not say where it fails
    return file


def warm() -> None:
    """Imports what a load needs: beside the walks, which wait for answers much of their time."""
    import dlt.destinations.impl.duckdb.duck
    import dlt.load
    import dlt.normalize  # noqa: F401 # imported to be there

    import sources.resources  # noqa: F401 # likewise


@contextmanager
def _opened(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The file, opened once for all that dlt does with it: left to itself it opens and closes it at each step.

    Its pages are not compressed (they are read once and removed), nor kept in memory for long.
    """
    with duckdb.connect(str(file)) as connection:
        for name, value in {"force_compression": "uncompressed", **BOUNDS}.items():
            connection.execute(f"SET GLOBAL {name} = '{value}'")
        yield connection


@contextmanager
def _settings(values: dict[str, str]) -> Iterator[None]:
    """Settings of dlt for one run, by its own way in; what was there before comes back."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _check(connection: duckdb.DuckDBPyConnection, walked: Sequence[ListResult]) -> None:
    """The totals balance, or the run fails (promise 2)."""
    for walk in walked:
        for table, files in walk.files.items():
            found = connection.execute(f'SELECT count(*) FROM {DATASET}."{table}"').fetchone()
            expected = sum(rows for _, rows in files)
            if found is None or found[0] != expected:
                raise BridgeError(f"{table}: {expected} rows were walked, {found} were loaded")
        balance = walk.distinct + walk.duplicates + len(walk.quarantined)
        in_files = sum(rows for _, rows in walk.files.get(walk.resource, []))
        distinct = connection.execute(f'SELECT count(DISTINCT id) FROM {DATASET}."{walk.resource}"').fetchone()
        if balance != walk.total("rows") or in_files != walk.distinct or distinct != (walk.distinct,):
            raise BridgeError(
                f"{walk.resource}: the totals do not balance: {walk.total('rows')} rows read, {walk.distinct} "
                f"distinct, {walk.duplicates} duplicates, {len(walk.quarantined)} quarantined, {in_files} written"
            )
