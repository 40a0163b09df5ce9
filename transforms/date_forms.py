"""The forms in which dates are written: how to recognize the texts of each form, and how to read them.

In: a column of texts. Out: families of texts in the same form; each is read as a whole, into microseconds since 1970 in
the zone that it names, UTC otherwise. Regular expressions and numbers over whole columns: `pandas.to_datetime` with
`format="mixed"` and dateutil decide day and month for each text on its own, and read `01/02/2024` without a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.date_patterns import (
    DAY_MONTH_YEAR,
    DIGITS_ONLY,
    MONTH_DAY_YEAR,
    MONTH_NAMES,
    NUMERIC,
    STAMPS,
    YEAR_FIRST,
    full_year,
    has_part,
    is_written,
    microseconds,
    part_numbers,
)
from transforms.frames import Bools, Ints

Form = Literal[
    "iso_offset",
    "iso_naive",
    "date_only",
    "iso_mixed",
    "month_name",
    "epoch_s",
    "epoch_ms",
    "epoch_us",
    "epoch_ns",
    "compact",
    "day_first",
    "month_first",
    "year_first",
    "ambiguous",
    "mixed",
    "unknown",
    "empty",
]
"""`iso_mixed` is ISO 8601 of several precisions, `compact` is `YYYYMMDDhhmmss`, `year_first` has years of two digits;
`unknown` is any other form, `empty` a column without a text."""

DateOrder = Literal["day_first", "month_first"]
"""The order of day and month, as a setting gives it for a column that does not prove it."""

YEAR_MIN: Final = 1900
YEAR_MAX: Final = 2200
SHARE_MIN: Final = 0.95
"""Share of the texts that must have a form which does not prove itself."""
PROOF_MIN: Final = 0.05
"""Share of the texts that must prove the order of day and month: a single typing error must not decide for 400."""
_STAMPS_MAX: Final = 0.5
"""Up to this share of times since 1970 may be valid stamps of digits by chance; it is 0.5 % of random ones."""
_NO_END_YEAR: Final = 9999

_SECOND_US: Final = 1_000_000
_MINUTE_US: Final = 60 * _SECOND_US
_HOUR_US: Final = 60 * _MINUTE_US
_DAY_US: Final = 24 * _HOUR_US
_START_US: Final = int(np.datetime64(f"{YEAR_MIN}-01-01", "us").astype(np.int64))
_END_US: Final = int(np.datetime64(f"{YEAR_MAX + 1}-01-01", "us").astype(np.int64))

_EPOCHS: Final[tuple[tuple[str, Form, int, int], ...]] = (
    ("seconds since 1970", "epoch_s", 1, 10**8),
    ("milliseconds since 1970", "epoch_ms", 10**3, 10**11),
    ("microseconds since 1970", "epoch_us", 10**6, 10**14),
    ("nanoseconds since 1970", "epoch_ns", 10**9, 10**17),
)
"""Name, form, units in a second, and the least number (1973): smaller ones are not times of a shop."""


@dataclass(frozen=True, slots=True)
class DateReading:
    """The texts of one family as they were read, a value for each.

    Attributes:
        form: of the family.
        at: microseconds since 1970.
        is_real: the date and time exist.
        is_day_only: written without a time of day.
        has_offset: the text fixes the instant.
        is_endless: `9999-12-31`.
        notes: for the evidence.
    """

    form: Form
    at: Ints
    is_real: Bools
    is_day_only: Bools
    has_offset: Bools
    is_endless: Bools
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DateFamily:
    """Rows of a column in the same form, and how to read them.

    Attributes:
        proves_itself: a text cannot be read in any other way.
    """

    name: str
    rows: Ints
    read: Callable[[], DateReading]
    proves_itself: bool = False


def find_families(texts: pa.Array, rows: Ints, order: DateOrder | None) -> Iterator[DateFamily]:
    """The families of forms that any of these rows have. A row is in one family at most.

    `texts` are without whitespace around them, `rows` are those with a text, and for `order` see `DateContext`.
    """
    patterns: tuple[tuple[str, str, Callable[[pa.StructArray], DateReading], bool], ...] = (
        ("ISO 8601", YEAR_FIRST, _read_year_first, True),
        ("numeric day and month", NUMERIC, partial(_read_numeric, order), False),
        ("day and name of month", DAY_MONTH_YEAR, _read_month_name, True),
        ("name of month and day", MONTH_DAY_YEAR, _read_month_name, True),
    )
    for name, pattern, read, proves_itself in patterns:
        fields = pc.extract_regex(texts.take(pa.array(rows)), pattern)
        fits: Bools = pc.is_valid(fields).to_numpy(zero_copy_only=False)
        if fits.any():
            fields = fields if fits.all() else fields.filter(pa.array(fits))
            yield DateFamily(name, rows[fits], partial(read, fields), proves_itself)
        rows = rows[~fits]
        if not len(rows):
            return
    digits = texts.take(pa.array(rows))
    is_number: Bools = pc.match_substring_regex(digits, DIGITS_ONLY).to_numpy(zero_copy_only=False)
    yield from _digit_families(digits.filter(pa.array(is_number)), rows[is_number])


def _digit_families(texts: pa.Array, rows: Ints) -> Iterator[DateFamily]:
    parts = pc.extract_regex(texts, r"^(?P<whole>-?\d+)(?:\.(?P<fraction>\d+))?$")
    whole = pc.cast(parts.field("whole"), pa.decimal128(20, 0))
    size = np.abs(pc.cast(whole, pa.float64()).to_numpy(zero_copy_only=False))
    is_stamp: Bools = pc.match_substring_regex(texts, r"^\d{14}$").to_numpy(zero_copy_only=False)
    if is_stamp.any():
        fields = pc.extract_regex(texts.filter(pa.array(is_stamp)), STAMPS[14])
        yield DateFamily("stamps of 14 digits", rows[is_stamp], partial(_read_stamp, fields))
    for name, form, unit, least in _EPOCHS:
        is_unit = ~is_stamp & (size >= least) & (size < _END_US // _SECOND_US * unit)
        # A number belongs to the largest unit that it fits.
        is_stamp = is_stamp | is_unit
        if is_unit.any():
            where = pa.array(is_unit)
            yield DateFamily(
                name, rows[is_unit], partial(_read_epoch, form, unit, texts.filter(where), parts.filter(where))
            )


def _read_epoch(form: Form, unit: int, texts: pa.Array, parts: pa.StructArray) -> DateReading:
    whole = pc.cast(parts.field("whole"), pa.int64()).to_numpy(zero_copy_only=False)
    fraction = microseconds(parts.field("fraction"))
    fraction = np.where(pc.starts_with(texts, "-").to_numpy(zero_copy_only=False), -fraction, fraction)
    at = whole * (_SECOND_US // unit) + fraction // unit if unit <= _SECOND_US else whole // (unit // _SECOND_US)
    no = np.zeros(len(at), np.bool_)
    is_stamp = np.logical_or.reduce(
        [_read_stamp(pc.extract_regex(texts, pattern)).is_real for pattern in STAMPS.values()], initial=False
    )
    is_real = (at >= _START_US) & (at < _END_US)
    if is_stamp.any() and not is_stamp.all():  # a stamp among times is far from all of them
        others = at[is_real & ~is_stamp]
        is_real &= ~is_stamp | ((at >= others.min(initial=_END_US)) & (at <= others.max(initial=_START_US)))
    reading = DateReading(form, at, is_real, no, ~no, no)
    if is_stamp.sum() > _STAMPS_MAX * len(at):
        return _ambiguous(reading, (f"{int(is_stamp.sum())} may also be stamps of digits such as YYYYMMDDhhmm",))
    return reading


def _read_stamp(fields: pa.StructArray) -> DateReading:
    has_century = has_part(fields, "year")
    year = part_numbers(fields, "year") if has_century else full_year(part_numbers(fields, "short"))
    return _dated("compact", fields, year, part_numbers(fields, "month"), part_numbers(fields, "day"))


def _read_month_name(fields: pa.StructArray) -> DateReading:
    names = pc.utf8_lower(fields.field("month_name"))
    month = pc.index_in(names, value_set=pa.array(list(MONTH_NAMES))).to_numpy(zero_copy_only=False)
    numbers = np.array(list(MONTH_NAMES.values()), np.int64)
    return _dated("month_name", fields, part_numbers(fields, "year"), numbers[month], part_numbers(fields, "day"))


def _read_year_first(fields: pa.StructArray) -> DateReading:
    year = part_numbers(fields, "year")
    month = part_numbers(fields, "month") + part_numbers(fields, "month_b") + part_numbers(fields, "month_c")
    day = part_numbers(fields, "day") + part_numbers(fields, "day_b") + part_numbers(fields, "day_c")
    reading = _dated("iso_mixed", fields, year, month, day)
    absurd = int((~reading.is_real & ~reading.is_endless).sum())
    proofs = int((_dated("iso_mixed", fields, year, day, month).is_real & (month > 12)).sum()) if absurd else 0
    if proofs == absurd >= max(2, PROOF_MIN * len(year)):
        return _ambiguous(reading, (f"{proofs} have the day before the month",))
    counted = reading.is_real if reading.is_real.any() else ~reading.is_real
    if reading.has_offset[counted].all():
        return replace(reading, form="iso_offset")
    if reading.is_day_only[counted].all():
        return replace(reading, form="date_only")
    is_naive = not (reading.has_offset[counted] | reading.is_day_only[counted]).any()
    return replace(reading, form="iso_naive" if is_naive else "iso_mixed")


def _read_numeric(order: DateOrder | None, fields: pa.StructArray) -> DateReading:
    """Day and month as numbers, in either order; with years of two digits these may come first as well."""
    first, second, third = (part_numbers(fields, name) for name in ("first", "second_number", "third"))
    is_short: Bools = pc.equal(pc.binary_length(fields.field("third")), 2).to_numpy(zero_copy_only=False)
    year = np.where(is_short, full_year(third), third)
    readings: dict[Form, DateReading] = {
        "day_first": _dated("day_first", fields, year, second, first),
        "month_first": _dated("month_first", fields, year, first, second),
    }
    marks = pc.unique(fields.field("mark"))
    one_mark = len(marks) == 1 and bool(pc.all(pc.equal(fields.field("mark"), fields.field("mark_b"))).as_py())
    by_day = int((readings["day_first"].is_real & (first > 12)).sum())
    by_month = int((readings["month_first"].is_real & (second > 12)).sum())
    notes: tuple[str, ...] = (f"{by_day} prove day first, {by_month} month first",)
    least = max(1, PROOF_MIN * len(first))
    contradicting = by_month if order == "day_first" else by_day
    if not one_mark:
        return _ambiguous(readings["day_first"], (*notes, "several separators"))
    if is_short.any() and not is_short.all():
        return _ambiguous(readings["day_first"], (*notes, "years of two and of four digits"))
    if order is not None and not (contradicting and not (by_day and by_month)):
        return replace(readings[order], notes=(*notes, f"{order.replace('_', ' ')} as set"))
    if order is not None:
        return _ambiguous(readings["day_first"], (*notes, f"reconcile.date_order is {order}"))
    if is_short.all():
        readings["year_first"] = _dated("year_first", fields, full_year(first), second, third)
        possible = [one for one in readings.values() if one.is_real.sum() >= SHARE_MIN * len(first)]
        if len(possible) == 1:
            return replace(possible[0], notes=notes)
        return _ambiguous(readings["day_first"], (*notes, "years of two digits"))
    if by_day >= least and not by_month:
        return replace(readings["day_first"], notes=notes)
    if by_month >= least and not by_day:
        return replace(readings["month_first"], notes=notes)
    return _ambiguous(readings["day_first"], notes)


def _ambiguous(reading: DateReading, notes: tuple[str, ...]) -> DateReading:
    no = np.zeros(len(reading.at), np.bool_)
    return replace(reading, form="ambiguous", is_real=no, is_endless=no, notes=notes)


def _dated(form: Form, fields: pa.StructArray, year: Ints, month: Ints, day: Ints) -> DateReading:
    """Dates with the time of day and the offset of their fields, as far as these are there."""
    is_endless = (year == _NO_END_YEAR) & (month == 12) & (day == 31)
    real = (year >= YEAR_MIN) & (year <= YEAR_MAX) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(real, (year - 1970) * 12 + month - 1, 0)
    begin = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    following = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    real &= day <= following - begin
    hour, minute, second = part_numbers(fields, "hour"), part_numbers(fields, "minute"), part_numbers(fields, "second")
    if has_part(fields, "half"):
        has_half, is_pm = is_written(fields, "half"), is_written(fields, "half", "p") | is_written(fields, "half", "P")
        real &= ~has_half | ((hour >= 1) & (hour <= 12))
        hour = np.where(has_half, hour % 12 + np.where(is_pm, 12, 0), hour)
    real &= (hour < 24) & (minute < 60) & (second < 60)
    micros = microseconds(fields.field("fraction")) if has_part(fields, "fraction") else 0
    at = (begin + day - 1) * _DAY_US + hour * _HOUR_US + minute * _MINUTE_US + second * _SECOND_US + micros
    no = np.zeros(len(at), np.bool_)
    if not has_part(fields, "zone"):
        return DateReading(form, at, real, no, no, is_endless)
    hours, minutes = part_numbers(fields, "off_hour"), part_numbers(fields, "off_minute")
    shift = hours * _HOUR_US + minutes * _MINUTE_US
    at = at - np.where(is_written(fields, "sign", "-"), -shift, shift)
    real &= (hours < 16) & (minutes < 60) & (at >= _START_US) & (at < _END_US)
    return DateReading(form, at, real, ~is_written(fields, "time"), is_written(fields, "zone"), is_endless)
