"""The tables of a match: `erp_customers` and `erp_differences`, from lines, customers and what the keys have decided.

In: both sides and the pairs as row numbers. Out: frames with the columns of `ERP_CUSTOMERS` and `DIFFERENCES`.
"""

from __future__ import annotations

from typing import Final

import pandas as pd

from transforms.erp.cascade import Decisions
from transforms.erp.columns import ERP_CUSTOMERS, ERP_DIFFERENCES
from transforms.frames import BIGINT, TEXT, constant, frame, typed

DIFFERENCES: Final = {**ERP_DIFFERENCES, "line": BIGINT}
_NAMES: Final = ("fiscal_name", "first_name", "last_name")


def with_counts(pairs: pd.DataFrame, differences: pd.DataFrame) -> pd.DataFrame:
    """The pairs with their `difference_count`."""
    counts = differences["pair"].value_counts().reindex(pairs.index, fill_value=0)
    return pairs.assign(difference_count=counts.astype(pd.ArrowDtype(BIGINT)))


def settled_customers(lines: pd.DataFrame, customers: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """The rows of `ERP_CUSTOMERS` of pairs by code."""
    if pairs.empty:
        return frame(ERP_CUSTOMERS)
    lines = lines[[name for name in ("_line", "erp_code", *_NAMES) if name in lines]].iloc[pairs["line"]]
    columns = {
        "erp_code": lines["erp_code"],
        "customer_id": customers["customer_id"].iloc[pairs["customer"]].array,
        "status": constant("matched", lines.index),
        "matched_by": constant("erp_code", lines.index),
        "difference_count": pairs["difference_count"].array,
        "line": lines["_line"],
        "name": _names(lines),
    }
    nothing = constant(None, lines.index)
    return pd.DataFrame({name: columns.get(name, nothing) for name in ERP_CUSTOMERS})


def by_line_number(settled: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """The rows of both by `line`; those without a line last, in their order."""
    if settled.empty:
        return others
    return pd.concat([settled, others]).sort_values("line", kind="stable", ignore_index=True)


def decided_customers(
    lines: pd.DataFrame, customers: pd.DataFrame, decisions: Decisions, pairs: pd.DataFrame
) -> pd.DataFrame:
    """The rows of `ERP_CUSTOMERS` of all lines, and of the customers that no line is."""
    matched = pairs.assign(
        customer_id=customers["customer_id"].iloc[pairs["customer"]].array, status="matched"
    ).set_index("line")
    ambiguous = decisions.ambiguous_lines.assign(status="ambiguous").set_index("row")
    of_lines = (
        lines.assign(erp_code=lines.get("erp_code"), line=lines["_line"], name=_names(lines))[
            ["erp_code", "line", "name"]
        ]
        .join(pd.concat([matched, ambiguous]), validate="1:1")
        .fillna({"status": "only_in_erp"})
    )
    there = decisions.ambiguous_customers.rename(columns={"members": "member_lines"}).assign(status="ambiguous")
    of_customers = (
        customers.assign(name=customers["full_name"])[["erp_code", "customer_id", "name"]]
        .loc[~customers.index.isin(pairs["customer"])]
        .join(there.set_index("row"), validate="1:1")
        .fillna({"status": "only_in_platform"})
    )
    columns = list(ERP_CUSTOMERS)
    return pd.concat(
        [typed(side.reindex(columns=columns), ERP_CUSTOMERS) for side in (of_lines, of_customers)], ignore_index=True
    )


def _names(lines: pd.DataFrame) -> pd.Series[str]:
    """The fiscal name of a line, else its first and last name; null without any."""
    none = pd.Series("", lines.index, pd.ArrowDtype(TEXT))
    first, last = (lines.get(name, none).fillna("").str.strip() for name in ("first_name", "last_name"))
    names = (first + " " + last).str.strip()
    if "fiscal_name" in lines:
        fiscal = lines["fiscal_name"].fillna("").str.strip()
        names = fiscal.where(fiscal != "", names)
    return names.where(names != "")


def differences_of_pairs(
    lines: pd.DataFrame, customers: pd.DataFrame, pairs: pd.DataFrame, differences: pd.DataFrame
) -> pd.DataFrame:
    """The columns of `DIFFERENCES`."""
    of_pairs = pairs.loc[differences["pair"]]
    codes = lines.get("erp_code", pd.Series(None, lines.index, pd.ArrowDtype(TEXT))).iloc[of_pairs["line"]].array
    ids = customers["customer_id"].iloc[of_pairs["customer"]].array
    numbers = lines["_line"].iloc[of_pairs["line"]].array
    return typed(differences.assign(entity="customers", erp_code=codes, platform_id=ids, line=numbers), DIFFERENCES)
