"""Columns of booleans with one word, such as `x`, and empty cells: a person is asked whether that is yes and no.

In: the cells of a column of booleans. Out: the mapping with the word for yes, and no for an empty cell. Where a column
has other words too, or nobody is there, its cells are rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.import_file.asking import YES as IS_YES
from orderbridge.pipelines.import_file.asking import FileQuestion, Interview
from orderbridge.pipelines.mapping import Mapping as ColumnMapping
from orderbridge.pipelines.mapping.cells import NO, YES, ValueKind, filled
from orderbridge.pipelines.mapping.field_paths import resolve
from orderbridge.sources.words import number

_NO: Final = ("-",)
"""A mapping has words for both; that for no is the empty cell."""


class Marks:
    """The words of a column, batch by batch."""

    def __init__(self) -> None:
        self.words: set[str] = set()
        self.filled = 0
        self.empty = 0

    def add(self, cells: pa.ChunkedArray) -> None:
        """Looks at further cells."""
        texts = filled(cells.combine_chunks())
        self.empty += texts.null_count
        self.filled += len(texts) - texts.null_count
        self.words |= {text.casefold() for text in pc.unique(texts.drop_null()).to_pylist()}

    @property
    def word(self) -> str:
        """The word that marks rows; empty if there are several, or it is known to mean yes or no."""
        known = {word.casefold() for word in (*YES, *NO)}
        is_mark = len(self.words) == 1 and self.empty > 0 and not self.words & known
        return min(self.words) if is_mark else ""


def columns_of(mapping: ColumnMapping, *kinds: ValueKind) -> list[str]:
    """The columns that fill a field with values of one of these kinds."""
    names = []
    for name, column in mapping.columns.items():
        target = resolve(mapping.kind, column.field or "")
        if not isinstance(target, str) and target.value_kind in kinds:
            names.append(name)
    return names


def with_marks(
    mapping: ColumnMapping, marks: Mapping[str, Marks], interview: Interview
) -> ColumnMapping:
    """The mapping with a mark for yes and an empty cell for no, where a whole column is so and a person agrees."""
    columns = dict(mapping.columns)
    for name, found in marks.items():
        if not found.word:
            continue
        if interview.ask_one(_question(name, found, str(columns[name].field))) == IS_YES:
            formats = replace(columns[name].formats, yes=(found.word,), no=_NO)
            columns[name] = replace(columns[name], formats=formats, default=False)
    return replace(mapping, columns=columns)


def _question(name: str, found: Marks, field: str) -> FileQuestion:
    values = {
        "column": name,
        "word": found.word,
        "filled": number(found.filled, "line"),
        "empty": f"{found.empty:,}",
        "field": field,
    }
    return FileQuestion(topic="mark", about=name, values=values)
