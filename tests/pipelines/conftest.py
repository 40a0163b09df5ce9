"""A sandbox with a warehouse, for the tests of the pipelines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orderbridge.pipelines.cli.process import STOP, Stop
from orderbridge.pipelines.reconcile.reconcile import reconcile
from tests.pipelines.bridge import Bridge, bridge, pulled


@pytest.fixture(autouse=True)
def _own_stop() -> None:
    """No test has the style of another one, which parsed `--json`."""
    vars(STOP).update(vars(Stop()))


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


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    """A sandbox, and a warehouse that was pulled from it, for the tests of a file."""
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
    folders = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
    }
    return {**folders, "PYTHONWARNINGS": "error", "PYTHONUTF8": "1"}
