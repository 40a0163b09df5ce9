"""The outcomes of the lines that are not sent, collected while a plan is made, and the files that list them.

In: lines with their outcome. Out: `lines.csv` (all of them, for the push), `unchanged.csv` (those that need nothing),
`differences.csv`, and counts and first lines of each reason for the summary.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from orderbridge.pipelines.plan.model import DIFFERENCES_FILE, LINES_FILE, UNCHANGED_FILE
from orderbridge.sources.disk import create_private
from orderbridge.sources.files.formulas import BYTE_ORDER_MARK, neutralize_column

_TEXTS: Final = dict.fromkeys(("field", "code", "words", "id", "evidence"), pa.string())
OUTCOME_SCHEMA: Final = pa.schema(
    {"line": pa.int64(), "outcome": pa.string(), "same_as": pa.int64(), **_TEXTS}
)
_DIFFERENCE: Final = ("outcome", "customer_id", "field", "file_value", "platform_value")
DIFFERENCE_SCHEMA: Final = pa.schema(
    {"line": pa.int64(), **dict.fromkeys(_DIFFERENCE, pa.string())}
)
"""Columns of `differences.csv`."""
NEEDS_NOTHING: Final = ("unchanged", "exists_same", "merged", "skipped")
"""Outcomes of the lines in `unchanged.csv`."""
FIRST_LINES: Final = 5
CONFLICTING_LINES: Final = "conflicting_lines"
_WORDS: Final = {CONFLICTING_LINES: "the same key with other values: {}"}
"""Words of a code around those of its first line, where they are about that line only."""
SEPARATOR: Final = " | "
"""Separates the problems of a line that has several."""
CELLS: Final = "; line "
"""Begins the part of a rejected row's words that repeats its cells, which only private files do."""
_BATCH: Final = 65_536
_CELL: Final = re.compile(r" «.*»: ", re.DOTALL)
_CELL_CHARS: Final = 40


class Outcomes:
    """The lines that are not sent."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._rows: list[tuple[Any, ...]] = []

    def add(
        self,
        lines: Sequence[int],
        outcome: str,
        *,
        field: str = "",
        code: str = "",
        words: str = "",
    ) -> None:
        """Adds lines with one outcome and its reason."""
        self._rows += [(line, outcome, None, field, code, words, "", "") for line in lines]
        if len(self._rows) >= _BATCH:
            self._flush()

    def add_table(self, lines: pa.Array, columns: dict[str, pa.Array], evidence: str = "") -> None:
        """Adds inputs with their lines (a list each) and columns of `OUTCOME_SCHEMA`; a missing column is empty."""
        parents, flat = pc.list_parent_indices(lines), pc.list_flatten(lines)
        none, same = (pa.nulls(len(flat), pa.string()).fill_null(text) for text in ("", evidence))
        given = {"line": flat, "same_as": pa.nulls(len(flat), pa.int64()), "evidence": same}
        given |= {name: column.take(parents) for name, column in columns.items()}
        arrays = [given.get(name, none) for name in OUTCOME_SCHEMA.names]
        self._tables.append(pa.Table.from_arrays(arrays, schema=OUTCOME_SCHEMA))

    def table(self) -> pa.Table:
        """All lines, sorted."""
        self._flush()
        table = pa.concat_tables(self._tables) if self._tables else OUTCOME_SCHEMA.empty_table()
        self._tables = [table.sort_by("line").combine_chunks()]
        return self._tables[0]

    def _flush(self) -> None:
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [
                pa.array(column, kind)
                for column, kind in zip(columns, OUTCOME_SCHEMA.types, strict=True)
            ]
            self._tables.append(pa.Table.from_arrays(arrays, schema=OUTCOME_SCHEMA))
            self._rows = []


def lines_by_outcome(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The lines with each outcome."""
    names = pc.unique(table["outcome"]).to_pylist()
    return {name: table.filter(pc.equal(table["outcome"], name))["line"] for name in names}


