"""The ERP's variants against what the platform last confirmed of them: variants cannot be read back.

In: lines of the ERP with each field as JSON text, and the confirmed fields with their time and plan. Out: a row for
each line: never sent, same, or different, and the evidence in names of fields and plans.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pandas as pd

from orderbridge.transforms.frames import (
    BIGINT,
    TEXT,
    TIMESTAMP,
    Column,
    frame,
    joined_text,
    to_arrow,
    typed,
)
from orderbridge.transforms.upserts.confirmed import changed_fields

VARIANT_LINES: Final = {"_line": BIGINT, "product_id": TEXT, "variant_id": TEXT}
"""Further columns: the fields of the interface that the file has."""
FIELD_KEY: Final = ["product_id", "variant_id", "field"]
CONFIRMED: Final = {
    **dict.fromkeys((*FIELD_KEY, "value", "plan_id"), TEXT),
    "confirmed_at": TIMESTAMP,
}
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
    is_changed = changed_fields(lines[fields].assign(key=_key(lines)), known).to_dict("list")
    sent = {
        tuple(row[name] for name in FIELD_KEY): row
        for row in to_arrow(known, CONFIRMED).to_pylist()
    }
    rows = to_arrow(lines, VARIANT_LINES | dict.fromkeys(fields, TEXT)).to_pylist()
    for n, line in enumerate(rows):
        found: dict[str, list[str]] = {"other": [], "in doubt": [], "never sent": []}
        latest, plan = None, ""
        for name in (name for name in fields if line[name] is not None):
            last = sent.get((line["product_id"], line["variant_id"], name))
            if last is None:
                found["never sent"].append(name)
            elif last["confirmed_at"] is None:
                found["in doubt"].append(name)
            else:
                if is_changed[name][n]:
                    found["other"].append(name)
                if latest is None or last["confirmed_at"] > latest:
                    latest, plan = last["confirmed_at"], last["plan_id"]
        evidence = (
            [f"last confirmed {latest:%Y-%m-%dT%H:%M:%S}Z in plan {plan}"]
            if latest is not None
            else []
        )
        evidence += [f"{word}: {', '.join(names)}" for word, names in found.items() if names]
        is_never_sent = latest is None and not found["in doubt"]
        line["status"] = (
            "never_sent" if is_never_sent else "differs" if any(found.values()) else "same"
        )
        line |= {"evidence": "; ".join(evidence), "line": line["_line"]}
        line |= {
            column: str(json.loads(text))
            for column, name in _TEXTS.items()
            if (text := line.get(name))
        }
    return frame(ERP_VARIANTS, [{name: row.get(name) for name in ERP_VARIANTS} for row in rows])


_TEXTS: Final = {"erp_code": "erpCode", "sku": "sku"}
"""Columns of texts, by the fields that have them in JSON."""


def _key(rows: pd.DataFrame) -> Column[Any]:
    return joined_text([rows["product_id"], "/", rows["variant_id"]])
