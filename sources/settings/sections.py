"""Every setting, declared once: a field of the frozen dataclass of its section, with its check and a line of help.

In: raw or typed values. Out: typed and checked settings, or a UsageError that names the key and its environment
variable, never its value.
"""

from __future__ import annotations

from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Final, Literal, cast, get_args
from urllib.parse import urlsplit

from orderbridge.sources.contract import (
    ORDER,
    PUBLIC_V1_LIMIT_MAX,
    PUBLIC_V1_LIMIT_MIN,
    PUBLIC_V1_PREFIX,
    PUBLIC_V1_PREFIXES,
)
from orderbridge.sources.errors import UsageError
from orderbridge.sources.kinds import ADDED_FIELDS, LoginMode, Semantics
from orderbridge.sources.settings import checks
from orderbridge.sources.settings.setting import SETTINGS, Secret, Section, Setting, named, setting
from orderbridge.sources.urls import checked_base_url

Environment = Literal["sandbox", "production"]
CustomerNotation = Literal["ids", "codes"]
TotalUnit = Literal["units", "cents"]
Clock = Literal["local", "utc", "dates"]
DiscountUnit = Literal["amount", "amount_each", "fraction", "percent", "included"]
DateOrder = Literal["day_first", "month_first"]
StatusClass = Literal["sale", "open", "cancelled", "refunded", "test"]
LineKind = Literal["product", "part", "no_product"]
CursorAfterEnd = Literal["end", "more"]
EmptyArray = Literal["empty_page", "broken"]
CodeZeros = Literal["ignore", "count"]
NotifyOn = Literal["always", "problems"]

HOST_LABELS: Final[dict[str, Environment]] = {
    **dict.fromkeys(("sandbox", "sbx", "test", "staging"), "sandbox"),
    **dict.fromkeys(("production", "prod"), "production"),
}
"""Parts of a host name that name the environment it serves; only a whole part counts."""
_COLUMN: Final = checks.text("the name of a column of raw.orders")
_OF_CUSTOMERS: Final = (
    "bi.orders.customer_id",
    "bi.orders.customer_name",
    "bi.customers.order_count",
    "bi.customers.revenue",
)
_OF_TIMES: Final = (
    "bi.orders.ordered_at",
    "bi.orders.ordered_date",
    "bi.revenue_by_day.ordered_date",
    "bi.customers.last_ordered_at",
)
_OF_REVENUE: Final = (
    "bi.orders.revenue",
    "bi.revenue_by_day.revenue",
    "bi.revenue_by_month.revenue",
    "bi.revenue_by_price_list.revenue",
    "bi.revenue_by_customer.revenue",
    "bi.customers.revenue",
    "bi.customer_value.revenue",
)
_OF_TOTALS: Final = ("bi.orders.total", *_OF_REVENUE)
_OF_STATUSES: Final = (
    "bi.orders.status_class",
    "bi.orders.is_sale",
    "bi.orders.is_cancelled",
    *_OF_REVENUE,
    "bi.retention_by_month.customers",
    "bi.order_lines.revenue",
    "bi.top_products.revenue",
    "bi.products_by_month.revenue",
)
_LINE_COLUMN: Final = checks.text("the name of a column of the lines of orders")
_OF_LINE_AMOUNTS: Final = ("bi.order_lines.revenue", "bi.top_products.revenue")
_OF_LINES: Final = (
    "bi.order_lines.product",
    "bi.order_lines.quantity",
    "bi.order_lines.revenue",
    "bi.top_products.revenue",
)
"""Columns of `bi` whose values rest on a setting."""
_OF_SEMANTICS: Final = {
    "unknown": "each is sent in a request of its own, which is never repeated",
    "set": "a file has new numbers: 12 makes it 12",
    "increment": "a file has changes: 12 makes 42 of 30, and the mapping says `change = true`",
}


