"""The texts of the pages, by code and language: those that the commands have too, and their own."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
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
_ARTICLE_KEY: Final = "productId, variantId"
"""What names an article where its ids are from a second file."""
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
        if own not in self and shown == values and self.language == "en":
            return text
        return self(own if own in self else code, **shown)

    def _value(self, name: str, value: str) -> str:
        """A value within a text."""
        return _BY_NAME.get(name, Texts._part)(self, value)

    def _part(self, value: str) -> str:
        return self.reworded(value, "part")

    def _fields(self, value: str) -> str:
        return ", ".join(self.compared_field(one) for one in value.split(", "))

    def _columns(self, value: str) -> str:
        return self("plan.article") if value == _ARTICLE_KEY else value

    def _encoding(self, value: str) -> str:
        return self.or_own(f"encoding.{value}", value)

    def _kind(self, value: str) -> str:
        return self.or_own(f"kinds.{value}", value)

    def _file(self, value: str) -> str:
        return PurePath(value).name or value

    def _values(self, value: str) -> str:
        """Values that follow each other, each after the name of its field."""
        value = _SENT_NUMBER.sub(lambda found: f"{found[1]}{self.value(found[2])}", value)
        return _NAMED.sub(lambda found: f"{found[1]}{self.field(found[2])}: ", value)

    def _count(self, value: str) -> str:
        is_number = _GROUPED.fullmatch(value) is not None
        return self.number(int(value.replace(",", ""))) if is_number else self._part(value)

    def _amounts(self, value: str) -> str:
        return _AMOUNT.sub(lambda found: self.number(Decimal(found[0].replace(",", ""))), value)

    def _instant(self, value: str) -> str:
        found = _TIME.fullmatch(value)
        return self._part(value) if found is None else self._time(*found.groups(default=""))

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
_BY_NAME: Final[Mapping[str, Callable[[Texts, str], str]]] = {
    "field": Texts.field,
    "fields": Texts._fields,
    "columns": Texts._columns,
    "request": Texts.without_requests,
    "encoding": Texts._encoding,
    "kind": Texts._kind,
    "file": Texts._file,
    "folder": Texts._file,
    "values": Texts._values,
    "sent_number": Texts.value,
    "amount": Texts._amounts,
    "amounts": Texts._amounts,
    "at": Texts._instant,
    "day": Texts._instant,
    **dict.fromkeys(_COUNTS, Texts._count),
}
"""How a value is written, by its name in a text; a cell of a file is written as it is there."""


@cache
def catalogue() -> Catalogue:
    """The texts that only pages have, by code, then by language."""
    text = resources.files(__package__ or "").joinpath("texts.toml").read_text("utf-8")
    return cast("Catalogue", tomllib.loads(text))
