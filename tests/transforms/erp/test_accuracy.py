"""Precision and recall of a match of 20,000 generated lines."""

from __future__ import annotations

from tests.transforms.erp.truth import accuracy

PRECISION_MIN, RECALL_MIN = 0.999, 0.97


def test_matches_are_right_and_few_are_missed() -> None:
    """Of what is missed, nearly all has no key in common."""
    precision, recall = accuracy(1)
    assert precision >= PRECISION_MIN, (precision, recall)
    assert recall >= RECALL_MIN, (precision, recall)
