"""The rows of a list that are new or changed since the last pull, and what is judged of them alone.

In: the loaded rows of a pull beside the raw ones; later, counts of shares of rows. Out: `ops.recent_rows`, the ids of
these rows in batches, `ops.recent_shares`, the shares of each batch, and those that fell. A share of all rows hides
what happens to the thirty orders of a night, so each judgement is made of them as well, by `transforms.chance`.

New rows and changed ones are apart: a field that is filled later, such as a date of delivery, is empty in each new row,
and nothing is wrong. So new rows are compared with new rows of earlier pulls, changed ones with earlier changed ones.
Where there are no earlier ones, rows are recorded and not judged: a new rule contradicts nothing that is there.

New customers are not judged. Those that an ERP creates have only the fields that it sends: a bulk import of them is no
change of the platform.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, NamedTuple

import duckdb

from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.raw.merge import DIFFERING_ROWS, MergeCounts
from orderbridge.pipelines.warehouse.sql import sql_text
from orderbridge.sources.extract.result import ListResult
from orderbridge.sources.kinds import KINDS as INPUT_KINDS
from orderbridge.transforms.chance import Share, has_fallen

RowKind = Literal["new", "changed"]
KINDS: Final[tuple[RowKind, ...]] = ("new", "changed")
BATCH_ROWS_MIN: Final = 20
"""Rows of a batch. Fewer of a pull are judged together with those of the pulls before, so that a small shop with three
orders a night notices a change as well."""
BATCHES_KEPT: Final = 30
"""Earlier batches that are compared with: a month of nights has each day of the week."""
MASS_SHARE: Final = 0.5
"""Part of a list from which its new or changed rows are no batch: the judgement of all rows is theirs as well."""
RECENT: Final = "recent"
"""The table of the rows that are counted: `batch`, `id`, `lost` and `gained`, see `merge.DIFFERING_ROWS`."""
ALL_ROWS: Final = (
    'SELECT id FROM raw."{}" WHERE _missing_since IS NULL ORDER BY hash(id) LIMIT 20_000'
)
"""The rows that the first batch is compared with, where a share does not depend on how old rows are: of a long list, so
many as decide."""
_CREATED: Final = frozenset(
    shown.name
    for kind in INPUT_KINDS.values()
    if not kind.is_update and (shown := kind.operation.shown_in) is not None
)
"""The lists whose records the interface creates."""
_RECENT: Final = f"""
    CREATE OR REPLACE TEMP TABLE {RECENT} AS
    SELECT batch, id, string_agg(lost, ' ') AS lost, string_agg(gained, ' ') AS gained FROM ops.recent_rows
    WHERE resource = {{resource}} AND kind = '{{kind}}' GROUP BY batch, id"""
_FIRST: Final = f"""
    CREATE OR REPLACE TEMP TABLE {RECENT} AS
    SELECT 0 AS batch, id, '' AS lost, '' AS gained FROM ({{rows}})"""
_LAST_BATCH: Final = """
    SELECT max(batch), count(*) FILTER (batch = (
        SELECT max(batch) FROM ops.recent_rows WHERE resource = $resource AND kind = $kind))
    FROM ops.recent_rows WHERE resource = $resource AND kind = $kind"""
_LAST_JUDGED: Final = (
    "SELECT max(batch) FROM ops.recent_shares WHERE resource = $resource AND kind = $kind"
)
_FORGET: Final = """
    DELETE FROM ops.recent_rows WHERE resource = $resource AND kind = $kind AND batch <> $batch AND batch NOT IN (
        SELECT batch FROM ops.recent_shares
        WHERE resource = $resource AND kind = $kind AND rows_before IS NOT NULL)"""
_WITH_ROWS: Final = "SELECT DISTINCT kind FROM ops.recent_rows WHERE resource = $1"
_SHARES: Final = """
    SELECT measure, kind, batch, place, hits, rows, hits_before, rows_before, run_id, recorded_at
    FROM ops.recent_shares WHERE resource = $1 ORDER BY batch, place"""
_DELETE: Final = """
    DELETE FROM ops.recent_shares
    WHERE resource = $resource AND measure = $measure AND kind = $kind AND list_contains($batches, batch)"""
_NO_PLACE: Final = ""
"""The place of a record that a batch was judged, also where nothing was counted in it."""


def mark_recent_rows(
    build: duckdb.DuckDBPyConnection, walked: ListResult, counts: MergeCounts
) -> None:
    """Records the rows of a list that are new or changed, as `merge.compare` has just found them.

    Those of a pull begin a batch where the last one was judged and is large enough; else they are added to it.
    """
    listed = counts.known + counts.new
    for kind, rows in (("new", counts.new), ("changed", counts.changed)):
        if not rows or rows > MASS_SHARE * listed:  # all of a first read, among others
            continue
        if kind == "new" and walked.resource in _CREATED:
            continue
        stream = {"resource": walked.resource, "kind": kind}
        batch = _batch_of_pull(build, stream)
        build.execute(_FORGET, {**stream, "batch": batch})
        build.execute(
            f"""INSERT INTO ops.recent_rows BY NAME
            SELECT $resource AS resource, $kind AS kind, $batch AS batch, id, lost, gained FROM {DIFFERING_ROWS}
            WHERE is_new = ($kind = 'new')""",
            {**stream, "batch": batch},
        )


def _batch_of_pull(build: duckdb.DuckDBPyConnection, stream: Mapping[str, str]) -> int:
    ((last, rows),) = build.execute(_LAST_BATCH, stream).fetchall()
    ((judged,),) = build.execute(_LAST_JUDGED, stream).fetchall()
    if last is None:
        return int(judged or 0) + 1
    is_closed = rows >= BATCH_ROWS_MIN and judged is not None and judged >= last
    return int(last) + is_closed


class Count(NamedTuple):
    """A share of the rows of a batch: `place` is what it is about, as findings name places."""

    batch: int
    place: str
    share: Share


@dataclass(frozen=True, slots=True)
class Measure:
    """A share of rows that is judged.

    Attributes:
        name: of the measure.
        count: counts the rows of the table `RECENT`, which are of a kind. Where all rows of a table are as they should
            be, the count of the table (`orders`) is enough.
        is_large: whether a share that is smaller than before is so by enough to matter.
        first: the rows (SQL) that the first batch of a kind is compared with; no key where it is not judged. The same
            rows for both kinds are counted once.
        is_expected: whether a share that is smaller than this one is no news at a place.
    """

    name: str
    count: Callable[[RowKind], Iterable[Count]]
    is_large: Callable[[Share, Share], bool]
    first: Mapping[RowKind, str] = field(default_factory=dict)
    is_expected: Callable[[RowKind, str, Share], bool] = lambda kind, place, before: False


@dataclass(frozen=True, slots=True)
class Fall:
    """A share of new or changed rows that fell, and was not accepted since.

    Attributes:
        place: what it is about, as findings name places.
        kind: of the rows.
        now: the share of the rows of all batches in which it fell.
        before: that of earlier batches.
        is_zero: none of the rows of one of these batches counts.
    """

    place: str
    kind: RowKind
    now: Share
    before: Share
    is_zero: bool

    def words(self, what: str) -> str:
        """The fall in words, without a value; `what` is said of the rows that count."""
        before = f"{self.before.part:.0%} of {self.before.rows} before"
        return f"{self.now.hits} of {self.now.rows} {self.kind} rows {what}, {before}"


@dataclass(frozen=True, slots=True)
class RecordedShare:
    """A row of `ops.recent_shares`.

    Attributes:
        now: the share of the batch.
        before: that of earlier batches, where the share fell; None where it did not.
        run_id: that judged it first.
        recorded_at: when it did.
    """

    now: Share
    before: Share | None
    run_id: str
    recorded_at: datetime


Batches = dict[int, dict[str, Share]]
"""Shares by batch and place."""
Records = dict[tuple[int, str], RecordedShare]
"""The same as they are recorded, by batch and place."""


@dataclass(eq=False, slots=True)
class RecentRows:
    """The new and changed rows of a list, and what is recorded of them, as it is read once.

    Attributes:
        build: open for writing.
        resource: the list.
        run_id: of this run.
        at: its time.
    """

    build: duckdb.DuckDBPyConnection
    resource: str
    run_id: str
    at: datetime
    _kinds: set[str] = field(init=False)
    """The kinds of which there are rows."""
    _stored: dict[tuple[str, str], Records] = field(init=False)
    """What is recorded, by measure and kind."""

    def __post_init__(self) -> None:
        kinds = self.build.execute(_WITH_ROWS, [self.resource]).fetchall()
        self._kinds = {kind for (kind,) in kinds}
        self._stored = defaultdict(dict)
        for stored in self.build.execute(_SHARES, [self.resource]).fetchall():
            measure, kind, batch, place, hits, rows, hits_before, rows_before, *others = stored
            before = None if rows_before is None else Share(hits_before, rows_before)
            recorded = RecordedShare(Share(hits, rows), before, *others)
            self._stored[measure, kind][batch, place] = recorded

    def fallen(
        self, measure: Measure, is_accepted: Callable[[str, datetime], bool]
    ) -> Iterator[Fall]:
        """Judges a measure and records it: the places where its share fell in new or changed rows.

        A fall is reported until these rows are as they should be, or a person accepts it. What was recorded of a place
        before an acceptance is not compared with any more. Judged again without a pull, a batch has the same falls.

        Args:
            measure: what is counted.
            is_accepted: whether a person has accepted a change of a place since an instant.
        """
        firsts: dict[str, Batches] = {}
        for kind in KINDS:
            stored = self._stored[measure.name, kind]
            counted = self._counted(measure, kind)
            if stored:
                records = self._judged(measure, kind, stored, counted, is_accepted)
            else:
                records = self._first(measure, kind, counted, firsts)
            self._record(measure, kind, stored, records)
            yield from _falls(kind, records)

    def _counted(self, measure: Measure, kind: RowKind) -> Batches:
        """The shares of each batch whose rows are kept, as they are now."""
        if kind not in self._kinds:
            return {}
        self.build.execute(_RECENT.format(resource=sql_text(self.resource), kind=kind))
        return _counts(measure, kind)

    def _first(
        self, measure: Measure, kind: RowKind, counted: Batches, firsts: dict[str, Batches]
    ) -> Records:
        """The batches of a list that was never judged: what later ones are compared with.

        `firsts` has the counts of the rows that the measure has counted before, by their SQL.
        """
        batches = dict(counted)
        rows = measure.first.get(kind)
        if rows is not None:
            if rows not in firsts:
                self.build.execute(_FIRST.format(rows=rows))
                firsts[rows] = _counts(measure, kind)
            batches |= firsts[rows]
        return {
            (batch, place): self._recorded(share)
            for batch, shares in batches.items()
            for place, share in shares.items()
        }

    def _judged(
        self,
        measure: Measure,
        kind: RowKind,
        stored: Records,
        counted: Batches,
        is_accepted: Callable[[str, datetime], bool],
    ) -> Records:
        """The records with the last batch compared with earlier ones, and the falls as they are now."""
        records = dict(stored)
        for (batch, place), one in stored.items():
            if one.before is None:
                continue
            if is_accepted(place, one.recorded_at):
                records[batch, place] = replace(one, before=None)
            else:
                now = counted.get(batch, {}).get(place, Share(0, 0))
                records[batch, place] = _again(one, now)
        last = max(counted, default=0)
        for place, share in counted.get(last, {}).items():
            known = records.get((last, place))
            if known is not None and known.before is not None:
                continue
            earlier = [
                one.now
                for one in _earlier(records, last, place)
                if not is_accepted(place, one.recorded_at)
            ]
            before = _before(measure, share, earlier)
            if before is not None and measure.is_expected(kind, place, before):
                before = None
            records[last, place] = self._recorded(share, before)
        return {
            (batch, place): one
            for (batch, place), one in records.items()
            if batch >= last - BATCHES_KEPT or one.before is not None
        }

    def _recorded(self, share: Share, before: Share | None = None) -> RecordedShare:
        return RecordedShare(share, before, self.run_id, self.at)

    def _record(self, measure: Measure, kind: RowKind, stored: Records, records: Records) -> None:
        """Writes the batches that are not recorded like that already."""
        self._stored[measure.name, kind] = records
        key = {"resource": self.resource, "measure": measure.name, "kind": kind}
        changed = {
            batch
            for batch, place in stored.keys() | records.keys()
            if stored.get((batch, place)) != records.get((batch, place))
        }
        if not changed:
            return
        self.build.execute(_DELETE, {**key, "batches": sorted(changed)})
        places = [place for place in records if place[0] in changed]
        shares = [records[place] for place in places]
        ops.insert(
            self.build,
            "recent_shares",
            **key,
            batch=[batch for batch, _ in places],
            place=[place for _, place in places],
            hits=[share.now.hits for share in shares],
            rows=[share.now.rows for share in shares],
            hits_before=[share.before and share.before.hits for share in shares],
            rows_before=[share.before and share.before.rows for share in shares],
            run_id=[share.run_id for share in shares],
            recorded_at=[share.recorded_at for share in shares],
        )


def _counts(measure: Measure, kind: RowKind) -> Batches:
    """The shares of the rows of the table `RECENT`."""
    batches: Batches = {}
    for batch, place, share in measure.count(kind):
        batches.setdefault(batch, {_NO_PLACE: Share(0, 0)})[place] = share
    return batches


def _again(fall: RecordedShare, now: Share) -> RecordedShare:
    """A fall as its rows are now: none any more where they are as they should be."""
    is_still = fall.before is not None and has_fallen(now, fall.before)
    return replace(fall, now=now, before=fall.before if is_still else None)


def _earlier(records: Records, last: int, place: str) -> Iterator[RecordedShare]:
    """What is recorded of a place in earlier batches, but for those in which it fell."""
    table = place.partition(": ")[0]
    for batch in {batch for batch, _ in records if batch < last}:
        one = records.get((batch, place), records.get((batch, table)))
        if one is not None and one.before is None:
            yield one


def _before(measure: Measure, now: Share, earlier: list[Share]) -> Share | None:
    """The share of earlier batches, where that of the last one fell; None where it did not.

    A share that varies from night to night, as on days without deliveries, was as small in one of the batches.
    """
    before = Share(sum(one.hits for one in earlier), sum(one.rows for one in earlier))
    compared = [before, *(one for one in earlier if one.rows >= BATCH_ROWS_MIN)]
    is_large = all(measure.is_large(now, one) for one in compared)
    return before if is_large and has_fallen(now, before) else None


def _falls(kind: RowKind, records: Records) -> Iterator[Fall]:
    """The falls by place, with the rows of all batches in which it fell."""
    found: dict[str, Fall] = {}
    for (_, place), one in sorted(records.items()):
        if one.before is None:
            continue
        fall = found.get(place, Fall(place, kind, Share(0, 0), one.before, False))
        now = Share(fall.now.hits + one.now.hits, fall.now.rows + one.now.rows)
        found[place] = replace(fall, now=now, is_zero=fall.is_zero or not one.now.hits)
    yield from found.values()
