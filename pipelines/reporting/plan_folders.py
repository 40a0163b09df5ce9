"""Plan folders that nobody needs any more, by what the project has on disk.

In: the folders `plan-*` of the project, and the plans that are needed. Out: those that can go, since they are not
needed, were not changed for a month and have no passwords. What was sent stays in the ledger.
"""

from __future__ import annotations

import os
from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from orderbridge.pipelines.plan.model import Plan
from orderbridge.pipelines.push.passwords import PASSWORDS_FILE
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import project_file

KEPT: Final = timedelta(days=30)
"""How long the results of a plan, and a workbook to correct, are kept after they were last changed."""


@dataclass(frozen=True, slots=True)
class PlanFolder:
    """A plan folder, the bytes of its files, and when one of them was last changed."""

    folder: str
    bytes: int
    changed_at: datetime


def removable_plans(needed: Set[str], at: datetime) -> list[PlanFolder]:
    """The plan folders of the project that can go, the oldest first; those with an id of `needed` cannot."""
    found = []
    for path in project_file("").glob("plan-*"):
        if path.is_symlink() or not path.is_dir() or (path / PASSWORDS_FILE).exists():
            continue
        with suppress(UsageError, OSError):  # it is no plan, or is just being removed
            folder = _measured(path)
            is_old = folder.changed_at <= at - KEPT
            if is_old and Plan(path).manifest.plan_id not in needed:
                found.append(folder)
    return sorted(found, key=lambda folder: folder.changed_at)


def _measured(path: Path) -> PlanFolder:
    """The size and age of a folder. Raises OSError."""
    size = 0
    changed = path.lstat().st_mtime
    for folder, _, files in os.walk(path):
        for name in files:
            facts = (Path(folder) / name).lstat()
            size += facts.st_size
            changed = max(changed, facts.st_mtime)
    return PlanFolder(str(path.absolute()), size, datetime.fromtimestamp(changed, UTC))
