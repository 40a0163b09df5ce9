"""The catalogue of rules: for each kind of finding its severity, what it means, why it matters and what to do.

In: nothing. Out: `RULES`, which findings, docs/rules.md and the report are made from. A new rule is one entry in the
module of its entity.
"""

from __future__ import annotations

from typing import Final

from transforms.rules import customers, erp_customers, orders, price_lists, promotions
from transforms.rules.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    *customers.RULES,
    *promotions.RULES,
    *price_lists.RULES,
    *orders.RULES,
    *erp_customers.RULES,
)
