"""Ids and codes are compared in one form, and one row is kept for an id."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pyarrow as pa
from pandas.testing import assert_frame_equal

from transforms.findings import FINDINGS, UniqueValues, shared_value_findings
from transforms.frames import TEXT, TIMESTAMP, array, column, frame
from transforms.keys import canonical_id, clean_text, fold_case, one_row_per_id

ROWS = {"id": TEXT, "name": TEXT, "_last_seen_at": TIMESTAMP, "_missing_since": TIMESTAMP}
EARLY, LATE = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)


def rows(*made: dict[str, Any]) -> pd.DataFrame:
    return frame(ROWS, made)


def test_ids_of_both_families_have_one_form_and_codes_keep_their_zeros() -> None:
    ids = pa.array(["1", "1.0", " 1 ", "1.50", "01", "a.0", "", None])
    assert array(canonical_id(column(ids))).to_pylist() == ["1", "1", "1", "1.50", "01", "a.0", None, None]


def test_blank_texts_are_nulls() -> None:
    assert array(clean_text(column(pa.array([" a b ", " \t", "", None])))).to_pylist() == ["a b", None, None, None]


def test_case_is_folded_beyond_ascii_too() -> None:
    assert array(fold_case(column(pa.array([" A@B.C", "STRASSE", "straße", "ÑU", None, " "])))).to_pylist() == [
        "a@b.c",
        "strasse",
        "strasse",
        "ñu",
        None,
        None,
    ]


def test_of_rows_with_one_id_the_listed_one_seen_last_is_kept() -> None:
    made, findings = one_row_per_id(
        rows(
            {"id": "2", "name": "gone", "_last_seen_at": LATE, "_missing_since": LATE},
            {"id": "2", "name": "early", "_last_seen_at": EARLY},
            {"id": "2", "name": "late", "_last_seen_at": LATE},
            {"id": "1", "name": "b"},
            {"id": "1", "name": "a"},
        ),
        "customers",
    )
    assert_frame_equal(made, rows({"id": "1", "name": "a"}, {"id": "2", "name": "late", "_last_seen_at": LATE}))
    assert [one["entity_id"].tolist() for one in findings] == [["1", "2", "2"]]


def test_rows_without_an_id_are_found_and_left_out() -> None:
    made, findings = one_row_per_id(rows({"id": " "}, {"name": "x"}, {"id": "1"}), "orders")
    assert_frame_equal(made, rows({"id": "1"}))
    missing = {"entity": "orders", "rule": "id_missing", "severity": "error", "detail": ""}
    assert_frame_equal(findings[0], frame(FINDINGS, [missing, missing]))


def test_what_is_shared_names_the_first_that_has_it() -> None:
    ids, values = column(pa.array(["1", "2", "2", "3", "4", "5"])), column(pa.array(["x", "x", "y", "x", "y", None]))
    is_counted = column(pa.array([True, True, True, False, True, True]))
    made = shared_value_findings("customers", "erp_code_duplicate", UniqueValues(ids, values, is_counted))
    assert made[["entity_id", "detail"]].to_dict("records") == [
        {"entity_id": "1", "detail": "shared with 1 more; the first of all is 1"},
        {"entity_id": "2", "detail": "shared with 1 more; the first of all is 1"},
        {"entity_id": "2", "detail": "shared with 1 more; the first of all is 2"},
        {"entity_id": "4", "detail": "shared with 1 more; the first of all is 2"},
    ]
