"""No work needs a quarter more calls of functions than recorded (`tests.bench.calls`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.calls import FILE, GROWTH_MAX, WORKS, figures
from tests.bench.plan import SETTINGS


@pytest.mark.parametrize("name", WORKS)
def test_no_work_grows_by_a_quarter(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for setting, value in SETTINGS.items():
        monkeypatch.setenv(setting, value)
    recorded = json.loads(FILE.read_text())[name]
    grown = {what: (value, recorded[what]) for what, value in figures(name, tmp_path).items()}
    assert {what: pair for what, pair in grown.items() if pair[0] > GROWTH_MAX * pair[1]} == {}
