from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from transforms.frames import TEXT, frame
from transforms.upserts.decisions import (
    INPUT_DOCUMENTS,
    INPUTS,
    KNOWN,
    KNOWN_DOCUMENTS,
    decide_customers,
    duplicates,
    sharing,
)


def texts(**columns: list[str | None]) -> pd.DataFrame:
    rows = zip(*columns.values(), strict=True)
    return frame(dict.fromkeys(columns, TEXT), [dict(zip(columns, row, strict=True)) for row in rows])


def decided(
    inputs: list[dict[str, Any]],
    known: list[dict[str, Any]],
    documents: list[dict[str, Any]] | None = None,
    known_documents: list[dict[str, Any]] | None = None,
) -> tuple[list[tuple[str, str | None]], list[tuple[Any, ...]]]:
    """Decision and customer of each input; the differences as tuples."""
    made, differences = decide_customers(
        frame(INPUTS, [{"input": at, **row} for at, row in enumerate(inputs)]),
        frame(INPUT_DOCUMENTS, documents or []),
        frame(KNOWN, known),
        frame(KNOWN_DOCUMENTS, known_documents or []),
    )
    assert made["input"].tolist() == list(range(len(inputs)))
    ids = [None if pd.isna(value) else value for value in made["customer_id"]]
    reported = [tuple(None if pd.isna(v) else v for v in row) for row in differences.itertuples(index=False)]
    return list(zip(made["decision"], ids, strict=True)), reported


DUPLICATES: list[tuple[dict[str, list[str | None]], str, str, list[int | None], list[str | None]]] = [
    ({"k": ["1", "2", "1", "1"]}, "pqpp", "first first merged merged", [None] * 4, [None] * 4),
    ({"k": ["1", "2", "1", "1"]}, "pqpo", "conflicting first conflicting conflicting", [3, None, 3, 0],
     ["k", None, "k", "k"]),
    ({"k": ["2", "1", "1", None, "1", "2", "1"]}, "rppposp",
     "conflicting conflicting conflicting first conflicting conflicting conflicting", [5, 4, 4, None, 1, 0, 4],
     ["k", "k", "k", None, "k", "k", "k"]),
    ({"erp": ["1", "1", "2"], "email": ["a", "b", "b"]}, "pqr", "conflicting conflicting conflicting", [1, 0, 1],
     ["erp", "erp", "email"]),
    ({"k": [None, None]}, "pp", "first first", [None] * 2, [None] * 2),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "bodies", "decisions", "other", "key"), DUPLICATES)
def test_equal_rows_merge_and_contradictions_are_all_refused_and_name_a_row_that_differs(
    keys: dict[str, list[str | None]], bodies: str, decisions: str, other: list[Any], key: list[Any]
) -> None:
    made = duplicates(texts(**keys), texts(b=list(bodies))["b"]).astype(object)
    assert " ".join(made["decision"]) == decisions
    made = made.where(made.notna(), None)
    assert (made["other"].tolist(), made["key"].tolist()) == (other, key)
    if "merged" in decisions:
        assert made["first"].tolist() == [0, 1, 0, 0]


def test_rows_share_a_key_of_any_kind_and_a_null_is_shared_by_nobody() -> None:
    keys = texts(a=["1", "2", "1", None, None], b=[None, "x", "y", "x", "z"])
    assert sharing(keys).tolist() == [True, True, True, True, False]
    assert sharing(keys.iloc[:0]).tolist() == []


