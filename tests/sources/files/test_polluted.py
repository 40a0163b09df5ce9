"""Damaged files are read equal or refused with the line, never silently wrong.

Seeds: ORDERBRIDGE_SOAK_SEEDS (default 150 for single damages, and as many pairs); ORDERBRIDGE_SOAK_FIRST is the first.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sources.files import Row
from sources.files.reader import TextTable
from tests.sources.files.peers import unexplained
from tests.sources.files.polluted import DAMAGES, clean, damaged, silent_errors

SEEDS = int(os.environ.get("ORDERBRIDGE_SOAK_SEEDS", "150"))
FIRST = int(os.environ.get("ORDERBRIDGE_SOAK_FIRST", "0"))
CHUNK = 25


@pytest.mark.parametrize("first", range(FIRST, FIRST + SEEDS, CHUNK))
@pytest.mark.parametrize("count", [1, 2])
def test_no_damage_is_silent(tmp_path: Path, first: int, count: int) -> None:
    for seed in range(first, min(first + CHUNK, FIRST + SEEDS)):
        document, name = damaged(seed, count)
        errors, _ = silent_errors(document, tmp_path)
        assert not errors, f"seed {seed}, {name}: {errors[:3]}"


@pytest.mark.parametrize("first", range(FIRST, FIRST + SEEDS, CHUNK))
@pytest.mark.parametrize("count", [1, 2])
def test_what_another_reader_has_otherwise_is_explained(tmp_path: Path, first: int, count: int) -> None:
    """Issue 12, shows: beside DuckDB's reader and Python's csv."""
    for seed in range(first, min(first + CHUNK, FIRST + SEEDS)):
        document, name = damaged(seed, count)
        assert unexplained(document, tmp_path) == [], f"seed {seed}, {name}"


def test_a_difference_without_a_reason_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = clean("clean 3")
    assert unexplained(document, tmp_path) == []
    monkeypatch.setattr(TextTable, "rows", lambda table: iter([Row(2, ("wrong",) * len(table.columns))]))
    assert [reader for reader, _ in unexplained(document, tmp_path)] == ["csv", "duckdb"]


# Seed and number of damages: a header repeated before or in a second table; a line of delimiters before it; quotes only
# in cells of several lines; rows between two stray quotes, the last one in a line of another width.
FORMER_ERRORS = [
    (20104, 3),
    (20882, 3),
    (21262, 2),
    (21105, 2),
    (21294, 1),
    (30913, 3),
    (31393, 3),
    (40010, 1),
    (50090, 1),
]


@pytest.mark.parametrize(("seed", "count"), FORMER_ERRORS)
def test_files_that_were_once_read_wrongly(tmp_path: Path, seed: int, count: int) -> None:
    """Issue 12, items 8, 10 and 12."""
    document, _ = damaged(seed, count)
    assert silent_errors(document, tmp_path)[0] == []


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_each_damage_alone_is_not_silent(tmp_path: Path, damage: object) -> None:
    for seed in range(4):
        document = clean(f"alone {seed}")
        damage(document)  # type: ignore[operator] # a damage
        errors, _ = silent_errors(document, tmp_path)
        assert not errors, f"seed {seed}: {errors[:3]}"


def test_a_clean_file_is_read_whole(tmp_path: Path) -> None:
    for seed in range(20):
        document = clean(f"clean {seed}")
        errors, is_refused = silent_errors(document, tmp_path)
        assert (errors, is_refused) == ([], False), seed
