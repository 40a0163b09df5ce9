"""What is wrong with the machine rather than with the program: disk, memory, damaged databases.

In: any exception. Out: an error that a person can act on, or None: then it is a bug. This is the only place that tells
the two apart. Nothing is imported for it: errors of DuckDB are known by their names. Their own texts are left out,
because they can hold values of rows.
"""

from __future__ import annotations

import errno
import re
from typing import Final

from orderbridge.sources.command_line import run_again
from orderbridge.sources.disk import is_disk_full
from orderbridge.sources.errors import (
    UsageError,
    causes,
    is_limit_reached,
    is_out_of_memory,
    memory_limit,
)

DAMAGED_HINT: Final = (
    "Restore its last good copy. Without one, move it away and run `orderbridge run`: it reads every list again, and "
    "histories begin anew."
)
_FULL: Final = (
    "no space left: the disk is full, or a quota or a limit on the size of files is reached"
)
_MEMORY_HINT: Final = (
    "Free some, or run where this user may use more of it, and start more threads."
)
_NAME_HINT: Final = "Check its name, and whether this user may use it and the folders above."
_VIEW_HINT: Final = (
    "Drop that view. If the file is not your own, set WAREHOUSE__PATH to another one."
)
_OF_DAMAGE: Final = ("SerializationException", "InternalException", "FatalException")
"""What DuckDB raises where a file has not what it should have."""
_DAMAGE_TEXTS: Final = ("checksum", "corrupt", "read enough bytes", "out of range")
"""The same, in the texts of its errors of input and output."""
_MISSING: Final = (errno.ENOENT, errno.ENOTDIR, errno.EEXIST)
"""Errors that dlt meets where it only looks whether something is there."""
_NOT_PERMITTED: Final = "permission denied"
"""The words of the system in an error of DuckDB."""
_DISK_FAILED: Final = re.compile(
    "fsync failed"
    '|(cannot open|could not (fsync|read from|write|write to|truncate|rename|remove)) file "'
    '|failed to (create directory|get file size for file|get stats for file) "'
)
"""The same where the system refused a read or write. A commit that meets that ends as another kind of error."""


def machine_error(error: BaseException, warehouse: str = "the warehouse") -> UsageError | None:
    """The error for a person where the machine is the cause; None for a bug.

    Args:
        error: any exception.
        warehouse: the file that DuckDB had open, for people.
    """
    if is_disk_full(error):
        return UsageError(_FULL, f"Free space, or raise the limit, then {run_again()}")
    if is_out_of_memory(error):
        return _out_of_memory()
    for refused in _system_errors(error):
        if (found := _error_of_the_system(refused)) is not None:
            return found
    if is_limit_reached():
        return _out_of_memory()
    if _library(error) == "duckdb":
        return _error_of_duckdb(error, warehouse)
    return None


def _library(error: BaseException) -> str:
    return type(error).__module__.lstrip("_").partition(".")[0]


def _system_errors(error: BaseException) -> list[OSError]:
    """The error itself where it is one of the system; those that dlt met where it raised one of its own instead."""
    if isinstance(error, OSError):
        return [error]
    if _library(error) != "dlt":
        return []
    met = [one for one in causes(error) if isinstance(one, OSError)]
    return [one for one in met if one.errno not in _MISSING]


def cause_of(error: BaseException) -> BaseException:
    """The error of the database's driver, or of the system, that dlt wrapped."""
    while True:
        inner = (
            getattr(error, "dbapi_exception", None)
            or getattr(error, "exception", None)
            or error.__cause__
        )
        if not isinstance(inner, BaseException) or inner is error:
            return error
        error = inner


def _out_of_memory() -> UsageError:
    limit = memory_limit()
    allowed = f": this process may use {limit >> 20:,} MB (ulimit -v)" if limit else ""
    return UsageError(f"not enough memory{allowed}", _MEMORY_HINT)


def _error_of_the_system(error: OSError) -> UsageError | None:
    if error.filename:
        return UsageError(f"{error.filename} cannot be used: {error.strerror}", _NAME_HINT)
    if error.errno is None or isinstance(error, ConnectionError | TimeoutError):
        return None
    return UsageError(f"the disk cannot be used: {error.strerror}", _disk_hint())


def _error_of_duckdb(error: BaseException, warehouse: str) -> UsageError | None:
    name = type(error).__name__
    text = str(error).lower()
    if name == "PermissionException":
        words = "a view in the warehouse reads other files or the network, which is not allowed"
        return UsageError(words, _VIEW_HINT)
    if _NOT_PERMITTED in text:
        return UsageError(f"{warehouse}: permission denied", _permission_hint())
    refused = UsageError(f"{warehouse}: DuckDB could not read or write a file", _disk_hint())
    if _DISK_FAILED.search(text):
        return refused
    if name in _OF_DAMAGE or any(part in text for part in _DAMAGE_TEXTS):
        return UsageError(f"{warehouse} is damaged", DAMAGED_HINT)
    if name == "IOException":
        return refused
    return None


def _permission_hint() -> str:
    return f"Let this user read and write it, and what is beside it, then {run_again()}"


def _disk_hint() -> str:
    return f"Check the disk and how it is mounted, then {run_again()}"
