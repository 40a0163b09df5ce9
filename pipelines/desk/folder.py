"""The desk's folder in the project: files that were dropped on a page, a folder each, and the output of its commands.

In: names. Out: paths below `desk/`, which nobody else can read and git ignores.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, get_args

from orderbridge.pipelines.desk.jobs import Job
from orderbridge.sources.contract import Family
from orderbridge.sources.disk import disk_errors, exclude_from_git, private_folder
from orderbridge.sources.settings import find_root, is_set, own_path

NAME: Final = "desk"
_HINT: Final = "Free space or make the folder writable, then try again."


def desk_folder(*, makes_it: bool = False) -> Path:
    """The folder. Raises UsageError: others can write to the project, or the folder cannot be made."""
    folder = own_path(find_root() / NAME)
    if makes_it:
        with disk_errors(folder, _HINT):
            private_folder(folder)
            exclude_from_git(folder)
    return folder


def run_job() -> Job:
    """The command that `Run now` starts."""
    return Job.of(desk_folder(), "run")


def is_busy() -> bool:
    """Whether a command that a desk of this project has started is running."""
    folder = desk_folder()
    logs = [*folder.glob("*.events"), *folder.glob("*/*.events")]
    return any(Job(log, log).is_running for log in logs)


def has_settings() -> bool:
    """Whether the project knows a platform."""
    return any(is_set(f"sources.{family}") for family in get_args(Family))
