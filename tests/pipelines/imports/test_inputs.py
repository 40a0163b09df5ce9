"""A file and its mapping to inputs: exact values, each problem with line, column and reason, nothing lost."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.imports import CleanBatch, Inputs, ReadyInput, RejectedInput, SkippedLine, open_inputs
from pipelines.imports import lines as walking
from pipelines.mapping import load, to_toml
from pipelines.mapping.field_paths import all_paths
from sources.contract import Field
from sources.errors import UsageError
from sources.inputs import paths
from sources.kinds import KINDS

VARIANT = "productId,variantId,"


def opened(
    folder: Path,
    text: str | bytes,
    mapping: str | None = None,
    kind: str = "variants",
    **settings: Any,
) -> Inputs:
    file = folder / "file.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    reported = None
    if mapping is not None:
        path = folder / "mapping.toml"
        path.write_text(f'kind = "{kind}"\n{mapping}', "utf-8")
        reported = load(path)
    return open_inputs(kind, file, reported, **settings)


def read(*args: Any, **kwargs: Any) -> list[Any]:
    inputs = opened(*args, **kwargs)
    items = list(inputs)
    assert list(inputs) == items, "another walk gives the same"
    assert [item.lines[0] for item in items] == sorted(item.lines[0] for item in items)
    return items


def bodies(*args: Any, **kwargs: Any) -> list[dict[str, Any]]:
    items = read(*args, **kwargs)
    assert all(isinstance(item, ReadyInput) for item in items), items
    return [item.body for item in items]


def problems(items: Sequence[Any]) -> list[tuple[int, str, str, str]]:
    return [
        (p.line, p.column, p.field, p.code) for item in items if isinstance(item, RejectedInput) for p in item.problems
    ]


def refused(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(UsageError) as error:
        opened(*args, **kwargs)
    return str(error.value)


# --- values -------------------------------------------------------------------------------------------------------


def test_a_spanish_erps_articles_arrive_exactly(tmp_path: Path) -> None:
    text = (
        "Producto;Variante;Artículo;PVP;Existencias;Exento IVA;Múltiplo;Peso\r\n"
        "1;1001;00038;19.367,25;39;N;0,5;0,125\r\n"
        "01;1002;00039;18,00;1.200;S;1;2\r\n"
    )
    items = read(tmp_path, text.encode("cp1252"))
    assert items[0] == ReadyInput(
        (2,),
        {"productId": "1", "variantId": "1001"},
        {
            "erpCode": "00038",
            "price": Decimal("19367.25"),
            "priceIsTaxExempt": False,
            "stock": 39,
            "salesUnitFactor": Decimal("0.5"),
            "weight": Decimal("0.125"),
        },
    )
    assert problems(items) == [(3, "Existencias", "stock", "ambiguous_number")]


def test_names_arrive_byte_equal(tmp_path: Path) -> None:
    names = [
        "Frédérique",
        "Ana  Trujillo",
        "O'Neill",
        "Ňáme\u0301",
        "日本",
        "a,b",
        'the "best"',
        "two\nlines",
        "NULL",
        "1E5",
    ]
    out = io.StringIO()
    csv.writer(out).writerows([["erpCode", "firstName"], *([str(at), name] for at, name in enumerate(names))])
    assert [body["firstName"] for body in bodies(tmp_path, out.getvalue(), kind="customers")] == names


def test_the_fields_stand_in_the_contracts_order(tmp_path: Path) -> None:
    (body,) = bodies(tmp_path, "weight,stock,sku,productId,variantId\n1,2,a,1,1\n")
    assert list(body) == ["sku", "stock", "weight"]


def test_an_empty_cell_leaves_the_field_out(tmp_path: Path) -> None:
    assert bodies(tmp_path, f"{VARIANT}sku,stock\n1,1,a,\n1,2, ,0\n") == [{"sku": "a"}, {"stock": 0}]


def test_a_line_that_gives_nothing_is_skipped(tmp_path: Path) -> None:
    assert read(tmp_path, f"{VARIANT}sku\n1,1,\n1,2,a\n") == [
        SkippedLine((2,), "no field has a value"),
        ReadyInput((3,), {"productId": "1", "variantId": "2"}, {"sku": "a"}),
    ]


def test_blank_can_clear_reject_or_have_a_default(tmp_path: Path) -> None:
    mapping = """[columns]
