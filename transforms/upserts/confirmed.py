"""Variants against what was last confirmed of them, since they cannot be read: changed fields, and prices that jump.

In: inputs with each field as JSON text, null where it is not given, and the last confirmed value of each field. Out:
the fields that are to be sent, and prices that look like a typing error.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from orderbridge.transforms.frames import BIGINT, TEXT, Column, look_up, typed

PRICE_JUMPS: Final = {"row": BIGINT, "before": TEXT, "now": TEXT, "power": BIGINT}
JUMP: Final = 8.0
"""From this factor on, up or down, a price looks as if its decimal point had slipped."""
_NUMBER: Final = r"^-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$"
_WHOLE: Final = r"^-?[0-9]+$"
_SMALL_IN_LIST: Final = r"^[\[{].*(?:0\.00000|E-)"
"""A list or object that may have a number that the ledger has with an exponent: `5e-7`."""


def changed_fields(inputs: pd.DataFrame, confirmed: pd.DataFrame) -> pd.DataFrame:
    """The fields of each variant whose given value is not the one that was last confirmed.

    Args:
        inputs: `key`, and a column for each field with its JSON text, null where it is not given.
        confirmed: `key`, `field`, `value` (JSON text): the last confirmed of each; other fields are ignored.

    Returns:
        A boolean column for each field: a value is given, and none or another was confirmed. Numbers are compared as
        numbers.
    """
    fields = {name: inputs[name] for name in map(str, inputs) if name != "key"}
    changed = {
        name: given.notna() & ~_is_same(given, _last_confirmed(inputs["key"], confirmed, name))
        for name, given in fields.items()
    }
    return pd.DataFrame(changed, index=inputs.index)


def price_jumps(inputs: pd.DataFrame, confirmed: pd.DataFrame) -> pd.DataFrame:
    """Prices that are `JUMP` times what was last confirmed, or more, or as much less; arguments as `changed_fields`.

    Returns:
        `row` (position), `before`, `now` (numbers as text), `power`: of ten, the nearest, 1 to any; below 0 for less.
    """
    now = inputs["price"]
    before = _last_confirmed(inputs["key"], confirmed, "price")
    new = _doubles(now)
    old = _doubles(before)
    is_positive = (new > 0) & (old > 0)
    ratio = np.divide(new, old, out=np.ones(len(new)), where=is_positive)
    rows = np.flatnonzero((ratio >= JUMP) | (ratio <= 1 / JUMP))
    powers = np.rint(np.log10(ratio[rows])).astype(np.int64)
    jumps = pd.DataFrame({"before": before, "now": now}).iloc[rows].reset_index(drop=True)
    return typed(jumps.assign(row=rows, power=powers), PRICE_JUMPS)


def moved_codes(inputs: pd.DataFrame, confirmed: pd.DataFrame, field: str) -> Column[Any]:
    """Whether the code of a variant was confirmed for others only, none of which still has it here.

    Arguments as `changed_fields`; `confirmed` has all variants.
    """
    codes = inputs[field]
    known = confirmed.loc[confirmed["field"] == field, "value"]
    is_as_confirmed = (codes == _last_confirmed(inputs["key"], confirmed, field)).fillna(False)
    is_known = codes.notna() & codes.isin(known.dropna())
    return is_known & ~codes.isin(codes[is_as_confirmed])


def _last_confirmed(keys: Column[Any], confirmed: pd.DataFrame, field: str) -> Column[Any]:
    """The last confirmed value of a field for each key; null where there is none."""
    known = confirmed.loc[confirmed["field"] == field, ["key", "value"]]
    return look_up(keys, known, "key")["value"]


def _is_same(given: Column[Any], known: Column[Any]) -> Column[Any]:
    """Whether two JSON texts are equal, numbers that are not both whole as doubles; false where one is null."""
    is_small = given.str.contains(_SMALL_IN_LIST, regex=True).fillna(False)
    as_confirmed = given[is_small].map(
        lambda text: msgspec.json.encode(msgspec.json.decode(text)).decode()
    )
    given = given.mask(is_small, as_confirmed.astype(given.dtype))
    is_equal_text = (given == known).fillna(False)
    is_equal_number = pd.Series(_doubles(given) == _doubles(known), given.index)
    are_whole = _is_whole(given) & _is_whole(known)
    return is_equal_text | (is_equal_number & ~are_whole)


def _is_whole(texts: Column[Any]) -> Column[Any]:
    return texts.str.contains(_WHOLE, regex=True).fillna(False)


def _doubles(texts: Column[Any]) -> npt.NDArray[np.float64]:
    """JSON numbers as doubles; NaN for everything else."""
    numbers = texts.where(texts.str.contains(_NUMBER, regex=True).fillna(False))
    return numbers.astype(pd.ArrowDtype(pa.float64())).to_numpy(np.float64, na_value=np.nan)
