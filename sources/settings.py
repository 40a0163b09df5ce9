"""Hosts, keys and environments: resolved, checked, masked, before the first request.

In: what `sources.resolution` finds (environment, `.dlt/secrets.toml`, `.dlt/config.toml`). Out: frozen settings, each
whole or refused with a UsageError that names the key and its environment variable, never its value. Each loader
resolves its own section alone, so that a pull of one family needs the settings of that family alone.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NoReturn, cast, get_args
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from sources.contract import PUBLIC_V1_LIMIT_MAX, PUBLIC_V1_LIMIT_MIN, PUBLIC_V1_PREFIX, PUBLIC_V1_PREFIXES
from sources.errors import UsageError
from sources.kinds import ADDED_FIELDS, LoginMode, Semantics
from sources.resolution import Resolution, find_root, named, permission_warnings, prepare_dlt

__all__ = [
    "DateOrder",
    "Environment",
    "LedgerSettings",
    "LegacySettings",
    "LoginMode",
    "OrderSettings",
    "PublicV1Settings",
    "ReconcileSettings",
    "Secret",
    "Semantics",
    "WarehouseSettings",
    "check_same_environment",
    "find_root",
    "ledger_path",
    "ledger_settings",
    "legacy_settings",
    "permission_warnings",
    "prepare_dlt",
    "public_v1_settings",
    "reconcile_settings",
    "warehouse_path",
    "warehouse_settings",
]

Environment = Literal["sandbox", "production"]
DateOrder = Literal["day_first", "month_first"]

PAGE_LIMIT: Final = 100
_DATASET: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_COUNTRY: Final = re.compile(r"[A-Z]{2}")
HOST_LABELS: Final[dict[str, Environment]] = {
    "sandbox": "sandbox",
    "sbx": "sandbox",
    "test": "sandbox",
    "staging": "sandbox",
    "production": "production",
    "prod": "production",
}
"""Parts of a host name that say which environment it serves; only a whole part counts."""


class Secret:
    """A text that shows itself to nobody but `reveal`: masked when printed, refused when pickled."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the header that carries it."""
        return self._text

    def __repr__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


@dataclass(frozen=True, kw_only=True)
class LegacySettings:
    """Family A: its host, its key, and what only a person can tell of the organization behind it.

    Attributes:
        base_url: without a trailing slash.
        api_key: goes into the header `api-key`.
        environment: which of the two the host serves; nothing else tells (interface: Authentication, family A).
        page_limit: the `limit` that is asked for; the platform may cap it.
        login_mode: how customers log in; needed to plan customers only.
        stock_semantics, price_semantics: what "added" means for a variant (not shown).
    """

    base_url: str
    api_key: Secret
    environment: Environment
    page_limit: int = PAGE_LIMIT
    login_mode: LoginMode | None = None
    stock_semantics: Semantics = "unknown"
    price_semantics: Semantics = "unknown"

    def __post_init__(self) -> None:
        section = "sources.legacy"
        base_url = _checked_url(f"{section}.base_url", self.base_url)
        _check_key(f"{section}.api_key", self.api_key)
        _check_choice(f"{section}.environment", self.environment, get_args(Environment))
        _check_limit(f"{section}.page_limit", self.page_limit, None)
        if self.login_mode is not None:
            _check_choice(f"{section}.login_mode", self.login_mode, get_args(LoginMode))
        _check_choice(f"{section}.stock_semantics", self.stock_semantics, get_args(Semantics))
        _check_choice(f"{section}.price_semantics", self.price_semantics, get_args(Semantics))
        _check_host(base_url, self.environment, named(f"{section}.base_url"), named(f"{section}.environment"))
        object.__setattr__(self, "base_url", base_url)

    @property
    def semantics(self) -> dict[str, Semantics]:
        """What the settings say about each field that the interface calls "added"."""
        return {name: getattr(self, f"{name}_semantics") for name in ADDED_FIELDS}


