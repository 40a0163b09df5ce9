"""Each test has the environment, the file mode mask and the current folder to itself, whatever it calls."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("test", max_examples=30, deadline=None)
settings.register_profile("soak", max_examples=1000, deadline=None)  # pytest --hypothesis-profile=soak
settings.load_profile("test")

OURS = ("SOURCES__", "WAREHOUSE__", "LEDGER__", "DLT_", "RUNTIME__", "DESTINATION__")


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    environment, folder, mask = dict(os.environ), os.getcwd(), os.umask(0o022)  # noqa: PTH109 # mirrors chdir
    for name in environment:
        if name.startswith(OURS):
            del os.environ[name]
    yield
    os.umask(mask)
    os.chdir(folder)
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)
