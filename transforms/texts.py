"""Texts and e-mail addresses in the one form in which they are compared.

In: text columns as people, files and the platform wrote them. Out: the same columns, normalised. What looks the same on
a screen must not differ by invisible characters or by how its accents are encoded, and addresses that merely look alike
must not be taken for one.
"""

from __future__ import annotations

from typing import Final

import pandas as pd
import pyarrow.compute as pc

from transforms.frames import array, column

_INVISIBLE: Final = "[\u00ad\u200b-\u200f\u2060\ufeff]"
"""Zero-width spaces and joiners, direction marks, the soft hyphen and the byte order mark."""
_KELVIN, _WIDE_K = "\u212a", "\uff2b"
"""The Kelvin sign is the only letter that NFC makes an ASCII one; full-width K stays itself and looks the same."""
_WHITESPACE: Final = r"[\s\p{Z}]+"
EMAIL_FORM: Final = r"^[^@\s,;]+@[^@\s,;]+$"
"""The least that an e-mail address has: name@host. What hosts look like is not checked."""


def tidied(texts: pd.Series[str]) -> pd.Series[str]:
    """Texts without surrounding whitespace and invisible characters, accents composed (NFC); null where blank."""
    plain = texts.str.strip()
    is_other = ~plain.str.isascii().fillna(True)
    if is_other.any():
        visible = plain[is_other].str.replace(_INVISIBLE, "", regex=True)
        plain = plain.copy()
        plain[is_other] = _normalized(visible, "NFC").str.strip()
    return plain.where(plain != "")


def single_spaced(texts: pd.Series[str]) -> pd.Series[str]:
    """Tidied texts with each run of whitespace as one space."""
    return tidied(texts).str.replace(_WHITESPACE, " ", regex=True)


def email_key(texts: pd.Series[str]) -> pd.Series[str]:
    """E-mail addresses in the form in which they identify someone: tidied, ASCII letters in lower case.

    Letters beyond ASCII keep their case: `ſ` (long s) and the Kelvin sign become `s` and `k` in lower case, and
    `maria@ſhop.es` is not an address of `shop.es`. `lookalike_key` finds such pairs.
    """
    return ascii_lower(tidied(texts.str.replace(_KELVIN, _WIDE_K, regex=False)))


def lookalike_key(texts: pd.Series[str]) -> pd.Series[str]:
    """E-mail addresses in a form that is equal for any two that a person or a mail system may take for one another."""
    key = email_key(texts)
    is_other = ~key.str.isascii().fillna(True)
    if is_other.any():
        key = key.copy()
        key[is_other] = _normalized(_normalized(key[is_other], "NFKC").str.casefold(), "NFKC")
    return key


def ascii_lower(texts: pd.Series[str]) -> pd.Series[str]:
    """Texts with A to Z in lower case. An Arrow kernel: pandas' lower case changes other alphabets too."""
    return column(pc.ascii_lower(array(texts)), texts.index)


def _normalized(texts: pd.Series[str], form: str) -> pd.Series[str]:
    """Texts in a Unicode normal form. An Arrow kernel: pandas' calls Python for each text."""
    return column(pc.utf8_normalize(array(texts), form=form), texts.index)
