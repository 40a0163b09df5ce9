"""What the documentation says holds: the rules as they are, the commands as they are taken."""

from __future__ import annotations

import re
from pathlib import Path

from pipelines.rulebook import SEVERITIES, anchor, markdown
from transforms.advice import ADVICE
from transforms.rules import RULES

CHECKOUT = Path(__file__).parents[1]


def test_every_rule_has_its_advice_and_every_advice_its_rule() -> None:
    assert set(ADVICE) == {(rule.entity, rule.name) for rule in RULES}
    for advice in ADVICE.values():
        for words in (advice.matters, advice.do):
            assert re.fullmatch(r"[A-Z].*\.", words), words


def test_the_page_of_the_rules_is_what_make_docs_writes() -> None:
    assert (CHECKOUT / "docs/rules.md").read_text("utf-8") == markdown(), "run `make docs`"


def test_the_page_has_a_section_for_each_rule_with_its_severity() -> None:
    found = re.findall(r'^### <a id="([a-z-]+)"></a>`([a-z_]+)` – (\w+)$', markdown(), re.MULTILINE)
    assert found == [(anchor(rule.entity, rule.name), rule.name, rule.severity) for rule in RULES]
    assert len({section for section, *_ in found}) == len(found)
    assert {severity for *_, severity in found} == set(SEVERITIES)
