"""Plots: readable whatever comes, and the same bytes for the same numbers."""

from __future__ import annotations

import re
from datetime import date
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from pipelines.reporting import plots
from pipelines.reporting.plots import Plot
from pipelines.reporting.tables import MAX_LABEL, label

TODAY = date(2026, 11, 21)
NAMES = ["$\\frac{1}$ off", "bidi \u202e turned", "line\nbreak\x07", "<b>&amp;--></b>", "汉字", "x" * 500, ""]


def days(*counts: tuple[date, int]) -> pd.DataFrame:
    return pd.DataFrame(list(counts), columns=["day", "count"])


def drawn() -> dict[str, Plot]:
    found = [("customers", "login_missing", "warning", 3), ("price_lists", "chain_cycle", "error", 1)]
    return {
        "bars": plots.bars({"a": 3, "b": 0}, "Title", "unit"),
        "findings": plots.findings(pd.DataFrame(found, columns=["entity", "rule", "severity", "findings"])),
        "over_time": plots.over_time(days((date(2026, 1, 2), 4), (date(2026, 9, 2), 1)), "Orders", "orders"),
        "promotions": plots.promotions_by_status(
            pd.DataFrame({"status": ["running", "expired"], "promotions": [4, 2]})
        ),
        "funnel": plots.funnel(pd.DataFrame({"status": ["only_in_erp"], "step": ["erp"], "customers": [4]})),
    }


def elements(plot: Plot) -> ET.Element:
    """The HTML as a tree: a plot is well-formed, so it cannot spoil the page around it."""
    return ET.fromstring(re.sub(r"<style>.*?</style>", "", plot.html, flags=re.DOTALL))


def text(plot: Plot) -> str:
    return " ".join(" ".join(elements(plot).itertext()).split())


@pytest.mark.parametrize(
    ("name", "unit"),
    [("bars", "unit"), ("findings", "findings"), ("over_time", "orders"), ("promotions", "promotions"),
     ("funnel", "customers")],
)  # fmt: skip
def test_the_same_numbers_give_the_same_html_without_scripts_and_with_their_unit(
    name: str, unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = drawn()[name]
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert drawn()[name].html == once._repr_html_()
    tags = {element.tag for element in elements(once).iter()}
    assert tags.isdisjoint({"script", "link", "iframe", "img", "object", "style", "form"})
    assert not re.search(r"https?:|url\(|@import| on\w+=", once.html)
    assert len(once.html) < 6_000
    assert any("".join(title.itertext()) for title in elements(once).iter("figcaption"))
    assert unit in text(once)
    assert all(svg.get("aria-label") for svg in elements(once).iter("svg"))


@pytest.mark.parametrize("name", NAMES, ids=["formula", "bidi", "controls", "markup", "script", "long", "empty"])
def test_a_name_from_outside_is_drawn_unchanged(name: str) -> None:
    plot = plots.bars({name: 1}, "Title", "unit")
    (shown,) = ["".join(element.itertext()) for element in elements(plot).iter("bdi")]
    assert not list(elements(plot).iter("b"))
    assert shown.isprintable()
    assert len(shown) <= MAX_LABEL
    assert shown == "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in label(name))


def test_the_value_of_each_bar_is_shown_while_it_is_pointed_at_or_focused() -> None:
    plot = plots.over_time(days((date(2026, 11, 20), 1234), (TODAY, 5)), "Orders", "orders", TODAY)
    tips = {tip.text for tip in elements(plot).iter("text") if tip.get("class") == "tip"}
    assert tips == {"2026-11-20: 1,234 orders", "2026-11-21 so far: 5 orders"}
    assert all(group.get("tabindex") == "0" for group in elements(plot).iter("g"))
    assert all(f"svg g:{state} text.tip" in plot.html for state in ("hover", "focus"))
    assert "The fainter bar is the running day" in text(plot)
    sums = pd.DataFrame({"day": [date(2026, 3, 1), date(2026, 3, 2)], "count": [5000.0, 0.1 + 0.2]})
    amounts = text(plots.over_time(sums, "Revenue", "EUR"))
    assert "2026-03-01: 5,000.00 EUR" in amounts
    assert "2026-03-02: 0.30 EUR" in amounts
    colours = re.findall(r'class="bar (\w+)" style="width:([\d.]+)%"', drawn()["promotions"].html)
    assert colours == [("running", "100.0"), ("expired", "50.0")], "the style sheet colours them by status"


def test_a_plot_without_values_has_a_note() -> None:
    none = pd.DataFrame({"day": [], "count": []})
    for plot in (plots.bars({}, "Differences", "customers"), plots.over_time(none, "Differences", "customers")):
        assert re.search(r"<p>Differences.*: no values.</p>", plot.html)
        assert "<table" not in plot.html


def test_two_errors_are_visible_among_thousands() -> None:
    found = [("a", "b", "error", 2), ("a", "c", "info", 1384)]
    plot = plots.findings(pd.DataFrame(found, columns=["entity", "rule", "severity", "findings"]))
    lengths = [float(length) for length in re.findall(r'class="bar \w*" style="width:([\d.]+)%', plot.html)]
    assert lengths == [pytest.approx(15.2, abs=0.1), 100.0]
    same = plots.bars({"a": 3, "b": 3}, "Title", "unit")
    assert len(list(elements(same).iter("th"))) == 2, "no bars where all values are the same"


def test_the_steps_of_the_funnel_add_up() -> None:
    rows = [("matched", "erp_code", 5), ("matched", "email", 2), ("ambiguous", "erp", 1), ("ambiguous", "platform", 3)]
    plot = plots.funnel(pd.DataFrame(rows, columns=["status", "step", "customers"]))
    steps = {str(row[0].text): int(str(row[1].text)) for row in elements(plot).iter("tr") if row[0].tag == "td"}
    assert {step: count for step, count in steps.items() if count} == {
        "matched by ERP code": 5, "matched by e-mail": 2, "ambiguous in the ERP": 1, "ambiguous on the platform": 3
    }  # fmt: skip
    assert len(steps) == 9
