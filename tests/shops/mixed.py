"""Shops that no system made: their traits are drawn at random, and their truth is known.

In: a seed. Out: a shop, and what its owner answers to each question. A trait writes some fields of an order, as some
shop was seen to write them; names are those that the rules know, and others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from tests.shops.world import (
    ZERO,
    Answers,
    Item,
    Order,
    Product,
    Purchase,
    Row,
    Shop,
    Status,
    catalogue,
    cents,
    lines_of,
    listed,
    minor,
    people,
    purchases,
    text,
)

CUSTOMERS: Final = 30
ORDERS: Final = 80
_NAMES: Final = {
    "Café molido": "18.50",
    "Té verde": "9.90",
    "Cacao en polvo": "24.75",
    "Molinillo": "149.00",
    "Taza esmaltada": "12.30",
    "Filtro de papel": "6.45",
}
_CENT: Final = Decimal("0.01")
"""What two ways of rounding a discount differ by."""
_TAX: Final = Decimal("0.18")
_ONE: Final = Decimal(1)
_STATUSES: Final[Mapping[str, Mapping[str, Status]]] = {
    "english": {"pending": "open", "completed": "sale", "cancelled": "cancelled", "refunded": "refunded"},
    "german": {"offen": "open", "bezahlt": "sale", "storniert": "cancelled", "erstattet": "refunded"},
    "spanish": {"Borrador": "open", "Entregado": "sale", "Anulado": "cancelled", "Devuelto": "refunded"},
    "numbers": {"10": "open", "20": "sale", "90": "cancelled", "95": "refunded"},
    "letters": {"P": "open", "F": "sale", "A": "cancelled", "D": "refunded"},
    "own": {"verde": "sale", "amarillo": "open", "rojo": "cancelled", "gris": "refunded"},
}  # fmt: skip
"""The classes of the values of a status, by the language that they are in. Numbers, letters and colours say nothing."""


class Part(NamedTuple):
    """Some fields of an order, and what the owner answers about them."""

    write: Callable[[Purchase], Row]
    answers: Mapping[str, str]


class Discount(NamedTuple):
    """How the discount of a line is written.

    Attributes:
        revenue: what a line comes to.
        price: of one piece, as it is written.
        fields: of the line.
        answers: about the discount.
    """

    revenue: Callable[[Item], Decimal]
    price: Callable[[Item], Decimal]
    fields: Callable[[Item], Row]
    answers: Mapping[str, str]


class Beside(NamedTuple):
    """Lines beside those of products.

    Attributes:
        items: of an order, each with its kind.
        kind: the column that says of what kind a line is; empty: none says it.
        are_sets: some products are followed by lines of their parts.
        answers: about them.
    """

    items: Callable[[Purchase], list[tuple[str, Item]]]
    kind: str
    are_sets: bool
    answers: Mapping[str, str]

    def amount(self, bought: Purchase, *, has_shipping: bool) -> Decimal:
        """What they add to a total, which may have the shipping anyway."""
        counted = [
            item for of, item in self.items(bought) if not (has_shipping and of == "shipping")
        ]
        return sum((item.revenue for item in counted), ZERO)


@dataclass
class Mixed:
    """The draw of a shop, and its traits by name, which a problem names."""

    seed: int
    draw: random.Random = field(init=False)
    traits: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.draw = random.Random(f"mixed {self.seed}")
        self.zone = self.one("zone", "America/Lima", "Europe/Madrid", "Asia/Tokyo", "UTC")

    def one(self, trait: str, *values: str) -> str:
        """Draws the value of a trait."""
        self.traits[trait] = self.draw.choice(values)
        return self.traits[trait]


def mixed_shop(seed: int) -> tuple[Shop, dict[str, str], Mapping[str, str]]:
    """The shop of a seed, its owner's answers by question, and its traits."""
    mixed = Mixed(seed)
    first = mixed.draw.choice((1, 1001, 6_500_000_001))
    code = mixed.draw.choice(("C{:04d}", "{:06d}", "KD-{:03d}")).format
    customers = people(seed, CUSTOMERS, first, lambda n: code(n + 1))
    products = catalogue(_NAMES, "A-{:03d}", first=501)
    status, classes = _status(mixed)
    money, unit = _money(mixed)
    discount = _discount(mixed, money)
    beside = _beside(mixed)
    total, total_of = _total(mixed, money, discount, beside)
    refunds, share_back = _refunds(mixed, money, total_of)
    others, currency = _others(mixed)
    tests, is_test = _tests(mixed)
    parts = [
        _customer(mixed, customers),
        _time(mixed),
        status,
        total,
        _lines(mixed, money, discount, beside),
        refunds,
        others,
        tests,
    ]
    has_returns = mixed.one("returns", "no", "no", "yes") == "yes"
    answers: dict[str, str] = {"order_total_unit": unit}
    rows: list[Row] = []
    truth: list[Order] = []
    for part in parts:
        answers |= part.answers
    for bought in purchases(
        seed,
        ORDERS,
        mixed.zone,
        products,
        dict.fromkeys(classes, 2) | {next(one for one in classes if classes[one] == "sale"): 8},
        customers=CUSTOMERS,
        guests=mixed.draw.choice((0, 0, 0.1)),
        strangers=mixed.draw.choice((0, 0.03)),
    ):
        if has_returns and bought.n % 17 == 7:
            bought = _returned(bought)  # of an order before
        row: Row = {"id": f"{seed % 7 + 1}{bought.n:05d}"}
        for part in parts:
            row |= part.write(bought)
        rows.append(row)
        truth.append(
            Order(
                key=row["id"],
                customer=None if bought.buyer is None else f"{bought.buyer}",
                customer_id=listed(customers, bought.buyer),
                day=bought.at.date(),
                total=total_of(bought),
                currency=currency,
                status=(
                    "test"
                    if is_test(bought)
                    else _after_refund(classes[bought.state], share_back(bought), total_of(bought))
                ),
                lines=lines_of(bought.items, revenue=discount.revenue),
            )
        )
    shop = Shop(f"mixed {seed}", mixed.zone, rows, customers, tuple(truth), _KEY, near=_CENT)
    return shop, answers, mixed.traits


