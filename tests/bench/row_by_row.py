"""The contender `row_by_row`: the plan of a CSV of variants as one would write it in an afternoon.

pandas reads the file as text, pydantic validates each row, a dict finds what repeats, and each request is a line of
JSON. It knows the file beforehand: encoding, delimiter, numbers.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pandas as pd
from pydantic import BaseModel, Field, ValidationError, field_validator


class Variant(BaseModel):
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
        return {"S": True, "N": False}[value]


def counted(file: str, target: str) -> dict[str, int]:
    """Writes the requests; returns the counts of lines by outcome."""
    frame = pd.read_csv(file, sep=";", encoding="cp1252", dtype=str, keep_default_na=False)
    said: dict[tuple[int, int], list[Variant]] = {}
    counts = Counter({"patch": 0, "merged": 0, "rejected": 0})
    names = list(frame.columns)
    for row in frame.itertuples(index=False, name=None):
        try:
            variant = Variant.model_validate(dict(zip(names, row, strict=True)))
        except ValidationError:
            counts["rejected"] += 1
        else:
            said.setdefault((variant.product, variant.variant), []).append(variant)
    with Path(target).open("w", encoding="utf-8") as out:
        for (product, number), variants in said.items():
            first = variants[0]
            if any(variant != first for variant in variants):
                counts["rejected"] += len(variants)
                continue
            counts.update(patch=1, merged=len(variants) - 1)
            quiet = {
                "sku": first.sku,
                "priceIsTaxExempt": first.price_is_tax_exempt,
                "weight": first.weight,
            }
            for body in (quiet, {"price": first.price, "stock": first.stock}):
                path = f"/products/{product}/variants/{number}"
                out.write(json.dumps({"method": "PATCH", "path": path, "body": body}) + "\n")
    return counts
