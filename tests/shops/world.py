"""Small shops whose truth is known: what flows in is a seed, what flows out is rows of the platform and what they mean.

A shop draws purchases in plain Python, writes them in the shape of a public system (rows of GET /orders) and computes
the truth from the same purchases, never from the rows. `Answers` is what the owner would say if asked: a field is a
path with dots (`customer.id`; a number is a position, as in `partner_id.0`; `[]` is each value of an array), and a
formula has its fields in braces, where a field with `[]` is the sum of its values.
"""

from __future__ import annotations

import calendar
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Literal
from zoneinfo import ZoneInfo

Status = Literal["sale", "open", "cancelled", "refunded", "test"]
Row = dict[str, Any]

CENT = Decimal("0.01")
ZERO = Decimal(0)
_FIRST, _DAYS = date(2025, 1, 3), 360


@dataclass(frozen=True)
class Product:
    """What is sold; `price` is that of one unit, with or without tax as the shop says."""

    id: int
    sku: str
    name: str
    price: Decimal


@dataclass(frozen=True)
class Item:
    """What is bought of one product; `discount` is off the whole line."""

    product: Product
    quantity: Decimal
    percent: int
    discount: Decimal

    @property
    def full(self) -> Decimal:
        """The line before its discount."""
        return self.product.price * self.quantity

    @property
    def revenue(self) -> Decimal:
        """The line after its discount."""
        return self.full - self.discount


@dataclass(frozen=True)
class Purchase:
    """What happened: `buyer` is a position among the customers (past their end: not listed; None: a guest)."""

    n: int
    buyer: int | None
    at: datetime
    state: str
    items: tuple[Item, ...]
    shipping: Decimal

    @property
    def full(self) -> Decimal:
        """All lines before discounts."""
        return sum((item.full for item in self.items), ZERO)

    @property
    def goods(self) -> Decimal:
        """All lines after discounts."""
        return sum((item.revenue for item in self.items), ZERO)


@dataclass(frozen=True)
class Line:
    """The truth of a line: its product as the rows name it, and its revenue after the line's discounts."""

    product: str
    name: str
    quantity: Decimal
    revenue: Decimal


@dataclass(frozen=True)
class Order:
    """The truth of an order.

    Attributes:
        key: its id, as the field of `Answers.key` has it.
        customer: what the field of `Answers.customer` has, as text; None for a guest.
        customer_id: the platform's id of that customer; None if there is none, or none that is listed.
        day: of the purchase, in the zone of the shop; None if it was never made (a cart).
        total: what the customer pays in `currency`, refunds not taken off.
    """

    key: str
    customer: str | None
    customer_id: int | None
    day: date | None
    total: Decimal
    currency: str
    status: Status
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class By:
    """A field that tells states apart, by its value as text; `*` is any value but null, false and empty text."""

    field: str
    classes: Mapping[str, Status]


@dataclass(frozen=True)
class LineAnswers:
    """What the owner says of the lines; the fields are those of a line.

    Attributes:
        at: the array of lines.
        quantity: None if each row is one unit; rows of the same product are then one line of the truth.
        revenue: a formula, in units of `Answers.unit`.
        skip: field and value of rows that are no line (`*`: any value).
    """

    at: str
    product: str
    name: str
    quantity: str | None
    revenue: str
    skip: tuple[str, str] | None = None


@dataclass(frozen=True)
class Answers:
    """What the owner of the shop says, if asked.

    Attributes:
        key: the field with the order's id.
        customer: the field that names the customer, and `customer_is`: the field of GET /customers it equals.
        instant: the field with the time of the purchase.
        written: how it is written: with an `offset` (or as a moment since 1970), without one in `utc`, or without one
            in the shop's `local` time.
        form: its form, if it is not that of ISO 8601.
        total: a formula; None if the system has no total and it is that of the lines.
        total_is: whether `total` has tax in it; `unit` is what one of its figures is worth.
        currency: the field with the currency; None if there is one currency alone.
        status: the fields that tell states apart: the first that has the value decides; without any, all are sales.
        guest: what `customer` has for a guest, if it is not null or absent.
    """

    key: str
    customer: str
    customer_is: Literal["id", "erpCode", "email"]
    instant: str
    written: Literal["offset", "utc", "local"]
    total: str | None
    total_is: Literal["gross", "net"]
    status: tuple[By, ...]
    lines: LineAnswers | None
    currency: str | None = None
    unit: Decimal = Decimal(1)
    form: str = "ISO"
    guest: str | None = None