productId = "productId"
variantId = "variantId"
sku = { field = "sku", blank = "clear" }
price = { field = "price", blank = "reject" }
stock = { field = "stock", default = 7 }
weight = { field = "weight", default = 0.1 }
"""
    items = read(tmp_path, f"{VARIANT}sku,price,stock,weight\n1,1,,5,,\n1,2,a,,3,\n", mapping)
    assert items[0].body == {"sku": "", "price": Decimal(5), "stock": 7, "weight": Decimal("0.1")}
    assert problems(items) == [(3, "price", "price", "blank")]


def test_a_default_of_the_path_is_its_text(tmp_path: Path) -> None:
    mapping = '[columns]\nproductId = { field = "productId", default = 17 }\nvariantId = "variantId"\nsku = "sku"\n'
    text = "productId,variantId,sku\n7,1,a\n,2,b\n"
    expected = [{"productId": "7", "variantId": "1"}, {"productId": "17", "variantId": "2"}]
    assert [item.path for item in read(tmp_path, text, mapping)] == expected
    (clean,) = opened(tmp_path, text, mapping).in_columns()
    assert isinstance(clean, CleanBatch)
    assert clean.columns["productId"].to_pylist() == ["7", "17"]


def test_a_column_fills_several_fields(tmp_path: Path) -> None:
    mapping = '[columns]\nCódigo = { field = "erpCode", also = ["loginCode"] }\n'.replace("Código", '"Código"')
    assert bodies(tmp_path, "Código\n007\n008\n", mapping, "customers", login_mode="code") == [
        {"erpCode": "007", "loginCode": "007"},
        {"erpCode": "008", "loginCode": "008"},
    ]


def test_texts_that_mean_nothing_are_empty(tmp_path: Path) -> None:
    mapping = """[rows]
empty = ["NULL"]
[columns]
productId = "productId"
variantId = "variantId"
sku = "sku"
price = "price"
erpCode = { field = "erpCode", empty = ["-"] }
"""
    assert bodies(tmp_path, f"{VARIANT}sku,price,erpCode\n1,1,NULL,NULL,NULL\n1,2,a,,-\n", mapping) == [
        {"erpCode": "NULL"},
        {"sku": "a"},
    ]


# --- numbers are proven by the whole column -----------------------------------------------------------------------


def test_a_number_that_may_be_two_is_refused_until_the_column_proves_it(tmp_path: Path) -> None:
    assert problems(read(tmp_path, f"{VARIANT}price\n1,1,1.234\n1,2,12\n")) == [
        (2, "price", "price", "ambiguous_number")
    ]
    proven = opened(tmp_path, "productId;variantId;price\n1;1;1.234\n1;2;12,5\n")
    assert [item.body["price"] for item in proven if isinstance(item, ReadyInput)] == [Decimal(1234), Decimal("12.5")]
    assert proven.notes == ["price: decimal comma (detected from its numbers)"]


def test_the_proof_may_stand_in_the_last_of_many_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "BATCH_ROWS", 3)
    lines = "".join(f"1;{n};1.234\n" for n in range(1, 20))
    rows = bodies(tmp_path, f"productId;variantId;price\n{lines}1;20;0,5\n")
    assert [row["price"] for row in rows] == [Decimal(1234)] * 19 + [Decimal("0.5")]


def test_a_cell_that_is_refused_proves_no_notation(tmp_path: Path) -> None:
    lines = [f"{n},{n},{n}.000" for n in range(1, 11)]
    items = read(tmp_path, "\n".join([f"{VARIANT}stock", *lines, "11,11,2.5"]))
    assert problems(items) == [
        *((line, "stock", "stock", "ambiguous_number") for line in range(2, 12)),
        (12, "stock", "stock", "not_whole"),
    ]


def test_a_column_in_two_notations_is_refused_where_it_matters(tmp_path: Path) -> None:
    items = read(tmp_path, "productId;variantId;price\n1;1;1.5\n1;2;1,5\n1;3;12\n")
    assert problems(items) == [(2, "price", "price", "mixed_numbers"), (3, "price", "price", "mixed_numbers")]
    assert isinstance(items[2], ReadyInput)


@pytest.mark.parametrize(
    ("prices", "sent", "code"),
    [
        (["1,50 €", "1.234,00 €", "15€", ""], ["1.50", "1234.00", "15"], ""),
        (["$ 99.90", "$1,234.56"], ["99.90", "1234.56"], ""),
        (["US$ 5", "US$ 6"], ["5", "6"], ""),
        (["15 EUR", "EUR 7,5"], ["15", "7.5"], ""),
        (["S/. 12.50", "S/. 3.00", "consultar"], ["12.50", "3.00"], "not_a_number"),
        (["1,50 €", "2,00 $"], [], "currency currency"),
        (["1,50 €", "2,00"], ["2.00"], "currency"),
        (["15 UDS", "12 UDS"], [], "not_a_number not_a_number"),
    ],
)
def test_a_currency_is_read_over_where_the_column_has_one_throughout(
    tmp_path: Path, prices: list[str], sent: list[str], code: str
) -> None:
    text = "".join(f"1;{n};S{n};{price}\n" for n, price in enumerate(prices, 1))
    inputs = opened(tmp_path, f"productId;variantId;sku;price\n{text}")
    items = list(inputs)
    assert [item.body["price"] for item in items if isinstance(item, ReadyInput) and "price" in item.body] == [
        Decimal(price) for price in sent
    ]
    found = [problem for item in items if isinstance(item, RejectedInput) for problem in item.problems]
    assert " ".join(problem.code for problem in found) == code
    if "currency" in code:
        assert "€" in found[0].words
    if sent and "currency" not in code:  # other rows of the file are read in the same way, however few they are
        mapping = to_toml(inputs.complete_mapping()).partition("\n")[2]
        (again,) = read(tmp_path, f"productId;variantId;sku;price\n1;1;S1;{prices[0]}\n", mapping)
        assert again.body["price"] == Decimal(sent[0])


def test_the_line_of_a_product_above_its_variants_is_skipped_and_filled_from(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/mapping.md").read_text("utf-8")
    mapping = page.partition("## A merged export")[2].partition("```toml\n")[2].partition("```")[0]
    text = "Producto;Variante;PVP;Título\n7;;;Camisa\n;1001;9,50;\n;1002;10,50;\n8;;;Gorra\n;1003;5,00;\n"
    items = read(tmp_path, text, mapping.partition("\n")[2])
    assert [item.path for item in items if isinstance(item, ReadyInput)] == [
        {"productId": product, "variantId": variant}
        for product, variant in (("7", "1001"), ("7", "1002"), ("8", "1003"))
    ]
    assert [item.lines for item in items if isinstance(item, SkippedLine)] == [(2,), (5,)]


def test_a_reported_notation_needs_no_proof(tmp_path: Path) -> None:
    mapping = """[numbers]
