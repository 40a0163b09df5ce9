"""The ERP's variants against what the platform last confirmed of them: variants cannot be read back.

In: lines of the ERP with each field as JSON text, and the confirmed fields with their time and plan. Out: a row for
each line: never sent, same, or different, and the evidence in names of fields and plans.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from transforms.frames import BIGINT, TEXT, TIMESTAMP, Column, constant, first_true, joined_text, look_up, typed
from transforms.upserts.confirmed import changed_fields

VARIANT_LINES: Final = {"_line": BIGINT, "product_id": TEXT, "variant_id": TEXT}
"""Further columns: the fields of the interface that the file has."""
FIELD_KEY: Final = ["product_id", "variant_id", "field"]
CONFIRMED: Final = {**dict.fromkeys((*FIELD_KEY, "value", "plan_id"), TEXT), "confirmed_at": TIMESTAMP}
"""`confirmed_at` is null where the field was sent and it is unknown whether it arrived."""
ERP_VARIANTS: Final = {
    **dict.fromkeys(("product_id", "variant_id", "erp_code", "sku", "status", "evidence"), TEXT),
    "line": BIGINT,
}


def variants(erp: pd.DataFrame, confirmed: pd.DataFrame) -> pd.DataFrame:
    """Compares the ERP's variants with what was last confirmed.

    `never_sent`: no field of the line was ever confirmed or is in doubt. `same`: all were confirmed, with these values;
    numbers are compared as numbers. `differs`: the rest; the evidence names the fields with other values, in doubt and
    never sent. Only what was sent from here is known: changes that others made on the platform since are not visible.

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
    known = typed(confirmed, CONFIRMED).assign(key=_key)
    key = _key(lines)
    is_changed = changed_fields(lines[fields].assign(key=key), known)
    others, doubtful, never_sent = (constant("", lines.index) for _ in range(3))
    latest, plan = constant(None, lines.index, TIMESTAMP), constant(None, lines.index)
    for name in fields:
        sent = look_up(key, known.loc[known["field"] == name, ["key", "confirmed_at", "plan_id"]], "key")
        is_given = lines[name].notna()
        is_sent = is_given & sent["key"].notna()
        is_doubtful = is_sent & sent["confirmed_at"].isna()
        others += first_true([(is_sent & ~is_doubtful & is_changed[name], f"{name}, ")], "")
        doubtful += first_true([(is_doubtful, f"{name}, ")], "")
        never_sent += first_true([(is_given & ~is_sent, f"{name}, ")], "")
        is_newer = is_sent & (latest.isna() | (sent["confirmed_at"] > latest).fillna(False))
        latest, plan = latest.where(~is_newer, sent["confirmed_at"]), plan.where(~is_newer, sent["plan_id"])
    is_known = doubtful == ""
    is_same = is_known & (others == "") & (never_sent == "")
    rows = lines.assign(
        erp_code=_text(lines, "erpCode"),
        sku=_text(lines, "sku"),
        status=first_true([(is_known & latest.isna(), "never_sent"), (is_same, "same")], "differs"),
        evidence=_evidence({"other": others, "in doubt": doubtful, "never sent": never_sent}, latest, plan),
        line=lines["_line"],
    )
    return typed(rows, ERP_VARIANTS)


def _key(rows: pd.DataFrame) -> Column[Any]:
    return joined_text([rows["product_id"], "/", rows["variant_id"]])


def _text(lines: pd.DataFrame, field: str) -> Column[Any]:
    """The text of a field in JSON."""
    if field not in lines:
        return constant(None, lines.index)
    texts = lines[field]
    is_plain = texts.str.contains(r'^"[^"\\]*"$', regex=True)
    is_escaped = ~is_plain.fillna(True)
    text = texts.str.slice(1, -1).where(is_plain.fillna(False))
    if is_escaped.any():
        text[is_escaped] = [str(json.loads(value)) for value in texts[is_escaped]]
    return text


def _evidence(names_by_word: Mapping[str, Column[Any]], latest: Column[Any], plan: Column[Any]) -> Column[Any]:
    """The evidence, such as `last confirmed 2026-03-01T12:00:00Z in plan X; other: price; never sent: stock`."""
    time = latest.dt.strftime("%Y-%m-%dT%H:%M:%S").str.slice(0, 19)  # without the fraction that Arrow adds
    evidence = joined_text(["last confirmed ", time, "Z in plan ", plan, "; "]).fillna("")
    for word, names in names_by_word.items():
        evidence += first_true([(names != "", joined_text([f"{word}: ", names.str.rstrip(", "), "; "]))], "")
    return evidence.str.rstrip("; ")
