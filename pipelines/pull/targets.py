"""The families that a pull reads from: their settings, checked, and clients made from them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, get_args
from urllib.parse import urlsplit

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.source import read_source
from orderbridge.sources.contract import LISTS, Family, operation_named
from orderbridge.sources.errors import UsageError
from orderbridge.sources.http.client import Client
from orderbridge.sources.http.failures import BrokenBody
from orderbridge.sources.http.retries import RetryPolicy
from orderbridge.sources.settings import (
    DataSource,
    LegacySettings,
    PublicV1Settings,
    check_same_environment,
    is_set,
    ledger_path,
    legacy_settings,
    public_v1_settings,
)

ENVIRONMENTS: Final = {
    "live": "production",
    "production": "production",
    "sandbox": "sandbox",
    "test": "sandbox",
}
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

    def check_environment(self, expected: str) -> None:
        """Raises UsageError where the platform reports another environment than the prefix of the key."""
        if self.environment and self.environment != expected:
            raise UsageError(
                f"the platform reports that this key is for {self.environment}, its prefix is for {expected}",
                "Set sources.public_v1.api_key to a key of the right environment.",
            )


def read_whoami(client: Client) -> Whoami:
    """Asks for the key's description.

    Args:
        client: of public v1.

    Raises:
        AccessError, PlatformError: it could not be read.
    """
    path = operation_named("whoami").path
    payload, _ = client.get(path, check=lambda body: _object(client.mask(body)))
    fields = list(_fields(payload))
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


@dataclass(frozen=True, slots=True)
class Targets:
    """Settings of the families that are read; None for one that is not.

    `whoami` are settings of public v1 even where none of its lists is read: GET /whoami reports the organization, which
    the legacy family does not.
    """

    legacy: LegacySettings | None = None
    public_v1: PublicV1Settings | None = None
    whoami: PublicV1Settings | None = None

    def settings(self, family: Family) -> LegacySettings | PublicV1Settings:
        """Settings of a family. Raises UsageError where it has none."""
        settings = self.legacy if family == "legacy" else self.public_v1 or self.whoami
        if settings is None:
            raise UsageError(f"no settings for the API {family}")
        return settings

    def client(
        self, family: Family, stop: threading.Event, retry: RetryPolicy | None = None
    ) -> Client:
        """A client of that family; requests end once `stop` is set."""
        return Client.from_settings(self.settings(family), stop, retry)

    @property
    def source(self) -> DataSource:
        """Hosts and environment, for `ops.warehouse`."""
        legacy, public_v1 = (
            urlsplit(one.base_url).netloc if one is not None else None
            for one in (self.legacy, self.public_v1)
        )
        return DataSource(legacy, public_v1, self.environment or None)

    def is_renamed(self, held: DataSource) -> bool:
        """Whether a warehouse has the data of this platform under another name, as a person has said to the ledger.

        A host of the v1 API that was that of the legacy one, and is again, goes with it.
        """
        source = self.source
        if self.legacy is None or held.legacy_host in (None, source.legacy_host):
            return False
        hosts = {held.public_v1_host, source.public_v1_host}
        of_legacy = {held.legacy_host, source.legacy_host}
        is_v1_known = None in hosts or len(hosts) == 1 or hosts == of_legacy
        others = replace(held, legacy_host=None, public_v1_host=None)
        if not is_v1_known or others.differences(source):
            return False
        with Ledger.open(ledger_path(), readonly=True) as ledger:
            names = ledger.names_of(self.legacy.base_url)
        return held.legacy_host in {urlsplit(name).netloc for name in names}

    @property
    def environment(self) -> str:
        """`sandbox` or `production`; empty without settings. Two families are always of the same."""
        settings = self.legacy or self.public_v1
        return settings.environment if settings is not None else ""


def lists_without_settings(warehouse: Path) -> tuple[str, ...]:
    """The lists that are left out where all are to be read: their family has no settings, and the other one has.

    Not those of a family that the warehouse has data of: its settings were lost, which is an error.

    Raises:
        UsageError: a settings file or the warehouse cannot be read.
    """
    unset = [family for family in get_args(Family) if not is_set(f"sources.{family}")]
    if len(unset) != 1:
        return ()
    if warehouse.exists():
        with open_warehouse(warehouse) as connection:
            if getattr(read_source(connection), f"{unset[0]}_host") is not None:
                return ()
    return tuple(name for name, operation in LISTS.items() if operation.family == unset[0])


def read_targets(resources: Sequence[str]) -> Targets:
    """Reads and checks the settings of the families that these lists belong to, and of no other.

    Raises:
        UsageError: an unknown list; a setting that is missing or wrong; families of two environments.
    """
    unknown = [name for name in resources if name not in LISTS]
    if unknown:
        raise UsageError(f"unknown list: {', '.join(unknown)}", f"Lists: {', '.join(LISTS)}.")
    families = {LISTS[name].family for name in resources}
    legacy = legacy_settings() if "legacy" in families else None
    public_v1 = public_v1_settings() if "public_v1" in families else None
    if legacy is not None and public_v1 is not None:
        check_same_environment(legacy, public_v1)
    return Targets(legacy, public_v1, _whoami_settings(legacy) if legacy is not None else public_v1)


def _whoami_settings(legacy: LegacySettings) -> PublicV1Settings | None:
    """Settings of public v1 for the same environment; None where they are missing or wrong: no list needs them."""
    try:
        # an error would look for misspelt names, which takes 80 ms
        if not is_set("sources.public_v1"):
            return None
        settings = public_v1_settings()
    except UsageError:
        return None
    return settings if settings.environment == legacy.environment else None
