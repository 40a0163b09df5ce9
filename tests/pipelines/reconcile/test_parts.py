"""Tables are the same whatever the number of parts they are made in, and whatever the row numbers of the raw ones."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from typing import Any, Final

import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

from orderbridge.pipelines.reconcile.orders import statuses as order_statuses
from orderbridge.pipelines.reconcile.orders.lines import RawLines, read_lines
from orderbridge.pipelines.reconcile.orders.orders import RawOrders
from orderbridge.pipelines.reconcile.orders.totals import reconcile_lines
from orderbridge.transforms.customers import LISTED_PRICE_LISTS, RAW_CUSTOMERS
from orderbridge.transforms.documents import RAW_DOCUMENTS
from orderbridge.transforms.frames import BIGINT, TEXT, TIMESTAMP, frame
from orderbridge.transforms.orders.fields import LineUnits, OrderFields
from orderbridge.transforms.orders.line_fields import choose_line_fields
from orderbridge.transforms.questions import Answer
from orderbridge.transforms.values.dates import DateContext
from orderbridge.transforms.values.keys import BOOKKEEPING
from tests.pipelines.reconcile.in_parts import build_of, customers, found_in, orders, rows_of
from tests.transforms.rows import values

AS_OF: Final = datetime(2026, 3, 29, 12, tzinfo=UTC)
ORDER_TEXTS: Final = ("client_id", "placed_at", "status", "money")
RAW_ORDERS: Final = {
    "id": TEXT,
    **dict.fromkeys(ORDER_TEXTS, TEXT),
    "total": pa.float64(),
    **BOOKKEEPING,
}
NOBODY: Final = frame({"customer_id": TEXT, "erp_code": TEXT}).assign(is_missing=False)
IDS: Final = Answer("ids", "config.toml")
FIELDS: Final = OrderFields("client_id", "placed_at", "total", "status", "money")
DATES: Final = (
    None,
    "",
    "soon",
    "2026-02-30",
    "9999-12-31",
    "2026-03-29",
    "2026-03-28T23:30",
    "2026-03-30 02:30:00Z",
)
DRAWN: Final[dict[str, tuple[Any, ...]]] = {
    # few values, so that ids, texts and references meet in many ways
    "_missing_since": (None, None, None, AS_OF), "first_name": (None, " ", "Ana"), "last_name": (None, "Ruiz", "Zoë"),
    "erp_code": (None, "", "E1", "E2", "e1", "E1 "), "login_code": (None, "E1", " E2"), "phone": (None, "600", "none"),
    "email": (None, "", "a@x.es", "A@X.es", "á@x.es", "a\u0301@x.es", "no"), "created_at": DATES, "placed_at": DATES,
    "price_list_id": (None, "1", "1.0", "2", "-1", "9"), "birthdate": (None, date(1906, 3, 28), date(2026, 3, 30)),
    "number": (None, "N1", "N1 ", "N2"), "is_default": (None, True, False), "for_taxes": (True, False),
    "client_id": (None, "0", "1", "3.0", " 5", "77", "x"), "status": (None, "paid", "Cancelled", "ANULADO"),
    "money": (None, "eur", "EUR", "USD"), "total": (None, 0.0, 10.5, -3.0, 0.1, 1e15),
}  # fmt: skip


@pytest.mark.parametrize(("seed", "part_rows"), [(0, 5), (2, 1)])
def test_customers_and_orders_are_the_same_in_any_number_of_parts(
    seed: int, part_rows: int
) -> None:
    """Of five rows, the last part has a few less: documents must still be those of their customers."""
    draw = random.Random(seed)

    def drawn(kinds: dict[str, pa.DataType], **known: Any) -> dict[str, Any]:
        return {name: draw.choice(DRAWN[name]) for name in kinds if name in DRAWN} | known

    context = DateContext(AS_OF, timezone=draw.choice((None, "America/Lima", "Europe/Madrid")))
    lists = frame(
        LISTED_PRICE_LISTS, [{"id": "1", "name": "Base"}, {"id": "2", "_missing_since": AS_OF}]
    )
    ids = draw.sample(range(10), 9)
    known = frame(RAW_CUSTOMERS, [drawn(RAW_CUSTOMERS, id=str(n)) for n in ids])
    papers = [
        drawn(RAW_DOCUMENTS, customer_id=str(draw.randrange(10)), position=n)
        for n in draw.sample(range(20), 12)
    ]
    held = frame({"customer_id": TEXT, **RAW_DOCUMENTS}, papers)
    whole, made = (
        customers(known, held, lists, context, "a gap", part_rows=number)
        for number in (10**6, part_rows)
    )
    assert_frame_equal(made.customers, whole.customers)
    assert_frame_equal(made.findings, whole.findings)
    assert made.form == whole.form
    rows = frame(RAW_ORDERS, [drawn(RAW_ORDERS, id=f"o{n:02}") for n in draw.sample(range(30), 25)])
    all_orders, in_parts = (
        orders(
            rows,
            whole.customers,
            FIELDS,
            context,
            last_matched_share=1.0,
            part_rows=number,
            notation=IDS,
        )
        for number in (10**6, part_rows)
    )
    assert_frame_equal(in_parts.orders, all_orders.orders)
    assert_frame_equal(in_parts.findings, all_orders.findings)
    assert in_parts[2:] == all_orders[2:]


def test_a_raw_column_that_hides_row_numbers_is_passed_on_under_another_name() -> None:
    rows = [{"id": one, "rowid": f"r{one}", "money": "EUR"} for one in ("b", "a", "c")]
    raw = frame({**RAW_ORDERS, "rowid": TEXT}, rows)
    made = orders(raw, NOBODY, OrderFields(currency="money"), DateContext(AS_OF))
    assert (made.orders["raw_rowid"].tolist(), len(made.findings)) == (["ra", "rb", "rc"], 0)


@pytest.mark.parametrize("part_rows", [2, 10**6])
def test_lines_are_read_beside_rows_that_were_deleted_and_as_all_of_them_prove(
    part_rows: int,
) -> None:
    amounts = ["1.500", "2", "1.234", "x", "1.75", "of no order"]
    line = {
        "order_id": TEXT,
        "position": BIGINT,
        "sku": TEXT,
        "price": TEXT,
        "_missing_since": TIMESTAMP,
    }
    ids = ["o0", "o1"] * 2 + ["o0", "o9"]
    rows = [
        {"order_id": ids[n], "position": n, "sku": f"s{n}", "price": one}
        for n, one in enumerate(amounts)
    ]
    lines = frame(line, rows)
    raw = frame(RAW_ORDERS, [{"id": f"o{n}", "placed_at": "2026-01-01"} for n in range(2)])
    made = orders(raw, NOBODY, FIELDS, DateContext(AS_OF), notation=IDS)
    with build_of(part_rows, raw__orders__lines=lines, reconciled__orders=made.orders) as tables:
        tables.build.execute("DELETE FROM raw.orders__lines WHERE sku = 's1'")
        of_build = RawLines.of(tables, "orders__lines")
        choice = choose_line_fields(of_build, {})
        assert reconcile_lines(of_build, read_lines(of_build, choice, LineUnits())) == 5
        found = rows_of(tables, "reconciled.order_lines", "line_number")
        details = found_in(tables)["detail"].tolist()
    assert found["product"].tolist() == ["s0", "s2", "s3", "s4"]
    assert [one and float(one) for one in values(found, "unit_price")] == [1.5, 1.234, None, 1.75]
    assert [one for one in details if one] == ["unit_price: 1 of 4 values"]


def test_of_too_many_statuses_those_that_nothing_has_decided_are_asked_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order_statuses, "_VALUES_MAX", 2)
    rows = [{"id": f"o{n}", "status": word} for n, word in enumerate("AAABBC")]
    raw = frame({"id": TEXT, "status": TEXT, **BOOKKEEPING}, rows)
    with build_of(raw__orders=raw) as build:
        made = RawOrders.of(build)
        for decided, asked in (((), ["A", "B"]), (("a",), ["B", "C"])):
            assert order_statuses._values(made, "status", decided)[0] == asked
