"""E-mail addresses: one rule for a text and for a column."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orderbridge.pipelines.ledger.keys import comparable as one_comparable
from orderbridge.pipelines.ledger.keys import search_key as one_search_key
from orderbridge.transforms.upserts.decisions import comparable, search_key
from orderbridge.transforms.values.texts import (
    email_key,
    lookalike_key,
    one_email_key,
    one_lookalike_key,
)

LETTERS = "aZ@. \t\x1c\x85\u00a0\u00ad\u200b\u2003ñÑßſKＫİi̇ﬁ①éeé\u0301Ωώ"


@settings(deadline=None)
@given(st.lists(st.none() | st.text(LETTERS, max_size=8) | st.text(max_size=8), max_size=8))
@example(["ANA@X.test ", "maria@ſhop.es", "K@x", None, "", "\u200b"])
def test_a_text_and_a_column_have_the_same_keys(texts: list[str | None]) -> None:
    column = pd.Series(texts, dtype=pd.ArrowDtype(pa.string()))
    for of_column, of_text in (
        (email_key(column), one_email_key),
        (lookalike_key(column), one_lookalike_key),
        (comparable("email", column), lambda text: one_comparable("email", text)),
        (search_key("email", column), lambda text: one_search_key("email", text)),
        (comparable("erpCode", column), lambda text: one_comparable("erpCode", text)),
        (search_key("loginCode", column), lambda text: one_search_key("loginCode", text)),
    ):
        assert pa.array(of_column).to_pylist() == [
            None if text is None else of_text(text) or None for text in texts
        ]


@pytest.mark.parametrize(
    ("one", "other", "is_same", "looks_alike"),
    [
        (" ANA@X.test", "ana@x.test", True, True), ("maria@ſhop.es", "maria@shop.es", False, True),
        ("straße@x.test", "strasse@x.test", False, True), ("JOSÉ@x.test", "josé@x.test", False, True),
        ("jose\u0301@x.test", "josé@x.test", True, True), ("an\u200ba@x.test", "ana@x.test", True, True),
        ("\u212a@x.test", "k@x.test", False, True), ("ana@x.test", "anna@x.test", False, False),
    ],
)  # fmt: skip
def test_look_alike_addresses_are_found_and_not_equal(
    one: str, other: str, is_same: bool, looks_alike: bool
) -> None:
    assert (one_email_key(one) == one_email_key(other)) is is_same
    assert (one_lookalike_key(one) == one_lookalike_key(other)) is looks_alike
