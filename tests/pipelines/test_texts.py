"""The texts for an office: each in both languages, none missing, none left over, and reasons found by their codes."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from orderbridge.pipelines.desk.texts import Texts as PageTexts
from orderbridge.pipelines.desk.texts import catalogue as page_catalogue
from orderbridge.pipelines.import_file.asking import Topic
from orderbridge.pipelines.imports.inputs import SCATTERED, TORN
from orderbridge.pipelines.imports.lookups import AMBIGUOUS, NOT_FOUND
from orderbridge.pipelines.ledger.model import STATES, State
from orderbridge.pipelines.mapping.cells import WORDS, Reading
from orderbridge.pipelines.plan.alike import CODE as NEARLY_KNOWN
from orderbridge.pipelines.plan.damaged_texts import _ADVICE
from orderbridge.pipelines.plan.damaged_texts import _WORDS as DAMAGED
from orderbridge.pipelines.plan.lost_zeros import CODE as ZEROS_LOST
from orderbridge.pipelines.plan.lost_zeros import LostZeros
from orderbridge.pipelines.plan.model import PasswordSource
from orderbridge.pipelines.plan.outcomes import CONFLICTING_LINES
from orderbridge.pipelines.plan.repeated_codes import CODE as NEARLY_REPEATED
from orderbridge.pipelines.plan.suspicious import _CHECKS, _patterns
from orderbridge.pipelines.plan.wording import problem_in, problems_in, reason_in
from orderbridge.pipelines.push.resolutions import ABANDONED
from orderbridge.pipelines.push.results import FILE_OF
from orderbridge.pipelines.questions.model import PRESSING
from orderbridge.sources.files.file_kinds import _IN_ZIP, _MAGIC
from orderbridge.sources.files.model import RejectCode
from orderbridge.sources.files.sheet_xml import _ERROR, _NOT_COMPUTED
from orderbridge.sources.inputs import _LIMITS
from orderbridge.sources.kinds import KINDS
from orderbridge.sources.settings.setting import SETTINGS
from orderbridge.sources.texts import LANGUAGES, Texts, catalogue, english
from orderbridge.sources.words import VERDICTS
from orderbridge.transforms.rules import RULES, SEVERITIES
from orderbridge.transforms.values.tax_numbers import Problem

CHECKOUT = Path(__file__).parents[2]
SPANISH = Texts("es")
LITERAL = re.compile(r"""["']([a-z_]+\.[a-z_.]+)["']""")
REJECTS = {
    *WORDS,
    *(code for code, _ in _LIMITS.values()),
    *get_args(RejectCode),
    *(SCATTERED[0], TORN[0], "group_blank", "blank", "lines_differ", "type"),
    *(NOT_FOUND, AMBIGUOUS, CONFLICTING_LINES, ZEROS_LOST, NEARLY_KNOWN, NEARLY_REPEATED),
    *DAMAGED,
}
"""The codes of reasons for which rows are rejected or held."""
SUSPICIOUS = {
    *_patterns(),
    *(code for checks in _CHECKS.values() for code, _ in checks),
    *(*get_args(Problem), "nameless", "only_fiscal_name"),
    *("zero_id", "decimals", "merged", "nearly_known", "nearly_repeated", "moved", "lookup_moved"),
    *("was_there", "not_listed", "code_missing"),
}
OUTCOMES = {"merged", "unchanged", "exists_same", "ambiguous", "held", "rejected"}
WHICH = {"rejected", "held", "both"}
MADE = {
    "suspicious": SUSPICIOUS,
    "status": {*FILE_OF, "abandoned_unknown"},
    "kinds": {*KINDS},
    "found": {*SEVERITIES},
    "noun": {*KINDS, "lines", "columns", "rows", "requests", "messages", "differences", "suspicious"},
    "step": {
        "next", "wait", "again", "resend", "plan_again", "answer", "answer_one", "answer_file",
        "codes", "texts", "compare", "held",
        "blocked", "look_up", "look_up_from", "send",
        *(f"{one}.{which}" for one in ("correct", "correct_results") for which in WHICH),
    },
    "requests": {*get_args(State)},
    "list_verdict": {*VERDICTS},
    "question_state": {*PRESSING},
    "sheet": {"corrections", "all_lines", "line", "field", "code", "words", "status", "reason", "platform"},
    "verify": {"again", "same", "differs", "missing", "several", "unreadable", "spelt", "field", "list", "file"},
}  # fmt: skip
"""The codes that the program puts together, by their first word; all others are there as they are."""
REWORDED = ("reject", "reason", "note", "plan_note", "part", "evidence", "finding", "file_error")
"""First words of texts that English ones are found in."""
OF_FIELDS = ("field", "password_file")
"""First words of texts of fields and columns, by the names that the interface and files have."""


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def named() -> set[str]:
    """The codes that are in the program as they are."""
    files = [one for name in ("pipelines", "sources") for one in (CHECKOUT / name).rglob("*")]
    texts = [one.read_text("utf-8") for one in files if one.suffix in (".py", ".j2")]
    return {code for text in texts for code in LITERAL.findall(text)}


def test_each_text_is_in_both_languages_with_the_same_values() -> None:
    for code, texts in catalogue().items():
        assert set(texts) == set(LANGUAGES), code
        assert placeholders(texts["en"]) == placeholders(texts["es"]), code


def test_no_text_is_missing_and_none_is_left_over() -> None:
    plain = {code.removesuffix(".one") for code in catalogue()}
    for first, codes in MADE.items():
        assert {code.partition(".")[2] for code in plain if code.startswith(f"{first}.")} == codes
    rejects = {code.split(".")[1] for code in plain if code.startswith("reject.")}
    assert rejects == REJECTS
    summary = {f"summary.{one}" for one in OUTCOMES}
    summary |= {f"summary.passwords_{source}" for source in get_args(PasswordSource)}
    topics = {f"ask.{topic}" for topic in get_args(Topic)}
    others = {code for code in plain if code.split(".")[0] not in {*MADE, *REWORDED, *OF_FIELDS}}
    source = named()
    made = {*summary, *topics, "example.exists_differs", "example.ambiguous", "summary.exists_differs",
            "summary.created_differs"}  # fmt: skip
    assert others - source - made == set()
    firsts = {code.split(".")[0] for code in plain} - {"status", "reason", "code", "part", "note"}
    missing = (
        {code for code in source if code.split(".")[0] in firsts} - plain - {*page_catalogue()}
    )
    files = {"summary.md", "suspicious.toml", "verify.csv", "import.log"}
    assert missing - {*files, "summary.passwords_"} == set()


def test_words_of_a_page_are_those_of_a_text_of_commands_and_have_its_values() -> None:
    own = {code: text for code, text in page_catalogue().items() if code.startswith("page.")}
    assert {code for code in own if code.removeprefix("page.") not in catalogue()} == set()
    for code, text in own.items():
        command = catalogue()[code.removeprefix("page.")]
        assert placeholders(text["en"]) <= placeholders(command["en"]), code
        assert "orderbridge " not in text["en"] + text["es"], code


def test_pages_and_commands_share_no_code() -> None:
    assert not catalogue().keys() & page_catalogue().keys()


@pytest.mark.parametrize("code", sorted(WORDS))
def test_what_a_cell_is_rejected_for_is_said_in_spanish(code: str) -> None:
    words = Reading("number").words(code)
    assert problem_in(SPANISH, code, words) != words, "the English text has changed: look at both"
    of_column = f"Precio: neto «{words}»: {words}"
    assert problem_in(SPANISH, code, of_column).startswith(f"Precio: neto «{words}»: ")
    assert problem_in(SPANISH, code, of_column) != of_column


@pytest.mark.parametrize(
    ("kind", "cure"),
    [
        *((kind, cure) for _, kind, cure in (*_MAGIC, *_IN_ZIP)),
        ("a damaged workbook or zip archive", "Export it again, and copy it as a whole."),
    ],
)
def test_a_file_that_is_no_table_is_named_in_spanish(kind: str, cure: str) -> None:
    pages = PageTexts("es")
    assert pages.known(f"a.csv is {kind}, not a CSV or .xlsx file").startswith("a.csv es un")
    assert pages.known(cure) != cure


@pytest.mark.parametrize(("code", "words"), sorted(set(_LIMITS.values())))
def test_a_limit_that_is_broken_is_said_in_spanish_with_its_value(code: str, words: str) -> None:
    text = words.format(limit=40)
    found = problem_in(SPANISH, code, f"Nombre: {text}")
    assert found.startswith("Nombre: ")
    assert found != f"Nombre: {text}", "the English text has changed: look at both"
    assert ("40" in found) is ("{limit}" in words)


def test_reasons_keep_their_values_and_what_is_unknown_stays_as_it_is() -> None:
    zeros = LostZeros("0" * 64, "erpCode", 5, "1", "00001")
    held = problem_in(SPANISH, ZEROS_LOST, zeros.words)
    assert "1 es 00001 allí" in held
    assert "orderbridge answer zeros:000000000000 as_written" in held
    words = (
        "line 61 has the same Código, but another Teléfono | "
        "Correo «x»: not a valid e-mail address: the customer could not log in with it"
    )
    spanish = problems_in(SPANISH, f"{CONFLICTING_LINES} | not_an_address", words)
    assert spanish.startswith(
        "comparte Código con la línea 61, que tiene otros datos en: Teléfono | Correo «x»: el correo no"
    )
    for code, text in DAMAGED.items():
        assert problem_in(SPANISH, code, f"Nombre «Pe?a»: {text}: {_ADVICE}").startswith(
            "Nombre «Pe?a»: "
        )
    assert problem_in(
        SPANISH, "too_long", "10 cells, but the header has 9; line 4 of the file: a | b"
    ) == (
        "10 celdas, y la cabecera tiene 9: sobra un separador o faltan comillas; línea 4 del archivo: a | b"
    )
    assert problem_in(SPANISH, "required", "the platform says no") == "the platform says no"
    assert (
        reason_in(SPANISH, "Código: empty; failed 3 times; no")
        == "Código: vacío; falló 3 veces; no"
    )
    assert english()("status.abandoned_unknown") == ABANDONED
    assert {one: english()(f"list_verdict.{one}") for one in VERDICTS} == VERDICTS
    assert {one: english()(f"requests.{one}") for one in STATES} == STATES


@pytest.mark.parametrize(
    ("words", "spanish"),
    [(_NOT_COMPUTED, "una fórmula sin resultado"), (_ERROR, "un error de la hoja")],
)
def test_a_cell_of_a_sheet_without_a_value_is_said_in_spanish(words: str, spanish: str) -> None:
    found = problem_in(SPANISH, "cell_error", f"'Precio venta' has {words}")
    assert found.startswith(f"'Precio venta' tiene {spanish}")
    assert words not in found


def test_counts_have_the_form_of_their_number() -> None:
    assert (SPANISH("noun.lines", count=1), SPANISH("noun.lines", count=2)) == (
        "1 línea",
        "2 líneas",
    )
    assert (english()("noun.lines", count=1), english()("noun.lines", count=0)) == (
        "1 line",
        "0 lines",
    )


FILLED: tuple[str, ...] = ("7", "orders", "are ERP codes")
"""What stands for a value of a text in the code: most texts take any, some are there for each list."""


def words_of(node: ast.AST, value: str = "7") -> str:
    """A text in the code, with its values filled in; empty for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(words_of(part, value) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        is_optional = isinstance(node.value, ast.Name) and node.value.id in ("since", "when")
        return "" if is_optional else value
    return ""


def evidence_of(tree: ast.AST) -> Iterator[ast.AST]:
    """What a module says in questions: of its choices, and in the fields that people read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and "_MEANINGS" in ast.dump(node):
            yield from getattr(node.value, "values", ())
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id == "Choice":
            yield from node.args[1:2]
        if node.func.id in ("AskedQuestion", "Evidence"):
            for keyword in node.keywords:
                if keyword.arg in ("text", "reason", "otherwise", "advice", "note", "example"):
                    yield keyword.value
                if keyword.arg == "holds_up":
                    yield from getattr(keyword.value, "elts", ())


def asking_modules() -> list[Path]:
    """The modules that make questions; kinds of fields are for engineers, and stay in English."""
    modules = [*(CHECKOUT / "pipelines" / "questions").glob("*.py")]
    modules += (CHECKOUT / "transforms").rglob("*.py")
    modules.append(CHECKOUT / "pipelines" / "reconcile" / "orders" / "questions.py")
    return [one for one in modules if one.name != "kinds.py"]


def is_known(node: ast.AST) -> bool:
    """Whether a text of the code is found in Spanish, with one value or another."""
    texts = PageTexts("es")
    asked = {text["en"] for code, text in page_catalogue().items() if code.startswith("asked.")}
    return any(
        words in asked or not any(is_english for _, is_english in texts.known_parts(words))
        for words in (words_of(node, value) for value in FILLED)
    )


def test_what_questions_say_is_known_in_spanish() -> None:
    unknown = {
        words_of(node)
        for module in asking_modules()
        for node in evidence_of(ast.parse(module.read_text("utf-8")))
        if " " in words_of(node) and not is_known(node)
    }
    assert unknown == set()


def test_what_settings_ask_is_known_in_spanish() -> None:
    asked = [one for one in SETTINGS.values() if one.asks]
    shown = {text for one in asked for text in (*one.means.values(), *one.holds_up) if " " in text}
    assert {text for text in shown if PageTexts("es").known(text) == text} == set()
    assert {one.key for one in asked if f"asked.{one.key}" not in page_catalogue()} == set()


def test_texts_that_are_found_by_their_english_are_those_of_the_program() -> None:
    folders = ("pipelines", "transforms", "sources")
    files = [one for name in folders for one in (CHECKOUT / name).rglob("*.py")]
    nodes = [node for one in files for node in ast.walk(ast.parse(one.read_text("utf-8")))]
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    program = " ".join(" ".join(one.split()) for one in constants if isinstance(one, str))
    for code, text in catalogue().items():
        if code.startswith("evidence.") and not code.startswith(COUNTED):
            parts = [part for part, *_ in string.Formatter().parse(text["en"])]
            assert any(shingle in program for part in parts for shingle in shingles(part)), code


COUNTED = tuple(
    f"evidence.{one}"
    for one in (
        "used_now.",
        "not_known.",
        "row",
        "order",
        "codes_row",
        "finding_",
        "more_code",
        "of_",
    )
)
"""Texts about a count, whose words the program puts together."""


def shingles(text: str) -> Iterator[str]:
    """Three words of a text in a row, or all that it has."""
    words = text.strip(" ,.;:").split()
    for at in range(max(1, len(words) - 2)):
        yield " ".join(words[at : at + 3])


def test_findings_are_known_in_spanish() -> None:
    shown = {text for rule in RULES for text in (rule.meaning, rule.impact, rule.action)}
    assert {text for text in shown if SPANISH.reworded(text, "finding") == text} == set()
    english_of = {
        code: text["en"] for code, text in catalogue().items() if code.startswith("finding.")
    }
    left_over = {
        code
        for code, text in english_of.items()
        if not any(re.fullmatch(pattern_of(text), one) for one in shown)
    }
    assert left_over == set()


def pattern_of(text: str) -> str:
    return "".join(
        re.escape(part) + (".*" if name else "")
        for part, name, _, _ in string.Formatter().parse(text)
    )
