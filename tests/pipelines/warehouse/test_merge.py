"""How many records a list may lose before it is held back."""

from __future__ import annotations

import pytest

from pipelines.warehouse.merge import MergeCounts, shrink_reason
from sources.decode.rows import InvalidRow, quarantine
from sources.extract.result import ListResult, Verdict

ROW = quarantine((1, 1), b"{}", InvalidRow("id: expected an identifier, found nothing"), None)


@pytest.mark.parametrize(
    ("verdict", "known", "missing", "is_held_back"),
    [
        ("complete", 0, 0, False),
        ("complete", 40, 5, False),
        ("complete", 40, 6, True),
        ("complete", 1000, 20, False),
        ("complete", 1000, 21, True),
        ("complete", 2, 1, False),
        ("complete", 3, 2, True),
        ("unproven", 40, 20, False),
        ("unproven", 40, 21, True),
        ("tail", 40, 40, False),
    ],
)
def test_a_list_that_lost_more_than_is_plausible_is_held_back(
    verdict: Verdict, known: int, missing: int, is_held_back: bool
) -> None:
    counts = MergeCounts(9, 0, missing, known, 0)
    assert bool(shrink_reason(ListResult("customers", verdict, distinct=9), counts)) is is_held_back


@pytest.mark.parametrize(
    ("walked", "reason"),
    [
        (ListResult("customers", "complete"), "the list is empty, and 2 records are known"),
        (
            ListResult("customers", quarantined=[ROW, ROW]),
            "all 1 rows were quarantined, and 2 records are known",
        ),
        (
            ListResult("customers", distinct=1, quarantined=[ROW]),
            "2 of 2 known records are not in the list any more (more than half), with 1 rows quarantined",
        ),
    ],
)
def test_a_list_is_held_back_with_what_became_of_its_rows(walked: ListResult, reason: str) -> None:
    assert shrink_reason(walked, MergeCounts(1, 0, 2, 2, 0)) == reason