@dataclass(frozen=True, kw_only=True)
class PublicV1Settings:
    """Family B: its host and its key, whose prefix is the environment (interface: Authentication, family B).

    Attributes:
        base_url: without `/public/v1` and without a trailing slash.
        api_key: the Bearer key.
        page_limit: the `limit` that is asked for, 1 to 100.
        order_key: the field that identifies an order (not shown).
    """

    base_url: str
    api_key: Secret
    page_limit: int = PAGE_LIMIT
    order_key: str = "id"

    def __post_init__(self) -> None:
        section = "sources.public_v1"
        base_url = _checked_url(f"{section}.base_url", self.base_url)
        _check_key(f"{section}.api_key", self.api_key)
        _check_limit(f"{section}.page_limit", self.page_limit, PUBLIC_V1_LIMIT_MAX)
        if not isinstance(self.order_key, str) or not self.order_key.strip():
            raise UsageError(f"{named(f'{section}.order_key')} is empty or not a string", "Leave it out for `id`.")
        _check_host(base_url, self.environment, named(f"{section}.base_url"), named(f"{section}.api_key"))
        object.__setattr__(self, "base_url", base_url)

    @property
    def environment(self) -> Environment:
        """What the key's prefix says: the first that stands in it. Raises UsageError for a key with none."""
        key = self.api_key.reveal()
        places = {key.find(prefix): prefix for prefix in PUBLIC_V1_PREFIXES if key.find(prefix) > 0}
        if places:
            return cast(Environment, PUBLIC_V1_PREFIXES[places[min(places)]])
        raise UsageError(
            f"{named('sources.public_v1.api_key')} has no prefix that names its environment",
            "A key of this family starts with `<brand>_live_` or `<brand>_test_`; is it another family's?",
        )


@dataclass(frozen=True, kw_only=True)
class WarehouseSettings:
    """Where the tables go.

    Attributes:
        path: the DuckDB file, absolute.
        destination: name of a dlt destination that gets a copy of each published version; None: no copy.
        destination_dataset: prefix of the names of its datasets.
    """

    path: Path
    destination: str | None = None
    destination_dataset: str = "orderbridge"

    def __post_init__(self) -> None:
        name = self.destination_dataset
        if not (isinstance(name, str) and _DATASET.fullmatch(name)):
            raise UsageError(
                f"{named('warehouse.destination_dataset')} is not a valid prefix for dataset names",
                "Use up to 40 lower-case letters, digits and underscores, starting with a letter.",
            )


@dataclass(frozen=True, kw_only=True)
class OrderSettings:
    """Columns of the raw orders by what they mean: the interface does not show an order's fields. None: not told."""

    customer_id: str | None = None
    ordered_at: str | None = None
    total: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReconcileSettings:
    """What only a person can tell of the raw tables.

    Attributes:
        orders: which columns of the raw orders are what.
        date_order: which of day and month comes first where both are numbers; None: a column proves it, or is unread.
        timezone: IANA name of the zone of times without an offset; None: such times stay unproven.
        country: ISO 3166-1 alpha-2 code of the country of phone numbers without one; None: they stay unproven.
    """

    orders: OrderSettings
    date_order: DateOrder | None = None
    timezone: str | None = None
    country: str | None = None

    def __post_init__(self) -> None:
        if self.date_order is not None:
            _check_choice("reconcile.date_order", self.date_order, get_args(DateOrder))
        if self.timezone is not None and self.timezone not in available_timezones():
            raise UsageError(
                f"{named('reconcile.timezone')} is not a known time zone",
                "Use an IANA name, such as Europe/Madrid or UTC.",
            )
        if self.country is not None and not (isinstance(self.country, str) and _COUNTRY.fullmatch(self.country)):
            raise UsageError(
                f"{named('reconcile.country')} is not a country code",
                "Use two capital letters (ISO 3166-1), such as ES.",
            )


@dataclass(frozen=True, kw_only=True)
class LedgerSettings:
    """Where the record of everything that was sent lies: an SQLite file."""

    path: Path


