"""The catalogue of rules: for each kind of finding its severity, what it means, why it matters and what to do.

In: the texts of `rules.toml`. Out: `RULES`, which findings, docs/rules.md and the report are made from. A new rule is
an entry in that file, and a call of `rule_findings` with its name in the transform of its table.
"""

from __future__ import annotations

import re
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


OWN_CHECK: Final = "check_"
"""How the names of rules begin that a project adds, as checks of its own."""


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
        since: the first version that has it, or that finds more by it; empty: 0.3 or earlier. See
            `pipelines.warehouse.new_rules`.
    """

    entity: str
    name: str
    severity: Severity
    meaning: str
    impact: str
    action: str
    since: str = ""


def read_rules(text: str) -> Iterator[Rule]:
    """The rules of a catalogue in the form of `rules.toml`: those of each list and date, and a table's own."""
    catalogue = tomllib.loads(text)
    lists, dates, every_list, every_date = map(
        catalogue.pop, ("lists", "dates", "every_list", "every_date")
    )
    for entity in dict.fromkeys([*catalogue, *lists, *dates]):
        for name, texts in every_list.items() if entity in lists else ():
            words = {
                key: text.format(record=lists[entity], list=entity) for key, text in texts.items()
            }
            yield Rule(entity, name, **words)
        for name, texts in catalogue.get(entity, {}).items():
            yield Rule(entity, name, **texts)
        for name, texts in every_date.items() if entity in dates else ():
            of_list = dates[entity]
            words = {key: text.format(**of_list) for key, text in texts.items()}
            if "since" in of_list:
                words["since"] = of_list["since"]
            yield Rule(entity, f"{of_list['prefix']}_{name}", **words)


RULES: Final = tuple(
    read_rules(files("orderbridge.transforms").joinpath("rules.toml").read_text("utf-8"))
)
_OWN_RULE: Final = re.compile(rf"([a-z][a-z0-9_]*)\.({OWN_CHECK}([a-z][a-z0-9_]*))")
_BY_NAME: Final = {f"{rule.entity}.{rule.name}": rule for rule in RULES}


def find_rule(name: str) -> Rule | None:
    """The rule of a name such as `orders.id_missing`, also one of a project's own check; None if there is none."""
    own = _OWN_RULE.fullmatch(name)
    if own is None:
        return _BY_NAME.get(name)
    entity, rule, check = own.groups()
    file = f"checks/{check}.sql"
    return Rule(
        entity,
        rule,
        severity="error",
        meaning=f"The project's own check {file} lists the row.",
        impact="The comment at the top of that file says what it looks for.",
        action="Look at the row. If it is right, accept it, or change the check.",
    )
