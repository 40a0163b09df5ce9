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


# --- duplicates ------------------------------------------------------------------------------------------------------


def test_rows_share_a_key_of_any_kind_and_a_null_is_shared_by_nobody() -> None:
    keys = texts(a=["1", "2", "1", None, None], b=[None, "x", "y", "x", "z"])
    assert sharing(keys).tolist() == [True, True, True, True, False]
    assert sharing(keys.iloc[:0]).tolist() == []


def test_equal_rows_merge_into_the_first() -> None:
    made = duplicates(texts(k=["1", "2", "1", "1"]), texts(b=["p", "q", "p", "p"])["b"])
    assert made["decision"].tolist() == ["first", "first", "merged", "merged"]
    assert made["first"].tolist() == [0, 1, 0, 0]


def test_rows_that_contradict_each_other_are_all_refused() -> None:
    made = duplicates(texts(k=["1", "2", "1", "1"]), texts(b=["p", "q", "p", "other"])["b"])
    assert made["decision"].tolist() == ["conflicting", "first", "conflicting", "conflicting"]


def test_a_conflicting_row_is_reported_with_one_that_differs_from_it() -> None:
    keys = texts(k=["2", "1", "1", None, "1", "2", "1"])
    made = duplicates(keys, texts(b=["r", "p", "p", "p", "other", "s", "p"])["b"])
    assert made["decision"].tolist() == ["conflicting"] * 3 + ["first"] + ["conflicting"] * 3
    assert [None if pd.isna(at) else at for at in made["other"]] == [5, 4, 4, None, 1, 0, 4]


def test_a_row_that_conflicts_with_two_others_rejects_all_three() -> None:
    keys = texts(erp=["1", "1", "2"], email=["a", "b", "b"])
    made = duplicates(keys, texts(b=["p", "q", "r"])["b"])
    assert made["decision"].tolist() == ["conflicting"] * 3
    assert made["key"].tolist() == ["erp", "erp", "email"]
    assert made["other"].tolist() == [1, 0, 1]


def test_rows_without_any_key_stand_alone() -> None:
    made = duplicates(texts(k=[None, None]), texts(b=["p", "p"])["b"])
    assert made["decision"].tolist() == ["first", "first"]


# --- customers -------------------------------------------------------------------------------------------------------


def test_a_customer_that_nobody_knows_is_created_and_one_without_keys_is_not() -> None:
    made, differences = decided(
        [{"erpCode": "A1"}, {"firstName": "Ana"}, {"email": " "}], [{"id": "7", "erp_code": "B2", "email": None}]
    )
    assert made == [("create", None), ("no_key", None), ("no_key", None)]
    assert differences == []


@pytest.mark.parametrize(
    ("said", "there"),
    [
        ({"erpCode": "007"}, {"erp_code": " 007 "}),
        ({"email": "ANA@Example.com"}, {"email": "ana@example.com"}),
        ({"email": "NIN\u0303O@x"}, {"email": "niÑo@X\u200b"}),
        ({"loginCode": "L1"}, {"login_code": "L1"}),
    ],
    ids=["erp code", "email in any case", "email beyond ascii", "login code"],
)
def test_a_customer_is_found_by_each_key(said: dict[str, str], there: dict[str, str]) -> None:
    assert decided([said], [{"id": "9", **there}])[0] == [("exists_same", "9")]


@pytest.mark.parametrize(
    ("given", "there"),
    [("maria@shop.es", "maria@ſhop.es"), ("STRASSE@x", "straße@x"), ("mike@x", "mi\u212ae@x")],
    ids=["long s", "sharp s", "Kelvin sign"],
)
def test_an_address_that_only_looks_like_another_is_ambiguous_and_shown(given: str, there: str) -> None:
    known = [{"id": "9", "email": there, "erp_code": "A"}]
    assert decided([{"email": given}], known) == ([("ambiguous", None)], [(0, "9", "email", given, there)])
    both = decided([{"email": given}], [*known, {"id": "8", "email": given}])
    assert both == ([("ambiguous", None)], [(0, "9", "email", given, there), (0, "8", "email", given, given)])
    by_code = decided([{"erpCode": "A", "email": given}], known)
    assert by_code == ([("exists_differs", "9")], [(0, "9", "email", given, there)])


def test_codes_are_found_as_they_stand() -> None:
    known = [{"id": "9", "erp_code": "7", "login_code": "l1"}]
    assert decided([{"erpCode": "007"}, {"loginCode": "L1"}, {"erpCode": "7.0"}], known)[0] == [("create", None)] * 3


def test_only_columns_of_the_file_are_compared() -> None:
    known = [{"id": "9", "erp_code": "A", "first_name": "Ana", "last_name": "Ruiz", "phone": "1", "price_list_id": "2"}]
    made, differences = decided(
        [{"erpCode": "A"}, {"erpCode": "A", "firstName": "Ana", "priceListId": "2.0"}, {"erpCode": "A", "phone": "2"}],
        known,
    )
    assert [name for name, _ in made] == ["exists_same", "exists_same", "exists_differs"]
    assert differences == [(2, "9", "phone", "2", "1")]


def test_a_phone_that_the_platform_writes_in_another_way_is_the_same() -> None:
    known = [
        {"id": "9", "erp_code": "A", "phone": "0034600111222"},
        {"id": "8", "erp_code": "B", "phone": "600 333 444"},
    ]
    asked = [{"erpCode": "A", "phone": "+34 600-111-222"}, {"erpCode": "B", "phone": "600333445"}]
    made, differences = decided(asked, known)
    assert [name for name, _ in made] == ["exists_same", "exists_differs"]
    assert differences == [(1, "8", "phone", "600333445", "600 333 444")]


def test_a_value_that_the_platform_lacks_differs() -> None:
    _, differences = decided([{"erpCode": "A", "email": "a@x"}], [{"id": "9", "erp_code": "A"}])
    assert differences == [(0, "9", "email", "a@x", None)]


def test_several_customers_are_ambiguous_and_each_is_reported_with_the_key_that_found_it() -> None:
    known = [{"id": "1", "erp_code": "A"}, {"id": "2", "erp_code": "a", "email": "a@x"}, {"id": "3", "erp_code": "C"}]
    made, differences = decided([{"erpCode": "A", "email": "A@x"}, {"erpCode": "C"}], known)
    assert made == [("ambiguous", None), ("exists_same", "3")]
    assert differences == [(0, "1", "erpCode", "A", "A"), (0, "2", "email", "A@x", "a@x")]


def test_two_keys_that_find_the_same_customer_find_one() -> None:
    known = [{"id": "1", "erp_code": "A", "email": "a@x"}]
    assert decided([{"erpCode": "A", "email": "a@x"}], known)[0] == [("exists_same", "1")]


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
