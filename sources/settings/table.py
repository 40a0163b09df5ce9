"""Every setting, once: name, check, default, a line of help.

In: nothing. Out: `SETTINGS`, from which the loaders, README's table, `.dlt/config.toml` and what `orderbridge check`
prints are made. A new setting is a line here, and a field of its dataclass in `sections`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from sources.contract import PUBLIC_V1_LIMIT_MAX, PUBLIC_V1_LIMIT_MIN, PUBLIC_V1_PREFIX
from sources.kinds import LoginMode, Semantics
from sources.settings import checks
from sources.urls import checked_base_url

Environment = Literal["sandbox", "production"]
DateOrder = Literal["day_first", "month_first"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes:
        key: section and name, `sources.legacy.base_url`.
        check: the typed value of a raw or typed one; raises UsageError.
        help: one line: what it is.
        example: as the settings files show it.
        default: None: it has none, or it depends on other settings.
        required: its section cannot be loaded without it.
        is_secret: belongs into secrets.toml.
    """

    key: str
    check: checks.Check
    help: str
    example: str = ""
    default: Any = None
    required: bool = False
    is_secret: bool = False

    @property
    def section(self) -> str:
        """The table of the TOML file that it belongs to."""
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The name within its section."""
        return self.key.rpartition(".")[2]

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return variable(self.key)

    @property
    def file(self) -> str:
        """The file in `.dlt` that it belongs into."""
        return "secrets.toml" if self.is_secret else "config.toml"

    def checked(self, value: object) -> Any:  # noqa: ANN401 # each setting has its own type
        """The typed value. Raises UsageError."""
        return self.check(named(self.key), value)


def variable(key: str) -> str:
    """The environment variable of a key: `sources.legacy.api_key` is `SOURCES__LEGACY__API_KEY`."""
    return key.replace(".", "__").upper()


def named(key: str) -> str:
    """A key as messages name it, with its environment variable."""
    return f"{key} ({variable(key)})"


_SEMANTICS: Final = checks.choice(*get_args(Semantics))
_COLUMN: Final = checks.text("the name of a column of raw.orders")

_TABLE: Final = (
    Setting("sources.legacy.base_url", checked_base_url, "address of the host", "https://…", required=True),
    Setting(
        "sources.legacy.api_key", checks.api_key, "key for the header `api-key`", "…", required=True, is_secret=True
    ),
    Setting(
        "sources.legacy.environment",
        checks.choice(*get_args(Environment)),
        "`sandbox` or `production`: what that host serves; the key does not show it",
        "sandbox",
        required=True,
    ),
    Setting("sources.legacy.page_limit", checks.whole_number(1), "rows per page to ask for", default=100),
    Setting(
        "sources.legacy.login_mode",
        checks.choice(*get_args(LoginMode)),
        "`email` or `code`: how customers log in; required to plan customers",
        "email",
    ),
    Setting(
        "sources.legacy.stock_semantics",
        _SEMANTICS,
        "`unknown`, `set` or `increment`: what sending a stock does to the present one",
        default="unknown",
    ),
    Setting(
        "sources.legacy.price_semantics",
        _SEMANTICS,
        "`unknown`, `set` or `increment`: the same for a price",
        default="unknown",
    ),
    Setting(
        "sources.public_v1.base_url",
        checked_base_url,
        f"address of the host, without `{PUBLIC_V1_PREFIX}`",
        "https://…",
        required=True,
    ),
    Setting(
        "sources.public_v1.api_key",
        checks.api_key,
        "key, `<brand>_live_…` or `<brand>_test_…`: its prefix is the environment",
        "brand_test_…",
        required=True,
        is_secret=True,
    ),
    Setting(
        "sources.public_v1.page_limit",
        checks.whole_number(PUBLIC_V1_LIMIT_MIN, PUBLIC_V1_LIMIT_MAX),
        f"rows per page to ask for, {PUBLIC_V1_LIMIT_MIN} to {PUBLIC_V1_LIMIT_MAX}",
        default=100,
    ),
    Setting(
        "sources.public_v1.order_key",
        checks.text("the name of a field of an order"),
        "field that identifies an order",
        default="id",
    ),
    Setting(
        "sources.public_v1.whole_read_days",
        checks.whole_number(1, 366),
        "days after which `pull --tail` reads the orders whole again",
        default=7,
    ),
    Setting("sources.http.timeout_s", checks.seconds, "seconds for one request as a whole", default=120.0),
    Setting("sources.http.read_timeout_s", checks.seconds, "seconds without data", default=30.0),
    Setting("sources.http.ca_file", checks.file, "certificates to trust (PEM) instead of the system's store", "ca.pem"),
    Setting("sources.http.proxy", checks.proxy, "proxy for all requests", "http://host:port"),
    Setting(
        "reconcile.order_customer_id",
        _COLUMN,
        "column of `raw.orders` with the customer; detected if not set",
        "customer__id",
    ),
    Setting(
        "reconcile.order_ordered_at",
        _COLUMN,
        "column with the time of the order; detected if not set",
        "created_at",
    ),
    Setting("reconcile.order_total", _COLUMN, "column with the total; detected if not set", "total"),
    Setting("reconcile.order_status", _COLUMN, "column with the status; detected if not set", "status"),
    Setting("reconcile.order_currency", _COLUMN, "column with the currency; detected if not set", "currency"),
    Setting(
        "reconcile.date_order",
        checks.choice(*get_args(DateOrder)),
        "`day_first` or `month_first`, for dates like 03/04/2026; if not set, a column that proves neither is not read",
        "day_first",
    ),
    Setting(
        "reconcile.timezone",
        checks.time_zone,
        "time zone (IANA name) of times without an offset; if not set, they stay unproven",
        "Europe/Madrid",
    ),
    Setting(
        "reconcile.country",
        checks.country,
        "country (ISO 3166-1) of phone numbers without one; if not set, they stay unproven",
        "ES",
    ),
    Setting("warehouse.path", checks.file, "file of the warehouse", default="warehouse.duckdb"),
    Setting(
        "warehouse.destination",
        checks.text("the name of a dlt destination"),
        "dlt destination that gets a copy of each published version; its address is a setting of dlt",
        "postgres",
    ),
    Setting(
        "warehouse.destination_dataset", checks.dataset, "prefix of the names of its datasets", default="orderbridge"
    ),
    Setting(
        "ledger.path",
        checks.file,
        "file of the ledger: every write and its outcome; if not set, next to the warehouse",
        "ledger.sqlite",
    ),
    Setting(
        "notify.url",
        checks.webhook,
        "webhook (Slack, Teams …) that `orderbridge run` posts its summary to",
        "https://…",
        is_secret=True,
    ),
)
SETTINGS: Final = {setting.key: setting for setting in _TABLE}
DEFAULTS: Final[Mapping[str, Any]] = {setting.key: setting.default for setting in _TABLE}
SECTIONS: Final = tuple(dict.fromkeys(setting.section for setting in _TABLE))


def settings_of(section: str) -> Iterator[Setting]:
    """The settings of a section, in the table's order."""
    return (setting for setting in _TABLE if setting.section == section)


def shown(value: object) -> str:
    """A value as documents and messages show it: whole numbers without a fraction."""
    return f"{value:g}" if isinstance(value, float) else str(value)
