"""The command `verify`: compares what a plan sent with what was pulled since, and prints the counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import start
from orderbridge.pipelines.cli.terminal import print_result
from orderbridge.sources.kinds import KINDS
from orderbridge.sources.texts import Texts, english
from orderbridge.sources.words import VERDICTS

if TYPE_CHECKING:
    from orderbridge.pipelines.push.verify import VerifyResult

_INDENT: Final = " " * 10
_READ_BACK: Final = ("same", "differs", "missing", "several")
"""Outcomes of what can be read back."""
_OTHERS: Final = {
    "unreadable": "accepted; the API cannot read them back",
    "unsettled": "not sent, rejected or with unknown outcome",
}
"""The other outcomes, and their words."""


@declared("verify")
@click.argument("plan", type=click.Path(path_type=Path))
def command(plan: Path) -> int:
    """Compare what was sent with what was pulled since, field by field."""
    reporter = start()
    from orderbridge.pipelines.plan.model import Plan
    from orderbridge.pipelines.push.next_steps import NextSteps
    from orderbridge.pipelines.push.verify import verify

    result = verify(plan)
    lines = lines_of(result)
    if result.in_doubt:
        lines += NextSteps.of(Plan(plan)).step("again").lines
    print_result("verify", lines, record(result), reporter.style)
    return result.exit_code


def record(result: VerifyResult) -> dict[str, Any]:
    """What a verification found, for JSON."""
    names = ("kind", "verdict", "outcomes", "in_doubt", "fields", "spelling", "file", "exit_code")
    return {name: getattr(result, name) for name in names}


def lines_of(result: VerifyResult) -> list[str]:
    """What a verification found, as text."""
    texts = english()
    unit = "" if KINDS[result.kind].is_listed else " (requests)"  # a variant may need two
    outcomes = {name: texts(f"verify.{name}") for name in _READ_BACK} | _OTHERS
    lines = [
        f"{result.outcomes[name]:>8}  {words}{unit}"
        for name, words in outcomes.items()
        if result.outcomes[name]
    ]
    return lines + _difference_lines(result, texts)


def import_lines(result: VerifyResult, texts: Texts) -> list[str]:
    """What a verification found, after a table of lines has said what was sent: only what is new."""
    sent = sum(result.outcomes.values()) - result.outcomes["unsettled"]
    if KINDS[result.kind].operation.shown_in is None:
        kind = texts(f"kinds.{result.kind}")
        return [texts("verify.unreadable", kind=kind)] if sent else []
    lines = []
    for name in _READ_BACK:
        if count := result.outcomes[name]:
            records = texts(f"noun.{result.kind}", count=count)
            lines.append(texts("verify.again", records=records, words=texts(f"verify.{name}")))
    return lines + _difference_lines(result, texts)


def _difference_lines(result: VerifyResult, texts: Texts) -> list[str]:
    """How records differ from what was sent, and the file that has it."""
    lines = [
        f"{_INDENT}{texts('verify.spelt', count=count, field=name, file=result.file)}"
        for name, count in result.spelling.most_common()
    ]
    for name, count in result.fields.most_common():
        lines.append(f"{_INDENT}{texts('verify.field', count=count, field=name)}")
    if result.outcomes["missing"] and result.verdict != "complete":
        verdict = VERDICTS[result.verdict]
        kind = texts(f"kinds.{result.kind}")
        lines.append(texts("verify.list", kind=kind, verdict=verdict))
    if result.file is not None and any(
        result.outcomes[name] for name in ("differs", "missing", "several")
    ):
        lines.append(texts("verify.file", file=result.file))
    return lines
