"""A sandbox with an empty warehouse, for the tests of the pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.reconcile.reconcile import reconcile
from tests.pipelines.bridge import Bridge, bridge, pulled


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Bridge]:
    """A small sandbox, this process's settings for it, and an empty folder for the warehouse."""
    with bridge(tmp_path) as made:
        yield made


@pytest.fixture
def published(tmp_path: Path) -> Iterator[Bridge]:
    """The same after a first pull, which is copied from another test where it can be."""
    with pulled(tmp_path) as made:
        yield made


@pytest.fixture
def reconciled(tmp_path: Path) -> Iterator[Bridge]:
    """After a first pull and a first `reconcile`, copied as well."""
    with pulled(tmp_path, reconcile) as made:
        yield made
