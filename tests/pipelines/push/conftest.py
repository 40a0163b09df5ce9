"""A sandbox with a folder to plan and push from, for the tests of the push."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipelines.push.plans import Place, place


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Place]:
    """A sandbox, settings for it, and a folder for ERP files, plans and a ledger."""
    with place(tmp_path) as made:
        yield made
