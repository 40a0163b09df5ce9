"""Customers are reconciled: what is compared, what is chosen, what is found."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import permutations
from typing import Any

import pandas as pd
from pandas.testing import assert_frame_equal

from orderbridge.transforms.customers import CUSTOMERS, LISTED_PRICE_LISTS, RAW_CUSTOMERS
from orderbridge.transforms.documents import RAW_DOCUMENTS, sort_documents
from orderbridge.transforms.findings import FINDINGS
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


def test_a_customer_has_the_declared_columns() -> None:
    given = {
        "phone": "+51 (9) 11",
        "email": " Ana@Example.COM ",
        "login_code": "007",
        "price_list_id": "1",
    }
    papers = [document("7", 0, is_default=True, for_taxes=True)]
    made, findings = reconciled([row("7", **given)], papers, [{"id": "1", "name": "Basic"}])
    expected = given | {
        "customer_id": "7", "erp_code": "E7", "first_name": "Ana", "last_name": "Ruiz", "full_name": "Ana Ruiz",
        "email_normalized": "ana@example.com", "phone_digits": "0051911", "birthdate": date(1980, 1, 1),
        "created_at": datetime(2024, 5, 1, 15, tzinfo=UTC), "created_at_text": "2024-05-01T10:00:00-05:00",
        "price_list_name": "Basic", "price_list_status": "matched", "document_count": 1, "is_missing": False,
        "default_document_number": "7-0", "default_fiscal_name": "F0", "tax_document_number": "7-0",
    }  # fmt: skip
    assert_frame_equal(made, frame(CUSTOMERS, [expected]))
    assert_frame_equal(findings, frame(FINDINGS))


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


def test_the_document_that_counts() -> None:
    both = {"is_default": True, "for_taxes": True}
    cases: list[tuple[list[dict[str, Any]], str | None, str | None, list[str]]] = [
        ([], None, None, ["document_missing"]),
        ([document("1", 0)], "1-0", None, ["document_tax_missing"]),  # the only one, not flagged
        ([document("2", 0, is_default=True), document("2", 1, for_taxes=True)], "2-0", "2-1", []),
        ([document("3", 1), document("3", 0)], None, None, ["document_default_missing", "document_tax_missing"]),
        ([document("4", 2, **both), document("4", 1, **both)], "4-1", "4-1",  # the first by position
         ["document_default_several", "document_tax_several"]),
        ([document("5", 0, number=" ", **both)], " ", " ", ["document_number_missing"]),
    ]  # fmt: skip
    made, findings = reconciled(
        [row(str(n)) for n in range(6)], [one for papers, *_ in cases for one in papers]
    )
    found = values(made, "document_count", "default_document_number", "tax_document_number")
    assert found == [(len(papers), default, tax) for papers, default, tax, _ in cases]
    expected = [(str(n), rule) for n, (*_, rules) in enumerate(cases) for rule in rules]
    assert sorted(values(findings, "entity_id", "rule")) == expected


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


def test_customers_that_are_no_longer_listed_cause_no_findings() -> None:
    wrong = {
        "erp_code": " 1", "email": "none", "login_code": None, "phone": "x", "first_name": None, "last_name": None,
        "birthdate": date(2027, 1, 1), "created_at": "2026-03-02T03:00:00Z", "price_list_id": "9",
    }  # fmt: skip
    flagged = [document("1", n, number=" ", is_default=True, for_taxes=True) for n in (0, 1)]
    for papers, count in (
        ([document("1", 0, number=" "), document("1", 1)], 10),
        (flagged, 10),
        ([], 8),
    ):
        findings = [
            reconciled([row("1", **wrong, _missing_since=at)], papers)[1] for at in (GONE, None)
        ]
        assert list(map(len, findings)) == [0, count]


def test_codes_and_addresses_are_compared_among_present_customers_only() -> None:
    same = {"erp_code": "E", "email": "A@x.y", "login_code": "L"}
    alone, findings = reconciled([row("1", **same), row("2", **same, _missing_since=GONE)])
    assert (alone["is_missing"].tolist(), found(findings)) == ([False, True], [])
    _, findings = reconciled(
        [row("1", **same), row("2", erp_code=" E", email="a@X.Y ", login_code="L")]
    )
    shared = ("email_duplicate", "erp_code_duplicate", "login_code_duplicate")
    assert found(findings, "erp_code_padded") == [
        (one, rule) for rule in shared for one in ("1", "2")
    ]


def test_a_field_that_cannot_be_right_is_found() -> None:
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({"birthdate": date(2026, 3, 1), "created_at": "2026-03-02T02:00:00Z"}, None),  # in Kiribati
        ({"birthdate": date(1906, 3, 1)}, None),
        ({"erp_code": None}, "erp_code_missing"), ({"erp_code": "E "}, "erp_code_padded"),
        ({"email": " "}, "login_missing"), ({"email": "ana.example.com"}, "email_malformed"),
        ({"phone": "none"}, "phone_without_digits"), ({"first_name": "", "last_name": None}, "name_missing"),
        ({"birthdate": date(2026, 3, 2)}, "birthdate_future"), ({"birthdate": date(1906, 2, 28)}, "birthdate_absurd"),
        ({"created_at": "2026-03-03T00:00:00Z"}, "created_at_future"),
        ({"created_at": "yesterday"}, "created_at_unreadable"),
        ({"created_at": "9999-12-31T00:00:00Z"}, "created_at_unreadable"),
    ]  # fmt: skip
    _, findings = reconciled([row(f"{n:02}", **fields) for n, (fields, _) in enumerate(cases)])
    assert sorted(map(str, found(findings))) == [
        str((f"{n:02}", rule)) for n, (_, rule) in enumerate(cases) if rule
    ]


def test_findings_hold_no_personal_data() -> None:
    secret = "Zq9"
    fields = dict.fromkeys(
        ("first_name", "last_name", "phone", "email", "login_code", "erp_code"), f" {secret} "
    )
    documents = [document(i, 0, number=secret, fiscal_name=secret) for i in ("1", "2", "3")]
    _, findings = reconciled([row("1", **fields), row("2", **fields, created_at=secret)], documents)
    assert len(findings) > 10
    assert not findings["detail"].str.contains(secret).any()
