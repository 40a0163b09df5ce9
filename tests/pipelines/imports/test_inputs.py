"""A file and its mapping to inputs: exact values, each problem with line, column and reason, nothing lost."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import normalize
from unittest import mock

import msgspec
import pyarrow as pa
import pytest

from orderbridge.pipelines.imports import (
    Inputs,
    ReadyInputs,
    RejectedInput,
    SkippedLine,
    open_inputs,
)
from orderbridge.pipelines.imports import lines as walking
from orderbridge.pipelines.imports.groups import filled_down
from orderbridge.pipelines.imports.json_columns import as_json
from orderbridge.pipelines.imports.open import layout_notes
from orderbridge.pipelines.mapping import load, to_toml
from orderbridge.pipelines.mapping.field_paths import all_paths
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import SourceTable
from orderbridge.sources.files.model import DetectedFormat
from orderbridge.sources.kinds import KINDS
from tests.sources.files.workbooks import cell, sheet, text, workbook

_decode = msgspec.json.Decoder(float_hook=Decimal).decode
VARIANT = '[columns]\nproductId = "productId"\nvariantId = "variantId"\n'


def opened(
    folder: Path,
    text: str | bytes,
    mapping: str | None = None,
    kind: str = "variants",
    **settings: Any,
) -> Inputs:
    file = folder / "a file.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    path = folder / "mapping.toml"
    if mapping is not None:
        path.write_text(f'kind = "{kind}"\n{mapping}', "utf-8")
    return open_inputs(kind, file, load(path) if mapping is not None else None, **settings)


@dataclass(frozen=True)
class Ready:
    """A ready input: its lines, the parameters of the path, and the body."""

    lines: tuple[int, ...]
    path: dict[str, str]
    body: dict[str, Any]


def items_of(inputs: Inputs) -> list[Any]:
    """The inputs in the order of their lines."""
    items: list[Any] = []
    params = {field.name for field in KINDS[inputs.kind].operation.params}
    for item in inputs:
        if not isinstance(item, ReadyInputs):
            items.append(item)
            continue
        columns = {
            name: texts.to_pylist() for name, texts in as_json(inputs.kind, item.columns).items()
        }
        for at, lines in enumerate(item.lines.to_pylist()):
            given = {name: texts[at] for name, texts in columns.items() if texts[at] is not None}
            body = {name: _decode(text) for name, text in given.items() if name not in params}
            items.append(
                Ready(tuple(lines), {name: given[name] for name in given if name in params}, body)
            )
    return sorted(items, key=lambda item: item.lines[0])


def read(*args: Any, **kwargs: Any) -> list[Any]:
    """The inputs in the order of their lines: the same when they are read again."""
    inputs = opened(*args, **kwargs)
    items = items_of(inputs)
    assert items_of(inputs) == items, "another walk gives the same"
    return items


def outcomes(items: Sequence[Any]) -> list[Any]:
    """Of each input its body, its problems as `line column field code`, or why it is skipped."""
    return [
        item.body
        if isinstance(item, Ready)
        else [f"{p.line} {p.column or '-'} {p.field or '-'} {p.code}" for p in item.problems]
        if isinstance(item, RejectedInput)
        else item.reason
        for item in items
    ]


def results(*args: Any, **kwargs: Any) -> list[Any]:
    return outcomes(read(*args, **kwargs))


def refused(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(UsageError) as error:
        opened(*args, **kwargs)
    return str(error.value)


D = Decimal
IDS = "productId,variantId,"
NINES = "9" * 5000


VALUES: list[tuple[str, str | None, list[Any]]] = [
    (f"{IDS}sku,stock\n1,1,a,\n1,2, ,0\n", None, [{"sku": "a"}, {"stock": 0}]),
    (f"{IDS}sku\n1,1,\n1,2,a\n", None, ["no field has a value", {"sku": "a"}]),
    (f"{IDS}sku,price,stock,weight\n1,1,,5,,\n1,2,a,,3,\n", VARIANT
     + 'sku = { field = "sku", blank = "clear" }\nprice = { field = "price", blank = "reject" }\n'
     'stock = { field = "stock", default = 7 }\nweight = { field = "weight", default = 0.1 }\n',
     [{"sku": "", "price": D(5), "stock": 7, "weight": D("0.1")}, ["3 price price blank"]]),
    (f"{IDS}sku,price,erpCode\n1,1,NULL,NULL,NULL\n1,2,a,,-\n", '[rows]\nempty = ["NULL"]\n' + VARIANT
     + 'sku = "sku"\nprice = "price"\nerpCode = { field = "erpCode", empty = ["-"] }\n',
     [{"erpCode": "NULL"}, {"sku": "a"}]),
    ("productId;variantId;price;weight\n1;1;1.234;1.234\n", '[numbers]\ndecimal = ","\n' + VARIANT
     + 'price = "price"\nweight = { field = "weight", decimal = "." }\n', [{"price": D(1234), "weight": D("1.234")}]),
    ("variantId,sku\n1,a\n", '[columns]\nvariantId = "variantId"\nsku = "sku"\n'
     "[constants]\nproductId = 17\njumpFactor = 2\nweight = 0.1\n\"images[0].url\" = \"u\"\n",
     [{"sku": "a", "jumpFactor": 2, "weight": D("0.1"), "images": [{"url": "u"}]}]),
    ("productId;variantId;price\n1;2;12,50;\n3;4;0,30;\n",
     f'[file]\nheader_row = 1\n{VARIANT}price = {{ field = "price", decimal = "," }}\n',
     [{"price": D("12.50")}, {"price": D("0.30")}]),
    (f"{IDS}sku,stock,price,jumpFactor\n{2**53},7,日😀,{1 - 2**53},1000000000.10,{2**63 - 1}\n", None,
     [{"sku": "日😀", "stock": 1 - 2**53, "price": D("1000000000.1"), "jumpFactor": 2**63 - 1}]),
    # numbers are proven by the whole column
    (f"{IDS}price\n1,1,1.234\n1,2,12\n", None, [["2 price price ambiguous_number"], {"price": D(12)}]),
    # what does not fit
    (f"{IDS}sku\n1,1,a\n1,2\n1,3,c\n", None, [{"sku": "a"}, ["3 - - too_short"], {"sku": "c"}]),
    (f"{IDS}price,jumpFactor,priceIsTaxExempt\nx,1,gratis,0,maybe\n", None,
     [["2 productId productId not_an_id", "2 price price not_a_number",
       "2 priceIsTaxExempt priceIsTaxExempt not_yes_or_no", "2 jumpFactor jumpFactor minimum"]]),
    (f'{IDS}erpCode\n1,2,"=""00038"""\n3,4,="00038"\n5,6,\'00038\n7,8,"=""A""&""B"""\n9,9,=00039\n', None,
     [*[{"erpCode": "00038"}] * 3, ["5 erpCode erpCode formula"], {"erpCode": "=00039"}]),
    (",".join(all_paths("variants")) + "\n", None, []),
    (f"{IDS}price,salesUnitFactor,jumpFactor,order\n1,1,1234567890.123456,,,\n1,2,,0.001,,\n1,3,,,0,\n1,4,,,,{2**63}\n",
     None, [["2 price price too_many_digits"], ["3 salesUnitFactor salesUnitFactor too_many_decimals"],
            ["4 jumpFactor jumpFactor minimum"], ["5 order order maximum"]]),
    (f"{IDS}stock,jumpFactor,order,price\n1,1,7,7,7,7\n1,2{4 * f',{NINES}'}\n{NINES},3,,,,7\n1,4,,,,7\n", None,
     [{"stock": 7, "jumpFactor": 7, "order": 7, "price": 7},
      [f"3 {name} {name} too_many_digits" for name in ("stock", "jumpFactor", "order", "price")],
      ["4 productId productId not_an_id"], {"price": 7}]),
    # items of lists
    (f"{IDS}n0,v0,n1,v1,Color\n1,1,Size,L,,,red\n1,2,Size,,,M,\n", VARIANT
     + 'n0 = "attributes[0].name"\nv0 = "attributes[0].value"\nn1 = "attributes[1].name"\nv1 = "attributes[1].value"\n'
     'Color = "attributes.Color"\n',
     [{"attributes": [{"name": "Size", "value": "L"}, {"name": "Color", "value": "red"}]},
      ["3 n1 attributes[1].name required"]]),
    (f"{IDS}sku,images[0].url,images[0].order,images[1].url,images[1].order\n"
     "1,1,x,a,1,,2\n1,2,y,,1,b,2\n1,3,z,,1,,2\n", None,
     [{"sku": "x", "images": [{"url": "a", "order": 1}]}, {"sku": "y", "images": [{"url": "b", "order": 2}]},
      {"sku": "z"}]),
    (f"{IDS}sku,images[0].order\n1,1,x,1\n1,2,y,\n", None, [["2 - images[0].url required"], {"sku": "y"}]),
]  # fmt: skip


