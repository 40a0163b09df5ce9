"""Raw records of all lists, drawn from few values, so that ids, texts and references meet in many ways.

Notations of one id, blanks, spaces of all kinds, orphans, and dates at the edge of the instant.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from transforms.frames import TEXT
from transforms.keys import BOOKKEEPING
from transforms.order_fields import OrderFields

Row = dict[str, Any]
ORDER_TEXTS: Final = ("client_id", "placed_at", "status", "money")
RAW_ORDERS: Final = {"id": TEXT, **dict.fromkeys(ORDER_TEXTS, TEXT), "total": pa.float64(), **BOOKKEEPING}
FIELDS: Final = OrderFields("client_id", "placed_at", "total", "status", "money", customer_notation="ids")
AS_OF: Final = datetime(2026, 3, 29, 12, tzinfo=UTC)
"""In Madrid the clocks were changed on that day."""
TIMEZONES: Final = (None, "America/Lima", "Europe/Madrid")
SPACES: Final = ("", "", "", " ", "\t", "\u00a0", "\u2003")
FORMS: Final = ("{:%Y-%m-%d}", "{:%Y-%m-%dT%H:%M:%S}", "{:%Y-%m-%d %H:%M:%S}+04:30")
HOURS: Final = [AS_OF.replace(tzinfo=None) + timedelta(hours=hours) for hours in range(-96, 96, 7)]
DATES: Final = (None, "", " ", "soon", "2026-02-30", "9999-12-31", *(form.format(at) for at in HOURS for form in FORMS))
PRICE_LISTS: Final = ("1", "2", "3", "4", "01", "1.0", "a", "A", "b-7")
REFERENCES: Final = (None, None, "", " ", "1", "1.0", "2", "02", "3.00", "4", "a", "-1", "1.5", "9", "1e3")
BIRTHDATES: Final = (None, date(1906, 3, 28), date(1906, 3, 29), date(2026, 3, 29), date(2026, 3, 30))
EMAILS: Final = (None, "", " ", "a@x.es", "A@X.es", "b@x.es", "á@x.es", "a\u0301@x.es", "a@x.es\u200b", "no", "a@b@c")
NAMES: Final = (None, "", " ", "Ana", "Ruiz", "Zoë")
CODES: Final = (None, "", " ", "E1", "E2", "e1", "E1 ", "E3")
PADDED: Final = {
    **dict.fromkeys(("first_name", "last_name"), NAMES),
    **dict.fromkeys(("login_code", "erp_code"), CODES),
    "phone": (None, "", "600 11 22", "+34 600-11", "(+34) 6", "0034 6", "none", "+", "٣٤", "1+2"),
    "email": EMAILS,
}
PLAIN: Final = {"price_list_id": REFERENCES, "birthdate": BIRTHDATES, "created_at": DATES}
NUMBERS: Final = {"number": (None, "", "N1", "N2", "N3")}
ROLES: Final = (None, True, False, False)
DOCUMENT: Final = {"fiscal_name": (None, "F1", "F2"), "is_default": ROLES, "for_taxes": ROLES}
ORDER: Final = {
    "client_id": (None, " ", "0", "1", "2", "3.0", "4", " 5", "77", "x"),
    "placed_at": DATES,
    "status": (None, "", "paid", "open", "Cancelled", "ANULADO"),
    "money": (None, "eur", "EUR", "USD", 'a"b'),
    "total": (None, 0.0, 10.5, -3.0, 0.1, 0.2, 100.0, 1e15),
}
Values = Mapping[str, Sequence[Any]]


class RawRecords:
    def __init__(self, seed: int) -> None:
        self._draw = draw = random.Random(seed)
        ids, self.timezone = [str(number) for number in range(10)], draw.choice(TIMEZONES)
        lists = draw.sample(PRICE_LISTS, draw.randrange(len(PRICE_LISTS)))
        self.price_lists = self._records(lists, {"name": (None, "", "Gold", "Base")}, {})
        self.customers = self._records(draw.sample(ids, draw.randrange(1, 10)), PADDED, PLAIN)
        self.documents = [
            {"customer_id": draw.choice(ids), "position": position, **self._values(NUMBERS, DOCUMENT)}
            for position in draw.sample(range(20), draw.randrange(12))
        ]
        self.orders = self._records([f"o{number:02}" for number in range(draw.randrange(30))], {}, ORDER)

    def _values(self, padded: Values, plain: Values) -> Row:
        row = {name: self._draw.choice(values) for name, values in (*padded.items(), *plain.items())}
        spaced = {
            name: self._draw.choice(SPACES) + row[name] + self._draw.choice(SPACES) for name in padded if row[name]
        }
        return {**row, **spaced}

    def _records(self, ids: Iterable[str], padded: Values, plain: Values) -> list[Row]:
        """A row for each id, in any order; some are missing."""
        draw, rows = self._draw, list[Row]()
        for one in ids:
            at = AS_OF - timedelta(minutes=draw.randrange(1, 60))
            gone = at if draw.random() < 0.15 else None
            seen = {"_run_id": "r", "_first_seen_at": at, "_last_seen_at": at, "_missing_since": gone}
            rows.append({"id": one, **self._values(padded, plain), **seen})
        return draw.sample(rows, len(rows))
