"""Tax numbers that are perhaps mistyped: with wrong check digits, or letters and digits in places where none has them.

In: numbers as people write them, and the country of the shop. Out: what is wrong with a number. One of another length,
or that begins with two letters as passports do, is another document: nothing is wrong with it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal

from stdnum import get_cc_module
from stdnum.eu.vat import MEMBER_STATES
from stdnum.exceptions import InvalidChecksum, InvalidLength, ValidationError

_VAT: Final = "vat"
_DIGITS_MIN: Final = 5
"""Fewer digits are no tax number but a word, such as "unknown"."""
_SEPARATORS: Final = str.maketrans("", "", " ./-\u00a0")


def tax_number_problem(
    number: str, country: str | None
) -> Literal["tax_number", "tax_number_form"] | None:
    """What is wrong with a number: its check digits, or its form; None: nothing that is known.

    Args:
        number: as a person wrote it.
        country: of numbers without a prefix of a country of the EU; None: these are not checked.
    """
    prefix = number.strip()[:2].lower()
    is_prefixed = prefix in MEMBER_STATES and any(map(str.isdigit, number))
    rules = _rules(prefix if is_prefixed else (country or "").lower())
    if rules is None:
        return None
    try:
        rules.validate(number.translate(_SEPARATORS))
    except InvalidChecksum:
        return "tax_number"
    except InvalidLength:
        return None
    except ValidationError:
        is_passport = number.strip()[:2].isalpha()
        has_digits = sum(map(str.isdigit, number)) >= _DIGITS_MIN
        return "tax_number_form" if has_digits and not is_passport else None
    return None


@cache
def _rules(country: str) -> Any:  # noqa: ANN401 # a module of stdnum
    """What checks the tax numbers of a country; None where it is not known."""
    return get_cc_module(country, _VAT) if country else None
