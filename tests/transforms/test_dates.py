"""Dates of unknown form are read for a column as a whole: right, or not at all and with a finding; never guessed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orderbridge.transforms.values.date_forms import DateOrder
from orderbridge.transforms.values.dates import (
    DateColumn,
    DateContext,
    DateEvidence,
    form_findings,
    read_dates,
    unread_findings,
)

START = datetime(2024, 1, 1, 9, 5, 7, 123456, UTC)
MOMENTS = [START + timedelta(days=11 * n, hours=n % 14, minutes=n) for n in range(60)]
EARLY_DAYS = [at.replace(day=at.day % 12 + 1) for at in MOMENTS]
SPANISH = ("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre",
    "noviembre", "diciembre")  # fmt: skip
LIMA = timezone(timedelta(hours=-5))
NONE, MICRO, MILLI, SECOND, MINUTE, DAY = (
    timedelta(microseconds=count) for count in (0, 1, 1000, 10**6, 60 * 10**6, 24 * 60 * 60 * 10**6)
)
FLAGS = ("at", "unread", "day_only", "zone_unknown", "endless")


def spanish_half(at: datetime) -> str:
    return f"{at.hour % 12 or 12}:{at:%M} {'p' if at.hour >= 12 else 'a'}. m."


def local(at: datetime) -> datetime:
    return at.astimezone(LIMA)


FORMS: dict[str, tuple[timedelta, Callable[[datetime], str]]] = {
    # name: (to what it is exact, none for a form that must stay unread; how it is written)
    "iso zulu": (SECOND, lambda at: f"{at:%Y-%m-%dT%H:%M:%SZ}"),
    "iso milliseconds": (MILLI, lambda at: at.isoformat(timespec="milliseconds").replace("+00:00", "Z")),
    "iso microseconds offset": (MICRO, lambda at: local(at).isoformat()),
    "iso offset without colon": (SECOND, lambda at: f"{local(at):%Y-%m-%dT%H:%M:%S%z}"),
    "iso naive": (SECOND, lambda at: f"{at:%Y-%m-%dT%H:%M:%S}"),
    "iso minutes": (MINUTE, lambda at: f"{at:%Y-%m-%d %H:%M}"),
    "iso comma fraction": (MILLI, lambda at: f"{at:%Y-%m-%dT%H:%M:%S},{at.microsecond // 1000:03d}Z"),
    "iso nanoseconds": (MICRO, lambda at: f"{at:%Y-%m-%dT%H:%M:%S.%f}789Z"),
    "iso basic": (SECOND, lambda at: f"{at:%Y%m%dT%H%M%SZ}"),
    "iso basic date": (DAY, lambda at: f"{at:%Y%m%d}"),
    "iso UTC": (SECOND, lambda at: f"{at:%Y-%m-%d %H:%M:%S} UTC"),
    "postgres": (MICRO, lambda at: f"{at:%Y-%m-%d %H:%M:%S.%f}+00"),
    "slashes, year first": (DAY, lambda at: f"{at:%Y/%m/%d}"),
    "seconds": (SECOND, lambda at: str(int(at.timestamp()))),
    "milliseconds": (MILLI, lambda at: str(int(at.timestamp() * 1000))),
    "microseconds": (MICRO, lambda at: str(round(at.timestamp() * 1_000_000))),
    "nanoseconds": (MICRO, lambda at: str(round(at.timestamp() * 1_000_000) * 1000)),
    "seconds with a fraction": (MILLI, lambda at: f"{at.timestamp():.3f}"),
    "stamp of 14 digits": (SECOND, lambda at: f"{at:%Y%m%d%H%M%S}"),
    "stamp of 10 digits": (NONE, lambda at: f"{at:%Y%m%d%H}"),
    "short stamp of 12 digits": (NONE, lambda at: f"{at:%y%m%d%H%M%S}"),
    "rfc 2822": (SECOND, lambda at: f"{local(at):%a, %d %b %Y %H:%M:%S %z}"),
    "http date": (SECOND, lambda at: f"{at:%a, %d %b %Y %H:%M:%S} GMT"),
    "javascript": (SECOND, lambda at: f"{local(at):%a %b %d %Y %H:%M:%S} GMT-0500 (Peru Standard Time)"),
    "day first, slashes": (DAY, lambda at: f"{at:%d/%m/%Y}"),
    "day first, points": (DAY, lambda at: f"{at:%d.%m.%Y}"),
    "day first, time": (SECOND, lambda at: f"{at:%d/%m/%Y %H:%M:%S}"),
    "day first, Spanish half": (MINUTE, lambda at: f"{at:%d/%m/%Y}, {spanish_half(at)}"),
    "day first, narrow spaces": (MINUTE, lambda at: f"{at:%d/%m/%Y}, {spanish_half(at)}".replace(" ", "\u202f")),
    "day first, half an hour": (SECOND, lambda at: f"{at + timedelta(minutes=330):%d/%m/%Y %H:%M:%S} +05:30"),
    "month first": (DAY, lambda at: f"{at:%m/%d/%Y}"),
    "month first, half": (MINUTE, lambda at: f"{at.month}/{at.day}/{at.year} {at:%I:%M %p}"),
    "english, day first": (DAY, lambda at: f"{at.day} {at:%B} {at.year}"),
    "english, ordinal": (DAY, lambda at: f"{at:%B} {at.day}th, {at.year}"),
    "spanish": (DAY, lambda at: f"{at.day} de {SPANISH[at.month - 1]} de {at.year}"),
    "spanish, short": (DAY, lambda at: f"{at:%d}-{SPANISH[at.month - 1][:3]}-{at.year}"),
    "two-digit year, day first": (NONE, lambda at: f"{at:%d/%m/%y}"),
    "short month and two-digit year": (NONE, lambda at: f"{at:%d}-{at:%b}-{at:%y}"),
    "day before month, year first": (NONE, lambda at: f"{at:%Y-%d-%m}"),
    "day of the year": (NONE, lambda at: f"{at:%Y-%j}"),
    "week": (NONE, lambda at: f"{at:%G-W%V-%u}"),
    "days of a spreadsheet": (NONE, lambda at: str((at - datetime(1899, 12, 30, tzinfo=UTC)).days)),
    "time zone by name": (NONE, lambda at: f"{at:%Y-%m-%d %H:%M:%S} PET"),
}  # fmt: skip


def column(*texts: str | None) -> pd.Series[Any]:
    return pd.Series(list(texts), dtype=pd.ArrowDtype(pa.string()))


def instants(read: DateColumn) -> list[str | None]:
    return [
        None if pd.isna(at) else at.isoformat().removesuffix("+00:00") for at in read.at.tolist()
    ]


def rules(dates: DateColumn) -> list[tuple[str, str]]:
    """All that is wrong with a column of dates: rules and details."""
    ids = column(*map(str, range(len(dates.at))))
    single = (
        []
        if dates.is_unreadable
        else [unread_findings("orders", "ordered_at", "created", dates, ids)]
    )
    found = [*single, *form_findings("orders", "ordered_at", "created", dates, dates.zone_count)]
    return [
        row for one in found for row in one[["rule", "detail"]].itertuples(index=False, name=None)
    ]


def check(texts: list[str], truth: list[datetime], precision: list[timedelta]) -> int:
    """How many are read; fails where one is read wrong, or unread without a finding."""
    dates = read_dates(column(*texts))
    for text, at, expected, exact in zip(texts, dates.at.tolist(), truth, precision, strict=True):
        if not pd.isna(at):
            assert exact, f"{text} was read as {at}"
            exactly = expected - (expected - datetime(1970, 1, 1, tzinfo=UTC)) % exact
            assert abs(at - exactly) < (MILLI if exact == MILLI else MICRO), text
    read, found = int(dates.at.count()), [rule for rule, _ in rules(dates)]
    assert (
        read == len(texts)
        or "ordered_at_form" in found
        or found.count("ordered_at_unreadable") == len(texts) - read
    )
    return read


@pytest.mark.parametrize("name", FORMS)
def test_a_clean_column_is_read_right_or_not_at_all(name: str) -> None:
    precision, write = FORMS[name]
    read = check([write(at) for at in MOMENTS], MOMENTS, [precision] * len(MOMENTS))
    assert read == (len(MOMENTS) if precision else 0)
    if name.startswith(("day first", "month first")):
        assert (
            check([write(at) for at in EARLY_DAYS], EARLY_DAYS, [precision] * len(MOMENTS)) == 0
        ), "nothing proves it"


@pytest.mark.parametrize("other", ["iso zulu", "day first, slashes"])
def test_a_mixed_column_has_no_text_read_wrong(other: str) -> None:
    for name, share in product(FORMS, (2, 30)):
        names = [name if n % len(MOMENTS) < share else other for n in range(len(MOMENTS))]
        texts, kinds = (
            [FORMS[one][1](at) for one, at in zip(names, MOMENTS, strict=True)],
            [FORMS[n][0] for n in names],
        )
        orders = {
            "/" in FORMS[one][1](MOMENTS[0]) and one.partition(" first")[0] for one in (name, other)
        }
        if orders == {"day", "month"}:
            # Of the same form: days over 12 of both prove that the column is mixed; two texts need not have any.
            assert share != 30 or check(texts, MOMENTS, kinds) == 0
        elif (name, other, share) != (
            "day before month, year first",
            "iso zulu",
            2,
        ):  # likewise, next to a standard
            check(texts, MOMENTS, kinds)


@pytest.mark.parametrize(
    ("texts", "options", "form", "read"),
    [
        (["2024-01-31T10:00:00.1234567Z", "2024-02-29"], {}, "iso_mixed",
         ["2024-01-31T10:00:00.123456", "2024-02-29T00:00:00"]),
        ([" 1700000000 "], {}, "epoch_s", ["2023-11-14T22:13:20"]),
        (["31/01/2024 10:15", "1/2/2024"], {}, "day_first", ["2024-01-31T10:15:00", "2024-02-01T00:00:00"]),
        (["01/31/2024 1:05 PM", "2/1/2024 12:30 am"], {}, "month_first",
         ["2024-01-31T13:05:00", "2024-02-01T00:30:00"]),
        (["01/02/2024", "05/05/2024"], {}, "ambiguous", []),  # nothing proves the order
        (["31/01/2024", "01/31/2024"], {}, "ambiguous", []),  # both orders are proven
        (["31/01/2024", "01.02.2024"], {}, "ambiguous", []),  # several separators
        (["31/01-2024", "13/02-2024"], {}, "ambiguous", []),
        (["31/13/2024", "01/02/2024"], {}, "ambiguous", []),  # a day that is none proves nothing
        (["2024-31-01", "2024-30-01"], {}, "ambiguous", []),  # days in the place of months
        (["1700000000", "2024-01-31"], {}, "mixed", []),  # as many of one form as of another
        (["31/01/2024"] * 18 + ["soon"] * 2, {}, "mixed", []),  # up to a twentieth may be of another form
        (["31/01/2024"] * 19 + ["soon"], {}, "day_first", ["2024-01-31T00:00:00"] * 19 + [None]),
        (["2024-W05", "soon"], {}, "unknown", []),
        (["2401311015"] * 3, {}, "ambiguous", []),  # a stamp of digits is no time since 1970
        (["202401311015"] * 3, {}, "unknown", []),
        (["1500000000", "1502000000", "1501011200"], {}, "epoch_s",  # but one that is between two such times is
         ["2017-07-14T02:40:00", "2017-08-06T06:13:20", "2017-07-25T19:33:20"]),
        (["01/02/2024"] * 400 + ["31/01/2024"], {}, "ambiguous", []),  # one text does not decide for 400
        ([None, " "], {}, "empty", []),
        # a text that is no day of the column's form stays unread
        *((["2024-01-31", text, "2024-02-01"], {}, "date_only", ["2024-01-31T00:00:00", None, "2024-02-01T00:00:00"])
          for text in (
            "2023-02-29", "2024-13-01", "2024-01-31T24:00:00", "2024-01-31T10:00:00+16:00",
            "2024-01-31T10:00:00+05:60", "1899-12-31", "2201-01-01", "0000-00-00", "31/01/2024", "x")),
        # a setting decides which of day and month comes first, unless the column proves the other
        (["03/04/2026"], {"order": "day_first"}, "day_first", ["2026-04-03T00:00:00"]),
        (["03/04/2026", "13/06/2026"], {"order": "month_first"}, "ambiguous", []),
        (["03/13/2026", "13/06/2026"], {"order": "day_first"}, "day_first", [None, "2026-06-13T00:00:00"]),
        (["2026-04-03"], {"order": "month_first"}, "date_only", ["2026-04-03T00:00:00"]),
        # times without an offset are of the time zone that is set; some the clocks show twice or never
        (["2024-03-10T10:00:00", "2024-03-10", "2024-03-10T10:00:00Z"], {"timezone": "America/Lima"}, "iso_mixed",
         ["2024-03-10T15:00:00", "2024-03-10T05:00:00", "2024-03-10T10:00:00"]),
        (["1700000000"], {"timezone": "America/Lima"}, "epoch_s", ["2023-11-14T22:13:20"]),  # these are of UTC
        (["2024-10-27T02:30:00", "2024-03-31T02:30:00", "2024-10-27T04:30:00"], {"timezone": "Europe/Madrid"},
         "iso_naive", [None, None, "2024-10-27T03:30:00"]),
        (["2024-09-08", "2024-09-09"], {"timezone": "America/Santiago"}, "date_only",  # from 00:00 to 01:00
         ["2024-09-08T04:00:00", "2024-09-09T03:00:00"]),
        (["2024-11-03", "2024-11-03T00:30:00"], {"timezone": "America/Havana"}, "iso_mixed",  # twice from 00:00
         ["2024-11-03T04:00:00", None]),
    ],
)  # fmt: skip
def test_a_column_has_one_form_and_a_text_of_another_stays_unread(
    texts: list[str | None], options: dict[str, Any], form: str, read: list[str | None]
) -> None:
    made = read_dates(column(*texts).set_axis(range(7, 7 + len(texts))), **options)
    read = read or [None] * len(texts)
    assert (made.form, instants(made)) == (form, read)
    assert made.is_unreadable == (form in ("ambiguous", "mixed", "unknown"))
    unread = [
        one is None and bool((text or "").strip()) for one, text in zip(read, texts, strict=True)
    ]
    assert made.unread.tolist() == unread
    assert made.at.index.tolist() == list(range(7, 7 + len(texts)))
    assert not ("timezone" in options and made.zone_unknown.any())
    kinds = [str(values.dtype) for values in (made.at, made.unread, made.day_only)]
    assert kinds == ["timestamp[us, tz=UTC][pyarrow]", "bool[pyarrow]", "bool[pyarrow]"]


def test_another_unit_or_a_stamp_among_times_since_1970_stays_unread() -> None:
    seconds = ["1700000000"] * 20
    for times, other, form in (
        (["1700000000123"] * 20, "1700000000", "epoch_ms"), (seconds, "2401311015", "epoch_s"),
        (seconds, "1501011200", "epoch_s"), (seconds, "1901011200", "epoch_s"),
        (["4102444800", *seconds[1:]], "2401311015", "epoch_s"),
    ):  # fmt: skip
        made = read_dates(column(*times, other))
        assert (made.form, made.unread.tolist()) == (form, [False] * 20 + [True])


def test_the_first_or_last_time_since_1970_is_read_though_its_digits_may_be_a_stamp() -> None:
    for times in (
        ["1736121013", "1736338583", "1767225501"],  # 1736-12-10 is in no shop
        ["1701011200", "1702000000", "1705000000"],
        ["1798000000", "1800990000", "1801011200"],
    ):
        made = read_dates(column(*times))
        assert made.form == "epoch_s"
        assert made.unread.tolist() == [False] * 3, times


def test_the_evidence_counts_and_holds_no_value() -> None:
    made = read_dates(
        column("2024-01-31T10:00:00", "2024-01-31", "1/2/2024", "0001-01-01", "ann@example.com")
    )
    assert made.evidence == "5 texts: 3 ISO 8601, 1 numeric day and month"


def test_times_of_an_unknown_zone_are_a_finding_and_days_are_not() -> None:
    timed = read_dates(column("2024-03-10T10:00:00", "2024-03-10T11:00:00"))
    assert timed.zone_unknown.tolist() == [True] * 2
    assert rules(timed) == [("ordered_at_zone", "created: 2 times without an offset")]
    assert rules(read_dates(column("2024-03-10"))) == []
    with pytest.raises(ValueError, match="offset"):
        DateContext(datetime(2026, 1, 1))


PLAIN = st.from_regex(
    r"(1899|1900|2023|2024|2200|2201|9999)-(02|12)-(28|29|31)[T ](00|23|24):(00|59)(:(30|60)(\.[0-9]{1,7})?)?"
    r"(Z|[+-](00|05|15|16)(:?(00|30|70))?)?",
    fullmatch=True,
)


@settings(deadline=None)
@given(st.lists(PLAIN, min_size=1, max_size=3))
def test_what_arrow_reads_is_read_as_by_the_parts_of_the_pattern(texts: list[str]) -> None:
    """A text with a small t is read part by part, and so are the others beside it."""
    plain, beside = read_dates(column(*texts)), read_dates(column(*texts, "2024-01-31t10:00:00"))
    for name in FLAGS:
        assert list(getattr(plain, name).array) == list(getattr(beside, name).array)[:-1], name


SOME_DATES = [
    None,
    " ",
    "soon",
    "9999-12-31",
    "2024-01-31",
    "20240131T100000Z",
    "2024-31-12",
    "2024-01-31 10:00",
]
SOME_DATES += [
    "31/01/2024",
    "1/2/2024",
    "01.02.2024",
    "1/31/24",
    "5 Jan 2024",
    "20240131101500",
    "1700000000",
]
SOME_DATES += ["2401311015", "1700000000123", "4412041200", "1501011200", "1500000000"]


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(SOME_DATES) | st.text(max_size=12), min_size=1, max_size=4), st.data()
)
def test_parts_are_read_as_the_whole_and_each_text_is_read_or_not(
    kinds: list[str | None], data: st.DataObject
) -> None:
    texts = data.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=30))
    cut = data.draw(st.integers(0, len(texts)))
    order: DateOrder | None = data.draw(st.sampled_from([None, "day_first", "month_first"]))
    whole, parts, evidence = (
        read_dates(column(*texts), order),
        [texts[:cut], texts[cut:]],
        DateEvidence(order),
    )
    for part in parts:
        evidence.add(column(*part))
    read = [read_dates(column(*part), order, of_column=evidence.form()) for part in parts]
    assert {one.form for one in read} == {whole.form}
    for name in FLAGS:
        values = [value for one in read for value in getattr(one, name).array]
        assert values == list(getattr(whole, name).array), name
    is_text = [text is not None and bool(text.strip()) for text in texts]
    assert (whole.unread ^ whole.at.notna() ^ (whole.endless & ~whole.unread)).tolist() == is_text
