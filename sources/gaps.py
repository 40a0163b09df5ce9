"""What the interface does not show: its possible readings, and the policy chosen for each.

In: `gaps.toml`. Out: `GAPS`, from which the sandbox plays every reading, and pull and push name the one they see.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Final


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that the interface does not show: its readings, the sandbox's default first, and the policy."""

    name: str
    what: str
    readings: tuple[str, ...]
    policy: str


def _gaps() -> tuple[Gap, ...]:
    tables = tomllib.loads(files(__package__).joinpath("gaps.toml").read_text("utf-8"))
    return tuple(
        Gap(name, table["what"], tuple(table["readings"]), table["policy"])
        for name, table in tables.items()
    )


GAPS: Final = _gaps()
