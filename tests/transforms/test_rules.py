"""Findings come from the catalogue, in one order."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

from transforms.findings import FINDINGS, combine_findings, count_text, rule_findings, table_finding
from transforms.frames import column, frame
from transforms.rules import RULES

IDS, COUNTS = column(pa.array(["2", "1", "3"])), column(pa.array([2, 9, 1]))


def found(*rows: tuple[str | None, str, str, str]) -> pd.DataFrame:
    names = ("entity_id", "rule", "severity", "detail")
    return frame(FINDINGS, [{"entity": "customers", **dict(zip(names, row, strict=True))} for row in rows])


def test_a_rule_is_raised_where_it_holds() -> None:
    made = rule_findings("customers", "email_malformed", IDS, column(pa.array([True, None, False])), "email")
    assert_frame_equal(made, found(("2", "email_malformed", "warning", "email")))


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
