"""When sweeps prove a list: the size to request next, agreement, evidence and observations, sweep by sweep."""

from __future__ import annotations

from typing import Any

import pytest

from sources.extract.proof import agree, evidence_of, have_equal_pages, next_limit, observations_of
from sources.extract.result import Sweep
from tests.soak.platforms import platform_seed
from tests.soak.walks import walk_seed


def sweep(limit: int, rows: int, end: Any = "", size: int | None = None, **more: Any) -> Sweep:
    """A sweep over so many rows, whose first page had `size` rows: by default as many as were requested."""
    return Sweep(1, limit, min(limit, rows) if size is None else size, rows=rows, assumed_end=end, **more)


@pytest.mark.parametrize(
    ("before", "last", "is_proof"),
    [
        (sweep(100, 250), sweep(61, 250), True),
        (sweep(100, 250, issues=["total changed"]), sweep(61, 250), False),
        (sweep(100, 250), sweep(61, 250, issues=["total changed"]), False),
        (sweep(100, 250, "short"), sweep(61, 250, "short"), True),
        (sweep(100, 250, "short"), sweep(61, 250), True),
        (sweep(100, 250, "full"), sweep(61, 250, "full"), False),
        (sweep(100, 250, "full"), sweep(61, 250, "short"), False),
        (sweep(100, 1, "single"), sweep(3, 1, "single"), True),
        (sweep(3, 1, "single"), sweep(3, 1, "single"), False),
        (sweep(100, 7, "single"), sweep(61, 7, "single"), False),
        (sweep(100, 7, "single"), sweep(4, 7, "short"), True),
        (sweep(4, 7, "short"), sweep(100, 7, "single"), True),
        (sweep(100, 2, "single"), sweep(1, 2, "full"), True),
        (sweep(100, 1, "single"), sweep(1, 1, "full"), False),
        (sweep(100, 6, "single"), sweep(3, 6, "full", size=2), False),
    ],
)
def test_sweeps_with_the_same_ids_prove_a_list(before: Sweep, last: Sweep, is_proof: bool) -> None:
    assert agree(before, last) is is_proof


@pytest.mark.parametrize(
    ("sweeps", "limit"),
    [
        ([], 100),
        ([sweep(100, 650)], 61),
        ([sweep(100, 650, size=50)], 30),
        ([sweep(100, 650, size=50), sweep(30, 650)], 50),
        ([sweep(100, 0)], 61),
        ([sweep(1, 9)], 2),
        ([sweep(2, 9)], 1),
        # The end is only assumed: a size that leaves a short last page, and was not used.
        ([sweep(100, 600, "full")], 61),
        ([sweep(100, 122, "full")], 60),
        ([sweep(4, 600, "full")], 7),
        ([sweep(100, 600, "full"), sweep(61, 600, "full", size=60)], 36),
        ([sweep(100, 2, "single")], 1),
        ([sweep(1, 2, "full")], 3),
        ([sweep(100, 1, "single")], 3),
        ([sweep(61, 200, size=100)], 62),
        ([sweep(1, 1, "full"), sweep(3, 1, "single")], 2),
    ],
)
def test_each_sweep_requests_pages_of_another_size(sweeps: list[Sweep], limit: int) -> None:
    assert next_limit(sweeps, 100) == limit


@pytest.mark.parametrize(
    ("sweeps", "expected"),
    [
        ([sweep(100, 50, size=20), sweep(61, 50, size=20)], True),
        ([sweep(100, 20, size=20), sweep(61, 21, size=20)], True),
        ([sweep(12, 10, size=10), sweep(20, 10, size=10)], True),
        ([sweep(100, 1, size=1), sweep(2, 1, size=1)], False),
        ([sweep(100, 2, size=2), sweep(1, 1, size=1), sweep(2, 1, size=1)], True),
        ([sweep(100, 50, size=20), sweep(61, 50, size=12)], False),
        ([sweep(100, 0), sweep(61, 0)], False),
    ],
)
def test_sweeps_with_pages_of_one_size_have_the_same_boundaries(sweeps: list[Sweep], expected: bool) -> None:
    assert have_equal_pages(sweeps) is expected


def test_the_evidence_counts_all_that_a_sweep_read() -> None:
    read = sweep(100, 650, "full", pages=7, distinct=640, duplicates=8, quarantined=2, ended_by="assumed: status 404")
    counts = "640 distinct, 8 duplicate rows, ended by assumed: status 404"
    assert evidence_of(read) == (
        f"sweep 1: 650 rows on 7 pages of 100, {counts}, the end is assumed after a full page, 2 rows quarantined"
    )
    clean = sweep(100, 150, pages=2, distinct=150, ended_by="empty page", resumed_pages=1)
    assert evidence_of(clean) == (
        "sweep 1: 150 rows on 2 pages of 100, 1 of them from a stopped walk, 150 distinct, ended by empty page, clean"
    )


@pytest.mark.parametrize(
    ("read", "shown"),
    [
        (sweep(100, 0), {"customers_end": ""}),
        (sweep(100, 100), {"legacy_first_page": "customers: 0", "customers_end": ""}),
        (
            sweep(100, 101),
            {"legacy_first_page": "customers: 0", "customers_end": "", "legacy_limit": "customers: honoured"},
        ),
        (
            sweep(100, 101, size=50),
            {
                "legacy_first_page": "customers: 0",
                "customers_end": "",
                "legacy_limit": "customers: not honoured: 50 rows for 100",
            },
        ),
    ],
)
def test_a_sweep_shows_what_its_pages_show(read: Sweep, shown: dict[str, str]) -> None:
    assert dict(observations_of("customers", read, 0)) == shown


@pytest.mark.parametrize(
    "seed",
    [
        500152,  # some requests are capped: the last two sweeps agree on half of the list
        713701,  # page 0 has all rows, and is rejected once
    ],
)
def test_a_seed_whose_sweeps_agreed_without_all_rows_is_not_proven(seed: int) -> None:
    assert walk_seed(seed).problems == []


@pytest.mark.parametrize(
    "seed",
    [
        933273,  # a cache has half of page 1, which page 0 contradicts
        936184,  # the last two sweeps have one row, the first has 22
    ],
)
def test_rows_that_an_earlier_answer_had_are_not_forgotten(seed: int) -> None:
    assert platform_seed(seed).problems == []
