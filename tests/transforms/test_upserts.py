"""What a plan sends: which rows are one, whether a customer exists, and which fields differ from the last confirmed."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from orderbridge.transforms.frames import TEXT, frame
from orderbridge.transforms.upserts import decisions as of_plan
from orderbridge.transforms.upserts.confirmed import changed_fields, moved_codes, price_jumps
from orderbridge.transforms.upserts.decisions import decide_customers, duplicates, sharing
from tests.transforms.rows import values

CONFIRMED = {"key": TEXT, "field": TEXT, "value": TEXT}
SMALL = '[{{"url":"u","order":{}}}]'
Rows = list[dict[str, Any]]


def texts(**columns: list[str | None]) -> pd.DataFrame:
    rows = zip(*columns.values(), strict=True)
    return frame(
        dict.fromkeys(columns, TEXT), [dict(zip(columns, row, strict=True)) for row in rows]
    )


def decided(
    inputs: Rows, known: Rows, documents: Rows | None = None, there: Rows | None = None
) -> tuple[str, list[Any]]:
    """Decision and customer of each input in words; the differences."""
    made, differences = decide_customers(
        frame(of_plan.INPUTS, [{"input": at, **row} for at, row in enumerate(inputs)]),
        frame(of_plan.INPUT_DOCUMENTS, documents or []),
        frame(of_plan.KNOWN, known),
        frame(of_plan.KNOWN_DOCUMENTS, there or []),
    )
    assert made["input"].tolist() == list(range(len(inputs)))
    rows = values(made, "decision", "customer_id")
    return " ".join(f"{name}={key}" if key else name for name, key in rows), values(differences)


def test_equal_rows_merge_and_contradictions_are_refused_and_name_another_row() -> None:
    merged = duplicates(texts(k=["1", "2", "1", "1"]), texts(b=list("pqpp"))["b"])
    assert values(merged, "decision", "first") == [
        ("first", 0),
        ("first", 1),
        ("merged", 0),
        ("merged", 0),
    ]
    refused = duplicates(
        texts(k=["2", "1", "1", None, "1", "2", "1"]), texts(b=list("rppposp"))["b"]
    )
    others = (5, 4, 4, None, 1, 0, 4)
    assert values(refused, "decision", "other", "key") == [
        ("first", None, None) if other is None else ("conflicting", other, "k") for other in others
    ]
    of_both = duplicates(
        texts(erp=["1", "1", "2"], email=["a", "b", "b"]), texts(b=list("pqr"))["b"]
    )
    assert values(of_both, "other", "key") == [(1, "erp"), (0, "erp"), (1, "email")]


def test_rows_share_a_key_of_any_kind_and_a_null_is_shared_by_nobody() -> None:
    keys = texts(a=["1", "2", "1", None, None], b=[None, "x", "y", "x", "z"])
    assert sharing(keys).tolist() == [True, True, True, True, False]


ANA = {
    "id": "9",
    "erp_code": "A",
    "first_name": "Ana",
    "last_name": "Ruiz",
    "phone": "1",
    "price_list_id": "2",
}
SEVERAL = [
    {"id": "1", "erp_code": "A"},
    {"id": "2", "erp_code": "a", "email": "a@x"},
    {"id": "3", "erp_code": "C"},
]
LONG_S = ("maria@shop.es", "maria@ſhop.es")


@pytest.mark.parametrize(
    ("inputs", "known", "decisions", "differences"),
    [
        ([{"erpCode": "A1"}, {"firstName": "Ana"}, {"email": " "}], [{"id": "7", "erp_code": "B2"}],
         "create no_key no_key", []),
        ([{"erpCode": "007"}, {"email": "NIN\u0303O@x"}, {"loginCode": "L1"}],
         [{"id": "9", "erp_code": " 007 "}, {"id": "8", "email": "niÑo@X\u200b"}, {"id": "7", "login_code": "L1"}],
         "exists_same=9 exists_same=8 exists_same=7", []),
        ([{"erpCode": "007"}, {"loginCode": "L1"}, {"erpCode": "7.0"}],
         [{"id": "9", "erp_code": "7", "login_code": "l1"}], "create create create", []),
        # only what is given is compared, and what the platform lacks differs
        ([{"erpCode": "A"}, {"erpCode": "A", "firstName": "Ana", "priceListId": "2.0"}, {"erpCode": "A", "phone": "2"}],
         [ANA], "exists_same=9 exists_same=9 exists_differs=9", [(2, "9", "phone", "2", "1")]),
        ([{"erpCode": "A", "email": "a@x"}], [{"id": "9", "erp_code": "A"}], "exists_differs=9",
         [(0, "9", "email", "a@x", None)]),
        # several customers, each with the key that found it
        ([{"erpCode": "A", "email": "A@x"}, {"erpCode": "C"}], SEVERAL, "ambiguous exists_same=3",
         [(0, "1", "erpCode", "A", "A"), (0, "2", "email", "A@x", "a@x")]),
        # addresses that only look alike: alone, beside the address itself, and beside another key
        ([{"email": LONG_S[0]}], [{"id": "9", "email": LONG_S[1]}], "ambiguous", [(0, "9", "email", *LONG_S)]),
        ([{"email": LONG_S[0]}], [{"id": "9", "email": LONG_S[1]}, {"id": "8", "email": LONG_S[0]}], "ambiguous",
         [(0, "9", "email", *LONG_S), (0, "8", "email", LONG_S[0], LONG_S[0])]),
        ([{"erpCode": "A", "email": LONG_S[0], "phone": "+34 600-111-222"}],
         [{"id": "9", "email": LONG_S[1], "erp_code": "A", "phone": "0034600111222"}],
         "exists_differs=9", [(0, "9", "email", *LONG_S)]),
    ],
)  # fmt: skip
def test_a_customer_is_found_by_its_keys_and_compared(
    inputs: Rows, known: Rows, decisions: str, differences: list[tuple[Any, ...]]
) -> None:
    for order in (1, -1):
        found, reported = decided(inputs, known[::order])
        assert (found, sorted(reported)) == (decisions, sorted(differences))


def test_a_document_is_compared_with_that_of_its_number_else_that_of_its_place() -> None:
    there = [
        {
            "customer_id": "1",
            "position": 1,
            "number": "X1",
            "fiscal_name": "One",
            "is_default": True,
        },
        {
            "customer_id": "1",
            "position": 2,
            "number": "X2",
            "fiscal_name": "Two",
            "is_default": False,
        },
        {"customer_id": "8", "position": 1, "number": "X3", "fiscal_name": "Not its own"},
    ]
    given = [
        {"input": 0, "position": 0, "number": "X2", "fiscalName": "Two", "isDefault": True},
        {"input": 0, "position": 1, "number": "X3", "fiscalName": "Zwei"},
    ]
    decision, differences = decided(
        [{"erpCode": "A"}], [{"id": "1", "erp_code": "A"}], given, there
    )
    assert decision == "exists_differs=1"
    assert [(field.removeprefix("documents"), *rest) for _, _, field, *rest in differences] == [
        ("[1].number", "X3", "X2"), ("[1].fiscalName", "Zwei", "Two"), ("[0].isDefault", "true", "false"),
    ]  # fmt: skip


def test_a_field_is_sent_where_it_differs_from_the_last_confirmed() -> None:
    cases: list[tuple[str, str | None, str | None, bool]] = [
        ("price", "18.0", "18", False), ("price", "18", "18.5", True), ("price", "18", None, False),
        ("price", None, "1", True), ("sku", '"38"', '"00038"', True),
        ("images", SMALL.format("5e-7"), SMALL.format("0.0000005"), False),
        ("images", SMALL.format("5e-7"), SMALL.format("0.0000006"), True),
        ("order", "9007199254740993", "9007199254740992", True),  # one double
    ]  # fmt: skip
    for field, before, now, is_changed in cases:
        known: Rows = [
            {"key": "2/2", "field": field, "value": "1"},
            {"key": "1/1", "field": "weight", "value": now},
        ]
        known += [{"key": "1/1", "field": field, "value": before}] if before is not None else []
        made = changed_fields(
            texts(key=["0/0", "1/1"], **{field: [None, now]}), frame(CONFIRMED, known)
        )
        assert made[field].tolist() == [False, is_changed], (field, before, now)


def test_a_price_with_its_point_slipped_is_noticed_up_and_down() -> None:
    before = ["19.90", "19.90", "19.90", "19.90", "0", "1990", "5", "1.99"]
    now = ["1990", "1.99", "21.50", "19900.5", "5", "19.9", "0", "19.9"]
    known = [{"key": str(at), "field": "price", "value": value} for at, value in enumerate(before)]
    inputs = texts(key=list(map(str, range(8))), price=list(now))
    made = price_jumps(inputs, frame(CONFIRMED, known))
    assert values(made, "row", "power") == [(0, 2), (1, -1), (3, 3), (5, -2), (7, 1)]
    assert made["before"].tolist()[0] == "19.90"
    assert price_jumps(inputs, frame(CONFIRMED)).empty


def test_a_code_has_moved_if_it_was_confirmed_for_others_that_no_longer_have_it() -> None:
    known = [("v1", '"A"'), ("v2", '"B"'), ("v3", '"C"'), ("v4", '"C"'), ("v5", None)]
    confirmed = [{"key": key, "field": "sku", "value": value} for key, value in known]
    confirmed.append({"key": "v9", "field": "erpCode", "value": '"N"'})
    #       moved from v1; that of v1 too; shared with v4, which has it; as confirmed; new; none
    inputs = texts(
        key=["v2", "v1", "v6", "v4", "v7", "v8"], sku=['"A"', '"B"', '"C"', '"C"', '"N"', None]
    )
    moved = moved_codes(inputs, frame(CONFIRMED, confirmed), "sku")
    assert moved.tolist() == [True, True, False, False, False, False]