decimal = ","
[columns]
productId = "productId"
variantId = "variantId"
price = "price"
weight = { field = "weight", decimal = "." }
"""
    assert bodies(tmp_path, "productId;variantId;price;weight\n1;1;1.234;1.234\n", mapping) == [
        {"price": Decimal(1234), "weight": Decimal("1.234")}
    ]


@pytest.mark.parametrize("text", ["NaN", "inf", "1_000", "0x1", "１２", "7,50123E+12", "1e5", "5-"])
@pytest.mark.parametrize("field", ["price", "stock", "weight", "jumpFactor"])
def test_what_is_no_number_is_refused(tmp_path: Path, field: str, text: str) -> None:
    (item,) = read(tmp_path, f"productId;variantId;{field}\n1;1;{text}\n")
    assert problems([item]) in (
        [(2, field, field, "not_a_number")],
        [(2, field, field, "ambiguous_number")],
    )
    assert text not in str(item.problems)


def test_a_damaged_code_is_refused(tmp_path: Path) -> None:
    (item,) = read(tmp_path, "productId;variantId;sku\n1;1;7,50123E+12\n")
    assert problems([item]) == [(2, "sku", "sku", "damaged_code")]


# --- every type and limit of the contract -------------------------------------------------------------------------


def right(field: Field) -> str:
    texts = {"boolean": "true", "integer": str(max(1, field.minimum or 1)), "number": "1.5", "identifier": "1"}
    return texts.get(field.type, "a" * max(1, field.min_length))


def wrong(field: Field) -> list[tuple[str, str]]:
    """Cells that a field refuses, and why."""
    if field.type == "boolean":
        return [("maybe", "not_yes_or_no")]
    if field.type == "identifier":
        return [("a/b", "not_an_id"), *([("x", "not_an_id")] if field.json == "integer" else [])]
    if field.type == "integer":
        top = 2**63 if field.int64 else 2**53
        low = [] if field.minimum is None else [(str(field.minimum - 1), "minimum")]
        return [("1.5", "not_whole"), ("x", "not_a_number"), (str(top), "maximum"), *low]
    if field.type == "number":
        more = [] if field.max_decimals is None else [(f"0.{'0' * field.max_decimals}1", "too_many_decimals")]
        return [("x", "not_a_number"), ("1234567890.123456", "too_many_digits"), *more]
    return [
        ("7.5E+12", "damaged_code"),
        *([("a" * (field.min_length - 1), "min_length")] if field.min_length > 1 else []),
    ]


CELLS = [
    (kind, path, cell, code)
    for kind in KINDS
    for path, field in zip(all_paths(kind), paths(kind).values(), strict=True)
    if path != "password"
    for cell, code in wrong(field)
]


def whole_row(kind: str) -> dict[str, str]:
    return {path: right(field) for path, field in zip(all_paths(kind), paths(kind).values(), strict=True)}


def as_csv(rows: Sequence[dict[str, str]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


POINT = '[numbers]\ndecimal = "."\n'


def mapped(kind: str) -> str:
    return POINT + "[columns]\n" + "".join(f'"{path}" = "{path}"\n' for path in all_paths(kind))


@pytest.mark.parametrize(("kind", "path", "cell", "code"), CELLS, ids=lambda value: str(value)[:24])
def test_a_cell_that_the_contract_refuses_is_reported_with_line_column_and_reason(
    tmp_path: Path, kind: str, path: str, cell: str, code: str
) -> None:
    row = whole_row(kind)
    items = read(tmp_path, as_csv([row, {**row, path: cell}, row]), mapped(kind), kind, login_mode="code")
    assert [type(item) for item in items] == [ReadyInput, RejectedInput, ReadyInput]
    assert problems(items) == [(3, path, path, code)]
    assert cell not in items[1].problems[0].words.split() or len(cell) < 2


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_that_is_required_is_missed_by_its_column(tmp_path: Path, kind: str) -> None:
    needed = [path for path, field in paths(kind).items() if field.required]
    if kind == "customers":
        needed += ["email"]
    row = whole_row(kind)
    items = read(tmp_path, as_csv([row, {**row, **dict.fromkeys(needed, "")}]), mapped(kind), kind, login_mode="email")
    assert isinstance(items[0], ReadyInput)
    assert sorted(problems(items)) == sorted((3, path, path, "required") for path in needed)


def test_an_object_that_is_required_is_missed_where_nothing_of_it_is_given(tmp_path: Path) -> None:
    items = read(tmp_path, "name,isDefault,line\nA,true,x\nB,false,\n", kind="warehouses")
    assert items[0].body == {"name": "A", "isDefault": True, "location": {"line": "x"}}
    assert problems(items) == [(3, "line", "location.line", "required")]


def test_all_problems_of_a_line_are_reported(tmp_path: Path) -> None:
    items = read(tmp_path, f"{VARIANT}price,jumpFactor,priceIsTaxExempt\nx,1,gratis,0,maybe\n")
    assert sorted(problems(items)) == [
        (2, "jumpFactor", "jumpFactor", "minimum"),
        (2, "price", "price", "not_a_number"),
        (2, "priceIsTaxExempt", "priceIsTaxExempt", "not_yes_or_no"),
        (2, "productId", "productId", "not_an_id"),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_that_the_columns_pass_is_one_that_the_model_passes(tmp_path: Path, kind: str) -> None:
    (item,) = read(tmp_path, as_csv([whole_row(kind)]), mapped(kind), kind, login_mode="code")
    assert isinstance(item, ReadyInput)
    assert list(item.body) == [field.name for field in KINDS[kind].record.fields if field.name != "password"]


def test_a_line_that_does_not_fit_its_file_is_rejected_in_its_place(tmp_path: Path) -> None:
    items = read(tmp_path, f"{VARIANT}sku\n1,1,a\n1,2\n1,3,c\n")
    assert [type(item) for item in items] == [ReadyInput, RejectedInput, ReadyInput]
    assert problems(items) == [(3, "", "", "too_short")]


@pytest.mark.parametrize("field", ["stock", "jumpFactor", "order", "price", "productId"])
def test_14_12_a_number_of_thousands_of_digits_costs_its_own_row(tmp_path: Path, field: str) -> None:
    names = ["productId", "variantId", *([field] if field != "productId" else ["sku"])]
    rows = [{"productId": "1", "variantId": str(n), "sku": "x", field: "7"} for n in range(1, 4)]
    rows[1][field] = "9" * 5000
    text = "\n".join([",".join(names), *(",".join(row[name] for name in names) for row in rows)])
    for items in (read(tmp_path, text), list(opened(tmp_path, text).in_columns())):
        bad = [item for item in items if isinstance(item, RejectedInput)]
        assert [item.lines for item in bad] == [(3,)]
        assert [p.code for p in bad[0].problems] == ["not_an_id" if field == "productId" else "too_many_digits"]


# --- lists --------------------------------------------------------------------------------------------------------


def test_a_field_of_an_item_is_reported_where_the_items_before_it_are_not_given(tmp_path: Path) -> None:
    mapping = """[columns]
