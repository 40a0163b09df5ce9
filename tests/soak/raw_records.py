"""Raw records of all lists, drawn from few values, so that ids, texts and references meet in many ways.

Notations of one id, blanks, spaces of all kinds, orphans, and dates at the edge of the instant.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from transforms.frames import TEXT
from transforms.keys import BOOKKEEPING
from transforms.order_fields import OrderFields

Row = dict[str, Any]
RAW_ORDERS: Final = {
    "id": TEXT,
    **dict.fromkeys(("client_id", "placed_at", "status", "money"), TEXT),
    "total": pa.float64(),
    **BOOKKEEPING,
}
FIELDS: Final = OrderFields("client_id", "placed_at", "total", "status", "money", customer_notation="ids")
AS_OF: Final = datetime(2026, 3, 29, 12, tzinfo=UTC)
"""In Madrid the clocks were changed on that day."""
TIMEZONES: Final = (None, "America/Lima", "Europe/Madrid")
SPACES: Final = ("", "", "", " ", "\t", "\u00a0", "\u2003")
PRICE_LISTS: Final = ("1", "2", "3", "4", "01", "1.0", "a", "A", "b-7")
REFERENCES: Final = (None, None, "", " ", "1", "1.0", "2", "02", "3.00", "4", "a", "-1", "1.5", "9", "1e3")
EMAILS: Final = (None, "", " ", "a@x.es", "A@X.es", "b@x.es", "á@x.es", "a\u0301@x.es", "a@x.es\u200b", "no", "a@b@c")
PHONES: Final = (None, "", "600 11 22", "+34 600-11", "(+34) 6", "0034 6", "none", "+", "٣٤", "1+2")
BIRTHDATES: Final = (date(1906, 3, 28), date(1906, 3, 29), date(2026, 3, 29), date(2026, 3, 30))
NAMES: Final = (None, "", " ", "Ana", "Ruiz", "Zoë")
CODES: Final = (None, "", " ", "E1", "E2", "e1", "E1 ", "E3")
CANCELLED: Final = ("Cancelled", "ANULADO")
DATES: Final = (None, "", " ", "soon", "2026-02-30")


class RawRecords:
    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        draw, ids = self._draw, [str(number) for number in range(10)]
        size, self.timezone = draw.randrange(1, 10), draw.choice(TIMEZONES)
        lists = draw.sample(PRICE_LISTS, draw.randrange(len(PRICE_LISTS)))
        self.price_lists = self._records(lists, self._price_list)
        self.customers = self._records(draw.sample(ids, size), self._customer)
        self.documents = [
            self._document(draw.choice(ids), position) for position in draw.sample(range(20), draw.randrange(12))
        ]
        self.orders = self._records([f"o{number:02}" for number in range(draw.randrange(30))], self._order)

    def _records(self, ids: Iterable[str], made: Callable[[], Row]) -> list[Row]:
        """A row for each id, in any order."""
        draw, rows = self._draw, list[Row]()
        for one in ids:
            at = AS_OF - timedelta(minutes=draw.randrange(1, 60))
            gone = at if draw.random() < 0.15 else None
            bookkeeping = {"_run_id": "r", "_first_seen_at": at, "_last_seen_at": at, "_missing_since": gone}
            rows.append({"id": one, **made(), **bookkeeping})
        return draw.sample(rows, len(rows))

    def _padded(self, texts: tuple[str | None, ...]) -> str | None:
        text = self._draw.choice(texts)
        return None if text is None else self._draw.choice(SPACES) + text + self._draw.choice(SPACES)

    def _date(self) -> str | None:
        """A date near the instant: a day, a time with an offset or without, an end that is none, or no date."""
        draw = self._draw
        at = AS_OF.replace(tzinfo=None) + timedelta(hours=draw.randrange(-96, 96))
        texts = (f"{at:%Y-%m-%d}", f"{at:%Y-%m-%dT%H:%M:%S}", f"{at:%Y-%m-%d %H:%M:%S}+0{draw.randrange(10)}:30")
        return draw.choice((*texts, *texts, *texts, *DATES, "9999-12-31"))

    def _customer(self) -> Row:
        draw = self._draw
        return {
            "first_name": self._padded(NAMES),
            "last_name": self._padded(NAMES),
            "phone": self._padded(PHONES),
            "email": self._padded(EMAILS),
            "login_code": self._padded(CODES),
            "erp_code": self._padded(CODES),
            "price_list_id": draw.choice(REFERENCES),
            "birthdate": draw.choice((None, *BIRTHDATES)),
            "created_at": self._date(),
        }

    def _document(self, customer: str, position: int) -> Row:
        draw = self._draw
        return {
            "customer_id": customer,
            "position": position,
            "number": self._padded((None, "", "N1", "N2", "N3")),
            "fiscal_name": draw.choice((None, "F1", "F2")),
            "is_default": draw.choice((None, True, False, False)),
            "for_taxes": draw.choice((None, True, False, False)),
        }

    def _price_list(self) -> Row:
        return {"name": self._padded((None, "", "Gold", "Base"))}

    def _order(self) -> Row:
        draw = self._draw
        return {
            "client_id": draw.choice((None, " ", "0", "1", "2", "3.0", "4", " 5", "77", "x")),
            "placed_at": self._date(),
            "status": draw.choice((None, "", "paid", "open", *CANCELLED)),
            "money": draw.choice((None, "eur", "EUR", "USD", 'a"b')),
            "total": draw.choice((None, 0.0, 10.5, -3.0, 0.1, 0.2, 100.0, 1e15)),
        }
