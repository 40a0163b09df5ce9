"""Realistic records, generated as JSON.

In: the configuration: seed, number of records, readings, and the day on which the sandbox starts. Out: the bytes of one
record at a time, with ascending ids. The same seed on the same day gives the same bytes.
"""

from __future__ import annotations

import random
import tomllib
from bisect import bisect_right
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import accumulate
from types import SimpleNamespace
from typing import Final

import msgspec

from orderbridge.sandbox.config import ZONE, SandboxConfig

_WORDS: Final = SimpleNamespace(
    **tomllib.loads(files("orderbridge.sandbox").joinpath("words.toml").read_text("utf-8"))
)
STATUSES: Final = ("PENDING", "CONFIRMED", "DISPATCHED", "DELIVERED", "CANCELLED")
PROMOTION_STATES: Final = (
    "inactive", "scheduled", "running", "expired", "exhausted", "running", "expired", "running", "expired", "inactive",
)  # fmt: skip
Record = dict[str, object]
FIRST_CUSTOMER: Final = 1001
UNNAMED: Final[Record] = {"priceListId": 1, "documents": []}
"""What a created customer has of the fields that its create leaves out."""
FIRST_ORDER: Final = 50_001
DAYS: Final = 730
"""Orders and new customers are spread over this many days, up to the day before `SandboxConfig.today`."""
_GROWTH: Final = 4.0
"""Sales of the last day, relative to those of the first."""
_SEASONS: Final = (0.8, 0.85, 0.95, 1.0, 1.05, 0.95, 1.1, 0.9, 0.95, 1.05, 1.25, 1.6)
"""Relative sales by month, January first."""
_WEEKDAYS: Final = (1.25, 1.15, 1.1, 1.1, 1.2, 0.6, 0.2)
"""Relative sales by weekday, Monday first."""
_MOMENTS: Final = 4096
_OPENING_H: Final = 8
_MINUTES_OPEN: Final = 15 * 60
"""Until late in the evening, which is the next day in UTC."""

_FORMATS: Final = {
    "iso_naive": "%Y-%m-%dT%H:%M:%S",
    "date_only": "%Y-%m-%d",
    "day_first": "%d/%m/%Y %H:%M",
    "month_first": "%m/%d/%Y %H:%M",
}

Generate = Callable[[int], bytes]
Chance = Callable[[], float]
encode: Final = msgspec.json.Encoder().encode


def platform_time(moment: datetime, form: str) -> str:
    """A time as text in a reading of `date_format`."""
    if form in _FORMATS:
        return moment.strftime(_FORMATS[form])
    if form in ("epoch_s", "epoch_ms"):
        return str(int(moment.timestamp() * (1000 if form == "epoch_ms" else 1)))
    return moment.isoformat(timespec="seconds")


def generators(config: SandboxConfig) -> dict[str, Generate]:
    """For each resource, the generator of its nth record; call with ascending n."""
    return {name: make(config) for name, make in GENERATORS.items()}


@cache
def _moments(today: date, form: str) -> list[str]:
    """Ascending times of sales until the day before `today`: more in season and on working days."""
    days = [today - timedelta(days=DAYS - n) for n in range(DAYS)]
    weights = accumulate(
        _GROWTH ** (n / DAYS) * _SEASONS[day.month - 1] * _WEEKDAYS[day.weekday()]
        for n, day in enumerate(days)
    )
    bounds = list(weights)
    times = []
    for n in range(_MOMENTS):
        day = days[bisect_right(bounds, (n + 0.5) * bounds[-1] / _MOMENTS)]
        times.append(_at(day, n * 2_654_435_761 % (_MINUTES_OPEN * 60)))
    return [platform_time(moment, form) for moment in sorted(times)]


def _at(day: date, second: int = 0) -> datetime:
    """A time of a day, `second` seconds after opening."""
    return datetime(day.year, day.month, day.day, _OPENING_H, tzinfo=ZONE) + timedelta(
        seconds=second
    )


