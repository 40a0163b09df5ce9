"""A bakery's own Access database: German names, days and amounts as German text, credit notes among the orders.

`KdNr` is a number, so that it lost the zeros of the ERP's code; it lies where ids of other customers lie. `Storno` is
-1 for true. A credit note has the kind G, a negative sum and negative pieces. Bread is sold by weight too.
"""

from __future__ import annotations

from decimal import Decimal

from tests.shops.world import (
    Answers,
    By,
    Line,
    LineAnswers,
    Order,
    Row,
    Shop,
    Status,
    catalogue,
    cents,
    listed,
    people,
    purchases,
)

_PRODUCTS = catalogue(
    {
        "Bauernbrot": "4.80",
        "Roggenmischbrot": "5.20",
        "Butterbrezel": "1.90",
        "Apfelkuchen Blech": "38.00",
        "Vollkornbrötchen": "0.85",
        "Hochzeitstorte": "489.00",
    },
    "{}",
    first=1,
)
_STATES: dict[str, tuple[str, str, int, Status, int]] = {
    "ordered": ("A", "bestellt", 0, "open", 10),
    "delivered": ("A", "geliefert", 0, "sale", 30),
    "paid": ("A", "bezahlt", 0, "sale", 44),
    "cancelled": ("A", "bestellt", -1, "cancelled", 8),
    "credit note": ("G", "bezahlt", 0, "refunded", 6),
}
"""Kind, state, cancelled, what they mean, how often."""
_WEIGHED = 2
"""The first products are sold by weight too."""


def _german(amount: Decimal) -> str:
    return f"{cents(amount):,.2f}".translate(str.maketrans(",.", ".,"))


def shop() -> Shop:
    """A bakery in Bavaria that delivers to hotels."""
    customers = people(3801, 60, first=1, code=lambda n: f"{20 + n:05d}")
    rows: list[Row] = []
    truth = []
    weights = {state: of[4] for state, of in _STATES.items()}
    for bought in purchases(
        38,
        130,
        "Europe/Berlin",
        _PRODUCTS,
        weights,
        customers=60,
        guests=0.15,
        shipping=("0",),
        hours=range(4, 18),
    ):
        kind, state, storno, status, _ = _STATES[bought.state]
        sign = -1 if kind == "G" else 1
        positions: list[Row] = []
        lines = []
        total = Decimal(0)
        for k, item in enumerate(bought.items, 1):
            is_weighed = item.product.id <= _WEIGHED and bought.n % 3 == 0
            quantity = sign * (item.quantity - Decimal("0.25") if is_weighed else item.quantity)
            revenue = cents(item.product.price * quantity * (100 - item.percent) / 100)
            total += revenue
            positions.append(
                {
                    "Pos": k,
                    "ArtNr": 100 + item.product.id,
                    "Bezeichnung": item.product.name,
                    "Menge": f"{quantity}".replace(".", ","),
                    "Einheit": "kg" if is_weighed else "Stk",
                    "EPreis": _german(item.product.price),
                    "RabattProzent": item.percent,
                    "GPreis": _german(revenue),
                    "MwSt": 7,
                }
            )
            lines.append(Line(str(100 + item.product.id), item.product.name, quantity, revenue))
        customer_id = listed(customers, bought.buyer)
        number = None if bought.buyer is None else 20 + bought.buyer
        rows.append(
            {
                "AuftragsNr": 25001 + bought.n,
                "Belegart": kind,
                "KdNr": number,
                "Datum": f"{bought.at:%d.%m.%Y}",
                "Uhrzeit": f"{bought.at:%H:%M}",
                "Liefertag": f"{bought.at:%d.%m.%Y}",
                "Status": state,
                "Storno": storno,
                "Fahrer": bought.n % 3 + 1,
                "Bemerkung": "bitte vor 6 Uhr" if bought.n % 9 == 0 else None,
                "Summe": _german(total),
                "MwStBetrag": _german(total - total / Decimal("1.07")),
                "Positionen": positions,
            }
        )
        truth.append(
            Order(
                key=str(25001 + bought.n),
                customer=None if number is None else str(number),
                customer_id=customer_id,
                day=bought.at.date(),
                total=total,
                currency="EUR",
                status=status,
                lines=tuple(lines),
            )
        )
    return Shop(
        name="baeckerei",
        zone="Europe/Berlin",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="AuftragsNr",
            customer="KdNr",
            customer_is="erpCode",
            instant="Datum",
            written="local",
            form="day_first",
            total="{Summe}",
            total_is="gross",
            status=(
                By("Storno", {"-1": "cancelled"}),
                By("Belegart", {"G": "refunded"}),
                By("Status", {"bestellt": "open", "geliefert": "sale", "bezahlt": "sale"}),
            ),
            lines=LineAnswers(
                at="Positionen",
                product="ArtNr",
                name="Bezeichnung",
                quantity="Menge",
                revenue="{GPreis}",
            ),
        ),
        notes=("KdNr is the ERP's code without its zeros",),
    )
