"""The ERP's variants against what the platform last confirmed of them: variants cannot be read back.

In: lines of the ERP with each field as JSON text, and the fields that were confirmed, with the instant and the plan.
Out: a row for each line: never sent, the same, or different, and the evidence in names of fields and plans.
"""

from __future__ import annotations

import json
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.frames import BIGINT, TEXT, TIMESTAMP, Ints, array, from_arrow, typed
from transforms.keys import positions
from transforms.upserts.confirmed import changed_fields

VARIANT_LINES: Final = {"_line": BIGINT, "product_id": TEXT, "variant_id": TEXT}
"""Beside these stands a column for each field of the interface that the file has."""
CONFIRMED: Final = {
    "product_id": TEXT,
    "variant_id": TEXT,
    "field": TEXT,
    "value": TEXT,
    "confirmed_at": TIMESTAMP,
    "plan_id": TEXT,
}
ERP_VARIANTS: Final = {
    "product_id": TEXT,
    "variant_id": TEXT,
    "erp_code": TEXT,
    "sku": TEXT,
    "status": TEXT,
    "evidence": TEXT,
    "line": BIGINT,
}
_NAMED: Final = {"erp_code": "erpCode", "sku": "sku"}


def variants(erp: pd.DataFrame, confirmed: pd.DataFrame) -> pd.DataFrame:
    """Compares the ERP's variants with what was last confirmed.

    `never_sent`: nothing that the line gives was ever confirmed. `same`: all of it was, with these values; numbers are
    compared as numbers. `differs`: the rest; the evidence names the fields with other values, and those never sent. It
    rests on what was sent from here: what others changed on the platform since cannot be seen.

    Args:
        erp: the columns of `VARIANT_LINES`, and a column for each field with its JSON text, null where there is none.
        confirmed: the columns of `CONFIRMED`, a row for a field of a variant.

    Returns:
        The columns of `ERP_VARIANTS`, a row for each line, in their order.
    """
    fields = [str(name) for name in erp if name not in VARIANT_LINES]
    lines = typed(erp, VARIANT_LINES | dict.fromkeys(fields, TEXT)).sort_values(
        "_line", kind="stable", ignore_index=True
    )
    known = typed(confirmed, CONFIRMED)
    keys = _keys(lines)
    told = known.assign(key=_series(_keys(known)))
    differs = changed_fields(lines[fields].assign(key=_series(keys)), told)
    size = len(lines)
    latest, plan = np.full(size, np.iinfo(np.int64).min), np.full(size, -1, np.int64)
    other, never = [], []
    given, sent = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for name in fields:
        rows = np.flatnonzero((told["field"] == name).to_numpy(dtype=np.bool_))
        at = positions(keys, array(told["key"]).take(pa.array(rows)))
        is_given = pc.is_valid(array(lines[name]))
        is_sent = pc.and_(is_given, pc.is_valid(at))
        is_other = pc.and_(is_sent, array(differs[name]))
        other.append(pc.if_else(is_other, f"{name}, ", ""))
        never.append(pc.if_else(pc.and_not(is_given, is_sent), f"{name}, ", ""))
        given += is_given.to_numpy(zero_copy_only=False)
        sent += is_sent.to_numpy(zero_copy_only=False)
        where = np.flatnonzero(is_sent.to_numpy(zero_copy_only=False))
        of = rows[at.take(pa.array(where)).to_numpy()]
        instants = array(told["confirmed_at"]).cast(pa.int64()).to_numpy()[of]
        newer = instants > latest[where]
        latest[where[newer]], plan[where[newer]] = instants[newer], of[newer]
    others, nevers = _listed(other, size), _listed(never, size)
    is_same = pa.array((sent == given) & (given > 0))
    status = pc.if_else(
        pa.array(sent == 0), "never_sent", pc.if_else(pc.and_(is_same, pc.equal(others, "")), "same", "differs")
    )
    columns = {
        **{name: array(lines[name]) for name in ("product_id", "variant_id")},
        **{name: _text(lines, field) for name, field in _NAMED.items()},
        "status": status,
        "evidence": _evidence(others, nevers, latest, array(told["plan_id"]).take(pa.array(plan, mask=plan < 0))),
        "line": array(lines["_line"]),
    }
    return from_arrow(pa.table({name: columns[name].cast(kind) for name, kind in ERP_VARIANTS.items()}))


def _keys(rows: pd.DataFrame) -> pa.Array:
    return pc.binary_join_element_wise(array(rows["product_id"]), array(rows["variant_id"]), "/")


def _series(values: pa.Array) -> pd.Series[str]:
    made: pd.Series[str] = from_arrow(pa.table({"c": values}))["c"]
    return made


def _listed(names: list[pa.Array], size: int) -> pa.Array:
    """The names of each row; empty for none. Each is told with its comma, or empty."""
    return pc.utf8_rtrim(pc.binary_join_element_wise(*names, ""), ", ") if names else pa.repeat("", size)


def _text(lines: pd.DataFrame, field: str) -> pa.Array:
    """A text field's value without the signs of JSON."""
    if field not in lines:
        return pa.nulls(len(lines), TEXT)
    texts = array(lines[field])
    plain = pc.match_substring_regex(texts, r'^"[^"\\]*"$')
    decoded = pc.if_else(plain, pc.utf8_slice_codeunits(texts, 1, -1), pa.scalar(None, TEXT))
    rest = pc.fill_null(pc.invert(plain), False)
    if not pc.any(rest).as_py():
        return decoded
    slow = pa.array([str(json.loads(text)) for text in texts.filter(rest).to_pylist()], TEXT)
    return pc.replace_with_mask(decoded, rest, slow)


def _evidence(others: pa.Array, nevers: pa.Array, latest: Ints, plans: pa.Array) -> pa.Array:
    """What the status rests on, such as `confirmed 2026-03-01T12:00:00Z in plan X; other: price; never sent: stock`."""
    instants = pa.array(latest, mask=latest == np.iinfo(np.int64).min).cast(TIMESTAMP)
    seconds = pc.floor_temporal(instants, unit="second").cast(pa.timestamp("s", "UTC"))
    written = pc.strftime(seconds, "%Y-%m-%dT%H:%M:%SZ")
    parts = [pc.fill_null(pc.binary_join_element_wise("last confirmed ", written, " in plan ", plans, "; ", ""), "")]
    for words, names in (("other: ", others), ("never sent: ", nevers)):
        parts.append(pc.if_else(pc.equal(names, ""), "", pc.binary_join_element_wise(words, names, "; ", "")))
    return pc.utf8_rtrim(pc.binary_join_element_wise(*parts, ""), "; ")
