"""A spool is resumed within an hour of its last page and a day of its first, and not after."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from sources.extract.spool import SpoolFolder


def is_resumed(folder: Path, started_s: float, stopped_s: float | None) -> bool:
    """Whether a walk that began and stopped so many seconds ago is resumed; None: it stopped before its first page."""
    spools = SpoolFolder(folder, {"list": "customers"}, "key")
    if stopped_s is not None:
        spools.sweep(1).close()
        os.utime(folder / "sweep-1.pages", (time.time() - stopped_s,) * 2)
    described = json.loads((folder / "walk.json").read_text())
    started_at = described["started_at"] - started_s
    (folder / "walk.json").write_text(json.dumps({**described, "started_at": started_at}))
    SpoolFolder(folder, {"list": "customers"}, "key")
    kept = json.loads((folder / "walk.json").read_text())["started_at"]
    assert stopped_s is None or (folder / "sweep-1.pages").exists() == (kept == started_at)
    return bool(kept == started_at)


@pytest.mark.parametrize(("age_s", "expected"), [(0, True), (3500, True), (3700, False), (86_400, False), (-60, False)])
def test_an_old_spool_is_not_resumed(tmp_path: Path, age_s: float, expected: bool) -> None:
    assert is_resumed(tmp_path / "with a page", age_s, age_s) == expected
    assert is_resumed(tmp_path / "without a page", age_s, None) == expected


@pytest.mark.parametrize(
    ("started_s", "stopped_s", "expected"),
    [(80_000, 60, True), (80_000, 3700, False), (87_000, 60, False), (60, -60, False), (-60, 60, False)],
)
def test_a_walk_of_hours_is_resumed_soon_after_it_stopped(
    tmp_path: Path, started_s: float, stopped_s: float, expected: bool
) -> None:
    assert is_resumed(tmp_path / "spool", started_s, stopped_s) == expected
