"""A sandbox with a folder to import from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipelines.import_file.desk import Desk
from tests.pipelines.push.plans import place


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A sandbox, settings for it, and the current folder to import from."""
    monkeypatch.chdir(tmp_path)
    with place(tmp_path) as made:
        yield Desk(made)