_KEY: Final = Answers("id", "", "id", "", "offset", None, "gross", (), None)
"""Of the answers of a shop, the judge needs the key alone; the owner's are settings."""


def _customer(mixed: Mixed, customers: list[Row]) -> Part:
    """By id, the ERP's code or e-mail, in a column or in an object; beside it the seller, whose ids are small too."""
    kind = mixed.one(
        "customer", "id", "code", "nested id", "nested code", "other id", "other code", "email"
    )
    if kind == "email":
        of_buyer: dict[int | None, Any] = {n: row["email"] for n, row in enumerate(customers)}
        of_buyer[None] = None
        return Part(
            lambda bought: {
                "customer_email": of_buyer.get(bought.buyer, f"x{bought.n}@shop.example")
            },
            {"order_customer_id": "customer_email"},
        )
    is_code = kind.endswith("code")
    column = {
        "id": "customer_id",
        "code": "customer_code",
        "other id": "besteller",
        "other code": "tercero",
        "nested id": "customer__id",
        "nested code": "customer__code",
    }[kind]

    def named(bought: Purchase) -> Any:
        if bought.buyer is None:
            return None
        if bought.buyer >= CUSTOMERS:
            return f"X{bought.n}" if is_code else 987_000_000_000 + bought.n
        return customers[bought.buyer]["erpCode" if is_code else "id"]

    def write(bought: Purchase) -> Row:
        value = named(bought)
        if not kind.startswith("nested"):
            return {column: value}
        return {"customer": None if value is None else {column.partition("__")[2]: value}}

    return Part(
        write,
        {"order_customer_id": column, "order_customer_notation": "codes" if is_code else "ids"},
    )


def _time(mixed: Mixed) -> Part:
    """The time of the purchase, and a later one of a change."""
    form = mixed.one("time", "offset", "z", "local", "utc", "day", "midnight", "epoch", "day first")
    name = mixed.one("time's name", "created_at", "order_date", "fecha", "gekauft")

    def of(at: datetime) -> Any:
        utc = at.astimezone(UTC)
        written: dict[str, Any] = {
            "offset": at.isoformat(),
            "z": f"{utc:%Y-%m-%dT%H:%M:%SZ}",
            "local": f"{at:%Y-%m-%d %H:%M:%S}",
            "utc": f"{utc:%Y-%m-%d %H:%M:%S}",
            "day": f"{at:%Y-%m-%d}",
            "midnight": f"{at:%Y-%m-%d}T00:00:00Z",
            "epoch": int(utc.timestamp()),
            "day first": f"{at:%d/%m/%Y %H:%M}",
        }
        return written[form]

    def write(bought: Purchase) -> Row:
        return {name: of(bought.at), "updated_at": of(bought.at + timedelta(days=bought.n % 9))}

    clock = "utc" if form == "utc" else "local"
    return Part(write, {"order_ordered_at": name, "order_clock": clock, "date_order": "day_first"})


