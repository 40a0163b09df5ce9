"""Ids, codes and texts that are compared: cleaned the same way everywhere, and tables with one row per id.

In: raw columns and frames. Out: the same with blank texts as nulls, ids in one notation for both families, one row per
id, and findings about the rows that were left out. No row is dropped without a finding.
"""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
import pyarrow as pa

from transforms.findings import rule_findings
from transforms.frames import TEXT, TIMESTAMP, Column, column, is_strictly_increasing
from transforms.texts import without_blank, without_zero_fraction

BOOKKEEPING: Final = {
    "_run_id": TEXT,
    "_first_seen_at": TIMESTAMP,
    "_last_seen_at": TIMESTAMP,
    "_missing_since": TIMESTAMP,
}
"""The columns that every raw table has."""


def clean_text(texts: Column[Any]) -> Column[Any]:
    """Texts without surrounding whitespace; null where nothing is left."""
    return without_blank(texts.str.strip())


def canonical_id(ids: Column[Any]) -> Column[Any]:
    """Ids in one notation for both families: the number `1.0` is the text `1`. Leading zeros stay: `01` is another."""
    return without_zero_fraction(clean_text(ids))


def fold_case(texts: Column[Any]) -> Column[Any]:
    """Cleaned texts that are equal whatever their case."""
    cleaned = clean_text(texts)
    lower = cleaned.str.lower()
    is_other = ~cleaned.str.isascii().fillna(True)
    if not is_other.any():
        return lower
    # Beyond ASCII only Python folds all case (ß is ss), and such addresses are few.
    return lower.where(~is_other, cleaned[is_other].str.casefold())


def phone_digits(phones: Column[Any]) -> Column[Any]:
    """Digits only, a leading `+` written as `00`; null where there are none."""
    international = clean_text(phones).str.replace(r"^\(?\+", "00", regex=True)
    digits = international.str.replace(r"[^0-9]+", "", regex=True)
    return digits.where(phones.str.contains("[0-9]", regex=True))


def one_row_per_id(rows: pd.DataFrame, entity: str) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """The rows sorted by `id`, one for each id, and a finding for every row that is left out.

    Of several rows with the same id, a listed one is kept before a missing one, then the one seen last. If that does
    not decide, the first in the order of all values is kept, so that the order of the input never matters.

    `rows` have `id`, `_last_seen_at`, `_missing_since` and any others; `entity` is what they are, for the findings.
    """
    findings = []
    has_id = clean_text(rows["id"]).notna()
    if not has_id.all():
        findings.append(rule_findings(entity, "id_missing", column(pa.nulls(int((~has_id).sum()), TEXT))))
        rows = rows[has_id]
    if is_strictly_increasing(rows["id"]):
        return rows.reset_index(drop=True), findings
    rows = rows.sort_values("id", ignore_index=True)
    is_several = rows["id"].duplicated(keep=False)
    if is_several.any():
        preferred = _most_relevant_first(rows[is_several])
        left_out = preferred["id"].duplicated()
        findings.append(rule_findings(entity, "id_duplicate", preferred.loc[left_out, "id"]))
        rows = pd.concat([rows[~is_several], preferred[~left_out]]).sort_values("id", ignore_index=True)
    return rows, findings


def _most_relevant_first(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows by id, listed before missing, last seen first, then by their values as texts."""
    keys = rows.astype(pd.ArrowDtype(TEXT))[sorted(map(str, rows))].add_prefix("value_")
    keys.insert(0, "id", rows["id"])
    keys.insert(1, "is_missing", rows["_missing_since"].notna())
    keys.insert(2, "seen_at", rows["_last_seen_at"])
    ascending = [name != "seen_at" for name in keys]
    return rows.loc[keys.sort_values(list(map(str, keys)), ascending=ascending).index]
