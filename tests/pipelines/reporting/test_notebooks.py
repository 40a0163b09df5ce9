"""The notebooks run from first cell to last, without a warning, and show what their questions ask for."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from orderbridge.pipelines.reporting.notebook import MASK, masked, tidy
from orderbridge.pipelines.warehouse.build import open_warehouse
from tests.notebooks.execute import CHECKOUT, FOLDER, NOTEBOOKS, as_page, executed, stripped
from tests.pipelines.reporting.page import change, leftovers, personal

NAMES = ("01_first_look", "02_customers_prices_promotions", "03_sales", "04_erp_match")
PLOTS = {
    "01_first_look": 2,
    "02_customers_prices_promotions": 5,
    "03_sales": 10,
    "04_erp_match": 2,
}


def outputs(notebook: Any) -> list[Any]:
    return [
        output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
    ]


def drawn(notebook: Any, kind: str) -> list[Any]:
    return [
        output
        for output in outputs(notebook)
        if kind in output.get("data", {}).get("text/html", "")
    ]


def cells(output: Any) -> list[list[str]]:
    rows = re.findall("<tr>(.*?)</tr>", output["data"]["text/html"], re.DOTALL)
    return [re.findall("<td>(.*?)</td>", row) for row in rows if "<td>" in row]


def run(name: str, warehouse: Path) -> list[list[list[str]]]:
    """The cells of the tables of a notebook that runs to its end, and shows nobody's data."""
    notebook = executed(FOLDER / f"{name}.ipynb", warehouse)
    printed = [output for output in outputs(notebook) if output.output_type in ("stream", "error")]
    assert [output for output in printed if output.get("name") != "stdout"] == []
    tables, plots = drawn(notebook, "dataframe"), drawn(notebook, "orderbridge-plot")
    assert len(plots) >= PLOTS[name]
    page = as_page(notebook, name)
    assert not re.search(r"<script|https?:|@import|url\(", page)
    assert page.count('orderbridge-plot">') == len(plots)
    assert leftovers("".join(output["data"]["text/plain"] for output in tables)) == []
    assert (
        leftovers("".join(html for output in plots for html in output["data"]["text/html"])) == []
    )
    shown = json.dumps(outputs(notebook), ensure_ascii=False)
    assert not [value for value in personal(warehouse) if value in shown]
    assert not (FOLDER / "warehouse.duckdb").exists()
    return [cells(output) for output in tables]


@pytest.mark.parametrize("name", [NAMES[0], NAMES[1], NAMES[3]])
def test_a_notebook_runs_to_its_end_and_shows_nobodys_data(name: str, warehouse: Path) -> None:
    assert run(name, warehouse)


def query(name: str, part: str) -> str:
    cells = json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))["cells"]
    (sql,) = (
        text
        for cell in cells
        for text in "".join(cell["source"]).split('"""')[1::2]
        if part in text
    )
    return sql


def test_sales_are_in_one_currency_and_without_cancelled_orders(warehouse: Path) -> None:
    change(
        warehouse,
        """UPDATE reconciled.orders SET order_status = 'CONFIRMED', is_cancelled = false, is_sale = true,
            currency = 'PEN', total = 10, ordered_at = (SELECT max(ended_at) FROM ops.runs);
            UPDATE reconciled.orders SET currency = 'USD', total = 177
            WHERE order_id = (SELECT max(id) FROM raw.orders);
            UPDATE reconciled.orders SET order_status = 'CANCELLED', is_cancelled = true, is_sale = false, total = 8888
            WHERE order_id = (SELECT min(id) FROM raw.orders)""",
    )
    tables = run(NAMES[2], warehouse)
    ((_, orders, revenue, *_),) = tables[0]
    assert (orders, revenue) == ("28", "280")
    assert not {"177", "8888"} & {cell for rows in tables for row in rows for cell in row}


def test_each_table_and_chart_of_sales_says_of_which_time_it_is(warehouse: Path) -> None:
    notebook = executed(FOLDER / "03_sales.ipynb", warehouse)
    shown = [output["data"]["text/html"] for output in drawn(notebook, "orderbridge-plot")]
    titles = [re.findall("<(?:figcaption|p)>(.*?)<", html)[0] for html in shown]
    times = r"\d{4}-\d\d-\d\d|month"
    assert titles == [title for title in titles if re.search(times, title)]