@dataclass(frozen=True)
class Shop:
    """A shop: rows as the platform gives them, and their truth. Amounts of the truth are compared within `near`."""

    name: str
    zone: str
    orders: list[Row]
    customers: list[Row]
    truth: tuple[Order, ...]
    answers: Answers
    notes: tuple[str, ...] = ()
    near: Decimal = Decimal("0.005")

    def revenue_by_month(self) -> dict[tuple[str, str], Decimal]:
        """The totals of sales by month (YYYY-MM) and currency."""
        revenue: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
        for order in self.truth:
            if order.status == "sale" and order.day:
                revenue[f"{order.day:%Y-%m}", order.currency] += order.total
        return dict(sorted(revenue.items()))

    def top_products(self, count: int = 10) -> list[tuple[str, str, Decimal, Decimal]]:
        """Product, currency, quantity and revenue of sold lines, by falling revenue."""
        sold: dict[tuple[str, str], list[Decimal]] = defaultdict(lambda: [ZERO, ZERO])
        for order in self.truth:
            for line in order.lines if order.status == "sale" else ():
                figures = sold[line.product, order.currency]
                figures[0] += line.quantity
                figures[1] += line.revenue
        ranked = sorted(sold.items(), key=lambda entry: (-entry[1][1], entry[0]))
        return [(*key, quantity, revenue) for key, (quantity, revenue) in ranked[:count]]


def cents(amount: Decimal) -> Decimal:
    """The amount, rounded half up to hundredths."""
    return amount.quantize(CENT, ROUND_HALF_UP)


def minor(amount: Decimal) -> int:
    """The amount in hundredths."""
    return int(cents(amount) * 100)


def text(amount: Decimal, places: int = 2) -> str:
    """The amount as text."""
    return f"{amount:.{places}f}"


def hexadecimal(*of: object, digits: int = 24) -> str:
    """An id of hexadecimal digits, always the same for the same values."""
    return f"{random.Random(repr(of)).getrandbits(digits * 4):0{digits}x}"


def uuid(*of: object) -> str:
    """An id in the form of a UUID, always the same for the same values."""
    digits = hexadecimal(*of, digits=32)
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def catalogue(names: Mapping[str, str], sku: str, first: int = 1) -> list[Product]:
    """Products from names and prices; `sku` is a format of their number."""
    return [
        Product(first + n, sku.format(n + 1), name, Decimal(price))
        for n, (name, price) in enumerate(names.items())
    ]


def people(
    seed: int,
    count: int,
    first: int = 1,
    code: Callable[[int], str] = "{:05d}".format,
    names: Sequence[tuple[str, str]] | None = None,
) -> list[Row]:
    """Customers as GET /customers gives them: ids count up from `first`, `code` makes the ERP's code of a position."""
    draw = random.Random(f"people {seed}")
    rows: list[Row] = []
    for n in range(count):
        given, family = draw.choice(names or _NAMES)
        family = f"{family} {draw.choice(names or _NAMES)[1]}"
        row: Row = {
            "id": first + n,
            "firstName": given,
            "lastName": family,
            "email": f"buyer{first + n}@example.com",
            "createdAt": f"{date(2024, 1, 2) + timedelta(days=n * 3)}T15:{n % 60:02d}:00Z",
        }
        if code(n):
            row["erpCode"] = code(n)
        if draw.random() < 0.8:
            row["phone"] = f"+51 9{draw.randrange(10**8):08d}"
        if draw.random() < 0.4:
            number, street = (
                draw.randrange(10**10, 2 * 10**10),
                f"Av. Central {draw.randrange(900)}",
            )
            row["documents"] = [
                {
                    "number": f"{number}",
                    "fiscalName": f"{given} {family}",
                    "fiscalAddress": street,
                    "isDefault": True,
                    "forTaxes": True,
                }
            ]
        rows.append(row)
    return rows


