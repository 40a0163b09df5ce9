"""Ids and codes are compared in one form, and findings are in one order."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
from pandas.testing import assert_frame_equal

from tests.transforms.rows import values
from transforms import findings as of_rows
from transforms.findings import FINDINGS, combine_findings, rule_findings
from transforms.frames import array, column, frame
from transforms.keys import canonical_id, fold_case


def test_ids_of_both_families_have_one_form_codes_keep_their_zeros_and_case_is_folded_beyond_ascii() -> None:
    ids = pa.array(["1", "1.0", " 1 ", "1.50", "01", "a.0", "", None])
    assert array(canonical_id(column(ids))).to_pylist() == ["1", "1", "1", "1.50", "01", "a.0", None, None]
    folded = fold_case(column(pa.array([" A@B.C", "STRASSE", "straße", "ÑU", None, " "])))
    assert array(folded).to_pylist() == ["a@b.c", "strasse", "strasse", "ñu", None, None]


def test_what_is_shared_names_the_first_that_has_it() -> None:
    ids, shared = column(pa.array(["1", "2", "2", "3", "4", "5"])), column(pa.array(["x", "x", "y", "x", "y", None]))
    is_counted = column(pa.array([True, True, True, False, True, True]))
    made = of_rows.shared_value_findings(
        "customers", "erp_code_duplicate", of_rows.UniqueValues(ids, shared, is_counted)
    )
    words = "shared with 1 more; the first of all is {}".format
    assert values(made, "entity_id", "detail") == [
        ("1", words(1)), ("2", words(1)), ("2", words(2)), ("4", words(2)),
    ]  # fmt: skip


def test_findings_are_in_one_order_however_they_came() -> None:
    ids, counts = column(pa.array(["2", "1", "3"])), column(pa.array([2, 9, 1]))
    parts = [
        rule_findings("customers", "name_missing", ids, column(pa.array([True, True, False]))),
        of_rows.table_finding("customers", "created_at_form", "createdAt: ambiguous"),
        rule_findings("customers", "document_missing", ids, detail=of_rows.count_text("", counts, " seen")),
    ]
    expected = [
        ("customers", None, "created_at_form", "error", "createdAt: ambiguous"),
        *(
            ("customers", one, "document_missing", "info", f"{seen} seen")
            for one, seen in (("1", 9), ("2", 2), ("3", 1))
        ),
        *(("customers", one, "name_missing", "info", "") for one in ("1", "2")),
    ]
    for some in (parts, parts[::-1], [pd.concat(parts)]):
        assert values(combine_findings(some)) == expected
    assert_frame_equal(combine_findings([]), frame(FINDINGS))
