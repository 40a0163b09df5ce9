"""The tables of a match: the columns that it takes, and `erp_customers` and `erp_differences`, which it gives.

In: both sides, row numbers of the pairs, and what the keys have decided. Out: frames with the columns of
`ERP_CUSTOMERS` and `DIFFERENCES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa

from orderbridge.transforms.erp.compare import COMPARISONS, Compared, Pairs, is_given
from orderbridge.transforms.erp.decide import Decisions, joined_texts, texts_of
from orderbridge.transforms.erp.evidence import Evidence
from orderbridge.transforms.erp.match_keys import MATCH_KEYS
from orderbridge.transforms.frames import (
    BIGINT,
    BOOLEAN,
    TEXT,
    TIMESTAMP,
    Column,
    Ints,
    array,
    column,
    constant,
    is_repeated,
    joined_text,
    take_or_null,
    typed,
)

ERP_FIELDS: Final = tuple(COMPARISONS)
"""Of the ERP's customer: columns of text, any of which may be absent. `_line` (bigint) is the line's number."""
_TEXTS: Final = (
    "erp_code",
    "login_code",
    "email",
    "first_name",
    "last_name",
    "full_name",
    "phone",
    "price_list_id",
)
PLATFORM_CUSTOMERS: Final = {
    "customer_id": TEXT,
    **dict.fromkeys(_TEXTS, TEXT),
    "_missing_since": TIMESTAMP,
}
"""The columns of the reconciled customers that are used."""
PLATFORM_DOCUMENTS: Final = {
    "position": BIGINT,
    **dict.fromkeys(("customer_id", "number", "fiscal_name", "fiscal_address", "email"), TEXT),
    "is_default": BOOLEAN,
}
"""The columns of the raw documents that are used."""
ERP_CUSTOMERS: Final = {
    "erp_code": TEXT,
    "customer_id": TEXT,
    "status": TEXT,
    "matched_by": TEXT,
    "difference_count": BIGINT,
    "line": BIGINT,
    "name": TEXT,
    "members": TEXT,
    "member_lines": TEXT,
    "reason": TEXT,
}
"""`erp_code` is the ERP's, and the platform's in a row without a line. `matched_by` of an ambiguous row is the key that
made it so, and `reason` is how. `members` are the ids of the customers that an ambiguous line may be, `member_lines`
the lines that an ambiguous customer may be. `name` is the ERP's where there is a line."""
ERP_DIFFERENCES: Final = dict.fromkeys(
    ("entity", "erp_code", "platform_id", "field", "erp_value", "platform_value"), TEXT
)
DIFFERENCES: Final = {**ERP_DIFFERENCES, "line": BIGINT}
ERP_PAIRS: Final = {
    "line": BIGINT,
    "erp_code": TEXT,
    "customer_id": TEXT,
    "status": TEXT,
    "matched_by": TEXT,
    "weight": BIGINT,
    "agreeing": TEXT,
    "differing": TEXT,
    "differences": TEXT,
    "line_key": TEXT,
}
"""`status` is `matched`, `possible` where the pair makes its line ambiguous, or `suggested`, which makes no row so.
`agreeing` and `differing` are fields that both sides have, and `differences` their values."""


def customers_table(
    lines: pd.DataFrame,
    names: Column[str],
    customers: pd.DataFrame,
    customer: Ints,
    decisions: Decisions,
    pairs: Pairs,
    differences: pd.DataFrame,
) -> pd.DataFrame:
    """The columns of `ERP_CUSTOMERS`: a row for each line, then one for each customer that no line is.

    Args:
        lines: in the order of row numbers.
        names: of the lines: see `line_names`.
        customers: in the order of row numbers.
        customer: the row number of the customer of each line; -1: none.
        decisions: about pairs.
        pairs: all of them.
        differences: see `compare`; of matched pairs, and `row` is the line's.
    """
    matched_by = decisions.matched_by[decisions.is_match].array
    matched = pd.DataFrame(
        {"row": pairs.line[decisions.is_match], "matched_by": matched_by}
    ).assign(status="matched")
    outcomes = pd.concat([matched, decisions.ambiguous_lines.assign(status="ambiguous")]).set_index(
        "row"
    )
    counts = np.bincount(differences["row"], minlength=len(customer))
    of_lines = (
        pd.DataFrame(
            {"erp_code": _or_null(lines, "erp_code"), "line": lines["_line"], "name": names}
        )
        .assign(
            customer_id=take_or_null(customers[["customer_id"]], customer)["customer_id"].array,
            difference_count=pa.array(counts, mask=customer < 0),
        )
        .join(outcomes, validate="1:1")
        .fillna({"status": "only_in_erp"})
    )
    is_matched = np.zeros(len(customers), np.bool_)
    is_matched[customer[customer >= 0]] = True
    ambiguity = decisions.ambiguous_customers.rename(columns={"members": "member_lines"}).assign(
        status="ambiguous"
    )
    of_customers = (
        customers[["erp_code", "customer_id", "full_name"]][~is_matched]
        .rename(columns={"full_name": "name"})
        .join(ambiguity.set_index("row"), validate="1:1")
        .fillna({"status": "only_in_platform"})
    )
    columns = list(ERP_CUSTOMERS)
    return pd.concat(
        [typed(side.reindex(columns=columns), ERP_CUSTOMERS) for side in (of_lines, of_customers)],
        ignore_index=True,
    )