class Reason(NamedTuple):
    """Why lines were rejected or skipped, their number and the first of them. `words` are those of the first line."""

    field: str
    code: str
    words: str
    lines: int
    first: list[int]


def words_of_problem(column: str, cell: str, words: str) -> str:
    """The words of a problem with its column and cell, for private files."""
    if not column:
        return words
    shown = " ".join(cell.split())
    if len(shown) > _CELL_CHARS:
        shown = f"{shown[:_CELL_CHARS]}…"
    return f"{column} «{shown}»: {words}" if shown else f"{column}: {words}"


def _without_cells(words: str) -> str:
    """The words of a problem without the cells of its line, which are for private files only."""
    return _CELL.sub(": ", words.partition(CELLS)[0])


def join_problems(parts: Sequence[str]) -> str:
    """The problems of a line in one text. The name of a column may contain the separator."""
    return SEPARATOR.join(part.replace("|", "/") for part in parts)


def reasons(table: pa.Table, outcome: str) -> list[Reason]:
    """The reasons for which lines were `rejected` or `skipped`, the most frequent first."""
    lines = table.filter(pc.equal(table["outcome"], outcome))
    # words of a reject may be about its line
    by = ["field", "code"] if outcome == "rejected" else ["words"]
    aggregates = [("line", "list"), *((name, "first") for name in ("field", "code", "words"))]
    groups = lines.group_by(by, use_threads=False).aggregate(aggregates)
    found: dict[tuple[str, str, str], Reason] = {}
    for group in groups.to_pylist():
        texts = [group[f"{name}_first"] for name in ("field", "code", "words")]
        problems = [text.split(SEPARATOR) if outcome == "rejected" else [text] for text in texts]
        for field, code, words in zip(*problems, strict=True):
            key = (field, code, "" if code else words)
            known = found.get(
                key,
                Reason(field, code, _WORDS.get(code, "{}").format(_without_cells(words)), 0, []),
            )
            first = sorted({*known.first, *group["line_list"][:FIRST_LINES]})[:FIRST_LINES]
            found[key] = known._replace(lines=known.lines + len(group["line_list"]), first=first)
    return sorted(found.values(), key=lambda reason: -reason.lines)


def write_outcomes(
    folder: Path, table: pa.Table, differences: Sequence[pa.Table], delimiter: str
) -> None:
    """Writes `lines.csv`, and for people `unchanged.csv` and `differences.csv`; an empty one has a header."""
    _write(
        folder / LINES_FILE, table.select(["line", "outcome", "same_as", "field", "code", "words"])
    )
    needs_nothing = pc.is_in(table["outcome"], value_set=pa.array(NEEDS_NOTHING))
    unchanged = table.filter(needs_nothing).select(["line", "outcome", "same_as", "id", "evidence"])
    _write(folder / UNCHANGED_FILE, unchanged, delimiter, BYTE_ORDER_MARK)
    difference_rows = pa.concat_tables(
        [DIFFERENCE_SCHEMA.empty_table(), *differences], promote_options="permissive"
    )
    _write(
        folder / DIFFERENCES_FILE,
        difference_rows.sort_by([("line", "ascending")]),
        delimiter,
        BYTE_ORDER_MARK,
    )


def _write(path: Path, table: pa.Table, delimiter: str = ",", mark: str = "") -> None:
    """Writes a CSV without cells that a spreadsheet runs."""
    for at, (name, kind) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
        if kind == pa.string():
            table = table.set_column(at, name, neutralize_column(table[name]))
    with create_private(path) as out:
        out.write(f"{mark}{delimiter.join(table.column_names)}\n".encode())
        options = csv.WriteOptions(
            include_header=False, quoting_style="needed", delimiter=delimiter
        )
        csv.write_csv(table, out, options)


def first_of(lines: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The first line of each input, given the lines of each."""
    first: np.ndarray[Any, np.dtype[np.int64]] = pc.list_element(lines, 0).to_numpy()
    return first
