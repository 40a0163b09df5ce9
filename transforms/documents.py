"""Documents of customers: their order, and which of them is the default. One rule for all that need a document.

In: the raw child table with the position of each row's customer (`owner`). Out: its rows in order, the row that counts
for each owner, and findings.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from orderbridge.transforms.findings import UniqueValues, count_text, rule_findings
from orderbridge.transforms.frames import (
    BIGINT,
    BOOLEAN,
    TEXT,
    Bools,
    Column,
    Ints,
    from_arrow,
    take_or_null,
)
from orderbridge.transforms.values.keys import clean_text

RAW_DOCUMENTS: Final = {
    "position": BIGINT,
    **dict.fromkeys(("number", "fiscal_name"), TEXT),
    **dict.fromkeys(("is_default", "for_taxes"), BOOLEAN),
}
"""The columns that are used, beside `customer_id`; there may be others."""
OWNED_DOCUMENTS: Final = {"owner": BIGINT, **RAW_DOCUMENTS}
"""`owner` is the position of the customer's row in a part."""


def sort_documents(documents: pd.DataFrame) -> pd.DataFrame:
    """The rows by owner and position, nulls last; by their values too, where two have the same position.

    Args:
        documents: `owner` (bigint), `position` (bigint) and values of text and boolean.
    """
    documents = documents.reset_index(drop=True)
    owner = documents["owner"].to_numpy(np.int64)
    position = documents["position"].fillna(np.iinfo(np.int64).max).to_numpy(np.int64)
    is_ordered = (owner[1:] > owner[:-1]) | (
        (owner[1:] == owner[:-1]) & (position[1:] > position[:-1])
    )
    if is_ordered.all():
        return documents
    rows = pa.Table.from_pandas(documents, preserve_index=False)
    first = ["owner", "position"]
    others = [name for name in rows.column_names if name not in first]
    return from_arrow(
        rows.sort_by([(name, "ascending") for name in first + others]).combine_chunks()
    )


def first_row_per_owner(owner: Ints, where: Bools, size: int) -> Ints:
    """For each of `size` owners the position of its first row for which `where` holds; -1 for none.

    `owner` is sorted.
    """
    rows = np.flatnonzero(where)
    rows = rows[np.diff(owner[rows], prepend=-1) > 0]
    result = np.full(size, -1, np.int64)
    result[owner[rows]] = rows
    return result


def default_row_per_owner(owner: Ints, is_default: Bools, size: int) -> Ints:
    """For each owner the first row that is marked as default; if none is, its only row; -1 for none."""
    marked = first_row_per_owner(owner, is_default, size)
    count = np.bincount(owner, minlength=size)
    only = np.where(count == 1, first_row_per_owner(owner, np.ones(len(owner), np.bool_), size), -1)
    return np.where(marked >= 0, marked, only)


def with_documents(
    rows: pd.DataFrame, documents: pd.DataFrame
) -> tuple[pd.DataFrame, UniqueValues, list[pd.DataFrame]]:
    """Adds how many documents each customer has, and the fields of those that count. Returns their numbers too.

    `documents` are the columns of `OWNED_DOCUMENTS`.
    """
    owned = sort_documents(documents)
    owned = owned.assign(
        number_key=clean_text(owned["number"]),
        is_default=owned["is_default"].fillna(False),
        for_taxes=owned["for_taxes"].fillna(False),
    )
    owner = owned["owner"].to_numpy(np.int64)
    size = len(rows)
    default = take_or_null(
        owned, default_row_per_owner(owner, owned["is_default"].to_numpy(np.bool_), size)
    )
    tax = take_or_null(
        owned[["number"]], first_row_per_owner(owner, owned["for_taxes"].to_numpy(np.bool_), size)
    )

    def count(where: Column[Any] | None = None) -> Column[Any]:
        counted = owner if where is None else owner[where.to_numpy(np.bool_)]
        return pd.Series(np.bincount(counted, minlength=size), rows.index)

    total = count()
    defaults = count(owned["is_default"])
    taxes = count(owned["for_taxes"])
    unnumbered = count(owned["number_key"].isna())
    cases = (
        ("document_default_missing", (total > 1) & (defaults == 0), total, " documents"),
        ("document_default_several", defaults > 1, defaults, " documents are default"),
        ("document_tax_missing", (total > 0) & (taxes == 0), total, " documents"),
        ("document_tax_several", taxes > 1, taxes, " documents are for taxes"),
        ("document_number_missing", unnumbered > 0, unnumbered, " documents without a number"),
    )
    ids = rows["customer_id"]
    is_listed = ~rows["is_missing"]
    findings = [
        rule_findings("customers", "document_missing", ids, (total == 0) & is_listed, "documents"),
    ]
    for name, where, counts, words in cases:
        is_case = where & is_listed
        findings.append(
            rule_findings(
                "customers", name, ids[is_case], detail=count_text("", counts[is_case], words)
            )
        )
    rows = rows.assign(
        document_count=total,
        default_document_number=default["number"],
        default_fiscal_name=default["fiscal_name"],
        tax_document_number=tax["number"],
    )
    own = take_or_null(rows[["customer_id", "is_missing"]], owner)
    return rows, UniqueValues(own["customer_id"], owned["number_key"], ~own["is_missing"]), findings
