"""Findings of the match between the ERP's customers and the platform's.

In: the lines of the ERP, and what was decided about pairs. Out: frames of findings. A line is named by its number in
the file: codes, addresses and names stay out of the findings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from orderbridge.transforms.erp.candidates import UsableKeys
from orderbridge.transforms.erp.compare import Pairs
from orderbridge.transforms.erp.decide import Decisions, texts_of
from orderbridge.transforms.erp.evidence import DIFFERENT, EQUAL, NEAR, SHARED, Evidence
from orderbridge.transforms.erp.match_keys import code
from orderbridge.transforms.findings import UniqueValues, rule_findings, shared_value_findings
from orderbridge.transforms.frames import TEXT, Bools, joined_text

LINE_ENTITY: Final = "erp_customers"
"""The entity of findings about lines; their `entity_id` is the line's number."""


def line_findings(
    numbers: pd.Series[str],
    values: Mapping[str, pd.Series[str]],
    usable: Mapping[str, UsableKeys],
    is_matched: Bools,
    is_decided: Bools,
) -> list[pd.DataFrame]:
    """What is wrong with the file on its own.

    Args:
        numbers: of the lines, as text.
        values: the normalized values of their keys, by key and row number.
        usable: see `transforms.erp.candidates.common_keys`.
        is_matched: whether each line is matched.
        is_decided: whether each line is matched or ambiguous.
    """
    findings: list[pd.DataFrame] = []
    is_without_key = ~is_decided
    for key, of_key in values.items():
        is_usable = usable[key].lines[of_key.index]
        several = of_key[usable[key].first[of_key.index] >= 0]
        of_several = UniqueValues(numbers.iloc[several.index], several, several.notna())
        findings.append(shared_value_findings(LINE_ENTITY, f"{key}_duplicate", of_several))
        stand_ins = of_key.index[~is_usable & ~is_matched[of_key.index]]
        findings.append(
            rule_findings(LINE_ENTITY, "key_stand_in", numbers.iloc[stand_ins], detail=key)
        )
        is_without_key[of_key.index[is_usable]] = False
    findings.append(_about(numbers[is_without_key], "key_missing"))
    if "erp_code" in values:
        findings.append(_about(numbers.drop(values["erp_code"].index), "erp_code_missing"))
    return findings


def decision_findings(decisions: Decisions, *names: pd.Series[str]) -> list[pd.DataFrame]:
    """Rows that are ambiguous; `names` are those of lines and of customers."""
    findings = []
    for entity, rule, of_side, rows in (
        (LINE_ENTITY, "match_ambiguous", names[0], decisions.ambiguous_lines),
        ("customers", "erp_ambiguous", names[1], decisions.ambiguous_customers),
    ):
        detail = joined_text(["by ", rows["matched_by"], ": ", rows["reason"]])
        findings.append(
            rule_findings(
                entity, rule, of_side.iloc[rows["row"]].reset_index(drop=True), detail=detail
            )
        )
    return findings


def pair_findings(
    numbers: pd.Series[str], pairs: Pairs, evidence: Evidence, decisions: Decisions
) -> list[pd.DataFrame]:
    """Matched lines that another key than the ERP code has matched although both sides have one; and doubtful matches.

    A match is doubtful where the names differ, or where nothing agrees but the key that made it, and two fields differ.
    """
    is_match = decisions.is_match & (decisions.matched_by != "reviewed").to_numpy(np.bool_)
    contradicts = is_match & evidence.has("erp_code", NEAR, DIFFERENT)
    agreeing, differing = (
        np.sum([evidence.has(field, *marks) for field in evidence.marks], axis=0)
        for marks in ((EQUAL, SHARED, NEAR), (DIFFERENT,))
    )
    is_doubtful = is_match & (evidence.is_unlike | ((agreeing < 2) & (differing > 1)))
    rows = np.flatnonzero(is_doubtful)
    fields = {field: evidence.has(field, DIFFERENT) for field in evidence.marks}
    detail = joined_text([texts_of(fields, rows), " differ"])
    doubtful = rule_findings(
        LINE_ENTITY, "match_doubtful", numbers.iloc[pairs.line[rows]], detail=detail
    )
    return [_about(numbers.iloc[pairs.line[contradicts]], "erp_code_contradicts"), doubtful]


def missing_customer_findings(
    unmatched: pd.Series[str], missing_codes: pd.Series[str]
) -> pd.DataFrame:
    """Unmatched lines whose code a missing customer had.

    `unmatched` are the normalized codes, indexed by line number as text; `missing_codes` are as given.
    """
    names = pd.Series(unmatched.index, dtype=pd.ArrowDtype(TEXT))
    return _about(names[unmatched.isin(code(missing_codes)).to_numpy(np.bool_)], "customer_missing")


def _about(lines: pd.Series[str], rule: str) -> pd.DataFrame:
    return rule_findings(LINE_ENTITY, rule, lines)
