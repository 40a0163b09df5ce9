"""Retries without their delays, for tests that are about something else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def without_backoff() -> Iterator[None]:
    """Inside the block, retries of reads follow at once, in every thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sources.http.retries.delay_s", lambda *_: 0.0)
        yield
