"""Frames hold what Arrow holds."""

from __future__ import annotations

from decimal import Decimal

import pandas as pd
import pytest

from transforms.frames import BIGINT, MONEY, TEXT, frame, to_arrow, typed

SCHEMA = {"id": TEXT, "uses": BIGINT, "value": MONEY}


def test_nulls_keep_the_type_of_their_column() -> None:
    made = frame(SCHEMA, [{"id": "007", "uses": 2**63 - 1}, {"value": Decimal("0.000000001")}])
    assert made["uses"].tolist() == [2**63 - 1, pd.NA]
    assert to_arrow(made, SCHEMA).to_pylist() == [
        {"id": "007", "uses": 2**63 - 1, "value": None},
        {"id": None, "uses": None, "value": Decimal("0.000000001")},
    ]


def test_columns_come_in_the_declared_order_whatever_the_index() -> None:
    made = typed(frame(dict(reversed(SCHEMA.items())), [{"id": "1"}, {"id": "2"}]).iloc[1:], SCHEMA)
    assert list(made) == list(SCHEMA)
    assert made.index.tolist() == [0]


def test_a_column_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError, match="value"):
        typed(frame({"id": TEXT, "uses": BIGINT}), SCHEMA)