def _status(mixed: Mixed) -> tuple[Part, Mapping[str, Status]]:
    """A column of words, codes or numbers; none; or a column of its own for what was cancelled or is a test."""
    kind = mixed.one("status", *_STATUSES, "none", "flag", "time", "payment", "two columns")
    name = mixed.one("status's name", "status", "estado", "order_status", "fase")
    if kind == "none":
        return Part(lambda _: {}, {}), {"sold": "sale"}
    if kind in ("flag", "time"):
        column = "cancelled" if kind == "flag" else "cancelled_at"
        both: dict[str, Status] = {"sold": "sale", "lost": "cancelled"}

        def write(bought: Purchase) -> Row:
            is_lost = bought.state == "lost"
            at = f"{bought.at + timedelta(hours=3):%Y-%m-%dT%H:%M:%SZ}"
            return {column: is_lost if kind == "flag" else at if is_lost else None}

        return Part(write, {}), both
    if kind == "two columns":
        return _two_statuses()
    if kind == "payment":
        name = "payment_status"
        kind = "english"
    classes = _STATUSES[kind]
    table = ",".join(f"{value}={of}" for value, of in classes.items())

    def as_written(bought: Purchase) -> Row:
        return {name: int(bought.state) if kind == "numbers" else bought.state}

    return Part(as_written, {"order_status": name, "order_statuses": table}), classes


def _two_statuses() -> tuple[Part, Mapping[str, Status]]:
    """A status that says how far the order is, beside that of its payment: what is not paid is no sale yet."""
    written = {
        "paid": ("processing", "paid"),
        "due": ("processing", "pending"),
        "gone": ("cancelled", "voided"),
    }

    def write(bought: Purchase) -> Row:
        status, payment = written[bought.state]
        return {"status": status, "payment_status": payment}

    table = "processing=sale,cancelled=cancelled,payment_status: pending=open"
    answers = {"order_status": "status", "order_statuses": table}
    return Part(write, answers), {"paid": "sale", "due": "open", "gone": "cancelled"}


def _money(mixed: Mixed) -> tuple[Callable[[Decimal], Any], str]:
    """How amounts are written, and their unit."""
    notations: dict[str, Callable[[Decimal], Any]] = {
        "numbers": float,
        "texts": text,
        "comma": _with_comma,
        "grouped": "{:,.2f}".format,
        "cents": minor,
    }
    notation = mixed.one("money", *notations)
    return notations[notation], "cents" if notation == "cents" else "units"


def _with_comma(amount: Decimal) -> str:
    return f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))


def _discount(mixed: Mixed, money: Callable[[Decimal], Any]) -> Discount:
    """What is taken off a line: per cent, a share, an amount, one of each piece, an array; or its price is lower."""
    kind = mixed.one("discount", "none", "percent", "share", "amount", "each", "array", "included")

    def of_each(item: Item) -> Decimal:
        return cents(item.product.price * item.percent / 100)

    def less_each(item: Item) -> Decimal:
        return item.quantity * (item.product.price - of_each(item))

    def full(item: Item) -> Decimal:
        return item.full

    def less(item: Item) -> Decimal:
        return item.revenue

    def price(item: Item) -> Decimal:
        return item.product.price

    def lower(item: Item) -> Decimal:
        return item.product.price - of_each(item)

    fields: dict[str, tuple[str, str, Callable[[Item], Any]]] = {
        "percent": ("discount_percent", "percent", lambda item: float(item.percent)),
        "share": ("discount", "fraction", lambda item: item.percent / 100),
        "amount": ("discount_amount", "amount", lambda item: money(item.discount)),
        "each": ("unit_discount", "amount_each", lambda item: money(of_each(item))),
        "included": ("discount_percent", "included", lambda item: float(item.percent)),
    }
    if kind == "none":
        return Discount(full, price, lambda _: {}, {})
    if kind == "array":
        column = "discount_allocations__amount"
        return Discount(
            less,
            price,
            lambda item: {
                "discount_allocations": [{"amount": money(item.discount)}] if item.percent else []
            },
            {"order_line_discount": column, "order_line_discount_unit": "amount"},
        )
    column, unit, value = fields[kind]
    answers = {"order_line_discount": column, "order_line_discount_unit": unit}
    made = {"each": less_each, "included": less_each}.get(kind, less)
    return Discount(
        made, lower if kind == "included" else price, lambda item: {column: value(item)}, answers
    )


