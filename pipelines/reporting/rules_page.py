"""The rules of findings as a page, docs/rules.md, written by `make docs`.

In: the catalogue of rules. Out: Markdown with a section per rule, the same text as the report.
"""

from __future__ import annotations

from typing import Final

from transforms.rules import RULES, SEVERITIES

_HEAD: Final = """\
# Rules of findings

`reconciled.exceptions` has a row for each finding: `entity` (the reconciled table), `entity_id`, `rule`, `severity` and
`detail`. Details contain ids, counts, field names and dates, and no personal data. `make docs` generates this page
from `transforms/rules.toml`.

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
        lines += [
            "",
            f'### <a id="{anchor(rule.entity, rule.name)}"></a>`{rule.name}` – {rule.severity}',
            "",
            rule.meaning,
            "",
            f"- Why it matters: {rule.impact}",
            f"- What to do: {rule.action}",
        ]
    return _HEAD + "\n".join(lines) + "\n"
