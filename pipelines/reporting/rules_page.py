"""The rules of exceptions as a page, docs/rules.md, written by `make docs`.

In: the catalogue of rules and the advice on each. Out: Markdown with a section per rule, the same text as the report.
"""

from __future__ import annotations

import sys
from typing import Final

from transforms.advice import ADVICE
from transforms.rules import RULES, Rule

SEVERITIES: Final = {
    "error": "a row is missing from its table, or cannot be distinguished from another",
    "warning": "data contradict each other, or will fail when used",
    "info": "something is absent, or worth a look",
}
"""Meaning of each severity, the gravest first."""
_HEAD: Final = """\
# Rules of exceptions

`reconciled.exceptions` has a row for each finding: `entity` (the reconciled table), `entity_id`, `rule`, `severity` and
`detail`. Details contain ids, counts, field names and dates, and no personal data. `make docs` generates this page
from `transforms/rules.py` and `transforms/advice.py`.

"""


def anchor(entity: str, rule: str) -> str:
    """The id of a rule's section, here and in the report."""
    return f"{entity}-{rule}".replace("_", "-")


def markdown() -> str:
    """The page: severities, then the rules by entity in the order of the catalogue."""
    lines = [f"- **{name}**: {meaning}." for name, meaning in SEVERITIES.items()]
    entity = ""
    for rule in RULES:
        if rule.entity != entity:
            entity = rule.entity
            lines += ["", f"## {entity}"]
        lines += ["", *_section(rule)]
    return _HEAD + "\n".join(lines) + "\n"


def _section(rule: Rule) -> list[str]:
    advice = ADVICE[rule.entity, rule.name]
    return [
        f'### <a id="{anchor(rule.entity, rule.name)}"></a>`{rule.name}` – {rule.severity}',
        "",
        f"{rule.says}",
        "",
        f"- Why it matters: {advice.matters}",
        f"- What to do: {advice.do}",
    ]


if __name__ == "__main__":
    sys.stdout.write(markdown())
