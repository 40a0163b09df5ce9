"""Price lists and where their prices come from: the root of each chain of sources, and how far it is.

In: the raw price lists (interface, Resources: sourcePriceListId) and the reconciled customers. Out: one row per price
list, and the findings. Chains are followed by doubling: each round looks twice as far, so a chain of n takes log n
rounds over whole columns, and a circle is what has no end after them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.frames import BIGINT, BOOLEAN, MONEY, TEXT, Bools, Ints, array, from_arrow, typed
from transforms.keys import (
    BOOKKEEPING,
    canonical_id,
    clean_text,
    one_row_per_id,
    positions,
    shared_value_findings,
)
from transforms.rules import combine_findings, rule_findings, summarize_unless_proven

RAW_PRICE_LISTS: Final = {
    "id": TEXT,
    "name": TEXT,
    "source_price_list_id": TEXT,
    "adjustment_type": TEXT,
    "adjustment_value": MONEY,
    "_extra": TEXT,
    **BOOKKEEPING,
}
CUSTOMER_PRICE_LISTS: Final = {"price_list_id": TEXT, "price_list_status": TEXT, "is_missing": BOOLEAN}
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


def price_lists(raw: pd.DataFrame, customers: pd.DataFrame, doubt: str = "") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Reconciles the price lists.

    `chain_status` is `root` (no source), `linked` (its chain ends at a root), `orphan` (it ends at a source that is
    not listed), `unknown` (it ends at one that is not among those read, and others may be listed) or `cycle` (it leads
    into a circle). Root and depth are null for the last three: they are not known. The interface lists active price
    lists, so a source that is no longer listed breaks the chain of a listed one.

    Args:
        raw: the columns of `RAW_PRICE_LISTS`.
        customers: the columns of `CUSTOMER_PRICE_LISTS`, of the reconciled customers; those still listed count.
        doubt: why a price list may be listed that is not in `raw`; empty where they are proven to be all.

    Returns:
        The columns of `PRICE_LISTS`, sorted by id; findings.
    """
    rows, findings = one_row_per_id(typed(raw, RAW_PRICE_LISTS), "price_lists")
    of = {name: array(rows[name]) for name in RAW_PRICE_LISTS}
    is_missing = pc.is_valid(of["_missing_since"])
    gone: Bools = is_missing.to_numpy(zero_copy_only=False)
    has_source = pc.is_valid(clean_text(of["source_price_list_id"])).to_numpy(zero_copy_only=False)
    found = _sources(of["id"], of["source_price_list_id"], gone)
    at = np.arange(len(found))
    source = np.where(found >= 0, found, at)
    end, depth = _ends(source)
    # The end of a whole chain has no source to be found: it is a root if it names none, else the chain is broken.
    is_cycle = found[end] >= 0
    is_orphan = ~is_cycle & has_source[end]
    is_whole = ~is_cycle & ~is_orphan
    status = np.select([is_cycle, is_orphan, has_source], ["cycle", "unknown" if doubt else "orphan", "linked"], "root")
    columns = {
        **of,
        "price_list_id": of["id"],
        "root_price_list_id": of["id"].take(pa.array(end, mask=~is_whole)),
        "depth": pa.array(depth, mask=~is_whole),
        "chain_status": pa.array(status, TEXT),
        "customer_count": _counts(of["id"], typed(customers, CUSTOMER_PRICE_LISTS)),
        "is_missing": is_missing,
    }
    made = from_arrow(pa.table({name: columns[name].cast(kind) for name, kind in PRICE_LISTS.items()}))
    present = pc.invert(is_missing)
    is_none = pc.equal(pc.ascii_upper(clean_text(of["adjustment_type"])), "NONE")
    rules: tuple[tuple[str, pa.Array, str], ...] = (
        ("name_missing", pc.is_null(clean_text(of["name"])), "name"),
        ("chain_cycle", pa.array(is_cycle), "sourcePriceListId"),
        (
            "adjustment_contradicts",
            pc.and_(is_none, pc.not_equal(of["adjustment_value"], pa.scalar(0, MONEY))),
            "adjustmentType, adjustmentValue",
        ),
    )
    absent = [
        rule_findings("price_lists", name, of["id"], pc.and_(pa.array(is_orphan & where), present), "sourcePriceListId")
        for name, where in (("source_not_listed", end == at), ("chain_orphaned", end != at))
    ]
    return made, combine_findings(
        [
            *findings,
            *(
                [summarize_unless_proven(pd.concat(absent), "sources_unproven", "sourcePriceListId", doubt)]
                if doubt
                else absent
            ),
            shared_value_findings("price_lists", "id_ambiguous", of["id"], canonical_id(of["id"]), present),
            shared_value_findings("price_lists", "name_duplicate", of["id"], clean_text(of["name"]), present),
            *(
                rule_findings("price_lists", name, of["id"], pc.and_(where, present), detail)
                for name, where, detail in rules
            ),
        ]
    )


def _sources(ids: pa.Array, sources: pa.Array, gone: Bools) -> Ints:
    """The row of each price list's source; -1 where there is none that counts."""
    exact = positions(sources, ids)
    # An id written otherwise (`1.0` for `1`) is looked up in its one form, of which the first row counts.
    keys = canonical_id(ids)
    found = pc.coalesce(exact, positions(canonical_id(sources), keys))
    at: Ints = pc.fill_null(found.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return np.where(gone[at] & ~gone, -1, at) if len(at) else at


def _ends(source: Ints) -> tuple[Ints, Ints]:
    """Where each chain ends, and after how many steps; of a circle some row in it."""
    end = source.copy()
    depth = (end != np.arange(len(end))).astype(np.int64)
    for _ in range(len(end).bit_length()):
        depth = depth + depth[end]
        end = end[end]
    return end, depth


def _counts(ids: pa.Array, customers: pd.DataFrame) -> pa.Array:
    is_here = pc.and_not(pc.equal(array(customers["price_list_status"]), "matched"), array(customers["is_missing"]))
    at = positions(array(customers["price_list_id"]).filter(is_here), ids)
    known = pc.drop_null(at).to_numpy().astype(np.int64)
    return pa.array(np.bincount(known, minlength=len(ids)), pa.int64())
