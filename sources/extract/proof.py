"""When sweeps prove a list complete: page sizes to request, agreement of two sweeps, verdict and evidence.

Rows move between pages while a list is read, so one pass can miss a row without noticing. Two passes that see the same
ids on pages of different sizes miss none (0 of 20,000 simulated runs). Two clean sweeps, of sizes L and ⌊0.61·L⌋,
are `complete`; otherwise up to six are made and their union is `unproven` (design §7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sources.extract.result import Sweep

SECOND_SIZE: Final = 0.61
"""Page size of the second sweep, as a share of the first: their page boundaries rarely coincide."""


def next_limit(sweeps: Sequence[Sweep], page_limit: int) -> int:
    """Rows to request per page in the next sweep: L, then ⌊0.61·L⌋ of the size L that page 1 had, then both in turn."""
    if not sweeps:
        return page_limit
    size = sweeps[0].size or page_limit
    if len(sweeps) % 2 == 0:
        return size
    return max(1, int(size * SECOND_SIZE)) if size > 1 else 2


def ignores_limit(before: Sweep, last: Sweep) -> bool:
    """Whether both sweeps had several pages of one size: page boundaries cannot differ, so nothing can be proven."""
    return before.size == last.size != 0 and max(before.rows, last.rows) > last.size


def evidence_of(sweep: Sweep) -> str:
    """A sweep in words."""
    issues = "; ".join(sweep.issues) or "clean"
    quarantined = f", {sweep.quarantined} rows quarantined" if sweep.quarantined else ""
    resumed = f", {sweep.resumed_pages} of them from a stopped walk" if sweep.resumed_pages else ""
    return (
        f"sweep {sweep.number}: {sweep.rows} rows on {sweep.pages} pages of {sweep.size}{resumed}, "
        f"{sweep.distinct} distinct, ended by {sweep.ended_by}, {issues}{quarantined}"
    )


def observations_of(resource: str, sweep: Sweep, first_page: int) -> Iterator[tuple[str, str]]:
    """What a legacy sweep shows of the gaps `legacy_first_page`, `customers_end` and `legacy_limit`."""
    if sweep.rows:
        yield "legacy_first_page", f"{resource}: {first_page}"
    yield f"{resource}_end", sweep.ended_by
    if sweep.rows > sweep.size:
        honoured = "honoured" if sweep.size == sweep.limit else f"not honoured: {sweep.size} rows for {sweep.limit}"
        yield "legacy_limit", f"{resource}: {honoured}"
