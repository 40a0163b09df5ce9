"""The keys by which customers are matched: their order, the form in which they are compared, and placeholder values.

In: columns of the ERP's lines. Out: the same in comparable form, null where a value identifies nobody; or as hashes.
Forms and ERPs ask for values that people do not have, so they type `-`, `S/N`, `0000` or `noemail@…`: such placeholders
would match customers who have nothing else in common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from orderbridge.transforms.frames import THREADS, array
from orderbridge.transforms.values.texts import (
    EMAIL_FORM,
    email_key,
    lookalike_key,
    replaced_where,
    tidied,
    without_blank,
    without_zero_fraction,
)

Hashes = npt.NDArray[np.uint64]
HashTexts = Callable[[pa.Array], Hashes]
"""The hash of each text, none of which is null; is called by several threads, and gives the same on all machines."""
_ANY: Final = r"[^\p{L}\p{N}]*"
"""Any punctuation and spaces."""
_PHRASES: Final = (
    rf"(?:sin|no|not|without|s){_ANY}(?:e{_ANY}mail|mail|correo|reply|tiene|aplica|available|applicable|code|number|"
    "document|codigo|código|numero|número|documento|nif|ruc|dni|rut|cuit|datos?)|none|null|unknown|desconocido|"
    "ningun[oa]|test|prueba|dummy|xxx+"
)
_ABBREVIATIONS: Final = (
    rf"n{_ANY}[ad]|s{_ANY}[ncd]|no|nil|nan|nothing|nada|empty|vac[ií]o|tbd|gen[eé]ric[oa]?"
    "|sin|pendiente|varios"
)
"""Short words that stand for a missing code, but may be the initials or the name of a person in an e-mail address."""
_NOT_ALPHANUMERIC: Final = r"[^\p{L}\p{N}]+"
_LABEL: Final = r"^\p{L}[\p{L}.]*\p{L}\.?[\s:#-]+(?:n[oº°]?\.?[\s:]+)?"
"""What stands before a document's number: `NIF: `, `P. IVA `, `PT `; one letter is a part of it."""
_COUNTRY: Final = (
    "^(?:fr[0-9a-hj-np-z]{2}([0-9]{9})|es([0-9a-z][0-9]{7}[0-9a-z])|at(u[0-9]{8})|"
    "(?:be|bg|cy|cz|de|dk|ee|el|fi|hr|hu|it|lt|lu|lv|mt|pl|pt|ro|si|sk)([0-9]{7,12}[a-z]?))$"
)
"""The prefix that a tax number has across borders in the European Union, with the key of the French ones."""


def _one_digit(times: int) -> str:
    """A pattern of one digit repeated, at least so many times; of zero, any number of times."""
    return "|".join(["0+", *(f"{digit}{{{times},}}" for digit in range(1, 10))])


@dataclass(frozen=True, slots=True)
class MatchKey:
    """A key and what its values look like.

    Attributes:
        normalize: text in the form in which it is compared; null where nothing is left.
        loose: normalized values in a form that is equal for values that spreadsheets, typists or eyes take for one.
        stand_in: a pattern of placeholders: normalized values that identify nobody.
        form: a pattern that all other values match; None: they have no common form.
    """

    normalize: Callable[[pd.Series[str]], pd.Series[str]]
    loose: Callable[[pd.Series[str]], pd.Series[str]]
    stand_in: str
    form: str | None = None

    def identifies(self, values: pd.Series[str]) -> pd.Series[bool]:
        """Whether each normalized value identifies someone; false for null."""
        is_key = ~values.str.contains(self.stand_in, regex=True)
        if self.form is not None:
            is_key &= values.str.contains(self.form, regex=True)
        return is_key.fillna(False).astype("bool")


def code(texts: pd.Series[str]) -> pd.Series[str]:
    """Codes and ids tidied, `70.0` as `70`. Zeros in front and case count."""
    return without_zero_fraction(tidied(texts))


AS_WRITTEN: Final = "as_written"
"""The prefix of codes in which none can be ignored."""


class CodeForm(NamedTuple):
    """What is ignored in codes: a prefix, and zeros in front."""

    prefix: str | None = None
    zeros: str | None = None

    def key(self, texts: pd.Series[str]) -> pd.Series[str]:
        """Codes in the form in which they are compared."""
        return self.without_ignored(code(texts))

    def without_ignored(self, codes: pd.Series[str]) -> pd.Series[str]:
        """Normalized codes without what is ignored in them."""
        if self.prefix not in (None, AS_WRITTEN):
            codes = codes.str.replace(
                f"(?i)^{re.escape(str(self.prefix))}([0-9])", r"\1", regex=True
            )
        if self.zeros == "ignore":
            codes = codes.str.replace(r"^([^0-9]*)0+([0-9]+)$", r"\1\2", regex=True)
        return codes


