"""The forms in which dates are written: how to recognize the texts of each form, and how to read them.

In: a column of texts. Out: families of texts in the same form; each is read as a whole, into microseconds since 1970 in
the zone that it names, UTC otherwise. Regular expressions and numbers over whole columns: `pandas.to_datetime` with
`format="mixed"` and dateutil decide day and month for each text on its own, and read `01/02/2024` without a proof.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.date_patterns import (
    DAY_MONTH_YEAR,
    DIGITS_ONLY,
    MONTH_DAY_YEAR,
    MONTH_NAMES,
    NUMERIC,
    PLAIN_ISO,
    PLAIN_OFFSET,
    STAMPS,
    YEAR_FIRST,
    full_year,
    has_part,
    is_written,
    microseconds,
    part_numbers,
)
from transforms.frames import TIMESTAMP, Bools, Ints

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
class FormEvidence:
    """What texts of one family prove about its form; that of several parts of a column adds up.

    Attributes:
        counts: of texts by what they show.
        least, greatest: times since 1970 that cannot be stamps of digits, in microseconds.
    """

    counts: Counter[str] = field(default_factory=Counter)
    least: int = _END_US
    greatest: int = _START_US

    def __add__(self, other: FormEvidence) -> FormEvidence:
        return FormEvidence(
            self.counts + other.counts, min(self.least, other.least), max(self.greatest, other.greatest)
        )


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
        decide: the form that the evidence of all parts proves, and notes about it.
        read: the rows in that form.
        examine: the evidence of these rows.
        proves_itself: a text cannot be read in any other way.
    """

    name: str
    rows: Ints
    decide: Callable[[FormEvidence], tuple[Form, tuple[str, ...]]]
    read: Callable[[Form, FormEvidence], DateReading]
    examine: Callable[[], FormEvidence] = FormEvidence
    proves_itself: bool = False


