"""The age of a list, which a monitor relies on."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipelines.cli.reconcile import print_reconcile
from pipelines.cli.status import lines
from pipelines.reconcile.reconcile import reconcile
from pipelines.reporting.notification import run_summary
from pipelines.reporting.status import Status, _is_older, read_status
from pipelines.warehouse import failure as failures
from pipelines.warehouse.ops import LastRead
from sources.errors import UsageError
from tests.pipelines.bridge import Bridge


def whole_read(ended_at: datetime, tail_ended_at: datetime | None = None) -> LastRead:
    return LastRead("orders", "run", "complete", 5, 0, ended_at, ended_at, None, None, tail_ended_at)


@pytest.mark.parametrize(
    ("age", "text", "is_too_old"),
    [
        (timedelta(hours=25), "25.0 h old  TOO OLD (limit 24 h)", True),
        (timedelta(minutes=3), "3 min old", False),
        (timedelta(minutes=-3), "-3 min old", False),
        (timedelta(days=-100), "-2400.0 h old  TOO OLD (limit 24 h)", True),
    ],
)
def test_a_list_read_in_the_future_is_too_old_for_a_monitor(age: timedelta, text: str, is_too_old: bool) -> None:
    """A clock that was wrong once would otherwise silence the monitor for years."""
    status = Status("w.duckdb", too_old=["orders"] if is_too_old else [])
    status.lists.append(whole_read(status.at - age))
    (ages,) = (read.ages_h(status.at) for read in status.lists)
    assert _is_older(ages, 24) is is_too_old
    assert status.as_dict()["lists"][0]["age_h"] == ages[0]
    assert lines(status, 24)[1].endswith(text)


def test_what_is_new_leads_status_webhook_and_the_output_of_a_run(
    published: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    reconcile()
    assert read_status().new_findings == [], "nothing was before"
    first, *_ = published.platform.state.ids("customers")
    published.platform.state.change("customers", first, {"email": "nobody"})
    pulled = published.pull()
    result = reconcile()
    news = ["new since the last run: 1 warning", "  warning customers.email_malformed: 1"]
    assert lines(read_status())[:2] == news
    assert read_status().as_dict()["new_findings"][0]["rule"] == "email_malformed"
    summary = run_summary(pulled, result)
    assert summary["text"].splitlines()[1:3] == news
    assert summary["new_findings"][0]["findings"] == 1
    print_reconcile(result, "plain")
    assert capsys.readouterr().out.splitlines()[1:3] == [news[0], news[1]]


def test_a_tail_counts_as_a_read_and_an_age_that_is_no_number_makes_no_list_fresh() -> None:
    status = Status("w.duckdb")
    status.lists.append(whole_read(status.at - timedelta(hours=30), status.at - timedelta(hours=2)))
    assert [_is_older(status.lists[0].ages_h(status.at), hours) for hours in (1, 3)] == [True, False]
    assert "30.0 h old, tail 2.0 h old" in lines(status)[1]
    assert (status.as_dict()["lists"][0]["age_h"], status.as_dict()["lists"][0]["tail_age_h"]) == (30, 2)
    with pytest.raises(UsageError, match="not a number of hours"):
        read_status(math.nan)


def test_a_copy_that_is_under_way_or_was_ended_is_not_said_to_have_failed(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    failures.record_unfinished_copy(path, "run", datetime.now(UTC), "run-1")
    shown = lines(Status(str(path), destination_failure=failures.read(path, is_destination=True)))
    assert shown[1].startswith("the warehouse was published, but its copy to the destination has not ended (")
    assert "is still copying" in shown[2]
