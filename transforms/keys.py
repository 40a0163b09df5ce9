"""Ids, codes and texts that must be compared: cleaned alike everywhere, and rows that have one of their own.

In: raw columns and frames. Out: the same with blanks as nulls, ids in one form for both families, one row per id, and
the findings about what was left out. Nothing is dropped without a finding.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.frames import TEXT, TIMESTAMP, Bools, array, from_arrow
from transforms.rules import count_text, rule_findings

BOOKKEEPING: Final = {
    "_run_id": TEXT,
    "_first_seen_at": TIMESTAMP,
    "_last_seen_at": TIMESTAMP,
    "_missing_since": TIMESTAMP,
}
"""The columns that every raw table has."""
_ZERO_FRACTION: Final = r"^(-?[0-9]+)\.0+$"


def clean_text(texts: pa.Array) -> pa.Array:
    """Texts without the blanks around them; null where nothing else is there."""
    trimmed = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.not_equal(trimmed, ""), trimmed, pa.scalar(None, TEXT))


def canonical_id(ids: pa.Array) -> pa.Array:
    """Ids in one form for both families: a number's `1.0` is the text `1`. Leading zeros stay: `01` is another id."""
    made = clean_text(ids)
    if not pc.any(pc.match_substring(made, ".")).as_py():
        return made  # most columns: the expression would take ten times as long
    return pc.replace_substring_regex(made, _ZERO_FRACTION, r"\1")


def fold_case(texts: pa.Array) -> pa.Array:
    """Texts cleaned, and alike whatever their case."""
    made = clean_text(texts)
    is_plain = pc.fill_null(pc.string_is_ascii(made), True)
    lower = pc.utf8_lower(made)
    if pc.all(is_plain).as_py():
        return lower
    # Beyond ASCII only Python knows the folding of case (ß is ss), and such addresses are few.
    others = from_arrow(pa.table({"c": made.filter(pc.invert(is_plain))}))["c"].str.casefold()
    return pc.replace_with_mask(lower, pc.invert(is_plain), array(others).cast(TEXT))


def phone_digits(phones: pa.Array) -> pa.Array:
    """Digits only, a leading `+` written `00`; null where there are none."""
    international = pc.replace_substring_regex(clean_text(phones), r"^\(?\+", "00")
    digits = pc.replace_substring_regex(international, r"[^0-9]+", "")
    has_any = pc.match_substring_regex(phones, "[0-9]")
    return pc.if_else(has_any, digits, pa.scalar(None, TEXT))


def one_row_per_id(rows: pd.DataFrame, entity: str) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """The rows sorted by `id`, one for each, and a finding for every row that is not among them.

    Of several rows with an id the one is kept that is still listed, else was seen last; if that does not decide, the
    first in the order of all its values, so that the order of the input never decides.

    Args:
        rows: `id`, `_last_seen_at`, `_missing_since` and any others.
        entity: what they are, for the findings.
    """
    table = pa.Table.from_pandas(rows, preserve_index=False).combine_chunks()
    ids = clean_text(table["id"])
    has_id = pc.is_valid(ids)
    findings = []
    missing = len(ids) - pc.sum(has_id).as_py() if len(ids) else 0
    if missing:
        findings.append(rule_findings(entity, "id_missing", pa.nulls(missing, TEXT)))
        table = table.filter(has_id)
    table = table.take(pc.sort_indices(table["id"]))
    sorted_ids = table["id"].combine_chunks()
    same = _same_as_before(sorted_ids)
    if same.any():
        is_several = same | np.append(same[1:], False)
        several, kept = _ordered(table.filter(pa.array(is_several))), table.filter(pa.array(~is_several))
        left_out = _same_as_before(several["id"].combine_chunks())
        findings.append(rule_findings(entity, "id_duplicate", several["id"].filter(pa.array(left_out))))
        table = pa.concat_tables([kept, several.filter(pa.array(~left_out))])
        table = table.take(pc.sort_indices(table["id"]))
    return from_arrow(table), findings


def _same_as_before(ids: pa.Array) -> Bools:
    if len(ids) < 2:
        return np.zeros(len(ids), np.bool_)
    same = pc.equal(ids.slice(1), ids.slice(0, len(ids) - 1)).to_numpy(zero_copy_only=False)
    return np.append(False, same)


def _ordered(table: pa.Table) -> pa.Table:
    """The rows by id, still listed first, then last seen first, then by their values as texts."""
    keys = pa.table(
        {
            "id": table["id"],
            "gone": pc.is_valid(table["_missing_since"]).cast(pa.int8()),
            "seen": pc.negate(table["_last_seen_at"].cast(pa.int64())),
            **{f"value_{name}": table[name].cast(TEXT) for name in sorted(table.column_names)},
        }
    )
    return table.take(pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names]))


def shared_value_findings(entity: str, name: str, ids: pa.Array, values: pa.Array, where: pa.Array) -> pd.DataFrame:
    """Findings of the rule about rows whose value another row has too.

    Args:
        entity: of the rule.
        name: of the rule.
        ids: of the rows, in their order, which is that of the details; a row that comes twice with a value counts once.
        values: what must not be shared; null is shared by nobody.
        where: the rows that count.
    """
    counts = pc.and_(where, pc.is_valid(values)).to_numpy(zero_copy_only=False)
    of = pc.fill_null(pc.dictionary_encode(values).indices, 0).to_numpy(zero_copy_only=False)
    is_several = counts & (np.bincount(of[counts], minlength=int(of.max(initial=0)) + 1)[of] > 1)
    rows = from_arrow(pa.table({"id": ids, "value": values}).filter(pa.array(is_several))).drop_duplicates()
    groups = rows.groupby("value", sort=False)["id"].agg(first="first", count="count").reset_index()
    rows = rows.merge(groups, on="value", how="left", validate="m:1")
    rows = rows[rows["count"] > 1]
    others = count_text("shared with ", array(rows["count"] - 1), " more; the first of all is ")
    detail = pc.binary_join_element_wise(others, array(rows["first"]), "")
    return rule_findings(entity, name, array(rows["id"]), detail=detail)


def positions(ids: pa.Array, among: pa.Array) -> pa.Array:
    """Where each id is in a list that has each once; null where it is not."""
    return pc.index_in(ids, value_set=among, skip_nulls=True)
