"""The tables of a match: the columns that it takes, and `erp_customers` and `erp_differences`, which it gives.

In: both sides, row numbers of the pairs, and what the keys have decided. Out: frames with the columns of
`ERP_CUSTOMERS` and `DIFFERENCES`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa

from transforms.erp.cascade import Decisions
from transforms.erp.compare import COMPARISONS
from transforms.frames import (
    BIGINT,
    BOOLEAN,
    TEXT,
    TIMESTAMP,
    Column,
    Ints,
    column,
    constant,
    frame,
    joined_text,
    take_or_null,
    typed,
)

ERP_FIELDS: Final = tuple(COMPARISONS)
"""Of the ERP's customer: columns of text, any of which may be absent. `_line` (bigint) is the line's number."""
_TEXTS: Final = ("erp_code", "login_code", "email", "first_name", "last_name", "full_name", "phone", "price_list_id")
PLATFORM_CUSTOMERS: Final = {"customer_id": TEXT, **dict.fromkeys(_TEXTS, TEXT), "_missing_since": TIMESTAMP}
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
_OUTCOME: Final = dict.fromkeys(("status", "matched_by", "members", "reason"), TEXT)


def customers_table(
    lines: pd.DataFrame,
    names: Column[str],
    customers: pd.DataFrame,
    customer: Ints,
    decisions: Decisions,
    differences: pd.DataFrame,
) -> pd.DataFrame:
    """The columns of `ERP_CUSTOMERS`: a row for each line, then one for each customer that no line is.

    Args:
        lines: those that are not repeated, indexed by row number.
        names: of all row numbers: see `line_names`.
        customers: in the order of row numbers.
        customer: the row number of the customer of each line; -1: none.
        decisions: of the keys. A pair that is not among them was made by ERP code.
        differences: see `compare`.
    """
    pairs, ambiguous = decisions.pairs, decisions.ambiguous_lines
    by_code = frame(_OUTCOME, [{"status": "only_in_erp"}, {"status": "matched", "matched_by": "erp_code"}])
    outcomes = pd.concat([by_code, pairs.assign(status="matched"), ambiguous.assign(status="ambiguous")])
    outcome = (customer >= 0).astype(np.int64)
    outcome[np.concatenate([pairs["line"], ambiguous["row"]])] = np.arange(len(by_code), len(outcomes))
    rows = lines.index.to_numpy()
    counts = np.bincount(differences["row"], minlength=len(customer))
    of_lines = take_or_null(typed(outcomes.reindex(columns=list(_OUTCOME)), _OUTCOME), outcome[rows]).assign(
        erp_code=_or_null(lines, "erp_code").array,
        customer_id=take_or_null(customers[["customer_id"]], customer[rows])["customer_id"],
        difference_count=column(pa.array(counts[rows], mask=customer[rows] < 0)),
        line=lines["_line"].array,
        name=names.iloc[rows].array,
    )
    is_matched = np.zeros(len(customers), np.bool_)
    is_matched[customer[customer >= 0]] = True
    ambiguity = decisions.ambiguous_customers.rename(columns={"members": "member_lines"}).assign(status="ambiguous")
    of_customers = (
        customers[["erp_code", "customer_id", "full_name"]][~is_matched]
        .rename(columns={"full_name": "name"})
        .join(ambiguity.set_index("row"), validate="1:1")
        .fillna({"status": "only_in_platform"})
    )
    columns = list(ERP_CUSTOMERS)
    return pd.concat(
        [typed(side.reindex(columns=columns), ERP_CUSTOMERS) for side in (of_lines, of_customers)], ignore_index=True
    )


def _or_null(lines: pd.DataFrame, name: str) -> Column[str]:
    return lines[name] if name in lines else constant(None, lines.index)


def line_names(lines: pd.DataFrame) -> Column[str]:
    """The fiscal name of a line, else its first and last name; null without any."""
    fiscal, first, last = (
        _or_null(lines, name).str.strip().fillna("") for name in ("fiscal_name", "first_name", "last_name")
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
    codes, numbers = _or_null(lines, "erp_code").iloc[rows].array, lines["_line"].iloc[rows].array
    ids = customers["customer_id"].iloc[customer[rows]].array
    return typed(differences.assign(entity="customers", erp_code=codes, platform_id=ids, line=numbers), DIFFERENCES)
