"""A desk on a small sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipelines.bridge import Bridge
from tests.pipelines.desk.browser import Browser, serving
from tests.pipelines.desk.forks import Forks


@pytest.fixture(autouse=True)
def forks(monkeypatch: pytest.MonkeyPatch) -> Forks:
    """How commands of the desk are started."""
    made = Forks()
    monkeypatch.setattr("orderbridge.pipelines.desk.jobs.subprocess", made)
    return made


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the project."""
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def closed(project: Path) -> Iterator[Browser]:
    """A desk that nobody has opened."""
    with serving(project) as browser:
        yield browser


@pytest.fixture
def desk(closed: Browser) -> Browser:
    """A desk in a browser, of a project without settings."""
    closed.enter()
    return closed


@pytest.fixture
def shop_desk(reconciled: Bridge, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """A desk in a browser, of a project that was pulled and reconciled."""
    monkeypatch.setenv("DLT_PROJECT_DIR", str(reconciled.folder))
    with serving(reconciled.folder) as browser:
        browser.enter()
        yield browser
