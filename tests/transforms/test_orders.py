"""Orders are read through named fields, and fields are proposed only where the evidence is clear."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

from tests.pipelines.reconcile.in_parts import Orders, choose_fields, orders
from transforms.customer_index import ORDERING_CUSTOMERS, CustomerNotation
from transforms.dates import DateContext
from transforms.findings import FINDINGS
from transforms.frames import BIGINT, MONEY, TEXT, TIMESTAMP, frame
from transforms.order_fields import OrderFields
from transforms.orders import ORDERS

AS_OF = datetime(2026, 3, 1, 12, tzinfo=UTC)
BOOKS = {"_run_id": TEXT, "_first_seen_at": TIMESTAMP, "_last_seen_at": TIMESTAMP, "_missing_since": TIMESTAMP}
COLUMNS = {"id": TEXT, "buyer": BIGINT, "created_at": TEXT, "amount": pa.float64(), **BOOKS}
FIELDS = OrderFields("buyer", "created_at", "amount")
CUSTOMERS = frame(
    ORDERING_CUSTOMERS,
    [
        {"customer_id": "1", "erp_code": "E1", "is_missing": False},
        {"customer_id": "2", "erp_code": "E2", "is_missing": True},
        {"customer_id": "3", "erp_code": "E2", "is_missing": False},
        {"customer_id": "4", "erp_code": "E4", "is_missing": False},
        {"customer_id": "5", "erp_code": "E4", "is_missing": False},
    ],
)


def raw(*rows: dict[str, Any], columns: Mapping[str, pa.DataType] = COLUMNS) -> pd.DataFrame:
    return frame(columns, [{"id": f"o{n}", **row} for n, row in enumerate(rows)])


def with_dates(rows: pd.DataFrame, known: pd.DataFrame, fields: OrderFields, as_of: datetime, **options: Any) -> Orders:
    """The orders, with the options of their dates among the others."""
    dates = DateContext(as_of, options.pop("date_order", None), options.pop("timezone", None))
    return orders(rows, known, fields, dates, **options)


def reconciled(*args: Any, **options: Any) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    result = with_dates(*args, **options)
    return result.orders, result.findings, result.form


def found(findings: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(findings[["entity_id", "rule"]].itertuples(index=False, name=None))


def test_an_order_has_our_columns_then_its_own() -> None:
    made, findings, read = reconciled(
        raw({"buyer": 1, "created_at": "2026-01-01T10:00:00Z", "amount": 12.5}), CUSTOMERS, FIELDS, AS_OF
    )
    expected = {
        "order_id": "o0",
        "customer_id": "1",
        "customer_status": "matched",
        "ordered_at": datetime(2026, 1, 1, 10, tzinfo=UTC),
        "total": Decimal("12.5"),
        "is_cancelled": False,
        "is_missing": False,
        "ordered_date": date(2026, 1, 1),
        "amount": 12.5,
        "buyer": 1,
        "created_at": "2026-01-01T10:00:00Z",
    }
    schema = {**ORDERS, "amount": pa.float64(), "buyer": BIGINT, "created_at": TEXT, **BOOKS}
    assert_frame_equal(made, frame(schema, [expected]))
    assert_frame_equal(findings, frame(FINDINGS))
    assert read == "iso_offset"


def test_customers_are_matched_unknown_or_none() -> None:
    made, findings, _ = reconciled(raw({"buyer": 2}, {"buyer": 9}, {}), CUSTOMERS, FIELDS, AS_OF)
    assert made["customer_status"].tolist() == ["matched", "unknown", "none"]
    assert made["customer_id"].tolist() == ["2", "9", pd.NA]
    assert found(findings) == [("o2", "customer_missing"), ("o1", "customer_unknown")]


def test_a_customer_who_was_not_read_is_unknown_and_no_finding_is_made_of_the_order() -> None:
    made, findings, _ = reconciled(
        raw({"buyer": 2}, {"buyer": 9}, {"buyer": 8}, {}), CUSTOMERS, FIELDS, AS_OF, coverage_gap="customers: unproven"
    )
    assert made["customer_status"].tolist() == ["matched", "unknown", "unknown", "none"]
    assert findings[["entity_id", "rule", "detail"]].fillna("").to_records(index=False).tolist() == [
        ("o3", "customer_missing", "buyer"),
        ("", "customers_unproven", "buyer of 2 orders: customers: unproven"),
    ]


def test_customers_are_named_by_codes_of_the_erp_too_where_one_has_the_code() -> None:
    rows = raw({"who": "E1"}, {"who": "E2"}, {"who": "E4"}, {"who": "E9"}, columns={"id": TEXT, "who": TEXT, **BOOKS})
    made, findings, _ = reconciled(rows, CUSTOMERS, OrderFields("who"), AS_OF)
    assert made["customer_id"].tolist() == ["1", "3", pd.NA, pd.NA]
    assert made["customer_status"].tolist() == ["matched", "matched", "unknown", "unknown"]
    assert found(findings) == [("o2", "customer_ambiguous"), ("o3", "customer_unknown")]


def numbered(name: str, count: int) -> pd.DataFrame:
    """Orders of the customers 1 to `count`."""
    return raw(*({name: n} for n in range(1, count + 1)), columns={"id": TEXT, name: BIGINT, **BOOKS})


@pytest.mark.parametrize(("name", "customer"), [("customer_id", "2"), ("customer_code", "1"), ("cliente_codigo", "1")])
def test_codes_that_are_ids_of_others_by_chance_are_codes_in_a_column_of_codes(name: str, customer: str) -> None:
    swapped = [{"customer_id": "1", "erp_code": "2"}, {"customer_id": "2", "erp_code": "1"}]
    customers, rows = frame(ORDERING_CUSTOMERS, swapped), numbered(name, 2)[1:]
    fields = choose_fields(rows, customers).fields
    assert fields.customer_id == name
    made, findings, _ = reconciled(rows, customers, fields, AS_OF)
    assert (made["customer_id"].tolist(), found(findings)) == ([customer], [])


@pytest.mark.parametrize(
    ("codes", "statuses", "rules"),
    [
        (9, ["matched"] * 9 + ["unknown"], ["customer_unknown"]),
        (8, [None] * 10, ["customer_notation"]),
        (5, [None] * 10, ["customer_notation"]),
        (4, ["matched"] * 10, []),
    ],
)
def test_a_column_of_codes_whose_values_are_all_ids_and_not_all_codes_is_not_read(
    codes: int, statuses: list[str | None], rules: list[str]
) -> None:
    """With 9 codes of 10 the name decides, with 4 the ids; between them either reading gives orders to others."""
    table = [{"customer_id": str(n), "erp_code": str(n % 10 + 1 + 90 * (n > codes))} for n in range(1, 11)]
    customers, rows = frame(ORDERING_CUSTOMERS, table), raw(*({"buyer": n % 10 + 1} for n in range(1, 11)))
    rows = rows.rename(columns={"buyer": "customer_code"})
    proposed = choose_fields(rows, customers).fields.customer_id
    assert proposed == (None if rules == ["customer_notation"] else "customer_code")
    made, findings, _ = reconciled(rows, customers, OrderFields(customer_id="customer_code"), AS_OF)
    assert [None if one is pd.NA else one for one in made["customer_status"]] == statuses
    assert made["customer_id"].notna().tolist() == [status == "matched" for status in statuses]
    is_stated = [status is not None for status in statuses]
    assert [not because.startswith("customer_id") for because in made["unknown_because"]] == is_stated
    assert [rule for _, rule in found(findings)] == rules


def reversed_codes(listed: int) -> pd.DataFrame:
    """100 customers whose codes are their ids in reverse; from one on, they have other ids."""
    table = [{"customer_id": str(n) if n <= listed else f"x{n}", "erp_code": str(101 - n)} for n in range(1, 101)]
    return frame(ORDERING_CUSTOMERS, table)


def second_customer(made: pd.DataFrame) -> str | None:
    one = made.set_index("order_id")["customer_id"].loc["o1"]
    return None if pd.isna(one) else one.removeprefix("x")


@pytest.mark.parametrize(
    ("name", "listed", "customer"),
    [
        ("customer_id", 99, "2"),  # one customer is not listed yet: ids stay ids, though more values are codes
        ("customer_id", 80, None),
        ("customer_id", 40, "99"),
        ("buyer", 100, "2"),
        ("buyer", 99, None),
        ("buyer", 80, "99"),
        ("customer_code", 99, "99"),
    ],
)
def test_ids_that_are_codes_of_others_by_chance_stay_ids_when_a_customer_is_absent(
    name: str, listed: int, customer: str | None
) -> None:
    made, findings, _ = reconciled(numbered(name, 100), reversed_codes(listed), OrderFields(customer_id=name), AS_OF)
    assert second_customer(made) == customer
    assert ("customer_notation" in [rule for _, rule in found(findings)]) == (customer is None)


@pytest.mark.parametrize(
    ("listed", "pinned", "customer", "is_changed"),
    [
        (99, "ids", "2", False),
        (80, "ids", "2", True),  # 80 of 100 values are ids, all are codes
        (80, "codes", "99", False),
        (100, "codes", "99", False),  # all are both
        (100, None, "2", False),
    ],
)
def test_customers_are_read_as_the_last_run_read_them(
    listed: int, pinned: CustomerNotation | None, customer: str, is_changed: bool
) -> None:
    """Otherwise all orders would go to other customers when some are not listed, or get a code."""
    rows, customers = numbered("buyer", 100), reversed_codes(listed)
    choice = choose_fields(rows, customers, pinned=OrderFields("buyer", customer_notation=pinned))
    result = with_dates(rows, customers, choice.fields, AS_OF)
    assert second_customer(result.orders) == customer
    assert result.customer_notation == (pinned or "ids")
    details = result.findings.loc[result.findings["rule"] == "field_changed", "detail"].tolist()
    expected = "customer_id: buyer is read as ids, but 80 of 100 are ids of customers, 100 are ERP codes; set "
    assert details == [expected + "reconcile.order_customer_notation"] * is_changed
    decided = choose_fields(rows, customers, OrderFields(customer_notation=pinned), OrderFields("buyer")).fields
    findings = with_dates(rows, customers, decided, AS_OF).findings
    assert "field_changed" not in set(findings["rule"]), "a setting is what the finding asks for"


def test_a_notation_holds_for_its_own_column_and_a_setting_before_it() -> None:
    rows = raw({"buyer": 9, "who": 9})
    pinned, configured = OrderFields("gone", customer_notation="codes"), OrderFields(customer_notation="ids")
    fields = choose_fields(rows.assign(customer_id=1), CUSTOMERS, pinned=pinned).fields
    assert fields.customer_notation is None
    kept = OrderFields("buyer", customer_notation="codes")
    assert choose_fields(rows, CUSTOMERS, pinned=kept).fields.customer_notation == "codes"
    assert choose_fields(rows, CUSTOMERS, configured, kept).fields.customer_notation == "ids"
    result = with_dates(rows, CUSTOMERS, OrderFields("buyer"), AS_OF)
    assert result.customer_notation is None, "nothing shows it: 9 is neither"


@pytest.mark.parametrize(("count", "notation"), [(10, "codes"), (8, None), (6, None)])
def test_codes_that_are_the_ids_are_not_pinned_while_some_customers_have_none(count: int, notation: str | None) -> None:
    """The next run would report a change although nothing changed."""
    table = [{"customer_id": str(n), "erp_code": str(n) if n <= count else None} for n in range(1, 11)]
    known, fields = frame(ORDERING_CUSTOMERS, table), OrderFields("customer_code")
    result = with_dates(numbered("customer_code", 10), known, fields, AS_OF)
    assert (result.customer_notation, result.orders["customer_id"].count()) == (notation, count)
    assert set(result.findings["rule"]) == ({"customer_unknown"} if count < 10 else set())


def test_a_customer_of_zero_is_a_guest_unless_a_customer_has_that_id() -> None:
    made, findings, _ = reconciled(raw({"buyer": 0}, {"buyer": 1}), CUSTOMERS, FIELDS, AS_OF)
    assert made["customer_status"].tolist() == ["none", "matched"]
    assert made["customer_id"].tolist() == [pd.NA, "1"]
    assert found(findings) == [("o0", "customer_missing")]
    zero = frame(ORDERING_CUSTOMERS, [{"customer_id": "0", "is_missing": False}])
    made, _, _ = reconciled(raw({"buyer": 0}), zero, FIELDS, AS_OF)
    assert made["customer_status"].tolist() == ["matched"]


def test_fields_that_are_not_known_cause_no_findings() -> None:
    made, findings, read = reconciled(raw({"buyer": 9, "amount": 1.0}), CUSTOMERS, OrderFields(), AS_OF)
    assert made[["customer_id", "customer_status", "ordered_at", "total"]].isna().all(axis=None)
    assert_frame_equal(findings, frame(FINDINGS))
    assert read == "empty"


@pytest.mark.parametrize(
    ("kind", "given_total", "total"),
    [
        (pa.float64(), 0.1 + 0.2, "0.3"),
        (pa.float64(), 1234567890.1, "1234567890.1"),
        (pa.float64(), 100.0, "100"),
        (pa.float64(), float("nan"), None),
        (pa.float64(), 1e30, None),
        (pa.float64(), 4e15, "4000000000000000"),
        (BIGINT, 2**63 - 1, "9223372036854775807"),
        (TEXT, " 12.50 ", "12.5"),
        (TEXT, "1.234,50", None),
        (TEXT, "0.12345678901", None),
        (pa.bool_(), True, None),
    ],
)
def test_totals_are_decimal(kind: pa.DataType, given_total: Any, total: str | None) -> None:
    made, findings, _ = reconciled(
        raw({"amount": given_total}, columns={**COLUMNS, "amount": kind}), CUSTOMERS, OrderFields(total="amount"), AS_OF
    )
    assert made["total"].dtype == pd.ArrowDtype(MONEY)
    assert made["total"].tolist() == [pd.NA if total is None else Decimal(total)]
    assert found(findings) == ([] if total else [("o0", "total_unreadable")])


def test_totals_in_hundredths_are_divided() -> None:
    rows = raw({"amount": 1251}, {}, columns={**COLUMNS, "amount": BIGINT})
    made, _, _ = reconciled(rows, CUSTOMERS, OrderFields(total="amount", is_in_cents=True), AS_OF)
    assert made["total"].tolist() == [Decimal("12.51"), pd.NA]


def test_dates_and_totals_that_cannot_be_right_are_found() -> None:
    good = {"buyer": 1, "created_at": "2026-01-01T10:00:00Z", "amount": 1.0}
    rows = [good, {**good, "created_at": "soon"}, {**good, "created_at": "2026-03-04"}, {**good, "amount": -1.0}]
    rows += [{**good, "created_at": "2026-03-02T02:00:00Z", "amount": 0.0}]  # 14 hours ahead
    _, findings, _ = reconciled(raw(*rows), CUSTOMERS, FIELDS, AS_OF)
    assert found(findings) == [("o2", "ordered_at_future"), ("o1", "ordered_at_unreadable"), ("o3", "total_negative")]
    _, findings, _ = reconciled(raw({**good, "created_at": "01/02/2026"}), CUSTOMERS, FIELDS, AS_OF)
    assert findings["rule"].tolist() == ["ordered_at_form"]


def test_an_instant_without_an_offset_is_an_error() -> None:
    with pytest.raises(ValueError, match="offset"):
        DateContext(datetime(2026, 1, 1))


def test_a_column_named_like_one_of_ours_is_kept_next_to_it() -> None:
    columns = {"id": TEXT, "Total": TEXT, "raw_total": TEXT, "customer_id": BIGINT, **BOOKS}
    rows = raw({"Total": "x", "raw_total": "y", "customer_id": 1}, columns=columns)
    made, _, _ = reconciled(rows, CUSTOMERS, OrderFields("customer_id"), AS_OF)
    assert list(made) == [*ORDERS, "raw_raw_Total", "raw_customer_id", "raw_total", *BOOKS]


def test_orders_that_are_no_longer_listed_cause_no_findings() -> None:
    columns = {**COLUMNS, "state": TEXT, "coin": TEXT}
    fields = OrderFields("buyer", "created_at", "amount", order_status="state", currency="coin")
    old = "2026-01-01T10:00:00Z"
    listed: list[dict[str, Any]] = [
        {"buyer": 1, "created_at": "2026-03-02T01:00:00Z", "amount": 0.0, "state": "CANCELLED", "coin": "eur"},
        {"buyer": 1, "created_at": old, "amount": 5.0, "state": "paid", "coin": "EUR"},
    ]
    others: list[dict[str, Any]] = [
        {"buyer": 9, "created_at": "2026-03-02T03:00:00Z", "amount": -5.0, "state": "Cancelled", "coin": "USD"},
        {"buyer": None, "created_at": old, "amount": 5.0, "state": "paid", "coin": "USD"},
    ]
    gone = [{**row, "_missing_since": AS_OF} for row in others]
    result = with_dates(raw(*listed, *gone, columns=columns), CUSTOMERS, fields, AS_OF)
    assert (found(result.findings), result.matched_share) == ([], 1.0)
    assert result.orders["currency"].tolist() == ["EUR", "EUR", "USD", "USD"]
    result = with_dates(raw(*listed, *others, columns=columns), CUSTOMERS, fields, AS_OF)
    assert result.findings[["rule", "detail"]].to_records(index=False).tolist() == [
        ("cancelled_with_total", "1 of 4 orders with a total are cancelled"),
        ("currencies_mixed", "2 currencies"),
        ("customer_missing", "buyer"),
        ("customer_unknown", "buyer"),
        ("ordered_at_future", "created_at 2026-03-02"),
        ("total_negative", "amount"),
    ]


@pytest.mark.parametrize(
    ("name", "hour", "day"), [("created_gmt", 23, 2), ("created_utc", 23, 2), ("created_at", 22, 1)]
)
def test_a_column_named_after_utc_is_in_utc_and_its_days_are_local(name: str, hour: int, day: int) -> None:
    rows = raw({name: "2026-01-01 23:00:00"}, columns={"id": TEXT, name: TEXT, **BOOKS})
    made, _, _ = reconciled(rows, CUSTOMERS, OrderFields(ordered_at=name), AS_OF, timezone="Europe/Madrid")
    assert made["ordered_at"].tolist() == [datetime(2026, 1, 1, hour, tzinfo=UTC)]
    assert made["ordered_date"].tolist() == [date(2026, 1, day)]


def test_fields_are_proposed_with_their_evidence() -> None:
    proposal = choose_fields(
        raw(*[{"buyer": n % 3 + 1, "created_at": "2026-01-01", "amount": 1.5} for n in range(10)]), CUSTOMERS
    )
    assert proposal.fields == FIELDS
    assert proposal.evidence == {
        "amount": "10 of 10 are decimal numbers",
        "buyer": "10 of 10 are ids of customers, 0 are ERP codes",
        "created_at": "10 of 10 have a value",
    }
