"""A project of its own for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sources.settings.sections import SECTIONS
from sources.settings.setting import variable


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    prefixes = tuple(variable(section) + "__" for section in SECTIONS)
    for name in list(os.environ):
        if name.startswith((*prefixes, "DLT_")):
            monkeypatch.delenv(name)
    project = tmp_path / "project"
    (project / ".dlt").mkdir(parents=True)
    monkeypatch.chdir(project)
    before = set(os.environ)
    yield project
    for name in set(os.environ) - before:  # dlt puts a mounted secret into the environment
        del os.environ[name]
