"""Settings: hosts, keys and environments, resolved, checked and masked before the first request."""

from sources.settings.loaders import check_same_environment as check_same_environment
from sources.settings.loaders import effective_settings as effective_settings
from sources.settings.loaders import http_settings as http_settings
from sources.settings.loaders import is_set as is_set
from sources.settings.loaders import known_secrets as known_secrets
from sources.settings.loaders import ledger_path as ledger_path
from sources.settings.loaders import legacy_settings as legacy_settings
from sources.settings.loaders import misspelt_names as misspelt_names
from sources.settings.loaders import notify_settings as notify_settings
from sources.settings.loaders import public_v1_settings as public_v1_settings
from sources.settings.loaders import reconcile_settings as reconcile_settings
from sources.settings.loaders import warehouse_path as warehouse_path
from sources.settings.loaders import warehouse_settings as warehouse_settings
from sources.settings.root import find_root as find_root
from sources.settings.root import load_dlt as load_dlt
from sources.settings.root import prepare_dlt as prepare_dlt
from sources.settings.root import set_project as set_project
from sources.settings.sections import Environment as Environment
from sources.settings.sections import HttpSettings as HttpSettings
from sources.settings.sections import LegacySettings as LegacySettings
from sources.settings.sections import NotifySettings as NotifySettings
from sources.settings.sections import OrderSettings as OrderSettings
from sources.settings.sections import PublicV1Settings as PublicV1Settings
from sources.settings.sections import ReconcileSettings as ReconcileSettings
from sources.settings.sections import WarehouseSettings as WarehouseSettings
from sources.settings.setting import Secret as Secret
