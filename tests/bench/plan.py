"""Measures `orderbridge plan` of a CSV of variants beside pandas and pydantic row by row, on the same file.

`python -m tests.bench.plan --rows 1000000`. The file is as a Spanish ERP writes it: cp1252, semicolons, decimal commas,
codes with zeros; of a thousand rows one has a price that is no number, one repeats the row before it, and one
contradicts it. Both must come to the same counts, or the run fails. Processes of their own; medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.measure import Cost, Failed, run

MAPPING = """
kind = "variants"
[numbers]
decimal = ","
thousands = "."
[booleans]
yes = ["S"]
no = ["N"]
[columns]
"Producto" = "productId"
"Variante" = "variantId"
"Artículo" = "sku"
"Descripción" = { ignore = true }
"PVP" = "price"
"Existencias" = "stock"
"Exento IVA" = "priceIsTaxExempt"
"Peso" = "weight"
"""
HEADER = "Producto;Variante;Artículo;Descripción;PVP;Existencias;Exento IVA;Peso"
FAULTS_EVERY = 1000
SETTINGS = {
    "SOURCES__LEGACY__BASE_URL": "https://sandbox.example.com",
    "SOURCES__LEGACY__API_KEY": "none-is-needed",
    "SOURCES__LEGACY__ENVIRONMENT": "sandbox",
}


def write_file(path: Path, rows: int) -> dict[str, int]:
    """The file, and what must come of its lines."""
    outcomes = {"patch": 0, "merged": 0, "rejected": 0}
    with path.open("w", encoding="cp1252", newline="\r\n") as out:
        out.write(HEADER + "\n")
        line = ""
        for n in range(rows):
            place = n % FAULTS_EVERY
            if place == 11:
                outcomes["merged"] += 1
            elif place == 21:  # it contradicts the one before it, and both are refused
                line = line.replace(";S;", ";N;", 1) if ";S;" in line else line.replace(";N;", ";S;", 1)
                outcomes["rejected"] += 2
                outcomes["patch"] -= 1
            else:
                price = "gratis" if place == 31 else f"{1 + n % 20000 // 1000}.{n % 1000:03d},{n % 100:02d}"
                line = f"{n // 4};{n};{n:08d};Caña Nº {n};{price};{n % 90};{'S' if n % 2 else 'N'};0,{n % 1000:03d}"
                outcomes["rejected" if place == 31 else "patch"] += 1
            out.write(line + "\n")
    return outcomes


def ours(folder: Path, file: Path) -> tuple[Cost, dict[str, int]]:
    """The command."""
    mapping, target = folder / "mapping.toml", folder / "plan"
    mapping.write_text(MAPPING, "utf-8")
    shutil.rmtree(target, ignore_errors=True)
    arguments = ["plan", "variants", str(file), "--mapping", str(mapping), "--out", str(target), "--log", "json"]
    settings = {**SETTINGS, "WAREHOUSE__PATH": str(folder / "warehouse.duckdb")}
    cost, _ = run("pipelines.cli", *arguments, folder=folder, settings=settings, codes=(0, 5))
    outcomes = json.loads((target / "plan.json").read_text("utf-8"))["outcomes"]
    return cost, {name: outcomes[name] for name in ("patch", "merged", "rejected")}


def row_by_row(folder: Path, file: Path) -> tuple[Cost, dict[str, int]]:
    """pandas and pydantic."""
    cost, text = run("tests.bench.row_by_row", str(file), str(folder / "row_by_row.jsonl"), folder=folder, settings={})
    counts: dict[str, int] = json.loads(text)
    return cost, counts


CONTENDERS = {"plan": ours, "row_by_row": row_by_row}


def measured(rows: int, rounds: int, folder: Path) -> list[dict[str, Any]]:
    """A row for each contender."""
    file = folder / "articulos.csv"
    wanted = write_file(file, rows)
    costs: dict[str, list[Cost]] = {name: [] for name in CONTENDERS}
    for _ in range(rounds):
        for name, contender in CONTENDERS.items():
            cost, counts = contender(folder, file)
            if counts != wanted:
                raise Failed(f"{name} came to {counts}, and the file has {wanted}")
            costs[name].append(cost)
    return [
        {
            "contender": name,
            "rows": rows,
            "wall_s": round(median(cost.wall_s for cost in of), 2),
            "cpu_s": round(median(cost.cpu_s for cost in of), 2),
            "peak_mb": round(median(cost.peak_mb for cost in of)),
            "rows_per_s": round(rows / median(cost.wall_s for cost in of)),
        }
        for name, of in costs.items()
    ]


def main() -> None:
    """Prints a line of JSON for each contender and amount of rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-plan-") as name:
        folder = Path(name)
        measured(2_000, 1, folder)  # compiles what is imported
        for rows in asked.rows:
            for reported in measured(rows, asked.rounds, folder):
                sys.stdout.write(json.dumps(reported) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
