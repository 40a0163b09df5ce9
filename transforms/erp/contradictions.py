"""Pairs of a line and a customer that their other keys contradict: more likely two people than one.

In: pairs that a key made, and the fields in which they differ. Out: the pairs that are not to be trusted, and why. A
reused code, a swapped cell or a shared mailbox makes a pair by one key; two other keys that both sides have and that
differ outweigh it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pandas as pd

from transforms.erp.match_keys import FREQUENT, MATCH_KEYS, code, loose_code
from transforms.frames import TEXT

CONTRADICTING_KEYS: Final = 2
"""So many other keys that differ veto a pair. One may be a typo, or what was changed on one side."""


def contradicted(
    pairs: pd.DataFrame,
    differences: pd.DataFrame,
    lines: Mapping[str, pd.Series[str]],
    customers: Mapping[str, pd.Series[str]],
) -> pd.DataFrame:
    """The pairs that are vetoed.

    Args:
        pairs: `line`, `customer`, `matched_by`.
        differences: `row` (of the line), `field`, `erp_value`, `platform_value`; those of other lines are not used.
        lines: for each key its values in the file, as given.
        customers: for each key its values on the platform, as given; of documents indexed by customer.

    Returns:
        `line`, `reason`; by line.
    """
    keys = differences[differences["field"].isin(list(MATCH_KEYS))]
    keys = keys.rename(columns={"row": "line"}).merge(pairs, on="line", validate="m:1")
    if keys.empty:
        return pd.DataFrame({"line": keys["line"], "reason": keys["field"]})
    is_deciding = keys["field"] == keys["matched_by"]  # equal where look-alikes are taken for one, and different
    lookalikes = keys.loc[is_deciding, ["line"]].assign(reason="the addresses only look alike")
    others = _several(keys[~is_deciding])
    others = _several(others[_is_evidence(others, customers)])
    for column, side in (("erp_value", lines), ("platform_value", customers)):
        others = _several(others[~_is_frequent(others[column], others["field"], side)])
    reasons = others.groupby("line")["field"].agg(", ".join).rename("reason").reset_index()
    reasons["reason"] += " differ"
    vetoed = pd.concat([lookalikes, reasons.astype({"reason": pd.ArrowDtype(TEXT)})])
    return vetoed.drop_duplicates("line").sort_values("line", ignore_index=True)


def _several(keys: pd.DataFrame) -> pd.DataFrame:
    """The differences of pairs that have enough of them."""
    return keys[keys.groupby("line")["line"].transform("size") >= CONTRADICTING_KEYS]


def _is_evidence(differences: pd.DataFrame, customers: Mapping[str, pd.Series[str]]) -> pd.Series[bool]:
    """Whether both sides of a difference have a value that identifies someone, and the values are not nearly equal."""
    is_evidence = pd.Series(False, differences.index)
    for name, rows in differences.groupby("field"):
        key = MATCH_KEYS[str(name)]
        ours, theirs = key.normalize(rows["erp_value"]), key.normalize(rows["platform_value"])
        if name == "document_number":  # of any document: a difference means that none has the ERP's number
            papers = customers["document_number"]
            papers = papers[papers.index.isin(rows["customer"])].pipe(key.normalize)
            is_present = rows["customer"].isin(papers.index[key.identifies(papers)])
        else:
            near = loose_code if key.normalize is code else key.normalize
            is_present = key.identifies(theirs) & (near(ours) != near(theirs)).fillna(False)
        is_evidence[rows.index] = (key.identifies(ours) & is_present).astype("bool")
    return is_evidence


def _is_frequent(values: pd.Series[str], fields: pd.Series[str], side: Mapping[str, pd.Series[str]]) -> pd.Series[bool]:
    """Whether each value of a field identifies someone, yet many rows of its side have it."""
    is_frequent = pd.Series(False, values.index)
    for name in fields.unique():
        key = MATCH_KEYS[name]
        of_field = values[fields == name]
        of_field = of_field[key.identifies(key.normalize(of_field))]
        counts = side[name][side[name].isin(of_field)].value_counts()
        is_frequent[of_field.index] = of_field.isin(counts[counts > FREQUENT].index).astype("bool")
    return is_frequent
