"""The rows of a frame, to compare."""

from __future__ import annotations

from typing import Any

import pandas as pd


def values(table: pd.DataFrame, *names: str) -> list[Any]:
    """The values of a column, or the rows of several (without names, of all); nulls are None."""
    columns = list(names or table)
    found = [
        tuple(None if pd.isna(value) else value for value in row)
        for row in table[columns].itertuples(index=False, name=None)
    ]
    return found if len(columns) > 1 else [value for (value,) in found]
