"""Sixty ways in which dates are written, in clean and in mixed columns: read right, or unread with a finding."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from transforms.dates import DateColumn, form_findings, read_dates, unread_findings
from transforms.frames import Column

START = datetime(2024, 1, 1, 9, 5, 7, 123456, UTC)
MOMENTS = [START + timedelta(days=11 * n, hours=n % 14, minutes=n) for n in range(60)]
EARLY_DAYS = [at.replace(day=at.day % 12 + 1) for at in MOMENTS]
ENGLISH = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
SPANISH = (
    "enero", "febrero", "marzo", "abril", "mayo", "junio",
    "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre",
)  # fmt: skip
LIMA = timezone(timedelta(hours=-5))
DAY, MINUTE, SECOND, MILLI, MICRO = "day", "minute", "second", "milli", "micro"


def spanish_half(at: datetime) -> str:
    return f"{at.hour % 12 or 12}:{at:%M} {'p' if at.hour >= 12 else 'a'}. m."


def local(at: datetime) -> datetime:
    return at.astimezone(LIMA)


FORMS: dict[str, tuple[str, Callable[[datetime], str]]] = {
    # name: (what the form keeps, "" for a form that must stay unread; how it is written)
    "iso zulu": (SECOND, lambda at: f"{at:%Y-%m-%dT%H:%M:%SZ}"),
    "iso milliseconds": (MILLI, lambda at: at.isoformat(timespec="milliseconds").replace("+00:00", "Z")),
    "iso microseconds offset": (MICRO, lambda at: local(at).isoformat()),
    "iso offset without colon": (SECOND, lambda at: f"{local(at):%Y-%m-%dT%H:%M:%S%z}"),
    "iso offset of hours": (SECOND, lambda at: f"{local(at):%Y-%m-%dT%H:%M:%S}-05"),
    "iso offset of half an hour": (SECOND, lambda at: f"{at + timedelta(minutes=330):%Y-%m-%dT%H:%M:%S}+05:30"),
    "iso naive": (SECOND, lambda at: f"{at:%Y-%m-%dT%H:%M:%S}"),
    "iso space": (SECOND, lambda at: f"{at:%Y-%m-%d %H:%M:%S}"),
    "iso minutes": (MINUTE, lambda at: f"{at:%Y-%m-%d %H:%M}"),
    "iso comma fraction": (MILLI, lambda at: f"{at:%Y-%m-%dT%H:%M:%S},{at.microsecond // 1000:03d}Z"),
    "iso nanoseconds": (MICRO, lambda at: f"{at:%Y-%m-%dT%H:%M:%S.%f}789Z"),
    "iso date": (DAY, lambda at: f"{at:%Y-%m-%d}"),
    "iso basic": (SECOND, lambda at: f"{at:%Y%m%dT%H%M%SZ}"),
    "iso basic date": (DAY, lambda at: f"{at:%Y%m%d}"),
    "iso UTC": (SECOND, lambda at: f"{at:%Y-%m-%d %H:%M:%S} UTC"),
    "iso GMT": (SECOND, lambda at: f"{at:%Y-%m-%d %H:%M:%S} GMT"),
    "postgres": (MICRO, lambda at: f"{at:%Y-%m-%d %H:%M:%S.%f}+00"),
    "slashes, year first": (DAY, lambda at: f"{at:%Y/%m/%d}"),
    "slashes, year first, minutes": (MINUTE, lambda at: f"{at:%Y/%m/%d %H:%M}"),
    "slashes, year first, seconds": (SECOND, lambda at: f"{at:%Y/%m/%d %H:%M:%S}"),
    "slashes, year first, no zeros": (DAY, lambda at: f"{at.year}/{at.month}/{at.day}"),
    "points, year first": (DAY, lambda at: f"{at:%Y.%m.%d}"),
    "seconds": (SECOND, lambda at: str(int(at.timestamp()))),
    "milliseconds": (MILLI, lambda at: str(int(at.timestamp() * 1000))),
    "microseconds": (MICRO, lambda at: str(round(at.timestamp() * 1_000_000))),
    "nanoseconds": (MICRO, lambda at: str(round(at.timestamp() * 1_000_000) * 1000)),
    "seconds with a fraction": (MILLI, lambda at: f"{at.timestamp():.3f}"),
    "seconds with a zero": (SECOND, lambda at: f"{int(at.timestamp())}.0"),
    "milliseconds with a zero": (MILLI, lambda at: f"{int(at.timestamp() * 1000)}.0"),
    "stamp of 14 digits": (SECOND, lambda at: f"{at:%Y%m%d%H%M%S}"),
    "stamp of 12 digits": ("", lambda at: f"{at:%Y%m%d%H%M}"),
    "stamp of 10 digits": ("", lambda at: f"{at:%Y%m%d%H}"),
    "short stamp of 10 digits": ("", lambda at: f"{at:%y%m%d%H%M}"),
    "short stamp of 12 digits": ("", lambda at: f"{at:%y%m%d%H%M%S}"),
    "rfc 2822": (SECOND, lambda at: f"{local(at):%a, %d %b %Y %H:%M:%S %z}"),
    "http date": (SECOND, lambda at: f"{at:%a, %d %b %Y %H:%M:%S} GMT"),
    "javascript": (SECOND, lambda at: f"{local(at):%a %b %d %Y %H:%M:%S} GMT-0500 (Peru Standard Time)"),
    "day first, slashes": (DAY, lambda at: f"{at:%d/%m/%Y}"),
    "day first, no zeros": (DAY, lambda at: f"{at.day}/{at.month}/{at.year}"),
    "day first, points": (DAY, lambda at: f"{at:%d.%m.%Y}"),
    "day first, dashes": (DAY, lambda at: f"{at:%d-%m-%Y}"),
    "day first, time": (SECOND, lambda at: f"{at:%d/%m/%Y %H:%M:%S}"),
    "day first, comma and minutes": (MINUTE, lambda at: f"{at:%d/%m/%Y}, {at:%H:%M}"),
    "day first, Spanish half": (MINUTE, lambda at: f"{at:%d/%m/%Y}, {spanish_half(at)}"),
    "day first, narrow spaces": (MINUTE, lambda at: f"{at:%d/%m/%Y}, {spanish_half(at)}".replace(" ", "\u202f")),
    "day first, half an hour": (SECOND, lambda at: f"{at + timedelta(minutes=330):%d/%m/%Y %H:%M:%S} +05:30"),
    "day first, offset": (SECOND, lambda at: f"{local(at):%d/%m/%Y %H:%M:%S} -05:00"),
    "month first": (DAY, lambda at: f"{at:%m/%d/%Y}"),
    "month first, half": (MINUTE, lambda at: f"{at.month}/{at.day}/{at.year} {at:%I:%M %p}"),
    "month first, seconds and half": (SECOND, lambda at: f"{at:%m/%d/%Y %I:%M:%S %p}"),
    "english, day first": (DAY, lambda at: f"{at.day} {ENGLISH[at.month - 1]} {at.year}"),
    "english, short": (DAY, lambda at: f"{at:%d}-{ENGLISH[at.month - 1][:3].upper()}-{at.year}"),
    "english, month first": (DAY, lambda at: f"{ENGLISH[at.month - 1]} {at.day}, {at.year}"),
    "english, ordinal": (DAY, lambda at: f"{ENGLISH[at.month - 1]} {at.day}th, {at.year}"),
    "english, time": (MINUTE, lambda at: f"{ENGLISH[at.month - 1][:3]} {at.day}, {at.year} {at:%I:%M %p}"),
    "english, at": (MINUTE, lambda at: f"{ENGLISH[at.month - 1]} {at.day}, {at.year} at {at:%I:%M %p}"),
    "spanish": (DAY, lambda at: f"{at.day} de {SPANISH[at.month - 1]} de {at.year}"),
    "spanish, time": (MINUTE, lambda at: f"{at.day} de {SPANISH[at.month - 1]} de {at.year}, {at:%H:%M}"),
    "spanish, short": (DAY, lambda at: f"{at:%d}-{SPANISH[at.month - 1][:3]}-{at.year}"),
    "spanish, slashes": (DAY, lambda at: f"{at:%d}/{SPANISH[at.month - 1][:3]}/{at.year}"),
    "two-digit year, day first": ("", lambda at: f"{at:%d/%m/%y}"),
    "two-digit year, month first": (DAY, lambda at: f"{at:%m/%d/%y}"),
    "two-digit year first": ("", lambda at: f"{at:%y-%m-%d}"),
    "short month and two-digit year": ("", lambda at: f"{at:%d}-{ENGLISH[at.month - 1][:3]}-{at:%y}"),
    "day before month, year first": ("", lambda at: f"{at:%Y-%d-%m}"),
    "day of the year": ("", lambda at: f"{at:%Y-%j}"),
    "week": ("", lambda at: f"{at:%G-W%V-%u}"),
    "days of a spreadsheet": ("", lambda at: str((at - datetime(1899, 12, 30, tzinfo=UTC)).days)),
    "time zone by name": ("", lambda at: f"{at:%Y-%m-%d %H:%M:%S} PET"),
}  # fmt: skip
UNPROVEN = [name for name in FORMS if name.startswith(("day first", "month first", "two-digit"))]
OTHERS = ("iso zulu", "day first, slashes", "seconds")


def column(texts: list[str]) -> pd.Series[Any]:
    return pd.Series(texts, dtype=pd.ArrowDtype(pa.string()))


def kept(at: datetime, precision: str) -> datetime:
    """The instant as far as a form writes it."""
    whole = at.replace(microsecond=0)
    return {
        DAY: whole.replace(hour=0, minute=0, second=0),
        MINUTE: whole.replace(second=0),
        SECOND: whole,
        MILLI: at.replace(microsecond=at.microsecond // 1000 * 1000),
        MICRO: at,
    }[precision]


def order(name: str) -> str:
    return name.partition(" first")[0].rpartition(" ")[2]


def check(texts: list[str], truth: list[datetime], precision: list[str]) -> tuple[int, int]:
    """How many are read and unread; fails where one is read wrong, or unread without a finding."""
    dates = read_dates(column(texts))
    read = dates.at.notna()
    for text, at, expected, kind in zip(texts, dates.at.tolist(), truth, precision, strict=True):
        if not pd.isna(at):
            assert kind, f"{text} was read as {at}"
            assert abs(at - kept(expected, kind)) < timedelta(milliseconds=1 if kind == MILLI else 0.001), text
    unread = int((~read).sum())
    if unread:
        ids = column([str(n) for n in range(len(texts))])
        findings = date_findings("orders", "ordered_at", "created", dates, ids)
        rules = pd.concat(findings)["rule"].tolist() if findings else []
        assert "ordered_at_form" in rules or rules.count("ordered_at_unreadable") == unread
    return int(read.sum()), unread


def date_findings(entity: str, rule: str, field: str, dates: DateColumn, ids: Column[Any]) -> list[pd.DataFrame]:
    """All that is wrong with a column of dates."""
    single = [] if dates.is_unreadable else [unread_findings(entity, rule, field, dates, ids)]
    return [*single, *form_findings(entity, rule, field, dates, dates.zone_count)]


@pytest.mark.parametrize("name", FORMS)
def test_a_clean_column_is_read_right_or_not_at_all(name: str) -> None:
    precision, write = FORMS[name]
    read, _ = check([write(at) for at in MOMENTS], MOMENTS, [precision] * len(MOMENTS))
    assert read == (len(MOMENTS) if precision else 0)


@pytest.mark.parametrize("name", UNPROVEN)
def test_a_column_that_does_not_prove_day_or_month_is_not_read(name: str) -> None:
    precision, write = FORMS[name]
    read, _ = check([write(at) for at in EARLY_DAYS], EARLY_DAYS, [precision] * len(EARLY_DAYS))
    assert read == 0


@pytest.mark.parametrize("other", OTHERS)
def test_a_mixed_column_has_no_text_read_wrong(other: str) -> None:
    for name, share in product(FORMS, (2, 30, 58)):
        names = [name if n % len(MOMENTS) < share else other for n in range(len(MOMENTS))]
        texts, kinds = [FORMS[one][1](at) for one, at in zip(names, MOMENTS, strict=True)], [FORMS[n][0] for n in names]
        orders = {"/" in FORMS[one][1](MOMENTS[0]) and order(one) for one in (name, other)}
        if orders == {"day", "month"}:
            # Of the same form: days over 12 of both prove that the column is mixed; two texts need not have any.
            assert share != 30 or check(texts, MOMENTS, kinds) == (0, 60)
        elif (name, other, share) != ("day before month, year first", "iso zulu", 2):  # likewise, next to a standard
            check(texts, MOMENTS, kinds)


@pytest.mark.parametrize(("proof", "form"), [("31/01/2024", "day_first"), ("01/31/2024", "month_first")])
def test_one_text_does_not_decide_day_or_month_for_400(proof: str, form: str) -> None:
    assert read_dates(column(["01/02/2024"] * 400 + [proof])).form == "ambiguous"
    assert read_dates(column(["01/02/2024"] * 300 + [proof] * 20)).form == form


def test_years_of_two_digits_are_read_where_the_column_or_a_setting_proves_them() -> None:
    assert read_dates(column(["31/12/98", "01/02/99", "15/03/97"])).form == "day_first"
    assert read_dates(column(["12/31/98", "02/01/99", "03/15/97"])).form == "month_first"
    assert read_dates(column(["98-12-31", "99-02-01", "97-03-15"])).form == "year_first"
    read = read_dates(column(["31/01/24", "01/02/24"]), "day_first")
    assert [at.month for at in read.at] == [1, 2]


@pytest.mark.parametrize(
    ("text", "form"), [("1700000000", "epoch_s"), ("202401311015", "ambiguous"), ("2401311015", "ambiguous")]
)
def test_digits_that_may_be_a_stamp_are_no_time_since_1970(text: str, form: str) -> None:
    assert read_dates(column([text] * 3)).form == form


def test_times_without_an_offset_are_of_the_time_zone_that_is_set() -> None:
    texts = ["2024-03-10T10:00:00", "2024-03-10", "2024-03-10T10:00:00Z"]
    read = read_dates(column(texts), timezone="America/Lima")
    assert [at.isoformat() for at in read.at] == [
        "2024-03-10T15:00:00+00:00",
        "2024-03-10T05:00:00+00:00",
        "2024-03-10T10:00:00+00:00",
    ]
    assert read.zone_unknown.tolist() == [False] * 3
    assert read_dates(column(texts)).zone_unknown.tolist() == [True, True, False]


def test_a_time_that_the_clocks_show_twice_or_never_stays_unread() -> None:
    read = read_dates(
        column(["2024-10-27T02:30:00", "2024-03-31T02:30:00", "2024-10-27T04:30:00"]), timezone="Europe/Madrid"
    )
    assert read.unread.tolist() == [True, True, False]


def test_a_day_that_begins_when_the_clocks_are_changed_is_read() -> None:
    """In Chile the clocks go from 00:00 to 01:00; in Cuba the hour from 00:00 is shown twice."""
    spring = read_dates(column(["2024-09-08", "2024-09-09"]), timezone="America/Santiago")
    assert [at.isoformat() for at in spring.at] == ["2024-09-08T04:00:00+00:00", "2024-09-09T03:00:00+00:00"]
    autumn = read_dates(column(["2024-11-03", "2024-11-03T00:30:00", "2024-11-03"]), timezone="America/Havana")
    assert autumn.unread.tolist() == [False, True, False]
    assert autumn.at[0].isoformat() == "2024-11-03T04:00:00+00:00"


def test_times_of_an_unknown_zone_are_a_finding_and_days_are_not() -> None:
    ids = column(["1", "2"])
    timed = date_findings("orders", "ordered_at", "created", read_dates(column(["2024-03-10T10:00:00"] * 2)), ids)
    assert pd.concat(timed)["rule"].tolist() == ["ordered_at_zone"]
    assert pd.concat(timed)["detail"].tolist() == ["created: 2 times without an offset"]
    days = date_findings("orders", "ordered_at", "created", read_dates(column(["2024-03-10"] * 2)), ids)
    assert pd.concat(days).empty
