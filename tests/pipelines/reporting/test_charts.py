"""Charts over time in the report: every value drawn once, on a scale that holds it, whatever the dates."""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.reporting.charts import MAX_DAYS, MAX_MONTHS, TimeChart, time_chart
from pipelines.reporting.tables import render

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
    lowest, highest = drawn.y_labels[0][0], drawn.y_labels[-1][0]
    for bar in drawn.bars:
        assert 0 <= bar.place < drawn.periods
        assert lowest <= bar.steps <= highest
        assert bar.steps
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
    assert [bar.steps for bar in drawn.bars] == [3, -1]
    svg = render("plot.html.j2", macro="chart", content=drawn, title="", more=())
    shapes = re.findall(
        r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', svg.replace(' class="running"', "")
    )
    (x, y, width, height), (other_x, other_y, *_, other_height) = (map(float, shape) for shape in shapes)
    (zero,) = (float(place) for place in re.findall(r'<text class="y" x="46" y="([\d.]+)">0<', svg))
    assert (y + height, other_y) == pytest.approx((zero, zero), abs=0.2)
    assert height == pytest.approx(3 * other_height, abs=0.3)
    assert x + width < other_x < 480


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
    assert (bar.place, drawn.periods) == (29, 30)
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
    assert [bar.place for bar in drawn.bars] == [0, drawn.periods - 1]
