"""Charts over time in the report: every value drawn once, on a scale that holds it, whatever the dates."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.reporting.charts import HEIGHT, MAX_DAYS, MAX_MONTHS, WIDTH, TimeChart, time_chart

AS_OF = date(2026, 11, 21)


def chart(values: dict[date, Decimal], days: tuple[date, date] | None = None) -> TimeChart:
    return time_chart("Orders by {period}", values, AS_OF, str, days)


AMOUNTS = st.decimals("0.01", "1e12", places=2) | st.decimals("-1e12", "-0.01", places=2)


@given(st.dictionaries(st.dates(), AMOUNTS, min_size=1, max_size=20))
def test_every_bar_is_inside_the_chart_and_nothing_is_lost(values: dict[date, Decimal]) -> None:
    drawn = chart(values)
    shown = [Decimal(bar.tooltip.rpartition(": ")[2]) for bar in drawn.bars]
    assert sum(shown) == sum(values.values())
    assert all(shown)
    for bar in drawn.bars:
        assert 0 <= float(bar.x) <= WIDTH
        assert 0 <= float(bar.y) <= HEIGHT
        assert float(bar.y) + float(bar.height) <= HEIGHT
    assert len(drawn.x_labels) <= 7


@pytest.mark.parametrize(
    ("largest", "labels"),
    [
        ("0", ["0", "1", "2", "3"]),
        ("2", ["0", "1", "2", "3"]),
        ("4", ["0", "2", "4", "6"]),
        ("39000", ["0", "15k", "30k", "45k"]),
        ("19", ["0", "8", "16", "24"]),
        ("2500000", ["0", "1M", "2M", "3M"]),
        ("3000000000000", ["0", "1tn", "2tn", "3tn"]),
        ("-150", ["-150", "-100", "-50", "0"]),
    ],
)
def test_the_scale_has_round_numbers_just_above_the_largest_value(largest: str, labels: list[str]) -> None:
    assert [label for _, label in chart({AS_OF: Decimal(largest)}).y_labels] == labels


def test_what_was_returned_is_drawn_below_zero() -> None:
    days = {AS_OF - timedelta(days=1): Decimal(300), AS_OF: Decimal(-100)}
    drawn = chart(days)
    assert [label for _, label in drawn.y_labels] == ["-100", "0", "100", "200", "300"]
    zero = next(float(y) for y, label in drawn.y_labels if label == "0")
    sold, returned = drawn.bars
    assert (float(sold.y) + float(sold.height), float(returned.y)) == pytest.approx((zero, zero), abs=0.2)
    assert float(sold.height) == pytest.approx(3 * float(returned.height), abs=0.3)


def test_the_running_period_is_marked_and_no_other() -> None:
    months = {date(2026, month, 3): Decimal(month) for month in range(1, 12)}
    drawn = chart(months)
    assert [bar.is_running for bar in drawn.bars] == [False] * 10 + [True]
    assert drawn.bars[-1].tooltip == "2026-11 so far: 11"
    assert drawn.running == "month"
    assert chart({date(2025, 1, 1): Decimal(1)}).running == ""


def test_days_without_a_value_keep_their_place() -> None:
    first = AS_OF - timedelta(days=29)
    drawn = chart({AS_OF: Decimal(5)}, (first, AS_OF))
    (bar,) = drawn.bars
    assert float(bar.x) > WIDTH * 0.9
    assert drawn.title == "Orders by day"
    assert drawn.x_labels[0][1] == first.strftime("%m-%d")


@pytest.mark.parametrize(
    ("first", "names"),
    [
        (AS_OF - timedelta(days=MAX_DAYS - 1), ["2026-09-21", "2026-11-21 so far"]),
        (AS_OF - timedelta(days=MAX_DAYS), ["2026-09", "2026-11 so far"]),
        (date(2026 - MAX_MONTHS // 12, 12, 31), ["2020-12", "2026-11 so far"]),
        (date(2026 - MAX_MONTHS // 12, 11, 30), ["2020", "2026 so far"]),
        (date.min, ["0001", "2026 so far"]),
    ],
)
def test_periods_follow_the_span_of_the_values(first: date, names: list[str]) -> None:
    drawn = chart({AS_OF: Decimal(1), first: Decimal(1)})
    assert [bar.tooltip.partition(":")[0] for bar in drawn.bars] == names
    assert float(drawn.bars[0].x) < WIDTH / 2 < float(drawn.bars[1].x)
