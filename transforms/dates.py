"""Dates whose form the interface does not show, read for a column as a whole.

In: a column of texts. Out: its form, the instants in UTC, which texts stay unread, and the evidence in counts. Nothing
is guessed:

- ISO 8601 proves itself in each text, so it is the form where more texts are written in it than in any other. Without
  an offset it is taken as UTC, without a time as midnight; the evidence says how often.
- Seconds and milliseconds since 1970, day first and month first are proven by the column only. One of them is the form
  where at least `SHARE_MIN` of the texts are written in it; else the column is `mixed`, and all of it unread.
- Day first is proven by a real date with a first number over 12, month first by one with a second number over 12. With
  no such date, with both, or with several separators, the column is `ambiguous`, and all of it unread; unless a person
  tells which comes first, and the column does not prove the other.

Texts of another form than the column's, days that no calendar has, and years outside 1900 to 2200 stay unread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.frames import BOOLEAN, TEXT, TIMESTAMP, Bools, Ints

Form = Literal[
    "iso_offset",
    "iso_naive",
    "date_only",
    "iso_mixed",
    "epoch_s",
    "epoch_ms",
    "day_first",
    "month_first",
    "ambiguous",
    "mixed",
    "unknown",
    "empty",
]
"""`iso_mixed` is ISO 8601 of several precisions; `unknown` no form of ours; `empty` a column without a text."""

DateOrder = Literal["day_first", "month_first"]
"""What a person may tell of a column of dates that does not prove it."""

SHARE_MIN: Final = 0.95
YEAR_MIN: Final = 1900
YEAR_MAX: Final = 2200
UNREAD_FORMS: Final = frozenset({"ambiguous", "mixed", "unknown"})
"""Forms of a column that is unread as a whole."""

_ISO: Final = (
    r"^(?P<year>\d{4})(?:-(?P<month>\d\d)-(?P<day>\d\d)|(?P<month_b>\d\d)(?P<day_b>\d\d))"
    r"(?P<time>[Tt ](?P<hour>\d\d):?(?P<minute>\d\d)(?::?(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
    r"(?P<offset> ?(?:[Zz]|(?P<sign>[+-])(?P<off_hour>\d\d)(?::?(?P<off_minute>\d\d))?))?)?$"
)
_NUMERIC: Final = (
    r"^(?P<first>\d{1,2})(?P<mark>[/.-])(?P<second_number>\d{1,2})(?P<mark_b>[/.-])(?P<year>\d{4})"
    r"(?P<time>,?[ T]+(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?)?$"
)
_EPOCH: Final = r"^-?\d{9,13}$"
_SECOND_US: Final = 1_000_000
_MINUTE_US: Final = 60 * _SECOND_US
_HOUR_US: Final = 60 * _MINUTE_US
_START_US: Final = int(np.datetime64(f"{YEAR_MIN}-01-01", "us").astype(np.int64))
_END_US: Final = int(np.datetime64(f"{YEAR_MAX + 1}-01-01", "us").astype(np.int64))
_EPOCH_S_MIN: Final = 10**8
"""Of fewer digits a number is no instant in seconds that a shop would have (1973), but may be a date like 20240131."""


@dataclass(frozen=True, slots=True)
class DateColumn:
    """A column of dates as read.

    Attributes:
        form: the form of the column.
        at: the instants (TIMESTAMP), null where there is no text or it stays unread.
        unread: boolean; a text is there, and was not read.
        day_only: boolean; read, and written without a time of day.
        evidence: what the form rests on, in counts; no value of the column.
    """

    form: Form
    at: pd.Series[Any]
    unread: pd.Series[Any]
    day_only: pd.Series[Any]
    evidence: str

    @property
    def is_unread_as_a_whole(self) -> bool:
        """Whether no form could be proven for the column."""
        return self.form in UNREAD_FORMS


@dataclass(frozen=True, slots=True)
class _Read:
    """Texts of one family of forms: their rows, the instants in microseconds, which of them are real, what is noted."""

    form: Form
    at: Ints
    real: Bools
    day_only: Bools
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Family:
    """Rows of a column that are written alike, and how to read them."""

    rows: Ints
    read: Callable[[], _Read]


def read_dates(texts: pd.Series[Any], order: DateOrder | None = None) -> DateColumn:
    """Reads a column of dates whose form is not shown (interface, Resources: createdAt, startDate, expirationDate).

    Args:
        texts: the column, of text. Blank is like null.
        order: which of day and month comes first, where both are numbers; None: the column proves it.
    """
    column = pc.utf8_trim_whitespace(pa.array(texts.array, TEXT))
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    given = np.flatnonzero(pc.fill_null(pc.not_equal(column, ""), False).to_numpy(zero_copy_only=False))
    if not len(given):
        return _made(texts, "empty", given, None, "no texts")
    families = _families(column, given, order)
    read, evidence = _chosen(families, len(given))
    if read is None:
        form: Form = "mixed" if families else "unknown"
        return _made(texts, form, given, None, evidence)
    return _made(texts, read.form, given, (max(families.values(), key=lambda f: len(f.rows)).rows, read), evidence)


def _chosen(families: dict[str, _Family], count: int) -> tuple[_Read | None, str]:
    """The reading of the family that is the column's form, if one is, and the evidence."""
    if not families:
        return None, f"none of {count} texts in a known form"
    parts = [f"{len(family.rows)} {name}" for name, family in sorted(families.items())]
    seen = f"{count} texts: {', '.join(parts)}"
    sizes = sorted((len(family.rows) for family in families.values()), reverse=True)
    name = max(families, key=lambda one: len(families[one].rows))
    tied = len(sizes) > 1 and sizes[0] == sizes[1]
    if tied or (name != "ISO 8601" and sizes[0] < SHARE_MIN * count):
        return None, f"{seen}; no form is proven"
    read = families[name].read()
    notes = list(read.notes)
    absurd = int(read.real.size - read.real.sum())
    if absurd and read.form != "ambiguous":
        notes.append(f"{absurd} are no day between {YEAR_MIN} and {YEAR_MAX}")
    return read, "; ".join([seen, *notes])


