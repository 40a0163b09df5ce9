"""A sandbox with an empty warehouse, for the tests of the pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipelines.bridge import Bridge, bridge


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Bridge]:
    """A small sandbox, this process's settings for it, and an empty folder for the warehouse."""
    with bridge(tmp_path) as made:
        yield made
