"""The catalogue of rules: for each kind of finding its severity, what it means, why it matters and what to do.

In: the texts of `rules.toml`. Out: `RULES`, which findings, docs/rules.md and the report are made from. A new rule is
an entry in that file, and a call of `rule_findings` with its name in the transform of its table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, Literal

Severity = Literal["error", "warning", "info"]

SEVERITIES: Final[dict[Severity, str]] = {
    "error": "rows are lost to a table, cannot be distinguished, or cannot be read as a whole",
    "warning": "values contradict each other or are unproven, or will fail when they are used",
    "info": "something is missing or worth a look",
}
"""What each severity means, the most severe first."""
_LISTS: Final = {
    "customers": "a customer",
    "promotions": "a promotion",
    "price_lists": "a price list",
    "orders": "an order",
}
"""The lists of the platform, and a row of each in words."""
_DATES: Final = {
    "customers": ("created_at", "createdAt", "the customer has no creation date"),
    "promotions": ("dates", "startDate and expirationDate", "the status of the promotion is unknown"),
    "orders": ("ordered_at", "the order date", "the order is missing from counts over time"),
}
"""Columns of dates: prefix of the names of their rules, the platform's name, and the effect of a missing date."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of finding. All texts are whole sentences.

    Attributes:
        entity: the reconciled table that it is about.
        name: unique within its entity.
        severity: see `SEVERITIES`.
        meaning: what was found, in one sentence.
        impact: what goes wrong if nobody acts.
        action: the next step, and where to take it.
    """

    entity: str
    name: str
    severity: Severity
    meaning: str
    impact: str
    action: str


def _rules() -> Iterator[Rule]:
    catalogue = tomllib.loads(files("transforms").joinpath("rules.toml").read_text("utf-8"))
    every_list, every_date = catalogue.pop("every_list"), catalogue.pop("every_date")
    for entity, rules in catalogue.items():
        for name, texts in every_list.items() if entity in _LISTS else ():
            yield Rule(entity, name, **{key: text.format(record=_LISTS[entity]) for key, text in texts.items()})
        for name, texts in rules.items():
            yield Rule(entity, name, **texts)
        prefix, field, effect = _DATES.get(entity, ("", "", ""))
        for name, texts in every_date.items() if prefix else ():
            words = {key: text.format(field=field, effect=effect) for key, text in texts.items()}
            yield Rule(entity, f"{prefix}_{name}", **words)


RULES: Final = tuple(_rules())
