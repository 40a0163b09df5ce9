"""What is wrong with a destination: found before the first request of a run, or raised by a copy.

In: the name of a dlt destination, and what dlt or the driver of a database raised. Out: UsageError with what to
install, and PlatformError with the reason, without secrets or values of rows.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from typing import Final

import duckdb

from pipelines.warehouse.failure import is_interrupted
from pipelines.warehouse.load import without_settings
from sources.errors import BridgeError, PlatformError, UsageError
from sources.settings import WarehouseSettings, load_dlt

PUBLISHED: Final = "The DuckDB file is published."
_HINT: Final = "Check its address and credentials in .dlt/secrets.toml, and its permissions."
_CREDENTIALS: Final = re.compile(r"(://)\S*@|(password\s*=\s*)\S+", re.IGNORECASE)
destination_settings: Final = partial(without_settings, "destination", "credentials", "bucket_url")
"""Of dlt's settings those of destinations: others, of other pipelines, would change names, types and columns."""
_VALUE_ERRORS: Final = ("DataError", "IntegrityError")
"""Errors of databases whose texts hold values of rows."""
_DEPENDENTS: Final = {"DependentObjectsStillExist": "message_detail", "ForeignKeyViolation": "message_primary"}
"""Errors about what others built on a table, and the part of each that names it. Neither part holds values of rows."""


def check_destination(settings: WarehouseSettings) -> None:
    """Checks that dlt knows the destination, if there is one, and has its driver and its credentials.

    Raises:
        UsageError: with dlt's reason.
    """
    if not settings.destination:
        return
    load_dlt()
    import dlt

    try:
        with tempfile.TemporaryDirectory(prefix="orderbridge-") as folder, destination_settings():
            pipeline = dlt.pipeline("orderbridge", pipelines_dir=folder, destination=settings.destination)
            pipeline.destination_client()
    except Exception as error:  # of many kinds, dlt's and the import system's
        raise UsageError(
            f"WAREHOUSE__DESTINATION: dlt cannot use {settings.destination!r}: {_reason(error)}",
            "Name one of dlt's destinations, set its address and credentials in .dlt/secrets.toml, and install what it "
            f"needs: {sys.executable} -m pip install 'dlt[postgres]', for example.",
        ) from None
    # dlt 1.31 calls what DuckDB 2 has no more
    is_ducklake = str(pipeline.destination.destination_type).endswith(".ducklake")
    if is_ducklake and not hasattr(duckdb.DuckDBPyRelation, "fetchone"):
        raise UsageError(
            f"WAREHOUSE__DESTINATION: dlt {version('dlt')} cannot write to a DuckLake with duckdb {duckdb.__version__}",
            f"Install duckdb 1.5: {sys.executable} -m pip install 'duckdb>=1.5,<2'.",
        )


@contextmanager
def destination_errors(settings: WarehouseSettings, state: str = PUBLISHED) -> Iterator[None]:
    """Turns errors of dlt and of the database into PlatformError, with their reason and without secrets or values.

    Args:
        settings: name the destination.
        state: of the warehouse, for people.

    Raises:
        KeyboardInterrupt: a signal arrived while DuckDB ran a query.
    """
    try:
        yield
    except BridgeError:
        raise
    except Exception as error:  # dlt wraps whatever a database's driver raises
        cause = _cause(error)
        if is_interrupted(cause):
            raise KeyboardInterrupt from None
        words, hint = f"could not be used: {_reason(cause)}", _HINT
        if part := _DEPENDENTS.get(type(cause).__name__):
            dependent = getattr(getattr(cause, "diag", None), part, None) or type(cause).__name__
            words = f"was not updated: other objects need its tables: {dependent}"
            hint = "Drop the object, run again, then create it anew."
        raise PlatformError(f"the destination {settings.destination} {words}", f"{hint} {state}".strip()) from None


def _cause(error: BaseException) -> BaseException:
    """The error of the database's driver that dlt wrapped."""
    while True:
        inner = getattr(error, "dbapi_exception", None) or getattr(error, "exception", None) or error.__cause__
        if not isinstance(inner, BaseException) or inner is error:
            return error
        error = inner


def _reason(error: BaseException) -> str:
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds.intersection(_VALUE_ERRORS) or "JobFailed" in type(error).__name__:
        return type(error).__name__
    text = " ".join(str(error).split("DETAIL:")[0].split())
    shown = _CREDENTIALS.sub(lambda match: f"{match[1]}***@" if match[1] else f"{match[2]}***", text)
    return f"{type(error).__name__}: {shown}"
