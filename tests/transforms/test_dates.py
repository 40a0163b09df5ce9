"""Dates of unknown form are read for a column as a whole, and never guessed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.date_forms import DateOrder
from transforms.dates import DateEvidence, read_dates

TEXTS = pd.ArrowDtype(pa.string())
MOMENTS = st.lists(st.datetimes(datetime(1975, 1, 1), datetime(2199, 12, 31), timezones=st.just(UTC)), min_size=1)


def column(*texts: str | None) -> pd.Series[Any]:
    return pd.Series(list(texts), dtype=TEXTS)


def instants(read: pd.Series[Any]) -> list[str | None]:
    return [None if pd.isna(at) else at.isoformat() for at in read.tolist()]


@pytest.mark.parametrize(
    ("texts", "form", "read"),
    [
        pytest.param(
            ["2024-01-31T10:00:00.1234567Z", "2024-02-29"],
            "iso_mixed",
            ["2024-01-31T10:00:00.123456+00:00", "2024-02-29T00:00:00+00:00"],
            id="ISO of several precisions",
        ),
        pytest.param([" 1700000000 "], "epoch_s", ["2023-11-14T22:13:20+00:00"], id="spaces around"),
        pytest.param(["-1.5e", "1"], "unknown", [None, None], id="no digits only, too few"),
        pytest.param(
            ["31/01/2024 10:15", "1/2/2024"],
            "day_first",
            ["2024-01-31T10:15:00+00:00", "2024-02-01T00:00:00+00:00"],
            id="a day over 12 proves day first",
        ),
        pytest.param(
            ["01/31/2024 1:05 PM", "2/1/2024 12:30 am"],
            "month_first",
            ["2024-01-31T13:05:00+00:00", "2024-02-01T00:30:00+00:00"],
            id="a day over 12 proves month first",
        ),
        pytest.param(["01/02/2024", "05/05/2024"], "ambiguous", [None, None], id="nothing proves the order"),
        pytest.param(["31/01/2024", "01/31/2024"], "ambiguous", [None, None], id="both orders are proven"),
        pytest.param(["31/01/2024", "01.02.2024"], "ambiguous", [None, None], id="several separators"),
        pytest.param(["31/01-2024", "13/02-2024"], "ambiguous", [None, None], id="two separators in a text"),
        pytest.param(["31/01/24", "13/02/2024"], "ambiguous", [None, None], id="years of two and of four digits"),
        pytest.param(["31/13/2024", "01/02/2024"], "ambiguous", [None, None], id="a day that is none proves nothing"),
        pytest.param(["2024-31-01", "2024-30-01"], "ambiguous", [None, None], id="days in the place of months"),
        pytest.param(["1700000000", "2024-01-31"], "mixed", [None, None], id="as many of one form as of another"),
        pytest.param(["1700000000", "soon"], "mixed", [None, None], id="too few to prove a unit"),
        pytest.param(["2024-W05", "soon"], "unknown", [None, None], id="no form of ours"),
        pytest.param(["31/01/24", "soon"], "mixed", [None, None], id="years of two digits, too few"),
        pytest.param([], "empty", [], id="no rows"),
        pytest.param([None, " "], "empty", [None, None], id="no texts"),
    ],
)
def test_a_column_has_one_form(texts: list[str | None], form: str, read: list[str | None]) -> None:
    recognised = read_dates(column(*texts).set_axis(range(7, 7 + len(texts))))
    assert recognised.form == form
    assert instants(recognised.at) == read
    assert recognised.is_unreadable == (form in ("ambiguous", "mixed", "unknown"))
    assert recognised.at.index.tolist() == list(range(7, 7 + len(texts)))
    kinds = [str(values.dtype) for values in (recognised.at, recognised.unread, recognised.day_only)]
    assert kinds == ["timestamp[us, tz=UTC][pyarrow]", "bool[pyarrow]", "bool[pyarrow]"]


@pytest.mark.parametrize(
    "text",
    [
        "2023-02-29",
        "2024-13-01",
        "2024-01-31T24:00:00",
        "2024-01-31T10:00:00+16:00",
        "2024-01-31T10:00:00+05:60",
        "1899-12-31",
        "2201-01-01",
        "0000-00-00",
        "31/01/2024",
        "x",
    ],
)
def test_a_text_that_is_no_day_of_the_columns_form_stays_unread(text: str) -> None:
    recognised = read_dates(column("2024-01-31", text, None, "2024-02-01"))
    assert recognised.unread.tolist() == [False, True, False, False]
    assert recognised.at.isna().tolist() == [False, True, True, False]
    assert recognised.form == "date_only"


def test_a_number_of_seconds_among_milliseconds_is_not_taken_for_them() -> None:
    recognised = read_dates(column(*["1700000000123"] * 20, "1700000000"))
    assert (recognised.form, recognised.unread.sum()) == ("epoch_ms", 1)


def test_the_evidence_counts_and_holds_no_value() -> None:
    recognised = read_dates(column("2024-01-31T10:00:00", "2024-01-31", "1/2/2024", "0001-01-01", "ann@example.com"))
    assert recognised.evidence == "5 texts: 3 ISO 8601, 1 numeric day and month"


WRITERS: dict[str, Callable[[datetime], str]] = {
    "iso_offset": lambda at: at.astimezone(timezone(timedelta(hours=-5))).isoformat(),
    "iso_naive": lambda at: at.replace(tzinfo=None).isoformat(" "),
    "epoch_ms": lambda at: f"{int(at.timestamp())}123",
    "day_first": lambda at: f"{at:%d/%m/%Y %H:%M:%S}",
}


@pytest.mark.parametrize("form", WRITERS)
@settings(deadline=None)
@given(MOMENTS)
def test_what_is_read_is_what_was_written(form: str, moments: list[datetime]) -> None:
    part = {"epoch_ms": 123_000, "day_first": 0}.get(form)
    whole = [at if part is None else at.replace(microsecond=part) for at in moments]
    recognised = read_dates(column(*map(WRITERS[form], whole)))
    if recognised.form == "ambiguous":
        assert all(at.day <= 12 for at in moments)
        assert recognised.unread.all()
    else:
        assert recognised.form == form
        assert recognised.at.tolist() == [pd.Timestamp(at) for at in whole]


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
    for name in ("at", "unread", "day_only", "zone_unknown", "endless"):
        assert list(getattr(plain, name).array) == list(getattr(beside, name).array)[:-1], name


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.text(max_size=12), st.sampled_from(["2024-01-31", "5/6/2024", "1700000000"]))))
def test_every_text_is_read_or_unread(texts: list[str | None]) -> None:
    recognised = read_dates(column(*texts))
    is_text = pd.Series([text is not None and bool(text.strip()) for text in texts], dtype=pd.ArrowDtype(pa.bool_()))
    assert (recognised.unread ^ recognised.at.notna()).tolist() == is_text.tolist()


SOME_DATES = [None, " ", "soon", "9999-12-31", "2024-01-31", "20240131T100000Z", "2024-31-12", "2024-01-31 10:00"]
SOME_DATES += ["31/01/2024", "1/2/2024", "01.02.2024", "1/31/24", "5 Jan 2024", "20240131101500", "1700000000"]
SOME_DATES += ["2401311015", "1700000000123", "4412041200"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(SOME_DATES), min_size=1, max_size=4), st.data())
def test_parts_of_a_column_are_read_as_the_whole(kinds: list[str | None], data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=30))
    cut = data.draw(st.integers(0, len(texts)))
    order: DateOrder | None = data.draw(st.sampled_from([None, "day_first", "month_first"]))
    whole, parts, evidence = read_dates(column(*texts), order), [texts[:cut], texts[cut:]], DateEvidence(order)
    for part in parts:
        evidence.add(column(*part))
    read = [read_dates(column(*part), order, of_column=evidence.form()) for part in parts]
    assert {one.form for one in read} == {whole.form}
    for name in ("at", "unread", "day_only", "zone_unknown", "endless"):
        values = [value for one in read for value in getattr(one, name).array]
        assert values == list(getattr(whole, name).array), name


@pytest.mark.parametrize(
    ("texts", "order", "form", "months"),
    [
        (["03/04/2026", "05/06/2026"], None, "ambiguous", [None, None]),
        (["03/04/2026", "05/06/2026"], "day_first", "day_first", [4, 6]),
        (["03/04/2026", "05/06/2026"], "month_first", "month_first", [3, 5]),
        (["03/04/2026", "13/06/2026"], "day_first", "day_first", [4, 6]),
        (["03/04/2026", "13/06/2026"], "month_first", "ambiguous", [None, None]),
        (["03/13/2026", "13/06/2026"], "day_first", "day_first", [None, 6]),
        (["2026-04-03"], "month_first", "date_only", [4]),
    ],
)
def test_a_setting_decides_whether_day_or_month_comes_first_unless_the_column_proves_the_other(
    texts: list[str], order: DateOrder | None, form: str, months: list[int | None]
) -> None:
    read = read_dates(pd.Series(texts, dtype="string[pyarrow]"), order)
    assert read.form == form
    assert [None if pd.isna(at) else at.month for at in read.at] == months
