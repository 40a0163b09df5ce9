"""`orderbridge plan` of a CSV of variants, compared with pandas and pydantic row by row; `preview` of it, with DuckDB.

The file is as a Spanish ERP writes it: cp1252, semicolons, decimal commas, codes with zeros; of a thousand rows one has
a price that is no number, one repeats the row before it, and one contradicts it. Both must come to the same counts, or
the run fails.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from tests.bench.measure import Cost, Failed, Series, called, measured_rounds, run

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
    outcomes = {"patch": 0, "merged": 0, "rejected": 0}
    with path.open("w", encoding="cp1252", newline="\r\n") as out:
        out.write(HEADER + "\n")
        line = ""
        for n in range(rows):
            place = n % FAULTS_EVERY
            if place == 11:
                outcomes["merged"] += 1
            elif place == 21:  # it contradicts the one before it, and both are refused
                line = (
                    line.replace(";S;", ";N;", 1)
                    if ";S;" in line
                    else line.replace(";N;", ";S;", 1)
                )
                outcomes["rejected"] += 2
                outcomes["patch"] -= 1
            else:
                price = (
                    "gratis"
                    if place == 31
                    else f"{1 + n % 20000 // 1000}.{n % 1000:03d},{n % 100:02d}"
                )
                line = f"{n // 4};{n};{n:08d};Caña Nº {n};{price};{n % 90};{'S' if n % 2 else 'N'};0,{n % 1000:03d}"
                outcomes["rejected" if place == 31 else "patch"] += 1
            out.write(line + "\n")
    return outcomes


def ours(folder: Path, file: Path) -> tuple[Cost, dict[str, int]]:
    mapping, target = folder / "mapping.toml", folder / "plan"
    mapping.write_text(MAPPING, "utf-8")
    shutil.rmtree(target, ignore_errors=True)
    arguments = [
        "plan",
        "variants",
        str(file),
        "--mapping",
        str(mapping),
        "--out",
        str(target),
        "--log",
        "json",
    ]
    settings = {**SETTINGS, "WAREHOUSE__PATH": str(folder / "warehouse.duckdb")}
    cost, _ = run(
        "orderbridge.pipelines.cli", *arguments, folder=folder, settings=settings, codes=(0, 5)
    )
    outcomes = json.loads((target / "plan.json").read_text("utf-8"))["outcomes"]
    return cost, {name: outcomes[name] for name in ("patch", "merged", "rejected")}


def measured(rows: int, rounds: int) -> list[Series]:
    """The plan of a file. Raises Failed where a contender comes to other counts."""
    with tempfile.TemporaryDirectory(prefix="bench-plan-") as name:
        folder, file = Path(name), Path(name) / "articulos.csv"
        wanted = write_file(file, rows)

        def one(name: str) -> Cost:
            if name == "plan":
                cost, counts = ours(folder, file)
            else:
                cost, counts = called(
                    "row_by_row.counted", file, folder / "row_by_row.jsonl", folder=folder
                )
            if counts != wanted:
                raise Failed(f"{name} came to {counts}, and the file has {wanted}")
            return cost

        return measured_rounds("plan", rows, rounds, one, {"plan": "row by row", "row by row": ""})


def previewed(rows: int, rounds: int) -> list[Series]:
    """The same file as clean CSV, compared with DuckDB that gets every option. Raises Failed where rows are missing."""
    with tempfile.TemporaryDirectory(prefix="bench-preview-") as name:
        folder, file, target = Path(name), Path(name) / "articulos.csv", Path(name) / "clean.csv"
        write_file(file, rows)

        def one(name: str) -> Cost:
            target.unlink(missing_ok=True)
            if name == "preview":
                cost, _ = run(
                    "orderbridge.pipelines.cli",
                    "preview",
                    str(file),
                    "--csv",
                    str(target),
                    folder=folder,
                    settings={},
                )
            else:
                cost, _ = called("plan.copied", file, target, folder=folder)
            if (lines := target.read_bytes().count(b"\n")) != rows + 1:
                raise Failed(f"{name} wrote {lines} lines, the file has {rows + 1}")
            return cost

        return measured_rounds("preview", rows, rounds, one, {"preview": "duckdb", "duckdb": ""})


def copied(file: str, target: str) -> None:
    import duckdb

    options = "delim = ';', all_varchar = true, encoding = 'CP1252', auto_detect = false"
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in HEADER.split(";"))
    with duckdb.connect() as connection:
        source = f"read_csv('{file}', header = true, columns = {{{columns}}}, {options})"
        try:
            connection.execute(f"COPY (FROM {source}) TO '{target}' (header)")
        except duckdb.Error:  # without the extension for encodings
            text = Path(file).read_text("cp1252")
            Path(file).with_suffix(".utf8").write_text(text, "utf-8")
            source = source.replace(file, str(Path(file).with_suffix(".utf8"))).replace(
                ", encoding = 'CP1252'", ""
            )
            connection.execute(f"COPY (FROM {source}) TO '{target}' (header)")
