"""Settings: hosts, keys and environments, resolved, checked and masked before the first request."""

from sources.settings.loaders import (
    check_same_environment,
    effective_settings,
    http_settings,
    is_set,
    known_secrets,
    ledger_path,
    legacy_settings,
    notify_settings,
    public_v1_settings,
    reconcile_settings,
    warehouse_path,
    warehouse_settings,
)
from sources.settings.root import find_root, load_dlt, prepare_dlt, set_project
from sources.settings.secret import Secret
from sources.settings.sections import (
    DateOrder,
    Environment,
    HttpSettings,
    LegacySettings,
    NotifySettings,
    OrderSettings,
    PublicV1Settings,
    ReconcileSettings,
    WarehouseSettings,
)

__all__ = [
    "DateOrder",
    "Environment",
    "HttpSettings",
    "LegacySettings",
    "NotifySettings",
    "OrderSettings",
    "PublicV1Settings",
    "ReconcileSettings",
    "Secret",
    "WarehouseSettings",
    "check_same_environment",
    "effective_settings",
    "find_root",
    "http_settings",
    "is_set",
    "known_secrets",
    "ledger_path",
    "legacy_settings",
    "load_dlt",
    "notify_settings",
    "prepare_dlt",
    "public_v1_settings",
    "reconcile_settings",
    "set_project",
    "warehouse_path",
    "warehouse_settings",
]
