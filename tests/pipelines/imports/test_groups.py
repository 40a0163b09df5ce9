"""Lines that stand for each other: groups, cells filled from above, lines that are no inputs, other files."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.imports import RejectedInput, SkippedLine
from pipelines.imports import lines as walking
from pipelines.imports.groups import filled_down
from tests.pipelines.imports.opening import VARIANT, Ready, opened, outcomes, read, refused, results

BATCHES = pytest.mark.usefixtures("_rows_of_a_batch")
GROUPED = '[columns]\ncode = "erpCode"\nname = "firstName"\nnif = "documents[+].number"\n[group]\nby = ["code"]\n'


@pytest.fixture(params=[1, 100])
def _rows_of_a_batch(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(walking, "BATCH_ROWS", request.param)
    monkeypatch.setattr("pipelines.imports.inputs.BATCH_ROWS", request.param)


@BATCHES
def test_lines_of_a_group_are_one_input(tmp_path: Path) -> None:
    text = "code,name,nif\nA,Ana,1\nA,,2\nB,,3\nA2,Al,\nC,,4\nC,Cy,\n"
    assert read(tmp_path, text, GROUPED, "customers") == [
        Ready((2, 3), {}, {"erpCode": "A", "firstName": "Ana", "documents": [{"number": "1"}, {"number": "2"}]}),
        Ready((4,), {}, {"erpCode": "B", "documents": [{"number": "3"}]}),
        Ready((5,), {}, {"erpCode": "A2", "firstName": "Al"}),
        Ready((6, 7), {}, {"erpCode": "C", "firstName": "Cy", "documents": [{"number": "4"}]}),
    ]


@BATCHES
@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("A,Ana,1\nA,Eva,2\n", [((2, 3), "lines_differ")]),
        ("A,Ana,1\nB,Bo,2\nA,,3\n", [((2,), "group_apart"), ((4,), "group_apart")]),
        ("A,Ana,1\n,Bo,2\nA,,3\n", [((2,), "group_apart"), ((3,), "group_blank"), ((4,), "group_apart")]),
        ("A,Ana,1\nA,,\nA,\nA,,3\nB,Bo,4\n", [((2, 3, 5), "group_torn"), ((4,), "too_short")]),
        ("A,Ana,1\nB,\nC,Cy,3\nD,Di,4\n", [((2,), "group_torn"), ((3,), "too_short"), ((4,), "group_torn")]),
        ("A,Ana,1\nB,Bo,2\nB,Bo\n", [((3,), "group_torn"), ((4,), "too_short")]),  # A is complete
        ("A,Ana,1\nA ,Eva,2\n", [((2, 3), "lines_differ")]),
        ("A\n", [((2,), "too_short")]),
        ("A,Ana,7.5E+12\nA,,2\n", [((2, 3), "damaged_code")]),
    ],
)
def test_a_group_that_is_not_whole_is_rejected_as_a_whole(
    tmp_path: Path, text: str, reported: list[tuple[tuple[int, ...], str]]
) -> None:
    items = read(tmp_path, f"code,name,nif\n{text}", GROUPED, "customers")
    assert [(item.lines, item.problems[-1].code) for item in items if isinstance(item, RejectedInput)] == reported
    assert sorted(line for item in items for line in item.lines) == list(range(2, 2 + text.count("\n")))


def test_a_list_of_a_group_holds_its_limit(tmp_path: Path) -> None:
    mapping = f'{VARIANT}url = "images[+].url"\n[group]\nby = ["productId", "variantId"]\n'
    text = "productId,variantId,url\n" + "1,1,a\n" * 5 + "1,2,a\n" * 6
    first, second = results(tmp_path, text, mapping)
    assert len(first["images"]) == 5
    assert second == ["0 - images max_items"]


@BATCHES
@pytest.mark.parametrize(
    ("text", "filled", "reported"),
    [
        ("A,Ana,1\nB,,2\nC,Cy\nD,,4\nE,Eva,5\nF,,6\n", "Ana Ana Eva Eva", {4: "too_short", 5: "fill_torn"}),
        ("A,Ana,1\nC,\nD,,4\nE,,5\n", "Ana", {3: "too_short", 4: "fill_torn", 5: "fill_torn"}),
        ("C,\nD,,4\nE,Eva,5\n", "Eva", {2: "too_short", 3: "fill_torn"}),
        ("A,Ana,1\ncode,name,nif\nD,,4\n", "Ana Ana", {3: "repeated_header"}),  # no row, and no name
        ("A,,1\nB,Bo,2\nC,,3\n", "- Bo Bo", {}),
    ],
)
def test_a_cell_is_not_filled_across_an_unreadable_line(
    tmp_path: Path, text: str, filled: str, reported: dict[int, str]
) -> None:
    mapping = '[rows]\nfill_down = ["name"]\n[columns]\ncode = "erpCode"\nname = "firstName"\nnif = { ignore = true }\n'
    items = read(tmp_path, f"code,name,nif\n{text}", mapping, "customers")
    assert [item.body.get("firstName", "-") for item in items if isinstance(item, Ready)] == filled.split()
    assert {item.lines[0]: item.problems[0].code for item in items if isinstance(item, RejectedInput)} == reported


@pytest.mark.parametrize(("within", "torn"), [("", [3, 4]), ('fill_within = ["key"]\n', [4])])
def test_a_cell_is_not_filled_from_another_rejected_line(tmp_path: Path, within: str, torn: list[int]) -> None:
    """In a file of rejected lines the line above is another one than it was; a line that could be read is filled."""
    mapping = f'[rows]\nfill_down = ["name"]\n{within}[columns]\nkey = "erpCode"\nname = "firstName"\n'
    text = "key,name,line,field,code,words\nA,Ana,2,x,y,z\nA,,3,x,y,z\nA,,9,x,too_short,z\n"
    items = read(tmp_path, text, mapping, "customers")
    assert [item.lines[0] for item in items if isinstance(item, RejectedInput)] == torn
    ready = [item.body.get("firstName") for item in items if isinstance(item, Ready)]
    assert ready == ["Ana", None][: 3 - len(torn)]


def test_cells_are_filled_within_equal_keys_from_the_row_that_is_named() -> None:
    columns = {"key": ["a", "", "b", " b", "b", "b", "c", ""], "cell": ["x", "", " ", "y", "NULL", " ", "", "NULL"]}
    filled, origins = filled_down(pa.table(columns), ["cell", "key"], ["key"], ("NULL",))
    assert filled["key"].to_pylist() == ["a", "a", "b", " b", "b", "b", "c", "c"]
    assert filled["cell"].to_pylist() == ["x", "x", " ", "y", "y", "y", "", "NULL"]
    assert origins["cell"].tolist() == [0, 0, -3, 3, 3, 3, -7, -7]


@pytest.mark.parametrize(("totals", "third"), [("reject", RejectedInput), ("skip", SkippedLine), ("keep", Ready)])
def test_lines_of_totals_are_rejected_skipped_or_kept(tmp_path: Path, totals: str, third: type) -> None:
    text = "name,productId,variantId,price\nAna,1,2,1\nEva,3,4,2\nTotal,1,2,3\nLeo,5,6,3\n"
    items = read(tmp_path, text, f'ignore = ["name"]\n[rows]\ntotals = "{totals}"\n{VARIANT}price = "price"\n')
    assert [type(item) for item in items] == [Ready, Ready, third, Ready]


SHOP = """ignore = ["Title"]
[rows]
fill_down = ["Option1 Name"]
fill_within = ["Handle"]
skip_blank = ["Price"]
[columns]
"Option1 Name" = { field = "attributes[0].name", empty = ["Title"] }
"Option1 Value" = { field = "attributes[0].value", empty = ["Default Title"] }
"Price" = "price"
[[lookup]]
file = "ids.csv"
match = { "Handle" = "handle", "Option1 Value" = "option" }
give = { productId = "product_id", variantId = "variant_id" }
"""
IDS = "handle,option,product_id,variant_id\n"
HEADER = "Handle,Title,Option1 Name,Option1 Value,Price\n"


@BATCHES
def test_a_shops_export_becomes_variants(tmp_path: Path) -> None:
    same = "cup,Small,8,84\ncup,Small,8,84\n"
    rows = "ring,Gold,7,71\nring,Silver,7,72\ncup,Default Title,8,81\ncup,Big,8,82\ncup,Big,8,83\n"
    (tmp_path / "ids.csv").write_text(IDS + rows + same)
    text = (
        f"{HEADER}ring,Ring,Color,Gold,69.99\nring,,,Silver,55\nring,,,,\n"
        "cup,Cup,Title,Default Title,9.50\ncup,,,Tiny,3\ncup,,,Big,4\ncup,,,Small,5\n"
    )
    items = read(tmp_path, text, SHOP)
    gold, silver = ([{"name": "Color", "value": color}] for color in ("Gold", "Silver"))
    assert items[:4] == [
        Ready((2,), {"productId": "7", "variantId": "71"}, {"price": Decimal("69.99"), "attributes": gold}),
        Ready((3,), {"productId": "7", "variantId": "72"}, {"price": Decimal(55), "attributes": silver}),
        SkippedLine((4,), "Price: empty"),
        Ready((5,), {"productId": "8", "variantId": "81"}, {"price": Decimal("9.5")}),
    ]
    tiny, big, small = outcomes(items[4:])
    assert tiny[0] == "6 Handle, Option1 Value productId lookup_not_found"
    assert big[0] == "7 Handle, Option1 Value productId lookup_ambiguous"
    assert isinstance(small, list), "an attribute without a name"
    assert "lookup" not in str(small)
    assert opened(tmp_path, text, SHOP).files == [tmp_path / name for name in ("file.csv", "mapping.toml", "ids.csv")]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (None, "lookup file ids.csv not found"),
        ("handle,option,productid,variant_id\na,b,1,2\n", "no column 'product_id' (did you mean productid?)"),
        (IDS + "a,b,1,2\na,c,1\n", "lookup file ids.csv, line 3: 3 cells, but the header has 4"),
    ],
)
def test_a_lookup_that_cannot_be_read_is_an_error(tmp_path: Path, ids: str | None, words: str) -> None:
    if ids is not None:
        (tmp_path / "ids.csv").write_text(ids)
    assert words in refused(tmp_path, f"{HEADER}a,b,c,d,1\n", SHOP)
