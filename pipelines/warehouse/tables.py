"""Writes frames as tables of a build.

In: a frame. Out: a table of `reconciled` with its columns; an existing one is replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    import pandas as pd


def replace(build: duckdb.DuckDBPyConnection, table: str, frame: pd.DataFrame) -> None:
    """Creates or replaces a table of `reconciled`."""
    import pyarrow as pa

    build.register("reconciled_frame", pa.Table.from_pandas(frame, preserve_index=False))
    build.execute(f'CREATE OR REPLACE TABLE reconciled."{table}" AS FROM reconciled_frame')
    build.unregister("reconciled_frame")
