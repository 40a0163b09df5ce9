"""The rules about promotions."""

from __future__ import annotations

from functools import partial
from typing import Final

from transforms.rules.rule import Rule, common_rules, date_rules

_rule = partial(Rule, "promotions")

PROMOTION_RULES: Final = (
    *common_rules("promotions", "a promotion"),
    _rule(
        "name_missing",
        "info",
        "The promotion has no name.",
        "It cannot be distinguished from others in a list.",
        "Name it on the platform.",
    ),
    *date_rules("promotions", "dates", "startDate and expirationDate", "the status of the promotion is unknown"),
    _rule(
        "ends_before_start",
        "warning",
        "The promotion expires before it starts.",
        "It never runs.",
        "Correct the dates on the platform; day and month may have been swapped.",
    ),
    _rule(
        "used_beyond_limit",
        "warning",
        "The promotion was used more often than its limit allows.",
        "More discounts were given than intended.",
        "Ask how the platform counts uses (cancelled orders?), then raise the limit or end the promotion.",
    ),
    _rule(
        "use_count_negative",
        "warning",
        "The number of uses is negative.",
        "Neither this number nor the remaining uses can be relied on.",
        "Report it to the platform.",
    ),
    _rule(
        "usage_limit_not_positive",
        "warning",
        "The usage limit is zero or negative, and what that means is not shown.",
        "It may mean that nobody can use the promotion, or that everybody can without limit: its status is unknown.",
        "Try it on the sandbox, then set a positive limit or remove the limit.",
    ),
    _rule(
        "active_but_expired",
        "warning",
        "The promotion is active and has expired.",
        "It has no effect and fills the lists; if its end date is moved by mistake, it runs immediately.",
        "Deactivate it on the platform.",
    ),
    _rule(
        "active_but_exhausted",
        "info",
        "The promotion is active and has no uses left.",
        "Customers may still see it and cannot use it.",
        "Raise the limit or deactivate the promotion.",
    ),
)