def _chronological(config: SandboxConfig, count: int) -> Callable[[int], str]:
    """The creation time of the nth of `count` records; that of records added later is on the sandbox's day."""
    form = config.readings["date_format"]
    moments = _moments(config.today, form)
    today = platform_time(_at(config.today, -_OPENING_H * 3600), form)
    return lambda n: moments[n * _MOMENTS // count] if n < count else today


def _customers(config: SandboxConfig) -> Generate:
    draw = random.Random(f"{config.seed}:customers").random
    created_at = _chronological(config, config.customers)
    lists = max(config.price_lists, 1)

    def document(position: int, serial: int, name: str) -> Record:
        record: Record = {
            "number": f"{(serial * 7 + position * 13) % 89_999_999 + 10_000_000}"
            if position
            else f"20{serial:09d}",
            "fiscalName": f"{name} {_WORDS.last_names[serial % 20]}"
            if position
            else _WORDS.companies[serial % 4],
            "fiscalAddress": f"{_WORDS.streets[serial % 6]} {serial % 900 + 100}, {_WORDS.districts[serial % 5]}, "
            f"{_WORDS.towns[serial % 8]}, código postal {15_000 + serial % 900}",
        }
        if draw() < 0.8:
            record["email"] = (
                f"facturacion.electronica.{serial}@contabilidad.{_WORDS.domains[serial % 3]}.example.com"
            )
        return {**record, "isDefault": position == 0, "forTaxes": draw() < 0.6}

    def generate(n: int) -> bytes:
        serial = FIRST_CUSTOMER + n
        first, last = _WORDS.first_names[int(draw() * 20)], _WORDS.last_names[int(draw() * 20)]
        record: Record = {
            "id": serial,
            "firstName": first,
            "lastName": f"{last} {_WORDS.last_names[int(draw() * 20)]}",
        }
        if (chance := draw()) < 0.9:
            record["phone"] = f"+51 9{serial * 31 % 100_000_000:08d}" if chance < 0.85 else None
        if draw() < 0.93:
            record["email"] = (
                f"{_WORDS.mailboxes[serial % 4]}.{serial}@{_WORDS.domains[serial % 3]}.example.com"
            )
        if draw() < 0.6:
            record["loginCode"] = f"{serial:08d}"
        record["createdAt"] = created_at(n)
        if draw() < 0.8:
            # Some customers refer to a price list that is not active.
            record["priceListId"] = int(draw() * lists) + 1 if draw() < 0.98 else lists + 90
        if draw() < 0.9:
            record["erpCode"] = f"{serial:07d}"
        if draw() < 0.5:
            record["birthdate"] = (
                f"19{50 + serial % 50}-{serial % 12 + 1:02d}-{serial % 28 + 1:02d}"
            )
        if (chance := draw()) < 0.95:
            count = bisect_right((0.15, 0.75, 0.9), chance)
            record["documents"] = [
                document(position, serial, f"{first} {last}") for position in range(count)
            ]
        return encode(record)

    return generate


def _promotions(config: SandboxConfig) -> Generate:
    chance = random.Random(f"{config.seed}:promotions")
    form = config.readings["date_format"]

    def generate(n: int) -> bytes:
        state = PROMOTION_STATES[n % len(PROMOTION_STATES)]
        length = 21 + n * 11 % 60
        # days from today to the end; every second running promotion ends within a month
        end = {
            "scheduled": length + 9 + n * 7 % 90,
            "expired": -3 - n * 13 % 300,
            "inactive": -60 + n * 17 % 120,
        }.get(state, 4 + n * 7 % 25 if n % 2 else 33 + n * 7 % 60)
        start = (
            min(end - length, -5 - n % 20) if state in ("running", "exhausted") else end - length
        )
        limit = chance.randint(5, 500)
        used = (
            limit
            if state == "exhausted"
            else 0
            if state == "scheduled"
            else chance.randrange(limit)
        )
        record: Record = {
            "id": 301 + n,
            "name": f"{_WORDS.promotions[n % 4]} {_WORDS.towns[n % 8]} {n % 9 * 5 + 5} %",
            "useCount": used,
            "isActive": state != "inactive",
            "startDate": platform_time(_at(config.today + timedelta(days=start)), form),
            "expirationDate": platform_time(
                _at(config.today + timedelta(days=end), _MINUTES_OPEN * 60), form
            ),
        }
        if state == "exhausted" or chance.random() < 0.7:
            record["usageLimit"] = limit
        return encode(record)

    return generate


def _price_lists(config: SandboxConfig) -> Generate:
    chance = random.Random(f"{config.seed}:price_lists")
    types = config.readings["adjustment_types"]

    def generate(n: int) -> bytes:
        record: Record = {
            "id": str(n + 1),
            "name": f"Lista {('Básica', 'Mayorista', 'Región')[n % 3]} {n + 1}",
        }
        if n % 4:
            # Chains of up to four lists; the last list has a source that is not listed.
            record["sourcePriceListId"] = str(n)
        elif n and n + 4 >= config.price_lists:
            record["sourcePriceListId"] = str(900 + n)
        kind = {
            "none_only": "NONE",
            "percentage": "PERCENTAGE" if n % 2 else "NONE",
            "mixed": ("NONE", "PERCENTAGE", "FIXED_AMOUNT", "markup")[n % 4],
        }[types]
        record["adjustmentType"] = kind
        record["adjustmentValue"] = (
            "0" if kind == "NONE" else f"{chance.randint(-2000, 2000) / 100:.4f}"
        )
        return encode(record)

    return generate


def _orders(config: SandboxConfig) -> Generate:
    draw = random.Random(f"{config.seed}:orders").random
    ordered_at = _chronological(config, config.orders)
    shape, key = config.readings["order_shape"], config.readings["order_key"]
    customers = max(config.customers, 1)

    def generate(n: int) -> bytes:
        serial = FIRST_ORDER + n
        # Some orders refer to a customer that is not listed.
        buyer = FIRST_CUSTOMER + int(draw() * customers) if draw() < 0.98 else 900_000_000 + serial
        lines = [_order_line(draw, serial, position + 1) for position in range(int(draw() * 5) + 1)]
        record: Record = {
            key: f"ord_{serial:09d}",
            "number": serial,
            "status": _order_status(draw, is_recent=n >= config.orders * 0.9),
            "createdAt": ordered_at(n),
            "currency": "PEN",
            "total": round(sum(amount for _, amount in lines), 2),
        }
        if shape == "flat":
            return encode({**record, "customerId": buyer, "lineCount": len(lines)})
        record["customer"] = {"id": buyer, "erpCode": f"{buyer:07d}"}
        record["shipping"] = {"method": "delivery", "address": _address(serial)}
        if (has_notes := draw() < 0.2) or draw() < 0.5:
            record["notes"] = "Entregar por la mañana" if has_notes else None
        if shape == "wide":
            record |= {f"attribute{k:02d}": _attribute(k, serial) for k in range(1, 41)}
        return encode({**record, "lines": [line_record for line_record, _ in lines]})

    return generate


def _order_line(draw: Chance, serial: int, position: int) -> tuple[Record, float]:
    """A line of an order, and its amount."""
    quantity: float = int(draw() * 12) + 1
    price = int(draw() * 20_000) / 100 + 1
    product = int(draw() * 5)
    has_discount = draw() < 0.2
    if draw() >= 0.9:
        quantity += 0.5
    record: Record = {
        "position": position,
        "sku": f"{product:03d}-{serial % 977:04d}",
        "name": _WORDS.products[product],
        "quantity": quantity,
        "unitPrice": round(price, 2),
        "taxes": [{"name": "IGV", "rate": 0.18}],
    }
    if has_discount:
        record["discount"] = {"name": "Campaña", "rate": 0.05}
    return record, quantity * price


def _order_status(draw: Chance, *, is_recent: bool) -> str:
    """Most recent orders are not delivered yet."""
    if draw() < 0.06:
        return "CANCELLED"
    return STATUSES[int(draw() * 3)] if is_recent else "DELIVERED"


def _address(serial: int) -> Record:
    return {
        "line": f"{_WORDS.streets[serial % 6]} {serial % 900}",
        "divisions": {"level1": _WORDS.towns[serial % 8], "level2": _WORDS.towns[serial % 7]},
        "coordinates": [round(-12 - serial % 1000 / 1000, 3), round(-77 - serial % 997 / 1000, 3)],
    }


def _attribute(k: int, serial: int) -> object:
    value = serial * (k + 3) % 1009
    return (value, value / 8, f"valor {value}", True if value % 2 else None)[k % 4]


GENERATORS: Final[dict[str, Callable[[SandboxConfig], Generate]]] = {
    "customers": _customers,
    "promotions": _promotions,
    "price_lists": _price_lists,
    "orders": _orders,
}
"""What makes the generator of each resource."""