class LegacySettings(Section, prefix="sources.legacy."):
    """The legacy family. Only its host has an environment, no key shows it (interface: Authentication, family A)."""

    base_url: str = setting(checked_base_url, "address of the host", "https://…")
    api_key: Secret = setting(checks.api_key, "key for the header `api-key`", "…", is_secret=True)
    environment: Environment = setting(
        checks.choice(*get_args(Environment)),
        "`sandbox` or `production`: what that host serves; the key does not show it",
        "sandbox",
    )
    page_limit: int = setting(checks.whole_number(1), "rows per page to ask for", default=100)
    login_mode: LoginMode | None = setting(
        checks.choice(*get_args(LoginMode)),
        "`email` or `code`: how customers log in; required to plan customers",
        "email",
        default=None,
        asks="How do customers log in: by e-mail address or by login code? The login page asks for one of them.",
        holds_up=("new customers",),
        means={
            "email": "new customers log in with their address: a line without one is not sent, login codes never are",
            "code": "new customers log in with a code: a line without one is not sent, an address is for mail only",
        },
    )
    stock_semantics: Semantics = setting(
        checks.choice(*get_args(Semantics)),
        "`unknown`, `set` or `increment`: what sending a stock does to the present one",
        default="unknown",
        asks="Does a stock that is sent replace the present one (set), or is it added to it (increment)?",
        holds_up=("changes of stock",),
        means=_OF_SEMANTICS,
    )
    price_semantics: Semantics = setting(
        checks.choice(*get_args(Semantics)),
        "`unknown`, `set` or `increment`: the same for a price",
        default="unknown",
        asks="Does a price that is sent replace the present one (set), or is it added to it (increment)?",
        holds_up=("changes of prices",),
        means=_OF_SEMANTICS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_host(self.prefix, self.base_url, self.environment, "environment")

    @property
    def semantics(self) -> dict[str, Semantics]:
        """The setting of each field that the interface calls "added"."""
        return {name: getattr(self, f"{name}_semantics") for name in ADDED_FIELDS}


class PublicV1Settings(Section, prefix="sources.public_v1."):
    """The v1 family: the prefix of its key is the environment (interface: Authentication, family B)."""

    base_url: str = setting(
        checked_base_url, f"address of the host, without `{PUBLIC_V1_PREFIX}`", "https://…"
    )
    api_key: Secret = setting(
        checks.api_key,
        "key, `<brand>_live_…` or `<brand>_test_…`: its prefix is the environment",
        "brand_test_…",
        is_secret=True,
    )
    page_limit: int = setting(
        checks.whole_number(PUBLIC_V1_LIMIT_MIN, PUBLIC_V1_LIMIT_MAX),
        f"rows per page to ask for, {PUBLIC_V1_LIMIT_MIN} to {PUBLIC_V1_LIMIT_MAX}",
        default=100,
    )
    order_key: str = setting(
        checks.text("the name of a field of an order"),
        "field that identifies an order",
        default=ORDER.key,
        asks="Which field identifies an order?",
        holds_up=("orders",),
    )
    whole_read_days: int = setting(
        checks.whole_number(1, 366),
        "days after which `pull --tail` reads the orders whole again",
        default=7,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_host(self.prefix, self.base_url, self.environment, "api_key")

    @property
    def environment(self) -> Environment:
        """The environment that the key's prefix names. Raises UsageError if it names none, or perhaps either."""
        key = self.api_key.reveal()
        environments = [name for prefix, name in PUBLIC_V1_PREFIXES.items() if key.find(prefix) > 0]
        if len(environments) != 1:
            what = (
                "contains both `_test_` and `_live_`"
                if environments
                else "has no prefix that names its environment"
            )
            raise UsageError(
                f"{named('sources.public_v1.api_key')} {what}",
                "A key of the v1 API starts with `<brand>_live_` or `<brand>_test_`. Is it the key of the legacy API? "
                "Of one that contains both, the environment is unclear: ask the platform for another. "
                "To change it: orderbridge init sources.public_v1.api_key",
            )
        return cast(Environment, environments[0])


class HttpSettings(Section, prefix="sources.http."):
    """Requests of both families, and how their pages are read."""

    timeout_s: float = setting(checks.seconds, "seconds for one request as a whole", default=120.0)
    read_timeout_s: float = setting(checks.seconds, "seconds without data", default=30.0)
    list_timeout_s: float = setting(
        checks.seconds, "seconds for reading a list to its end", default=86_400.0
    )
    ca_file: Path | None = setting(
        checks.file,
        "certificates to trust (PEM) instead of the system's store",
        "ca.pem",
        default=None,
    )
    proxy: Secret | None = setting(
        checks.proxy, "proxy for all requests", "http://host:port", default=None
    )
    cursor_after_end: CursorAfterEnd | None = setting(
        checks.choice(*get_args(CursorAfterEnd)),
        "`end` or `more`: what `hasMore` false beside a cursor means; if not set, the list fails",
        "end",
        default=None,
        asks="A page has `hasMore` false, and a cursor all the same. Is the list at its end, or does more follow?",
        holds_up=("orders",),
        means={
            "end": "the list is complete there, and the cursor is not used",
            "more": "the cursor is used, until a page has no rows or no cursor",
        },
    )
    empty_array: EmptyArray | None = setting(
        checks.choice(*get_args(EmptyArray)),
        "`empty_page` or `broken`: what a response `[]` in place of a page means; if not set, the list fails",
        "empty_page",
        default=None,
        asks="The platform answers `[]` in place of a page. Is that a page without rows, or a broken response?",
        holds_up=("the lists that end so",),
        means={
            "empty_page": "a page without rows: a list that is read by page numbers ends there",
            "broken": "it is requested again, and the list fails if it stays so",
        },
    )


class OrderSettings(Section, prefix="reconcile.order_"):
    """Which columns of the raw orders hold what: the interface does not show an order's fields."""

    customer_id: str | None = setting(
        _COLUMN,
        "column of `raw.orders` with the customer; detected if not set",
        "customer__id",
        default=None,
        asks="Which column of raw.orders names the customer who ordered?",
        holds_up=_OF_CUSTOMERS,
    )
    customer_notation: CustomerNotation | None = setting(
        checks.choice(*get_args(CustomerNotation)),
        "`ids` or `codes` (of the ERP): how that column names customers; detected if not set, then kept",
        "codes",
        default=None,
        asks="Does that column have the customers' ids, or their ERP codes?",
        holds_up=_OF_CUSTOMERS,
    )
    ordered_at: str | None = setting(
        _COLUMN,
        "column with the time of the order; detected if not set",
        "created_at",
        default=None,
        asks="Which column of raw.orders has the time of the order?",
        holds_up=_OF_TIMES,
    )
    clock: Clock | None = setting(
        checks.choice(*get_args(Clock)),
        "`local` or `utc`: whether times of orders without an offset are those of `reconcile.timezone` or in UTC, as "
        "many databases keep them; local if not set. `dates`: orders at midnight in UTC have a date and no time",
        "utc",
        default=None,
        asks="Are times of orders without an offset by the clock of your time zone (local), or in UTC (utc)? "
        "Are those at midnight in UTC dates (dates)?",
        holds_up=_OF_TIMES,
    )
    total: str | None = setting(
        _COLUMN,
        "column with the total, `sum_of_lines` or `sum_of_payments`; detected if not set",
        "total",
        default=None,
        asks="Which column of raw.orders has the total that you report as revenue?",
        holds_up=_OF_TOTALS,
    )
    total_unit: TotalUnit | None = setting(
        checks.choice(*get_args(TotalUnit)),
        "`units` or `cents` (hundredths) of the currency: what the total is in; as the lines show it if not set",
        "cents",
        default=None,
        asks="Are the totals in units of the currency, or in cents (hundredths)?",
        holds_up=_OF_TOTALS,
    )
    tax: str | None = setting(
        _COLUMN,
        "column with the tax that is in the total; net revenue is without it",
        "total_tax",
        default=None,
        asks="Which column of raw.orders has the tax that is in the total?",
        holds_up=(
            "bi.orders.tax_in_total",
            "bi.orders.net_revenue",
            "bi.revenue_by_month.net_revenue",
        ),
    )
    shipping: str | None = setting(
        _COLUMN,
        "column with the shipping that is in the total; net revenue is without it",
        "shipping_total",
        default=None,
        asks="Which column of raw.orders has the shipping that is in the total?",
        holds_up=(
            "bi.orders.shipping_in_total",
            "bi.orders.net_revenue",
            "bi.revenue_by_month.net_revenue",
        ),
    )
    status: str | None = setting(
        _COLUMN,
        "column with the status, or `none`; detected if not set",
        "status",
        default=None,
        asks="Which column of raw.orders has the status?",
        holds_up=("bi.orders.order_status", "bi.orders.is_sale", "bi.orders.is_cancelled"),
    )
    statuses: str | None = setting(
        checks.table(*get_args(StatusClass)),
        "what each value of the status means: `sale`, `open` (not yet), `cancelled`, `refunded` or `test`; others are "
        "detected by their words. `payment_status: pending=open` is about the orders with that value of another column",
        "PAID=sale,PENDING=open",
        default=None,
        asks="What does each status mean: sale, open (not yet a sale), cancelled, refunded or test?",
        holds_up=_OF_STATUSES,
    )
    cancelled: str | None = setting(
        checks.text("values of the status, separated by commas"),
        "values of the status that mean cancelled, separated by commas; if not set, words and related columns decide",
        "CANCELLED,RECHAZADO",
        default=None,
    )
    currency: str | None = setting(
        _COLUMN,
        "column with the currency, or `none`; detected if not set",
        "currency",
        default=None,
        asks="Which column of raw.orders has the currency?",
        holds_up=("bi.orders.currency", "bi.revenue_by_day.currency"),
    )
    lines: str | None = setting(
        checks.text("the name of a child table of raw.orders"),
        "table of `raw` with the lines of the orders; detected if not set",
        "orders__lines",
        default=None,
        asks="Which table has the lines of the orders?",
        holds_up=_OF_LINES,
    )
    line_kinds: str | None = setting(
        checks.table(*get_args(LineKind)),
        "which rows of the lines are products: `type: promotion=no_product` is about the rows with that value of a "
        "column (a discount, shipping, a fee, a note), `parent_item_id: *=part` about those with any (parts of the row "
        "that it names); others are detected, or products",
        "type: promotion=no_product,parent_item_id: *=part",
        default=None,
        asks="Which rows of the lines are products, parts of another row, or no products (discounts, shipping, notes)?",
        holds_up=_OF_LINES,
    )
    line_product: str | None = setting(
        _LINE_COLUMN,
        "column of the lines with the product, an id or code; detected if not set",
        "sku",
        default=None,
        asks="Which column of the lines has the product?",
        holds_up=("bi.order_lines.product", "bi.top_products.product"),
    )
    line_product_name: str | None = setting(
        _LINE_COLUMN,
        "column of the lines with the name of the product; detected if not set",
        "name",
        default=None,
        asks="Which column of the lines has the name of the product?",
        holds_up=("bi.order_lines.product_name", "bi.top_products.product_name"),
    )
    line_quantity: str | None = setting(
        _LINE_COLUMN,
        "column of the lines with the pieces, or `one` where each line is one piece; detected if not set",
        "quantity",
        default=None,
        asks="Which column of the lines has the quantity? `one`: each line is one piece.",
        holds_up=("bi.order_lines.quantity", *_OF_LINE_AMOUNTS),
    )
    line_unit_price: str | None = setting(
        _LINE_COLUMN,
        "column of the lines with the price of a piece; detected if not set",
        "price",
        default=None,
        asks="Which column of the lines has the price of a piece?",
        holds_up=("bi.order_lines.unit_price", *_OF_LINE_AMOUNTS),
    )
    line_total: str | None = setting(
        _LINE_COLUMN,
        "column of the lines with their amount; detected if not set",
        "line_total",
        default=None,
        asks="Which column of the lines has what the line comes to?",
        holds_up=("bi.order_lines.line_total", *_OF_LINE_AMOUNTS),
    )
    line_discount: str | None = setting(
        _LINE_COLUMN,
        "column of the lines with a discount; detected if not set",
        "discount",
        default=None,
        asks="Which column of the lines has their discount?",
        holds_up=_OF_LINE_AMOUNTS,
    )
    line_discount_unit: DiscountUnit | None = setting(
        checks.choice(*get_args(DiscountUnit)),
        "how discounts of lines are written: `amount` of the line, `amount_each` of a piece, `fraction` (0.15), "
        "`percent` (15), or `included` in the amounts of the lines; as totals and values show if not set",
        "percent",
        default=None,
        asks="How is the discount of a line written, or do its price and amount have it already (included)?",
        holds_up=_OF_LINE_AMOUNTS,
    )


UNSET_COUNTRY: Final = (
    "phones with and without a country code differ until reconcile.country is set, such as PE"
)
"""Said where phones differ, and `ReconcileSettings.country` is not set."""


class ReconcileSettings(Section, prefix="reconcile."):
    """How to read the raw tables."""

    orders: OrderSettings = field(default_factory=OrderSettings)
    date_order: DateOrder | None = setting(
        checks.choice(*get_args(DateOrder)),
        "`day_first` or `month_first`, for dates like 03/04/2026; if not set, a column that proves neither is not read",
        "day_first",
        default=None,
        asks="Is 03/04/2026 the third of April (day_first) or the fourth of March (month_first)?",
        holds_up=(
            "bi.orders.ordered_at",
            "bi.customers.created_at",
            "bi.promotions.starts_at",
            "bi.promotions.expires_at",
        ),
    )
    timezone: str | None = setting(
        checks.time_zone,
        "time zone (IANA name) of days and months; UTC if not set, and times without an offset stay unproven",
        "Europe/Madrid",
        default=None,
        asks="Which time zone do you work in? Your days begin by its clock, and times without a zone are its times.",
        holds_up=(
            "bi.orders.ordered_date",
            "bi.revenue_by_day.ordered_date",
            "bi.revenue_by_price_list.month",
            "bi.promotion_uses.read_date",
        ),
    )
    country: str | None = setting(
        checks.country,
        "country (ISO 3166-1) of phone numbers without one; if not set, they stay unproven",
        "ES",
        default=None,
        asks="In which country are phone numbers without a calling code?",
    )
    erp_code_prefix: str | None = setting(
        checks.text("a prefix"),
        "prefix of codes that only the ERP's file or only the platform writes; `as_written`: there is none",
        "C-",
        default=None,
        asks="Codes are equal but for a prefix that one side does not write. Which prefix can be ignored?",
        holds_up=("the match with the ERP by its codes",),
    )
    erp_code_zeros: CodeZeros | None = setting(
        checks.choice(*get_args(CodeZeros)),
        "whether `000006` in the ERP's file and `6` on the platform are one code (`ignore`) or two (`count`)",
        "ignore",
        default=None,
        asks="Codes are equal but for zeros in front. Are they the same codes?",
        holds_up=("the match with the ERP by its codes",),
    )


class WarehouseSettings(Section, prefix="warehouse."):
    """Where the tables go. `path` is absolute."""

    path: Path = setting(
        checks.file,
        "file of the warehouse, in a folder that exists",
        default=Path("warehouse.duckdb"),
    )
    keep: int = setting(
        checks.whole_number(0, 366),
        "earlier versions of that file to keep beside it, for `orderbridge diff`; each takes its whole size",
        default=0,
    )
    destination: str | None = setting(
        checks.text("the name of a dlt destination"),
        "dlt destination that gets a copy of each published version; its address is a setting of dlt",
        "postgres",
        default=None,
    )
    destination_dataset: str = setting(
        checks.dataset, "prefix of the names of its datasets", default="orderbridge"
    )


class LedgerSettings(Section, prefix="ledger."):
    """Where the ledger is: an SQLite file."""

    path: Path | None = setting(
        checks.file,
        "file of the ledger: every write and its outcome; if not set, next to the warehouse",
        "ledger.sqlite",
        default=None,
    )


class FileSettings(Section, prefix="files."):
    """The exception from the rule for folders of private files (SECURITY.md)."""

    shared_folder: Path | None = setting(
        checks.folder,
        "folder whose other writers are trusted, with all in it: a team's, or a mount that shows no owners; for a "
        "`.dlt` in it, set the variable",
        "/srv/team",
        default=None,
    )


class NotifySettings(Section, prefix="notify."):
    """Who is notified how a run ended."""

    url: Secret | None = setting(
        checks.webhook,
        "webhook (Slack, Teams …) that `run`, and an `import` without a terminal, posts its summary to",
        "https://…",
        default=None,
        is_secret=True,
    )
    on: NotifyOn = setting(
        checks.choice(*get_args(NotifyOn)),
        "`always`, or `problems`: nothing is posted about a run or an import that leaves a person nothing to do",
        default="always",
    )


SECTIONS: Final = tuple(dict.fromkeys(one.section for one in SETTINGS.values()))


@cache
def settings_of(section: str) -> tuple[Setting, ...]:
    """The settings of a section, in the table's order."""
    return tuple(one for one in SETTINGS.values() if one.section == section)


def _check_host(prefix: str, base_url: str, environment: Environment, named_by: str) -> None:
    labels = (urlsplit(base_url).hostname or "").split(".")
    claimed = {HOST_LABELS[label] for label in labels if label in HOST_LABELS}
    if claimed and claimed != {environment}:
        raise UsageError(
            f"{named(prefix + named_by)} is for {environment}, but the host in {named(prefix + 'base_url')} "
            f"has {min(claimed - {environment})} in its name",
            "Use a host and a key of one environment.",
        )
