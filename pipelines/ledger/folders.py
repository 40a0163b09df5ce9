"""Where the folder of a plan is now: a project may have been moved, or restored into another folder, since its push.

In: the project, and what the ledger has of a plan: its id, and the absolute path of its folder. Out: that path, or the
one in the project at which the plan is.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec


class _Manifest(msgspec.Struct):
    plan_id: str


_MANIFEST: Final = msgspec.json.Decoder(_Manifest)


def locate(root: Path, plan_id: str, folder: str) -> str:
    """The folder of a plan.

    A path outside of the project is that of its former place, or of the project that it was copied from, if the project
    has the plan at the end of that path.
    """
    path = Path(folder)
    if path.is_relative_to(root) and _plan_in(path) == plan_id:
        return folder
    for first in range(1, len(path.parts)):
        place = root.joinpath(*path.parts[first:])
        if _plan_in(place) == plan_id:
            return str(place)
    return folder


def _plan_in(folder: Path) -> str | None:
    """The id of the plan in a folder; None if there is none."""
    with suppress(OSError, ValueError):  # msgspec's errors are ValueErrors
        return _MANIFEST.decode((folder / "plan.json").read_bytes()).plan_id
    return None
