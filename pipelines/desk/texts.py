"""The texts of the pages, by code and language: those that the commands have too, and their own."""

from __future__ import annotations

import re
import tomllib
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from importlib import resources
from pathlib import PurePath
from typing import Final, cast
from zoneinfo import ZoneInfo

from orderbridge.sources import texts
from orderbridge.sources.kinds import ADDED_FIELDS
from orderbridge.sources.texts import LANGUAGES, Catalogue, Language, language_of_locale

__all__ = ["COMPARED", "LANGUAGES", "Language", "Texts", "catalogue", "language_of_locale"]


_KEPT_IN_ENGLISH: Final = ("evidence", "finding", "plan_note", "ask", "file_error")
"""First words of the codes of texts that commands keep in English."""
_PART: Final = "; "
_REQUEST: Final = re.compile(
    r"(?:(?:legacy|public_v1) )?(?:POST|PATCH) /(?P<path>[\w/-]+)(?: \((?P<fields>[^()]*)\))?"
)
"""A request in a text of a command: `PATCH /products/1/variants/7 (price)`."""
_VARIANT: Final = re.compile("products/(?P<product>[^/]+)/variants/(?P<variant>[^/]+)")
_SENT_NUMBER: Final = re.compile(rf"((?:^|, )(?:{'|'.join(ADDED_FIELDS)}): )(-?[0-9.]+)(?=, |$)")
"""A number among such values."""
_NAMED: Final = re.compile(r"(^|, )(\w+): ")
"""The name of a field before its value, in values that follow each other."""
COMPARED: Final = {
    "erp_code": "erpCode",
    "login_code": "loginCode",
    "first_name": "firstName",
    "last_name": "lastName",
    "email": "email",
    "phone": "phone",
    "price_list_id": "priceListId",
    "document_number": "documents[0].number",
    "fiscal_name": "documents[0].fiscalName",
    "fiscal_address": "documents[0].fiscalAddress",
    "document_email": "documents[0].email",
}
"""The fields of the match with the ERP, by the names of their columns."""
_AMOUNT: Final = re.compile(r"(?<![\w.,])[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?=[ ;]|$)")
"""A number among the amounts of a text."""
_GROUPED: Final = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+")
_TIME: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})( [0-9]{2}:[0-9]{2})?( UTC)?")
"""A count and a time as commands write them."""
_COUNTS: Final = (
    "count",
    "distinct",
    "empty",
    "filled",
    "found",
    "given",
    "hits",
    "lines",
    "rows",
    "total",
)
_AMOUNTS: Final = ("amount", "amounts")
_TIMES: Final = ("at", "day")
"""Names of values that are counts, amounts and times; a cell of a file is written as it is there."""


class Texts(texts.Texts):
    """The texts in one language. See `sources.texts.Texts`.

    Attributes:
        zone: by whose clock times are shown; None: as they are written, or by that of this machine.
    """

    def __init__(self, language: Language) -> None:
        super().__init__(language, catalogue())
        self.zone: ZoneInfo | None = None

    def reworded(self, text: str, *codes: str) -> str:
        """See `sources.texts.Texts`. A page has words of its own for some texts, and names fields as people do."""
        found = texts.recognised(text, codes) if text else None
        if found is None:
            return text
        code, values = found
        shown = {name: self._value(name, value) for name, value in values.items()}
        own = f"page.{code}"
        if own not in self._texts and shown == values and self.language == "en":
            return text
        return self(own if own in self._texts else code, **shown)

    def _value(self, name: str, value: str) -> str:
        """A value within a text."""
        if name == "field":
            return self.field(value)
        if name == "fields":
            return ", ".join(self.compared_field(one) for one in value.split(", "))
        if name == "request":
            return self.without_requests(value)
        if name == "encoding":
            return self.or_own(f"encoding.{value}", value)
        if name in ("file", "folder"):
            return PurePath(value).name or value
        if name == "values":
            value = _SENT_NUMBER.sub(lambda found: f"{found[1]}{self.value(found[2])}", value)
            return _NAMED.sub(lambda found: f"{found[1]}{self.field(found[2])}: ", value)
        if name == "sent_number":
            return self.value(value)
        if name == "kind":
            return self.or_own(f"kinds.{value}", value)
        if name in _AMOUNTS:
            return _AMOUNT.sub(lambda found: self.number(Decimal(found[0].replace(",", ""))), value)
        if name in _COUNTS and _GROUPED.fullmatch(value):
            return self.number(int(value.replace(",", "")))
        if name in _TIMES and (found := _TIME.fullmatch(value)) is not None:
            return self._time(*found.groups(default=""))
        return self.reworded(value, "part")

    def _time(self, day: str, clock: str, zone: str) -> str:
        """A time as a command wrote it, which may have no clock; one in UTC is by the clock of the page."""
        if not zone or not clock or self.zone is None:
            return f"{self.date(date.fromisoformat(day))}{clock}{zone}"
        at = datetime.fromisoformat(f"{day}{clock}+00:00")
        return self.date(at.astimezone(self.zone))

    def value(self, number: str | float) -> str:
        """A number of a file as people write it: with two decimals, unless it is whole or has more."""
        exact = Decimal(str(number))
        return self.number(
            exact, "," if exact == int(exact) or exact != round(exact, 2) else ",.2f"
        )

    def record(self, path: str) -> str:
        """A record by its address at the platform, in words."""
        found = _VARIANT.fullmatch(path)
        if found is not None:
            return self("record.variant", **found.groupdict())
        return self.or_own(f"record.new.{path}", path)

    def compared_field(self, name: str) -> str:
        """A field of the match with the ERP as people call it."""
        return self.field(COMPARED.get(name, name))

    def without_requests(self, text: str) -> str:
        """A text of a command in which each request is the record that it is about: an office knows no methods."""
        return _REQUEST.sub(self._record_of, text)

    def _record_of(self, request: re.Match[str]) -> str:
        fields = [self.field(one) for one in (request["fields"] or "").split(", ") if one]
        shown = f" ({', '.join(fields)})" if fields else ""
        return f"{self.record(request['path'])}{shown}"

    def written(self, value: object) -> object:
        """How a value is written: the thousands of numbers are separated."""
        if isinstance(value, int) and not isinstance(value, bool):
            return self.number(value)
        return value

    def known(self, text: str) -> str:
        """A text of a command, which is in English, in this language; as it is where it is not known."""
        return self.without_requests(self.reworded(text, *_KEPT_IN_ENGLISH))

    def known_parts(self, text: str) -> list[tuple[str, bool]]:
        """A text of a command, part by part, and whether it is still in English: a word alone is a value."""
        if texts.recognised(text, _KEPT_IN_ENGLISH) is not None:
            return [(self.known(text), False)]
        return [(self.known(part), self._is_foreign(part)) for part in text.split(_PART)]

    def _is_foreign(self, text: str) -> bool:
        """Whether a text stays English on a page of another language."""
        is_known = texts.recognised(text, _KEPT_IN_ENGLISH) is not None
        return self.language != "en" and " " in text.strip() and not is_known


@cache
def catalogue() -> Catalogue:
    """The texts that only pages have, by code, then by language."""
    text = resources.files(__package__ or "").joinpath("texts.toml").read_text("utf-8")
    return cast("Catalogue", tomllib.loads(text))
