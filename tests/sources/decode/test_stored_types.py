"""Columns of a batch in the types that a pipeline has stored: never narrower, and no value is lost."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sources.decode.stored_types import as_stored
from sources.decode.table_schema import DECIMAL

TEXT, WHOLE, NUMBER, BOOLEAN = pa.string(), pa.int64(), DECIMAL, pa.bool_()


@pytest.mark.parametrize(
    ("values", "own", "stored", "fitting", "others"),
    [
        ([1, None], WHOLE, "decimal", [Decimal(1), None], None),
        ([1, None], WHOLE, "text", ["1", None], None),
        ([True, False], BOOLEAN, "text", ["true", "false"], None),
        ([Decimal("10.50"), Decimal(7)], NUMBER, "text", ["10.5", "7"], None),
        ([Decimal(7), None], NUMBER, "bigint", [7, None], None),
        ([Decimal("0.5"), Decimal(7)], NUMBER, "bigint", [None, 7], ("v_decimal", [Decimal("0.5"), None])),
        ([Decimal(10) ** 20], NUMBER, "bigint", [None], ("v_decimal", [Decimal(10) ** 20])),
        (["007", "7"], TEXT, "bigint", [None, 7], ("v_text", ["007", None])),
        (["1.50", "1.0000000001"], TEXT, "decimal", [Decimal("1.5"), None], ("v_text", [None, "1.0000000001"])),
        (["true", None], TEXT, "bool", [None, None], ("v_text", ["true", None])),
        ([True], BOOLEAN, "bigint", [None], ("v_bool", [True])),
        ([5, 1], WHOLE, "bool", [None, None], ("v_bigint", [5, 1])),
        ([Decimal("1905.33"), Decimal("1e-9"), 0], NUMBER, "double", [1905.33, 1e-9, 0.0], None),
        ([5], WHOLE, "timestamp", [5], None),
        ([5], WHOLE, None, [5], None),
        ([5], pa.int32(), "bigint", [5], None),
    ],
)  # fmt: skip
def test_values_are_in_the_stored_type_or_in_a_variant(
    values: list[Any], own: Any, stored: str | None, fitting: list[Any], others: tuple[str, list[Any]] | None
) -> None:
    batch = pa.table({"x": pa.array(values, own), "y": pa.array(["as it was"] * len(values))})
    typed, variants = as_stored(batch, {"x": stored} if stored else {})
    expected = {"x": fitting, "y": ["as it was"] * len(values)} | ({f"x__{others[0]}": others[1]} if others else {})
    assert typed.to_pydict() == expected
    assert variants == ([f"x__{others[0]}"] if others else [])
