"""Time zones to choose from: that of this machine, and those of a country.

In: a country code, the zone files of this machine. Out: IANA names; none where this machine has no list of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from zoneinfo import TZPATH, available_timezones

_LOCAL: Final = Path("/etc/localtime")
_LIST: Final = "zone.tab"
_FOLDER: Final = "/zoneinfo/"
"""What the path of a zone's file has before the name of the zone."""


def offered_zones(country: str | None) -> list[str]:
    """The zone of this machine, then those of the country, the first of its list first."""
    found = [_local_zone()]
    if country:
        found += _zones_of(country)
    known = available_timezones()
    return [zone for zone in dict.fromkeys(found) if zone in known]


def _local_zone() -> str:
    """The zone of this machine; empty where its clock does not name one."""
    named = os.environ.get("TZ", "").removeprefix(":")
    return named or str(_LOCAL.resolve()).rpartition(_FOLDER)[2]


def _zones_of(country: str) -> Iterator[str]:
    """The zones of a country in the list of the zone database: code, coordinates, zone, comment."""
    for folder in TZPATH:
        with suppress(FileNotFoundError):
            for line in (Path(folder) / _LIST).read_text("utf-8").splitlines():
                if line.startswith(f"{country}\t"):
                    yield line.split("\t")[2]
            return
