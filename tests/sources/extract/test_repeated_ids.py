"""Ids that occur twice in a list: the same row again, or a different one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sources.extract.ids import ID_CONFLICT
from tests.sources.platform import Platform, Row, ids, rows_of, walked


class SecondRecords(Platform):
    """From the second time on, an id in a list is another record."""

    def get(self, path: str, params: Any, *, check: Any) -> Any:
        self.row = self.named
        self.seen = set(self.ids[: max(int(params["page"]) - 1, 0) * int(params["limit"])])
        return super().get(path, params, check=check)

    def named(self, key: int) -> Row:
        name = "other" if key in self.seen else "first"
        self.seen.add(key)
        return {"firstName": name}


def names(result: Any) -> dict[str, str]:
    return {row["id"]: row["first_name"] for row in rows_of(result, "customers")}


@pytest.mark.parametrize("page_limit", [3, 100])
def test_two_records_with_one_id_are_loaded_and_quarantined(tmp_path: Path, page_limit: int) -> None:
    result = walked(SecondRecords([*range(20), 7, *range(20, 30), 3]), tmp_path, page_limit=page_limit)
    assert (result.verdict, len(result.sweeps)) == ("complete", 2), result.evidence
    assert (result.distinct, result.duplicates, result.total("rows")) == (30, 0, 32)
    conflicts = [(row.key, row.reason, row.is_id_duplicate) for row in result.quarantined]
    assert conflicts == [("3", ID_CONFLICT, True), ("7", ID_CONFLICT, True)]
    assert b'"first"' in result.quarantined[0].row
    assert {key for key, name in names(result).items() if name == "other"} == {"3", "7"}
    assert len(ids(result)) == 30


@pytest.mark.parametrize("page_limit", [3, 100])
def test_the_same_row_twice_is_a_duplicate_and_proves_nothing(tmp_path: Path, page_limit: int) -> None:
    result = walked(Platform([*range(20), 7, *range(20, 30), 7]), tmp_path, page_limit=page_limit)
    assert (result.verdict, len(result.sweeps)) == ("unproven", 6), result.evidence
    assert (result.distinct, result.duplicates, result.quarantined) == (30, 6 * 32 - 30, [])
    assert "2 duplicate rows" in result.evidence[0]
    assert "2 rows were read twice" in result.evidence[0]


def test_a_first_page_from_an_older_copy_of_the_list_proves_nothing(tmp_path: Path) -> None:
    """Every sweep reads one record twice and another one never, as many rows as the platform counts."""
    listed = list(range(30))

    def copy(platform: Platform) -> None:
        is_old = platform.requests[-1]["page"] == 1
        platform.ids = [25 if key == 3 and is_old else key for key in listed]

    result = walked(Platform(listed, pagination=True, before=copy), tmp_path, page_limit=10)
    assert (result.verdict, result.distinct) == ("unproven", 29), result.evidence


def test_sweeps_that_repeat_different_rows_prove_nothing(tmp_path: Path) -> None:
    listed = list(range(100))

    def overlap(platform: Platform) -> None:
        """Each page begins with the last row of the page before it."""
        size = int(platform.requests[-1]["limit"]) - 1
        starts = range(0, max(len(listed) - 1, 1), size)
        platform.ids = [key for start in starts for key in listed[start : start + size + 1]]

    result = walked(Platform(listed, before=overlap), tmp_path, page_limit=20, window=1)
    assert (result.verdict, len(result.sweeps), result.distinct) == ("unproven", 6, 100)
    assert result.quarantined == []


def test_an_earlier_version_is_no_second_record(tmp_path: Path) -> None:
    """One row is edited during the first sweep, and moves to the end."""

    def move(platform: Platform) -> None:
        if len(platform.requests) == 4:
            platform.ids.remove(5)
            platform.ids.append(5)

    platform = Platform(list(range(60)), before=move)
    platform.row = lambda key: {"firstName": "new" if key == 5 and len(platform.requests) > 3 else "old"}
    result = walked(platform, tmp_path, page_limit=10, window=1)
    assert (result.verdict, len(result.sweeps)) == ("complete", 3), result.evidence
    assert (result.quarantined, names(result)["5"]) == ([], "new")