CELLS: list[tuple[str, str, str | None, dict[str, Any], list[Any]]] = [
    ("customers", "Código\n007\n", '[columns]\n"Código" = { field = "erpCode", also = ["loginCode"] }\n',
     {"login_mode": "code"}, [{"erpCode": "007", "loginCode": "007"}]),
    ("customers", "email,NIF\na@b,1\nc@d,\n", '[columns]\nemail = "email"\nNIF = "documents[0].number"\n[constants]\n'
     '"documents[0].isDefault" = true\n', {},
     [{"email": "a@b", "documents": [{"number": "1", "isDefault": True}]}, {"email": "c@d"}]),
    ("customers", "erpCode,email\n1,x@y.pe\n2,\n3,x@y\n4,x@y.pe; z@y.pe\n5,France\n", None, {"login_mode": "email"},
     [{"erpCode": "1", "email": "x@y.pe"}, ["3 email email required"], ["4 email email not_an_address"],
      ["5 email email several_addresses"], ["6 email email not_an_address"]]),
    ("customers", "erpCode,loginCode,email\n1,x,x\n2,,x\n", None, {"login_mode": "code"},
     [{"erpCode": "1", "loginCode": "x", "email": "x"}, ["3 loginCode loginCode required"]]),
    ("warehouses", "name,isDefault,line\nA,true,x\nB,false,\n", None, {},
     [{"name": "A", "isDefault": True, "location": {"line": "x"}}, ["3 line location.line required"]]),
    ("warehouses", "name,isDefault,location.line,code,line,field,code,words\nA,true,x,W1,3,name,required,…\n", None, {},
     [{"name": "A", "isDefault": True, "location": {"line": "x"}, "code": "W1"}]),
    *(("variants", text, mapping, {}, expected) for text, mapping, expected in VALUES),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "mapping", "given", "expected"), CELLS)
