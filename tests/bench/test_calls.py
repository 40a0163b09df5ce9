"""No work needs a quarter more calls of functions than recorded (`tests.bench.calls`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.calls import GROWTH_MAX, RECORDED, WORKS, figure
from tests.bench.plan import SETTINGS


@pytest.mark.parametrize("name", WORKS)
def test_no_work_grows_by_a_quarter(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for setting, value in SETTINGS.items():
        monkeypatch.setenv(setting, value)
    assert figure(name, tmp_path) <= GROWTH_MAX * RECORDED[name]
