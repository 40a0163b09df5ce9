"""The lock that keeps two commands from changing a ledger at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orderbridge.pipelines.warehouse.lock import run_lock
from orderbridge.sources.disk import disk_errors


def ledger_lock_file(ledger: Path) -> Path:
    """The file that is locked while a ledger is changed."""
    return ledger.with_name(f".{ledger.name}.lock")


@contextmanager
def ledger_lock(ledger: Path) -> Iterator[None]:
    """Keeps other pushes away from a ledger. Raises LockedError, UsageError."""
    hint = "Set LEDGER__PATH to a file that can be written."
    with disk_errors(ledger.parent, hint):
        ledger.parent.mkdir(parents=True, exist_ok=True)
    with run_lock(ledger_lock_file(ledger), "push", hint):
        yield
