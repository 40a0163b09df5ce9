"""The rules about price lists."""

from __future__ import annotations

from functools import partial
from typing import Final

from transforms.rules.rule import Rule, common_rules

_rule = partial(Rule, "price_lists")

PRICE_LIST_RULES: Final = (
    *common_rules("price_lists", "a price list"),
    _rule(
        "id_ambiguous",
        "warning",
        "Another listed price list has the same id in a different notation.",
        "Customers refer to price lists by number, so it is unclear which of the two is meant; the first one is used.",
        "Report it to the platform: ids must differ in more than their notation.",
    ),
    _rule(
        "name_missing",
        "info",
        "The price list has no name.",
        "It cannot be distinguished from others in a list.",
        "Name it on the platform.",
    ),
    _rule(
        "name_duplicate",
        "info",
        "Several listed price lists have the same name.",
        "Someone may set a price in the wrong one, and reports by name add them up.",
        "Rename one of them on the platform.",
    ),
    _rule(
        "source_not_listed",
        "warning",
        "The source of the price list is not listed.",
        "Its prices derive from a list that is not active: they may be frozen, or missing.",
        "Reactivate the source, or choose another one.",
    ),
    _rule(
        "chain_orphaned",
        "info",
        "The chain of sources ends, further up, at a price list that is not listed.",
        "Its own source is listed, but a source further up is not, so its prices may be frozen or missing as well.",
        "Fix the price list with the finding source_not_listed; this finding then disappears.",
    ),
    _rule(
        "sources_unproven",
        "warning",
        "Chains end at sources that were not read and may be listed.",
        "It is unknown whether these prices derive from a list that is no longer active.",
        "The detail gives the reason: see `ops.quarantine` and `ops.coverage`, then pull the price lists again. These "
        "lists have the `chain_status` `unknown`.",
    ),
    _rule(
        "chain_cycle",
        "error",
        "The chain of sources is circular.",
        "Each list derives its prices from the next and none has its own, so no price can be computed.",
        "Remove the source of one of the lists, or choose a source outside the circle.",
    ),
    _rule(
        "adjustment_contradicts",
        "warning",
        "The adjustment type is NONE and the adjustment value is not zero.",
        "The value says that prices are adjusted, the type says that they are not.",
        "Find out which one is intended, then set the value to zero or correct the type.",
    ),
)
