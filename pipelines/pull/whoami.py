"""What the platform reports about a key of public v1: environment, organization, scopes.

In: the answer of GET /whoami. Out: `Whoami`. The interface does not show the names of its fields, nor how they are
nested: they are recognised by parts of their names and by their values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sources.contract import WHOAMI
from sources.http.client import Client
from sources.http.failures import BrokenBody

ENVIRONMENTS: Final = {"live": "production", "production": "production", "sandbox": "sandbox", "test": "sandbox"}
_DEPTH_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Whoami:
    """A key's description; empty where it is not in the answer.

    Attributes:
        environment: `production` or `sandbox`.
        environment_field: the path of the field that has it, with dots.
        organization: its id, else its name.
        scopes: names of permissions.
    """

    environment: str = ""
    environment_field: str = ""
    organization: str = ""
    scopes: tuple[str, ...] = ()


def read_whoami(client: Client) -> Whoami:
    """Asks for the key's description.

    Args:
        client: of public v1.

    Raises:
        AccessError, PlatformError: it could not be read.
    """
    fields = list(_fields(client.get(WHOAMI.path, check=_object)[0]))
    environment, environment_field = _environment(fields)
    return Whoami(environment, environment_field, _organization(fields), _scopes(fields))


def _object(body: bytes) -> dict[str, object]:
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BrokenBody(type(error).__name__) from None
    if not isinstance(payload, dict):
        raise BrokenBody("not an object")
    return payload


def _fields(payload: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """All fields of an object and of the objects in it, by their path in lower case."""
    for name, value in payload.items():
        path = f"{prefix}{name.lower()}"
        yield path, value
        if isinstance(value, dict) and prefix.count(".") < _DEPTH_MAX:
            yield from _fields(value, f"{path}.")


def _environment(fields: list[tuple[str, object]]) -> tuple[str, str]:
    for path, value in fields:
        if "env" in path and isinstance(value, str) and value.lower() in ENVIRONMENTS:
            return ENVIRONMENTS[value.lower()], path
    return "", ""


def _organization(fields: list[tuple[str, object]]) -> str:
    """Of several fields the first that is an id: a name may change."""
    candidates = {
        path: str(value)
        for path, value in fields
        if any(part in path for part in ("org", "company", "tenant", "account"))
        and isinstance(value, str | int)
        and not isinstance(value, bool)
    }
    ids = [value for path, value in candidates.items() if path.rpartition(".")[2].endswith("id")]
    return next(iter([*ids, *candidates.values()]), "")


def _scopes(fields: list[tuple[str, object]]) -> tuple[str, ...]:
    for path, value in fields:
        if "scope" not in path and "permission" not in path:
            continue
        if isinstance(value, str):
            return tuple(value.replace(",", " ").split())
        if isinstance(value, list):
            names = [item.get("name") if isinstance(item, dict) else item for item in value]
            if names and all(isinstance(name, str) for name in names):
                return tuple(str(name) for name in names)
    return ()
