"""Settings by section: frozen dataclasses, each complete and checked.

In: raw or typed values. Out: typed settings, or a UsageError that names the key and its environment variable, never
its value.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import ClassVar, Final, cast
from urllib.parse import urlsplit

from sources.contract import PUBLIC_V1_PREFIXES
from sources.disk import resolve_link
from sources.errors import UsageError
from sources.kinds import ADDED_FIELDS, LoginMode, Semantics
from sources.settings.secret import Secret
from sources.settings.table import (
    DEFAULTS,
    SETTINGS,
    DateOrder,
    Environment,
    named,
)

HOST_LABELS: Final[dict[str, Environment]] = {
    "sandbox": "sandbox",
    "sbx": "sandbox",
    "test": "sandbox",
    "staging": "sandbox",
    "production": "production",
    "prod": "production",
}
"""Parts of a host name that name the environment it serves; only a whole part counts."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """Checks each field that is a setting; None is one that is not set and has no default."""

    prefix: ClassVar[str]
    """What precedes the names of the fields in the table."""

    def __post_init__(self) -> None:
        for item in fields(self):
            setting, value = SETTINGS.get(self.prefix + item.name), getattr(self, item.name)
            if setting is not None and (setting.required or value is not None):
                object.__setattr__(self, item.name, setting.checked(value))


@dataclass(frozen=True, kw_only=True)
class LegacySettings(Section):
    """The legacy family: its host, its key, and what the interface does not show of the organization.

    Attributes:
        base_url: without a trailing slash.
        api_key: for the header `api-key`.
        environment: which one the host serves; nothing else shows it (interface: Authentication, family A).
        page_limit: the `limit` to ask for; the platform may cap it.
        login_mode: how customers log in; required to plan customers.
        stock_semantics, price_semantics: what "added" means for a variant (not shown).
    """

    prefix = "sources.legacy."

    base_url: str
    api_key: Secret
    environment: Environment
    page_limit: int = DEFAULTS["sources.legacy.page_limit"]
    login_mode: LoginMode | None = None
    stock_semantics: Semantics = DEFAULTS["sources.legacy.stock_semantics"]
    price_semantics: Semantics = DEFAULTS["sources.legacy.price_semantics"]

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_host(self.prefix, self.base_url, self.environment, "environment")

    @property
    def semantics(self) -> dict[str, Semantics]:
        """The setting of each field that the interface calls "added"."""
        return {name: getattr(self, f"{name}_semantics") for name in ADDED_FIELDS}


@dataclass(frozen=True, kw_only=True)
class PublicV1Settings(Section):
    """The v1 family: its host and its key, whose prefix is the environment (interface: Authentication, family B).

    Attributes:
        base_url: without `/public/v1` and without a trailing slash.
        api_key: the Bearer key.
        page_limit: the `limit` to ask for, 1 to 100.
        order_key: the field that identifies an order (not shown).
        whole_read_days: after which a tail reads the orders whole again.
    """

    prefix = "sources.public_v1."

    base_url: str
    api_key: Secret
    page_limit: int = DEFAULTS["sources.public_v1.page_limit"]
    order_key: str = DEFAULTS["sources.public_v1.order_key"]
    whole_read_days: int = DEFAULTS["sources.public_v1.whole_read_days"]

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_host(self.prefix, self.base_url, self.environment, "api_key")

    @property
    def environment(self) -> Environment:
        """The environment that the key's prefix names. Raises UsageError if it names none, or perhaps either."""
        key = self.api_key.reveal()
        places = {prefix: key.find(prefix) for prefix in PUBLIC_V1_PREFIXES if key.find(prefix) > 0}
        environments = [PUBLIC_V1_PREFIXES[prefix] for prefix in sorted(places, key=lambda prefix: places[prefix])]
        if not environments:
            raise UsageError(
                f"{named('sources.public_v1.api_key')} has no prefix that names its environment",
                "A key of this family starts with `<brand>_live_` or `<brand>_test_`. Is it the other family's key?",
            )
        if environments[0] == "sandbox" and "production" in environments:
            # `brand_test_live_…` may be the live key of a brand that ends in `_test`
            raise UsageError(
                f"{named('sources.public_v1.api_key')} contains both `_test_` and `_live_`: its environment is unclear",
                "Ask the platform for a key that contains one of the two.",
            )
        return cast(Environment, environments[0])


@dataclass(frozen=True, kw_only=True)
class HttpSettings(Section):
    """Requests of both families.

    Attributes:
        timeout_s: for one request as a whole.
        read_timeout_s: without data.
        ca_file: certificates to trust (PEM); None: the system's store.
        proxy: `http://[user:password@]host:port`; None: no proxy.
    """

    prefix = "sources.http."

    timeout_s: float = DEFAULTS["sources.http.timeout_s"]
    read_timeout_s: float = DEFAULTS["sources.http.read_timeout_s"]
    ca_file: Path | None = None
    proxy: Secret | None = None


@dataclass(frozen=True, kw_only=True)
class NotifySettings(Section):
    """Who is notified how a run ended: `url`, a webhook; None: nobody."""

    prefix = "notify."

    url: Secret | None = None


@dataclass(frozen=True, kw_only=True)
class WarehouseSettings(Section):
    """Where the tables go.

    Attributes:
        path: the DuckDB file, absolute; the target of a link.
        destination: name of a dlt destination that gets a copy of each published version; None: no copy.
        destination_dataset: prefix of the names of its datasets.
    """

    prefix = "warehouse."

    path: Path = Path(DEFAULTS["warehouse.path"])
    destination: str | None = None
    destination_dataset: str = DEFAULTS["warehouse.destination_dataset"]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "path", resolve_link(self.path))  # its target is replaced, the link stays


@dataclass(frozen=True, kw_only=True)
class OrderSettings(Section):
    """Which columns of the raw orders hold what: the interface does not show an order's fields. None: detected."""

    prefix = "reconcile.order_"

    customer_id: str | None = None
    ordered_at: str | None = None
    total: str | None = None
    status: str | None = None
    currency: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReconcileSettings(Section):
    """How to read the raw tables.

    Attributes:
        orders: which columns of the raw orders hold what.
        date_order: whether day or month comes first if both are numbers; None: a column proves it, or is not read.
        timezone: IANA name of the zone of times without an offset; None: such times stay unproven.
        country: ISO 3166-1 alpha-2 code of the country of phone numbers without one; None: they stay unproven.
    """

    prefix = "reconcile."

    orders: OrderSettings = field(default_factory=OrderSettings)
    date_order: DateOrder | None = None
    timezone: str | None = None
    country: str | None = None


@dataclass(frozen=True, kw_only=True)
class LedgerSettings(Section):
    """Where the ledger is: an SQLite file."""

    prefix = "ledger."

    path: Path


def _check_host(prefix: str, base_url: str, environment: Environment, named_by: str) -> None:
    labels = (urlsplit(base_url).hostname or "").split(".")
    claimed = {HOST_LABELS[label] for label in labels if label in HOST_LABELS}
    if claimed and claimed != {environment}:
        raise UsageError(
            f"{named(prefix + named_by)} is for {environment}, but the host in {named(prefix + 'base_url')} "
            f"has {min(claimed - {environment})} in its name",
            "Use a host and a key of one environment.",
        )
