"""When sweeps prove a list complete: page sizes to request, agreement of two sweeps, verdict and evidence.

Rows move between pages while a list is read, so one pass can miss a row without noticing. Two passes that see the same
ids on pages of different sizes miss none (0 of 20,000 simulated runs). Two clean sweeps, of sizes L and ⌊0.61·L⌋,
are `complete`; otherwise up to six are made and their union is `unproven` (docs/completeness.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from orderbridge.sources.extract.result import (
    SWEEPS_MAX,
    ListResult,
    Sweep,
    Verdict,
    WalkOptions,
)
from orderbridge.sources.extract.sweep_rows import SweepRows

SECOND_SIZE: Final = 0.61
"""Page size of the second sweep, as a share of the first: their page boundaries rarely coincide."""
SMALL: Final = 10
"""Page sizes up to this one are tried even if page 1 had fewer rows."""
MAXIMUM_UNIT: Final = 100
"""A platform that lists no more than a maximum of rows has a maximum that is a multiple of this."""
_ASSUMED_ENDS: Final = {
    "full": ("the end is assumed after a full page",),
    "single": ("the end is assumed after a single page",),
}


def next_limit(sweeps: Sequence[Sweep], page_limit: int) -> int:
    """Rows to request per page in the next sweep: L, then ⌊0.61·L⌋ of the size L that page 1 had, then both in turn.

    It is never the limit of the sweep before, whose pages a cache may have. Where the end is only assumed (a 404), a
    short last page proves it: then a size is chosen that leaves one.
    """
    if not sweeps:
        return page_limit
    size = sweeps[0].size or page_limit
    second = int(size * SECOND_SIZE) if size > 1 else 2
    if sweeps[0].assumed_end:
        return _limit_with_short_page(sweeps, size) or second
    limit = second if len(sweeps) % 2 else size
    return limit if limit != sweeps[-1].limit else limit + 1


def _limit_with_short_page(sweeps: Sequence[Sweep], size: int) -> int | None:
    """A page size that no sweep had, and that leaves a short last page for as many rows as the last sweep had.

    From 0.61 of the last size downwards, then upwards. None if there is none.
    """
    rows = sweeps[-1].rows
    used = {sweep.limit for sweep in sweeps} | {sweep.size for sweep in sweeps}
    start = int(sweeps[-1].size * SECOND_SIZE)
    sizes = [*range(start, 1, -1), *range(start + 1, max(size, SMALL))]
    candidates = [n for n in sizes if rows % n] if rows > 2 else [1, 3]
    return next((n for n in candidates if n not in used), None)


def agree(before: Sweep, last: Sweep) -> bool:
    """Whether two sweeps with the same ids prove a list.

    An assumed end is proven by a short last page. A single page that is shorter than its limit is proven by another
    sweep that read several pages of the size it asked for, or by the same single row for another limit.
    """
    if not (before.is_clean and last.is_clean):
        return False
    by_end = {sweep.assumed_end: sweep for sweep in (before, last)}
    if by_end.keys() <= {"", "short"}:
        return True
    if by_end.keys() == {"single"}:
        return before.rows == 1 and before.limit != last.limit
    other = by_end.get("full")
    return "single" in by_end and (other is None or (other.rows > other.size == other.limit))


def have_equal_pages(sweeps: Sequence[Sweep]) -> bool:
    """Whether the last two sweeps had pages of one size, even one page each: both may miss the same rows.

    Only a list of which no sweep saw a second row has no boundaries to vary.
    """
    return sweeps[-2].size == sweeps[-1].size and max(sweep.rows for sweep in sweeps) > 1


def confirmed_gap(sweeps: Sequence[Sweep]) -> int:
    """The gap between `total` and the rows read that sweeps with the same ids confirm; 0 where they do not.

    There must be as many of them as are ever made, and no other issue in any. A maximum of rows that the platform pages
    to looks the same: it is a round number.
    """
    gaps = {sweep.gap if len(sweep.issues) == 1 else 0 for sweep in sweeps}
    is_confirmed = len(sweeps) == SWEEPS_MAX and len(gaps) == 1 and sweeps[-1].rows % MAXIMUM_UNIT
    return gaps.pop() if is_confirmed else 0


def cut_in_words(sweeps: Sequence[Sweep], listed: int, known_gap: int) -> str:
    """What was read and what the platform reports, where the list is known to be cut; empty where it is not.

    It is cut if every sweep ended before the announced pages, and `total`, where there is one, counts more rows than
    were listed. Deleted or hidden rows that `total` counts are fewer than a page, or known from earlier walks. One of
    the sweeps over a list that moves reads every page, and the smallest `total` counts.

    Args:
        sweeps: all of a walk that did not fail.
        listed: distinct rows of all sweeps, quarantined ones included.
        known_gap: how many rows more than are listed `total` counts, as earlier walks confirmed.
    """
    if not all(sweep.lacks_pages for sweep in sweeps):
        return ""
    totals = frozenset[int]().union(*(sweep.totals for sweep in sweeps))
    if not totals:
        first = sweeps[0]
        return f"pages read: {first.pages_listed}, reported: {first.pages_announced}"
    reported = min(totals)
    missing = reported - listed - max(known_gap, 0)
    return f"rows read: {listed}, reported: {reported}" if missing > 0 else ""


def evidence_of(sweep: Sweep) -> str:
    """A sweep in words."""
    issues = "; ".join([*sweep.issues, *_ASSUMED_ENDS.get(sweep.assumed_end, ())]) or "clean"
    quarantined = f", {sweep.quarantined} rows quarantined" if sweep.quarantined else ""
    duplicates = f", {sweep.duplicates} duplicate rows" if sweep.duplicates else ""
    resumed = f", {sweep.resumed_pages} of them from a stopped run" if sweep.resumed_pages else ""
    return (
        f"pass {sweep.number}: {sweep.rows} rows on {sweep.pages} pages of {sweep.size}{resumed}, "
        f"{sweep.distinct} distinct{duplicates}, ended by {sweep.ended_by}, {issues}{quarantined}"
    )


def observations_of(resource: str, sweep: Sweep, first_page: int) -> Iterator[tuple[str, str]]:
    """What a legacy sweep shows of the gaps `legacy_first_page`, `customers_end` and `legacy_limit`."""
    if sweep.rows:
        yield "legacy_first_page", f"{resource}: {first_page}"
    yield f"{resource}_end", sweep.ended_by
    if sweep.rows > sweep.size:
        honoured = (
            "honoured"
            if sweep.size == sweep.limit
            else f"not honoured: {sweep.size} rows for {sweep.limit}"
        )
        yield "legacy_limit", f"{resource}: {honoured}"


class Proof:
    """What the sweeps of one walk prove of its list.

    Args:
        result: of the walk; its sweeps are judged, and issues and evidence are added to it.
        options: of the walk, with what earlier walks know.
        is_paged: whether the list is paged by number; otherwise it is read by a cursor, or in one response.

    Attributes:
        rows: of each sweep of the result.
    """

    def __init__(self, result: ListResult, options: WalkOptions, *, is_paged: bool) -> None:
        self.rows: list[SweepRows] = []
        self._result = result
        self._options = options
        self._is_paged = is_paged

    def judge(self) -> bool:
        """Judges the sweeps so far. True if they agree, or if no further sweep could prove more."""
        sweeps = self._result.sweeps
        if self._is_paged and len(sweeps) > 1 and have_equal_pages(sweeps):
            if sweeps[-2].is_clean and sweeps[-1].is_clean:
                sweeps[-1].issues.append(
                    "the platform ignores `limit`: both passes had pages of the same size"
                )
            return True
        self._result.is_agreed = self._is_agreed()
        return self._result.is_agreed

    def _is_agreed(self) -> bool:
        """Whether the last sweep has all rows: as the one before has them, or by a cursor, each id once.

        An offset cursor skips a row when an earlier row is deleted. If a known id is missing, the list is read again.
        """
        *earlier, last = self.rows
        if not self._is_paged and not last.repeated.counts:
            if earlier:
                return not any(last.ids.count_absent(rows.ids) for rows in earlier)
            known_ids = self._options.known_ids
            return known_ids is None or not last.count_absent(known_ids)
        if not earlier:
            return False
        return agree(*self._result.sweeps[-2:]) and earlier[-1].same_rows(last)

    def is_gap_known(self, gap: int) -> bool:
        """Whether `total` differs from the rows read by nothing, or by as much as in earlier walks.

        A `total` that counts deleted rows counts those too that were listed before and are not now.
        """
        known, known_ids = self._options.known_gap, self._options.known_ids
        if gap in (0, known):
            return True
        if not known or known_ids is None:
            return False
        return gap - known == self.rows[-1].count_absent(known_ids)

    def verdict(self) -> Verdict:
        """`complete` if the sweeps agree, and those that prove it have no issue and no quarantined row."""
        sweeps = self._result.sweeps
        judged = sweeps[-2:] if self._is_paged else sweeps[-1:]
        is_flawed = any(sweep.issues or sweep.quarantined for sweep in judged)
        return "complete" if self._result.is_agreed and not is_flawed else "unproven"

    def used_rows(self) -> list[SweepRows]:
        """The sweeps whose rows are published: the last one if it has all rows, otherwise all."""
        return self.rows[-1:] if self._result.is_agreed else self.rows

    def record_evidence(self) -> None:
        """Adds the reasons for the verdict to the result, once it has its rows."""
        result = self._result
        result.evidence += map(evidence_of, result.sweeps)
        result.evidence += self._reasons()
        if not self._explain_total():
            listed = result.distinct + len(result.quarantined)
            result.cut = cut_in_words(result.sweeps, listed, self._options.known_gap)

    def _reasons(self) -> list[str]:
        """Why the sweeps together prove the list, or do not; nothing where one sweep by a cursor does."""
        is_single = len(self.rows) == 1
        if not self._result.is_agreed:
            if is_single:
                return [
                    "a single pass does not prove a list: rows may have moved while it was read"
                ]
            return ["no two passes agree: all are merged"]
        if is_single:
            return []
        if self._is_paged or self.rows[-1].repeated.counts:
            return ["the last two passes agree"]
        return ["the last pass has each id once, and all ids before it"]

    def _explain_total(self) -> bool:
        """Records by how many rows `total` differs: as known, or as all sweeps confirm for the next walk.

        Returns:
            Whether the list is proven, or the difference is known or confirmed.
        """
        sweeps = self._result.sweeps
        is_proven = self._result.verdict == "complete"
        if is_proven and self._options.known_gap:
            self._record_gap(sweeps[-1].gap, "as earlier reads confirmed")
            return True
        gap = confirmed_gap(sweeps)
        if gap and all(rows.same_rows(self.rows[-1]) for rows in self.rows):
            next_read = "a next read with this difference can be complete"
            self._record_gap(gap, f"{len(sweeps)} equal passes confirm: {next_read}")
            return True
        return is_proven

    def _record_gap(self, gap: int, words: str) -> None:
        """Records, for the next walk, how many rows more than are listed `total` counts."""
        self._result.observations[f"{self._result.resource}_total_gap", f"{gap}"] += 1
        if gap:
            more = "more" if gap > 0 else "fewer"
            self._result.evidence.append(
                f"total counts {abs(gap)} rows {more} than are listed, {words}"
            )
