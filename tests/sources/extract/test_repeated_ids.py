"""Ids that occur twice in a list: the same row again, or a different one."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from sources.extract.ids import ID_CONFLICT
from sources.extract.page_files import RowStream
from sources.http.exchange import Response
from tests.sources.extract.test_walk import ids, walked
from tests.sources.platform import Platform


class SecondRecords(Platform):
    """From the second time on, an id in a list is another record."""

    def get(self, path: str, params: Any, *, check: Any) -> Any:
        self.seen = set[int]()
        size, page = int(params["limit"]), int(params["page"]) - self.first_page
        self.seen.update(self.ids[: max(page, 0) * size])
        return super().get(path, params, check=check)

    def row(self, key: int) -> dict[str, Any]:
        name = "other" if key in self.seen else "first"
        self.seen.add(key)
        return {**super().row(key), "firstName": name}


def names(result: Any) -> dict[str, str]:
    rows = [row for path, _ in result.files["customers"] for row in pq.read_table(path).to_pylist()]
    return {row["id"]: row["first_name"] for row in rows}


@pytest.mark.parametrize("page_limit", [3, 10, 100])
def test_two_records_with_one_id_are_loaded_and_quarantined(tmp_path: Path, page_limit: int) -> None:
    platform = SecondRecords([*range(20), 7, *range(20, 30), 3])
    result = walked(platform, tmp_path, page_limit=page_limit)
    assert (result.verdict, len(result.sweeps)) == ("complete", 2), result.evidence
    assert (result.distinct, result.duplicates, result.total("rows")) == (30, 0, 32)
    assert [(row.key, row.reason, row.is_id_duplicate) for row in result.quarantined] == [
        ("3", ID_CONFLICT, True),
        ("7", ID_CONFLICT, True),
    ]
    assert b'"first"' in result.quarantined[0].row
    assert {key for key, name in names(result).items() if name == "other"} == {"3", "7"}
    assert len(ids(result)) == 30


@pytest.mark.parametrize("page_limit", [3, 10, 100])
def test_the_same_row_twice_is_a_duplicate_and_proves_nothing(tmp_path: Path, page_limit: int) -> None:
    result = walked(Platform([*range(20), 7, *range(20, 30), 7]), tmp_path, page_limit=page_limit)
    assert (result.verdict, len(result.sweeps)) == ("unproven", 6), result.evidence
    assert (result.distinct, result.duplicates, result.quarantined) == (30, 6 * 32 - 30, [])
    assert "2 duplicate rows" in result.evidence[0]
    assert "2 rows were read twice" in result.evidence[0]


def test_a_first_page_from_an_older_copy_of_the_list_proves_nothing(tmp_path: Path) -> None:
    """Every sweep reads one record twice and another one never, as many rows as the platform counts."""

    class OldFirstPage(Platform):
        def get(self, path: str, params: Any, *, check: Any) -> Any:
            ids = self.ids
            if int(params["page"]) == self.first_page:
                self.ids = [25 if key == 3 else key for key in ids]
            try:
                return super().get(path, params, check=check)
            finally:
                self.ids = ids

    result = walked(OldFirstPage(list(range(30)), pagination=True), tmp_path, page_limit=10)
    assert (result.verdict, result.distinct) == ("unproven", 29), result.evidence


class Orders:
    """Serves `/orders` by cursor; each reading of the list has its own rows."""

    def __init__(self, *readings: list[dict[str, Any]]) -> None:
        self.readings = list(readings)

    def get(self, path: str, params: Any, *, check: Any) -> Any:
        start, size = int(params.get("startingAfter", "0")), 2
        if not start:
            self.rows = self.readings.pop(0)
        rows, more = self.rows[start : start + size], start + size < len(self.rows)
        envelope = {"data": rows, "hasMore": more, "nextCursor": str(start + size) if more else None}
        raw = json.dumps(envelope).encode()
        return check(raw), Response(200, raw)


@pytest.mark.parametrize(
    ("second", "verdict", "words"),
    [
        ([9, 1, 2], "unproven", "no two sweeps agree"),  # 3 is gone, or was passed over
        ([9, 3, 1, 2], "complete", "each id once, and all ids before it"),
        ([1, 2, 2, 3], "unproven", "were read twice"),
    ],
)
def test_a_cursor_that_repeats_an_id_proves_nothing_alone(
    tmp_path: Path, second: list[int], verdict: str, words: str
) -> None:
    result = walked(Orders(*[[{"id": key} for key in keys] for keys in ([1, 2, 2, 3], second)]), tmp_path, "orders")
    assert (result.verdict, len(result.sweeps)) == (verdict, 2), result.evidence
    assert words in " ".join(result.evidence)
    assert set(ids(result, "orders")) == {str(key) for key in (1, 2, 3, *second)}


def test_two_sweeps_of_orders_have_the_same_types(tmp_path: Path) -> None:
    first: list[dict[str, Any]] = [{"id": key, "total": key} for key in (1, 2, 2, 3)]
    second: list[dict[str, Any]] = [
        {"id": 4, "total": 12.5, "note": "new"},
        *({"id": key, "total": key} for key in (1, 1, 3)),
    ]
    result = walked(Orders(first, second), tmp_path, "orders")
    assert result.verdict == "unproven"
    tables = [pq.read_table(path) for path, _ in result.files["orders"]]
    assert len(tables) == 2
    assert tables[0].schema == tables[1].schema
    rows = {row["id"]: (row["total"], row["note"]) for table in tables for row in table.to_pylist()}
    assert rows == {"4": (12.5, "new"), "1": (1.0, None), "2": (2.0, None), "3": (3.0, None)}


def test_sweeps_that_repeat_different_rows_prove_nothing(tmp_path: Path) -> None:
    class Overlapping(Platform):
        """Each page begins with the last row of the page before it."""

        def get(self, path: str, params: Any, *, check: Any) -> Any:
            size, everything = int(params["limit"]) - 1, self.ids
            starts = range(0, max(len(everything) - 1, 1), size)
            self.ids = [key for start in starts for key in everything[start : start + size + 1]]
            try:
                return super().get(path, params, check=check)
            finally:
                self.ids = everything

    result = walked(Overlapping(list(range(100))), tmp_path, page_limit=20)
    assert (result.verdict, len(result.sweeps), result.distinct) == ("unproven", 6, 100)
    assert result.quarantined == []


def test_an_earlier_version_is_no_second_record(tmp_path: Path) -> None:
    class Edited(Platform):
        """One row is edited during the first sweep, and moves to the end."""

        def row(self, key: int) -> dict[str, Any]:
            return {**super().row(key), "firstName": "new" if key == 5 and len(self.requests) > 3 else "old"}

    def move(platform: Platform) -> None:
        if len(platform.requests) == 4:
            platform.ids.remove(5)
            platform.ids.append(5)

    result = walked(Edited(list(range(60)), before=move), tmp_path, page_limit=10, window=1)
    assert (result.verdict, len(result.sweeps)) == ("complete", 3), result.evidence
    assert (result.quarantined, names(result)["5"]) == ([], "new")


def test_a_row_quarantined_in_six_sweeps_counts_once(tmp_path: Path) -> None:
    class Unreadable(Platform):
        def row(self, key: int) -> dict[str, Any]:
            return {**super().row(key), **({"birthdate": 7} if key in (13, 14) else {})}

    platform = Unreadable([*range(50), 14, *range(50, 100)], pagination=True, total_moves=True)
    result = walked(platform, tmp_path)
    assert (result.verdict, len(result.sweeps)) == ("unproven", 6)
    assert sorted(str(row.key) for row in result.quarantined) == ["13", "14", "14"]
    assert (result.total("rows"), result.distinct, result.duplicates) == (606, 98, 606 - 98 - 3)


@pytest.mark.parametrize("seed", range(40))
def test_drift_among_repeated_ids_never_makes_a_wrong_complete(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    keys = [random.randrange(60) for _ in range(random.randrange(1, 120))]
    platform = Platform(keys, pagination=random.random() < 0.5, drift=random.choice([0.0, 0.1, 0.5]), random=random)
    result = walked(platform, tmp_path, page_limit=random.choice([5, 10, 25]))
    if result.error is not None:
        assert result.verdict == "incomplete"
        return
    got = {int(key) for key in ids(result)}
    assert len(ids(result)) == len(got) == result.distinct
    assert got <= platform.ever
    if result.verdict == "complete":
        assert got >= platform.always


@pytest.mark.parametrize(
    ("resource", "platform", "sweeps"),
    [("customers", Platform([1, 2]), 1), ("orders", Orders([{"id": 1}, {"id": 2}]), 2)],
)
def test_rows_are_hashed_only_where_a_second_sweep_may_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resource: str, platform: Any, sweeps: int
) -> None:
    monkeypatch.delattr(RowStream, "add")
    assert walked(platform, tmp_path, resource, sweeps=sweeps).error is None
