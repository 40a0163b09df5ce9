"""Columns of numbers with one unit throughout, such as `1,5 kg`: a person is asked whether it is the platform's.

In: the cells of a column of numbers. Out: the mapping with the unit, which is read over then. The interface does not
show the units of its numbers, so without an answer such cells are rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.import_file.asking import YES, FileQuestion, Interview
from orderbridge.pipelines.mapping import Mapping as ColumnMapping
from orderbridge.pipelines.mapping.cells import filled
from orderbridge.transforms.values.numbers import is_currency, units


class Units:
    """The units of a column, batch by batch; "" for a cell without one."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def add(self, cells: pa.ChunkedArray) -> None:
        """Looks at further cells."""
        texts = filled(cells.combine_chunks()).drop_null()
        self.found |= set(pc.unique(pc.fill_null(units(texts), "")).to_pylist())

    @property
    def unit(self) -> str:
        """The unit that all numbers have; empty if they have none, or several, or it is a currency."""
        unit = min(self.found) if len(self.found) == 1 else ""
        return "" if is_currency(unit) else unit


def with_units(
    mapping: ColumnMapping, columns: Mapping[str, Units], interview: Interview
) -> ColumnMapping:
    """The mapping with the units that a person says are the platform's."""
    mapped = dict(mapping.columns)
    for name, found in columns.items():
        unit = found.unit
        if not unit:
            continue
        if interview.ask_one(_question(name, unit, str(mapped[name].field))) == YES:
            formats = replace(mapped[name].formats, currency=unit)
            mapped[name] = replace(mapped[name], formats=formats)
    return replace(mapping, columns=mapped)


def _question(name: str, unit: str, field: str) -> FileQuestion:
    values = {"column": name, "unit": unit, "field": field}
    return FileQuestion(topic="unit", about=name, values=values)
