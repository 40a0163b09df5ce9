"""Findings of the match between the ERP's customers and the platform's.

In: the lines of the ERP, the keys of both sides, and what the keys have decided. Out: frames of findings. A line is
named by its number in the file: codes, addresses and names stay out of the findings.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from transforms.erp.cascade import Decisions, Side
from transforms.erp.match_keys import MATCH_KEYS, code, loose_code
from transforms.findings import UniqueValues, rule_findings, shared_value_findings
from transforms.frames import TEXT, is_repeated, joined_text

LINE_ENTITY: Final = "erp_customers"
"""The entity of findings about lines; their `entity_id` is the line's number."""


def line_findings(lines: Side, repeated: pd.Series[str], decisions: Decisions) -> list[pd.DataFrame]:
    """What is wrong with the file on its own; `repeated` are the numbers of lines that are equal to an earlier one."""
    findings = [_about(repeated, "line_repeated")]
    is_without_key = lines.undecided(decisions.pairs["line"], decisions.ambiguous_lines["row"])
    ambiguous = decisions.ambiguous_lines[decisions.ambiguous_lines["matched_by"] == "erp_code"]["row"]
    for key, values in lines.keys.items():
        several = values.loc[ambiguous] if key == "erp_code" else values  # a line with another's code is ambiguous
        several = several[is_repeated(several)]
        is_key = MATCH_KEYS[key].identifies(several)
        names = lines.names.iloc[several.index]
        findings.append(shared_value_findings(LINE_ENTITY, f"{key}_duplicate", UniqueValues(names, several, is_key)))
        with_key = values[is_without_key[values.index]]
        is_without_key[with_key.index[MATCH_KEYS[key].identifies(with_key)]] = False
    findings.append(_about(lines.names[is_without_key], "key_missing"))
    if "erp_code" in lines.keys:
        without_code = np.flatnonzero(lines.undecided(lines.keys["erp_code"].index))
        findings.append(_about(lines.names.iloc[without_code], "erp_code_missing"))
    return findings


def decision_findings(decisions: Decisions, lines: Side, customers: Side) -> list[pd.DataFrame]:
    """Rows that are ambiguous, and lines with a placeholder, with the key that has it."""
    findings = []
    for entity, rule, side, rows in (
        (LINE_ENTITY, "match_ambiguous", lines, decisions.ambiguous_lines),
        ("customers", "erp_ambiguous", customers, decisions.ambiguous_customers),
    ):
        detail = joined_text(["by ", rows["matched_by"], ": ", rows["reason"]])
        findings.append(rule_findings(entity, rule, side.names.iloc[rows["row"]].reset_index(drop=True), detail=detail))
    stand_ins = decisions.stand_ins
    rows_of_lines = lines.names.iloc[stand_ins["row"]].reset_index(drop=True)
    return [*findings, rule_findings(LINE_ENTITY, "key_stand_in", rows_of_lines, detail=stand_ins["matched_by"])]


def contradicting_codes(decisions: Decisions, lines: Side, customers: Side) -> pd.DataFrame:
    """Lines that another key has matched although the ERP codes of both sides differ."""
    if "erp_code" not in lines.keys:
        return _about(lines.names[:0], "erp_code_contradicts")
    others = decisions.pairs[decisions.pairs["matched_by"] != "erp_code"]
    ours = lines.keys["erp_code"].reindex(others["line"]).array
    theirs = code(customers.keys["erp_code"].iloc[others["customer"]]).array
    contradicts = (pd.Series(ours) != pd.Series(theirs)).fillna(False).to_numpy(np.bool_)
    return _about(lines.names.iloc[others["line"][contradicts]], "erp_code_contradicts")


class UnmatchedCodes(NamedTuple):
    """The ERP codes of rows that no key has decided.

    Attributes:
        lines: the normalized codes, indexed by line number as text.
        customers: as given.
    """

    lines: pd.Series[str]
    customers: pd.Series[str]


def unmatched_codes(decisions: Decisions, lines: Side, customers: Side) -> UnmatchedCodes:
    """The codes to which `unmatched_code_findings` refers; none where the file has no codes."""
    codes, known = lines.keys.get("erp_code"), customers.keys["erp_code"]
    if codes is None:
        return UnmatchedCodes(lines.names[:0], known[:0])
    pairs = decisions.pairs
    codes = codes[lines.undecided(pairs["line"], decisions.ambiguous_lines["row"])[codes.index]]
    known = known[customers.undecided(pairs["customer"], decisions.ambiguous_customers["row"])]
    return UnmatchedCodes(codes.set_axis(lines.names.iloc[codes.index]), known)


def unmatched_code_findings(unmatched: UnmatchedCodes, missing_codes: pd.Series[str]) -> list[pd.DataFrame]:
    """Unmatched lines whose code a missing customer had, or whose code nearly equals that of an unmatched customer."""
    names, codes = pd.Series(unmatched.lines.index, dtype=pd.ArrowDtype(TEXT)), unmatched.lines.reset_index(drop=True)
    is_missing = codes.isin(code(missing_codes))
    is_near = loose_code(codes).isin(loose_code(code(unmatched.customers)))
    return [_about(names[is_missing], "customer_missing"), _about(names[is_near], "erp_code_nearly")]


def _about(lines: pd.Series[str], rule: str) -> pd.DataFrame:
    return rule_findings(LINE_ENTITY, rule, lines)
