"""Where each key goes, and where key and host are set.

In: the settings as they are given. Out: a line for each key. A folder of somebody else may name a host of its own,
while the key is in the environment: such a key is asked about before it is sent for the first time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings.loaders import given_values
from orderbridge.sources.settings.setting import SETTINGS

_FAMILIES: Final = ("sources.legacy", "sources.public_v1")
_IN_PROJECT: Final = ".dlt/"


class KeyRoute(NamedTuple):
    """Where a key, or a copy of what it reads, goes.

    Attributes:
        words: a line, without the key.
        is_split: files of the project say where, and the key is not in them.
    """

    words: str
    is_split: bool


def key_routes() -> list[KeyRoute]:
    """Where each key goes that is set, then where a copy of the warehouse goes. Sections with errors are left out."""
    routes: list[KeyRoute] = []
    for section in _FAMILIES:
        with suppress(UsageError):
            routes += _routes_of(section)
    with suppress(UsageError):
        given = given_values("warehouse")
        if routes and "destination" in given:
            name, origin = given["destination"]
            is_split = _is_in_project(origin) and not all(map(_has_key_in_project, _FAMILIES))
            routes.append(KeyRoute(f"a copy of the warehouse goes to {name} ({origin})", is_split))
    return routes


def _routes_of(section: str) -> Iterator[KeyRoute]:
    """The route of the key of a family, if it and the host are set. Raises UsageError."""
    given = given_values(section)
    if not {"base_url", "api_key"} <= given.keys():
        return
    address, address_origin = given["base_url"]
    checked = SETTINGS[f"{section}.base_url"].checked(address)
    key_origin = given["api_key"][1]
    words = f"{section}.api_key ({key_origin}) goes to {checked} ({address_origin})"
    origins = [address_origin]
    http = given_values("sources.http")
    if "ca_file" in http:  # whoever has its key can answer in the place of any host
        file, origin = http["ca_file"]
        origins.append(origin)
        words += f", or to whoever has a certificate of {file} ({origin})"
    is_split = any(map(_is_in_project, origins)) and not _is_in_project(key_origin)
    yield KeyRoute(words, is_split)


def _has_key_in_project(section: str) -> bool:
    given = given_values(section)
    return "api_key" not in given or _is_in_project(given["api_key"][1])


def _is_in_project(origin: str) -> bool:
    """Whether a value is set in a file of the project, not in the environment or a file of its own."""
    return origin.startswith(_IN_PROJECT)
