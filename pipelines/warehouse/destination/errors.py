"""What is wrong with a destination, without secrets or values of rows.

In: what dlt or the driver of a database raised. Out: PlatformError with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from orderbridge.pipelines.warehouse.extras import install_command
from orderbridge.pipelines.warehouse.failure import is_interrupted
from orderbridge.pipelines.warehouse.machine_errors import cause_of
from orderbridge.pipelines.warehouse.raw.load import without_settings
from orderbridge.sources.errors import BridgeError, PlatformError
from orderbridge.sources.settings import WarehouseSettings

PUBLISHED: Final = "The DuckDB file is published. To copy it again: orderbridge reconcile"
_HINT: Final = "Check its address and credentials in .dlt/secrets.toml, and its permissions."
_REFUSED_HINT: Final = "The database refused a statement: look at what the message names."
_CREDENTIALS: Final = re.compile(r"(://)\S*@|(password\s*=\s*)\S+", re.IGNORECASE)
destination_settings: Final = partial(without_settings, "destination", "credentials", "bucket_url")
"""Only the settings of destinations are left to dlt: those of other pipelines would change names, types and columns."""
_VALUE_ERRORS: Final = ("DataError", "IntegrityError")
"""Errors of databases whose texts hold values of rows."""
_FILE_ERRORS: Final = {
    "Could not set lock": "Close the program that has it open.",
    "Cannot open file": "Make the folder, for this user to write.",
    "created with a newer version of DuckDB": "Move the file away, and the next run writes a new one; or use DuckDB 2: "
    + install_command("duckdb2", "duckdb>=2.0.1,<2.1"),
}
"""Errors of a DuckDB file, with what to do."""
_DEPENDENTS: Final = {
    "DependentObjectsStillExist": "message_detail",
    "ForeignKeyViolation": "message_primary",
}
"""Errors about what others built on a table, and the part of each that names it. Neither part holds values of rows."""


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
        cause = cause_of(error)
        if is_interrupted(cause):
            raise KeyboardInterrupt from None
        words = f"could not be used: {reason(cause)}"
        hint = _REFUSED_HINT if _is_refused_statement(cause) else _HINT
        if part := _DEPENDENTS.get(type(cause).__name__):
            dependent = getattr(getattr(cause, "diag", None), part, None) or type(cause).__name__
            words = f"was not updated: other objects need its tables: {dependent}"
            hint = "Drop the object, run again, then create it anew."
        elif type(cause).__name__ == "InsufficientPrivilege":
            hint = "Grant it to the role of the credentials (docs/copy.md has the statements)."
        elif type(cause).__name__ == "LockNotAvailable":
            hint = "End the transaction that uses its tables (the view pg_stat_activity lists it)."
        elif found := [fix for part, fix in _FILE_ERRORS.items() if part in words]:
            (hint,) = found
        raise PlatformError(
            f"the destination {settings.destination} {words}", f"{hint} {state}".strip()
        ) from None


def _is_refused_statement(error: BaseException) -> bool:
    """Whether a Postgres reports a statement that it cannot run, for another reason than permissions (42501)."""
    code = str(getattr(error, "pgcode", None) or "")
    return code.startswith("42") and code != "42501"


def reason(error: BaseException) -> str:
    """An error in words, without secrets or values of rows."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds.intersection(_VALUE_ERRORS) or "JobFailed" in type(error).__name__:
        return type(error).__name__
    if "ConfigFieldMissingException" in kinds:  # it lists every place where dlt searched for each
        lacking = [line for line in str(error).split("\n")[:2] if "issing" in line]
        return f"its settings lack {lacking[-1].rpartition(': ')[2]}"
    text = " ".join(str(error).split("DETAIL:")[0].split())
    shown = _CREDENTIALS.sub(
        lambda match: f"{match[1]}***@" if match[1] else f"{match[2]}***", text
    )
    _, cut, given = shown.partition("The actual reason given is: ")
    return given if cut else f"{type(error).__name__}: {shown}"
