"""Texts and e-mail addresses in the one form in which they are compared.

In: text columns as people, files and the platform wrote them. Out: the same columns, normalised. What looks the same on
a screen must not differ by invisible characters or by how its accents are encoded, and addresses that merely look alike
must not be taken for one.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable
from typing import Final

import pandas as pd
import pyarrow.compute as pc

from orderbridge.transforms.frames import array, column

_INVISIBLE: Final = "[\u00ad\u200b-\u200f\u2060\ufeff]"
"""Zero-width spaces and joiners, direction marks, the soft hyphen and the byte order mark."""
_KELVIN, _WIDE_K = "\u212a", "\uff2b"
"""The Kelvin sign is the only letter that NFC makes an ASCII one; full-width K stays itself and looks the same."""
_WHITESPACE: Final = r"[\s\p{Z}]+"
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LOWER: Final = {ord(letter): letter.lower() for letter in string.ascii_uppercase}
EMAIL_FORM: Final = r"^[^@\s,;]+@[^@\s,;]+$"
"""The least that an e-mail address has: name@host. What hosts look like is not checked."""


def tidied(texts: pd.Series[str]) -> pd.Series[str]:
    """Texts without surrounding whitespace and invisible characters, accents composed (NFC); null where blank."""
    plain = texts.str.strip()
    is_other = ~plain.str.isascii().fillna(True)
    if is_other.any():
        visible = plain[is_other].str.replace(_INVISIBLE, "", regex=True)
        plain = plain.copy()
        # Not by Arrow's kernel: before pyarrow 26, its NFC decomposes letters.
        plain[is_other] = visible.str.normalize("NFC").str.strip()
    return without_blank(plain)


def without_blank(texts: pd.Series[str]) -> pd.Series[str]:
    """The texts, null where they are empty. Most columns have no empty text, and `where` copies them."""
    is_blank = texts == ""
    return texts.mask(is_blank) if is_blank.any() else texts


def without_zero_fraction(ids: pd.Series[str]) -> pd.Series[str]:
    """Whole numbers without a fraction: `70.0` is `70`. Zeros in front stay."""
    is_fraction = ids.str.contains(".", regex=False)
    return replaced_where(ids, is_fraction, r"^(-?[0-9]+)\.0+$", r"\1")


def replaced_where(
    texts: pd.Series[str], is_suspect: pd.Series[bool], pattern: str, replacement: str
) -> pd.Series[str]:
    """The texts with a pattern replaced in those that may have it: over all, it takes several times as long."""
    is_suspect = is_suspect.fillna(False)
    if not is_suspect.any():
        return texts
    replaced = texts.copy()
    replaced[is_suspect] = texts[is_suspect].str.replace(pattern, replacement, regex=True)
    return replaced


def single_spaced(texts: pd.Series[str]) -> pd.Series[str]:
    """Tidied texts with each run of whitespace as one space."""
    return tidied(texts).str.replace(_WHITESPACE, " ", regex=True)


def plain_words(text: str) -> str:
    """Its words in lower case, without accents and what is between them: `wc-OnHold` is `wc on hold`."""
    spaced = _CAMEL.sub(" ", text)
    plain = unicodedata.normalize("NFKD", spaced).casefold()
    letters = "".join(one for one in plain if not unicodedata.combining(one))
    return " ".join(re.findall(r"[^\W_]+", letters))


def one_email_key(text: str) -> str:
    """An e-mail address in the form in which it identifies someone: tidied, ASCII letters in lower case.

    Letters beyond ASCII keep their case: `ſ` (long s) and the Kelvin sign become `s` and `k` in lower case, and
    `maria@ſhop.es` is not an address of `shop.es`. `one_lookalike_key` finds such pairs.
    """
    text = text.strip()
    if not text.isascii():
        visible = re.sub(_INVISIBLE, "", text.replace(_KELVIN, _WIDE_K))
        text = unicodedata.normalize("NFC", visible).strip()
    return text.translate(_LOWER)


def one_lookalike_key(text: str) -> str:
    """An e-mail address in a form that is equal for any two that a person or a mail system may take for one another."""
    key = one_email_key(text)
    if key.isascii():
        return key
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", key).casefold())


def email_key(texts: pd.Series[str]) -> pd.Series[str]:
    """`one_email_key` of a column; null where blank."""
    return _email_keys(texts, one_email_key)


def lookalike_key(texts: pd.Series[str]) -> pd.Series[str]:
    """`one_lookalike_key` of a column; null where blank."""
    return _email_keys(texts, one_lookalike_key)


def _email_keys(texts: pd.Series[str], rule: Callable[[str], str]) -> pd.Series[str]:
    """Applies a rule: to ASCII addresses, nearly all, as a column."""
    keys = ascii_lower(texts.str.strip())
    is_other = ~texts.str.isascii().fillna(True)
    if is_other.any():
        keys = keys.copy()
        keys[is_other] = texts[is_other].map(rule)
    return without_blank(keys)


def ascii_lower(texts: pd.Series[str]) -> pd.Series[str]:
    """Texts with A to Z in lower case. An Arrow kernel: pandas' lower case changes other alphabets too."""
    return column(pc.ascii_lower(array(texts)), texts.index)
