"""Tables of any length, worked on in parts of bounded size.

In: the tables of a build, and pure functions of a part (frame in, `Part` out). Out: temporary tables with a row for each
row of the source, in its order, which DuckDB then joins to the source by position: columns that no rule reads never
enter a frame. Findings go to a table of their own. Parts are mapped over by `map`, or by a cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import pandas as pd
import pyarrow as pa

from pipelines.warehouse.accepted import Accepted
from transforms.findings import FINDINGS, Part, combine_findings
from transforms.frames import column, frame, from_arrow
from transforms.keys import one_row_per_id

PART_ROWS: Final = 200_000
"""So many rows take about 200 MB in frames."""
Mapper = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""`map`, or that of a cluster: results in the order of the arguments, few of which are read ahead."""
_ROW: Final = "~row"
"""The number of a row: sorted after all other columns, by whose values one of several rows with an id is chosen."""


@dataclass(slots=True)
class Findings:
    """The table of findings while it is made (`exceptions`, a temporary table with the columns of the published one).

    Attributes:
        accepted: the findings that a person has accepted.
        count: of all findings.
        errors: of those of severity `error`.
    """

    build: duckdb.DuckDBPyConnection
    accepted: Accepted
    count: int = 0
    errors: int = 0

    def __post_init__(self) -> None:
        self._store(frame(FINDINGS), more=False)

    def add(self, findings: pd.DataFrame) -> None:
        """Adds the columns of `FINDINGS`."""
        if len(findings):
            self.count += len(findings)
            self.errors += int((findings["severity"] == "error").sum())
            self._store(findings, more=True)

    def _store(self, findings: pd.DataFrame, *, more: bool) -> None:
        marks = pa.array(self.accepted.is_accepted(findings), pa.bool_())
        _store(self.build, "exceptions", findings.assign(is_accepted=column(marks, findings.index)), more=more)


@dataclass(frozen=True, slots=True)
class Parts:
    """Reads and writes the parts of tables of a build, which is open for writing.

    Attributes:
        build: with the tables.
        findings: what is found.
        map_tasks: maps a function over parts.
    """

    build: duckdb.DuckDBPyConnection
    findings: Findings
    map_tasks: Mapper = map

    def source(self, entity: str) -> str:
        """The raw table of an entity with one row for each id, or a copy that has; the others are findings.

        Its row numbers have no gaps.
        """
        table = f"raw.{entity}"
        first, end, count = self._rows(table)
        suspects = from_arrow(self.build.execute(_SUSPECTS.format(table=table)).to_arrow_table())
        if suspects.empty and end - first == count:
            return table
        kept, findings = one_row_per_id(suspects.rename(columns={"row": _ROW}), entity)
        self.findings.add(combine_findings(findings))
        _store(self.build, "left_out", suspects[["row"]][~suspects["row"].isin(kept[_ROW])], more=False)
        self.build.execute(
            f"CREATE OR REPLACE TEMP TABLE {entity}_kept AS FROM {table} WHERE rowid NOT IN (FROM temp.left_out)"
        )
        return f"temp.{entity}_kept"

    def read(self, columns: Mapping[str, str]) -> Iterator[pd.DataFrame]:
        """The columns (SQL) of tables without gaps, side by side and in their order, in at least one part.

        Each table has a row for each one of the first.
        """
        bounds = {table: self._rows(table) for table in columns}
        *_, count = next(iter(bounds.values()))
        for done in range(0, max(count, 1), PART_ROWS):
            sides = (
                f"(SELECT {columns[table]} FROM {table} "
                f"WHERE rowid >= {first + done} AND rowid < {first + done + PART_ROWS})"
                for table, (first, *_) in bounds.items()
            )
            yield from_arrow(self.build.execute(f"FROM {' POSITIONAL JOIN '.join(sides)}").to_arrow_table())

    def fill(self, name: str, task: Callable[[pd.DataFrame], Part], frames: Iterable[pd.DataFrame]) -> Counter[str]:
        """Makes a temporary table of what a task makes of frames, and keeps its findings. Returns its counts."""
        counts: Counter[str] = Counter()
        for number, part in enumerate(self.map_tasks(task, frames)):
            _store(self.build, name, part.table, more=number > 0)
            self.findings.add(part.findings)
            counts.update(part.counts)
        return counts

    def _rows(self, table: str) -> tuple[int, int, int]:
        """The number of the first row, the one after the last, and how many there are."""
        ((first, last, count),) = self.build.execute(f"SELECT min(rowid), max(rowid), count(*) FROM {table}").fetchall()
        return (first, last + 1, count) if count else (0, 0, 0)


# Blank ids and those with the same hash as another; ids that begin with a letter or digit are not blank.
_SUSPECTS: Final = """
    SELECT rowid AS row, * FROM {table} WHERE id IS NULL OR id < '!' OR id > '~'
    OR hash(id) IN (SELECT hash(id) FROM {table} GROUP BY ALL HAVING count(*) > 1)"""


def _store(build: duckdb.DuckDBPyConnection, name: str, rows: pd.DataFrame, *, more: bool) -> None:
    """Makes a temporary table of these rows, or adds them to it."""
    build.register("rows_of_part", pa.Table.from_pandas(rows, preserve_index=False))
    into = f"INSERT INTO temp.{name}" if more else f"CREATE OR REPLACE TEMP TABLE {name} AS"
    build.execute(f"{into} FROM rows_of_part")
    build.unregister("rows_of_part")
