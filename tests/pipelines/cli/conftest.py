"""A warehouse that was pulled once for the tests of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipelines.bridge import Bridge, pulled


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    """A sandbox, and a warehouse that was pulled from it."""
    before = dict(os.environ)
    with pulled(tmp_path_factory.mktemp("shop")) as made:
        yield made
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def nobody(tmp_path: Path) -> dict[str, str]:
    """The environment of someone who has set nothing."""
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    return {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONWARNINGS": "error", "PYTHONUTF8": "1",
    }  # fmt: skip
