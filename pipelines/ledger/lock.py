"""The lock that keeps two commands from changing a ledger at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orderbridge.pipelines.warehouse.lock import run_lock
from orderbridge.sources.command_line import run_again
from orderbridge.sources.disk import disk_errors


def ledger_lock_file(ledger: Path) -> Path:
    """The file that is locked while a ledger is changed."""
    return ledger.with_name(f".{ledger.name}.lock")


def writable_hint() -> str:
    """What to do about a ledger that cannot be read or written. Another file would not know what was sent."""
    return (
        "Free space, raise the limit, or make the file and its folder writable (LEDGER__PATH names it), then "
        f"{run_again()}"
    )


@contextmanager
def ledger_lock(ledger: Path) -> Iterator[None]:
    """Keeps other pushes away from a ledger. Raises LockedError, UsageError."""
    hint = writable_hint()
    with disk_errors(ledger.parent, hint):
        ledger.parent.mkdir(parents=True, exist_ok=True)
    with run_lock(ledger_lock_file(ledger), "push", hint):
        yield