def _families(column: pa.Array, given: Ints, order: DateOrder | None) -> dict[str, _Family]:
    """The rows of each family of forms, those only that have any."""
    made: dict[str, _Family] = {}
    rest = given
    for name, pattern, reader in (
        ("ISO 8601", _ISO, _read_iso),
        ("numbers of day and month", _NUMERIC, partial(_read_numeric, order)),
    ):
        inner = column.take(pa.array(rest))
        fields = pc.extract_regex(inner, pattern)
        fits = pc.is_valid(fields).to_numpy(zero_copy_only=False)
        if fits.any():
            made[name] = _Family(rest[fits], partial(reader, fields if fits.all() else fields.filter(pa.array(fits))))
        rest = rest[~fits]
        if not len(rest):
            return made
    inner = column.take(pa.array(rest))
    fits = pc.match_substring_regex(inner, _EPOCH).to_numpy(zero_copy_only=False)
    rest, numbers = rest[fits], pc.cast(inner.filter(pa.array(fits)), pa.int64()).to_numpy()
    as_seconds = (numbers >= _START_US // _SECOND_US) & (numbers < _END_US // _SECOND_US)
    epochs: tuple[tuple[str, Form, Bools, int], ...] = (
        ("seconds since 1970", "epoch_s", as_seconds & (np.abs(numbers) >= _EPOCH_S_MIN), _SECOND_US),
        ("milliseconds since 1970", "epoch_ms", ~as_seconds, 1000),
    )
    for name, form, rows, unit_us in epochs:
        if rows.any():
            made[name] = _Family(rest[rows], partial(_read_epoch, form, numbers[rows] * unit_us))
    return made


def _read_epoch(form: Form, at: Ints) -> _Read:
    return _Read(form, at, (at >= _START_US) & (at < _END_US), np.zeros(len(at), np.bool_))


def _read_iso(fields: pa.StructArray) -> _Read:
    year = _ints(fields, "year")
    month = _ints(fields, "month") + _ints(fields, "month_b")
    day = _ints(fields, "day") + _ints(fields, "day_b")
    has_time, has_offset = _has(fields, "time"), _has(fields, "offset")
    at, real = _instants(fields, year, month, day)
    hours, minutes = _ints(fields, "off_hour"), _ints(fields, "off_minute")
    shift = hours * _HOUR_US + minutes * _MINUTE_US
    at = at - np.where(_equal(fields, "sign", "-"), -shift, shift)
    real &= (hours < 16) & (minutes < 60) & (at >= _START_US) & (at < _END_US)
    of = real if real.any() else ~real
    naive, days = int((of & has_time & ~has_offset).sum()), int((of & ~has_time).sum())
    counts: dict[Form, int] = {"iso_offset": int(of.sum()) - naive - days, "iso_naive": naive, "date_only": days}
    form: Form = next((name for name, count in counts.items() if count == of.sum()), "iso_mixed")
    notes = []
    if naive:
        notes.append(f"{naive} without an offset, taken as UTC")
    if days:
        notes.append(f"{days} without a time, taken as midnight UTC")
    return _Read(form, at, real, ~has_time, tuple(notes))


def _read_numeric(order: DateOrder | None, fields: pa.StructArray) -> _Read:
    first, second, year = _ints(fields, "first"), _ints(fields, "second_number"), _ints(fields, "year")
    marks = pc.unique(pc.struct_field(fields, "mark"))
    one_mark = len(marks) == 1 and bool(pc.all(pc.equal(fields.field("mark"), fields.field("mark_b"))).as_py())
    day_at, day_real = _instants(fields, year, second, first)
    month_at, month_real = _instants(fields, year, first, second)
    proves_day, proves_month = int((day_real & (first > 12)).sum()), int((month_real & (second > 12)).sum())
    notes: tuple[str, ...] = (f"{proves_day} prove day first, {proves_month} month first",)
    day_only = ~_has(fields, "time")
    contradicted = proves_month if order == "day_first" else proves_day if order == "month_first" else 0
    if not one_mark:
        notes = (*notes, "several separators")
    elif contradicted and not (proves_day and proves_month):
        notes = (*notes, f"told that it is {order}")
    elif proves_day and not proves_month:
        return _Read("day_first", day_at, day_real, day_only, (*notes, "taken as UTC"))
    elif proves_month and not proves_day:
        return _Read("month_first", month_at, month_real, day_only, (*notes, "taken as UTC"))
    elif order is not None:
        at, real = (day_at, day_real) if order == "day_first" else (month_at, month_real)
        return _Read(order, at, real, day_only, (*notes, f"{order.replace('_', ' ')} as told", "taken as UTC"))
    return _Read("ambiguous", day_at, np.zeros(len(day_at), np.bool_), day_only, notes)


def _instants(fields: pa.StructArray, year: Ints, month: Ints, day: Ints) -> tuple[Ints, Bools]:
    """Microseconds since 1970, and whether such a date and time exists."""
    real = (year >= YEAR_MIN) & (year <= YEAR_MAX) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(real, (year - 1970) * 12 + month - 1, 0)
    begin = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    following = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    real &= day <= following - begin
    hour, minute, second = _ints(fields, "hour"), _ints(fields, "minute"), _ints(fields, "second")
    if fields.type.get_field_index("half") >= 0:
        half = _has(fields, "half")
        real &= ~half | ((hour >= 1) & (hour <= 12))
        hour = np.where(half, hour % 12 + np.where(_equal(fields, "half", "p"), 12, 0), hour)
    real &= (hour < 24) & (minute < 60) & (second < 60)
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(fields.field("fraction"), 6, "0"), 0, 6)
    micro = _numbers(digits)
    at = (begin + day - 1) * 24 * _HOUR_US + hour * _HOUR_US + minute * _MINUTE_US + second * _SECOND_US + micro
    return at, real


