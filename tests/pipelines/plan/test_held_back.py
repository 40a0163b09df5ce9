"""A plan after a walk that was held back; and the order of its notes."""

from __future__ import annotations

import os
from pathlib import Path

from pipelines.mapping import load
from pipelines.plan.make import PlanOptions, make_plan
from pipelines.plan.summary import PlanStatistics, summary
from sources.errors import ExitCode
from tests.pipelines.bridge import bridge

MAPPING = 'kind = "customers"\n[columns]\n"Código" = "erpCode"\n"Correo" = "email"\n'


def test_a_plan_rests_on_the_last_walk_that_was_not_held_back(tmp_path: Path) -> None:
    with bridge(tmp_path, customers=12, orders=0, promotions=2, price_lists=2) as made:
        os.environ |= {"SOURCES__LEGACY__LOGIN_MODE": "email"}
        first = made.pull("customers", "promotions")
        for key in made.platform.state.ids("customers")[:10]:
            made.platform.state.remove("customers", key)
        second = made.pull("customers", "promotions")
        assert second.exit_code == ExitCode.COVERAGE
        assert second.published
        (tmp_path / "in.csv").write_text("Código;Correo\nNEW1;new@example.test\n", "utf-8")
        (tmp_path / "mapping.toml").write_text(MAPPING, "utf-8")
        options = PlanOptions(
            "customers", tmp_path / "in.csv", tmp_path / "mapping.toml", tmp_path / "plan", passwords="mail"
        )
        read = make_plan(options).manifest.read
    assert load(tmp_path / "plan/mapping.toml").generate_passwords == "mail"
    assert read is not None
    assert (read.run_id, read.verdict, read.rows) == (first.run_id, "complete", 12)


def test_notes_stand_in_their_order(tmp_path: Path) -> None:
    os.environ.update(
        SOURCES__LEGACY__BASE_URL="http://127.0.0.1:9",
        SOURCES__LEGACY__API_KEY="none-is-needed",
        SOURCES__LEGACY__ENVIRONMENT="sandbox",
        WAREHOUSE__PATH=str(tmp_path / "warehouse.duckdb"),
        DLT_PROJECT_DIR=str(tmp_path),
    )
    (tmp_path / "in.csv").write_text("Producto;Variante;Código\n1;2;X\n", "utf-8")
    columns = 'kind = "variants"\n[columns]\nProducto = "productId"\nVariante = "variantId"\n"Código" = "sku"\n'
    (tmp_path / "mapping.toml").write_text(columns, "utf-8")
    options = PlanOptions(
        "variants", tmp_path / "in.csv", tmp_path / "mapping.toml", tmp_path / "plan", passwords="mail"
    )
    manifest = make_plan(options).manifest
    assert load(tmp_path / "plan/mapping.toml").generate_passwords is None, "variants have no passwords"
    notes = [f"column {number}: decimal comma" for number in range(12)]
    text = summary(manifest, PlanStatistics(1, notes=notes), Path())
    assert [line for line in text.splitlines() if "decimal comma" in line] == [f"- {note}" for note in notes]
