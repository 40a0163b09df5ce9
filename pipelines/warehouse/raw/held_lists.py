"""Lists that a run held back: they lost more records than is plausible. In `ops.held_lists`, or the note of a failure.

In: what a pull compared. Out: the lists whose last read is held back, with the evidence that a person judges them by.
Where a run published nothing, its evidence is in the note of its failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import duckdb
import msgspec

from orderbridge.pipelines.warehouse import failure
from orderbridge.pipelines.warehouse.ops import insert, last_reads
from orderbridge.pipelines.warehouse.sql import has_tables
from orderbridge.sources.settings import warehouse_path

_LAST_HELD: Final = """
    SELECT h.resource, h.known, h.absent, h.reason, h.examples, h.compared_with FROM ops.held_lists h SEMI JOIN (
        SELECT resource, arg_max(run_id, rowid) AS run_id FROM ops.coverage GROUP BY resource
    ) last USING (resource, run_id)
    ORDER BY h.rowid"""
_FACTS: Final = "held_lists"


class HeldList(msgspec.Struct, frozen=True):
    """A list that was held back.

    Attributes:
        resource: its name.
        known: records that the list had.
        absent: those of them that it has no more.
        reason: why it is held back.
        examples: ids of some of the absent records, with commas.
        compared_with: the run that read the records that are known.
    """

    resource: str
    known: int
    absent: int
    reason: str
    examples: str
    compared_with: str

    @property
    def listed(self) -> int:
        """The known records that are still in the list."""
        return self.known - self.absent


def published_read(warehouse: duckdb.DuckDBPyConnection, resource: str) -> str:
    """The run whose read of a list is in its raw table; empty where that is not known."""
    read = last_reads(warehouse).get(resource)
    return "" if read is None else read.run_id


def record_held(build: duckdb.DuckDBPyConnection, run_id: str, held: HeldList) -> None:
    """Adds a row to `ops.held_lists`."""
    insert(build, "held_lists", run_id=run_id, **msgspec.structs.asdict(held))


def facts_of(held: Mapping[str, HeldList]) -> dict[str, Any]:
    """The lists of a run that published nothing, for the note of its failure."""
    return {_FACTS: [msgspec.structs.asdict(one) for one in held.values()]} if held else {}


def held_lists(warehouse: duckdb.DuckDBPyConnection) -> list[HeldList]:
    """The lists whose last read is held back, from a published warehouse and the note of a failure after it."""
    held: dict[str, HeldList] = {}
    if has_tables(warehouse, "ops", "held_lists", "coverage"):
        for row in warehouse.execute(_LAST_HELD).fetchall():
            one = HeldList(*row)
            held[one.resource] = one
    note = failure.read(warehouse_path()) or {}
    for facts in note.get(_FACTS, []):
        one = msgspec.convert(facts, HeldList)
        if one.compared_with == published_read(warehouse, one.resource):
            held[one.resource] = one
    return [*held.values()]
