"""Tables are the same whatever the number of parts they are made in, and whatever the row numbers of the raw ones."""

from __future__ import annotations

import pytest
from pandas.testing import assert_frame_equal

from pipelines.reconcile.order_totals import reconcile_lines
from tests.pipelines.reconcile.in_parts import build_of, customers, found_in, orders, rows_of
from tests.pipelines.reconcile.raw_records import AS_OF, FIELDS, RAW_ORDERS, RawRecords
from transforms.customers import LISTED_PRICE_LISTS, RAW_CUSTOMERS
from transforms.dates import DateContext
from transforms.documents import RAW_DOCUMENTS
from transforms.frames import BIGINT, TEXT, TIMESTAMP, frame
from transforms.order_fields import OrderFields


@pytest.mark.parametrize(("seed", "part_rows"), [(0, 4), (1, 4), (2, 1)])
def test_customers_and_orders_are_the_same_in_any_number_of_parts(seed: int, part_rows: int) -> None:
    raw = RawRecords(seed)
    context = DateContext(AS_OF, timezone=raw.timezone)
    lists = [{name: row[name] for name in LISTED_PRICE_LISTS} for row in raw.price_lists]
    known, held = frame(RAW_CUSTOMERS, raw.customers), frame({"customer_id": TEXT, **RAW_DOCUMENTS}, raw.documents)
    whole, made = (
        customers(known, held, frame(LISTED_PRICE_LISTS, lists), context, "a gap", part_rows=number)
        for number in (10**6, part_rows)
    )
    assert_frame_equal(made.customers, whole.customers)
    assert_frame_equal(made.findings, whole.findings)
    assert made.form == whole.form
    rows = frame(RAW_ORDERS, raw.orders)
    all_orders, in_parts = (
        orders(rows, whole.customers, FIELDS, context, last_matched_share=1.0, part_rows=number)
        for number in (10**6, part_rows)
    )
    assert_frame_equal(in_parts.orders, all_orders.orders)
    assert_frame_equal(in_parts.findings, all_orders.findings)
    assert in_parts[2:] == all_orders[2:]


def test_documents_are_those_of_their_customers_in_a_shorter_last_part_too() -> None:
    names = [f"c{n}" for n in range(5)]
    held = [{"customer_id": name, "position": 1, "number": name.upper(), "is_default": True} for name in names]
    made = customers(
        frame(RAW_CUSTOMERS, [{"id": name} for name in names]),
        frame({"customer_id": TEXT, **RAW_DOCUMENTS}, held),
        frame(LISTED_PRICE_LISTS, []),
        DateContext(AS_OF),
        part_rows=3,
    )
    assert made.customers["default_document_number"].tolist() == [name.upper() for name in names]


def test_a_raw_column_that_hides_the_numbers_of_rows_is_passed_on_under_another_name() -> None:
    rows = [{"id": one, "rowid": f"r{one}", "money": "EUR"} for one in ("b", "a", "c")]
    raw = frame({**RAW_ORDERS, "rowid": TEXT}, rows)
    known = frame({"customer_id": TEXT, "erp_code": TEXT}).assign(is_missing=False)
    made = orders(raw, known, OrderFields(currency="money"), DateContext(AS_OF))
    assert made.orders["raw_rowid"].tolist() == ["ra", "rb", "rc"]
    assert made.findings.empty


@pytest.mark.parametrize("part_rows", [1, 2, 10**6])
def test_lines_are_read_beside_rows_that_were_deleted_and_as_all_of_them_prove(part_rows: int) -> None:
    amounts = ["1.500", "2", "1.234", "x", "1.75"]
    line = {"order_id": TEXT, "position": BIGINT, "sku": TEXT, "price": TEXT, "_missing_since": TIMESTAMP}
    lines = frame(
        line, [{"order_id": f"o{n % 2}", "position": n, "sku": f"s{n}", "price": p} for n, p in enumerate(amounts)]
    )
    made = orders(
        frame(RAW_ORDERS, [{"id": f"o{n}", "placed_at": "2026-01-01"} for n in range(2)]),
        frame({"customer_id": TEXT, "erp_code": TEXT}).assign(is_missing=False),
        FIELDS,
        DateContext(AS_OF),
    )
    with build_of(part_rows, raw__orders__lines=lines, reconciled__orders=made.orders) as tables:
        tables.build.execute("DELETE FROM raw.orders__lines WHERE sku = 's1'")
        assert reconcile_lines(tables, "orders__lines") == 4
        found = rows_of(tables, "reconciled.order_lines", "line_number")
        details = found_in(tables)["detail"].tolist()
    assert found["product"].tolist() == ["s0", "s2", "s3", "s4"]
    assert [None if str(one) == "<NA>" else float(one) for one in found["unit_price"]] == [1.5, 1.234, None, 1.75]
    assert details == ["unit_price: 1 of 4 values"]