def purchases(
    seed: int,
    count: int,
    zone: str,
    products: Sequence[Product],
    states: Mapping[str, int],
    *,
    customers: int,
    guests: float = 0,
    strangers: float = 0,
    discounted: float = 0.3,
    shipping: Sequence[str] = ("0", "5.90", "9.90"),
    hours: Sequence[int] = range(7, 24),
) -> list[Purchase]:
    """Purchases of most of a year in their order, each state at least once; every eighth lies at an edge of a month."""
    draw = random.Random(f"purchases {seed}")
    given = [*states, *draw.choices([*states], [*states.values()], k=count - len(states))]
    draw.shuffle(given)
    moments = sorted(_moment(draw, ZoneInfo(zone), hours) for _ in range(count))
    made = []
    for n, (at, state) in enumerate(zip(moments, given, strict=True)):
        buyer: int | None = int(draw.random() ** 1.5 * customers)
        chance = draw.random()
        if chance < guests:
            buyer = None
        elif chance < guests + strangers:
            buyer = customers + n
        chosen = draw.sample(range(len(products)), draw.choice((1, 1, 2, 2, 3, 4)))
        items = tuple(_item(draw, products[k], discounted) for k in chosen)
        made.append(Purchase(n, buyer, at, state, items, Decimal(draw.choice(shipping))))
    return made


def lines_of(
    items: Sequence[Item],
    product: Callable[[Product], str] = lambda product: product.sku,
    revenue: Callable[[Item], Decimal] = lambda item: item.revenue,
) -> tuple[Line, ...]:
    """The truth of lines."""
    return tuple(
        Line(product(item.product), item.product.name, item.quantity, revenue(item))
        for item in items
    )


def listed(customers: Sequence[Row], buyer: int | None) -> int | None:
    """The platform's id of a buyer; None for a guest and for one that is not listed."""
    return customers[buyer]["id"] if buyer is not None and buyer < len(customers) else None


def _moment(draw: random.Random, zone: ZoneInfo, hours: Sequence[int]) -> datetime:
    day = _FIRST + timedelta(days=draw.randrange(_DAYS))
    hour = draw.choice(hours)
    if draw.random() < 0.125:
        last = calendar.monthrange(day.year, day.month)[1]
        day, hour = (day.replace(day=1), hours[0]) if hours[0] == 0 else (day.replace(day=last), 23)
    elif draw.random() < 0.2:
        hour = hours[-1]
    minute, second = draw.randrange(60), draw.randrange(60)
    return datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=zone)


def _item(draw: random.Random, product: Product, discounted: float) -> Item:
    quantity = Decimal(draw.choice((1, 1, 1, 2, 2, 3, 4, 6)))
    percent = draw.choice((5, 10, 15, 20, 25)) if draw.random() < discounted else 0
    return Item(product, quantity, percent, cents(product.price * quantity * percent / 100))


_NAMES = (
    ("Lucía", "Quispe"), ("Mateo", "Rojas"), ("Inés", "Vargas"), ("Bruno", "Silva"), ("Ana", "Torres"),
    ("Tomás", "Núñez"), ("Carla", "Mendes"), ("Noé", "Ibáñez"), ("Sofía", "Peña"), ("Iván", "Castro"),
    ("Julia", "Araújo"), ("Hugo", "Ferreira"), ("Elena", "Weiss"), ("Marco", "Conti"), ("Zoe", "Martin"),
)  # fmt: skip
