"""Helpers of the notebooks: masking personal data, and testing for tables.

In: frames and an open warehouse. Out: frames in which every column is masked unless it is known to be harmless: the
interface does not show the fields of orders, so they may hold anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, time
from decimal import Decimal
from typing import Any, Final

import duckdb
import pandas as pd

from orderbridge.pipelines.warehouse.bi.descriptions import harmless_columns
from orderbridge.pipelines.warehouse.sql import table_names

MASK: Final = "•••"


def masked(
    frame: pd.DataFrame, show_personal: bool = False, harmless: Iterable[str] = ()
) -> pd.DataFrame:
    """The frame for display: in masked columns only the presence of a value is visible.

    `harmless` are columns to show in addition to those of the dictionary, such as counts computed by a query.
    """
    if show_personal:
        return frame
    shown = {*harmless_columns(), *harmless}
    hidden = {
        name: frame[name].map(_mask).astype("object") for name in frame.columns if name not in shown
    }
    return frame.assign(**hidden)


def tidy(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame for display: nulls blank, whole numbers without decimals, amounts with two, times to the minute."""
    columns = {
        name: pd.Series(_tidied(frame[name]), frame.index, dtype="object") for name in frame.columns
    }
    return pd.DataFrame(columns, index=frame.index)


def _tidied(values: pd.Series[Any]) -> list[object]:
    numbers = [
        float(value)
        for value in values
        if isinstance(value, float | Decimal) and not math.isnan(value)
    ]
    decimals = next(
        (n for n in (0, 1) if all(round(value, n) == round(value, 2) for value in numbers)), 2
    )
    return [_shown(value, decimals) for value in values]


def _shown(value: object, decimals: int) -> object:
    if hasattr(value, "__len__"):
        return value
    if pd.isna(value):  # type: ignore[call-overload] # any scalar
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}" if value.time() != time() else f"{value:%Y-%m-%d}"
    if isinstance(value, float | Decimal):
        if decimals == 2:
            return f"{value:,.2f}"
        return int(value) if value == int(value) else round(float(value), 1)
    return value


def _mask(value: object) -> str | None:
    if hasattr(value, "__len__") and not isinstance(value, str):
        return MASK
    return None if pd.isna(value) else MASK  # type: ignore[call-overload] # any scalar


def has_rows(warehouse: duckdb.DuckDBPyConnection, table: str) -> bool:
    """Whether a table, named with its schema, exists and has a row."""
    schema, _, name = table.partition(".")
    rows = f'SELECT 1 FROM "{schema}"."{name}" LIMIT 1'
    return name in table_names(warehouse, schema) and bool(warehouse.execute(rows).fetchall())