def test_cells_become_values_or_problems(
    tmp_path: Path,
    kind: str,
    text: str,
    mapping: str | None,
    given: dict[str, Any],
    expected: list[Any],
) -> None:
    assert results(tmp_path, text, mapping, kind, **given) == expected


def test_the_proof_of_a_notation_may_stand_in_the_last_of_many_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "BATCH_ROWS", 3)
    text = (
        "productId;variantId;price\n"
        + "".join(f"1;{n};1.234\n" for n in range(1, 20))
        + "1;20;0,5\n"
    )
    assert results(tmp_path, text) == [{"price": D(1234)}] * 19 + [{"price": D("0.5")}]
    assert opened(tmp_path, text).notes == ["price: decimal comma (detected from its numbers)"]
    for price, note in (
        ("1.5", "price: mixes decimal points and commas"),
        ("", "price: decimal mark unclear"),
    ):
        (found,) = opened(
            tmp_path, text.replace("1;20;0,5", f"1;20;{price}\n1;21;{'0,5' if price else ''}")
        ).notes
        assert found.startswith(note)


@pytest.mark.parametrize(
    ("prices", "sent", "code"),
    [
        (["1,50 €", "1.234,00 €", "15€", ""], ["1.50", "1234.00", "15"], ""),
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
    items = items_of(inputs)
    found = [
        item.body["price"] for item in items if isinstance(item, Ready) and "price" in item.body
    ]
    assert found == [D(price) for price in sent]
    problems = [problem for item in items for problem in getattr(item, "problems", ())]
    assert " ".join(problem.code for problem in problems) == code
    if "currency" in code:
        assert "€" in problems[0].words
    elif sent:  # other rows of the file are read in the same way, however few they are
        mapping = to_toml(inputs.complete_mapping()).partition("\n")[2]
        [again] = results(tmp_path, f"productId;variantId;sku;price\n1;1;S1;{prices[0]}\n", mapping)
        assert again["price"] == D(sent[0])


@pytest.mark.parametrize(
    ("prices", "sent"),
    [
        (["1 234,50", "1\u00a0234", "12\u2009345,6", "7,5"], ["1234.50", "1234", "12345.6", "7.5"]),
        (["1'234.50", "1’234", "2.5"], ["1234.50", "1234", "2.5"]),
        (["1 234,50\u00a0€", "1,234 €", "12,-- €"], ["1234.50", "1.234", "12"]),
        (["1.234,-", "12,–", "1.234"], ["1234", "12", "1234"]),
        (["1,234.-", "12.-", "1,234"], ["1234", "12", "1234"]),
        # not proven by the whole column
        (["1 234,50", "1.234,00"], ["1234.00"]),
        (["1 234,50", "12 34", "0,5"], ["0.5"]),
        (["1 234", "1 234 567", "8"], ["8"]),
        (["1 234 567", "1,234"], []),
        (["1'234", "2.5"], ["2.5"]),
        (["1'234.50", "1'5", "2.5"], ["2.5"]),
        (["1'234,5", "1 234,5", "2,5"], ["2.5"]),
        (["500.-", "12.000", "12.000.-"], ["500"]),
        (["5-", "12-"], []),
        # 0.3.0 read the column by its other numbers, and it stays so
        (["12,-", "3.50", "1,234"], ["3.50", "1234"]),
        (["1 234.50", "1,5", "1.234"], ["1.5", "1234"]),
        (["1,50 €", "2,00\u00a0$"], ["1.50"]),
    ],
)
def test_thousands_and_dashes_are_read_where_the_whole_column_proves_them(
    tmp_path: Path, prices: list[str], sent: list[str]
) -> None:
    lines = "".join(f"1;{n};{price}\n" for n, price in enumerate(prices, 1))
    inputs = opened(tmp_path, f"productId;variantId;price\n{lines}")
    items = items_of(inputs)
    assert [item.body["price"] for item in items if isinstance(item, Ready)] == [*map(D, sent)]
    if len(sent) == len(prices):  # a later file with one of the numbers is read in the same way
        mapping = to_toml(inputs.complete_mapping()).partition("\n")[2]
        for price, value in zip(prices, sent, strict=True):
            [again] = results(tmp_path, f"productId;variantId;price\n1;1;{price}\n", mapping)
            assert again == {"price": D(value)}


def test_corrected_rows_of_a_mixed_column_leave_nothing_to_guess(tmp_path: Path) -> None:
    header = "productId;variantId;price\n"
    inputs = opened(tmp_path, f"{header}1;1;12,50\n1;2;7,00\n1;3;12.50\n1;4;1.234\n")
    mapping = to_toml(inputs.complete_mapping()).partition("\n")[2]
    corrected = results(tmp_path, f"{header}1;3;12,50\n1;4;1.234\n", mapping)
    assert corrected == [{"price": D("12.50")}, ["3 price price not_a_number"]]


def test_a_password_is_in_no_body_and_read_again_by_its_line(tmp_path: Path) -> None:
    text = "email,Contraseña\na@b, s3cret \nc@d,\ne@f,75E+12\n"
    inputs = opened(tmp_path, text, kind="customers")
    assert inputs.password_column == "Contraseña"
    assert "s3cret" not in str(read(tmp_path, text, kind="customers"))
    assert outcomes(items_of(inputs)) == [
        {"email": "a@b"},
        ["3 Contraseña password required"],
        {"email": "e@f"},
    ]
    assert inputs.passwords({2, 3, 4}) == {2: " s3cret ", 4: "75E+12"}
    assert inputs.passwords(set()) == {}


def test_changes_must_be_said_where_the_platform_adds(tmp_path: Path) -> None:
    text, change = (
        f"{IDS}stock\n1,1,5\n1,2,0\n1,3,-2\n",
        'stock = { field = "stock", change = true }\n',
    )
    adds, replaces = {"stock": "increment"}, {"stock": "set"}
    constant, with_sku = f'{VARIANT}sku = "sku"\n[constants]\nstock = 5\n', f"{IDS}sku\n1,1,a\n"
    assert "not marked as changes" in refused(tmp_path, text, semantics=adds)
    assert "sources.legacy.stock_semantics is set" in refused(
        tmp_path, text, VARIANT + change, semantics=replaces
    )
    assert "stock is a change and cannot be a constant" in refused(
        tmp_path, with_sku, constant, semantics=adds
    )
    (tmp_path / "stock.csv").write_text("code,units\na,5\n", "utf-8")
    lookup = (
        '[[lookup]]\nfile = "stock.csv"\nmatch = { sku = "code" }\ngive = { stock = "units" }\n'
    )
    assert "or a lookup" in refused(
        tmp_path, with_sku, f'{VARIANT}sku = "sku"\n{lookup}', semantics=adds
    )
    for more in ("true", 'true, blank = "reject"', "true, default = 0"):
        found = results(tmp_path, text, VARIANT + change.replace("true", more), semantics=adds)
        assert found == [{"stock": 5}, "no field has a value", {"stock": -2}], (
            "a change by 0 is given, and not sent"
        )
    group = VARIANT + change + '[group]\nby = ["productId"]\n'
    found = results(tmp_path, f"{IDS}stock\n1,1,5\n1,1,0\n", group, semantics=adds)
    assert found == [["3 stock stock lines_differ"]], "a change by 0 contradicts another"
    assert [body["stock"] for body in results(tmp_path, text, semantics=replaces)] == [5, 0, -2]


SKU = VARIANT + 'sku = "sku"\n'


@pytest.mark.parametrize(
    ("kind", "text", "mapping", "note"),
    [
        (
            "variants",
            f"{IDS}sku,Color\n1,1,a,rojo\n",
            SKU,
            "columns that the mapping does not name are ignored: Co",
        ),
        ("variants", f"{IDS}sku,Color\n1,1,a,rojo\n", SKU + '"*" = "ignore"\n', ""),
        (
            "variants",
            f"{IDS}sku,line,field,code,words\n1,1,a,7,price,x,y\n",
            None,
            "come from a reject file and are",
        ),
        (
            "variants",
            f"{IDS}sku,Año\n1,1,a,x\n",
            f'ignore = ["Año"]\n{SKU}',
            "encoding: cp1252 (assumed);",
        ),
        (
            "variants",
            f"{IDS}sku\n1,1,a\n\nFuente: ERP\n",
            None,
            "lines after the table are not read, as footnotes: 4;",
        ),
        (
            "variants",
            "1,1,a,\n",
            '[file]\nheader_row = 0\n[columns]\ncolumn_1 = "variantId"\ncolumn_2 = "productId"\n'
            'column_3 = "sku"\n',
            "no line has column names: the columns are numbered, column_1 and so on, and the first line is a row; 1 "
            "empty column at the right left out",
        ),
        (
            "customers",
            "email,loginCode\na@b.pe,7\n",
            None,
            "loginCode is not sent: customers log in by e-mail",
        ),
    ],
)
def test_what_is_left_out_or_assumed_is_said(
    tmp_path: Path, kind: str, text: str, mapping: str | None, note: str
) -> None:
    inputs = opened(tmp_path, text.encode("cp1252"), mapping, kind, login_mode="email")
    assert [note in one for one in inputs.notes] == ([True] if note else [])
    assert outcomes(items_of(inputs)) == [
        {"email": "a@b.pe"} if kind == "customers" else {"sku": "a"}
    ]


@pytest.mark.parametrize(
    ("kind", "text", "mapping", "words"),
    [
        ("variants", f"{IDS}wieght,{','.join(f'x{n}' for n in range(500))}\n1,1,1{',1' * 500}\n", None,
         "501 columns match no field of variants: 'wieght' (did you mean weight?), 'x0' … 'x8' and 491 more … "
         "template variants --mapping --for '/ … /a file.csv' > 'a file.toml'"),
        ("variants", f"{IDS}sku,Color\n1,1,a,rojo\n", f"strict = true\n{SKU}", "1 column matches no field of"),
        ("variants", f"{IDS}Precio\n1,1,1\n", VARIANT + 'precios = "price"\n', "no column 'precios' (did you mean Pre"),
        ("customers", "erpCode,phone\n1,2\n", None,
         'no column fills loginCode … "erpCode" = { field = "erpCode", also = ["loginCode"] }'),
        ("variants", "variantId,sku\n1,a\n",
         '[columns]\nvariantId = "variantId"\n[constants]\nproductId = 1\njumpFactor = 0\n',
         "the constant jumpFactor is less than 1"),
        ("variants", f"{IDS}x\n1,1,\n",
         f'{VARIANT}x = {{ field = "images[+].order", default = 1234567890.123456 }}\n[group]\nby = ["variantId"]\n',
         "the default of images[0].order has more"),
        ("variants", "productId;variantId;price\n1;2;12,50;\n3;4;0,30;\n", None,
         "--header-row 1 … /a file.csv' --header-row VALUE --csv clean.csv … set header_row under [file]"),
        ("variants", "_line,sku\n1,2\n", None, "a column is named _line"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_its_mapping_is_an_error_with_what_to_do(
    tmp_path: Path, kind: str, text: str, mapping: str | None, words: str
) -> None:
    message = refused(tmp_path, text, mapping, kind, login_mode="code")
    assert all(part in message for part in words.split(" … ")), message
    assert len(message) < 600


def test_a_column_is_found_whether_its_accents_are_composed_or_not(tmp_path: Path) -> None:
    names = {
        "Código": "erpCode",
        "Razón  social": "documents[0].fiscalName",
        "Año": "documents[0].number",
    }
    columns = "\n".join(f'"{name}" = "{field}"' for name, field in names.items())
    text = ",".join(names) + "\nA,Bar,1\n"
    forms = itertools.product((partial(normalize, "NFC"), partial(normalize, "NFD")), repeat=2)
    sent = [
        results(tmp_path, file(text), f"[columns]\n{form(columns)}", kind="customers")
        for file, form in forms
    ]
    assert sent == [[{"erpCode": "A", "documents": [{"number": "1", "fiscalName": "Bar"}]}]] * 4


PRICE = f"{VARIANT}price"


@pytest.mark.parametrize(
    ("field", "cells", "values", "written", "mapping"),
    [
        ("price", [19.99, 1.234, 12], "19.99 1.234 12", "1.234", None),
        ("price", ["1.234", 19.99, 1.234], "ambiguous_number 19.99 1.234", "1·234", None),
        ("price", ["1.234", "2,50", 19.99, 1.234], "1234 2.5 19.99 1.234", "1,234", None),
        ("price", ["1,5", "1.5", 1.234], "mixed_numbers mixed_numbers 1.234", "1·234", None),
        (
            "price",
            ["12,50", "1.300,00", "12.50", "1.234", "1,234", "9", 1.234],
            "12.5 1300 mixed_numbers mixed_numbers mixed_numbers 9 1.234",
            "1·234",
            None,
        ),
        ("stock", ["1.000", 2.5, 7], "ambiguous_number not_whole 7", "2·5", None),
        (
            "price",
            ["1.234", 1.234, "2,5"],
            "1234 1.234 2.5",
            "1,234",
            f'[numbers]\ndecimal = ","\n{PRICE} = "price"\n',
        ),
        (
            "price",
            ["2,50", 1.234],
            "2.5 1.234",
            "1·234",
            f'{PRICE} = {{ field = "price", also = ["sku"] }}\n',
        ),
    ],
)
def test_texts_are_read_by_texts_and_numbers_as_they_are(
    tmp_path: Path,
    field: str,
    cells: list[str | float],
    values: str,
    written: str,
    mapping: str | None,
) -> None:
    header = text("A1", "productId") + text("B1", "variantId") + text("C1", field)
    rows = [
        (n, cell(f"A{n}", 1) + cell(f"B{n}", n) + cell(f"C{n}", value))
        for n, value in enumerate(cells, 2)
    ]
    file = workbook(tmp_path, ("Hoja1", sheet((1, header), *rows)))
    (tmp_path / "mapping.toml").write_text(f'kind = "variants"\n{mapping}', "utf-8")
    inputs = open_inputs("variants", file, load(tmp_path / "mapping.toml") if mapping else None)
    found = [
        str(one[field]) if isinstance(one, dict) else one[0].split()[-1]
        for one in outcomes(items_of(inputs))
    ]
    assert found == values.split()
    own = [one for batch in inputs.table.batches() for one in batch[field].to_pylist()]
    assert written in own, "what is written out of the table is read again in one notation"


def test_a_lookups_numbers_prove_nothing_of_its_texts(tmp_path: Path) -> None:
    rows = [(2, text("A2", "A") + text("B2", "1.234")), (3, text("A3", "B") + cell("B3", 19.99))]
    workbook(
        tmp_path,
        ("H", sheet((1, text("A1", "code") + text("B1", "PVP")), *rows)),
        name="prices.xlsx",
    )
    lookup = (
        '[[lookup]]\nfile = "prices.xlsx"\nmatch = { sku = "code" }\ngive = { price = "PVP" }\n'
    )
    inputs = opened(
        tmp_path, "productId,variantId,sku\n1,1,A\n1,2,B\n", f'{VARIANT}sku = "sku"\n{lookup}'
    )
    assert outcomes(items_of(inputs)) == [
        ["2 - price ambiguous_number"],
        {"sku": "B", "price": Decimal("19.99")},
    ]


BATCHES = pytest.mark.usefixtures("_rows_of_a_batch")
GROUPED = '[columns]\ncode = "erpCode"\nname = "firstName"\nnif = "documents[+].number"\n[group]\nby = ["code"]\n'


@pytest.fixture(params=[1, 100])
def _rows_of_a_batch(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(walking, "BATCH_ROWS", request.param)
    monkeypatch.setattr("orderbridge.pipelines.imports.inputs.BATCH_ROWS", request.param)


@BATCHES
def test_lines_of_a_group_are_one_input(tmp_path: Path) -> None:
    text = "code,name,nif\nA,Ana,1\nA,,2\nB,,3\nA2,Al,\nC,,4\nC,Cy,\n"
    assert read(tmp_path, text, GROUPED, "customers") == [
        Ready(
            (2, 3),
            {},
            {"erpCode": "A", "firstName": "Ana", "documents": [{"number": "1"}, {"number": "2"}]},
        ),
        Ready((4,), {}, {"erpCode": "B", "documents": [{"number": "3"}]}),
        Ready((5,), {}, {"erpCode": "A2", "firstName": "Al"}),
        Ready((6, 7), {}, {"erpCode": "C", "firstName": "Cy", "documents": [{"number": "4"}]}),
    ]
    named = GROUPED.replace(
        'name = "firstName"', 'name = { field = "firstName", blank = "reject" }'
    )
    assert results(tmp_path, "code,name,nif\nA,,1\nA,,2\nB,,3\n", named, "customers") == [
        ["0 name firstName blank"],  # of both lines
        ["4 name firstName blank"],
    ]


@BATCHES
@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("A,Ana,1\nA,Eva,2\n", [((2, 3), "lines_differ")]),
        ("A,Ana,1\nB,Bo,2\nA,,3\n", [((2,), "group_apart"), ((4,), "group_apart")]),
        (
            "A,Ana,1\n,Bo,2\nA,,3\n",
            [((2,), "group_apart"), ((3,), "group_blank"), ((4,), "group_apart")],
        ),
        ("A,Ana,1\nA,,\nA,\nA,,3\nB,Bo,4\n", [((2, 3, 5), "group_torn"), ((4,), "too_short")]),
        (
            "A,Ana,1\nB,\nC,Cy,3\nD,Di,4\n",
            [((2,), "group_torn"), ((3,), "too_short"), ((4,), "group_torn")],
        ),
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
    assert [
        (item.lines, item.problems[-1].code) for item in items if isinstance(item, RejectedInput)
    ] == reported
    assert sorted(line for item in items for line in item.lines) == list(
        range(2, 2 + text.count("\n"))
    )


@BATCHES
@pytest.mark.parametrize(
    ("text", "filled", "reported"),
    [
        (
            "A,Ana,1\nB,,2\nC,Cy\nD,,4\nE,Eva,5\nF,,6\n",
            "Ana Ana Eva Eva",
            {4: "too_short", 5: "fill_torn"},
        ),
        ("A,Ana,1\nC,\nD,,4\nE,,5\n", "Ana", {3: "too_short", 4: "fill_torn", 5: "fill_torn"}),
        ("C,\nD,,4\nE,Eva,5\n", "Eva", {2: "too_short", 3: "fill_torn"}),
        # no row, and no name
        (
            "A,Ana,1\ncode,name,nif\nD,,4\n",
            "Ana Ana",
            {3: "repeated_header"},
        ),
        ("A,,1\nB,Bo,2\nC,,3\n", "- Bo Bo", {}),
    ],
)
def test_a_cell_is_not_filled_across_an_unreadable_line(
    tmp_path: Path, text: str, filled: str, reported: dict[int, str]
) -> None:
    mapping = '[rows]\nfill_down = ["name"]\n[columns]\ncode = "erpCode"\nname = "firstName"\nnif = { ignore = true }\n'
    items = read(tmp_path, f"code,name,nif\n{text}", mapping, "customers")
    assert [
        item.body.get("firstName", "-") for item in items if isinstance(item, Ready)
    ] == filled.split()
    assert {
        item.lines[0]: item.problems[0].code for item in items if isinstance(item, RejectedInput)
    } == reported


def test_a_line_of_a_group_fills_the_lines_below_it_where_the_mapping_says_so(
    tmp_path: Path,
) -> None:
    """Without these rows of the mapping, a line with one cell alone is no record, and is rejected."""
    lines = [f"C-{n},{'Norte' if n == 0 else ''},X{n}" for n in range(9)]
    lines[5:5] = [",Sur,"]
    text = "\n".join(["code,name,nif", *lines, ""])
    mapping = '[columns]\ncode = "erpCode"\nname = "firstName"\nnif = { ignore = true }\n'
    rows = '[rows]\nfill_down = ["name"]\nskip_blank = ["code"]\n'
    items = read(tmp_path, text, rows + mapping, "customers")
    ready = [item.body.get("firstName") for item in items if isinstance(item, Ready)]
    assert ready == ["Norte"] * 5 + ["Sur"] * 4
    assert [item.lines for item in items if isinstance(item, SkippedLine)] == [(7,)]
    items = read(tmp_path, text, mapping, "customers")
    assert [item.lines[0] for item in items if isinstance(item, RejectedInput)] == [7]


@pytest.mark.parametrize(("within", "torn"), [("", [3, 4]), ('fill_within = ["key"]\n', [4])])
def test_a_cell_is_not_filled_from_another_rejected_line(
    tmp_path: Path, within: str, torn: list[int]
) -> None:
    """In a file of rejected lines the line above is another one than it was; a line that could be read is filled."""
    mapping = (
        f'[rows]\nfill_down = ["name"]\n{within}[columns]\nkey = "erpCode"\nname = "firstName"\n'
    )
    text = "key,name,line,field,code,words\nA,Ana,2,x,y,z\nA,,3,x,y,z\nA,,9,x,too_short,z\n"
    items = read(tmp_path, text, mapping, "customers")
    assert [item.lines[0] for item in items if isinstance(item, RejectedInput)] == torn
    ready = [item.body.get("firstName") for item in items if isinstance(item, Ready)]
    assert ready == ["Ana", None][: 3 - len(torn)]


def test_cells_are_filled_within_equal_keys_from_the_row_that_is_named() -> None:
    columns = {
        "key": ["a", "", "b", " b", "b", "b", "c", ""],
        "cell": ["x", "", " ", "y", "NULL", " ", "", "NULL"],
    }
    filled, origins = filled_down(pa.table(columns), ["cell", "key"], ["key"], ("NULL",))
    assert filled["key"].to_pylist() == ["a", "a", "b", " b", "b", "b", "c", "c"]
    assert filled["cell"].to_pylist() == ["x", "x", " ", "y", "y", "y", "", "NULL"]
    assert origins["cell"].tolist() == [0, 0, -3, 3, 3, 3, -7, -7]


@pytest.mark.parametrize(
    ("totals", "third"), [("reject", RejectedInput), ("skip", SkippedLine), ("keep", Ready)]
)
def test_lines_of_totals_are_rejected_skipped_or_kept(
    tmp_path: Path, totals: str, third: type
) -> None:
    text = "name,productId,variantId,price\nAna,1,2,1\nEva,3,4,2\nTotal,1,2,3\nLeo,5,6,3\n"
    items = read(
        tmp_path,
        text,
        f'ignore = ["name"]\n[rows]\ntotals = "{totals}"\n{VARIANT}price = "price"\n',
    )
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
SHOP_IDS = "handle,option,product_id,variant_id\n"
HEADER = "Handle,Title,Option1 Name,Option1 Value,Price\n"


@BATCHES
def test_a_shops_export_becomes_variants(tmp_path: Path) -> None:
    same = "cup,Small,8,84\ncup,Small,8,84\ncup,Half,8,\ncup,Half,9,\n"
    rows = "ring,Gold,7,71\nring,Silver,7,72\ncup,Default Title,8,81\ncup,Big,8,82\ncup,Big,8,83\n"
    (tmp_path / "ids.csv").write_text(SHOP_IDS + rows + same)
    text = (
        f"{HEADER}ring,Ring,Color,Gold,69.99\nring,,,Silver,55\nring,,,,\n"
        "cup,Cup,Title,Default Title,9.50\ncup,,,Tiny,3\ncup,,,Big,4\ncup,,,Small,5\ncup,,,Half,6\n"
    )
    items = read(tmp_path, text, SHOP)
    gold, silver = ([{"name": "Color", "value": color}] for color in ("Gold", "Silver"))
    assert items[:4] == [
        Ready(
            (2,),
            {"productId": "7", "variantId": "71"},
            {"price": Decimal("69.99"), "attributes": gold},
        ),
        Ready(
            (3,),
            {"productId": "7", "variantId": "72"},
            {"price": Decimal(55), "attributes": silver},
        ),
        SkippedLine((4,), "Price: empty"),
        Ready((5,), {"productId": "8", "variantId": "81"}, {"price": Decimal("9.5")}),
    ]
    tiny, big, small, half = outcomes(items[4:])
    assert tiny[0] == "6 Handle, Option1 Value productId lookup_not_found"
    assert big[0] == "7 Handle, Option1 Value productId lookup_ambiguous"
    assert half[0] == "9 Handle, Option1 Value productId lookup_ambiguous"
    assert isinstance(small, list), "an attribute without a name"
    assert "lookup" not in str(small)
    assert opened(tmp_path, text, SHOP).files == [
        tmp_path / name for name in ("a file.csv", "mapping.toml", "ids.csv")
    ]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (None, "lookup file ids.csv not found"),
        (
            "handle,option,productid,variant_id\na,b,1,2\n",
            "no column 'product_id' (did you mean productid?)",
        ),
        (
            SHOP_IDS + "a,b,1,2\na,c,1\n",
            "lookup file ids.csv, line 3: 3 cells, but the header has 4",
        ),
    ],
)
def test_a_lookup_that_cannot_be_read_is_an_error(
    tmp_path: Path, ids: str | None, words: str
) -> None:
    if ids is not None:
        (tmp_path / "ids.csv").write_text(ids)
    assert words in refused(tmp_path, f"{HEADER}a,b,c,d,1\n", SHOP)


def test_all_that_a_sheet_may_hide_is_said_at_once() -> None:
    found = DetectedFormat("workbook", ("1",), (), footnotes=(9,), hidden_rows=2, merged_cells=3)
    table = mock.create_autospec(SourceTable, instance=True, format=found)
    notes = "\n".join(layout_notes(table))
    for words in ("no line has column names", "as footnotes: 9", "read too: 2;", "cells: 3;"):
        assert words in notes


def test_no_customer_is_created_without_the_code_that_a_column_may_have(tmp_path: Path) -> None:
    text = "No.;Nombre;Correo\n1;Ana;a@x.es\n2;Eva;e@x.es\n13;Luz;l@x.es\n14;Pau;p@x.es\n"
    assert "1 column matches no field of customers: 'No.'" in refused(
        tmp_path, text, kind="customers"
    )
