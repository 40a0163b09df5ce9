"""The plans that were pushed, as their folders have them: what the next plan of such a file goes on with.

In: the ledger, and the plan folders that it names. Out: what is needed of each `plan.json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import MANIFEST_FILE
from orderbridge.sources.errors import UsageError
from orderbridge.sources.kinds import KindName
from orderbridge.sources.settings import own_path


class _Input(msgspec.Struct):
    """The input file of a plan."""

    path: str


class _Mapping(msgspec.Struct):
    """The mapping file of a plan."""

    path: str
    sha256: str


class _Format(msgspec.Struct, frozen=True):
    """How the input of a plan was read."""

    columns: tuple[str, ...] = ()


class Planned(msgspec.Struct):
    """What is needed of `plan.json`; plans of earlier versions have it too."""

    plan_id: str
    kind: str
    input: _Input
    format: _Format = _Format()
    mapping: _Mapping | None = None
    checks_rows: bool = False


_PLANNED: Final = msgspec.json.Decoder(Planned)


def pushed_plans(ledger: Ledger, host: str, kind: KindName) -> Iterator[tuple[Path, Planned]]:
    """The plans of a host and kind with confirmed operations whose folder is there, the newest first."""
    for plan_id, folder in ledger.pushed_plans(host, kind):
        planned = read_planned(Path(folder))
        if planned is not None and planned.plan_id == plan_id:
            yield Path(folder), planned


def read_planned(folder: Path) -> Planned | None:
    """The plan in a folder; None if there is none that can be read."""
    with suppress(UsageError, OSError, msgspec.DecodeError):
        return _PLANNED.decode(own_path(folder / MANIFEST_FILE).read_bytes())
    return None
