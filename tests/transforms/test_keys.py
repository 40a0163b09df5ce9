"""Frames hold what Arrow holds, ids and codes are compared in one form, and findings come from the catalogue."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

from transforms.findings import (
    FINDINGS,
    UniqueValues,
    combine_findings,
    count_text,
    rule_findings,
    shared_value_findings,
    table_finding,
)
from transforms.frames import array, column, frame
from transforms.keys import canonical_id, fold_case
from transforms.rules import RULES


def test_ids_of_both_families_have_one_form_and_codes_keep_their_zeros() -> None:
    ids = pa.array(["1", "1.0", " 1 ", "1.50", "01", "a.0", "", None])
    assert array(canonical_id(column(ids))).to_pylist() == ["1", "1", "1", "1.50", "01", "a.0", None, None]


def test_case_is_folded_beyond_ascii_too() -> None:
    folded = fold_case(column(pa.array([" A@B.C", "STRASSE", "straße", "ÑU", None, " "])))
    assert array(folded).to_pylist() == ["a@b.c", "strasse", "strasse", "ñu", None, None]


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


IDS, COUNTS = column(pa.array(["2", "1", "3"])), column(pa.array([2, 9, 1]))


def found(*rows: tuple[str | None, str, str, str]) -> pd.DataFrame:
    names = ("entity_id", "rule", "severity", "detail")
    return frame(FINDINGS, [{"entity": "customers", **dict(zip(names, row, strict=True))} for row in rows])


def test_findings_are_in_one_order_however_they_came() -> None:
    parts = [
        rule_findings("customers", "name_missing", IDS, column(pa.array([True, True, False]))),
        table_finding("customers", "created_at_form", "createdAt: ambiguous"),
        rule_findings("customers", "document_missing", IDS, detail=count_text("", COUNTS, " seen")),
    ]
    expected = found(
        (None, "created_at_form", "error", "createdAt: ambiguous"),
        ("1", "document_missing", "info", "9 seen"),
        ("2", "document_missing", "info", "2 seen"),
        ("3", "document_missing", "info", "1 seen"),
        ("1", "name_missing", "info", ""),
        ("2", "name_missing", "info", ""),
    )
    for some in (parts, parts[::-1], [pd.concat(parts)]):
        assert_frame_equal(combine_findings(some), expected)
    assert_frame_equal(combine_findings([]), frame(FINDINGS))


def test_a_rule_that_is_not_in_the_catalogue_is_an_error() -> None:
    with pytest.raises(KeyError, match="no_such"):
        rule_findings("customers", "no_such", IDS)


def test_every_rule_has_one_name_in_its_entity_and_one_sentence() -> None:
    assert len({(rule.entity, rule.name) for rule in RULES}) == len(RULES)
    assert all(rule.meaning.endswith(".") and "\n" not in rule.meaning for rule in RULES)