def _total(
    mixed: Mixed, money: Callable[[Decimal], Any], discount: Discount, beside: Beside
) -> tuple[Part, Callable[[Purchase], Decimal]]:
    """The total, with tax and shipping or without; or no column has it."""
    holds = mixed.one("total", "goods", "goods and shipping", "gross", "lines")
    name = mixed.one("total's name", "total", "grand_total", "importe_total", "zu_zahlen")

    def goods(bought: Purchase) -> Decimal:
        return sum((discount.revenue(item) for item in bought.items), ZERO)

    def tax(bought: Purchase) -> Decimal:
        return cents(goods(bought) * _TAX)

    def total(bought: Purchase) -> Decimal:
        of: dict[str, Decimal] = {
            "goods": goods(bought),
            "lines": goods(bought),
            "goods and shipping": goods(bought) + bought.shipping,
            "gross": goods(bought) + tax(bought) + bought.shipping,
        }
        has_shipping = holds in ("goods and shipping", "gross")
        return of[holds] + beside.amount(bought, has_shipping=has_shipping)

    def write(bought: Purchase) -> Row:
        if holds == "lines":
            return {}
        row = {name: money(total(bought)), "subtotal": money(goods(bought))}
        if holds == "gross":
            row["total_tax"] = money(tax(bought))
        return row | ({} if holds == "goods" else {"shipping": money(bought.shipping)})

    column = "sum_of_lines" if holds == "lines" else name
    return Part(write, {"order_total": column}), total


def _refunds(
    mixed: Mixed, money: Callable[[Decimal], Any], total: Callable[[Purchase], Decimal]
) -> tuple[Part, Callable[[Purchase], Decimal]]:
    """Nothing about refunds; or an array of them: of some orders a part goes back, of some everything.

    A refund has an amount, or lines with amounts.
    """
    kind = mixed.one("refunds", "none", "none", "array", "array of lines", "column")
    shares = {3: Decimal(1), 6: Decimal("0.4")}

    def share(bought: Purchase) -> Decimal:
        is_none = kind == "none" or total(bought) <= 0
        return ZERO if is_none else shares.get(bought.n % 11, ZERO)

    def write(bought: Purchase) -> Row:
        back = cents(total(bought) * share(bought))
        if kind == "array":
            return {"refunds": [{"id": bought.n, "amount": money(back)}] if back else []}
        if kind == "array of lines":
            half = cents(back / 2)
            lines = [{"quantity": 1, "subtotal": money(one)} for one in (half, back - half)]
            return {"refunds": [{"id": bought.n, "refund_line_items": lines}] if back else []}
        return {} if kind == "none" else {"total_refunded": money(back)}

    return Part(write, {}), share


def _after_refund(status: Status, share: Decimal, total: Decimal) -> Status:
    """What an order is of which a share went back, or that is a return itself."""
    return "refunded" if status == "sale" and (share == 1 or total < 0) else status


def _returned(bought: Purchase) -> Purchase:
    """The goods of a purchase that come back: an order of its own, with negative quantities."""
    items = tuple(
        replace(item, quantity=-item.quantity, discount=-item.discount) for item in bought.items
    )
    return replace(bought, items=items, shipping=ZERO)


def _tests(mixed: Mixed) -> tuple[Part, Callable[[Purchase], bool]]:
    """No test orders; or some, by a column of their own or by a tag."""
    kind = mixed.one("tests", "none", "none", "flag", "tag")

    def is_test(bought: Purchase) -> bool:
        return kind != "none" and bought.n % 13 == 5

    def write(bought: Purchase) -> Row:
        if kind == "flag":
            return {"test": is_test(bought)}
        tags = ["web", *(["test_order"] if is_test(bought) else [])]
        return {"tags": tags} if kind == "tag" else {}

    return Part(write, {}), is_test


