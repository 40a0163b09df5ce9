"""Options of a walk and its result: sweeps, verdict, files, quarantined rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from orderbridge.sources.decode.column_kinds import DecidedKind, KeptKinds
from orderbridge.sources.decode.inferred_tables import FieldNames
from orderbridge.sources.decode.rows import QuarantinedRow
from orderbridge.sources.decode.table_schema import FIELD
from orderbridge.sources.errors import BridgeError
from orderbridge.sources.extract.ids import IdHashes
from orderbridge.sources.extract.legacy_pages import AssumedEnd
from orderbridge.sources.extract.v1_pages import CursorPosition
from orderbridge.sources.settings import LegacySettings

Verdict = Literal["complete", "unproven", "incomplete", "tail"]
Progress = Callable[[str, int, int, int | None, int], None]
"""Called with the resource, the pages and rows of a sweep so far, the total if it is known, and the sweep's number."""

SWEEPS_MAX: Final = 6
WINDOW: Final = 4
"""Legacy pages requested at the same time; one after a 429."""


def no_progress(resource: str, pages: int, rows: int, total: int | None, sweep: int) -> None:
    """Ignores the progress."""


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """How a list is walked.

    Attributes:
        page_limit: rows to request per page.
        sweeps: at most this many; a single one does not prove a list that is paged by number.
        window: legacy pages to request at the same time.
        key: the field that identifies a row; empty: the one of the interface.
        names: earlier names of the fields of an undocumented record.
        kinds: kinds of its places that earlier walks kept.
        known_ids: those that earlier walks listed: where one is absent, a list with a cursor is read a second time.
        known_gap: how many rows more than were listed `total` counted in earlier walks.
    """

    page_limit: int = LegacySettings.page_limit
    sweeps: int = SWEEPS_MAX
    window: int = WINDOW
    key: str = ""
    names: FieldNames | None = None
    kinds: KeptKinds | None = None
    known_ids: IdHashes | None = None
    known_gap: int = 0


@dataclass(slots=True)
class Sweep:
    """One pass over a list. `rows` = `distinct` + `duplicates` + `quarantined`.

    Attributes:
        number: from 1.
        limit: rows requested per page.
        size: rows on the first page.
        resumed_pages: pages taken from the spool of a walk that was stopped.
        total: rows in the list, as the platform reports it.
        totals: every `total` that it reported.
        pages_listed, pages_announced: number of pages with rows, and as the platform reports it or `total` implies;
            0 for a list that is not paged by number.
        gap: how many rows more than were read `total` counts.
        ended_by: how the list ended.
        assumed_end: what came before an end that is only assumed, see `LegacyPages`.
        issues: why the sweep does not prove the list complete.
    """

    number: int
    limit: int
    size: int = 0
    pages: int = 0
    rows: int = 0
    distinct: int = 0
    duplicates: int = 0
    quarantined: int = 0
    resumed_pages: int = 0
    total: int | None = None
    totals: frozenset[int] = frozenset()
    pages_listed: int = 0
    pages_announced: int = 0
    gap: int = 0
    ended_by: str = ""
    assumed_end: AssumedEnd = ""
    issues: list[str] = field(default_factory=list)

    @property
    def lacks_pages(self) -> bool:
        """Whether the sweep ended before the pages that the platform announces."""
        return self.pages_announced > self.pages_listed

    @property
    def is_clean(self) -> bool:
        """No `total` that changed or differs, `limit` honoured. Quarantined and duplicate rows do not count."""
        return not self.issues


@dataclass(slots=True)
class ListResult:
    """A list after its walk.

    Attributes:
        resource: its name.
        verdict: `complete` (proven), `unproven` (rows may be missing), `incomplete` (the walk failed: `error`) or
            `tail` (only what follows the end of an earlier walk was read: nothing is known of the other rows).
        sweeps: every sweep, in order.
        is_agreed: the last sweep has all rows, quarantined ones included: it agrees with the one before, or by a cursor
            lists each id once and all that are known.
        used_sweeps: numbers of the sweeps whose rows are published: the last one if it has all rows, otherwise all.
        files: Parquet files and their row counts by table; together they hold each distinct row once.
        kinds: of an undocumented record: those of its places.
        quarantined: the rows that could not be loaded, with reason and bytes; one that several sweeps read counts once.
        observations: (what, value) → count, for what the interface does not show.
        evidence: the reasons for the verdict, in words.
        cut: the rows or pages that were read and those that the platform reports, in words, where it reports more.
        distinct: rows in the files of the list's own table.
        items: of lists in these rows, by child table, as they were counted in the pages.
        started_at: when the first page was requested, also where a walk that was stopped is resumed.
        ended_at: when the last page arrived.
        position: where a tail can continue; None where the list is not read by a cursor, or has no second page.
    """

    resource: str
    verdict: Verdict = "incomplete"
    sweeps: list[Sweep] = field(default_factory=list)
    is_agreed: bool = False
    used_sweeps: list[int] = field(default_factory=list)
    files: dict[str, list[tuple[Path, int]]] = field(default_factory=dict)
    kinds: list[DecidedKind] = field(default_factory=list)
    quarantined: list[QuarantinedRow] = field(default_factory=list)
    observations: Counter[tuple[str, str]] = field(default_factory=Counter)
    evidence: list[str] = field(default_factory=list)
    cut: str = ""
    distinct: int = 0
    items: Counter[str] = field(default_factory=Counter)
    error: BridgeError | None = None
    position: CursorPosition | None = None
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def total(self, what: Literal["pages", "rows"]) -> int:
        """The sum over the sweeps whose rows are published."""
        return sum(
            getattr(sweep, what) for sweep in self.sweeps if sweep.number in self.used_sweeps
        )

    def field_names(self, earlier: FieldNames) -> dict[str, dict[str, str]]:
        """The names of fields, with those that this walk found: by table, by the path of the field."""
        names = {table: dict(columns) for table, columns in earlier.items()}
        for what, path in self.observations:
            if what.endswith(f": {FIELD}"):
                table, _, column = what.removesuffix(f": {FIELD}").rpartition(".")
                names.setdefault(table, {})[path] = column
        return names

    @property
    def is_whole(self) -> bool:
        """Whether the list was read from its first page on; otherwise its `tail`."""
        return self.verdict != "tail"

    @property
    def duplicates(self) -> int:
        """Rows read beyond the first of each row loaded or quarantined, over the sweeps whose rows are published."""
        return self.total("rows") - len(self.quarantined) - self.distinct
