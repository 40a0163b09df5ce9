"""The files that a command writes where a person names them: a typo must not cost a warehouse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from orderbridge.sources.disk import disk_errors
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import own_path


def output_target(out: Path, what: str, hint: str, is_ours: Callable[[Path], bool]) -> Path:
    """The file to write, or what a link there points to.

    Raises:
        UsageError: it exists and is not `what`; its folder does not exist, or others can write to it.
    """
    target = own_path(out.absolute())
    if not target.parent.is_dir():
        raise UsageError(f"there is no folder {target.parent}", hint)
    with disk_errors(f"{target} cannot be read", hint):
        if target.exists() and not (target.is_file() and is_ours(target)):
            raise UsageError(f"{target} exists and is not {what}", hint)
    return target