productId = "productId"
variantId = "variantId"
n0 = "attributes[0].name"
v0 = "attributes[0].value"
n1 = "attributes[1].name"
v1 = "attributes[1].value"
Color = "attributes.Color"
"""
    text = f"{VARIANT}n0,v0,n1,v1,Color\n1,1,Size,L,,,red\n1,2,Size,,,M,\n"
    items = read(tmp_path, text, mapping)
    assert items[0].body == {"attributes": [{"name": "Size", "value": "L"}, {"name": "Color", "value": "red"}]}
    assert [(p.line, p.field, p.code) for item in items[1:] for p in item.problems] == [
        (3, "attributes[1].name", "required")
    ]


def test_an_image_is_one_with_a_url(tmp_path: Path) -> None:
    text = f"{VARIANT}sku,images[0].url,images[0].order,images[1].url,images[1].order\n"
    assert bodies(tmp_path, f"{text}1,1,x,a,1,,2\n1,2,y,,1,b,2\n1,3,z,,1,,2\n") == [
        {"sku": "x", "images": [{"url": "a", "order": 1}]},
        {"sku": "y", "images": [{"url": "b", "order": 2}]},
        {"sku": "z"},
    ]


def test_an_order_of_images_without_a_column_of_urls_is_rejected(tmp_path: Path) -> None:
    items = read(tmp_path, f"{VARIANT}sku,images[0].order\n1,1,x,1\n1,2,y,\n")
    assert [(p.line, p.field, p.code) for item in items[:1] for p in item.problems] == [
        (2, "images[0].url", "required")
    ]
    assert items[1].body == {"sku": "y"}


def test_what_all_inputs_get_makes_no_document(tmp_path: Path) -> None:
    mapping = '[columns]\nemail = "email"\nNIF = "documents[0].number"\n[constants]\n"documents[0].isDefault" = true\n'
    assert bodies(tmp_path, "email,NIF\na@b,1\nc@d,\n", mapping, "customers") == [
        {"email": "a@b", "documents": [{"number": "1", "isDefault": True}]},
        {"email": "c@d"},
    ]


GROUPED = """[columns]
code = "erpCode"
name = "firstName"
nif = "documents[+].number"
[group]
by = ["code"]
"""


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_lines_of_a_group_are_one_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(walking, "BATCH_ROWS", size)
    text = "code,name,nif\nA,Ana,1\nA,,2\nB,Bo,3\nA2,Al,\nC,,4\nC,Cy,\n"
    assert read(tmp_path, text, GROUPED, "customers") == [
        ReadyInput((2, 3), {}, {"erpCode": "A", "firstName": "Ana", "documents": [{"number": "1"}, {"number": "2"}]}),
        ReadyInput((4,), {}, {"erpCode": "B", "firstName": "Bo", "documents": [{"number": "3"}]}),
        ReadyInput((5,), {}, {"erpCode": "A2", "firstName": "Al"}),
        ReadyInput((6, 7), {}, {"erpCode": "C", "firstName": "Cy", "documents": [{"number": "4"}]}),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
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
        (",Ana,1\n,Eva,2\n", [((2, 3), "group_blank")]),
        ("A\n", [((2,), "too_short")]),
        ("A,Ana,7.5E+12\nA,,2\n", [((2, 3), "damaged_code")]),
    ],
)
def test_a_group_that_is_not_whole_is_rejected_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reported: list[tuple[tuple[int, ...], str]], size: int
) -> None:
    monkeypatch.setattr(walking, "BATCH_ROWS", size)
    items = read(tmp_path, f"code,name,nif\n{text}", GROUPED, "customers")
    assert [(item.lines, item.problems[-1].code) for item in items if isinstance(item, RejectedInput)] == reported
    assert sorted(line for item in items for line in item.lines) == list(range(2, 2 + text.count("\n")))


@pytest.mark.parametrize("size", [1, 2, 3, 100])
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
def test_a_cell_is_not_filled_across_a_line_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, filled: str, reported: dict[int, str], size: int
) -> None:
    monkeypatch.setattr(walking, "BATCH_ROWS", size)
    mapping = '[rows]\nfill_down = ["name"]\n[columns]\ncode = "erpCode"\nname = "firstName"\nnif = { ignore = true }\n'
    items = read(tmp_path, f"code,name,nif\n{text}", mapping, "customers")
    ready = [item.body.get("firstName", "-") for item in items if isinstance(item, ReadyInput)]
    assert ready == filled.split()
    assert {item.lines[0]: item.problems[0].code for item in items if isinstance(item, RejectedInput)} == reported


@pytest.mark.parametrize(("within", "torn"), [("", [3, 4]), ('fill_within = ["key"]\n', [4])])
def test_a_cell_is_not_filled_from_another_rejected_line(tmp_path: Path, within: str, torn: list[int]) -> None:
    """In a file of rejected lines the line above is another one than it was; a line that could be read is filled."""
    mapping = f'[rows]\nfill_down = ["name"]\n{within}[columns]\nkey = "erpCode"\nname = "firstName"\n'
    text = "key,name,line,field,code,words\nA,Ana,2,x,y,z\nA,,3,x,y,z\nA,,9,x,too_short,z\n"
    items = read(tmp_path, text, mapping, "customers")
    assert [item.lines[0] for item in items if isinstance(item, RejectedInput)] == torn
    ready = [item.body.get("firstName") for item in items if isinstance(item, ReadyInput)]
    assert ready == ["Ana", None][: 3 - len(torn)]


def test_a_list_of_a_group_holds_its_limit(tmp_path: Path) -> None:
    mapping = """[columns]
