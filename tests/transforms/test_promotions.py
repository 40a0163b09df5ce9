"""Promotions have a status at an instant, and never one that is guessed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from transforms.dates import DateContext
from transforms.findings import FINDINGS
from transforms.frames import frame
from transforms.promotions import PROMOTIONS, RAW_PROMOTIONS, promotions

AS_OF = datetime(2026, 3, 1, 12, tzinfo=UTC)
PAST, FUTURE = "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"
LONG_PAST = "2025-01-01T00:00:00Z"
RUNNING = {
    "name": "Spring",
    "use_count": 3,
    "usage_limit": 10,
    "is_active": True,
    "start_date": PAST,
    "expiration_date": FUTURE,
}


def reconciled(
    *rows: dict[str, Any], timezone: str | None = None, as_of: datetime = AS_OF
) -> tuple[pd.DataFrame, pd.DataFrame]:
    raw = frame(RAW_PROMOTIONS, [{**RUNNING, "id": str(n), **row} for n, row in enumerate(rows)])
    made, findings, _ = promotions(raw, DateContext(as_of, timezone=timezone))
    return made, findings


def test_a_promotion_has_the_declared_columns() -> None:
    made, findings = reconciled({})
    expected = {
        **RUNNING,
        "promotion_id": "0",
        "status": "running",
        "starts_at": datetime(2026, 1, 1, tzinfo=UTC),
        "expires_at": datetime(2027, 1, 1, tzinfo=UTC),
        "remaining_uses": 7,
        "is_missing": False,
    }
    assert_frame_equal(made, frame(PROMOTIONS, [expected]))
    assert_frame_equal(findings, frame(FINDINGS))


@pytest.mark.parametrize(
    ("fields", "status", "rules"),
    [
        ({"is_active": False}, "inactive", []),
        ({"is_active": False, "start_date": None, "expiration_date": "soon"}, "inactive", ["dates_unreadable"]),
        ({"is_active": None}, "unknown", []),
        ({"expiration_date": None}, "unknown", []),
        ({"expiration_date": "soon"}, "unknown", ["dates_unreadable"]),
        ({"start_date": None}, "unknown", []),
        ({"start_date": "soon"}, "unknown", ["dates_unreadable"]),
        ({"start_date": "9999-12-31"}, "unknown", ["dates_unreadable"]),
        ({"start_date": None, "expiration_date": PAST}, "expired", ["active_but_expired"]),
        ({"start_date": FUTURE}, "scheduled", []),
        ({"start_date": "2026-03-01T12:00:00Z"}, "running", []),
        ({"expiration_date": "2026-03-01T12:00:00Z"}, "expired", ["active_but_expired"]),
        ({"start_date": PAST, "expiration_date": PAST}, "expired", ["active_but_expired"]),
        ({"start_date": PAST, "expiration_date": LONG_PAST}, "expired", ["active_but_expired", "ends_before_start"]),
        ({"use_count": 10}, "exhausted", ["active_but_exhausted"]),
        ({"use_count": 0}, "running", []),
        ({"use_count": 11}, "exhausted", ["active_but_exhausted", "used_beyond_limit"]),
        ({"usage_limit": 0}, "unknown", ["usage_limit_not_positive"]),
        ({"usage_limit": -1}, "unknown", ["usage_limit_not_positive"]),
        ({"usage_limit": None, "use_count": 99}, "running", []),
        ({"use_count": None}, "unknown", []),
        ({"start_date": "2026-02-28T09:00:00Z", "expiration_date": "2026-02-28"}, "expired", ["active_but_expired"]),
        (
            {"start_date": "2026-02-28", "expiration_date": "2026-02-27"},
            "expired",
            ["active_but_expired", "ends_before_start"],
        ),
        ({"use_count": -1}, "running", ["use_count_negative"]),
        ({"name": " "}, "running", ["name_missing"]),
        ({"expiration_date": "2026-03-01"}, "unknown", []),
        ({"expiration_date": "2026-03-02"}, "running", []),
        ({"expiration_date": "2026-02-28"}, "expired", ["active_but_expired"]),
    ],
)
def test_the_status_at_an_instant(fields: dict[str, Any], status: str, rules: list[str]) -> None:
    made, findings = reconciled({}, fields, timezone="UTC")
    assert made["status"].tolist() == ["running", status]
    assert findings[["entity_id", "rule"]].to_dict("records") == [{"entity_id": "1", "rule": rule} for rule in rules]


@pytest.mark.parametrize(
    ("fields", "timezone", "status"),
    [
        pytest.param({"expiration_date": "2026-03-01T09:00:00"}, "America/Lima", "running", id="two hours left"),
        pytest.param({"expiration_date": "2026-03-01T06:59:00"}, "America/Lima", "expired", id="ended in Lima"),
        pytest.param({"expiration_date": "2026-03-01T09:00:00"}, None, "unknown", id="may be Lima"),
        pytest.param({"expiration_date": "2026-03-02T02:00:00"}, None, "unknown", id="14 hours ahead may be over"),
        pytest.param({"expiration_date": "2026-03-02T02:00:01"}, None, "running", id="runs everywhere"),
        pytest.param({"expiration_date": "2026-02-28T22:00:00"}, None, "expired", id="ended everywhere"),
        pytest.param({"expiration_date": "2026-03-02"}, None, "unknown", id="a day that may have begun"),
        pytest.param({"expiration_date": "2026-03-03"}, None, "running", id="a day that has begun nowhere"),
        pytest.param({"expiration_date": "2026-02-28"}, None, "unknown", id="a day that may last"),
        pytest.param({"expiration_date": "2026-02-27"}, None, "expired", id="a day that is over everywhere"),
        pytest.param({"start_date": "2026-03-01T12:00:00"}, None, "unknown", id="may have started"),
        pytest.param({"start_date": "2026-03-02T02:00:01"}, None, "scheduled", id="started nowhere"),
        pytest.param({"start_date": "2026-02-28T22:00:00"}, None, "running", id="started everywhere"),
        pytest.param({"start_date": "2026-03-29T02:30:00"}, "Europe/Madrid", "unknown", id="clocks never show it"),
    ],
)
def test_a_time_without_an_offset_decides_only_beyond_14_hours_or_in_a_time_zone(
    fields: dict[str, Any], timezone: str | None, status: str
) -> None:
    made, findings = reconciled({}, fields, timezone=timezone)
    assert made["status"].tolist() == ["running", status]
    is_timed = "T" in next(iter(fields.values()))
    assert ("dates_zone" in findings["rule"].tolist()) == (timezone is None and is_timed)
    assert ("active_but_expired" in findings["rule"].tolist()) == (status == "expired")


@pytest.mark.parametrize(
    ("day", "timezone", "end"),
    [
        pytest.param("2026-10-25", "Europe/Madrid", "2026-10-25T23:00:00+00:00", id="25 hours"),
        pytest.param("2026-03-29", "Europe/Madrid", "2026-03-29T22:00:00+00:00", id="23 hours"),
        pytest.param("2026-09-05", "America/Santiago", "2026-09-06T04:00:00+00:00", id="the next begins at 1"),
        pytest.param("2026-09-06", "America/Santiago", "2026-09-07T03:00:00+00:00", id="23 hours, from 1 on"),
        pytest.param("2026-03-02", "UTC", "2026-03-03T00:00:00+00:00", id="24 hours"),
    ],
)
def test_a_day_ends_when_it_does_in_its_time_zone(day: str, timezone: str, end: str) -> None:
    rows: list[dict[str, Any]] = [{}, {"expiration_date": day}, {"start_date": day, "expiration_date": None}]
    moments = [datetime.fromisoformat(end) - before for before in (timedelta(minutes=1), timedelta(0))]
    statuses = [reconciled(*rows, as_of=at, timezone=timezone)[0]["status"].tolist() for at in moments]
    assert statuses == [["running", "unknown", "unknown"], ["running", "expired", "unknown"]]


@pytest.mark.parametrize("end", ["9999-12-31", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999"])
def test_the_end_of_the_year_9999_is_no_end(end: str) -> None:
    made, findings = reconciled({}, {"expiration_date": end})
    assert made["status"].tolist() == ["running", "running"]
    assert made["expires_at"].isna().tolist() == [False, True]
    assert_frame_equal(findings, frame(FINDINGS))


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({"use_count": 12}, 0),
        ({"usage_limit": None}, pd.NA),
        ({"use_count": None}, pd.NA),
        ({"use_count": -1, "usage_limit": 2**63 - 1}, 2**63 - 1),
        ({"use_count": 2, "usage_limit": -(2**63)}, pd.NA),
    ],
)
def test_uses_are_counted_down_to_zero(fields: dict[str, Any], left: Any) -> None:
    assert reconciled(fields)[0]["remaining_uses"].tolist() == [left]


def test_the_ends_prove_the_form_of_the_starts() -> None:
    made, _ = reconciled({"start_date": "01/02/2026", "expiration_date": "28/02/2026"})
    assert made["starts_at"].tolist() == [pd.Timestamp("2026-02-01", tz="UTC")]


def test_dates_without_a_proven_form_are_one_finding_and_unknown() -> None:
    made, findings = reconciled(*[{"start_date": "01/02/2026", "expiration_date": "01/03/2026"}] * 3)
    assert made["status"].unique().tolist() == ["unknown"]
    assert findings["rule"].tolist() == ["dates_form"]


def test_a_promotion_that_is_no_longer_listed_stays_without_findings() -> None:
    made, findings = reconciled({"use_count": 11, "_missing_since": AS_OF})
    assert made["is_missing"].tolist() == [True]
    assert_frame_equal(findings, frame(FINDINGS))
