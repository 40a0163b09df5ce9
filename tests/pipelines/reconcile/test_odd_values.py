"""Findings about values of another kind than their column: when they are a change of the field, and what is named."""

from __future__ import annotations

import json

import duckdb
import pandas as pd
import pytest

from pipelines.reconcile.odd_values import odd_values
from pipelines.warehouse import ops


def found(odd: int, listed: int, field: str = "total") -> list[tuple[str, str]]:
    """Rule and detail of the findings about orders of which some have an odd value in a field."""
    with duckdb.connect() as build:
        ops.create_missing(build)
        build.execute("CREATE SCHEMA raw; CREATE TABLE raw.orders (_extra VARCHAR, _missing_since TIMESTAMPTZ)")
        rows = [[json.dumps({field: "x"})]] * odd + [["{}"]] * (listed - odd)
        build.executemany("INSERT INTO raw.orders (_extra) VALUES ($1)", rows)
        made = pd.concat(odd_values(build, "orders"))
    return list(made[["rule", "detail"]].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    ("odd", "listed", "rule"),
    [(4, 40, "odd_value"), (5, 40, "form_changed"), (5, 101, "odd_value"), (6, 101, "form_changed")],
)
def test_five_odd_values_and_a_twentieth_of_the_rows_are_a_change(odd: int, listed: int, rule: str) -> None:
    assert found(odd, listed) == [(rule, f"orders: total: {odd} values in {listed} rows")]


@pytest.mark.parametrize(
    ("field", "shown"),
    [("taxes[3].tax rate", "taxes[].tax rate"), ("ana@x.example", "(not shown)"), ("51 999", "(not shown)")],
)
def test_a_key_that_may_be_a_person_is_not_shown(field: str, shown: str) -> None:
    assert found(1, 1, field) == [("odd_value", f"orders: {shown}: 1 values in 1 rows")]
