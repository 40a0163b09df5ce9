"""Compares the rows of a table with those that plain Python finds, and finds columns in which they could not differ."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

Row = Mapping[str, Any]
DECIMALS = 9


def check_same_rows(
    rows: Sequence[Row], expected: Sequence[Row], columns: Iterable[str], at: object = ""
) -> None:
    """Fails with the values of each column that are only in one of them; `at`: which of several tables it is."""
    columns = sorted(columns)
    if _counted(columns, rows) == _counted(columns, expected):
        return
    differing = {}
    for name in columns:
        found, wanted = _counted([name], rows), _counted([name], expected)
        if found != wanted:
            differing[name] = found - wanted, wanted - found
    assert differing == {}, at
    pytest.fail(f"{at}: each column has these values, in other rows")


def constant_columns(rows: Sequence[Row]) -> set[str]:
    """The columns with one value in all rows: with them a test cannot see that a maximum became a minimum."""
    columns = {column for row in rows for column in row}
    return {name for name in columns if len(_counted([name], rows)) < 2}


def _counted(columns: Sequence[str], rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(comparable(row.get(name)) for name in columns) for row in rows)


def comparable(value: Any) -> Any:
    """JSON text is what it says, numbers are by their value, times are instants."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        value = json.loads(value)
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True)
    if isinstance(value, bool):
        return value
    if isinstance(value, float | Decimal | int):
        return round(Decimal(str(value)), DECIMALS)
    if isinstance(value, datetime):
        return value.timestamp()
    return value.isoformat() if isinstance(value, date) else value
