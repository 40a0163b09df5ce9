"""The ERP's variants against what the platform last confirmed of them: variants cannot be read back.

In: lines of the ERP with each field as JSON text, and the confirmed fields with their time and plan. Out: a row for
each line: never sent, same, or different, and the evidence in names of fields and plans.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
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
_TEXTS: Final = {"erp_code": "erpCode", "sku": "sku"}
"""The columns of `ERP_VARIANTS` that are texts of fields."""


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
    columns = VARIANT_LINES | dict.fromkeys(fields, TEXT)
    lines = typed(erp, columns).sort_values("_line", kind="stable", ignore_index=True)
    known = typed(confirmed, CONFIRMED).assign(key=_key)
    is_changed = changed_fields(lines[fields].assign(key=_key(lines)), known).to_dict("list")
    sent = {
        tuple(row[name] for name in FIELD_KEY): row
        for row in to_arrow(known, CONFIRMED).to_pylist()
    }
    rows = []
    for n, line in enumerate(to_arrow(lines, columns).to_pylist()):
        comparison = _Comparison()
        for name in fields:
            if line[name] is not None:
                last = sent.get((line["product_id"], line["variant_id"], name))
                comparison.add(name, last, is_changed=is_changed[name][n])
        rows.append(_row(line, comparison))
    return frame(ERP_VARIANTS, rows)


@dataclass(slots=True)
class _Comparison:
    """The fields of a line against what was last sent of them.

    Attributes:
        other, in_doubt, never_sent: names of fields: confirmed with another value, sent with an unknown outcome, and
            not sent.
        latest: the row of `CONFIRMED` that was confirmed last.
    """

    other: list[str] = field(default_factory=list)
    in_doubt: list[str] = field(default_factory=list)
    never_sent: list[str] = field(default_factory=list)
    latest: dict[str, Any] | None = None

    def add(self, name: str, last: dict[str, Any] | None, *, is_changed: bool) -> None:
        """Adds a field, with the row of `CONFIRMED` that it has, if any."""
        if last is None:
            self.never_sent.append(name)
            return
        if last["confirmed_at"] is None:
            self.in_doubt.append(name)
            return
        if is_changed:
            self.other.append(name)
        if self.latest is None or last["confirmed_at"] > self.latest["confirmed_at"]:
            self.latest = last

    @property
    def status(self) -> str:
        if self.latest is None and not self.in_doubt:
            return "never_sent"
        return "differs" if self.other or self.in_doubt or self.never_sent else "same"

    @property
    def evidence(self) -> str:
        parts = []
        if self.latest is not None:
            time = f"{self.latest['confirmed_at']:%Y-%m-%dT%H:%M:%S}Z"
            parts.append(f"last confirmed {time} in plan {self.latest['plan_id']}")
        for words, names in (
            ("other", self.other),
            ("in doubt", self.in_doubt),
            ("never sent", self.never_sent),
        ):
            if names:
                parts.append(f"{words}: {', '.join(names)}")
        return "; ".join(parts)


def _row(line: dict[str, Any], comparison: _Comparison) -> dict[str, Any]:
    """A row of `ERP_VARIANTS`."""
    return {
        "line": line["_line"],
        "product_id": line["product_id"],
        "variant_id": line["variant_id"],
        **{column: _text(line.get(name)) for column, name in _TEXTS.items()},
        "status": comparison.status,
        "evidence": comparison.evidence,
    }


def _text(value: str | None) -> str | None:
    """A text of the line, which has it as JSON."""
    return str(json.loads(value)) if value else None


def _key(rows: pd.DataFrame) -> Column[Any]:
    return joined_text([rows["product_id"], "/", rows["variant_id"]])
