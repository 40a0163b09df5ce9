"""Plots: readable whatever comes, and the same bytes for the same numbers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from pipelines.reporting import plots
from pipelines.reporting.plots import Plot

AS_OF = datetime(2026, 11, 21, 3, 15, tzinfo=UTC)
NAMES = ["$\\frac{1}$ off", "bidi \u202e turned", "line\nbreak\x07", "<b>&amp;--></b>", "汉字", "x" * 500, ""]


def days(*counts: tuple[date, int]) -> pd.DataFrame:
    return pd.DataFrame(list(counts), columns=["day", "count"])


def promotions(*names: str) -> pd.DataFrame:
    start, end = pd.Timestamp("2026-01-01", tz="UTC"), pd.Timestamp("2027-01-01", tz="UTC")
    rows = [{"name": name, "status": "running", "starts_at": start, "expires_at": end} for name in names]
    return pd.DataFrame(rows, columns=["name", "status", "starts_at", "expires_at"])


def drawn() -> dict[str, Plot]:
    found = [("customers", "login_missing", "warning", 3), ("price_lists", "chain_cycle", "error", 1)]
    return {
        "bars": plots.bars({"a": 3, "b": 0}, "Title", "unit"),
        "findings": plots.findings(pd.DataFrame(found, columns=["entity", "rule", "severity", "findings"])),
        "over_time": plots.over_time(days((date(2026, 1, 2), 4), (date(2026, 9, 2), 1)), "Orders", "orders"),
        "timeline": plots.timeline(promotions("one", "two"), AS_OF),
        "funnel": plots.funnel(pd.DataFrame({"status": ["only_in_erp"], "step": ["erp"], "customers": [4]})),
    }


@pytest.mark.parametrize("name", ["bars", "findings", "over_time", "timeline", "funnel"])
def test_the_same_numbers_give_the_same_bytes(name: str) -> None:
    once = drawn()[name].svg()
    with mpl.rc_context({"font.size": 30, "svg.hashsalt": "mine", "axes.facecolor": "red", "timezone": "Asia/Tokyo"}):
        assert drawn()[name].svg() == once
    ET.fromstring(once)
    assert b"<dc:date>" not in once


@pytest.mark.parametrize("name", NAMES, ids=["formula", "bidi", "controls", "markup", "script", "long", "empty"])
def test_a_name_from_outside_is_drawn_as_it_stands(name: str) -> None:
    for plot in (plots.bars({name: 1}, "Title", "unit"), plots.timeline(promotions(name), AS_OF)):
        root = ET.fromstring(plot.svg())
        assert not list(root.iter("{http://www.w3.org/2000/svg}b"))
        (shown,) = {mark.get_text() for mark in plot.axes[0].get_yticklabels()}
        assert shown.isprintable()
        assert len(shown) <= plots.MAX_LABEL
        assert not any(mark.get_parse_math() for mark in plot.axes[0].get_yticklabels())


@pytest.mark.parametrize(
    ("counts", "period", "bars"),
    [
        ([], "day", 0),
        ([(date(2026, 3, 1), 2), (date(2026, 3, 31), 5)], "day", 2),
        ([(date(2025, 11, 30), 2), (date(2026, 3, 1), 5), (date(2026, 3, 9), 1)], "month", 2),
        ([(date(1, 1, 1), 2), (date(9999, 12, 31), 5)], "year", 2),
    ],
    ids=["none", "days", "months", "years"],
)
def test_time_is_counted_in_the_finest_period_that_can_be_read(
    counts: list[tuple[date, int]], period: str, bars: int
) -> None:
    plot = plots.over_time(days(*counts), "Orders", "orders")
    plot.svg()
    assert plot.axes[0].get_title(loc="left") == f"Orders by {period}"
    heights = [bar.get_bbox().height for bar in plot.axes[0].patches if isinstance(bar, Rectangle)]
    assert len(heights) == bars
    assert sum(heights) == sum(count for _, count in counts)
    assert len(plot.axes[0].get_xticks()) <= 9


def test_every_axis_of_numbers_names_its_unit() -> None:
    for name, plot in drawn().items():
        axes = plot.axes[0]
        assert axes.get_title(loc="left"), name
        assert axes.get_xlabel(), name
        assert plot.alt, name


def test_the_steps_of_the_funnel_add_up() -> None:
    rows = [("matched", "erp_code", 5), ("matched", "email", 2), ("ambiguous", "erp", 1), ("ambiguous", "platform", 3)]
    steps = plots.match_steps(pd.DataFrame(rows, columns=["status", "step", "customers"]))
    assert steps["matched by ERP code"] == 5
    assert steps["matched by e-mail"] == 2
    assert steps["ambiguous in the ERP"] == 1
    assert steps["ambiguous on the platform"] == 3
    assert sum(steps.values()) == 11


def test_a_plot_shows_itself_in_a_notebook_without_a_display(tmp_path: Path) -> None:
    code = "from pipelines.reporting import plots; print(plots.bars({'a': 1}, 'T', 'u')._repr_svg_()[:5])"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert re.match("<\\?xml", done.stdout)
    assert done.stderr == ""
