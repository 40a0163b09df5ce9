"""The catalogue of rules: for each kind of finding its severity, what it means, why it matters and what to do.

In: nothing. Out: `RULES`, which findings, docs/rules.md and the report are made from. A new rule is an entry in the
module of its entity here, and a call of `rule_findings` with its name in the transform of that entity.
"""

from __future__ import annotations

from typing import Final

from transforms.rules.customers import CUSTOMER_RULES
from transforms.rules.erp_customers import ERP_CUSTOMER_RULES
from transforms.rules.orders import ORDER_RULES
from transforms.rules.price_lists import PRICE_LIST_RULES
from transforms.rules.promotions import PROMOTION_RULES
from transforms.rules.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    *CUSTOMER_RULES,
    *PROMOTION_RULES,
    *PRICE_LIST_RULES,
    *ORDER_RULES,
    *ERP_CUSTOMER_RULES,
)
