"""The lock that keeps two commands from changing what people answered at once.

Each command reads a file of `.dlt` (answers, acceptances, pairs, declared fields) and writes the whole of it anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from orderbridge.pipelines.warehouse.lock import run_lock
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings.answers import answers_path
from orderbridge.sources.settings.root import UNWRITABLE_HINT

_FILE: Final = ".answers.lock"
_WAIT_S: Final = 30.0
"""How long a command waits for others, which take less than a second each."""


@contextmanager
def answers_lock(command: str) -> Iterator[None]:
    """Holds the lock while the block reads and writes these files; `command` is named to others.

    Raises:
        LockedError: another command still holds it after half a minute.
    """
    path = answers_path().with_name(_FILE)
    with ExitStack() as held:
        # In a folder that cannot be written nothing can be lost. Some answers are kept in the ledger.
        with suppress(UsageError):
            held.enter_context(run_lock(path, command, UNWRITABLE_HINT, wait_s=_WAIT_S))
        yield
