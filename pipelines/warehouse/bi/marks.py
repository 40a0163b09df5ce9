"""Marks of figures that rest on an assumption: a sign, and a list that says which assumption.

In: an open warehouse. Out: the columns of `bi` that rest on what nobody has confirmed, and the list. A mark goes with
the next run after the answer.
"""

from __future__ import annotations

from typing import Final

import duckdb

from orderbridge.pipelines.warehouse.sql import has_tables
from orderbridge.sources.settings.setting import SETTINGS
from orderbridge.sources.words import shortened

MARK: Final = "≈"
_ASSUMED: Final = """
    SELECT question, value FROM reconciled.meanings WHERE state = 'assumed' ORDER BY question"""


def assumptions(warehouse: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The values that are used and that nobody has confirmed, by question; none without a run of this version.

    Long ones are shortened.
    """
    return {question: shortened(value) for question, value in _assumed(warehouse).items()}


def _assumed(warehouse: duckdb.DuckDBPyConnection) -> dict[str, str]:
    if not has_tables(warehouse, "reconciled", "meanings"):
        return {}
    return dict(warehouse.execute(_ASSUMED).fetchall())


def assumed_columns(warehouse: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """The assumptions that a column of `bi` rests on, in words and whole, by its name: `bi.orders.total`."""
    columns: dict[str, list[str]] = {}
    for question, value in _assumed(warehouse).items():
        setting = SETTINGS.get(question)
        for column in setting.holds_up if setting is not None else ():
            columns.setdefault(column, []).append(f"{question} = {value}")
    return columns


def assumed_line(warehouse: duckdb.DuckDBPyConnection) -> str:
    """One line with what is assumed, and the command that shows it; empty where nothing is."""
    assumed = assumptions(warehouse).items()
    values = ", ".join(f"{question} = {value}" for question, value in assumed)
    return f"{MARK} assumed, not confirmed: {values}; see orderbridge questions" if values else ""
