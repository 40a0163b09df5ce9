"""Tax numbers whose check digits are wrong: perhaps mistyped.

In: numbers as people write them, and the country of the shop. Out: whether the check digits of a number are wrong. What
is no tax number by its form or length, such as a passport, is none with wrong digits.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from stdnum import get_cc_module
from stdnum.eu.vat import MEMBER_STATES
from stdnum.exceptions import InvalidChecksum, ValidationError

_VAT: Final = "vat"
_SEPARATORS: Final = str.maketrans("", "", " ./-\u00a0")


def has_wrong_check_digits(number: str, country: str | None) -> bool:
    """Whether a number has the form of a tax number, and other check digits than it should.

    Args:
        number: as a person wrote it.
        country: of numbers without a prefix of a country of the EU; None: these are not checked.
    """
    prefix = number.strip()[:2].lower()
    is_prefixed = prefix in MEMBER_STATES and any(map(str.isdigit, number))
    rules = _rules(prefix if is_prefixed else (country or "").lower())
    if rules is None:
        return False
    try:
        rules.validate(number.translate(_SEPARATORS))
    except InvalidChecksum:
        return True
    except ValidationError:
        return False
    return False


@cache
def _rules(country: str) -> Any:  # noqa: ANN401 # a module of stdnum
    """What checks the tax numbers of a country; None where it is not known."""
    return get_cc_module(country, _VAT) if country else None