productId = "productId"
variantId = "variantId"
url = "images[+].url"
[group]
by = ["productId", "variantId"]
"""
    text = f"{VARIANT}url\n" + "1,1,a\n" * 5 + "1,2,a\n" * 6
    items = read(tmp_path, text, mapping)
    assert len(items[0].body["images"]) == 5
    assert [(p.field, p.code) for p in items[1].problems] == [("images", "max_items")]


# --- lines from above, lines that are none, other files -----------------------------------------------------------

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
IDS = """handle,option,product_id,variant_id
ring,Gold,7,71
ring,Silver,7,72
cup,Default Title,8,81
cup,Big,8,82
cup,Big,8,83
"""


@pytest.mark.parametrize(("totals", "third"), [("reject", RejectedInput), ("skip", SkippedLine), ("keep", ReadyInput)])
def test_lines_of_totals_are_rejected_skipped_or_kept(tmp_path: Path, totals: str, third: type) -> None:
    text = "name,productId,variantId,price\nAna,1,2,1\nEva,3,4,2\nTotal,1,2,3\nLeo,5,6,3\n"
    items = read(tmp_path, text, f'ignore = ["name"]\n[rows]\ntotals = "{totals}"\n{PLAIN}')
    assert [type(item) for item in items] == [ReadyInput, ReadyInput, third, ReadyInput]


PLAIN = '[columns]\nproductId = "productId"\nvariantId = "variantId"\nprice = "price"\n'


@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_shops_export_becomes_variants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(walking, "BATCH_ROWS", size)
    (tmp_path / "ids.csv").write_text(IDS)
    text = (
        "Handle,Title,Option1 Name,Option1 Value,Price\n"
        "ring,Ring,Color,Gold,69.99\nring,,,Silver,55\nring,,,,\n"
        "cup,Cup,Title,Default Title,9.50\ncup,,,Small,3\ncup,,,Big,4\n"
    )
    items = read(tmp_path, text, SHOP)
    gold, silver = ([{"name": "Color", "value": color}] for color in ("Gold", "Silver"))
    assert items[:4] == [
        ReadyInput((2,), {"productId": "7", "variantId": "71"}, {"price": Decimal("69.99"), "attributes": gold}),
        ReadyInput((3,), {"productId": "7", "variantId": "72"}, {"price": Decimal(55), "attributes": silver}),
        SkippedLine((4,), "Price: empty"),
        ReadyInput((5,), {"productId": "8", "variantId": "81"}, {"price": Decimal("9.5")}),
    ]
    assert problems(items)[0] == (6, "Handle, Option1 Value", "productId", "lookup_not_found")
    assert (7, "Handle, Option1 Value", "productId", "lookup_ambiguous") in problems(items)


def test_a_lookup_that_is_not_there_or_lacks_a_column_is_reported(tmp_path: Path) -> None:
    header = "Handle,Title,Option1 Name,Option1 Value,Price\na,b,c,d,1\n"
    assert "lookup file ids.csv not found" in refused(tmp_path, header, SHOP)
    (tmp_path / "ids.csv").write_text("handle,option,productid,variant_id\na,b,1,2\n")
    assert "no column 'product_id' (did you mean productid?)" in refused(tmp_path, header, SHOP)
    (tmp_path / "ids.csv").write_text("handle,option,product_id,variant_id\na,b,1,2\na,c,1\n")
    assert "lookup file ids.csv, line 3: 3 cells, but the header has 4" in refused(tmp_path, header, SHOP)


def test_what_an_input_rests_on_is_named(tmp_path: Path) -> None:
    (tmp_path / "ids.csv").write_text(IDS)
    inputs = opened(tmp_path, "Handle,Title,Option1 Name,Option1 Value,Price\nring,Ring,Color,Gold,1\n", SHOP)
    assert inputs.files == [tmp_path / "file.csv", tmp_path / "mapping.toml", tmp_path / "ids.csv"]


# --- passwords, login, semantics ----------------------------------------------------------------------------------


def test_a_password_is_in_no_body_and_read_again_by_its_line(tmp_path: Path) -> None:
    inputs = opened(
        tmp_path, "email,Contraseña\na@b, s3cret \nc@d,\ne@f,7,5E+12\n".replace("7,5E", "75E"), kind="customers"
    )
    items = list(inputs)
    assert inputs.password_column == "Contraseña"
    assert [item.lines for item in items if isinstance(item, ReadyInput)] == [(2,), (4,)]
    assert "s3cret" not in str(items)
    assert problems(items) == [(3, "Contraseña", "password", "required")]
    assert inputs.passwords({2, 3, 4}) == {2: " s3cret ", 4: "75E+12"}
    assert inputs.passwords(set()) == {}


@pytest.mark.parametrize(("mode", "field"), [("email", "email"), ("code", "loginCode")])
def test_customers_need_what_they_log_in_by(tmp_path: Path, mode: Any, field: str) -> None:
    assert f"no column fills {field}" in refused(tmp_path, "erpCode,phone\n1,2\n", kind="customers", login_mode=mode)
    items = read(tmp_path, f"erpCode,{field}\n1,x\n2,\n", kind="customers", login_mode=mode)
    assert problems(items) == [(3, field, field, "required")]


def test_a_login_code_that_the_platform_ignores_is_left_out_and_said(tmp_path: Path) -> None:
    inputs = opened(tmp_path, "email,loginCode\na@b,7\n", kind="customers", login_mode="email")
    assert [item.body for item in inputs if isinstance(item, ReadyInput)] == [{"email": "a@b"}]
    assert "loginCode is not sent" in inputs.notes[0]


def test_changes_must_be_said_where_the_platform_adds(tmp_path: Path) -> None:
    text, change = f"{VARIANT}stock\n1,1,5\n1,2,0\n1,3,-2\n", 'stock = { field = "stock", change = true }\n'
    columns = '[columns]\nproductId = "productId"\nvariantId = "variantId"\n'
    adds, replaces = {"stock": "increment"}, {"stock": "set"}
    assert "not marked as changes" in refused(tmp_path, text, semantics=adds)
    assert "sources.legacy.stock_semantics is set" in refused(tmp_path, text, columns + change, semantics=replaces)
    items = read(tmp_path, text, columns + change, semantics=adds)
    assert [getattr(item, "body", None) for item in items] == [{"stock": 5}, None, {"stock": -2}]
    strict = change.replace("true", 'true, blank = "reject"')
    assert read(tmp_path, text, columns + strict, semantics=adds) == items, "a change by 0 is no empty cell"
    default = columns + change.replace("true", "true, default = 0")
    assert read(tmp_path, text, default, semantics=adds) == items, "a change by 0 is not sent, also as a default"
    unsent = opened(tmp_path, f"{VARIANT}stock\n1,1,0\n1,2,\n", default, semantics=adds).in_columns()
    assert all(isinstance(item, SkippedLine) for item in unsent)
    group = columns + change + '[group]\nby = ["productId"]\n'
    assert problems(read(tmp_path, f"{VARIANT}stock\n1,1,5\n1,1,0\n", group, semantics=adds)) == [
        (3, "stock", "stock", "lines_differ")
    ], "a change by 0 contradicts another"
    assert [body["stock"] for body in bodies(tmp_path, text, semantics=replaces)] == [5, 0, -2]


# --- columns ------------------------------------------------------------------------------------------------------


def test_every_column_that_fits_no_field_is_reported_at_once_with_the_nearest(tmp_path: Path) -> None:
    reported = refused(tmp_path, f"{VARIANT}wieght,Descripción\n1,1,1,1\n")
    assert "2 columns match no field of variants: 'wieght' (did you mean weight?), 'Descripción'" in reported
    assert "template variants --mapping --for file.csv > file.toml" in reported
    (tmp_path / "a file.csv").write_text(f"{VARIANT}wieght\n1,1,1\n")
    with pytest.raises(UsageError) as error:
        open_inputs("variants", tmp_path / "a file.csv")
    assert error.value.hint.endswith("--for 'a file.csv' > 'a file.toml'")


@pytest.mark.parametrize(
    ("more", "note"), [("", "columns that the mapping does not name are ignored: Color"), ('"*" = "ignore"\n', "")]
)
def test_a_column_that_the_file_has_got_is_ignored_with_a_word(tmp_path: Path, more: str, note: str) -> None:
    mapping = f'[columns]\nproductId = "productId"\nvariantId = "variantId"\nsku = "sku"\n{more}'
    inputs = opened(tmp_path, f"{VARIANT}sku,Color\n1,1,a,rojo\n", mapping)
    assert [item.body for item in inputs if isinstance(item, ReadyInput)] == [{"sku": "a"}]
    assert inputs.notes == ([note] if note else [])
    strict = refused(tmp_path, f"{VARIANT}sku,Color\n1,1,a,rojo\n", f"strict = true\n{mapping.removesuffix(more)}")
    assert "1 column matches no field of variants: 'Color'" in strict


def test_of_thousands_of_columns_that_fit_no_field_the_first_are_named(tmp_path: Path) -> None:
    names = [f"x{n}" for n in range(5000)]
    reported = refused(tmp_path, f"{VARIANT}{','.join(names)}\n1,1{',1' * 5000}\n")
    assert "5,000 columns match no field of variants: 'x0', 'x1'" in reported
    assert "'x9' and 4,990 more" in reported
    assert len(reported) < 600
    lacking = refused(tmp_path, f"{','.join(names)}\n{',1' * 4999}\n", '[columns]\nName = "sku"\n')
    assert "x9 and 4,990 more." in lacking
    assert len(lacking) < 300


def test_a_column_of_the_mapping_that_the_file_lacks_is_reported(tmp_path: Path) -> None:
    columns = '[columns]\nproductId = "productId"\nvariantId = "variantId"\nprecios = "price"\n'
    assert "no column 'precios' (did you mean Precio?)" in refused(tmp_path, f"{VARIANT}Precio\n1,1,1\n", columns)


def test_an_ignored_column_need_not_be_there(tmp_path: Path) -> None:
    columns = 'ignore = ["Coste"]\n[columns]\nproductId = "productId"\nvariantId = "variantId"\nsku = "sku"\n'
    assert bodies(tmp_path, f"{VARIANT}sku\n1,1,a\n", columns) == [{"sku": "a"}]


@pytest.mark.parametrize("header", ["line,field,code,words", "line,field,code_2,words"])
def test_the_columns_of_a_reject_file_are_passed_over(tmp_path: Path, header: str) -> None:
    inputs = opened(tmp_path, f"{VARIANT}sku,{header}\n1,1,a,7,price,x,y\n")
    assert [item.body for item in inputs if isinstance(item, ReadyInput)] == [{"sku": "a"}]
    assert "reject file" in inputs.notes[0]


def test_a_warehouses_own_code_is_no_column_of_a_reject_file(tmp_path: Path) -> None:
    text = "name,isDefault,location.line,code,line,field,code,words\nA,true,x,W1,3,name,required,…\n"
    assert bodies(tmp_path, text, kind="warehouses") == [
        {"name": "A", "isDefault": True, "location": {"line": "x"}, "code": "W1"}
    ]


def test_a_constant_gives_what_the_file_lacks_and_holds_its_limits(tmp_path: Path) -> None:
    columns = (
        '[columns]\nvariantId = "variantId"\nsku = "sku"\n[constants]\nproductId = 17\njumpFactor = {}\nweight = 0.1\n'
    )
    items = read(tmp_path, "variantId,sku\n1,a\n", columns.replace("{}", "2"))
    assert items == [
        ReadyInput((2,), {"productId": "17", "variantId": "1"}, {"sku": "a", "jumpFactor": 2, "weight": Decimal("0.1")})
    ]
    assert "the constant jumpFactor is less than 1" in refused(
        tmp_path, "variantId,sku\n1,a\n", columns.replace("{}", "0")
    )


@pytest.mark.parametrize(("field", "value"), [("price", "nan"), ("jumpFactor", "0"), ("images[+].order", "inf")])
def test_a_default_holds_the_limits_of_its_field(tmp_path: Path, field: str, value: str) -> None:
    mapping = f"""[columns]