def _beside(mixed: Mixed) -> Beside:
    """Nothing beside the products; or vouchers, shipping or deposits as lines; or sets with their parts."""
    what = mixed.one(
        "beside", "none", "none", "voucher", "coupon", "gift card", "shipping", "deposit", "set"
    )
    kind = mixed.one("kind's name", "type", "item_type", "tipo", "none").replace("none", "")
    if what in ("shipping", "deposit"):
        kind = kind or "type"
    if what in ("none", "set"):
        answers = {"order_line_kinds": "parent_item_id: *=part"} if what == "set" else {}
        return Beside(lambda _: [], "", what == "set", answers)
    names = {"voucher": "Gutschein", "coupon": "Cupón", "gift card": "Tarjeta regalo"}

    def items(bought: Purchase) -> list[tuple[str, Item]]:
        price = Decimal(0)
        pieces = _ONE
        if what == "shipping":
            price = bought.shipping
        elif what == "deposit":
            price = Decimal("0.25")
            pieces = sum((item.quantity for item in bought.items), ZERO)
        elif bought.n % 5 == 2 and bought.goods > 10:
            price = Decimal("-5.00")
        product = Product(900, what.upper(), names.get(what, what), price)
        return [(what, Item(product, pieces, 0, ZERO))] if price else []

    row = f"{kind}: {what}" if kind else f"{{product}}: {what.upper()}"
    return Beside(items, kind, False, {"order_line_kinds": f"{row}=no_product"})


def _parts(item: Item) -> list[Item]:
    """The parts of a set: their prices are that of the set."""
    half = cents(item.product.price / 2)
    prices = (half, item.product.price - half)
    return [
        Item(Product(950 + k, f"P-{k}", f"Parte {k}", price), item.quantity, 0, ZERO)
        for k, price in enumerate(prices, 1)
    ]


def _lines(
    mixed: Mixed, money: Callable[[Decimal], Any], discount: Discount, beside: Beside
) -> Part:
    """An array of lines, with names that are known, and others."""
    at = mixed.one("lines", "line_items", "items", "detalle", "cesta")
    names = mixed.one("lines' names", "english", "spanish", "others")
    product, quantity, price = {
        "english": ("sku", "quantity", "unit_price"),
        "spanish": ("codigo", "cantidad", "precio"),
        "others": ("artnr", "stk", "epreis"),
    }[names]
    has_amount = mixed.one("lines' amount", "no", "yes") == "yes"

    def line(item: Item) -> Row:
        row: Row = {
            product: item.product.sku,
            "name": item.product.name,
            quantity: int(item.quantity),
            price: money(discount.price(item)),
            **discount.fields(item),
        }
        return row | ({"line_total": money(discount.revenue(item))} if has_amount else {})

    def write(bought: Purchase) -> Row:
        rows: list[Row] = []
        for item in bought.items:
            key = len(rows) + 1
            of_set = {"id": key, "parent_item_id": None} if beside.are_sets else {}
            of_kind = {beside.kind: "product"} if beside.kind else {}
            rows.append({**line(item), **of_kind, **of_set})
            for part in _parts(item) if beside.are_sets and bought.n % 3 == 0 else ():
                rows.append({**line(part), "id": len(rows) + 1, "parent_item_id": key})
        for kind, item in beside.items(bought):
            rows.append(line(item) | ({beside.kind: kind} if beside.kind else {}))
        return {at: rows}

    answers = {
        "order_lines": f"orders__{at}",
        "order_line_product": product,
        "order_line_product_name": "name",
        "order_line_quantity": quantity,
        "order_line_unit_price": price,
        **discount.answers,
        **{name: row.format(product=product) for name, row in beside.answers.items()},
    }
    if has_amount:
        answers |= {"order_line_total": "line_total", "order_line_discount_unit": "included"}
    return Part(write, answers)


def _others(mixed: Mixed) -> tuple[Part, str]:
    """Fields that are none of these: a region, the seller, a currency, which stands beside; empty: there is none.

    What the buyer saw, with a rate, is no currency of the total.
    """
    currency = mixed.one("currency", "none", "PEN", "EUR", "seen").replace("none", "")

    def write(bought: Purchase) -> Row:
        row: Row = {
            "number": 7000 + bought.n,
            "user_id": bought.n % 4 + 1,
            "address": {"state": ("LIM", "CUS")[bought.n % 2], "city": "Lima"},
        }
        if currency == "seen":
            seen = {"currency": "PEN", "currency_rate": "1.0000"}
            abroad = {"currency": "USD", "currency_rate": "3.7512"}
            return row | (abroad if bought.n % 9 == 4 else seen)
        return row | ({"currency": currency} if currency else {})

    if currency == "seen":
        return Part(write, {"order_currency": "none"}), ""
    return Part(write, {"order_currency": "currency"} if currency else {}), currency
