"""Promotions at an instant: real dates, the remaining uses, and whether they are running.

In: the raw promotions (interface, Resources) and the instant. Out: one row per promotion, the findings, and how the
dates were read. The interface has the same (not shown) format for startDate and expirationDate, so both are read as one
column: promotions that all start on the 1st prove nothing, but their last days may.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pandas as pd

from orderbridge.transforms.findings import combine_findings, count_text, date_text, rule_findings
from orderbridge.transforms.frames import (
    BIGINT,
    BOOLEAN,
    TEXT,
    TIMESTAMP,
    Column,
    first_true,
    joined_text,
    typed,
)
from orderbridge.transforms.values.dates import (
    OFFSET_MAX,
    DateColumn,
    DateContext,
    day_ends,
    form_findings,
    read_dates,
)
from orderbridge.transforms.values.keys import BOOKKEEPING, clean_text

RAW_PROMOTIONS: Final = {
    **dict.fromkeys(("id", "name", "start_date", "expiration_date", "_extra"), TEXT),
    **dict.fromkeys(("use_count", "usage_limit"), BIGINT),
    "is_active": BOOLEAN,
    **BOOKKEEPING,
}
PROMOTIONS: Final = {
    "promotion_id": TEXT,
    "name": TEXT,
    "status": TEXT,
    "is_active": BOOLEAN,
    "starts_at": TIMESTAMP,
    "expires_at": TIMESTAMP,
    "use_count": BIGINT,
    "usage_limit": BIGINT,
    "remaining_uses": BIGINT,
    "start_date": TEXT,
    "expiration_date": TEXT,
    "is_missing": BOOLEAN,
    "_extra": TEXT,
    **BOOKKEEPING,
}


def promotions(
    raw: pd.DataFrame, context: DateContext
) -> tuple[pd.DataFrame, pd.DataFrame, DateColumn]:
    """Reconciles the promotions.

    The status is the first of these that holds: `inactive` (by its flag), `expired`, `scheduled` (not yet started),
    `exhausted` (no uses left), `running`. It is `unknown` where the flag or a date that it needs is not known, and
    where a date does not decide: on the last day of an expiration without a time (whether that day counts is not
    shown), and within 14 hours of a time without an offset and a time zone. An expiration of 9999-12-31 means no end. A
    limit of zero or less is `unknown` too: its meaning is not shown, and so there are no remaining uses; nor are there
    where the number of uses is not known.

    Args:
        raw: the columns of `RAW_PROMOTIONS`.
        context: with the instant of the status.

    Returns:
        The columns of `PROMOTIONS`, sorted by id; findings; how both dates were read, all starts before all ends.
    """
    rows = typed(raw, RAW_PROMOTIONS).sort_values("id", ignore_index=True)
    texts = pd.concat([rows["start_date"], rows["expiration_date"]], ignore_index=True)
    dates = read_dates(texts, context.order, context.timezone)
    starts, ends = (
        _bounds(dates, part, context.timezone)
        for part in (slice(0, len(rows)), slice(len(rows), None))
    )
    limit, used = rows["usage_limit"].clip(lower=0), rows["use_count"].clip(lower=0)
    rows = rows.rename(columns={"id": "promotion_id"}).assign(
        starts_at=starts["at"],
        expires_at=ends["at"],
        # Both are positive, so the difference cannot overflow.
        remaining_uses=(limit - used).clip(lower=0).where(limit > 0),
        is_missing=rows["_missing_since"].notna(),
        # A day without a time ends after every time of that day.
        ends_before_start=(ends["at"] < starts["at"]) & (ends["last"] <= starts["at"]),
    )
    rows = rows.assign(status=_status(rows, starts, ends, context.as_of.astimezone(UTC)))
    findings = form_findings(
        "promotions", "dates", "startDate, expirationDate", dates, dates.zone_count
    )
    if not dates.is_unreadable:  # an expiration of 9999-12-31 is right, such a start is not
        for where, field in (
            (starts["unread"] | starts["endless"], "startDate"),
            (ends["unread"], "expirationDate"),
        ):
            findings.append(
                rule_findings("promotions", "dates_unreadable", rows["promotion_id"], where, field)
            )
    findings += _field_findings(rows)
    return typed(rows, PROMOTIONS), combine_findings(findings), dates


def _bounds(dates: DateColumn, part: slice, timezone: str | None) -> pd.DataFrame:
    """`at`, the earliest and the latest instant that a date may stand for, as a start and as an end; its other flags.

    An end without a time is the first instant of its day or the `last`.
    """
    columns = {
        name: getattr(dates, name)
        for name in ("at", "zone_unknown", "day_only", "endless", "unread")
    }
    rows = pd.DataFrame(columns).iloc[part].reset_index(drop=True)
    last = rows["at"].where(~rows["day_only"], day_ends(rows["at"], timezone))
    is_exact = ~rows["zone_unknown"]
    return rows.assign(
        earliest=rows["at"].where(is_exact, rows["at"] - OFFSET_MAX),
        latest=rows["at"].where(is_exact, rows["at"] + OFFSET_MAX),
        last=last,
        latest_end=last.where(is_exact, last + OFFSET_MAX),
    )


def _status(
    rows: pd.DataFrame, starts: pd.DataFrame, ends: pd.DataFrame, as_of: datetime
) -> Column[Any]:
    is_end_known = ends["endless"] | ends["at"].notna()
    return first_true(
        [
            (~rows["is_active"], "inactive"),
            (rows["is_active"].isna() | ~is_end_known, "unknown"),
            (ends["latest_end"] <= as_of, "expired"),
            (ends["earliest"] <= as_of, "unknown"),
            (starts["at"].isna(), "unknown"),
            (starts["earliest"] > as_of, "scheduled"),
            (starts["latest"] > as_of, "unknown"),
            (rows["usage_limit"].notna() & rows["remaining_uses"].isna(), "unknown"),
            (rows["remaining_uses"] == 0, "exhausted"),
        ],
        "running",
    )


def _field_findings(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """What is wrong with the fields of listed promotions."""
    rows = rows[~rows["is_missing"]]
    limit, used, is_active, status = (
        rows["usage_limit"],
        rows["use_count"],
        rows["is_active"],
        rows["status"],
    )
    ended = joined_text(["expirationDate ", date_text(rows["expires_at"])])
    both = joined_text(["startDate ", date_text(rows["starts_at"]), ", ", ended])
    uses = joined_text([count_text("useCount ", used, ", usageLimit "), count_text("", limit)])
    cases: tuple[tuple[str, Column[Any], Column[Any] | str], ...] = (
        ("name_missing", clean_text(rows["name"]).isna(), "name"),
        ("ends_before_start", rows["ends_before_start"], both),
        ("used_beyond_limit", (limit > 0) & (used > limit), uses),
        ("use_count_negative", used < 0, count_text("useCount ", used)),
        ("usage_limit_not_positive", limit <= 0, count_text("usageLimit ", limit)),
        ("active_but_expired", is_active & (status == "expired"), ended),
        ("active_but_exhausted", is_active & (status == "exhausted"), uses),
    )
    return [
        rule_findings("promotions", name, rows["promotion_id"], where, detail)
        for name, where, detail in cases
    ]