def _ints(fields: pa.StructArray, name: str) -> Ints:
    """A part as a number; 0 where it is not written."""
    return _numbers(fields.field(name))


def _numbers(digits: pa.Array) -> Ints:
    written = pc.if_else(pc.equal(pc.binary_length(digits), 0), "0", digits)
    made: Ints = pc.cast(pc.fill_null(written, "0"), pa.int64()).to_numpy(zero_copy_only=False)
    return made


def _has(fields: pa.StructArray, name: str) -> Bools:
    made: Bools = pc.greater(pc.binary_length(fields.field(name)), 0).to_numpy(zero_copy_only=False)
    return made


def _equal(fields: pa.StructArray, name: str, value: str) -> Bools:
    made: Bools = pc.equal(pc.ascii_lower(fields.field(name)), value).to_numpy(zero_copy_only=False)
    return made


def _made(texts: pd.Series[Any], form: Form, given: Ints, read: tuple[Ints, _Read] | None, evidence: str) -> DateColumn:
    """The columns, as long as the texts and with their index."""
    at, is_read = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    day_only, unread = is_read.copy(), is_read.copy()
    unread[given] = True
    if read:
        rows, what = read
        at[rows], is_read[rows] = what.at, what.real
        day_only[rows] = what.real & what.day_only
        unread &= ~is_read
    instants = pa.array(at, pa.int64(), mask=~is_read).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    return DateColumn(
        form,
        _series(texts, instants, TIMESTAMP),
        _series(texts, pa.array(unread), BOOLEAN),
        _series(texts, pa.array(day_only), BOOLEAN),
        evidence,
    )


def _series(like: pd.Series[Any], values: pa.Array, kind: pa.DataType) -> pd.Series[Any]:
    column = pa.Table.from_arrays([values.cast(kind)], ["c"]).to_pandas(types_mapper=pd.ArrowDtype)["c"]
    made: pd.Series[Any] = column.set_axis(like.index)
    return made