def loose_code(codes: pd.Series[str]) -> pd.Series[str]:
    """Codes without punctuation and zeros in front of numbers, in one case: what spreadsheets and typists change."""
    if not codes.str.isalnum().all():
        codes = codes.str.replace(_NOT_ALPHANUMERIC, "", regex=True)
    if codes.str.isdecimal().all() and codes.str.isascii().all():
        return codes.str.lstrip("0")
    return codes.str.lower().str.lstrip("0").str.replace("([^0-9])0+", r"\1", regex=True)


def loose_document(numbers: pd.Series[str]) -> pd.Series[str]:
    """Numbers of documents in the form of `loose_code`, without the prefix of a country in Europe."""
    has_letters = numbers.str.contains("^[a-z]{2}", regex=True)
    return loose_code(replaced_where(numbers, has_letters, _COUNTRY, r"\1\2\3\4"))


def loose_email(keys: pd.Series[str]) -> pd.Series[str]:
    """See `lookalike_key`, which changes no address of ASCII letters."""
    return keys if keys.str.isascii().all() else lookalike_key(keys)


def mailbox(texts: pd.Series[str]) -> pd.Series[str]:
    """E-mail addresses as `email_key` has them, without the tag of a mailbox: `ana+web@x` is `ana@x`."""
    keys = email_key(texts)
    is_tagged = keys.str.contains("+", regex=False)
    return replaced_where(keys, is_tagged, r"^([^@+]+)\+[^@]*@", r"\1@")


def document_number(texts: pd.Series[str]) -> pd.Series[str]:
    """A document's letters and digits, in one case; null where there are none."""
    numbers = tidied(texts)
    if not numbers.str.isalnum().all():
        numbers = numbers.str.replace(_LABEL, "", regex=True)
        numbers = numbers.str.replace(_NOT_ALPHANUMERIC, "", regex=True)
    return without_blank(numbers.str.lower())


_CODE: Final = MatchKey(
    code, loose_code, rf"(?i)^{_ANY}(?:{_PHRASES}|{_ABBREVIATIONS}|{_one_digit(5)})?{_ANY}$"
)
_EMAIL: Final = MatchKey(
    mailbox,
    loose_email,
    rf"(?i)^{_ANY}(?:(?:{_PHRASES})[^\p{{L}}]*|{_one_digit(1)})?@",
    form=EMAIL_FORM,
)
_DOCUMENT: Final = MatchKey(
    document_number, loose_document, rf"^(?:{_one_digit(1)}|0+[a-z]|[^0-9]*)$"
)
MATCH_KEYS: Final = {
    "erp_code": _CODE,
    "login_code": _CODE,
    "email": _EMAIL,
    "document_number": _DOCUMENT,
}
"""What lines and customers are matched by, in this order.

- A code has a letter or digit; it is not zeros, nor another digit five times or more.
- An e-mail address is of the form name@host; its name is no placeholder.
- A document's number has a digit, and not only one that is repeated.
"""


def hash_keys(
    values: Mapping[str, pd.Series[str]], hash_texts: HashTexts, *, with_stand_ins: bool = False
) -> dict[str, pd.Series[int]]:
    """The hashes of the values that identify someone, in their loose form, by key and row number.

    `values` are normalized and not null, by key and row number. With stand-ins it takes half the time.
    """

    def of_key(key: str) -> pd.Series[int]:
        texts = values[key]
        loose = MATCH_KEYS[key].loose(
            texts if with_stand_ins else texts[MATCH_KEYS[key].identifies(texts)]
        )
        own = hash_texts(pa.array([key]))  # equal values of two keys must not connect
        return pd.Series(hash_texts(array(loose)) ^ own, loose.index)

    with ThreadPoolExecutor(THREADS) as pool:
        return dict(zip(values, pool.map(of_key, values), strict=True))


def key_values(rows: pd.DataFrame, columns: Mapping[str, str]) -> dict[str, pd.Series[str]]:
    """The normalized values of keys that are not null, by key and row number; `columns` is the column of each key."""
    return {
        key: MATCH_KEYS[key].normalize(rows[column]).dropna() for key, column in columns.items()
    }
