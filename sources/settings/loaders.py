"""Reads settings, a section at a time: a pull of one family needs the settings of that family only.

In: what `resolution` finds (environment, `.dlt/secrets.toml`, `.dlt/config.toml`). Out: the dataclasses of
`sections`, or a UsageError that names the key and its environment variable, never its value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sources.errors import UsageError
from sources.settings.resolution import Resolution
from sources.settings.sections import (
    SETTINGS,
    HttpSettings,
    LedgerSettings,
    LegacySettings,
    NotifySettings,
    OrderSettings,
    PublicV1Settings,
    ReconcileSettings,
    Section,
    WarehouseSettings,
    settings_of,
)
from sources.settings.setting import Setting, named, shown

S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """A setting with its value as text, masked if secret, and where it is set."""

    setting: Setting
    text: str
    origin: str


def _load(kind: type[S], root: Path | None = None) -> S:
    """A section as it is set. Raises UsageError."""
    resolution = Resolution(kind.prefix.rpartition(".")[0], root)
    values: dict[str, Any] = {}
    missing: list[Setting] = []
    for item in fields(kind):
        setting = SETTINGS.get(kind.prefix + item.name)
        value = resolution.value(setting.name) if setting is not None else None
        if value is not None:
            values[item.name] = value
        elif setting is not None and setting.required:
            missing.append(setting)
    if missing:
        raise resolution.missing(missing)
    return kind(**values)


legacy_settings = partial(_load, LegacySettings)
public_v1_settings = partial(_load, PublicV1Settings)
http_settings = partial(_load, HttpSettings)
notify_settings = partial(_load, NotifySettings)
warehouse_settings = partial(_load, WarehouseSettings)


def reconcile_settings(root: Path | None = None) -> ReconcileSettings:
    """How to read the raw tables. Raises UsageError."""
    return replace(_load(ReconcileSettings, root), orders=_load(OrderSettings, root))


def warehouse_path(root: Path | None = None) -> Path:
    """The warehouse's file, absolute. Raises UsageError."""
    return warehouse_settings(root).path


def ledger_path(root: Path | None = None) -> Path:
    """The ledger's file, absolute: next to the warehouse if it is not set. Raises UsageError."""
    return _load(LedgerSettings, root).path or warehouse_path(root).with_name("ledger.sqlite")


def is_set(section: str, root: Path | None = None) -> bool:
    """Whether any required setting of a section is set. Raises UsageError."""
    resolution = Resolution(section, root)
    return any(resolution.value(setting.name) is not None for setting in settings_of(section) if setting.required)


def known_secrets(root: Path | None = None) -> tuple[str, ...]:
    """Every secret that is set, checked or not: what no output may contain. A section with errors has none."""
    values = set()
    for setting in SETTINGS.values():
        if setting.is_secret:
            try:
                value = Resolution(setting.section, root).value(setting.name)
            except UsageError:
                continue
            if isinstance(value, str) and value.strip():
                values.add(value.strip())
    return tuple(sorted(values))


def effective_settings(root: Path | None = None) -> Iterator[EffectiveSetting]:
    """Every setting that has a value, from the table's beginning; secrets masked, invalid values left out."""
    for setting in SETTINGS.values():
        try:
            value, origin = Resolution(setting.section, root).origin(setting.name)
            value = setting.default if value is None else setting.checked(value)
        except UsageError:
            continue
        if value is not None:
            yield EffectiveSetting(setting, shown(value), origin or "default")


def check_same_environment(legacy: LegacySettings, public_v1: PublicV1Settings) -> None:
    """Raises UsageError for a run that would mix test data with real data."""
    if legacy.environment != public_v1.environment:
        raise UsageError(
            f"the two families have different environments: {named('sources.legacy.environment')} is "
            f"{legacy.environment}, the key in {named('sources.public_v1.api_key')} is for {public_v1.environment}",
            "Use hosts and keys of one environment, or pull one family alone.",
        )