def _or_null(lines: pd.DataFrame, name: str) -> Column[str]:
    return lines[name] if name in lines else constant(None, lines.index)


def line_names(lines: pd.DataFrame) -> Column[str]:
    """The fiscal name of a line, else its first and last name; null without any."""
    fiscal, first, last = (
        _or_null(lines, name).str.strip().fillna("")
        for name in ("fiscal_name", "first_name", "last_name")
    )
    names = joined_text([first, last], " ").str.strip()
    if "fiscal_name" in lines:
        names = fiscal.where(fiscal != "", names)
    return names.where(names != "")


def differences_table(
    lines: pd.DataFrame, customers: pd.DataFrame, customer: Ints, differences: pd.DataFrame
) -> pd.DataFrame:
    """The columns of `DIFFERENCES`."""
    rows = differences["row"].to_numpy(np.int64)
    codes = _or_null(lines, "erp_code").iloc[rows].array
    numbers = lines["_line"].iloc[rows].array
    ids = customers["customer_id"].iloc[customer[rows]].array
    return typed(
        differences.assign(entity="customers", erp_code=codes, platform_id=ids, line=numbers),
        DIFFERENCES,
    )


def pairs_table(
    lines: pd.DataFrame,
    customers: pd.DataFrame,
    pairs: Pairs,
    evidence: Evidence,
    compared: Compared,
    decisions: Decisions,
    values: Mapping[str, pd.Series[str]],
) -> pd.DataFrame:
    """The columns of `ERP_PAIRS`: the pairs that are matched, and those that make a row ambiguous.

    `values` are the normalized keys of lines, by key and row number.
    """
    rows = np.flatnonzero(decisions.is_match | decisions.is_open)
    shown = pairs.where(rows)
    unique_lines = shown.line[np.diff(shown.line, prepend=-1) > 0]
    numbers = np.full(len(pairs.line), -1)
    numbers[rows] = np.arange(len(rows))
    both = compared.differences[
        is_given(array(compared.differences["platform_value"])).to_numpy(zero_copy_only=False)
    ]
    both = both.assign(row=numbers[both["row"]])
    both = both[both["row"] >= 0]
    differing = {field: np.zeros(len(rows), np.bool_) for field in compared.agrees}
    for field, of_field in both.groupby("field"):
        differing[str(field)][of_field["row"]] = True
    texts = joined_text([both["field"], ": ", both["erp_value"], " / ", both["platform_value"]])
    made = pd.DataFrame({"line": lines["_line"].iloc[shown.line].array})
    made = made.assign(
        erp_code=_or_null(lines, "erp_code").iloc[shown.line].array,
        customer_id=customers["customer_id"].iloc[shown.customer].array,
        status=column(
            pa.array(["possible", "matched"]).take(
                pa.array(decisions.is_match[rows].astype(np.int8))
            )
        ),
        matched_by=decisions.matched_by.iloc[rows].array,
        weight=evidence.weight[rows],
        agreeing=texts_of(compared.agrees, rows).array,
        differing=texts_of(differing, np.arange(len(rows))).array,
        differences=joined_texts(texts, both["row"]).reindex(np.arange(len(rows))).array,
        line_key=line_keys(values, unique_lines).reindex(shown.line).array,
    )
    return typed(made, ERP_PAIRS)


def line_keys(values: Mapping[str, pd.Series[str]], rows: Ints) -> pd.Series[str]:
    """What names lines in any file, by row number: the ERP code, if no other line has it; else a digest of all keys.

    A spreadsheet takes neither for a number.

    `values` are the normalized keys of all lines, by key and row number. A review of a pair is kept by what this gives.
    """
    names = pd.Series(None, pd.Index(rows), pd.ArrowDtype(TEXT))
    if "erp_code" in values:
        codes = values["erp_code"]
        codes = codes[MATCH_KEYS["erp_code"].identifies(codes) & ~is_repeated(codes)]
        names = joined_text(["code ", codes]).reindex(names.index)
    others = names.index[names.isna()]
    if len(others):
        keys = [
            values[key].reindex(others).fillna("") if key in values else "" for key in MATCH_KEYS
        ]
        digests = [
            f"keys {sha256(text.encode()).hexdigest()[:16]}" for text in joined_text(keys, "\0")
        ]
        names[others] = column(pa.array(digests, TEXT), others)
    return names
