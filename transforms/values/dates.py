"""Dates whose format the interface does not show, read for a column as a whole.

In: a column of texts. Out: its form, the instants in UTC, which texts stay unread, and the evidence in counts. Nothing
is guessed:

- A text with the year first and separators (ISO 8601, `2024/01/31 10:15`) or with the name of its month proves its own
  form. Such a form is that of the column where more texts have it than any other.
- Every other form has to be proven by the column: at least `SHARE_MIN` of the texts have it, or the column is `mixed`.
- The order of day and month is proven by real dates with a number over 12, at least `PROOF_MIN` of the texts. Without
  them, with proofs of both orders or with several separators the column is `ambiguous`, unless a setting gives the
  order and the column does not prove the other. Numbers that are times since 1970 as well as stamps such as
  `2401311015` are `ambiguous` too. All of an ambiguous or mixed column stays unread.

Texts in another form than their column's, days that do not exist, and years outside 1900 to 2200 stay unread.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa

from orderbridge.transforms.chance import Share
from orderbridge.transforms.findings import rule_findings, table_finding
from orderbridge.transforms.frames import (
    BOOLEAN,
    DATE,
    TEXT,
    TIMESTAMP,
    Column,
    Ints,
    array,
    column,
)
from orderbridge.transforms.values.date_forms import (
    NO_SPAN,
    SHARE_MIN,
    DateFamily,
    DateOrder,
    DateReading,
    Evidence,
    Form,
    Span,
    find_families,
)

UNREAD_FORMS: Final = frozenset({"ambiguous", "mixed", "unknown"})
"""Forms of columns whose texts all stay unread."""
OFFSET_MAX: Final = timedelta(hours=14)
"""How far from UTC a time without an offset may have been written."""
_NONE: Final = Share(0, 0)
_NO_TIME: Final = np.iinfo(np.int64).min
_SPACES: Final = "[\u00a0\u2009\u202f]"
"""Spaces that spreadsheets and browsers write before AM and PM."""


@dataclass(frozen=True, slots=True)
class DateContext:
    """The instant of a run, and how the dates of its tables are read.

    Attributes:
        as_of: the instant, with its offset, that ages, periods and future dates are relative to.
        order: whether day or month comes first where both are numbers; None: a column has to prove it.
        timezone: IANA name of the zone of times without an offset; None: they are read as UTC and reported.

    Raises:
        ValueError: as_of has no offset.
    """

    as_of: datetime
    order: DateOrder | None = None
    timezone: str | None = None

    def __post_init__(self) -> None:
        if self.as_of.tzinfo is None:
            raise ValueError("as_of needs an offset: datetime(..., tzinfo=UTC)")

    @property
    def zone(self) -> str:
        """The IANA name of the zone of days, weeks and months."""
        return self.timezone or "UTC"

    @property
    def today(self) -> date:
        """The day of the run in that zone."""
        return self.as_of.astimezone(ZoneInfo(self.zone)).date()


@dataclass(frozen=True, slots=True)
class DateColumn:
    """A column of dates as it was read.

    Attributes:
        form: of the column.
        at: the instants (TIMESTAMP), null where there is no text or it stays unread.
        unread: boolean; there is a text and it was not read.
        day_only: boolean; read, and written without a time of day.
        zone_unknown: boolean; read as UTC, because it has no offset and no time zone was given.
        doubled_day: the day (DATE) of a time that the clocks show twice, so that its instant is not known; else null.
        endless: boolean; `9999-12-31` in the form of the column, which means no end: neither read nor unread.
        evidence: what the form rests on, in counts; no value of the column.
    """

    form: Form
    at: Column[Any]
    unread: Column[Any]
    day_only: Column[Any]
    zone_unknown: Column[Any]
    endless: Column[Any]
    doubled_day: Column[Any]
    evidence: str

    @property
    def is_unreadable(self) -> bool:
        """Whether no form is proven, so that no text was read."""
        return self.form in UNREAD_FORMS

    @property
    def zone_count(self) -> int:
        """The number of times of day of an unknown zone."""
        return int((self.zone_unknown & ~self.day_only).sum())


@dataclass(frozen=True, slots=True)
class ColumnForm:
    """The form of a column, as all of its texts prove it.

    Attributes:
        form: see `DateColumn`.
        family: name of the texts that have it; empty for none.
        evidence: see `DateColumn`.
        span: of times since 1970 that cannot be stamps of digits.
    """

    form: Form
    family: str
    evidence: str
    span: Span = NO_SPAN


@dataclass(frozen=True, slots=True)
class ReadDates:
    """How the dates of a list were read, in counts.

    Attributes:
        column: as the platform names it.
        form, evidence: see `DateColumn`.
        naive_count: times of day without an offset, which no time zone was given for.
        midnights: those at midnight in UTC, of all with an offset; none where that is not looked at.
    """

    column: str
    form: Form
    evidence: str
    naive_count: int
    midnights: Share = _NONE


class DateEvidence:
    """What the texts of a column prove about its form. They are added part by part; for `order` see `DateContext`."""

    def __init__(self, order: DateOrder | None = None) -> None:
        self._order = order
        self._given = 0
        self._rows: Counter[str] = Counter()
        self._families: dict[str, DateFamily] = {}
        self._proofs: dict[str, Evidence] = {}
        self._spans: dict[str, Span] = {}

    def add(self, texts: Column[Any]) -> None:
        """Examines texts of type text, where blank is like null."""
        plain, given = _plain(texts)
        self._given += len(given)
        for family in find_families(array(plain), given) if len(given) else ():
            self._rows[family.name] += len(family.rows)
            self._families[family.name] = family
            self._proofs.setdefault(family.name, Counter()).update(family.examine())
            least, greatest = self._spans.get(family.name, NO_SPAN)
            self._spans[family.name] = min(least, family.span[0]), max(greatest, family.span[1])

    def form(self) -> ColumnForm:
        """The form that the texts so far prove."""
        if not self._given:
            return ColumnForm("empty", "", "no texts")
        if not self._rows:
            return ColumnForm("unknown", "", f"none of {self._given} texts has a known form")
        counts = ", ".join(f"{self._rows[name]} {name}" for name in sorted(self._rows))
        evidence = f"{self._given} texts: {counts}"
        name = self._family_of_column()
        if name is None:
            return ColumnForm("mixed", "", f"{evidence}; no form is proven")
        form, notes = self._families[name].decide(self._proofs[name], self._order)
        return ColumnForm(form, name, "; ".join([evidence, *notes]), self._spans[name])

    def _family_of_column(self) -> str | None:
        """The family whose form is that of the column; None where none is proven."""
        (first, count), *others = self._rows.most_common(2)
        if others and others[0][1] == count:
            return None
        return (
            first
            if self._families[first].proves_itself or count >= SHARE_MIN * self._given
            else None
        )


def read_dates(
    texts: Column[Any],
    order: DateOrder | None = None,
    timezone: str | None = None,
    of_column: ColumnForm | None = None,
) -> DateColumn:
    """Reads a column of dates whose form is not shown (interface, Resources: createdAt, startDate, expirationDate).

    Args:
        texts: of type text, where blank is like null.
        order: that of a `DateContext`.
        timezone: that of a `DateContext`.
        of_column: the form of the column that these texts are a part of; None: they are all of it.
    """
    if of_column is None:
        all_texts = DateEvidence(order)
        all_texts.add(texts)
        of_column = all_texts.form()
    plain, given = _plain(texts)
    families = (
        find_families(array(plain), given) if of_column.form not in (*UNREAD_FORMS, "empty") else ()
    )
    is_text, is_read, is_day, is_exact, endless = np.zeros((5, len(texts)), np.bool_)
    is_text[given] = True
    at = np.zeros(len(texts), np.int64)
    doubled = np.full(len(texts), _NO_TIME, np.int64)
    for family in (one for one in families if one.name == of_column.family):
        reading = family.read(of_column.form, of_column.span)
        rows = family.rows
        if timezone:
            doubled[rows] = _doubled(reading, timezone)
            reading = _localized(reading, timezone)
        # Not what is below a null: Arrow computes it too, and the least integer overflows.
        at[rows] = np.where(reading.is_real, reading.at, 0)
        is_read[rows], is_day[rows] = reading.is_real, reading.is_day_only
        is_exact[rows], endless[rows] = reading.has_offset, reading.is_endless
    instants = pa.array(at, pa.int64(), mask=~is_read).cast(pa.timestamp("us")).cast(TIMESTAMP)
    flags = (is_text & ~is_read & ~endless, is_read & is_day, is_read & ~is_exact, endless)
    at_utc = column(instants, texts.index)
    unread, day_only, zone_unknown, no_end = (
        column(pa.array(values, BOOLEAN), texts.index) for values in flags
    )
    days = pa.array(doubled, pa.int64(), mask=doubled == _NO_TIME).cast(pa.timestamp("us"))
    doubled_day = column(days.cast(DATE), texts.index)
    return DateColumn(
        of_column.form,
        at_utc,
        unread,
        day_only,
        zone_unknown,
        no_end,
        doubled_day,
        of_column.evidence,
    )


def _plain(texts: Column[Any]) -> tuple[Column[Any], Ints]:
    """The texts without whitespace around them, and the rows that have one."""
    plain = texts.astype(pd.ArrowDtype(TEXT)).str.strip()
    if not plain.str.isascii().all():
        plain = plain.str.replace(_SPACES, " ", regex=True)
    return plain, np.flatnonzero((plain != "").fillna(False).to_numpy(np.bool_))


def _localized(reading: DateReading, timezone: str) -> DateReading:
    """Local times of a zone in UTC. Those that its clocks show twice or never, when they are changed, stay unread.

    A day without a time begins at its first instant, also where the clocks are changed at midnight (Chile, Cuba).
    """
    rows = np.flatnonzero(reading.is_real & ~reading.has_offset)
    local = pd.DatetimeIndex(reading.at[rows].view("datetime64[us]"))
    utc = local.tz_localize(timezone, ambiguous="NaT", nonexistent="NaT")
    if (is_day := reading.is_day_only[rows]).any():
        utc = utc.where(~is_day, _first_instants(local, timezone))
    utc = utc.tz_convert("UTC").as_unit("us")
    at, is_real = reading.at.copy(), reading.is_real.copy()
    at[rows] = utc.asi8
    is_real[rows] = utc.notna()
    return replace(reading, at=at, is_real=is_real, has_offset=np.ones(len(at), np.bool_))


def _doubled(reading: DateReading, timezone: str) -> Ints:
    """The local times that the clocks of a zone show twice: their day is certain. Others are `_NO_TIME`."""
    doubled = np.full(len(reading.at), _NO_TIME, np.int64)
    rows = np.flatnonzero(reading.is_real & ~reading.has_offset & ~reading.is_day_only)
    local = pd.DatetimeIndex(reading.at[rows].view("datetime64[us]"))
    first = np.ones(len(rows), np.bool_)
    zone: dict[str, Any] = {"tz": timezone, "nonexistent": "NaT"}
    is_doubled = local.tz_localize(ambiguous=first, **zone) != local.tz_localize(
        ambiguous=~first, **zone
    )
    is_real = local.tz_localize(ambiguous=first, **zone).notna()
    doubled[rows[is_doubled & is_real]] = reading.at[rows[is_doubled & is_real]]
    return doubled


def _first_instants(midnights: pd.DatetimeIndex, timezone: str) -> pd.DatetimeIndex:
    """The first instant of each day of a zone."""
    is_first = np.ones(len(midnights), np.bool_)
    return midnights.tz_localize(timezone, ambiguous=is_first, nonexistent="shift_forward")


def day_ends(starts: Column[Any], timezone: str | None) -> Column[Any]:
    """The end of each day that begins at an instant: 23 or 25 hours later where the clocks are changed.

    Args:
        starts: of type TIMESTAMP.
        timezone: IANA name of the zone; None: UTC.
    """
    if timezone is None:
        return starts + timedelta(days=1)
    midnights = _local(starts, timezone).normalize() + timedelta(days=1)
    ends = _first_instants(midnights, timezone).tz_convert("UTC").as_unit("us")
    return column(pa.array(ends.asi8, pa.int64(), mask=ends.isna()).cast(TIMESTAMP), starts.index)


def local_days(instants: Column[Any], timezone: str | None) -> Column[Any]:
    """The day (DATE) of each instant (TIMESTAMP) in a zone, by its IANA name; None: UTC."""
    if timezone is None:
        return column(array(instants).cast(DATE), instants.index)
    local = _local(instants, timezone).as_unit("us")
    return column(
        pa.array(local.asi8, pa.int64(), mask=local.isna()).cast(pa.timestamp("us")).cast(DATE),
        instants.index,
    )


def _local(instants: Column[Any], timezone: str) -> pd.DatetimeIndex:
    """What the clocks of a zone show at each instant."""
    utc = pd.DatetimeIndex(
        instants.to_numpy("datetime64[us]", na_value=np.datetime64("NaT", "us"))
    ).tz_localize("UTC")
    return utc.tz_convert(timezone).tz_localize(None)


def unread_findings(
    entity: str, rule: str, field: str, dates: DateColumn, ids: Column[Any]
) -> pd.DataFrame:
    """The texts that are not read although the form of their column is known."""
    return rule_findings(entity, f"{rule}_unreadable", ids, dates.unread | dates.endless, field)


def form_findings(
    entity: str, rule: str, field: str, dates: ColumnForm | DateColumn, zone_count: int
) -> list[pd.DataFrame]:
    """The finding that no form is proven, or that times of day have no offset and no time zone is set."""
    if dates.form in UNREAD_FORMS:
        return [table_finding(entity, f"{rule}_form", f"{field}: {dates.form}: {dates.evidence}")]
    detail = f"{field}: {zone_count} times without an offset"
    return [table_finding(entity, f"{rule}_zone", detail)] if zone_count else []
