"""Nights of imports over a file that the ERP overwrites, with faults, stops, and columns that come and go."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pipelines.push.model import PushOptions
from tests.pipelines.import_file.desk import Desk
from tests.pipelines.push.plans import means, place

NIGHTS = 5
FAULTS: tuple[dict[str, float], ...] = (
    {}, {"lost_answer": 0.3}, {"applied_5xx": 0.3}, {"error_500": 0.2}, {"reset_before": 0.3},
)  # fmt: skip


def test_each_morning_the_platform_is_what_the_last_export_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make soak CAMPAIGNS=fortnights` has more of them, with customers, in memory."""
    draw = random.Random(1)
    monkeypatch.chdir(tmp_path)
    for name in ("STOCK", "PRICE"):
        monkeypatch.setenv(f"SOURCES__LEGACY__{name}_SEMANTICS", "set")
    with place(tmp_path) as at:
        at.means = means()
        desk = Desk(at, columns={"Zona": None, "Notas": None})
        truth = {1001 + n: {"price": 10.0 + n, "stock": n, "sku": f"{n:05d}"} for n in range(8)}
        codes = set()
        for _ in range(NIGHTS):
            for variant in draw.sample(sorted(truth), 4):
                truth[variant] |= {"price": draw.randint(1, 999) / 4, "stock": draw.randint(0, 99)}
            extra = draw.choice(["", ";Zona", ";Notas"])
            rows = [
                f"1;{variant};{one['price']};{one['stock']};{one['sku']}{';x' if extra else ''}"
                for variant, one in truth.items()
            ]
            file = desk.write("\n".join([f"productId;variantId;price;stock;sku{extra}", *rows, ""]), "articulos.csv")
            for attempt in range(3):
                at.platform.set_faults(draw.choice(FAULTS) if attempt < 2 else {})
                desk.stop_after = draw.choice([None, 3]) if attempt < 2 else None
                codes.add(desk.run(file, "variants", PushOptions(agreed=True)).exit_code)
            fields = {variant: at.platform.state.variants[1, variant].fields for variant in truth}
            assert {v: {name: fields[v][name] for name in one} for v, one in truth.items()} == truth
        assert {0, 6, 130} <= codes
