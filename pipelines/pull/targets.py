"""The families that a pull reads from: their settings, checked, and clients made from them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from pipelines.warehouse.source import DataSource
from sources.contract import LISTS, Family
from sources.errors import UsageError
from sources.http.client import Client
from sources.settings import (
    LegacySettings,
    PublicV1Settings,
    check_same_environment,
    legacy_settings,
    public_v1_settings,
)


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
            raise UsageError(f"no settings for the family {family}")
        return settings

    def client(self, family: Family, stop: threading.Event) -> Client:
        """A client of that family; requests end once `stop` is set."""
        return Client.from_settings(self.settings(family), stop)

    @property
    def source(self) -> DataSource:
        """Hosts and environment, for `ops.warehouse`."""
        legacy, public_v1 = (
            urlsplit(one.base_url).netloc if one is not None else None for one in (self.legacy, self.public_v1)
        )
        return DataSource(legacy, public_v1, self.environment or None)

    @property
    def environment(self) -> str:
        """`sandbox` or `production`; empty without settings. Two families are always of the same."""
        settings = self.legacy or self.public_v1
        return settings.environment if settings is not None else ""


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
        settings = public_v1_settings()
    except UsageError:
        return None
    return settings if settings.environment == legacy.environment else None
