"""The tail of the orders: what `pull --tail` continues from, kept from run to run in `ops.order_cursor`.

In: the published warehouse, the settings and the walk of this run. Out: the orders after the last read, or all of them
with the reason; and in the build, where the next tail starts. That row is published with the orders that it belongs to,
so a crash loses neither.

The interface shows neither the sequence of the orders nor whether a cursor can be used again. Policy: a tail starts
only where the last whole read showed that new orders are listed last, and only what follows the repeated last rows is
taken as new (`sources.extract.v1_pages`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from datetime import datetime, timedelta
from math import comb
from pathlib import Path
from typing import Final, Literal, NamedTuple

import duckdb

from orderbridge.pipelines.warehouse.ops import insert, last_reads
from orderbridge.pipelines.warehouse.raw.merge import MergeCounts
from orderbridge.pipelines.warehouse.sql import columns_of, has_tables, sql_name, sql_text
from orderbridge.sources.contract import ORDER
from orderbridge.sources.extract.result import ListResult
from orderbridge.sources.extract.v1_pages import CursorPosition, TailMismatch
from orderbridge.sources.settings import PublicV1Settings
from orderbridge.transforms.orders.names import ORDER_NAMES

CHANCE: Final = 10**6
"""New orders that would be last by chance in one of so many lists show that new orders are listed last."""
_COUNTED_MAX: Final = 1000
STEPS_MIN: Final = 9
"""So many steps between times, all in one direction, show in which sequence the orders are listed."""
_POSITION: Final = ("cursor", "page_limit", "page_rows", "page_digest")
_OWNER: Final = ("base_url", "environment", "order_key", "organization")
_KNOWN_AMONG_LAST: Final = """
    SELECT count(*) FROM raw.orders o SEMI JOIN (
        SELECT id FROM read_parquet($path, file_row_number = true, hive_partitioning = false)
        WHERE file_row_number >= $first
    ) l ON l.id = o.id"""
_STEPS: Final = """
    SELECT count_if(d > c), count_if(d < c), count_if(b > c AND a > c AND b > d),
        bool_and(d IS NOT NULL AND (NOT {is_text} OR regexp_matches(d::VARCHAR, '^\\d{{4}}-\\d\\d-\\d\\d')))
    FROM (
        SELECT lag({name}, 3) OVER rows AS a, lag({name}, 2) OVER rows AS b, lag({name}) OVER rows AS c, {name} AS d
        FROM read_parquet($path, file_row_number = true, hive_partitioning = false)
        WINDOW rows AS (ORDER BY file_row_number))"""
"""Steps up and down, steps down that no row alone explains, and whether all values are times that can be compared."""


class _SavedCursor(NamedTuple):
    """A row of `ops.order_cursor`: where the orders continue, and of whom they are.

    `is_newest_last`: whether new orders are listed last; None where nothing showed it.
    """

    position: CursorPosition
    owner: dict[str, str | None]
    is_newest_last: bool | None


def _saved(warehouse: duckdb.DuckDBPyConnection) -> _SavedCursor | None:
    if not has_tables(warehouse, "ops", "order_cursor"):
        return None
    sql = f"SELECT is_newest_last, {', '.join(_OWNER + _POSITION)} FROM ops.order_cursor WHERE page_rows > 0"
    for is_newest_last, *values in warehouse.execute(sql).fetchall():
        owner = values[: len(_OWNER)]
        position = values[len(_OWNER) :]
        return _SavedCursor(
            CursorPosition(*position), dict(zip(_OWNER, owner, strict=True)), is_newest_last
        )
    return None


class OrderTail:
    """How a pull reads the orders: from where the last read ended, where that is wanted and possible.

    Args:
        settings: of public v1.
        is_wanted: otherwise they are read whole.
    """

    def __init__(self, settings: PublicV1Settings, *, is_wanted: bool) -> None:
        self._settings = settings
        self._is_wanted = is_wanted
        self._saved: _SavedCursor | None = None
        self._reason = "nothing was pulled before"

    def find_start(self, warehouse: duckdb.DuckDBPyConnection, now: datetime) -> None:
        """Finds where the orders of a published warehouse can be continued."""
        if not self._is_wanted:
            return
        self._saved = _saved(warehouse)
        self._reason = ""
        whole = last_reads(warehouse).get(ORDER.name)
        if whole is None or self._saved is None:
            self._reason = "no whole read of the orders has left a cursor"
            return
        age_max = timedelta(days=self._settings.whole_read_days)
        if not timedelta() <= now - whole.ended_at < age_max:
            self._reason = f"the last whole read ended at {whole.ended_at:%Y-%m-%d %H:%M} UTC"

    def objection(self, organization: str | None) -> str:
        """Why the orders have to be read whole with a key of this organization; empty where they can be continued."""
        if self._reason or self._saved is None:
            return self._reason
        position, owner, is_newest_last = self._saved
        for name, now in self._owner(organization).items():
            words = name.replace("_", " ")
            if now is None:
                return f"the {words} of the key is not known now"
            if owner[name] is None:
                return f"the {words} of the saved cursor is not known"
            if owner[name] != now:
                return f"the saved cursor is of another {words}"
        if position.limit != self._settings.page_limit:
            return "the saved cursor is of another page limit"
        if is_newest_last is None:
            return "nothing shows where new orders are listed"
        return "" if is_newest_last else "new orders are not listed last"

    def _owner(self, organization: str | None) -> dict[str, str | None]:
        """Whose orders the cursors of this run lead to, and the field that identifies them."""
        values = {
            name: str(getattr(self._settings, name)) for name in _OWNER if name != "organization"
        }
        return {**values, "organization": organization}

    def read(
        self,
        read: Callable[[CursorPosition | None], ListResult],
        organization: Callable[[], str | None],
    ) -> ListResult:
        """Reads the tail of the orders, else all of them with the reason in the evidence.

        Args:
            read: reads from a position, or whole.
            organization: of the key; None where it is not known.
        """
        if not self._is_wanted:
            return read(None)
        reason = self.objection(organization())
        observed = ""
        if self._saved is not None and not reason:
            try:
                return read(self._saved.position)
            except TailMismatch as mismatch:
                reason = str(mismatch)
                observed = mismatch.observed
        result = read(None)
        result.evidence.insert(0, f"read whole: {reason}")
        if observed:
            result.observations["cursor_reuse", observed] += 1
        return result

    def record(
        self,
        build: duckdb.DuckDBPyConnection,
        run_id: str,
        walked: ListResult,
        counts: MergeCounts,
        organization: str | None,
    ) -> None:
        """Records where the next tail starts, before the orders of this run are merged into the raw table.

        Args:
            build: open for writing; its raw orders are those of the runs before.
            run_id: of the run.
            walked: over the orders, whole or a tail.
            counts: of its rows compared with the raw ones.
            organization: of the key; None where it is not known.
        """
        owner = self._owner(organization)
        saved = _saved(build)
        is_newest_last = None
        if saved is not None and saved.owner == owner:
            is_newest_last = saved.is_newest_last
        shown = _is_newest_last(build, walked, counts) if walked.is_whole else None
        if shown is not None:
            is_newest_last = shown
            seen = "new orders are listed last" if shown else "new orders are not listed last"
            walked.observations["order_sequence", seen] += 1
        build.execute("DELETE FROM ops.order_cursor")
        if walked.position is not None:
            position = dict(zip(_POSITION, astuple(walked.position), strict=True))
            insert(
                build,
                "order_cursor",
                run_id=run_id,
                **position,
                **owner,
                is_newest_last=is_newest_last,
            )


def _is_newest_last(
    build: duckdb.DuckDBPyConnection, walked: ListResult, counts: MergeCounts
) -> bool | None:
    """Whether a whole walk shows that new orders are listed last; None where it shows nothing.

    It does where the orders are listed by their time; or where the orders that no run before had are the last ones, too
    many for chance, and no times contradict that: new orders of a new customer may be last in a list by customer.
    """
    if len(walked.files[ORDER.name]) != 1:
        return None  # rows of several sweeps are in no sequence
    ((path, rows),) = walked.files[ORDER.name]
    new = counts.new
    known = rows - counts.new
    if new:
        values = {"path": str(path), "first": known}
        if build.execute(_KNOWN_AMONG_LAST, values).fetchall() != [(0,)]:
            return False
    kinds = columns_of(build, f"FROM read_parquet({sql_text(path)}, hive_partitioning = false)")
    sequences = {
        _sequence(build, path, name, kinds[name])
        for name in ORDER_NAMES["ordered_at"]
        if name in kinds
    }
    if sequences & {"ascending", "descending"}:
        return "ascending" in sequences
    new, known = min(new, _COUNTED_MAX), min(known, _COUNTED_MAX)
    return True if comb(new + known, new) >= CHANCE and "mixed" not in sequences else None


def _sequence(
    build: duckdb.DuckDBPyConnection, path: Path, name: str, kind: str
) -> Literal["ascending", "descending", "mixed"] | None:
    """How the values of a column of times follow each other; None where that shows nothing.

    A step back that is gone without one of its two rows is a backdated order, and makes no sequence mixed.
    """
    if kind not in ("VARCHAR", "BIGINT", "INTEGER"):
        return None
    row = build.execute(
        _STEPS.format(name=sql_name(name), is_text=kind == "VARCHAR"), {"path": str(path)}
    ).fetchone()
    rises, falls, steps_back, are_times = row or (0, 0, 0, False)
    if not are_times or rises is None:  # or a single value, which no other follows
        return None
    if rises and falls:
        return "mixed" if steps_back else None
    if max(rises, falls) < STEPS_MIN:
        return None
    return "ascending" if rises else "descending"
