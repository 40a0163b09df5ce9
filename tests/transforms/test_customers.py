"""Customers are reconciled: what is compared, what is chosen, what is found."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import permutations
from typing import Any

import pandas as pd

from orderbridge.transforms.customers import LISTED_PRICE_LISTS, RAW_CUSTOMERS
from orderbridge.transforms.documents import RAW_DOCUMENTS, sort_documents
from orderbridge.transforms.frames import BIGINT, TEXT, frame, typed
from orderbridge.transforms.values.dates import DateContext
from tests.pipelines.reconcile.in_parts import customers
from tests.transforms.rows import values

DOCUMENT_ROWS = {"customer_id": TEXT, **RAW_DOCUMENTS}

AS_OF = datetime(2026, 3, 1, 12, tzinfo=UTC)
GONE = datetime(2026, 2, 1, tzinfo=UTC)
WHOLE = {
    "first_name": "Ana", "last_name": "Ruiz", "created_at": "2024-05-01T10:00:00-05:00", "birthdate": date(1980, 1, 1),
}  # fmt: skip
LISTS: list[dict[str, Any]] = [
    {"id": " 1", "name": "One"}, {"id": " 1", "name": "Old", "_missing_since": GONE},
    {"id": "2", "name": "Two", "_missing_since": GONE},
]  # fmt: skip


def row(customer_id: str | None, **fields: Any) -> dict[str, Any]:
    known = {
        "id": customer_id,
        "erp_code": f"E{customer_id}",
        "email": f"{customer_id}@example.com",
    }
    return {**WHOLE, **known, **fields}


def document(customer_id: str, position: int, **fields: Any) -> dict[str, Any]:
    own = {"number": f"{customer_id}-{position}", "fiscal_name": f"F{position}"}
    return {
        "customer_id": customer_id,
        "position": position,
        "is_default": False,
        "for_taxes": False,
        **own,
        **fields,
    }


def reconciled(
    rows: list[dict[str, Any]],
    documents: list[dict[str, Any]] | None = None,
    lists: list[dict[str, Any]] | None = None,
    coverage_gap: str = "",
) -> tuple[pd.DataFrame, pd.DataFrame]:
    made, findings, _ = customers(
        frame(RAW_CUSTOMERS, rows),
        frame(DOCUMENT_ROWS, documents or []),
        frame(LISTED_PRICE_LISTS, lists or []),
        DateContext(AS_OF),
        coverage_gap=coverage_gap,
    )
    return made, findings


def found(findings: pd.DataFrame, *but: str) -> list[Any]:
    """Ids and rules, without what rows without documents have, and without some."""
    left = findings[~findings["rule"].isin(["document_missing", "document_tax_missing", *but])]
    return values(left, "entity_id", "rule")


def test_price_lists_are_bridged_across_the_families() -> None:
    cases = [
        ("1", "matched", "One", " 1"), ("1.0", "matched", "One", " 1"), ("01", "not_listed", None, "01"),
        ("2", "not_listed", "Two", "2"), ("3", "not_listed", None, "3"), (None, "default", None, None),
        (" ", "default", None, " "), ("-1", "not_listed", None, "-1"),
    ]  # fmt: skip
    rows = [row(str(n), price_list_id=case[0]) for n, case in enumerate(cases)]
    names = ("price_list_status", "price_list_name", "price_list_id")
    made, findings = reconciled(rows, lists=LISTS)
    assert values(made, *names) == [case[1:] for case in cases]
    not_listed = [(one, "price_list_not_listed") for one in "234"]
    assert found(findings) == [("7", "price_list_id_impossible"), *not_listed]
    # one that was not read is not listed only where that is proven
    made, findings = reconciled(rows, lists=LISTS, coverage_gap="price_lists: unproven")
    statuses = [
        "matched",
        "matched",
        "unknown",
        "unknown",
        "unknown",
        "default",
        "default",
        "not_listed",
    ]
    assert values(made, "price_list_status") == statuses
    assert values(findings[findings["entity_id"].isna()], "rule", "severity", "detail") == [
        ("price_lists_unproven", "warning", "priceListId of 3 customers: price_lists: unproven")
    ]


def test_documents_with_one_position_are_in_the_order_of_their_values() -> None:
    kinds = {"owner": BIGINT, "position": BIGINT, "number": TEXT}
    rows = [(0, 1, "c"), (1, 1, "b"), (1, 1, "d"), (1, None, "a"), (2, 1, "f")]
    for order in permutations(rows):
        ordered = sort_documents(typed(pd.DataFrame(order, columns=list(kinds)), kinds))
        assert values(ordered, "number") == ["c", "b", "d", "a", "f"]


def test_documents_without_their_customer_and_numbers_held_twice_are_found() -> None:
    documents = [document("8", 0), document("7", 0, number="X"), document("9", 0, number=" X")]
    documents += [
        document("5", n, number="of one", is_default=not n, for_taxes=True) for n in (0, 1)
    ]
    rules = found(reconciled([row("5"), row("7"), row("9")], documents)[1])
    shared = [(one, "document_number_shared") for one in "79"]
    assert rules == [*shared, ("8", "document_orphan"), ("5", "document_tax_several")]


def test_findings_hold_no_personal_data() -> None:
    secret = "Zq9"
    fields = dict.fromkeys(
        ("first_name", "last_name", "phone", "email", "login_code", "erp_code"), f" {secret} "
    )
    documents = [document(i, 0, number=secret, fiscal_name=secret) for i in ("1", "2", "3")]
    _, findings = reconciled([row("1", **fields), row("2", **fields, created_at=secret)], documents)
    assert len(findings) > 10
    assert not findings["detail"].str.contains(secret).any()
