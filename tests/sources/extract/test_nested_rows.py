"""Rows that contain their items again, whatever names the tables of the items have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from sources.contract import ORDER
from sources.decode.rows import Page
from sources.decode.undocumented import InferredSchema
from sources.extract.nested_rows import nested_rows

LONG = "a_field_with_a_long_name_as_generated_code_has_them"


def values_of_a(value: Any) -> list[Any]:
    """The values of all fields `a`, and the lists around them."""
    if isinstance(value, dict):
        inner = [item for name, item in sorted(value.items()) if name == "a" or isinstance(item, dict | list)]
        return [each for item in inner for each in values_of_a(item)]
    return [[each for item in value for each in values_of_a(item)]] if isinstance(value, list) else [value]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"Lines": [{"taxes": [{"a": 21}]}], "lines": [{"taxes": [{"a": 11}, {"a": 12}]}]}, [[[11, 12]], [[21]]]),
        ({f"{LONG}_1": [{f"{LONG}_2": [{f"{LONG}_3": [{"a": 1}, {"a": 2}]}]}]}, [[[[1, 2]]]]),
        ({"x": {"lines": [{"y": {"taxes": [{"a": 1}]}}]}}, [[[1]]]),
    ],
)
def test_items_are_in_the_rows_that_hold_them(row: dict[str, Any], expected: list[Any]) -> None:
    inferred = InferredSchema(ORDER)
    tables = inferred.decode([Page(1, json.dumps([{"id": "o-1", **row}]).encode())]).tables

    def batches() -> Iterator[tuple[str, pa.Table]]:
        yield from ((name, table.drop_columns(["_page", "_position"])) for name, table in tables.items())

    ((nested,),) = nested_rows(ORDER, batches, inferred.holders)
    assert values_of_a(nested) in (expected, expected[::-1])
