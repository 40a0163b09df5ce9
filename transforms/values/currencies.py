"""The currencies of ISO 4217: which codes there are, and how many decimals their amounts have.

In: `currencies.toml`. Out: the codes with their decimals. Platforms such as Stripe and Medusa write amounts in the
smallest unit of a currency: in hundredths of a euro, but in whole yen.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Final

_TABLE: Final = tomllib.loads(
    files("orderbridge.transforms.values").joinpath("currencies.toml").read_text("utf-8")
)
DECIMALS: Final[dict[str, int]] = {
    code: int(count) for count, codes in _TABLE["decimals"].items() for code in codes
}
"""The decimals of each currency, by its code in upper case."""
CURRENCIES: Final = frozenset(DECIMALS)
DECIMALS_USUAL: Final = 2
"""Of an amount whose currency is not known."""
PRICED_WITH_DECIMALS: Final = frozenset(
    code for code, count in DECIMALS.items() if count and code not in _TABLE["practice"]["whole"]
)
"""Currencies in which a shop without any decimal in its amounts is unusual."""
