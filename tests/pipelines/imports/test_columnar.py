"""Both ways through a file, as columns and one by one, give the same (`read` compares them)."""

from __future__ import annotations

import csv
import io
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pipelines.imports.bodies import values
from tests.pipelines.imports.opening import read

MAPPINGS = {
    "variants": (
        """
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
FILE = '[file]\ndelimiter = ";"\nquote = "\\""\nescape = ""\nencoding = "utf-8"\nheader_row = 1\n'


@pytest.mark.parametrize("kind", MAPPINGS)
@settings(deadline=None, phases=(Phase.reuse, Phase.generate))  # a smaller seed is no smaller file
@given(seed=st.integers(0, 2**32))
def test_both_ways_through_a_file_give_the_same(tmp_path_factory: pytest.TempPathFactory, kind: str, seed: int) -> None:
    """In each file, a column has some of its values, so that others are clean."""
    chance = random.Random(seed)
    columns = [chance.sample(values, chance.randint(1, len(values))) for values in MAPPINGS[kind][1]]
    rows = [[chance.choice(values) for values in columns] for _ in range(chance.choice((1, 2, 3, 5, 8, 40, 120)))]
    out = io.StringIO()
    csv.writer(out, delimiter=";").writerows([list(COLUMNS), *rows])
    read(tmp_path_factory.mktemp("columns"), out.getvalue(), MAPPINGS[kind][0] + FILE, kind, login_mode="email")


@pytest.mark.parametrize(
    ("kind", "column", "expected"),
    [
        ("number", ["18.00", None, "0.125", "18.00"], [Decimal(18), None, Decimal("0.125"), Decimal(18)]),
        ("number", ["100", "0.0", "-0", "-0.0"], [Decimal(100), Decimal(0), Decimal(0), Decimal(0)]),
        ("integer", ["7", "9007199254740993", None], [7, 9007199254740993, None]),
        ("text", ["a", None], ["a", None]),
        ("boolean", [True, None, False], [True, None, False]),
    ],
)
def test_values_are_pythons_own_and_exact(kind: str, column: list[Any], expected: list[Any]) -> None:
    found, distinct = values(kind, pa.array(column))
    assert found == expected
    assert set(distinct) == set(expected) - {None}
    assert [str(value) for value in found] == [str(value) for value in expected]