def legacy_settings(root: Path | None = None) -> LegacySettings:
    """The settings of family A. Raises UsageError."""
    found = Resolution("sources.legacy", root)
    return LegacySettings(
        base_url=_text(found, "base_url", "the address of the host, https://…"),
        api_key=Secret(_text(found, "api_key", "the key that goes into the header `api-key`.")),
        environment=cast(Environment, _text(found, "environment", "`sandbox` or `production`; only you know.")),
        page_limit=_integer(found, "page_limit"),
        login_mode=cast("LoginMode | None", found.value("login_mode")),
        stock_semantics=cast(Semantics, _or("unknown", found.value("stock_semantics"))),
        price_semantics=cast(Semantics, _or("unknown", found.value("price_semantics"))),
    )


def public_v1_settings(root: Path | None = None) -> PublicV1Settings:
    """The settings of family B. Raises UsageError."""
    found = Resolution("sources.public_v1", root)
    return PublicV1Settings(
        base_url=_text(found, "base_url", f"the address of the host, https://…, without {PUBLIC_V1_PREFIX}."),
        api_key=Secret(_text(found, "api_key", "the Bearer key, `<brand>_live_…` or `<brand>_test_…`.")),
        page_limit=_integer(found, "page_limit"),
        order_key=cast(str, _or("id", found.value("order_key"))),
    )


def warehouse_settings(root: Path | None = None) -> WarehouseSettings:
    """Where the warehouse is. A relative path is relative to the current folder. Raises UsageError."""
    found = Resolution("warehouse", root)
    destination = found.value("destination")
    if destination is not None and not (isinstance(destination, str) and destination.strip()):
        raise UsageError(f"{named('warehouse.destination')} is not the name of a dlt destination")
    path = _path(found, "warehouse", Path("warehouse.duckdb"))
    # A link stays one: what it points to is replaced.
    return WarehouseSettings(
        path=path.resolve() if path.is_symlink() else path,
        destination=destination,
        destination_dataset=cast(str, _or("orderbridge", found.value("destination_dataset"))),
    )


def ledger_settings(root: Path | None = None) -> LedgerSettings:
    """Where the ledger is: beside the warehouse where nothing else is said. Raises UsageError."""
    found = Resolution("ledger", root)
    beside = warehouse_path(root).with_name("ledger.sqlite") if found.value("path") is None else Path()
    return LedgerSettings(path=_path(found, "ledger", beside))


def reconcile_settings(root: Path | None = None) -> ReconcileSettings:
    """What is told of the raw tables. Raises UsageError."""
    found = Resolution("reconcile", root)
    told: dict[str, str] = {}
    for name in ("customer_id", "ordered_at", "total"):
        column = found.value(f"order_{name}")
        if column is None:
            continue
        if not isinstance(column, str) or not column.strip():
            raise UsageError(f"{named(f'reconcile.order_{name}')} is not the name of a column of raw.orders")
        told[name] = column.strip()
    return ReconcileSettings(
        orders=OrderSettings(**told),
        date_order=cast("DateOrder | None", found.value("date_order")),
        timezone=cast("str | None", found.value("timezone")),
        country=cast("str | None", found.value("country")),
    )


def warehouse_path(root: Path | None = None) -> Path:
    """The warehouse's file, absolute."""
    return warehouse_settings(root).path


def ledger_path(root: Path | None = None) -> Path:
    """The ledger's file, absolute."""
    return ledger_settings(root).path


def check_same_environment(legacy: LegacySettings, public_v1: PublicV1Settings) -> None:
    """Refuse a run that would mix test data with real data. Raises UsageError."""
    if legacy.environment != public_v1.environment:
        raise UsageError(
            f"the two families are of different environments: {named('sources.legacy.environment')} is "
            f"{legacy.environment}, the key in {named('sources.public_v1.api_key')} is of {public_v1.environment}",
            "Use hosts and keys of one environment, or pull one family alone.",
        )


def _or(default: object, value: object) -> object:
    return default if value is None else value


def _text(found: Resolution, name: str, how: str) -> str:
    value = found.value(name)
    if value is None:
        raise found.missing(name, how)
    return cast(str, value)  # what is no text is refused where the settings are made


