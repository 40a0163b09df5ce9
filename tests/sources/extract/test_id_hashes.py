"""Hashes of ids: equal for equal ids, whatever the column they are in, and different for all others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sources.extract.ids import IdHashes, hash_ids, rows_with_shared_hash

IDS = st.lists(st.sampled_from(["", "\0", "a", "a\0", "á", "x" * 8, "x" * 16, "x" * 17]), max_size=60)
SWEEPS = st.lists(st.lists(st.integers(0, 30)), min_size=1, max_size=4)
"""Ids of the rows of each sweep."""


def column(*chunks: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string())


@settings(deadline=None)
@given(IDS, IDS)
def test_hashes_are_equal_exactly_for_equal_ids(some: list[str], others: list[str]) -> None:
    ids = [*some, *others]
    hashes = hash_ids(column(some, others))
    sliced = hash_ids(pa.chunked_array([pa.array(["before", *ids, "after"]).slice(1, len(ids))]))
    assert list(sliced) == list(hashes)
    assert len(set(hashes)) == len(set(ids))
    assert list(rows_with_shared_hash(hashes)) == [row for row, one in enumerate(ids) if ids.count(one) > 1]


@settings(deadline=None)
@given(SWEEPS, st.integers(1, 7), st.data())
def test_sweeps_are_compared_in_parts_as_they_would_be_whole(
    sweeps: list[list[int]], part_rows: int, data: st.DataObject
) -> None:
    dropped = [sorted(data.draw(st.sets(st.sampled_from(range(len(ids)))))) if ids else [] for ids in sweeps]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sources.extract.ids.PART_ROWS", part_rows)
        files = []
        for number, ids in enumerate(sweeps):
            files.append(IdHashes(Path(folder) / str(number)))
            texts = [str(one) for one in ids]
            for start in range(0, len(ids), 3):
                files[-1].append(hash_ids(column(texts[start : start + 3])))
            assert files[-1].count_distinct() == len(set(ids))
            assert list(files[-1].shared()) == [row for row, one in enumerate(ids) if ids.count(one) > 1]
            files[-1].drop(dropped[number])
        kept = [
            [one for row, one in enumerate(ids) if row not in without]
            for ids, without in zip(sweeps, dropped, strict=True)
        ]
        first, *later = kept
        assert len(files[0]) == len(first)
        for own, its in zip(kept, files, strict=True):
            assert files[0].equals(its) == (Counter(first) == Counter(own))
            assert files[0].count_absent(its) == sum(one not in first for one in own)
        expected = [row not in dropped[0] and not any(one in own for own in later) for row, one in enumerate(sweeps[0])]
        assert files[0].new_rows(files[1:]).tolist() == expected


def test_a_comparison_reads_a_part_of_the_list_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sources.extract.ids.PART_ROWS", 1000)
    files = IdHashes(tmp_path / "ids")
    for number in range(20):
        files.append(np.random.default_rng(number).integers(0, 2**63, 1000, np.uint64) * 2)
    largest = max(len(hashes) for _, hashes in files._parts(files._part_count()))
    assert largest < 1200
    assert files.count_distinct() == 20_000
