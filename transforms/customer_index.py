"""Which customer an order refers to: by id, or by ERP code.

In: the reconciled customers, and a column of the raw orders. Out: the customer of each value, and how many values are
ids or codes of customers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from transforms.frames import BOOLEAN, TEXT, Column, is_repeated, look_up, typed
from transforms.keys import canonical_id, clean_text

ORDERING_CUSTOMERS: Final = {"customer_id": TEXT, "erp_code": TEXT, "is_missing": BOOLEAN}
"""The columns of the reconciled customers that are used."""


@dataclass(frozen=True, slots=True)
class CustomerIndex:
    """The customers that an order may refer to.

    Attributes:
        ids: `customer_id`.
        codes: `code` and `customer_id`: ERP codes that one customer has. A listed customer has a code before one that
            is missing.
        shared: ERP codes that several have.
    """

    ids: pd.DataFrame
    codes: pd.DataFrame
    shared: Column[Any]

    @classmethod
    def of(cls, customers: pd.DataFrame) -> CustomerIndex:
        """The index of the columns of `ORDERING_CUSTOMERS`."""
        customers = typed(customers, ORDERING_CUSTOMERS)
        codes = customers.assign(code=clean_text(customers["erp_code"])).dropna(subset="code")
        is_reused = codes["is_missing"] & codes["code"].isin(codes.loc[~codes["is_missing"], "code"])
        codes = codes[~is_reused]
        is_shared = is_repeated(codes["code"])
        shared = codes.loc[is_shared, "code"].drop_duplicates()
        return cls(customers[["customer_id"]], codes.loc[~is_shared, ["code", "customer_id"]], shared)

    def hits(self, values: Column[Any]) -> tuple[int, int]:
        """How many values are ids of customers, and how many are ERP codes."""
        is_code = values.isin(self.codes["code"]) | values.isin(self.shared)
        is_id = canonical_id(values).isin(self.ids["customer_id"])
        return int((is_id & values.notna()).sum()), int((is_code & values.notna()).sum())

    def is_by_code(self, values: Column[Any]) -> bool:
        """Whether a column holds ERP codes rather than ids: more of its values are codes."""
        by_id, by_code = self.hits(values)
        return by_code > by_id

    def customers_of(self, values: Column[Any]) -> Column[Any]:
        """The id of the customer that each value refers to."""
        if self.is_by_code(values):
            return look_up(values, self.codes, "code")["customer_id"]
        return look_up(canonical_id(values), self.ids, "customer_id")["customer_id"]
