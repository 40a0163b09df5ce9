"""Where a person goes next, or what is typed: the same on each page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """Where to go, or what to type. `href` is below the path of all pages; empty for a command, or for words alone."""

    text: str
    href: str = ""
    command: str = ""
