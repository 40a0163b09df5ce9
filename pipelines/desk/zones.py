"""Time zones to choose from: that of this machine, and those of a country.

In: a country, the zone files of this machine. Out: IANA names; none where this machine has no list of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from zoneinfo import TZPATH, available_timezones

from orderbridge.pipelines.desk.texts import catalogue
from orderbridge.pipelines.mapping import normalize

_LOCAL: Final = Path("/etc/localtime")
_UTC: Final = "UTC"
_SAME_AS_UTC: Final = ("UTC", "UCT", "Universal", "Zulu")
_LIST: Final = "zone.tab"
_FOLDER: Final = "/zoneinfo/"
"""What the path of a zone's file has before the name of the zone."""


def offered_zones(country: str | None) -> list[str]:
    """The zone of this machine, then those of the country, the first of its list first."""
    found = [_local_zone()]
    if country:
        found += [zone for code, zone in _listed() if code == country]
    return _known(found)


def zones_of_named(country: str) -> list[str]:
    """The zones of a country that a person has typed, in one of the languages of the pages; none of other texts."""
    typed = normalize(country)
    found: list[str] = []
    for code, zone in _listed():
        names = catalogue().get(f"country.{code}", {})
        if typed in map(normalize, names.values()):
            found.append(zone)
    return _known(found)


def _known(zones: Iterable[str]) -> list[str]:
    available = available_timezones()
    return [zone for zone in dict.fromkeys(zones) if zone in available]


def _local_zone() -> str:
    """The zone of this machine; empty where its clock does not name one."""
    named = os.environ.get("TZ", "").removeprefix(":")
    zone = named or str(_LOCAL.resolve()).rpartition(_FOLDER)[2]
    return _UTC if zone.rpartition("/")[2] in _SAME_AS_UTC else zone


def _listed() -> Iterator[tuple[str, str]]:
    """Country and zone of each line in the list of the zone database: code, coordinates, zone, comment."""
    for folder in TZPATH:
        with suppress(FileNotFoundError):
            for line in (Path(folder) / _LIST).read_text("utf-8").splitlines():
                if not line.startswith("#"):
                    code, _, zone, *_ = line.split("\t")
                    yield code, zone
            return
