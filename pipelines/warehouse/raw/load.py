"""Walked lists through dlt into Parquet files, and those as views in a build.

In: results of walks and a folder. Out: a folder of Parquet files per table, as dlt's filesystem destination keeps them,
counted. DuckDB reads them once, when they are merged into the raw tables. dlt's state is disposable: a fresh working
folder each time, removed with the run (correct in 164 of 164 kills).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import duckdb

from orderbridge.pipelines.warehouse.machine_errors import cause_of, machine_error
from orderbridge.pipelines.warehouse.sql import sql_text
from orderbridge.sources.errors import BridgeError
from orderbridge.sources.extract.result import ListResult
from orderbridge.sources.settings import import_dlt, load_dlt

if TYPE_CHECKING:
    from dlt.common.configuration.providers.provider import ConfigProvider

DATASET: Final = "loaded"
CATALOG: Final = "load"
LOADED: Final = f"{CATALOG}.{DATASET}"
"""Catalog and schema of the views on the loaded rows."""
_AS_STORED: Final = "hive_partitioning = false"
"""Folders named `key=value` in the path of the warehouse are not columns."""
_LAYOUT: Final = "{table_name}/{load_id}.{file_id}.{ext}"


def load(lists: Sequence[ListResult], folder: Path) -> None:
    """Loads the rows of walks into a folder that is created for them.

    Raises:
        UsageError: there is no space, memory or thread left, or the disk fails.
        BridgeError: dlt failed. Its own text is left out: it can hold values of rows.
    """
    load_dlt()
    import dlt
    from dlt.pipeline.exceptions import PipelineStepFailed

    from orderbridge.sources.resources import file_resources

    folder.mkdir(mode=0o700)

    @dlt.source(name="orderbridge", max_table_nesting=0)
    def resources() -> Iterator[object]:
        for walked in lists:
            yield from file_resources(walked)

    # Not by the name "filesystem": its settings are those of the user's own destination.
    files = dlt.destinations.filesystem(
        str(folder), layout=_LAYOUT, destination_name="orderbridge_load"
    )
    try:
        with without_settings():
            pipeline = dlt.pipeline(
                "orderbridge",
                pipelines_dir=str(folder / ".dlt"),
                destination=files,
                dataset_name=DATASET,
            )
            pipeline.config.restore_from_destination = False  # a new folder holds no state
            pipeline.run(resources(), loader_file_format="parquet")
    except PipelineStepFailed as error:
        if (found := machine_error(cause_of(error))) is not None:
            raise found from None
        raise BridgeError(
            f"dlt could not load the rows: step {error.step}, {type(error.exception).__name__}",
            "Nothing was published. Please report it, with the versions that `orderbridge --version` prints.",
        ) from None


@contextmanager
def without_settings(*kept: str) -> Iterator[None]:
    """Hides the user's settings from dlt: those of other pipelines (`NORMALIZE__…`, `DEV_MODE`) would change the rows.

    Args:
        kept: sections that stay, besides `runtime`, which turns telemetry off.
    """
    from dlt.common.configuration.container import Container
    from dlt.common.configuration.specs.pluggable_run_context import PluggableRunContext

    used = Container()[PluggableRunContext].providers
    providers = used.providers
    used.providers = [
        _limited_to(("runtime", *kept), provider) for provider in providers if not provider.is_empty
    ]
    try:
        yield
    finally:
        used.providers = providers


def _limited_to(sections: Sequence[str], provider: ConfigProvider) -> ConfigProvider:
    """A provider of dlt's that has the settings in these sections alone."""
    limited = copy(provider)

    def get_value(
        key: str, hint: type[Any], pipeline_name: str | None, *path: str
    ) -> tuple[Any | None, str]:
        if (*path, key)[0] in sections:  # some have a value without a section
            return provider.get_value(key, hint, pipeline_name, *path)
        return None, key

    limited.get_value = get_value  # type: ignore[method-assign]
    return limited


def import_loader() -> None:
    """Imports dlt and what a load needs of it, which takes 0.4 s, while the walks wait for responses."""
    import_dlt()
    import dlt.common.libs
    import dlt.destinations.impl.filesystem.filesystem
    import dlt.load
    import dlt.normalize
    import dlt.sources.helpers.requests  # dlt imports it during a load, as the others

    import orderbridge.sources.resources  # noqa: F401

    dlt.common.libs.get_pandas_module = _imported_pandas


def _imported_pandas() -> ModuleType | None:
    """pandas, once it is imported. dlt 1.31 fails where another thread is importing it, as a walk may."""
    module = sys.modules.get("pandas")
    return module if hasattr(module, "DataFrame") else None


@contextmanager
def attached(
    build: duckdb.DuckDBPyConnection, lists: Sequence[ListResult], folder: Path
) -> Iterator[None]:
    """The rows loaded into a folder as views in `LOADED`. Raises BridgeError where their totals do not balance."""
    build.execute(f"ATTACH ':memory:' AS {CATALOG}")
    build.execute(f"CREATE SCHEMA {LOADED}")
    try:
        for walked in lists:
            for table in walked.files:
                files = ", ".join(
                    map(sql_text, sorted((folder / DATASET / table).glob("*.parquet")))
                )
                build.execute(
                    f'CREATE VIEW {LOADED}."{table}" AS FROM read_parquet([{files}], {_AS_STORED})'
                )
            _check_totals(build, walked)
        yield
    finally:
        build.execute(f"DETACH {CATALOG}")


def _check_totals(build: duckdb.DuckDBPyConnection, walked: ListResult) -> None:
    def count(what: str, table: str) -> int:
        ((number,),) = build.execute(f'SELECT count({what}) FROM {LOADED}."{table}"').fetchall()
        return int(number)

    for table, files in walked.files.items():
        if (loaded := count("*", table)) != (expected := sum(rows for _, rows in files)):
            raise BridgeError(f"{table}: {expected} rows were walked, {loaded} were loaded")
    balance = walked.distinct + walked.duplicates + len(walked.quarantined)
    in_files = sum(rows for _, rows in walked.files[walked.resource])
    distinct = count("DISTINCT id", walked.resource)
    totals = (balance, in_files, distinct)
    if totals != (walked.total("rows"), walked.distinct, walked.distinct) or walked.duplicates < 0:
        raise BridgeError(
            f"{walked.resource}: the totals do not balance: {walked.total('rows')} rows read, "
            f"{walked.distinct} distinct, {walked.duplicates} duplicates, {len(walked.quarantined)} quarantined, "
            f"{in_files} written, {distinct} loaded with different ids"
        )
