"""Variants against what was last confirmed of them: the fields that differ, prices that jump. They cannot be read.

In: inputs with each field as JSON text, null where it is not given, and the last confirmed of each field. Out: which
fields are not yet as they should be.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.frames import TEXT, array, from_arrow
from transforms.keys import positions

JUMP: Final = 8.0
"""From this factor on, up or down, a price looks as if its decimal point had slipped."""
_NUMBER: Final = r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
_WHOLE: Final = r"^-?[0-9]+$"


def variants(inputs: pd.DataFrame, confirmed: pd.DataFrame) -> pd.DataFrame:
    """Which fields of each variant are not yet what was last confirmed.

    Args:
        inputs: `key`, and a column for each field with its JSON text, null where it is not given.
        confirmed: `key`, `field`, `value` (JSON text): the last confirmed of each; others are left alone.

    Returns:
        A boolean column for each field: it is given, and unknown or another. Numbers are compared as numbers.
    """
    key = array(inputs["key"])
    columns = {}
    for name in inputs.columns.drop("key"):
        said = array(inputs[name])
        known = _confirmed(key, confirmed, name)
        columns[name] = pc.and_(pc.is_valid(said), pc.invert(_same(said, known)))
    return from_arrow(pa.table(columns)) if columns else pd.DataFrame(index=inputs.index)


def price_jumps(inputs: pd.DataFrame, confirmed: pd.DataFrame, field: str = "price") -> pd.DataFrame:
    """Numbers that are `JUMP` times what was last confirmed, or more, or as much less.

    Args:
        inputs: `key` and the field's JSON text, as for `variants`.
        confirmed: as for `variants`.
        field: which.

    Returns:
        `row` (position), `before`, `now` (numbers as text), `power`: of ten, the nearest, 1 to any; below 0 for less.
    """
    now = array(inputs[field])
    before = _confirmed(array(inputs["key"]), confirmed, field)
    new, old = (_doubles(texts) for texts in (now, before))
    is_positive = (new > 0) & (old > 0)
    ratio = np.divide(new, old, out=np.ones(len(new)), where=is_positive)
    rows = np.flatnonzero((ratio >= JUMP) | (ratio <= 1 / JUMP))
    powers = np.rint(np.log10(ratio[rows])).astype(np.int64)
    where = pa.array(rows)
    table = {"row": where, "before": before.take(where), "now": now.take(where), "power": pa.array(powers)}
    return from_arrow(pa.table(table))


def _confirmed(key: pa.Array, confirmed: pd.DataFrame, field: str) -> pa.Array:
    """The last confirmed value of a field for each key; null where there is none."""
    known = confirmed[confirmed["field"] == field]
    return array(known["value"]).take(positions(key, array(known["key"])))


def _same(said: pa.Array, known: pa.Array) -> pa.Array:
    """Whether two JSON texts are equal, numbers that are not both whole as doubles; false where one is null."""
    is_whole = (pc.fill_null(pc.match_substring_regex(texts, _WHOLE), False) for texts in (said, known))
    alike = pc.and_not(pa.array(_doubles(said) == _doubles(known)), pc.and_(*is_whole))
    return pc.or_(pc.fill_null(pc.equal(said, known), False), alike)


def _doubles(texts: pa.Array) -> npt.NDArray[np.float64]:
    """JSON numbers as doubles; NaN for all else."""
    is_number = pc.fill_null(pc.match_substring_regex(texts, _NUMBER), False)
    numbers = pc.if_else(is_number, texts, pa.scalar(None, TEXT)).cast(pa.float64())
    made: npt.NDArray[np.float64] = pc.fill_null(numbers, np.nan).to_numpy(zero_copy_only=False)
    return made
