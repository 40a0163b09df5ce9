"""The age of a list, which a monitor relies on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pipelines.cli.status import lines
from pipelines.reporting.status import ListStatus, Status


@pytest.mark.parametrize(
    ("age", "text", "is_too_old"),
    [
        (timedelta(hours=25), "25.0 h old  TOO OLD", True),
        (timedelta(minutes=3), "3 min old", False),
        (timedelta(minutes=-3), "-3 min old", False),
        (timedelta(days=-100), "-2400.0 h old  TOO OLD", True),
    ],
)
def test_a_list_read_in_the_future_is_too_old_for_a_monitor(age: timedelta, text: str, is_too_old: bool) -> None:
    """A clock that was wrong once would otherwise silence the monitor for years."""
    hours = age.total_seconds() / 3600
    read = ListStatus("orders", "complete", 5, 0, datetime.now(UTC) - age, "run", hours)
    assert read.is_older_than(24) is is_too_old
    status = Status("w.duckdb", lists=[read], too_old=["orders"] if is_too_old else [])
    assert lines(status)[1].endswith(text)
