from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pipelines.imports import CleanBatch, Inputs, ReadyInput, open_inputs
from pipelines.imports.json_columns import json_text
from pipelines.mapping import load

MAPPINGS = {
    "variants": (
        """
kind = "variants"
[numbers]
decimal = ","
thousands = "."
[columns]
a = { field = "productId", default = 17 }
b = "variantId"
c = { field = "sku", blank = "clear" }
d = { field = "price", blank = "reject" }
e = { field = "salesUnitFactor", default = 1.5 }
f = "jumpFactor"
g = "priceIsTaxExempt"
h = "images[0].url"
i = "images[1].url"
[constants]
"images[1].order" = 2
""",
        [
            ["7", "12", "007", "x", ""],
            ["7", "12", "0012", "1,5"],
            ["007", 'a"b', "7,5E+12", "", " x ", "Ñ\\n"],
            ["1,50", "1.234,5", "0,00", "-0", "+3", "12", "1,234567890123456", "gratis", ""],
            ["1,50", "2", "", "1,555"],
            ["1", "12", "012", "0", "-1", "1,0", ""],
            ["sí", "no", "NO", "", "quizá"],
            ["https://x/1", "", "u"],
            ["https://x/2", "", " "],
        ],
    ),
    "customers": (
        """
kind = "customers"
[columns]
a = "erpCode"
b = "email"
c = "firstName"
d = "phone"
e = "documents[0].number"
f = "documents[0].fiscalName"
g = "documents[0].forTaxes"
h = "documents[1].number"
i = "password"
[constants]
"documents[0].isDefault" = true
""",
        [
            ["", "007", "Ñ"],
            ["ana@example.com", "", "x"],
            ["Ñandú", 'a"b', "back\\slash", "two\nlines", "\x01", ""],
            ["", " ", "600"],
            ["", "1Z", "#N/A"],
            ["", "Casa Ñ"],
            ["yes", "no", "", "maybe"],
            ["", "2Z"],
            ["s1", "s2", ""],
        ],
    ),
    "warehouses": (
        """
kind = "warehouses"
[columns]
a = "name"
b = "isDefault"
c = "location.line"
d = "location.divisions.level1"
e = "code"
f = "location.reference"
g = { ignore = true }
h = { ignore = true }
i = { ignore = true }
""",
        [
            ["Almacén", "x", ""],
            ["yes", "no", "", "x"],
            ["Calle 1", ""],
            ["", "Lima"],
            ["", "c1", "7,50123E+12"],
            *[["", "r"]] * 4,
        ],
    ),
}
COLUMNS = "abcdefghi"


def opened(folder: Path, kind: str, rows: list[list[str]]) -> Inputs:
    with (folder / "in.csv").open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, delimiter=";").writerows([list(COLUMNS), *rows])
    reported = '[file]\ndelimiter = ";"\nquote = "\\""\nescape = ""\nencoding = "utf-8"\nheader_row = 1\n'
    (folder / "m.toml").write_text(MAPPINGS[kind][0] + reported, "utf-8")
    return open_inputs(kind, folder / "in.csv", load(folder / "m.toml"), login_mode="email")


def as_texts(inputs: Inputs, *, in_columns: bool) -> tuple[dict[int, dict[str, str]], dict[int, Any]]:
    """What is ready by line, each field as JSON; and the others."""
    ready: dict[int, dict[str, str]] = {}
    others: dict[int, Any] = {}
    for item in inputs.in_columns() if in_columns else inputs:
        if isinstance(item, CleanBatch):
            names = list(item.columns)
            for line, *texts in zip(item.lines.to_pylist(), *(item.columns[n].to_pylist() for n in names), strict=True):
                ready[line] = {name: text for name, text in zip(names, texts, strict=True) if text is not None}
        elif isinstance(item, ReadyInput):
            ready[item.lines[0]] = {**{name: json_text(value) for name, value in item.body.items()}, **item.path}
        else:
            others[item.lines[0]] = item
    return ready, others


@pytest.mark.parametrize("kind", MAPPINGS)
@settings(deadline=None, phases=(Phase.reuse, Phase.generate))  # a smaller seed is no smaller file
@given(seed=st.integers(0, 2**32))
def test_both_ways_through_a_file_give_the_same(tmp_path_factory: pytest.TempPathFactory, kind: str, seed: int) -> None:
    """In each file, a column has some of its values, so that others are clean."""
    chance = random.Random(seed)
    columns = [chance.sample(values, chance.randint(1, len(values))) for values in MAPPINGS[kind][1]]
    rows = [[chance.choice(values) for values in columns] for _ in range(chance.choice((1, 2, 3, 5, 8, 40, 120)))]
    inputs = opened(tmp_path_factory.mktemp("columns"), kind, rows)
    assert as_texts(inputs, in_columns=True) == as_texts(inputs, in_columns=False)


def test_clean_lines_go_as_columns_and_no_other_does(tmp_path: Path) -> None:
    rows = [["7", str(n), "s", "1,5", "", "1", "no", "", ""] for n in range(50)]
    rows[20][3], rows[30][5], rows[40][3] = "gratis", "0", ""
    items = list(opened(tmp_path, "variants", rows).in_columns())
    assert isinstance(items[0], CleanBatch)
    assert len(items[0].lines) == 47
    assert [item.lines for item in items[1:]] == [(22,), (32,), (42,)]
    assert not any(isinstance(item, ReadyInput) for item in items)


@pytest.mark.parametrize("kind", MAPPINGS)
def test_lines_that_the_intake_refuses_all_of_leave_no_columns_behind(tmp_path: Path, kind: str) -> None:
    inputs = opened(tmp_path, kind, [["a\0b"] * len(COLUMNS) for _ in range(3)])
    found = as_texts(inputs, in_columns=True)
    assert found == as_texts(inputs, in_columns=False)
    assert list(found[1]) == [2, 3, 4]
