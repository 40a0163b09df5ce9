"""Promotions have a status at an instant, and never one that is guessed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd

from orderbridge.transforms.frames import frame
from orderbridge.transforms.promotions import RAW_PROMOTIONS, promotions
from orderbridge.transforms.values.dates import DateContext
from tests.transforms.rows import values

AS_OF = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONG_PAST, PAST, FUTURE = "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"
RUNNING = {
    "name": "Spring", "use_count": 3, "usage_limit": 10, "is_active": True, "start_date": PAST,
    "expiration_date": FUTURE,
}  # fmt: skip


def reconciled(
    *rows: dict[str, Any], timezone: str | None = None, as_of: datetime = AS_OF
) -> tuple[pd.DataFrame, pd.DataFrame]:
    raw = frame(RAW_PROMOTIONS, [{**RUNNING, "id": str(n), **row} for n, row in enumerate(rows)])
    made, findings, _ = promotions(raw, DateContext(as_of, timezone=timezone))
    return made, findings


def start(text: str | None, **more: Any) -> dict[str, Any]:
    return {"start_date": text, **more}


def end(text: str | None, **more: Any) -> dict[str, Any]:
    return {"expiration_date": text, **more}


def test_the_status_at_an_instant() -> None:
    ended = ["active_but_expired"]
    cases: list[tuple[dict[str, Any], str, list[str]]] = [
        ({"is_active": False}, "inactive", []),
        (start(None, expiration_date="soon", is_active=False), "inactive", ["dates_unreadable"]),
        ({"is_active": None}, "unknown", []),
        (end(None), "unknown", []), (end("soon"), "unknown", ["dates_unreadable"]),
        (start(None), "unknown", []), (start("soon"), "unknown", ["dates_unreadable"]),
        (start("9999-12-31"), "unknown", ["dates_unreadable"]),
        (start(None, expiration_date=PAST), "expired", ended),
        (start(FUTURE), "scheduled", []), (start("2026-03-01T12:00:00Z"), "running", []),
        (end("2026-03-01T12:00:00Z"), "expired", ended), (end(PAST, start_date=PAST), "expired", ended),
        (end(LONG_PAST, start_date=PAST), "expired", [*ended, "ends_before_start"]),
        (start("2026-02-28T09:00:00Z", expiration_date="2026-02-28"), "expired", ended),
        (start("2026-02-28", expiration_date="2026-02-27"), "expired", [*ended, "ends_before_start"]),
        (end("2026-02-28"), "expired", ended), (end("2026-03-01"), "unknown", []), (end("2026-03-02"), "running", []),
        (end("9999-12-31"), "running", []), (end("9999-12-31T23:59:59.999"), "running", []),  # no end
        ({"use_count": 10}, "exhausted", ["active_but_exhausted"]), ({"use_count": 0}, "running", []),
        ({"use_count": 11}, "exhausted", ["active_but_exhausted", "used_beyond_limit"]),
        ({"usage_limit": 0}, "unknown", ["usage_limit_not_positive"]),
        ({"usage_limit": -1}, "unknown", ["usage_limit_not_positive"]),
        ({"usage_limit": None, "use_count": 99}, "running", []), ({"use_count": None}, "unknown", []),
        ({"use_count": -1}, "running", ["use_count_negative"]), ({"name": " "}, "running", ["name_missing"]),
        ({"use_count": 11, "_missing_since": AS_OF}, "exhausted", []),
    ]  # fmt: skip
    made, findings = reconciled(
        *({**fields, "id": f"{n:02}"} for n, (fields, *_) in enumerate(cases)), timezone="UTC"
    )
    assert values(made, "status") == [status for _, status, _ in cases]
    assert made["is_missing"].tolist() == ["_missing_since" in fields for fields, *_ in cases]
    assert (
        not made["expires_at"]
        .notna()[made["expiration_date"].str.startswith("9999").fillna(False)]
        .any()
    )
    expected = [(f"{n:02}", rule) for n, (*_, rules) in enumerate(cases) for rule in rules]
    assert sorted(values(findings, "entity_id", "rule")) == expected


def test_a_time_without_an_offset_decides_only_beyond_14_hours_or_in_a_time_zone() -> None:
    cases: dict[str | None, list[tuple[dict[str, Any], str]]] = {
        "America/Lima": [(end("2026-03-01T09:00:00"), "running"), (end("2026-03-01T06:59:00"), "expired")],
        "Europe/Madrid": [(start("2026-03-29T02:30:00"), "unknown")],  # the clocks never show it
        None: [
            (end("2026-03-02T02:00:00"), "unknown"),  # 14 hours ahead may be over
            (end("2026-03-02T02:00:01"), "running"),  # everywhere
            (end("2026-02-28T22:00:00"), "expired"),  # everywhere
            (end("2026-03-02"), "unknown"), (end("2026-03-03"), "running"),  # a day that may have begun
            (end("2026-02-28"), "unknown"), (end("2026-02-27"), "expired"),  # a day that may last
            (start("2026-03-02T02:00:00"), "unknown"), (start("2026-03-02T02:00:01"), "scheduled"),
            (start("2026-02-28T22:00:00"), "running"),
        ],
    }  # fmt: skip
    for timezone, rows in cases.items():
        named = [{"id": f"p{n:02}", **fields} for n, (fields, _) in enumerate(rows)]
        made, findings = reconciled({}, *named, timezone=timezone)
        assert values(made, "status") == ["running", *(status for _, status in rows)]
        assert ("dates_zone" in findings["rule"].tolist()) == (timezone is None)
        expired = [f"p{n:02}" for n, (_, status) in enumerate(rows) if status == "expired"]
        assert values(findings[findings["rule"] == "active_but_expired"], "entity_id") == expired
    assert "dates_zone" not in reconciled({}, end("2026-03-02"))[1]["rule"].tolist()


def test_a_day_ends_when_it_does_in_its_time_zone() -> None:
    for day, timezone, end_of_day in (
        ("2026-10-25", "Europe/Madrid", "2026-10-25T23:00:00+00:00"),  # 25 hours
        ("2026-09-05", "America/Santiago", "2026-09-06T04:00:00+00:00"),  # the next begins at 1
        ("2026-09-06", "America/Santiago", "2026-09-07T03:00:00+00:00"),  # 23 hours, from 1 on
    ):
        rows: list[dict[str, Any]] = [{}, end(day), start(day, expiration_date=None)]
        moments = [
            datetime.fromisoformat(end_of_day) - before
            for before in (timedelta(minutes=1), timedelta(0))
        ]
        statuses = [
            reconciled(*rows, as_of=at, timezone=timezone)[0]["status"].tolist() for at in moments
        ]
        assert statuses == [["running", "unknown", "unknown"], ["running", "expired", "unknown"]]


def test_uses_are_counted_down_to_zero() -> None:
    uses = [
        (12, 10, 0),
        (3, None, None),
        (None, 10, None),
        (-1, 2**63 - 1, 2**63 - 1),
        (2, -(2**63), None),
    ]
    made, _ = reconciled(*({"use_count": used, "usage_limit": limit} for used, limit, _ in uses))
    assert values(made, "remaining_uses") == [left for *_, left in uses]


def test_the_ends_prove_the_form_of_the_starts_and_without_proof_is_one_finding() -> None:
    made, _ = reconciled(start("01/02/2026", expiration_date="28/02/2026"))
    assert made["starts_at"].tolist() == [pd.Timestamp("2026-02-01", tz="UTC")]
    made, findings = reconciled(*[start("01/02/2026", expiration_date="01/03/2026")] * 3)
    assert (made["status"].unique().tolist(), findings["rule"].tolist()) == (
        ["unknown"],
        ["dates_form"],
    )
