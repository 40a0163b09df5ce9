"""The ERP's customers are matched one to one, compared by meaning, and none of either side is lost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from tests.transforms.erp.whole import MatchResult, match
from transforms.erp.tables import (
    ERP_CUSTOMERS,
    ERP_DIFFERENCES,
    ERP_FIELDS,
    PLATFORM_CUSTOMERS,
    PLATFORM_DOCUMENTS,
)
from transforms.frames import BIGINT, TEXT, frame

GONE = datetime(2026, 2, 1, tzinfo=UTC)


def erp(*rows: dict[str, Any], without: tuple[str, ...] = ()) -> pd.DataFrame:
    """Lines from 2 on, as below a header."""
    schema = {"_line": BIGINT, **{name: TEXT for name in ERP_FIELDS if name not in without}}
    return frame(schema, [{"_line": line, **row} for line, row in enumerate(rows, 2)])


def customers(*rows: dict[str, Any]) -> pd.DataFrame:
    return frame(PLATFORM_CUSTOMERS, [{"customer_id": str(n), **row} for n, row in enumerate(rows, 1)])


def documents(*rows: dict[str, Any]) -> pd.DataFrame:
    return frame(PLATFORM_DOCUMENTS, [{"position": n, "is_default": False, **row} for n, row in enumerate(rows)])


def matched(lines: pd.DataFrame, known: pd.DataFrame, papers: pd.DataFrame | None = None, **more: Any) -> MatchResult:
    return match(lines, known, documents() if papers is None else papers, **more)


def reported(made: MatchResult, *names: str) -> list[tuple[Any, ...]]:
    """Those columns of the rows, nulls as None."""
    rows = made.customers[list(names)].itertuples(index=False)
    return [tuple(None if pd.isna(value) else value for value in row) for row in rows]


def differing(made: MatchResult) -> list[tuple[Any, ...]]:
    rows = made.differences[["platform_id", "field", "erp_value", "platform_value"]].itertuples(index=False)
    return [tuple(None if pd.isna(value) else value for value in row) for row in rows]


def rules(made: MatchResult) -> list[tuple[str, str, str]]:
    return list(made.findings[["entity", "rule", "entity_id"]].itertuples(index=False, name=None))


def test_keys_are_tried_in_their_order() -> None:
    lines = erp(
        {"erp_code": " A1 ", "email": "b@x"}, {"erp_code": "zz", "login_code": "L2"}, {"email": "C@X "},
        {"document_number": "12.345-k"}, {"erp_code": "nobody"}, {"erp_code": "70.0"}, {"erp_code": "gone"},
    )  # fmt: skip
    known = customers(
        {"erp_code": "A1"}, {"login_code": " L2", "erp_code": "B2"}, {"email": " c@x"}, {"erp_code": "D4"},
        {"email": "b@x"}, {"erp_code": "70"}, {"erp_code": "gone", "_missing_since": GONE},
    )  # fmt: skip
    papers = documents({"customer_id": "4", "number": "1"}, {"customer_id": "4", "number": "12345K"})
    made = matched(lines, known, papers)
    assert reported(made, "line", "erp_code", "customer_id", "status", "matched_by") == [
        (2, " A1 ", "1", "matched", "erp_code"),
        (3, "zz", "2", "matched", "login_code"),
        (4, None, "3", "matched", "email"),
        (5, None, "4", "matched", "document_number"),
        (6, "nobody", None, "only_in_erp", None),
        (7, "70.0", "6", "matched", "erp_code"),
        (8, "gone", None, "only_in_erp", None),
        (None, None, "5", "only_in_platform", None),
    ]
    assert [(rule, line) for _, rule, line in rules(made)] == [
        ("customer_missing", "8"),
        ("erp_code_contradicts", "3"),
        ("erp_code_missing", "4"),
        ("erp_code_missing", "5"),
    ]
    for frame_, schema in ((made.customers, ERP_CUSTOMERS), (made.differences, ERP_DIFFERENCES)):
        assert dict(zip(frame_, (kind.pyarrow_dtype for kind in frame_.dtypes), strict=True)) == schema


def test_an_address_of_several_customers_makes_all_of_them_ambiguous() -> None:
    made = matched(erp({"email": "a@x"}), customers({"email": "a@x"}, {"email": "A@X"}, {"email": "c@x"}))
    assert reported(made, "line", "customer_id", "status", "matched_by", "members", "member_lines") == [
        (2, None, "ambiguous", "email", "1, 2", None),
        (None, "1", "ambiguous", "email", None, "2"),
        (None, "2", "ambiguous", "email", None, "2"),
        (None, "3", "only_in_platform", None, None, None),
    ]
    assert {("erp_customers", "match_ambiguous", "2"), ("customers", "erp_ambiguous", "1")} <= set(rules(made))
    known = [{"email": "a@x"} for _ in range(15)] + [{"login_code": "L"} for _ in range(8)]
    many = matched(erp({"email": "a@x", "login_code": "L"}), customers(*known))
    (members,) = reported(many, "members")[0]
    assert members == "1, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 2, 20, 21, 22, 23, 3, 4, 5, 6, 3 more"


def test_equal_lines_count_once_and_different_ones_with_a_code_are_ambiguous() -> None:
    lines = erp(
        *({"erp_code": code, "phone": phone} for code, phone in zip(("A", "A ", *"BBCC"), "111212", strict=True))
    )
    made = matched(lines, customers({"erp_code": "A", "phone": "1"}, {"erp_code": "B"}))
    assert made.repeated == 1
    assert reported(made, "line", "customer_id", "status", "members", "member_lines") == [
        (2, "1", "matched", None, None),
        (4, None, "ambiguous", "2", None),
        (5, None, "ambiguous", "2", None),
        (6, None, "ambiguous", None, None),
        (7, None, "ambiguous", None, None),
        (None, "2", "ambiguous", None, "4, 5"),
    ]
    assert ("erp_customers", "line_repeated", "3") in rules(made)
    assert [found for found in rules(made) if found[1] == "erp_code_duplicate"] == [
        ("erp_customers", "erp_code_duplicate", line) for line in "4567"
    ]


def test_differences_are_of_meaning_and_reported_as_they_came() -> None:
    lines = erp(
        {
            "erp_code": "A", "email": "ANA@x.com", "first_name": "Ana  María ", "last_name": "Ñandu\u0301",
            "phone": "+51 (9) 11", "price_list_id": "2.0", "document_number": "20-1", "fiscal_name": "Uno S.A.C.",
            "document_email": "B@x",
        }
    )  # fmt: skip
    known = customers(
        {
            "erp_code": "A", "email": "ana@X.com", "first_name": "Ana María", "last_name": "Ñandú", "phone": "0051911",
            "price_list_id": "2",
        }
    )  # fmt: skip
    papers = documents(
        {"customer_id": "1", "number": "10", "fiscal_name": "Otra", "is_default": True},
        {"customer_id": "1", "number": "201", "fiscal_name": "Uno S.A.", "email": "b@x"},
    )
    assert differing(matched(lines, known, papers)) == [("1", "fiscal_name", "Uno S.A.C.", "Uno S.A.")]


@pytest.mark.parametrize(
    ("field", "said", "known", "is_different"),
    [
        ("phone", "France", "france ", False),
        ("phone", "France", "Spain", True),
        ("phone", "11", None, True),
        ("phone", " ", "11", False),
        ("first_name", "ANA", "Ana", False),
        ("first_name", "Ana", "ANA", True),
        ("first_name", "ANNA", "Ana", True),
        ("first_name", None, "Ana", False),
        ("last_name", "Ruiz", " ", True),
        ("last_name", "a\u00a0b", "a b", False),
        ("price_list_id", "02", "2", False),
        ("price_list_id", "20,00", "20", False),
        ("price_list_id", "20,000", "20", True),
        ("price_list_id", "2,50", "2", True),
        ("price_list_id", "0", "2", True),
    ],
)
def test_what_differs(field: str, said: str | None, known: str | None, is_different: bool) -> None:
    made = matched(erp({"erp_code": "A", field: said}), customers({"erp_code": "A", field: known}))
    assert differing(made) == ([("1", field, said, known)] if is_different else [])
    assert reported(made, "difference_count") == [(int(is_different),)]


def test_without_the_number_the_default_document_is_compared() -> None:
    papers = documents(
        {"customer_id": "1", "number": "1", "fiscal_name": "Uno"},
        {"customer_id": "1", "number": "2", "fiscal_name": "Dos", "is_default": True},
    )
    lines = erp({"erp_code": "A", "document_number": "3", "fiscal_name": "Uno"})
    assert differing(matched(lines, customers({"erp_code": "A"}), papers)) == [
        ("1", "document_number", "3", "2"),
        ("1", "fiscal_name", "Uno", "Dos"),
    ]
    bare = erp({"erp_code": "A", "fiscal_name": "Uno"}, without=("document_number",))
    assert differing(matched(bare, customers({"erp_code": "A"}), papers)) == [("1", "fiscal_name", "Uno", "Dos")]
    assert differing(matched(bare, customers({"erp_code": "A"}))) == [("1", "fiscal_name", "Uno", None)]


def test_columns_or_rows_that_a_side_lacks() -> None:
    lines = frame({"_line": BIGINT, "email": TEXT}, [{"_line": 2, "email": "a@x"}])
    made = matched(lines, customers({"email": "a@x", "erp_code": "A", "phone": "1"}))
    assert reported(made, "erp_code", "customer_id", "status", "difference_count") == [(None, "1", "matched", 0)]
    nothing = frame({"_line": BIGINT}, [{"_line": 2}, {"_line": 3}])
    lonely = [(2, "only_in_erp"), (3, "only_in_erp"), (None, "only_in_platform")]
    assert reported(matched(nothing, customers({})), "line", "status") == lonely
    assert reported(matched(erp(), customers({})), "status") == [("only_in_platform",)]
    assert reported(matched(erp({"erp_code": "A"}), customers()), "status") == [("only_in_erp",)]
    assert len(matched(erp(), customers()).customers) == 0


def test_findings_hold_no_code_address_or_name() -> None:
    lines = erp({"erp_code": "SECRETO", "email": "una@persona"}, {"erp_code": "SECRETO", "first_name": "Núñez"})
    made = matched(lines, customers({"erp_code": "SECRETO", "email": "una@persona"}, {"email": "una@persona"}))
    text = made.findings.to_json(force_ascii=False)
    assert len(made.findings)
    assert not any(word in text for word in ("SECRETO", "persona", "Núñez"))


def test_the_frames_that_come_are_left_as_they_are() -> None:
    lines, known = erp({"erp_code": " A "}), customers({"erp_code": "A"})
    before = [pa.Table.from_pandas(frame_) for frame_ in (lines, known)]
    matched(lines, known)
    assert [pa.Table.from_pandas(frame_) for frame_ in (lines, known)] == before
