"""The columns of records that the interface describes: what they hold, what is refused, and that all ways agree."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from decimal import Decimal
from hashlib import sha256

import pyarrow as pa
import pytest

from orderbridge.sources.contract import CUSTOMER, RECORDS, Field, Record
from orderbridge.sources.decode.documented import columnar, decode
from orderbridge.sources.decode.documented_rows import by_rows
from orderbridge.sources.decode.rows import Decoded, Page
from orderbridge.sources.decode.table_schema import parent_key, schema_of, snake, table_schema
from orderbridge.sources.errors import ContractBroken

PROMOTION, PRICE_LIST = RECORDS["promotions"], RECORDS["price_lists"]


def page(*rows: object, number: int = 1) -> Page:
    return Page(number, json.dumps(rows, ensure_ascii=False).encode())


def one(record: Record, text: str) -> Decoded:
    """Decodes one row, and checks that the quick way either refuses it or gives what the exact one gives."""
    only = Page(1, b"[" + text.encode() + b"]")
    exact = by_rows(table_schema(record), only)
    quick = columnar(table_schema(record), [only])
    if quick is not None:
        assert quick == exact
    assert decode(record, [only]) == exact
    return exact


def reason(record: Record, text: str) -> str:
    decoded = one(record, text)
    assert decoded.tables[record.name].num_rows == 0
    (row,) = decoded.quarantined
    assert row.row == text.encode()
    return row.reason


def cell(record: Record, text: str, column: str) -> object:
    decoded = one(record, text)
    assert not decoded.quarantined
    value: object = decoded.tables[record.name][column][0].as_py()
    return value


INVOICE = Record(
    "invoices", (Field("id", "identifier", required=True), Field("total", "number")), key="id"
)


@pytest.mark.parametrize(
    ("value", "held"),
    [
        ("10.5", "10.5"), ("3", "3"), ("-0", "0"), ("1e3", "1000"), ("1.5E-2", "0.015"), ("1.10", "1.1"),
        ("123456789012345678901234567890.5", None), ("1234567890123456789012345678.000000001",) * 2,
        ("663555675813354429497439874223117.5", None), ("92e34", None), ("7.51702e32", None), ("6.5E+33", None),
        ('"422212157362174398367936921152.5"', None), ("0.1234567891", "0.123456789"), ("1e400", None),
        ("true", None), ("[]", None),
        ('"10.5"', "10.5"), ('"010"', "10"), ('"+1"', None), ('"1e3"', "1000"), ('"1."', None), ('" 1"', None),
    ],
)  # fmt: skip
def test_a_number_is_a_decimal_that_is_rounded_at_most_or_refused(
    value: str, held: str | None
) -> None:
    text = f'{{"id":1,"total":{value}}}'
    if held is None:
        assert reason(INVOICE, text).startswith("total: expected ")
    else:
        assert cell(INVOICE, text, "total") == Decimal(held)


def test_a_batch_is_read_at_once() -> None:
    pages = [
        page(
            {"id": 1, "birthdate": "1980-02-29", "documents": [{"number": "007"}, {"number": "8"}]}
        ),
        page(number=2),
        page(
            {"id": 2, "documents": []},
            {"id": 3, "erpCode": "007", "documents": [{"isDefault": True}]},
            number=3,
        ),
    ]
    decoded = columnar(table_schema(CUSTOMER), pages)
    assert decoded is not None
    customers, documents = decoded.tables["customers"], decoded.tables["customers__documents"]
    assert {name: table.schema for name, table in decoded.tables.items()} == schema_of(CUSTOMER)
    places = customers.select(["id", "_page", "_position"]).to_pydict()
    assert places == {"id": ["1", "2", "3"], "_page": [1, 3, 3], "_position": [1, 1, 2]}
    assert customers["birthdate"].to_pylist() == [date(1980, 2, 29), None, None]
    columns = ("customer_id", "position", "number", "_page", "_position")
    found = [tuple(row[name] for name in columns) for row in documents.to_pylist()]
    assert found == [("1", 1, "007", 1, 1), ("1", 2, "8", 1, 1), ("3", 1, None, 3, 2)]
    listed = page({"id": 1, "lists": []}, {"id": 2, "lists": ["A"]}, {"id": 3, "lists": None})
    lists = columnar(table_schema(LISTED), [listed])
    assert lists is not None
    assert lists.tables["customers"]["lists"].to_pylist() == ["[]", '["A"]', None]


LISTED = Record(
    "customers",
    (
        *(Field("id", "identifier", required=True), Field("tags", "array", items="text")),
        *(Field("lists", "array", items="identifier"), Field("prices", "array", items="number")),
    ),
    key="id",
)
PLACE = (Field("city", "text"),)
PLACED = Record(
    "warehouses",
    (Field("id", "identifier"), Field("place", "object", fields=PLACE), Field("any", "object")),
    key="id",
)
IDENTIFIERS = {
    **{
        "1": "1",
        "1.0": "1",
        "1e3": "1000",
        "1.50": "1.5",
        "-0": "0",
        "9007199254740993": "9007199254740993",
    },
    **{"9" * 60: "9" * 60, '"007"': "007", '"1.0"': "1.0", '"LIST-B"': "LIST-B"},
}
INTEGERS = {
    "1.0": 1,
    "1e2": 100,
    "-0": 0,
    "9223372036854775807": 2**63 - 1,
    "-9223372036854775808": -(2**63),
}
NAMES = ('a\\"', "a\\\\", "a\\n", "", "__proto__")
DEEPEST, MANY_LISTS = "[" * 99 + "]" * 99, f"[{','.join(['[]'] * 150)}]"
CELLS: list[tuple[Record, str, str, object]] = [
    *(
        (record, f'{{"id":{key}}}', "id", IDENTIFIERS[key])
        for record in (CUSTOMER, PRICE_LIST)
        for key in IDENTIFIERS
    ),
    *(
        (PROMOTION, f'{{"id":1,"useCount":{count}}}', "use_count", INTEGERS[count])
        for count in INTEGERS
    ),
    (
        PRICE_LIST,
        '{"id":"a","adjustmentValue":"-1.500000001"}',
        "adjustment_value",
        Decimal("-1.500000001"),
    ),
    *(
        (CUSTOMER, f'{{"id":1,"{name}":[1,\n2]}}', "_extra", f'{{"{name}":[1,\n2]}}')
        for name in NAMES
    ),
    *(
        (CUSTOMER, f'{{"id":1,"x":{value}}}', "_extra", f'{{"x":{value}}}')
        for value in (DEEPEST, MANY_LISTS)
    ),
    # pyarrow's JSON reader makes an array of a list of nulls whose offsets point past its end
    (CUSTOMER, '{"id":1,"tags":[null, null]}', "_extra", '{"tags":[null, null]}'),
    (PLACED, '{"id":1,"place":{ "city":"a", "x":[1.50]}}', "place", '{"city":"a","x":[1.5]}'),
    (PLACED, '{"id":1,"place":null}', "place", None),
    (LISTED, '{"id":1,"tags":["a","b c"],"lists":[]}', "tags", '["a","b c"]'),
    (LISTED, '{"id":1,"tags":["\\""]}', "tags", '["\\""]'),
    (LISTED, '{"id":1,"lists":[7, 1e3]}', "lists", "[7,1000]"),
    (LISTED, '{"id":1,"lists":null}', "lists", None),
    (LISTED, '{"id":1,"prices":[1,"010"]}', "prices", '[1,"010"]'),
]


@pytest.mark.parametrize(("record", "row", "column", "value"), CELLS)
def test_a_value_is_exact_however_it_is_written(
    record: Record, row: str, column: str, value: object
) -> None:
    assert cell(record, row, column) == value


TWICE = "row: a field occurs twice in one object"
LONG = "useCount: expected integer, found a number with a fraction or beyond 64 bits"
LARGE = "expected decimal, found more than 29 digits before the point"
REASONS: list[tuple[Record, str, str]] = [
    (CUSTOMER, "{}", "id: expected an identifier, found nothing"),
    (CUSTOMER, '{"id":" \u00a0"}', "id: expected an identifier, found blank string"),
    (CUSTOMER, '{"id":true}', "id: expected identifier, found boolean"),
    (CUSTOMER, '{"id":1e999999}', "id: a number too long for an identifier"),
    *(
        (CUSTOMER, row, TWICE)
        for row in ('{"id":1,"id":2}', '{"id":1,"\\u0069d":1}', '{"id":1,"x":{"y":1,"y":1}}')
    ),
    (CUSTOMER, '{"id":1,"email":"a\\u0000"}', "email: a NUL character"),
    (CUSTOMER, "null", "row: expected object, found null"),
    (CUSTOMER, '{"id":1,"birthdate":7}', "birthdate: expected date YYYY-MM-DD, found number"),
    (CUSTOMER, '{"id":1,"documents":{}}', "documents: expected array, found object"),
    (CUSTOMER, '{"id":1,"documents":[null]}', "documents[]: expected object, found null"),
    (
        CUSTOMER,
        '{"id":1,"documents":[{"isDefault":"yes"}]}',
        "documents[].isDefault: expected boolean, found string",
    ),
    (PROMOTION, '{"id":1,"useCount":"1"}', "useCount: expected integer, found string"),
    *((PROMOTION, f'{{"id":1,"useCount":{count}}}', LONG) for count in (9223372036854775808, 1.5)),
    (PRICE_LIST, '{"id":"a","adjustmentValue":"1e29"}', f"adjustmentValue: {LARGE}"),
    (
        PRICE_LIST,
        '{"id":"a","adjustmentValue":"1,5"}',
        "adjustmentValue: expected decimal, found another string",
    ),
    (PLACED, '{"id":1,"place":"a"}', "place: expected object, found string"),
    (PLACED, '{"id":1,"place":[]}', "place: expected object, found array"),
    (CUSTOMER, '{"id":1,"erpCode":{}}', "erpCode: expected string, found object"),
    (CUSTOMER, '{"id":1,"erpCode":{"Ana":"\\u0000"}}', "erpCode: expected string, found object"),
    (PLACED, '{"id":1,"any":{"x":["\\u0000"]}}', "any.x[]: a NUL character"),
    (LISTED, '{"id":1,"lists":[null]}', "lists[]: expected identifier, found null"),
    (LISTED, '{"id":1,"tags":"a"}', "tags: expected array, found string"),
]


@pytest.mark.parametrize(("record", "row", "reported"), REASONS)
def test_a_row_that_is_not_of_the_contract_is_put_aside(
    record: Record, row: str, reported: str
) -> None:
    assert reason(record, row) == reported


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ('"33.333333333333336"', "33.333333333"),
        ("33.33333333350", "33.333333334"),
        ('"-1.5E-10"', "0"),
        ('"5e-10"', "0.000000001"),
    ],
)
def test_a_decimal_that_is_rounded_does_not_cost_its_price_list(written: str, kept: str) -> None:
    decoded = one(PRICE_LIST, f'{{"id":"a","adjustmentValue":{written}}}')
    (row,) = decoded.tables["price_lists"].to_pylist()
    assert row["adjustment_value"] == Decimal(kept)
    assert row["_extra"] == f'{{"adjustmentValue":{written}}}'
    assert not decoded.observations


@pytest.mark.parametrize(
    ("field", "written", "kept", "kind"),
    [
        ("birthdate", '""', None, "string"), ("birthdate", '"2023-02-29"', None, "string"),
        ("birthdate", '"0000-01-01"', None, "string"), ("birthdate", '"1/2/1980"', None, "string"),
        ("phone", "1.50", "1.5", "number"),
    ],
)  # fmt: skip
def test_an_optional_text_or_date_of_another_type_does_not_cost_its_customer(
    field: str, written: str, kept: object, kind: str
) -> None:
    decoded = one(CUSTOMER, f'{{"id":1,"x":[1],"{field}":{written}}}')
    assert decoded.quarantined == []
    (row,) = decoded.tables["customers"].to_pylist()
    assert (row["id"], row[snake(field)]) == ("1", kept)
    assert row["_extra"] == f'{{"{field}":{written},"x":[1]}}'
    what = f"customers.{field}: not of the interface's type, original in _extra"
    assert decoded.observations == Counter(
        {(what, kind): 1, ("customers: field not in the interface", "x"): 1}
    )


def test_mistyped_fields_in_every_combination_stay_on_the_fast_path() -> None:
    fields = {"phone": 7, "erpCode": 7, "birthdate": ""}
    rows = [
        {"id": n, **{name: fields[name] for bit, name in enumerate(fields) if n >> bit & 1}}
        for n in range(8)
    ]
    pages = [
        page(*rows),
        page({"id": 9, "birthdate": "1980-02-29", "phone": 9}, number=2),
        page(number=3),
    ]
    fast = columnar(table_schema(CUSTOMER), pages)
    assert fast is not None
    pages.append(
        page({"id": 10, "email": True}, {"id": 11, "documents": [{"x": 1}], "tier": 1}, 7, number=4)
    )
    whole, exact = (
        decode(CUSTOMER, pages),
        [by_rows(table_schema(CUSTOMER), part) for part in pages],
    )
    for name, table in whole.tables.items():
        assert table == pa.concat_tables([part.tables[name] for part in exact])
        assert fast.tables[name] == pa.concat_tables([part.tables[name] for part in exact[:3]])
    assert whole.observations == sum((part.observations for part in exact), Counter())
    assert [(row.page, row.position) for row in whole.quarantined] == [(4, 1), (4, 3)]
    extra = fast.tables["customers"]["_extra"].to_pylist()
    assert (extra[0], extra[3], len(set(extra[:8]))) == (None, '{"erpCode":7,"phone":7}', 8)
    decoded = one(CUSTOMER, '{"id":1,"documents":[{"number":12345678},{"number":"007"}]}')
    lines = decoded.tables["customers__documents"].select(["number", "_extra"]).to_pylist()
    assert lines == [
        {"number": "12345678", "_extra": '{"number":12345678}'},
        {"number": "007", "_extra": None},
    ]


def test_a_row_put_aside_reports_where_it_was_and_nothing_of_it() -> None:
    rows = b'[{"id":1},{"id":2.0,"erpCode":[12345]}]'
    decoded = decode(CUSTOMER, [page({"id": 9}, number=6), Page(7, rows)])
    assert decoded.tables["customers"]["id"].to_pylist() == ["9", "1"]
    (row,) = decoded.quarantined
    assert (row.page, row.position, row.key) == (7, 2, "2")
    assert row.row == b'{"id":2.0,"erpCode":[12345]}'
    assert row.row_hash == sha256(row.row).hexdigest()
    assert "12345" not in repr(row)


def test_passwords_that_a_platform_lists_are_masked() -> None:
    secrets = '"password":"hunter2","Contraseña":{"hash":"hunter2"},"user_pwd":"hunter2"'
    inner = '"logins":[{"at":1.50,"passwd":"hunter2"},"none"]'
    decoded = one(CUSTOMER, f'{{"id":1,{secrets},{inner},"passport":"X1","password_set":true}}')
    (extra,) = decoded.tables["customers"]["_extra"].to_pylist()
    assert json.loads(extra) == {
        **dict.fromkeys(("password", "Contraseña", "user_pwd"), "***"),
        "logins": [{"at": 1.5, "passwd": "***"}, "none"],
        "passport": "X1",
        "password_set": True,
    }
    assert '"at":1.50' in extra


def test_fields_beside_the_contract_are_kept_and_absent_ones_observed() -> None:
    row = '{"id":1,"tier":1.50,"documents":[{"number":"1"},{"x":{"y": [1e2]}}],"año":"\\u00e9"}'
    decoded = one(CUSTOMER, row)
    assert decoded.tables["customers"]["_extra"].to_pylist() == ['{"año":"\\u00e9","tier":1.50}']
    assert decoded.tables["customers__documents"]["_extra"].to_pylist() == [
        None,
        '{"x":{"y": [1e2]}}',
    ]
    found = (("customers", "tier"), ("customers", "año"), ("customers__documents", "x"))
    assert decoded.observations == Counter(
        (f"{table}: field not in the interface", name) for table, name in found
    )
    assert columnar(table_schema(CUSTOMER), [Page(1, f"[{row}]".encode())]) is not None
    decoded = one(
        PROMOTION, '{"id":1,"name":"a","isActive":true,"startDate":null,"expirationDate":"b"}'
    )
    absent = "required by the interface, absent or null"
    assert decoded.observations == Counter(
        (f"promotions.{name}: {absent}", "") for name in ("useCount", "startDate")
    )


@pytest.mark.parametrize(
    "rows",
    [
        b"",
        b"null",
        b"{}",
        b"[1,]",
        b"[1] 2",
        b"[]]",
        b'[]}\n{"rows":[]',
        b'[{"id":2}]}\n{"rows":[{"id":3}]',
    ],
)
def test_a_page_that_is_no_array_breaks_the_contract(rows: bytes) -> None:
    with pytest.raises(ContractBroken, match="page 3"):
        decode(CUSTOMER, [page({"id": 1}), Page(3, rows)])


def test_line_ends_between_fields_mean_nothing() -> None:
    rows = [{"id": n, "documents": [{"number": "1"}]} for n in range(9)]
    # more than a block of the parser
    rows += [{"id": n, "firstName": "x" * 500_000} for n in range(9, 12)]
    spaced, plain = (
        [
            Page(n, json.dumps(half, indent=by).encode())
            for n, half in enumerate((rows[:10], rows[10:]))
        ]
        for by in (2, None)
    )
    assert (
        columnar(table_schema(CUSTOMER), spaced)
        == columnar(table_schema(CUSTOMER), plain)
        is not None
    )


BAD_VALUES = {
    b'"\xff"': "row: not UTF-8",
    b'"\\ud83d"': "row: a lone surrogate",
    b"NaN": "row: NaN or Infinity, which JSON does not allow",
    **dict.fromkeys((b'"a\x01b"', b"tru"), "row: not JSON"),
}


@pytest.mark.parametrize("value", BAD_VALUES)
@pytest.mark.parametrize("field", [b"firstName", b"tier"])
def test_one_bad_row_costs_no_other(field: bytes, value: bytes) -> None:
    rows = b'[{"id":1},{"id":2,"' + field + b'":' + value + b'},{"id":3,"firstName":"a,]}"}]'
    decoded = decode(CUSTOMER, [page({"id": 0}), Page(2, rows)])
    assert decoded.tables["customers"]["id"].to_pylist() == ["0", "1", "3"]
    assert [(row.page, row.position, row.reason) for row in decoded.quarantined] == [
        (2, 2, BAD_VALUES[value])
    ]


def test_names_of_columns() -> None:
    names = {"priceListId": "price_list_id", "SKU": "sku", "taxID2": "tax_id2", "a-b c": "a_b_c"}
    names |= {"2x": "_2x", "-": "field"}
    assert {name: snake(name) for name in names} == names
    keys = {
        "customers": "customer_id",
        "branches": "branch_id",
        "taxes": "tax_id",
        "stocks": "stock_id",
    }
    assert {plural: parent_key(Record(plural, ())) for plural in keys} == keys


@pytest.mark.parametrize("levels", [101, 1_500, 50_000])
@pytest.mark.parametrize("value", ["[]", '{"x":}'], ids=["arrays", "objects"])
def test_nesting_costs_no_more_than_its_row(levels: int, value: str) -> None:
    nested = f"{value[:-1] * levels}1{value[-1] * levels}"
    deep = Page(2, f'[{{"id":2,"x":{nested}}},{{"id":3}}]'.encode())
    decoded = decode(CUSTOMER, [page({"id": 1}), deep])
    assert decoded.tables["customers"]["id"].to_pylist() == ["1", "3"]
    assert [(row.page, row.position) for row in decoded.quarantined] == [(2, 1)]
    assert decoded.quarantined[0].reason == "row: nested more than 100 levels deep"