productId = "productId"
variantId = "variantId"
x = {{ field = "{field}", default = {value} }}
[group]
by = ["variantId"]
"""
    message = refused(tmp_path, f"{VARIANT}x\n1,1,\n", mapping)
    assert f"the default of {field.replace('+', '0')} " in message


def test_a_file_with_nothing_but_a_header_has_no_inputs(tmp_path: Path) -> None:
    assert read(tmp_path, ",".join(all_paths("variants")) + "\n") == []


# --- laws ---------------------------------------------------------------------------------------------------------

signs = st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"], exclude_characters="#\ufffd")
texts = st.text(signs, min_size=1)
numbers = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=0, max_value=10**9)
rows = st.fixed_dictionaries(
    {
        "productId": st.integers(1, 2**53),
        "variantId": st.integers(1, 2**53),
        "sku": st.none() | texts,
        "price": st.none() | numbers,
        "stock": st.none() | st.integers(-(2**53) + 1, 2**53 - 1),
        "priceIsTaxExempt": st.none() | st.booleans(),
        "jumpFactor": st.none() | st.integers(1, 2**63 - 1),
    }
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(rows, min_size=1, max_size=12), st.sampled_from([(",", "."), (";", ",")]))
def test_rows_to_csv_to_inputs_are_the_same(
    tmp_path: Path, given_rows: list[dict[str, Any]], form: tuple[str, str]
) -> None:
    delimiter, decimal = form
    out = io.StringIO()
    writer = csv.DictWriter(out, list(given_rows[0]), delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writeheader()
    for row in given_rows:
        cells = {name: "" if value is None else str(value) for name, value in row.items()}
        writer.writerow({**cells, "price": cells["price"].replace(".", decimal)})
    columns = "".join(f'{name} = "{name}"\n' for name in given_rows[0])
    numbers = f'[file]\ndelimiter = "{delimiter}"\nquote = "\\""\n[numbers]\ndecimal = "{decimal}"\n'
    items = read(tmp_path, out.getvalue(), f"{numbers}[columns]\n{columns}")
    expected = [{name: value for name, value in row.items() if value is not None} for row in given_rows]
    for item, row in zip(items, expected, strict=True):
        path = {name: str(row.pop(name)) for name in ("productId", "variantId")}
        if row:
            assert (item.path, item.body) == (path, row)
        else:
            assert isinstance(item, SkippedLine)


def test_an_option_of_preview_is_named_as_a_key_of_the_mapping_and_works_there(tmp_path: Path) -> None:
    """Issue 12, item 14."""
    text = "productId;variantId;price\n1;2;12,50;\n3;4;0,30;\n"
    message = refused(tmp_path, text)
    assert "--header-row 1" in message
    assert "set header_row under [file] in the mapping" in message
    columns = 'productId = "productId"\nvariantId = "variantId"\nprice = { field = "price", decimal = "," }\n'
    read_so = bodies(tmp_path, text, f"[file]\nheader_row = 1\n[columns]\n{columns}")
    assert read_so == [{"price": Decimal("12.50")}, {"price": Decimal("0.30")}]


def test_12_a_text_written_as_a_formula_is_not_sent_with_its_signs(tmp_path: Path) -> None:
    text = f'{VARIANT}erpCode\n1,2,"=""00038"""\n3,4,="00038"\n5,6,\'00038\n7,8,"=""A""&""B"""\n9,9,=00039\n'
    sent = [item.body["erpCode"] for item in read(tmp_path, text) if isinstance(item, ReadyInput)]
    assert sent == ["00038", "00038", "00038", "=00039"]
    assert problems(read(tmp_path, text)) == [(5, "erpCode", "erpCode", "formula")]


def test_a_column_is_found_whether_its_accents_are_composed_or_not(tmp_path: Path) -> None:
    names = {"Código": "erpCode", "Razón  social": "documents[0].fiscalName", "Año": "documents[0].number"}
    columns = "\n".join(f'"{name}" = "{field}"' for name, field in names.items())
    text = ",".join(names) + "\nA,Bar,1\n"
    forms = itertools.product((partial(normalize, "NFC"), partial(normalize, "NFD")), repeat=2)
    sent = [bodies(tmp_path, file(text), f"[columns]\n{form(columns)}", kind="customers") for file, form in forms]
    assert sent == [[{"erpCode": "A", "documents": [{"number": "1", "fiscalName": "Bar"}]}]] * 4
