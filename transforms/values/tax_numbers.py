"""Tax numbers that are perhaps mistyped: wrong check digits, a digit that is missing, letters where none has them.

In: numbers as people write them, and the country of the shop. Out: what is wrong with a number. One of a length that
another document has, or that begins with two letters as passports do, is that document: nothing is wrong with it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal

from stdnum import get_cc_module
from stdnum.eu.vat import MEMBER_STATES
from stdnum.exceptions import InvalidChecksum, InvalidLength, ValidationError

Problem = Literal["tax_number", "tax_number_length", "tax_number_form"]
_VAT: Final = "vat"
_DIGITS_MIN: Final = 5
"""Fewer digits are no tax number but a word, such as "unknown"."""
_LENGTHS: Final = {
    "ar": (7, 8, 11),
    "cl": (8, 9),
    "ec": (10, 13),
    "es": (9,),
    "it": (11, 16),
    "pe": (8, 9, 11, 12),
    "pt": (8, 9, 12),
}
"""Characters of the tax numbers of a country, and of its other documents, such as the 8 digits of a DNI beside the 11
of a RUC. Of other countries a length says nothing."""
_SEPARATORS: Final = str.maketrans("", "", " ./-\u00a0")


def tax_number_problem(number: str, country: str | None) -> Problem | None:
    """What is wrong with a number: its check digits, its length, or its form; None: nothing that is known.

    Args:
        number: as a person wrote it.
        country: of numbers without a prefix of a country of the EU; None: these are not checked.
    """
    prefix = number.strip()[:2].lower()
    is_prefixed = prefix in MEMBER_STATES and any(map(str.isdigit, number))
    own = (country or "").lower()
    of_country = prefix if is_prefixed else own
    rules = _rules(of_country)
    if rules is None:
        return None
    text = number.translate(_SEPARATORS)
    is_passport = prefix.isalpha() and prefix != own
    has_digits = sum(map(str.isdigit, number)) >= _DIGITS_MIN
    is_other = is_passport or not has_digits
    try:
        rules.validate(text)
    except InvalidChecksum:
        return "tax_number"
    except InvalidLength:
        is_near = not is_other and _is_nearly_as_long(rules.compact(text), of_country)
        return "tax_number_length" if is_near else None
    except ValidationError:
        return None if is_other else "tax_number_form"
    return None


def _is_nearly_as_long(text: str, country: str) -> bool:
    """Whether a text has a character less or more than a document of the country, and is as long as none."""
    lengths = _LENGTHS.get(country, ())
    return len(text) not in lengths and any(abs(len(text) - length) == 1 for length in lengths)


@cache
def _rules(country: str) -> Any:  # noqa: ANN401 # a module of stdnum
    """What checks the tax numbers of a country; None where it is not known."""
    return get_cc_module(country, _VAT) if country else None
