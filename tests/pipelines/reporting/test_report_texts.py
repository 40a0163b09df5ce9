"""The report in two languages: no text is missing, none is left over, and a page has words of one language."""

from __future__ import annotations

import re
import string
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import pytest

from orderbridge.pipelines.reporting.report import report
from orderbridge.pipelines.reporting.texts import catalogue, report_texts
from orderbridge.pipelines.warehouse.raw.schema_changes import _KINDS
from orderbridge.sources.contract import LISTS
from orderbridge.sources.settings.setting import SETTINGS
from orderbridge.sources.texts import LANGUAGES
from orderbridge.transforms.erp.compare import COMPARISONS
from orderbridge.transforms.rules import RULES, SEVERITIES, Severity
from tests.pipelines.bridge import command
from tests.pipelines.reporting.page import change

REPORTING = Path(__file__).parents[3] / "pipelines" / "reporting"
TEMPLATES = REPORTING / "templates"
NAMED = {
    "schema": {kind for kind, _ in _KINDS.values()},
    "rule": {rule.name for rule in RULES},
    "compared": {*COMPARISONS},
    "environment": {"sandbox", "production"},
    "severity": {*get_args(Severity)},
    "severities": {*get_args(Severity)},
    "severity_means": {*get_args(Severity)},
    "assumed": {
        one.name for one in SETTINGS.values() if one.section == "reconcile" and one.holds_up
    },
}
"""Codes that the program puts together, by their first word."""
OTHERS = (
    "table",
    "promotion",
    "variant",
    "chain",
    "on",
    "by",
    "price_list",
    "period",
    "chart",
    "written",
    "axis",
)


class Words(HTMLParser):
    """The text of a page that is not marked as English, nor a name, code or style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self._left_out: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        is_foreign = tag in ("style", "bdi", "code") or given.get("lang") == "en"
        if is_foreign or (self._left_out and tag == self._left_out[0]):
            self._left_out.append(tag)
        self.words += [given["aria-label"] or ""] if "aria-label" in given else []

    def handle_endtag(self, tag: str) -> None:
        if self._left_out and tag == self._left_out[-1]:
            self._left_out.pop()

    def handle_data(self, data: str) -> None:
        if not self._left_out:
            self.words.append(" ".join(data.split()))


def literals(text: str) -> list[str]:
    return [part.strip(" :.,;()") for part, *_ in string.Formatter().parse(text.replace("`", " "))]


def test_each_text_is_used_and_is_in_both_languages_with_the_same_values() -> None:
    files = [*REPORTING.glob("*.py"), *TEMPLATES.glob("*.j2")]
    source = "\n".join(path.read_text("utf-8") for path in files)
    used = set(re.findall(r'"([a-z_]+\.[a-z_0-9]+)"', source))
    for code, texts in catalogue().items():
        assert set(texts) == set(LANGUAGES), code
        values = [
            {name for _, name, *_ in string.Formatter().parse(texts[one]) if name}
            for one in LANGUAGES
        ]
        assert values[0] == values[1], code
        first = code.partition(".")[0]
        is_made = first in NAMED or first in OTHERS
        assert code.removesuffix(".one") in used or is_made, f"{code} is not used"
    for first, names in NAMED.items():
        codes = {code for code in catalogue() if code.startswith(f"{first}.")}
        assert {code.removesuffix(".one").partition(".")[2] for code in codes} == names
    asked = set(re.findall(r'\bt\("([a-z_.0-9]+)"[,)]', source))
    assert asked - set(catalogue()) == set()


def test_texts_that_the_program_has_too_are_the_same_in_english() -> None:
    english = report_texts()
    assert {name: english(f"severity_means.{name}") for name in SEVERITIES} == SEVERITIES
    for rule in RULES:
        assert english(f"rule.{rule.name}") == rule.name.replace("_", " ")
    for name in LISTS:
        assert english(f"table.{name}") == name.replace("_", " ")
    for kind, words in _KINDS.values():
        values = {"name": "a", "value": "b", "previous": "c"}
        assert english(f"schema.{kind}", **values) == words.format(**values)


def test_templates_have_no_words_of_their_own() -> None:
    for path in TEMPLATES.glob("*.j2"):
        text = re.sub(
            r"{#.*?#}|{%.*?%}|{{.*?}}|<style>.*?</style>", "", path.read_text(), flags=re.S
        )
        assert not re.findall(r"[A-Za-z]{2,}", re.sub(r"<[^<>]*>", " ", text)), path.name


def test_a_spanish_page_has_no_english_but_what_is_marked_so(
    warehouse: Path, tmp_path: Path
) -> None:
    rules = ", ".join(f"('{one.entity}', '{one.name}', '{one.severity}')" for one in RULES)
    change(
        warehouse,
        f"""INSERT INTO reconciled.exceptions BY NAME SELECT entity, '1' AS entity_id, rule, severity,
            'a detail' AS detail, rule = 'duplicate' AS is_accepted FROM (VALUES {rules}) AS r(entity, rule, severity);
        CREATE OR REPLACE TABLE reconciled.meanings AS SELECT 'reconcile.order_statuses' AS question,
            'assumed' AS state, 'paid=sale' AS value""",
    )
    out = tmp_path / "es.html"
    report(out, "es")
    text = out.read_text("utf-8")
    assert '<html lang="es">' in text
    assert "<h1>Ventas y datos de " in text
    assert "se encuentra el 50,0 % de sus 6 líneas" in text
    words = Words(text).words
    assert len(words) > 200
    assert not re.findall(r">\d{4}-\d\d<|>\d\d-\d\d<|>\d+k<", text)
    english = {
        literal
        for code, texts in catalogue().items()
        for literal in literals(texts["en"])
        if len(literal) > 3 and not any(literal in other for other in literals(texts["es"]))
    }
    assert {word for word in words if word in english} == set()
    assert {one for one in english if len(one) > 12 and any(one in word for word in words)} == set()


@pytest.mark.parametrize(
    ("words", "locale", "language"),
    [(("--lang", "es"), "C.UTF-8", "es"), ((), "es_ES.UTF-8", "en"), ((), "C.UTF-8", "en")],
)
def test_the_language_is_the_one_that_was_asked_for_and_that_of_machines_is_english(
    warehouse: Path, tmp_path: Path, words: tuple[str, ...], locale: str, language: str
) -> None:
    out = tmp_path / "out.html"
    environment = {"HOME": str(tmp_path), "LC_ALL": locale, "WAREHOUSE__PATH": str(warehouse)}
    done = command("report", "--out", str(out), *words, env=environment, cwd=tmp_path)
    assert done.code == 0, done.err
    assert f'<html lang="{language}">' in out.read_text("utf-8")
