"""The columns of records that the interface describes: what they hold, what is refused, and that all ways agree."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from decimal import Decimal
from hashlib import sha256

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sources.contract import CUSTOMER, PRICE_LIST, PROMOTION, Field, Record
from sources.decode.documented import by_rows, columnar, decode
from sources.decode.rows import Decoded, Page
from sources.decode.table_schema import schema_of, snake, table_schema
from sources.errors import ContractBroken


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


INVOICE = Record("invoices", (Field("id", "identifier", required=True), Field("total", "number")), key="id")


@pytest.mark.parametrize(
    ("value", "held"),
    [
        ("10.5", "10.5"), ("3", "3"), ("-0", "0"), ("1e3", "1000"), ("1.5E-2", "0.015"), ("1.10", "1.1"),
        ("123456789012345678901234567890.5", None), ("1234567890123456789012345678.000000001",) * 2,
        ("0.1234567891", None), ("1e400", None), ("true", None), ("[]", None),
        ('"10.5"', "10.5"), ('"010"', "10"), ('"+1"', None), ('"1e3"', None), ('"1."', None), ('" 1"', None),
    ],
)  # fmt: skip
def test_a_number_is_an_exact_decimal_or_refused(value: str, held: str | None) -> None:
    text = f'{{"id":1,"total":{value}}}'
    if held is None:
        assert reason(INVOICE, text).startswith("total: expected ")
    else:
        assert cell(INVOICE, text, "total") == Decimal(held)


@given(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.decimals(places=2), st.text("0123456789.+-eE ")))
def test_numbers_are_read_alike_by_both_ways(value: object) -> None:
    one(INVOICE, f'{{"id":1,"total":{json.dumps(value) if isinstance(value, str) else value}}}')


def test_every_field_of_the_interface_has_a_column() -> None:
    schemas = schema_of(CUSTOMER)
    assert list(schemas) == ["customers", "customers__documents"]
    assert schemas["customers"].names == [
        *("id", "first_name", "last_name", "phone", "email", "login_code", "created_at", "price_list_id", "erp_code"),
        *("birthdate", "_extra", "_page", "_position"),
    ]
    assert schemas["customers__documents"].names == [
        *("customer_id", "position", "number", "fiscal_name", "fiscal_address", "email", "is_default", "for_taxes"),
        *("_extra", "_page", "_position"),
    ]
    assert schema_of(PRICE_LIST)["price_lists"].field("adjustment_value").type == pa.decimal128(38, 9)


def test_a_batch_is_read_at_once() -> None:
    pages = [
        page({"id": 1, "birthdate": "1980-02-29", "documents": [{"number": "007"}, {"number": "8"}]}),
        page(number=2),
        page({"id": 2, "documents": []}, {"id": 3, "erpCode": "007", "documents": [{"isDefault": True}]}, number=3),
    ]
    decoded = columnar(table_schema(CUSTOMER), pages)
    assert decoded is not None
    customers, documents = decoded.tables["customers"], decoded.tables["customers__documents"]
    assert customers["id"].to_pylist() == ["1", "2", "3"]
    assert customers["_page"].to_pylist() == [1, 3, 3]
    assert customers["_position"].to_pylist() == [1, 1, 2]
    assert customers["birthdate"].to_pylist() == [date(1980, 2, 29), None, None]
    assert documents.select(["customer_id", "position", "number", "_page", "_position"]).to_pylist() == [
        {"customer_id": "1", "position": 1, "number": "007", "_page": 1, "_position": 1},
        {"customer_id": "1", "position": 2, "number": "8", "_page": 1, "_position": 1},
        {"customer_id": "3", "position": 1, "number": None, "_page": 3, "_position": 2},
    ]


def test_no_pages_give_empty_tables() -> None:
    assert {name: table.schema for name, table in decode(CUSTOMER, []).tables.items()} == schema_of(CUSTOMER)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        pytest.param("1", "1", id="integer"),
        pytest.param("1.0", "1", id="integer with a fraction of nothing"),
        pytest.param("1e3", "1000", id="exponent"),
        pytest.param("1.50", "1.5", id="fraction"),
        pytest.param("-0", "0", id="negative zero"),
        pytest.param("9007199254740993", "9007199254740993", id="beyond a double"),
        pytest.param("9" * 60, "9" * 60, id="beyond 128 bits"),
        pytest.param('"007"', "007", id="text with zeros"),
        pytest.param('"1.0"', "1.0", id="text is as it came"),
        pytest.param('"LIST-B"', "LIST-B", id="text"),
    ],
)
@pytest.mark.parametrize("record", [CUSTOMER, PRICE_LIST], ids=lambda record: record.name)
def test_identifiers_are_canonical_text(record: Record, written: str, kept: str) -> None:
    assert cell(record, f'{{"id":{written}}}', "id") == kept


@pytest.mark.parametrize(
    ("record", "row", "reported"),
    [
        pytest.param(CUSTOMER, "{}", "id: expected an identifier, found nothing", id="no key"),
        pytest.param(CUSTOMER, '{"id":null}', "id: expected an identifier, found null", id="null key"),
        pytest.param(CUSTOMER, '{"id":""}', "id: expected an identifier, found empty string", id="empty key"),
        pytest.param(CUSTOMER, '{"id":true}', "id: expected identifier, found boolean", id="boolean key"),
        pytest.param(CUSTOMER, '{"id":{}}', "id: expected identifier, found object", id="object key"),
        pytest.param(CUSTOMER, '{"id":1e999999}', "id: a number too long for an identifier", id="endless key"),
        pytest.param(CUSTOMER, '{"id":1,"erpCode":true}', "erpCode: expected string, found boolean", id="boolean code"),
        pytest.param(CUSTOMER, '{"id":1,"id":2}', "row: a field occurs twice in one object", id="key twice"),
        pytest.param(CUSTOMER, '{"id":1,"x":2,"x":2}', "row: a field occurs twice in one object", id="extra twice"),
        pytest.param(
            CUSTOMER, '{"id":1,"\\u0069d":1}', "row: a field occurs twice in one object", id="twice by an escape"
        ),
        pytest.param(
            CUSTOMER,
            '{"id":1,"x":{"y":1,"y":1}}',
            "row: a field occurs twice in one object",
            id="twice inside an unknown field",
        ),
        pytest.param(CUSTOMER, '{"id":1,"email":"a\\u0000"}', "email: a NUL character", id="NUL"),
        pytest.param(CUSTOMER, '{"id":1,"email":"\\ud800"}', "row: a lone surrogate", id="lone surrogate"),
        pytest.param(CUSTOMER, '{"id":1,"x":NaN}', "row: NaN or Infinity, which JSON does not allow", id="NaN"),
        pytest.param(CUSTOMER, "null", "row: expected object, found null", id="null row"),
        pytest.param(CUSTOMER, "[1]", "row: expected object, found array", id="array row"),
        pytest.param(
            CUSTOMER, '{"id":1,"priceListId":1e2000}', "priceListId: a number too long for an identifier", id="long"
        ),
        pytest.param(
            CUSTOMER, '{"id":1,"birthdate":7}', "birthdate: expected date YYYY-MM-DD, found number", id="number as date"
        ),
        pytest.param(
            CUSTOMER, '{"id":1,"documents":{}}', "documents: expected array, found object", id="documents no array"
        ),
        pytest.param(
            CUSTOMER, '{"id":1,"documents":[null]}', "documents[]: expected object, found null", id="null document"
        ),
        pytest.param(
            CUSTOMER,
            '{"id":1,"documents":[{"isDefault":"yes"}]}',
            "documents[].isDefault: expected boolean, found string",
            id="document of another type",
        ),
        pytest.param(
            PROMOTION, '{"id":1,"useCount":"1"}', "useCount: expected integer, found string", id="count as text"
        ),
        pytest.param(
            PROMOTION,
            '{"id":1,"useCount":9223372036854775808}',
            "useCount: expected integer, found a number with a fraction or beyond 64 bits",
            id="2^63",
        ),
        pytest.param(
            PRICE_LIST,
            '{"id":"a","adjustmentValue":"0.0000000001"}',
            "adjustmentValue: expected decimal, found more than 9 decimals or 29 digits",
            id="ten decimals",
        ),
        pytest.param(
            PRICE_LIST,
            '{"id":"a","adjustmentValue":"1,5"}',
            "adjustmentValue: expected decimal, found another string",
            id="decimal comma",
        ),
    ],
)
def test_a_row_that_is_not_of_the_contract_is_put_aside(record: Record, row: str, reported: str) -> None:
    assert reason(record, row) == reported


@pytest.mark.parametrize(
    ("field", "written", "kept", "kind"),
    [
        pytest.param("birthdate", '""', None, "string", id="empty date"),
        pytest.param("birthdate", '"1980-02-29T00:00:00Z"', None, "string", id="date with a time"),
        pytest.param("birthdate", '"2023-02-29"', None, "string", id="no such day"),
        pytest.param("birthdate", '"0000-01-01"', None, "string", id="year zero"),
        pytest.param("birthdate", '"1/2/1980"', None, "string", id="another form of date"),
        pytest.param("birthdate", '"19800201"', None, "string", id="date without hyphens"),
        pytest.param("phone", "34600111222", "34600111222", "number", id="number as phone"),
        pytest.param("phone", "1.50", "1.5", "number", id="fraction as phone"),
        pytest.param("erpCode", "-0", "0", "number", id="number as code"),
    ],
)
def test_an_optional_text_or_date_of_another_type_does_not_cost_its_customer(
    field: str, written: str, kept: object, kind: str
) -> None:
    decoded = one(CUSTOMER, f'{{"id":1,"x":[1],"{field}":{written}}}')
    assert decoded.quarantined == []
    (row,) = decoded.tables["customers"].to_pylist()
    assert (row["id"], row[snake(field)]) == ("1", kept)
    assert row["_extra"] == f'{{"{field}":{written},"x":[1]}}'
    what = f"customers.{field}: not of the interface's type, original in _extra"
    assert decoded.observations == Counter({(what, kind): 1, ("customers: field not in the interface", "x"): 1})


def test_customers_without_a_birthdate_stay_on_the_fast_path() -> None:
    rows = [
        {"id": 1, "birthdate": "", "phone": 34600111222},
        {"id": 2, "birthdate": "1980-02-29", "phone": 7, "tier": 1},
        {"id": 3, "phone": 8, "documents": [{"number": "1"}]},
    ]
    pages = [page(*rows), page({"id": 4, "birthdate": "1980-02-29", "phone": 9}, {"id": 5, "birthdate": "?"}, number=2)]
    fast = columnar(table_schema(CUSTOMER), pages)
    assert fast is not None
    exact = [by_rows(table_schema(CUSTOMER), part) for part in pages]
    for name, table in fast.tables.items():
        assert table == pa.concat_tables([part.tables[name] for part in exact])
    assert fast.observations == exact[0].observations + exact[1].observations


def test_every_combination_of_mistyped_fields_stays_on_the_fast_path() -> None:
    fields = ("phone", "erpCode", "loginCode")
    only = page(*({"id": n, **{field: 7 for bit, field in enumerate(fields) if n >> bit & 1}} for n in range(8)))
    fast = columnar(table_schema(CUSTOMER), [only])
    assert fast is not None
    assert fast == by_rows(table_schema(CUSTOMER), only)
    extra = fast.tables["customers"]["_extra"].to_pylist()
    assert (extra[0], extra[5], len(set(extra))) == (None, '{"loginCode":7,"phone":7}', 8)


def test_a_document_with_a_numeric_number_keeps_it() -> None:
    decoded = one(CUSTOMER, '{"id":1,"documents":[{"number":12345678},{"number":"007"}]}')
    lines = decoded.tables["customers__documents"].select(["number", "_extra"]).to_pylist()
    assert lines == [{"number": "12345678", "_extra": '{"number":12345678}'}, {"number": "007", "_extra": None}]


def test_a_row_put_aside_reports_where_it_was_and_nothing_of_it() -> None:
    rows = b'[{"id":1},{"id":2.0,"erpCode":[12345]}]'
    decoded = decode(CUSTOMER, [page({"id": 9}, number=6), Page(7, rows)])
    assert decoded.tables["customers"]["id"].to_pylist() == ["9", "1"]
    (row,) = decoded.quarantined
    assert (row.page, row.position, row.key) == (7, 2, "2")
    assert row.row == b'{"id":2.0,"erpCode":[12345]}'
    assert row.row_hash == sha256(row.row).hexdigest()
    assert "12345" not in repr(row)


@pytest.mark.parametrize("where", ["email", "elsewhere"])
def test_bytes_that_are_not_utf_8_cost_their_row(where: str) -> None:
    rows = b'[{"id":1},{"id":2,"' + where.encode() + b'":"\xff"},{"id":3}]'
    decoded = decode(CUSTOMER, [Page(1, rows)])
    assert decoded.tables["customers"]["id"].to_pylist() == ["1", "3"]
    assert [row.reason for row in decoded.quarantined] == ["row: not UTF-8"]


@pytest.mark.parametrize(
    ("written", "kept"),
    [("1.0", 1), ("1e2", 100), ("-0", 0), ("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63))],
)
def test_whole_numbers_are_integers_however_written(written: str, kept: int) -> None:
    assert cell(PROMOTION, f'{{"id":1,"useCount":{written}}}', "use_count") == kept


@pytest.mark.parametrize("written", ['"-1.500000001"', "-1.500000001"], ids=["text", "number"])
def test_a_decimal_is_exact(written: str) -> None:
    value = cell(PRICE_LIST, f'{{"id":"a","adjustmentValue":{written}}}', "adjustment_value")
    assert value == Decimal("-1.500000001")


def test_fields_beside_the_contract_are_kept_as_they_came() -> None:
    row = '{"id":1,"tier":1.50,"documents":[{"number":"1"},{"x":{"y": [1e2]}}],"año":"\\u00e9"}'
    decoded = one(CUSTOMER, row)
    assert decoded.tables["customers"]["_extra"].to_pylist() == ['{"año":"\\u00e9","tier":1.50}']
    assert decoded.tables["customers__documents"]["_extra"].to_pylist() == [None, '{"x":{"y": [1e2]}}']
    assert decoded.observations == Counter(
        {
            ("customers: field not in the interface", "tier"): 1,
            ("customers: field not in the interface", "año"): 1,
            ("customers__documents: field not in the interface", "x"): 1,
        }
    )
    assert columnar(table_schema(CUSTOMER), [Page(1, f"[{row}]".encode())]) is not None


@pytest.mark.parametrize(
    "name", ['a\\"', "a\\\\", "a\\n", "", "__proto__"], ids=["quote", "backslash", "line end", "none", "odd"]
)
def test_fields_beside_the_contract_may_have_any_name(name: str) -> None:
    assert cell(CUSTOMER, f'{{"id":1,"{name}":[1,\n2]}}', "_extra") == f'{{"{name}":[1,\n2]}}'


def test_a_list_of_nulls_beside_the_contract_is_kept() -> None:
    # pyarrow's JSON reader makes an array of it whose offsets point past its end
    read = decode(CUSTOMER, [page({"id": 1, "tags": [None, None]}, {"id": 2, "tags": [None]})])
    assert read.quarantined == []
    assert read.tables["customers"]["_extra"].to_pylist() == ['{"tags":[null, null]}', '{"tags":[null]}']


def test_a_required_field_that_is_absent_is_observed() -> None:
    decoded = one(PROMOTION, '{"id":1,"name":"a","isActive":true,"startDate":null,"expirationDate":"b"}')
    absent = "required by the interface, absent or null"
    assert decoded.observations == Counter(
        {(f"promotions.useCount: {absent}", ""): 1, (f"promotions.startDate: {absent}", ""): 1}
    )


@pytest.mark.parametrize(
    "rows", [b"", b"null", b"{}", b"[1", b"[1,]", b"[1 2]", b"[]]", b'[]}\n{"rows":[]'], ids=lambda rows: repr(rows)
)
def test_a_page_that_is_no_array_breaks_the_contract(rows: bytes) -> None:
    with pytest.raises(ContractBroken, match="page 3"):
        decode(CUSTOMER, [Page(3, rows)])


def test_line_ends_between_fields_mean_nothing() -> None:
    pretty = Page(1, json.dumps([{"id": n, "documents": [{"number": "1"}]} for n in range(9)], indent=2).encode())
    plain = Page(1, json.dumps([{"id": n, "documents": [{"number": "1"}]} for n in range(9)]).encode())
    assert columnar(table_schema(CUSTOMER), [pretty]) == columnar(table_schema(CUSTOMER), [plain]) is not None


@pytest.mark.parametrize("levels", [101, 900, 1_500, 50_000])
@pytest.mark.parametrize("value", ["[]", '{"x":}'], ids=["arrays", "objects"])
def test_nesting_costs_no_more_than_its_row(levels: int, value: str) -> None:
    nested = f"{value[:-1] * levels}1{value[-1] * levels}"
    deep = Page(2, f'[{{"id":2,"x":{nested}}},{{"id":3}}]'.encode())
    decoded = decode(CUSTOMER, [page({"id": 1}), deep])
    assert decoded.tables["customers"]["id"].to_pylist() == ["1", "3"]
    assert [(row.page, row.position) for row in decoded.quarantined] == [(2, 1)]
    assert decoded.quarantined[0].reason == "row: nested more than 100 levels deep"


def test_nesting_within_the_bound_is_kept() -> None:
    nested = "[" * 99 + "]" * 99
    assert cell(CUSTOMER, f'{{"id":1,"x":{nested}}}', "_extra") == f'{{"x":{nested}}}'


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        (b'"\\ud83d"', "row: a lone surrogate"),
        (b"NaN", "row: NaN or Infinity, which JSON does not allow"),
        (b'"a\x01b"', "row: not JSON"),
        (b'"a\nb"', "row: not JSON"),
        (b"01", "row: not JSON"),
        (b"tru", "row: not JSON"),
    ],
)
@pytest.mark.parametrize("field", [b"firstName", b"tier"])
def test_one_bad_row_costs_no_other(field: bytes, value: bytes, reported: str) -> None:
    rows = b'[{"id":1},{"id":2,"' + field + b'":' + value + b'},{"id":3,"firstName":"a,]}"}]'
    decoded = decode(CUSTOMER, [page({"id": 0}), Page(2, rows)])
    assert decoded.tables["customers"]["id"].to_pylist() == ["0", "1", "3"]
    assert [(row.page, row.position, row.reason) for row in decoded.quarantined] == [(2, 2, reported)]


@pytest.mark.parametrize(
    ("name", "column"),
    [("priceListId", "price_list_id"), ("id", "id"), ("SKU", "sku"), ("taxID2", "tax_id2"), ("a-b c", "a_b_c")],
)
def test_names_of_columns(name: str, column: str) -> None:
    assert snake(name) == column


# --- laws ----------------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
PLAIN = st.text(st.characters(categories=["L", "N"], include_characters="-_ $/"), max_size=4).map("x{}".format)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=3,
)
CLEAN_DOCUMENT = {"number": TEXT | st.none(), "fiscalName": TEXT, "isDefault": st.booleans() | st.none()}
CLEAN = st.fixed_dictionaries(
    {"id": st.integers(-(2**63), 2**63 - 1)},
    optional={
        "email": TEXT | st.none(),
        "priceListId": st.integers(0, 2**63 - 1) | st.none(),
        "birthdate": st.dates().map(str) | st.none(),
        "documents": st.lists(st.fixed_dictionaries({}, optional=CLEAN_DOCUMENT), max_size=2) | st.none(),
    },
)
BESIDE = st.tuples(CLEAN, PLAIN).map(lambda pair: {**pair[0], pair[1]: 1.5})
ODD = st.tuples(CLEAN, st.dictionaries(TEXT, ANY, max_size=3)).map(lambda pair: {**pair[1], **pair[0]})
DIRTY = st.fixed_dictionaries(
    {"id": ANY}, optional={"email": ANY, "priceListId": ANY, "birthdate": ANY, "documents": ANY, "tier": ANY}
)


def pages_of(rows: list[object], sizes: list[int]) -> list[Page]:
    pages: list[Page] = []
    rest = rows
    for size in [*sizes, len(rows)]:
        pages.append(page(*rest[:size], number=len(pages) + 1))
        rest = rest[size:]
    return pages


@settings(deadline=None)
@given(st.lists(CLEAN | BESIDE, max_size=6), st.lists(st.integers(0, 3), max_size=3))
def test_the_quick_way_takes_clean_rows_and_agrees_with_the_exact_one(rows: list[object], sizes: list[int]) -> None:
    pages = pages_of(rows, sizes)
    quick = columnar(table_schema(CUSTOMER), pages)
    assert quick is not None
    parts = [by_rows(table_schema(CUSTOMER), part) for part in pages]
    for name, table in quick.tables.items():
        assert table == pa.concat_tables([part.tables[name] for part in parts])
    assert quick.observations == sum((part.observations for part in parts), Counter())


@settings(deadline=None)
@given(st.lists(CLEAN | BESIDE | DIRTY | ODD | ANY, max_size=6), st.lists(st.integers(0, 3), max_size=3))
def test_batches_do_not_change_what_is_read(rows: list[object], sizes: list[int]) -> None:
    pages = pages_of(rows, sizes)
    whole = decode(CUSTOMER, pages)
    parts = [by_rows(table_schema(CUSTOMER), part) for part in pages]
    assert whole.quarantined == [row for part in parts for row in part.quarantined]
    assert whole.tables["customers"].num_rows + len(whole.quarantined) == len(rows)
    assert whole.observations == sum((part.observations for part in parts), Counter())
    for name, table in whole.tables.items():
        assert table == pa.concat_tables([part.tables[name] for part in parts])