def _integer(found: Resolution, name: str) -> int:
    value = _or(PAGE_LIMIT, found.value(name))
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        return int(value)
    return cast(int, value)


def _path(found: Resolution, section: str, default: Path) -> Path:
    value = found.value("path")
    if value is None:
        return default.absolute()
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise UsageError(f"{named(f'{section}.path')} is no path of a file", "Leave it out for the default.")
    try:
        path = Path(value).expanduser().absolute()
    except RuntimeError:
        raise UsageError(f"{named(f'{section}.path')} names a home folder that there is not") from None
    if path.is_dir():
        raise UsageError(f"{named(f'{section}.path')} is a folder: {path}", "Name a file in it.")
    return path


def _check_choice(key: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"{named(key)} is none of {', '.join(choices)}", "Write one of them, in lower case.")


def _check_limit(key: str, value: object, most: int | None) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or cast(int, value) < PUBLIC_V1_LIMIT_MIN or (most is not None and cast(int, value) > most):
        asked = f"from {PUBLIC_V1_LIMIT_MIN} to {most}" if most else f"of at least {PUBLIC_V1_LIMIT_MIN}"
        raise UsageError(f"{named(key)} is no whole number {asked}", f"Leave it out for {PAGE_LIMIT}.")


def _check_key(key: str, secret: object) -> None:
    text = secret.reveal() if isinstance(secret, Secret) else None
    if not isinstance(text, str):
        raise UsageError(f"{named(key)} is no text", "Put it in quotes.")
    if not text.strip():
        raise UsageError(f"{named(key)} is empty", "Paste the key as the platform gave it.")
    # anything else could end the header, or start another
    if not all("!" <= letter <= "~" for letter in text):
        raise UsageError(
            f"{named(key)} holds a blank, a line end or a letter that no key has",
            "Paste the key alone: no quotes within quotes, no `Bearer`, no line end.",
        )
    if set(text) & set("\"'"):
        raise UsageError(
            f"{named(key)} holds a quotation mark", "Paste the key alone, without a second pair of quotes."
        )


def _checked_url(key: str, value: object) -> str:
    """The URL without its trailing slashes. Its text is never shown: it may hold a password."""

    def refused(why: str, hint: str = "It looks like https://host, or https://host/path.") -> UsageError:
        return UsageError(f"{named(key)} {why}", hint)

    if not isinstance(value, str) or not value:
        raise refused("is no address")
    if not all("!" <= letter <= "~" for letter in value) or "\\" in value:
        raise refused("holds a blank, a line end or a letter that an address cannot have")
    try:
        url = urlsplit(value)
        host, _port = url.hostname, url.port
    except ValueError:
        raise refused("is no address") from None
    if url.scheme not in ("http", "https"):
        raise refused("does not start with https://")
    if not host:
        raise refused("has no host")
    if url.username is not None or url.password is not None:
        raise refused("holds a user name or a password", "Leave out what stands before the @; the key goes apart.")
    if url.query or url.fragment or value.endswith(("?", "#")):
        raise refused("holds a query or a fragment", "Leave out everything from the ? or # on.")
    base = value.rstrip("/")
    if url.path.rstrip("/").lower().endswith(PUBLIC_V1_PREFIX):
        raise refused(f"ends in {PUBLIC_V1_PREFIX}", f"Leave out {PUBLIC_V1_PREFIX}: it is added to each request.")
    if url.scheme == "http" and not _is_loopback(host):
        raise refused("is http: the key would travel in the clear", "Write https://; http is for this machine alone.")
    return base


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_host(base_url: str, environment: Environment, host_name: str, told_by: str) -> None:
    labels = (urlsplit(base_url).hostname or "").split(".")
    said = {HOST_LABELS[label] for label in labels if label in HOST_LABELS}
    if said and said != {environment}:
        raise UsageError(
            f"{told_by} says {environment}, but the host in {host_name} calls itself {min(said - {environment})}",
            "Use a host and a key of one environment.",
        )
