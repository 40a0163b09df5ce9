"""Errors of a copy to the destination, with their reason and without secrets or values of rows.

In: what dlt, or the driver of a database, raised. Out: PlatformError with what to do about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pipelines.warehouse.destination_postgres import dependent_object
from sources.errors import BridgeError, PlatformError
from sources.settings import WarehouseSettings

PUBLISHED: Final = "The DuckDB file is published."
_CREDENTIALS: Final = re.compile(r"(://)[^@\s/]*@|(password\s*=\s*)\S+", re.IGNORECASE)
_VALUE_ERRORS: Final = ("DataError", "IntegrityError")
"""Errors of databases whose texts hold values of rows."""


@contextmanager
def destination_errors(settings: WarehouseSettings) -> Iterator[None]:
    """Turns errors of dlt and of the database into PlatformError, with their reason and without secrets or values."""
    try:
        yield
    except BridgeError:
        raise
    except Exception as error:  # dlt wraps whatever a database's driver raises
        cause = _cause(error)
        if dependent := dependent_object(cause):
            raise PlatformError(
                f"the destination {settings.destination} was not updated: other objects need its tables: {dependent}",
                f"Drop the object, run again, then create it anew. {PUBLISHED}",
            ) from None
        raise PlatformError(
            f"the destination {settings.destination} could not be loaded: {_reason(cause)}",
            f"Check its credentials in .dlt/secrets.toml and its permissions. {PUBLISHED}",
        ) from None


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
    return f"{type(error).__name__}: {shown[:300]}"
