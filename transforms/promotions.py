"""Promotions at an instant: real dates, the uses that are left, and whether they run.

In: the raw promotions (interface, Resources) and the instant. Out: one row per promotion, the findings, and how the
dates were read. The interface speaks of one form of startDate and expirationDate ("not shown"), so both are read as
one column: promotions that all start on the 1st prove nothing, their last days may.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.dates import DateColumn, DateOrder, read_dates
from transforms.frames import BIGINT, BOOLEAN, TEXT, TIMESTAMP, array, from_arrow, typed
from transforms.keys import BOOKKEEPING, clean_text, one_row_per_id
from transforms.rules import combine_findings, count_text, date_text, rule_findings, table_finding

RAW_PROMOTIONS: Final = {
    "id": TEXT,
    "name": TEXT,
    "use_count": BIGINT,
    "usage_limit": BIGINT,
    "is_active": BOOLEAN,
    "start_date": TEXT,
    "expiration_date": TEXT,
    "_extra": TEXT,
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
_DAY: Final = timedelta(days=1)


def promotions(
    raw: pd.DataFrame, as_of: datetime, date_order: DateOrder | None = None
) -> tuple[pd.DataFrame, pd.DataFrame, DateColumn]:
    """Reconciles the promotions.

    The status is the first of these that holds: `inactive` (the flag says so), `expired`, `scheduled` (not yet
    started), `exhausted` (no uses left), `running`. It is `unknown` where a date or the flag that it needs is not
    known, and on the day of an expiration that is written without a time: whether that day counts is not shown.

    Args:
        raw: the columns of `RAW_PROMOTIONS`.
        as_of: the instant of the status, with its offset.
        date_order: see `read_dates`.

    Returns:
        The columns of `PROMOTIONS`, sorted by id; findings; how both dates were read, all starts before all ends.

    Raises:
        ValueError: as_of is without an offset.
    """
    if as_of.tzinfo is None:
        raise ValueError("as_of needs an offset: datetime(..., tzinfo=UTC)")
    rows, findings = one_row_per_id(typed(raw, RAW_PROMOTIONS), "promotions")
    of = {name: array(rows[name]) for name in RAW_PROMOTIONS}
    read = read_dates(pd.concat([rows["start_date"], rows["expiration_date"]], ignore_index=True), date_order)
    at, day_only, unread, count = array(read.at), array(read.day_only), array(read.unread), len(rows)
    columns = {
        **of,
        "promotion_id": of["id"],
        "starts_at": at.slice(0, count),
        "expires_at": at.slice(count),
        "remaining_uses": _not_negative(pc.subtract(_not_negative(of["usage_limit"]), _not_negative(of["use_count"]))),
        "is_missing": pc.is_valid(of["_missing_since"]),
    }
    columns["status"] = _status(columns, day_only.slice(count), as_of.astimezone(UTC))
    made = from_arrow(pa.table({name: columns[name].cast(kind) for name, kind in PROMOTIONS.items()}))
    if read.is_unread_as_a_whole:
        detail = f"startDate, expirationDate: {read.form}: {read.evidence}"
        findings.append(table_finding("promotions", "dates_form", detail))
    else:
        for name, some in (("startDate", unread.slice(0, count)), ("expirationDate", unread.slice(count))):
            findings.append(rule_findings("promotions", "dates_unreadable", of["id"], some, name))
    return made, combine_findings([*findings, *_values(columns)]), read


def _not_negative(numbers: pa.Array) -> pa.Array:
    """The numbers, 0 for those below. Differences of such numbers do not leave 64 bits."""
    return pc.max_element_wise(numbers, 0, skip_nulls=False)


def _status(columns: dict[str, pa.Array], ends_by_day: pa.Array, as_of: datetime) -> pa.Array:
    now = pa.scalar(as_of, TIMESTAMP)
    start, end, active = columns["starts_at"], columns["expires_at"], columns["is_active"]
    # An end written as a day may mean its first instant or its last: certain before the one, and after the other.
    is_expired = pc.if_else(
        ends_by_day, pc.less_equal(end, pa.scalar(as_of - _DAY, TIMESTAMP)), pc.less_equal(end, now)
    )
    is_last_day = pc.and_(ends_by_day, pc.and_not(pc.less_equal(end, now), is_expired))
    is_unsure = pc.or_kleene(pc.or_(pc.is_null(active), pc.is_null(end)), is_last_day)
    is_exhausted = pc.and_(pc.is_valid(columns["usage_limit"]), pc.equal(columns["remaining_uses"], 0))
    cases = (
        (pc.invert(active), "inactive"),
        (is_unsure, "unknown"),
        (is_expired, "expired"),
        (pc.is_null(start), "unknown"),
        (pc.greater(start, now), "scheduled"),
        (is_exhausted, "exhausted"),
    )
    conditions = pa.StructArray.from_arrays(
        [pc.fill_null(where, False) for where, _ in cases], [f"case_{n}" for n in range(len(cases))]
    )
    return pc.case_when(conditions, *(name for _, name in cases), "running")


def _values(columns: dict[str, pa.Array]) -> list[pd.DataFrame]:
    """Findings about what the fields of present promotions hold."""
    ids, start, end, status = (columns[name] for name in ("promotion_id", "starts_at", "expires_at", "status"))
    used, limit, active = columns["use_count"], columns["usage_limit"], columns["is_active"]
    ended = pc.binary_join_element_wise("expirationDate ", date_text(end), "")
    both = pc.binary_join_element_wise("startDate ", date_text(start), ", ", ended, "")
    beyond = pc.binary_join_element_wise(count_text("useCount ", used, ", usageLimit "), count_text("", limit), "")
    rules: tuple[tuple[str, pa.Array, pa.Array | str], ...] = (
        ("name_missing", pc.is_null(clean_text(columns["name"])), "name"),
        ("ends_before_start", pc.less(end, start), both),
        ("used_beyond_limit", pc.and_(pc.greater(limit, 0), pc.greater(used, limit)), beyond),
        ("use_count_negative", pc.less(used, 0), count_text("useCount ", used)),
        ("usage_limit_not_positive", pc.less_equal(limit, 0), count_text("usageLimit ", limit)),
        ("active_but_expired", pc.and_(active, pc.equal(status, "expired")), ended),
        ("active_but_exhausted", pc.and_(active, pc.equal(status, "exhausted")), beyond),
    )
    present = pc.invert(columns["is_missing"])
    return [rule_findings("promotions", name, ids, pc.and_(where, present), detail) for name, where, detail in rules]
