"""When a list is held back: it lost more records than is plausible (docs/completeness.md).

In: what a pull read of a list, compared with its raw table. Out: why it is held back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orderbridge.pipelines.warehouse.raw.merge import MergeCounts
    from orderbridge.sources.extract.result import ListResult

SHRINK_SHARE: Final = 0.02
SHRINK_ROWS: Final = 5


def plausible_loss(known: int) -> float:
    """So many of the known records may be gone in any night."""
    return max(SHRINK_ROWS, SHRINK_SHARE * known)


def shrink_reason(walked: ListResult, counts: MergeCounts) -> str:
    """Why a list lost more records than is plausible; empty where it did not.

    Records are counted by id: another organization's list may be as long as the one before.
    """
    missing, known = counts.missing, counts.known
    if not known or not walked.is_whole:
        return ""
    quarantined = len({row.row_hash for row in walked.quarantined})
    if not walked.distinct:
        cause = f"all {quarantined} rows were quarantined" if quarantined else "the list is empty"
        return f"{cause}, and {known} records are known"
    if missing * 2 > known:
        cause = f", with {quarantined} rows quarantined" if quarantined else ""
        return f"{missing} of {known} known records are not in the list any more (more than half){cause}"
    if walked.verdict == "complete" and missing > plausible_loss(known):
        return f"{missing} of {known} known records are not in the list any more"
    return ""