def test_a_tail_is_not_shown_as_a_read_of_the_whole_list(warehouse: Path) -> None:
    change(
        warehouse,
        """INSERT INTO ops.coverage BY NAME SELECT 'r' AS run_id, resource, 'tail' AS verdict, 3 AS "distinct",
                ended_at + INTERVAL 1 HOUR AS ended_at, true AS published, 99 AS read_number
            FROM ops.coverage WHERE resource = 'orders';
            INSERT INTO ops.runs BY NAME
            SELECT 'r' AS run_id, max(ended_at) + INTERVAL 1 HOUR AS ended_at FROM ops.runs""",
    )
    with open_warehouse(warehouse) as connection:
        ((as_of, pulled_at),) = connection.sql(query(NAMES[0], "reconciled.%")).fetchall()
        assert as_of < pulled_at
        rows = connection.sql(query(NAMES[0], "sweeps, pages")).fetchall()
        assert [row[:4] for row in rows if row[0] == "orders"] == [("orders", "complete", True, 30)]
        assert ("r", "orders", 3) not in connection.sql(
            query(NAMES[0], '"distinct" AS records FROM')
        ).fetchall()


def test_notebooks_have_no_outputs_mask_by_default_and_ask_before_each_answer() -> None:
    assert tuple(path.stem for path in NOTEBOOKS) == NAMES
    assert "notebooks/executed/" in (CHECKOUT / ".gitignore").read_text("utf-8").splitlines()
    for path in NOTEBOOKS:
        text = path.read_text("utf-8")
        assert text == stripped(path), f"{path}: run `make format`"
        cells = json.loads(text)["cells"]
        assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]
        sources = ["".join(cell["source"]) for cell in cells]
        assert sum("SHOW_PERSONAL = False" in source for source in sources) == 1
        assert (
            sum(
                "open_warehouse()\n" in f"{one}\n"
                for one in sources
                if "import open_warehouse" in one
            )
            == 1
        )
        assert all(
            "markdown" in (one["cell_type"], before["cell_type"]) for before, one in pairwise(cells)
        )


def test_what_is_not_known_to_be_harmless_is_masked() -> None:
    private = {
        "full_name": ["Una Persona", None], "a_field_of_an_order": [12.5, float("nan")],
        "born": [pd.Timestamp("1980-01-01"), pd.NaT], "lines": [["Calle 1"], None],
        **{name: ["Una Persona", None] for name in ("name", "first_name", "last_name", "email", "phone")},
    }  # fmt: skip
    frame = pd.DataFrame({"customer_id": ["1", "2"], **private, "orders": [3, 4]})
    made = masked(frame, harmless=["orders"])
    assert [list(made[name]) for name in ("customer_id", "orders")] == [["1", "2"], [3, 4]]
    for name in private:
        assert (made[name][0], pd.isna(made[name][1])) == (MASK, True)
    assert list(made) == list(frame)
    assert masked(frame, show_personal=True).equals(frame)
    assert frame["full_name"][0] == "Una Persona"


def test_a_tidy_frame_shows_no_nan_and_no_decimals_of_whole_numbers() -> None:
    columns = {
        "whole": [5000.0, float("nan")], "money": [Decimal("12.5"), None], "cents": [Decimal("1234.56"), Decimal("1")],
        "at": [pd.Timestamp("2026-01-02 03:04:05", tz="UTC"), pd.NaT], "day": [pd.Timestamp("2026-01-02"), pd.NaT],
        "text": ["a", pd.NA], "lines": [[1, 2], None], "flag": [True, False],
    }  # fmt: skip
    made = tidy(pd.DataFrame(columns))
    assert not re.search(r"NaN|NaT|<NA>|None|\.0\b", made.to_string())
    for value in ("5000", "12.5", "1,234.56", "1.00", "2026-01-02 03:04", "[1, 2]", "True"):
        assert value in made.to_string()
    assert list(made["day"]) == ["2026-01-02", ""]
