"""Phone numbers in two notations: one rule for the match with the ERP and for a create that is read back."""

from __future__ import annotations

import pandas as pd
import pytest

from orderbridge.pipelines.push.listing import differing_fields
from orderbridge.transforms.frames import TEXT
from orderbridge.transforms.phones import same_phone


@pytest.mark.parametrize(
    ("left", "right", "country", "is_same"),
    [
        ("+34 600-11 22 33", "34600112233", None, True), ("0034600112233 / 915550103", "34600112233", None, True),
        ("600 112 233", "+34600112233", "ES", True), ("600 112 233", "+34600112233", None, False),
        ("600 112 233", "600112234", "ES", False), ("+44 (0)20 7946 0000", "020 7946 0000", "GB", True),
        ("915 550 103 ext. 4", "915550103", None, True), ("France", "france ", None, True),
        ("France", "", None, False), ("0", "00", None, False),
    ],
)  # fmt: skip
def test_reconcile_and_push_have_one_rule(
    left: str, right: str, country: str | None, is_same: bool
) -> None:
    one, other = (pd.Series([text], dtype=pd.ArrowDtype(TEXT)) for text in (left, right))
    assert same_phone(one, other, country).tolist() == [is_same]
    assert differing_fields({"phone": left}, {"phone": right}, country) == (
        [] if is_same else ["phone"]
    )
