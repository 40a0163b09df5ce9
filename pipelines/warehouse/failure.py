"""The note that a failed run leaves beside the warehouse, so that the morning after knows why it is yesterday's.

In: what a run raised. Out: `<warehouse>.failed.json`, for its owner alone; `status` shows it until a run succeeds.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sources.disk import write_private
from sources.errors import BridgeError

log = logging.getLogger("orderbridge.failure")
_STAYS: Final = {"pull": ("reconcile",), "reconcile": ("pull", "run")}
"""Whose failures a success of a command does not make good."""


def failure_file(path: Path) -> Path:
    """Where it lies."""
    return path.with_name(f"{path.name}.failed.json")


@contextmanager
def record_failure(
    path: Path, command: str, started_at: datetime, run_id: str = "", *, published: bool = False
) -> Iterator[None]:
    """Leaves the note where the block raises; before a run has begun only beside a warehouse that is there.

    Args:
        path: of the warehouse.
        command: `pull`, `run` or `reconcile`.
        started_at: of the run.
        run_id: empty where it has not begun.
        published: whether the block is about what comes after publishing.
    """
    try:
        yield
    except Exception as error:
        if run_id or path.exists():
            code, message, hint = _words(error)
            told = {
                "command": command,
                "run_id": run_id,
                "started_at": started_at.isoformat(),
                "failed_at": datetime.now(UTC).isoformat(),
                "exit_code": code,
                "message": message,
                "hint": hint,
                "published": published,
            }
            _write(failure_file(path), told)
        raise


def _words(error: Exception) -> tuple[int, str, str]:
    if isinstance(error, BridgeError):
        return error.exit_code, error.message, error.hint
    # its text may hold values of rows
    return 1, f"an error of orderbridge's own: {type(error).__name__}", "What the run wrote to stderr says where."


def _write(note: Path, told: dict[str, Any]) -> None:
    try:
        write_private(note, json.dumps(told, indent=1).encode())
    except OSError:
        log.debug("no note of the failure could be written")  # the disk is the failure; the exit code says it


def clear_failure(path: Path, command: str) -> None:
    """Removes the note after a success that makes it good."""
    if (read(path) or {}).get("command") not in _STAYS.get(command, ()):
        failure_file(path).unlink(missing_ok=True)


def read(path: Path) -> dict[str, Any] | None:
    """What the note says; None where there is none."""
    try:
        told = json.loads(failure_file(path).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        told = None
    return told if isinstance(told, dict) else {"message": "a run failed, and its note was cut off"}
