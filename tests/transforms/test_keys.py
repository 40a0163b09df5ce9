"""Ids and codes are compared in one form; a finding of what is shared names the first that has it."""

from __future__ import annotations

import pyarrow as pa

from orderbridge.transforms import findings as of_rows
from orderbridge.transforms.frames import array, column
from orderbridge.transforms.values.keys import canonical_id, fold_case
from tests.transforms.rows import values


def test_ids_have_one_form_codes_keep_their_zeros_and_case_folds_beyond_ascii() -> None:
    ids = pa.array(["1", "1.0", " 1 ", "1.50", "01", "a.0", "", None])
    assert array(canonical_id(column(ids))).to_pylist() == [
        "1",
        "1",
        "1",
        "1.50",
        "01",
        "a.0",
        None,
        None,
    ]
    folded = fold_case(column(pa.array([" A@B.C", "STRASSE", "straße", "ÑU", None, " "])))
    assert array(folded).to_pylist() == ["a@b.c", "strasse", "strasse", "ñu", None, None]


def test_what_is_shared_names_the_first_that_has_it() -> None:
    ids, shared = (
        column(pa.array(["1", "2", "2", "3", "4", "5"])),
        column(pa.array(["x", "x", "y", "x", "y", None])),
    )
    is_counted = column(pa.array([True, True, True, False, True, True]))
    made = of_rows.shared_value_findings(
        "customers", "erp_code_duplicate", of_rows.UniqueValues(ids, shared, is_counted)
    )
    words = "shared with 1 more; the first of all is {}".format
    assert values(made, "entity_id", "detail") == [
        ("1", words(1)), ("2", words(1)), ("2", words(2)), ("4", words(2)),
    ]  # fmt: skip
