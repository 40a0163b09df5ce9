"""Hashes of ids: equal for equal ids, whatever the column they are in, and different for all others."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sources.extract.id_hashes import count_distinct, hash_ids, rows_with_shared_hash

IDS = st.lists(st.text(max_size=40) | st.sampled_from(["", "\0", "a", "a\0", "x" * 8, "x" * 16, "x" * 17]), max_size=60)


def column(*chunks: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string())


@settings(deadline=None)
@given(IDS, IDS)
def test_hashes_are_equal_exactly_for_equal_ids(some: list[str], others: list[str]) -> None:
    ids = [*some, *others]
    hashes = hash_ids(column(some, others))
    assert list(hashes) == [hash_ids(column([one]))[0] for one in ids]
    sliced = hash_ids(pa.chunked_array([pa.array(["before", *ids, "after"]).slice(1, len(ids))]))
    assert list(sliced) == list(hashes)
    assert count_distinct(hashes) == len(set(hashes)) == len(set(ids))


@settings(deadline=None)
@given(IDS)
def test_rows_with_a_hash_of_their_own_have_an_id_of_their_own(ids: list[str]) -> None:
    rows = rows_with_shared_hash(hash_ids(column(ids)))
    assert list(rows) == [row for row, one in enumerate(ids) if ids.count(one) > 1]


def test_half_a_million_ids_have_different_hashes() -> None:
    numbers = [str(number) for number in range(250_000)]
    hashes = hash_ids(column(numbers, [f"ord_{number}-0000" for number in numbers]))
    assert count_distinct(hashes) == 500_000
    assert not len(rows_with_shared_hash(hashes))
