"""What becomes of the lines that are not sent, gathered while a plan is made; and the files that tell it.

In: lines with their outcome, as they come. Out: `lines.csv` (all of them, for the push), `unchanged.csv` (what needs
nothing), and counts and first lines of each reason for the summary. No value of a row is in here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from pipelines.plan.model import DIFFERENCES_FILE, LINES_FILE, UNCHANGED_FILE
from sources.disk import create_private

SCHEMA: Final = pa.schema(
    {
        "line": pa.int64(),
        "outcome": pa.string(),
        "same_as": pa.int64(),
        "field": pa.string(),
        "code": pa.string(),
        "words": pa.string(),
        "id": pa.string(),
        "evidence": pa.string(),
    }
)
DIFFERENCE: Final = pa.schema(
    {
        "line": pa.int64(),
        "outcome": pa.string(),
        "customer_id": pa.string(),
        "field": pa.string(),
        "file_value": pa.string(),
        "platform_value": pa.string(),
    }
)
"""What `differences.csv` tells."""
NEEDS_NOTHING: Final = ("unchanged", "exists_same", "merged", "skipped")
FIRST_LINES: Final = 5
CONFLICT: Final = "conflicting_lines"
WORDS: Final = {CONFLICT: "lines of one key say different things, and nobody knows which is right"}
"""What a code means where the words of its first line are about that line alone."""
BETWEEN: Final = " | "
"""Stands between the problems of a line that has several."""
_BATCH: Final = 65_536


class Outcomes:
    """The lines that are not sent."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._rows: list[tuple[Any, ...]] = []

    def add(
        self, lines: Sequence[int], outcome: str, *, field: str = "", code: str = "", words: str = "", same_as: int = 0
    ) -> None:
        """Lines with one outcome, and why."""
        self._rows += [(line, outcome, same_as or None, field, code, words, "", "") for line in lines]
        if len(self._rows) >= _BATCH:
            self._flush()

    def add_table(self, lines: pa.Array, columns: dict[str, pa.Array]) -> None:
        """Inputs with their lines (a list each), and columns of `SCHEMA`; a column that is not given is empty."""
        parents, flat = pc.list_parent_indices(lines), pc.list_flatten(lines)
        arrays = [
            flat
            if name == "line"
            else columns[name].take(parents)
            if name in columns
            else pa.nulls(len(flat), kind)
            if name == "same_as"
            else pa.array([""] * len(flat), kind)
            for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True)
        ]
        self._tables.append(pa.Table.from_arrays(arrays, schema=SCHEMA))

    def whole(self) -> pa.Table:
        """All of them, by line."""
        self._flush()
        table = pa.concat_tables(self._tables) if self._tables else SCHEMA.empty_table()
        self._tables = [table.sort_by("line").combine_chunks()]
        return self._tables[0]

    def _flush(self) -> None:
        if self._rows:
            arrays = [
                pa.array(column, kind) for column, kind in zip(zip(*self._rows, strict=True), SCHEMA.types, strict=True)
            ]
            self._tables.append(pa.Table.from_arrays(arrays, schema=SCHEMA))
            self._rows = []


def counted(table: pa.Table) -> dict[str, int]:
    """How many lines have each outcome."""
    counts = table["outcome"].value_counts().to_pylist()
    return {row["values"]: row["counts"] for row in counts}


def firsts(table: pa.Table) -> dict[str, list[int]]:
    """The first lines of each outcome."""
    names = counted(table)
    return {
        name: table.filter(pc.equal(table["outcome"], name))["line"].slice(0, FIRST_LINES).to_pylist() for name in names
    }


class Reason(NamedTuple):
    """Why lines were rejected or skipped: how many, and the first of them. `words` are those of the first line."""

    field: str
    code: str
    words: str
    lines: int
    first: list[int]


def joined(parts: Sequence[str]) -> str:
    """The problems of a line in one text. The name of a column may hold the sign that stands between them."""
    return BETWEEN.join(part.replace("|", "/") for part in parts)


def reasons(table: pa.Table) -> list[Reason]:
    """Each reason for which lines were rejected, that of most lines first."""
    rejected = table.filter(pc.equal(table["outcome"], "rejected"))
    aggregates = [("line", "count"), ("line", "min"), ("words", "first")]
    groups = rejected.group_by(["field", "code"], use_threads=False).aggregate(aggregates)
    found: dict[tuple[str, str], Reason] = {}
    for group in groups.sort_by("line_min").to_pylist():
        same = pc.and_(pc.equal(rejected["field"], group["field"]), pc.equal(rejected["code"], group["code"]))
        lines = rejected.filter(same)["line"].slice(0, FIRST_LINES).to_pylist()
        told = [group[name].split(BETWEEN) for name in ("field", "code", "words_first")]
        for field, code, words in zip(*told, strict=True):
            known = found.get((field, code), Reason(field, code, WORDS.get(code, words), 0, []))
            firsts = sorted({*known.first, *lines})[:FIRST_LINES]
            found[field, code] = known._replace(lines=known.lines + group["line_count"], first=firsts)
    return sorted(found.values(), key=lambda reason: -reason.lines)


def skipped(table: pa.Table) -> list[Reason]:
    """Each reason for which lines are no input, in the order of the first line of each."""
    rows = table.filter(pc.equal(table["outcome"], "skipped"))
    found = []
    for words in pc.unique(rows["words"]).to_pylist():
        lines = rows.filter(pc.equal(rows["words"], words))["line"]
        found.append(Reason("", "", words, len(lines), lines.slice(0, FIRST_LINES).to_pylist()))
    return found


def write(folder: Path, table: pa.Table, differences: Sequence[pa.Table]) -> None:
    """Writes `lines.csv`, `unchanged.csv` and `differences.csv`; one that has nothing to tell has its header."""
    wanted = ["line", "outcome", "same_as", "field", "code", "words"]
    _write(folder / LINES_FILE, table.select(wanted))
    is_well = pc.is_in(table["outcome"], value_set=pa.array(NEEDS_NOTHING))
    well = table.filter(is_well).select(["line", "outcome", "same_as", "id", "evidence"])
    _write(folder / UNCHANGED_FILE, well)
    told = pa.concat_tables([DIFFERENCE.empty_table(), *differences], promote_options="permissive")
    _write(folder / DIFFERENCES_FILE, told.sort_by([("line", "ascending")]))


def _write(path: Path, table: pa.Table) -> None:
    with create_private(path) as out:
        out.write((",".join(table.column_names) + "\n").encode())
        csv.write_csv(table, out, csv.WriteOptions(include_header=False, quoting_style="needed"))


def first_of(lines: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The first line of each input."""
    first: np.ndarray[Any, np.dtype[np.int64]] = pc.list_element(lines, 0).to_numpy()
    return first
