"""Price lists and where their prices come from: the root of each chain of sources, and the number of steps to it.

In: the raw price lists (interface, Resources: sourcePriceListId) and the reconciled customers. Out: one row per price
list, and the findings. Chains are followed by doubling: each round looks twice as far, so a chain of n lists takes
log n rounds over whole columns, and what has no end after them is a circle.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa

from orderbridge.transforms.findings import (
    UniqueValues,
    combine_findings,
    rule_findings,
    shared_value_findings,
    table_finding,
)
from orderbridge.transforms.frames import (
    BIGINT,
    BOOLEAN,
    MONEY,
    TEXT,
    Ints,
    column,
    first_true,
    look_up,
    typed,
)
from orderbridge.transforms.values.keys import BOOKKEEPING, canonical_id, clean_text

RAW_PRICE_LISTS: Final = {
    **dict.fromkeys(("id", "name", "source_price_list_id", "adjustment_type", "_extra"), TEXT),
    "adjustment_value": MONEY,
    **BOOKKEEPING,
}
CUSTOMER_PRICE_LISTS: Final = {
    "price_list_id": TEXT,
    "is_missing": BOOLEAN,
}
PRICE_LISTS: Final = {
    "price_list_id": TEXT,
    "name": TEXT,
    "source_price_list_id": TEXT,
    "root_price_list_id": TEXT,
    "depth": BIGINT,
    "chain_status": TEXT,
    "adjustment_type": TEXT,
    "adjustment_value": MONEY,
    "customer_count": BIGINT,
    "is_missing": BOOLEAN,
    "_extra": TEXT,
    **BOOKKEEPING,
}


def price_lists(
    raw: pd.DataFrame, customers: pd.DataFrame, coverage_gap: str = ""
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Reconciles the price lists.

    `chain_status` is `root` (no source), `linked` (its chain ends at a root), `orphan` (it ends at a source that is
    not listed), `unknown` (it ends at one that was not read and may be listed) or `cycle` (it leads into a circle).
    Root and depth are null for the last three, since they are not known. The interface lists active price lists, so a
    source that is no longer listed breaks the chain of a listed one.

    Args:
        raw: the columns of `RAW_PRICE_LISTS`.
        customers: the columns of `CUSTOMER_PRICE_LISTS`, of the reconciled customers; those still listed count.
        coverage_gap: why a price list may be listed that is not in `raw`; empty where they are proven to be all.

    Returns:
        The columns of `PRICE_LISTS`, sorted by id; findings.
    """
    rows = typed(raw, RAW_PRICE_LISTS).sort_values("id", ignore_index=True)
    rows = (
        rows.rename(columns={"id": "price_list_id"})
        .assign(is_missing=lambda rows: rows["_missing_since"].notna())
        .pipe(_with_chains, "unknown" if coverage_gap else "orphan")
    )
    counted = typed(customers, CUSTOMER_PRICE_LISTS)
    counted = counted[~counted["is_missing"]]
    rows = rows.assign(
        customer_count=rows["price_list_id"].map(counted["price_list_id"].value_counts()).fillna(0)
    )
    findings = [*_chain_findings(rows, coverage_gap), *_field_findings(rows)]
    return typed(rows, PRICE_LISTS), combine_findings(findings)


def _with_chains(rows: pd.DataFrame, broken: str) -> pd.DataFrame:
    """Adds status, root and depth of each chain, and whether it ends at the price list itself (`is_own_end`).

    `broken` is the status of a chain that ends at a source which is not among the rows.
    """
    source = _source_rows(rows)
    own = np.arange(len(rows))
    end, depth = _ends(np.where(source >= 0, source, own))
    has_source = clean_text(rows["source_price_list_id"]).notna()
    # The last list of a chain has no source that was found: it is a root if it names none.
    is_cycle = column(pa.array(source[end] >= 0), rows.index)
    is_broken = column(pa.array(has_source.to_numpy(np.bool_)[end]), rows.index)
    status = first_true([(is_cycle, "cycle"), (is_broken, broken), (has_source, "linked")], "root")
    is_whole = ~is_cycle & ~is_broken
    root = rows["price_list_id"].take(end).set_axis(rows.index)
    return rows.assign(
        chain_status=status,
        root_price_list_id=root.where(is_whole),
        depth=column(pa.array(depth), rows.index).where(is_whole),
        is_own_end=end == own,
    )


def _source_rows(rows: pd.DataFrame) -> Ints:
    """The position of each price list's source; -1 where there is none that counts."""
    known = rows[["price_list_id", "is_missing"]].assign(
        position=np.arange(len(rows)), key=canonical_id(rows["price_list_id"])
    )
    exact = look_up(rows["source_price_list_id"], known, "price_list_id")
    # An id in another notation (`1.0` for `1`) refers to the first list with the same canonical id.
    loose = look_up(canonical_id(rows["source_price_list_id"]), known.drop_duplicates("key"), "key")
    is_exact = exact["position"].notna()
    position = exact["position"].where(is_exact, loose["position"])
    is_gone = exact["is_missing"].where(is_exact, loose["is_missing"]).fillna(False)
    return position.where(~(is_gone & ~rows["is_missing"])).fillna(-1).to_numpy(np.int64)


def _ends(source: Ints) -> tuple[Ints, Ints]:
    """Where each chain ends, and after how many steps; for a circle some position in it."""
    end = source.copy()
    depth = (end != np.arange(len(end))).astype(np.int64)
    for _ in range(len(end).bit_length()):
        depth = depth + depth[end]
        end = end[end]
    return end, depth


def _chain_findings(rows: pd.DataFrame, coverage_gap: str) -> list[pd.DataFrame]:
    listed = rows[~rows["is_missing"]]
    field = "sourcePriceListId"
    is_broken = listed["chain_status"].isin(["orphan", "unknown"])
    broken = [
        rule_findings("price_lists", name, listed["price_list_id"], is_broken & where, field)
        for name, where in (
            ("source_not_listed", listed["is_own_end"]),
            ("chain_orphaned", ~listed["is_own_end"]),
        )
    ]
    if coverage_gap and (count := is_broken.sum()):  # they may be listed
        detail = f"{field} of {count} price lists: {coverage_gap}"
        broken = [table_finding("price_lists", "sources_unproven", detail)]
    is_cycle = listed["chain_status"] == "cycle"
    return [
        *broken,
        rule_findings("price_lists", "chain_cycle", listed["price_list_id"], is_cycle, field),
    ]


def _field_findings(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """What is wrong with the fields of listed price lists."""
    rows = rows[~rows["is_missing"]]
    ids = rows["price_list_id"]
    name = clean_text(rows["name"])
    all_rows = rows["is_missing"].eq(False)
    contradicts = (clean_text(rows["adjustment_type"]).str.upper() == "NONE") & (
        rows["adjustment_value"] != 0
    )
    return [
        shared_value_findings(
            "price_lists", "id_ambiguous", UniqueValues(ids, canonical_id(ids), all_rows)
        ),
        shared_value_findings("price_lists", "name_duplicate", UniqueValues(ids, name, all_rows)),
        rule_findings("price_lists", "name_missing", ids, name.isna(), "name"),
        rule_findings(
            "price_lists",
            "adjustment_contradicts",
            ids,
            contradicts,
            "adjustmentType, adjustmentValue",
        ),
    ]
