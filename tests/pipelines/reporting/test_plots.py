"""Plots: readable whatever comes, and the same bytes for the same numbers."""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import Decimal
from xml.etree import ElementTree as ET

import pandas as pd

from orderbridge.pipelines.reporting import plots
from orderbridge.pipelines.reporting.charts import MAX_DAYS, MAX_MONTHS, time_chart
from orderbridge.pipelines.reporting.plots import Plot
from orderbridge.pipelines.reporting.tables import MAX_LABEL, label
from orderbridge.pipelines.reporting.texts import report_texts

TODAY = date(2026, 11, 21)


def days(*counts: tuple[date, int]) -> pd.DataFrame:
    return pd.DataFrame(list(counts), columns=["day", "count"])


def drawn() -> dict[str, Plot]:
    statuses = pd.DataFrame({"status": ["running", "expired"], "promotions": [4, 2]})
    found = [
        ("customers", "login_missing", "warning", 3),
        ("price_lists", "chain_cycle", "error", 1),
    ]
    return {
        "bars": plots.bars({"a": 3, "b": 0}, "Title", "unit"),
        "findings": plots.findings(
            pd.DataFrame(found, columns=["entity", "rule", "severity", "findings"])
        ),
        "over_time": plots.over_time(
            days((date(2026, 1, 2), 4), (date(2026, 9, 2), 1)), "Orders", "orders"
        ),
        "promotions": plots.promotions_by_status(statuses),
        "funnel": plots.funnel(
            pd.DataFrame({"status": ["only_in_erp"], "step": ["erp"], "customers": [4]})
        ),
    }


def elements(plot: Plot) -> ET.Element:
    """The HTML as a tree: a plot is well-formed, so it cannot spoil the page around it."""
    return ET.fromstring(re.sub(r"<style>.*?</style>", "", plot.html, flags=re.DOTALL))


def text(plot: Plot) -> str:
    return " ".join(" ".join(elements(plot).itertext()).split())


def test_the_same_numbers_give_the_same_html_without_scripts_and_with_their_unit() -> None:
    units = ("unit", "findings", "orders", "promotions", "customers")
    for (name, plot), unit in zip(drawn().items(), units, strict=True):
        assert plot.html == drawn()[name]._repr_html_()
        tags = {element.tag for element in elements(plot).iter()}
        assert tags.isdisjoint({"script", "link", "iframe", "img", "object", "style", "form"})
        assert not re.search(r"https?:|url\(|@import| on\w+=", plot.html)
        assert unit in text(plot)
        assert all(svg.get("aria-label") for svg in elements(plot).iter("svg"))


def test_a_name_from_outside_is_drawn_unchanged() -> None:
    for name in ("bidi \u202e turned\x07", "<b>&amp;--></b>", "x" * 500, ""):
        plot = plots.bars({name: 1}, f"Title {name}", f"unit {name}")
        (shown,) = ["".join(element.itertext()) for element in elements(plot).iter("bdi")]
        assert not list(elements(plot).iter("b"))
        assert len(shown) <= MAX_LABEL
        assert shown == "".join(
            char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in label(name)
        )


def test_the_value_of_each_bar_is_shown_while_it_is_pointed_at_or_focused() -> None:
    plot = plots.over_time(days((date(2026, 11, 20), 1234), (TODAY, 5)), "Orders", "orders", TODAY)
    tips = {tip.text for tip in elements(plot).iter("text") if tip.get("class") == "tip"}
    assert tips == {"2026-11-20: 1,234 orders", "2026-11-21 so far: 5 orders"}
    assert all(f"svg g:{state} text.tip" in plot.html for state in ("hover", "focus"))
    assert "The fainter bar is the running day" in text(plot)
    sums = pd.DataFrame({"day": [date(2026, 3, 1), date(2026, 3, 2)], "count": [5000.0, 0.1 + 0.2]})
    amounts = text(plots.over_time(sums, "Revenue", "EUR"))
    assert "2026-03-01: 5,000.00 EUR" in amounts
    assert "2026-03-02: 0.30 EUR" in amounts
    colours = re.findall(r'class="bar (\w+)" style="width:([\d.]+)%"', drawn()["promotions"].html)
    assert colours == [("running", "100.0"), ("expired", "50.0")], (
        "the style sheet colours them by status"
    )


def test_periods_follow_the_span_of_values_and_labels_are_round_numbers_above() -> None:
    for first, value, names, labels in (
        (
            TODAY - timedelta(days=MAX_DAYS - 1),
            39_000,
            ["2026-09-21", "2026-11-21 so far"],
            ["0", "15k", "30k", "45k"],
        ),
        (
            TODAY - timedelta(days=MAX_DAYS),
            2_500_000,
            ["2026-09", "2026-11 so far"],
            ["0", "1M", "2M", "3M"],
        ),
        (
            date(2026 - MAX_MONTHS // 12, 12, 31),
            1,
            ["2020-12", "2026-11 so far"],
            ["0", "1", "2", "3"],
        ),
        (
            date(2026 - MAX_MONTHS // 12, 11, 30),
            -150,
            ["2020", "2026 so far"],
            ["-150", "-100", "-50", "0"],
        ),
    ):
        values = dict.fromkeys((TODAY, first), Decimal(value))
        drawn = time_chart(
            report_texts(), "Orders by {}".format, values, TODAY, str, (first, TODAY)
        )
        assert [bar.tooltip.partition(":")[0] for bar in drawn.bars] == names
        assert [bar.place for bar in drawn.bars] == [0, drawn.periods - 1]
        assert [label for _, label in drawn.y_labels] == labels
