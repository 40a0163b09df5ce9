"""The forms in which dates are written: how to recognize the texts of each form, and how to read them.

In: a column of texts. Out: families of texts in the same form; each is read as a whole, into microseconds since 1970 in
the zone that it names, UTC otherwise. Regular expressions and numbers over whole columns: `pandas.to_datetime` with
`format="mixed"` and dateutil decide day and month for each text on its own, and read `01/02/2024` without a proof.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.transforms.frames import TIMESTAMP, Bools, Ints
from orderbridge.transforms.values.date_patterns import (
    DAY_MONTH_YEAR,
    DIGITS,
    MONTH_DAY_YEAR,
    MONTH_NAMES,
    NUMERIC,
    PLAIN_ISO,
    PLAIN_OFFSET,
    SHORT_STAMP,
    STAMP,
    YEAR_FIRST,
    has_part,
    is_written,
    microseconds,
    part_numbers,
)

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
    "ambiguous",
    "mixed",
    "unknown",
    "empty",
]
"""`iso_mixed` is ISO 8601 of several precisions, `compact` is `YYYYMMDDhhmmss`; `unknown` is any other form, also with
years of two digits, `empty` a column without a text."""

DateOrder = Literal["day_first", "month_first"]
"""The order of day and month, as a setting gives it for a column that does not prove it."""

Evidence = Counter[str]
Span = tuple[int, int]
"""The least and the greatest time, in microseconds since 1970."""

YEAR_MIN: Final = 1900
YEAR_MAX: Final = 2200
SHARE_MIN: Final = 0.95
"""Share of the texts that must have a form which does not prove itself."""
PROOF_MIN: Final = 0.05
"""Share of the texts that must prove the order of day and month: a single typing error must not decide for 400."""
_STAMPS_MAX: Final = 0.5
"""Up to this share of times since 1970 may be valid stamps of digits by chance; it is 0.6 % of random ones."""
_NO_END_YEAR: Final = 9999

_SECOND_US: Final = 1_000_000
_MINUTE_US: Final = 60 * _SECOND_US
_HOUR_US: Final = 60 * _MINUTE_US
_DAY_US: Final = 24 * _HOUR_US
_START_US: Final = int(np.datetime64(f"{YEAR_MIN}-01-01", "us").astype(np.int64))
_END_US: Final = int(np.datetime64(f"{YEAR_MAX + 1}-01-01", "us").astype(np.int64))

NO_SPAN: Final[Span] = (_END_US, _START_US)
"""Of no times."""
_STAMPS_FROM_US: Final = int(np.datetime64("2033-01-01", "us").astype(np.int64))
_NEAR_US: Final = 31 * _DAY_US
"""How far the first or last time of a column may be from the others, though its digits may be a stamp."""

_EPOCHS: Final[tuple[tuple[str, Form, int], ...]] = (
    ("seconds since 1970", "epoch_s", 1),
    ("milliseconds since 1970", "epoch_ms", 10**3),
    ("microseconds since 1970", "epoch_us", 10**6),
    ("nanoseconds since 1970", "epoch_ns", 10**9),
)
"""Name, form, units in a second."""
_EPOCH_MIN_S: Final = 10**9
"""In 2001: earlier times are not those of a shop, and may be stamps of 12 digits such as `202401311015`."""


@dataclass(frozen=True, slots=True)
class DateReading:
    """The texts of one family as they were read, a value for each.

    Attributes:
        at: microseconds since 1970.
        is_real: the date and time exist.
        is_day_only: written without a time of day.
        has_offset: the text fixes the instant.
        is_endless: `9999-12-31`.
    """

    at: Ints
    is_real: Bools
    is_day_only: Bools
    has_offset: Bools
    is_endless: Bools


@dataclass(frozen=True, slots=True)
class DateFamily:
    """Rows of a column in the same form, and how to read them.

    Attributes:
        decide: the form that the evidence of all parts proves, and notes about it; for the order see `DateContext`.
        read: the rows in that form, in a column with times of that `span`.
        examine: the evidence of these rows: counts of texts by what they show. That of several parts adds up.
        proves_itself: a text cannot be read in any other way.
        span: of the times since 1970 among these rows that cannot be stamps of digits.
    """

    name: str
    rows: Ints
    decide: Callable[[Evidence, DateOrder | None], tuple[Form, tuple[str, ...]]]
    read: Callable[[Form, Span], DateReading]
    examine: Callable[[], Evidence] = Counter
    proves_itself: bool = False
    span: Span = NO_SPAN


def find_families(texts: pa.Array, rows: Ints) -> Iterator[DateFamily]:
    """The families of forms that any of these rows have. A row is in one family at most.

    `texts` are without whitespace around them, `rows` are those with a text.
    """
    texts = texts.take(pa.array(rows))
    if (reading := _read_plain_iso(texts)) is not None:
        examine = partial(_year_first_evidence, reading)
        yield DateFamily(
            "ISO 8601", rows, _decide_year_first, lambda *_: reading, examine, proves_itself=True
        )
        return
    for name, pattern, decide, read, examine_fields, proves_itself in _WRITTEN:
        fields = pc.extract_regex(texts, pattern)
        fits: Bools = pc.is_valid(fields).to_numpy(zero_copy_only=False)
        if fits.any():
            own = fields.filter(pa.array(fits))
            yield DateFamily(
                name,
                rows[fits],
                decide,
                partial(read, own),
                partial(examine_fields, own),
                proves_itself,
            )
        rows = rows[~fits]
        texts = texts.filter(pa.array(~fits))
        if not len(rows):
            return
    is_number = _matches(texts, DIGITS)
    yield from _digit_families(texts.filter(pa.array(is_number)), rows[is_number])


def _read_plain_iso(texts: pa.Array) -> DateReading | None:
    """Dates and times that Arrow reads too, in a tenth of the time; None where one is written in another way."""
    if not len(texts) or not pc.all(pc.match_substring_regex(texts, PLAIN_ISO)).as_py():
        return None
    has_offset = re.search(PLAIN_OFFSET, texts[0].as_py()) is not None
    try:
        at = texts.cast(TIMESTAMP if has_offset else pa.timestamp("us")).cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:  # a day that does not exist, or only some with an offset
        return None
    if at.min() < _START_US + _DAY_US or at.max() >= _END_US - _DAY_US:
        return None
    no = np.zeros(len(at), np.bool_)
    return DateReading(at, ~no, no, no | has_offset, no)


def _digit_families(texts: pa.Array, rows: Ints) -> Iterator[DateFamily]:
    parts = pc.extract_regex(texts, DIGITS)
    size = pc.cast(pc.cast(parts.field("whole"), pa.decimal128(19, 0)), pa.float64()).to_numpy(
        zero_copy_only=False
    )
    if (fits := _matches(texts, STAMP)).any():
        read = partial(_read_year_first, pc.extract_regex(texts.filter(pa.array(fits)), STAMP))
        yield DateFamily("stamps of 14 digits", rows[fits], partial(_decide_one, "compact"), read)
    for name, form, unit in _EPOCHS:
        fits = (size >= _EPOCH_MIN_S * unit) & (size < _END_US // _SECOND_US * unit)
        if fits.any():
            is_stamp = _matches(texts.filter(pa.array(fits)), SHORT_STAMP)
            at = _epoch_times(unit, parts.filter(pa.array(fits)))
            times = at[~is_stamp]
            span = int(times.min(initial=NO_SPAN[0])), int(times.max(initial=NO_SPAN[1]))
            decide = partial(_decide_epoch, form)
            read = partial(_read_epoch, at, is_stamp)
            counts = Counter(texts=len(is_stamp), stamps=int(is_stamp.sum()))
            yield DateFamily(name, rows[fits], decide, read, counts.copy, span=span)


def _matches(texts: pa.Array, pattern: str) -> Bools:
    fits: Bools = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return fits


def _decide_one(form: Form, *_: object) -> tuple[Form, tuple[str, ...]]:
    return form, ()


def _decide_epoch(form: Form, counts: Evidence, *_: object) -> tuple[Form, tuple[str, ...]]:
    if counts["stamps"] > _STAMPS_MAX * counts["texts"]:
        return "ambiguous", (f"{counts['stamps']} may also be stamps of digits such as YYYYMMDDhh",)
    return form, ()


def _epoch_times(unit: int, parts: pa.StructArray) -> Ints:
    whole: Ints = pc.cast(parts.field("whole"), pa.int64()).to_numpy(zero_copy_only=False)
    if unit > _SECOND_US:
        return whole // (unit // _SECOND_US)
    return whole * (_SECOND_US // unit) + microseconds(parts.field("fraction")) // unit


def _read_epoch(at: Ints, is_stamp: Bools, _: Form, span: Span) -> DateReading:
    least, greatest = span
    # a stamp is far from the times beside it
    is_near = (at >= least - _NEAR_US) & (at <= greatest + _NEAR_US)
    is_among = is_near & (at < _STAMPS_FROM_US)
    no = np.zeros(len(at), np.bool_)
    return DateReading(at, ~is_stamp | is_among, no, ~no, no)


def _read_month_name(fields: pa.StructArray, *_: object) -> DateReading:
    names = pc.utf8_lower(fields.field("month_name"))
    month = pc.index_in(names, value_set=pa.array(list(MONTH_NAMES))).to_numpy(zero_copy_only=False)
    numbers = np.array(list(MONTH_NAMES.values()), np.int64)
    return _dated(fields, part_numbers(fields, "year"), numbers[month], part_numbers(fields, "day"))


def _year_month_day(fields: pa.StructArray) -> tuple[Ints, Ints, Ints]:
    month = (
        part_numbers(fields, "month")
        + part_numbers(fields, "month_b")
        + part_numbers(fields, "month_c")
    )
    day = (
        part_numbers(fields, "day") + part_numbers(fields, "day_b") + part_numbers(fields, "day_c")
    )
    return part_numbers(fields, "year"), month, day


def _examine_year_first(fields: pa.StructArray) -> Evidence:
    year, month, day = _year_month_day(fields)
    evidence = _year_first_evidence(_dated(fields, year, month, day))
    if evidence["absurd"]:
        evidence["proofs"] = int((_dated(fields, year, day, month).is_real & (month > 12)).sum())
    return evidence


def _year_first_evidence(reading: DateReading) -> Evidence:
    is_absurd = ~reading.is_real & ~reading.is_endless
    counts = Counter(texts=len(is_absurd), absurd=int(is_absurd.sum()))
    is_naive = ~reading.has_offset & ~reading.is_day_only
    for name, of_name in (("real", reading.is_real), ("unreal", ~reading.is_real)):
        counts[name] = int(of_name.sum())
        for kind, of_kind in (
            ("offset", reading.has_offset),
            ("day", reading.is_day_only),
            ("naive", is_naive),
        ):
            counts[f"{name} {kind}"] = int((of_name & of_kind).sum())
    return counts


def _decide_year_first(counts: Evidence, *_: object) -> tuple[Form, tuple[str, ...]]:
    if counts["proofs"] == counts["absurd"] >= max(2, PROOF_MIN * counts["texts"]):
        return "ambiguous", (f"{counts['proofs']} have the day before the month",)
    counted = "real" if counts["real"] else "unreal"
    forms: tuple[tuple[str, Form], ...] = (
        ("offset", "iso_offset"),
        ("day", "date_only"),
        ("naive", "iso_naive"),
    )
    for kind, form in forms:
        if counts[f"{counted} {kind}"] == counts[counted]:
            return form, ()
    return "iso_mixed", ()


def _read_year_first(fields: pa.StructArray, *_: object) -> DateReading:
    return _dated(fields, *_year_month_day(fields))


def _numeric_readings(fields: pa.StructArray) -> dict[Form, tuple[Ints, Ints, Ints]]:
    """Year, month and day in each order that they may have."""
    first, second, year = (
        part_numbers(fields, name) for name in ("first", "second_number", "year")
    )
    return {"day_first": (year, second, first), "month_first": (year, first, second)}


def _examine_numeric(fields: pa.StructArray) -> Evidence:
    counts = Counter(texts=len(fields))
    for form, (year, month, day) in _numeric_readings(fields).items():
        counts[form] = int((_dated(fields, year, month, day).is_real & (day > 12)).sum())
    for mark, count in zip(*pc.value_counts(fields.field("mark")).flatten(), strict=True):
        counts[f"mark {mark}"] = count.as_py()
    counts["several marks"] = int(
        pc.sum(pc.not_equal(fields.field("mark"), fields.field("mark_b"))).as_py() or 0
    )
    return counts


def _decide_numeric(counts: Evidence, order: DateOrder | None) -> tuple[Form, tuple[str, ...]]:
    by_day, by_month = counts["day_first"], counts["month_first"]
    notes: tuple[str, ...] = (f"{by_day} prove day first, {by_month} month first",)
    if sum(name.startswith("mark ") for name in counts) > 1 or counts["several marks"]:
        return "ambiguous", (*notes, "several separators")
    if order is not None:
        contradicting, proving = (by_month, by_day) if order == "day_first" else (by_day, by_month)
        if contradicting and not proving:
            return "ambiguous", (*notes, f"reconcile.date_order is {order}")
        return order, (*notes, f"{order.replace('_', ' ')} as set")
    least = max(1, PROOF_MIN * counts["texts"])
    if by_day >= least and not by_month:
        return "day_first", notes
    if by_month >= least and not by_day:
        return "month_first", notes
    return "ambiguous", notes


def _read_numeric(fields: pa.StructArray, form: Form, _: Span) -> DateReading:
    return _dated(fields, *_numeric_readings(fields)[form])


def _dated(fields: pa.StructArray, year: Ints, month: Ints, day: Ints) -> DateReading:
    """Dates with the time of day and the offset of their fields, as far as these are there."""
    is_endless = (year == _NO_END_YEAR) & (month == 12) & (day == 31)
    real = (year >= YEAR_MIN) & (year <= YEAR_MAX) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(real, (year - 1970) * 12 + month - 1, 0)
    begin = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    following = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    real &= day <= following - begin
    hour, minute, second = (
        part_numbers(fields, "hour"),
        part_numbers(fields, "minute"),
        part_numbers(fields, "second"),
    )
    if has_part(fields, "half"):
        has_half = is_written(fields, "half")
        is_pm = is_written(fields, "half", "p") | is_written(fields, "half", "P")
        real &= ~has_half | ((hour >= 1) & (hour <= 12))
        hour = np.where(has_half, hour % 12 + np.where(is_pm, 12, 0), hour)
    real &= (hour < 24) & (minute < 60) & (second < 60)
    micros = microseconds(fields.field("fraction")) if has_part(fields, "fraction") else 0
    at = (
        (begin + day - 1) * _DAY_US
        + hour * _HOUR_US
        + minute * _MINUTE_US
        + second * _SECOND_US
        + micros
    )
    no = np.zeros(len(at), np.bool_)
    if not has_part(fields, "zone"):
        return DateReading(at, real, no, no, is_endless)
    hours, minutes = part_numbers(fields, "off_hour"), part_numbers(fields, "off_minute")
    shift = hours * _HOUR_US + minutes * _MINUTE_US
    at = at - np.where(is_written(fields, "sign", "-"), -shift, shift)
    real &= (hours < 16) & (minutes < 60) & (at >= _START_US) & (at < _END_US)
    return DateReading(
        at, real, ~is_written(fields, "time"), is_written(fields, "zone"), is_endless
    )


_BY_NAME: Final = (partial(_decide_one, "month_name"), _read_month_name, lambda _: Evidence(), True)
_WRITTEN: Final[
    tuple[tuple[str, str, Callable[..., Any], Callable[..., Any], Callable[..., Any], bool], ...]
] = (
    ("ISO 8601", YEAR_FIRST, _decide_year_first, _read_year_first, _examine_year_first, True),
    ("numeric day and month", NUMERIC, _decide_numeric, _read_numeric, _examine_numeric, False),
    ("day and name of month", DAY_MONTH_YEAR, *_BY_NAME),
    ("name of month and day", MONTH_DAY_YEAR, *_BY_NAME),
)
"""Of families with separators: name, pattern, functions and `proves_itself`. A text is in the first one that fits."""
