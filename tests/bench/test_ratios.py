"""No work gets dearer by a quarter, compared with a floor on the same work (`tests.bench.ratios`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.measure import run
from tests.bench.ratios import WORKS


@pytest.mark.parametrize("name", WORKS)
def test_no_ratio_to_its_floor_grows_by_a_quarter(name: str, tmp_path: Path) -> None:
    # in a process of its own: other tests leave much behind
    run("tests.bench.ratios", "--check", name, folder=tmp_path, settings={})
