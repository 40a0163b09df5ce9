"""Columns to bodies: what is given and nothing else, in the order of the shape."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pipelines.imports.bodies import Array, Given, Leaf, Object, bodies, values


def made(shape: Object, **columns: list[Any]) -> list[dict[str, Any]]:
    return bodies(shape, Given(columns, len(next(iter(columns.values()), [0])), columns))


def test_a_body_has_what_is_given_in_the_order_of_the_shape() -> None:
    shape = Object((("b", Leaf("x")), ("a", Leaf("y"))))
    rows = made(shape, x=[1, None, None], y=["p", "q", None])
    assert rows == [{"b": 1, "a": "p"}, {"a": "q"}, {}]
    assert list(rows[0]) == ["b", "a"]


def test_a_false_and_a_zero_are_given() -> None:
    assert made(Object((("a", Leaf("x")), ("b", Leaf("y")))), x=[False, None], y=[0, 0]) == [
        {"a": False, "b": 0},
        {"b": 0},
    ]


def test_an_object_without_members_is_left_out() -> None:
    shape = Object((("location", Object((("line", Leaf("x")), ("divisions", Object((("level1", Leaf("y")),)))))),))
    assert made(shape, x=["a", None, None], y=["b", "c", None]) == [
        {"location": {"line": "a", "divisions": {"level1": "b"}}},
        {"location": {"divisions": {"level1": "c"}}},
        {},
    ]


def test_an_item_is_there_where_one_of_its_own_values_is() -> None:
    def document(at: int) -> Object:
        return Object(
            (("number", Leaf(f"n{at}")), ("kind", Leaf(f"k{at}", "nif")), ("isDefault", Leaf(None, default=True)))
        )

    columns: dict[str, list[Any]] = {
        "n0": ["1", None, None],
        "k0": [None, None, None],
        "n1": ["2", "3", None],
        "k1": [None, "vat", None],
    }
    assert made(Object((("documents", Array((document(0), document(1)))),)), **columns) == [
        {"documents": [{"number": number, "kind": "nif", "isDefault": True} for number in "12"]},
        {"documents": [{"number": "3", "kind": "vat", "isDefault": True}]},
        {},
    ]


def test_an_attribute_is_there_where_its_value_is() -> None:
    named = Object((("name", Leaf(None, "Color")), ("value", Leaf("c"))), "value")
    reported = Object((("name", Leaf("n")), ("value", Leaf("v"))), "value")
    assert made(
        Object((("attributes", Array((reported, named))),)), c=["red", None], n=["Size", "Size"], v=["L", None]
    ) == [
        {"attributes": [{"name": "Size", "value": "L"}, {"name": "Color", "value": "red"}]},
        {},
    ]


def test_constants_alone_make_an_item() -> None:
    shape = Object((("a", Leaf("x")), ("images", Array((Object((("url", Leaf(None, "u")),)),)))))
    assert made(shape, x=[1]) == [{"a": 1, "images": [{"url": "u"}]}]


def test_each_line_of_a_group_gives_an_item() -> None:
    shape = Object((("a", Leaf("x")), ("images", Array((), Object((("url", Leaf("u")),))))))
    given = Given({"x": [1, 2]}, 2, {"x": [1, None, 2], "u": ["p", None, "q"]}, [(0, 2), (2, 3)])
    assert bodies(shape, given) == [{"a": 1, "images": [{"url": "p"}]}, {"a": 2, "images": [{"url": "q"}]}]


@pytest.mark.parametrize(
    ("kind", "column", "expected"),
    [
        ("number", ["18.00", None, "0.125", "18.00"], [Decimal(18), None, Decimal("0.125"), Decimal(18)]),
        ("number", ["100", "0.0"], [Decimal(100), Decimal(0)]),
        ("number", ["-0", "-0.0"], [Decimal(0), Decimal(0)]),
        ("integer", ["7", "9007199254740993", None], [7, 9007199254740993, None]),
        ("text", ["a", None], ["a", None]),
    ],
)
def test_values_are_pythons_own_and_exact(kind: str, column: list[Any], expected: list[Any]) -> None:
    found, distinct = values(kind, pa.array(column, pa.string()))
    assert found == expected
    assert set(distinct) == set(expected) - {None}
    assert [str(value) for value in found] == [str(value) for value in expected]


def test_booleans_stay_booleans_next_to_nulls() -> None:
    assert values("boolean", pa.array([True, None, False]))[0] == [True, None, False]
    assert values("boolean", pa.array([True, False]))[0] == [True, False]
