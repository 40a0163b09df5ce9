"""A flat list of orders as an ERP of Spain dumps it: short names in capitals, text with decimal commas, no lines.

Dates are day/month/year with the time in a column of its own; the day of delivery and the net amount lie beside.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from .world import (
    Answers,
    By,
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
        "Palé de azulejo": "412.50",
        "Saco de mortero": "7.35",
        "Viga de pino 4 m": "61.20",
        "Pintura plástica 15 l": "38.90",
    },
    "{:05d}",
)
_STATES: dict[str, int] = {"P": 12, "S": 20, "F": 55, "A": 8, "D": 5}
_CLASSES: dict[str, Status] = {
    "P": "open",
    "S": "sale",
    "F": "sale",
    "A": "cancelled",
    "D": "refunded",
}


def shop() -> Shop:
    """A dealer in building materials: P pending, S served, F invoiced, A annulled, D returned."""
    customers = people(904, 40, first=2001, code="{:06d}".format)
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        4, 90, "Europe/Madrid", _PRODUCTS, _STATES, customers=40, strangers=0.03
    ):
        buyer = bought.buyer or 0
        net = bought.goods + bought.shipping
        tax = cents(net * Decimal("0.21"))
        rows.append(
            {
                "id": 50_000 + bought.n,
                "NUMPED": f"{bought.at.year}/{bought.n + 1:06d}",
                "SERIE": "A",
                "CODCLI": f"{buyer:06d}",
                "NOMCLI": f"CONSTRUCCIONES {buyer} SL",
                "CIF": f"B{41000000 + buyer * 37}",
                "PROVINCIA": ("SEVILLA", "CÁDIZ", "HUELVA")[buyer % 3],
                "FECPED": f"{bought.at:%d/%m/%Y}",
                "HORA": f"{bought.at:%H:%M}",
                "FECENT": f"{bought.at + timedelta(days=bought.n % 9 + 1):%d/%m/%Y}",
                "CODALM": 1,
                "CODVEN": bought.n % 5 + 1,
                "CODFPAGO": "030",
                "DTOPP": "0,00",
                "BASEIMP": _comma(net),
                "CUOTAIVA": _comma(tax),
                "TOTPED": _comma(net + tax),
                "DIVISA": "EUR",
                "ESTADO": bought.state,
                "IMPRESO": "S" if bought.n % 4 else "N",
                "OBSERV": "" if bought.n % 6 else "LLAMAR ANTES",
            }
        )
        truth.append(
            Order(
                key=str(50_000 + bought.n),
                customer=f"{buyer:06d}",
                customer_id=listed(customers, buyer),
                day=bought.at.date(),
                total=net + tax,
                currency="EUR",
                status=_CLASSES[bought.state],
                lines=(),
            )
        )
    return Shop(
        name="erp_flat",
        zone="Europe/Madrid",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="CODCLI",
            customer_is="erpCode",
            instant="FECPED",
            written="local",
            form="%d/%m/%Y",
            total="{TOTPED}",
            total_is="gross",
            currency="DIVISA",
            status=(By("ESTADO", _CLASSES),),
            lines=None,
        ),
    )


def _comma(amount: Decimal) -> str:
    return f"{amount:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")
