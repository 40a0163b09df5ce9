"""The rules of exceptions as a page: docs/rules.md, which `make docs` writes.

In: the catalogue of rules and the advice on each. Out: Markdown, a section a rule, the same words as in the report.
"""

from __future__ import annotations

import sys
from typing import Final

from transforms.advice import ADVICE
from transforms.rules import RULES, Rule

SEVERITIES: Final = {
    "error": "a row is lost to its table, or cannot be told from another",
    "warning": "something contradicts, or will fail when it is used",
    "info": "something is only absent, or worth a look",
}
"""What each severity means, the gravest first."""
_HEAD: Final = """\
# Rules of exceptions

`reconciled.exceptions` has a row for each finding: `entity` (the reconciled table), `entity_id`, `rule`, `severity` and
`detail`. A detail holds ids, counts, field names and dates, and no personal data. This page is made by `make docs`
from `transforms/rules.py` and `transforms/advice.py`.

"""


def anchor(entity: str, rule: str) -> str:
    """What links to a rule's section, here and in the report."""
    return f"{entity}-{rule}".replace("_", "-")


def markdown() -> str:
    """The page: what the severities mean, then the rules by entity in the order of the catalogue."""
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