PHONES = [{"id": "9", "erp_code": "A", "phone": "0034600111222"}, {"id": "8", "erp_code": "B", "phone": "600 333 444"}]
ANA = {"id": "9", "erp_code": "A", "first_name": "Ana", "last_name": "Ruiz", "phone": "1", "price_list_id": "2"}
SEVERAL = [{"id": "1", "erp_code": "A"}, {"id": "2", "erp_code": "a", "email": "a@x"}, {"id": "3", "erp_code": "C"}]
CUSTOMERS: list[tuple[list[dict[str, Any]], list[dict[str, Any]], str, list[tuple[Any, ...]]]] = [
    ([{"erpCode": "A1"}, {"firstName": "Ana"}, {"email": " "}], [{"id": "7", "erp_code": "B2"}],
     "create no_key no_key", []),
    ([{"erpCode": "007"}], [{"id": "9", "erp_code": " 007 "}], "exists_same=9", []),
    ([{"email": "ANA@Example.com"}], [{"id": "9", "email": "ana@example.com"}], "exists_same=9", []),
    ([{"email": "NIN\u0303O@x"}], [{"id": "9", "email": "niÑo@X\u200b"}], "exists_same=9", []),
    ([{"loginCode": "L1"}], [{"id": "9", "login_code": "L1"}], "exists_same=9", []),
    ([{"erpCode": "007"}, {"loginCode": "L1"}, {"erpCode": "7.0"}], [{"id": "9", "erp_code": "7", "login_code": "l1"}],
     "create create create", []),
    ([{"erpCode": "A", "email": "a@x"}], [{"id": "1", "erp_code": "A", "email": "a@x"}], "exists_same=1", []),
    # only what is given is compared, and what the platform lacks differs
    ([{"erpCode": "A"}, {"erpCode": "A", "firstName": "Ana", "priceListId": "2.0"}, {"erpCode": "A", "phone": "2"}],
     [ANA], "exists_same=9 exists_same=9 exists_differs=9", [(2, "9", "phone", "2", "1")]),
    ([{"erpCode": "A", "email": "a@x"}], [{"id": "9", "erp_code": "A"}], "exists_differs=9",
     [(0, "9", "email", "a@x", None)]),
    ([{"erpCode": "A", "phone": "+34 600-111-222"}, {"erpCode": "B", "phone": "600333445"}], PHONES,
     "exists_same=9 exists_differs=8", [(1, "8", "phone", "600333445", "600 333 444")]),
    # several customers, each with the key that found it
    ([{"erpCode": "A", "email": "A@x"}, {"erpCode": "C"}], SEVERAL, "ambiguous exists_same=3",
     [(0, "1", "erpCode", "A", "A"), (0, "2", "email", "A@x", "a@x")]),
    # addresses that only look alike: long s, sharp s, Kelvin sign
    *(case for given, there in (("maria@shop.es", "maria@ſhop.es"), ("STRASSE@x", "straße@x"), ("k@x", "\u212a@x"))
      for case in (
        ([{"email": given}], [{"id": "9", "email": there}], "ambiguous", [(0, "9", "email", given, there)]),
        ([{"email": given}], [{"id": "9", "email": there}, {"id": "8", "email": given}], "ambiguous",
         [(0, "9", "email", given, there), (0, "8", "email", given, given)]),
        ([{"erpCode": "A", "email": given}], [{"id": "9", "email": there, "erp_code": "A"}], "exists_differs=9",
         [(0, "9", "email", given, there)]))),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "known", "decisions", "differences"), CUSTOMERS)
def test_a_customer_is_found_by_its_keys_and_compared(
    inputs: list[dict[str, Any]], known: list[dict[str, Any]], decisions: str, differences: list[tuple[Any, ...]]
) -> None:
    made, reported = decided(inputs, known)
    assert " ".join(f"{name}={key}" if key else name for name, key in made) == decisions
    assert reported == differences


def test_a_document_is_compared_with_that_of_its_number_else_that_of_its_place() -> None:
    known = [{"id": "1", "erp_code": "A"}]
    there = [
        {"customer_id": "1", "position": 1, "number": "X1", "fiscal_name": "One", "is_default": True},
        {"customer_id": "1", "position": 2, "number": "X2", "fiscal_name": "Two", "is_default": False},
        {"customer_id": "8", "position": 1, "number": "X3", "fiscal_name": "Not its own"},
    ]
    said = [
        {"input": 0, "position": 0, "number": "X2", "fiscalName": "Two", "isDefault": True},
        {"input": 0, "position": 1, "number": "X3", "fiscalName": "Zwei"},
    ]
    made, differences = decided([{"erpCode": "A"}], known, said, there)
    assert made == [("exists_differs", "1")]
    assert differences == [
        (0, "1", "documents[1].number", "X3", "X2"),
        (0, "1", "documents[1].fiscalName", "Zwei", "Two"),
        (0, "1", "documents[0].isDefault", "true", "false"),
    ]


def test_the_order_of_what_is_known_decides_nothing() -> None:
    known = [{"id": str(n), "erp_code": f"E{n}", "email": f"{n}@x"} for n in range(20)]
    asked = [{"erpCode": f"E{n}", "email": f"{n + n % 2}@x"} for n in range(20)]
    made, _ = decided(asked, known)
    again, _ = decided(asked, known[::-1])
    assert made == again
    assert made[0][0] == "exists_same"
    assert made[1][0] == "ambiguous"
    assert made[19] == ("exists_differs", "19")
