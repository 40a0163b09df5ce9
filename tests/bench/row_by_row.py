"""The contender `row_by_row`: the plan of a CSV of variants as one would write it in an afternoon.

pandas reads the file as text, pydantic validates each row, a dict finds what repeats, and each request is a line of
JSON. It knows the file beforehand: encoding, delimiter, numbers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

_YES_NO = {"S": True, "N": False}


class Variant(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    product: int = Field(alias="Producto")
    variant: int = Field(alias="Variante")
    sku: str = Field(alias="Artículo")
    price: float = Field(alias="PVP")
    price_is_tax_exempt: bool = Field(alias="Exento IVA")
    stock: int = Field(alias="Existencias")
    weight: float = Field(alias="Peso")

    @field_validator("price", "weight", mode="before")
    @classmethod
    def _decimal_comma(cls, value: str) -> str:
        return value.replace(".", "").replace(",", ".")

    @field_validator("price_is_tax_exempt", mode="before")
    @classmethod
    def _yes_no(cls, value: str) -> bool:
        return _YES_NO[value]


def counted(file: str, target: str) -> dict[str, int]:
    """Writes the requests; returns the counts of lines by outcome."""
    frame = pd.read_csv(file, sep=";", encoding="cp1252", dtype=str, keep_default_na=False)
    said: dict[tuple[int, int], Variant] = {}
    lines: dict[tuple[int, int], int] = {}
    conflicts: set[tuple[int, int]] = set()
    counts = {"patch": 0, "merged": 0, "rejected": 0}
    names = list(frame.columns)
    for row in frame.itertuples(index=False, name=None):
        try:
            variant = Variant.model_validate(dict(zip(names, row, strict=True)))
        except ValidationError:
            counts["rejected"] += 1
            continue
        key = (variant.product, variant.variant)
        if key not in said:
            said[key], lines[key] = variant, 1
            continue
        lines[key] += 1
        if said[key] != variant:
            conflicts.add(key)
    with Path(target).open("w", encoding="utf-8") as out:
        at = 0
        for key, variant in said.items():
            if key in conflicts:
                counts["rejected"] += lines[key]
                continue
            counts["patch"] += 1
            counts["merged"] += lines[key] - 1
            path = f"/products/{variant.product}/variants/{variant.variant}"
            bodies: list[dict[str, Any]] = [
                {"sku": variant.sku, "priceIsTaxExempt": variant.price_is_tax_exempt, "weight": variant.weight},
                {"price": variant.price, "stock": variant.stock},
            ]
            for body in bodies:
                at += 1
                out.write(json.dumps({"id": at, "method": "PATCH", "path": path, "body": body}) + "\n")
    return counts


if __name__ == "__main__":
    sys.stdout.write(json.dumps(counted(*sys.argv[1:])) + "\n")
