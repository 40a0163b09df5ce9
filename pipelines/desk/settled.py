"""Rejected lines for which nothing has to be done: they were corrected and sent before, or a person has left them out.

In: the imports of the desk, and the results of their plans. Out: such lines by their cells, which next month's file has
at another line. Of what was sent, only what a push has confirmed counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Final

from orderbridge.pipelines.desk.imports import DeskImport, imports
from orderbridge.pipelines.desk.plans import (
    Cells,
    SentBefore,
    Settled,
    cells_key,
    rejected_cells,
)
from orderbridge.pipelines.plan.model import RESULTS_FOLDER
from orderbridge.pipelines.push.results import RESULT_COLUMNS
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.formulas import people_rows

_KEPT_MAX: Final = 1000
"""Corrections whose lines are kept in memory: those of some years."""
_SENT: Final = ("confirmed", "merged")
"""Outcomes of lines that a push has confirmed: themselves, or as the line that they repeat."""


def settled_lines(one: DeskImport) -> Settled:
    """The lines that an import rejects, and that need nothing more, by their cells as they are in its file."""
    wanted = {cells_key(cells) for cells in rejected_cells(one.result).values()}
    if not wanted:
        return Settled()
    others = [other for other in imports() if other.kind == one.kind]
    return Settled(_sent_before(others, wanted), _left_out([one, *others], wanted))


def _sent_before(others: Iterable[DeskImport], wanted: Set[Cells]) -> dict[Cells, SentBefore]:
    """Those of some lines that one of these imports, the newest first, has sent corrected."""
    found: dict[Cells, SentBefore] = {}
    for correction in others:
        if correction.is_correction:
            written = correction.job.written_at, correction.first.job.written_at
            sent = _sent_lines(correction, *written)
            found = {**sent, **found}  # the newest one counts
    return {cells: sent for cells, sent in found.items() if cells in wanted}


def _left_out(ones: Iterable[DeskImport], wanted: Set[Cells]) -> frozenset[Cells]:
    """Those of some lines that a person does not send: the first of these imports that has such a line decides."""
    decided: dict[Cells, bool] = {}
    for one in ones:
        if one.left_out is not None:
            for line, cells in rejected_cells(one.result).items():
                decided.setdefault(cells_key(cells), line in one.left_out)
    return frozenset(cells for cells in wanted if decided.get(cells))


@lru_cache(maxsize=_KEPT_MAX)
def _sent_lines(
    correction: DeskImport, written_at: float, first_written_at: float
) -> Mapping[Cells, SentBefore]:
    """The lines that a correction has sent, by their cells in the file that was corrected.

    Both were written at these times: they are read again only once one of them has been written again.
    """
    folder = correction.result.get("folder")
    confirmed = confirmed_lines(Path(folder)) if folder else set()
    originals = correction.original_cells or rejected_cells(correction.first.result)
    at = datetime.fromtimestamp(written_at, UTC)
    sent = SentBefore(at, f"/import/{correction.name}")
    return {cells_key(cells): sent for line, cells in originals.items() if line in confirmed}


def confirmed_lines(folder: Path) -> set[int]:
    """The lines that the push of the plan in a folder has confirmed; none where it is gone or was changed."""
    with suppress(UsageError, OSError):
        rows = people_rows(folder / RESULTS_FOLDER / "confirmed.csv", RESULT_COLUMNS)
        return {int(row["line"]) for row in rows if row["outcome"] in _SENT}
    return set()
