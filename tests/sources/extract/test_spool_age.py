"""A spool is resumed within the hour in which its walk began, and not after."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sources.extract.spool import SpoolFolder


@pytest.mark.parametrize(
    ("age_s", "is_resumed"), [(0, True), (3500, True), (3700, False), (86_400, False), (-60, False)]
)
def test_an_old_spool_is_not_resumed(tmp_path: Path, age_s: float, is_resumed: bool) -> None:
    folder = tmp_path / "spool"
    SpoolFolder(folder, {"list": "customers"}, "key").sweep(1).close()
    described = json.loads((folder / "walk.json").read_text())
    described["started_at"] -= age_s
    (folder / "walk.json").write_text(json.dumps(described))
    SpoolFolder(folder, {"list": "customers"}, "key")
    assert (folder / "sweep-1.pages").exists() == is_resumed