def find_families(texts: pa.Array, rows: Ints, order: DateOrder | None) -> Iterator[DateFamily]:
    """The families of forms that any of these rows have. A row is in one family at most.

    `texts` are without whitespace around them, `rows` are those with a text, and for `order` see `DateContext`.
    """
    texts = texts.take(pa.array(rows))
    if (reading := _read_plain_iso(texts)) is not None:
        examine = partial(_year_first_evidence, reading)
        yield DateFamily("ISO 8601", rows, _decide_year_first, lambda *_: reading, examine, proves_itself=True)
        return
    by_name = (partial(_decide_one, "month_name"), _read_month_name, lambda _: FormEvidence(), True)
    patterns: tuple[tuple[str, str, Callable[..., Any], Callable[..., Any], Callable[..., Any], bool], ...] = (
        ("ISO 8601", YEAR_FIRST, _decide_year_first, _read_year_first, _examine_year_first, True),
        ("numeric day and month", NUMERIC, partial(_decide_numeric, order), _read_numeric, _examine_numeric, False),
        ("day and name of month", DAY_MONTH_YEAR, *by_name),
        ("name of month and day", MONTH_DAY_YEAR, *by_name),
    )
    for name, pattern, decide, read, examine_fields, proves_itself in patterns:
        fields = pc.extract_regex(texts, pattern)
        fits: Bools = pc.is_valid(fields).to_numpy(zero_copy_only=False)
        if fits.any():
            own = fields.filter(pa.array(fits))
            yield DateFamily(name, rows[fits], decide, partial(read, own), partial(examine_fields, own), proves_itself)
        rows, texts = rows[~fits], texts.filter(pa.array(~fits))
        if not len(rows):
            return
    is_number: Bools = pc.match_substring_regex(texts, DIGITS_ONLY).to_numpy(zero_copy_only=False)
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
    parts = pc.extract_regex(texts, r"^(?P<whole>-?\d+)(?:\.(?P<fraction>\d+))?$")
    whole = pc.cast(parts.field("whole"), pa.decimal128(20, 0))
    size = np.abs(pc.cast(whole, pa.float64()).to_numpy(zero_copy_only=False))
    is_stamp: Bools = pc.match_substring_regex(texts, r"^\d{14}$").to_numpy(zero_copy_only=False)
    if is_stamp.any():
        read = partial(_read_stamp, pc.extract_regex(texts.filter(pa.array(is_stamp)), STAMPS[14]))
        yield DateFamily("stamps of 14 digits", rows[is_stamp], partial(_decide_one, "compact"), read)
    for name, form, unit, least in _EPOCHS:
        is_unit = ~is_stamp & (size >= least) & (size < _END_US // _SECOND_US * unit)
        # A number belongs to the largest unit that it fits.
        is_stamp = is_stamp | is_unit
        if is_unit.any():
            fields = (unit, texts.filter(pa.array(is_unit)), parts.filter(pa.array(is_unit)))
            functions = partial(_decide_epoch, form), partial(_read_epoch, *fields), partial(_examine_epoch, *fields)
            yield DateFamily(name, rows[is_unit], *functions)


def _decide_one(form: Form, _: FormEvidence) -> tuple[Form, tuple[str, ...]]:
    return form, ()


def _times(unit: int, texts: pa.Array, parts: pa.StructArray) -> tuple[Ints, Bools, Bools]:
    """Times since 1970 in microseconds; whether they are those of a shop; whether their digits may be a stamp's."""
    whole = pc.cast(parts.field("whole"), pa.int64()).to_numpy(zero_copy_only=False)
    fraction = microseconds(parts.field("fraction"))
    fraction = np.where(pc.starts_with(texts, "-").to_numpy(zero_copy_only=False), -fraction, fraction)
    at = whole * (_SECOND_US // unit) + fraction // unit if unit <= _SECOND_US else whole // (unit // _SECOND_US)
    stamps = [_read_stamp(pc.extract_regex(texts, pattern)).is_real for pattern in STAMPS.values()]
    return at, (at >= _START_US) & (at < _END_US), np.logical_or.reduce(stamps, initial=False)


def _examine_epoch(unit: int, texts: pa.Array, parts: pa.StructArray) -> FormEvidence:
    at, is_real, is_stamp = _times(unit, texts, parts)
    others = at[is_real & ~is_stamp]
    counts = Counter(texts=len(at), stamps=int(is_stamp.sum()))
    return FormEvidence(counts, int(others.min(initial=_END_US)), int(others.max(initial=_START_US)))


def _decide_epoch(form: Form, evidence: FormEvidence) -> tuple[Form, tuple[str, ...]]:
    stamps = evidence.counts["stamps"]
    if stamps > _STAMPS_MAX * evidence.counts["texts"]:
        return "ambiguous", (f"{stamps} may also be stamps of digits such as YYYYMMDDhhmm",)
    return form, ()


def _read_epoch(unit: int, texts: pa.Array, parts: pa.StructArray, _: Form, evidence: FormEvidence) -> DateReading:
    at, is_real, is_stamp = _times(unit, texts, parts)
    # a stamp among times is far from all of them
    is_real &= ~is_stamp | ((at >= evidence.least) & (at <= evidence.greatest))
    no = np.zeros(len(at), np.bool_)
    return DateReading(at, is_real, no, ~no, no)


def _read_stamp(fields: pa.StructArray, *_: object) -> DateReading:
    has_century = has_part(fields, "year")
    year = part_numbers(fields, "year") if has_century else full_year(part_numbers(fields, "short"))
    return _dated(fields, year, part_numbers(fields, "month"), part_numbers(fields, "day"))


def _read_month_name(fields: pa.StructArray, *_: object) -> DateReading:
    names = pc.utf8_lower(fields.field("month_name"))
    month = pc.index_in(names, value_set=pa.array(list(MONTH_NAMES))).to_numpy(zero_copy_only=False)
    numbers = np.array(list(MONTH_NAMES.values()), np.int64)
    return _dated(fields, part_numbers(fields, "year"), numbers[month], part_numbers(fields, "day"))


def _year_month_day(fields: pa.StructArray) -> tuple[Ints, Ints, Ints]:
    month = part_numbers(fields, "month") + part_numbers(fields, "month_b") + part_numbers(fields, "month_c")
    day = part_numbers(fields, "day") + part_numbers(fields, "day_b") + part_numbers(fields, "day_c")
    return part_numbers(fields, "year"), month, day


def _examine_year_first(fields: pa.StructArray) -> FormEvidence:
    year, month, day = _year_month_day(fields)
    evidence = _year_first_evidence(_dated(fields, year, month, day))
    if evidence.counts["absurd"]:
        evidence.counts["proofs"] = int((_dated(fields, year, day, month).is_real & (month > 12)).sum())
    return evidence


def _year_first_evidence(reading: DateReading) -> FormEvidence:
    is_absurd = ~reading.is_real & ~reading.is_endless
    counts = Counter(texts=len(is_absurd), absurd=int(is_absurd.sum()))
    is_naive = ~reading.has_offset & ~reading.is_day_only
    for name, of_name in (("real", reading.is_real), ("unreal", ~reading.is_real)):
        counts[name] = int(of_name.sum())
        for kind, of_kind in (("offset", reading.has_offset), ("day", reading.is_day_only), ("naive", is_naive)):
            counts[f"{name} {kind}"] = int((of_name & of_kind).sum())
    return FormEvidence(counts)


def _decide_year_first(evidence: FormEvidence) -> tuple[Form, tuple[str, ...]]:
    counts = evidence.counts
    if counts["proofs"] == counts["absurd"] >= max(2, PROOF_MIN * counts["texts"]):
        return "ambiguous", (f"{counts['proofs']} have the day before the month",)
    counted = "real" if counts["real"] else "unreal"
    forms: tuple[tuple[str, Form], ...] = (("offset", "iso_offset"), ("day", "date_only"), ("naive", "iso_naive"))
    for kind, form in forms:
        if counts[f"{counted} {kind}"] == counts[counted]:
            return form, ()
    return "iso_mixed", ()


def _read_year_first(fields: pa.StructArray, *_: object) -> DateReading:
    return _dated(fields, *_year_month_day(fields))


def _numeric_readings(fields: pa.StructArray) -> dict[Form, tuple[Ints, Ints, Ints]]:
    """Year, month and day in each order that they may have; with years of two digits these may come first as well."""
    first, second, third = (part_numbers(fields, name) for name in ("first", "second_number", "third"))
    year = np.where(_is_short(fields), full_year(third), third)
    return {
        "day_first": (year, second, first),
        "month_first": (year, first, second),
        "year_first": (full_year(first), second, third),
    }


def _is_short(fields: pa.StructArray) -> Bools:
    is_short: Bools = pc.equal(pc.binary_length(fields.field("third")), 2).to_numpy(zero_copy_only=False)
    return is_short


def _examine_numeric(fields: pa.StructArray) -> FormEvidence:
    counts = Counter(texts=len(fields), short=int(_is_short(fields).sum()))
    for form, (year, month, day) in _numeric_readings(fields).items():
        is_real = _dated(fields, year, month, day).is_real
        counts[form] = int(is_real.sum())
        counts[f"{form} proven"] = int((is_real & (day > 12)).sum())
    for mark, count in zip(*pc.value_counts(fields.field("mark")).flatten(), strict=True):
        counts[f"mark {mark}"] = count.as_py()
    counts["several marks"] = int(pc.sum(pc.not_equal(fields.field("mark"), fields.field("mark_b"))).as_py() or 0)
    return FormEvidence(counts)


def _decide_numeric(order: DateOrder | None, evidence: FormEvidence) -> tuple[Form, tuple[str, ...]]:
    counts = evidence.counts
    texts, short = counts["texts"], counts["short"]
    by_day, by_month = counts["day_first proven"], counts["month_first proven"]
    notes: tuple[str, ...] = (f"{by_day} prove day first, {by_month} month first",)
    least = max(1, PROOF_MIN * texts)
    contradicting = by_month if order == "day_first" else by_day
    if sum(name.startswith("mark ") for name in counts) > 1 or counts["several marks"]:
        return "ambiguous", (*notes, "several separators")
    if 0 < short < texts:
        return "ambiguous", (*notes, "years of two and of four digits")
    if order is not None and not (contradicting and not (by_day and by_month)):
        return order, (*notes, f"{order.replace('_', ' ')} as set")
    if order is not None:
        return "ambiguous", (*notes, f"reconcile.date_order is {order}")
    orders: tuple[Form, ...] = ("day_first", "month_first", "year_first")
    if short:
        possible = [form for form in orders if counts[form] >= SHARE_MIN * texts]
        return (possible[0], notes) if len(possible) == 1 else ("ambiguous", (*notes, "years of two digits"))
    if by_day >= least and not by_month:
        return "day_first", notes
    if by_month >= least and not by_day:
        return "month_first", notes
    return "ambiguous", notes


def _read_numeric(fields: pa.StructArray, form: Form, _: FormEvidence) -> DateReading:
    return _dated(fields, *_numeric_readings(fields)[form])


def _dated(fields: pa.StructArray, year: Ints, month: Ints, day: Ints) -> DateReading:
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
        return DateReading(at, real, no, no, is_endless)
    hours, minutes = part_numbers(fields, "off_hour"), part_numbers(fields, "off_minute")
    shift = hours * _HOUR_US + minutes * _MINUTE_US
    at = at - np.where(is_written(fields, "sign", "-"), -shift, shift)
    real &= (hours < 16) & (minutes < 60) & (at >= _START_US) & (at < _END_US)
    return DateReading(at, real, ~is_written(fields, "time"), is_written(fields, "zone"), is_endless)
