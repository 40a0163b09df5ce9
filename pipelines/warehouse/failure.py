"""Notes of failures next to the warehouse: why it is still yesterday's, or why the destination's copy is.

In: what a run raised. Out: `<warehouse>.failed.json` and `<warehouse>.destination.failed.json`, mode 0600. `status`
shows them until a run, or a copy, succeeds. `<warehouse>.earlier.failed.json` keeps the last ones, of runs and copies,
also after a success.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from orderbridge.pipelines.warehouse.machine_errors import machine_error
from orderbridge.sources.disk import write_private
from orderbridge.sources.errors import BridgeError, ExitCode

_STAYS: Final = {"pull": ("reconcile",), "reconcile": ("pull", "run")}
"""Commands whose failure stays after a success of this one."""
_NOTE: Final = ".failed.json"
_DESTINATION: Final = ".destination.failed.json"
_PAST: Final = ".earlier.failed.json"
_PAST_KEPT: Final = 20
_PAST_FIELDS: Final = ("command", "failed_at", "exit_code", "message")
_MARK: Final = "orderbridge_published"
"""The attribute of an exception that ended a run after its warehouse was published."""
Result = TypeVar("Result")


def failure_file(path: Path, *, is_destination: bool = False) -> Path:
    """The note of a failed run, or that of a failed copy to the destination."""
    return path.with_name(f"{path.name}{_DESTINATION if is_destination else _NOTE}")


@contextmanager
def record_failure(
    path: Path,
    command: str,
    started_at: datetime,
    run_id: str = "",
    *,
    is_destination: bool = False,
) -> Iterator[None]:
    """Writes the note of a warehouse where the block raises; before a run has an id only where the file exists.

    A copy that a signal stops keeps the note that it began, and what was published gets none.

    Raises:
        KeyboardInterrupt: also where a signal arrived while DuckDB ran a query of this thread.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        is_stop = isinstance(error, KeyboardInterrupt) or is_interrupted(error)
        if (run_id or path.exists()) and not (is_stop and (is_destination or was_published(error))):
            file = failure_file(path, is_destination=is_destination)
            described = (
                describe_error(error)
                if isinstance(error, Exception) and not is_stop
                else _stopped(error)
            )
            facts = error.facts if isinstance(error, BridgeError) else {}
            _write(file, command, started_at, run_id, described, facts)
        if is_interrupted(error):
            raise KeyboardInterrupt from None
        raise


def record_unfinished_copy(path: Path, command: str, started_at: datetime, run_id: str) -> None:
    """Writes the note of a copy to the destination that begins: it stays where a signal or a kill ends the copy."""
    words = "the copy to the destination did not end: the run was interrupted, or is still copying"
    hint = "Until a run has copied, the destination has the version before."
    _write(
        failure_file(path, is_destination=True),
        command,
        started_at,
        run_id,
        (ExitCode.STOPPED, words, hint),
    )


def _write(
    file: Path,
    command: str,
    started_at: datetime,
    run_id: str,
    described: tuple[int, str, str],
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    note = {
        **facts,
        "command": command,
        "run_id": run_id,
        "started_at": started_at.isoformat(),
        "failed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **dict(zip(("exit_code", "message", "hint"), described, strict=True)),
        "published": file.name.endswith(_DESTINATION),
    }
    with suppress(OSError):  # the disk is the failure; the exit code reports it
        write_private(file, json.dumps(note, indent=1).encode(), is_only_writer=True)
        if not note["published"]:
            _remember(file.with_name(file.name.removesuffix(_NOTE)), note)
        elif note["exit_code"] != ExitCode.STOPPED:  # the copy is still going on, or was stopped
            path = file.with_name(file.name.removesuffix(_DESTINATION))
            _remember(path, note, published_run=run_id)


def _remember(path: Path, note: Mapping[str, Any], **published: str) -> None:
    """Adds a failed run to those of the last nights, of which so many are kept.

    Of one that published, it is the copy that failed: `published_run` is its id.
    """
    earlier = _past(path)[: _PAST_KEPT - 1]
    failed = {name: note[name] for name in _PAST_FIELDS} | published
    text = json.dumps([failed, *earlier], indent=1)
    write_private(path.with_name(f"{path.name}{_PAST}"), text.encode(), is_only_writer=True)


def past_failures(path: Path) -> list[dict[str, Any]]:
    """The last failed runs of a warehouse, the newest first: `command`, `failed_at`, `exit_code`, `message`."""
    return [one for one in _past(path) if "published_run" not in one]


def failed_copies(path: Path) -> dict[str, int]:
    """The exit codes of the last runs that published, and whose copy to the destination failed, by run."""
    return {one["published_run"]: one["exit_code"] for one in _past(path) if "published_run" in one}


def _past(path: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.with_name(f"{path.name}{_PAST}").read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    return [one for one in found if _is_failure(one)] if isinstance(found, list) else []


def _is_failure(one: object) -> bool:
    """Whether a part of the file is as it was written: the file may have been damaged."""
    if not isinstance(one, dict) or not all(name in one for name in _PAST_FIELDS):
        return False
    try:
        return datetime.fromisoformat(one["failed_at"]).tzinfo is not None
    except (TypeError, ValueError):
        return False


def _stopped(error: BaseException) -> tuple[int, str, str]:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else int(ExitCode.STOPPED)
    return code, f"stopped by a signal ({code})", "The next run goes on where it was stopped."


def is_interrupted(error: BaseException) -> bool:
    """Whether a signal arrived while DuckDB ran a query: it raises this instead of the exception of the signal."""
    return isinstance(error, RuntimeError) and str(error) == "Query interrupted"


def describe_error(error: Exception) -> tuple[int, str, str]:
    """Exit code, message and hint of an error, without values of rows."""
    if isinstance(error, BridgeError):
        return error.exit_code, error.message, error.hint
    if (found := machine_error(error)) is not None:
        return found.exit_code, found.message, found.hint
    # its text may hold values of rows
    return (
        ExitCode.BUG,
        f"internal error in orderbridge: {type(error).__name__}",
        "The run wrote where to stderr.",
    )


@contextmanager
def marked_published(is_published: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Marks what ends the block once a run has published its warehouse, such as an error of its copy."""
    try:
        yield
    except BaseException as error:
        if is_published():
            error.__dict__[_MARK] = True
        raise


def was_published(error: BaseException) -> bool:
    """Whether the run had published its warehouse."""
    return _MARK in error.__dict__


def publish_and_write(publish: Callable[[], Result], write: Callable[[], None]) -> Result:
    """Publishes, then writes what rests on that, such as a report: also where the copy to the destination failed.

    Args:
        publish: the run. Its errors go on.
        write: writes the files of the command.
    """
    try:
        result = publish()
    except BridgeError as error:
        if was_published(error):
            write()
        raise
    with marked_published():
        write()
    return result


def clear_failure(path: Path, command: str) -> None:
    """Removes the note of a failed run after a success that replaces it."""
    if (read(path) or {}).get("command") not in _STAYS.get(command, ()):
        failure_file(path).unlink(missing_ok=True)


def read(path: Path, *, is_destination: bool = False) -> dict[str, Any] | None:
    """The note's content; None where there is none."""
    try:
        note = json.loads(failure_file(path, is_destination=is_destination).read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        note = None
    is_whole = isinstance(note, dict) and all(
        isinstance(note.get(name), str | None) for name in ("message", "hint", "failed_at")
    )
    return note if is_whole else {"message": "a run failed, and its note was cut off"}
