"""What each destination needs of the installed libraries, found out before the first request of a run.

In: the name of a dlt destination. Out: nothing, or a UsageError that says what to install.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import duckdb

from sources.errors import UsageError
from sources.settings import load_dlt


def check_destination(destination: str | None) -> None:
    """Checks that dlt knows the destination and has what it needs. Raises UsageError; None means no destination."""
    if not destination:
        return
    load_dlt()
    from dlt.common.destination.reference import Destination

    try:
        known: Any = Destination.from_reference(destination)
        known.client_class  # noqa: B018 # imports what it needs
    except Exception as error:  # of many kinds, dlt's and the import system's; without their texts
        raise UsageError(
            f"WAREHOUSE__DESTINATION: dlt cannot use {destination!r} ({type(error).__name__})",
            "Name one of dlt's destinations, and install what it needs, e.g. pip install 'dlt[postgres]'.",
        ) from None
    if known.destination_type.endswith(".ducklake"):
        _check_ducklake()


def _check_ducklake() -> None:
    """DuckLake needs a DuckDB that dlt can drive, and DuckDB's extension of that name.

    Raises:
        UsageError: it lacks either.
    """
    if not hasattr(duckdb.DuckDBPyRelation, "fetchone"):  # dlt 1.31 calls it; DuckDB 2 has it no more
        raise UsageError(
            f"WAREHOUSE__DESTINATION: dlt {version('dlt')} cannot write to a DuckLake with duckdb {duckdb.__version__}",
            "Install duckdb 1.5: pip install 'duckdb>=1.5,<2'.",
        )
    with duckdb.connect() as connection:
        try:
            connection.execute("LOAD ducklake")
        except duckdb.Error:
            try:
                connection.execute("INSTALL ducklake")
            except duckdb.Error as error:
                raise UsageError(
                    f"WAREHOUSE__DESTINATION: DuckDB's extension ducklake is not installed, and its download failed: "
                    f"{str(error).splitlines()[0]}",
                    "Without access to extensions.duckdb.org, install it from a file: docs/warehouse.md, DuckLake.",
                ) from None
